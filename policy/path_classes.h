/*
 * Paths by what patterns say of them: every path there is belongs to one class, and
 * no pattern tells two paths of a class apart (but for a final slash), nor does whether there are
 * parameters or encoded slashes in it. For comparing policies. Internal to policy/. Pure.
 */
#ifndef POLICY_PATH_CLASSES_H
#define POLICY_PATH_CLASSES_H

#include "policy/rules.h"

/* A pattern in one of the readings. */
struct class_rule {
    const struct rule *rule;
    bool widely;
    bool decoded; /* an encoded slash parts segments */
    bool mark;    /* no line: it only parts paths */
    bool newer;   /* which policy it is of; only carried along */
};

struct path_class {
    struct view path;                /* a member, without a final slash */
    const struct class_rule **rules; /* that take it */
    size_t n_rules;
};

enum { PATH_CLASSES_MAX = 50000 };

struct path_classes {
    struct arena arena;
    struct path_class *at;
    size_t n;
    bool whole; /* false: there are more than PATH_CLASSES_MAX, or of ways to part one segment */
};

/* What paths may hold beside plain segments: `path allow`. */
struct path_words {
    bool parameters, encoded_slash;
};

/* The rules must outlive *out, which path_classes_free gives back in any case. ERR_MEMORY. */
MUST_USE int path_classes_find(const struct class_rule *rules, size_t n, struct path_words words,
                               struct path_classes *out);
void path_classes_free(struct path_classes *c);

#endif
