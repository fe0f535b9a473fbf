/*
 * Field names that the program has a rule for. One table, so that the parser
 * of a head and the reader of a record cannot disagree about what may stand in
 * a record's fields.
 */
#ifndef HTTP_KNOWN_H
#define HTTP_KNOWN_H

#include "base/bytes.h"

enum known {
    KNOWN_NOT,
    /* Facts of their own, never among a record's fields. */
    KNOWN_HOST,
    KNOWN_CONTENT_LENGTH,
    KNOWN_TRANSFER_ENCODING,
    KNOWN_CONNECTION,
    KNOWN_EXPECT,
    KNOWN_UPGRADE,
    KNOWN_HOP, /* the other hop-by-hop fields, and Proxy (CVE-2016-5385) */
    KNOWN_TWIN, /* Content_Length, Content.Length and the like, which CGI-style upstreams read as the real one */
    /* For the proxy process alone: it takes it out of the head before it makes a record. */
    KNOWN_PROXY_AUTHORIZATION,
    /* Only in answers that the program makes itself. */
    KNOWN_PROXY_AUTHENTICATE,
    /* What policy depends on: at most once in a request. */
    KNOWN_AUTHORIZATION,
    KNOWN_COOKIE,
    KNOWN_CONTENT_TYPE,
    KNOWN_CONTENT_ENCODING,
    KNOWN_API_KEY,
    KNOWN_X_API_KEY,
    KNOWN_X_GOOG_API_KEY,
    KNOWN_X_AUTH_TOKEN,
    KNOWN_PRIVATE_TOKEN,
    KNOWN_RANGE,
};

/* name: lower-case. */
enum known known_field(struct view name);
/* Never among a record's fields, neither of a request nor of an answer. */
bool known_is_taken(enum known k);
/* At most once in a request, and never to be named by its Connection field. */
bool known_is_single(enum known k);

#endif
