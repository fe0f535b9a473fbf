/*
 * SOCKS5 (RFC 1928) with username and password (RFC 1929), as a server reads it: pure functions over the bytes
 * that a client has sent so far, one for each of its three messages.
 *
 * Each returns 0 and how many bytes the message is, ERR_AGAIN, or ERR_BAD. The verdict on a prefix never
 * changes with what follows, but for ERR_AGAIN.
 */
#ifndef HTTP_SOCKS_H
#define HTTP_SOCKS_H

#include "base/bytes.h"

enum { SOCKS_VERSION = 5, SOCKS_METHODS_MAX = 255 };

/* Of the method selection. */
enum socks_method { SOCKS_NO_LOGIN = 0, SOCKS_LOGIN = 2, SOCKS_NO_METHOD = 0xff };

/* Of a reply (RFC 1928 6). */
enum socks_reply {
    SOCKS_SUCCEEDED = 0,
    SOCKS_FAILURE = 1,
    SOCKS_NOT_ALLOWED = 2,
    SOCKS_HOST_UNREACHABLE = 4,
    SOCKS_COMMAND_UNKNOWN = 7,
    SOCKS_ADDRESS_UNKNOWN = 8,
};

/* Which of the offered methods to take: a login when there is one. */
MUST_USE int socks_greeting(struct view bytes, size_t *used, enum socks_method *method);

/* Views point into bytes. */
MUST_USE int socks_login(struct view bytes, size_t *used, struct view *user, struct view *password);

/*
 * Appends what is to be connected to as the authority of a CONNECT would be (`name:443`, `[2001:db8::1]:443`): a name
 * as it was sent, whatever its bytes are, to be judged by authority_parse. ERR_BAD: *reply and *why, a static
 * sentence fragment.
 */
MUST_USE int socks_request(struct view bytes, size_t *used, struct buf *authority,
                           enum socks_reply *reply, const char **why);

/* What a refusal with this HTTP status is in SOCKS. */
enum socks_reply socks_reply_of(uint16_t status);
/* The bytes of a reply; the address in it says nothing. */
void socks_put_reply(struct buf *out, enum socks_reply reply);

#endif
