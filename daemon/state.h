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
    int listeners[LISTENERS_MAX];
    size_t n_listeners;
    struct buf key;    /* proxy: its public key */
    struct buf status; /* members it told for the ask in progress */
    bool told;
    struct buf suspended; /* egress: suspended.c */
    int ledger; /* egress: what its sandboxes have used of their grants (places.c); outlives it */
    struct process *linked[LINKS_MAX]; /* those that share a channel with it now */
    struct process *next;
};

struct rollout {
    bool running;
    bool committed; /* all have acknowledged; not all have confirmed */
    bool loaded;    /* with a text that was loaded anew */
    bool wanted;    /* another one when this has ended */
    uint32_t number;
    int text;             /* memfd */
    struct buf base;      /* what the text is made of, without the registry */
    struct limits limits; /* of the text */
    struct event *late;
    uint64_t begun;
};

struct parent {
    struct loop *loop;
    const char *config_file, *misbehave;
    bool debug;
    struct config config;
    struct process *processes; /* in the order in which they are started */
    /* of the channels to them */
    const struct channel_rule *rules;
    size_t n_rules;
    channel_closed *closed;
    struct event *signals[4];

    /* the text in use, one that was loaded and is to replace it, and what the broker has issued */
    struct buf base, candidate, registry;
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
