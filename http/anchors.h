/*
 * Trust anchors for a certificate store, read when they are needed: a system
 * has about 150 roots, of which a process meets a handful, and OpenSSL takes
 * some 170 microseconds to read each. Only the subjects are read at once.
 */
#ifndef HTTP_ANCHORS_H
#define HTTP_ANCHORS_H

#include "base/bytes.h"

#include <openssl/x509.h>

/*
 * Makes the certificates of pem (concatenated; other things in it are passed
 * over) known to the store, which from then on owns a copy. ERR_BAD when there is none; ERR_MEMORY.
 */
MUST_USE int anchors_add(X509_STORE *store, struct view pem);

#endif
