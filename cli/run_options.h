/*
 * The words of `exeat run [options] -- command…`. Paths become absolute; those of what is to be shown,
 * hidden or read must be there.
 */
#ifndef CLI_RUN_OPTIONS_H
#define CLI_RUN_OPTIONS_H

#include "run/plan.h"

#include <limits.h>
#include <stdbool.h>

enum { RUN_SECRETS_MAX = 64, RUN_HIDDEN_MAX = 1 << 20 };

struct run_secret {
    char name[80]; /* of the credential */
    const char *value;
};

struct run_options {
    const char *sandbox;                    /* or NULL */
    char policy[PATH_MAX];                  /* or "" */
    char settings[PATH_MAX], log[PATH_MAX]; /* of a private daemon; or "" */
    struct run_secret secrets[RUN_SECRETS_MAX];
    size_t n_secrets;
    bool unenforced;      /* no sandbox */
    struct buf hidden;    /* of --hide, as run_plan.hidden */
    struct buf sockets;   /* as run_plan.sockets */
    struct buf links;     /* as run_plan.links */
    struct buf kept;      /* as run_plan.kept */
    struct run_plan plan; /* paths and the command; without what is hidden */
};

/* RUN_FAILED (run/say.h) after saying what is wrong, or 0. What o points to lives as long as the process. */
int run_options_read(int argc, char **argv, struct run_options *o);

/*
 * For a credential that the sandbox is lent: unless --secret gave its value, that of the variable which
 * the sandbox will have in its place. -1 after saying what is missing.
 */
int run_options_lend(struct run_options *o, struct view credential);

/* Removes each variable of the environment in which one of the secrets is found, whatever its name. */
void run_options_forget(const struct run_options *o);

#endif
