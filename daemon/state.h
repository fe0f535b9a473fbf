/*
 * What the parent's files share: the process table, the links between processes, and the
 * generations. Nobody outside daemon/ includes this.
 */
#ifndef DAEMON_STATE_H
#define DAEMON_STATE_H

#include "base/child.h"
#include "daemon/config.h"

#include <sys/types.h>

enum process_state {
    PROCESS_DOWN,     /* waits to be started (again) */
    PROCESS_ASLEEP,   /* inspect: is started once its egress has work for it */
    PROCESS_STARTING, /* executed; has not narrowed itself yet */
    PROCESS_UP,
    PROCESS_ENDING, /* its channel is gone; it has not been reaped yet */
};

enum { LISTENERS_MAX = 32, LINKS_MAX = 5 };

/* A listening socket of a lane. */
struct listener {
    const struct config_listener *at; /* in the configuration; NULL: an attached sandbox's */
    enum way_in way;
    int fd;
    bool taken_over; /* from a lane that ends as this one begins */
};

/*
 * A lane as it runs (lanes.h). Its number is used again once all that was it is gone: uids and
 * producers of records go by it.
 */
struct lane {
    struct parent *parent;
    uint32_t id;
    const struct config_lane *config;  /* in p->served, or of the plan; NULL: attached */
    const struct config_lane *planned; /* in the configuration that is rolled out; NULL: it ends */
    struct listener listeners[LISTENERS_MAX];
    size_t n_listeners;
    uint32_t since;     /* the first generation whose text has it; 0: none yet */
    uint64_t ended;     /* monotonic nanoseconds; 0: it has not */
    uint32_t attach;    /* attached: what attach calls it */
    bool attached_up;   /* attach was told that it answers */
    bool closed;        /* attached: its text says that it waits to be opened */
    bool open;          /* of these: it was */
    bool attached_open; /* attach was told so */
    uint32_t probing;   /* attached: the ask that waits for what probes find; 0: none */
    bool issued;        /* attached: broker has issued what it needs */
    bool unenforced;    /* attached: nothing forces the sandbox here */
    size_t awaited;     /* listeners that attach will still hand over */
    char sandbox[SANDBOX_NAME_MAX + 1]; /* attached */
    struct lane *next;
};

struct process {
    struct parent *parent;
    enum role role;
    uint32_t lane; /* 0 for shared roles */
    enum process_state state;
    pid_t pid;
    struct channel *channel;
    struct event *restart;
    uint64_t started; /* monotonic nanoseconds */
    unsigned restarts, backoff_ms;
    uint32_t generation; /* the one it uses; 0: none */
    uint32_t prepared;   /* proxy: one it holds ready until its egress uses it */
    bool confirming;     /* was told to use a generation and has not said that it does */
    bool acknowledging;  /* must still answer the generation that is being rolled out */
    bool killed;         /* we ended it */
    char origin[32];     /* "egress 3": its name in the log and the audit trail */
    int audit_read,
        audit_write;    /* its audit stream; outlives it, so that no record is lost with it */
    int lane_fd;        /* proxy, inspect: its end of the channel to egress, until it is executed */
    struct event *wake; /* inspect, asleep: egress has written to that channel */
    int listeners[LISTENERS_MAX]; /* proxy: its lane's */
    size_t n_listeners;
    char ways[LISTENERS_MAX + 1]; /* enum way_in of each, a digit each */
    struct buf admit; /* proxy: whom each lets in (policy/admission.h), joined by ';', with a NUL */
    struct buf key;   /* proxy: its public key */
    struct buf status; /* members it told for the ask in progress */
    bool told;
    int ledger; /* egress: what its sandboxes have used of their grants (places.c); outlives it */
    struct process *linked[LINKS_MAX]; /* those that share a channel with it now */
    struct process *next;
};

struct rollout {
    bool running;
    bool committed; /* all have acknowledged; not all have confirmed */
    bool loaded;    /* with a text that was loaded anew */
    bool wanted;    /* another one when this has ended */
    bool left;      /* another one, without lanes that have ended: it may wait for more of them */
    uint32_t number;
    int text;        /* memfd */
    struct buf base; /* what the text is made of, without the registry and the lanes in use */
    bool planned;    /* plan is a configuration whose lanes this generation brings */
    struct config plan;
    struct limits limits;    /* of the text */
    uint64_t registry_state; /* of the text */
    struct event *gather;    /* while it waits for sandboxes that come or go in the same moment */
    bool gathered;           /* it has waited long enough */
    struct event *late;
    uint64_t begun; /* monotonic nanoseconds; this half of it */
};

struct parent {
    struct loop *loop;
    const char *config_file, *misbehave;
    bool debug;
    struct config config; /* as it was at the start: places and uids do not change */
    struct config served; /* the newest, whose lanes and listeners are in use */
    struct lane *lanes;
    struct event *lanes_tick; /* while one ends */
    /* suspended.c: sandboxes whose lanes have ended, and those that are suspended */
    struct buf former, suspended;
    uint64_t
        unnoted; /* monotonic nanoseconds; until then there may be others, for which there was no room */
    struct ledger_kept *ledgers; /* ledgers.c: of lanes that have ended */
    struct process *processes;   /* in the order in which they are started */
    /* of the channels to them */
    const struct channel_rule *rules;
    size_t n_rules;
    channel_closed *closed;
    struct event *signals[4];

    /*
     * Of the text in use, and of one that was loaded and is to replace it: the configuration as a
     * block, then the bundle. And what the broker has issued.
     */
    struct buf base, candidate, registry;
    uint64_t registry_state; /* grows with each change */
    bool has_registry;
    struct rollout rollout;
    uint32_t generation; /* in use; 0: none yet */
    int text;            /* memfd of the generation in use, or -1 */
    struct limits limits;

    /* the load child */
    pid_t loader;
    int loader_fd;
    struct event *loader_readable;
    struct buf loaded;
    char load_error[8192]; /* why the newest text was refused; empty when it is in use */

    /* what control asked and waits for */
    uint32_t reload_ask, status_ask, head_ask;
    bool has_reload_ask, has_status_ask, has_head_ask;
    struct event *status_late;
    uint64_t started;

    struct audit_writer *audit;
    bool stopping, ready;
    struct event *stop_late;
    int exit_status;
};

#endif
