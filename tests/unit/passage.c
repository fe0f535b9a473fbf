/* Tunnels whose bytes are passed on unread. */
#include "tests/unit/proxy_world.h"

#include "proxy/client.h"

#include <openssl/ssl.h>

enum { WINDOW = 32 * 1024 };

/* What an ordinary client begins with. */
static size_t make_hello(uint8_t *out, size_t size) {
    SSL_CTX *ctx = SSL_CTX_new(TLS_client_method());
    SSL *ssl = SSL_new(ctx);
    BIO *in = BIO_new(BIO_s_mem()), *sent = BIO_new(BIO_s_mem());
    SSL_set_bio(ssl, in, sent);
    SSL_set_tlsext_host_name(ssl, "api.test");
    assert_int_equal(SSL_connect(ssl), -1);
    int n = BIO_read(sent, out, (int)size);
    assert_true(n > 0);
    SSL_free(ssl);
    SSL_CTX_free(ctx);
    return (size_t)n;
}

/* A tunnel that egress has spliced, its ClientHello passed on. */
static int dial_passage(struct world *w, uint32_t *id, size_t *hello_n) {
    uint8_t hello[4096];
    int fd = dial_tunnel(w, id);
    *hello_n = make_hello(hello, sizeof hello);
    client_write(w, fd, hello, *hello_n);
    egress_hears(w, LANE_HELLO);
    egress_hears_nothing(w);
    egress_says_number(w, LANE_SPLICED, *id, WINDOW);
    struct heard *h = egress_hears(w, LANE_RAW);
    assert_int_equal(h->id, *id);
    assert_int_equal(h->n, *hello_n);
    assert_memory_equal(h->bytes, hello, h->n);
    return fd;
}

static void egress_says_back(struct world *w, uint32_t id, size_t n) {
    static const uint8_t bytes[LANE_BODY_MAX];
    channel_send(w->egress, LANE_RAW_BACK, id, 1, view_of(bytes, n));
}

static void the_hello_waits_for_egress_and_is_passed_on_as_it_came(void **state) {
    struct world *w = *state;
    uint32_t id;
    size_t n;
    int fd = dial_passage(w, &id, &n);
    client_say(w, fd, "\x17\x03\x03 no TLS at all");
    assert_view(heard_view(egress_hears(w, LANE_RAW)), "\x17\x03\x03 no TLS at all");
    channel_send(w->egress, LANE_RAW_BACK, id, 1, VIEW("nor this"));
    client_reads(w, fd, "nor this");
    close(fd);
}

static void no_more_is_passed_on_than_egress_has_room_for(void **state) {
    struct world *w = *state;
    static uint8_t much[2 * WINDOW];
    uint32_t id;
    size_t n, heard = 0;
    int fd = dial_passage(w, &id, &n);
    client_write(w, fd, much, sizeof much);
    while (heard < WINDOW - n)
        heard += egress_hears(w, LANE_RAW)->n;
    assert_int_equal(heard, WINDOW - n);
    egress_hears_nothing(w);
    egress_says_number(w, LANE_RAW_TAKEN, id, 1000);
    assert_int_equal(egress_hears(w, LANE_RAW)->n, 1000);
    egress_hears_nothing(w);
    close(fd);
}

static void what_the_client_has_is_told_in_quarters(void **state) {
    struct world *w = *state;
    static uint8_t got[WINDOW];
    uint32_t id;
    size_t n;
    int fd = dial_passage(w, &id, &n);
    egress_says_back(w, id, WINDOW / 4 - 1);
    client_read_bytes(w, fd, got, WINDOW / 4 - 1);
    egress_hears_nothing(w);
    egress_says_back(w, id, 1);
    struct reader r = reader_of(heard_view(egress_hears(w, LANE_RAW_CREDIT)));
    assert_int_equal(read_u32(&r), WINDOW / 4);
    close(fd);
}

