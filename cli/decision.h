/*
 * Decisions of the audit trail (docs/audit.md) as the commands on policies read them: what one line says of its request, and
 * all lines of several files.
 */
#ifndef CLI_DECISION_H
#define CLI_DECISION_H

#include "base/bytes.h"
#include "policy/authority.h"
#include "policy/reason.h"

#include <stdbool.h>

enum { DECISION_LOGS_MAX = 64 };

/* Said of a file without a single record: a trail's first line is one. */
#define DECISION_NO_TRAIL "this is no audit trail: no line of it is a record"

/* What one decision of the audit trail says of its request. */
struct decision {
    struct buf memory; /* what the views point into */
    struct view id, verdict, reason, sandbox, method, scheme, host, path, query, address, rule;
    bool bare;    /* only a name, or a connection before there was a request */
    bool foreign; /* a credential that was not ours was seen */
    struct authority authority;
    enum reason why;
    enum reason observed; /* why an allowed one would be refused, where somebody only watched */
};

/* Whether a line has this member with this text. */
bool decision_line_says(struct view line, const char *name, const char *value);
/* d->memory is the caller's. False: the line is no decision on a request, a connection or a name, or says too little of it. */
bool decision_read(struct view line, struct decision *d);
/* With a method and a path. */
bool decision_is_request(const struct decision *d);
/* About what exeat answers itself, as the doctor asks it: no rule can be made for it. */
bool decision_is_exeats(const struct decision *d);
/* Whether it is of a datagram to where the doctor sends some, and nobody is. It has no host, so that it is not read. */
bool decision_is_doctors_datagram(struct view line);
/*
 * Calls each for every line of the files, of which a directory stands for all that belong to the trail in it. EXIT_YES;
 * anything else was told.
 */
int decision_read_logs(const char *const *paths, int n, void (*each)(void *ctx, struct view line),
                       void *ctx);

#endif
