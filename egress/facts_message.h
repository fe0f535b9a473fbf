/*
 * What egress asks of a body, and the facts with which inspect answers, in bytes (INSPECT_READ and
 * INSPECT_FACTS of egress/inspect_messages.h). Pure.
 *
 * Both sides read distrustfully. What inspect says can be wrong, but it is always a well-formed
 * answer to what was asked: pointers that were asked for, values of their type's form, nothing
 * beside what is unclear.
 */
#ifndef EGRESS_FACTS_MESSAGE_H
#define EGRESS_FACTS_MESSAGE_H

#include "policy/body_read.h"
#include "policy/json_path.h"

enum {
    FACTS_ASK_MAX = 16 + JSON_PATHS_MAX * (4 + JSON_PATH_TEXT), /* bytes */
    FACTS_MAX = 512 * 1024
};

struct facts_ask {
    enum body_source source;
    struct body_wants wants; /* its pointers stand below, and their text in the message */
    struct view pointers[JSON_PATHS_MAX];
};

void facts_ask_write(enum body_source source, const struct body_wants *wants, struct buf *out);
/* ERR_BAD. */
MUST_USE int facts_ask_read(struct view message, struct facts_ask *out);

/* Facts that would be longer than FACTS_MAX are told as unclear. */
void facts_write(const struct body_facts *facts, enum body_fault fault, struct buf *out);

/* Facts with their memory. */
struct facts;

/* ERR_BAD: no answer to a question of n_pointers; ERR_MEMORY. */
MUST_USE int facts_read(struct view message, size_t n_pointers, struct facts **out);
/* Nothing is certain of a body of so many bytes; BODY_FAULTLESS: its size is, and nothing else was asked. NULL: no memory. */
struct facts *facts_unread(enum body_fault fault, uint64_t size);
/* Compares them with the body that they are said to be of (body_values_compare). */
void facts_compare(struct facts *f, struct view body);
void facts_free(struct facts *f);
struct body_facts *facts_content(struct facts *f);

#endif
