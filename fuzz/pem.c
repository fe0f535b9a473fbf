/*
 * PEM of whoever gave it: an operator's client certificates and trust anchors, roots of the system for Java's store, keys of
 * ca, of the audit log and of the vault. What is taken is what it says; a key that is refused leaves nothing in the arena.
 */
#include "audit/chain_head.h"
#include "base/client_key.h"
#include "base/openssl_memory.h"
#include "base/secret.h"
#include "broker/broker_messages.h"
#include "broker/certificate.h"
#include "broker/seal.h"
#include "ca/mint.h"
#include "cli/java_roots.h"
#include "fuzz/require.h"
#include "http/anchors.h"
#include "http/tls.h"

#include <openssl/pkcs12.h>
#include <stdlib.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);
const char *__asan_default_options(void);

/* Some of OpenSSL's memory is known only to what it keeps in the arena, where no search for leaks looks. */
const char *__asan_default_options(void) {
    return "detect_leaks=0";
}

enum {
    TEXT_MAX = 1 << 20,
    KINDS_MAX =
        1
        << 18 /* what OpenSSL keeps in the arena of the kinds of keys that it has met, and of its randomness */
};

/* In the arena, as broker has what a descriptor gave. */
static void try_client_certificate(struct view pem) {
    struct certificate c;
    struct buf secret, digits;
    const char *why = certificate_read(pem, 1800000000, &c);
    buf_init_secret(&secret, SECRET_MAX);
    buf_init_secret(&digits, SECRET_MAX);
    buf_put(&secret, pem);
    if (!why) {
        REQUIRE(buf_len(&c.chain) > 0 && c.told.not_after > 1800000000);
        if (buf_ok(&secret) && !certificate_key(&c, buf_view(&secret), &digits))
            REQUIRE(buf_len(&digits) > 0 && buf_len(&digits) % 2 == 0);
    }
    certificate_free(&c);
    buf_free(&secret);
    buf_free(&digits);
    REQUIRE(secret_in_use() <= KINDS_MAX);
}

static void try_anchors(struct view pem) {
    X509_STORE *store = X509_STORE_new();
    REQUIRE(store != NULL);
    (void)!anchors_add(store, pem);
    X509_STORE_free(store);
}

/* What is written for Java is read by OpenSSL. */
static void try_java(struct view pem) {
    struct java_roots *j = java_roots_new();
    struct buf out;
    buf_init(&out, TEXT_MAX);
    if (java_roots_add(j, pem) == 0 && java_roots_write(j, &out) == 0) {
        const uint8_t *p = buf_view(&out).p;
        PKCS12 *store = d2i_PKCS12(NULL, &p, (long)buf_len(&out));
        REQUIRE(store && p == buf_view(&out).p + buf_len(&out));
        PKCS12_free(store);
    }
    java_roots_free(j);
    buf_free(&out);
}

static void try_keys(struct view pem) {
    struct mint_facts facts;
    struct mint *m = NULL;
    struct chain_signer *signer = NULL;
    struct chain_keys *keys = NULL;
    uint8_t kek[SEAL_KEY_SIZE];
    if (mint_describe(pem, &facts) == 0)
        REQUIRE(memchr(facts.subject, 0, sizeof facts.subject) != NULL);
    if (mint_new(pem, pem, &m) == 0)
        mint_free(m);
    if (chain_signer_new(pem, &signer) == 0)
        chain_signer_free(signer);
    if (chain_keys_new(pem, &keys) == 0)
        chain_keys_free(keys);
    (void)!seal_parse_key(pem, kek);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    static bool open;
    struct view pem = view_of(data, size);
    if (!open)
        REQUIRE(openssl_memory_start() == 0 && tls_start() == 0 &&
                secret_arena_open((size_t)2 << 20) == 0);
    open = true;
    if (size > 32768)
        return 0;
    try_client_certificate(pem);
    try_anchors(pem);
    try_java(pem);
    try_keys(pem);
    return 0;
}
