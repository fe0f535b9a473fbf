/*
 * What the two halves of the policy's reader share. Internal to policy/.
 */
#ifndef POLICY_READER_H
#define POLICY_READER_H

#include "policy/lexer.h"
#include "policy/rules.h"

/* Enough for anybody, and few enough that checking all pairs is quick. */
enum {
    HOSTS_MAX = 4096,
    RULES_MAX = 512,  /* in one block */
    RANGES_MAX = 256, /* of one service */
    SANDBOXES_MAX = 4096,
    EXPECTATIONS_MAX = 16384,
};

struct policy_source {
    struct policy *policy;
    /* where the next of each list goes */
    struct service **services;
    struct sandbox **sandboxes;
    struct expectation **expectations;
    struct host_rule **hosts;
    struct range_rule **ranges;
    struct operation **operations;
    struct rule **rules, **nevers;
    struct grant **grants;
    size_t n_rules, n_ranges, n_expectations;
    /* the block being read */
    struct service *service;
    uint64_t methods; /* that a rule may name */
};

/* reader_service.c: `service NAME { ... }`, the keyword is taken. */
int read_service(void *source, struct lexer *l, const struct token *at);
/* reader.c: `expect ...` inside a service or at the top level. */
int read_expect(void *source, struct lexer *l, const struct token *at);

/* Reports that the word t is none of those expected. Always ERR_BAD. */
int word_unknown(struct lexer *l, const struct token *t, const char *const *known, size_t n);

#endif
