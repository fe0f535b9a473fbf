/*
 * HTTP/1.1 heads and bodies as the benchmark needs them, and the byte pattern that every generated
 * body is checked against.
 */
#ifndef BENCH_BODY_H
#define BENCH_BODY_H

#include "wire.h"

/* Value of the first header called `name`, or NULL; head ends at its blank line. */
const char *head_get(const char *head, size_t len, const char *name, size_t *vlen);

bool head_has(const char *head, size_t len, const char *name, const char *word);

enum body_kind { BODY_NONE, BODY_LENGTH, BODY_CHUNKED, BODY_EOF };
enum { CH_SIZE, CH_EXT, CH_DATA, CH_CRLF, CH_TRAILER };

struct body {
    enum body_kind kind;
    int st;
    bool done;
    unsigned digits, line;
    uint64_t left, got;
};

typedef void (*body_cb)(void *arg, const char *p, size_t n);

void body_init(struct body *b, const char *head, size_t len, bool is_response);

/* Consume wire bytes, handing payload to cb. Bytes used, or -1 on bad framing. */
ssize_t body_feed(struct body *b, const char *p, size_t n, body_cb cb, void *arg);

/* ---- the pattern of generated bodies: byte i is pattern[i % PATTERN] ---- */

#define PATTERN 65536u
extern char pattern[PATTERN];

void pattern_init(void);

bool pattern_same(uint64_t off, const char *p, size_t n);

#endif
