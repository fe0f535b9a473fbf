/* The courier: a proxy may answer those who asked, once each, and reaches nobody else by it. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "proxy/courier.h"

#include "base/bytes.h"
#include "base/peer.h"
#include "base/role.h"
#include "proxy/meant.h"

#include <arpa/inet.h>
#include <errno.h>
#include <poll.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

enum { SOON = 10000, A_WHILE = 100 /* ms */ };

struct world {
    struct proxy_listener listener; /* our end, once it is there */
    struct sockaddr_in at;
    int asker, other,
        held; /* the last is the socket that was handed over, as the launcher may keep it */
    pid_t courier;
};

static int datagrams(struct sockaddr_in *at) {
    socklen_t size = sizeof *at;
    int fd = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);
    *at = (struct sockaddr_in){.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    assert_int_equal(bind(fd, (struct sockaddr *)at, sizeof *at), 0);
    assert_int_equal(getsockname(fd, (struct sockaddr *)at, &size), 0);
    return fd;
}

static int setup(void **state) {
    static struct world w;
    struct sockaddr_in own;
    struct role_args args = {.role = ROLE_PROXY, .lane = 1, .listeners = 1};
    w.listener = (struct proxy_listener){.fd = datagrams(&w.at), .way = WAY_DNS_UDP};
    w.asker = datagrams(&own);
    w.other = datagrams(&own);
    assert_int_equal(connect(w.asker, (struct sockaddr *)&w.at, sizeof w.at), 0);
    w.held = dup(w.listener.fd);
    assert_int_equal(courier_start(&args, &w.listener, &w.courier), 0);
    *state = &w;
    return 0;
}

/* It goes with its proxy. */
static int teardown(void **state) {
    struct world *w = *state;
    int status;
    close(w->listener.fd);
    assert_int_equal(waitpid(w->courier, &status, 0), w->courier);
    assert_true(WIFEXITED(status));
    close(w->asker);
    close(w->other);
    close(w->held);
    return 0;
}

static bool comes(int fd, int ms) {
    struct pollfd p = {fd, POLLIN, 0};
    return poll(&p, 1, ms) == 1;
}

/* What the proxy gets of a question; its cookie. */
static uint32_t hears(struct world *w, const char *question) {
    uint8_t packet[COURIER_PACKET_MAX];
    char here[MEANT_SIZE];
    union end at = {.v4 = w->at};
    assert_true(end_format(&at, here, sizeof here));
    assert_true(comes(w->listener.fd, SOON));
    ssize_t n = read(w->listener.fd, packet, sizeof packet);
    assert_true(n > 0);
    struct reader r = reader_of(view_of(packet, (size_t)n));
    uint32_t cookie = read_u32(&r);
    assert_true(view_starts(read_block(&r, MEANT_SIZE), VIEW("127.0.0.1:")));
    assert_true(view_equal(read_block(&r, MEANT_SIZE), view_str(here)));
    assert_true(view_equal(r.rest, view_str(question)));
    return cookie;
}

static uint32_t asks(struct world *w, const char *question) {
    assert_int_equal(send(w->asker, question, strlen(question), 0), (ssize_t)strlen(question));
    return hears(w, question);
}

static void says(struct world *w, uint32_t cookie, struct view text) {
    struct buf packet;
    buf_init(&packet, 1 << 16);
    buf_put_u32(&packet, cookie);
    buf_put(&packet, text);
    struct view v = buf_view(&packet);
    assert_int_equal(send(w->listener.fd, v.p, v.n, 0), (ssize_t)v.n);
    buf_free(&packet);
}

static void gets(struct world *w, const char *text) {
    uint8_t bytes[2048];
    assert_true(comes(w->asker, SOON));
    ssize_t n = recv(w->asker, bytes, sizeof bytes, 0);
    assert_true(n >= 0 && view_equal(view_of(bytes, (size_t)n), view_str(text)));
}

static void who_asked_is_answered_once(void **state) {
    struct world *w = *state;
    uint32_t first = asks(w, "one"), second = asks(w, "two");
    assert_true(first != second);
    says(w, second, VIEW("to two"));
    gets(w, "to two");
    says(w, first, VIEW("to one"));
    gets(w, "to one");
    says(w, first, VIEW("again"));
    says(w, second, VIEW("again"));
    assert_false(comes(w->asker, A_WHILE));
}

