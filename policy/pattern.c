#include "policy/pattern.h"

#include <string.h>

/* ---- hosts ---- */

/* FNV-1a: only to pass over most unequal hosts without comparing them. */
static uint32_t mark_of(struct view v) {
    uint32_t hash = 2166136261u;
    for (size_t i = 0; i < v.n; i++)
        hash = (hash ^ v.p[i]) * 16777619u;
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
    out->mark = mark_of(base_of(out));
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
    h.mark = mark_of(h.host);
    if (a->kind != HOST_NAME)
        return h;
    h.above = view_skip(h.host, view_find(h.host, '.') + 1);
    h.above_mark = mark_of(h.above);
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

static int check_parts(struct path_pattern *p, const char **why) {
    struct view rest = p->text, part;
    size_t n = 0;
    for (; next_segment(&rest, &part); n++) {
        p->open = is_many(part) && !p->final_slash;
        if (!is_one(part) && !is_many(part) && view_find(part, '*') < part.n) {
            *why = "a star stands for whole segments";
            return ERR_BAD;
        }
    }
    if (n > PATH_PARTS_MAX) {
        *why = "a pattern of more than 64 segments";
        return ERR_BAD;
    }
    return 0;
}

int path_pattern_parse(struct view text, struct path_pattern *out, const char **why) {
    *out = (struct path_pattern){.text = text, .final_slash = has_final_slash(text)};
    if (text.n == 0 || text.p[0] != '/') {
        *why = "a path begins with '/'";
        return ERR_BAD;
    }
    if (view_find(text, '?') < text.n) {
        *why = "the query is not part of a path";
        return ERR_BAD;
    }
    struct buf canonical;
    struct target t;
    buf_init(&canonical, text.n + 1);
    *why = "a path that is too long";
    int err = target_parse(text, SEGMENTS_MAX, &canonical, &t, why);
    if (err == 0 && !view_equal(t.path, text)) {
        *why = "not in canonical form: no segment '.', unreserved characters not encoded, digits "
               "in upper case";
        err = ERR_BAD;
    }
    buf_free(&canonical);
    return err != 0 ? ERR_BAD : check_parts(out, why);
}

/* ---- what a segment means to a server that decodes it ---- */

/* The next byte, decoded. What is not "%XX" stands for itself. */
static uint8_t take_decoded(struct view *rest) {
    size_t n = 1;
    uint8_t c = rest->p[0];
    int high = rest->n > 2 ? hex_value(rest->p[1]) : -1;
    int low = rest->n > 2 ? hex_value(rest->p[2]) : -1;
    if (c == '%' && high >= 0 && low >= 0) {
        c = (uint8_t)(high << 4 | low);
        n = 3;
    }
    *rest = view_skip(*rest, n);
    return c;
}

/* Whether servers are known to strip this from the end of a segment: parameters, a format, dots, blanks. */
static bool is_stripped(struct view tail) {
    while (tail.n > 0) {
        uint8_t c = take_decoded(&tail);
        if (c == ';' || c == '.')
            return true;
        if (c != ' ')
            return false;
    }
    return true;
}

/* Whether a server may take the segment for part. */
static bool means_part(struct view part, struct view segment) {
    while (part.n > 0) {
        if (segment.n == 0 || to_lower(take_decoded(&part)) != to_lower(take_decoded(&segment)))
            return false;
    }
    return is_stripped(segment);
}

static bool part_matches(struct view part, struct view segment, bool widely) {
    return is_one(part) || view_equal(part, segment) || (widely && means_part(part, segment));
}

bool path_pattern_match(const struct path_pattern *p, const struct target *t, bool widely) {
    if (t->path.n == 0 || t->path.p[0] != '/')
        return false;
    if (!widely && !p->open && p->final_slash != has_final_slash(t->path))
        return false;
    struct view parts = p->text, path = t->path, part, segment;
    /* Where to go on when the last `**` takes one segment more. */
    struct view parts_again = {NULL, 0}, path_again = {NULL, 0};
    for (;;) {
        bool part_left = next_segment(&parts, &part);
        if (!next_segment(&path, &segment))
            return !part_left;
        if (part_left && is_many(part)) {
            parts_again = parts;
            path_again = path;
            continue;
        }
        if (part_left && part_matches(part, segment, widely))
            continue;
        if (!parts_again.p || !next_segment(&path_again, &segment))
            return false;
        parts = parts_again;
        path = path_again;
    }
}
