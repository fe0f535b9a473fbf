/* Clients without TLS, held to their limits: back-pressure, time, and what a listener lets in. */
#include "tests/unit/proxy_world.h"

#include "policy/reason.h"
#include "proxy/client.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <sys/resource.h>

/* ---- back-pressure ---- */

/* A client that begins to send a body; window: that of each direction. */
static int upload_begin(struct world *w, size_t window, size_t total, uint32_t *id) {
    char head[128];
    int fd = client_dial(w);
    w->limits.v[LIMIT_WINDOW] = window;
    proxy_limit(w->proxy, &w->limits);
    snprintf(head, sizeof head,
             "PUT http://api.test/ HTTP/1.1\r\nHost: api.test\r\nContent-Length: %zu\r\n\r\n",
             total);
    client_say(w, fd, head);
    *id = egress_hears_request(w)->id;
    return fd;
}

static void a_request_body_stops_at_the_window(void **state) {
    struct world *w = *state;
    enum { WINDOW = 32 * 1024, TOTAL = 1024 * 1024 };
    uint32_t id;
    int fd = upload_begin(w, WINDOW, TOTAL, &id);
    uint8_t *sent = malloc(TOTAL);
    assert_non_null(sent);
    for (size_t i = 0; i < TOTAL; i++)
        sent[i] = (uint8_t)(i * 31 >> 3);
    size_t put = 0, got = 0, open = 0;
    while (got < TOTAL) {
        ssize_t n = put < TOTAL ? write(fd, sent + put, TOTAL - put) : 0;
        put += n > 0 ? (size_t)n : 0;
        world_settle(w);
        /* Without credit nothing more comes than the window. */
        for (struct heard *h = world_pop(w); h; h = world_pop(w)) {
            if (h->type == LANE_BODY) {
                assert_memory_equal(h->bytes, sent + got, h->n);
                got += h->n;
                open += h->n;
            } else {
                assert_int_equal(h->type, LANE_END);
                assert_int_equal(got, TOTAL);
            }
            free(h);
        }
        assert_true(open > 0 && open <= WINDOW);
        egress_says_number(w, LANE_BODY_CREDIT, id, (uint32_t)open);
        open = 0;
    }
    free(sent);
    egress_answers_all(w, id, false, 200, "ok");
    client_reads(w, fd, ANSWER("200 OK", "Content-Length: 2\r\n\r\nok"));
    close(fd);
}

/* What egress hears of a body that the client goes on to send, until no more comes. */
static size_t heard_of_body(struct world *w, int fd, size_t *longest) {
    static const uint8_t bytes[256 * 1024];
    size_t n = 0;
    *longest = 0;
    for (int quiet = 0; quiet < 20; quiet++) {
        if (write(fd, bytes, sizeof bytes) > 0)
            quiet = 0;
        world_settle(w);
        for (struct heard *h = world_pop(w); h; h = world_pop(w)) {
            assert_int_equal(h->type, LANE_BODY);
            n += h->n;
            *longest = h->n > *longest ? h->n : *longest;
            free(h);
        }
    }
    return n;
}

static void a_request_body_has_the_window_that_egress_says(void **state) {
    struct world *w = *state;
    enum { WINDOW = 64 * 1024 };
    size_t longest;
    uint32_t id;
    int fd = upload_begin(w, WINDOW, 99999999, &id);
    assert_int_equal(heard_of_body(w, fd, &longest), WINDOW);
    /* Credit beyond the window is none. */
    egress_says_number(w, LANE_BODY_CREDIT, id, 10 * WINDOW);
    assert_int_equal(heard_of_body(w, fd, &longest), WINDOW);
    assert_int_equal(longest, WINDOW / 2);
    egress_says_number(w, LANE_WINDOW, id, 4 * WINDOW);
    egress_says_number(w, LANE_BODY_CREDIT, id, 3 * WINDOW);
    assert_int_equal(heard_of_body(w, fd, &longest), 3 * WINDOW);
    assert_int_equal(longest, 2 * WINDOW);
    egress_says_number(w, LANE_WINDOW, id, WINDOW);
    egress_says_number(w, LANE_BODY_CREDIT, id, 2 * WINDOW);
    assert_int_equal(heard_of_body(w, fd, &longest), WINDOW);
    close(fd);
}

