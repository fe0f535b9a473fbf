/*
 * What a comparison of two policies has in hand, for diff.c (which asks and tells) and diff_gather.c
 * (which gathers what must be asked at a place).
 */
#ifndef POLICY_DIFF_STATE_H
#define POLICY_DIFF_STATE_H

#include "policy/diff.h"
#include "policy/diff_places.h"
#include "policy/path_classes.h"
#include "policy/samples.h"

enum { METHOD_CLASSES_MAX = 64 };

/* What makes two differences one. */
struct key {
    size_t sandbox, mode;
    enum diff_kind kind;
    enum reason reasons[2];
    struct position at[2];
};

/* The services of a policy that cover the place in hand, in their order. */
struct side {
    const struct service *at[SERVICES_MAX];
    unsigned level[SERVICES_MAX];
    size_t n;
};

/* Somebody with rights in both policies; not known: has none. */
struct somebody {
    struct who who[2];
    bool known[2];
    bool fares_alike;          /* at the place in hand */
    bool fares_alike_in_class; /* of paths */
};

struct diff {
    const struct policy *p[2];
    void (*found)(void *ctx, const struct diff_found *f);
    void *ctx;
    struct diff_result *result;
    struct arena arena;
    struct diff_hosts hosts;
    struct diff_sandboxes sandboxes;
    struct key *keys;
    size_t n_keys;
    struct somebody *who; /* of each in sandboxes */
    bool same_blocks, failed;
    struct samples samples;
    struct sample_request requests[2];
    /* the place in hand */
    struct authority authority;
    struct side sides[2];
    struct watched watched[2];
    bool clear, observes, same_heads, bodies;
    struct path_words words;
    struct class_rule *rules;
    size_t n_rules, max_rules, n_allowing;
    uint64_t methods[METHOD_CLASSES_MAX];
    size_t n_methods;
};

/* The result is not the whole difference. why: a constant text; the first one is kept. */
void diff_not_whole(struct diff *d, const char *why);
/* One with operations, as all that share a place say the same of its reach and credentials; NULL: none. */
const struct service *diff_speaker(const struct side *side);

/*
 * For the place in hand, whose sides are found: words, lines, `clear` and `bodies`, and classes of methods.
 * Says what cannot be compared whole. On an error d->failed.
 */
void diff_gather(struct diff *d);
/* Names of sandboxes and hosts which have what stands for "anything else". */
void diff_look_for_names(struct diff *d, const struct policy *p);

#endif