/* Its kernel holds so much of an earlier answer that not even the reply to CONNECT finds room. */
static void what_was_said_before_is_not_taken_for_what_egress_sent(void **state) {
    struct world *w = *state;
    static uint8_t much[1 << 20], hello[4096];
    size_t n = 0, hello_n = make_hello(hello, sizeof hello);
    ssize_t put;
    int fd = client_dial(w);
    client_say(w, fd, CONNECT "\r\n");
    uint32_t id = egress_hears(w, LANE_OPEN)->id;
    while ((put = write(w->proxy->clients->wire.fd, much, sizeof much)) > 0)
        n += (size_t)put;
    while ((put = write(w->proxy->clients->wire.fd, much, 1)) > 0)
        n += (size_t)put;
    egress_opens(w, id);
    client_write(w, fd, hello, hello_n);
    egress_hears(w, LANE_HELLO);
    egress_says_number(w, LANE_SPLICED, id, WINDOW);
    egress_hears(w, LANE_RAW);
    egress_says_back(w, id, WINDOW / 4);
    egress_hears_nothing(w);
    client_read_bytes(w, fd, much, n);
    client_reads(w, fd, ESTABLISHED);
    client_read_bytes(w, fd, much, WINDOW / 4);
    struct reader r = reader_of(heard_view(egress_hears(w, LANE_RAW_CREDIT)));
    assert_int_equal(read_u32(&r), WINDOW / 4);
    egress_hears_nothing(w);
    close(fd);
}

static void egress_that_passes_its_credit_ends_the_connection(void **state) {
    struct world *w = *state;
    uint32_t id;
    size_t n;
    int fd = dial_passage(w, &id, &n);
    egress_says_back(w, id, WINDOW);
    egress_says_back(w, id, 1);
    assert_int_equal(egress_hears(w, LANE_CLOSE)->id, id);
    close(fd);
}

static void each_direction_ends_by_itself_and_then_both(void **state) {
    struct world *w = *state;
    uint32_t id;
    size_t n;
    int fd = dial_passage(w, &id, &n);
    channel_send(w->egress, LANE_RAW_BACK, id, 1, VIEW("last"));
    egress_says(w, LANE_RAW_BACK_END, id);
    client_reads(w, fd, "last");
    assert_int_equal(client_reads_end(w, fd), 0);
    client_say(w, fd, "more");
    assert_view(heard_view(egress_hears(w, LANE_RAW)), "more");
    shutdown(fd, SHUT_WR);
    egress_hears(w, LANE_RAW_END);
    egress_hears(w, LANE_CLOSE);
    close(fd);
}

static void the_client_may_end_first_and_still_hear(void **state) {
    struct world *w = *state;
    uint32_t id;
    size_t n;
    int fd = dial_passage(w, &id, &n);
    shutdown(fd, SHUT_WR);
    egress_hears(w, LANE_RAW_END);
    channel_send(w->egress, LANE_RAW_BACK, id, 1, VIEW("answer"));
    client_reads(w, fd, "answer");
    egress_says(w, LANE_RAW_BACK_END, id);
    assert_int_equal(client_reads_end(w, fd), 0);
    egress_hears(w, LANE_CLOSE);
    close(fd);
}

static void a_cut_ends_it_at_once(void **state) {
    struct world *w = *state;
    uint32_t id;
    size_t n;
    int fd = dial_passage(w, &id, &n);
    egress_says(w, LANE_CUT, id);
    client_reads_end(w, fd);
    egress_hears(w, LANE_CLOSE);
    close(fd);
}

static void a_tunnel_that_waits_for_nothing_is_not_spliced(void **state) {
    struct world *w = *state;
    uint32_t id;
    int fd = dial_tunnel(w, &id);
    egress_says_number(w, LANE_SPLICED, id, WINDOW);
    channel_send(w->egress, LANE_RAW_BACK, id, 1, VIEW("x"));
    egress_says_number(w, LANE_RAW_TAKEN, id, 1);
    egress_says(w, LANE_RAW_BACK_END, id);
    client_reads_nothing(w, fd);
    client_say(w, fd, "GET / HTTP/1.1\r\nHost: api.test\r\n\r\n");
    assert_int_equal(egress_hears_request(w)->tunnel, id);
    close(fd);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        WITH_WORLD(the_hello_waits_for_egress_and_is_passed_on_as_it_came),
        WITH_WORLD(no_more_is_passed_on_than_egress_has_room_for),
        WITH_WORLD(what_the_client_has_is_told_in_quarters),
        WITH_WORLD(what_was_said_before_is_not_taken_for_what_egress_sent),
        WITH_WORLD(egress_that_passes_its_credit_ends_the_connection),
        WITH_WORLD(each_direction_ends_by_itself_and_then_both),
        WITH_WORLD(the_client_may_end_first_and_still_hear),
        WITH_WORLD(a_cut_ends_it_at_once),
        WITH_WORLD(a_tunnel_that_waits_for_nothing_is_not_spliced),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
