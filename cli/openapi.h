/*
 * OpenAPI descriptions (3.x, and Swagger 2.0) in JSON, as far as a policy can use
 * them: the server, how it takes its key, and the operations. The one file that knows jansson.
 *
 * A description is somebody else's text: nothing of it is believed to be a word of a policy, see openapi_policy.h.
 */
#ifndef CLI_OPENAPI_H
#define CLI_OPENAPI_H

#include "base/bytes.h"

enum { OPENAPI_MAX = 64 << 20 /* bytes */ };

struct openapi_parameter {
    struct view name;
    bool integer;
    bool many; /* `x-multi-segment`: the value may hold slashes */
};

struct openapi_operation {
    struct view method; /* lower case */
    struct view path;   /* with templates, without the server's part */
    struct view id;     /* operationId; empty: none */
    struct view tag;    /* the first; empty: none */
    bool deprecated;
    struct openapi_parameter *parameters; /* in the path */
    size_t n_parameters;
};

enum openapi_key { OPENAPI_NO_KEY, OPENAPI_BEARER, OPENAPI_HEADER, OPENAPI_BASIC };

struct openapi {
    struct view title, version;
    struct view url; /* of the first server; empty: none */
    enum openapi_key key;
    struct view key_header; /* OPENAPI_HEADER */
    struct openapi_operation *operations;
    size_t n_operations;
    void *document;  /* what the views point into */
    struct buf made; /* and this */
};

/* ERR_BAD: *why (a text of at most size bytes) says where; ERR_MEMORY. Free it also then. */
MUST_USE int openapi_read(struct view json, struct openapi *out, char *why, size_t size);
void openapi_free(struct openapi *a);

#endif
