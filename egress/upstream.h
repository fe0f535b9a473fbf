/*
 * Connections to upstreams, dialled by dialer, verified here for the same name, and pooled by
 * sandbox, authority, credential or none, generation (design 3.6), and what the upstream must show. One exchange at a time uses
 * a connection.
 */
#ifndef EGRESS_UPSTREAM_H
#define EGRESS_UPSTREAM_H

#include "egress/certificate.h"
#include "egress/dialing.h"
#include "egress/identity.h"
#include "egress/lane.h"
#include "http/http1.h"
#include "policy/authority.h"

/* What an upstream is held against, as its service says. Zeroed: nothing of its own. */
struct upstream_proof {
    struct tls_client *anchors; /* of the exchange's generation; NULL: those of all */
    bool pinned;
    uint8_t pin[TLS_PIN_SIZE];
    char certificate[CREDENTIAL_NAME_MAX + 1]; /* what is shown to it when it asks; "": nothing */
};

struct upstream_key {
    uint32_t hash; /* of authority, tls, sandbox and credential, by upstream_key_seal */
    struct authority authority;
    uint32_t generation;
    bool tls;
    char sandbox[IDENTITY_SIZE];
    char credential[CREDENTIAL_NAME_MAX + 1]; /* "" when none is lent on it */
    struct upstream_proof proof;              /* of connections; leases are not told apart by it */
};

/* A name, SP, and a fingerprint in hexadecimal digits. */
enum { SHOWN_SIZE = CREDENTIAL_NAME_MAX + 1 + 64 + 1 };

enum upstream_state {
    UPSTREAM_DIALING,
    UPSTREAM_HANDSHAKE,
    UPSTREAM_BUSY, /* an exchange uses it */
    UPSTREAM_IDLE, /* in the pool */
};

struct upstream {
    struct lane *lane;
    enum upstream_state state;
    struct upstream_key key;
    struct exchange *user; /* DIALING, HANDSHAKE, BUSY */
    int fd;
    struct tls *tls;               /* NULL in clear */
    struct generation *generation; /* kept: the parser works by its limits */
    struct http1 *answers;
    struct buf in;  /* unread bytes of answers, decrypted */
    size_t touched; /* so many bytes of its memory have held any */
    struct event *readable, *writable;
    uint64_t deadline;                  /* of the present phase, monotonic nanoseconds */
    uint64_t started;                   /* when it was asked for */
    struct dialing dialing;             /* and what dialer said */
    struct certificate_ask certificate; /* for what is shown in the handshake */
    char shown[SHOWN_SIZE];             /* its name and fingerprint; "none"; "": not asked */
    bool recalled;                      /* it is of before a rotation: not for another exchange */
    bool reused;                        /* has carried an exchange before this one */
    bool ended;                         /* the upstream closed its side */
    struct upstream *newer, *older;     /* idle ones, by use */
    struct upstream *idle_next, *idle_previous; /* idle ones of its bucket, newest first */
    struct upstream *next, *previous;           /* all */
};

/* Ends the making of a key. */
void upstream_key_seal(struct upstream_key *key);
/* But for proof. */
bool upstream_key_equal(const struct upstream_key *a, const struct upstream_key *b);
/* What the generation's service asks of its upstreams. */
struct upstream_proof upstream_proof_of(const struct generation *g, const struct service *s);
/* Whether a connection that was verified before would be good for the service by a newer generation. */
bool upstream_suits(const struct upstream *u, const struct generation *g, const struct service *s);
/*
 * A verified connection for key: exchange_connected or exchange_not_connected is called, perhaps
 * before this returns. fresh: not from the pool (the pooled one failed).
 */
void upstream_get(struct lane *l, const struct upstream_key *key, bool fresh, struct exchange *ex);

/* BUSY: up to size decrypted bytes; results as tls_read. */
enum tls_result upstream_read(struct upstream *u, uint8_t *p, size_t size, size_t *n);
/* BUSY: writes some of v; results as tls_write. On TLS_WANT_* exchange_writable is called later. */
enum tls_result upstream_write(struct upstream *u, struct view v, size_t *n);
/* Of in's memory: n bytes at p were written. They are cleared when the answer is over. */
void upstream_touch(struct upstream *u, const uint8_t *p, size_t n);
/* Stops and resumes reading: exchange_readable is called while it is on. */
void upstream_pause(struct upstream *u);
void upstream_resume(struct upstream *u);
/* The exchange is over: back to the pool, or closed when it may not be reused. */
void upstream_release(struct upstream *u, bool reusable);
/* Closes and frees in any state, without telling the user. */
void upstream_free(struct upstream *u);

/* The client certificate was rotated or removed: connections and sessions that it was shown on are not used again. */
void upstream_recall(struct lane *l, struct view certificate);

/* Once a second: deadlines of connecting and of idleness. */
void upstream_sweep(struct lane *l, uint64_t now);
/* Closes idle connections and forgets sessions (another generation, or a stop). */
void upstream_drop_idle(struct lane *l);

#endif
