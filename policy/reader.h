/*
 * What the files of the policy's reader share. Internal to policy/.
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
    CREDENTIALS_MAX = WATCHED_MAX, /* of one service */
    CONDITIONS_MAX = 64,           /* of one line */
    VALUES_MAX = 1024,             /* in one list */
    POINTERS_MAX = 4096,
    FILES_MAX = 64,
    FILE_NAME_MAX = 256,
};

struct policy_source {
    struct policy *policy;
    /* where the next of each list goes */
    struct service **services;
    struct guard **guards;
    struct sandbox **sandboxes;
    struct expectation **expectations;
    struct host_rule **hosts;
    struct range_rule **ranges;
    struct credential **credentials;
    struct operation **operations;
    struct mention **mentions;
    struct rule **rules, **nevers;
    struct grant **grants;
    size_t n_rules, n_ranges, n_expectations, n_credentials;
    /* the block being read */
    struct service *service;
    struct credential *credential;
    struct rule *rule;
    struct condition **conditions;
    size_t n_condition_lines;
    uint64_t methods; /* that a rule may name */
    /* the file being read */
    const struct policy_files *files;
    enum layer layer;
    const char *file, *names[FILES_MAX];
    size_t n_files, depth;
    const char *open[FILES_MAX]; /* files inside of which it is included, depth of them */
};

/* Each reads what stands behind its keyword, or the whole statement where there is none. */
int read_service(void *source, struct lexer *l, const struct token *at);
int read_credential(void *source, struct lexer *l, const struct token *at);
int read_operation(void *source, struct lexer *l, const struct token *at);
int read_never(void *source, struct lexer *l, const struct token *at);
int read_guard(void *source, struct lexer *l, const struct token *at);
/* The block of conditions behind a line; the protocol before it. */
int read_protocol(struct policy_source *s, struct lexer *l);
int read_conditions(struct policy_source *s, struct lexer *l);
struct condition *add_condition(struct policy_source *s, enum condition_kind kind,
                                struct position at);
int read_sandbox(void *source, struct lexer *l, const struct token *at);
int read_expect(void *source, struct lexer *l, const struct token *at);
/* What is wrong with a pointer (RFC 6901): a sentence fragment, or NULL. */
const char *pointer_fault(struct view v);
/* Its index among those of the policy, where it is kept once; text must outlive it. ERR_BAD, ERR_MEMORY. */
MUST_USE int pointer_find(struct policy *p, struct lexer *l, struct position at, struct view text,
                          uint16_t *out);
/* Seconds since 1970 of an RFC 3339 time. ERR_BAD. */
MUST_USE int time_parse(struct view v, uint64_t *out);

/* ---- words that several of them read ---- */

/* Reports that the word t is none of those expected. Always ERR_BAD. */
int word_unknown(struct lexer *l, const struct token *t, const char *const *known, size_t n);
/* Takes one of the known words; *out is its index. `what` lists them. */
MUST_USE int word_choose(struct lexer *l, const char *what, const char *const *known, size_t n,
                         size_t *out);
/* Takes a token of RFC 9110 5.6.2 and copies it in lower case. */
MUST_USE int word_lower(struct policy_source *s, struct lexer *l, const char *what,
                        struct view *out);
/* Takes a number of bytes: digits, and K, M or G. */
MUST_USE int word_size(struct lexer *l, const char *what, uint64_t *out);
/* Takes a name and puts it at the end of a list, whose end moves. */
MUST_USE int word_mention(struct policy_source *s, struct lexer *l, const char *what,
                          struct mention ***end);
/* A list `[a, b]` of words. ERR_BAD also when a word is twice in it. */
MUST_USE int word_list(struct policy_source *s, struct lexer *l, const char *what,
                       struct view **out, size_t *n);

#endif
