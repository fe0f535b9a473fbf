#include "run/report.h"

#include <string.h>

enum { ROW_HEAD = 1 + 4 * 4 };

void report_put(struct buf *out, const struct finding *f) {
    struct view texts[] = {view_str(f->probe), view_str(f->what), view_str(f->why),
                           view_str(f->fix)};
    size_t size = ROW_HEAD;
    for (size_t i = 0; i < sizeof texts / sizeof *texts; i++)
        size += texts[i].n;
    /* However many are contained, there is room for one that is not. */
    size_t most = f->verdict == PROBE_CONTAINED ? REPORT_MAX / 2 : REPORT_MAX;
    if (buf_len(out) + size > most)
        return;
    buf_put_u8(out, (uint8_t)f->verdict);
    for (size_t i = 0; i < sizeof texts / sizeof *texts; i++)
        buf_put_block(out, texts[i]);
}

bool report_next(struct view *rest, struct report_row *out) {
    struct reader r = reader_of(*rest);
    if (rest->n == 0)
        return false;
    uint8_t verdict = read_u8(&r);
    *out = (struct report_row){.verdict = (enum probe_verdict)verdict};
    out->probe = read_block(&r, REPORT_MAX);
    out->what = read_block(&r, REPORT_MAX);
    out->why = read_block(&r, REPORT_MAX);
    out->fix = read_block(&r, REPORT_MAX);
    if (r.bad || verdict > PROBE_UNSURE)
        return false;
    *rest = r.rest;
    return true;
}

int report_count(struct view report, struct report_sum *out) {
    struct report_row row;
    *out = (struct report_sum){0};
    while (report_next(&report, &row)) {
        out->tried++;
        out->contained += row.verdict == PROBE_CONTAINED;
        out->escaped += row.verdict == PROBE_ESCAPED;
    }
    return report.n == 0 ? 0 : ERR_BAD;
}

bool report_is_tight(struct view report) {
    struct report_sum sum;
    return report_count(report, &sum) == 0 && sum.tried > 0 && sum.contained == sum.tried;
}
