#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "ca/mint.h"
#include "cli/java_roots.h"

#include <string.h>

#include <openssl/pkcs12.h>

#define NOW UINT64_C(1790000000)

static int write_store(struct view pem, struct buf *out) {
    struct java_roots *j = java_roots_new();
    assert_non_null(j);
    int result = java_roots_add(j, pem);
    if (result == 0)
        result = java_roots_write(j, out);
    java_roots_free(j);
    return result;
}

static void put_root(struct buf *pem, uint8_t number) {
    uint8_t serial[MINT_SERIAL_SIZE] = {1, number};
    struct mint_validity v = {NOW, NOW + 86400};
    struct buf key;
    buf_init(&key, 8192);
    assert_non_null(buf_reserve(&key, 8192));
    assert_int_equal(mint_key(&key), 0);
    assert_int_equal(mint_root(buf_view(&key), "a root", v, serial, pem), 0);
    buf_free(&key);
}

/* The bags of a store that needs no password. */
static STACK_OF(PKCS12_SAFEBAG) * bags_of(const struct buf *store) {
    const unsigned char *at = store->p;
    PKCS12 *p12 = d2i_PKCS12(NULL, &at, (long)buf_len(store));
    assert_non_null(p12);
    assert_false(PKCS12_mac_present(p12));
    STACK_OF(PKCS7) *safes = PKCS12_unpack_authsafes(p12);
    assert_int_equal(sk_PKCS7_num(safes), 1);
    STACK_OF(PKCS12_SAFEBAG) *bags = PKCS12_unpack_p7data(sk_PKCS7_value(safes, 0));
    sk_PKCS7_pop_free(safes, PKCS7_free);
    PKCS12_free(p12);
    return bags;
}

static bool is_marked_as_trusted(const PKCS12_SAFEBAG *bag) {
    ASN1_OBJECT *wanted = OBJ_txt2obj("2.16.840.1.113894.746875.1.1", 1);
    const STACK_OF(X509_ATTRIBUTE) *attributes = PKCS12_SAFEBAG_get0_attrs(bag);
    bool found = false;
    for (int i = 0; i < sk_X509_ATTRIBUTE_num(attributes); i++) {
        X509_ATTRIBUTE *a = sk_X509_ATTRIBUTE_value(attributes, i);
        const ASN1_OBJECT *usage = X509_ATTRIBUTE_get0_data(a, 0, V_ASN1_OBJECT, NULL);
        if (OBJ_cmp(X509_ATTRIBUTE_get0_object(a), wanted) == 0)
            found = usage && OBJ_obj2nid(usage) == NID_anyExtendedKeyUsage;
    }
    ASN1_OBJECT_free(wanted);
    return found;
}

static void every_certificate_is_a_trusted_entry_of_its_own(void **state) {
    struct buf pem, store;
    (void)state;
    buf_init(&pem, 1 << 16);
    buf_init(&store, 1 << 16);
    put_root(&pem, 1);
    buf_put_str(&pem, "# a comment between them\n");
    put_root(&pem, 2);
    assert_int_equal(write_store(buf_view(&pem), &store), 0);
    STACK_OF(PKCS12_SAFEBAG) *bags = bags_of(&store);
    assert_int_equal(sk_PKCS12_SAFEBAG_num(bags), 2);
    char *names[2];
    for (int i = 0; i < 2; i++) {
        PKCS12_SAFEBAG *bag = sk_PKCS12_SAFEBAG_value(bags, i);
        assert_true(is_marked_as_trusted(bag));
        names[i] = PKCS12_get_friendlyname(bag);
    }
    assert_string_not_equal(names[0], names[1]);
    OPENSSL_free(names[0]);
    OPENSSL_free(names[1]);
    sk_PKCS12_SAFEBAG_pop_free(bags, PKCS12_SAFEBAG_free);
    buf_free(&pem);
    buf_free(&store);
}

static void a_broken_certificate_does_not_hide_those_behind_it(void **state) {
    static const char *const broken[] = {
        "-----BEGIN CERTIFICATE-----\nMAMCAQE=\n-----END CERTIFICATE-----\n",
        "-----BEGIN CERTIFICATE-----\n!\n-----END CERTIFICATE-----\n",
        "-----BEGIN CERTIFICATE-----\nMAMCAQE=\n-----END X509 CRL-----\n"};
    (void)state;
    for (size_t i = 0; i < sizeof broken / sizeof *broken; i++) {
        struct buf pem, store;
        buf_init(&pem, 1 << 16);
        buf_init(&store, 1 << 16);
        put_root(&pem, 1);
        buf_put_str(&pem, broken[i]);
        put_root(&pem, 2);
        assert_int_equal(write_store(buf_view(&pem), &store), 0);
        STACK_OF(PKCS12_SAFEBAG) *bags = bags_of(&store);
        assert_int_equal(sk_PKCS12_SAFEBAG_num(bags), 2);
        sk_PKCS12_SAFEBAG_pop_free(bags, PKCS12_SAFEBAG_free);
        buf_free(&pem);
        buf_free(&store);
    }
}

static void a_text_without_a_certificate_is_refused(void **state) {
    struct buf store;
    (void)state;
    buf_init(&store, 1 << 16);
    assert_int_equal(write_store(VIEW(""), &store), ERR_BAD);
    assert_int_equal(write_store(VIEW("-----BEGIN CERTIFICATE-----\nAAAA\n"), &store), ERR_BAD);
    assert_int_equal(buf_len(&store), 0);
    buf_free(&store);
}

static void a_system_without_roots_adds_none(void **state) {
    struct buf nothing, pem, store;
    struct java_roots *j = java_roots_new();
    (void)state;
    buf_init(&nothing, 1);
    buf_init(&pem, 1 << 16);
    buf_init(&store, 1 << 16);
    put_root(&pem, 1);
    assert_int_equal(java_roots_add(j, buf_view(&nothing)), 0);
    assert_int_equal(java_roots_add(j, buf_view(&pem)), 0);
    assert_int_equal(java_roots_write(j, &store), 0);
    java_roots_free(j);
    buf_free(&pem);
    buf_free(&store);
}

static void a_store_that_does_not_fit_is_not_cut(void **state) {
    struct buf pem, store;
    (void)state;
    buf_init(&pem, 1 << 16);
    buf_init(&store, 64);
    put_root(&pem, 1);
    assert_int_equal(write_store(buf_view(&pem), &store), ERR_LIMIT);
    assert_int_equal(buf_len(&store), 0);
    buf_free(&pem);
    buf_free(&store);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_certificate_is_a_trusted_entry_of_its_own),
        cmocka_unit_test(a_broken_certificate_does_not_hide_those_behind_it),
        cmocka_unit_test(a_text_without_a_certificate_is_refused),
        cmocka_unit_test(a_system_without_roots_adds_none),
        cmocka_unit_test(a_store_that_does_not_fit_is_not_cut),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
