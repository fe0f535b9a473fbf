/*
 * The files that sandboxes are given, in the state's directory `public`, which is mounted where they
 * can read it, at the same path:
 *
 *   ca.pem      our certificates, for clients whose setting adds to the system's roots
 *   bundle.pem  the system's roots and ours, for clients whose setting replaces them
 *   roots.p12   the same for Java: PKCS #12 without a password
 *   wgetrc, apt.conf, gitconfig, php.ini, proxy.php
 *               for clients that read no variable but that of a settings file (environment.c)
 *
 * Nothing in them is secret. Every file is replaced as a whole.
 */
#ifndef CLI_PUBLIC_H
#define CLI_PUBLIC_H

#include "base/bytes.h"

enum { PUBLIC_BUNDLE_MAX = 4 << 20 };

/* The system's roots, read for both bundle and Java: the slow part of the work, for which ours need not be known. */
struct public_roots;
/* strict: none at all. ERR_MEMORY, ERR_CRYPTO, ERR_LIMIT, ERR_SYSTEM. */
MUST_USE int public_roots_read(bool strict, struct public_roots **out);
void public_roots_free(struct public_roots *r);

/*
 * Writes all for the certificates in `ours` (PEM), with those of roots, once. dir: the directory, open; path: where
 * sandboxes have it.
 */
MUST_USE int public_write(int dir, const char *path, struct view ours, struct public_roots *roots);
/* Appends the system's roots, if there are any; with our own certificates behind them it is a bundle. */
MUST_USE int public_system_roots(struct buf *out);

#endif
