/*
 * Why a request is refused: the line of an operation that comes nearest to allowing
 * it, and which of its clauses fail. By the evaluator's own functions. Pure.
 */
#ifndef POLICY_EXPLAIN_H
#define POLICY_EXPLAIN_H

#include "policy/policy.h"

enum clause {
    CLAUSE_HOST,
    CLAUSE_PORT,
    CLAUSE_TLS,
    CLAUSE_METHOD,
    CLAUSE_PATH,
    CLAUSE_CONDITION,
    CLAUSE_GRANT,
    CLAUSE_REFUSAL, /* what refuses although the line matches and is granted: the verdict's reason */
};

enum { FAILURES_MAX = 16 };

struct failure {
    enum clause clause;
    struct position at; /* file NULL: nowhere */
    char text[200];
};

/* The nearest line; operation NULL: there is none at all. */
struct nearest {
    const struct service *service;
    const struct operation *operation;
    struct position at;
    bool granted;
    struct failure failures[FAILURES_MAX]; /* in the order of enum clause */
    size_t n_failures;                     /* kept */
};

/*
 * Of all lines of operations one whose conditions are all that fails, if there is one; else, and of several, that with the fewest
 * clauses that fail, the grant left aside; of those that are equal, one for this host, then the one that agrees with more of the path, then with the method, then a granted one, then
 * the most specific. v is the verdict on f, a refusal. who: NULL, or who it is
 * instead of f->sandbox (for policy/ only).
 */
struct who;
void policy_explain(const struct policy *p, const struct who *who, const struct request_facts *f,
                    const struct verdict *v, struct nearest *out);
const char *clause_word(enum clause c);
/* Whether something fails, and only such clauses: bits 1 << enum clause. */
bool nearest_fails_only(const struct nearest *n, unsigned clauses);

#endif