static void credit_comes_back_only_for_what_the_client_has_taken(void **state) {
    struct world *w = *state;
    enum { PIECE = 16 * 1024, TOTAL = 1024 * 1024, WINDOW = 256 * 1024 };
    int fd = client_dial(w);
    uint32_t id = client_asks(w, fd, GET("/big") "\r\n");
    uint8_t piece[PIECE];
    for (size_t i = 0; i < PIECE; i++)
        piece[i] = (uint8_t)(i % 251);
    egress_answers(w, id, false, 200, FRAMING_LENGTH, TOTAL);
    size_t credit = WINDOW, told = 0, taken = 0, head = 0;
    uint8_t *got = malloc(TOTAL + 4096);
    assert_non_null(got);
    for (int i = 0; i < TURNS && taken - head < TOTAL; i++) {
        for (; told < TOTAL && credit >= PIECE; told += PIECE, credit -= PIECE)
            channel_send(w->egress, LANE_ANSWER_BODY, id, 1, view_of(piece, PIECE));
        if (told == TOTAL) {
            egress_says(w, LANE_ANSWER_END, id);
            told++;
        }
        world_settle(w);
        for (struct heard *h = world_pop(w); h; h = world_pop(w)) {
            struct reader r = reader_of(heard_view(h));
            assert_int_equal(h->type, LANE_CREDIT);
            credit += read_u32(&r);
            free(h);
        }
        /* Never more outstanding than was read, the window, and what two kernels hold. */
        assert_true(told <= taken + WINDOW + 512 * 1024);
        assert_true(credit <= WINDOW);
        ssize_t n = i < 20 ? 0 : read(fd, got + taken, TOTAL + 4096 - taken);
        if (n > 0 && !head) {
            head = view_search(view_of(got, (size_t)n), VIEW("\r\n\r\n")) + 4;
        }
        taken += n > 0 ? (size_t)n : 0;
    }
    assert_int_equal(taken - head, TOTAL);
    for (size_t i = 0; i < TOTAL; i++)
        assert_int_equal(got[head + i], i % PIECE % 251);
    free(got);
    client_asks(w, fd, GET("/next") "\r\n");
    close(fd);
}

static void bytes_behind_what_is_judged_are_not_hoarded(void **state) {
    static const char *const beginnings[] = {
        GET("/") "\r\n", "CONNECT api.test:443 HTTP/1.1\r\nHost: api.test:443\r\n\r\n"};
    static const uint8_t flood[64 * 1024];
    struct world *w = *state;
    for (size_t i = 0; i < 2; i++) {
        int fd = client_dial(w);
        client_say(w, fd, beginnings[i]);
        egress_hears(w, i == 0 ? LANE_REQUEST : LANE_OPEN);
        if (i == 0)
            egress_hears(w, LANE_END);
        size_t put = 0;
        for (int k = 0; k < 100; k++) {
            ssize_t n = write(fd, flood, sizeof flood);
            put += n > 0 ? (size_t)n : 0;
            world_settle(w);
        }
        egress_hears_nothing(w);
        assert_true(put < 1024 * 1024);
        close(fd);
        proxy_free(w->proxy);
        channel_free(w->egress);
        world_start(w, NULL, 0);
    }
}

static void a_trailer_longer_than_the_credit_does_not_hang(void **state) {
    struct world *w = *state;
    w->limits.v[LIMIT_WINDOW] = 64;
    proxy_limit(w->proxy, &w->limits);
    int fd = client_dial(w);
    client_say(w, fd,
               POST("Transfer-Encoding: chunked") "3\r\nabc\r\n0\r\nx-long: "
                                                  "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa"
                                                  "aaaaaaaaaaaaaaaa\r\n"
                                                  "x-long: "
                                                  "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa"
                                                  "aaaaaaaaaaaaaaaaaaaaaaaaa\r\n\r\n");
    egress_hears_request(w);
    egress_hears(w, LANE_BODY);
    egress_hears(w, LANE_END);
    close(fd);
}

