#include "policy/pattern.h"

#include "policy/path_segment.h"

#include <string.h>

/* ---- hosts ---- */

/* FNV-1a: only to pass over most unequal hosts without comparing them. */
uint32_t host_mark(struct view host) {
    uint32_t hash = 2166136261u;
    for (size_t i = 0; i < host.n; i++)
        hash = (hash ^ host.p[i]) * 16777619u;
    return hash;
}

static struct view base_of(const struct host_pattern *p) {
    return view_of(p->base.host, p->base_n);
}

int host_pattern_parse(struct view text, struct host_pattern *out, const char **why) {
    *out = (struct host_pattern){.reach = REACH_EXACT};
    struct view base = text;
    if (view_equal(text, VIEW("*")) || view_equal(text, VIEW("**"))) {
        *why = "a star over everything is not permitted";
        return ERR_BAD;
    }
    if (view_starts(text, VIEW("**."))) {
        out->reach = REACH_MANY;
        base = view_skip(text, 3);
    } else if (view_starts(text, VIEW("*."))) {
        out->reach = REACH_ONE;
        base = view_skip(text, 2);
    }
    if (view_find(base, '*') < base.n) {
        *why = "a star stands for whole labels, at the beginning only";
        return ERR_BAD;
    }
    if (authority_parse_host(base, 443, &out->base, why) != 0)
        return ERR_BAD;
    out->base_n = strlen(out->base.host);
    out->mark = host_mark(base_of(out));
    if (out->reach == REACH_EXACT)
        return 0;
    if (out->base.kind != HOST_NAME) {
        *why = "a star before an address";
        return ERR_BAD;
    }
    return 0;
}

struct host_facts host_facts_of(const struct authority *a) {
    struct host_facts h = {.kind = a->kind, .host = view_str(a->host)};
    h.mark = host_mark(h.host);
    if (a->kind != HOST_NAME)
        return h;
    h.above = view_skip(h.host, view_find(h.host, '.') + 1);
    h.above_mark = host_mark(h.above);
    return h;
}

/* Whether host is labels, a dot, and base. */
static bool is_below(struct view host, struct view base) {
    return host.n > base.n + 1 && host.p[host.n - base.n - 1] == '.' && view_ends(host, base);
}

bool host_pattern_match(const struct host_pattern *p, const struct host_facts *h) {
    switch (p->reach) {
    case REACH_EXACT:
        return p->mark == h->mark && p->base.kind == h->kind && view_equal(h->host, base_of(p));
    case REACH_ONE:
        return p->mark == h->above_mark && view_equal(h->above, base_of(p));
    case REACH_MANY:
        return h->kind == HOST_NAME && is_below(h->host, base_of(p));
    }
    return false;
}

bool host_patterns_overlap(const struct host_pattern *a, const struct host_pattern *b) {
    struct host_facts facts = host_facts_of(b->reach == REACH_EXACT ? &b->base : &a->base);
    if (b->reach == REACH_EXACT)
        return host_pattern_match(a, &facts);
    if (a->reach == REACH_EXACT)
        return host_pattern_match(b, &facts);
    if (view_equal(base_of(a), base_of(b)))
        return true;
    /* `x.a` is also `y.b`, for a below b, only if b's star may cover more than one label. */
    return (b->reach == REACH_MANY && is_below(base_of(a), base_of(b))) ||
           (a->reach == REACH_MANY && is_below(base_of(b), base_of(a)));
}

bool host_pattern_covers(const struct host_pattern *a, const struct host_pattern *b) {
    struct host_facts base = host_facts_of(&b->base);
    if (b->reach == REACH_EXACT || a->reach == REACH_EXACT)
        return b->reach == REACH_EXACT && host_pattern_match(a, &base);
    if (view_equal(base_of(a), base_of(b)))
        return a->reach >= b->reach;
    return a->reach == REACH_MANY && is_below(base_of(b), base_of(a));
}

/* ---- paths ---- */

/* The next segment; a final slash is none. */
static bool next_segment(struct view *rest, struct view *segment) {
    if (rest->n < 2)
        return false;
    *segment = view_skip(*rest, 1);
    *segment = view_head(*segment, view_find(*segment, '/'));
    *rest = view_skip(*rest, 1 + segment->n);
    return true;
}

static bool has_final_slash(struct view path) {
    return path.n > 1 && path.p[path.n - 1] == '/';
}

static bool is_one(struct view part) {
    return part.n == 1 && part.p[0] == '*';
}

static bool is_many(struct view part) {
    return part.n == 2 && part.p[0] == '*' && part.p[1] == '*';
}

