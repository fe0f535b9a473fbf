#include "egress/substitute.h"

#include "base/base64.h"

#include <assert.h>

bool substitute_is_sendable(struct view secret) {
    if (secret.n == 0 || secret.p[0] == ' ' || secret.p[secret.n - 1] == ' ')
        return false;
    for (size_t i = 0; i < secret.n; i++)
        if (secret.p[i] < 0x20 || secret.p[i] == 0x7f)
            return false;
    return true;
}

/* The value behind "scheme SP"; false when it does not begin so. */
static bool behind_scheme(struct view value, struct view scheme, struct view *rest) {
    *rest = view_skip(value, scheme.n + 1);
    return scheme.n > 0 && value.n > scheme.n && view_starts(value, scheme) &&
           value.p[scheme.n] == ' ';
}

static void put_scheme(struct view scheme, struct buf *out) {
    buf_put(out, scheme);
    buf_put_u8(out, ' ');
}

static int put_plain(const struct material *m, struct view value, struct view secret,
                     struct buf *out) {
    struct view token = value;
    if (m->scheme.n > 0 && !behind_scheme(value, m->scheme, &token))
        return ERR_BAD;
    if (!view_equal(token, m->token))
        return ERR_BAD;
    if (m->scheme.n > 0)
        put_scheme(m->scheme, out);
    buf_put(out, secret);
    return 0;
}

static int put_pair(const struct material *m, struct view pair, struct view secret,
                    struct buf *out) {
    struct view password = pair;
    size_t colon = view_find(pair, ':');
    struct view user = view_cut(&password, ':');
    struct view *half = m->place == PLACE_BASIC_USER ? &user : &password;
    if (colon == pair.n || !view_equal(*half, m->token))
        return ERR_BAD;
    /* RFC 7617: the first colon ends the user. */
    if (m->place == PLACE_BASIC_USER && view_find(secret, ':') != secret.n)
        return ERR_BAD;
    *half = secret;
    buf_put(out, user);
    buf_put_u8(out, ':');
    buf_put(out, password);
    return buf_ok(out) ? 0 : ERR_MEMORY;
}

static int put_basic(const struct material *m, struct view value, struct view secret,
                     struct buf *out) {
    struct view encoded;
    struct buf before, after;
    if (!behind_scheme(value, m->scheme, &encoded))
        return ERR_BAD;
    buf_init(&before, BASIC_MAX);
    buf_init_secret(&after, SUBSTITUTE_MAX);
    int result = base64_decode(encoded, &before);
    if (result == 0)
        result = put_pair(m, buf_view(&before), secret, &after);
    if (result == 0) {
        put_scheme(m->scheme, out);
        base64_encode(buf_view(&after), out);
    }
    buf_free(&before);
    buf_free(&after);
    return result;
}

int substitute_field(const struct material *m, struct view value, struct view secret,
                     struct buf *out) {
    int result = ERR_BAD;
    assert(out->secret);
    if (m->malformed || m->token.n == 0 || !substitute_is_sendable(secret))
        return ERR_BAD;
    if (m->place == PLACE_HEADER)
        result = put_plain(m, value, secret, out);
    else if (m->place == PLACE_BASIC_USER || m->place == PLACE_BASIC_PASSWORD)
        result = put_basic(m, value, secret, out);
    return result == 0 && !buf_ok(out) ? ERR_MEMORY : result;
}

int substitute_request(struct fields *fields, const struct material *m, struct view secret,
                       struct buf *out) {
    struct field *field = NULL;
    for (size_t i = 0; i < fields->n; i++) {
        if (!view_equal_nocase(fields->at[i].name, m->name))
            continue;
        if (field)
            return ERR_BAD;
        field = &fields->at[i];
    }
    if (!field)
        return ERR_BAD;
    size_t at = buf_len(out);
    int result = substitute_field(m, field->value, secret, out);
    if (result == 0)
        field->value = view_skip(buf_view(out), at);
    return result;
}