/* Parsers are used again, and outlive limits. */
static void a_head_may_be_as_long_as_a_newer_limit_permits(void **state) {
    struct world *w = *state;
    enum { LONG = 200 * 1024 };
    static char value[LONG + 1];
    int fd = client_dial(w);
    uint32_t id = client_asks(w, fd, GET("/") "\r\n");
    egress_answers_all(w, id, false, 200, "ok");
    client_reads(w, fd, ANSWER("200 OK", "Content-Length: 2\r\n\r\nok"));
    w->limits.v[LIMIT_HEAD_BYTES] = LONG + 1024;
    proxy_limit(w->proxy, &w->limits);
    memset(value, 'a', LONG);
    client_say(w, fd, GET("/") "x-long: ");
    client_say(w, fd, value);
    client_say(w, fd, "\r\n\r\n");
    struct told_request *t = egress_hears_request(w);
    assert_int_equal(t->head.fields.n, 1);
    assert_int_equal(t->head.fields.at[0].value.n, LONG);
    close(fd);
}

/* ---- time ---- */

static void a_client_that_says_nothing_is_closed(void **state) {
    struct world *w = *state;
    int fd = client_dial(w);
    world_later(w, 28);
    client_reads_nothing(w, fd);
    world_later(w, 31);
    assert_int_equal(client_reads_end(w, fd), 0);
    egress_hears_nothing(w);
    close(fd);
}

static void an_idle_connection_is_closed(void **state) {
    struct world *w = *state;
    int fd = client_dial(w);
    uint32_t id = client_asks(w, fd, GET("/") "\r\n");
    egress_answers_all(w, id, false, 200, "");
    client_reads(w, fd, ANSWER("200 OK", "Content-Length: 0\r\n\r\n"));
    world_later(w, 118);
    client_reads_nothing(w, fd);
    world_later(w, 121);
    assert_int_equal(client_reads_end(w, fd), 0);
    egress_hears_nothing(w);
    close(fd);
}

static void rx_01_a_slow_head_is_408_however_it_drips(void **state) {
    struct world *w = *state;
    int fd = client_dial(w);
    client_say(w, fd, "GET http://api.test/ HTTP/1.1\r\n");
    world_later(w, 18);
    client_say(w, fd, "Host: api.test\r\n");
    egress_hears_nothing(w);
    world_later(w, 21);
    struct told_malformed t = egress_hears_malformed(w);
    assert_int_equal(t.status, 408);
    assert_int_equal(t.reason, REASON_REQUEST_TIMEOUT);
    egress_answers_all(w, t.id, true, 408, "slow");
    client_reads(
        w, fd, ANSWER("408 Request Timeout", "Content-Length: 4\r\nConnection: close\r\n\r\nslow"));
    assert_int_equal(client_reads_end(w, fd), 0);
    close(fd);
}

static void rx_02_a_body_that_stops_is_408(void **state) {
    struct world *w = *state;
    int fd = client_dial(w);
    client_say(w, fd, POST("Content-Length: 9") "ab");
    egress_hears_request(w);
    egress_hears(w, LANE_BODY);
    world_later(w, 118);
    egress_hears_nothing(w);
    world_later(w, 121);
    assert_int_equal(egress_hears_reason(w, LANE_GONE), REASON_REQUEST_TIMEOUT);
    egress_hears_nothing(w);
    close(fd);
}

static void rx_02_a_client_that_waits_for_100_is_not_the_slow_one(void **state) {
    struct world *w = *state;
    int fd = client_dial(w);
    client_say(w, fd, EXPECTING);
    egress_hears_request(w);
    world_later(w, 500);
    egress_hears_nothing(w);
    close(fd);
}

