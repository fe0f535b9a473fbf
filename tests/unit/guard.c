#include "tests/unit/guard_flow.h"

#include "egress/fold.h"

#include <stdlib.h>

/* ---- whole secrets ---- */

static void rf_01_rf_03_every_spelling_is_masked_at_every_cut(void **state) {
    (void)state;
    struct guard_set *set = set_of(secret, NULL);
    uint8_t spelled[512];
    for (size_t kind = 0; kind < SPELLINGS; kind++) {
        size_t n = spelling_write(kind, view_str(secret), spelled);
        struct text t = {.n = 0};
        put(&t, VIEW("{\"headers\":{\"x-api-key\":\""), false);
        put(&t, view_of(spelled, n), true);
        put(&t, VIEW("\"}} and more"), false);
        check_text(set, &t);
    }
    guard_set_free(set);
}

static void rf_03_a_secret_is_masked_at_the_very_start_and_end(void **state) {
    (void)state;
    struct guard_set *set = set_of(secret, NULL);
    struct text t = {.n = 0};
    put(&t, view_str(secret), true);
    check_text(set, &t);
    put(&t, VIEW(" "), false);
    put(&t, view_str(secret), true);
    put(&t, view_str(secret), true);
    check_text(set, &t);
    guard_set_free(set);
}

static void a_base64_spelling_takes_its_neighbours_with_it(void **state) {
    (void)state;
    struct guard_set *set = set_of("0123456789abcdefghij", NULL);
    /* base64 of "user:0123456789abcdefghij!". The first and last character that are masked hold
     * bits of ':' and '!' beside those of the secret. */
    struct text t = {.n = 0};
    put(&t, VIEW("Basic dXNlcj"), false);
    put(&t, VIEW("owMTIzNDU2Nzg5YWJjZGVmZ2hpai"), true);
    put(&t, VIEW("E="), false);
    check_text(set, &t);
    guard_set_free(set);
}

static void rf_04_a_field_is_masked_whole_and_keeps_its_length(void **state) {
    (void)state;
    struct guard_set *set = set_of(secret, jwt);
    struct text t = {.n = 0};
    put(&t, VIEW("https://api.example.com/?k="), false);
    put(&t, VIEW("key-Zx9%2BTq%2F4mBv%3D7LrW2sKd8hYn0cPf5gJt%22Ea"), true);
    put(&t, VIEW("&t="), false);
    put(&t, view_str(jwt), true);
    assert_int_equal(guard_mask(set, t.in, t.n), 2);
    assert_memory_equal(t.in, t.out, t.n);
    assert_int_equal(guard_mask(set, t.in, t.n), 0);
    guard_set_free(set);
}

static void a_long_secret_is_held_as_a_whole(void **state) {
    (void)state;
    uint8_t value[400], spelled[2400];
    for (size_t i = 0; i < sizeof value; i++)
        value[i] = (uint8_t)('A' + (i * i * 7 + i / 3) % 57);
    struct guard_set *set = guard_set_new(8, RUN, 5);
    assert_int_equal(guard_set_add(set, view_of(value, sizeof value), VIEW("key"), 4, 100), 0);
    assert_int_equal(guard_set_hold(set), 8192);
    for (size_t kind = 0; kind < SPELLINGS; kind += 4) {
        struct text t = {.n = 0};
        put(&t, VIEW("\""), false);
        put(&t, view_of(spelled, spelling_write(kind, view_of(value, sizeof value), spelled)),
            true);
        put(&t, VIEW("\""), false);
        check_text(set, &t);
    }
    guard_set_free(set);
}

static void two_secrets_that_overlap_are_both_masked(void **state) {
    (void)state;
    struct guard_set *set = set_of(secret, other);
    struct text t = {.n = 0};
    put(&t, VIEW("x="), false);
    put(&t, view_str(secret), true);
    put(&t, view_skip(view_str(other), 8), true); /* other begins with secret's last 8 bytes */
    put(&t, VIEW(";"), false);
    check_text(set, &t);
    guard_set_free(set);
}

