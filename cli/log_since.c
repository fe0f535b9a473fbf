#include "cli/log_since.h"

#include <string.h>

#define SECOND_NS UINT64_C(1000000000)

/* 0: no unit. */
static uint64_t unit_seconds(uint8_t c) {
    return c == 's' ? 1 : c == 'm' ? 60 : c == 'h' ? 3600 : c == 'd' ? 86400 : 0;
}

static int read_ago(struct view text, uint64_t now, char out[CHAIN_TIME_SIZE]) {
    uint64_t n, unit = text.n > 1 ? unit_seconds(text.p[text.n - 1]) : 0;
    if (unit == 0 || view_number(view_head(text, text.n - 1), now / SECOND_NS / unit, &n) != 0)
        return ERR_BAD;
    chain_time(now - n * unit * SECOND_NS, out);
    return 0;
}

/* A day, a minute, a second or parts of it. */
static bool is_end(size_t n) {
    return n == 10 || n == 16 || n == 19 || n > 20;
}

int log_since_read(const char *given, uint64_t now, char out[CHAIN_TIME_SIZE]) {
    static const char form[] = "dddd-dd-ddTdd:dd:dd.dddddd";
    struct view text = view_str(given);
    if (read_ago(text, now, out) == 0)
        return 0;
    if (view_ends(text, VIEW("Z")) && text.n > 10)
        text.n--;
    if (!is_end(text.n) || text.n >= sizeof form)
        return ERR_BAD;
    for (size_t i = 0; i < text.n; i++)
        if (form[i] == 'd' ? !is_digit(text.p[i])
                           : text.p[i] != (uint8_t)form[i] && (form[i] != 'T' || text.p[i] != ' '))
            return ERR_BAD;
    memcpy(out, text.p, text.n);
    out[text.n] = 0;
    if (text.n > 10)
        out[10] = 'T';
    return 0;
}
