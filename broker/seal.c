#include "broker/seal.h"

#include "base/secret.h"

#include <limits.h>
#include <openssl/crypto.h>
#include <openssl/evp.h>
#include <string.h>

enum { AAD_MAX = 512 };

/* Parts of the additional data: a wrapped key must not open as a secret, nor the other way. */
enum purpose { PURPOSE_KEY = 1, PURPOSE_SECRET = 2 };

/* ---- the cipher ---- */

struct gcm {
    const uint8_t *key, *nonce;
    struct view aad;
    uint8_t *tag; /* written when sealing, checked when opening */
};

static bool gcm_steps(EVP_CIPHER_CTX *c, const struct gcm *g, bool seal, struct view in,
                      uint8_t *out) {
    int n = 0, last = 0;
    if (EVP_CipherInit_ex(c, EVP_aes_256_gcm(), NULL, g->key, g->nonce, seal) != 1 ||
        EVP_CipherUpdate(c, NULL, &n, g->aad.p, (int)g->aad.n) != 1 ||
        EVP_CipherUpdate(c, out, &n, in.p, (int)in.n) != 1)
        return false;
    if (!seal && EVP_CIPHER_CTX_ctrl(c, EVP_CTRL_GCM_SET_TAG, SEAL_TAG_SIZE, g->tag) != 1)
        return false;
    if (EVP_CipherFinal_ex(c, out + n, &last) != 1 || (size_t)n + (size_t)last != in.n)
        return false;
    return !seal || EVP_CIPHER_CTX_ctrl(c, EVP_CTRL_GCM_GET_TAG, SEAL_TAG_SIZE, g->tag) == 1;
}

static int gcm_run(const struct gcm *g, bool seal, struct view in, uint8_t *out) {
    if (in.n == 0 || in.n > INT_MAX || g->aad.n > INT_MAX)
        return ERR_CRYPTO;
    EVP_CIPHER_CTX *c = EVP_CIPHER_CTX_new();
    if (!c)
        return ERR_MEMORY;
    bool ok = gcm_steps(c, g, seal, in, out);
    EVP_CIPHER_CTX_free(c);
    if (!ok && !seal)
        secret_clear(out, in.n); /* what was decrypted before the tag was found wrong */
    return ok ? 0 : ERR_CRYPTO;
}

/* ---- boxes ---- */

static void label_write(const struct seal_label *l, enum purpose purpose, struct buf *out) {
    buf_put_str(out, "exeat seal");
    buf_put_u32(out, SEAL_SCHEMA);
    buf_put_u8(out, (uint8_t)purpose);
    buf_put_u64(out, l->id);
    buf_put_u32(out, l->version);
    buf_put_block(out, l->name);
}

static int box_seal(const uint8_t *key, const struct seal_label *l, enum purpose purpose,
                    struct view plain, struct buf *out) {
    struct buf aad;
    uint8_t nonce[SEAL_NONCE_SIZE], tag[SEAL_TAG_SIZE];
    int result = ERR_MEMORY;
    buf_init(&aad, AAD_MAX);
    label_write(l, purpose, &aad);
    random_bytes(nonce, sizeof nonce);
    buf_put(out, view_of(nonce, sizeof nonce));
    uint8_t *p = buf_reserve(out, plain.n);
    if (p && buf_ok(&aad)) {
        struct gcm g = {key, nonce, buf_view(&aad), tag};
        result = gcm_run(&g, true, plain, p);
        buf_commit(out, result == 0 ? plain.n : 0);
    }
    buf_put(out, view_of(tag, result == 0 ? sizeof tag : 0));
    buf_free(&aad);
    return result == 0 && !buf_ok(out) ? ERR_MEMORY : result;
}

/* Plain text of box.n - SEAL_OVERHEAD bytes into out. */
static int box_open(const uint8_t *key, const struct seal_label *l, enum purpose purpose,
                    struct view box, uint8_t *out) {
    struct buf aad;
    uint8_t tag[SEAL_TAG_SIZE];
    if (box.n <= SEAL_OVERHEAD)
        return ERR_CRYPTO;
    struct view cipher = view_slice(box, SEAL_NONCE_SIZE, box.n - SEAL_TAG_SIZE);
    memcpy(tag, cipher.p + cipher.n, sizeof tag);
    buf_init(&aad, AAD_MAX);
    label_write(l, purpose, &aad);
    struct gcm g = {key, box.p, buf_view(&aad), tag};
    int result = buf_ok(&aad) ? gcm_run(&g, false, cipher, out) : ERR_MEMORY;
    buf_free(&aad);
    return result;
}

/* ---- envelopes ---- */

