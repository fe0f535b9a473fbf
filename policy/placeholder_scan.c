#include "policy/placeholder.h"

#include "base/base64.h"
#include "base/triple.h"

#include <assert.h>
#include <string.h>

/*
 * One pass over the bytes looks, three bytes at a time, for the marker in the spellings in which it has
 * fixed bytes, for escapes that stand for a letter or digit, which nobody has an honest reason to write,
 * and for line ends that may stand inside of base64. What is found is then read character by character
 * by its spelling.
 */

/* ---- reading a core, one character at a time ---- */

enum { OTHER = -1, END = -2 }; /* what next functions give besides a character */

struct cursor {
    struct view v;
    size_t at;
    uint32_t bits; /* base64: not yet used, in the low n_bits */
    unsigned n_bits;
    bool cut; /* the last unit reached the end of v and might go on behind it */
};

enum outcome { NOTHING, FOUND, OPEN /* all right so far, but v ends */ };

static int next_raw(struct cursor *c) {
    return c->at < c->v.n ? c->v.p[c->at++] : END;
}

static int next_hex(struct cursor *c) {
    if (c->v.n - c->at < 2)
        return END;
    int high = hex_value(c->v.p[c->at]), low = hex_value(c->v.p[c->at + 1]);
    c->at += 2;
    return high < 0 || low < 0 ? OTHER : high << 4 | low;
}

/* Each second byte is NUL. Which half of a UTF-16 unit comes first shows only outside of the core. */
static int next_wide(struct cursor *c) {
    if (c->n_bits++ > 0 && c->at < c->v.n && c->v.p[c->at++] != 0)
        return OTHER;
    return next_raw(c);
}

static bool is_line_end(uint8_t c) {
    return c == '\r' || c == '\n';
}

static int next_base64(struct cursor *c) {
    while (c->n_bits < 8) {
        for (int i = 0; i < 2 && c->at < c->v.n && is_line_end(c->v.p[c->at]); i++)
            c->at++;
        if (c->at == c->v.n)
            return END;
        int value = base64_value(c->v.p[c->at++]);
        if (value < 0)
            return OTHER;
        c->bits = c->bits << 6 | (uint32_t)value;
        c->n_bits += 6;
    }
    c->n_bits -= 8;
    return c->bits >> c->n_bits & 0xff;
}

/* Digits of a base, at least one and at most max; the value, or OTHER, or END. */
static int read_digits(struct cursor *c, unsigned base, size_t max) {
    unsigned value = 0;
    size_t n = 0;
    for (; n < max && c->at < c->v.n; n++) {
        int digit = hex_value(c->v.p[c->at]);
        if (digit < 0 || (unsigned)digit >= base)
            break;
        value = value * base + (unsigned)digit;
        c->at++;
    }
    if (c->at == c->v.n && n < max)
        c->cut = true;
    if (n == 0)
        return c->cut ? END : OTHER;
    return (int)value;
}

/* "%XX" or the byte itself, also a '%' that begins no encoding. */
static int next_percent(struct cursor *c) {
    int first = next_raw(c);
    if (first != '%')
        return first;
    struct cursor behind = *c;
    int value = read_digits(&behind, 16, 2);
    if (value == END || (behind.cut && behind.at == c->at + 1))
        return END;
    if (value < 0 || behind.at != c->at + 2)
        return '%';
    *c = behind;
    return value;
}

/* Decoded once, or twice when that gives another encoding. */
static int next_percent_twice(struct cursor *c) {
    int first = next_percent(c);
    if (first != '%')
        return first;
    int high = next_percent(c), low = high == END ? END : next_percent(c);
    if (low == END)
        return END;
    if (high < 0 || low < 0)
        return OTHER;
    high = hex_value((uint8_t)high);
    low = hex_value((uint8_t)low);
    return high < 0 || low < 0 ? OTHER : high << 4 | low;
}

enum { BACKSLASHES_MAX = 4 }; /* JSON inside JSON doubles them */

