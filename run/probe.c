#include "run/probe.h"

#include <stdarg.h>
#include <stdio.h>

void probe_tell(const struct probe *p, const char *probe, const char *what,
                enum probe_verdict verdict, const char *fix, const char *why, ...) {
    char text[512];
    va_list ap;
    va_start(ap, why);
    vsnprintf(text, sizeof text, why, ap);
    va_end(ap);
    const struct finding f = {.probe = probe,
                              .what = what,
                              .verdict = verdict,
                              .why = text,
                              .fix = verdict == PROBE_CONTAINED ? NULL : fix};
    p->tell(p->ctx, &f);
}
