#include "cli/policy_files.h"

#include "base/file.h"
#include "policy/errors.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static int read_open(int fd, struct buf *out) {
    if (fd < 0)
        return errno == ENOENT ? ERR_MISSING : ERR_SYSTEM;
    return file_read(fd, POLICY_FILE_MAX, out);
}

int policy_file_read(const char *path, struct buf *out) {
    return read_open(open(path, O_RDONLY | O_CLOEXEC), out);
}

/* That of a prefix other than the one it was built for, or of sources that were not installed. False: "". */
static bool find_share(char out[PATH_MAX]) {
    static const struct {
        const char *ours, *share;
    } layouts[] = {{"/bin", "/share/exeat"}, {"/build", "/policy"}};
    char program[PATH_MAX];
    ssize_t n = readlink("/proc/self/exe", program, sizeof program - 1);
    program[n > 0 ? n : 0] = 0;
    char *slash = strrchr(program, '/');
    if (!slash)
        return false;
    struct view folder = view_of(program, (size_t)(slash - program));
    for (size_t i = 0; i < sizeof layouts / sizeof *layouts; i++) {
        struct view ours = view_str(layouts[i].ours);
        if (view_ends(folder, ours) &&
            snprintf(out, PATH_MAX, "%.*s%s", VIEW_ARG(view_head(folder, folder.n - ours.n)),
                     layouts[i].share) < PATH_MAX &&
            access(out, R_OK | X_OK) == 0)
            return true;
    }
    out[0] = 0;
    return false;
}

