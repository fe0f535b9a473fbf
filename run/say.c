#include "run/say.h"

#include <stdarg.h>
#include <stdio.h>

int run_say(const char *format, ...) {
    va_list ap;
    va_start(ap, format);
    fputs("exeat: run: ", stderr);
    vfprintf(stderr, format, ap);
    fputc('\n', stderr);
    va_end(ap);
    return -1;
}