static void a_secret_with_spaces_and_high_bytes_is_held_together(void **state) {
    (void)state;
    static const char odd[] = "correct horse \xc3\xa9t\xc3\xa9 battery staple";
    struct guard_set *set = set_of(odd, NULL);
    struct text t = {.n = 0};
    put(&t, VIEW("password\n"), false);
    put(&t, view_str(odd), true);
    put(&t, VIEW("\n"), false);
    check_text(set, &t);
    guard_set_free(set);
}

/* ---- parts of secrets ---- */

static void rf_05_a_run_is_masked_from_its_sixteenth_byte_on(void **state) {
    (void)state;
    struct guard_set *set = set_of(secret, NULL);
    struct view v = view_str(secret);
    size_t head = spelling_public_head(v, 4, RUN);
    for (size_t from = 0; from < v.n; from++) {
        for (size_t to = from + 1; to <= v.n; to++) {
            struct text t = {.n = 0};
            size_t counted = to - (from > head ? from : head);
            put(&t, VIEW("got <"), false);
            put(&t, view_slice(v, from, to), to > head && counted >= RUN);
            put(&t, VIEW("> instead"), false);
            uint8_t copy[128];
            memcpy(copy, t.in, t.n);
            guard_mask(set, copy, t.n);
            assert_memory_equal(copy, t.out, t.n);
        }
    }
    guard_set_free(set);
}

static void rf_05_runs_of_encoded_bytes_are_masked_too(void **state) {
    (void)state;
    struct guard_set *set = set_of(secret, NULL);
    struct view v = view_str(secret);
    size_t head = spelling_public_head(v, 4, RUN);
    uint8_t spelled[512], copy[512];
    for (size_t kind = 0; kind < SPELLINGS; kind++) {
        for (size_t from = head; from + RUN <= v.n; from++) {
            size_t a = spelling_offset(kind, v, from);
            size_t n = spelling_write(kind, v, spelled);
            size_t b = a + spelling_run(kind, v, RUN);
            if (b > n)
                continue;
            memset(copy, '#', sizeof copy);
            memcpy(copy + 7, spelled + a, b - a);
            assert_int_equal(guard_mask(set, copy, sizeof copy), 1);
            for (size_t i = a; i < b; i++)
                assert_int_equal(copy[7 + i - a], '*');
        }
    }
    guard_set_free(set);
}

/* Filler and a spelling as one word, broken every `width` characters from the `first` on. */
static void put_folded(struct text *t, struct view spelled, size_t first, size_t width,
                       const char *line_end) {
    for (size_t i = 0; i < width + spelled.n; i++) {
        if (i % width == first && i >= FOLD_WIDTH)
            put(t, view_str(line_end), false);
        if (i < width)
            put(t, VIEW("."), false);
        else
            put(t, view_slice(spelled, i - width, i - width + 1), true);
    }
}

static void rf_05_a_spelling_in_lines_is_masked_as_a_whole(void **state) {
    (void)state;
    /* Not with "=" or a quote, behind which a bare line end is none in a word. */
    static const char folding[] = "key-Zx9+Tq/4mBv_7LrW2sKd8hYn0cPf5gJt~Ea";
    static const char *const line_ends[] = {"\n",    "\r\n", "\r",     "=\r\n",
                                            "\n \t", "\\n",  "\\r\\n", "\\r\\n  ",
                                            "\\\\n", "%0A",  "%0D%0A", "\r\n        "};
    static const size_t widths[] = {76, 64, 20, 16};
    struct guard_set *set = set_of(folding, NULL);
    guard_set_count_fragments(set, 0, 1000);
    uint8_t spelled[512];
    for (size_t kind = 0; kind < SPELLINGS; kind++) {
        struct view v = view_of(spelled, spelling_write(kind, view_str(folding), spelled));
        for (size_t i = 0; i < sizeof line_ends / sizeof *line_ends; i++) {
            /* Escapes are not broken by escapes, and UTF-16 has line ends of two bytes. */
            const char *name = spelling_name(kind);
            if (strstr(name, "utf-16") ||
                (strpbrk(line_ends[i], "\\%") && !strstr(name, "base64") && !strstr(name, "hex ")))
                continue;
            struct text t = {.n = 0};
            size_t width = widths[(kind + i) % 4];
            put(&t, VIEW("<"), false);
            put_folded(&t, v, (kind * 7 + i) % width, width, line_ends[i]);
            put(&t, VIEW("> and"), false);
            check_text(set, &t);
        }
    }
    assert_null(guard_set_exceeded(set));
    guard_set_free(set);
}

