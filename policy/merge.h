/*
 * A policy's text with more statements in blocks that it has already: the words, lines and comments of `fmt`
 * (layout.h), and printed like it. Nothing is taken away. Pure.
 */
#ifndef POLICY_MERGE_H
#define POLICY_MERGE_H

#include "policy/arena.h"
#include "policy/errors.h"

struct layout_line;

struct merge {
    struct arena arena;
    struct layout_line *lines;
};

/* ERR_BAD with the errors of the text, which must outlive *m; ERR_MEMORY. merge_free frees whatever the result. */
MUST_USE int merge_read(struct merge *m, struct view text, const char *file,
                        struct policy_errors *errors);
void merge_free(struct merge *m);
/*
 * Adds statements, which are right, to the end of the block `kind name`; with a NULL kind one outside of blocks, behind the
 * last of its kind. ERR_MISSING: there is no such block; ERR_MEMORY.
 */
MUST_USE int merge_add(struct merge *m, const char *kind, struct view name, struct view statements);
/*
 * Grants a sandbox an operation: in its block's grant of the service without terms but a mode, in a new grant, or in a new block.
 * Where it has the operation, or all of the service, nothing is to be done. ERR_MEMORY.
 */
MUST_USE int merge_grant(struct merge *m, struct view sandbox, struct view service,
                         struct view operation);
/* Whether there is the block `kind name`. */
bool merge_has(const struct merge *m, const char *kind, struct view name);
/* Appends the text. */
void merge_print(const struct merge *m, struct buf *out);

#endif
