#include "tests/unit/guard_flow.h"

enum { FRAGMENTS_MOST = 64 };

static void a_whole_secret_in_any_spelling_counts_as_no_fragment(void **state) {
    (void)state;
    struct guard_set *set = set_of(secret, jwt);
    guard_set_count_fragments(set, 0, 1000);
    uint8_t spelled[1024];
    for (size_t which = 0; which < 2; which++) {
        struct view v = view_str(which ? jwt : secret);
        for (size_t kind = 0; kind < SPELLINGS; kind++) {
            struct text t = {.n = 0};
            put(&t, VIEW("a=\""), false);
            put(&t, view_of(spelled, spelling_write(kind, v, spelled)), true);
            put(&t, VIEW("\"; b"), false);
            check_text(set, &t);
            assert_null(guard_set_exceeded(set));
        }
    }
    guard_set_free(set);
}

static void each_fragment_counts_once_and_too_many_exceed_the_set(void **state) {
    (void)state;
    struct guard_set *set = set_of(secret, NULL);
    struct flow f;
    char text[128];
    guard_set_count_fragments(set, 3, 1000);
    flow_open(&f, set);
    size_t head = spelling_public_head(view_str(secret), 4, RUN);
    for (size_t i = 0; i < 3; i++)
        for (size_t again = 0; again < 50; again++)
            feed(&f, view_str(fragment_at(head + i, head + i + RUN, text)));
    assert_null(guard_set_exceeded(set));
    size_t before = buf_len(&f.out);
    struct view one_more = view_str(fragment_at(head + 3, head + 3 + RUN, text));
    assert_int_equal(guard_stream_feed(&f.stream, one_more, &f.out), ERR_DENIED);
    assert_int_equal(buf_len(&f.out), before);
    assert_string_equal(guard_set_exceeded(set), "key");
    /* It lasts its time from then on, also when the secret would be forgotten before; then all begins anew. */
    guard_set_expire(set, 99);
    guard_set_expire(set, 1098);
    assert_string_equal(guard_set_exceeded(set), "key");
    guard_set_expire(set, 1099);
    assert_null(guard_set_exceeded(set));
    flow_close(&f);
    guard_set_free(set);
}

static void a_fragment_in_pieces_counts_as_one_in_any_spelling(void **state) {
    (void)state;
    uint8_t spelled[1024];
    for (size_t kind = 0; kind < SPELLINGS; kind++) {
        struct guard_set *set = set_of(jwt, NULL);
        struct flow f;
        guard_set_count_fragments(set, 1, 1000);
        flow_open(&f, set);
        size_t n = spelling_write(kind, view_str(jwt), spelled);
        size_t cut = spelling_offset(kind, view_str(jwt), sizeof jwt - 6);
        for (size_t i = 0; i < cut && i < n; i++)
            feed(&f, view_of(spelled + i, 1));
        feed(&f, VIEW(" x"));
        assert_null(guard_set_exceeded(set));
        guard_set_count_fragments(set, 0, 1000);
        assert_string_equal(guard_set_exceeded(set), "key");
        flow_close(&f);
        guard_set_free(set);
    }
}

/* Whether exactly n fragments were counted. */
static bool has_counted(struct guard_set *set, size_t n) {
    guard_set_count_fragments(set, n, 1000);
    bool more = guard_set_exceeded(set) != NULL;
    bool fewer = false;
    if (n > 0) {
        guard_set_count_fragments(set, n - 1, 1000);
        fewer = guard_set_exceeded(set) == NULL;
    }
    guard_set_count_fragments(set, FRAGMENTS_MOST, 1000);
    return !more && !fewer;
}

static struct guard_set *counting_set(void) {
    struct guard_set *set = set_of(secret, NULL);
    guard_set_count_fragments(set, FRAGMENTS_MOST, 1000);
    return set;
}

static void show(struct guard_set *set, const char *text) {
    uint8_t copy[8192];
    size_t n = strlen(text);
    memcpy(copy, text, n);
    guard_mask(set, copy, n);
}

static void a_flood_of_copies_hides_no_other_part(void **state) {
    (void)state;
    struct guard_set *set = counting_set();
    char text[8192], part[128];
    show(set, fragment_at(10, 26, part));
    assert_true(has_counted(set, 1));
    size_t n = 0;
    for (size_t i = 0; i < 100; i++)
        n += (size_t)snprintf(text + n, sizeof text - n, "%s ", part);
    snprintf(text + n, sizeof text - n, "%s", fragment_at(20, 36, part));
    show(set, text);
    assert_true(has_counted(set, 2));
    guard_set_free(set);
}

