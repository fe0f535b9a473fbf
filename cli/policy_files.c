#include "cli/policy_files.h"

#include "base/file.h"
#include "policy/errors.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>

int policy_file_read(const char *path, struct buf *out) {
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    if (fd < 0)
        return errno == ENOENT ? ERR_MISSING : ERR_SYSTEM;
    return file_read(fd, POLICY_TEXT_MAX, out);
}

const char *policy_share(void) {
    const char *given = getenv("EXEAT_SHARE");
    return given && *given ? given : EXEAT_SHARE;
}

static int join(struct view folder, struct view path, char *name, size_t size) {
    struct buf joined;
    buf_init(&joined, size);
    if (folder.n > 0 && path.p[0] != '/') {
        buf_put(&joined, folder);
        if (!view_ends(folder, VIEW("/")))
            buf_put_u8(&joined, '/');
    }
    buf_put(&joined, path);
    int err = buf_ok(&joined) ? view_cstr(buf_view(&joined), name, size) : ERR_LIMIT;
    buf_free(&joined);
    return err;
}

/* With its "/"; of "policy" it is empty. */
static struct view folder_of(const char *file) {
    const char *slash = strrchr(file, '/');
    return slash ? view_of(file, (size_t)(slash - file) + 1) : (struct view){NULL, 0};
}

int policy_file_name(const char *from, struct view path, char *name, size_t size) {
    return join(folder_of(from), path, name, size);
}

static int read_in(struct view folder, struct view path, struct buf *out, char *name, size_t size) {
    int err = join(folder, path, name, size);
    return err != 0 ? err : policy_file_read(name, out);
}

static int read_included(void *ctx, const char *from, struct view path, struct buf *out, char *name,
                         size_t size, const char **why) {
    (void)ctx;
    int err = read_in(folder_of(from), path, out, name, size);
    if (err == ERR_MISSING)
        err = read_in(view_str(policy_share()), path, out, name, size);
    *why = err == ERR_MISSING
               ? "there is no such file, neither beside this one nor among those that "
                 "come with exeat"
           : err == ERR_LIMIT ? "the file or its name is too long"
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