static void rf_06_lines_that_are_no_folds_are_released(void **state) {
    (void)state;
    struct guard_set *set = set_of(secret, NULL);
    struct flow f;
    flow_open(&f, set);
    static const char *const lines[] = {"data: a-rather-long-word-here\n\n",
                                        "{\"k\":\"0123456789abcdef\"}\n", "step 3 of 4 done\n",
                                        "data: x\r\n\r\n"};
    for (size_t i = 0; i < sizeof lines / sizeof *lines; i++) {
        feed(&f, view_str(lines[i]));
        assert_int_equal(held(&f), 0);
        check_output(&f, view_str(lines[i]));
    }
    flow_close(&f);
    guard_set_free(set);
}

/* Each way to write the secret is masked whole, and counts as no part of it. */
static void check_written(const char *password, const char *const *written, size_t n) {
    struct guard_set *set = set_of(password, NULL);
    guard_set_count_fragments(set, 0, 1000);
    for (size_t i = 0; i < n; i++) {
        struct text t = {.n = 0};
        put(&t, VIEW("no key "), false);
        put(&t, view_str(written[i]), true);
        put(&t, VIEW(" here"), false);
        check_text(set, &t);
    }
    assert_null(guard_set_exceeded(set));
    guard_set_free(set);
}

static void rf_01_what_any_writer_escapes_is_masked_with_its_escapes(void **state) {
    (void)state;
    /* No sixteen bytes of it stand side by side without one that somebody escapes. */
    static const char password[] = "key-Zx9'Tq4mBv\\7L&rW2s\"Kd8hY_n0cP<f5gJt/Ea";
    static const char *const written[] = {
        /* XML and PHP */
        "key-Zx9&apos;Tq4mBv\\7L&amp;rW2s&quot;Kd8hY_n0cP&lt;f5gJt/Ea",
        "key-Zx9&#039;Tq4mBv\\7L&amp;rW2s&quot;Kd8hY_n0cP&lt;f5gJt/Ea",
        /* programs: Python, PHP's var_export and addslashes, JavaScript */
        "key-Zx9\\'Tq4mBv\\\\7L&rW2s\"Kd8hY_n0cP<f5gJt/Ea",
        "key-Zx9\\'Tq4mBv\\\\7L&rW2s\\\"Kd8hY_n0cP<f5gJt/Ea",
        "key-Zx9\\x27Tq4mBv\\x5C7L\\x26rW2s\\x22Kd8hY_n0cP\\x3Cf5gJt\\/Ea",
        /* SQL and YAML, CSV, two ways of shells */
        "key-Zx9''Tq4mBv\\7L&rW2s\"Kd8hY_n0cP<f5gJt/Ea",
        "key-Zx9'Tq4mBv\\7L&rW2s\"\"Kd8hY_n0cP<f5gJt/Ea",
        "key-Zx9'\\''Tq4mBv\\7L&rW2s\"Kd8hY_n0cP<f5gJt/Ea",
        "key-Zx9'\"'\"'Tq4mBv\\7L&rW2s\"Kd8hY_n0cP<f5gJt/Ea",
        "key-Zx9\\'Tq4mBv\\\\7L\\&rW2s\\\"Kd8hY_n0cP\\<f5gJt/Ea",
        /* regular expressions and Markdown; JavaScript's escape(); PHP's and Flask's JSON */
        "key\\-Zx9'Tq4mBv\\\\7L\\&rW2s\"Kd8hY\\_n0cP<f5gJt\\/Ea",
        "key-Zx9%27Tq4mBv%5C7L%26rW2s%22Kd8hY_n0cP%3Cf5gJt/Ea",
        "key-Zx9\\u0027Tq4mBv\\\\7L\\u0026rW2s\\u0022Kd8hY_n0cP\\u003Cf5gJt\\/Ea",
        "key-Zx9\\u0027Tq4mBv\\\\7L\\u0026rW2s\\\"Kd8hY_n0cP\\u003cf5gJt/Ea",
        /* a string in a string */
        "key-Zx9&amp;#39;Tq4mBv\\7L&amp;amp;rW2s&amp;quot;Kd8hY_n0cP&amp;lt;f5gJt/Ea",
        "key-Zx9\\\\u0027Tq4mBv\\\\\\\\7L\\\\u0026rW2s\\\\\\\"Kd8hY_n0cP\\\\u003cf5gJt/Ea",
        /* an escape of which only the middle or the end is escaped */
        "key-Zx9&\\#39;Tq4mBv\\7L&rW2s\"Kd8hY_n0cP<f5gJt/Ea",
        "key-Zx9&#x00027\\;Tq4mBv\\7L&rW2s\"Kd8hY_n0cP<f5gJt/Ea",
        "key-Zx9%2%37Tq4mBv\\7L&rW2s\"Kd8hY_n0cP<f5gJt/Ea",
        /* base64 whose equals sign and digits are escaped on top */
        "a2V5LVp4OSdUcTRtQnZcN0wmclcycyJLZDhoWV9uMGNQPGY1Z0p0L0Vh",
        "a2V5LVp4\\u004fSdUcTRt\\u0051nZcN0wm\\u0063lcycyJLZ\\u0044hoWV9uMGN\\u0051PGY1Z0p0L0Vh",
    };
    check_written(password, written, sizeof written / sizeof *written);
}

