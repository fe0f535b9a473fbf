#include "broker/journal.h"

#include "audit/record.h"
#include "base/log.h"

#include <stdio.h>
#include <stdlib.h>

struct journal {
    struct loop *loop;
    struct audit_writer *writer; /* NULL before the parent sent its end */
    struct event *notices;
    struct record record;
};

struct journal *journal_new(struct loop *l) {
    struct journal *g = calloc(1, sizeof *g);
    if (g)
        g->loop = l;
    return g;
}

static void detach(struct journal *g) {
    if (g->notices)
        event_free(g->notices);
    g->notices = NULL;
    audit_writer_free(g->writer);
    g->writer = NULL;
}

void journal_free(struct journal *g) {
    if (!g)
        return;
    detach(g);
    record_free(&g->record);
    free(g);
}

static void on_notice(evutil_socket_t fd, short what, void *ctx) {
    struct journal *g = ctx;
    struct audit_notice notice;
    int result;
    (void)fd;
    (void)what;
    bool before = audit_writer_usable(g->writer);
    while ((result = audit_writer_read(g->writer, &notice)) == 0)
        ;
    bool after = audit_writer_usable(g->writer);
    if (before != after)
        log_warn("audit is %s", after ? "usable again" : "not usable: nothing is lent");
    if (result != ERR_AGAIN)
        event_del(g->notices);
}

int journal_attach(struct journal *g, int fd) {
    detach(g);
    g->writer = audit_writer_new(fd, "broker", clock_wall());
    if (!g->writer)
        return ERR_MEMORY;
    g->notices = event_new(loop_base(g->loop), audit_writer_fd(g->writer), EV_READ | EV_PERSIST,
                           on_notice, g);
    if (g->notices && event_add(g->notices, NULL) == 0)
        return 0;
    detach(g);
    return ERR_MEMORY;
}

static int write_out(struct journal *g) {
    int result = g->writer && audit_writer_usable(g->writer) ? audit_write(g->writer, &g->record)
                                                             : ERR_CLOSED;
    if (result != 0)
        log_warn("audit: a record was not taken: %s", err_text(result));
    return result;
}

int journal_lease(struct journal *g, const struct journal_lease *lease) {
    struct record *r = &g->record;
    bool lent = lease->reason == REASON_ALLOWED;
    record_begin(r, lent ? RECORD_EVENT : RECORD_DECISION, clock_wall(), clock_mono());
    if (lent) {
        record_str(r, FIELD_EVENT, "lease");
        record_number(r, FIELD_VERSION, lease->version);
    } else {
        record_str(r, FIELD_VERDICT, "deny");
        record_str(r, FIELD_REASON, reason_info(lease->reason)->code);
        record_str(r, FIELD_DETAIL, "lease refused");
    }
    record_number(r, FIELD_LANE, lease->lane);
    record_number(r, FIELD_GENERATION, lease->generation);
    record_text(r, FIELD_SANDBOX, lease->sandbox);
    record_text(r, FIELD_CREDENTIAL, lease->credential);
    record_str(r, FIELD_HOST, lease->authority->host);
    record_number(r, FIELD_PORT, lease->authority->port);
    return write_out(g);
}

int journal_event(struct journal *g, const struct journal_event *event) {
    struct record *r = &g->record;
    char uid[16], detail[512];
    record_begin(r, RECORD_EVENT, clock_wall(), clock_mono());
    snprintf(uid, sizeof uid, "%u", event->uid);
    snprintf(detail, sizeof detail, "vault state %llu%s%s", (unsigned long long)event->state,
             event->detail ? ": " : "", event->detail ? event->detail : "");
    record_str(r, FIELD_EVENT, event->event);
    record_str(r, FIELD_PRINCIPAL, uid);
    record_text(r, FIELD_SANDBOX, event->sandbox);
    record_text(r, FIELD_CREDENTIAL, event->credential);
    record_str(r, FIELD_DETAIL, detail);
    if (event->version)
        record_number(r, FIELD_VERSION, event->version);
    return write_out(g);
}