static void rx_02_time_without_credit_does_not_count(void **state) {
    struct world *w = *state;
    w->limits.v[LIMIT_WINDOW] = 4;
    proxy_limit(w->proxy, &w->limits);
    int fd = client_dial(w);
    client_say(w, fd, POST("Content-Length: 9") "abcd");
    uint32_t id = egress_hears_request(w)->id;
    egress_hears(w, LANE_BODY);
    w->proxy->limits.v[LIMIT_BODY_STALL] = 0;
    world_later(w, 0);
    egress_hears_nothing(w);
    w->proxy->limits.v[LIMIT_BODY_STALL] = 120;
    uint64_t before = loop_now(w->loop);
    while (loop_now(w->loop) == before)
        world_turn(w);
    egress_says_number(w, LANE_BODY_CREDIT, id, 4);
    world_settle(w);
    proxy_sweep(w->proxy, before + 120 * SECOND);
    egress_hears_nothing(w);
    world_later(w, 121);
    assert_int_equal(egress_hears_reason(w, LANE_GONE), REASON_REQUEST_TIMEOUT);
    close(fd);
}

static void rx_02_the_whole_of_an_exchange_is_bounded(void **state) {
    struct world *w = *state;
    w->limits.v[LIMIT_REQUEST_TIME] = 1000;
    proxy_limit(w->proxy, &w->limits);
    int fd = client_dial(w);
    client_asks(w, fd, GET("/") "\r\n");
    world_later(w, 998);
    egress_hears_nothing(w);
    world_later(w, 1001);
    egress_hears(w, LANE_GONE);
    client_reads_end(w, fd);
    close(fd);
}

static void a_client_that_does_not_read_is_dropped(void **state) {
    struct world *w = *state;
    int fd = client_dial(w);
    uint32_t id = client_asks(w, fd, GET("/") "\r\n");
    static const uint8_t piece[32 * 1024];
    egress_answers(w, id, false, 200, FRAMING_CHUNKED, 0);
    /* Until a whole window brings no credit: the kernel's buffers are full. */
    size_t open = 0;
    while (open + sizeof piece <= w->limits.v[LIMIT_WINDOW]) {
        channel_send(w->egress, LANE_ANSWER_BODY, id, 1, view_of(piece, sizeof piece));
        open += sizeof piece;
        world_settle(w);
        for (struct heard *h = world_pop(w); h; h = world_pop(w)) {
            struct reader r = reader_of(heard_view(h));
            open -= read_u32(&r);
            free(h);
        }
    }
    world_later(w, 118);
    egress_hears_nothing(w);
    world_later(w, 121);
    assert_int_equal(egress_hears_reason(w, LANE_GONE), REASON_CLIENT_CLOSED);
    close(fd);
}

/* ---- listeners ---- */

/* A world whose clients come through a socket. */
struct door {
    struct world *w;
    struct sockaddr_un at;
    int listener;
};

static struct door door_new(uint64_t connections) {
    struct door d = {.w = world_new(), .at.sun_family = AF_UNIX};
    /* An abstract name: nothing to clean up. */
    snprintf(d.at.sun_path + 1, sizeof d.at.sun_path - 1, "exeat-test-%d", (int)getpid());
    d.listener = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
    assert_int_equal(bind(d.listener, (struct sockaddr *)&d.at, sizeof d.at), 0);
    assert_int_equal(listen(d.listener, 16), 0);
    d.w->limits.v[LIMIT_CONNECTIONS] = connections;
    world_start(d.w, &(struct proxy_listener){.fd = d.listener, .way = WAY_EXPLICIT}, 1);
    return d;
}

static void door_free(struct door *d) {
    world_free(d->w);
    close(d->listener);
}

static int door_knock(const struct door *d) {
    int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
    assert_int_equal(connect(fd, (const struct sockaddr *)&d->at, sizeof d->at), 0);
    assert_int_equal(fcntl(fd, F_SETFL, O_NONBLOCK), 0);
    return fd;
}

static void nobody_is_let_in_before_the_door_is_opened(void **state) {
    struct door d = door_new(100);
    struct world *w = d.w;
    (void)state;
    int fd = door_knock(&d);
    client_say(w, fd, GET("/") "\r\n");
    egress_hears_nothing(w);
    assert_int_equal(w->proxy->n_clients, 0);
    proxy_open(w->proxy);
    struct told_request *t = egress_hears_request(w);
    char peer[64];
    snprintf(peer, sizeof peer, "unix uid %u", (unsigned)getuid());
    assert_true(view_equal(t->peer, view_str(peer)));
    close(fd);
    door_free(&d);
}

