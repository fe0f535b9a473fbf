/*
 * Probes: attempts to get out of a sandbox, made from inside by the process that calls. `exeat doctor` makes all of
 * them and prints what they found; `exeat run` makes those that take no time before every command (probe_self).
 *
 * A probe ends in one of three ways. Contained: the attempt failed here, or exeat itself answered. Escaped: somebody
 * else answered, or something was had. Unsure: it went off and nobody answered, which from inside looks the same
 * whether it was dropped or arrived.
 */
#ifndef RUN_PROBE_H
#define RUN_PROBE_H

enum probe_verdict { PROBE_CONTAINED, PROBE_ESCAPED, PROBE_UNSURE };

struct finding {
    const char *probe; /* "tcp": one word of a short list, for programs */
    const char *what;  /* "192.0.2.1:80" */
    enum probe_verdict verdict;
    const char *why;
    const char *fix; /* NULL: nothing is to be mended */
};

struct probe {
    int wait_ms; /* how long an answer may take */
    void (*tell)(void *ctx, const struct finding *f);
    void *ctx;
};

/* Tells a finding; fix counts where the verdict is another than contained. */
void probe_tell(const struct probe *p, const char *probe, const char *what,
                enum probe_verdict verdict, const char *fix, const char *why, ...)
    __attribute__((format(printf, 6, 7)));

#endif
