/* Nothing that TLS needs is missing in the library context of its own, and of keys only those of certificates are read. */
#include "http/tls_library.h"
#include "tests/unit/tls_ends.h"

/* ---- certificates ---- */

static X509 *read_back(const struct certificate *c) {
    uint8_t *der = NULL;
    int n = i2d_X509(c->x, &der);
    const uint8_t *p = der;
    X509 *x = tls_library_certificate(&p, n);
    assert_true(p == der + n);
    OPENSSL_free(der);
    return x;
}

static struct certificate with_key(EVP_PKEY *key) {
    assert_non_null(key);
    return certificate_make(&(struct wish){.cn = "x", .issuer = &middle, .key = key});
}

static void expect_key(EVP_PKEY *key) {
    struct certificate c = with_key(key);
    X509 *x = read_back(&c);
    assert_int_equal(EVP_PKEY_eq(X509_get0_pubkey(x), key), 1);
    X509_free(x);
    certificate_free(&c);
    EVP_PKEY_free(key);
}

static EVP_PKEY *rsa_pss_key(void) {
    EVP_PKEY *key = NULL;
    EVP_PKEY_CTX *c = EVP_PKEY_CTX_new_from_name(NULL, "RSA-PSS", NULL);
    assert_int_equal(EVP_PKEY_keygen_init(c), 1);
    assert_int_equal(EVP_PKEY_CTX_set_rsa_keygen_bits(c, 2048), 1);
    assert_int_equal(EVP_PKEY_keygen(c, &key), 1);
    EVP_PKEY_CTX_free(c);
    return key;
}

static void test_keys_that_certificates_have_are_read(void **state) {
    (void)state;
    static const char *const curves[] = {"P-256", "P-384", "P-521"};
    static const char *const others[] = {"ED25519", "ED448"};
    for (size_t i = 0; i < COUNT(curves); i++)
        expect_key(EVP_EC_gen(curves[i]));
    for (size_t i = 0; i < COUNT(others); i++)
        expect_key(EVP_PKEY_Q_keygen(NULL, NULL, others[i]));
    expect_key(EVP_RSA_gen(2048));
    expect_key(rsa_pss_key());
}

static void test_a_key_that_signs_nothing_is_none(void **state) {
    (void)state;
    EVP_PKEY *key = EVP_PKEY_Q_keygen(NULL, NULL, "X25519");
    struct certificate c = with_key(key);
    X509 *x = read_back(&c);
    assert_non_null(x);
    assert_null(X509_get0_pubkey(x));
    X509_free(x);
    certificate_free(&c);
    EVP_PKEY_free(key);
}

static void test_what_is_no_certificate_is_none(void **state) {
    (void)state;
    static const uint8_t bytes[] = {0x30, 0x03, 0x02, 0x01, 0x05};
    const uint8_t *p = bytes;
    assert_null(tls_library_certificate(&p, sizeof bytes));
    assert_null(tls_library_certificate(&p, 0));
    ERR_clear_error();
}

/* ---- suites and groups ---- */

struct choice {
    const char *suite;  /* of TLS 1.2, or NULL */
    const char *suite3; /* of TLS 1.3, or NULL */
    const char *group;  /* or NULL */
    int rsa_bits;
};

static void set_up_peer(struct peer *p, const struct choice *c) {
    struct certificate own = certificate_make(
        &(struct wish){.cn = "x", .san = "DNS:" NAME, .issuer = &middle, .rsa_bits = c->rsa_bits});
    peer_new(p, TLS_server_method(), -1);
    SSL_CTX_use_certificate(p->ctx, own.x);
    SSL_CTX_use_PrivateKey(p->ctx, own.key);
    SSL_CTX_add1_chain_cert(p->ctx, middle.x);
    SSL_CTX_set_dh_auto(p->ctx, 1);
    if (c->suite) {
        SSL_CTX_set_max_proto_version(p->ctx, TLS1_2_VERSION);
        assert_int_equal(SSL_CTX_set_cipher_list(p->ctx, c->suite), 1);
    }
    if (c->suite3)
        assert_int_equal(SSL_CTX_set_ciphersuites(p->ctx, c->suite3), 1);
    if (c->group)
        assert_int_equal(SSL_CTX_set1_groups_list(p->ctx, c->group), 1);
    certificate_free(&own);
}

