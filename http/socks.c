#include "http/socks.h"

#include "policy/address.h"

enum { CONNECT = 1, ADDRESS_V4 = 1, ADDRESS_NAME = 3, ADDRESS_V6 = 4, LOGIN_VERSION = 1 };

int socks_greeting(struct view bytes, size_t *used, enum socks_method *method) {
    if (bytes.n > 0 && bytes.p[0] != SOCKS_VERSION)
        return ERR_BAD;
    if (bytes.n < 2 || bytes.n < 2u + bytes.p[1])
        return ERR_AGAIN;
    struct view offered = view_slice(bytes, 2, 2u + bytes.p[1]);
    *used = 2 + offered.n;
    *method = SOCKS_NO_METHOD;
    if (view_find(offered, SOCKS_LOGIN) < offered.n)
        *method = SOCKS_LOGIN;
    else if (view_find(offered, SOCKS_NO_LOGIN) < offered.n)
        *method = SOCKS_NO_LOGIN;
    return 0;
}

/* A length of one byte, and so many bytes. False: not all of it is there. */
static bool take_short(struct view bytes, size_t *at, struct view *out) {
    if (*at >= bytes.n || bytes.n - *at - 1 < bytes.p[*at])
        return false;
    *out = view_slice(bytes, *at + 1, *at + 1 + bytes.p[*at]);
    *at += 1 + out->n;
    return true;
}

int socks_login(struct view bytes, size_t *used, struct view *user, struct view *password) {
    size_t at = 1;
    if (bytes.n > 0 && bytes.p[0] != LOGIN_VERSION)
        return ERR_BAD;
    if (!take_short(bytes, &at, user) || !take_short(bytes, &at, password))
        return ERR_AGAIN;
    *used = at;
    return 0;
}

/* ---- the request ---- */

static int bad(enum socks_reply which, const char *text, enum socks_reply *reply,
               const char **why) {
    *reply = which;
    *why = text;
    return ERR_BAD;
}

static int check_start(struct view bytes, enum socks_reply *reply, const char **why) {
    if (bytes.n > 0 && bytes.p[0] != SOCKS_VERSION)
        return bad(SOCKS_FAILURE, "a SOCKS request of another version than 5", reply, why);
    if (bytes.n > 1 && bytes.p[1] != CONNECT)
        return bad(SOCKS_COMMAND_UNKNOWN,
                   "a SOCKS command other than CONNECT: neither BIND nor UDP ASSOCIATE is offered",
                   reply, why);
    if (bytes.n > 2 && bytes.p[2] != 0)
        return bad(SOCKS_FAILURE, "the reserved byte of a SOCKS request is not 0", reply, why);
    if (bytes.n > 3 && bytes.p[3] != ADDRESS_V4 && bytes.p[3] != ADDRESS_NAME &&
        bytes.p[3] != ADDRESS_V6)
        return bad(SOCKS_ADDRESS_UNKNOWN, "an address type that SOCKS does not have", reply, why);
    return bytes.n > 4 ? 0 : ERR_AGAIN;
}

static void put_address(struct buf *out, uint8_t family, struct view bytes) {
    struct address a = {.family = family};
    char text[ADDRESS_TEXT_SIZE];
    view_copy(bytes, a.bytes);
    address_format(&a, text);
    buf_printf(out, family == 6 ? "[%s]" : "%s", text);
}

int socks_request(struct view bytes, size_t *used, struct buf *authority, enum socks_reply *reply,
                  const char **why) {
    int result = check_start(bytes, reply, why);
    if (result != 0)
        return result;
    uint8_t type = bytes.p[3];
    size_t from = type == ADDRESS_NAME ? 5 : 4;
    size_t n = type == ADDRESS_NAME ? bytes.p[4] : type == ADDRESS_V4 ? 4 : 16;
    if (bytes.n < from + n + 2)
        return ERR_AGAIN;
    struct view host = view_slice(bytes, from, from + n);
    if (type == ADDRESS_NAME)
        buf_put(authority, host);
    else
        put_address(authority, type == ADDRESS_V4 ? 4 : 6, host);
    buf_put_u8(authority, ':');
    buf_put_decimal(authority, (uint64_t)bytes.p[from + n] << 8 | bytes.p[from + n + 1]);
    *used = from + n + 2;
    return buf_ok(authority) ? 0 : ERR_MEMORY;
}

/* ---- replies ---- */

enum socks_reply socks_reply_of(uint16_t status) {
    switch (status) {
    case 403:
    case 407:
        return SOCKS_NOT_ALLOWED;
    case 502:
    case 504:
        return SOCKS_HOST_UNREACHABLE;
    default:
        return SOCKS_FAILURE;
    }
}

void socks_put_reply(struct buf *out, enum socks_reply reply) {
    const uint8_t bytes[] = {SOCKS_VERSION, (uint8_t)reply, 0, ADDRESS_V4, 0, 0, 0, 0, 0, 0};
    buf_put(out, view_of(bytes, sizeof bytes));
}
