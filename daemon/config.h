/*
 * The daemon's configuration (docs/configuration.md), read from its text and
 * nothing else: no file is opened here, but /etc/passwd and /etc/group where the text
 * names a user or a group. Paths are made relative to the folder of the configuration file.
 */
#ifndef DAEMON_CONFIG_H
#define DAEMON_CONFIG_H

#include "base/interface.h"
#include "base/limits.h"
#include "base/way_in.h"
#include "policy/arena.h"
#include "policy/bundle.h"
#include "policy/policy.h"

#include <sys/types.h>

#define NOBODY UINT32_MAX

enum config_place { PLACE_INTERNET, PLACE_UNIX, PLACE_VSOCK };

struct config_listener {
    enum way_in way;
    enum config_place place;
    struct address address; /* TCP, UDP */
    uint16_t port;
    uint32_t vsock_port;
    const char *path; /* Unix */
    mode_t mode;
    uid_t owner; /* of the socket; NOBODY: the daemon's own */
    gid_t group;
    char interface[INTERFACE_SIZE];      /* that it hears alone; empty: all */
    char port_of_bridge[INTERFACE_SIZE]; /* where its sandbox is at the interface; or empty */
    bool tproxy;                         /* transparent: led here by TPROXY, not by REDIRECT */
    uint16_t nflog;    /* group that refused datagrams of its sandbox are logged to; 0: none */
    struct view admit; /* whom it lets in (policy/admission.h) */
    uint32_t lane;     /* id of its lane */
    struct position at;
    struct config_listener *next;
};

/*
 * Whether both cannot be open at once: the same path, or the same address and port of TCP, of UDP or of vsock, and not of
 * two interfaces.
 */
bool config_same_place(const struct config_listener *a, const struct config_listener *b);

/* A lane as the configuration has it; the policy completes one without names. */
struct config_lane {
    uint32_t id; /* from 1, in the order of the text */
    bool shared;
    bool everybody;    /* shared, and no names given: whoever has no other lane */
    struct view names; /* separated by SP */
    struct position at;
    struct config_lane *next;
};

/* Which sandboxes a user or a group may attach. */
struct config_right {
    struct attach_right who;
    struct position at;
    struct config_right *next;
};

/* The socket that sandboxes are attached at. */
struct config_attach {
    const char *path; /* NULL: there is none */
    mode_t mode;
    struct config_right *rights;
    struct position at;
};

/* A PEM file of trust anchors. */
struct config_trust {
    const char *path;
    struct position at;
    struct config_trust *next;
};

struct config_host {
    struct view name;
    struct address address;
    struct config_host *next;
};

struct config {
    struct arena arena; /* of everything below */
    const char *state;
    const char *policy;
    const char *control;
    uid_t *control_uids; /* besides root and the daemon's own user */
    size_t n_control_uids;
    struct config_attach attach;
    struct config_listener *listeners;
    struct config_lane *lanes;
    size_t n_listeners, n_lanes;
    bool trust_system; /* also when nothing was said */
    struct config_trust *trust;
    struct address resolvers[RESOLVERS_MAX];
    uint16_t resolver_ports[RESOLVERS_MAX];
    size_t n_resolvers;
    struct range synthetic[GENERATED_RANGES]; /* what the DNS door gives out */
    struct config_host *hosts;
    struct view upstream_proxy;        /* "host:port", canonical, or empty */
    const char *geo_country, *geo_asn; /* or NULL */
    struct limits limits;
    bool audit_durable;
    uid_t first_uid, last_uid; /* 0: no range */
    const char *vault_key;
    bool debug;
    bool reload_unconfirmed; /* also a policy that newly allows something */
};

/*
 * Reads text (named file in positions, which must outlive the configuration).
 * ERR_BAD with all errors of the text, ERR_MEMORY; out then holds nothing.
 */
MUST_USE int config_read(struct view text, const char *file, struct config *out,
                         struct policy_errors *errors);
/*
 * The same for who needs only `state`, `control` and `vault key`, and the paths of `policy` and `attach` where they could be read (else
 * NULL): 0 also when other words are wrong (errors->total > 0); what else is in out is then not to be used.
 */
MUST_USE int config_read_place(struct view text, const char *file, struct config *out,
                               struct policy_errors *errors);
void config_free(struct config *c);

/*
 * Appends the words, as "state, uids", of which read says something else than running, the configuration that exeatd was started
 * with, and that a reload does not take over.
 */
void config_put_kept(const struct config *running, const struct config *read, struct buf *out);

/*
 * Appends every lane in order (bundle_put_lane), the sandboxes of the one for
 * everybody taken from the policy. ERR_BAD, with errors, when a listener names
 * a sandbox that the policy does not have.
 */
MUST_USE int config_put_lanes(const struct config *c, const struct policy *p, struct buf *out,
                              struct policy_errors *errors);
/* Appends who may attach what (bundle_put_right). ERR_BAD, with errors, as above. */
MUST_USE int config_put_rights(const struct config *c, const struct policy *p, struct buf *out,
                               struct policy_errors *errors);
/* Appends the static hosts (bundle_put_host). */
void config_put_hosts(const struct config *c, struct buf *out);
/* Appends "address:port" of every TCP listener, as blocks (bundle.own_addresses). */
void config_put_own_addresses(const struct config *c, struct buf *out);

#endif
