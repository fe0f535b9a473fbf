#include "http/tls_stream.h"

#include "http/tls_library.h"

#include <errno.h>
#include <openssl/err.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

enum {
    RECORD = 16 * 1024,
    RECORD_FULL = RECORD + 22, /* as TLS 1.3 sends it */
    FETCH_AHEAD = 8, /* records that are fetched of an upstream, however little is asked for */
    FETCH_MOST = 16,
    RECORDS_A_WRITE = 4,
    GATHER_SIZE = RECORDS_A_WRITE * (RECORD + 512),
};

static const char no_memory[] = "out of memory";

/* Where the records of one tls_write lie side by side; there is one thread. */
static uint8_t gathered[GATHER_SIZE];
static size_t n_gathered;

/*
 * What one read(2) brought, until its connection has used it or another one reads. OpenSSL gets of it what it asks for: were it
 * to read ahead by itself, it would move all that lies behind a record to the front of its buffer, after each record.
 */
static struct {
    struct tls *of;
    size_t at, n;
    uint8_t bytes[FETCH_MOST * RECORD_FULL];
} fetched;

static enum tls_result fail_as(struct tls *t, enum tls_result how, const char *error) {
    t->failure = how;
    t->error = error;
    return how;
}

/* ---- the BIO: a descriptor, with bytes in front that were read before ---- */

static bool set_first(struct tls *t, struct view first) {
    if (first.n == 0)
        return true;
    t->first = malloc(first.n);
    if (!t->first)
        return false;
    memcpy(t->first, first.p, first.n);
    t->first_n = first.n;
    return true;
}

static int take_first(struct tls *t, char *p, int size) {
    struct view v =
        view_head(view_of(t->first + t->first_at, t->first_n - t->first_at), (size_t)size);
    view_copy(v, p);
    t->first_at += v.n;
    if (t->first_at == t->first_n) {
        free(t->first);
        t->first = NULL;
        t->first_at = t->first_n = 0;
    }
    return (int)v.n;
}

static struct view fetched_of(const struct tls *t) {
    return fetched.of == t ? view_of(fetched.bytes + fetched.at, fetched.n - fetched.at)
                           : view_of(NULL, 0);
}

static int take_fetched(struct tls *t, char *p, int size) {
    struct view v = view_head(fetched_of(t), (size_t)size);
    view_copy(v, p);
    fetched.at += v.n;
    return (int)v.n;
}

/* Another connection needs the place: what its owner has not used goes to one of the owner's own. */
static void make_place(void) {
    struct tls *owner = fetched.of;
    if (owner && !set_first(owner, fetched_of(owner)))
        (void)fail_as(owner, TLS_NO_MEMORY, no_memory);
    fetched.of = NULL;
}

/*
 * Full records, and no byte of the next one, which would have to wait in memory. Of clients, of which there are many that are
 * not read for long, no more than is asked for.
 */
static ssize_t fetch(struct tls *t) {
    size_t records = (t->asked + RECORD - 1) / RECORD, least = t->is_client ? FETCH_AHEAD : 1;
    ssize_t n;
    records = records < least ? least : records > FETCH_MOST ? FETCH_MOST : records;
    make_place();
    do
        n = read(t->fd, fetched.bytes, records * RECORD_FULL);
    while (n < 0 && errno == EINTR);
    if (n > 0) {
        fetched.of = t;
        fetched.at = 0;
        fetched.n = (size_t)n;
    }
    return n;
}

/* OpenSSL decrypts a record where it read it to, header and all, and has one buffer for it at a time. */
static void leave_traces(struct openssl_traces *traces, uint8_t *p, size_t n) {
    if (!traces->from || p < traces->from || p > traces->to)
        *traces = (struct openssl_traces){p, p};
    if (p + n > traces->to)
        traces->to = p + n;
}

static int after_system_call(BIO *bio, struct tls *t, ssize_t n, int retry) {
    if (n > 0)
        return (int)n;
    if (n < 0 && (errno == EAGAIN || errno == EWOULDBLOCK))
        BIO_set_flags(bio, retry | BIO_FLAGS_SHOULD_RETRY);
    else
        t->ended = true;
    return n == 0 ? 0 : -1;
}

static int bio_read(BIO *bio, char *p, int size) {
    struct tls *t = BIO_get_data(bio);
    BIO_clear_retry_flags(bio);
    if (t->is_client)
        leave_traces(&t->traces, (uint8_t *)p, (size_t)size);
    if (t->first)
        return take_first(t, p, size);
    ssize_t n = fetched_of(t).n > 0 ? 1 : fetch(t);
    return n > 0 ? take_fetched(t, p, size) : after_system_call(bio, t, n, BIO_FLAGS_READ);
}

