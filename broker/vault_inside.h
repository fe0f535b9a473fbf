/*
 * What vault.c and vault_restore.c share, and nobody else includes.
 */
#ifndef BROKER_VAULT_INSIDE_H
#define BROKER_VAULT_INSIDE_H

#include "broker/vault.h"

#include <limits.h>

struct paths {
    const char *directory;
    char db[PATH_MAX], head[PATH_MAX], journal[PATH_MAX];
    char fresh[PATH_MAX], damaged[PATH_MAX], damaged_journal[PATH_MAX];
};

struct vault {
    char *directory;
    struct paths paths;
    struct store *store;
    struct seal_keys *keys;
    struct inventory inventory;
    uint64_t counter;
};

/* A vault with keys and paths, its store not open. NULL without memory. */
struct vault *vault_new(const char *directory, const uint8_t kek[SEAL_KEY_SIZE]);
/* Writes a sentence into why; returns code. */
int vault_explain(char why[VAULT_WHY_SIZE], int code, const char *format, ...)
    __attribute__((format(printf, 3, 4)));
/*
 * One transaction: the edit (NULL: none), the STATE row under keys with the
 * next counter, the commit. The inventory in memory changes only with what is on the disk.
 */
MUST_USE int vault_change(struct vault *v, const struct seal_keys *keys,
                          int (*edit)(struct vault *v, void *ctx), void *ctx);
/* ERR_SYSTEM */
MUST_USE int vault_write_head(const struct vault *v);
/* Every value can be opened and is one that may be kept. */
MUST_USE int vault_check_values(struct vault *v);

#endif
