#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "base/secret.h"

#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

enum { ARENA = 64 * 1024, MANY = 2000 };

static int open_arena(void **state) {
    (void)state;
    /* Before it is open there is nothing to be had. */
    if (secret_alloc(16) || secret_owns(state))
        return -1;
    return secret_arena_open(ARENA);
}

static void what_is_given_is_zeroed_aligned_and_inside(void **state) {
    static const size_t sizes[] = {0, 1, 15, 16, 17, 100, 4096};
    void *p[7];
    (void)state;
    for (size_t i = 0; i < 7; i++) {
        p[i] = secret_alloc(sizes[i]);
        assert_non_null(p[i]);
        assert_true(secret_owns(p[i]));
        assert_int_equal((uintptr_t)p[i] % 16, 0);
        for (size_t k = 0; k < sizes[i]; k++)
            assert_int_equal(((uint8_t *)p[i])[k], 0);
        memset(p[i], 0xff, sizes[i]);
    }
    assert_false(secret_owns(p));
    for (size_t i = 0; i < 7; i++)
        secret_free(p[i]);
    assert_int_equal(secret_in_use(), 0);
}

static void what_is_given_back_is_cleared(void **state) {
    (void)state;
    uint8_t *p = secret_alloc(64);
    memcpy(p, "a real secret", 13);
    secret_free(p);
    for (size_t i = 0; i < 64; i++)
        assert_int_equal(p[i], 0); /* still mapped */
}

static void a_full_arena_gives_nothing_and_recovers(void **state) {
    static void *p[MANY];
    size_t n = 0;
    (void)state;
    assert_null(secret_alloc(ARENA + 1));
    assert_null(secret_alloc(SIZE_MAX));
    while (n < MANY && (p[n] = secret_alloc(100)) != NULL)
        n++;
    assert_true(n > ARENA / 150 && n < ARENA / 100);
    assert_null(secret_alloc(100));
    /* Every other one: the holes are too small for more, and merge once their neighbours go. */
    for (size_t i = 0; i < n; i += 2)
        secret_free(p[i]);
    assert_null(secret_alloc(1000));
    for (size_t i = 1; i < n; i += 2)
        secret_free(p[i]);
    assert_int_equal(secret_in_use(), 0);
    void *whole = secret_alloc(ARENA - 16);
    assert_non_null(whole);
    secret_free(whole);
}

static void an_empty_block_can_be_had_and_given_back(void **state) {
    (void)state;
    void *most = secret_alloc(ARENA - 16 - 32);
    void *last = secret_alloc(0);
    assert_non_null(most);
    assert_true(!last || secret_owns(last));
    secret_free(last);
    secret_free(most);
    assert_int_equal(secret_in_use(), 0);
}

/* Blocks of random sizes never overlap; the seed is printed when they do. */
static void blocks_do_not_overlap(void **state) {
    static struct {
        uint8_t *p;
        size_t n;
        uint8_t mark;
    } held[64];
    unsigned seed = (unsigned)getpid();
    (void)state;
    for (int round = 0; round < 20000; round++) {
        size_t i = (size_t)rand_r(&seed) % 64;
        for (size_t k = 0; held[i].p && k < held[i].n; k++)
            if (held[i].p[k] != held[i].mark)
                fail_msg("round %d, process id %d as the seed", round, getpid());
        secret_free(held[i].p);
        held[i].n = (size_t)rand_r(&seed) % 2000;
        held[i].mark = (uint8_t)round;
        held[i].p = secret_alloc(held[i].n);
        if (held[i].p)
            memset(held[i].p, held[i].mark, held[i].n);
    }
    for (size_t i = 0; i < 64; i++)
        secret_free(held[i].p);
    assert_int_equal(secret_in_use(), 0);
}

/* The arena begins to look where its first free block is: one before it must not be forgotten. */
static void the_first_hole_that_fits_is_used(void **state) {
    void *p[8];
    (void)state;
    for (size_t i = 0; i < 8; i++)
        p[i] = secret_alloc(64);
    static const size_t holes[] = {5, 2, 0, 7, 3};
    for (size_t i = 0; i < sizeof holes / sizeof *holes; i++)
        secret_free(p[holes[i]]);
    static const size_t expected[] = {0, 2, 3, 5, 7};
    for (size_t i = 0; i < sizeof expected / sizeof *expected; i++)
        assert_ptr_equal(secret_alloc(64), p[expected[i]]);
    /* A hole that is too small is passed by, and stays the first. */
    secret_free(p[1]);
    void *large = secret_alloc(1000);
    assert_true((uintptr_t)large > (uintptr_t)p[7]);
    assert_ptr_equal(secret_alloc(64), p[1]);
    secret_free(large);
    for (size_t i = 0; i < 8; i++)
        secret_free(p[i]);
    assert_int_equal(secret_in_use(), 0);
}

static void equality_looks_at_every_byte(void **state) {
    (void)state;
    assert_true(secret_equal("abc", "abc", 3));
    assert_false(secret_equal("abc", "abd", 3));
    assert_false(secret_equal("abc", "xbc", 3));
    assert_true(secret_equal("abc", "abd", 2));
    assert_true(secret_equal("abc", "xyz", 0));
}

static void a_fork_does_not_inherit_it(void **state) {
    int status;
    (void)state;
    volatile uint8_t *p = secret_alloc(16);
    pid_t child = fork();
    if (child == 0) {
        signal(SIGSEGV, SIG_DFL);
        _exit(p[0]); /* dies here */
    }
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_true(WIFSIGNALED(status));
    secret_free((void *)(uintptr_t)p);
}

static void freeing_what_is_not_ours_is_our_own_mistake(void **state) {
    static uint8_t other[64];
    int status;
    (void)state;
    secret_free(NULL);
    pid_t child = fork();
    if (child == 0) {
        close(STDERR_FILENO);
        signal(SIGABRT, SIG_DFL);
        secret_free(other + 32);
        _exit(0);
    }
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_true(WIFSIGNALED(status) || WEXITSTATUS(status) != 0);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(what_is_given_is_zeroed_aligned_and_inside),
        cmocka_unit_test(what_is_given_back_is_cleared),
        cmocka_unit_test(a_full_arena_gives_nothing_and_recovers),
        cmocka_unit_test(an_empty_block_can_be_had_and_given_back),
        cmocka_unit_test(blocks_do_not_overlap),
        cmocka_unit_test(the_first_hole_that_fits_is_used),
        cmocka_unit_test(equality_looks_at_every_byte),
        cmocka_unit_test(a_fork_does_not_inherit_it),
        cmocka_unit_test(freeing_what_is_not_ours_is_our_own_mistake),
    };
    return cmocka_run_group_tests(tests, open_arena, NULL);
}
