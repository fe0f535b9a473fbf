/*
 * What a launcher reports of its sandbox's probes (run/report.h), as exeatd keeps and shows it. The report is any bytes.
 */
#ifndef DAEMON_ATTACH_REPORT_H
#define DAEMON_ATTACH_REPORT_H

#include "audit/stream.h"
#include "base/child.h"
#include "run/report.h"

enum { ATTACH_DETAIL_SIZE = 1024 };

/* One sentence for a record and for the log: how many were tried, and what is not contained. */
void attach_report_tell(struct view report, char out[ATTACH_DETAIL_SIZE]);
/* A record that the sandbox was probed, or that it is not tight. Anything but 0: it is not kept. */
MUST_USE int attach_report_record(struct audit_stream *audit, uint32_t uid, const char *sandbox,
                                  bool tight, const char *detail);
/* Appends its rows as those of `exeat doctor`: an array. */
void attach_report_put(struct view report, struct buf *out);

#endif
