/*
 * Conditions of a rule's line: on the query, fields, type, size and body of a
 * request. Internal to policy/. Pure.
 *
 * Each is asked in one of two readings. Strictly it holds only when it is certain: there is a value, all
 * values pass, and nothing else in the request could be taken for one. Widely it holds as soon as some
 * server could see one value that passes, or a fact is missing. Operations ask strictly, never lines widely; `no`
 * turns the reading round, so that what is undecided never lets a request through.
 */
#ifndef POLICY_CONDITION_H
#define POLICY_CONDITION_H

#include "policy/value_test.h"

enum condition_kind {
    CONDITION_QUERY,      /* name, test */
    CONDITION_QUERY_ONLY, /* no parameters but those that conditions of the rule name */
    CONDITION_HEADER,     /* name, test */
    CONDITION_TYPE,       /* names: media types */
    CONDITION_SIZE,       /* limit */
    CONDITION_BODY,       /* pointer, name (its text), test */
    CONDITION_GRAPHQL,    /* kind, names: root fields, or none */
    CONDITION_RPC,        /* names: methods */
    CONDITION_MCP,        /* name: method; names: tools, or none */
    CONDITION_WEBSOCKET,
    CONDITION_GRPC, /* name: "/service/method", or "/service/" and any */
};

struct condition {
    enum condition_kind kind;
    bool no;
    bool once; /* CONDITION_QUERY: strictly, a second occurrence is refused even when equal */
    struct view name;
    struct view *names;
    size_t n_names;
    struct test test;
    enum graphql_kind graphql;
    uint16_t pointer; /* index in the policy */
    uint64_t limit;
    struct position at;
    struct condition *next;
};

bool condition_holds(const struct condition *c, const struct condition *all,
                     const struct request_facts *f, bool widely);
/* Whether it is undecided only because the body was not read. */
bool condition_wants_body(const struct condition *c, const struct request_facts *f);
/* Whether no request meets both, neither of which has `no`. May say false where that is hard to see. */
bool conditions_exclude(const struct condition *a, const struct condition *b);

#endif
