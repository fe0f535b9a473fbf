#include "egress/body_names.h"

enum { LEVELS_MAX = 64 };

static void keep(struct body_name *name, struct view v) {
    v = view_head(v, sizeof name->at);
    view_copy(v, name->at);
    name->n = v.n;
}

static struct view text_of(const struct body_name *name) {
    return view_of(name->at, name->n);
}

/* Takes the next token (RFC 6901) off a pointer, decoded; false at the end. */
static bool next_token(struct view *pointer, struct body_name *token) {
    struct view text = view_skip(*pointer, 1), sent = view_cut(&text, '/');
    size_t n = 0;
    if (pointer->n == 0)
        return false;
    *pointer = view_skip(*pointer, 1 + sent.n);
    for (size_t i = 0; i < sent.n && n < sizeof token->at; i++) {
        bool escaped = sent.p[i] == '~' && i + 1 < sent.n;
        token->at[n++] = !escaped ? sent.p[i] : sent.p[++i] == '0' ? '~' : '/';
    }
    token->n = n;
    return true;
}

void body_names_add(struct body_names *b, const struct credential_place *place) {
    struct body_name *name = &b->name[b->n++];
    struct view pointer = place->name;
    size_t levels = 0;
    if (place->place == PLACE_FORM) {
        keep(name, place->name);
        return;
    }
    while (next_token(&pointer, name))
        levels++;
    if (levels > b->depth)
        b->depth = levels;
}

void body_names_lead(struct body_names *b, const struct credential_place *place) {
    struct view pointer = place->name;
    struct body_name token;
    b->n_way = 0;
    while (next_token(&pointer, &token) && pointer.n > 0 && b->n_way < BODY_WAY_MAX)
        b->way[b->n_way++] = token;
}

bool body_names_have(const struct body_names *b, struct view name) {
    for (size_t i = 0; i < b->n; i++)
        if (credential_name_same(name, text_of(&b->name[i])))
            return true;
    return false;
}

bool body_names_pass(const struct body_names *b, struct view name, size_t level) {
    return level > 0 && level <= b->n_way && view_equal(name, text_of(&b->way[level - 1]));
}

/* ---- in bytes ---- */

static void write_list(const struct body_name *list, size_t n, struct buf *out) {
    buf_put_u8(out, (uint8_t)n);
    for (size_t i = 0; i < n; i++)
        buf_put_block(out, text_of(&list[i]));
}

void body_names_write(const struct body_names *b, struct buf *out) {
    buf_put_u8(out, (uint8_t)b->depth);
    write_list(b->name, b->n, out);
    write_list(b->way, b->n_way, out);
}

static size_t read_list(struct reader *r, struct body_name *list, size_t max) {
    size_t n = read_u8(r);
    if (n > max)
        r->bad = true;
    for (size_t i = 0; i < n && !r->bad; i++)
        keep(&list[i], read_block(r, BODY_NAME_MAX));
    return n;
}

int body_names_read(struct reader *r, struct body_names *out) {
    out->depth = read_u8(r);
    out->n = read_list(r, out->name, WATCHED_MAX);
    out->n_way = read_list(r, out->way, BODY_WAY_MAX);
    return r->bad || out->depth > LEVELS_MAX ? ERR_BAD : 0;
}
