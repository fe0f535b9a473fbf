/*
 * From CONNECT to the first request inside the tunnel: egress judges the authority; the first
 * bytes say whether TLS or HTTP is spoken; egress judges the SNI and gives the leaf; TLS starts.
 */
#ifndef PROXY_GATE_H
#define PROXY_GATE_H

#include "proxy/client.h"

enum {
    ALERT_UNEXPECTED_MESSAGE = 10,
    ALERT_ACCESS_DENIED = 49,
    ALERT_DECODE_ERROR = 50,
    ALERT_INTERNAL_ERROR = 80,
    ALERT_UNRECOGNIZED_NAME = 112,
};

/* A CONNECT was read. */
void gate_open(struct client *c, const struct request_head *h);
/* SOCKS asked for this authority; login: as Proxy-Authorization, or empty. */
void gate_open_socks(struct client *c, struct view authority, struct view login);
/* A transparent connection named a host, by SNI (tls) or in a request; empty: it named none. */
void gate_open_transparent(struct client *c, struct view name, bool tls);

/* ---- steps ---- */

enum client_step gate_sniff(struct client *c, struct view *input);
enum client_step gate_hello(struct client *c, struct view *input);
/* CLIENT_HANDSHAKE: the socket is ready. */
void gate_handshake(struct client *c);
/* The client did not get through in time. */
void gate_late(struct client *c);

/* ---- what egress says; ignored in any state but the one that waits for it ---- */

void gate_opened(struct client *c);
/* h is changed. */
void gate_refused(struct client *c, struct answer_head *h, struct view body);
/* leaf empty: the one that was sent before with this name and not_after. */
void gate_leaf(struct client *c, struct view name, struct view leaf, struct view chain,
               uint64_t not_after);
void gate_alert(struct client *c, uint8_t alert);

/* The connection is being freed: its tunnel ends. */
void gate_forget(struct client *c);
/* A fatal TLS alert in clear, as long as no handshake has begun (RFC 8446 6). */
void gate_put_alert(struct client *c, uint8_t alert);

#endif
