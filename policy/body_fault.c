#include "policy/body_fault.h"

#include <stddef.h>

const char *body_fault_text(enum body_fault f) {
    static const char *const texts[BODY_FAULT_COUNT] = {
        [BODY_FAULTLESS] = NULL,
        [BODY_MALFORMED] = "the body is not of its type's syntax",
        [BODY_CUT] = "the body ends too early",
        [BODY_TRAILING] = "something stands behind the body's document",
        [BODY_MARKED] = "the body begins with a byte order mark",
        [BODY_TOO_DEEP] = "the body is nested too deeply",
        [BODY_DUPLICATE] = "the body has two members of one name",
        [BODY_PROTOTYPE] = "the body has a member __proto__",
        [BODY_NOT_UTF8] = "the body is not in UTF-8",
        [BODY_SURROGATE] = "the body has half of a surrogate pair",
        [BODY_NUL] = "the body has NUL in a name or value",
        [BODY_TOO_LARGE] = "the body is larger than what is inspected",
        [BODY_TOO_MANY] = "the body has more names or values than are inspected",
        [BODY_UNREAD] = "the body is of a type that is not inspected",
        [BODY_NOT_GRAPHQL] = "the body is no GraphQL request with one certain operation",
        [BODY_NOT_RPC] = "the body is no JSON-RPC 2.0",
    };
    return texts[f];
}
