/* What lanes ask of the broker: leases of secrets and of client certificates. */
#include "tests/unit/broker_world.h"

#include "base/client_key.h"
#include "base/openssl_memory.h"
#include "tests/unit/certificates.h"

/* ---- leases ---- */

static void a_lease_is_lent_to_whom_it_was_issued(void **state) {
    struct world *w = *state;
    add_all(w);
    assert_memory_equal(w->placeholder, "sk-exeat", 8);
    assert_lent(ask_right(w), 1, value_1);
    assert_true(recorded(w, "lease", "demo"));
}

static void a_lease_is_refused_when_anything_does_not_fit(void **state) {
    struct world *w = *state;
    char near[128], other_lane[128];
    const char *p = w->placeholder;
    add_all(w);
    assert_int_equal(ask(w, BROKER_SANDBOX_ADD, "other"), 0);
    char json[1024];
    assert_int_equal(view_cstr(w->text, json, sizeof json), 0);
    assert_int_equal(sscanf(strstr(json, "\"value\":\""), "\"value\":\"%127[^\"]", other_lane), 1);
    strcpy(near, p);
    near[strlen(near) - 1] ^= 1;
    const struct {
        size_t lane;
        struct lease_ask ask;
        enum reason reason;
    } cases[] = {
        {1, {"worker", "demo", API, 443, p, 0}, REASON_PLACEHOLDER_WRONG_IDENTITY},
        {0, {"other", "demo", API, 443, other_lane, 0}, REASON_PLACEHOLDER_WRONG_IDENTITY},
        {0, {"worker", "demo", API, 443, other_lane, 0}, REASON_PLACEHOLDER_WRONG_IDENTITY},
        {0, {"worker", "demo", API, 443, near, 0}, REASON_PLACEHOLDER_WRONG_IDENTITY},
        {0, {"worker", "demo", API, 443, w->token, 0}, REASON_PLACEHOLDER_WRONG_IDENTITY},
        {0, {"worker", "none", API, 443, p, 0}, REASON_PLACEHOLDER_WRONG_IDENTITY},
        {0,
         {"worker", "demo", "evil.example.com", 443, p, 0},
         REASON_PLACEHOLDER_WRONG_DESTINATION},
        {0, {"worker", "demo", API, 8443, p, 0}, REASON_PLACEHOLDER_WRONG_DESTINATION},
        {0, {"worker", "demo", API, 443, p, 1000}, REASON_NOT_READY},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        recorded(w, "", "");
        assert_refused(ask_lease(w, cases[i].lane, &cases[i].ask), cases[i].reason);
        assert_true(recorded(w, reason_info(cases[i].reason)->code, cases[i].ask.credential));
    }
    assert_lent(ask_lease(w, 1, &(struct lease_ask){"other", "demo", API, 443, other_lane, 0}), 1,
                value_1);
}

static void ph_13_rotation_recalls_leases_and_the_next_is_new(void **state) {
    struct world *w = *state;
    add_all(w);
    assert_lent(ask_right(w), 1, value_1);
    assert_int_equal(give(w, BROKER_SECRET_ROTATE, "demo", value_2), 0);
    assert_true(view_equal(w->text, VIEW("{\"name\":\"demo\",\"version\":2}")));
    settle(w);
    for (size_t i = 0; i < 2; i++)
        assert_non_null(last_of(&w->lane[i], LEASE_DROP));
    assert_lent(ask_right(w), 2, value_2);
}

static void ph_13_removal_ends_the_placeholders(void **state) {
    struct world *w = *state;
    add_all(w);
    assert_int_equal(ask(w, BROKER_SECRET_REMOVE, "demo"), 0);
    assert_non_null(last_of(&w->lane[0], LEASE_DROP));
    assert_refused(ask_right(w), REASON_PLACEHOLDER_WRONG_IDENTITY);
    assert_int_equal(give(w, BROKER_SECRET_ADD, "demo", value_2), 0);
    assert_refused(ask_right(w), REASON_PLACEHOLDER_WRONG_IDENTITY);
}

static void issuing_again_ends_what_was_issued_before(void **state) {
    struct world *w = *state;
    add_all(w);
    assert_int_equal(ask(w, BROKER_SANDBOX_ADD, "worker"), 0);
    assert_refused(ask_right(w), REASON_PLACEHOLDER_WRONG_IDENTITY);
}

static void nothing_is_lent_without_an_audit_record(void **state) {
    struct world *w = *state;
    add_all(w);
    shutdown(w->audit, SHUT_RDWR);
    assert_refused(ask_right(w), REASON_AUDIT_UNAVAILABLE);
    assert_int_equal(give(w, BROKER_SECRET_ROTATE, "demo", value_2), ERR_SYSTEM);
    assert_int_equal(ask(w, BROKER_SECRET_REMOVE, "demo"), ERR_SYSTEM);
    assert_int_equal(ask(w, BROKER_SECRET_LIST, NULL), 0);
    assert_says(w, "\"version\":1");
}

