#include "egress/escape.h"

#include "base/triple.h"

#include <string.h>

/* One escape: how long it is, and what it stands for. */
struct unit {
    size_t n; /* 0: none */
    uint32_t n_bytes,
        bytes; /* the first of them lowest: a number, which is returned in a register */
};

static bool is_visible(uint8_t c) {
    return c >= 0x21 && c <= 0x7e;
}

/* Reads digits of a base at `at`, at most `max`; how many there were. */
static size_t read_digits(struct view text, size_t at, unsigned base, size_t max, uint32_t *value) {
    size_t n = 0;
    for (*value = 0; n < max && at + n < text.n; n++) {
        int digit = hex_value(text.p[at + n]);
        if (digit < 0 || (unsigned)digit >= base)
            break;
        *value = *value * base + (unsigned)digit;
    }
    return n;
}

static struct unit unit_of(size_t n, uint32_t byte) {
    return (struct unit){byte > 0 ? n : 0, 1, byte};
}

/* A code point in UTF-8; one that takes more than three bytes, or is half a pair, is none. */
static struct unit unit_of_point(size_t n, uint32_t point) {
    if (point < 0x80)
        return unit_of(n, point);
    if (point > UINT16_MAX || (point >= 0xd800 && point < 0xe000))
        return unit_of(0, 0);
    uint32_t last = 0x80 | (point & 63), middle = 0x80 | (point >> 6 & 63);
    if (point < 0x800)
        return (struct unit){n, 2, 0xc0 | point >> 6 | last << 8};
    return (struct unit){n, 3, 0xe0 | point >> 12 | middle << 8 | last << 16};
}

/* So many digits behind `before` bytes: of a byte when there are two. */
static struct unit hexadecimal(struct view text, size_t at, size_t before, size_t digits) {
    uint32_t value;
    size_t n = read_digits(text, at + before, 16, digits, &value) == digits ? before + digits : 0;
    return digits == 2 ? unit_of(n, value) : unit_of_point(n, value);
}

static struct unit percent(struct view text, size_t at) {
    bool is_wide = at + 1 < text.n && text.p[at + 1] == 'u';
    return is_wide ? hexadecimal(text, at, 2, 4) : hexadecimal(text, at, 1, 2);
}

/* How long `what` is where it stands at `at`; else 0. */
static size_t stands_at(struct view text, size_t at, const char *what) {
    size_t n = 0;
    while (what[n] != '\0' && at + n < text.n && text.p[at + n] == (uint8_t)what[n])
        n++;
    return what[n] == '\0' ? n : 0;
}

enum { BRACED_MAX = 6, OCTAL_DIGITS = 3 };

static struct unit braced(struct view text, size_t at) {
    uint32_t value;
    size_t n = read_digits(text, at + 3, 16, BRACED_MAX, &value);
    return unit_of_point(n > 0 && stands_at(text, at + 3 + n, "}") ? n + 4 : 0, value);
}

static struct unit octal(struct view text, size_t at) {
    uint32_t value;
    size_t n = read_digits(text, at + 1, 8, OCTAL_DIGITS, &value);
    return unit_of(n == OCTAL_DIGITS && value <= UINT8_MAX ? 1 + OCTAL_DIGITS : 0, value);
}

static struct unit backslash(struct view text, size_t at) {
    uint8_t c = at + 1 < text.n ? text.p[at + 1] : 0;
    if (is_digit(c))
        return octal(text, at);
    switch (c) {
    case 'x':
        return hexadecimal(text, at, 2, 2);
    case 'u':
        return stands_at(text, at + 2, "{") ? braced(text, at) : hexadecimal(text, at, 2, 4);
    case 'U':
        return hexadecimal(text, at, 2, 8);
    default:
        return unit_of(is_visible(c) && !is_alnum(c) ? 2 : 0, c);
    }
}

enum { DIGITS_MAX = 7 };

static struct unit number(struct view text, size_t at) {
    bool hex = at + 2 < text.n && to_lower(text.p[at + 2]) == 'x';
    size_t before = hex ? 3 : 2;
    uint32_t value;
    size_t n = read_digits(text, at + before, hex ? 16 : 10, DIGITS_MAX, &value);
    bool ended = n > 0 && stands_at(text, at + before + n, ";");
    return unit_of_point(ended ? before + n + 1 : 0, value);
}

#define NAME(text, byte)                                                                           \
    { "&" text ";", sizeof(text) + 1, (byte) }

/* XML's, and those of HTML for the rest of ASCII that fit into ESCAPE_MAX. */
static const struct reference_name {
    uint8_t text[ESCAPE_MAX + 1];
    uint8_t n, byte;
} names[] = {
    NAME("amp", '&'),    NAME("lt", '<'),       NAME("gt", '>'),     NAME("quot", '"'),
    NAME("apos", '\''),  NAME("excl", '!'),     NAME("num", '#'),    NAME("dollar", '$'),
    NAME("percnt", '%'), NAME("lpar", '('),     NAME("rpar", ')'),   NAME("ast", '*'),
    NAME("midast", '*'), NAME("plus", '+'),     NAME("comma", ','),  NAME("period", '.'),
    NAME("sol", '/'),    NAME("colon", ':'),    NAME("semi", ';'),   NAME("equals", '='),
    NAME("quest", '?'),  NAME("commat", '@'),   NAME("lsqb", '['),   NAME("lbrack", '['),
    NAME("bsol", '\\'),  NAME("rsqb", ']'),     NAME("rbrack", ']'), NAME("Hat", '^'),
    NAME("lowbar", '_'), NAME("UnderBar", '_'), NAME("grave", '`'),  NAME("lcub", '{'),
    NAME("lbrace", '{'), NAME("vert", '|'),     NAME("verbar", '|'), NAME("rcub", '}'),
    NAME("rbrace", '}'), NAME("AMP", '&'),      NAME("LT", '<'),     NAME("GT", '>'),
    NAME("QUOT", '"'),
};
enum { NAMES = sizeof names / sizeof *names };

