#include "base/client_key.h"
#include "base/digest.h"
#include "base/openssl_memory.h"
#include "http/anchors.h"
#include "http/staple.h"
#include "http/tls_library.h"
#include "http/tls_stream.h"
#include "http/tls_text.h"

#include <openssl/err.h>
#include <openssl/x509v3.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

enum { SESSION_SECONDS = 3600 };

struct tls_client {
    SSL_CTX *ctx;
    unsigned max_chain;
};

struct tls_session {
    SSL_SESSION *session;
    char name[256];
    bool pinned;
    uint8_t pin[TLS_PIN_SIZE];
    uint64_t fresh_until;
};

/* ---- verification ---- */

static struct tls *tls_of(X509_STORE_CTX *ctx) {
    SSL *ssl = X509_STORE_CTX_get_ex_data(ctx, SSL_get_ex_data_X509_STORE_CTX_idx());
    return SSL_get_app_data(ssl);
}

/* All suites have the server sign (RFC 8446 4.4.2.2); OpenSSL asks for that in TLS 1.2 alone. */
static int check_signs(X509_STORE_CTX *ctx) {
    if (X509_get_key_usage(X509_STORE_CTX_get0_cert(ctx)) & KU_DIGITAL_SIGNATURE)
        return 1;
    X509_STORE_CTX_set_error_depth(ctx, 0);
    X509_STORE_CTX_set_error(ctx, X509_V_ERR_INVALID_PURPOSE);
    return 0;
}

static int verify(X509_STORE_CTX *ctx, void *arg) {
    const struct tls_client *c = arg;
    STACK_OF(X509) *sent = X509_STORE_CTX_get0_untrusted(ctx);
    int good = 0;
    if (sk_X509_num(sent) > (int)c->max_chain)
        X509_STORE_CTX_set_error(ctx, X509_V_ERR_CERT_CHAIN_TOO_LONG);
    else
        good = X509_verify_cert(ctx);
    if (good > 0)
        good = check_signs(ctx);
    if (good <= 0)
        tls_of(ctx)->verify_error =
            tls_text_verify(X509_STORE_CTX_get_error(ctx), X509_STORE_CTX_get_error_depth(ctx));
    return good;
}

static const char *unproved(const struct tls *t);

/* Called again until it does not suspend. Where there is none to show, that one was wanted explains what comes next. */
static int on_certificate_request(SSL *ssl, void *arg) {
    struct tls *t = SSL_get_app_data(ssl);
    (void)arg;
    t->was_asked = true;
    if (!t->offers || t->shows)
        return 1;
    t->verify_error = unproved(t);
    return t->verify_error ? 0 : -1;
}

const char *stream_client_error(const struct tls *t, unsigned long code) {
    if (t->verify_error)
        return t->verify_error;
    if (t->was_asked && ERR_GET_REASON(code) == SSL_R_SSLV3_ALERT_HANDSHAKE_FAILURE)
        code = ERR_PACK(ERR_LIB_SSL, 0, SSL_R_TLSV13_ALERT_CERTIFICATE_REQUIRED);
    return tls_text_library(code);
}

/* A copy: the original is spoiled when its connection ends without close_notify. */
static int keep_session(SSL *ssl, SSL_SESSION *session) {
    struct tls *t = SSL_get_app_data(ssl);
    SSL_SESSION_free(t->session);
    t->session = SSL_SESSION_dup(session);
    return 0;
}

static bool set_verification(struct tls_client *c) {
    X509_VERIFY_PARAM *param = SSL_CTX_get0_param(c->ctx);
    SSL_CTX_set_verify(c->ctx, SSL_VERIFY_PEER, NULL);
    SSL_CTX_set_cert_verify_callback(c->ctx, verify, c);
    SSL_CTX_set_cert_cb(c->ctx, on_certificate_request, NULL);
    X509_VERIFY_PARAM_set_hostflags(param, X509_CHECK_FLAG_NEVER_CHECK_SUBJECT |
                                               X509_CHECK_FLAG_NO_PARTIAL_WILDCARDS);
    SSL_CTX_set_tlsext_status_type(c->ctx, TLSEXT_STATUSTYPE_ocsp);
    X509_VERIFY_PARAM_set_depth(param, (int)c->max_chain);
    X509_VERIFY_PARAM_set_auth_level(param, 2);
    return X509_VERIFY_PARAM_set_flags(param, X509_V_FLAG_TRUSTED_FIRST) &&
           X509_VERIFY_PARAM_set_purpose(param, X509_PURPOSE_SSL_SERVER);
}

static bool set_up(struct tls_client *c, struct view anchors) {
    static const uint8_t protocols[] = "\x08http/1.1";
    if (!c->ctx || anchors_add(SSL_CTX_get_cert_store(c->ctx), anchors) != 0 ||
        !set_verification(c))
        return false;
    SSL_CTX_set_session_cache_mode(c->ctx, SSL_SESS_CACHE_CLIENT | SSL_SESS_CACHE_NO_INTERNAL);
    SSL_CTX_sess_set_new_cb(c->ctx, keep_session);
    return SSL_CTX_set_alpn_protos(c->ctx, protocols, sizeof protocols - 1) == 0 &&
           SSL_CTX_set_cipher_list(
               c->ctx, "ECDHE+AESGCM+AES128:ECDHE+AESGCM:ECDHE+CHACHA20:DHE+AESGCM:ECDHE+AES");
}