static void a_lane_that_breaks_the_contract_is_dropped_alone(void **state) {
    struct world *w = *state;
    add_all(w);
    channel_send(w->lane[1].channel, LEASE_ASK, 1, w->generation, VIEW("nonsense"));
    settle(w);
    settle(w);
    assert_true(w->lane[1].closed);
    struct got *bad = last_of(&w->parent, ROLE_BAD_PEER);
    assert_non_null(bad);
    assert_int_equal(bad->body[0], ROLE_EGRESS);
    assert_int_equal(bad->body[4], 2);
    assert_lent(ask_right(w), 1, value_1);
}

/* ---- client certificates ---- */

#define SHOWN "shown.example.com"

static struct got *ask_certificate(struct world *w, size_t lane, const struct lease_ask *a) {
    return send_lease_ask(w, lane, LEASE_ASK_CERTIFICATE, a, VIEW(""));
}

static void assert_not_shown(const struct got *g, enum reason reason, const char *says) {
    struct reader r = reader_of(view_of(g->body, g->n));
    assert_int_equal(g->type, LEASE_CERTIFICATE_REFUSED);
    assert_int_equal(read_u16(&r), reason);
    struct view detail = read_block(&r, LEASE_REFUSED_MAX);
    assert_true(read_done(&r));
    if (*says)
        assert_true(view_search(detail, view_str(says)) < detail.n);
}

static void a_client_certificate_is_lent_where_its_service_shows_it_only(void **state) {
    static const struct {
        size_t lane;
        struct lease_ask ask;
    } elsewhere[] = {
        {0, {"other", "us", SHOWN, 443, NULL, 0}},   {1, {"worker", "us", SHOWN, 443, NULL, 0}},
        {1, {"other", "us", SHOWN, 443, NULL, 0}},   {0, {"worker", "us", API, 443, NULL, 0}},
        {0, {"worker", "us", SHOWN, 8443, NULL, 0}}, {0, {"worker", "demo", SHOWN, 443, NULL, 0}},
    };
    static const struct lease_ask shown = {"worker", "us", SHOWN, 443, NULL, 0},
                                  early = {"worker", "us", SHOWN, 443, NULL, 99};
    struct world *w = *state;
    struct certificate t = certificate_make(&(struct wish){.cn = "us", .eku = "clientAuth"});
    struct buf pem, key;
    char chain[4096], text_key[1024];
    add_all(w);
    buf_init(&pem, 4096);
    put_pem(&pem, &t);
    assert_int_equal(view_cstr(buf_view(&pem), chain, sizeof chain), 0);
    buf_init(&key, 1024);
    put_key(&key, &t);
    assert_int_equal(view_cstr(buf_view(&key), text_key, sizeof text_key), 0);
    assert_not_shown(ask_certificate(w, 0, &shown), REASON_CERTIFICATE_UNAVAILABLE,
                     "no client certificate of that name");
    struct ask add = {.type = BROKER_SECRET_ADD, .name = "us", .pem = chain};
    assert_int_equal(ask_fd(w, &add, memory_file(view_str(text_key))), 0);
    const struct got *g = ask_certificate(w, 0, &shown);
    struct reader r = reader_of(view_of(g->body, g->n));
    assert_int_equal(g->type, LEASE_CERTIFICATE);
    read_bytes(&r, DIGEST_SIZE);
    assert_true(read_block(&r, CERTIFICATE_CHAIN_MAX).n > 0);
    assert_int_equal(read_block(&r, CLIENT_KEY_DIGITS).n, 64);
    assert_true(read_done(&r));
    assert_true(recorded(w, "certificate_lent", "us"));
    for (size_t i = 0; i < sizeof elsewhere / sizeof *elsewhere; i++)
        assert_not_shown(ask_certificate(w, elsewhere[i].lane, &elsewhere[i].ask),
                         REASON_CERTIFICATE_UNAVAILABLE, "policy");
    assert_not_shown(ask_certificate(w, 0, &early), REASON_NOT_READY, "");
    /* It is never lent as what goes into a request. */
    struct lease_ask as_secret = {"worker", "us", SHOWN, 443, w->placeholder, 0};
    assert_refused(ask_lease(w, 0, &as_secret), REASON_PLACEHOLDER_WRONG_IDENTITY);
    certificate_free(&t);
    buf_free(&pem);
    buf_free(&key);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        TEST(a_lease_is_lent_to_whom_it_was_issued),
        TEST(a_lease_is_refused_when_anything_does_not_fit),
        TEST(ph_13_rotation_recalls_leases_and_the_next_is_new),
        TEST(ph_13_removal_ends_the_placeholders),
        TEST(issuing_again_ends_what_was_issued_before),
        TEST(nothing_is_lent_without_an_audit_record),
        TEST(a_lane_that_breaks_the_contract_is_dropped_alone),
        TEST(a_client_certificate_is_lent_where_its_service_shows_it_only),
    };
    if (openssl_memory_start() != 0)
        return 1;
    return cmocka_run_group_tests(tests, start_group, NULL);
}
