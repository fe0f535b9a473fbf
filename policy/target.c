#include "policy/target.h"

#include "policy/path_segment.h"

#include <assert.h>

static int refuse(const char **why, const char *text) {
    if (why)
        *why = text;
    return ERR_BAD;
}

/* ---- percent-encodings ---- */

enum { NOT_ENCODED = -1, BADLY_ENCODED = -2 };

/* The byte that "%XX" at i stands for. */
static int encoded_at(struct view v, size_t i) {
    if (i >= v.n || v.p[i] != '%')
        return NOT_ENCODED;
    if (v.n - i < 3)
        return BADLY_ENCODED;
    int high = hex_value(v.p[i + 1]), low = hex_value(v.p[i + 2]);
    return high < 0 || low < 0 ? BADLY_ENCODED : high << 4 | low;
}

/* RFC 3986 2.3 */
static bool is_unreserved(uint8_t c) {
    return is_alnum(c) || c == '-' || c == '.' || c == '_' || c == '~';
}

static bool is_control(int c) {
    return c >= 0 && (c < 0x20 || c == 0x7f);
}

/* Writes the canonical spelling of an encoded byte; how many bytes that took. */
static size_t put_encoded(uint8_t c, uint8_t *to) {
    static const char digits[] = "0123456789ABCDEF";
    if (is_unreserved(c)) {
        to[0] = c;
        return 1;
    }
    to[0] = '%';
    to[1] = (uint8_t)digits[c >> 4];
    to[2] = (uint8_t)digits[c & 15];
    return 3;
}

/*
 * A first byte of UTF-8 whose sequence could have been shorter. Some servers
 * read "%C0%AF" as '/', so the path would have two readings.
 */
static bool is_overlong(int first, int second) {
    switch (first) {
    case 0xc0:
    case 0xc1:
        return second >= 0x80 && second < 0xc0;
    case 0xe0:
        return second >= 0x80 && second < 0xa0;
    case 0xf0:
        return second >= 0x80 && second < 0x90;
    case 0xf8:
        return second >= 0x80 && second < 0x88;
    case 0xfc:
        return second >= 0x80 && second < 0x84;
    default:
        return false;
    }
}

bool percent_decode_into(struct view v, bool plus, uint8_t *out, size_t size,
                         struct view *decoded) {
    size_t n = 0;
    for (size_t i = 0; i < v.n; i++) {
        int c = encoded_at(v, i);
        if (c == BADLY_ENCODED || n == size)
            return false;
        if (c >= 0)
            i += 2;
        else
            c = plus && v.p[i] == '+' ? ' ' : v.p[i];
        out[n++] = (uint8_t)c;
    }
    *decoded = view_of(out, n);
    return true;
}

int percent_decode(struct view v, bool plus, struct buf *out) {
    uint8_t *to = buf_reserve(out, v.n);
    struct view decoded;
    if (v.n > 0 && !to)
        return ERR_LIMIT;
    if (!percent_decode_into(v, plus, to, v.n, &decoded))
        return ERR_BAD;
    buf_commit(out, decoded.n);
    return 0;
}

/* ---- the part before '?' and the part behind it ---- */

struct writer {
    uint8_t *p; /* has room for what is written: canonical is never longer than raw */
    size_t n;
    bool slashes, slashed; /* an encoded slash may stand in the path; one does */
};

/* Raw bytes that no target may hold (RFC 9112 3.2.1, RFC 3986 3.5). */
static int check_raw(struct view raw, const char **why) {
    for (size_t i = 0; i < raw.n; i++) {
        uint8_t c = raw.p[i];
        if (c < 0x21 || c > 0x7e)
            return refuse(why, "a byte is a space, a control or outside ASCII");
        if (c == '#')
            return refuse(why, "a fragment does not belong in a request");
        if (c == '\\')
            return refuse(why, "a backslash reads as '/' to some servers");
        if (encoded_at(raw, i) == BADLY_ENCODED)
            return refuse(why, "a percent-encoding is malformed");
    }
    return 0;
}

/* Whether "/." at i is a whole segment, which says nothing (RFC 3986 5.2.4). */
static bool is_single_dot(struct view raw, size_t i) {
    return view_starts(view_skip(raw, i), VIEW("/.")) && (i + 2 == raw.n || raw.p[i + 2] == '/');
}

