/*
 * A client's connection: its states, its bytes, its deadlines, its end.
 *
 * client.c has the table of states with a step for each, runs the steps, and is the only file
 * that changes a state (client_enter) and frees a connection. What the steps do is in intake.c
 * (reading a request head), gate.c (from CONNECT to the first request inside), relay.c (a
 * request and its answer) and passage.c (bytes that are not read).
 *
 *   relayed -> first ...                                 behind a relay: its header is read
 *   first -> head -> exchange -> idle -> head ...            plain proxying
 *   first -> socks -> opening -> sniff ...                   SOCKS5, then as in a tunnel
 *   first -> sniff -> hello or head -> opening -> sniff ...  transparent: what names the host is read, and read again when it is open
 *   first -> opening -> sniff ...                            transparent, and silent (silence.h)
 *   first -> dns -> lookup -> dns ...                        DNS over TCP
 *   first -> head -> opening -> sniff -> head ...            clear HTTP in a tunnel
 *                               sniff -> hello -> leaf -> handshake -> idle -> head ...   TLS
 *                               sniff -> hello -> leaf -> passage                         TLS, unread
 *   any -> closing -> linger -> dead                         orderly end: the client can read our last
 *   any -> dead                                              at once
 */
#ifndef PROXY_CLIENT_H
#define PROXY_CLIENT_H

#include "base/way_in.h"
#include "egress/lane_messages.h"
#include "proxy/state.h"
#include "proxy/wire.h"

enum client_state {
    CLIENT_FIRST,     /* accepted; no byte yet */
    CLIENT_RELAYED,   /* accepted from a relay, which must say whose connection it is */
    CLIENT_IDLE,      /* between requests */
    CLIENT_HEAD,      /* a request head has begun */
    CLIENT_SOCKS,     /* SOCKS5, up to its request */
    CLIENT_DNS,       /* a query is awaited */
    CLIENT_LOOKUP,    /* egress has the query */
    CLIENT_OPENING,   /* egress judges where the client wants to go */
    CLIENT_SNIFF,     /* it may, or this is transparent: is it TLS, HTTP or something else? */
    CLIENT_HELLO,     /* a ClientHello has begun; it stays in `in` */
    CLIENT_LEAF,      /* egress judges the SNI and gets the leaf, or a connection for a splice */
    CLIENT_HANDSHAKE, /* TLS reads and writes the socket by itself */
    CLIENT_EXCHANGE,  /* a request, or what is left of it, is in progress */
    CLIENT_PASSAGE,   /* bytes are passed on unread */
    CLIENT_CLOSING,   /* the last bytes are on their way */
    CLIENT_LINGER,    /* our direction is shut; the client may read on, what it sends is dropped */
    CLIENT_DEAD,      /* freed at the end of the turn */
    CLIENT_STATES
};

struct client {
    struct proxy *proxy;
    struct client *next, **back; /* all clients */
    struct client *next_dirty, *next_dead;
    TAILQ_ENTRY(client) queue; /* while it yields */
    struct wire wire;
    struct buf in;           /* bytes read that no step has used */
    struct http1 *parser;    /* NULL: nothing of a request is there */
    struct relay *relay;     /* CLIENT_EXCHANGE */
    struct passage *passage; /* from CLIENT_PASSAGE on */
    struct socks *socks;     /* CLIENT_SOCKS */
    struct asking *asking;   /* CLIENT_LOOKUP */
    struct event *silence;   /* silence.c */
    uint32_t tunnel;         /* 0: none */
    uint64_t deadline;       /* nanoseconds; CLIENT_EXCHANGE has its own */
    enum client_state state;
    bool yields; /* has neither a tunnel nor a request of which egress knows */
    bool is_dirty;
    bool is_waiting; /* not read, because the lane is full */
    bool abrupt;     /* ends without close_notify: something is missing */
    bool reset;      /* ends with RST: nothing else shows that something is missing */
    bool told;       /* egress has heard of it */
    enum way_in door;
    enum lane_way way;
    char peer[64];
    char meant[LANE_ADDRESS_MAX]; /* transparent: the address that it connected to */
};

enum client_step {
    STEP_NEXT, /* the state has changed, or bytes were used: run the state's step */
    STEP_WAIT, /* for more bytes, for egress, for the socket */
};

/* Takes over fd, a non-blocking stream socket. NULL without memory: it is closed then. meant: the address that it connected to. */
struct client *client_new(struct proxy *p, int fd, enum way_in door, const char *peer,
                          const char *meant);
/* From the end of the turn only. */
void client_free(struct client *c);

void client_enter(struct client *c, enum client_state state);
/*
 * Closes the connection that has had neither a tunnel nor a request in progress for longest, so
 * that a newcomer finds room: nobody shuts others out with connections on which nothing was proven.
 * False when there is none, or when the lane is so full that it cannot be told.
 */
bool client_yield(struct proxy *p);
/* Runs steps on the bytes that wait; for what egress' messages have made possible. */
void client_wake(struct client *c);
/* What is appended to wire.out leaves at the end of the turn. */
struct buf *client_out(struct client *c);
/* Writes now; goes on with what waited for it. */
void client_flush(struct client *c);
/* Orderly end: after what is gathered, close_notify and FIN, and the client has time to read. */
void client_shut(struct client *c);
/* Ends at once; what was gathered is lost. */
void client_drop(struct client *c);
/* Ends after what is gathered, so that the client notices that something is missing. */
void client_cut(struct client *c, bool reset);
/* The deadline of its state, and memory that an idle connection does not need. */
void client_sweep(struct client *c, uint64_t now);
/* Reads again, after a full lane. */
void client_resume(struct client *c);

/* The client's parser, taken from the spare ones. NULL when out of memory. */
struct http1 *client_parser(struct client *c);
void client_parser_done(struct client *c);

#endif
