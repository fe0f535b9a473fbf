/* For what tells people of each input: what is printed in between goes nowhere. */
#ifndef FUZZ_QUIET_H
#define FUZZ_QUIET_H

#include <fcntl.h>
#include <stdio.h>
#include <unistd.h>

static int quiet_kept[2] = {-1, -1}; /* standard output and error */

static inline void quiet_begin(void) {
    int null = open("/dev/null", O_WRONLY | O_CLOEXEC);
    for (int i = 0; i < 2; i++) {
        quiet_kept[i] = fcntl(STDOUT_FILENO + i, F_DUPFD_CLOEXEC, 10);
        dup2(null, STDOUT_FILENO + i);
    }
    close(null);
}

static inline void quiet_end(void) {
    fflush(stdout);
    for (int i = 0; i < 2; i++) {
        dup2(quiet_kept[i], STDOUT_FILENO + i);
        close(quiet_kept[i]);
    }
}

#endif
