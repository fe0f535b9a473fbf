/* The answer of an upstream proxy: whole, and cut anywhere, which must not change what is found. */
#include "egress/hop.h"

#include <stdlib.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    size_t head = 0, again = 0;
    uint16_t status = 0, status_again = 0;
    if (hop_read(view_of(data, size), &head, &status) != 0)
        return 0;
    if (head > size || head > HOP_HEAD_MAX || status < 100 || status > 599)
        abort();
    if (hop_read(view_of(data, head - 1), &again, &status_again) != ERR_AGAIN)
        abort();
    if (hop_read(view_of(data, head), &again, &status_again) != 0 || again != head ||
        status_again != status)
        abort();
    return 0;
}