static void rf_01_letters_beyond_ascii_are_known_by_their_code_points(void **state) {
    (void)state;
    static const char password[] = "key-Zx9Tq\xc3\xbc"
                                   "4mBvrW2sKd8\xe2\x82\xac"
                                   "hYncPf5gJt0\xc3\x9f"
                                   "EaQ1";
    static const char *const written[] = {
        "key-Zx9Tq\\u00fc4mBvrW2sKd8\\u20achYncPf5gJt0\\u00dfEaQ1",
        "key-Zx9Tq\\u00FC4mBvrW2sKd8\\u20AChYncPf5gJt0\\u00DFEaQ1",
        "key-Zx9Tq&#252;4mBvrW2sKd8&#8364;hYncPf5gJt0&#223;EaQ1",
        "key-Zx9Tq\\xc3\\xbc4mBvrW2sKd8\\xe2\\x82\\xachYncPf5gJt0\\xc3\\x9fEaQ1",
    };
    check_written(password, written, sizeof written / sizeof *written);
}

static void a_guess_behind_what_is_known_is_never_confirmed(void **state) {
    (void)state;
    /* The mask must not be an oracle: the header and claims of a JWT are known, and so its first
     * unknown bytes could be guessed one by one if runs were counted from anywhere. */
    struct guard_set *set = set_of(jwt, NULL);
    size_t known = spelling_public_head(view_str(jwt), 0, RUN);
    assert_true(known > 60);
    for (size_t right = 0; right < RUN; right++) {
        uint8_t copy[256];
        memcpy(copy, jwt, known + right);
        memcpy(copy + known + right, "!", 1);
        assert_int_equal(guard_mask(set, copy, known + right + 1), 0);
    }
    guard_set_free(set);
}

