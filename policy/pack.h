/*
 * A policy of several files as one text, for roles that open none: the files in the order in which
 * they were included, which is the order in which they will be again. Internal to policy/.
 *
 * A policy of one file is its own packed text. Others begin with a NUL, which no policy does.
 */
#ifndef POLICY_PACK_H
#define POLICY_PACK_H

#include "policy/policy.h"

/* Hands on what is read by `inner`, and keeps it. */
struct packer {
    const struct policy_files *inner;
    struct buf *out;
    bool any;
};

/* Begins with the text of the first file. p must outlive the files. */
struct policy_files pack_begin(struct packer *p, const struct policy_files *inner, struct view text,
                               struct buf *out);
/* After the load: *out is the packed text. */
void pack_end(const struct packer *p, struct view text);

struct unpacker {
    struct reader rest;
};

bool pack_is(struct view text);
/* The first file's text in *first, empty when it is cut off. p must outlive the files. */
struct policy_files unpack_begin(struct unpacker *p, struct view packed, struct view *first);
/* Whether nothing was missing so far. */
bool unpack_is_whole(const struct unpacker *p);

#endif
