#include "audit/stream.h"

#include "base/log.h"

#include <stdio.h>

void audit_stream_init(struct audit_stream *s, struct loop *loop, const char *origin,
                       void (*durable)(void *ctx, uint64_t number), void *ctx) {
    *s = (struct audit_stream){.loop = loop, .durable = durable, .ctx = ctx};
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
        if (notice.kind == AUDIT_DURABLE && s->durable)
            s->durable(s->ctx, notice.number);
    if (result != ERR_AGAIN)
        event_del(s->notices);
    tell(s);
}

int audit_stream_attach(struct audit_stream *s, int fd) {
    if (s->notices)
        event_free(s->notices);
    s->notices = NULL;
    if (!s->writer)
        s->writer = audit_writer_new(fd, s->origin, clock_wall());
    else if (audit_writer_renew(s->writer, fd) != 0)
        return ERR_SYSTEM;
    if (!s->writer)
        return ERR_MEMORY;
    s->away = false;
    s->notices = event_new(loop_base(s->loop), audit_writer_fd(s->writer), EV_READ | EV_PERSIST,
                           on_notice, s);
    if (!s->notices || event_add(s->notices, NULL) != 0)
        return ERR_MEMORY;
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
    if (s->notices)
        event_free(s->notices);
    s->notices = NULL;
    audit_writer_free(s->writer);
    s->writer = NULL;
}
