/*
 * Names of Unix sockets, as any user of the machine bound them or a variable has them: what is covered in a sandbox is
 * absolute paths, each ended by a NUL, that stand in the text.
 */
#include "run/host_sockets.h"

#include <stdlib.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void check_paths(struct view found, struct view text, bool absolute) {
    while (found.n > 0) {
        size_t n = view_find(found, 0);
        struct view path = view_head(found, n);
        if (n == found.n || (absolute && !view_starts(path, VIEW("/"))) ||
            view_search(text, path) == text.n)
            abort();
        found = view_skip(found, n + 1);
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    struct view text = view_of(data, size);
    struct buf bound, relative, named;
    if (size == 0)
        return 0;
    buf_init(&bound, 2 * size + 64);
    buf_init(&relative, 2 * size + 64);
    buf_init(&named, 2 * size + 64);
    host_sockets_read(text, &bound, &relative);
    host_sockets_named(text, &named);
    if (!buf_ok(&bound) || !buf_ok(&relative) || !buf_ok(&named))
        abort();
    check_paths(buf_view(&bound), text, true);
    check_paths(buf_view(&named), text, true);
    buf_free(&bound);
    buf_free(&relative);
    buf_free(&named);
    return 0;
}
