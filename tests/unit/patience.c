/* Nobody who shares a listener makes us wait in accept. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <errno.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <sys/un.h>
#include <time.h>
#include <unistd.h>

#include "base/patience.h"

static int blocking_listener(void) {
    struct sockaddr_un any = {.sun_family = AF_UNIX};
    int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
    assert_true(fd >= 0);
    /* An abstract name that the kernel chooses. */
    assert_int_equal(bind(fd, (struct sockaddr *)&any, sizeof any.sun_family), 0);
    assert_int_equal(listen(fd, 1), 0);
    return fd;
}

static void accepting_ends_again_and_again(void **state) {
    (void)state;
    int fd = blocking_listener();
    time_t begun = time(NULL);
    assert_int_equal(patience_prepare(), 0);
    patience_begin();
    for (int i = 0; i < 3; i++) {
        assert_int_equal(accept4(fd, NULL, NULL, SOCK_CLOEXEC), -1);
        assert_int_equal(errno, EINTR);
    }
    patience_end();
    assert_true(time(NULL) - begun < 30);
    close(fd);
}

/* As when a client is closed while others are accepted. */
static void what_ends_inside_of_another_ends_nothing_else(void **state) {
    (void)state;
    int fd = blocking_listener(), other = blocking_listener();
    struct itimerval timer;
    patience_begin();
    patience_close(other);
    assert_int_equal(accept4(fd, NULL, NULL, SOCK_CLOEXEC), -1);
    assert_int_equal(errno, EINTR);
    patience_end();
    assert_int_equal(getitimer(ITIMER_REAL, &timer), 0);
    assert_true(timer.it_value.tv_sec == 0 && timer.it_value.tv_usec == 0);
    close(fd);
}

/* Both ends of a connection over which nothing more can be sent, as nobody reads. */
static void full_connection(int fds[2]) {
    static const char much[1 << 16];
    const struct linger long_time = {1, 3600};
    struct sockaddr_in at = {.sin_family = AF_INET, .sin_addr = {htonl(INADDR_LOOPBACK)}};
    socklen_t size = sizeof at;
    int listener = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    assert_int_equal(bind(listener, (struct sockaddr *)&at, sizeof at), 0);
    assert_int_equal(listen(listener, 1), 0);
    assert_int_equal(getsockname(listener, (struct sockaddr *)&at, &size), 0);
    fds[0] = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    assert_int_equal(connect(fds[0], (struct sockaddr *)&at, size), 0);
    fds[1] = accept4(listener, NULL, NULL, SOCK_CLOEXEC);
    assert_int_equal(setsockopt(fds[0], SOL_SOCKET, SO_LINGER, &long_time, sizeof long_time), 0);
    while (send(fds[0], much, sizeof much, MSG_DONTWAIT) > 0)
        continue;
    close(listener);
}

static void closing_waits_for_nobody(void **state) {
    (void)state;
    int fds[2];
    time_t begun = time(NULL);
    full_connection(fds);
    patience_close(fds[0]);
    close(fds[1]);
    full_connection(fds);
    /* As if somebody else had asked for it again meanwhile. */
    patience_begin();
    close(fds[0]);
    patience_end();
    close(fds[1]);
    assert_true(time(NULL) - begun < 30);
}

static void nothing_is_ended_afterwards(void **state) {
    (void)state;
    struct timespec longer = {0, 200 * 1000 * 1000};
    patience_begin();
    patience_end();
    assert_int_equal(nanosleep(&longer, NULL), 0);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(accepting_ends_again_and_again),
        cmocka_unit_test(what_ends_inside_of_another_ends_nothing_else),
        cmocka_unit_test(closing_waits_for_nobody),
        cmocka_unit_test(nothing_is_ended_afterwards),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
