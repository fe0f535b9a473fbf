/*
 * Hosts and sandboxes of two policies by what both say of them. For diff.c.
 */
#ifndef POLICY_DIFF_PLACES_H
#define POLICY_DIFF_PLACES_H

#include "policy/rules.h"

/* One host of each class: for a star also names that no pattern has. */
struct diff_hosts {
    struct authority *at; /* ports are not set */
    size_t n;
};

/* One sandbox of those with the same rights in both. */
struct diff_sandboxes {
    struct view *at;
    size_t n;
    bool whole; /* false: globs with several stars overlap */
};

MUST_USE int diff_hosts_find(const struct policy *const p[2], struct arena *a,
                             struct diff_hosts *out);
MUST_USE int diff_sandboxes_find(const struct policy *const p[2], struct arena *a,
                                 struct diff_sandboxes *out);

#endif