static int bio_write(BIO *bio, const char *p, int size) {
    struct tls *t = BIO_get_data(bio);
    ssize_t n;
    BIO_clear_retry_flags(bio);
    if (t->gather && (size_t)size <= sizeof gathered - n_gathered) {
        memcpy(gathered + n_gathered, p, (size_t)size);
        n_gathered += (size_t)size;
        return size;
    }
    if (t->gather || t->left) {
        BIO_set_flags(bio, BIO_FLAGS_WRITE | BIO_FLAGS_SHOULD_RETRY);
        return -1;
    }
    do
        n = write(t->fd, p, (size_t)size);
    while (n < 0 && errno == EINTR);
    return after_system_call(bio, t, n, BIO_FLAGS_WRITE);
}

static long bio_ctrl(BIO *bio, int command, long number, void *pointer) {
    struct tls *t = BIO_get_data(bio);
    (void)number;
    (void)pointer;
    if (command == BIO_CTRL_EOF)
        return t->ended;
    return command == BIO_CTRL_FLUSH;
}

static BIO_METHOD *bio_method(void) {
    static BIO_METHOD *method;
    if (method)
        return method;
    BIO_METHOD *m = BIO_meth_new(BIO_get_new_index() | BIO_TYPE_SOURCE_SINK, "stream");
    if (m && BIO_meth_set_read(m, bio_read) && BIO_meth_set_write(m, bio_write) &&
        BIO_meth_set_ctrl(m, bio_ctrl))
        method = m;
    else
        BIO_meth_free(m);
    return method;
}

/* ---- what both sides have ---- */

void stream_forget_errors(void) {
    if (ERR_peek_error())
        ERR_clear_error();
}

static int load(void) {
    const uint64_t options = OPENSSL_INIT_NO_LOAD_CONFIG | OPENSSL_INIT_LOAD_SSL_STRINGS |
                             OPENSSL_INIT_LOAD_CRYPTO_STRINGS;
    return OPENSSL_init_ssl(options, NULL) == 1 && bio_method() && tls_library() ? 0 : ERR_CRYPTO;
}

int tls_start(void) {
    static bool started;
    if (started)
        return 0;
    tzset(); /* gmtime_r would open /etc/localtime when a certificate's time is first compared */
    int result = load();
    stream_forget_errors();
    started = result == 0;
    return result;
}

/* The hybrid group is known from OpenSSL 3.5 on. Finite-field groups cost a server too much. */
static bool set_groups(SSL_CTX *ctx) {
    static const char groups[] = "X25519:P-256:P-384:P-521";
    static const char with_hybrid[] = "X25519MLKEM768:X25519:P-256:P-384:P-521";
    return SSL_CTX_set1_groups_list(ctx, with_hybrid) || SSL_CTX_set1_groups_list(ctx, groups);
}

/*
 * AES-128 first: the strength is enough, a record costs a fifth less, and its handshake hashes by SHA-256,
 * for which processors have instructions, instead of SHA-384.
 */
static bool set_suites(SSL_CTX *ctx) {
    SSL_CTX_set_options(ctx, SSL_OP_CIPHER_SERVER_PREFERENCE | SSL_OP_PRIORITIZE_CHACHA);
    return SSL_CTX_set_ciphersuites(ctx, "TLS_AES_128_GCM_SHA256:TLS_AES_256_GCM_SHA384:"
                                         "TLS_CHACHA20_POLY1305_SHA256");
}

SSL_CTX *stream_context(const SSL_METHOD *method) {
    SSL_CTX *ctx = load() == 0 ? SSL_CTX_new_ex(tls_library(), NULL, method) : NULL;
    if (!ctx)
        return NULL;
    SSL_CTX_set_security_level(ctx, 2);
    SSL_CTX_set_options(ctx, SSL_OP_NO_RENEGOTIATION | SSL_OP_NO_COMPRESSION);
    SSL_CTX_set_mode(ctx, SSL_MODE_RELEASE_BUFFERS | SSL_MODE_ENABLE_PARTIAL_WRITE |
                              SSL_MODE_ACCEPT_MOVING_WRITE_BUFFER);
    bool ok =
        SSL_CTX_set_min_proto_version(ctx, TLS1_2_VERSION) && set_groups(ctx) && set_suites(ctx);
    stream_forget_errors();
    if (ok)
        return ctx;
    SSL_CTX_free(ctx);
    return NULL;
}

