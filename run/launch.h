/*
 * A command in a sandbox of namespaces, made by an ordinary user: the outer side. In order:
 * launch_hold holds back every signal from there on, and has what is made for the sandbox readable for those who need it whatever the
 * umask was; launch_begin makes the namespaces and gives the listening sockets in
 * them; launch_enter makes what is to be the command, which probes the sandbox, and gives what it found; somebody begins to
 * serve the listening sockets; launch_go lets the command begin; launch_wait ends with it. A signal that comes before and would
 * end a program that has just begun ends whatever waits for something then: with -1, and without a word.
 */
#ifndef RUN_LAUNCH_H
#define RUN_LAUNCH_H

#include "base/bytes.h"
#include "run/network.h"
#include "run/plan.h"

#include <poll.h>
#include <signal.h>
#include <sys/types.h>

enum { LAUNCH_POLL_MAX = 2 };

struct launch {
    pid_t init; /* the sandbox's first process, whose end is the sandbox's */
    int listeners
        [NETWORK_LISTENERS]; /* of its network (network.h), from the first; the caller's to close */
    size_t n_listeners;
    int talk, line; /* with the first process, with those that probe (talk.h) */
    int signals;    /* those that are held back (signals.h) */
    int asks; /* -1, or where exeatd asks for the probes again (base/attach.h) while the command runs */
    int ended;        /* the signal that ended it before its command began; 0: none */
    sigset_t before;  /* blocked before */
    mode_t mask;      /* of the command's files */
    pid_t foreground; /* the terminal's process group before, or -1 */
};

/* The standard files, before anything is opened that might become one of them. -1 after saying what is wrong with them. */
int launch_check_files(void);
/* -1 after saying why not. */
int launch_hold(struct launch *l);
/* As poll(2) does, for at most LAUNCH_POLL_MAX of them; -1: l->ended, or what poll fails with. */
int launch_poll(struct launch *l, struct pollfd *of, size_t n, int milliseconds);
/* -1 after saying why not; nothing is left then. */
int launch_begin(struct launch *l, const struct run_plan *plan);
/*
 * Has the command made; environment: blocks "NAME=value" that are added to ours. Appends what it found (report.h). -1: it has
 * ended, and said why; nothing is left then.
 */
int launch_enter(struct launch *l, struct view environment, struct buf *report);
/* Starts it. -1: it has ended already; nothing is left then. */
int launch_go(struct launch *l);
/* Until the command's end: its status as waitpid(2) has it. -1: there is none, a process of the sandbox has said why. */
int launch_wait(struct launch *l, int *status);
/* Ends a sandbox whose command was not started. */
void launch_abandon(struct launch *l);

/* The part of launch_wait that a command without a sandbox (unenforced.h) has as well: the end of l->init. */
int launch_await(struct launch *l);

#endif
