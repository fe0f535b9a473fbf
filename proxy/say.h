/*
 * What proxy says to egress: one function for each message of egress/lane_messages.h. Pieces that
 * are longer than the contract permits are cut, except those that decide something: whoever calls
 * has refused these before.
 */
#ifndef PROXY_SAY_H
#define PROXY_SAY_H

#include "http/dns_query.h"
#include "proxy/client.h"

/* The longest authority and Proxy-Authorization that can be said. */
enum { SAY_TEXT_MAX = 4096, SAY_BYTES_MAX = 512 };

/* Where a client wants to go. */
struct opening {
    struct view authority, token; /* as sent; of Proxy-Authorization, empty: none */
    size_t n_tokens;              /* fields of it */
    const struct fields *fields;  /* the request's, or NULL */
    bool placeholder_dropped;     /* as of the request */
    bool tls;                     /* transparent: authority is an SNI */
};
void say_open(struct client *c, const struct opening *o);
void say_hello(struct client *c, bool has_sni, struct view sni, bool has_ech);
void say_failed(struct client *c, enum reason why, const char *detail);
void say_close(struct client *c);
void say_raw(struct client *c, struct view v);
void say_raw_end(struct client *c);
void say_raw_credit(struct client *c, size_t n);

/* why, detail: REASON_ALLOWED and NULL, or why it is refused. */
void say_lookup(struct proxy *p, uint32_t id, const struct dns_query *q, struct view peer,
                struct view meant, enum reason why, const char *detail);

/* Of a datagram that the sandbox's kernel refused: from, to, as "address:port". */
void say_refused_datagram(struct proxy *p, struct view peer, struct view meant);

void say_request(struct client *c, uint32_t id, const struct request_head *h);
void say_body(struct proxy *p, uint32_t id, struct view v);
void say_end(struct proxy *p, uint32_t id, const struct fields *trailers);
void say_gone(struct proxy *p, uint32_t id, enum reason why, const char *detail);
void say_credit(struct proxy *p, uint32_t id, size_t n);
/* bytes: what was wrong; its beginning is told. */
void say_malformed(struct client *c, uint32_t id, uint16_t status, enum reason why,
                   const char *detail, struct view bytes);

#endif
