/*
 * The audit trail for people: lines of audit.jsonl in, rows of a table out, a decision and its outcome
 * in one row. Pure but for the stream it prints to. Values stay escaped as they stand in the line:
 * visible ASCII only, so that nothing a sandbox sent can move the cursor.
 */
#ifndef CLI_LOG_TABLE_H
#define CLI_LOG_TABLE_H

#include "base/bytes.h"

#include <stdio.h>

/* What is shown of it, and how. */
struct log_filter {
    const char *sandbox;    /* NULL: all */
    const char *host;       /* the name or a parent of it; NULL: all */
    bool denied;            /* only refusals: of requests, and events of what exeat refused */
    const char *since;      /* a time as in lines, or the beginning of one; NULL: all */
    const char *reason;     /* how it was refused, or ended; NULL: all */
    const char *credential; /* lent, or carried by what was refused; NULL: all */
    const char *record;     /* only the records with this id, each whole: a line for each member */
    bool ids;               /* a column with the id of each record */
    bool all;               /* also tries such as `exeat doctor` makes, see below */
};

struct log_table;

/*
 * A table that ends, without `all`, `host` and `record`, only counts the requests and questions that exeat itself answers
 * and nobody else ever gets, because of their name: those for the echo host (policy/echo.h), allowed or at a closed port,
 * those for a name of probe_is_name that were refused as any unknown one, and datagrams to an address of probe_is_nowhere that
 * the sandbox's kernel refused. They are the doctor's; whoever else makes
 * them has done nothing that is hidden by it.
 */

/*
 * lines: print the lines of the records that match as they are, instead of a table. late: a row
 * whose outcome has not come is held back only until log_table_tick, and comes behind later ones;
 * without it rows stand in the order of their decisions. NULL when out of memory.
 */
struct log_table *log_table_new(const struct log_filter *f, bool lines, bool late, FILE *out);
void log_table_free(struct log_table *t);
/* One line without its LF; what is no line of a log is left out. */
void log_table_line(struct log_table *t, struct view line, uint64_t now);
/* Prints rows that have waited for two seconds; nanoseconds of any clock. */
void log_table_tick(struct log_table *t, uint64_t now);
/* Prints what is left, decisions without an outcome as "open". */
void log_table_end(struct log_table *t);
/* Records of any kind, shown or not. */
uint64_t log_table_records(const struct log_table *t);
/* Records that matched. */
uint64_t log_table_matched(const struct log_table *t);
/* Lines that were left out. */
uint64_t log_table_unread(const struct log_table *t);

#endif
