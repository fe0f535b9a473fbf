/*
 * Connections that a relay hands on: its PROXY header comes first, and the client is the one that it tells.
 */
#include "tests/unit/proxy_world.h"

#define SIGNATURE "\r\n\r\n\0\r\nQUIT\n"
#define HEADER SIGNATURE "\x21\x11\x00\x0c\xc0\x00\x02\x07\x0a\x00\x00\x01\x12\x68\x0c\x38"
#define REQUEST GET("/x") "\r\n"

static void the_client_is_the_one_that_the_header_tells(void **state) {
    static const char bytes[] = HEADER REQUEST;
    struct world *w = *state;
    for (size_t piece = 1; piece < sizeof bytes; piece += 9) {
        int fd = relay_dial(w);
        for (size_t i = 0; i < sizeof bytes - 1; i += piece)
            client_write(w, fd, bytes + i,
                         piece < sizeof bytes - 1 - i ? piece : sizeof bytes - 1 - i);
        struct told_request *t = egress_hears_request(w);
        assert_view(t->peer, "192.0.2.7:4712");
        assert_view(t->head.target, "/x");
        uint32_t id = t->id;
        egress_hears(w, LANE_END);
        egress_answers_all(w, id, true, 200, "");
        client_reads(w, fd, "HTTP/1.1 200");
        close(fd);
        world_settle(w);
    }
}

static void a_relay_of_no_client_is_the_client(void **state) {
    static const char bytes[] = SIGNATURE "\x20\x00\x00\x00" REQUEST;
    struct world *w = *state;
    int fd = relay_dial(w);
    client_write(w, fd, bytes, sizeof bytes - 1);
    assert_view(egress_hears_request(w)->peer, "127.0.0.1:4711");
    close(fd);
}

static void refuses(struct world *w, int fd) {
    struct told_malformed t = egress_hears_malformed(w);
    assert_int_equal(t.status, 400);
    assert_int_equal(t.reason, REASON_MALFORMED_REQUEST);
    assert_int_equal(t.bytes.n, 0);
    egress_answers_all(w, t.id, true, 400, "");
    client_reads(w, fd, "HTTP/1.1 400");
    close(fd);
    world_settle(w);
}

static void ct_11_a_relay_without_a_header_is_refused_and_nothing_of_it_recorded(void **state) {
    struct world *w = *state;
    int fd = relay_dial(w);
    client_say(w, fd, REQUEST);
    refuses(w, fd);
    fd = relay_dial(w);
    client_say(w, fd, "\x05\x01\x00");
    refuses(w, fd);
}

static void half_a_header_is_refused_when_no_more_comes(void **state) {
    struct world *w = *state;
    int fd = relay_dial(w);
    client_write(w, fd, HEADER, 20);
    egress_hears_nothing(w);
    shutdown(fd, SHUT_WR);
    refuses(w, fd);
    fd = relay_dial(w);
    client_write(w, fd, HEADER, 20);
    world_later(w, w->limits.v[LIMIT_FIRST_BYTE] + 1);
    refuses(w, fd);
}

static void a_relay_that_only_looks_in_is_no_attempt(void **state) {
    struct world *w = *state;
    close(relay_dial(w));
    egress_hears_nothing(w);
    int fd = relay_dial(w);
    world_later(w, w->limits.v[LIMIT_FIRST_BYTE] + 1);
    assert_int_equal(client_reads_end(w, fd), 0);
    egress_hears_nothing(w);
    assert_int_equal(w->proxy->n_clients, 0);
    close(fd);
}

static void ct_11_a_header_of_somebody_else_is_no_request(void **state) {
    struct world *w = *state;
    int fd = client_dial(w);
    client_write(w, fd, HEADER REQUEST, sizeof HEADER REQUEST - 1);
    struct told_malformed t = egress_hears_malformed(w);
    assert_int_equal(t.status, 400);
    assert_true(view_search(t.detail, VIEW("proxy-protocol")) < t.detail.n);
    close(fd);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        WITH_WORLD(the_client_is_the_one_that_the_header_tells),
        WITH_WORLD(a_relay_of_no_client_is_the_client),
        WITH_WORLD(ct_11_a_relay_without_a_header_is_refused_and_nothing_of_it_recorded),
        WITH_WORLD(half_a_header_is_refused_when_no_more_comes),
        WITH_WORLD(a_relay_that_only_looks_in_is_no_attempt),
        WITH_WORLD(ct_11_a_header_of_somebody_else_is_no_request),
    };
    log_open("test", LOG_FATAL);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
