/* A ClientHello of a hostile client: the verdict does not depend on how much of it came at once. */
#include "http/hello.h"

#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    struct hello whole, part;
    const char *why;
    enum { MAX = 4096 };
    int err = hello_read(view_of(data, size), MAX, &whole, &why);
    if (err == 0 && (whole.size > size || whole.size > MAX || strlen(whole.sni) > 255))
        abort();
    for (size_t n = 0; n < size && n < 600; n++) {
        int early = hello_read(view_of(data, n), MAX, &part, &why);
        if (early != ERR_AGAIN && early != err)
            abort();
        if (early == 0 && memcmp(&whole, &part, sizeof whole) != 0)
            abort();
    }
    return 0;
}
