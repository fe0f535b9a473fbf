/* Leaves that were sent before: by name, bounded, and not too near their end. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "proxy/leaf_cache.h"

#include <openssl/evp.h>
#include <openssl/x509.h>
#include <stdio.h>

enum { END = 1000000, HOUR = 3600 };

static uint8_t *der;
static size_t der_size;

/* One certificate does for all: the cache does not look inside. */
static int make_certificate(void **state) {
    EVP_PKEY *key = EVP_EC_gen("P-256");
    X509 *x = X509_new();
    (void)state;
    X509_gmtime_adj(X509_getm_notBefore(x), -60);
    X509_gmtime_adj(X509_getm_notAfter(x), 86400);
    X509_set_pubkey(x, key);
    X509_sign(x, key, EVP_sha256());
    der_size = (size_t)i2d_X509(x, &der);
    X509_free(x);
    EVP_PKEY_free(key);
    return der ? 0 : -1;
}

static int free_certificate(void **state) {
    (void)state;
    OPENSSL_free(der);
    return 0;
}

static const struct view any = {NULL, 0};

static void put(struct leaf_cache *c, const char *name, struct view bytes, uint64_t not_after) {
    struct tls_leaf *leaf = tls_leaf_new(view_of(der, der_size), any);
    assert_non_null(leaf);
    leaf_cache_put(c, view_str(name), bytes, not_after, leaf);
}

static void a_leaf_is_found_by_its_exact_name_only(void **state) {
    struct leaf_cache *c = leaf_cache_new(8);
    (void)state;
    put(c, "a.test", VIEW("A"), END);
    assert_non_null(leaf_cache_get(c, VIEW("a.test"), any, END, 0));
    assert_null(leaf_cache_get(c, VIEW("b.test"), any, END, 0));
    assert_null(leaf_cache_get(c, VIEW("a.tes"), any, END, 0));
    assert_null(leaf_cache_get(c, VIEW("a.testA"), any, END, 0));
    assert_null(leaf_cache_get(c, VIEW(""), any, END, 0));
    leaf_cache_free(c);
}

static void other_bytes_or_another_end_are_another_leaf(void **state) {
    struct leaf_cache *c = leaf_cache_new(8);
    (void)state;
    put(c, "a.test", VIEW("A"), END);
    assert_non_null(leaf_cache_get(c, VIEW("a.test"), VIEW("A"), END, 0));
    assert_null(leaf_cache_get(c, VIEW("a.test"), VIEW("B"), END, 0));
    assert_null(leaf_cache_get(c, VIEW("a.test"), any, END + 1, 0));
    put(c, "a.test", VIEW("B"), END + 1);
    assert_non_null(leaf_cache_get(c, VIEW("a.test"), VIEW("B"), END + 1, 0));
    assert_int_equal(leaf_cache_count(c), 1);
    leaf_cache_free(c);
}

static void a_leaf_is_dropped_an_hour_before_its_end(void **state) {
    struct leaf_cache *c = leaf_cache_new(8);
    (void)state;
    put(c, "a.test", any, END);
    assert_non_null(leaf_cache_get(c, VIEW("a.test"), any, END, END - HOUR - 1));
    assert_null(leaf_cache_get(c, VIEW("a.test"), any, END, END - HOUR));
    assert_int_equal(leaf_cache_count(c), 0);
    put(c, "b.test", any, 10); /* shorter than the margin */
    assert_null(leaf_cache_get(c, VIEW("b.test"), any, 10, 0));
    leaf_cache_free(c);
}

static void rx_05_the_one_unused_for_longest_makes_room(void **state) {
    struct leaf_cache *c = leaf_cache_new(3);
    (void)state;
    put(c, "a.test", any, END);
    put(c, "b.test", any, END);
    put(c, "c.test", any, END);
    assert_non_null(leaf_cache_get(c, VIEW("a.test"), any, END, 0));
    put(c, "d.test", any, END);
    assert_int_equal(leaf_cache_count(c), 3);
    assert_null(leaf_cache_get(c, VIEW("b.test"), any, END, 0));
    assert_non_null(leaf_cache_get(c, VIEW("a.test"), any, END, 0));
    leaf_cache_limit(c, 1);
    assert_int_equal(leaf_cache_count(c), 1);
    assert_non_null(leaf_cache_get(c, VIEW("a.test"), any, END, 0));
    leaf_cache_free(c);
}

static void rx_05_a_flood_of_names_stays_bounded(void **state) {
    struct leaf_cache *c = leaf_cache_new(50);
    char name[32];
    (void)state;
    for (int i = 0; i < 5000; i++) {
        snprintf(name, sizeof name, "n%d.test", i % 700);
        put(c, name, any, END);
        assert_true(leaf_cache_count(c) <= 50);
    }
    assert_non_null(leaf_cache_get(c, view_str(name), any, END, 0));
    leaf_cache_free(c);
}

static void a_cache_without_room_keeps_nothing(void **state) {
    struct leaf_cache *c = leaf_cache_new(0);
    (void)state;
    put(c, "a.test", any, END);
    assert_int_equal(leaf_cache_count(c), 0);
    assert_null(leaf_cache_get(c, VIEW("a.test"), any, END, 0));
    leaf_cache_free(c);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_leaf_is_found_by_its_exact_name_only),
        cmocka_unit_test(other_bytes_or_another_end_are_another_leaf),
        cmocka_unit_test(a_leaf_is_dropped_an_hour_before_its_end),
        cmocka_unit_test(rx_05_the_one_unused_for_longest_makes_room),
        cmocka_unit_test(rx_05_a_flood_of_names_stays_bounded),
        cmocka_unit_test(a_cache_without_room_keeps_nothing),
    };
    return cmocka_run_group_tests(tests, make_certificate, free_certificate);
}
