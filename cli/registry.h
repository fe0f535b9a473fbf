/*
 * Package registries that this machine's clients are set up for: read from the clients' own files,
 * environment and answers, since no registry is named here. What their protocols need is (registry_policy.c).
 */
#ifndef CLI_REGISTRY_H
#define CLI_REGISTRY_H

#include "base/bytes.h"

enum registry_kind_of {
    REGISTRY_NPM,
    REGISTRY_PYPI,
    REGISTRY_PYPI_FILES,
    REGISTRY_PYPI_UPLOAD,
    REGISTRY_CARGO,
    REGISTRY_CARGO_FILES,
    REGISTRY_CARGO_API,
    REGISTRY_GO,
    REGISTRY_GO_SUMS,
    REGISTRY_MAVEN,
    REGISTRY_APT,
    REGISTRY_GEM,
    REGISTRY_KINDS
};

enum { REGISTRIES_MAX = 256, REGISTRY_URL_MAX = 1024 };

struct registry {
    enum registry_kind_of kind;
    bool extra;                 /* beside the client's default, not instead of it */
    char url[REGISTRY_URL_MAX]; /* without a user, password, query and final '/' */
    char from[256];             /* the file, variable or client that names it */
};

struct registries {
    struct registry at[REGISTRIES_MAX];
    size_t n;
    bool full; /* there were more */
};

/* home: of the user whose files are read; root: before the paths of the system's files ("" or a test's folder). */
void registries_find(const char *home, const char *root, struct registries *out);
/* A policy with a service for each. ERR_LIMIT. */
MUST_USE int registries_write(const struct registries *r, struct buf *out);

#endif
