/*
 * Reads a request's body for rules: what they ask of it, as facts (policy/body_facts.h).
 * What inspect does with a body; expectations of a policy read theirs by it, too. Pure.
 *
 * Facts are certain or there are none: whatever two servers could read differently makes the body
 * unclear (policy/json_read.h, form_read.h), or the protocol unknown (rpc_read.h, graphql.h).
 */
#ifndef POLICY_BODY_READ_H
#define POLICY_BODY_READ_H

#include "policy/body_facts.h"
#include "policy/body_fault.h"

enum body_source {
    BODY_SOURCE_JSON,
    BODY_SOURCE_FORM,
    BODY_SOURCE_QUERY, /* no body: GraphQL in the target's query */
};

/*
 * By a Content-Type's value: application/json or any type with +json; application/x-www-form-urlencoded; at
 * most with the parameter charset=utf-8. False: such bodies are not read, BODY_UNREAD.
 */
bool body_source_of(struct view type, enum body_source *out);

struct body_wants {
    const struct view *pointers; /* RFC 6901, `*` any */
    size_t n_pointers;
    bool graphql, rpc;
    uint64_t limit; /* bytes */
};

struct body_read;

/* Copies the pointers. ERR_BAD, ERR_LIMIT: not such as can be asked for; ERR_MEMORY. */
MUST_USE int body_read_new(enum body_source source, const struct body_wants *wants,
                           struct body_read **out);
void body_read_free(struct body_read *r);
/* False: what is known is final, the rest need not be fed. */
bool body_read_feed(struct body_read *r, struct view piece);
/*
 * The body is complete. Values have the index of the pointer as it was asked for. The facts stand until r is freed.
 */
const struct body_facts *body_read_end(struct body_read *r);
/* After the end: why the facts are unclear, or the protocol that was asked for is not known. */
enum body_fault body_read_fault(const struct body_read *r);

#endif
