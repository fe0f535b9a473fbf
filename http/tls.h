/*
 * TLS streams over non-blocking sockets, server side towards sandboxes and
 * client side towards upstreams. tls*.c are the only
 * files that know OpenSSL's SSL; they do their own reads and writes with read(2) and write(2) on
 * the descriptor through a BIO method of ours, so that the bytes already read (the
 * ClientHello) can be put in front, one read fetches as much as the kernel has, and the caller knows
 * what to wait for. No event loop in here. SIGPIPE must be ignored.
 */
#ifndef HTTP_TLS_H
#define HTTP_TLS_H

#include "base/bytes.h"

struct tls_server;  /* settings and key of a lane's proxy */
struct tls_client;  /* settings and trust anchors of a lane's egress */
struct tls_session; /* a resumable client session */
struct tls;         /* one connection */

enum { TLS_PIN_SIZE = 32 };

enum tls_result {
    TLS_DONE, /* did something: bytes, or the handshake is complete */
    TLS_WANT_READ,
    TLS_WANT_WRITE,
    TLS_WANT_CERTIFICATE, /* tls_handshake only, after tls_offer_certificate */
    TLS_EOF,              /* close_notify was received */
    TLS_CUT,              /* the connection ended without it */
    TLS_FAILED,           /* tls_error says why */
    TLS_NO_MEMORY, /* it is ours that is short, whatever the peer did; told only after openssl_memory_start */
};

/*
 * Loads what OpenSSL and the C library would load when first used, without OpenSSL's configuration
 * file: to be called before any other use of OpenSSL and before the process narrows its rights; no
 * file is opened or asked about afterwards. Once is enough. tls_server_new and tls_client_new load
 * what is OpenSSL's too, and look at no file. ERR_CRYPTO.
 */
MUST_USE int tls_start(void);

/* ---- server ---- */

/*
 * Makes the lane's P-256 key. TLS 1.2 and 1.3, ECDHE and AEAD only, ALPN
 * http/1.1, no renegotiation, no compression, tickets with a key of this
 * process (one ticket a connection), bound to the SNI's name. NULL on failure.
 */
struct tls_server *tls_server_new(void);
void tls_server_free(struct tls_server *s);
/* SubjectPublicKeyInfo, DER. Owned by s. */
struct view tls_server_public_key(const struct tls_server *s);
/*
 * A leaf with the certificates above it (one after another, at most 8), all DER. Owned by the caller;
 * NULL if unusable.
 */
struct tls_leaf;
struct tls_leaf *tls_leaf_new(struct view leaf, struct view chain);
void tls_leaf_free(struct tls_leaf *l); /* connections that use it keep a reference */

/*
 * A connection on fd, which stays the caller's. first: bytes already read from it (copied). name: the
 * canonical name, to which tickets are bound: one issued under another name is not resumed, the
 * handshake is then a full one. A client that offers ALPN without http/1.1 gets the alert
 * no_application_protocol. NULL when out of memory, or when the leaf is not for our key.
 */
struct tls *tls_accept(struct tls_server *s, int fd, const struct tls_leaf *leaf, const char *name,
                       struct view first);

/* ---- client ---- */

/*
 * anchors: concatenated PEM certificates; nothing else is trusted. TLS 1.2 and later, ECDHE or DHE,
 * security level 2, server authentication, never the CN, no partial wildcards, at most
 * max_chain certificates sent by the peer, ALPN http/1.1 or none. A certificate that a stapled
 * OCSP answer says is revoked fails, and so does one that must be stapled and is not; other
 * revocation is not checked, and nothing is fetched. anchors is not needed after the call. NULL when no certificate could be read, or memory ran out.
 */
struct tls_client *tls_client_new(struct view anchors, unsigned max_chain);
void tls_client_free(struct tls_client *c);
/*
 * name: canonical host; it is SNI and reference identity. When address is not empty (4 or 16 bytes) the
 * certificate must be for that address instead, and no SNI is sent. pin: NULL, or the SHA-256 (TLS_PIN_SIZE bytes) of
 * the SubjectPublicKeyInfo that one certificate of the verified chain must have, the upstream's own or one above
 * it (RFC 7469 2.6). session: may be NULL; a copy is offered, so it can be offered again; one of another name
 * or pin is ignored. NULL when out of memory.
 */
struct tls *tls_connect(struct tls_client *c, int fd, const char *name, struct view address,
                        const uint8_t *pin, struct tls_session *session);
/*
 * Before the handshake: there is a certificate for an upstream that asks for one. When it does, and only once all that is
 * asked of its own was verified (chain, name, pin, staple), tls_handshake gives TLS_WANT_CERTIFICATE until
 * tls_show_certificate was called. Without this an upstream that asks is shown none.
 */
void tls_offer_certificate(struct tls *t);
/*
 * chain: DER, one after another, ours first; digits: of its key (base/client_key.h), in the arena, where OpenSSL's copy is as
 * well, until the handshake is over. ERR_BAD: they do not belong together; ERR_MEMORY. A handshake in which the
 * upstream takes no signature of such a key fails.
 */
MUST_USE int tls_show_certificate(struct tls *t, struct view chain, struct view digits);
/* Whether the upstream asked for a certificate in this handshake. */
bool tls_was_asked(const struct tls *t);
/*
 * After a finished handshake: the newest session that was received and not yet taken, or NULL. (In TLS
 * 1.3 it comes with the first reads.) Holds at most an hour from the handshake in which the certificate was
 * verified, however often it was resumed since, and never past the chain's notAfter; tls_session_fresh tells.
 * Owned by the caller.
 */
struct tls_session *tls_take_session(struct tls *t);
bool tls_session_fresh(const struct tls_session *s, uint64_t wall_seconds);
void tls_session_free(struct tls_session *s);

/* ---- both ---- */

/* Goes on with the handshake: TLS_DONE when complete. */
enum tls_result tls_handshake(struct tls *t);
/* Reads up to size bytes; *n says how many on TLS_DONE. Loop until TLS_WANT_READ, or bytes may wait unseen. */
enum tls_result tls_read(struct tls *t, uint8_t *p, size_t size, size_t *n);
/*
 * Writes as much of v as the socket takes; *n says how many bytes on TLS_DONE, 0 otherwise. A record of
 * up to 16 KiB behind them may be on its way already: the bytes that were not taken must come again,
 * the same or more, perhaps from another place in memory, before any others.
 */
enum tls_result tls_write(struct tls *t, struct view v, size_t *n);
/* A tls_read would give something without the socket becoming readable. */
bool tls_pending(const struct tls *t);
/* Sends close_notify as far as the socket takes it. Reading may go on. */
void tls_shutdown(struct tls *t);
/* Frees the connection, not its descriptor. NULL is fine. */
void tls_free(struct tls *t);
/* After TLS_FAILED or TLS_NO_MEMORY: a short text ("certificate has expired"), never the peer's own bytes. */
const char *tls_error(const struct tls *t);
/* "TLSv1.3"; whether a session was resumed. */
const char *tls_version(const struct tls *t);
bool tls_resumed(const struct tls *t);

#endif
