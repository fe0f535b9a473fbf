#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <sys/resource.h>

#include "egress/connect.h"
#include "tests/unit/dns_server.h"

#include <netinet/tcp.h>
#include <time.h>

struct outcome {
    bool done;
    unsigned calls;
    struct connected c;
};

static void on_connected(void *ctx, const struct connected *c) {
    struct outcome *o = ctx;
    o->done = true;
    o->calls++;
    o->c = *c;
}

static struct address address_of(const char *text) {
    struct address a;
    assert_int_equal(address_parse(view_str(text), &a), 0);
    return a;
}

static socklen_t sockaddr_of(const char *text, uint16_t port, struct sockaddr_storage *out) {
    struct address a = address_of(text);
    struct sockaddr_in in = {.sin_family = AF_INET, .sin_port = htons(port)};
    struct sockaddr_in6 in6 = {.sin6_family = AF_INET6, .sin6_port = htons(port)};
    if (a.family == 4) {
        memcpy(&in.sin_addr, a.bytes, 4);
        memcpy(out, &in, sizeof in);
        return sizeof in;
    }
    memcpy(&in6.sin6_addr, a.bytes, 16);
    memcpy(out, &in6, sizeof in6);
    return sizeof in6;
}

static int listen_at(const char *text, uint16_t *port, int backlog) {
    struct sockaddr_storage sa;
    socklen_t n = sockaddr_of(text, *port, &sa);
    int fd = socket(sa.ss_family, SOCK_STREAM | SOCK_CLOEXEC, 0);
    assert_int_equal(bind(fd, (struct sockaddr *)&sa, n), 0);
    assert_int_equal(listen(fd, backlog), 0);
    assert_int_equal(getsockname(fd, (struct sockaddr *)&sa, &n), 0);
    struct sockaddr_in in;
    memcpy(&in, &sa, sizeof in); /* the port stands at the same place in both families */
    *port = ntohs(in.sin_port);
    return fd;
}

/* A listener whose queue is full: the kernel drops further attempts, as a dead host would. */
struct silent {
    int listener, filler[4];
};

