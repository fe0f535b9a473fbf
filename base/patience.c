#include "base/patience.h"

#include <assert.h>
#include <signal.h>
#include <stddef.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <unistd.h>

enum { EACH_MS = 5 };

static unsigned begun; /* and not ended */

static void on_alarm(int number) {
    (void)number;
}

int patience_prepare(void) {
    struct sigaction end = {.sa_handler = on_alarm}; /* no SA_RESTART */
    return sigaction(SIGALRM, &end, NULL) == 0 ? 0 : ERR_SYSTEM;
}

static void set_timer(long milliseconds) {
    struct timeval each = {0, milliseconds * 1000};
    struct itimerval timer = {each, each};
    setitimer(ITIMER_REAL, &timer, NULL);
}

void patience_begin(void) {
    if (begun++ == 0)
        set_timer(EACH_MS);
}

void patience_end(void) {
    assert(begun > 0);
    if (--begun == 0)
        set_timer(0);
}

void patience_close(int fd) {
    const struct linger none = {0, 0};
    setsockopt(fd, SOL_SOCKET, SO_LINGER, &none, sizeof none);
    /* Whoever still has it may have asked for it again. */
    patience_begin();
    close(fd);
    patience_end();
}