struct tls *stream_new(SSL_CTX *ctx, int fd, struct view first) {
    struct tls *t = calloc(1, sizeof *t);
    if (!t)
        return NULL;
    t->fd = fd;
    t->ssl = SSL_new(ctx);
    BIO *bio = BIO_new(bio_method());
    if (!t->ssl || !bio || !set_first(t, first)) {
        BIO_free(bio);
        tls_free(t);
        stream_forget_errors();
        return NULL;
    }
    BIO_set_data(bio, t);
    BIO_set_init(bio, 1);
    SSL_set_bio(t->ssl, bio, bio);
    SSL_set_app_data(t->ssl, t);
    return t;
}

void tls_free(struct tls *t) {
    if (!t)
        return;
    if (fetched.of == t)
        fetched.of = NULL;
    openssl_memory_watch(&t->traces);
    SSL_free(t->ssl);
    openssl_memory_watch(NULL);
    SSL_SESSION_free(t->session);
    free(t->first);
    free(t->left);
    free(t);
}

/* ---- results ---- */

static unsigned long refused_before; /* allocations, when the call into OpenSSL began */

/*
 * SSL_get_error looks at the queue of errors, which must be empty before a call then. Asking for it at each record
 * costs as much as judging a request's policy: whoever made errors takes them away.
 */
static void begin(struct tls *t) {
    openssl_memory_watch(&t->traces);
    refused_before = openssl_memory_refused();
#ifdef EXEAT_SANITIZE
    if (ERR_peek_error())
        abort();
#endif
}

static bool is_short(void) {
    return openssl_memory_refused() != refused_before;
}

enum tls_result stream_fail(struct tls *t, const char *error) {
    return is_short() ? fail_as(t, TLS_NO_MEMORY, no_memory) : fail_as(t, TLS_FAILED, error);
}

/* Texts of OpenSSL's own tables, so never the peer's bytes. */
static enum tls_result read_failure(struct tls *t) {
    unsigned long code = ERR_peek_error();
    /* OpenSSL 3.2 and later also name the system call that failed. */
    bool by_system = code == 0 || ERR_SYSTEM_ERROR(code);
    if (ERR_GET_REASON(code) == SSL_R_UNEXPECTED_EOF_WHILE_READING || (t->ended && by_system))
        return fail_as(t, TLS_CUT, NULL);
    if (t->is_client)
        return stream_fail(t, stream_client_error(t, code));
    const char *text = ERR_reason_error_string(code);
    return stream_fail(t, text ? text : "the TLS library failed");
}

static enum tls_result fail_by_library(struct tls *t) {
    enum tls_result result = read_failure(t);
    stream_forget_errors();
    return result;
}

static enum tls_result result_of(struct tls *t, int returned) {
    switch (SSL_get_error(t->ssl, returned)) {
    case SSL_ERROR_WANT_READ:
        return TLS_WANT_READ;
    case SSL_ERROR_WANT_WRITE:
        return TLS_WANT_WRITE;
    case SSL_ERROR_WANT_X509_LOOKUP:
        return TLS_WANT_CERTIFICATE;
    case SSL_ERROR_ZERO_RETURN:
        return TLS_EOF;
    default:
        return fail_by_library(t);
    }
}

/* ---- the stream ---- */

static enum tls_result go_on(struct tls *t) {
    int returned = SSL_do_handshake(t->ssl);
    if (returned != 1)
        return result_of(t, returned);
    return t->is_client ? stream_check_client(t) : TLS_DONE;
}

enum tls_result tls_handshake(struct tls *t) {
    if (t->failure)
        return t->failure;
    stream_forget_errors();
    begin(t);
    enum tls_result result = go_on(t);
    stream_forget_errors();
    /*
     * Not only when it failed: OpenSSL goes on without what it could not allocate, be it the very name that the
     * certificate must be for (ssl_verify_cert_chain does not ask whether it was copied).
     */
    return is_short() ? fail_as(t, TLS_NO_MEMORY, no_memory) : result;
}

/* Whether there is nothing to read, and OpenSSL could do nothing but find that out, which takes it longer than read(2). */
static bool is_starved(struct tls *t) {
    if (tls_pending(t) || SSL_in_init(t->ssl) || SSL_get_shutdown(t->ssl) != 0 ||
        SSL_want(t->ssl) == SSL_WRITING)
        return false;
    return fetch(t) < 0 && (errno == EAGAIN || errno == EWOULDBLOCK);
}

