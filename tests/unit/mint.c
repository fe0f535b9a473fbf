#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "base/limits.h"
#include "ca/mint.h"

#include <openssl/evp.h>
#include <openssl/pem.h>
#include <openssl/x509v3.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

/* One CA and one lane's key for all tests; times are fixed. */

#define NOW UINT64_C(1790000000)
#define DAY UINT64_C(86400)

static struct {
    struct buf key, cert, spki;
    struct mint *mint;
    struct mint_form *form;
    X509 *root;
    EVP_PKEY *lane_key;
} fixture;

static const struct mint_validity root_validity = {NOW - DAY, NOW + 3650 * DAY};
static const struct mint_validity leaf_validity = {NOW - 3600, NOW + 7 * DAY};
static const uint8_t serial[MINT_SERIAL_SIZE] = {0xff, 2,  3,  4,  5,  6,  7,  8,
                                                 9,    10, 11, 12, 13, 14, 15, 16};

static X509 *certificate_of(struct view pem) {
    BIO *bio = BIO_new_mem_buf(pem.p, (int)pem.n);
    X509 *x = PEM_read_bio_X509(bio, NULL, NULL, NULL);
    BIO_free(bio);
    assert_non_null(x);
    return x;
}

static void put_spki(EVP_PKEY *key, struct buf *out) {
    uint8_t *der = NULL;
    int n = i2d_PUBKEY(key, &der);
    assert_true(n > 0);
    buf_put(out, view_of(der, (size_t)n));
    OPENSSL_free(der);
}

static int set_up(void **state) {
    (void)state;
    buf_init(&fixture.key, MINT_PEM_MAX);
    buf_init(&fixture.cert, MINT_PEM_MAX);
    buf_init(&fixture.spki, 1024);
    assert_int_equal(mint_key(&fixture.key), 0);
    assert_int_equal(
        mint_root(buf_view(&fixture.key), "exeat CA test", root_validity, serial, &fixture.cert),
        0);
    assert_int_equal(mint_new(buf_view(&fixture.key), buf_view(&fixture.cert), &fixture.mint), 0);
    fixture.lane_key = EVP_EC_gen("P-256");
    put_spki(fixture.lane_key, &fixture.spki);
    assert_int_equal(mint_form_new(fixture.mint, buf_view(&fixture.spki), &fixture.form), 0);
    fixture.root = certificate_of(buf_view(&fixture.cert));
    return 0;
}

static int tear_down(void **state) {
    (void)state;
    X509_free(fixture.root);
    EVP_PKEY_free(fixture.lane_key);
    mint_form_free(fixture.form);
    mint_free(fixture.mint);
    buf_free(&fixture.key);
    buf_free(&fixture.cert);
    buf_free(&fixture.spki);
    return 0;
}

static struct authority authority_of(const char *text) {
    struct authority a;
    assert_int_equal(authority_parse_host(view_str(text), 443, &a, NULL), 0);
    return a;
}

static X509 *leaf_for(const struct authority *a, struct mint_validity v, const uint8_t *number) {
    struct buf der;
    buf_init(&der, 8192);
    assert_int_equal(mint_leaf(fixture.form, a, v, number, &der, NULL), 0);
    const uint8_t *p = buf_view(&der).p;
    X509 *x = d2i_X509(NULL, &p, (long)buf_len(&der));
    assert_non_null(x);
    assert_ptr_equal(p, buf_view(&der).p + buf_len(&der));
    buf_free(&der);
    return x;
}

/* OpenSSL's verdict in its strict mode at a time; X509_V_OK or the error. */
static int verify(X509 *leaf, X509 *root, const struct authority *a, uint64_t at) {
    X509_STORE *store = X509_STORE_new();
    X509_STORE_CTX *ctx = X509_STORE_CTX_new();
    X509_STORE_add_cert(store, root);
    X509_STORE_CTX_init(ctx, store, leaf, NULL);
    X509_VERIFY_PARAM *param = X509_STORE_CTX_get0_param(ctx);
    X509_VERIFY_PARAM_set_flags(param, X509_V_FLAG_X509_STRICT | X509_V_FLAG_CHECK_SS_SIGNATURE);
    X509_VERIFY_PARAM_set_time(param, (time_t)at);
    X509_VERIFY_PARAM_set_purpose(param, X509_PURPOSE_SSL_SERVER);
    X509_VERIFY_PARAM_set_auth_level(param, 2);
    if (a->kind == HOST_ADDRESS) {
        X509_VERIFY_PARAM_set1_ip(param, a->address.bytes, a->address.family == 4 ? 4 : 16);
    } else {
        X509_VERIFY_PARAM_set_hostflags(param, X509_CHECK_FLAG_NEVER_CHECK_SUBJECT);
        X509_VERIFY_PARAM_set1_host(param, a->host, 0);
    }
    int result = X509_verify_cert(ctx) == 1 ? X509_V_OK : X509_STORE_CTX_get_error(ctx);
    X509_STORE_CTX_free(ctx);
    X509_STORE_free(store);
    return result;
}