/* A handshake with a server of the default library that takes nothing else, and a byte. */
static void meet(const struct choice *c) {
    struct peer p;
    int fd[2];
    uint8_t byte = 0;
    size_t n;
    make_pair(fd);
    set_up_peer(&p, c);
    peer_start(&p, fd[1]);
    SSL_set_accept_state(p.ssl);
    struct tls *t = tls_connect(client, fd[0], NAME, NO_ADDRESS, NULL, NULL);
    if (shake_with_peer(t, &p) != TLS_DONE)
        fail_msg("%s, %s, %s: %s", c->suite ? c->suite : "-", c->suite3 ? c->suite3 : "-",
                 c->group ? c->group : "-", tls_error(t));
    assert_int_equal(peer_shake(&p), 1);
    assert_int_equal(SSL_write(p.ssl, "x", 1), 1);
    assert_int_equal(tls_read(t, &byte, 1, &n), TLS_DONE);
    assert_int_equal(byte, 'x');
    tls_free(t);
    peer_free(&p);
    close_pair(fd);
}

static void test_every_suite_and_group_that_is_offered_works(void **state) {
    (void)state;
    static const struct choice choices[] = {
        {"ECDHE-ECDSA-AES128-GCM-SHA256", NULL, NULL, 0},
        {"ECDHE-ECDSA-AES256-GCM-SHA384", NULL, NULL, 0},
        {"ECDHE-ECDSA-CHACHA20-POLY1305", NULL, NULL, 0},
        {"ECDHE-ECDSA-AES128-CCM", NULL, NULL, 0},
        {"ECDHE-ECDSA-AES256-CCM", NULL, NULL, 0},
        {"ECDHE-ECDSA-AES128-SHA256", NULL, NULL, 0},
        {"ECDHE-ECDSA-AES256-SHA384", NULL, NULL, 0},
        {"ECDHE-ECDSA-AES128-SHA", NULL, NULL, 0},
        {"ECDHE-RSA-AES256-GCM-SHA384", NULL, "P-521", 2048},
        {"ECDHE-RSA-AES256-SHA", NULL, "X25519", 2048},
        {"DHE-RSA-AES128-GCM-SHA256", NULL, NULL, 2048},
        {"DHE-RSA-AES256-GCM-SHA384", NULL, NULL, 2048},
        {NULL, "TLS_AES_128_GCM_SHA256", "X25519", 0},
        {NULL, "TLS_AES_256_GCM_SHA384", "P-256", 0},
        {NULL, "TLS_CHACHA20_POLY1305_SHA256", "P-384", 2048},
        {NULL, NULL, "P-521", 0},
    };
    for (size_t i = 0; i < COUNT(choices); i++)
        meet(&choices[i]);
}

static int suites_of(OSSL_LIB_CTX *library) {
    SSL_CTX *ctx = SSL_CTX_new_ex(library, NULL, TLS_client_method());
    assert_int_equal(SSL_CTX_set_cipher_list(ctx, "ECDHE+AES:DHE+AES:ECDHE+CHACHA20"), 1);
    int n = sk_SSL_CIPHER_num(SSL_CTX_get_ciphers(ctx));
    SSL_CTX_free(ctx);
    return n;
}

static bool has_group(OSSL_LIB_CTX *library, const char *group) {
    SSL_CTX *ctx = SSL_CTX_new_ex(library, NULL, TLS_client_method());
    bool has = SSL_CTX_set1_groups_list(ctx, group) == 1;
    SSL_CTX_free(ctx);
    ERR_clear_error();
    return has;
}

static void test_no_suite_or_group_of_the_default_library_is_lost(void **state) {
    (void)state;
    static const char *const groups[] = {
        "X25519", "X448",      "P-256",          "P-384",
        "P-521",  "ffdhe2048", "X25519MLKEM768", "SecP256r1MLKEM768"};
    assert_int_equal(suites_of(tls_library()), suites_of(NULL));
    for (size_t i = 0; i < COUNT(groups); i++)
        assert_int_equal(has_group(tls_library(), groups[i]), has_group(NULL, groups[i]));
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_keys_that_certificates_have_are_read),
        cmocka_unit_test(test_a_key_that_signs_nothing_is_none),
        cmocka_unit_test(test_what_is_no_certificate_is_none),
        cmocka_unit_test(test_every_suite_and_group_that_is_offered_works),
        cmocka_unit_test(test_no_suite_or_group_of_the_default_library_is_lost),
    };
    return cmocka_run_group_tests(tests, ends_setup, ends_teardown);
}
