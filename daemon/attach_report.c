#include "daemon/attach_report.h"

#include "base/json.h"
#include "base/log.h"
#include "base/loop.h"

#include <stdio.h>

static void put_escapes(struct view report, struct buf *out) {
    const char *between = "; not contained: ";
    struct report_row row;
    while (report_next(&report, &row)) {
        if (row.verdict == PROBE_CONTAINED)
            continue;
        buf_printf(out, "%s%.*s %.*s (%.*s)", between, VIEW_ARG(row.probe), VIEW_ARG(row.what),
                   VIEW_ARG(row.why));
        between = ", ";
    }
}

void attach_report_tell(struct view report, char out[ATTACH_DETAIL_SIZE]) {
    struct report_sum sum;
    struct buf text;
    buf_init(&text, 2 * REPORT_MAX);
    if (report_count(report, &sum) != 0)
        buf_put_str(&text, "the report is malformed");
    else if (sum.tried == 0)
        buf_put_str(&text, "the attempts to get out could not be made");
    else
        buf_printf(&text, "%zu tried, %zu contained", sum.tried, sum.contained);
    if (sum.contained < sum.tried)
        put_escapes(report, &text);
    log_text(buf_view(&text), out, ATTACH_DETAIL_SIZE);
    buf_free(&text);
}

int attach_report_record(struct audit_stream *audit, uint32_t uid, const char *sandbox, bool tight,
                         const char *detail) {
    struct record r = {.present = 0};
    char text[16];
    snprintf(text, sizeof text, "%u", uid);
    record_begin(&r, RECORD_EVENT, clock_wall(), clock_mono());
    record_str(&r, FIELD_EVENT, tight ? "sandbox_probed" : "sandbox_not_tight");
    record_str(&r, FIELD_PRINCIPAL, text);
    record_str(&r, FIELD_SANDBOX, sandbox);
    record_str(&r, FIELD_DETAIL, detail);
    int result = audit_stream_write(audit, &r);
    record_free(&r);
    return result;
}

static const char *verdict_word(enum probe_verdict verdict) {
    return verdict == PROBE_CONTAINED ? "contained"
           : verdict == PROBE_ESCAPED ? "escaped"
                                      : "unsure";
}

static void put_row(const struct report_row *row, struct buf *out) {
    json_put_text(out, "part", VIEW("containment"));
    json_put_text(out, "name", row->probe);
    json_put_text(out, "what", row->what);
    json_put_text(out, "verdict", view_str(verdict_word(row->verdict)));
    json_put_text(out, "why", row->why);
    if (row->fix.n > 0)
        json_put_text(out, "fix", row->fix);
}

void attach_report_put(struct view report, struct buf *out) {
    struct report_row row;
    buf_put_str(out, "[");
    for (const char *between = ""; report_next(&report, &row); between = ",") {
        buf_printf(out, "%s{", between);
        put_row(&row, out);
        buf_put_str(out, "}");
    }
    buf_put_str(out, "]");
}