static void parts_that_are_shown_together_and_overlap_are_one(void **state) {
    (void)state;
    struct guard_set *set = counting_set();
    char text[1024], part[128];
    size_t n = 0;
    for (size_t i = 10; i < 20; i++)
        n += (size_t)snprintf(text + n, sizeof text - n, "%s ", fragment_at(i, i + 16, part));
    for (size_t again = 0; again < 3; again++)
        show(set, text);
    assert_true(has_counted(set, 1));
    /* What tells more than all of it, later, is another one; what tells no more is not. */
    show(set, fragment_at(12, 30, part));
    assert_true(has_counted(set, 1));
    show(set, fragment_at(20, 36, part));
    assert_true(has_counted(set, 2));
    guard_set_free(set);
}

static void values_of_one_head_are_shown_together(void **state) {
    (void)state;
    struct guard_set *set = counting_set();
    char part[128];
    for (size_t i = 0; i < 2; i++) {
        fragment_at(10, 26, part);
        guard_mask(set, (uint8_t *)part, strlen(part));
        fragment_at(11, 27, part);
        guard_mask_more(set, (uint8_t *)part, strlen(part));
    }
    assert_true(has_counted(set, 1));
    fragment_at(12, 28, part);
    guard_mask(set, (uint8_t *)part, strlen(part));
    assert_true(has_counted(set, 2));
    guard_set_free(set);
}

static void small_letters_and_other_values_of_a_name_count_with_it(void **state) {
    (void)state;
    struct guard_set *set = set_of(secret, other);
    assert_int_equal(guard_set_add(set, view_str(jwt), VIEW("token"), 0, 100), 0);
    char part[128];
    show(set, fragment_at(10, 26, part));
    for (size_t i = 0; part[i]; i++)
        part[i] = (char)to_lower((uint8_t)part[i]);
    show(set, part);
    assert_true(has_counted(set, 1));
    show(set, "cGY1Z2p0ImVh");             /* too short */
    show(set, "MmtkOGh5bjBjcGY1Z2p0ImVh"); /* "2kd8hyn0cpf5gjt\"ea" in base64 */
    assert_true(has_counted(set, 2));
    snprintf(part, sizeof part, "%.16s", other + 12);
    show(set, part);
    assert_true(has_counted(set, 3));
    snprintf(part, sizeof part, "%.20s", jwt + strlen(jwt) - 20);
    show(set, part);
    assert_true(has_counted(set, 3));
    guard_set_free(set);
}

static void a_part_counts_for_its_time_and_its_secret_is_kept_so_long(void **state) {
    (void)state;
    struct guard_set *set = counting_set();
    char part[128];
    guard_set_expire(set, 50);
    show(set, fragment_at(10, 26, part));
    guard_set_expire(set, 90);
    guard_set_expire(set, 600);
    assert_int_equal(guard_set_count(set), 1);
    show(set, fragment_at(20, 36, part));
    guard_set_expire(set, 610);
    assert_true(has_counted(set, 2));
    guard_set_expire(set, 1089);
    assert_true(has_counted(set, 2));
    guard_set_expire(set, 1090);
    assert_true(has_counted(set, 1));
    guard_set_expire(set, 1610);
    assert_int_equal(guard_set_count(set), 0);
    guard_set_free(set);
}

/* A part with `folds` line ends in it, behind `before` and before `after` bytes of the same word. */
static size_t folded_part(uint8_t *text, size_t before, size_t folds, size_t after) {
    size_t n = before, head = 10;
    memset(text, 'z', before);
    memcpy(text + n, secret + head, RUN - 1);
    n += RUN - 1;
    for (size_t i = 0; i < folds; i++, n += 2)
        memcpy(text + n, "\\n", 2);
    text[n++] = (uint8_t)secret[head + RUN - 1];
    memset(text + n, 'z', after);
    return n + after;
}

static void a_part_counts_once_at_every_cut(void **state) {
    (void)state;
    static uint8_t text[8192];
    static const size_t places[][3] = {{0, 0, 0},    {0, 3, 40},    {1500, 0, 1500},
                                       {700, 20, 0}, {3, 90, 1700}, {1100, 150, 1100}};
    for (size_t i = 0; i < sizeof places / sizeof *places; i++) {
        size_t n = folded_part(text, places[i][0], places[i][1], places[i][2]);
        for (size_t cut = 0; cut <= n; cut += n < 500 ? 1 : 41)
            for (size_t step = 1; step <= 64; step *= 64) {
                struct guard_set *set = counting_set();
                struct flow f;
                flow_open(&f, set);
                feed(&f, view_of(text, cut));
                for (size_t at = cut; step > 1 && at < n; at += step)
                    feed(&f, view_slice(view_of(text, n), at, at + step));
                if (step == 1)
                    feed(&f, view_of(text + cut, n - cut));
                release(&f);
                assert_true(has_counted(set, 1));
                flow_close(&f);
                guard_set_free(set);
            }
    }
}

