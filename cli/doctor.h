/*
 * `exeat doctor`, run inside of a sandbox: which ways in are there, which clients work by them, and what gets out
 * beside them (run/probe.h). Everything that is found is a row of one list.
 */
#ifndef CLI_DOCTOR_H
#define CLI_DOCTOR_H

#include "cli/command.h"
#include "run/probe.h"

#include <stdbool.h>

/* ---- rows ---- */

struct doctor {
    struct buf rows; /* JSON objects, one behind the other with commas */
    bool in_sandbox; /* else nothing can have escaped: what would have is "open" */
    size_t failed, escaped, open, unsure;
};

struct doctor_row {
    const char *part; /* "way", "client", "containment" */
    const char *name, *what, *verdict, *why;
    const char *fix; /* NULL: nothing is to be mended */
};

/* False: it was there already, since two things led to the same attempt; it is not counted again. */
bool doctor_add(struct doctor *d, const struct doctor_row *r);

/* ---- what is printed (doctor_print.c) ---- */

/* As an object with --json, else as a table with the fixes behind it. */
void doctor_print(const struct cli *cli, const struct doctor *d);

/* ---- ways in (doctor_ways.c) ---- */

enum way { WAY_OF_ENVIRONMENT, WAY_OF_SOCKS, WAY_OF_NONE, WAY_OF_SOCKET, WAYS };

struct ways {
    bool works[WAYS];
    char sandbox[256];                   /* as exeat names it; "" while no way works */
    char proxy[512];                     /* "user:password@host:port" of the environment, or "" */
    char host[256], port[8], login[256]; /* the same taken apart; login is "user:password" or "" */
    const char *socket;                  /* of the environment, or NULL */
};

/* "environment", "socks5", "transparent", "unix". */
const char *way_name(enum way w);
/* Asks the echo host by every way, and for its name; a row for each. */
void ways_try(struct doctor *d, struct ways *w);
/*
 * Asks the echo host by the HTTP proxy at the other end of the stream, which is closed then, and how exeat names the
 * sandbox that it takes for the asker. False: exeat does not answer there.
 */
bool ways_ask(int fd, const char *login, int wait_ms, char *sandbox, size_t size);

/* ---- clients (doctor_clients.c) ---- */

/* Drives every client that is found by every way that works; a row for each. */
void clients_try(struct doctor *d, const struct ways *w);

/* ---- other sandboxes (doctor_listeners.c) ---- */

/* "listener": what listens in this network and is exeat's for another sandbox than ours. */
void listeners_try(const struct probe *p, const struct ways *w);

#endif
