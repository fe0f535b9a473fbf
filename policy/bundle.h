/*
 * A generation's text: everything the roles are told by the operator, in one
 * sealed memfd. Written by the load child, numbered by the parent; each role
 * reads the sections that concern it.
 */
#ifndef POLICY_BUNDLE_H
#define POLICY_BUNDLE_H

#include "base/limits.h"
#include "policy/address.h"
#include "policy/policy.h"

enum { FINGERPRINT_SIZE = 32, SANDBOX_NAME_MAX = 64, CREDENTIAL_NAME_MAX = 64 };

struct lane_info {
    uint32_t id;       /* from 1 */
    bool shared;       /* sandboxes prove who they are by a proxy token */
    struct view names; /* sandbox names, separated by SP; exactly one when not shared */
    bool unenforced;   /* attached, and nothing forces the sandbox through exeat; not when shared */
    bool
        closed; /* attached: refuses everything until it was found that nothing gets out beside it; not when shared or unenforced */
};

struct static_host {
    struct view name;
    struct address address;
};

/* Which sandboxes a user or a group may attach (daemon/attach.h). */
struct attach_right {
    bool group;
    uint32_t id;
    struct view names; /* separated by SP, at least one */
};

enum { RESOLVERS_MAX = 8, GENERATED_RANGES = 2 };

struct bundle {
    struct limits limits;
    struct view policy_file, policy_text;
    struct view registry;     /* see below */
    struct view lanes;        /* bundle_lane walks */
    struct view static_hosts; /* bundle_host walks */
    struct address resolvers[RESOLVERS_MAX];
    uint16_t resolver_ports[RESOLVERS_MAX];
    size_t n_resolvers;         /* 0: the system's, from /etc/resolv.conf at start */
    struct view upstream_proxy; /* "host:port" of an HTTP proxy to leave by, or empty */
    struct view own_addresses; /* blocks: "address:port" of every listener of ours, to be refused */
    struct view anchors;       /* PEM certificates that upstreams are verified against */
    struct view own_anchors;   /* of services with `upstream ca`; bundle_anchors walks */
    struct view attach_rights; /* bundle_right walks */
    /* the DNS door gives out addresses of these, one of each family at most; family 0: none */
    struct range synthetic[GENERATED_RANGES];
    bool audit_durable; /* wait for the disk before bytes leave */
};

void bundle_write(const struct bundle *b, struct buf *out);
/* Views point into text. ERR_BAD. */
MUST_USE int bundle_read(struct view text, struct bundle *out);
/* Walks: start with *rest = b->lanes (or static_hosts); false at the end. */
bool bundle_lane(struct view *rest, struct lane_info *out);
void bundle_put_lane(struct buf *out, const struct lane_info *lane);
bool bundle_right(struct view *rest, struct attach_right *out);
void bundle_put_right(struct buf *out, const struct attach_right *right);
bool bundle_host(struct view *rest, struct static_host *out);
void bundle_put_host(struct buf *out, const struct static_host *host);
bool bundle_anchors(struct view *rest, struct view *service, struct view *pem);
void bundle_put_anchors(struct buf *out, struct view service, struct view pem);
/* Finds the lane; ERR_MISSING. */
MUST_USE int bundle_find_lane(const struct bundle *b, uint32_t id, struct lane_info *out);
/* Whether the lane is there and unenforced; lanes as in a bundle. */
bool bundle_lane_unenforced(struct view lanes, uint32_t id);
/* Walks the sandbox names of a lane; start with *rest = lane->names. */
bool lane_sandbox(struct view *rest, struct view *name);

/*
 * Registry: what the broker has issued. One entry each: the SHA-256 of a
 * sandbox's proxy token, or of a placeholder with its sandbox and credential.
 * Random values of at least 128 bits need no salt.
 */
enum registry_kind {
    REGISTRY_TOKEN = 1,
    REGISTRY_PLACEHOLDER = 2,
    REGISTRY_LOCKED =
        3, /* alone, without names: the vault is locked, and who holds what is not known */
};

struct registry_entry {
    enum registry_kind kind;
    struct view sandbox;    /* but for REGISTRY_LOCKED */
    struct view credential; /* REGISTRY_PLACEHOLDER */
    uint8_t fingerprint[FINGERPRINT_SIZE];
};

void registry_put(struct buf *out, const struct registry_entry *e);
/* Walks; start with *rest = bundle.registry. False at the end or when malformed (*rest is then not empty). */
bool registry_next(struct view *rest, struct registry_entry *out);

#endif
