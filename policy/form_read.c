#include "policy/form_read.h"

#include "policy/target.h"

static bool has(struct view v, uint8_t c) {
    return view_find(v, c) < v.n;
}

/* ---- fields ---- */

static enum body_fault decode(struct view v, struct buf *text) {
    size_t from = buf_len(text);
    int err = percent_decode(v, true, text);
    if (err != 0)
        return err == ERR_BAD ? BODY_MALFORMED : BODY_TOO_MANY;
    struct view decoded = view_skip(buf_view(text), from);
    if (!utf8_is_text(decoded))
        return BODY_NOT_UTF8;
    return has(decoded, 0) ? BODY_NUL : BODY_FAULTLESS;
}

bool form_field(struct view *rest, struct buf *text, struct view *name, struct view *value,
                enum body_fault *fault) {
    size_t at = buf_len(text);
    *fault = BODY_FAULTLESS;
    if (!target_pair(rest, name, value))
        return false;
    *fault = has(*name, ';') || has(*value, ';') ? BODY_MALFORMED : decode(*name, text);
    size_t end = buf_len(text);
    if (*fault == BODY_FAULTLESS)
        *fault = decode(*value, text);
    *name = view_slice(buf_view(text), at, end);
    *value = view_skip(buf_view(text), end);
    return *fault == BODY_FAULTLESS;
}

/* ---- names ---- */

struct field {
    struct json_finds *finds;
    struct json_found found; /* as it is told to whoever asks for it */
    bool full;
};

static void note(struct field *f, size_t depth, enum body_type type, bool alike) {
    const struct json_paths *paths = &f->finds->paths;
    uint64_t some, here = json_paths_here(paths, depth, &some);
    /* A text in the place of what has parts elsewhere. */
    uint64_t on = type == BODY_TEXT ? json_paths_on(paths, depth) : 0;
    here |= on;
    some |= on;
    for (; here != 0; here &= here - 1) {
        struct json_found found = f->found;
        found.pointer = (uint16_t)__builtin_ctzll(here);
        found.alike = alike || (some & here & -here) != 0;
        found.type = type;
        if (type != BODY_TEXT)
            found.n = found.from = found.to = 0;
        f->full = f->full || !json_finds_add(f->finds, &found);
    }
}

static bool take_bracket(struct view *rest, struct view *part) {
    size_t end = view_find(*rest, ']');
    bool closed = end < rest->n;
    *part = view_slice(*rest, 1, end);
    *rest = view_skip(*rest, end + 1);
    return closed && !has(*part, '[');
}

/* Takes the next part of a name off *rest; false: brackets that are no pair. */
static bool take_part(struct view *rest, bool dots, struct view *part) {
    size_t n = 0;
    if (rest->n > 0 && rest->p[0] == '[')
        return take_bracket(rest, part);
    while (n < rest->n && rest->p[n] != '[' && (!dots || rest->p[n] != '.'))
        n++;
    *part = view_head(*rest, n);
    *rest = view_skip(*rest, n);
    return !has(*part, ']');
}

/* Follows the parts of a name; what it goes through is an object to those who part it. */
static bool follow(struct field *f, struct view name, bool dots) {
    struct view part;
    size_t depth = 0;
    do {
        bool bracket = name.n > 0 && name.p[0] == '[';
        if (depth > 0 && !bracket)
            name = view_skip(name, 1); /* a dot */
        if (!take_part(&name, dots, &part) || (name.n > 0 && !dots && name.p[0] != '['))
            return false;
        if (++depth > JSON_DEPTH)
            return true;
        if (bracket && part.n == 0)
            json_paths_some_item(&f->finds->paths, depth);
        else
            json_paths_member(&f->finds->paths, depth, part);
        if (name.n > 0)
            note(f, depth, BODY_OBJECT, true);
        else
            note(f, depth, BODY_TEXT, dots);
    } while (name.n > 0);
    return true;
}

static enum body_fault place(struct field *f, struct view name) {
    if (name.n > 0 && name.p[0] == '[')
        return BODY_MALFORMED;
    if (has(name, '[') || has(name, ']')) {
        json_paths_member(&f->finds->paths, 1, name);
        uint64_t alike, here = json_paths_here(&f->finds->paths, 1, &alike);
        /* As one name only where it is written so. */
        f->finds->paths.live[1] = here & ~alike;
        note(f, 1, BODY_TEXT, false);
    }
    if (!follow(f, name, false))
        return BODY_MALFORMED;
    if (has(name, '.') && !follow(f, name, true))
        return BODY_MALFORMED;
    return f->full ? BODY_TOO_MANY : BODY_FAULTLESS;
}

/* Clients that say nothing of a type call JSON a form, and some servers look first. */
static bool looks_like_json(struct view form) {
    size_t n = 0;
    while (n < form.n && (form.p[n] <= ' ' || form.p[n] >= 0x80))
        n++;
    return n < form.n && (form.p[n] == '{' || form.p[n] == '[');
}

enum body_fault form_read(struct view form, struct json_finds *finds, struct buf *text) {
    if (looks_like_json(form))
        return BODY_MALFORMED;
    struct view rest = form, name, value, ahead = form, sent;
    enum body_fault fault = BODY_FAULTLESS;
    size_t begin = buf_len(text), known = finds->n;
    while (target_pair(&ahead, &name, &sent) && form_field(&rest, text, &name, &value, &fault)) {
        size_t end = buf_len(text);
        struct field f = {.finds = finds, .found = {.at = end - value.n, .n = value.n}};
        f.found.from = (size_t)(sent.p - form.p);
        f.found.to = f.found.from + sent.n;
        fault = place(&f, name);
        if (fault != BODY_FAULTLESS)
            return fault;
        if (finds->n == known)
            buf_truncate(text, begin);
        begin = buf_len(text);
        known = finds->n;
    }
    return fault;
}
