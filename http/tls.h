/*
 * TLS streams over non-blocking sockets, server side towards sandboxes and
 * client side towards upstreams. The only file that knows OpenSSL's SSL; it
 * does its own reads and writes with read(2) and write(2) on the descriptor
 * through a BIO method of ours, so that the bytes already read (the
 * ClientHello) can be put in front, one read fetches as much as the kernel has, and the caller knows
 * what to wait for. No event loop in here.
 */
#ifndef HTTP_TLS_H
#define HTTP_TLS_H

#include "base/bytes.h"

struct tls_server;  /* settings and key of a lane's proxy */
struct tls_client;  /* settings and trust anchors of a lane's egress */
struct tls_session; /* a resumable client session */
struct tls;         /* one connection */

enum tls_result {
    TLS_DONE, /* did something: bytes, or the handshake is complete */
    TLS_WANT_READ,
    TLS_WANT_WRITE,
    TLS_EOF,    /* close_notify was received */
    TLS_CUT,    /* the connection ended without it */
    TLS_FAILED, /* tls_error says why */
};

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
/* A leaf for our key with the certificates above it, all DER. Owned by the caller; NULL if unusable. */
struct tls_leaf;
struct tls_leaf *tls_leaf_new(struct view leaf, struct view chain);
void tls_leaf_free(struct tls_leaf *l); /* connections that use it keep a reference */

/*
 * A connection on fd, which stays the caller's. first: bytes already read from
 * it. name: the canonical name, to which tickets are bound. NULL when out of memory.
 */
struct tls *tls_accept(struct tls_server *s, int fd, const struct tls_leaf *leaf, const char *name,
                       struct view first);

/* ---- client ---- */

/*
 * anchors: concatenated PEM certificates. TLS 1.2 and later, security level 2,
 * server authentication, never the CN, no partial wildcards, at most
 * max_chain certificates, ALPN http/1.1. NULL when no certificate could be read.
 */
struct tls_client *tls_client_new(struct view anchors, unsigned max_chain);
void tls_client_free(struct tls_client *c);
/* name: canonical host, is SNI and reference identity; address (4 or 16 bytes) instead when name_is_address. session: may be NULL; offered, not spent. */
struct tls *tls_connect(struct tls_client *c, int fd, const char *name, struct view address,
                        struct tls_session *session);
/*
 * After a finished handshake: the newest session that was received, or NULL. Holds at most an hour and
 * never past the chain's notAfter; tls_session_fresh tells. Owned by the caller.
 */
struct tls_session *tls_take_session(struct tls *t);
bool tls_session_fresh(const struct tls_session *s, uint64_t wall_seconds);
void tls_session_free(struct tls_session *s);

/* ---- both ---- */

/* Goes on with the handshake: TLS_DONE when complete. */
enum tls_result tls_handshake(struct tls *t);
/* Reads up to size bytes; *n says how many on TLS_DONE. Loop until TLS_WANT_READ, or bytes may wait unseen. */
enum tls_result tls_read(struct tls *t, uint8_t *p, size_t size, size_t *n);
/* Writes some of v; *n says how many on TLS_DONE. Call again with the same or more bytes after TLS_WANT_WRITE. */
enum tls_result tls_write(struct tls *t, struct view v, size_t *n);
/* Decrypted bytes wait inside. */
bool tls_pending(const struct tls *t);
/* Sends close_notify as far as the socket takes it. */
void tls_shutdown(struct tls *t);
/* Frees the connection, not its descriptor. NULL is fine. */
void tls_free(struct tls *t);
/* After TLS_FAILED: a short text ("certificate has expired"), never the peer's own bytes. */
const char *tls_error(const struct tls *t);
/* "TLSv1.3"; whether a session was resumed. */
const char *tls_version(const struct tls *t);
bool tls_resumed(const struct tls *t);

#endif
