/* What the kernel says of refused datagrams, as anybody might have it: never more is read than there is, and what it tells is inside. */
#include "http/unreachable.h"

#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    struct unreachable u, head;
    int result = unreachable_read(view_of(data, size), &u);
    size_t part = size < UNREACHABLE_HEAD ? size : UNREACHABLE_HEAD;
    if (result != 0 && result != ERR_BAD)
        abort();
    if (result == 0 && (u.from.family != u.to.family || (u.to.family != 4 && u.to.family != 6)))
        abort();
    if (unreachable_read_logged(view_of(data, size), &head) == 0 &&
        (head.from.family != head.to.family || (head.to.family != 4 && head.to.family != 6)))
        abort();
    /* The beginning tells the same, unless there were options, or nothing. */
    if (unreachable_read(view_of(data, part), &head) == 0 &&
        (result != 0 || memcmp(&u, &head, sizeof u) != 0))
        abort();
    return 0;
}
