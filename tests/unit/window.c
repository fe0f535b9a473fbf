/* How the windows of uploads grow, shrink, and are bounded together. */
#include "egress/window.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#include <cmocka.h>

#include "base/channel.h"

enum { KIB = 1024, SIZE = 256 * KIB, PIECE = 16 * KIB };

/* One upload as both ends see it. */
struct upload {
    struct window w;
    size_t credit;   /* that proxy has */
    size_t unpassed; /* bytes that egress has */
};

static void begin(struct upload *u, size_t size) {
    *u = (struct upload){.credit = size};
    window_begin(&u->w, size);
}

static void come(struct upload *u, size_t n) {
    n = n < u->credit ? n : u->credit;
    u->credit -= n;
    u->unpassed += n;
}

/* Some of what has come leaves. How much credit that gave. */
static size_t leave(struct upload *u, size_t n, size_t *given) {
    n = n < u->unpassed ? n : u->unpassed;
    u->unpassed -= n;
    window_pass(&u->w, n);
    size_t credit = window_credit(&u->w, given);
    u->credit += credit;
    return credit;
}

static void flow(struct upload *u, size_t bytes, size_t *given) {
    for (size_t n = 0; n < bytes; n += PIECE) {
        come(u, PIECE);
        leave(u, PIECE, given);
    }
}

static void credit_comes_in_halves_of_the_window(void **state) {
    (void)state;
    struct upload u;
    size_t given = WINDOWS_MORE_MAX; /* nothing is left to grow by */
    begin(&u, SIZE);
    come(&u, SIZE);
    assert_int_equal(leave(&u, SIZE / 2 - 1, &given), 0);
    assert_int_equal(leave(&u, PIECE, &given), SIZE / 2);
    /* What is odd stays owed, and counts for the next half. */
    assert_int_equal(leave(&u, SIZE / 2 - PIECE, &given), 0);
    assert_int_equal(leave(&u, 1, &given), SIZE / 2);
    assert_int_equal(u.w.owed, 0);
}

static void an_upload_that_flows_is_given_as_much_again_and_no_more(void **state) {
    (void)state;
    struct upload u;
    size_t given = 0;
    begin(&u, SIZE);
    flow(&u, SIZE - PIECE, &given);
    assert_int_equal(u.w.more, 0);
    flow(&u, PIECE, &given);
    assert_int_equal(u.w.more, SIZE);
    flow(&u, 64 * SIZE, &given);
    assert_int_equal(u.w.more, SIZE);
    assert_int_equal(given, SIZE);
    assert_int_equal(u.credit + u.w.owed, 2 * SIZE);
    window_end(&u.w, &given);
    assert_int_equal(given, 0);
}

static void one_that_waits_gives_it_back_with_what_leaves_next(void **state) {
    (void)state;
    struct upload u;
    size_t given = 0;
    begin(&u, SIZE);
    flow(&u, 2 * SIZE, &given);
    come(&u, 2 * SIZE);
    window_wait(&u.w);
    size_t left = 0;
    for (; u.w.more > 0; left += PIECE)
        assert_int_equal(leave(&u, PIECE, &given), 0);
    assert_true(left <= SIZE);
    assert_int_equal(given, 0);
    assert_int_equal(u.credit + u.unpassed + u.w.owed, SIZE);
    /* And has it again once a whole window flowed. */
    flow(&u, 2 * SIZE, &given);
    assert_int_equal(given, SIZE);
}

static void a_lane_gives_no_more_than_it_has(void **state) {
    (void)state;
    enum { ENOUGH = WINDOWS_MORE_MAX / SIZE };
    struct upload u[ENOUGH + 1];
    size_t given = 0;
    for (size_t i = 0; i <= ENOUGH; i++) {
        begin(&u[i], SIZE);
        flow(&u[i], 4 * SIZE, &given);
        assert_int_equal(u[i].w.more, i < ENOUGH ? SIZE : 0);
    }
    assert_int_equal(given, WINDOWS_MORE_MAX);
    window_end(&u[0].w, &given);
    flow(&u[ENOUGH], SIZE, &given);
    assert_int_equal(u[ENOUGH].w.more, SIZE);
    assert_int_equal(given, WINDOWS_MORE_MAX);
}

static void no_window_is_longer_than_the_longest_message(void **state) {
    (void)state;
    const struct {
        size_t size, more;
    } cases[] = {
        {32 * KIB, 32 * KIB}, {512 * KIB, 512 * KIB}, {768 * KIB, 256 * KIB}, {1024 * KIB, 0}};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct upload u;
        size_t given = 0;
        begin(&u, cases[i].size);
        flow(&u, 8 * cases[i].size, &given);
        assert_int_equal(u.w.more, cases[i].more);
        assert_true(u.w.size + u.w.more <= CHANNEL_BODY_MAX);
    }
}

/* Nothing is lost nor invented, whatever comes, leaves, waits and ends. */
static void credit_is_what_the_window_says_less_what_is_on_its_way(void **state) {
    (void)state;
    enum { UPLOADS = 40, TURNS = 200000 };
    static struct upload u[UPLOADS];
    size_t given = 0;
    unsigned seed = (unsigned)time(NULL);
    print_message("seed %u\n", seed);
    srand(seed);
    for (size_t i = 0; i < UPLOADS; i++)
        begin(&u[i], SIZE);
    for (int turn = 0; turn < TURNS; turn++) {
        struct upload *one = &u[rand() % UPLOADS];
        int what = rand() % 100;
        if (what < 48)
            come(one, (size_t)rand() % SIZE);
        else if (what < 96)
            leave(one, (size_t)rand() % SIZE, &given);
        else if (what < 99)
            window_wait(&one->w);
        else {
            window_end(&one->w, &given);
            begin(one, SIZE);
        }
        size_t all = 0;
        for (size_t i = 0; i < UPLOADS; i++)
            all += u[i].w.more;
        assert_int_equal(all, given);
        assert_true(given <= WINDOWS_MORE_MAX);
        assert_int_equal(one->credit + one->unpassed + one->w.owed, one->w.size + one->w.more);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(credit_comes_in_halves_of_the_window),
        cmocka_unit_test(an_upload_that_flows_is_given_as_much_again_and_no_more),
        cmocka_unit_test(one_that_waits_gives_it_back_with_what_leaves_next),
        cmocka_unit_test(a_lane_gives_no_more_than_it_has),
        cmocka_unit_test(no_window_is_longer_than_the_longest_message),
        cmocka_unit_test(credit_is_what_the_window_says_less_what_is_on_its_way),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