#define LABEL63 "a23456789012345678901234567890123456789012345678901234567890123"

static const char *const hosts[] = {
    "a",
    "localhost",
    "api.example.com",
    "xn--bcher-kva.example",
    "under_score.example.com",
    "1.2.3.4.example.com",
    LABEL63 ".x",
    LABEL63 ".example.com",
    LABEL63 "." LABEL63 "." LABEL63
            ".a234567890123456789012345678901234567890123456789012345678901",
    "192.0.2.1",
    "[2001:db8::1]",
    "[::1]",
    "[::ffff:192.0.2.1]",
};

static void ad_03_every_leaf_passes_strict_verification_for_its_host(void **state) {
    (void)state;
    for (size_t i = 0; i < sizeof hosts / sizeof *hosts; i++) {
        struct authority a = authority_of(hosts[i]);
        X509 *x = leaf_for(&a, leaf_validity, serial);
        int result = verify(x, fixture.root, &a, NOW);
        if (result != X509_V_OK)
            print_message("%s: %s\n", hosts[i], X509_verify_cert_error_string(result));
        assert_int_equal(result, X509_V_OK);
        X509_free(x);
    }
}

static void ad_03_a_leaf_is_good_for_no_other_host(void **state) {
    (void)state;
    struct authority a = authority_of("api.example.com");
    struct authority others[] = {authority_of("example.com"), authority_of("x.api.example.com"),
                                 authority_of("xapi.example.com"), authority_of("192.0.2.1")};
    X509 *x = leaf_for(&a, leaf_validity, serial);
    for (size_t i = 0; i < sizeof others / sizeof *others; i++)
        assert_int_not_equal(verify(x, fixture.root, &others[i], NOW), X509_V_OK);
    X509_free(x);
}

static void ad_03_a_leaf_of_another_installation_is_not_trusted(void **state) {
    (void)state;
    struct buf key, cert;
    struct authority a = authority_of("api.example.com");
    buf_init(&key, MINT_PEM_MAX);
    buf_init(&cert, MINT_PEM_MAX);
    assert_int_equal(mint_key(&key), 0);
    assert_int_equal(mint_root(buf_view(&key), "exeat CA test", root_validity, serial, &cert), 0);
    X509 *root = certificate_of(buf_view(&cert));
    X509 *x = leaf_for(&a, leaf_validity, serial);
    assert_int_not_equal(verify(x, root, &a, NOW), X509_V_OK);
    X509_free(x);
    X509_free(root);
    buf_free(&key);
    buf_free(&cert);
}

static void ad_03_a_leaf_signs_nothing_and_is_no_client(void **state) {
    (void)state;
    struct authority a = authority_of("api.example.com");
    X509 *x = leaf_for(&a, leaf_validity, serial);
    assert_int_equal(X509_check_ca(x), 0);
    assert_int_equal(X509_check_purpose(x, X509_PURPOSE_SSL_SERVER, 0), 1);
    assert_int_equal(X509_check_purpose(x, X509_PURPOSE_SSL_CLIENT, 0), 0);
    assert_int_equal(X509_get_key_usage(x), KU_DIGITAL_SIGNATURE);
    assert_int_equal(X509_get_extended_key_usage(x), XKU_SSL_SERVER);
    X509_free(x);
}

static int critical(X509 *x, int nid) {
    int at = X509_get_ext_by_NID(x, nid, -1);
    assert_true(at >= 0);
    assert_int_equal(X509_get_ext_by_NID(x, nid, at), -1); /* exactly one */
    return X509_EXTENSION_get_critical(X509_get_ext(x, at));
}

