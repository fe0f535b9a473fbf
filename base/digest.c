#include "base/digest.h"

#include "base/log.h"

#include <openssl/evp.h>
#include <openssl/hmac.h>
#include <openssl/rand.h>
#include <stdlib.h>
#include <sys/random.h>

static void require(int ok) {
    if (ok)
        return;
    /* Going on with a wrong digest could turn a mismatch into a match. */
    log_fatal("digest: the cryptographic library failed");
    abort();
}

/* Fetched and made once: a digest then costs little more than its bytes. */
static EVP_MD *sha256;
static EVP_MD_CTX *context;

static void open_context(void) {
    sha256 = EVP_MD_fetch(NULL, "SHA256", NULL);
    context = EVP_MD_CTX_new();
    require(sha256 != NULL && context != NULL);
}

int digest_start(void) {
    uint8_t out[DIGEST_SIZE];
    if (OPENSSL_init_crypto(OPENSSL_INIT_NO_LOAD_CONFIG, NULL) != 1)
        return ERR_CRYPTO;
    /* Providers and the random generator are set up at first use: now. */
    digest_sha256((struct view){NULL, 0}, out);
    return RAND_bytes(out, sizeof out) == 1 ? 0 : ERR_CRYPTO;
}

void digest_sha256(struct view v, uint8_t out[DIGEST_SIZE]) {
    unsigned n = 0;
    if (!context)
        open_context();
    require(EVP_DigestInit_ex2(context, sha256, NULL) == 1 &&
            EVP_DigestUpdate(context, v.p, v.n) == 1 && EVP_DigestFinal_ex(context, out, &n) == 1 &&
            n == DIGEST_SIZE);
}

void digest_hmac(struct view key, struct view v, uint8_t out[DIGEST_SIZE]) {
    unsigned n = 0;
    require(HMAC(EVP_sha256(), key.p, (int)key.n, v.n ? v.p : (const uint8_t *)"", v.n, out, &n) !=
                NULL &&
            n == DIGEST_SIZE);
}

void random_bytes(void *p, size_t n) {
    uint8_t *at = p;
    while (n > 0) {
        ssize_t got = getrandom(at, n, 0);
        if (got <= 0)
            abort();
        at += got;
        n -= (size_t)got;
    }
}