/* `{name}`; what stands behind the name is in *rest. */
static bool is_template(struct view part, struct view *rest) {
    size_t n = 1;
    if (part.n < 3 || part.p[0] != '{' || part.p[part.n - 1] != '}')
        return false;
    while (is_alnum(part.p[n]) || part.p[n] == '_' || part.p[n] == '-')
        n++;
    *rest = view_slice(part, n, part.n - 1);
    return n > 1;
}

bool path_pattern_part(const struct path_pattern *p, struct view *rest, struct view *part,
                       enum part_kind *kind) {
    struct view tail;
    if (!next_segment(rest, part))
        return false;
    *kind = is_one(*part) ? PART_ONE : is_many(*part) ? PART_MANY : PART_LITERAL;
    if (p->templates && is_template(*part, &tail))
        *kind = tail.n == 0 ? PART_ONE : PART_NUMBER;
    return true;
}

static const char *part_fault(const struct path_pattern *p, struct view part, enum part_kind kind) {
    struct view tail;
    if (kind == PART_LITERAL && view_find(part, '*') < part.n)
        return "a star stands for whole segments";
    if (!p->templates)
        return NULL;
    if (kind == PART_LITERAL && (view_find(part, '{') < part.n || view_find(part, '}') < part.n))
        return "a template is a whole segment, '{name}' or '{name:int}'";
    if (kind == PART_NUMBER && is_template(part, &tail) && !view_equal(tail, VIEW(":int")))
        return "behind the name of a template stands nothing, or ':int'";
    return NULL;
}

static int check_parts(struct path_pattern *p, const char **why) {
    struct view rest = p->text, part;
    enum part_kind kind;
    size_t n = 0;
    for (; path_pattern_part(p, &rest, &part, &kind); n++) {
        const char *fault = part_fault(p, part, kind);
        p->open = kind == PART_MANY && !p->final_slash;
        if (fault) {
            *why = fault;
            return ERR_BAD;
        }
    }
    if (n > PATH_PARTS_MAX) {
        *why = "a pattern of more than 64 segments";
        return ERR_BAD;
    }
    return 0;
}

int path_pattern_parse(struct view text, bool templates, struct path_pattern *out,
                       const char **why) {
    *out = (struct path_pattern){
        .text = text, .templates = templates, .final_slash = has_final_slash(text)};
    if (text.n == 0 || text.p[0] != '/') {
        *why = "a path begins with '/'";
        return ERR_BAD;
    }
    if (view_find(text, '?') < text.n) {
        *why = "the query is not part of a path";
        return ERR_BAD;
    }
    struct buf canonical;
    struct target t = {.n_segments = 0};
    buf_init(&canonical, text.n + 1);
    *why = "a path that is too long";
    int err = target_parse_slashed(text, SEGMENTS_MAX, &canonical, &t, why);
    if (err == 0 && !view_equal(t.path, text)) {
        *why = "not in canonical form: no segment '.', unreserved characters not encoded, digits "
               "in upper case";
        err = ERR_BAD;
    }
    out->encoded_slash = t.encoded_slash;
    out->parameters = t.parameters;
    buf_free(&canonical);
    return err != 0 ? ERR_BAD : check_parts(out, why);
}

/* ---- parts and segments ---- */

/* Whether the segment is part, but for what servers strip behind it. */
static bool begins_with_part(struct view part, struct view segment) {
    while (part.n > 0) {
        if (segment.n == 0 ||
            to_lower(path_segment_decoded(&part)) != to_lower(path_segment_decoded(&segment)))
            return false;
    }
    return path_segment_is_stripped(segment);
}

/* Whether a server may take the segment for part. */
static bool means_part(struct view part, struct view segment) {
    return begins_with_part(part, segment) ||
           begins_with_part(part, path_segment_unpadded(segment));
}

bool path_part_match(const struct path_pattern *p, enum part_kind kind, struct view part,
                     struct view segment, bool widely) {
    switch (kind) {
    case PART_ONE:
    case PART_MANY:
        return true;
    case PART_NUMBER:
        return path_segment_is_number(segment, widely);
    case PART_LITERAL:
        break;
    }
    if (widely)
        return means_part(part, segment);
    return p->fold ? view_equal_nocase(part, segment) : view_equal(part, segment);
}

bool path_pattern_ends(const struct path_pattern *p, const struct target *t, bool widely) {
    return widely || p->open || p->final_slash == has_final_slash(t->path);
}

