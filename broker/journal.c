#include "broker/journal.h"

#include "audit/stream.h"
#include "base/digest.h"
#include "base/log.h"

#include <stdio.h>
#include <stdlib.h>

struct journal {
    struct audit_stream stream;
    struct record record;
};

struct journal *journal_new(struct loop *l) {
    struct journal *g = calloc(1, sizeof *g);
    if (g)
        audit_stream_init(&g->stream, l, "broker", NULL, NULL);
    return g;
}

void journal_free(struct journal *g) {
    if (!g)
        return;
    audit_stream_close(&g->stream);
    record_free(&g->record);
    free(g);
}

int journal_attach(struct journal *g, int fd) {
    return audit_stream_attach(&g->stream, fd);
}

void journal_away(struct journal *g) {
    audit_stream_away(&g->stream);
}

static int write_out(struct journal *g) {
    int result =
        audit_stream_ready(&g->stream) ? audit_stream_write(&g->stream, &g->record) : ERR_CLOSED;
    if (result != 0)
        log_warn("audit: a record was not taken: %s", err_text(result));
    return result;
}

int journal_lease(struct journal *g, const struct journal_lease *lease) {
    struct record *r = &g->record;
    bool lent = lease->reason == REASON_ALLOWED;
    record_begin(r, lent ? RECORD_EVENT : RECORD_DECISION, clock_wall(), clock_mono());
    if (lent) {
        record_str(r, FIELD_EVENT, lease->event);
        record_number(r, FIELD_VERSION, lease->version);
    } else {
        record_str(r, FIELD_VERDICT, "deny");
        record_str(r, FIELD_REASON, reason_info(lease->reason)->code);
        record_str(r, FIELD_DETAIL, lease->detail ? lease->detail : "lease refused");
    }
    record_number(r, FIELD_LANE, lease->lane);
    if (lease->unenforced)
        record_number(r, FIELD_UNENFORCED, 1);
    record_number(r, FIELD_GENERATION, lease->generation);
    record_text(r, FIELD_SANDBOX, lease->sandbox);
    record_text(r, FIELD_CREDENTIAL, lease->credential);
    record_str(r, FIELD_HOST, lease->authority->host);
    record_number(r, FIELD_PORT, lease->authority->port);
    if (lent && lease->certificate) {
        char digits[2 * DIGEST_SIZE + 1];
        hex_encode(view_of(lease->certificate, DIGEST_SIZE), digits);
        record_str(r, FIELD_CLIENT_CERTIFICATE, digits);
    }
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
