/*
 * The process table: each role has one right that nobody else has (docs/architecture.md).
 */
#ifndef BASE_ROLE_H
#define BASE_ROLE_H

#include "base/bytes.h"

enum role {
    ROLE_PARENT,  /* starts, watches, reloads; opens listeners and hands out descriptors */
    ROLE_PROXY,   /* speaks TLS and HTTP with sandboxes; one per lane */
    ROLE_EGRESS,  /* judges requests, speaks TLS and HTTP with upstreams; one per lane */
    ROLE_INSPECT, /* reads bodies and decompresses for its lane's egress; started when needed */
    ROLE_BROKER,  /* opens the vault and lends secrets */
    ROLE_CA,      /* uses the CA's private key */
    ROLE_DIALER,  /* resolves names and connects outward */
    ROLE_AUDIT,   /* appends, chains and signs records */
    ROLE_CONTROL, /* serves the operator's socket */
    ROLE_ATTACH,  /* serves the socket that sandboxes are attached at, if there is one */
    ROLE_COURIER, /* carries datagrams between its proxy and sandboxes; started by its proxy */
    ROLE_LOAD,    /* reads and checks configuration and policy, then exits */
    ROLE_COUNT
};

/* "proxy", "egress", ... Static. */
const char *role_name(enum role role);
/* ERR_MISSING when no role has that name. */
MUST_USE int role_find(struct view name, enum role *out);

/* What a role's process is told on its command line. */
struct role_args {
    enum role role;
    uint32_t lane;                     /* 0 for shared roles */
    const char *directory;             /* the one directory a broker or audit owns, else NULL */
    const char *geo_country, *geo_asn; /* dialer: databases to map before narrowing, or NULL */
    uint16_t
        listeners; /* proxy, control, attach: how many listening descriptors stand from LISTENER_FD on */
    const char *ways; /* proxy: enum way_in of each listener, a digit each; NULL: explicit all */
    const char *
        admit; /* proxy: whom each listener lets in (policy/admission.h), joined by ';'; NULL: everybody */
    const char *misbehave; /* hostile builds only: what to do wrong */
    bool debug;            /* log debug lines */
};

/* Descriptors that a role finds open. */
enum {
    PARENT_FD = 3, /* its channel to the parent */
    LANE_FD = 4,   /* proxy and inspect: the channel to their egress, read with read() */
    RUNNING_FD =
        4, /* load: the text of the running generation, if the new one is compared with it */
    LISTENER_FD = 5, /* proxy, control and attach: first listener */
};

#endif