static int next_backslash(struct cursor *c) {
    int byte = '\\';
    for (int i = 0; i <= BACKSLASHES_MAX && byte == '\\'; i++)
        byte = next_raw(c);
    if (byte != 'u')
        return byte == END ? END : OTHER;
    size_t start = c->at;
    int value = read_digits(c, 16, 4);
    if (c->cut)
        return END;
    return c->at - start == 4 ? value : OTHER;
}

enum { DECIMAL_MAX = 7, HEXADECIMAL_MAX = 6 };

/* RFC 1866's and HTML's numeric references; browsers do not need the ';'. */
static int next_reference(struct cursor *c) {
    c->at++;
    int byte = next_raw(c);
    if (byte != '#')
        return byte == END ? END : OTHER;
    bool hexadecimal = c->at < c->v.n && to_lower(c->v.p[c->at]) == 'x';
    if (hexadecimal)
        c->at++;
    int value = hexadecimal ? read_digits(c, 16, HEXADECIMAL_MAX) : read_digits(c, 10, DECIMAL_MAX);
    if (value >= 0 && c->at < c->v.n && c->v.p[c->at] == ';')
        c->at++;
    return value;
}

static int next_escaped(struct cursor *c) {
    if (c->at == c->v.n)
        return END;
    switch (c->v.p[c->at]) {
    case '%':
        return next_percent_twice(c);
    case '\\':
        return next_backslash(c);
    case '&':
        return next_reference(c);
    default:
        return next_raw(c);
    }
}

/* The longest spelling, "&#0000101;" for each character, must fit the tail of a stream. */
static_assert(PLACEHOLDER_CORE_SIZE * (DECIMAL_MAX + 3) < PLACEHOLDER_TAIL_SIZE, "tail too short");

static bool is_core_byte(int c) {
    return c >= 0 && c < 0x80 && is_alnum((uint8_t)c);
}

static enum outcome read_core(struct cursor c, int (*next)(struct cursor *)) {
    uint8_t core[PLACEHOLDER_CORE_SIZE];
    struct view marker = VIEW("exeat");
    for (size_t n = 0; n < sizeof core; n++) {
        int byte = next(&c);
        if (byte == END || (c.cut && !is_core_byte(byte)))
            return n < marker.n ? NOTHING : OPEN;
        if (!is_core_byte(byte) || (n < marker.n && byte != marker.p[n]))
            return NOTHING;
        core[n] = (uint8_t)byte;
    }
    return placeholder_is_core(view_of(core, sizeof core)) ? FOUND : NOTHING;
}

/* ---- the scan ---- */

enum { ESCAPE_KINDS = 3 };

struct scan {
    struct view v;
    bool found;
    size_t open;                /* where the first core begins that v cuts off, or v.n */
    size_t after[ESCAPE_KINDS]; /* how far runs with such escapes were read */
    size_t after_lines;         /* how far line ends were */
};

static void note(struct scan *s, enum outcome outcome, size_t at) {
    if (outcome == FOUND)
        s->found = true;
    if (outcome == OPEN && at < s->open)
        s->open = at;
}

/* ---- spellings with fixed bytes ---- */

enum {
    RAW = 1,
    HEX_OR_WIDE = 2,
    BASE64_0 = 4,
    BASE64_1 = 8,
    BASE64_2 = 16,
    FIXED = RAW | HEX_OR_WIDE | BASE64_0 | BASE64_1 | BASE64_2,
    ESCAPE = 32,
    LINE_END_BEHIND = 64,  /* behind what may stand before one that is of interest */
    LINE_END_BEFORE = 128, /* before what may stand behind one */
};

/*
 * What must stand behind a sign for it to begin an escape of interest: nearly all in binary data, "%2F",
 * "\\n" and "&amp;" are of none. To stand for a letter or digit, or for '%', a '%' needs '2' to '7' or another '%'.
 */
struct escape {
    uint8_t sign, low, high, other;
};
static const struct escape escapes[ESCAPE_KINDS] = {
    {'%', '2', '7', '%'}, {'\\', 'u', 'u', '\\'}, {'&', '#', '#', '#'}};

