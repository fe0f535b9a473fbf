#include "base/openssl_memory.h"

#include "base/secret.h"

#include <malloc.h>
#include <openssl/crypto.h>
#include <stdlib.h>

static bool into_arena; /* what is allocated now */
static unsigned long refused;
static struct openssl_traces *watched;

/*
 * Buffers of records: each connection has one of a kind for the time of one read or write, and malloc takes its long way
 * with memory of that size. The last that were given back are taken again.
 */
enum { RECORD_LEAST = 16 * 1024, RECORD_MOST = 20 * 1024, KEPT_MAX = 2 };

static void *kept[KEPT_MAX];
static size_t n_kept;

static bool keep(void *p) {
    if (n_kept == KEPT_MAX)
        return false;
    size_t n = malloc_usable_size(p);
    if (n < RECORD_LEAST || n > RECORD_MOST)
        return false;
    kept[n_kept++] = p;
    return true;
}

static void *take_kept(size_t n) {
    if (n < RECORD_LEAST || n_kept == 0 || malloc_usable_size(kept[n_kept - 1]) < n)
        return NULL;
    return kept[--n_kept];
}

static void *allocate(size_t n) {
    void *p = take_kept(n);
    return p ? p : malloc(n);
}

static void *counted(void *p) {
    refused += !p;
    return p;
}

static void *take(size_t n, const char *file, int line) {
    (void)file;
    (void)line;
    if (n == 0)
        return NULL;
    return counted(into_arena ? secret_alloc(n) : allocate(n));
}

/* The block at p is given back. */
static void clear_traces(uint8_t *p) {
    size_t before = (size_t)((uintptr_t)watched->from - (uintptr_t)p);
    if ((uintptr_t)watched->from < (uintptr_t)p || before >= RECORD_MOST ||
        before >= malloc_usable_size(p))
        return;
    secret_clear(watched->from, (size_t)(watched->to - watched->from));
    *watched = (struct openssl_traces){NULL, NULL};
}

static void give(void *p, const char *file, int line) {
    (void)file;
    (void)line;
    if (p && watched && watched->from && !secret_owns(p))
        clear_traces(p);
    if (secret_owns(p))
        secret_free(p);
    else if (!keep(p))
        free(p);
}

static void *change(void *p, size_t n, const char *file, int line) {
    if (!p)
        return take(n, file, line);
    if (n == 0) {
        give(p, file, line);
        return NULL;
    }
    return counted(secret_owns(p) ? secret_realloc(p, n) : realloc(p, n));
}

int openssl_memory_start(void) {
    static bool started;
    started = started || CRYPTO_set_mem_functions(take, change, give) == 1;
    return started ? 0 : ERR_CRYPTO;
}

void openssl_memory_into_arena(bool yes) {
    into_arena = yes;
}

void openssl_memory_watch(struct openssl_traces *traces) {
    watched = traces;
}

unsigned long openssl_memory_refused(void) {
    return refused;
}