/* A suite, a group or an anchor that there was no memory for would be missing as long as the client is there. */
struct tls_client *tls_client_new(struct view anchors, unsigned max_chain) {
    unsigned long refused = openssl_memory_refused();
    struct tls_client *c = calloc(1, sizeof *c);
    if (!c)
        return NULL;
    c->ctx = stream_context(TLS_client_method());
    c->max_chain = max_chain;
    bool ok = set_up(c, anchors) && openssl_memory_refused() == refused;
    stream_forget_errors();
    if (ok)
        return c;
    tls_client_free(c);
    return NULL;
}

void tls_client_free(struct tls_client *c) {
    if (!c)
        return;
    SSL_CTX_free(c->ctx);
    free(c);
}

/* ---- connections ---- */

static bool set_identity(struct tls *t, const char *name, struct view address) {
    X509_VERIFY_PARAM *param = SSL_get0_param(t->ssl);
    if (view_cstr(view_str(name), t->name, sizeof t->name) != 0)
        return false;
    if (address.n > 0)
        return X509_VERIFY_PARAM_set1_ip(param, address.p, address.n);
    /* A name that begins with a dot would mean any sub-domain to OpenSSL. */
    return name[0] && name[0] != '.' && X509_VERIFY_PARAM_set1_host(param, name, 0) &&
           SSL_set_tlsext_host_name(t->ssl, name);
}

static void set_pin(struct tls *t, const uint8_t *pin) {
    t->pinned = pin != NULL;
    if (pin)
        memcpy(t->pin, pin, TLS_PIN_SIZE);
}

/* The chain is not shown again when a session is resumed: it must have been held against the same. */
static bool is_session_for(const struct tls_session *s, const struct tls *t) {
    return strcmp(s->name, t->name) == 0 && s->pinned == t->pinned &&
           memcmp(s->pin, t->pin, TLS_PIN_SIZE) == 0;
}

/* A TLS 1.3 session is spent by its first use, so a copy is. */
static bool offer(struct tls *t, const struct tls_session *s) {
    if (!s || !is_session_for(s, t))
        return true;
    SSL_SESSION *copy = SSL_SESSION_dup(s->session);
    bool ok = copy && SSL_set_session(t->ssl, copy);
    SSL_SESSION_free(copy);
    t->fresh_until = s->fresh_until;
    return ok;
}

struct tls *tls_connect(struct tls_client *c, int fd, const char *name, struct view address,
                        const uint8_t *pin, struct tls_session *session) {
    unsigned long refused = openssl_memory_refused();
    struct tls *t = stream_new(c->ctx, fd, (struct view){NULL, 0});
    if (!t)
        return NULL;
    t->is_client = true;
    set_pin(t, pin);
    SSL_set_connect_state(t->ssl);
    /* Not all of OpenSSL's functions say when they could not copy what verification needs. */
    bool ok =
        set_identity(t, name, address) && offer(t, session) && openssl_memory_refused() == refused;
    stream_forget_errors();
    if (ok)
        return t;
    tls_free(t);
    return NULL;
}

static uint64_t seconds_of(const ASN1_TIME *time) {
    struct tm tm;
    if (ASN1_TIME_to_tm(time, &tm) != 1)
        return 0;
    time_t seconds = timegm(&tm);
    return seconds > 0 ? (uint64_t)seconds : 0;
}

/* An hour from now, but not past any certificate of the chain. */
static uint64_t fresh_until(const SSL *ssl) {
    STACK_OF(X509) *chain = SSL_get0_verified_chain(ssl);
    uint64_t until = (uint64_t)time(NULL) + SESSION_SECONDS;
    for (int i = 0; i < sk_X509_num(chain); i++) {
        uint64_t end = seconds_of(X509_get0_notAfter(sk_X509_value(chain, i)));
        if (end < until)
            until = end;
    }
    return until;
}

static const char *revocation(SSL *ssl) {
    const unsigned char *der;
    long n = SSL_get_tlsext_status_ocsp_resp(ssl, &der);
    STACK_OF(X509) *chain = SSL_get0_verified_chain(ssl);
    X509_STORE *store = SSL_CTX_get_cert_store(SSL_get_SSL_CTX(ssl));
    enum staple staple = staple_check(view_of(der, n > 0 ? (size_t)n : 0), chain, store);
    if (staple == STAPLE_REVOKED)
        return "the upstream's certificate is revoked";
    if (staple != STAPLE_GOOD && staple_is_must(sk_X509_value(chain, 0)))
        return "the upstream's certificate must come with a good OCSP answer, and does not";
    return NULL;
}