static void rx_04_accepting_pauses_at_the_limit_and_goes_on(void **state) {
    struct door d = door_new(2);
    struct world *w = d.w;
    int fds[5];
    (void)state;
    proxy_open(w->proxy);
    for (size_t i = 0; i < 5; i++) {
        fds[i] = door_knock(&d);
        client_say(w, fds[i], GET("/") "\r\n");
    }
    world_settle(w);
    assert_int_equal(w->proxy->n_clients, 2);
    for (size_t i = 0; i < 5; i++) {
        uint32_t id = egress_hears_request(w)->id;
        egress_hears(w, LANE_END);
        egress_answers_all(w, id, true, 200, "");
        client_reads(w, fds[i], ANSWER("200 OK", "Content-Length: 0\r\nConnection: close\r\n\r\n"));
        close(fds[i]);
        world_settle(w);
    }
    assert_int_equal(w->proxy->n_clients, 0);
    door_free(&d);
}

static void rx_04_a_newcomer_takes_the_place_of_the_one_silent_for_longest(void **state) {
    struct door d = door_new(2);
    struct world *w = d.w;
    int fds[4];
    (void)state;
    proxy_open(w->proxy);
    for (size_t i = 0; i < 2; i++) {
        fds[i] = door_knock(&d);
        world_settle(w);
    }
    /* The first has begun to speak: now the second has been silent for longer. */
    client_say(w, fds[0], "GET http");
    world_settle(w);
    fds[2] = door_knock(&d);
    assert_int_equal(client_reads_end(w, fds[1]), 0);
    assert_int_equal(w->proxy->n_clients, 2);
    uint32_t id = client_asks(w, fds[2], GET("/") "\r\n");
    fds[3] = door_knock(&d);
    assert_int_equal(client_reads_end(w, fds[0]), 0);
    client_reads_nothing(w, fds[2]);
    egress_answers_all(w, id, false, 200, "ok");
    client_reads(w, fds[2], ANSWER("200 OK", "Content-Length: 2\r\n\r\nok"));
    for (size_t i = 0; i < 4; i++)
        close(fds[i]);
    door_free(&d);
}

static void rx_04_what_waits_for_a_client_that_does_not_read_yields(void **state) {
    struct world *w = *state;
    int fd = client_dial(w), small = 4096;
    char *body = calloc(1, LANE_BODY_MAX);
    assert_non_null(body);
    memset(body, 'x', LANE_BODY_MAX - 1);
    setsockopt(w->proxy->clients->wire.fd, SOL_SOCKET, SO_SNDBUF, &small, sizeof small);
    uint32_t id = client_asks(w, fd, GET("/") "\r\n");
    assert_true(TAILQ_EMPTY(&w->proxy->yielding));
    egress_answers(w, id, false, 200, FRAMING_LENGTH, LANE_BODY_MAX - 1);
    egress_says_body(w, id, body);
    world_settle(w);
    assert_true(TAILQ_EMPTY(&w->proxy->yielding));
    /* Egress is done with it and counts it no more. */
    egress_says(w, LANE_ANSWER_END, id);
    world_settle(w);
    assert_int_equal(w->proxy->clients->state, CLIENT_EXCHANGE);
    assert_false(TAILQ_EMPTY(&w->proxy->yielding));
    free(body);
    close(fd);
}

static void rx_04_nobody_makes_room_unheard_while_the_lane_is_full(void **state) {
    struct world *w = *state;
    static const uint8_t piece[LANE_BODY_MAX];
    size_t pieces = 0;
    int fd = client_dial(w);
    client_say(w, fd, GET("/") "\r\n");
    for (; !proxy_lane_full(w->proxy); pieces++)
        channel_send(w->proxy->lane, LANE_BODY, 1, 1, view_of(piece, sizeof piece));
    assert_false(client_yield(w->proxy));
    assert_int_equal(w->proxy->n_clients, 1);
    for (; pieces > 0; pieces--)
        egress_hears(w, LANE_BODY);
    /* Now it is looked at, and has a request. */
    assert_false(client_yield(w->proxy));
    egress_hears_request(w);
    close(fd);
}

