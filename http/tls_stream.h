/*
 * What tls.c, tls_server.c and tls_client.c share: one connection. No other
 * file includes it.
 */
#ifndef HTTP_TLS_STREAM_H
#define HTTP_TLS_STREAM_H

#include "base/openssl_memory.h"
#include "http/tls.h"

#include <openssl/ssl.h>

struct tls {
    SSL *ssl;
    int fd;
    uint8_t
        *first; /* bytes read from fd that come before what it gives next, until they are used up */
    size_t first_at, first_n;
    size_t asked;    /* bytes, by the last tls_read */
    bool maybe_more; /* that one was given all of them: ssl may hold more of the record */
    uint8_t *left;   /* records that fd did not take, until it does */
    size_t left_at, left_n;
    size_t owed; /* bytes of theirs that the caller was told nothing of, and offers again */
    bool gather; /* records go to the gathering place, not to fd */
    bool ended;  /* read(2) told the end, or an error of the connection */
    enum tls_result failure; /* not TLS_DONE: no call into ssl any more, this is told again */
    const char *error;
    /* client side */
    bool is_client;
    struct openssl_traces traces; /* where records were read to: an upstream may echo a secret */
    bool was_asked;               /* for a certificate of ours */
    bool offers, shows;           /* there is one; it was given to ssl */
    const char *verify_error;     /* static; what is wrong with the upstream's certificates */
    char name[256];               /* what sessions are for */
    bool pinned;                  /* likewise */
    uint8_t pin[TLS_PIN_SIZE];
    uint64_t fresh_until; /* wall seconds; of the handshake that verified the certificate */
    SSL_SESSION *session; /* the newest that was received */
};

/* Settings that both sides have. NULL on failure. */
SSL_CTX *stream_context(const SSL_METHOD *method);
/* A connection without handshake; owns nothing of the caller. NULL when out of memory. */
struct tls *stream_new(SSL_CTX *ctx, int fd, struct view first);
/*
 * Takes away what calls into OpenSSL left in its queue of errors. No function of tls.h returns before that: the next call on any
 * connection would be judged by it.
 */
void stream_forget_errors(void);
/* Client side, once the handshake is complete: the last checks. */
enum tls_result stream_check_client(struct tls *t);
/* Client side, of what the library could not do: a static text. code: of ERR_peek_error. */
const char *stream_client_error(const struct tls *t, unsigned long code);
/* error: static; TLS_NO_MEMORY instead when that is why. */
enum tls_result stream_fail(struct tls *t, const char *error);

#endif