static void what_is_masked_of_a_stretched_part_is_counted(void **state) {
    (void)state;
    static uint8_t text[8192];
    for (size_t folds = 300; folds < 900; folds += 33)
        for (size_t after = 0; after < 1400; after += folds == 300 + 33 * 4 ? 1 : 29) {
            struct guard_set *set = counting_set();
            struct flow f;
            flow_open(&f, set);
            size_t n = folded_part(text, 200, folds, after);
            for (size_t at = 0; at < n; at += n - after)
                feed(&f, view_slice(view_of(text, n), at, at + n - after));
            feed(&f, VIEW(" end"));
            assert_int_equal(has_counted(set, 0), f.stream.masked == 0);
            flow_close(&f);
            guard_set_free(set);
        }
}

/* Its beginning has left what a stream remembers when its end comes. */
static void a_long_whole_secret_in_a_long_word_counts_as_no_part(void **state) {
    (void)state;
    char value[3001];
    static uint8_t text[16384];
    for (size_t i = 0; i < sizeof value - 1; i++)
        value[i] = "ABCDEFGHJKLMNPQRSTUVWXYZabcdefghij0123456789"[(i * i * 7 + i / 3) % 44];
    value[sizeof value - 1] = '\0';
    for (size_t kind = 0; kind < 4; kind++) {
        struct guard_set *set = set_of(value, NULL);
        struct flow f;
        guard_set_count_fragments(set, 0, 1000);
        flow_open(&f, set);
        memset(text, 'z', sizeof text);
        spelling_write(kind, view_str(value), text + 2000);
        for (size_t at = 0; at < sizeof text; at += 161)
            feed(&f, view_slice(view_of(text, sizeof text), at, at + 161));
        release(&f);
        assert_int_equal(f.stream.masked, 1);
        assert_null(guard_set_exceeded(set));
        flow_close(&f);
        guard_set_free(set);
    }
}

static void what_streams_hold_takes_no_room_from_secrets(void **state) {
    (void)state;
    struct guard_set *set = set_of(jwt, NULL);
    struct flow f;
    size_t before = secret_in_use();
    flow_open(&f, set);
    for (size_t i = 0; i < 2000; i++)
        feed(&f, VIEW("z"));
    assert_true(held(&f) > 1000);
    assert_int_equal(secret_in_use(), before);
    flow_close(&f);
    guard_set_free(set);
}

static void a_field_counts_like_a_body(void **state) {
    (void)state;
    struct guard_set *set = set_of(secret, NULL);
    char text[128];
    guard_set_count_fragments(set, 0, 1000);
    size_t head = spelling_public_head(view_str(secret), 4, RUN);
    uint8_t whole[] = "key-Zx9+Tq/4mBv=7LrW2sKd8hYn0cPf5gJt\"Ea";
    assert_int_equal(guard_mask(set, whole, sizeof whole - 1), 1);
    assert_null(guard_set_exceeded(set));
    fragment_at(head, head + RUN, text);
    assert_int_equal(guard_mask(set, (uint8_t *)text, strlen(text)), 1);
    assert_string_equal(guard_set_exceeded(set), "key");
    guard_set_free(set);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        TEST(a_whole_secret_in_any_spelling_counts_as_no_fragment),
        TEST(each_fragment_counts_once_and_too_many_exceed_the_set),
        TEST(a_fragment_in_pieces_counts_as_one_in_any_spelling),
        TEST(a_flood_of_copies_hides_no_other_part),
        TEST(parts_that_are_shown_together_and_overlap_are_one),
        TEST(values_of_one_head_are_shown_together),
        TEST(small_letters_and_other_values_of_a_name_count_with_it),
        TEST(a_part_counts_for_its_time_and_its_secret_is_kept_so_long),
        TEST(a_part_counts_once_at_every_cut),
        TEST(what_is_masked_of_a_stretched_part_is_counted),
        TEST(a_long_whole_secret_in_a_long_word_counts_as_no_part),
        TEST(what_streams_hold_takes_no_room_from_secrets),
        TEST(a_field_counts_like_a_body),
    };
    return cmocka_run_group_tests(tests, open_arena, NULL);
}
