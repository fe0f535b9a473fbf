/*
 * The files of an audit log, by name and line by line, for audit itself, for verification and for
 * the operator's reader. A directory holds
 *
 *   audit.jsonl                     the file being written
 *   audit-000000000101.jsonl        a finished one, named by the number of its first record
 *   audit-000000000101.bad.jsonl    one that did not verify when audit started, set aside
 */
#ifndef AUDIT_SEGMENT_H
#define AUDIT_SEGMENT_H

#include "audit/line.h"

#define SEGMENT_CURRENT "audit.jsonl"

enum { SEGMENT_NAME_SIZE = 64 };

struct segment_name {
    char text[SEGMENT_NAME_SIZE];
    uint64_t first; /* UINT64_MAX for the current one */
    bool bad;
};

struct segment_list {
    struct segment_name *at; /* in the order in which they were written, the current one last */
    size_t n;
};

/* out holds SEGMENT_NAME_SIZE. copy 0 is the plain name, others tell files with the same first record apart. */
void segment_name_write(uint64_t first, bool bad, unsigned copy, char *out);
/* ERR_MISSING when text names no file of an audit log. */
MUST_USE int segment_name_read(const char *text, struct segment_name *out);
/* All files of the log in the directory open as dir. ERR_SYSTEM, ERR_MEMORY. */
MUST_USE int segment_list_read(int dir, struct segment_list *out);
void segment_list_free(struct segment_list *l);

/* A file being read; it may grow meanwhile. */
struct segment {
    int fd;
    struct buf bytes;
    size_t shown;    /* bytes of the line given last */
    uint64_t offset; /* where the line given last begins */
    uint64_t line;   /* its number, from 1 */
};

/* A path relative to dir, or AT_FDCWD. ERR_SYSTEM (errno); ERR_MISSING when there is no such file. */
MUST_USE int segment_open(int dir, const char *name, struct segment *out);
void segment_close(struct segment *s);
/*
 * The next line without its LF, valid until the next call. ERR_AGAIN: no whole line is left (more may
 * come; segment_rest tells whether a part of one stands there). ERR_LIMIT: no LF within
 * LINE_MAX_BYTES; the next call goes on behind these bytes. ERR_SYSTEM.
 */
MUST_USE int segment_next(struct segment *s, struct view *line);
/* Bytes behind the last whole line. */
size_t segment_rest(const struct segment *s);

#endif
