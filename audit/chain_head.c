#include "audit/chain_head.h"

#include <openssl/evp.h>
#include <openssl/pem.h>
#include <stdlib.h>
#include <string.h>

enum { KEYS_MAX = 16, TEXT_MAX = 256, PEM_MAX = 64 * 1024 };

struct chain_signer {
    EVP_PKEY *key;
    uint8_t id[HEAD_KEY_SIZE];
};

struct chain_keys {
    size_t n;
    EVP_PKEY *key[KEYS_MAX];
    uint8_t id[KEYS_MAX][HEAD_KEY_SIZE];
};

/* ---- keys ---- */

static int key_id(EVP_PKEY *key, uint8_t out[HEAD_KEY_SIZE]) {
    uint8_t *der = NULL;
    uint8_t hash[DIGEST_SIZE];
    int n = i2d_PUBKEY(key, &der);
    if (n <= 0)
        return ERR_CRYPTO;
    digest_sha256(view_of(der, (size_t)n), hash);
    OPENSSL_free(der);
    memcpy(out, hash, HEAD_KEY_SIZE);
    return 0;
}

static int put_bio(BIO *bio, struct buf *out) {
    char *p = NULL;
    long n = BIO_get_mem_data(bio, &p);
    buf_put(out, view_of(p, n > 0 ? (size_t)n : 0));
    return n > 0 && buf_ok(out) ? 0 : ERR_MEMORY;
}

static int put_public(EVP_PKEY *key, struct buf *out) {
    BIO *bio = BIO_new(BIO_s_mem());
    int result = bio && PEM_write_bio_PUBKEY(bio, key) == 1 ? put_bio(bio, out) : ERR_CRYPTO;
    BIO_free(bio);
    return result;
}

static int put_private(EVP_PKEY *key, struct buf *out) {
    BIO *bio = BIO_new(BIO_s_secmem());
    int result = bio && PEM_write_bio_PKCS8PrivateKey(bio, key, NULL, NULL, 0, NULL, NULL) == 1
                     ? put_bio(bio, out)
                     : ERR_CRYPTO;
    BIO_free(bio);
    return result;
}

int chain_key_make(struct buf *private_pem, struct buf *public_pem) {
    EVP_PKEY *key = EVP_PKEY_Q_keygen(NULL, NULL, "ED25519");
    int result = key ? put_private(key, private_pem) : ERR_CRYPTO;
    if (result == 0)
        result = put_public(key, public_pem);
    EVP_PKEY_free(key);
    return result;
}

static BIO *bio_of(struct view pem) {
    return pem.n > 0 && pem.n <= PEM_MAX ? BIO_new_mem_buf(pem.p, (int)pem.n) : NULL;
}

int chain_signer_new(struct view pem, struct chain_signer **out) {
    BIO *bio = bio_of(pem);
    struct chain_signer *s = calloc(1, sizeof *s);
    int result = bio && s ? 0 : ERR_CRYPTO;
    if (result == 0) {
        s->key = PEM_read_bio_PrivateKey(bio, NULL, NULL, (void *)"");
        if (!s->key || EVP_PKEY_get_id(s->key) != EVP_PKEY_ED25519)
            result = ERR_CRYPTO;
        else
            result = key_id(s->key, s->id);
    }
    BIO_free(bio);
    if (result != 0) {
        chain_signer_free(s);
        return result;
    }
    *out = s;
    return 0;
}

void chain_signer_free(struct chain_signer *s) {
    if (!s)
        return;
    EVP_PKEY_free(s->key);
    free(s);
}

int chain_signer_public(const struct chain_signer *s, struct buf *pem) {
    return put_public(s->key, pem);
}

static int read_keys(BIO *bio, struct chain_keys *k) {
    EVP_PKEY *key;
    while ((key = PEM_read_bio_PUBKEY(bio, NULL, NULL, NULL))) {
        if (k->n == KEYS_MAX) {
            EVP_PKEY_free(key);
            return ERR_LIMIT;
        }
        k->key[k->n] = key;
        if (EVP_PKEY_get_id(key) != EVP_PKEY_ED25519 || key_id(key, k->id[k->n++]) != 0)
            return ERR_CRYPTO;
    }
    return k->n > 0 ? 0 : ERR_CRYPTO;
}

int chain_keys_new(struct view pem, struct chain_keys **out) {
    BIO *bio = bio_of(pem);
    struct chain_keys *k = calloc(1, sizeof *k);
    int result = bio && k ? read_keys(bio, k) : ERR_CRYPTO;
    BIO_free(bio);
    if (result != 0) {
        chain_keys_free(k);
        return result;
    }
    *out = k;
    return 0;
}

void chain_keys_free(struct chain_keys *k) {
    if (!k)
        return;
    for (size_t i = 0; i < k->n; i++)
        EVP_PKEY_free(k->key[i]);
    free(k);
}

/* ---- signing and verifying ---- */

static void put_hex(struct buf *out, const char *before, const uint8_t *p, size_t n) {
    char hex[2 * HEAD_SIGNATURE_SIZE + 1];
    hex_encode(view_of(p, n), hex);
    buf_printf(out, "%s%s", before, hex);
}

static int put_signed_text(const struct chain_head *h, struct buf *out) {
    buf_printf(out, "exeat audit head v1\nseq %llu", (unsigned long long)h->seq);
    put_hex(out, "\nhash ", h->hash, DIGEST_SIZE);
    buf_printf(out, "\ntime %s", h->time);
    put_hex(out, "\nkey ", h->key, HEAD_KEY_SIZE);
    buf_put_u8(out, '\n');
    return buf_ok(out) ? 0 : ERR_MEMORY;
}

