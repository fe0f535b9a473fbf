/*
 * Errors in a text that an operator wrote (policy or configuration): collected,
 * all of one run, with the place and the nearest word that would have been right.
 */
#ifndef POLICY_ERRORS_H
#define POLICY_ERRORS_H

#include "policy/policy.h"

/* printf a word of the text in an error: at most 48 bytes of it. */
#define WORD_ARG(v) (int)((v).n < 48 ? (v).n : 48), (const char *)(v).p

/*
 * Where something else is, as a part of a sentence: "line 4", or "line 4 of FILE" when that is another file than
 * the one of `here`. Valid in the block in which it is written.
 */
struct place_text {
    char text[96];
};
#define PLACE_TEXT(at, here) place_text(&(struct place_text){""}, at, here)
const char *place_text(struct place_text *out, struct position at, struct position here);

/* Adds one; beyond POLICY_ERRORS_MAX it is only counted. The text is cut to fit. */
void errors_add(struct policy_errors *e, struct position at, const char *format, ...)
    __attribute__((format(printf, 3, 4)));
/* The place of an offset. */
struct position errors_position(struct view text, size_t offset, const char *file);
void errors_reset(struct policy_errors *e);
/* Puts them into the order of the text: those of the file `first`, then those of included ones. */
void errors_sort(struct policy_errors *e, const char *first);
/* Copies the names of files other than this one, which are the policy's, into *e. */
void errors_keep_names(struct policy_errors *e, const char *file);
/*
 * Appends `file:line:col: text`, the line it happened in and a caret below it.
 * What is not visible ASCII in that line is shown as '?', long lines are cut.
 */
void errors_show(const struct policy_error *e, struct view text, struct buf *out);

/* The nearest of some known words. */
struct guess {
    struct view word; /* what was written */
    struct view best;
    size_t distance; /* of best */
    char text[96];
};

struct guess guess_of(struct view word);
void guess_offer(struct guess *g, struct view known);
void guess_offer_sandboxes(struct guess *g, const struct policy *p);
/* ", did you mean 'x'?" or "" when nothing offered was near. Valid as long as g. */
const char *guess_text(struct guess *g);

#endif