/* What stands before or behind a line end that cuts fixed bytes, or more line ends than next_base64 takes. */
enum { BEFORE = 1, BEHIND = 2 };
static const uint8_t beside_line_end[256] = {
    ['e'] = BEFORE | BEHIND,  ['6'] = BEFORE | BEHIND, ['Z'] = BEFORE | BEHIND,
    ['V'] = BEFORE | BEHIND,  ['l'] = BEFORE | BEHIND, ['x'] = BEFORE,
    ['5'] = BEFORE,           ['X'] = BEFORE,          ['4'] = BEFORE,
    ['\r'] = BEFORE | BEHIND, ['\n'] = BEFORE | BEHIND};

/*
 * The first three bytes that never change: "exeat", "6578656174", "e.x.e.a.t",
 * and in base64 "ZXhlYX", "V4ZWF0" or "leGVhd", as 0, 1 or 2 bytes of a group
 * stand before the marker; the first two of an escape; and a line end with what is beside it.
 */
static const struct triple *places(void) {
    static const uint8_t fixed[][4] = {{RAW, 'e', 'x', 'e'},       {HEX_OR_WIDE, '6', '5', '7'},
                                       {HEX_OR_WIDE, 'e', 0, 'x'}, {BASE64_0, 'Z', 'X', 'h'},
                                       {BASE64_1, 'V', '4', 'Z'},  {BASE64_2, 'l', 'e', 'G'}};
    static struct triple t;
    static bool ready;
    if (ready)
        return &t;
    for (size_t i = 0; i < sizeof fixed / sizeof *fixed; i++)
        for (size_t k = 0; k < 3; k++)
            t.kinds[k][fixed[i][1 + k]] |= fixed[i][0];
    for (size_t i = 0; i < ESCAPE_KINDS; i++) {
        const struct escape *e = &escapes[i];
        t.kinds[0][e->sign] |= ESCAPE;
        for (unsigned c = e->low; c <= e->high; c++)
            t.kinds[1][c] |= ESCAPE;
        t.kinds[1][e->other] |= ESCAPE;
    }
    t.kinds[1]['\n'] |= LINE_END_BEHIND | LINE_END_BEFORE;
    for (size_t c = 0; c < 256; c++) {
        t.kinds[0][c] |= LINE_END_BEFORE | (beside_line_end[c] & BEFORE ? LINE_END_BEHIND : 0);
        t.kinds[2][c] |=
            ESCAPE | LINE_END_BEHIND | (beside_line_end[c] & BEHIND ? LINE_END_BEFORE : 0);
    }
    triple_prepare(&t);
    ready = true;
    return &t;
}

static const struct spelling {
    uint8_t bit;
    uint8_t before; /* characters between the start of the core and its first fixed byte */
    uint8_t unused; /* leading bits of the first base64 character that belong to the byte before */
    int (*next)(struct cursor *);
} spellings[] = {
    {RAW, 0, 0, next_raw},         {HEX_OR_WIDE, 0, 0, next_hex}, {HEX_OR_WIDE, 0, 0, next_wide},
    {BASE64_0, 0, 0, next_base64}, {BASE64_1, 1, 2, next_base64}, {BASE64_2, 1, 4, next_base64},
};

static enum outcome read_spelling(const struct spelling *k, struct view v, size_t at) {
    struct cursor c = {.v = v, .at = at};
    if (k->unused) {
        int value = base64_value(v.p[c.at++]);
        if (value < 0)
            return NOTHING;
        c.bits = (uint32_t)value;
        c.n_bits = 6u - k->unused;
    }
    return read_core(c, k->next);
}

static void scan_candidate(struct scan *s, size_t at, unsigned bits) {
    for (size_t i = 0; i < sizeof spellings / sizeof spellings[0]; i++) {
        const struct spelling *k = &spellings[i];
        if ((bits & k->bit) == 0 || at < k->before)
            continue;
        note(s, read_spelling(k, s->v, at - k->before), at - k->before);
    }
}

/* ---- escapes ---- */

/*
 * Tries each place of a unit, from here to behind, where a core may begin: the unit itself, and
 * what is inside of it, which a reader of other escapes takes for the beginning ("%4exeat..."
 * in JSON, "%4%65xeat..." decoded once).
 */
