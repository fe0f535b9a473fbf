#include "broker/certificate.h"

#include "base/base64.h"
#include "base/client_key.h"
#include "broker/broker_messages.h"

#include <limits.h>
#include <openssl/err.h>
#include <openssl/pem.h>
#include <openssl/x509v3.h>
#include <string.h>
#include <time.h>

enum { CERTIFICATES_MAX = 8 };

/* ---- the chain ---- */

static const char *put_der(X509 *x, struct buf *out) {
    int n = i2d_X509(x, NULL);
    uint8_t *p = n > 0 ? buf_reserve(out, (size_t)n) : NULL;
    if (!p)
        return "its certificates are larger than 8192 bytes together";
    i2d_X509(x, &p);
    buf_commit(out, (size_t)n);
    return NULL;
}

/* Those above the leaf, each of which must have issued the one before it. */
static const char *put_above(BIO *in, X509 *leaf, struct buf *out) {
    const char *why = NULL;
    X509 *below = leaf, *x = NULL;
    for (int i = 1; !why && (x = PEM_read_bio_X509(in, NULL, NULL, NULL)) != NULL; i++) {
        if (i == CERTIFICATES_MAX)
            why = "it holds more than 8 certificates";
        else if (X509_check_issued(x, below) != X509_V_OK)
            why = "its certificates are not in order: the client's own comes first, then the one "
                  "that issued it";
        else
            why = put_der(x, out);
        if (below != leaf)
            X509_free(below);
        below = x;
    }
    if (below != leaf)
        X509_free(below);
    if (!why && ERR_GET_REASON(ERR_peek_last_error()) != PEM_R_NO_START_LINE)
        why = "it holds a certificate that cannot be read";
    return why;
}

static uint64_t end_of(const X509 *x) {
    struct tm tm;
    time_t end = ASN1_TIME_to_tm(X509_get0_notAfter(x), &tm) == 1 ? timegm(&tm) : 0;
    return end > 0 ? (uint64_t)end : 0;
}

static void put_subject(X509 *x, char out[SUBJECT_SIZE]) {
    BIO *text = BIO_new(BIO_s_mem());
    if (text && X509_NAME_print_ex(text, X509_get_subject_name(x), 0, XN_FLAG_RFC2253) >= 0) {
        int n = BIO_read(text, out, SUBJECT_SIZE - 1);
        out[n > 0 ? n : 0] = 0;
    }
    BIO_free(text);
}

static const char *check_leaf(X509 *x, uint64_t now, struct vault_certificate *told) {
    EVP_PKEY *key = X509_get0_pubkey(x);
    told->not_after = end_of(x);
    put_subject(x, told->subject);
    if (X509_digest(x, EVP_sha256(), told->fingerprint, NULL) != 1)
        return "it cannot be read";
    if (key && EVP_PKEY_is_a(key, "RSA"))
        return "its key is RSA, which would leave the locked memory: have one of P-256, P-384 or "
               "Ed25519 issued";
    if (!key || client_key_size(key) == 0)
        return "its key is not of P-256, P-384 or Ed25519";
    if (X509_check_purpose(x, X509_PURPOSE_SSL_CLIENT, 0) != 1)
        return "it is not for clients (extended key usage)";
    return told->not_after <= now ? "it has expired" : NULL;
}

const char *certificate_read(struct view pem, uint64_t now, struct certificate *out) {
    *out = (struct certificate){.told = {.not_after = 0}};
    buf_init(&out->chain, CERTIFICATE_CHAIN_MAX);
    BIO *in = pem.n <= INT_MAX ? BIO_new_mem_buf(pem.p, (int)pem.n) : NULL;
    X509 *leaf = in ? PEM_read_bio_X509(in, NULL, NULL, NULL) : NULL;
    const char *why = leaf ? check_leaf(leaf, now, &out->told) : "it holds no certificate (PEM)";
    if (!why)
        why = put_der(leaf, &out->chain);
    if (!why)
        why = put_above(in, leaf, &out->chain);
    X509_free(leaf);
    BIO_free(in);
    ERR_clear_error();
    return why;
}

void certificate_free(struct certificate *c) {
    buf_free(&c->chain);
}

/* ---- the private key: nothing of it is OpenSSL's to read ---- */

enum { DER_INTEGER = 0x02, DER_OCTETS = 0x04, DER_SEQUENCE = 0x30 };