static void the_root_follows_the_profile(void **state) {
    (void)state;
    X509 *x = fixture.root;
    assert_int_equal(X509_get_version(x), 2);
    assert_int_equal(critical(x, NID_basic_constraints), 1);
    assert_int_equal(critical(x, NID_key_usage), 1);
    assert_int_equal(critical(x, NID_subject_key_identifier), 0);
    assert_int_equal(X509_get_ext_count(x), 3);
    assert_int_equal(X509_get_pathlen(x), 0);
    assert_int_equal(X509_get_key_usage(x), KU_KEY_CERT_SIGN | KU_CRL_SIGN);
    assert_int_equal(X509_get_signature_nid(x), NID_ecdsa_with_SHA256);
}

static void a_leaf_follows_the_profile(void **state) {
    (void)state;
    struct authority a = authority_of("api.example.com");
    X509 *x = leaf_for(&a, leaf_validity, serial);
    assert_int_equal(X509_get_version(x), 2);
    assert_int_equal(critical(x, NID_basic_constraints), 1);
    assert_int_equal(critical(x, NID_key_usage), 1);
    assert_int_equal(critical(x, NID_ext_key_usage), 0);
    assert_int_equal(critical(x, NID_subject_key_identifier), 0);
    assert_int_equal(critical(x, NID_authority_key_identifier), 0);
    assert_int_equal(critical(x, NID_subject_alt_name), 0);
    assert_int_equal(X509_get_ext_count(x), 6);
    assert_int_equal(X509_get_signature_nid(x), NID_ecdsa_with_SHA256);
    assert_int_equal(EVP_PKEY_eq(X509_get0_pubkey(x), fixture.lane_key), 1);
    assert_int_equal(ASN1_OCTET_STRING_cmp(X509_get0_authority_key_id(x),
                                           X509_get0_subject_key_id(fixture.root)),
                     0);
    X509_free(x);
}

static void
names_too_long_for_a_cn_have_an_empty_subject_and_a_critical_alternative_name(void **state) {
    (void)state;
    static const struct {
        const char *host;
        int entries;
    } cases[] = {
        {"a23456789012345678901234567890123456789012345678901234567.example", 0}, /* 65 */
        {"a2345678901234567890123456789012345678901234567890123456.example", 1},  /* 64 */
        {LABEL63 ".example.com", 0},
        {"192.0.2.1", 1},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct authority a = authority_of(cases[i].host);
        X509 *x = leaf_for(&a, leaf_validity, serial);
        assert_int_equal(X509_NAME_entry_count(X509_get_subject_name(x)), cases[i].entries);
        assert_int_equal(critical(x, NID_subject_alt_name), cases[i].entries == 0);
        X509_free(x);
    }
}

static void the_form_keeps_nothing_of_the_leaf_before(void **state) {
    (void)state;
    struct authority first = authority_of(LABEL63 ".example.com");
    struct authority second = authority_of("b.example");
    X509_free(leaf_for(&first, leaf_validity, serial));
    X509 *x = leaf_for(&second, leaf_validity, serial);
    GENERAL_NAMES *names = X509_get_ext_d2i(x, NID_subject_alt_name, NULL, NULL);
    assert_int_equal(sk_GENERAL_NAME_num(names), 1);
    assert_int_not_equal(verify(x, fixture.root, &first, NOW), X509_V_OK);
    assert_int_equal(verify(x, fixture.root, &second, NOW), X509_V_OK);
    GENERAL_NAMES_free(names);
    X509_free(x);
}

static void ad_03_the_serial_is_the_given_one_and_positive(void **state) {
    (void)state;
    struct authority a = authority_of("b.example");
    X509 *x = leaf_for(&a, leaf_validity, serial);
    BIGNUM *n = ASN1_INTEGER_to_BN(X509_get0_serialNumber(x), NULL);
    uint8_t bytes[MINT_SERIAL_SIZE];
    assert_int_equal(BN_is_negative(n), 0);
    assert_int_equal(BN_bn2binpad(n, bytes, sizeof bytes), sizeof bytes);
    assert_memory_equal(bytes, serial, sizeof bytes);
    BN_free(n);
    X509_free(x);
}

static void ad_07_a_leaf_is_valid_from_its_beginning_to_its_end(void **state) {
    (void)state;
    struct authority a = authority_of("b.example");
    X509 *x = leaf_for(&a, leaf_validity, serial);
    assert_int_equal(verify(x, fixture.root, &a, NOW - 3599), X509_V_OK);
    assert_int_equal(verify(x, fixture.root, &a, NOW - 3601), X509_V_ERR_CERT_NOT_YET_VALID);
    assert_int_equal(verify(x, fixture.root, &a, NOW + 7 * DAY - 1), X509_V_OK);
    assert_int_equal(verify(x, fixture.root, &a, NOW + 7 * DAY + 1), X509_V_ERR_CERT_HAS_EXPIRED);
    X509_free(x);
}

