/*
 * The store: rows of (kind, name, body) in one SQLite file, changed in
 * transactions that survive kill -9 and a power cut at any moment. The only
 * file of the program that knows SQLite. What the rows mean, and whether they
 * are to be believed, is the vault's business (broker/vault.h): the store gives
 * out whatever bytes the file holds.
 *
 * SQLite runs in defensive mode: untrusted schema, no triggers, views,
 * extensions, memory mapping or temporary files; the schema must be ours to
 * the letter; the file belongs to one process at a time. The journal is a
 * rollback journal (no second file is needed to read the vault, which makes
 * copies simple) that is truncated and synced at the end of a change: what was
 * reported is still there after a power cut, and no old box stays in it. A
 * SQLite error is one log line and ERR_CRYPTO when the file is damaged,
 * ERR_SYSTEM when the disk is.
 */
#ifndef BROKER_STORE_H
#define BROKER_STORE_H

#include "base/bytes.h"

struct store;

struct row {
    uint8_t kind;
    struct view name, body; /* until the next call on the store */
};

enum { STORE_IMAGE_MAX = 64 << 20, STORE_BODY_MAX = 1 << 20 };

/* Loads what SQLite loads lazily (its randomness). Before the process narrows. ERR_SYSTEM. */
MUST_USE int store_open_library(void);

/*
 * Opens the file (its mode is the umask's business). With may_create a missing or blank file gets the schema
 * (*fresh). ERR_BAD: another schema or version. ERR_EXISTS: another process has it open.
 * ERR_CRYPTO: not a database or damaged. ERR_SYSTEM.
 */
MUST_USE int store_open(const char *path, bool may_create, struct store **out, bool *fresh);
/* A copy in memory of an image made by store_image. ERR_BAD, ERR_CRYPTO, ERR_MEMORY. */
MUST_USE int store_open_image(struct view image, struct store **out);
/* NULL is fine. An open transaction is rolled back. */
void store_close(struct store *s);

MUST_USE int store_begin(struct store *s);
MUST_USE int store_commit(struct store *s);
void store_rollback(struct store *s);

/* Inserts or replaces. */
MUST_USE int store_put(struct store *s, const struct row *r);
/* ERR_MISSING when there is none. */
MUST_USE int store_drop(struct store *s, uint8_t kind, struct view name);
/* Appends the body. ERR_MISSING. */
MUST_USE int store_get(struct store *s, uint8_t kind, struct view name, struct buf *body);
/* Calls each for all rows by kind and name; anything but 0 ends the walk and is returned. */
MUST_USE int store_walk(struct store *s, int (*each)(void *ctx, const struct row *r), void *ctx);

/* Appends the file's content, consistent. ERR_LIMIT, ERR_MEMORY. */
MUST_USE int store_image(struct store *s, struct buf *out);
/* Replaces the whole content of `to` by that of `from`, in one transaction. */
MUST_USE int store_copy(struct store *from, struct store *to);

#endif