static struct unit reference(struct view text, size_t at) {
    if (stands_at(text, at, "&#") > 0)
        return number(text, at);
    struct view v = view_head(view_skip(text, at), ESCAPE_MAX);
    size_t n = view_find(v, ';') + 1;
    for (size_t i = 0; n <= v.n && i < NAMES; i++)
        if (v.p[1] == names[i].text[1] && n == names[i].n && memcmp(v.p, names[i].text, n) == 0)
            return unit_of(n, names[i].byte);
    return unit_of(0, 0);
}

static struct unit quote(struct view text, size_t at) {
    static const char *const forms[] = {"'\\''", "'\"'\"'", "''", "\"\""};
    size_t n = 0;
    for (size_t i = 0; i < sizeof forms / sizeof *forms && n == 0; i++)
        n = stands_at(text, at, forms[i]);
    return unit_of(n, text.p[at]);
}

static struct unit unit_at(struct view text, size_t at) {
    switch (text.p[at]) {
    case '%':
        return percent(text, at);
    case '\\':
        return backslash(text, at);
    case '&':
        return reference(text, at);
    case '\'':
    case '"':
        return quote(text, at);
    default:
        return unit_of(0, 0);
    }
}

/* The first three bytes of an escape. */
static const struct triple *places(void) {
    enum { PERCENT = 1, BACKSLASH = 2, REFERENCE = 4, APOSTROPHE = 8, QUOTE = 16 };
    static struct triple t;
    static bool ready;
    if (ready)
        return &t;
    for (unsigned c = 0; c < 256; c++) {
        bool hex = hex_value((uint8_t)c) >= 0,
             mark = is_visible((uint8_t)c) && !is_alnum((uint8_t)c);
        t.kinds[1][c] = (uint8_t)((hex ? PERCENT : 0) | (mark ? BACKSLASH : 0));
        t.kinds[2][c] = (uint8_t)((hex ? PERCENT : 0) | BACKSLASH | APOSTROPHE | QUOTE);
    }
    t.kinds[0]['%'] = PERCENT;
    t.kinds[1]['u'] |= PERCENT;
    t.kinds[0]['\\'] = BACKSLASH;
    for (const char *c = "xuU0123"; *c; c++)
        t.kinds[1][(uint8_t)*c] |= BACKSLASH;
    t.kinds[0]['&'] = REFERENCE;
    t.kinds[1]['#'] |= REFERENCE;
    for (const char *c = "0123456789xX"; *c; c++)
        t.kinds[2][(uint8_t)*c] |= REFERENCE;
    for (size_t i = 0; i < NAMES; i++) {
        t.kinds[1][names[i].text[1]] |= REFERENCE;
        t.kinds[2][names[i].text[2]] |= REFERENCE;
    }
    t.kinds[0]['\''] = APOSTROPHE;
    for (const char *c = "'\"\\"; *c; c++)
        t.kinds[1][(uint8_t)*c] |= APOSTROPHE;
    t.kinds[0]['"'] = QUOTE;
    t.kinds[1]['"'] |= QUOTE;
    triple_prepare(&t);
    ready = true;
    return &t;
}

/* The last two bytes of a text always may. */
static bool may_begin(struct view text, size_t at) {
    return at + 2 >= text.n || triple_kinds(places(), text.p + at) != 0;
}

/* The next place where an escape may begin, or the end. */
static size_t next_beginning(struct view text, size_t from) {
    if (may_begin(text, from))
        return from;
    size_t at = triple_next(places(), text, from);
    return at < text.n ? at : text.n - 2;
}

bool escape_begins(struct view text, size_t from, size_t to) {
    for (size_t at = from; at < to && at < text.n; at++)
        if (may_begin(text, at) && unit_at(text, at).n > 0)
            return true;
    return false;
}

size_t escape_undo(struct view text, uint8_t *out, bool *gone) {
    size_t done = 0, n = 0;
    for (size_t at = next_beginning(text, 0); at < text.n; at = next_beginning(text, at)) {
        struct unit unit = unit_at(text, at);
        if (unit.n == 0) {
            at++;
            continue;
        }
        if (done == 0)
            memset(gone, false, text.n);
        if (at > done)
            memcpy(out + n, text.p + done, at - done);
        n += at - done;
        for (size_t i = 0; i < unit.n_bytes; i++)
            out[n++] = (uint8_t)(unit.bytes >> 8 * i);
        done = at + unit.n;
        for (size_t i = at + unit.n_bytes; i < done; i++)
            gone[i] = true;
        at = done;
    }
    if (done == 0)
        return text.n;
    view_copy(view_skip(text, done), out + n);
    return n + text.n - done;
}
