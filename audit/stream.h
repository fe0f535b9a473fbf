/*
 * A role's audit stream: its writer, and what audit says back, on the role's loop. Survives a
 * restart of audit, so that what audit had in hand when it died shows as a gap.
 */
#ifndef AUDIT_STREAM_H
#define AUDIT_STREAM_H

#include "audit/record.h"
#include "base/loop.h"

/* What happens to records, for whom it matters; each may be NULL. */
struct audit_stream_events {
    void (*held)(void *ctx); /* the kernel holds more of what was gathered */
    void (*durable)(void *ctx,
                    uint64_t number); /* all up to number are on the disk (audit durable) */
    void (*lost)(void *ctx); /* audit is gone; what is gathered waits for the next attach */
};

struct audit_stream {
    struct loop *loop;
    char origin[32];
    struct audit_writer *writer; /* NULL before the first attach */
    struct event *notices, *writable;
    struct deferred flush;
    bool away;  /* audit is being restarted */
    bool ready; /* as last told in the log */
    struct audit_stream_events events;
    void *ctx;
};

/* origin ("egress 3") names the stream; at most 31 bytes. events is copied; NULL: nobody waits for any. */
void audit_stream_init(struct audit_stream *s, struct loop *loop, const char *origin,
                       const struct audit_stream_events *events, void *ctx);
/* The parent handed a writing end, for the first time or again: takes over fd. ERR_MEMORY, ERR_SYSTEM. */
MUST_USE int audit_stream_attach(struct audit_stream *s, int fd);
/* Audit is gone until the next attach. */
void audit_stream_away(struct audit_stream *s);
/* Whether anything may be allowed: audit is there and takes records. Refusals are written in any case. */
bool audit_stream_ready(const struct audit_stream *s);
/* As audit_write; ERR_CLOSED before the first attach. */
MUST_USE int audit_stream_write(struct audit_stream *s, struct record *r);
/*
 * As audit_gather; ERR_CLOSED before the first attach. What a turn of the loop gathers is handed over
 * at its end, before any channel writes; when the kernel is full, as soon as it is not.
 */
MUST_USE int audit_stream_gather(struct audit_stream *s, struct record *r, uint64_t *number);
/* Whether the kernel, or with durable the disk, holds the record of this number. */
bool audit_stream_holds(const struct audit_stream *s, uint64_t number, bool durable);
void audit_stream_close(struct audit_stream *s);

#endif
