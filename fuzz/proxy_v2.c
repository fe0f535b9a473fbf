/* PROXY headers of anybody: the verdict does not depend on how much of one came at once, and nothing is read beyond it. */
#include "http/proxy_v2.h"

#include <stdlib.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    struct proxy_v2 h, again;
    const char *why = NULL;
    size_t used = 0, part = 0;
    struct view all = view_of(data, size);
    int whole = proxy_v2_read(all, &used, &h, &why);
    if (whole == 0 && (used < PROXY_V2_START || used > size || used > PROXY_V2_MAX))
        abort();
    if (whole == ERR_BAD && !why)
        abort();
    for (size_t n = 0; n < size && n < 600; n++) {
        int early = proxy_v2_read(view_head(all, n), &part, &again, &why);
        if (early != ERR_AGAIN && (early != whole || (early == 0 && part != used)))
            abort();
    }
    return 0;
}
