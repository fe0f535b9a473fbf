#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "base/digest.h"
#include "base/loop.h"
#include "egress/exchange.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>

/* Where numbers of a row stand in the ledger, of which nobody else knows. */
enum { FIRST_ROW = 8, USES = 104, TOKENS = 120 };

static struct policy_errors errors;

/* A lane lives as long as its process; static, for what each has counted to be told from a leak. */
static struct lane lanes[64];
static size_t n_lanes;

/* A lane with a policy of one sandbox s, and exchanges of it that ask for the operation r. */
struct world {
    struct loop *loop;
    struct lane *lane;
    struct generation generation;
    struct exchange *exchanges[4];
    int memory;
};

static void use_policy(struct world *w, const char *grants) {
    char text[512];
    snprintf(text, sizeof text,
             "service a { host a.test; operation r { GET /r } }\nsandbox s { %s }\n", grants);
    policy_free(w->generation.policy);
    free(w->generation.grants);
    if (policy_load(view_str(text), "policy", &w->generation.policy, &errors) != 0)
        fail_msg("%s: %s", grants, errors.at[0].text);
    const struct policy *p = w->generation.policy;
    w->generation.grants = calloc(policy_grants(p) + 1, DIGEST_SIZE);
    for (size_t i = 0; i < policy_grants(p); i++)
        snprintf((char *)w->generation.grants[i], DIGEST_SIZE, "%.*s",
                 VIEW_ARG(grant_note(policy_grant_at(p, i))));
}

/* The next egress of the lane, which asks for what the last one did. */
static void attach(struct world *w) {
    assert_true(n_lanes < sizeof lanes / sizeof *lanes);
    w->lane = &lanes[n_lanes++];
    w->lane->loop = w->loop;
    w->lane->now = &w->generation;
    assert_int_equal(tally_attach(w->lane, dup(w->memory)), 0);
    for (size_t i = 0; i < 4; i++)
        if (w->exchanges[i])
            w->exchanges[i]->lane = w->lane;
}

static struct world *world_new(const char *grants) {
    struct world *w = calloc(1, sizeof *w);
    w->loop = loop_new();
    w->memory = memfd_create("grants", MFD_CLOEXEC);
    assert_true(w->loop && w->memory >= 0);
    assert_int_equal(ftruncate(w->memory, (off_t)CHILD_LEDGER_SIZE), 0);
    use_policy(w, grants);
    attach(w);
    return w;
}

static void world_free(struct world *w) {
    for (size_t i = 0; i < 4; i++)
        free(w->exchanges[i]);
    policy_free(w->generation.policy);
    free(w->generation.grants);
    close(w->memory);
    loop_free(w->loop);
    free(w);
}

static struct verdict judge(struct world *w) {
    static const struct authority a = {.kind = HOST_NAME, .host = "a.test", .port = 443};
    static const struct target t = {.path = {(const uint8_t *)"/r", 2}, .n_segments = 1};
    static const struct materials none;
    struct request_facts f = {.sandbox = VIEW("s"),
                              .tls = true,
                              .authority = &a,
                              .method = VIEW("GET"),
                              .target = &t,
                              .materials = &none,
                              .length_known = true};
    return policy_judge(w->generation.policy, &f);
}

static struct exchange *request_of(struct world *w, size_t i, const char *sandbox) {
    free(w->exchanges[i]);
    struct exchange *ex = w->exchanges[i] = calloc(1, sizeof *ex);
    ex->lane = w->lane;
    ex->generation = &w->generation;
    snprintf(ex->sandbox, sizeof ex->sandbox, "%s", sandbox);
    ex->verdict = judge(w);
    assert_true(ex->verdict.allow);
    return ex;
}

static struct exchange *request(struct world *w, size_t i) {
    return request_of(w, i, "s");
}

static void send_and_end(struct exchange *ex) {
    ex->taken.sent = true;
    tally_give(ex);
}

static void gf_uses_go_on_in_the_next_lane_and_requests_in_progress_do_not(void **state) {
    (void)state;
    struct world *w = world_new("grant a r uses 3 concurrent 1");
    struct exchange *ex = request(w, 0);
    assert_int_equal(tally_take(ex), REASON_ALLOWED);
    send_and_end(ex);
    assert_int_equal(tally_take(request(w, 0)), REASON_ALLOWED);
    ex = request(w, 1);
    assert_int_equal(tally_take(ex), REASON_GRANT_CONCURRENT);
    assert_true(ex->verdict.at.line == 2 && ex->trail.retry_after == 1);
    attach(w);
    assert_int_equal(tally_take(ex), REASON_ALLOWED);
    send_and_end(ex);
    assert_int_equal(tally_take(ex), REASON_GRANT_USED);
    world_free(w);
}

static void gf_what_is_not_sent_is_given_back(void **state) {
    (void)state;
    struct world *w = world_new("grant a r uses 1 bytes out 100");
    struct exchange *ex = request(w, 0);
    ex->request.framing = FRAMING_LENGTH;
    ex->request.length = 101;
    assert_int_equal(tally_take(ex), REASON_GRANT_BYTES);
    ex->request.length = 60;
    assert_int_equal(tally_take(ex), REASON_ALLOWED);
    assert_false(tally_take_head(ex, 41));
    assert_true(tally_take_head(ex, 40));
    assert_false(tally_take_head(ex, 1));
    tally_give(ex);
    assert_int_equal(tally_take(ex), REASON_ALLOWED);
    assert_true(tally_take_head(ex, 40));
    ex->body_framed = 10;
    send_and_end(ex);
    use_policy(w, "grant a r uses 9 bytes out 100");
    ex = request(w, 0);
    ex->request.framing = FRAMING_CHUNKED;
    assert_int_equal(tally_take(ex), REASON_ALLOWED);
    assert_false(tally_take_body(ex, 51));
    assert_true(tally_take_body(ex, 50) && !tally_take_body(ex, 1));
    world_free(w);
}

