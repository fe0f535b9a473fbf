/*
 * The tokens of GraphQL (specification of October 2021, section 2.1). Pure.
 */
#ifndef POLICY_GRAPHQL_TOKEN_H
#define POLICY_GRAPHQL_TOKEN_H

#include "base/bytes.h"

enum graphql_token_kind {
    GRAPHQL_END,
    GRAPHQL_WRONG,
    GRAPHQL_NAME,
    GRAPHQL_NUMBER,
    GRAPHQL_STRING, /* or block string */
    GRAPHQL_SPREAD, /* ... */
    GRAPHQL_SIGN,   /* one of ! $ & ( ) : = @ [ ] { | } */
};

struct graphql_token {
    enum graphql_token_kind kind;
    struct view text; /* as written */
};

/*
 * Takes the next token off *rest, which is valid UTF-8, with what is ignored before it: blanks, line ends, commas, comments, U+FEFF.
 * GRAPHQL_WRONG is final.
 */
struct graphql_token graphql_token_take(struct view *rest);

static inline bool graphql_token_is(struct graphql_token t, char sign) {
    return t.kind == GRAPHQL_SIGN && t.text.p[0] == (uint8_t)sign;
}

#endif
