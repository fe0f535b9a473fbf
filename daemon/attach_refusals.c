#include "daemon/attach_refusals.h"

#include "base/log.h"
#include "base/loop.h"

#include <stdio.h>

static void put_record(struct audit_stream *audit, uint32_t uid, const char *sandbox,
                       const char *why) {
    struct record r = {.present = 0};
    char text[16];
    snprintf(text, sizeof text, "%u", uid);
    record_begin(&r, RECORD_EVENT, clock_wall(), clock_mono());
    record_str(&r, FIELD_EVENT, "attach_refused");
    record_str(&r, FIELD_PRINCIPAL, text);
    record_str(&r, FIELD_SANDBOX, sandbox);
    record_str(&r, FIELD_DETAIL, why);
    if (audit_stream_write(audit, &r) != 0)
        log_warn("audit: a record was not taken");
    record_free(&r);
}

void attach_refusals_note(struct attach_refusals *r, uint32_t uid, const char *sandbox,
                          const char *why) {
    char text[1024];
    r->all++;
    if (!bucket_take(&r->listed, clock_mono(), ATTACH_REFUSALS_LISTED)) {
        r->unlisted++;
        return;
    }
    snprintf(text, sizeof text, "%s", why);
    if (r->unlisted > 0)
        snprintf(text, sizeof text, "%s (before it %llu others were refused without a record)", why,
                 (unsigned long long)r->unlisted);
    r->unlisted = 0;
    log_warn("uid %u: sandbox %s: %s", uid, sandbox, text);
    put_record(r->audit, uid, sandbox, text);
}