static int rewrite_path(struct view raw, struct writer *w, const char **why) {
    for (size_t i = 0; i < raw.n; i++) {
        int c = encoded_at(raw, i);
        if (is_single_dot(raw, i)) {
            /* The '/' behind it comes next; at the end its own stays. */
            i++;
            if (i + 1 == raw.n)
                w->p[w->n++] = '/';
            continue;
        }
        if (c == NOT_ENCODED) {
            w->p[w->n++] = raw.p[i];
            continue;
        }
        if (is_control(c))
            return refuse(why, "the path holds an encoded control character");
        if (c == '\\' || (c == '/' && !w->slashes))
            return refuse(why, "the path holds an encoded slash or backslash");
        w->slashed = w->slashed || c == '/';
        if (is_overlong(c, encoded_at(raw, i + 3)))
            return refuse(why, "the path holds an overlong form of UTF-8");
        w->n += put_encoded((uint8_t)c, w->p + w->n);
        i += 2;
    }
    return 0;
}

/* A value may hold line ends and tabs, as texts of queries do; a name may not. */
static bool is_refused_in_query(int c, bool in_value) {
    bool blank = c == '\t' || c == '\r' || c == '\n';
    return is_control(c) && !(in_value && blank);
}

static int rewrite_query(struct view raw, struct writer *w, const char **why) {
    bool in_value = false;
    for (size_t i = 0; i < raw.n; i++) {
        int c = encoded_at(raw, i);
        if (c == NOT_ENCODED) {
            in_value = raw.p[i] == '=' || (in_value && raw.p[i] != '&');
            w->p[w->n++] = raw.p[i];
            continue;
        }
        if (is_refused_in_query(c, in_value))
            return refuse(why, "the query holds an encoded control character");
        w->n += put_encoded((uint8_t)c, w->p + w->n);
        i += 2;
    }
    return 0;
}

/* ---- segments ---- */

/* "%25" before two hexadecimal digits decodes to another encoding. */
static bool holds_double_encoding(struct view path) {
    for (size_t at; (at = view_search(path, VIEW("%25"))) < path.n;) {
        path = view_skip(path, at + 3);
        if (path.n >= 2 && hex_value(path.p[0]) >= 0 && hex_value(path.p[1]) >= 0)
            return true;
    }
    return false;
}

/* A segment without its parameters, which some servers cut off before they resolve dots. */
static struct view segment_name(struct view segment) {
    struct view name = view_head(segment, view_find(segment, ';'));
    return view_head(name, view_search(name, VIEW("%3B")));
}

/*
 * What servers read as a dot, a slash, a blank or the end of a name, once they have decoded, folded
 * (NFKC, code pages of Windows) or parsed it again; besides the blanks of path_segment_unpadded.
 */
static const struct reading {
    const char *text;
    char means;
} readings[] = {
    {".", '.'},         {"%EF%BC%8E", '.'}, {"%EF%B9%92", '.'}, {"%E2%80%A4", '.'},
    {"%E2%80%A5", '.'}, {"%E2%80%A6", '.'}, {"%2F", '/'},       {"%EF%BC%8F", '/'},
    {"%EF%BC%BC", '/'}, {"%E2%81%84", '/'}, {"%E2%88%95", '/'}, {";", ';'},
    {"%3B", ';'},       {"%3F", ';'},       {"%23", ';'},
};

/* The next of these, or all blanks that come next; what is none of them is one byte that means 0. */
static char next_reading(struct view *rest) {
    struct view unpadded = path_segment_unpadded(*rest);
    if (unpadded.n < rest->n) {
        *rest = unpadded;
        return ' ';
    }
    for (size_t i = 0; i < sizeof readings / sizeof *readings; i++) {
        struct view text = view_str(readings[i].text);
        if (view_starts(*rest, text)) {
            *rest = view_skip(*rest, text.n);
            return readings[i].means;
        }
    }
    *rest = view_skip(*rest, 1);
    return 0;
}

