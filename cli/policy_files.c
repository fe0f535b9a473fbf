#include "cli/policy_files.h"

#include "base/file.h"
#include "policy/errors.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>

int policy_file_read(const char *path, struct buf *out) {
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    if (fd < 0)
        return errno == ENOENT ? ERR_MISSING : ERR_SYSTEM;
    return file_read(fd, POLICY_TEXT_MAX, out);
}

/* The path of a file as seen from the one that includes it. */
static int join(const char *from, struct view path, char *name, size_t size) {
    const char *slash = strrchr(from, '/');
    struct buf joined;
    buf_init(&joined, size);
    if (slash && path.p[0] != '/')
        buf_put(&joined, view_of(from, (size_t)(slash - from) + 1));
    buf_put(&joined, path);
    int err = buf_ok(&joined) ? view_cstr(buf_view(&joined), name, size) : ERR_LIMIT;
    buf_free(&joined);
    return err;
}

static int read_included(void *ctx, const char *from, struct view path, struct buf *out, char *name,
                         size_t size, const char **why) {
    (void)ctx;
    int err = join(from, path, name, size);
    *why = "the name is too long";
    if (err != 0)
        return err;
    err = policy_file_read(name, out);
    *why = err == ERR_MISSING ? "there is no such file"
           : err == ERR_LIMIT ? "the file is too long"
                              : "the file cannot be read";
    return err;
}

const struct policy_files policy_files_of_disk = {read_included, NULL};

int policy_file_load(struct view text, const char *path, struct policy **out,
                     struct policy_errors *errors) {
    return policy_load_files(text, path, &policy_files_of_disk, out, errors);
}

void policy_file_errors(const struct policy_errors *errors, struct view text, const char *path,
                        struct buf *out) {
    struct buf other;
    const char *read = path;
    buf_init(&other, POLICY_TEXT_MAX + 4096);
    for (size_t i = 0; i < errors->n; i++) {
        const char *file = errors->at[i].at.file;
        bool main_file = strcmp(file, path) == 0;
        if (!main_file && strcmp(file, read) != 0) {
            buf_reset(&other);
            if (policy_file_read(file, &other) != 0)
                buf_reset(&other); /* without the line, then */
            read = file;
        }
        errors_show(&errors->at[i], main_file ? text : buf_view(&other), out);
    }
    if (errors->total > errors->n)
        buf_printf(out, "and %zu more errors\n", errors->total - errors->n);
    buf_free(&other);
}
