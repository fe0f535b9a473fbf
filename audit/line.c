#include "audit/line.h"

struct line line_of(struct view text) {
    struct line l = {view_skip(text, 1), true, false};
    l.bad = text.n < 2 || text.n > LINE_MAX_BYTES || text.p[0] != '{' || text.p[text.n - 1] != '}';
    return l;
}

static bool take_byte(struct view *v, uint8_t c) {
    if (v->n == 0 || v->p[0] != c)
        return false;
    *v = view_skip(*v, 1);
    return true;
}

/* A string whose only escape is \uXXXX, so that the next quote is its end. */
static bool take_string(struct view *v, struct view *out) {
    if (!take_byte(v, '"'))
        return false;
    size_t end = view_find(*v, '"');
    if (end == v->n)
        return false;
    struct view inside = view_head(*v, end);
    for (size_t i = 0; i < inside.n; i++) {
        if (inside.p[i] < 0x20 || inside.p[i] > 0x7e)
            return false;
        if (inside.p[i] != '\\')
            continue;
        uint8_t code[2];
        if (inside.n - i < 6 || inside.p[i + 1] != 'u' ||
            hex_decode(view_slice(inside, i + 2, i + 6), code, 2) != 0)
            return false;
        i += 5;
    }
    *out = inside;
    *v = view_skip(*v, end + 1);
    return true;
}

static bool take_number(struct view *v, struct line_member *m) {
    size_t n = 0;
    while (n < v->n && is_digit(v->p[n]))
        n++;
    m->value = view_head(*v, n);
    if (n == 0 || (n > 1 && v->p[0] == '0') ||
        view_number(m->value, UINT64_MAX, &m->number_is) != 0)
        return false;
    m->number = true;
    *v = view_skip(*v, n);
    return true;
}

static bool take_member(struct line *l, struct line_member *m) {
    *m = (struct line_member){0};
    if (!l->first && !take_byte(&l->rest, ','))
        return false;
    l->first = false;
    if (!take_string(&l->rest, &m->name) || m->name.n == 0 || !take_byte(&l->rest, ':'))
        return false;
    if (l->rest.n > 0 && l->rest.p[0] == '"')
        return take_string(&l->rest, &m->value);
    return take_number(&l->rest, m);
}

bool line_next(struct line *l, struct line_member *out) {
    if (l->bad || (l->rest.n == 1 && !l->first))
        return false;
    l->bad = !take_member(l, out) || l->rest.n == 0;
    return !l->bad;
}

int line_find(struct view text, struct view name, struct line_member *out) {
    struct line l = line_of(text);
    while (line_next(&l, out))
        if (view_equal(out->name, name))
            return 0;
    return l.bad ? ERR_BAD : ERR_MISSING;
}