static void rx_04_without_descriptors_accepting_pauses_without_a_busy_loop(void **state) {
    struct door d = door_new(100);
    struct world *w = d.w;
    struct rlimit before, few;
    int taken[64];
    size_t n = 0;
    (void)state;
    proxy_open(w->proxy);
    int fd = door_knock(&d);
    int events = event_base_get_num_events(loop_base(w->loop), EVENT_BASE_COUNT_ADDED);
    assert_int_equal(getrlimit(RLIMIT_NOFILE, &before), 0);
    few = (struct rlimit){64, before.rlim_max};
    assert_int_equal(setrlimit(RLIMIT_NOFILE, &few), 0);
    while (n < 64 && (taken[n] = dup(d.listener)) >= 0)
        n++;
    world_settle(w);
    assert_int_equal(w->proxy->n_clients, 0);
    /* The connection still waits, and no event tells of it. */
    assert_int_equal(event_base_get_num_events(loop_base(w->loop), EVENT_BASE_COUNT_ADDED),
                     events - 1);
    while (n > 0)
        close(taken[--n]);
    assert_int_equal(setrlimit(RLIMIT_NOFILE, &before), 0);
    world_later(w, 0);
    assert_int_equal(w->proxy->n_clients, 1);
    close(fd);
    door_free(&d);
}

/* As courier hands it over: cookie, peer, the address that was asked, and a question for the root. */
static const char datagram[] = "\0\0\0\1\0\0\0\0\0\0\0\0\x12\x34\1\0\0\1\0\0\0\0\0\0\0\0\1\0\1";

static void rx_04_datagrams_wait_for_a_full_lane_without_a_busy_loop(void **state) {
    static const uint8_t piece[LANE_BODY_MAX];
    struct world *w = world_new();
    size_t pieces = 0;
    int fds[2];
    (void)state;
    assert_int_equal(socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, fds), 0);
    world_start(w, &(struct proxy_listener){.fd = fds[0], .way = WAY_DNS_UDP}, 1);
    int events = event_base_get_num_events(loop_base(w->loop), EVENT_BASE_COUNT_ADDED);
    /* So full that egress' reading in the same turn does not empty it. */
    for (; pieces < 24; pieces++)
        channel_send(w->proxy->lane, LANE_BODY, 1, 1, view_of(piece, sizeof piece));
    assert_true(proxy_lane_full(w->proxy));
    assert_int_equal(write(fds[1], datagram, sizeof datagram - 1), sizeof datagram - 1);
    for (int i = 0; i < TURNS && w->proxy->n_waiting == 0; i++)
        assert_int_equal(event_base_loop(loop_base(w->loop), EVLOOP_ONCE | EVLOOP_NONBLOCK), 0);
    assert_int_equal(w->proxy->n_waiting, 1);
    assert_true(event_base_get_num_events(loop_base(w->loop), EVENT_BASE_COUNT_ADDED) <=
                events + 1);
    for (; pieces > 0; pieces--)
        egress_hears(w, LANE_BODY);
    /* Proxy tries again in some milliseconds, which turns alone may not last. */
    for (int i = 0; !w->first && i < 5000; i++) {
        usleep(1000);
        world_turn(w);
    }
    egress_hears(w, LANE_LOOKUP);
    assert_int_equal(w->proxy->n_waiting, 0);
    close(fds[1]);
    world_free(w);
    close(fds[0]);
}

static void whose_numbers_run_out_drains(void **state) {
    (void)state;
    for (int i = 0; i < 3; i++) {
        struct world *w = world_new();
        world_start(w, NULL, 0);
        uint32_t *last[] = {&w->proxy->last_tunnel, &w->proxy->last_exchange,
                            &w->proxy->last_lookup};
        world_later(w, 1);
        assert_false(w->proxy->stopping);
        *last[i] = UINT32_MAX - (1 << 20);
        proxy_sweep(w->proxy, loop_now(w->loop));
        assert_true(w->proxy->stopping);
        world_free(w);
    }
}

