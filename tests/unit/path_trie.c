#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "policy/rules.h"

#include <stdio.h>
#include <stdlib.h>
#include <time.h>

/* The trie against the comparison of one pattern with one path, which it must agree with. */

enum { PATTERNS = 40, PATHS = 400, ROUNDS = 200, LENGTH = 160 };

static uint64_t state_of_random;

static unsigned any(unsigned n) {
    state_of_random ^= state_of_random << 13;
    state_of_random ^= state_of_random >> 7;
    state_of_random ^= state_of_random << 17;
    return (unsigned)(state_of_random >> 33) % n;
}

static const char *const parts[] = {"a",     "b", "ab", "A",  "a.b", "%25",
                                    "a%20b", "7", "*",  "**", "{n}", "{n:int}"};
static const char *const segments[] = {"a",     "A",   "b",    "ab",  "AB",    "a.b",  "a.json",
                                       "a;x=1", "%61", "a%2E", "%25", "a%20b", "a%20", "7",
                                       "07",    "7.5", "%37",  "7x",  "a..",   ".a"};

static void make_text(char *out, const char *const *from, size_t n) {
    size_t at = 0;
    unsigned length = any(5);
    for (unsigned i = 0; i < length; i++)
        at += (size_t)snprintf(out + at, LENGTH - at, "/%s", from[any((unsigned)n)]);
    if (length == 0 || any(5) == 0)
        snprintf(out + at, LENGTH - at, "/");
}

struct found {
    const struct rule *rules;
    bool matched[PATTERNS];
    const struct target *target;
    bool widely;
};

static bool note(void *ctx, const struct rule *rules) {
    struct found *f = ctx;
    for (const struct rule *r = rules; r; r = r->same)
        if (path_pattern_ends(&r->path, f->target, f->widely)) {
            assert_false(f->matched[r - f->rules]); /* told once */
            f->matched[r - f->rules] = true;
        }
    return true;
}

static void compare(const struct path_trie *t, uint32_t root, const struct rule *rules,
                    bool widely) {
    char text[LENGTH];
    for (int i = 0; i < PATHS; i++) {
        make_text(text, segments, sizeof segments / sizeof *segments);
        struct target target = {.path = view_str(text)};
        struct found f = {.rules = rules, .target = &target, .widely = widely};
        path_trie_walk(t, root, &target, widely, false, note, &f);
        for (size_t k = 0; k < PATTERNS; k++)
            if (f.matched[k] != path_pattern_match(&rules[k].path, &target, widely))
                fail_msg("%.*s and %s, %s: the trie says %d", VIEW_ARG(rules[k].path.text), text,
                         widely ? "widely" : "exactly", f.matched[k]);
    }
}

static void one_round(void) {
    static char texts[PATTERNS][LENGTH];
    static struct rule exact[PATTERNS], wide[PATTERNS];
    struct arena arena = {0};
    struct path_trie t;
    const char *why = "";
    assert_int_equal(path_trie_init(&t, &arena, 2 * PATTERNS * 5, 2), 0);
    uint32_t roots[2] = {path_trie_root(&t), path_trie_root(&t)};
    for (size_t i = 0; i < PATTERNS; i++) {
        make_text(texts[i], parts, sizeof parts / sizeof *parts);
        exact[i] = (struct rule){.next = NULL};
        if (path_pattern_parse(view_str(texts[i]), true, &exact[i].path, &why) != 0)
            fail_msg("%s: %s", texts[i], why);
        wide[i] = exact[i];
        exact[i].path.fold = any(4) == 0;
        path_trie_add(&t, roots[0], &exact[i], false);
        path_trie_add(&t, roots[1], &wide[i], true);
    }
    compare(&t, roots[0], exact, false);
    compare(&t, roots[1], wide, true);
    arena_free(&arena);
}

static void pn_10_the_trie_finds_what_each_pattern_matches(void **state) {
    (void)state;
    const char *seed = getenv("SEED");
    state_of_random = seed ? strtoull(seed, NULL, 10) : (uint64_t)time(NULL) | 1;
    printf("SEED=%llu\n", (unsigned long long)state_of_random);
    for (int i = 0; i < ROUNDS; i++)
        one_round();
}

/* The states of a walk are bounded by the nodes, whatever the stars. */
static void pn_10_many_stars_take_no_more_time_than_nodes(void **state) {
    (void)state;
    struct arena arena = {0};
    struct path_trie t;
    struct rule rule = {.next = NULL};
    const char *why;
    static char path[2 * SEGMENTS_MAX + 1];
    for (size_t i = 0; i < SEGMENTS_MAX; i++)
        memcpy(path + 2 * i, "/a", 2);
    assert_int_equal(path_trie_init(&t, &arena, 64, 1), 0);
    uint32_t root = path_trie_root(&t);
    assert_int_equal(path_pattern_parse(VIEW("/**/a/**/a/**/a/**/a/**/a/**/a/**/a/**/a/**/b"), true,
                                        &rule.path, &why),
                     0);
    path_trie_add(&t, root, &rule, false);
    struct target target = {.path = view_str(path)};
    struct found f = {.rules = &rule, .target = &target};
    clock_t start = clock();
    path_trie_walk(&t, root, &target, false, false, note, &f);
    assert_false(f.matched[0]);
    assert_true(clock() - start < CLOCKS_PER_SEC / 10);
    arena_free(&arena);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(pn_10_the_trie_finds_what_each_pattern_matches),
        cmocka_unit_test(pn_10_many_stars_take_no_more_time_than_nodes),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
