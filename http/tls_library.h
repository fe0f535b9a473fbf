/*
 * The library context in which TLS is spoken: OpenSSL's default provider with fewer algorithms. It has the ciphers and kinds of keys that
 * TLS uses, and reads nothing but public keys of the kinds that certificates have (RSA, EC, EdDSA, ML-DSA). OpenSSL before 3.2 looks at every
 * key and decoder of a context each time it reads a certificate, which is most of what reading one costs. Only the
 * files of TLS include this.
 */
#ifndef HTTP_TLS_LIBRARY_H
#define HTTP_TLS_LIBRARY_H

#include <openssl/x509.h>

/* Made by the first call, and kept as long as the process. NULL on failure. */
OSSL_LIB_CTX *tls_library(void);

/*
 * The certificate (DER) at *p, of which at most n bytes are looked at; *p is moved behind it. A key of another kind than those above
 * is none: what needs it fails. Owned by the caller; NULL, with OpenSSL's errors, when it is none, or there was no memory for all of it.
 */
X509 *tls_library_certificate(const unsigned char **p, long n);

#endif