/* Whether a part of the segment is dots, and perhaps blanks, which servers strip. */
static bool means_dots(struct view segment) {
    bool dots = false, others = false;
    if (view_find(segment, '%') == segment.n && segment.p[0] != '.' && segment.p[0] != '+')
        return false;
    while (segment.n > 0) {
        char c = next_reading(&segment);
        bool ends = c == '/' || c == ';';
        if (ends && dots && !others)
            return true;
        dots = c == '.' || (dots && c != '/');
        others = c == 0 || c == ';' || (others && c != '/');
    }
    return dots && !others;
}

static int check_name(struct view segment, bool *parameters, const char **why) {
    struct view name = segment_name(segment);
    *parameters = *parameters || name.n < segment.n;
    if (name.n == 0)
        return refuse(why, "a path segment is empty");
    return 0;
}

/* A server may part it at encoded slashes, too. */
static int check_segment(struct view segment, bool *parameters, const char **why) {
    struct view rest = segment;
    if (segment.n > 0 && means_dots(segment))
        return refuse(why, "the path holds a dot segment");
    for (size_t at; (at = view_search(rest, VIEW("%2F"))) < rest.n; rest = view_skip(rest, at + 3))
        if (check_name(view_head(rest, at), parameters, why) != 0)
            return ERR_BAD;
    return check_name(rest, parameters, why);
}

static int check_segments(struct target *t, size_t max_segments, const char **why) {
    struct view rest = view_skip(t->path, 1);
    while (rest.n > 0) {
        t->trailing_slash = view_find(rest, '/') == rest.n - 1;
        if (check_segment(view_cut(&rest, '/'), &t->parameters, why) != 0)
            return ERR_BAD;
        if (t->n_segments == max_segments) {
            (void)refuse(why, "the path has too many segments");
            return ERR_LIMIT;
        }
        t->n_segments++;
    }
    return 0;
}

/* ---- the whole ---- */

static int rewrite(struct view raw, size_t max_segments, struct writer *w, struct target *t,
                   const char **why) {
    struct view query = raw, path = view_cut(&query, '?');
    t->has_query = path.n < raw.n;
    if (check_raw(raw, why) != 0)
        return ERR_BAD;
    if (path.n == 0)
        path = VIEW("/");
    if (path.p[0] != '/')
        return refuse(why, "the path does not start with '/'");
    if (rewrite_path(path, w, why) != 0)
        return ERR_BAD;
    t->path = view_of(w->p, w->n);
    if (holds_double_encoding(t->path))
        return refuse(why, "the path is percent-encoded twice");
    int rc = check_segments(t, max_segments, why);
    if (rc != 0 || !t->has_query)
        return rc;
    w->p[w->n++] = '?';
    size_t start = w->n;
    rc = rewrite_query(query, w, why);
    t->query = view_of(w->p + start, w->n - start);
    return rc;
}

static int parse(struct view raw, size_t max_segments, bool slashes, struct buf *out,
                 struct target *t, const char **why) {
    assert(max_segments <= SEGMENTS_MAX);
    struct target parsed = {0};
    struct writer w = {.p = buf_room(out) > raw.n ? buf_reserve(out, raw.n + 1) : NULL,
                       .slashes = slashes};
    if (!w.p) {
        (void)refuse(why, "the target is too long");
        return ERR_LIMIT;
    }
    int rc = rewrite(raw, max_segments, &w, &parsed, why);
    if (rc != 0)
        return rc;
    buf_commit(out, w.n);
    parsed.encoded_slash = w.slashed;
    *t = parsed;
    return 0;
}

int target_parse(struct view raw, size_t max_segments, struct buf *out, struct target *t,
                 const char **why) {
    return parse(raw, max_segments, false, out, t, why);
}

int target_parse_slashed(struct view raw, size_t max_segments, struct buf *out, struct target *t,
                         const char **why) {
    return parse(raw, max_segments, true, out, t, why);
}

bool target_segment(struct view *rest, struct view *segment) {
    if (rest->n < 2 || rest->p[0] != '/')
        return false;
    *rest = view_skip(*rest, 1);
    *segment = view_head(*rest, view_find(*rest, '/'));
    *rest = view_skip(*rest, segment->n);
    return true;
}

bool target_pair(struct view *rest, struct view *name, struct view *value) {
    while (rest->n > 0) {
        struct view pair = view_cut(rest, '&');
        if (pair.n == 0)
            continue;
        *name = view_cut(&pair, '=');
        *value = pair;
        return true;
    }
    return false;
}
