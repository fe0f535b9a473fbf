#include "base/digest.h"

#include "base/log.h"

#include <openssl/evp.h>
#include <openssl/hmac.h>
#include <stdlib.h>
#include <sys/random.h>

static void require(int ok) {
    if (ok)
        return;
    /* Going on with a wrong digest could turn a mismatch into a match. */
    log_fatal("digest: the cryptographic library failed");
    abort();
}

void digest_sha256(struct view v, uint8_t out[DIGEST_SIZE]) {
    unsigned n = 0;
    require(EVP_Digest(v.n ? v.p : (const uint8_t *)"", v.n, out, &n, EVP_sha256(), NULL) == 1 &&
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
