#include "base/client_key.h"

#include "base/openssl_memory.h"

#include <openssl/core_names.h>
#include <openssl/crypto.h>
#include <openssl/evp.h>
#include <openssl/params.h>
#include <string.h>

size_t client_key_size(const struct evp_pkey_st *public_key) {
    char group[32];
    if (EVP_PKEY_is_a(public_key, "ED25519"))
        return 32;
    if (!EVP_PKEY_is_a(public_key, "EC") ||
        EVP_PKEY_get_group_name(public_key, group, sizeof group, NULL) != 1)
        return 0;
    return strcmp(group, "prime256v1") == 0 ? 32 : strcmp(group, "secp384r1") == 0 ? 48 : 0;
}

/* OpenSSL takes numbers in the order of the machine. */
static void order(uint8_t *p, size_t n) {
    for (size_t i = 0; __BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__ && i < n / 2; i++) {
        uint8_t byte = p[i];
        p[i] = p[n - 1 - i];
        p[n - 1 - i] = byte;
    }
}

static bool is_pair(OSSL_LIB_CTX *library, EVP_PKEY *key) {
    EVP_PKEY_CTX *c = EVP_PKEY_CTX_new_from_pkey(library, key, NULL);
    bool ok = c && EVP_PKEY_pairwise_check(c) == 1;
    EVP_PKEY_CTX_free(c);
    return ok;
}

static EVP_PKEY *ec_new(OSSL_LIB_CTX *library, const EVP_PKEY *public_key, uint8_t *number,
                        size_t n) {
    char group[32];
    uint8_t point[1 + 2 * CLIENT_KEY_BYTES];
    size_t point_size;
    EVP_PKEY *key = NULL;
    order(number, n);
    EVP_PKEY_CTX *c = EVP_PKEY_CTX_new_from_name(library, "EC", NULL);
    if (EVP_PKEY_get_group_name(public_key, group, sizeof group, NULL) == 1 &&
        EVP_PKEY_get_octet_string_param(public_key, OSSL_PKEY_PARAM_PUB_KEY, point, sizeof point,
                                        &point_size) == 1 &&
        c && EVP_PKEY_fromdata_init(c) == 1) {
        OSSL_PARAM params[] = {
            OSSL_PARAM_construct_utf8_string(OSSL_PKEY_PARAM_GROUP_NAME, group, 0),
            OSSL_PARAM_construct_BN(OSSL_PKEY_PARAM_PRIV_KEY, number, n),
            OSSL_PARAM_construct_octet_string(OSSL_PKEY_PARAM_PUB_KEY, point, point_size),
            OSSL_PARAM_construct_end(),
        };
        if (EVP_PKEY_fromdata(c, &key, EVP_PKEY_KEYPAIR, params) != 1)
            key = NULL;
    }
    EVP_PKEY_CTX_free(c);
    return key;
}

static EVP_PKEY *pair_new(OSSL_LIB_CTX *library, const EVP_PKEY *public_key, uint8_t *number,
                          size_t n) {
    bool ec = EVP_PKEY_is_a(public_key, "EC");
    EVP_PKEY *key = ec ? ec_new(library, public_key, number, n)
                       : EVP_PKEY_new_raw_private_key_ex(library, "ED25519", NULL, number, n);
    /* The public half of the one was given, that of the other computed. */
    if (key && (ec ? is_pair(library, key) : EVP_PKEY_eq(public_key, key) == 1))
        return key;
    EVP_PKEY_free(key);
    return NULL;
}

struct evp_pkey_st *client_key_new(struct ossl_lib_ctx_st *library, struct evp_pkey_st *public_key,
                                   struct view digits) {
    size_t n = client_key_size(public_key);
    if (n == 0 || digits.n != 2 * n)
        return NULL;
    openssl_memory_into_arena(true);
    uint8_t *number = OPENSSL_zalloc(n); /* so that its want of room is counted as well */
    EVP_PKEY *key = number && hex_decode(digits, number, n) == 0
                        ? pair_new(library, public_key, number, n)
                        : NULL;
    openssl_memory_into_arena(false);
    OPENSSL_clear_free(number, n);
    return key;
}
