/*
 * Substitution of what provenance found in a request: the secret stands in the
 * result where the placeholder stood, all else is as it was, and nothing in
 * it could end a head or begin another parameter.
 *
 * Input: how the rest is parted (a secret, a field's value, a cookie's, a target), and these.
 */
#include "egress/substitute.h"
#include "base/base64.h"
#include "base/secret.h"
#include "fuzz/require.h"

#include <stdlib.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static const uint8_t data_q[] = "q";

struct request {
    struct fields fields;
    struct view target;
    struct materials materials;
};

static size_t count(struct view v, uint8_t c) {
    size_t n = 0;
    for (size_t i = 0; i < v.n; i++)
        n += v.p[i] == c;
    return n;
}

static bool is_basic(const struct material *m) {
    return m->place == PLACE_BASIC_USER || m->place == PLACE_BASIC_PASSWORD;
}

/* What stood before and behind the placeholder still does; between them is the secret, spelled. */
static void check_plain(const struct material *m, struct view before, struct view after,
                        struct view secret) {
    size_t at = (size_t)(m->raw.p - before.p), rest = before.n - at - m->raw.n;
    struct buf spelled;
    buf_init_secret(&spelled, SUBSTITUTE_MAX);
    substitute_spell(m->place, secret, &spelled);
    REQUIRE(after.n == at + buf_len(&spelled) + rest);
    REQUIRE(view_equal(view_head(after, at), view_head(before, at)));
    REQUIRE(view_equal(view_slice(after, at, after.n - rest), buf_view(&spelled)));
    REQUIRE(view_equal(view_skip(after, after.n - rest), view_skip(before, before.n - rest)));
    buf_free(&spelled);
}

static void check_basic(const struct material *m, struct view after, struct view secret) {
    struct buf pair;
    buf_init(&pair, SUBSTITUTE_MAX);
    (void)view_cut(&after, ' ');
    REQUIRE(base64_decode(after, &pair) == 0);
    struct view password = buf_view(&pair), user = view_cut(&password, ':');
    REQUIRE(view_equal(m->place == PLACE_BASIC_USER ? user : password, secret));
    buf_free(&pair);
}

static void check_target(struct view before, struct view after) {
    static const char parts[] = "/?&=;# \r\n";
    for (size_t i = 0; i < sizeof parts; i++)
        REQUIRE(count(after, (uint8_t)parts[i]) <= count(before, (uint8_t)parts[i]));
}

static void check(const struct request *r, size_t i, struct view secret) {
    const struct material *m = &r->materials.at[i];
    struct fields fields = r->fields;
    struct view target = r->target;
    struct buf out;
    buf_init_secret(&out, SUBSTITUTE_MAX);
    if (substitute_request(&fields, &target, &r->materials, UINT32_C(1) << i, secret, &out) == 0) {
        REQUIRE(!m->malformed && !substitute_misfit(m->place, secret));
        bool in_target = m->place == PLACE_QUERY || m->place == PLACE_PATH;
        size_t at = m->place == PLACE_COOKIE;
        struct view before = in_target ? r->target : r->fields.at[at].value;
        struct view after = in_target ? target : fields.at[at].value;
        REQUIRE(count(after, '\r') + count(after, '\n') + count(after, 0) == 0);
        if (is_basic(m))
            check_basic(m, after, secret);
        else
            check_plain(m, before, after, secret);
        if (in_target)
            check_target(before, after);
    }
    buf_free(&out);
}

static bool is_value(struct view v) {
    for (size_t i = 0; i < v.n; i++)
        if (v.p[i] < ' ')
            return false;
    return true;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    static const struct credential_place query = {.place = PLACE_QUERY, .name = {data_q, 1}},
                                         path = {.place = PLACE_PATH, .segment = 2};
    static const struct watched watched = {{&query, &path}, 2};
    static bool open;
    static struct request r;
    struct target parsed;
    struct buf canonical;
    if (!open)
        REQUIRE(secret_arena_open((size_t)8 << 20) == 0);
    open = true;
    if (size < 3)
        return 0;
    struct view rest = view_of(data + 3, size - 3);
    struct view secret = view_head(rest, data[0]),
                value = view_head(view_skip(rest, data[0]), data[1]);
    rest = view_skip(rest, (size_t)data[0] + data[1]);
    struct view cookie = view_head(rest, data[2]);
    if (!is_value(value) || !is_value(cookie))
        return 0;
    r.fields.n = r.materials.n = r.materials.used = 0;
    r.materials.overflow = false;
    REQUIRE(fields_add(&r.fields, VIEW("authorization"), value) == 0);
    REQUIRE(fields_add(&r.fields, VIEW("cookie"), cookie) == 0);
    provenance_field(VIEW("authorization"), value, NULL, &r.materials);
    provenance_field(VIEW("cookie"), cookie, NULL, &r.materials);
    buf_init(&canonical, 64 * 1024);
    if (target_parse(view_skip(rest, data[2]), SEGMENTS_MAX, &canonical, &parsed, NULL) == 0)
        provenance_target(&parsed, &watched, &r.materials);
    r.target = buf_view(&canonical);
    for (size_t i = 0; i < r.materials.n; i++)
        check(&r, i, secret);
    buf_free(&canonical);
    REQUIRE(secret_in_use() == 0);
    return 0;
}
