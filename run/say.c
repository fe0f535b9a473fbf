#include "run/say.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* C0 but for lines and tabs, DEL, and C1 as UTF-8 has it: of two bytes. */
static size_t control_at(const unsigned char *c) {
    if (c[0] == 0xc2 && c[1] >= 0x80 && c[1] < 0xa0)
        return 2;
    return (c[0] < 0x20 && c[0] != '\n' && c[0] != '\t') || c[0] == 0x7f;
}

static void make_plain(char *text) {
    for (char *c = text; *c; c++)
        for (size_t n = control_at((const unsigned char *)c); n > 0; n--)
            c[n - 1] = '?';
}

int run_say(const char *format, ...) {
    char *text;
    va_list ap;
    va_start(ap, format);
    int n = vasprintf(&text, format, ap);
    va_end(ap);
    if (n < 0) {
        fputs("exeat: run: out of memory\n", stderr);
        return -1;
    }
    make_plain(text);
    fprintf(stderr, "exeat: run: %s\n", text);
    free(text);
    return -1;
}

void run_execute(char **argv) {
    execvp(argv[0], argv);
    int why = errno;
    run_say("%s: %s", argv[0], strerror(why));
    _exit(why == ENOENT || why == ENOTDIR ? RUN_NOT_FOUND : RUN_NOT_EXECUTED);
}