static void what_nobody_asked_goes_nowhere(void **state) {
    struct world *w = *state;
    uint32_t cookie = asks(w, "one");
    const uint32_t others[] = {0, cookie + 1, cookie - 1, cookie + COURIER_WAITING, UINT32_MAX};
    for (size_t i = 0; i < sizeof others / sizeof others[0]; i++)
        says(w, others[i], VIEW("unasked"));
    /* Shorter than a cookie. */
    assert_int_equal(send(w->listener.fd, "\1", 1, 0), 1);
    assert_false(comes(w->asker, A_WHILE) || comes(w->other, 0));
    says(w, cookie, VIEW("asked"));
    gets(w, "asked");
}

static unsigned long cpu_ticks(pid_t pid) {
    char path[64];
    unsigned long user, system;
    snprintf(path, sizeof path, "/proc/%d/stat", (int)pid);
    FILE *f = fopen(path, "r");
    assert_non_null(f);
    assert_int_equal(fscanf(f, "%*d (%*[^)]) %*c %*d %*d %*d %*d %*d %*u %*u %*u %*u %*u %lu %lu",
                            &user, &system),
                     2);
    fclose(f);
    return user + system;
}

static void errors_that_the_kernel_keeps_do_not_wake_it_for_ever(void **state) {
    struct world *w = *state;
    int on = 1;
    assert_int_equal(setsockopt(w->held, IPPROTO_IP, IP_RECVERR, &on, sizeof on), 0);
    uint32_t cookie = asks(w, "one");
    assert_int_equal(shutdown(w->asker, SHUT_RDWR), 0);
    close(w->asker);
    says(w, cookie, VIEW("to nobody"));
    usleep(100000);
    unsigned long before = cpu_ticks(w->courier);
    usleep(500000);
    assert_in_range(cpu_ticks(w->courier) - before, 0, (unsigned long)sysconf(_SC_CLK_TCK) / 10);
    w->asker = datagrams(&(struct sockaddr_in){0});
    assert_int_equal(connect(w->asker, (struct sockaddr *)&w->at, sizeof w->at), 0);
    says(w, asks(w, "two"), VIEW("still here"));
    gets(w, "still here");
}

static void no_descriptor_and_no_address_of_the_proxys_is_taken(void **state) {
    struct world *w = *state;
    uint32_t cookie = htonl(asks(w, "one"));
    assert_int_equal(peer_send(w->listener.fd, view_of(&cookie, sizeof cookie), &w->other, 1, 0),
                     sizeof cookie);
    /* An empty answer, from the socket that was asked. */
    gets(w, "");
    assert_false(comes(w->other, A_WHILE));
}

static void who_waited_too_long_for_an_answer_is_forgotten(void **state) {
    struct world *w = *state;
    uint32_t first = asks(w, "first");
    for (int i = 0; i < COURIER_WAITING; i++)
        asks(w, "next");
    says(w, first, VIEW("late"));
    assert_false(comes(w->asker, A_WHILE));
}

static void longer_datagrams_are_not_carried(void **state) {
    struct world *w = *state;
    static const uint8_t zeros[COURIER_DATAGRAM_MAX + 1];
    assert_int_equal(send(w->asker, zeros, sizeof zeros, 0), sizeof zeros);
    uint32_t cookie = asks(w, "one");
    says(w, cookie, VIEW("to one"));
    gets(w, "to one");
}

#define WITH_COURIER(test) cmocka_unit_test_setup_teardown(test, setup, teardown)

int main(void) {
    const struct CMUnitTest tests[] = {
        WITH_COURIER(who_asked_is_answered_once),
        WITH_COURIER(what_nobody_asked_goes_nowhere),
        WITH_COURIER(errors_that_the_kernel_keeps_do_not_wake_it_for_ever),
        WITH_COURIER(no_descriptor_and_no_address_of_the_proxys_is_taken),
        WITH_COURIER(who_waited_too_long_for_an_answer_is_forgotten),
        WITH_COURIER(longer_datagrams_are_not_carried),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
