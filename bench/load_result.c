#include "load.h"

struct totals total;

static const char *const why_name[E_KINDS] = {"connect", "proxy", "tls",    "verify",
                                              "closed",  "http",  "status", "length",
                                              "body",    "auth",  "timeout"};

void sample(struct samples *s, uint64_t ns) {
    if (s->n == s->cap) {
        s->cap = s->cap > 0 ? s->cap * 2 : 65536;
        s->v = realloc(s->v, s->cap * sizeof *s->v);
        if (s->v == NULL)
            die("out of memory");
    }
    s->v[s->n++] = ns;
}

static int by_value(const void *a, const void *b) {
    uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;

    return x < y ? -1 : x > y;
}

static void print_samples(const char *name, struct samples *s) {
    static const double q[] = {0.5, 0.9, 0.99, 0.999};
    static const char *const label[] = {"p50", "p90", "p99", "p999"};

    if (s->n == 0)
        return;
    qsort(s->v, s->n, sizeof *s->v, by_value);
    for (size_t i = 0; i < 4; i++)
        printf(",\"%s_%s_us\":%.1f", name, label[i],
               (double)s->v[(size_t)((double)(s->n - 1) * q[i])] / 1e3);
    printf(",\"%s_max_us\":%.1f", name, (double)s->v[s->n - 1] / 1e3);
}

void note(enum why w, const char *detail) {
    total.errors[w]++;
    if (total.first_error[0] == '\0')
        snprintf(total.first_error, sizeof total.first_error, "%s: %s", why_name[w], detail);
}

void print_report(void) {
    struct rusage ru;
    double span = (double)(total.last - total.measured) / 1e9;
    uint64_t bad = 0;
    bool first = true;

    if (busy() > 0) {
        total.errors[E_TIMEOUT] += busy();
        if (total.first_error[0] == '\0')
            snprintf(total.first_error, sizeof total.first_error, "timeout: no answer");
    }
    for (int i = 0; i < E_KINDS; i++)
        bad += total.errors[i];
    getrusage(RUSAGE_SELF, &ru);
    printf("{\"mode\":\"%s\",\"finished\":%llu,\"good\":%llu,\"errors\":%llu", mode_names[o.mode],
           (unsigned long long)total.finished, (unsigned long long)total.good,
           (unsigned long long)bad);
    printf(",\"seconds\":%.4f,\"rps\":%.1f,\"bytes\":%llu,\"gbps\":%.4f", span,
           span > 0 ? (double)total.good / span : 0, (unsigned long long)total.bytes,
           span > 0 ? (double)total.bytes / span / 1e9 : 0);
    printf(",\"connections\":%llu,\"reopened\":%llu,\"tls\":%llu,\"resumed\":%llu",
           (unsigned long long)total.conns, (unsigned long long)total.reopened,
           (unsigned long long)total.tls, (unsigned long long)total.resumed);
    print_samples("lat", &total.latency);
    print_samples("tls", &total.handshake);
    print_samples("ttfb", &total.first_byte);
    printf(",\"cpu\":%.3f,\"proto\":\"%s\"",
           (double)(ru.ru_utime.tv_sec + ru.ru_stime.tv_sec) +
               (double)(ru.ru_utime.tv_usec + ru.ru_stime.tv_usec) / 1e6,
           total.proto);
    if (bad > 0) {
        printf(",\"kinds\":{");
        for (int i = 0; i < E_KINDS; i++) {
            if (total.errors[i] == 0)
                continue;
            printf("%s\"%s\":%llu", first ? "" : ",", why_name[i],
                   (unsigned long long)total.errors[i]);
            first = false;
        }
        for (char *p = total.first_error; *p != '\0'; p++)
            if (*p == '"' || *p == '\\' || (unsigned char)*p < 32)
                *p = '\'';
        printf("},\"first_error\":\"%s\"", total.first_error);
    }
    printf("}\n");
}
