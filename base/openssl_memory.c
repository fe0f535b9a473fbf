#include "base/openssl_memory.h"

#include "base/secret.h"

#include <openssl/crypto.h>
#include <stdlib.h>

static bool into_arena; /* what is allocated now */
static unsigned long refused;

static void *counted(void *p) {
    refused += !p;
    return p;
}

static void *take(size_t n, const char *file, int line) {
    (void)file;
    (void)line;
    if (n == 0)
        return NULL;
    return counted(into_arena ? secret_alloc(n) : malloc(n));
}

static void give(void *p, const char *file, int line) {
    (void)file;
    (void)line;
    if (secret_owns(p))
        secret_free(p);
    else
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

unsigned long openssl_memory_refused(void) {
    return refused;
}