static void ad_07_a_leaf_never_outlives_the_ca(void **state) {
    (void)state;
    struct authority a = authority_of("b.example");
    struct buf der;
    uint64_t ends = 0;
    struct mint_validity v = {NOW, NOW + 4000 * DAY};
    buf_init(&der, 8192);
    assert_int_equal(mint_leaf(fixture.form, &a, v, serial, &der, &ends), 0);
    assert_int_equal(ends, root_validity.not_after);
    buf_free(&der);
}

static void a_leaf_beyond_2050_can_be_written(void **state) {
    (void)state;
    struct buf key, cert;
    struct mint *m = NULL;
    struct mint_facts facts;
    struct mint_validity v = {NOW, UINT64_C(4102444800)}; /* 2100 */
    buf_init(&key, MINT_PEM_MAX);
    buf_init(&cert, MINT_PEM_MAX);
    assert_int_equal(mint_key(&key), 0);
    assert_int_equal(mint_root(buf_view(&key), "x", v, serial, &cert), 0);
    assert_int_equal(mint_new(buf_view(&key), buf_view(&cert), &m), 0);
    assert_int_equal(mint_describe(buf_view(&cert), &facts), 0);
    assert_int_equal(facts.validity.not_after, v.not_after);
    assert_int_equal(facts.validity.not_before, v.not_before);
    assert_string_equal(facts.subject, "CN=x");
    mint_free(m);
    buf_free(&key);
    buf_free(&cert);
}

static void refuse_leaf(const char *host, struct mint_validity v, const uint8_t *number) {
    struct authority a = {.kind = HOST_NAME, .port = 443};
    struct buf der;
    memcpy(a.host, host, strlen(host));
    buf_init(&der, 8192);
    if (mint_leaf(fixture.form, &a, v, number, &der, NULL) != ERR_BAD)
        fail_msg("a leaf was signed for '%s'", host);
    assert_int_equal(buf_len(&der), 0);
    buf_free(&der);
}

static void ad_03_nothing_but_a_canonical_host_is_signed(void **state) {
    (void)state;
    static const char *const bad[] = {
        "",    "*.example.com", "*",     "EXAMPLE.com", "a b",   "a\nb", "b\xc3\xbc.example",
        "a/b", "a,DNS:b",       "[::1]", "a@b",         "a:443",
    };
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++)
        refuse_leaf(bad[i], leaf_validity, serial);
    char longest[HOST_SIZE];
    memset(longest, 'a', 254);
    longest[254] = 0;
    refuse_leaf(longest, leaf_validity, serial);
}

static void an_empty_validity_and_a_zero_serial_are_refused(void **state) {
    (void)state;
    static const uint8_t zeros[MINT_SERIAL_SIZE];
    refuse_leaf("a.example", (struct mint_validity){NOW, NOW}, serial);
    refuse_leaf("a.example", (struct mint_validity){NOW + 4000 * DAY, NOW + 4001 * DAY}, serial);
    refuse_leaf("a.example", leaf_validity, zeros);
}

static void a_key_that_is_not_the_certificates_is_told_apart(void **state) {
    (void)state;
    struct buf other;
    struct mint *m = NULL;
    buf_init(&other, MINT_PEM_MAX);
    assert_int_equal(mint_key(&other), 0);
    assert_int_equal(mint_new(buf_view(&other), buf_view(&fixture.cert), &m), ERR_DENIED);
    assert_int_equal(mint_new(VIEW("x"), buf_view(&fixture.cert), &m), ERR_CRYPTO);
    assert_int_equal(mint_new(buf_view(&other), VIEW(""), &m), ERR_CRYPTO);
    assert_int_equal(mint_new(buf_view(&fixture.cert), buf_view(&fixture.key), &m), ERR_CRYPTO);
    assert_null(m);
    buf_free(&other);
}

