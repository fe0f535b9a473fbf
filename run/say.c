#include "run/say.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

int run_say(const char *format, ...) {
    va_list ap;
    va_start(ap, format);
    fputs("exeat: run: ", stderr);
    vfprintf(stderr, format, ap);
    fputc('\n', stderr);
    va_end(ap);
    return -1;
}

void run_execute(char **argv) {
    execvp(argv[0], argv);
    int why = errno;
    run_say("%s: %s", argv[0], strerror(why));
    _exit(why == ENOENT || why == ENOTDIR ? RUN_NOT_FOUND : RUN_NOT_EXECUTED);
}