int seal_envelope(const struct seal_keys *k, const struct seal_label *l, struct view secret,
                  struct buf *wrapped, struct buf *box) {
    uint8_t *key = secret_alloc(SEAL_KEY_SIZE);
    if (!key)
        return ERR_MEMORY;
    random_bytes(key, SEAL_KEY_SIZE);
    int result = box_seal(k->wrap, l, PURPOSE_KEY, view_of(key, SEAL_KEY_SIZE), wrapped);
    if (result == 0)
        result = box_seal(key, l, PURPOSE_SECRET, secret, box);
    secret_free(key);
    return result;
}

static int unwrap(const struct seal_keys *k, const struct seal_label *l, struct view wrapped,
                  uint8_t *key) {
    if (wrapped.n != SEAL_WRAPPED_SIZE)
        return ERR_CRYPTO;
    return box_open(k->wrap, l, PURPOSE_KEY, wrapped, key);
}

int seal_reveal(const struct seal_keys *k, const struct seal_label *l, struct view wrapped,
                struct view box, struct buf *secret) {
    uint8_t *key = secret_alloc(SEAL_KEY_SIZE);
    if (!key)
        return ERR_MEMORY;
    int result = unwrap(k, l, wrapped, key);
    if (result == 0 && box.n <= SEAL_OVERHEAD)
        result = ERR_CRYPTO;
    uint8_t *p = result == 0 ? buf_reserve(secret, box.n - SEAL_OVERHEAD) : NULL;
    if (result == 0)
        result = p ? box_open(key, l, PURPOSE_SECRET, box, p) : ERR_MEMORY;
    if (result == 0)
        buf_commit(secret, box.n - SEAL_OVERHEAD);
    secret_free(key);
    return result;
}

int seal_rewrap(const struct seal_keys *from, const struct seal_keys *to,
                const struct seal_label *l, struct view wrapped, struct buf *out) {
    uint8_t *key = secret_alloc(SEAL_KEY_SIZE);
    if (!key)
        return ERR_MEMORY;
    int result = unwrap(from, l, wrapped, key);
    if (result == 0)
        result = box_seal(to->wrap, l, PURPOSE_KEY, view_of(key, SEAL_KEY_SIZE), out);
    secret_free(key);
    return result;
}

/* ---- keys ---- */

int seal_parse_key(struct view text, uint8_t kek[SEAL_KEY_SIZE]) {
    if (text.n == 2 * SEAL_KEY_SIZE + 1 && text.p[text.n - 1] == '\n')
        text = view_head(text, text.n - 1);
    int result = hex_decode(text, kek, SEAL_KEY_SIZE);
    if (result != 0)
        secret_clear(kek, SEAL_KEY_SIZE);
    return result;
}

struct seal_keys *seal_keys_new(const uint8_t kek[SEAL_KEY_SIZE]) {
    struct seal_keys *k = secret_alloc(sizeof *k);
    if (!k)
        return NULL;
    struct view key = view_of(kek, SEAL_KEY_SIZE);
    digest_hmac(key, VIEW("exeat vault 1: wrap data keys"), k->wrap);
    digest_hmac(key, VIEW("exeat vault 1: digest of the content"), k->digest);
    digest_hmac(key, VIEW("exeat vault 1: head file"), k->head);
    return k;
}

void seal_keys_free(struct seal_keys *k) {
    secret_free(k);
}

/* ---- the library ---- */

/* GCM specification (McGrew and Viega), test case 14: key, nonce and text of zeros. */
static const uint8_t known_cipher[16] = {0xce, 0xa7, 0x40, 0x3d, 0x4d, 0x60, 0x6b, 0x6e,
                                         0x07, 0x4e, 0xc5, 0xd3, 0xba, 0xf3, 0x9d, 0x18};
static const uint8_t known_tag[16] = {0xd0, 0xd1, 0xc8, 0xa7, 0x99, 0x99, 0x6b, 0xf0,
                                      0x26, 0x5b, 0x98, 0xb5, 0xd4, 0x8a, 0xb9, 0x19};

int seal_open_library(void) {
    static const uint8_t zeros[SEAL_KEY_SIZE];
    uint8_t out[16], tag[16], digest[DIGEST_SIZE];
    if (OPENSSL_init_crypto(OPENSSL_INIT_NO_LOAD_CONFIG, NULL) != 1)
        return ERR_CRYPTO;
    struct gcm g = {zeros, zeros, {zeros, 0}, tag};
    if (gcm_run(&g, true, view_of(zeros, sizeof out), out) != 0 ||
        memcmp(out, known_cipher, sizeof out) != 0 || memcmp(tag, known_tag, sizeof tag) != 0)
        return ERR_CRYPTO;
    digest_hmac(VIEW("key"), VIEW("text"), digest);
    digest_sha256(VIEW("text"), digest);
    return 0;
}