static void scan_unit(struct scan *s, size_t here, size_t behind) {
    for (size_t at = here; at < behind && !s->found; at++) {
        struct cursor c = {.v = s->v, .at = at}, core = c;
        if (next_escaped(&c) == 'e')
            note(s, read_core(core, next_escaped), at);
    }
}

/* Reads on from at while letters and digits come, escaped or not; gives the place to go on from. */
static size_t scan_run(struct scan *s, size_t at) {
    struct cursor c = {.v = s->v, .at = at};
    while (!s->found) {
        size_t here = c.at;
        int byte = next_escaped(&c);
        if (byte == END)
            return s->v.n;
        if (!is_core_byte(byte))
            return here + 1;
        scan_unit(s, here, c.at);
    }
    return s->v.n;
}

/* One that v cuts off may be any. */
static bool begins_escape(struct view v, size_t at, const struct escape *e) {
    if (v.p[at] != e->sign || v.n - at == 1)
        return v.p[at] == e->sign;
    uint8_t c = v.p[at + 1];
    return (c >= e->low && c <= e->high) || c == e->other;
}

/* The commonest ones that look like an escape of interest. */
static bool is_dull(struct view v, size_t at) {
    if (v.n - at < 3 || v.p[at] != '%')
        return false;
    int high = hex_value(v.p[at + 1]), low = hex_value(v.p[at + 2]);
    return high >= 0 && low >= 0 && (high << 4 | low) != '%' && !is_core_byte(high << 4 | low);
}

/*
 * A run of unescaped characters of a core may stand before the first escaped one. Escapes of different
 * kinds may be mixed; the run of a placeholder is met by any kind that is in it.
 */
static size_t scan_escape(struct scan *s, size_t at, size_t floor) {
    if (is_dull(s->v, at))
        return at + 1;
    struct cursor c = {.v = s->v, .at = at};
    int byte = next_escaped(&c);
    if (byte != END && !is_core_byte(byte) && !c.cut)
        return at + 1;
    size_t start = at;
    while (start > floor && at - start < PLACEHOLDER_CORE_SIZE && is_alnum(s->v.p[start - 1]))
        start--;
    size_t end = scan_run(s, start);
    return end > at ? end : at + 1;
}

static void scan_escapes(struct scan *s, size_t at) {
    for (size_t k = 0; k < ESCAPE_KINDS; k++)
        if (at >= s->after[k] && begins_escape(s->v, at, &escapes[k]))
            s->after[k] = scan_escape(s, at, s->after[k]);
}

/* ---- base64 in lines ---- */

/* Three behind: the character before the fixed bytes may be a line's last ("a", line end, "V4Z"). */
enum { LINE_HEAD = 6, LINE_PEEK = 3, LINE_BOTH = LINE_HEAD + 56 };

/* Copies base64 characters from at on, up to max, without the line ends among them; the place behind. */
static size_t join_lines(struct view v, size_t at, uint8_t *out, size_t max, size_t *n) {
    for (*n = 0; at < v.n && *n < max; at++) {
        if (is_line_end(v.p[at]))
            continue;
        if (base64_value(v.p[at]) < 0)
            break;
        out[(*n)++] = v.p[at];
    }
    return at;
}

static bool has_fixed_bytes(const uint8_t *p, size_t n) {
    const struct triple *t = places();
    for (size_t i = 0; i + 2 < n; i++)
        if (triple_kinds(t, p + i) & FIXED)
            return true;
    return false;
}

static void scan_text(struct scan *s);

/*
 * A line feed at `at`, inside base64, may stand in the middle of the fixed bytes: puts the lines together.
 * Line ends that follow each other are one, looked at once, and most of them go no further than
 * the few characters around them: otherwise a body of line ends would cost its size squared.
 */
