/*
 * Patterns of hosts and paths. Whole labels and whole segments only: `*` is one
 * of them, `**` one or more (docs/policy.md).
 */
#ifndef POLICY_PATTERN_H
#define POLICY_PATTERN_H

#include "policy/authority.h"
#include "policy/target.h"

enum host_reach { REACH_EXACT, REACH_ONE, REACH_MANY };

struct host_pattern {
    enum host_reach reach;
    uint32_t mark;         /* a hash of base.host: unequal marks are unequal hosts */
    size_t base_n;         /* bytes of base.host */
    struct authority base; /* what stands behind the star; its port is not used */
};

/* A host as patterns are asked about it, made once for all of them. */
struct host_facts {
    enum host_kind kind;
    struct view host;
    struct view above; /* of a name, what stands behind its first dot */
    uint32_t mark, above_mark;
};

/* ERR_BAD: *why is a static sentence fragment. */
MUST_USE int host_pattern_parse(struct view text, struct host_pattern *out, const char **why);
/* The facts point into a. */
struct host_facts host_facts_of(const struct authority *a);
bool host_pattern_match(const struct host_pattern *p, const struct host_facts *h);
/* Whether there is a host that both match. */
bool host_patterns_overlap(const struct host_pattern *a, const struct host_pattern *b);

enum { PATH_PARTS_MAX = 64 };

struct path_pattern {
    struct view text;
    bool final_slash;
    bool open; /* ends in `**`: a final slash of the path makes no difference */
};

/*
 * The pattern keeps views into text, which must be written the way
 * target_parse writes paths. ERR_BAD: *why is a static sentence fragment.
 */
MUST_USE int path_pattern_parse(struct view text, struct path_pattern *out, const char **why);
/*
 * Compares with t->path, segment by segment, with case. widely is for refusals, which cover what a
 * server may take for the same: case, a final slash, percent-encodings, and `;parameters`, a `.format`,
 * dots and blanks behind a segment make no difference.
 */
bool path_pattern_match(const struct path_pattern *p, const struct target *t, bool widely);

#endif
