#include "proxy/leaf_cache.h"

#include "base/digest.h"

#include <stdlib.h>
#include <string.h>

enum { BUCKETS = 1024, MARGIN = 3600 };

struct entry {
    struct entry *chain;         /* of the bucket */
    struct entry *newer, *older; /* by last use */
    struct tls_leaf *leaf;
    uint64_t not_after;
    size_t bucket, name_size, der_size;
    uint8_t bytes[]; /* name, then DER */
};

struct leaf_cache {
    struct entry *bucket[BUCKETS];
    struct entry *newest, *oldest;
    size_t n, most;
    uint64_t seed; /* names are the sandbox's choice: it must not choose the buckets as well */
};

static size_t bucket_of(const struct leaf_cache *c, struct view name) {
    uint64_t h = c->seed ^ UINT64_C(0xcbf29ce484222325);
    for (size_t i = 0; i < name.n; i++)
        h = (h ^ name.p[i]) * UINT64_C(0x100000001b3);
    return (size_t)((h ^ h >> 32) % BUCKETS);
}

static struct view name_of(const struct entry *e) {
    return view_of(e->bytes, e->name_size);
}

static struct view der_of(const struct entry *e) {
    return view_of(e->bytes + e->name_size, e->der_size);
}

static void list_remove(struct leaf_cache *c, struct entry *e) {
    *(e->newer ? &e->newer->older : &c->newest) = e->older;
    *(e->older ? &e->older->newer : &c->oldest) = e->newer;
}

static void list_add(struct leaf_cache *c, struct entry *e) {
    e->newer = NULL;
    e->older = c->newest;
    *(c->newest ? &c->newest->newer : &c->oldest) = e;
    c->newest = e;
}

static void drop(struct leaf_cache *c, struct entry *e) {
    struct entry **at = &c->bucket[e->bucket];
    while (*at != e)
        at = &(*at)->chain;
    *at = e->chain;
    list_remove(c, e);
    c->n--;
    tls_leaf_free(e->leaf);
    free(e);
}

static struct entry *find(const struct leaf_cache *c, struct view name) {
    struct entry *e = c->bucket[bucket_of(c, name)];
    while (e && !view_equal(name_of(e), name))
        e = e->chain;
    return e;
}

struct leaf_cache *leaf_cache_new(size_t most) {
    struct leaf_cache *c = calloc(1, sizeof *c);
    if (!c)
        return NULL;
    c->most = most;
    random_bytes(&c->seed, sizeof c->seed);
    return c;
}

void leaf_cache_free(struct leaf_cache *c) {
    if (!c)
        return;
    leaf_cache_limit(c, 0);
    free(c);
}

void leaf_cache_limit(struct leaf_cache *c, size_t most) {
    c->most = most;
    while (c->n > c->most)
        drop(c, c->oldest);
}

const struct tls_leaf *leaf_cache_get(struct leaf_cache *c, struct view name, struct view der,
                                      uint64_t not_after, uint64_t now) {
    struct entry *e = find(c, name);
    if (!e)
        return NULL;
    if (e->not_after < MARGIN || now >= e->not_after - MARGIN) {
        drop(c, e);
        return NULL;
    }
    if (e->not_after != not_after || (der.n > 0 && !view_equal(der_of(e), der)))
        return NULL;
    list_remove(c, e);
    list_add(c, e);
    return e->leaf;
}

void leaf_cache_put(struct leaf_cache *c, struct view name, struct view der, uint64_t not_after,
                    struct tls_leaf *leaf) {
    struct entry *old = find(c, name);
    if (old)
        drop(c, old);
    struct entry *e = c->most > 0 ? malloc(sizeof *e + name.n + der.n) : NULL;
    if (!e) {
        tls_leaf_free(leaf);
        return;
    }
    if (c->n >= c->most)
        drop(c, c->oldest);
    *e = (struct entry){.leaf = leaf,
                        .not_after = not_after,
                        .bucket = bucket_of(c, name),
                        .name_size = name.n,
                        .der_size = der.n};
    view_copy(name, e->bytes);
    view_copy(der, e->bytes + name.n);
    e->chain = c->bucket[e->bucket];
    c->bucket[e->bucket] = e;
    list_add(c, e);
    c->n++;
}

size_t leaf_cache_count(const struct leaf_cache *c) {
    return c->n;
}