static void scan_line_end(struct scan *s, size_t at) {
    if (at < s->after_lines)
        return;
    uint8_t joined[LINE_BOTH];
    size_t begin = at, behind = at + 1, n;
    while (begin > s->after_lines && is_line_end(s->v.p[begin - 1]))
        begin--;
    while (behind < s->v.n && is_line_end(s->v.p[behind]))
        behind++;
    s->after_lines = behind;
    size_t start = begin;
    while (start > 0 && begin - start < LINE_HEAD && base64_value(s->v.p[start - 1]) >= 0)
        start--;
    size_t n_head = begin - start;
    if (n_head > 0)
        memcpy(joined, s->v.p + start, n_head);
    (void)join_lines(s->v, behind, joined + n_head, LINE_PEEK, &n);
    if (n_head == 0 || !has_fixed_bytes(joined, n_head + n))
        return;
    size_t end = join_lines(s->v, behind, joined + n_head, sizeof joined - n_head, &n);
    struct scan inner = {.v = view_of(joined, n_head + n), .open = n_head + n};
    inner.after_lines = inner.v.n;
    scan_text(&inner);
    if (inner.found)
        note(s, FOUND, start);
    if (inner.open < inner.v.n && end == s->v.n)
        note(s, OPEN, start);
}

/* Line ends from `from` up to `to`. */
static void scan_line_ends(struct scan *s, size_t from, size_t to) {
    for (size_t at = from > s->after_lines ? from : s->after_lines;
         at < to && at < s->v.n && !s->found; at++)
        if (s->v.p[at] == '\n')
            scan_line_end(s, at);
}

/* ---- the pass ---- */

/* Looks closer at a place of such kinds; the last place that is done with. */
static size_t scan_place(struct scan *s, size_t at, unsigned kinds) {
    if (kinds & FIXED) {
        scan_candidate(s, at, kinds);
        scan_line_ends(s, at + 3, at + LINE_HEAD + 1);
    }
    if (kinds & ESCAPE)
        scan_escapes(s, at);
    if (!(kinds & (LINE_END_BEHIND | LINE_END_BEFORE)))
        return at;
    scan_line_end(s, at + 1);
    return s->after_lines - 1;
}

static void scan_text(struct scan *s) {
    const struct triple *t = places();
    size_t at = 0;
    for (; !s->found && (at = triple_next(t, s->v, at)) < s->v.n; at++)
        at = scan_place(s, at, triple_kinds(t, s->v.p + at));
    /* The last two bytes, behind which more may come. */
    for (at = s->v.n > 2 ? s->v.n - 2 : 0; !s->found && at < s->v.n; at++)
        if (t->kinds[0][s->v.p[at]] & ESCAPE)
            scan_escapes(s, at);
}

static struct scan scan_all(struct view v) {
    struct scan s = {.v = v, .open = v.n};
    scan_line_ends(&s, 0, LINE_HEAD);
    scan_text(&s);
    if (v.n > 0)
        scan_line_ends(&s, v.n - 1, v.n);
    return s;
}

bool placeholder_inside(struct view v) {
    /* No spelling is shorter than the core itself. */
    return v.n >= PLACEHOLDER_CORE_SIZE && scan_all(v).found;
}

/* ---- streams ---- */

void placeholder_stream_init(struct placeholder_stream *s) {
    s->n = 0;
}

static void keep_tail(struct placeholder_stream *s, struct view piece) {
    if (piece.n > sizeof s->tail)
        piece = view_skip(piece, piece.n - sizeof s->tail);
    size_t old = sizeof s->tail - piece.n;
    if (old > s->n)
        old = s->n;
    memmove(s->tail, s->tail + s->n - old, old);
    view_copy(piece, s->tail + old);
    s->n = old + piece.n;
}

bool placeholder_stream_feed(struct placeholder_stream *s, struct view piece) {
    uint8_t seam[2 * sizeof s->tail];
    struct view start = view_head(piece, sizeof s->tail);
    memcpy(seam, s->tail, s->n);
    view_copy(start, seam + s->n);
    bool found = placeholder_inside(view_of(seam, s->n + start.n));
    if (!found && piece.n > start.n)
        found = placeholder_inside(piece);
    keep_tail(s, piece);
    return found;
}

size_t placeholder_stream_held(const struct placeholder_stream *s) {
    return s->n - scan_all(view_of(s->tail, s->n)).open;
}
