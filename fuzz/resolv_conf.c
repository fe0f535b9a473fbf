/* The text of /etc/resolv.conf. */
#include "egress/resolv_conf.h"

#include <stdlib.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    struct resolv_conf c;
    size_t line;
    int result = resolv_conf_read(view_of(data, size), &c, &line);
    if ((result == 0) != (c.n > 0) && result != ERR_BAD)
        abort();
    return 0;
}
