/*
 * What every role but parent has in common: the channel to the parent on
 * PARENT_FD, and the generations that come over it.
 *
 * The parent sends, in this order at start: PARENT_FILE and PARENT_PEER as the
 * role needs them, then PARENT_GENERATION. The role answers ROLE_READY or
 * ROLE_REFUSED, and uses the generation once PARENT_COMMIT names it. Later
 * generations, new peers (a shared role was restarted) and the loss of peers
 * come at any time.
 */
#ifndef BASE_CHILD_H
#define BASE_CHILD_H

#include "base/channel.h"
#include "base/role.h"

/* parent to role */
enum parent_message {
    PARENT_PEER = 1,      /* fd; u8 role, u32 lane, block name: a channel's end */
    PARENT_PEER_GONE = 2, /* u8 role, u32 lane: that process died; it may come again */
    PARENT_FILE = 3, /* fd; block name: an opened file, to be read before the first generation */
    PARENT_GENERATION =
        4, /* fd: sealed memfd with the text (policy/bundle.h); the message's generation is N */
    PARENT_LIMITS = 5, /* the same for proxy, which takes no descriptor: limits (base/limits.h) */
    PARENT_COMMIT = 6, /* use generation N from now on */
    PARENT_STOP = 7,   /* finish what is in progress, then exit */
    PARENT_STATUS_ASK = 8, /* id to be repeated */
    PARENT_ANSWER = 9,     /* to control: u8 err (0 or -code), block text; id of the ROLE_ASK */
    PARENT_IN_USE =
        10, /* to broker: generation N is in use everywhere; u64 state of its registry */
    PARENT_HEAD_ASK = 11, /* to audit: sign where the chain stands; id to be repeated */
    /* to an egress that follows another, before its first generation: of each ROLE_SUSPENDED of the lane
     * that still counts its body, one after another */
    PARENT_SUSPENDED = 12,
    PARENT_LANE =
        13, /* to attach: u8 enum lane_news, block text; the id is that of ROLE_LANE_ADD */
    PARENT_OPEN =
        14, /* to egress: the lane, which was closed (policy/bundle.h), serves from now on */
    PARENT_PROBE =
        15, /* to attach: u32 ask; have the sandbox of the lane with this id probed, answered by ROLE_PROBED */
};

/* What a registry comes for. */
enum registry_change {
    REGISTRY_OTHER,  /* the sandbox is empty */
    REGISTRY_ISSUED, /* something was issued to the sandbox */
    REGISTRY_LEFT,   /* what attach had issued to it was ended: its lane has ended already */
};

/* role to parent */
enum role_message {
    ROLE_UP =
        1, /* rights are narrowed; proxy: block with its public key (SubjectPublicKeyInfo DER) */
    ROLE_READY = 2,    /* generation N is parsed and kept */
    ROLE_REFUSED = 3,  /* block reason */
    ROLE_BAD_PEER = 4, /* u8 role, u32 lane: that peer broke the contract; its channel is dropped */
    ROLE_STATUS = 5,   /* block: a JSON object's members, "\"connections\":3,..."; id of the ask */
    ROLE_REGISTRY =
        6, /* broker: u64 state, which grows with each change, u8 enum registry_change, block sandbox, block registry (policy/bundle.h); wants a new generation */
    ROLE_COMMITTED = 8, /* generation N is in use here */
    ROLE_ASK = 7,       /* control: u8 enum role_ask, block argument; answered by PARENT_ANSWER */
    /* egress: u64 monotonic nanoseconds, block sandbox: it is suspended until then, also by the next egress */
    ROLE_SUSPENDED = 10,
    /*
     * attach: wants a lane; u32 uid of whose it is, u8 how many listeners follow, u8 whether nothing forces the sandbox
     * through them, block sandbox. The id
     * is attach's name for it, and none that it has given before.
     */
    ROLE_LANE_ADD = 11,
    ROLE_LANE_LISTENER =
        12, /* attach: fd; u8 enum way_in: a listening socket of the lane with this id */
    ROLE_LANE_END = 13,  /* attach: the lane with this id is wanted no more */
    ROLE_LANE_OPEN = 14, /* attach: the sandbox of the lane with this id is tight: it is to serve */
    ROLE_OPENED = 15,    /* egress: PARENT_OPEN was heeded */
    ROLE_PROBED = 16,    /* attach: u8 err (0 or -code), block text; id of the ask */
    ROLE_HEAD = 9, /* audit: u8 err (0 or -code), block: head.json or a sentence; id of the ask */
};

/* Of the list of who is suspended in a lane. */
#define CHILD_SUSPENDED_MAX ((size_t)64 << 10)

/* Of ROLE_PROBED: what the probes of a sandbox found. */
#define CHILD_PROBED_MAX ((size_t)512 << 10)

/* The memory in which a lane counts what is used of grants (egress/tally.h): the file "grants" of its egress. */
#define CHILD_LEDGER_SIZE ((size_t)1 << 20)

enum lane_news {
    LANE_ADDED,  /* it is being made */
    LANE_UP,     /* it answers; one that is closed refuses */
    LANE_SERVES, /* it serves, after ROLE_LANE_OPEN */
    LANE_ENDED,  /* or never began; the text says why */
    LANE_NEWS_COUNT
};

enum role_ask { ASK_STATUS, ASK_RELOAD, ASK_STOP, ASK_HEAD, ASK_PROBE /* block sandbox */ };

struct child;

/*
 * What the role does with them. A NULL handler means that the message is not
 * permitted for this role. Descriptors are taken over by the callee. Anything
 * but 0 from on_generation is reported as ROLE_REFUSED with err_text.
 */
struct child_ops {
    int (*on_peer)(void *ctx, enum role role, uint32_t lane, struct view name, int fd);
    void (*on_peer_gone)(void *ctx, enum role role, uint32_t lane);
    int (*on_file)(void *ctx, struct view name, int fd);
    /*
     * Prepare generation N; it replaces one that was prepared and not committed. text stays
     * mapped until a newer generation is committed, or, if N never is, until the next is prepared.
     */
    int (*on_generation)(void *ctx, uint32_t generation, struct view text);
    void (*on_commit)(void *ctx, uint32_t generation);
    void (*on_in_use)(void *ctx, uint64_t registry_state);
    /* NULL: the loop stops at once. */
    void (*on_stop)(void *ctx);
    /* Appends JSON members without braces; NULL: none. */
    void (*on_status)(void *ctx, struct buf *out);
    int (*on_answer)(void *ctx, uint32_t id, int code, struct view text);
    int (*on_suspended)(void *ctx, struct view list);
    int (*on_lane)(void *ctx, uint32_t id, enum lane_news news, struct view text);
    void (*on_opened)(void *ctx);
    void (*on_probe)(void *ctx, uint32_t id, uint32_t ask);
    /* Appends the newest signed head, or a sentence when it returns an error. */
    int (*on_head)(void *ctx, struct buf *out);
};

/* The channel on PARENT_FD; its loss stops the loop. NULL on failure. */
struct child *child_new(struct loop *l, const struct role_args *args, const struct child_ops *ops,
                        void *ctx);
void child_free(struct child *c);
/* Tells the parent that this process is narrowed and serves; extra is the proxy's public key or empty. */
void child_up(struct child *c, struct view extra);
/* For messages of its own (ROLE_REGISTRY, ROLE_ASK). */
struct channel *child_channel(struct child *c);
/* Reports a peer whose channel this role dropped. */
void child_bad_peer(struct child *c, enum role role, uint32_t lane);

#endif
