/* SOCKS5 messages of a hostile client: the verdict does not depend on how much of them came at once. */
#include "http/socks.h"

#include <stdlib.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static int read_it(uint8_t which, struct view v, size_t *used, struct buf *out) {
    enum socks_method method;
    enum socks_reply reply;
    struct view user, password;
    const char *why;
    switch (which % 3) {
    case 0:
        return socks_greeting(v, used, &method);
    case 1:
        return socks_login(v, used, &user, &password);
    default:
        return socks_request(v, used, out, &reply, &why);
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    struct buf out;
    size_t used = 0, part = 0;
    if (size == 0)
        return 0;
    struct view all = view_of(data + 1, size - 1);
    buf_init(&out, 512);
    int whole = read_it(data[0], all, &used, &out);
    if (whole == ERR_MEMORY || (whole == 0 && (used == 0 || used > all.n)))
        abort();
    for (size_t n = 0; n < all.n && n < 600; n++) {
        buf_reset(&out);
        int early = read_it(data[0], view_head(all, n), &part, &out);
        if (early != ERR_AGAIN && (early != whole || (early == 0 && part != used)))
            abort();
    }
    buf_free(&out);
    return 0;
}