/* The content of the next element, which must have this tag. */
static bool take(struct view *in, uint8_t tag, struct view *content) {
    size_t n, at = 2;
    if (in->n < 2 || in->p[0] != tag)
        return false;
    n = in->p[1];
    if (n >= 0x80) {
        size_t more = n - 0x80;
        if (more == 0 || more > 2 || in->n < 2 + more)
            return false;
        for (n = 0; at < 2 + more; at++)
            n = n << 8 | in->p[at];
    }
    if (in->n - at < n)
        return false;
    *content = view_slice(*in, at, at + n);
    *in = view_skip(*in, at + n);
    return true;
}

/* The number: of PKCS #8 in an OCTET STRING, in which there is for Ed25519 another one, for EC what follows; of RFC 5915 at once. */
static bool find_number(struct view der, struct view *number) {
    struct view outer, version, inner, rest;
    if (!take(&der, DER_SEQUENCE, &outer) || !take(&outer, DER_INTEGER, &version))
        return false;
    if (take(&outer, DER_OCTETS, number))
        return true;
    if (!take(&outer, DER_SEQUENCE, &rest) || !take(&outer, DER_OCTETS, &inner))
        return false;
    if (take(&inner, DER_OCTETS, number))
        return true;
    return take(&inner, DER_SEQUENCE, &outer) && take(&outer, DER_INTEGER, &version) &&
           take(&outer, DER_OCTETS, number);
}

/* What is between the lines of a PEM block, without line ends. */
static bool take_block(struct view pem, struct view name, struct buf *base64) {
    struct view begin = VIEW("-----BEGIN "), dashes = VIEW("-----");
    while (pem.n > 0) {
        struct view line = view_cut(&pem, '\n');
        if (!view_starts(line, begin) || !view_starts(view_skip(line, begin.n), name) ||
            !view_starts(view_skip(line, begin.n + name.n), dashes))
            continue;
        while (pem.n > 0) {
            line = view_cut(&pem, '\n');
            if (view_starts(line, VIEW("-----END ")))
                return buf_ok(base64);
            if (line.n > 0 && line.p[line.n - 1] == '\r')
                line = view_head(line, line.n - 1);
            buf_put(base64, line);
        }
    }
    return false;
}

static const char *put_digits(EVP_PKEY *public_key, struct view number, struct buf *digits) {
    static const char other[] = "the key is not that of the certificate";
    size_t n = client_key_size(public_key);
    if (number.n > n)
        return other;
    uint8_t *p = buf_reserve(digits, 2 * n + 1);
    if (!p)
        return "the arena is full";
    size_t zeros = 2 * (n - number.n);
    memset(p, '0', zeros);
    hex_encode(number, (char *)p + zeros);
    buf_commit(digits, 2 * n);
    EVP_PKEY *key = client_key_new(NULL, public_key, buf_view(digits));
    bool ok = key != NULL;
    EVP_PKEY_free(key);
    ERR_clear_error();
    return ok ? NULL : other;
}

static const char *find_key(struct view pem, struct buf *base64, struct buf *der,
                            struct view *number) {
    if (take_block(pem, VIEW("ENCRYPTED PRIVATE KEY"), base64))
        return "the key is encrypted: `openssl pkey -in FILE` decrypts it";
    buf_reset(base64);
    if (!take_block(pem, VIEW("PRIVATE KEY"), base64)) {
        buf_reset(base64);
        if (!take_block(pem, VIEW("EC PRIVATE KEY"), base64))
            return "what was given is no private key of P-256, P-384 or Ed25519 (PEM)";
    }
    if (base64_decode(buf_view(base64), der) != 0 || !find_number(buf_view(der), number))
        return "the private key cannot be read: it must be one of P-256, P-384 or Ed25519, not "
               "encrypted";
    return NULL;
}

const char *certificate_key(const struct certificate *c, struct view pem, struct buf *digits) {
    const uint8_t *p = buf_view(&c->chain).p;
    X509 *leaf = d2i_X509(NULL, &p, (long)buf_len(&c->chain));
    struct buf base64, der;
    struct view number;
    buf_init_secret(&base64, SECRET_MAX);
    buf_init_secret(&der, SECRET_MAX);
    const char *why =
        leaf ? find_key(pem, &base64, &der, &number) : "the certificate cannot be read";
    if (!why)
        why = put_digits(X509_get0_pubkey(leaf), number, digits);
    buf_free(&base64);
    buf_free(&der);
    X509_free(leaf);
    return why;
}
