/*
 * What went wrong in a handshake with an upstream, in words for the operator who reads the record. The texts are
 * static and never hold the peer's bytes. Only tls.c and tls_client.c include it.
 */
#ifndef HTTP_TLS_TEXT_H
#define HTTP_TLS_TEXT_H

/* code: an X509_V_ERR; depth: of the certificate that has it, 0 being the upstream's own. */
const char *tls_text_verify(int code, int depth);
/* code: of ERR_peek_error, may be 0. */
const char *tls_text_library(unsigned long code);

#endif
