#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <string.h>

#include "base/client_key.h"
#include "base/openssl_memory.h"
#include "base/secret.h"
#include "broker/broker_messages.h"
#define certificate_free test_certificate_free
#define certificate test_certificate
#include "tests/unit/certificates.h"
#undef certificate
#undef certificate_free
#include "broker/certificate.h"

/* A private key's number in digits, by OpenSSL's own hand. */
static void digits_of(EVP_PKEY *key, size_t n, char *out) {
    uint8_t number[64];
    size_t size = sizeof number;
    BIGNUM *b = NULL;
    if (EVP_PKEY_is_a(key, "ED25519"))
        assert_int_equal(EVP_PKEY_get_raw_private_key(key, number, &size), 1);
    else {
        assert_int_equal(EVP_PKEY_get_bn_param(key, "priv", &b), 1);
        assert_int_equal(BN_bn2binpad(b, number, (int)n), (int)n);
    }
    BN_free(b);
    hex_encode(view_of(number, n), out);
}

static void a_key_is_made_of_its_digits_and_lies_in_the_arena(void **state) {
    static const struct {
        const char *kind, *curve;
        size_t n;
    } cases[] = {{"EC", "P-256", 32}, {"EC", "P-384", 48}, {"ED25519", NULL, 32}};
    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        EVP_PKEY *given = cases[i].curve ? EVP_EC_gen(cases[i].curve)
                                         : EVP_PKEY_Q_keygen(NULL, NULL, cases[i].kind);
        char digits[2 * 64 + 1];
        assert_int_equal(client_key_size(given), cases[i].n);
        digits_of(given, cases[i].n, digits);
        EVP_PKEY_free(
            client_key_new(NULL, given, view_str(digits))); /* what OpenSSL keeps for itself */
        size_t before = secret_in_use();
        EVP_PKEY *made = client_key_new(NULL, given, view_str(digits));
        assert_non_null(made);
        assert_true(secret_owns(made));
        assert_true(secret_in_use() > before);
        assert_int_equal(EVP_PKEY_eq(made, given), 1);
        EVP_PKEY_free(made);
        assert_int_equal(secret_in_use(), before);
        digits[9] = digits[9] == '0' ? '1' : '0';
        assert_null(client_key_new(NULL, given, view_str(digits)));
        assert_null(client_key_new(NULL, given, view_str(digits + 2)));
        digits[9] = 'x';
        assert_null(client_key_new(NULL, given, view_str(digits)));
        EVP_PKEY_free(given);
    }
}

static void keys_of_other_kinds_are_not_taken(void **state) {
    (void)state;
    EVP_PKEY *rsa = EVP_RSA_gen(2048), *curve = EVP_EC_gen("P-521");
    assert_int_equal(client_key_size(rsa), 0);
    assert_int_equal(client_key_size(curve), 0);
    EVP_PKEY_free(rsa);
    EVP_PKEY_free(curve);
}

static struct view pem_of(BIO *bio) {
    char *p;
    long n = BIO_get_mem_data(bio, &p);
    return view_of(p, (size_t)n);
}

/* With any byte of it changed, or cut anywhere, it is the key or refused; never anything else. */
static void a_damaged_key_is_refused(void **state) {
    struct test_certificate t = certificate_make(&(struct wish){.cn = "us", .eku = "clientAuth"});
    struct certificate c;
    struct buf chain, digits, damaged;
    char right[CLIENT_KEY_DIGITS + 1];
    BIO *pem = BIO_new(BIO_s_mem());
    (void)state;
    buf_init(&chain, 65536);
    buf_init(&damaged, 65536);
    buf_init_secret(&digits, SECRET_MAX);
    put_pem(&chain, &t);
    assert_null(certificate_read(buf_view(&chain), 1000, &c));
    assert_string_equal(c.told.subject, "CN=us");
    PEM_write_bio_PKCS8PrivateKey(pem, t.key, NULL, NULL, 0, NULL, NULL);
    assert_null(certificate_key(&c, pem_of(pem), &digits));
    digits_of(t.key, 32, right);
    assert_true(view_equal(buf_view(&digits), view_str(right)));
    for (size_t i = 0; i < pem_of(pem).n; i++) {
        buf_reset(&digits);
        if (i < pem_of(pem).n - strlen("-----END PRIVATE KEY-----\n"))
            assert_non_null(certificate_key(&c, view_head(pem_of(pem), i), &digits));
        buf_reset(&digits);
        buf_reset(&damaged);
        buf_put(&damaged, pem_of(pem));
        damaged.p[i] ^= 1;
        if (!certificate_key(&c, buf_view(&damaged), &digits))
            assert_true(view_equal(buf_view(&digits), view_str(right)));
    }
    certificate_free(&c);
    test_certificate_free(&t);
    BIO_free(pem);
    buf_free(&chain);
    buf_free(&digits);
    buf_free(&damaged);
}

static void an_expired_certificate_is_refused_by_the_time_that_is_given(void **state) {
    struct test_certificate t = certificate_make(&(struct wish){.cn = "us", .eku = "clientAuth"});
    struct certificate c;
    struct buf chain;
    (void)state;
    buf_init(&chain, 65536);
    put_pem(&chain, &t);
    assert_null(certificate_read(buf_view(&chain), (uint64_t)time(NULL), &c));
    certificate_free(&c);
    assert_string_equal(certificate_read(buf_view(&chain), (uint64_t)time(NULL) + 2 * DAY, &c),
                        "it has expired");
    certificate_free(&c);
    test_certificate_free(&t);
    buf_free(&chain);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_key_is_made_of_its_digits_and_lies_in_the_arena),
        cmocka_unit_test(keys_of_other_kinds_are_not_taken),
        cmocka_unit_test(a_damaged_key_is_refused),
        cmocka_unit_test(an_expired_certificate_is_refused_by_the_time_that_is_given),
    };
    if (openssl_memory_start() != 0 || secret_arena_open(1 << 20) != 0)
        return 1;
    return cmocka_run_group_tests(tests, NULL, NULL);
}
