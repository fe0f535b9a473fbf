/*
 * Executable documents of GraphQL (specification of October 2021, sections 2 and 6.1): which
 * operation a request selects, of what kind it is, and what its root fields are. A tokenizer and a
 * parser of the whole grammar: what does not follow it, down to the last token, is not read. Pure.
 *
 * Root fields are those of the selected operation's outermost selection set, by their names (not
 * aliases), whatever directives stand behind them; those of inline fragments and of fragments that are spread
 * there, too. The types that fragments are on do not matter.
 *
 * Not read, either: definitions of types; descriptions and variables of fragments, which only some
 * servers take; a fragment that is missing, defined twice or spreads itself; operations that share a name, or without
 * one beside others; line ends within comments that are none to GraphQL (U+0085, U+2028, U+2029).
 */
#ifndef POLICY_GRAPHQL_H
#define POLICY_GRAPHQL_H

#include "policy/body_facts.h"

enum {
    GRAPHQL_TOKENS_MAX = 16384,
    GRAPHQL_DEPTH_MAX = 64,        /* of selection sets, values and types within each other */
    GRAPHQL_DEFINITIONS_MAX = 256, /* operations and fragments */
    GRAPHQL_ROOTS_MAX = 1024       /* root fields and spreads of all of them, and of the result */
};

struct graphql;

/*
 * document is valid UTF-8; the names point into it. operation: operationName, NULL when there is none. ERR_BAD: the
 * request is not certain; ERR_LIMIT: more of something than the numbers above; ERR_MEMORY.
 */
MUST_USE int graphql_read(struct view document, const struct view *operation, struct graphql **out);
void graphql_free(struct graphql *g);
/* Until g is freed. */
struct graphql_facts graphql_facts(const struct graphql *g);

#endif