const char *policy_share(void) {
    static char found[PATH_MAX];
    const char *given = getenv("EXEAT_SHARE");
    if (given && *given)
        return given;
    return *found || find_share(found) ? found : EXEAT_SHARE;
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

/* What is included is a regular file, and text for whoever reads on; its errors are told by policy_file_load. */
static int read_text(const char *path, struct buf *out) {
    static struct policy_errors errors;
    struct buf raw;
    errors_reset(&errors);
    buf_init(&raw, POLICY_FILE_MAX);
    int err = read_open(file_open(path, O_RDONLY, 0), &raw);
    if (err == 0 && json_form_is(buf_view(&raw)))
        err = json_form_read(buf_view(&raw), path, out, &errors);
    else
        buf_put(out, buf_view(&raw));
    if (err == 0 && !buf_ok(out))
        err = ERR_LIMIT;
    buf_free(&raw);
    return err;
}

static int read_in(struct view folder, struct view path, struct buf *out, char *name, size_t size) {
    int err = join(folder, path, name, size);
    return err != 0 ? err : read_text(name, out);
}

/* "services/github" is easily said for the file of that name with its ending. */
static bool has_ending(struct view folder, struct view path) {
    char longer[PATH_MAX], name[PATH_MAX];
    int n = snprintf(longer, sizeof longer, "%.*s.policy", VIEW_ARG(path));
    return n < (int)sizeof longer && join(folder, view_str(longer), name, sizeof name) == 0 &&
           access(name, F_OK) == 0;
}

static const char *why_missing(const char *from, struct view path) {
    static char text[1024 + 128];
    bool ending = has_ending(folder_of(from), path) || has_ending(view_str(policy_share()), path);
    snprintf(text, sizeof text, "there is no such file, neither beside this one nor in %.1000s%s",
             policy_share(), ending ? ", but one that ends in '.policy'" : "");
    return text;
}

static int read_included(void *ctx, const char *from, struct view path, struct buf *out, char *name,
                         size_t size, const char **why) {
    (void)ctx;
    int err = read_in(folder_of(from), path, out, name, size);
    if (err == ERR_MISSING)
        err = read_in(view_str(policy_share()), path, out, name, size);
    *why = err == ERR_MISSING ? why_missing(from, path)
           : err == ERR_LIMIT ? "the file or its name is too long"
           : err == ERR_BAD   ? "this JSON is no form of a policy; `exeat policy fmt` tells why"
                              : "the file cannot be read, or is no regular one";
    return err;
}

const struct policy_files policy_files_of_disk = {read_included, NULL};

/* Whether one of those that come with exeat has the same name, and another text. */
static bool is_in_place_of_another(struct view path, const char *name) {
    char other[PATH_MAX];
    struct buf ours, theirs;
    if (join(view_str(policy_share()), path, other, sizeof other) != 0 || strcmp(name, other) == 0)
        return false;
    buf_init(&ours, POLICY_TEXT_MAX);
    buf_init(&theirs, POLICY_TEXT_MAX);
    bool is = read_text(other, &theirs) == 0 && read_text(name, &ours) == 0 &&
              !view_equal(buf_view(&ours), buf_view(&theirs));
    buf_free(&ours);
    buf_free(&theirs);
    return is;
}

static int read_named(void *ctx, const char *from, struct view path, struct buf *out, char *name,
                      size_t size, const char **why) {
    struct policy_included *included = ctx;
    int err = read_included(NULL, from, path, out, name, size, why);
    if (err != 0)
        return err;
    buf_put(&included->names, view_of(name, strlen(name) + 1));
    if (is_in_place_of_another(path, name))
        buf_put(&included->in_place, view_of(name, strlen(name) + 1));
    return 0;
}

/* Errors in JSON were found in the text that was made of it. */
static void place_errors(struct view text, const char *path, struct policy_errors *errors) {
    struct buf other;
    buf_init(&other, POLICY_FILE_MAX);
    if (json_form_is(text))
        json_form_place(text, path, errors);
    for (size_t i = 0; i < errors->n_names; i += strlen(errors->names + i) + 1) {
        buf_reset(&other);
        if (policy_file_read(errors->names + i, &other) == 0 && json_form_is(buf_view(&other)))
            json_form_place(buf_view(&other), errors->names + i, errors);
    }
    buf_free(&other);
}

/* The text of what may be JSON. */
static int read_form(struct view text, const char *path, struct buf *converted, struct view *out,
                     struct policy_errors *errors) {
    *out = text;
    if (!json_form_is(text))
        return 0;
    errors_reset(errors);
    int err = json_form_read(text, path, converted, errors);
    *out = buf_view(converted);
    return err;
}

/* failing: also one whose expectations fail, with errors then. */
static int load(struct view text, const char *path, const struct policy_files *files, bool failing,
                struct buf *packed, struct policy **out, struct policy_errors *errors) {
    struct view read;
    struct buf converted;
    *out = NULL;
    buf_init(&converted, POLICY_TEXT_MAX);
    int err = read_form(text, path, &converted, &read, errors);
    if (err == 0) {
        err = failing  ? policy_load_failing(read, path, files, out, errors)
              : packed ? policy_load_packing(read, path, files, packed, out, errors)
                       : policy_load_files(read, path, files, out, errors);
        if (err == ERR_BAD || (err == 0 && errors->total > 0))
            place_errors(text, path, errors);
    }
    buf_free(&converted);
    return err;
}

int policy_file_load(struct view text, const char *path, struct buf *packed, struct policy **out,
                     struct policy_errors *errors) {
    return load(text, path, &policy_files_of_disk, false, packed, out, errors);
}

int policy_file_load_naming(struct view text, const char *path, struct policy_included *included,
                            struct policy **out, struct policy_errors *errors) {
    const struct policy_files naming = {read_named, included};
    return load(text, path, &naming, false, NULL, out, errors);
}

int policy_file_load_failing(struct view text, const char *path, struct policy **out,
                             struct policy_errors *errors) {
    return load(text, path, &policy_files_of_disk, true, NULL, out, errors);
}

void policy_file_errors(const struct policy_errors *errors, struct view text, const char *path,
                        struct buf *out) {
    struct buf other;
    const char *read = path;
    buf_init(&other, POLICY_FILE_MAX);
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
        buf_printf(out, "and %zu more error%s\n", errors->total - errors->n,
                   errors->total - errors->n == 1 ? "" : "s");
    buf_free(&other);
}
