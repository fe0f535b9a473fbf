#include "audit/stream.h"

#include "base/log.h"

#include <stdio.h>

static void on_flush(void *ctx);

void audit_stream_init(struct audit_stream *s, struct loop *loop, const char *origin,
                       const struct audit_stream_events *events, void *ctx) {
    *s = (struct audit_stream){.loop = loop, .ctx = ctx};
    s->flush = (struct deferred){.run = on_flush, .ctx = s, .first = true};
    if (events)
        s->events = *events;
    snprintf(s->origin, sizeof s->origin, "%s", origin);
}

bool audit_stream_ready(const struct audit_stream *s) {
    return s->writer && !s->away && audit_writer_usable(s->writer);
}

/* Audit repeats its trouble every second; the log hears of changes. */
static void tell(struct audit_stream *s) {
    bool ready = audit_stream_ready(s);
    if (ready != s->ready)
        log_line(ready ? LOG_INFO : LOG_WARN, "audit is %s",
                 ready ? "usable" : "not usable: nothing is allowed until it is");
    s->ready = ready;
}

static void on_notice(evutil_socket_t fd, short what, void *ctx) {
    struct audit_stream *s = ctx;
    struct audit_notice notice;
    int result;
    (void)fd;
    (void)what;
    while ((result = audit_writer_read(s->writer, &notice)) == 0)
        if (notice.kind == AUDIT_DURABLE && s->events.durable)
            s->events.durable(s->ctx, notice.number);
    if (result != ERR_AGAIN)
        event_del(s->notices);
    tell(s);
}

/* ---- gathering ---- */

static void on_flush(void *ctx) {
    struct audit_stream *s = ctx;
    uint64_t before = audit_writer_number(s->writer);
    int result = audit_flush(s->writer);
    if (result == ERR_AGAIN)
        event_add(s->writable, NULL);
    if (audit_writer_number(s->writer) != before && s->events.held)
        s->events.held(s->ctx);
    if (result == 0 || result == ERR_AGAIN)
        return;
    if (s->ready)
        log_warn("audit records wait: %s", err_text(result));
    tell(s);
    if (s->events.lost)
        s->events.lost(s->ctx);
}

static void on_writable(evutil_socket_t fd, short what, void *ctx) {
    struct audit_stream *s = ctx;
    (void)fd;
    (void)what;
    loop_defer(s->loop, &s->flush);
}

int audit_stream_gather(struct audit_stream *s, struct record *r, uint64_t *number) {
    int result = s->writer ? audit_gather(s->writer, r, number) : ERR_CLOSED;
    if (result == 0)
        loop_defer(s->loop, &s->flush);
    return result;
}

bool audit_stream_holds(const struct audit_stream *s, uint64_t number, bool durable) {
    return s->writer &&
           number <= (durable ? audit_writer_durable(s->writer) : audit_writer_number(s->writer));
}

static void free_events(struct audit_stream *s) {
    if (s->notices)
        event_free(s->notices);
    if (s->writable)
        event_free(s->writable);
    s->notices = s->writable = NULL;
}

int audit_stream_attach(struct audit_stream *s, int fd) {
    free_events(s);
    if (!s->writer)
        s->writer = audit_writer_new(fd, s->origin, clock_wall());
    else if (audit_writer_renew(s->writer, fd) != 0)
        return ERR_SYSTEM;
    if (!s->writer)
        return ERR_MEMORY;
    s->away = false;
    int to = audit_writer_fd(s->writer);
    s->notices = event_new(loop_base(s->loop), to, EV_READ | EV_PERSIST, on_notice, s);
    s->writable = event_new(loop_base(s->loop), to, EV_WRITE, on_writable, s);
    if (!s->notices || !s->writable || event_add(s->notices, NULL) != 0)
        return ERR_MEMORY;
    if (audit_writer_is_behind(s->writer))
        loop_defer(s->loop, &s->flush);
    tell(s);
    return 0;
}

void audit_stream_away(struct audit_stream *s) {
    s->away = true;
    tell(s);
}

int audit_stream_write(struct audit_stream *s, struct record *r) {
    return s->writer ? audit_write(s->writer, r) : ERR_CLOSED;
}

void audit_stream_close(struct audit_stream *s) {
    free_events(s);
    loop_forget(s->loop, &s->flush);
    audit_writer_free(s->writer);
    s->writer = NULL;
}