enum tls_result tls_read(struct tls *t, uint8_t *p, size_t size, size_t *n) {
    *n = 0;
    t->asked = size;
    if (t->failure)
        return t->failure;
    if (is_starved(t))
        return TLS_WANT_READ;
    begin(t);
    int returned = SSL_read_ex(t->ssl, p, size, n);
    t->maybe_more = *n == size;
    if (returned != 1)
        return result_of(t, returned);
    if (is_short()) /* to keep a session that came along */
        stream_forget_errors();
    return TLS_DONE;
}

/* ---- writing: several records with one write(2) ---- */

/* Writes of p as much as fd takes; TLS_WANT_WRITE when that is not all. */
static enum tls_result write_some(struct tls *t, const uint8_t *p, size_t size, size_t *n) {
    ssize_t put;
    do
        put = write(t->fd, p, size);
    while (put < 0 && errno == EINTR);
    *n = put > 0 ? (size_t)put : 0;
    if (*n == size)
        return TLS_DONE;
    if (put >= 0 || errno == EAGAIN || errno == EWOULDBLOCK)
        return TLS_WANT_WRITE;
    t->ended = true;
    return fail_as(t, TLS_CUT, NULL);
}

static enum tls_result write_left(struct tls *t) {
    size_t n;
    if (!t->left)
        return TLS_DONE;
    enum tls_result result = write_some(t, t->left + t->left_at, t->left_n - t->left_at, &n);
    t->left_at += n;
    if (result != TLS_DONE)
        return result;
    free(t->left);
    t->left = NULL;
    return TLS_DONE;
}

static enum tls_result keep_left(struct tls *t, size_t from) {
    t->left_n = n_gathered - from;
    t->left_at = 0;
    t->left = malloc(t->left_n);
    if (!t->left)
        return fail_as(t, TLS_NO_MEMORY, no_memory);
    memcpy(t->left, gathered + from, t->left_n);
    return TLS_WANT_WRITE;
}

/* One record; OpenSSL writes no more a call. */
static enum tls_result write_record(struct tls *t, struct view v, size_t *n) {
    *n = 0;
    begin(t);
    int returned = SSL_write_ex(t->ssl, v.p, v.n, n);
    return returned == 1 ? TLS_DONE : result_of(t, returned);
}

/*
 * A few records together. When fd does not take all, the caller is told of all but the last
 * record: it waits then, and offers those bytes again, which are not written a second time.
 */
static enum tls_result write_several(struct tls *t, struct view v, size_t *n) {
    enum tls_result result = TLS_DONE;
    size_t last = 0, put;
    n_gathered = 0;
    t->gather = true;
    for (int i = 0; i < RECORDS_A_WRITE && *n < v.n && result == TLS_DONE; i++) {
        result = write_record(t, view_skip(v, *n), &put);
        *n += put;
        last = put ? put : last;
    }
    t->gather = false;
    if (n_gathered == 0)
        return result;
    enum tls_result written = write_some(t, gathered, n_gathered, &put);
    if (written == TLS_WANT_WRITE)
        written = keep_left(t, put);
    if (written == TLS_WANT_WRITE) {
        t->owed = last;
        *n -= last;
    }
    return written == TLS_DONE ? result : written;
}

enum tls_result tls_write(struct tls *t, struct view v, size_t *n) {
    *n = 0;
    if (t->failure)
        return t->failure;
    enum tls_result result = write_left(t);
    if (result != TLS_DONE)
        return result;
    *n = t->owed < v.n ? t->owed : v.n;
    t->owed -= *n;
    while (*n < v.n && result == TLS_DONE) {
        size_t put = 0;
        struct view rest = view_skip(v, *n);
        result = rest.n > RECORD ? write_several(t, rest, &put) : write_record(t, rest, &put);
        *n += put;
    }
    if (*n > 0 && result == TLS_WANT_WRITE)
        return TLS_DONE;
    if (result != TLS_DONE)
        *n = 0;
    return result;
}

bool tls_pending(const struct tls *t) {
    if (t->failure)
        return false;
    return t->first || fetched_of(t).n > 0 || (t->maybe_more && SSL_pending(t->ssl) > 0);
}

void tls_shutdown(struct tls *t) {
    if (t->failure || SSL_in_init(t->ssl))
        return;
    if (SSL_shutdown(t->ssl) < 0)
        stream_forget_errors();
}

const char *tls_error(const struct tls *t) {
    return t->error ? t->error : "the connection ended";
}

const char *tls_version(const struct tls *t) {
    return SSL_get_version(t->ssl);
}

bool tls_resumed(const struct tls *t) {
    return SSL_session_reused(t->ssl);
}