static bool has_pin(X509 *certificate, const uint8_t pin[TLS_PIN_SIZE]) {
    uint8_t *der = NULL, digest[DIGEST_SIZE];
    int n = i2d_X509_PUBKEY(X509_get_X509_PUBKEY(certificate), &der);
    if (n <= 0)
        return false;
    digest_sha256(view_of(der, (size_t)n), digest);
    OPENSSL_free(der);
    return memcmp(digest, pin, TLS_PIN_SIZE) == 0;
}

static bool chain_has_pin(const struct tls *t) {
    STACK_OF(X509) *chain = SSL_get0_verified_chain(t->ssl);
    for (int i = 0; i < sk_X509_num(chain); i++)
        if (has_pin(sk_X509_value(chain, i), t->pin))
            return true;
    return false;
}

static const char not_verified[] = "the upstream's certificate was not verified";

static bool is_verified(const struct tls *t) {
    return SSL_get_verify_result(t->ssl) == X509_V_OK;
}

/* What the library does not look for in the chain that it verified. NULL: nothing is missing. */
static const char *unproved(const struct tls *t) {
    if (!is_verified(t))
        return not_verified;
    const char *revoked = revocation(t->ssl);
    if (revoked)
        return revoked;
    if (t->pinned && !chain_has_pin(t))
        return "no key in the upstream's chain is the one that `upstream pin` names";
    return NULL;
}

/* What was shown is of no use any more: above all, the key. */
static const char *end_showing(struct tls *t) {
    int kind;
    bool signed_with = SSL_get_signature_type_nid(t->ssl, &kind) == 1;
    uint64_t end = t->shows ? seconds_of(X509_get0_notAfter(SSL_get_certificate(t->ssl))) : 0;
    if (t->shows && end < t->fresh_until)
        t->fresh_until = end;
    SSL_certs_clear(t->ssl);
    return t->shows && !signed_with
               ? "the upstream takes no signature of a key like that of the client certificate"
               : NULL;
}

/* A full handshake: the certificate was verified in it. */
static enum tls_result check_full(struct tls *t) {
    const char *why = unproved(t);
    if (why)
        return stream_fail(t, why);
    t->fresh_until = fresh_until(t->ssl);
    why = end_showing(t);
    return why ? stream_fail(t, why) : TLS_DONE;
}

enum tls_result stream_check_client(struct tls *t) {
    const unsigned char *protocol;
    unsigned n;
    SSL_get0_alpn_selected(t->ssl, &protocol, &n);
    if (n > 0 && !view_equal(view_of(protocol, n), VIEW("http/1.1")))
        return stream_fail(t, "the upstream chose a protocol that was not offered");
    if (!is_verified(t))
        return stream_fail(t, not_verified);
    return SSL_session_reused(t->ssl) ? TLS_DONE : check_full(t);
}

/* ---- a certificate of ours ---- */

void tls_offer_certificate(struct tls *t) {
    t->offers = true;
}

bool tls_was_asked(const struct tls *t) {
    return t->was_asked;
}

static int add_above(SSL *ssl, const uint8_t *p, const uint8_t *end) {
    while (p < end) {
        X509 *x = tls_library_certificate(&p, end - p);
        if (!x)
            return ERR_BAD;
        if (SSL_add0_chain_cert(ssl, x) != 1) {
            X509_free(x);
            return ERR_MEMORY;
        }
    }
    return 0;
}

int tls_show_certificate(struct tls *t, struct view chain, struct view digits) {
    const uint8_t *p = chain.p, *end = p + chain.n;
    unsigned long refused = openssl_memory_refused();
    X509 *own = tls_library_certificate(&p, (long)chain.n);
    EVP_PKEY *key = own ? client_key_new(tls_library(), X509_get0_pubkey(own), digits) : NULL;
    int result =
        key && SSL_use_certificate(t->ssl, own) == 1 && SSL_use_PrivateKey(t->ssl, key) == 1
            ? add_above(t->ssl, p, end)
            : ERR_BAD;
    EVP_PKEY_free(key);
    X509_free(own);
    if (openssl_memory_refused() != refused)
        result = ERR_MEMORY;
    t->shows = result == 0;
    stream_forget_errors();
    if (!t->shows)
        SSL_certs_clear(t->ssl);
    return result;
}

/* ---- sessions ---- */

struct tls_session *tls_take_session(struct tls *t) {
    struct tls_session *s =
        t->session && SSL_SESSION_is_resumable(t->session) ? calloc(1, sizeof *s) : NULL;
    if (!s)
        return NULL;
    s->session = t->session;
    t->session = NULL;
    s->fresh_until = t->fresh_until;
    memcpy(s->name, t->name, sizeof s->name);
    s->pinned = t->pinned;
    memcpy(s->pin, t->pin, sizeof s->pin);
    return s;
}

bool tls_session_fresh(const struct tls_session *s, uint64_t wall_seconds) {
    return wall_seconds < s->fresh_until;
}

void tls_session_free(struct tls_session *s) {
    if (!s)
        return;
    SSL_SESSION_free(s->session);
    free(s);
}
