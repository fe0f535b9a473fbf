/*
 * Reading bodies for rules: the facts do not depend on the cuts; what is unclear tells nothing;
 * every fact is well-formed and within its bounds.
 *
 * Input: source, protocols, piece size; then the body.
 */
#include "policy/body_read.h"
#include "fuzz/require.h"
#include "policy/json_read.h"

#include "base/utf8.h"

#include <stdlib.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static const char *const pointers[] = {"/a", "/a/*/b", "/*/a", "/a~1/0", "/method", "/query", ""};
enum { N_POINTERS = sizeof pointers / sizeof *pointers };

static struct body_read *read_body(const uint8_t *head, struct view body, size_t piece,
                                   const struct body_facts **facts) {
    struct view asked[N_POINTERS];
    struct body_read *r;
    for (size_t i = 0; i < N_POINTERS; i++)
        asked[i] = view_str(pointers[i]);
    struct body_wants w = {.pointers = asked,
                           .n_pointers = N_POINTERS,
                           .graphql = head[1] & 1,
                           .rpc = head[1] & 2,
                           .limit = head[1] & 4 ? 64 : UINT64_MAX};
    REQUIRE(body_read_new((enum body_source)(head[0] % 3), &w, &r) == 0);
    for (; body.n > 0; body = view_skip(body, piece))
        body_read_feed(r, view_head(body, piece));
    *facts = body_read_end(r);
    return r;
}

static void check_value(const struct body_value *v, enum body_source source) {
    REQUIRE(v->pointer < N_POINTERS && utf8_is_text(v->value));
    REQUIRE((v->type == BODY_TEXT) <= (source == BODY_SOURCE_FORM));
    if (v->type == BODY_NULL || v->type == BODY_ARRAY || v->type == BODY_OBJECT)
        REQUIRE(v->value.n == 0);
    if (v->type == BODY_BOOLEAN)
        REQUIRE(view_equal(v->value, VIEW("true")) || view_equal(v->value, VIEW("false")));
    if (v->type == BODY_NUMBER)
        REQUIRE(v->value.n > 0);
    if (v->type == BODY_STRING || v->type == BODY_TEXT)
        REQUIRE(view_find(v->value, 0) == v->value.n);
}

static void check(const struct body_facts *f, enum body_source source) {
    REQUIRE(!f->unclear || (f->why && f->n_values == 0 && !f->graphql.known && !f->rpc.known));
    REQUIRE(f->n_values <= BODY_VALUES_MAX);
    for (size_t i = 0; i < f->n_values; i++)
        check_value(&f->values[i], source);
    if (f->graphql.known)
        for (size_t i = 0; i < f->graphql.n_fields; i++)
            REQUIRE(f->graphql.fields[i].n > 0);
    if (f->rpc.known)
        REQUIRE(f->rpc.n_calls > 0 && (f->rpc.batch || f->rpc.n_calls == 1));
}

static void compare(const struct body_facts *a, const struct body_facts *b) {
    REQUIRE(a->unclear == b->unclear && a->why == b->why && a->n_values == b->n_values &&
            a->graphql.known == b->graphql.known && a->rpc.known == b->rpc.known &&
            a->graphql.n_fields == b->graphql.n_fields && a->rpc.n_calls == b->rpc.n_calls);
    for (size_t i = 0; i < a->n_values; i++)
        REQUIRE(a->values[i].pointer == b->values[i].pointer &&
                a->values[i].type == b->values[i].type &&
                a->values[i].alike == b->values[i].alike &&
                view_equal(a->values[i].value, b->values[i].value));
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    const struct body_facts *a, *b;
    if (size < 3)
        return 0;
    struct view body = view_of(data + 3, size - 3);
    struct body_read *whole = read_body(data, body, SIZE_MAX, &a);
    struct body_read *pieces = read_body(data, body, 1u + data[2] % 32, &b);
    check(a, (enum body_source)(data[0] % 3));
    compare(a, b);
    body_read_free(whole);
    body_read_free(pieces);
    return 0;
}
