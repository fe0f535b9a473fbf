/*
 * DNS messages (RFC 1035, RFC 6891) as a server needs them that answers from what it knows: a query read, an
 * answer of addresses or of none written. Pure.
 */
#ifndef HTTP_DNS_QUERY_H
#define HTTP_DNS_QUERY_H

#include "policy/address.h"

enum {
    QUERY_BYTES_MAX = 1024,       /* longer ones are malformed */
    REPLY_BYTES_MAX = 512,        /* no answer is longer: none is ever truncated */
    QUERY_QUESTION_MAX = 255 + 4, /* a name, type and class */
    QUERY_NAME_SIZE = 4 * 255,    /* as text, with escapes */
    REPLY_ADDRESSES_MAX = 4,
    REPLY_TEXT_MAX = 120, /* of the reason behind a refusal */
};

enum reply_code {
    REPLY_OK = 0,
    REPLY_MALFORMED = 1,
    REPLY_FAILURE = 2,
    REPLY_NO_NAME = 3,
    REPLY_NOT_OFFERED = 4,
    REPLY_REFUSED = 5,
};

enum query_type { QUERY_A = 1, QUERY_AAAA = 28 };

struct dns_query {
    uint16_t id, type;
    bool recursion, has_options; /* RD; an OPT record */
    /* Lower case, without the final dot ("" for the root); bytes that no host name has are \DDD (RFC 4343 2.1). */
    char name[QUERY_NAME_SIZE];
    uint8_t question[QUERY_QUESTION_MAX]; /* as it was sent */
    size_t n_question;                    /* 0: not read */
};

/*
 * 0; ERR_DENIED: not to be answered at all (an answer, or no whole head); ERR_BAD: to be answered with *code, for which
 * q has what is known, and *why is a static sentence fragment. One question of class IN, no other record but one OPT, no
 * compression, nothing behind.
 */
MUST_USE int dns_query_read(struct view bytes, struct dns_query *q, enum reply_code *code,
                            const char **why);

struct dns_reply {
    enum reply_code code;
    uint32_t ttl; /* seconds */
    struct address addresses[REPLY_ADDRESSES_MAX];
    size_t n;
    struct view
        text; /* of an Extended DNS Error "Blocked" (RFC 8914), where the query has options; may be empty */
};

/* At most REPLY_BYTES_MAX bytes. */
void dns_reply_write(struct buf *out, const struct dns_query *q, const struct dns_reply *a);

/* "AAAA", "HTTPS", "TYPE1234"; into out. */
const char *dns_query_type_name(uint16_t type, char out[12]);

#endif
