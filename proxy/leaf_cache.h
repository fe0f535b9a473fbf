/*
 * Leaves that egress has sent before, so that they are parsed once.
 *
 *   key:   canonical name
 *   value: the parsed leaf, its DER bytes and its end of validity
 *   kept:  at most `most`; the one unused for longest makes room
 *
 * A leaf is given out until an hour before its end. The cache decides nothing:
 * egress names the leaf for each connection anew.
 */
#ifndef PROXY_LEAF_CACHE_H
#define PROXY_LEAF_CACHE_H

#include "http/tls.h"

struct leaf_cache;

/* NULL when out of memory. */
struct leaf_cache *leaf_cache_new(size_t most);
void leaf_cache_free(struct leaf_cache *c);
/* Another bound from now on; what is too much is dropped. */
void leaf_cache_limit(struct leaf_cache *c, size_t most);
/*
 * The leaf kept for exactly this name and end of validity (seconds), and with these DER bytes
 * unless der is empty; NULL when there is none, or less than an hour is left at `now`. Borrowed
 * until the next put.
 */
const struct tls_leaf *leaf_cache_get(struct leaf_cache *c, struct view name, struct view der,
                                      uint64_t not_after, uint64_t now);
/* Keeps leaf, which is taken over in any case, in place of an older one of that name. */
void leaf_cache_put(struct leaf_cache *c, struct view name, struct view der, uint64_t not_after,
                    struct tls_leaf *leaf);
size_t leaf_cache_count(const struct leaf_cache *c);

#endif
