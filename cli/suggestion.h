/*
 * A suggestion: the wishes of a trail (wishes.h) as rules in a policy's text, or in one of their own, and what is said beside it.
 */
#ifndef CLI_SUGGESTION_H
#define CLI_SUGGESTION_H

#include "cli/wishes.h"
#include "policy/merge.h"
#include "policy/policy.h"

struct suggestion {
    struct wishes asked;
    const struct policy *policy; /* that it is put into; NULL: by itself */
    size_t number;               /* the greatest that a name of the policy has */
    size_t settled;              /* wishes that the policy grants already */
    bool observed;               /* some were let through by `mode observe` */
    struct buf notes;            /* of the last build */
    struct merge merge;
};

/*
 * By what the policy says of each wish now: takes those out of s->asked.requests of which no rule is made, and finds out of the others
 * where theirs goes. ERR_MEMORY.
 */
MUST_USE int suggestion_sort(struct suggestion *s);
/*
 * Fills in s->merge and s->notes: the policy's text, which must outlive them, with a rule for each wish that was not taken out. May be
 * called again. ERR_BAD (the text), ERR_LIMIT, ERR_MEMORY.
 */
MUST_USE int suggestion_build(struct suggestion *s, struct view text, const char *file);
/* Appends to the notes what is said of all of it. */
void suggestion_note_rest(struct suggestion *s);
/* The greatest number that a name in the text has. */
size_t suggestion_last_number(struct view text);

#endif