static void a_foreign_jwt_with_the_same_header_is_left_alone(void **state) {
    (void)state;
    struct guard_set *set = set_of(jwt, NULL);
    char text[] = "eyJhbGciOiJIUzI1NiIsInR5cCI6IkpXVCJ9.eyJzdWIiOiIxMjM0NTY3ODkwIn0."
                  "0zjgNryP4J3jVmNHl0w5N_XgL0n3I9PlFUP0THsR8Ud";
    /* Here even most of the signature is the secret's, shifted: that is masked. */
    assert_int_equal(guard_mask(set, (uint8_t *)text, strlen(text)), 1);
    char foreign[] = "eyJhbGciOiJIUzI1NiIsInR5cCI6IkpXVCJ9.eyJzdWIiOiIxMjM0NTY3ODkwIn0."
                     "SflKxwRJSMeKKF2QT4fwpMeJf36POk6yJV_adQssw5c";
    assert_int_equal(guard_mask(set, (uint8_t *)foreign, strlen(foreign)), 0);
    guard_set_free(set);
}

/* ---- streams ---- */

static void rf_06_a_delimiter_releases_at_once(void **state) {
    (void)state;
    struct guard_set *set = set_of(secret, NULL);
    struct flow f;
    flow_open(&f, set);
    feed(&f, VIEW("data: {\"delta\":\"Hel\"}\n\n"));
    assert_int_equal(held(&f), 0);
    check_output(&f, VIEW("data: {\"delta\":\"Hel\"}\n\n"));
    feed(&f, VIEW("data: hel"));
    assert_int_equal(held(&f), 3);
    check_output(&f, VIEW("data: "));
    release(&f);
    assert_int_equal(held(&f), 0);
    check_output(&f, VIEW("hel"));
    flow_close(&f);
    guard_set_free(set);
}

static void rf_06_no_more_is_held_than_a_constant(void **state) {
    (void)state;
    struct guard_set *set = set_of(secret, NULL);
    struct flow f;
    static uint8_t text[100000];
    flow_open(&f, set);
    memset(text, 'A', sizeof text);
    assert_int_equal(guard_set_hold(set), 1024);
    for (size_t i = 0; i < 50; i++) {
        feed(&f, view_of(text, i * 997));
        assert_true(held(&f) <= 1024);
        buf_reset(&f.out);
    }
    flow_close(&f);
    guard_set_free(set);
}

static void rf_06_what_a_timer_cut_is_still_masked_behind_the_cut(void **state) {
    (void)state;
    struct guard_set *set = set_of(secret, NULL);
    struct view v = view_str(secret);
    size_t head = spelling_public_head(v, 4, RUN);
    struct flow f;
    for (size_t cut = 0; cut <= v.n; cut++) {
        flow_open(&f, set);
        feed(&f, VIEW("a "));
        feed(&f, view_head(v, cut));
        release(&f);
        feed(&f, view_skip(v, cut));
        feed(&f, VIEW(" b"));
        release(&f);
        struct text t = {.n = 0};
        put(&t, VIEW("a "), false);
        put(&t, view_head(v, cut), cut >= head + RUN);
        put(&t, view_skip(v, cut), true);
        put(&t, VIEW(" b"), false);
        check_output(&f, view_of(t.out, t.n));
        assert_int_equal(f.stream.masked, 1);
        flow_close(&f);
    }
    guard_set_free(set);
}

static void rf_07_what_is_held_does_not_tell_what_matched(void **state) {
    (void)state;
    struct guard_set *set = set_of(secret, NULL);
    uint8_t spelled[512], innocent[512];
    for (size_t kind = 0; kind < SPELLINGS; kind++) {
        size_t n = spelling_write(kind, view_str(secret), spelled);
        memset(innocent, '?', n);
        struct flow a, b;
        flow_open(&a, set);
        flow_open(&b, set);
        for (size_t i = 0; i < n; i++) {
            feed(&a, view_of(spelled + i, 1));
            feed(&b, view_of(innocent + i, 1));
            assert_int_equal(buf_len(&a.out), buf_len(&b.out));
            assert_int_equal(held(&a), held(&b));
        }
        flow_close(&a);
        flow_close(&b);
    }
    guard_set_free(set);
}

