#include "egress/fold.h"

#include "base/triple.h"

#include <string.h>

/* Those that begin as another one come first. */
static const char *const literals[] = {"\\\\r\\\\n", "\\\\n",  "\\\\r", "\\r\\n", "\\n", "\\r",
                                       "%0D%0A",     "%0d%0a", "%0A",   "%0a",    "%0D", "%0d"};
enum { N_LITERALS = sizeof literals / sizeof *literals };

static bool is_line_end(uint8_t c) {
    return c == '\r' || c == '\n';
}

static bool is_blank(uint8_t c) {
    return c == ' ' || c == '\t';
}

static bool is_visible(uint8_t c) {
    return c >= 0x21 && c <= 0x7e;
}

/* Lines of JSON, XML and text end so, and no encoding does. */
static bool closes(uint8_t c) {
    return c != 0 && strchr("}])>\"',", c) != NULL;
}

static size_t blanks_at(struct view text, size_t at) {
    size_t n = 0;
    while (n < FOLD_BLANKS_MAX && at + n < text.n && is_blank(text.p[at + n]))
        n++;
    return n;
}

/* ---- raw line ends ---- */

/* Whether a line that ends before text[at] is one that a writer may have broken in a word. */
static bool breaks_a_word(struct view text, size_t at) {
    size_t n = 0;
    if (at == 0 || !is_visible(text.p[at - 1]) || closes(text.p[at - 1]))
        return false;
    while (n < FOLD_WIDTH && n < at && is_visible(text.p[at - 1 - n]))
        n++;
    return n == FOLD_WIDTH || text.p[at - 1] == '=';
}

static size_t raw_fold(struct view text, size_t at) {
    size_t n = text.p[at] == '\r' && at + 1 < text.n && text.p[at + 1] == '\n' ? 2 : 1;
    n += blanks_at(text, at + n);
    bool empty_line = at + n < text.n && is_line_end(text.p[at + n]);
    return !empty_line && breaks_a_word(text, at) ? n : 0;
}

/* ---- line ends in visible characters ---- */

static bool literal_is_at(struct view text, size_t at, const char *literal, size_t n) {
    return at + n <= text.n && view_equal(view_slice(text, at, at + n), view_of(literal, n));
}

/* What nearly every sign in binary data fails by, and every backslash among backslashes. */
static bool may_begin_literal(struct view text, size_t at) {
    uint8_t next = at + 1 < text.n ? text.p[at + 1] : 0;
    if (text.p[at] == '%')
        return next == '0';
    if (next == '\\')
        next = at + 2 < text.n ? text.p[at + 2] : 0;
    return next == 'r' || next == 'n';
}

static size_t literal_fold(struct view text, size_t at) {
    if (!may_begin_literal(text, at))
        return 0;
    for (size_t i = 0; i < N_LITERALS; i++) {
        size_t n = strlen(literals[i]);
        if (literal_is_at(text, at, literals[i], n))
            return n + blanks_at(text, at + n);
    }
    return 0;
}

/* ---- all folds ---- */

static size_t fold_at(struct view text, size_t at) {
    switch (text.p[at]) {
    case '\r':
    case '\n':
        return raw_fold(text, at);
    case '\\':
    case '%':
        return literal_fold(text, at);
    default:
        return 0;
    }
}

/* A fold's first byte with those beside it, but for what the end of a line has far before it. */
static const struct triple *places(void) {
    enum { RAW = 1, PERCENT = 2, BACKSLASH = 4 };
    static struct triple t;
    static bool ready;
    if (ready)
        return &t;
    for (unsigned c = 0; c < 256; c++) {
        bool word = is_visible((uint8_t)c) && !closes((uint8_t)c);
        t.kinds[0][c] = (uint8_t)((word ? RAW : 0) | PERCENT | BACKSLASH);
        t.kinds[2][c] = RAW;
    }
    t.kinds[1]['\r'] = t.kinds[1]['\n'] = RAW;
    t.kinds[1]['%'] = PERCENT;
    t.kinds[1]['\\'] = BACKSLASH;
    t.kinds[2]['0'] |= PERCENT;
    t.kinds[2]['r'] |= BACKSLASH;
    t.kinds[2]['n'] |= BACKSLASH;
    t.kinds[2]['\\'] |= BACKSLASH;
    triple_prepare(&t);
    ready = true;
    return &t;
}

/* The next place where a fold may begin. The first and the last byte, which lack a neighbour, always may. */
static size_t next_beginning(struct view text, size_t from) {
    if (from == 0 || from + 1 >= text.n)
        return from;
    size_t before = triple_next(places(), text, from - 1);
    return before < text.n ? before + 1 : text.n - 1;
}

size_t fold_remove(struct view text, uint8_t *out, bool *gone) {
    size_t done = 0, n = 0;
    for (size_t at = 0; at < text.n;) {
        at = next_beginning(text, at);
        size_t size = fold_at(text, at);
        if (size == 0) {
            at++;
            continue;
        }
        if (done == 0)
            memset(gone, false, text.n);
        size_t from = is_line_end(text.p[at]) && at > done && text.p[at - 1] == '=' ? at - 1 : at;
        view_copy(view_slice(text, done, from), out + n);
        n += from - done;
        done = at + size;
        memset(gone + from, true, done - from);
        at = done;
    }
    if (done == 0)
        return text.n;
    view_copy(view_skip(text, done), out + n);
    return n + text.n - done;
}

size_t fold_before(struct view text, size_t end) {
    size_t at = end;
    while (at > 0 && end - at < FOLD_BLANKS_MAX && is_blank(text.p[at - 1]))
        at--;
    if (at > 0 && is_line_end(text.p[at - 1])) {
        at -= at > 1 && text.p[at - 1] == '\n' && text.p[at - 2] == '\r' ? 2 : 1;
        return raw_fold(text, at) >= end - at ? end - at : 0;
    }
    /* The literal itself is visible: only the blanks behind it are what would end a word. */
    for (size_t i = 0; at < end && i < N_LITERALS; i++) {
        size_t n = strlen(literals[i]);
        if (n <= at && literal_is_at(text, at - n, literals[i], n))
            return end - at;
    }
    return 0;
}
