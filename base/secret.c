#include "base/secret.h"

#include <assert.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

/*
 * A first-fit heap: blocks stand one after another, each with a header; free
 * neighbours are merged at allocation. Blocks are few; those that live long gather
 * at the front, and are passed by.
 */
struct block {
    size_t size; /* of the payload; a multiple of 16 */
    size_t used; /* 0 or 1; a full word keeps the payload aligned */
};

static struct {
    uint8_t *p;
    size_t size;
    size_t in_use;
    size_t first; /* no block before this one is free */
} arena;

#define ALIGN ((size_t)16)

static struct block *block_at(size_t offset) {
    return (struct block *)(void *)(arena.p + offset);
}

static void *map_memory(size_t size) {
#ifdef SYS_memfd_secret
    int fd = (int)syscall(SYS_memfd_secret, 0);
    if (fd >= 0) {
        void *p = MAP_FAILED;
        if (ftruncate(fd, (off_t)size) == 0)
            p = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
        close(fd);
        if (p != MAP_FAILED)
            return p;
    }
#endif
    void *p = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (p == MAP_FAILED)
        return NULL;
    if (mlock(p, size) != 0) {
        munmap(p, size);
        return NULL;
    }
    return p;
}

int secret_arena_open(size_t size) {
    assert(!arena.p);
    size_t page = (size_t)sysconf(_SC_PAGESIZE);
    size = (size + page - 1) / page * page;
    uint8_t *p = map_memory(size);
    if (!p)
        return ERR_SYSTEM;
    /* Both are hints on top of mlock and memfd_secret, which may refuse them. */
    (void)madvise(p, size, MADV_DONTDUMP);
    (void)madvise(p, size, MADV_DONTFORK);
    arena.p = p;
    arena.size = size;
    *block_at(0) = (struct block){size - sizeof(struct block), 0};
    return 0;
}

static void merge_free_after(size_t at) {
    struct block *b = block_at(at);
    for (;;) {
        size_t next = at + sizeof *b + b->size;
        if (next >= arena.size || block_at(next)->used)
            return;
        b->size += sizeof *b + block_at(next)->size;
    }
}

void *secret_alloc(size_t size) {
    if (!arena.p || size > arena.size)
        return NULL;
    size = (size + ALIGN - 1) / ALIGN * ALIGN;
    while (arena.first < arena.size && block_at(arena.first)->used)
        arena.first += sizeof(struct block) + block_at(arena.first)->size;
    for (size_t at = arena.first; at < arena.size;
         at += sizeof(struct block) + block_at(at)->size) {
        struct block *b = block_at(at);
        if (b->used)
            continue;
        merge_free_after(at);
        if (b->size < size)
            continue;
        if (b->size >= size + sizeof *b + ALIGN) {
            *block_at(at + sizeof *b + size) = (struct block){b->size - size - sizeof *b, 0};
            b->size = size;
        }
        b->used = 1;
        arena.in_use += b->size;
        memset(b + 1, 0, b->size);
        return b + 1;
    }
    return NULL;
}

void secret_free(void *p) {
    if (!p)
        return;
    assert(secret_owns(p));
    struct block *b = (struct block *)p - 1;
    assert(b->used == 1);
    secret_clear(p, b->size);
    b->used = 0;
    size_t at = (size_t)((uint8_t *)b - arena.p);
    if (at < arena.first)
        arena.first = at;
    arena.in_use -= b->size;
}

void *secret_realloc(void *p, size_t size) {
    assert(secret_owns(p));
    size_t had = ((struct block *)p - 1)->size;
    if (size <= had)
        return p;
    void *more = secret_alloc(size);
    if (!more)
        return NULL;
    memcpy(more, p, had);
    secret_free(p);
    return more;
}

void secret_clear(void *p, size_t n) {
    if (n)
        explicit_bzero(p, n);
}

bool secret_owns(const void *p) {
    const uint8_t *at = p;
    return arena.p && at >= arena.p && at < arena.p + arena.size;
}

bool secret_equal(const void *a, const void *b, size_t n) {
    const volatile uint8_t *x = a, *y = b;
    uint8_t difference = 0;
    for (size_t i = 0; i < n; i++)
        difference |= (uint8_t)(x[i] ^ y[i]);
    return difference == 0;
}

size_t secret_in_use(void) {
    return arena.in_use;
}