static void silence_at(const char *text, uint16_t port, struct silent *s) {
    struct sockaddr_storage sa;
    s->listener = listen_at(text, &port, 0);
    socklen_t n = sockaddr_of(text, port, &sa);
    for (size_t i = 0; i < 4; i++) {
        s->filler[i] = socket(sa.ss_family, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
        (void)connect(s->filler[i], (struct sockaddr *)&sa, n);
    }
}

static void silence_end(struct silent *s) {
    for (size_t i = 0; i < 4; i++)
        close(s->filler[i]);
    close(s->listener);
}

static struct outcome dial(struct loop *l, const char *const *texts, uint16_t port,
                           const struct authority *behind_hop, unsigned ms) {
    struct address addresses[20];
    struct outcome o = {.done = false};
    size_t n = 0;
    for (; texts[n]; n++)
        addresses[n] = address_of(texts[n]);
    assert_non_null(connect_start(l, addresses, n, port, behind_hop, ms, on_connected, &o));
    assert_false(o.done);
    assert_true(turn_until(l, &o.done, ms + 1000));
    assert_int_equal(o.calls, 1);
    return o;
}

static void assert_address(const struct address *a, const char *text) {
    char got[48];
    address_format(a, got);
    assert_string_equal(got, text);
}

static int option_of(int fd, int level, int name) {
    int value = 0;
    socklen_t n = sizeof value;
    assert_int_equal(getsockopt(fd, level, name, &value, &n), 0);
    return value;
}

static void a_connection_is_ready_to_be_passed_on(void **state) {
    struct loop *l = loop_new();
    uint16_t port = 0;
    int listener = listen_at("127.0.0.1", &port, 8);
    (void)state;
    struct outcome o = dial(l, (const char *const[]){"127.0.0.1", NULL}, port, NULL, 2000);
    assert_int_equal(o.c.result, 0);
    assert_address(&o.c.address, "127.0.0.1");
    assert_int_equal(option_of(o.c.fd, IPPROTO_TCP, TCP_NODELAY), 1);
    assert_int_equal(option_of(o.c.fd, SOL_SOCKET, SO_KEEPALIVE), 1);
    assert_true(fcntl(o.c.fd, F_GETFL) & O_NONBLOCK);
    assert_true(fcntl(o.c.fd, F_GETFD) & FD_CLOEXEC);
    close(o.c.fd);
    close(listener);
    loop_free(l);
}

static void a_refused_address_makes_way_at_once(void **state) {
    struct loop *l = loop_new();
    uint16_t port = 0;
    int listener = listen_at("127.0.0.1", &port, 8);
    (void)state;
    uint64_t start = clock_mono();
    struct outcome o = dial(l, (const char *const[]){"127.0.0.2", "127.0.0.3", "127.0.0.1", NULL},
                            port, NULL, 2000);
    assert_int_equal(o.c.result, 0);
    assert_address(&o.c.address, "127.0.0.1");
    assert_true(clock_mono() - start < 200000000u);
    close(o.c.fd);
    close(listener);
    loop_free(l);
}

static void a_silent_address_is_overtaken_after_250_ms_and_closed(void **state) {
    struct loop *l = loop_new();
    struct silent silent;
    uint16_t port = 0;
    int listener = listen_at("127.0.0.1", &port, 8);
    (void)state;
    silence_at("127.0.0.2", port, &silent);
    uint64_t start = clock_mono();
    struct outcome o =
        dial(l, (const char *const[]){"127.0.0.2", "127.0.0.1", NULL}, port, NULL, 3000);
    uint64_t took = clock_mono() - start;
    assert_int_equal(o.c.result, 0);
    assert_address(&o.c.address, "127.0.0.1");
    assert_true(took > 240000000u && took < 900000000u);
    close(o.c.fd);
    close(listener);
    silence_end(&silent);
    loop_free(l);
}

static void nobody_answering_is_a_timeout(void **state) {
    struct loop *l = loop_new();
    struct silent silent;
    uint16_t port = 0;
    int unused = listen_at("127.0.0.1", &port, 8);
    (void)state;
    close(unused);
    silence_at("127.0.0.2", port, &silent);
    uint64_t start = clock_mono();
    struct outcome o = dial(l, (const char *const[]){"127.0.0.2", NULL}, port, NULL, 400);
    assert_int_equal(o.c.result, ERR_TIMEOUT);
    assert_int_equal(o.c.fd, -1);
    assert_string_equal(o.c.detail, "1 of 1 addresses tried, none answered in time");
    assert_true(clock_mono() - start < 900000000u);
    silence_end(&silent);
    loop_free(l);
}

static void all_refused_is_a_failure_that_names_the_last(void **state) {
    struct loop *l = loop_new();
    uint16_t port = 0;
    int unused = listen_at("127.0.0.1", &port, 8);
    (void)state;
    close(unused);
    struct outcome o =
        dial(l, (const char *const[]){"127.0.0.2", "127.0.0.3", NULL}, port, NULL, 2000);
    assert_int_equal(o.c.result, ERR_SYSTEM);
    assert_string_equal(o.c.detail, "127.0.0.3: Connection refused");
    loop_free(l);
}

static void without_descriptors_it_is_not_the_addresses_fault(void **state) {
    struct loop *l = loop_new();
    uint16_t port = 0;
    int listener = listen_at("127.0.0.1", &port, 8);
    struct rlimit limit;
    (void)state;
    assert_int_equal(getrlimit(RLIMIT_NOFILE, &limit), 0);
    assert_int_equal(setrlimit(RLIMIT_NOFILE, &(struct rlimit){3, limit.rlim_max}), 0);
    struct outcome o = dial(l, (const char *const[]){"127.0.0.1", NULL}, port, NULL, 2000);
    assert_int_equal(setrlimit(RLIMIT_NOFILE, &limit), 0);
    assert_int_equal(o.c.result, ERR_MEMORY);
    assert_string_equal(o.c.detail, "no descriptors");
    close(listener);
    loop_free(l);
}

static void families_take_turns_and_ipv6_is_first(void **state) {
    struct loop *l = loop_new();
    uint16_t port = 0;
    int four = listen_at("127.0.0.1", &port, 8);
    int six = listen_at("::1", &port, 8);
    (void)state;
    struct outcome o =
        dial(l, (const char *const[]){"127.0.0.1", "127.0.0.2", "::1", NULL}, port, NULL, 2000);
    assert_int_equal(o.c.result, 0);
    assert_address(&o.c.address, "::1");
    close(o.c.fd);
    close(six);
    /* IPv6 refused: the first of IPv4 is next. */
    o = dial(l, (const char *const[]){"127.0.0.1", "127.0.0.2", "::1", NULL}, port, NULL, 2000);
    assert_address(&o.c.address, "127.0.0.1");
    close(o.c.fd);
    close(four);
    loop_free(l);
}

static void more_addresses_than_are_dialled_are_left_out(void **state) {
    static const char *const many[] = {
        "127.0.1.1",  "127.0.1.2",  "127.0.1.3",  "127.0.1.4",  "127.0.1.5",  "127.0.1.6",
        "127.0.1.7",  "127.0.1.8",  "127.0.1.9",  "127.0.1.10", "127.0.1.11", "127.0.1.12",
        "127.0.1.13", "127.0.1.14", "127.0.1.15", "127.0.1.16", "127.0.1.17", NULL};
    struct loop *l = loop_new();
    uint16_t port = 0;
    int listener = listen_at("127.0.1.17", &port, 8);
    (void)state;
    struct outcome o = dial(l, many, port, NULL, 2000);
    assert_int_equal(o.c.result, ERR_SYSTEM);
    assert_string_equal(o.c.detail, "127.0.1.16: Connection refused");
    close(listener);
    loop_free(l);
}

static size_t open_files(void) {
    size_t n = 0;
    for (int fd = 0; fd < 256; fd++)
        n += fcntl(fd, F_GETFD) >= 0;
    return n;
}

static void no_more_than_a_few_attempts_go_on_at_once(void **state) {
    static const char *const names[] = {"127.0.2.1", "127.0.2.2", "127.0.2.3", "127.0.2.4",
                                        "127.0.2.5", "127.0.2.6", "127.0.2.7"};
    enum { N = sizeof names / sizeof *names };
    struct loop *l = loop_new();
    struct silent silent[N - 1];
    struct address addresses[N];
    struct outcome o = {.done = false};
    uint16_t port = 0;
    int listener = listen_at(names[N - 1], &port, 8);
    (void)state;
    for (size_t i = 0; i < N; i++)
        addresses[i] = address_of(names[i]);
    for (size_t i = 0; i < N - 1; i++)
        silence_at(names[i], port, &silent[i]);
    size_t before = open_files(), most = 0;
    assert_non_null(connect_start(l, addresses, N, port, NULL, 5000, on_connected, &o));
    for (size_t i = 0; i < 100 && !o.done; i++) {
        turn_for(l, 40);
        most = open_files() - before > most ? open_files() - before : most;
    }
    assert_true(o.done);
    assert_int_equal(o.c.result, 0);
    assert_address(&o.c.address, names[N - 1]);
    assert_int_equal(most, CONNECT_ATTEMPTS_MAX);
    close(o.c.fd);
    for (size_t i = 0; i < N - 1; i++)
        silence_end(&silent[i]);
    close(listener);
    loop_free(l);
}

static void a_cancelled_connect_never_reports(void **state) {
    struct loop *l = loop_new();
    uint16_t port = 0;
    int listener = listen_at("127.0.0.1", &port, 8);
    struct address a = address_of("127.0.0.1");
    struct outcome o = {.done = false};
    char byte;
    (void)state;
    struct connect *c = connect_start(l, &a, 1, port, NULL, 1000, on_connected, &o);
    connect_cancel(c);
    turn_for(l, 50);
    assert_false(o.done);
    int peer = accept(listener, NULL, NULL);
    assert_int_equal(recv(peer, &byte, 1, 0), 0);
    close(peer);
    close(listener);
    loop_free(l);
}

static uint64_t processor_time(void) {
    struct timespec t;
    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t);
    return (uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_nsec;
}

/*
 * What another process holds must not wake this one: the descriptor is closed here while
 * a copy lives on, as after channel_send_fd. Such wakes do not end a turn, but burn time.
 */
static void a_connection_that_was_passed_on_wakes_nobody(void **state) {
    struct loop *l = loop_new();
    uint16_t port = 0;
    int listener = listen_at("127.0.0.1", &port, 8);
    (void)state;
    struct outcome o = dial(l, (const char *const[]){"127.0.0.1", NULL}, port, NULL, 2000);
    int elsewhere = dup(o.c.fd);
    close(o.c.fd);
    uint64_t start = processor_time();
    turn_for(l, 300);
    assert_true(processor_time() - start < 150000000u);
    close(elsewhere);
    close(listener);
    loop_free(l);
}

/* ---- through an HTTP proxy ---- */

struct proxy {
    struct loop *loop;
    int listener, peer;
    struct event *on_accept, *on_request, *on_piece;
    const char *answer;
    bool piecemeal, hang_up;
    size_t sent;
    char request[512];
    size_t n;
};

static void send_piece(evutil_socket_t fd, short what, void *ctx) {
    struct proxy *p = ctx;
    (void)fd;
    (void)what;
    if (p->answer[p->sent])
        assert_int_equal(send(p->peer, p->answer + p->sent++, 1, 0), 1);
}

static void on_request(evutil_socket_t fd, short what, void *ctx) {
    static const struct timeval tick = {0, 1000};
    struct proxy *p = ctx;
    (void)what;
    ssize_t n = recv(fd, p->request + p->n, sizeof p->request - 1 - p->n, 0);
    if (n <= 0) {
        event_del(p->on_request);
        return;
    }
    p->n += (size_t)n;
    if (p->hang_up) {
        shutdown(fd, SHUT_RDWR);
    } else if (p->piecemeal) {
        p->on_piece = event_new(loop_base(p->loop), -1, EV_PERSIST, send_piece, p);
        event_add(p->on_piece, &tick);
    } else if (p->answer) {
        assert_int_equal(send(fd, p->answer, strlen(p->answer), 0), strlen(p->answer));
    }
}

static void on_accept(evutil_socket_t fd, short what, void *ctx) {
    struct proxy *p = ctx;
    (void)what;
    p->peer = accept(fd, NULL, NULL);
    p->on_request = event_new(loop_base(p->loop), p->peer, EV_READ | EV_PERSIST, on_request, p);
    event_add(p->on_request, NULL);
}

static struct outcome dial_through(struct proxy *p, unsigned ms) {
    struct authority target;
    uint16_t port = 0;
    p->loop = loop_new();
    p->listener = listen_at("127.0.0.1", &port, 8);
    p->peer = -1;
    p->on_accept = event_new(loop_base(p->loop), p->listener, EV_READ | EV_PERSIST, on_accept, p);
    event_add(p->on_accept, NULL);
    assert_int_equal(authority_parse(VIEW("api.allowed.test:443"), 0, &target, NULL), 0);
    return dial(p->loop, (const char *const[]){"127.0.0.1", NULL}, port, &target, ms);
}

static void proxy_end(struct proxy *p) {
    struct event *events[] = {p->on_accept, p->on_request, p->on_piece};
    for (size_t i = 0; i < 3; i++)
        if (events[i])
            event_free(events[i]);
    close(p->peer);
    close(p->listener);
    loop_free(p->loop);
}

static void behind_the_head_nothing_is_taken(void **state) {
    static const char *const answers[] = {
        "HTTP/1.1 200 Connection established\r\nVia: 1.1 corp\r\n\r\nfirst bytes",
        "HTTP/1.0 200\r\n\r\nfirst bytes",
    };
    (void)state;
    for (size_t i = 0; i < 4; i++) {
        struct proxy p = {.answer = answers[i % 2], .piecemeal = i >= 2};
        struct outcome o = dial_through(&p, 3000);
        char bytes[32] = "";
        assert_int_equal(o.c.result, 0);
        assert_string_equal(p.request, "CONNECT api.allowed.test:443 HTTP/1.1\r\n"
                                       "Host: api.allowed.test:443\r\n\r\n");
        for (int n = 0;
             n < 30 && recv(o.c.fd, bytes, sizeof bytes - 1, MSG_PEEK | MSG_DONTWAIT) < 11; n++)
            turn_for(p.loop, 100);
        assert_int_equal(recv(o.c.fd, bytes, sizeof bytes - 1, 0), 11);
        assert_string_equal(bytes, "first bytes");
        close(o.c.fd);
        proxy_end(&p);
    }
}

static void what_a_proxy_answers_instead(void **state) {
    static const struct {
        const char *answer, *detail;
        bool hang_up;
        int result;
    } cases[] = {
        {"HTTP/1.1 407 Proxy Authentication Required\r\n\r\n", "the upstream proxy answered 407",
         false, ERR_SYSTEM},
        {"HTTP/1.1 201 Created\r\n\r\n", "the upstream proxy answered 201", false, ERR_SYSTEM},
        {"HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 200 OK\r\n\r\n", "the upstream proxy answered 100",
         false, ERR_SYSTEM},
        {"SSH-2.0-OpenSSH\r\n\r\n", "the upstream proxy's answer is malformed", false, ERR_SYSTEM},
        {"", "the upstream proxy closed the connection", true, ERR_SYSTEM},
        {NULL, "the upstream proxy did not answer in time", false, ERR_TIMEOUT},
        {"HTTP/1.1 200 OK\r\n", "the upstream proxy did not answer in time", false, ERR_TIMEOUT},
    };
    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct proxy p = {.answer = cases[i].answer, .hang_up = cases[i].hang_up};
        struct outcome o = dial_through(&p, 300);
        assert_int_equal(o.c.result, cases[i].result);
        assert_int_equal(o.c.fd, -1);
        assert_string_equal(o.c.detail, cases[i].detail);
        proxy_end(&p);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_connection_is_ready_to_be_passed_on),
        cmocka_unit_test(a_refused_address_makes_way_at_once),
        cmocka_unit_test(a_silent_address_is_overtaken_after_250_ms_and_closed),
        cmocka_unit_test(nobody_answering_is_a_timeout),
        cmocka_unit_test(all_refused_is_a_failure_that_names_the_last),
        cmocka_unit_test(without_descriptors_it_is_not_the_addresses_fault),
        cmocka_unit_test(families_take_turns_and_ipv6_is_first),
        cmocka_unit_test(more_addresses_than_are_dialled_are_left_out),
        cmocka_unit_test(no_more_than_a_few_attempts_go_on_at_once),
        cmocka_unit_test(a_cancelled_connect_never_reports),
        cmocka_unit_test(a_connection_that_was_passed_on_wakes_nobody),
        cmocka_unit_test(behind_the_head_nothing_is_taken),
        cmocka_unit_test(what_a_proxy_answers_instead),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