static void gf_what_another_egress_wrote_is_taken_for_what_it_is_worth(void **state) {
    (void)state;
    struct world *w = world_new("grant a r rate 5/h");
    assert_int_equal(tally_take(request(w, 0)), REASON_ALLOWED);
    const double bad[] = {NAN, -1e300, -INFINITY};
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        assert_int_equal(pwrite(w->memory, &bad[i], 8, FIRST_ROW + TOKENS), 8);
        attach(w);
        assert_int_equal(tally_take(request(w, 1)), REASON_GRANT_RATE);
    }
    const double much = 1e300;
    assert_int_equal(pwrite(w->memory, &much, 8, FIRST_ROW + TOKENS), 8);
    attach(w);
    for (int i = 0; i < 5; i++)
        assert_int_equal(tally_take(request(w, 1)), REASON_ALLOWED);
    assert_int_equal(tally_take(request(w, 1)), REASON_GRANT_RATE);
    const uint64_t many = UINT64_MAX;
    assert_int_equal(pwrite(w->memory, &many, 8, 0), 8);
    struct lane other = {.loop = w->loop, .now = &w->generation};
    assert_int_equal(tally_attach(&other, dup(w->memory)), ERR_BAD);
    other = (struct lane){.loop = w->loop, .now = &w->generation};
    assert_int_equal(ftruncate(w->memory, 4096), 0);
    assert_int_equal(tally_attach(&other, dup(w->memory)), ERR_BAD);
    world_free(w);
}

/* Takes and gives back for sandbox after sandbox until there is no place. */
static void fill_ledger(struct world *w) {
    char name[16];
    size_t n = 0;
    for (enum reason why = REASON_ALLOWED; why == REASON_ALLOWED && n < 10000; n++) {
        snprintf(name, sizeof name, "s%zu", n);
        struct exchange *ex = request_of(w, 3, name);
        why = tally_take(ex);
        tally_give(ex);
    }
    assert_in_range(n, 5000, 9999);
}

static void gf_without_a_place_to_count_nothing_leaves(void **state) {
    (void)state;
    struct world *w = world_new("grant a r uses 3 note one");
    fill_ledger(w);
    assert_int_equal(tally_take(request_of(w, 0, "another")), REASON_TOO_MANY);
    /* Nobody needs those rows any more. */
    use_policy(w, "grant a r uses 3 note two");
    assert_int_equal(tally_take(request_of(w, 0, "another")), REASON_ALLOWED);
    w->lane->ledger = NULL;
    assert_int_equal(tally_take(request(w, 1)), REASON_TOO_MANY);
    world_free(w);
}

static void gf_a_newer_generation_goes_on_with_the_same_grant(void **state) {
    (void)state;
    struct world *w = world_new("grant a r uses 2 note one");
    struct exchange *ex = request(w, 0);
    assert_int_equal(tally_take(ex), REASON_ALLOWED);
    ex->taken.sent = true;
    use_policy(w, "grant a r uses 2 until 2090-01-01T00:00:00Z note one");
    ex->verdict = judge(w);
    assert_int_equal(tally_move(ex), REASON_ALLOWED);
    assert_true(ex->taken.sent && ex->taken.until > 0 && ex->taken.ends.line == 2);
    assert_int_equal(tally_take(request(w, 1)), REASON_ALLOWED);
    assert_int_equal(tally_take(request(w, 2)), REASON_GRANT_USED);
    /* One that is too narrow now has been used all the same. */
    use_policy(w, "grant a r uses 1 note one");
    ex->verdict = judge(w);
    assert_int_equal(tally_move(ex), REASON_GRANT_USED);
    send_and_end(ex);
    uint64_t uses;
    assert_int_equal(pread(w->memory, &uses, 8, FIRST_ROW + USES), 8);
    assert_int_equal(uses, 2);
    world_free(w);
}

static void gf_a_move_that_fails_leaves_the_grant_it_was_sent_by(void **state) {
    (void)state;
    struct world *w = world_new("grant a r uses 3 note one");
    struct exchange *ex = request(w, 0);
    ex->request.framing = FRAMING_LENGTH;
    ex->request.length = 100;
    assert_int_equal(tally_take(ex), REASON_ALLOWED);
    ex->taken.sent = true;
    fill_ledger(w);
    /* There is no room but in the place of grants that nobody has any more, of which its own is the first. */
    use_policy(w, "grant a r bytes out 10 note two");
    ex->verdict = judge(w);
    assert_int_equal(tally_move(ex), REASON_GRANT_BYTES);
    assert_int_equal(ex->taken.n, 1);
    tally_give(ex);
    uint64_t uses;
    char grant[4];
    assert_int_equal(pread(w->memory, grant, sizeof grant, FIRST_ROW), sizeof grant);
    assert_string_equal(grant, "one");
    assert_int_equal(pread(w->memory, &uses, 8, FIRST_ROW + USES), 8);
    assert_int_equal(uses, 1);
    world_free(w);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(gf_uses_go_on_in_the_next_lane_and_requests_in_progress_do_not),
        cmocka_unit_test(gf_what_is_not_sent_is_given_back),
        cmocka_unit_test(gf_what_another_egress_wrote_is_taken_for_what_it_is_worth),
        cmocka_unit_test(gf_without_a_place_to_count_nothing_leaves),
        cmocka_unit_test(gf_a_newer_generation_goes_on_with_the_same_grant),
        cmocka_unit_test(gf_a_move_that_fails_leaves_the_grant_it_was_sent_by),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
