#include "policy/json_place.h"

/* The document has been read by jansson: it is well-formed, and only where things end is asked here. */
struct walk {
    struct view json;
    size_t at;
};

static uint8_t byte_of(const struct walk *w) {
    return w->at < w->json.n ? w->json.p[w->at] : 0;
}

static void skip_blanks(struct walk *w) {
    while (w->at < w->json.n &&
           (byte_of(w) == ' ' || byte_of(w) == '\t' || byte_of(w) == '\n' || byte_of(w) == '\r'))
        w->at++;
}

/* The string at hand, without its quotes. */
static struct view take_string(struct walk *w) {
    size_t start = ++w->at;
    while (w->at < w->json.n && byte_of(w) != '"')
        w->at += byte_of(w) == '\\' ? 2 : 1;
    struct view inside = view_slice(w->json, start, w->at < w->json.n ? w->at : w->json.n);
    w->at++;
    return inside;
}

static void skip_value(struct walk *w) {
    size_t depth = 0;
    do {
        uint8_t c = byte_of(w);
        if (c == '"') {
            take_string(w);
        } else {
            depth += c == '{' || c == '[';
            depth -= c == '}' || c == ']';
            w->at++;
        }
    } while (w->at < w->json.n &&
             (depth > 0 || (byte_of(w) != ',' && byte_of(w) != '}' && byte_of(w) != ']')));
}

/* Goes to the member or item; false: there is none. */
static bool descend(struct walk *w, struct view token) {
    bool object = byte_of(w) == '{';
    uint64_t wanted = 0, i = 0;
    if (!object && (byte_of(w) != '[' || view_number(token, UINT32_MAX, &wanted) != 0))
        return false;
    w->at++;
    for (skip_blanks(w); w->at < w->json.n && byte_of(w) != '}' && byte_of(w) != ']'; i++) {
        bool found = object ? view_equal(take_string(w), token) : i == wanted;
        w->at += object ? view_find(view_skip(w->json, w->at), ':') + 1 : 0;
        skip_blanks(w);
        if (found)
            return true;
        skip_value(w);
        w->at += byte_of(w) == ',';
        skip_blanks(w);
    }
    return false;
}

size_t json_place(struct view json, struct view pointer) {
    struct walk w = {.json = json};
    skip_blanks(&w);
    size_t found = w.at;
    view_cut(&pointer, '/');
    while (pointer.n > 0 && descend(&w, view_cut(&pointer, '/')))
        found = w.at;
    return found;
}
