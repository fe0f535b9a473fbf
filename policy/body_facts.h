/*
 * What rules are told of a request's body. egress asks policy_body_needs what a
 * request's rules want to know; inspect reads the body and answers with these
 * facts, in its own words: it never sees a rule, and egress never parses a body.
 *
 * A fact that is not certain is no fact. Whoever makes them sets `unclear` when
 * the body cannot be read one way only; then every condition on the body fails
 * for an operation and holds for a never line.
 */
#ifndef POLICY_BODY_FACTS_H
#define POLICY_BODY_FACTS_H

#include "base/bytes.h"

/*
 * Of a JSON value (RFC 8259). BODY_TEXT is the value of a form's field, which has no type of
 * its own: "5" there is a number, a string, and equal to 5.
 */
enum body_type {
    BODY_NULL,
    BODY_BOOLEAN,
    BODY_NUMBER,
    BODY_STRING,
    BODY_TEXT,
    BODY_ARRAY,
    BODY_OBJECT,
};

/* One value that a pointer leads to; a pointer with `*` leads to many. */
struct body_value {
    uint16_t pointer; /* index of the pointer in the policy: policy_body_pointer */
    enum body_type type;
    /* a string or text decoded; a number, true and false as written; else empty */
    struct view value;
    /* a name on the way to it is the pointer's only for a reader who disregards case */
    bool alike;
    uint64_t from, to; /* of a string or text: its bytes in the body, as they were sent; else 0 */
    bool as_sent;      /* of these: they say it without an escape (policy/body_credential.h) */
};

/* GraphQL: of the operation that is selected (operationName, or the only one). */
enum graphql_kind { GRAPHQL_QUERY, GRAPHQL_MUTATION, GRAPHQL_SUBSCRIPTION };

struct graphql_facts {
    bool known;
    enum graphql_kind kind;
    const struct view *fields; /* names of root fields, not aliases; of fragments too */
    size_t n_fields;
};

/* JSON-RPC 2.0, and MCP on top of it: one call, or one of a batch. Answers that a client sends have no method. */
struct rpc_call {
    struct view method;
    struct view tool; /* params.name of tools/call; empty: none */
};

struct rpc_facts {
    bool known;
    bool batch;
    const struct rpc_call *calls;
    size_t n_calls;
};

struct body_facts {
    uint64_t size; /* bytes of content */
    /*
     * No fact is certain: duplicate members (also when spelled differently, or by case), invalid UTF-8,
     * malformed, over the limit, not of a type that is read, coded.
     */
    bool unclear;
    bool read;                       /* of a type that is: if unclear, it may hold anything */
    const char *why;                 /* unclear: a static sentence fragment */
    const struct body_value *values; /* of the pointers asked for */
    size_t n_values;
    struct graphql_facts graphql; /* where asked for */
    struct rpc_facts rpc;         /* where asked for */
};

enum { BODY_POINTERS_MAX = 64 /* asked for one request */ };

/* What is to be known of one request's body before it is judged. */
struct body_needs {
    uint16_t pointers[BODY_POINTERS_MAX]; /* indices of the policy */
    size_t n_pointers;
    bool too_many; /* of them: facts would not be complete, the body is unclear */
    bool graphql, rpc;
    bool credential; /* one may stand there */
    uint64_t limit;  /* bytes; a longer one is unclear */
};

#endif
