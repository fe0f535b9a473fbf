/*
 * What a sandbox's probes found, on its way from inside to exeatd: findings, one after another, as bytes of one packet. What
 * comes from a sandbox's side is any bytes to whoever reads it.
 */
#ifndef RUN_REPORT_H
#define RUN_REPORT_H

#include "base/bytes.h"
#include "run/probe.h"

#include <stdbool.h>

enum { REPORT_MAX = 64 << 10 };

struct report_row {
    enum probe_verdict verdict;
    struct view probe, what, why, fix; /* fix is empty when nothing is to be mended */
};

struct report_sum {
    size_t tried, contained, escaped;
};

/*
 * Appends a finding. One that does not fit is left out: a contained one, or one behind others that are not contained. So what is
 * tight as it is read was found to be.
 */
void report_put(struct buf *out, const struct finding *f);
/* Walks; false at the end, or when it is malformed (*rest is then not empty). */
bool report_next(struct view *rest, struct report_row *out);
/* ERR_BAD: malformed. */
MUST_USE int report_count(struct view report, struct report_sum *out);
/* Something was tried, and all of it is contained. False for what is malformed. */
bool report_is_tight(struct view report);

#endif