static void a_leaf_is_no_ca_to_sign_with(void **state) {
    (void)state;
    struct authority a = authority_of("b.example");
    struct mint *m = NULL;
    struct buf key;
    X509 *x = leaf_for(&a, leaf_validity, serial);
    BIO *bio = BIO_new(BIO_s_mem()), *key_bio = BIO_new(BIO_s_mem());
    char *p = NULL, *k = NULL;
    PEM_write_bio_X509(bio, x);
    PEM_write_bio_PrivateKey(key_bio, fixture.lane_key, NULL, NULL, 0, NULL, NULL);
    long n = BIO_get_mem_data(bio, &p), kn = BIO_get_mem_data(key_bio, &k);
    buf_init(&key, MINT_PEM_MAX);
    assert_int_equal(mint_new(view_of(k, (size_t)kn), view_of(p, (size_t)n), &m), ERR_CRYPTO);
    BIO_free(bio);
    BIO_free(key_bio);
    X509_free(x);
}

static void ad_03_only_p256_keys_get_a_leaf(void **state) {
    (void)state;
    struct mint_form *f = NULL;
    struct buf spki;
    EVP_PKEY *keys[] = {EVP_EC_gen("P-384"), EVP_RSA_gen(2048),
                        EVP_PKEY_Q_keygen(NULL, NULL, "ED25519")};
    buf_init(&spki, 4096);
    for (size_t i = 0; i < sizeof keys / sizeof *keys; i++) {
        buf_reset(&spki);
        put_spki(keys[i], &spki);
        assert_int_equal(mint_form_new(fixture.mint, buf_view(&spki), &f), ERR_CRYPTO);
        EVP_PKEY_free(keys[i]);
    }
    buf_reset(&spki);
    buf_put(&spki, buf_view(&fixture.spki));
    buf_put_u8(&spki, 0);
    assert_int_equal(mint_form_new(fixture.mint, buf_view(&spki), &f), ERR_CRYPTO);
    assert_int_equal(
        mint_form_new(fixture.mint, view_head(buf_view(&spki), buf_len(&spki) / 2), &f),
        ERR_CRYPTO);
    assert_int_equal(mint_form_new(fixture.mint, VIEW(""), &f), ERR_CRYPTO);
    assert_null(f);
    buf_free(&spki);
}

static void minting_from_a_form_is_quick(void **state) {
    (void)state;
    struct authority a = authority_of("api.example.com");
    struct buf der;
    struct timespec from, to;
    const int rounds = 500;
    buf_init(&der, 8192);
    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &from);
    for (int i = 0; i < rounds; i++) {
        buf_reset(&der);
        assert_int_equal(mint_leaf(fixture.form, &a, leaf_validity, serial, &der, NULL), 0);
    }
    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &to);
    double us = ((double)(to.tv_sec - from.tv_sec) * 1e9 + (double)(to.tv_nsec - from.tv_nsec)) /
                1e3 / rounds;
    print_message("%.1f us of CPU for a leaf of %zu bytes\n", us, buf_len(&der));
    assert_true(us < 5000); /* far above any real figure: only a mistake of kind shows */
    buf_free(&der);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(ad_03_every_leaf_passes_strict_verification_for_its_host),
        cmocka_unit_test(ad_03_a_leaf_is_good_for_no_other_host),
        cmocka_unit_test(ad_03_a_leaf_of_another_installation_is_not_trusted),
        cmocka_unit_test(ad_03_a_leaf_signs_nothing_and_is_no_client),
        cmocka_unit_test(the_root_follows_the_profile),
        cmocka_unit_test(a_leaf_follows_the_profile),
        cmocka_unit_test(
            names_too_long_for_a_cn_have_an_empty_subject_and_a_critical_alternative_name),
        cmocka_unit_test(the_form_keeps_nothing_of_the_leaf_before),
        cmocka_unit_test(ad_03_the_serial_is_the_given_one_and_positive),
        cmocka_unit_test(ad_07_a_leaf_is_valid_from_its_beginning_to_its_end),
        cmocka_unit_test(ad_07_a_leaf_never_outlives_the_ca),
        cmocka_unit_test(a_leaf_beyond_2050_can_be_written),
        cmocka_unit_test(ad_03_nothing_but_a_canonical_host_is_signed),
        cmocka_unit_test(an_empty_validity_and_a_zero_serial_are_refused),
        cmocka_unit_test(a_key_that_is_not_the_certificates_is_told_apart),
        cmocka_unit_test(a_leaf_is_no_ca_to_sign_with),
        cmocka_unit_test(ad_03_only_p256_keys_get_a_leaf),
        cmocka_unit_test(minting_from_a_form_is_quick),
    };
    return cmocka_run_group_tests(tests, set_up, tear_down);
}