static int sign_text(EVP_PKEY *key, struct view text, uint8_t out[HEAD_SIGNATURE_SIZE]) {
    EVP_MD_CTX *ctx = EVP_MD_CTX_new();
    size_t n = HEAD_SIGNATURE_SIZE;
    bool done = ctx && EVP_DigestSignInit(ctx, NULL, NULL, NULL, key) == 1 &&
                EVP_DigestSign(ctx, out, &n, text.p, text.n) == 1 && n == HEAD_SIGNATURE_SIZE;
    EVP_MD_CTX_free(ctx);
    return done ? 0 : ERR_CRYPTO;
}

int chain_head_sign(const struct chain_signer *s, const struct chain *at, uint64_t wall,
                    struct chain_head *out) {
    struct buf text;
    buf_init(&text, TEXT_MAX);
    out->seq = at->seq;
    memcpy(out->hash, at->hash, DIGEST_SIZE);
    memcpy(out->key, s->id, HEAD_KEY_SIZE);
    chain_time(wall, out->time);
    int result = put_signed_text(out, &text);
    if (result == 0)
        result = sign_text(s->key, buf_view(&text), out->signature);
    buf_free(&text);
    return result;
}

static bool signature_is_good(EVP_PKEY *key, struct view text, const struct chain_head *h) {
    EVP_MD_CTX *ctx = EVP_MD_CTX_new();
    bool good = ctx && EVP_DigestVerifyInit(ctx, NULL, NULL, NULL, key) == 1 &&
                EVP_DigestVerify(ctx, h->signature, HEAD_SIGNATURE_SIZE, text.p, text.n) == 1;
    EVP_MD_CTX_free(ctx);
    return good;
}

int chain_head_verify(const struct chain_keys *k, const struct chain_head *h) {
    struct buf text;
    for (size_t i = 0; i < k->n; i++) {
        if (memcmp(k->id[i], h->key, HEAD_KEY_SIZE) != 0)
            continue;
        buf_init(&text, TEXT_MAX);
        int result = put_signed_text(h, &text);
        if (result == 0 && !signature_is_good(k->key[i], buf_view(&text), h))
            result = ERR_CRYPTO;
        buf_free(&text);
        return result;
    }
    return ERR_MISSING;
}

/* ---- forms ---- */

void chain_head_write(const struct chain_head *h, struct buf *out) {
    buf_printf(out, "{\"v\":1,\"seq\":%llu,\"time\":\"%s\",\"hash\":\"", (unsigned long long)h->seq,
               h->time);
    put_hex(out, "", h->hash, DIGEST_SIZE);
    put_hex(out, "\",\"key\":\"", h->key, HEAD_KEY_SIZE);
    put_hex(out, "\",\"signature\":\"", h->signature, HEAD_SIGNATURE_SIZE);
    buf_put_str(out, "\"}\n");
}

void chain_head_members(const struct chain_head *h, struct buf *out) {
    put_hex(out, ",\"kind\":\"head\",\"key\":\"", h->key, HEAD_KEY_SIZE);
    put_hex(out, "\",\"signature\":\"", h->signature, HEAD_SIGNATURE_SIZE);
    buf_put_u8(out, '"');
}

/* Only what chain_time writes: the text is signed and shown. */
static bool take_time(struct view text, char out[CHAIN_TIME_SIZE]) {
    static const char form[] = "dddd-dd-ddTdd:dd:dd.ddddddZ";
    if (text.n != CHAIN_TIME_SIZE - 1)
        return false;
    for (size_t i = 0; i < text.n; i++)
        if (form[i] == 'd' ? !is_digit(text.p[i]) : text.p[i] != (uint8_t)form[i])
            return false;
    memcpy(out, text.p, text.n);
    out[text.n] = 0;
    return true;
}

static bool take_member(const struct line_member *m, struct chain_head *out) {
    if (view_equal(m->name, VIEW("v")))
        return m->number && m->number_is == 1;
    if (view_equal(m->name, VIEW("seq"))) {
        out->seq = m->number_is;
        return m->number;
    }
    if (m->number)
        return false;
    if (view_equal(m->name, VIEW("time")))
        return take_time(m->value, out->time);
    if (view_equal(m->name, VIEW("hash")))
        return hex_decode(m->value, out->hash, DIGEST_SIZE) == 0;
    if (view_equal(m->name, VIEW("key")))
        return hex_decode(m->value, out->key, HEAD_KEY_SIZE) == 0;
    if (view_equal(m->name, VIEW("signature")))
        return hex_decode(m->value, out->signature, HEAD_SIGNATURE_SIZE) == 0;
    return false;
}

int chain_head_read(struct view text, struct chain_head *out) {
    static const char *const names[] = {"v", "seq", "time", "hash", "key", "signature"};
    size_t at = 0;
    if (text.n > 0 && text.p[text.n - 1] == '\n')
        text = view_head(text, text.n - 1);
    struct line l = line_of(text);
    struct line_member m;
    *out = (struct chain_head){0};
    while (line_next(&l, &m)) {
        if (at == sizeof names / sizeof *names || !view_equal(m.name, view_str(names[at])) ||
            !take_member(&m, out))
            return ERR_BAD;
        at++;
    }
    return !l.bad && at == sizeof names / sizeof *names ? 0 : ERR_BAD;
}

int chain_head_of_line(const struct chain_line *line, struct chain_head *out) {
    *out = (struct chain_head){.seq = line->seq - 1};
    memcpy(out->hash, line->prev, DIGEST_SIZE);
    if (!take_time(line->time, out->time) || hex_decode(line->key, out->key, HEAD_KEY_SIZE) != 0 ||
        hex_decode(line->signature, out->signature, HEAD_SIGNATURE_SIZE) != 0)
        return ERR_BAD;
    return 0;
}
