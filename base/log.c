#include "base/log.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

static char process_name[32] = "exeat";
static enum log_level least_level = LOG_INFO;

void log_open(const char *name, enum log_level least) {
    snprintf(process_name, sizeof process_name, "%s", name);
    least_level = least;
}

void log_line(enum log_level level, const char *format, ...) {
    static const char *const names[] = {"fatal", "warn", "info", "debug"};
    char line[1024];
    if (level > least_level)
        return;
    int n = snprintf(line, sizeof line, "%s: %s: ", process_name, names[level]);
    va_list ap;
    va_start(ap, format);
    int m = vsnprintf(line + n, sizeof line - (size_t)n - 1, format, ap);
    va_end(ap);
    if (m > 0)
        n += m;
    if ((size_t)n > sizeof line - 2)
        n = (int)sizeof line - 2;
    line[n++] = '\n';
    /* One write, so that lines of several processes do not mix; a lost line is no error. */
    ssize_t ignored = write(STDERR_FILENO, line, (size_t)n);
    (void)ignored;
}

const char *log_text(struct view v, char *out, size_t size) {
    size_t n = 0;
    for (size_t i = 0; i < v.n; i++) {
        uint8_t c = v.p[i];
        bool plain = c >= 0x20 && c < 0x7f && c != '\\';
        if (n + (plain ? 1 : 4) + 4 > size) {
            memcpy(out + n, "...", 4);
            return out;
        }
        if (plain)
            out[n++] = (char)c;
        else
            n += (size_t)snprintf(out + n, 5, "\\x%02x", c);
    }
    out[n] = 0;
    return out;
}
