#include "policy/layout.h"
#include "policy/rules.h"

#include <stdio.h>
#include <stdlib.h>

/* What it includes is formatted by itself: here it is empty. */
static int read_nothing(void *ctx, const char *from, struct view path, struct buf *out, char *name,
                        size_t size, const char **why) {
    (void)ctx;
    (void)from;
    (void)out;
    *why = "its name is too long";
    int n = snprintf(name, size, "include %.*s", VIEW_ARG(path));
    return n > 0 && (size_t)n < size ? 0 : ERR_LIMIT;
}

/* A file that others include does not load alone. */
int layout_check(struct view text, const char *file, struct policy_errors *errors) {
    static const struct policy_files files = {read_nothing, NULL};
    struct policy *p = calloc(1, sizeof *p);
    if (!p)
        return ERR_MEMORY;
    int err = policy_read(p, text, file, &files, errors);
    if (err == 0 && errors->total != 0) {
        errors_sort(errors, file);
        err = ERR_BAD;
    }
    if (err != 0)
        errors_keep_names(errors, file);
    policy_free(p);
    return err;
}

int policy_format(struct view text, const char *file, struct buf *out,
                  struct policy_errors *errors) {
    struct arena arena = {.chunks = NULL};
    struct layout_line *lines;
    errors_reset(errors);
    int err = layout_check(text, file, errors);
    if (err == 0)
        err = layout_read(text, file, &arena, &lines);
    if (err == 0)
        layout_print(lines, out);
    arena_free(&arena);
    return err != 0 || buf_ok(out) ? err : ERR_MEMORY;
}
