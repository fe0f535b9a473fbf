/*
 * Requests by what conditions say of them: for the conditions of some lines, values
 * of everything that they ask about, so that between any two requests that a condition tells apart
 * there are two samples that it tells apart. For comparing policies. Internal to policy/. Pure.
 *
 * Where that is not so (docs/policy.md, "What diff compares"), `whole` is false.
 */
#ifndef POLICY_SAMPLES_H
#define POLICY_SAMPLES_H

#include "policy/rules.h"

enum { SUBJECTS_MAX = 32, SAMPLES_OF_SUBJECT = 1024, SAMPLE_FIELDS = 64, COMBINATIONS_MAX = 4096 };

enum subject_kind {
    SUBJECT_QUERY,
    SUBJECT_STRANGER, /* a parameter that nobody names */
    SUBJECT_HEADER,
    SUBJECT_TYPE,
    SUBJECT_SIZE,
    SUBJECT_BODY, /* one pointer */
    SUBJECT_GRAPHQL,
    SUBJECT_RPC,
    SUBJECT_UPGRADE,
    SUBJECT_UNREADABLE, /* a body in which nobody can tell what stands where */
};

enum sample_form {
    SAMPLE_ABSENT,
    SAMPLE_VALUE,
    SAMPLE_TWICE,   /* this value, and a second one */
    SAMPLE_ALIKE,   /* under a name that some servers take for it; perhaps a second one, too */
    SAMPLE_UNCLEAR, /* of a body: it can be read in two ways */
};

struct sample {
    enum sample_form form;
    struct view text, second; /* second without a pointer: there is none */
    enum body_type type, second_type;
    uint64_t size;
    enum graphql_kind graphql;
    const struct view *names; /* root fields, or methods of calls */
    size_t n_names;
    struct view tool;
};

struct subject {
    enum subject_kind kind;
    struct view name;
    struct sample at[SAMPLES_OF_SUBJECT];
    size_t n, chosen;
};

struct sampled_rule {
    const struct rule *rule;
    struct sampled_rule *next;
};

struct samples {
    struct arena arena;
    struct sampled_rule *rules;
    struct subject at[SUBJECTS_MAX];
    size_t n;
    bool whole, failed;
};

void samples_init(struct samples *s);
/* Adds what the rule's conditions ask about; the rule must outlive s. */
void samples_add(struct samples *s, const struct rule *r);
/* Adds lengths of bodies up to the limit and beyond. */
void samples_add_size(struct samples *s, uint64_t limit);
/* Adds bodies that matter where a credential may stand in one: of the types that can hold it, and one that reads in two ways. */
void samples_add_credential(struct samples *s);
/*
 * Leaves one sample of those that no condition tells apart, where nothing else does: they are no credentials to
 * who watches these places. After all were added, before the first is chosen.
 */
void samples_reduce(struct samples *s, const struct watched watched[2]);
/* Chooses the next combination; false when all were chosen (`whole` is false if not each of them). Begins with all absent. */
bool samples_next(struct samples *s, size_t *round);
void samples_free(struct samples *s);

/* The chosen combination as a request. */
struct sample_request {
    struct buf query; /* without '?' */
    struct field fields[SAMPLE_FIELDS];
    size_t n_fields;
    struct view type;
    uint64_t length;
    bool has_facts, websocket;
    struct rpc_call calls[SAMPLE_FIELDS];
    struct body_value values[2 * SUBJECTS_MAX];
    struct body_facts facts;
};

/*
 * A body with values has a byte where no length was chosen. The facts are those that the policy's pointers lead
 * to; without a policy they are of pointer 0.
 */
void samples_request(const struct samples *s, const struct policy *p, struct sample_request *out);
/* What of it is not in the URL, as words for a person: "header 'a: b' type a/b body /x \"1\"". */
void samples_write(const struct samples *s, struct buf *out);

#endif
