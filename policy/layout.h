/*
 * A policy's text as lines and blocks with their comments: what `exeat policy fmt`
 * prints anew. Internal to policy/; made by layout_read.c, printed by layout_print.c.
 */
#ifndef POLICY_LAYOUT_H
#define POLICY_LAYOUT_H

#include "policy/arena.h"
#include "policy/errors.h"

/* A word of a statement, or a list, or inside a list a comment on a line of its own. */
struct layout_word {
    struct view text;        /* as written, without quotes */
    bool quoted, list, more; /* more: another item follows in the list */
    struct layout_word *items;
    struct view comment; /* behind an item, on its line */
    struct layout_word *next;
};

/* A statement, or without words a comment on a line of its own. */
struct layout_line {
    struct layout_word *words;
    bool block, blank_before;
    struct view opening; /* comment behind the '{' */
    struct layout_line *lines;
    struct view comment; /* behind the statement, on its last line */
    uint32_t last;       /* number of its last line in the text */
    struct layout_line *next;
};

/*
 * Whether the words of a text are right, without what it includes and what names mean: ERR_BAD with its errors,
 * ERR_MEMORY.
 */
MUST_USE int layout_check(struct view text, const char *file, struct policy_errors *errors);
/* Whether the grammar has a list behind these two words; elsewhere a word may begin with '[' as well. */
bool layout_takes_list(struct view before, struct view last, bool last_quoted);
/* The text has been read without an error. Views point into it. ERR_MEMORY. */
MUST_USE int layout_read(struct view text, const char *file, struct arena *arena,
                         struct layout_line **out);
void layout_print(const struct layout_line *lines, struct buf *out);

/*
 * Appends the text in its canonical layout (docs/policy.md, "The layout of `fmt`"): the same words in the same
 * order with the same comments, so that it means the same; formatting it again changes nothing. Files
 * that it includes are not read. ERR_BAD with the errors of the text, ERR_MEMORY.
 */
MUST_USE int policy_format(struct view text, const char *file, struct buf *out,
                           struct policy_errors *errors);

#endif