bool path_pattern_match(const struct path_pattern *p, const struct target *t, bool widely) {
    if (t->path.n == 0 || t->path.p[0] != '/' || !path_pattern_ends(p, t, widely))
        return false;
    struct view parts = p->text, path = t->path, part, segment;
    enum part_kind kind;
    /* Where to go on when the last `**` takes one segment more. */
    struct view parts_again = {NULL, 0}, path_again = {NULL, 0};
    for (;;) {
        bool part_left = path_pattern_part(p, &parts, &part, &kind);
        if (!next_segment(&path, &segment))
            return !part_left;
        if (part_left && kind == PART_MANY) {
            parts_again = parts;
            path_again = path;
            continue;
        }
        if (part_left && path_part_match(p, kind, part, segment, widely))
            continue;
        if (!parts_again.p || !next_segment(&path_again, &segment))
            return false;
        parts = parts_again;
        path = path_again;
    }
}

/* ---- two patterns ---- */

struct parts {
    struct view text[PATH_PARTS_MAX];
    enum part_kind kind[PATH_PARTS_MAX];
    size_t n;
};

static void take_parts(const struct path_pattern *p, struct parts *out) {
    struct view rest = p->text;
    out->n = 0;
    while (out->n < PATH_PARTS_MAX &&
           path_pattern_part(p, &rest, &out->text[out->n], &out->kind[out->n]))
        out->n++;
}

/* Whether one segment is both, fold: without case. */
static bool parts_meet(const struct parts *a, size_t i, const struct parts *b, size_t k,
                       bool fold) {
    if (a->kind[i] == PART_LITERAL && b->kind[k] == PART_LITERAL)
        return fold ? view_equal_nocase(a->text[i], b->text[k])
                    : view_equal(a->text[i], b->text[k]);
    if (a->kind[i] == PART_LITERAL && b->kind[k] == PART_NUMBER)
        return path_segment_is_number(a->text[i], false);
    if (a->kind[i] == PART_NUMBER && b->kind[k] == PART_LITERAL)
        return path_segment_is_number(b->text[k], false);
    return true;
}

bool path_patterns_overlap(const struct path_pattern *a, const struct path_pattern *b) {
    /* meets[i][k]: some path ends where i parts of a and k of b have been taken, the last of both by its last segment. */
    bool meets[PATH_PARTS_MAX + 1][PATH_PARTS_MAX + 1] = {{true}};
    struct parts x, y;
    bool fold = a->fold || b->fold;
    if (!a->open && !b->open && a->final_slash != b->final_slash)
        return false;
    take_parts(a, &x);
    take_parts(b, &y);
    for (size_t i = 1; i <= x.n; i++)
        for (size_t k = 1; k <= y.n; k++) {
            bool before = meets[i - 1][k - 1] || (x.kind[i - 1] == PART_MANY && meets[i][k - 1]) ||
                          (y.kind[k - 1] == PART_MANY && meets[i - 1][k]);
            meets[i][k] = before && parts_meet(&x, i - 1, &y, k - 1, fold);
        }
    return meets[x.n][y.n];
}

/* Whether each segment that part k of b stands for is one that part i of a takes. */
static bool part_covers(const struct path_pattern *p, const struct parts *a, size_t i,
                        const struct parts *b, size_t k, bool widely) {
    switch (a->kind[i]) {
    case PART_MANY:
        return true;
    case PART_ONE:
        return b->kind[k] != PART_MANY;
    default:
        break;
    }
    if (b->kind[k] == PART_LITERAL)
        return path_part_match(p, a->kind[i], a->text[i], b->text[k], widely);
    return a->kind[i] == PART_NUMBER && b->kind[k] == PART_NUMBER;
}

bool path_pattern_covers(const struct path_pattern *a, const struct path_pattern *b, bool widely) {
    /* covers[i][k]: i parts of a take whatever k parts of b stand for. */
    bool covers[PATH_PARTS_MAX + 1][PATH_PARTS_MAX + 1] = {{true}};
    struct parts x, y;
    if (!widely && !a->open && (b->open || a->final_slash != b->final_slash))
        return false;
    if (!widely && b->fold && !a->fold)
        return false;
    take_parts(a, &x);
    take_parts(b, &y);
    for (size_t i = 1; i <= x.n; i++)
        for (size_t k = 1; k <= y.n; k++) {
            bool before = covers[i - 1][k - 1] || (x.kind[i - 1] == PART_MANY && covers[i][k - 1]);
            covers[i][k] = before && part_covers(a, &x, i - 1, &y, k - 1, widely);
        }
    return covers[x.n][y.n];
}
