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
uint32_t host_mark(struct view host);
bool host_pattern_match(const struct host_pattern *p, const struct host_facts *h);
/* Whether there is a host that both match. */
bool host_patterns_overlap(const struct host_pattern *a, const struct host_pattern *b);

/* Whether a matches every host that b matches. */
bool host_pattern_covers(const struct host_pattern *a, const struct host_pattern *b);

enum { PATH_PARTS_MAX = 64 };

struct path_pattern {
    struct view text;
    bool templates; /* `{name}` and `{name:int}` are what they say, not literals */
    bool fold;      /* literals compare without case (ASCII) */
    bool final_slash;
    bool open; /* ends in `**`: a final slash of the path makes no difference */
    bool encoded_slash, parameters; /* as in struct target */
};

/* The less it matches the greater. */
enum part_kind {
    PART_MANY = 1, /* `**`: one segment or more */
    PART_ONE,      /* `*` or `{name}` */
    PART_NUMBER,   /* `{name:int}`: decimal digits */
    PART_LITERAL,
};

/*
 * The pattern keeps views into text, which must be written the way
 * target_parse writes paths; an encoded slash is permitted. ERR_BAD: *why is a static sentence fragment.
 */
MUST_USE int path_pattern_parse(struct view text, bool templates, struct path_pattern *out,
                                const char **why);
/* Walks the parts: the next one, false at the end. Start with *rest = p->text. */
bool path_pattern_part(const struct path_pattern *p, struct view *rest, struct view *part,
                       enum part_kind *kind);
/*
 * Compares with t->path, segment by segment, with case. widely is for refusals, which cover what a
 * server may take for the same: case, a final slash, percent-encodings, blanks around a segment, and `;parameters`,
 * a `.format`, dots, an encoded `?` or `#` behind it make no difference.
 */
bool path_pattern_match(const struct path_pattern *p, const struct target *t, bool widely);
/* Whether there is a path that both match, read exactly. */
bool path_patterns_overlap(const struct path_pattern *a, const struct path_pattern *b);
/*
 * Whether a, in its reading, matches every path that b matches exactly. May say false where that is hard to
 * see (several `**`).
 */
bool path_pattern_covers(const struct path_pattern *a, const struct path_pattern *b, bool widely);
/* The part of the comparison that is not about segments: the final slash. */
bool path_pattern_ends(const struct path_pattern *p, const struct target *t, bool widely);

/* Whether one part of the pattern takes the segment; a `**` does. */
bool path_part_match(const struct path_pattern *p, enum part_kind kind, struct view part,
                     struct view segment, bool widely);

#endif