static void a_secret_that_is_lent_meanwhile_is_masked_as_well(void **state) {
    (void)state;
    struct guard_set *set = guard_set_new(8, RUN, 7);
    struct flow f;
    flow_open(&f, set);
    assert_true(guard_stream_idle(&f.stream));
    feed(&f, VIEW("first"));
    check_output(&f, VIEW("first"));
    assert_int_equal(guard_set_add(set, view_str(secret), VIEW("key"), 4, 50), 0);
    assert_false(guard_stream_idle(&f.stream));
    struct text t = {.n = 0};
    put(&t, view_str(secret), true);
    put(&t, VIEW(" "), false);
    feed(&f, view_of(t.in, t.n));
    check_output(&f, view_of(t.out, t.n));
    assert_int_equal(guard_set_add(set, view_str(other), VIEW("key"), 0, 60), 0);
    t.n = 0;
    put(&t, view_str(other), true);
    put(&t, VIEW(" "), false);
    feed(&f, view_of(t.in, t.n));
    check_output(&f, view_of(t.out, t.n));
    flow_close(&f);
    guard_set_free(set);
}

static void a_stream_outlives_its_owners_reference(void **state) {
    (void)state;
    struct guard_set *set = set_of(secret, NULL);
    struct flow f;
    flow_open(&f, set);
    guard_set_free(set);
    struct text t = {.n = 0};
    put(&t, view_str(secret), true);
    feed(&f, view_of(t.in, t.n));
    release(&f);
    check_output(&f, view_of(t.out, t.n));
    flow_close(&f);
}

static void random_data_is_left_as_it_is(void **state) {
    (void)state;
    struct guard_set *set = set_of(secret, jwt);
    static uint8_t text[1 << 19]; /* in all layers it takes half of the arena */
    unsigned seed = 20250101;
    print_message("seed %u\n", seed);
    srand(seed);
    for (size_t i = 0; i < sizeof text; i++)
        text[i] = (uint8_t)(rand() >> 8);
    assert_int_equal(guard_mask(set, text, sizeof text), 0);
    for (size_t i = 0; i < sizeof text; i++)
        text[i] = (uint8_t)secret[(unsigned)rand() % (sizeof secret - 1)];
    assert_int_equal(guard_mask(set, text, sizeof text), 0);
    guard_set_free(set);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        TEST(rf_01_rf_03_every_spelling_is_masked_at_every_cut),
        TEST(rf_03_a_secret_is_masked_at_the_very_start_and_end),
        TEST(a_base64_spelling_takes_its_neighbours_with_it),
        TEST(rf_04_a_field_is_masked_whole_and_keeps_its_length),
        TEST(a_long_secret_is_held_as_a_whole),
        TEST(two_secrets_that_overlap_are_both_masked),
        TEST(a_secret_with_spaces_and_high_bytes_is_held_together),
        TEST(rf_05_a_run_is_masked_from_its_sixteenth_byte_on),
        TEST(rf_05_runs_of_encoded_bytes_are_masked_too),
        TEST(rf_05_a_spelling_in_lines_is_masked_as_a_whole),
        TEST(rf_06_lines_that_are_no_folds_are_released),
        TEST(rf_01_what_any_writer_escapes_is_masked_with_its_escapes),
        TEST(rf_01_letters_beyond_ascii_are_known_by_their_code_points),
        TEST(a_guess_behind_what_is_known_is_never_confirmed),
        TEST(a_foreign_jwt_with_the_same_header_is_left_alone),
        TEST(rf_06_a_delimiter_releases_at_once),
        TEST(rf_06_no_more_is_held_than_a_constant),
        TEST(rf_06_what_a_timer_cut_is_still_masked_behind_the_cut),
        TEST(rf_07_what_is_held_does_not_tell_what_matched),
        TEST(a_secret_that_is_lent_meanwhile_is_masked_as_well),
        TEST(a_stream_outlives_its_owners_reference),
        TEST(random_data_is_left_as_it_is),
    };
    return cmocka_run_group_tests(tests, open_arena, NULL);
}