static void rs_07_a_cut_without_framing_is_a_reset(void **state) {
    struct world *w = world_new();
    struct sockaddr_in at = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    socklen_t size = sizeof at;
    int listener = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    (void)state;
    assert_int_equal(bind(listener, (struct sockaddr *)&at, sizeof at), 0);
    assert_int_equal(listen(listener, 4), 0);
    assert_int_equal(getsockname(listener, (struct sockaddr *)&at, &size), 0);
    world_start(w, &(struct proxy_listener){.fd = listener, .way = WAY_EXPLICIT}, 1);
    proxy_open(w->proxy);
    assert_int_equal(connect(fd, (struct sockaddr *)&at, sizeof at), 0);
    assert_int_equal(fcntl(fd, F_SETFL, O_NONBLOCK), 0);
    client_say(w, fd, "GET http://api.test/ HTTP/1.0\r\n\r\n");
    struct told_request *t = egress_hears_request(w);
    assert_true(view_starts(t->peer, VIEW("127.0.0.1:")));
    uint32_t id = t->id;
    egress_hears(w, LANE_END);
    egress_answers(w, id, false, 200, FRAMING_CHUNKED, 0);
    egress_says_body(w, id, "part");
    client_reads(w, fd, ANSWER("200 OK", "Connection: close\r\n\r\npart"));
    egress_says(w, LANE_ANSWER_CUT, id);
    assert_int_equal(client_reads_end(w, fd), ECONNRESET);
    close(fd);
    /* The same when the connection is dropped for another reason. */
    fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    assert_int_equal(connect(fd, (struct sockaddr *)&at, sizeof at), 0);
    assert_int_equal(fcntl(fd, F_SETFL, O_NONBLOCK), 0);
    id = client_asks(w, fd, "GET http://api.test/ HTTP/1.0\r\n\r\n");
    egress_answers(w, id, false, 200, FRAMING_CHUNKED, 0);
    egress_says_body(w, id, "part");
    client_reads(w, fd, ANSWER("200 OK", "Connection: close\r\n\r\npart"));
    world_later(w, 86401);
    assert_int_equal(client_reads_end(w, fd), ECONNRESET);
    close(fd);
    world_free(w);
    close(listener);
}

int main(void) {
    log_open("test", LOG_FATAL);
    const struct CMUnitTest tests[] = {
        WITH_WORLD(a_request_body_stops_at_the_window),
        WITH_WORLD(a_request_body_has_the_window_that_egress_says),
        WITH_WORLD(credit_comes_back_only_for_what_the_client_has_taken),
        WITH_WORLD(bytes_behind_what_is_judged_are_not_hoarded),
        WITH_WORLD(a_trailer_longer_than_the_credit_does_not_hang),
        WITH_WORLD(a_head_may_be_as_long_as_a_newer_limit_permits),
        WITH_WORLD(a_client_that_says_nothing_is_closed),
        WITH_WORLD(an_idle_connection_is_closed),
        WITH_WORLD(rx_01_a_slow_head_is_408_however_it_drips),
        WITH_WORLD(rx_02_a_body_that_stops_is_408),
        WITH_WORLD(rx_02_a_client_that_waits_for_100_is_not_the_slow_one),
        WITH_WORLD(rx_02_time_without_credit_does_not_count),
        WITH_WORLD(rx_02_the_whole_of_an_exchange_is_bounded),
        WITH_WORLD(a_client_that_does_not_read_is_dropped),
        cmocka_unit_test(nobody_is_let_in_before_the_door_is_opened),
        cmocka_unit_test(rx_04_accepting_pauses_at_the_limit_and_goes_on),
        cmocka_unit_test(rx_04_a_newcomer_takes_the_place_of_the_one_silent_for_longest),
        WITH_WORLD(rx_04_what_waits_for_a_client_that_does_not_read_yields),
        WITH_WORLD(rx_04_nobody_makes_room_unheard_while_the_lane_is_full),
        cmocka_unit_test(rx_04_without_descriptors_accepting_pauses_without_a_busy_loop),
        cmocka_unit_test(rx_04_datagrams_wait_for_a_full_lane_without_a_busy_loop),
        cmocka_unit_test(whose_numbers_run_out_drains),
        cmocka_unit_test(rs_07_a_cut_without_framing_is_a_reset),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
