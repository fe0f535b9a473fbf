/*
 * The file that audit writes: appending, syncing, rotation, and what is found at a start. It knows
 * file names and lines, but not what stands in a record.
 *
 * A write that fails leaves nothing behind that counts: the size is kept here, and the next attempt
 * writes over it. A torn last line (kill -9, power cut) is cut at the next start; a file in which
 * something else is wrong is renamed and kept.
 */
#ifndef AUDIT_LOG_FILE_H
#define AUDIT_LOG_FILE_H

#include "audit/chain.h"
#include "audit/segment.h"

struct log_file {
    int dir;       /* borrowed */
    int fd;        /* -1: the next append makes a new file */
    uint64_t size; /* bytes that count */
};

/* What a start found. */
struct log_found {
    struct chain chain; /* behind the last good line; all zero when there is no log at all */
    bool needs_header;  /* the file is new, empty or was set aside */
    uint64_t cut;       /* bytes of a torn end that were removed */
    char set_aside[SEGMENT_NAME_SIZE]; /* name that a bad file got, or "" */
    enum chain_fault fault;            /* of its first bad line */
    uint64_t fault_line;
};

/* Called for each good line of the file that is continued. */
typedef void log_line_seen(void *ctx, const struct chain_line *line);

/* Finds the end of the log in dir and opens its file. ERR_SYSTEM, ERR_MEMORY. */
MUST_USE int log_file_open(struct log_file *f, int dir, log_line_seen *seen, void *ctx,
                           struct log_found *found);
void log_file_close(struct log_file *f);
/* Appends all of v, or counts nothing; with sync it counts only once it is on the disk. ERR_SYSTEM (errno). */
MUST_USE int log_file_append(struct log_file *f, struct view v, bool sync);
MUST_USE int log_file_sync(struct log_file *f);
/* Syncs, renames the file by its first record; the next append makes a new one. ERR_SYSTEM; may be tried again. */
MUST_USE int log_file_rotate(struct log_file *f, uint64_t first);
/* Removes the oldest finished files until `keep` are left, one a call: its name in out. ERR_MISSING: none to remove. */
MUST_USE int log_file_remove_oldest(struct log_file *f, uint64_t keep, char out[SEGMENT_NAME_SIZE]);
/*
 * Puts a small file in place as a whole (temporary name, sync, rename). It belongs to whom the
 * directory belongs, also when root writes it. ERR_SYSTEM.
 */
MUST_USE int log_file_replace(int dir, const char *name, unsigned mode, struct view v);
/* Reads a small file of at most max bytes. ERR_MISSING, ERR_LIMIT, ERR_SYSTEM. */
MUST_USE int log_file_read(int dir, const char *name, size_t max, struct buf *out);

#endif
