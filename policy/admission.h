/*
 * Whom a listener lets in, beyond that he can connect: what the configuration says of it. One text for each
 * listener, which exeatd's parent puts on its proxy's command line; what the kernel tells of the peer is held against it.
 *
 *   ""                       everybody
 *   "uid=1000,1001"          Unix: these users, by SO_PEERCRED
 *   "cid=3"                  vsock: these guests
 *   "relay=10.0.0.5,fd00::/64"  TCP: these must send a PROXY header (http/proxy_v2.h) first; the others must not
 *   "source=10.0.0.2,fd00::2"   TCP, UDP: these addresses
 */
#ifndef POLICY_ADMISSION_H
#define POLICY_ADMISSION_H

#include "policy/address.h"

/* What is said to, and recorded of, who is not let in. */
#define ADMISSION_REFUSED "the `listen` line of the configuration does not name this peer"

enum { ADMISSION_MAX = 32 /* users, guests or ranges of a listener */ };

enum admission_kind { ADMIT_ALL, ADMIT_USERS, ADMIT_GUESTS, ADMIT_RELAYS, ADMIT_SOURCES };

struct admission {
    enum admission_kind kind;
    size_t n;
    union {
        uint32_t id;
        struct range range;
    } of[ADMISSION_MAX];
};

/* Who has connected, as the kernel tells it. */
struct peer {
    enum { PEER_UNKNOWN, PEER_ADDRESS, PEER_USER, PEER_GUEST } kind;
    uint32_t id;            /* a user's uid, a guest's CID */
    struct address address; /* PEER_ADDRESS */
};

enum admitted {
    ADMITTED,
    ADMITTED_RELAY, /* a header must come first */
    ADMITTED_NOT,
};

/* Appends one to a listener's text; item is spelled as admission_read takes it. */
void admission_put(struct buf *text, enum admission_kind kind, struct view item);
/* ERR_BAD for what admission_put does not write, and more than ADMISSION_MAX. */
MUST_USE int admission_read(struct view text, struct admission *out);
/* Whether whoever connected is let in. */
enum admitted admission_judge(const struct admission *a, const struct peer *peer);

#endif
