#include "cli/json_scan.h"

#include <string.h>

static struct view skip_blanks(struct view v) {
    while (v.n > 0 && memchr(" \t\r\n", v.p[0], 4))
        v = view_skip(v, 1);
    return v;
}

/* Length of the string that v begins with, quotes included; 0: none. */
static size_t string_length(struct view v) {
    for (size_t i = 1; i < v.n; i++) {
        if (v.p[i] == '\\')
            i++;
        else if (v.p[i] == '"')
            return i + 1;
    }
    return 0;
}

/* Length of the value that v begins with; 0: none. Brackets are counted, not matched by kind. */
static size_t value_length(struct view v) {
    size_t depth = 0, i = 0;
    while (i < v.n) {
        uint8_t c = v.p[i];
        if (c == '"') {
            size_t n = string_length(view_skip(v, i));
            if (n == 0)
                return 0;
            i += n;
        } else if (c == '{' || c == '[') {
            depth++;
            i++;
        } else if (c == '}' || c == ']' || (c == ',' && depth == 0)) {
            if (depth == 0)
                return i;
            depth--;
            i++;
        } else {
            i++;
            continue;
        }
        if (depth == 0 && c != ',')
            return i;
    }
    return depth == 0 ? i : 0;
}

/* Takes the next value off *v, and the comma behind it. */
static bool take_value(struct view *v, struct view *value) {
    *v = skip_blanks(*v);
    size_t n = value_length(*v);
    *value = view_trim(view_head(*v, n));
    *v = skip_blanks(view_skip(*v, n));
    if (v->n > 0 && v->p[0] == ',')
        *v = view_skip(*v, 1);
    return n > 0;
}

struct view json_elements(struct view value) {
    struct view v = skip_blanks(value);
    bool whole = v.n >= 2 && v.p[0] == '[' && value_length(v) == v.n;
    return whole ? view_slice(v, 1, v.n - 1) : (struct view){NULL, 0};
}

bool json_element(struct view *rest, struct view *element) {
    return take_value(rest, element);
}

bool json_member(struct view object, const char *name, struct view *value) {
    struct view v = skip_blanks(object), key, word, found;
    bool is_there = false;
    if (v.n == 0 || v.p[0] != '{')
        return false;
    v = view_skip(v, 1);
    for (;;) {
        v = skip_blanks(v);
        size_t n = v.n > 0 && v.p[0] == '"' ? string_length(v) : 0;
        key = view_head(v, n);
        v = skip_blanks(view_skip(v, n));
        if (n == 0 || v.n == 0 || v.p[0] != ':')
            return is_there;
        v = view_skip(v, 1);
        if (!take_value(&v, &found))
            return is_there;
        if (!json_word(key, &word) || !view_equal(word, view_str(name)))
            continue;
        is_there = true;
        *value = found;
    }
}

bool json_word(struct view value, struct view *word) {
    if (value.n < 2 || value.p[0] != '"' || string_length(value) != value.n)
        return false;
    *word = view_slice(value, 1, value.n - 1);
    return view_find(*word, '\\') == word->n;
}

static void put_unescaped(struct view *v, struct buf *out) {
    static const char from[] = "nrtbf", to[] = "\n\r\t\b\f";
    uint8_t c = v->n > 1 ? v->p[1] : 0, byte[2];
    if (c == 'u' && v->n >= 6 && hex_decode(view_slice(*v, 2, 6), byte, 2) == 0) {
        buf_put_u8(out, byte[0] == 0 ? byte[1] : '?');
        *v = view_skip(*v, 6);
        return;
    }
    const char *known = c ? strchr(from, c) : NULL;
    buf_put_u8(out, known ? (uint8_t)to[known - from] : c);
    *v = view_skip(*v, 2);
}

void json_text(struct view value, struct buf *out) {
    if (value.n < 2 || value.p[0] != '"') {
        buf_put(out, value);
        return;
    }
    struct view v = view_slice(value, 1, value.n - 1);
    while (v.n > 0) {
        if (v.p[0] == '\\') {
            put_unescaped(&v, out);
        } else {
            buf_put_u8(out, v.p[0]);
            v = view_skip(v, 1);
        }
    }
}
