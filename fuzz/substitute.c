/*
 * Substitution of what provenance found in a field: the secret stands in the
 * result once and where the placeholder stood, the rest is as it was, and
 * nothing in it could end a head.
 *
 * Input: the secret's length, the secret, then the field's value.
 */
#include "egress/substitute.h"
#include "base/base64.h"
#include "base/secret.h"

#include <stdlib.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void require(bool holds) {
    if (!holds)
        abort();
}

static void check_plain(const struct material *m, struct view value, struct view secret,
                        struct view result) {
    size_t before = value.n - m->token.n;
    require(view_equal(view_head(result, before), view_head(value, before)));
    require(view_equal(view_skip(result, before), secret));
}

static void check_basic(const struct material *m, struct view secret, struct view result) {
    struct buf pair;
    buf_init(&pair, SUBSTITUTE_MAX);
    require(view_starts(result, m->scheme));
    require(base64_decode(view_skip(result, m->scheme.n + 1), &pair) == 0);
    struct view password = buf_view(&pair), user = view_cut(&password, ':');
    require(view_equal(m->place == PLACE_BASIC_USER ? user : password, secret));
    buf_free(&pair);
}

static void check(const struct material *m, struct view value, struct view secret) {
    struct buf out;
    buf_init_secret(&out, SUBSTITUTE_MAX);
    int result = substitute_field(m, value, secret, &out);
    if (result == 0) {
        struct view v = buf_view(&out);
        require(substitute_is_sendable(secret));
        require(view_find(v, '\r') == v.n && view_find(v, '\n') == v.n && view_find(v, 0) == v.n);
        if (m->place == PLACE_HEADER)
            check_plain(m, value, secret, v);
        else
            check_basic(m, secret, v);
    }
    buf_free(&out);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    static bool open;
    static struct materials m;
    if (!open)
        require(secret_arena_open((size_t)1 << 20) == 0);
    open = true;
    if (size == 0)
        return 0;
    struct view rest = view_of(data + 1, size - 1);
    struct view secret = view_head(rest, data[0]), value = view_skip(rest, data[0]);
    m.n = m.used = 0;
    m.overflow = false;
    provenance_field(VIEW("authorization"), value, NULL, &m);
    for (size_t i = 0; i < m.n; i++)
        check(&m.at[i], value, secret);
    require(secret_in_use() == 0);
    return 0;
}
