/* Clients without TLS: the states of a connection and of its exchanges. */
#include "tests/unit/proxy_world.h"

#include "policy/reason.h"
#include "proxy/client.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <sys/resource.h>

#define GET(path) "GET http://api.test" path " HTTP/1.1\r\nHost: api.test\r\n"
#define ANSWER(status, rest) "HTTP/1.1 " status "\r\nx-from: upstream\r\n" rest

/* Asks for path and gives the exchange's id, once egress was told all of it. */
static uint32_t ask(struct world *w, int fd, const char *text) {
    client_say(w, fd, text);
    uint32_t id = egress_hears_request(w)->id;
    assert_int_equal(egress_hears(w, LANE_END)->id, id);
    return id;
}

/* ---- what is told ---- */

static void a_request_is_told_as_facts_and_its_answer_written(void **state) {
    struct world *w = *state;
    int fd = client_dial(w);
    client_say(w, fd, GET("/a?b=c") "Accept: */*\r\nX-Two: 2\r\n\r\n");
    struct told_request *t = egress_hears_request(w);
    assert_int_equal(t->id, 1);
    assert_int_equal(t->tunnel, 0);
    assert_int_equal(t->tls, 0);
    assert_int_equal(t->n_tokens, 0);
    assert_view(t->peer, "127.0.0.1:4711");
    assert_view(t->head.method, "GET");
    assert_int_equal(t->head.form, FORM_ABSOLUTE);
    assert_view(t->head.authority, "api.test");
    assert_view(t->head.target, "/a?b=c");
    assert_int_equal(t->head.fields.n, 2);
    assert_view(t->head.fields.at[1].name, "x-two");
    egress_hears(w, LANE_END);
    egress_answers_all(w, 1, false, 200, "hello");
    client_reads(w, fd, ANSWER("200 OK", "Content-Length: 5\r\n\r\nhello"));
    assert_int_equal(ask(w, fd, GET("/again") "\r\n"), 2);
    close(fd);
}

static void proxy_authorization_is_taken_out_and_counted(void **state) {
    struct world *w = *state;
    int fd = client_dial(w);
    client_say(w, fd,
               GET("/") "Proxy-Authorization: Basic AAA\r\nX: y\r\nProxy-Authorization: Basic "
                        "BBB\r\n\r\n");
    struct told_request *t = egress_hears_request(w);
    assert_int_equal(t->n_tokens, 2);
    assert_view(t->token, "Basic AAA");
    assert_int_equal(t->head.fields.n, 1);
    assert_view(t->head.fields.at[0].name, "x");
    close(fd);
}

static void a_token_that_cannot_be_told_is_refused(void **state) {
    struct world *w = *state;
    int fd = client_dial(w);
    char *long_token = malloc(6000);
    assert_non_null(long_token);
    memset(long_token, 'a', 5999);
    long_token[5999] = 0;
    client_say(w, fd, GET("/") "Proxy-Authorization: Basic ");
    client_say(w, fd, long_token);
    client_say(w, fd, "\r\n\r\n");
    free(long_token);
    struct told_malformed t = egress_hears_malformed(w);
    assert_int_equal(t.reason, REASON_HEAD_TOO_LARGE);
    assert_int_equal(t.bytes.n, 512);
    close(fd);
}

static void any_fragmentation_of_the_input_gives_the_same(void **state) {
    struct world *w = *state;
    int fd = client_dial(w);
    static const char text[] = "POST http://api.test/f HTTP/1.1\r\nHost: api.test\r\n"
                               "Transfer-Encoding: chunked\r\n\r\n3\r\nabc\r\n0\r\nx-t: 1\r\n\r\n";
    for (size_t i = 0; i < sizeof text - 1; i++) {
        client_write(w, fd, text + i, 1);
        world_turn(w);
    }
    assert_int_equal(egress_hears_request(w)->head.framing, FRAMING_CHUNKED);
    assert_view(heard_view(egress_hears(w, LANE_BODY)), "a");
    assert_view(heard_view(egress_hears(w, LANE_BODY)), "b");
    assert_view(heard_view(egress_hears(w, LANE_BODY)), "c");
    egress_hears(w, LANE_END);
    close(fd);
}

/* ---- order ---- */

static void sm_16_pipelined_requests_wait_for_their_turn(void **state) {
    struct world *w = *state;
    int fd = client_dial(w);
    client_say(w, fd, GET("/1") "\r\n" GET("/2") "\r\n" GET("/3") "\r\n");
    assert_view(egress_hears_request(w)->head.target, "/1");
    egress_hears(w, LANE_END);
    egress_hears_nothing(w);
    egress_answers_all(w, 1, false, 200, "one");
    client_reads(w, fd, ANSWER("200 OK", "Content-Length: 3\r\n\r\none"));
    assert_view(egress_hears_request(w)->head.target, "/2");
    egress_hears(w, LANE_END);
    /* The second is denied: what is behind it is never looked at. */
    egress_answers_all(w, 2, true, 403, "no");
    client_reads(w, fd,
                 ANSWER("403 Forbidden", "Content-Length: 2\r\nConnection: close\r\n\r\nno"));
    assert_int_equal(client_reads_end(w, fd), 0);
    egress_hears_nothing(w);
    close(fd);
}

static void sm_17_bytes_behind_connection_close_are_ignored(void **state) {
    struct world *w = *state;
    int fd = client_dial(w);
    client_say(w, fd, GET("/1") "Connection: close\r\n\r\n" GET("/2") "\r\n");
    assert_view(egress_hears_request(w)->head.target, "/1");
    egress_hears(w, LANE_END);
    egress_answers_all(w, 1, false, 200, "one");
    client_reads(w, fd, ANSWER("200 OK", "Content-Length: 3\r\nConnection: close\r\n\r\none"));
    assert_int_equal(client_reads_end(w, fd), 0);
    egress_hears_nothing(w);
    close(fd);
}

static void sm_18_an_answer_before_the_request_is_whole_ends_the_connection(void **state) {
    struct world *w = *state;
    int fd = client_dial(w);
    client_say(
        w, fd,
        "POST http://api.test/ HTTP/1.1\r\nHost: api.test\r\nContent-Length: 40\r\n\r\nhalf");
    uint32_t id = egress_hears_request(w)->id;
    assert_view(heard_view(egress_hears(w, LANE_BODY)), "half");
    egress_answers_all(w, id, false, 200, "early");
    client_reads(w, fd, ANSWER("200 OK", "Content-Length: 5\r\n\r\nearly"));
    egress_hears(w, LANE_GONE);
    assert_int_equal(client_reads_end(w, fd), 0);
    /* What would be read as a request by somebody who forgot the body. */
    client_say(w, fd, "GET http://api.test/smuggled HTTP/1.1\r\nHost: api.test\r\n\r\n");
    egress_hears_nothing(w);
    close(fd);
}

/* ---- 100-continue ---- */

#define EXPECTING                                                                                  \
    "POST http://api.test/ HTTP/1.1\r\nHost: api.test\r\nContent-Length: 4\r\nExpect: "            \
    "100-continue\r\n\r\n"

static void sm_19_100_is_sent_only_after_egress_says_so(void **state) {
    struct world *w = *state;
    int fd = client_dial(w);
    client_say(w, fd, EXPECTING);
    uint32_t id = egress_hears_request(w)->id;
    client_reads_nothing(w, fd);
    egress_says(w, LANE_CONTINUE, id);
    egress_says(w, LANE_CONTINUE, id);
    client_reads(w, fd, "HTTP/1.1 100 Continue\r\n\r\n");
    client_say(w, fd, "body");
    assert_view(heard_view(egress_hears(w, LANE_BODY)), "body");
    egress_hears(w, LANE_END);
    egress_answers_all(w, id, false, 200, "ok");
    client_reads(w, fd, ANSWER("200 OK", "Content-Length: 2\r\n\r\nok"));
    close(fd);
}

static void sm_19_a_refusal_instead_of_100_closes(void **state) {
    struct world *w = *state;
    int fd = client_dial(w);
    client_say(w, fd, EXPECTING);
    egress_answers_all(w, egress_hears_request(w)->id, false, 403, "no");
    client_reads(w, fd,
                 ANSWER("403 Forbidden", "Content-Length: 2\r\nConnection: close\r\n\r\nno"));
    egress_hears(w, LANE_GONE);
    assert_int_equal(client_reads_end(w, fd), 0);
    close(fd);
}

static void sm_19_no_100_when_the_body_is_there_already(void **state) {
    struct world *w = *state;
    int fd = client_dial(w);
    client_say(w, fd, EXPECTING "body");
    uint32_t id = egress_hears_request(w)->id;
    egress_hears(w, LANE_BODY);
    egress_hears(w, LANE_END);
    egress_says(w, LANE_CONTINUE, id);
    egress_answers_all(w, id, false, 200, "ok");
    client_reads(w, fd, ANSWER("200 OK", "Content-Length: 2\r\n\r\nok"));
    close(fd);
}

static void sm_19_another_expectation_is_417(void **state) {
    struct world *w = *state;
    int fd = client_dial(w);
    client_say(w, fd, GET("/") "Expect: banana\r\n\r\n");
    struct told_malformed t = egress_hears_malformed(w);
    assert_int_equal(t.status, 417);
    assert_int_equal(t.reason, REASON_EXPECTATION);
    close(fd);
}

static void interim_answers_are_passed_on_but_not_to_http_1_0(void **state) {
    struct world *w = *state;
    int fd = client_dial(w), old = client_dial(w);
    uint32_t id = ask(w, fd, GET("/") "\r\n");
    egress_answers(w, id, false, 103, FRAMING_NONE, 0);
    client_reads(w, fd, ANSWER("103 Early Hints", "\r\n"));
    egress_answers_all(w, id, false, 200, "ok");
    client_reads(w, fd, ANSWER("200 OK", "Content-Length: 2\r\n\r\nok"));
    id = ask(w, old, "GET http://api.test/ HTTP/1.0\r\n\r\n");
    egress_answers(w, id, false, 103, FRAMING_NONE, 0);
    egress_answers_all(w, id, false, 200, "ok");
    client_reads(w, old, ANSWER("200 OK", "Content-Length: 2\r\nConnection: close\r\n\r\nok"));
    close(fd);
    close(old);
}

/* ---- framing ---- */

static void chunks_go_both_ways(void **state) {
    struct world *w = *state;
    int fd = client_dial(w);
    client_say(
        w, fd,
        "POST http://api.test/ HTTP/1.1\r\nHost: api.test\r\nTransfer-Encoding: chunked\r\n\r\n"
        "5;ext=1\r\nhello\r\n6\r\n world\r\n0\r\ntrailer: dropped\r\n\r\n");
    uint32_t id = egress_hears_request(w)->id;
    assert_view(heard_view(egress_hears(w, LANE_BODY)), "hello");
    assert_view(heard_view(egress_hears(w, LANE_BODY)), " world");
    assert_view(heard_view(egress_hears(w, LANE_END)), "trailer:dropped\n");
    egress_answers(w, id, false, 200, FRAMING_CHUNKED, 0);
    egress_says_body(w, id, "one");
    egress_says_body(w, id, "twotwotwotwotwotwo");
    egress_says(w, LANE_ANSWER_END, id);
    client_reads(w, fd,
                 ANSWER("200 OK", "Transfer-Encoding: chunked\r\n\r\n"
                                  "3\r\none\r\n12\r\ntwotwotwotwotwotwo\r\n0\r\n\r\n"));
    ask(w, fd, GET("/next") "\r\n");
    close(fd);
}

static void an_answer_until_close_becomes_chunks(void **state) {
    struct world *w = *state;
    int fd = client_dial(w);
    uint32_t id = ask(w, fd, GET("/") "\r\n");
    egress_answers(w, id, false, 200, FRAMING_CLOSE, 0);
    egress_says_body(w, id, "x");
    egress_says(w, LANE_ANSWER_END, id);
    client_reads(w, fd, ANSWER("200 OK", "Transfer-Encoding: chunked\r\n\r\n1\r\nx\r\n0\r\n\r\n"));
    close(fd);
}

static void http_1_0_gets_no_chunks_but_the_end_of_the_connection(void **state) {
    struct world *w = *state;
    int fd = client_dial(w);
    uint32_t id = ask(w, fd, "GET http://api.test/ HTTP/1.0\r\n\r\n");
    egress_answers(w, id, false, 200, FRAMING_CHUNKED, 0);
    egress_says_body(w, id, "all");
    egress_says_body(w, id, " of it");
    egress_says(w, LANE_ANSWER_END, id);
    client_reads(w, fd, ANSWER("200 OK", "Connection: close\r\n\r\nall of it"));
    assert_int_equal(client_reads_end(w, fd), 0);
    close(fd);
}

static void answers_to_head_and_204_and_304_have_no_body(void **state) {
    static const struct {
        const char *request;
        uint16_t status;
        enum framing framing;
        uint64_t length;
        const char *answer;
    } cases[] = {
        {"HEAD http://api.test/ HTTP/1.1\r\nHost: api.test\r\n\r\n", 200, FRAMING_LENGTH, 77,
         ANSWER("200 OK", "Content-Length: 77\r\n\r\n")},
        {"HEAD http://api.test/ HTTP/1.1\r\nHost: api.test\r\n\r\n", 200, FRAMING_CHUNKED, 0,
         ANSWER("200 OK", "\r\n")},
        {GET("/") "\r\n", 204, FRAMING_NONE, 0, ANSWER("204 No Content", "\r\n")},
        {GET("/") "\r\n", 304, FRAMING_NONE, 0, ANSWER("304 Not Modified", "\r\n")},
        {GET("/") "\r\n", 200, FRAMING_NONE, 0, ANSWER("200 OK", "Content-Length: 0\r\n\r\n")},
    };
    struct world *w = *state;
    int fd = client_dial(w);
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        uint32_t id = ask(w, fd, cases[i].request);
        egress_answers(w, id, false, cases[i].status, cases[i].framing, cases[i].length);
        egress_says(w, LANE_ANSWER_END, id);
        client_reads(w, fd, cases[i].answer);
        client_reads_nothing(w, fd);
    }
    close(fd);
}

/* ---- malformed ---- */

static void malformed_input_is_reported_answered_and_closed(void **state) {
    static const struct {
        const char *bytes;
        uint16_t status, reason;
    } cases[] = {
        /* CT-15: HTTP/0.9 and HTTP/2 with prior knowledge */
        {"GET /\r\n", 400, REASON_MALFORMED_REQUEST},
        {"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n", 400, REASON_MALFORMED_REQUEST},
        /* CT-11: a PROXY line is garbage */
        {"PROXY TCP4 10.0.0.99 10.0.0.1 1 2\r\n" GET("/") "\r\n", 400, REASON_MALFORMED_REQUEST},
        /* SM-01 */
        {"POST http://api.test/ HTTP/1.1\r\nHost: api.test\r\nContent-Length: 6\r\n"
         "Transfer-Encoding: chunked\r\n\r\n0\r\n\r\nG",
         400, REASON_MALFORMED_REQUEST},
        /* CT-04: CONNECT with a body */
        {"CONNECT api.test:443 HTTP/1.1\r\nHost: api.test:443\r\nContent-Length: 5\r\n\r\nhello",
         400, REASON_MALFORMED_REQUEST},
        /* a reverse proxy's request */
        {"GET / HTTP/1.1\r\nHost: api.test\r\n\r\n", 400, REASON_MALFORMED_REQUEST},
        {"OPTIONS * HTTP/1.1\r\nHost: api.test\r\n\r\n", 400, REASON_MALFORMED_REQUEST},
    };
    struct world *w = *state;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        int fd = client_dial(w);
        client_say(w, fd, cases[i].bytes);
        struct told_malformed t = egress_hears_malformed(w);
        assert_int_equal(t.status, cases[i].status);
        assert_int_equal(t.reason, cases[i].reason);
        assert_int_equal(t.tunnel, 0);
        assert_true(t.bytes.n > 0 && t.detail.n > 0);
        egress_answers_all(w, t.id, true, 400, "why");
        client_reads(
            w, fd, ANSWER("400 Bad Request", "Content-Length: 3\r\nConnection: close\r\n\r\nwhy"));
        assert_int_equal(client_reads_end(w, fd), 0);
        close(fd);
        egress_hears_nothing(w);
    }
}

static void a_body_that_breaks_is_told_and_answered(void **state) {
    struct world *w = *state;
    int fd = client_dial(w);
    client_say(
        w, fd,
        "POST http://api.test/ HTTP/1.1\r\nHost: api.test\r\nTransfer-Encoding: chunked\r\n\r\n"
        "3\r\nabcX" GET("/smuggled") "\r\n");
    uint32_t id = egress_hears_request(w)->id;
    egress_hears(w, LANE_BODY);
    struct heard *h = egress_hears(w, LANE_GONE);
    struct reader r = reader_of(heard_view(h));
    assert_int_equal(h->id, id);
    assert_int_equal(read_u16(&r), REASON_MALFORMED_REQUEST);
    /* One exchange, one record: egress answers on the same id. */
    egress_hears_nothing(w);
    egress_answers_all(w, id, true, 400, "bad");
    client_reads(w, fd,
                 ANSWER("400 Bad Request", "Content-Length: 3\r\nConnection: close\r\n\r\nbad"));
    assert_int_equal(client_reads_end(w, fd), 0);
    egress_hears_nothing(w);
    close(fd);
}

static void a_body_that_breaks_under_an_answer_cuts_it(void **state) {
    struct world *w = *state;
    int fd = client_dial(w);
    client_say(
        w, fd,
        "POST http://api.test/ HTTP/1.1\r\nHost: api.test\r\nTransfer-Encoding: chunked\r\n\r\n");
    uint32_t id = egress_hears_request(w)->id;
    egress_answers(w, id, false, 200, FRAMING_CHUNKED, 0);
    client_reads(w, fd, ANSWER("200 OK", "Transfer-Encoding: chunked\r\n\r\n"));
    client_say(w, fd, "zz\r\n");
    assert_int_equal(egress_hears_reason(w, LANE_GONE), REASON_MALFORMED_REQUEST);
    client_reads_end(w, fd);
    egress_hears_nothing(w);
    close(fd);
}

static void tls_without_connect_is_recorded_and_closed(void **state) {
    struct world *w = *state;
    int fd = client_dial(w);
    client_write(w, fd, "\x16\x03\x01\x00\x05hello", 10);
    struct told_malformed t = egress_hears_malformed(w);
    assert_int_equal(t.reason, REASON_MALFORMED_REQUEST);
    uint8_t alert[7];
    client_read_bytes(w, fd, alert, sizeof alert);
    assert_memory_equal(alert, "\x15\x03\x03\x00\x02\x02\x0a", 7);
    assert_int_equal(client_reads_end(w, fd), 0);
    egress_answers_all(w, t.id, true, 400, "why");
    world_settle(w);
    close(fd);
}

/* ---- ends ---- */

static void a_half_closed_client_gets_its_answer(void **state) {
    struct world *w = *state;
    int fd = client_dial(w);
    client_say(w, fd, GET("/") "\r\n");
    shutdown(fd, SHUT_WR);
    uint32_t id = egress_hears_request(w)->id;
    egress_hears(w, LANE_END);
    egress_hears_nothing(w);
    egress_answers_all(w, id, false, 200, "still");
    client_reads(w, fd, ANSWER("200 OK", "Content-Length: 5\r\n\r\nstill"));
    assert_int_equal(client_reads_end(w, fd), 0);
    close(fd);
}

static void a_client_that_leaves_within_its_body_is_told_as_gone(void **state) {
    struct world *w = *state;
    int fd = client_dial(w);
    client_say(w, fd,
               "POST http://api.test/ HTTP/1.1\r\nHost: api.test\r\nContent-Length: 9\r\n\r\nab");
    egress_hears_request(w);
    egress_hears(w, LANE_BODY);
    close(fd);
    assert_int_equal(egress_hears_reason(w, LANE_GONE), REASON_CLIENT_CLOSED);
}

static void a_client_that_leaves_under_its_answer_is_told_as_gone(void **state) {
    struct world *w = *state;
    int fd = client_dial(w);
    uint32_t id = ask(w, fd, GET("/") "\r\n");
    close(fd);
    world_settle(w);
    egress_answers(w, id, false, 200, FRAMING_CHUNKED, 0);
    assert_int_equal(egress_hears_reason(w, LANE_GONE), REASON_CLIENT_CLOSED);
    egress_says_body(w, id, "nobody reads this");
    egress_says(w, LANE_ANSWER_END, id);
    world_settle(w);
    assert_int_equal(w->proxy->n_clients, 0);
}

static void a_head_that_ends_early_is_refused(void **state) {
    struct world *w = *state;
    int fd = client_dial(w);
    client_say(w, fd, "GET http://api.test/ HTTP/1.1\r\nHost: ap");
    shutdown(fd, SHUT_WR);
    struct told_malformed t = egress_hears_malformed(w);
    assert_int_equal(t.status, 400);
    egress_answers_all(w, t.id, true, 400, "short");
    client_reads(w, fd,
                 ANSWER("400 Bad Request", "Content-Length: 5\r\nConnection: close\r\n\r\nshort"));
    close(fd);
}

static void rs_07_a_cut_answer_never_looks_whole(void **state) {
    struct world *w = *state;
    int fd = client_dial(w);
    uint32_t id = ask(w, fd, GET("/chunks") "\r\n");
    egress_answers(w, id, false, 200, FRAMING_CHUNKED, 0);
    egress_says_body(w, id, "part");
    egress_says(w, LANE_ANSWER_CUT, id);
    client_reads(w, fd, ANSWER("200 OK", "Transfer-Encoding: chunked\r\n\r\n4\r\npart\r\n"));
    client_reads_end(w, fd);
    close(fd);
    fd = client_dial(w);
    id = ask(w, fd, GET("/length") "\r\n");
    egress_answers(w, id, false, 200, FRAMING_LENGTH, 100);
    egress_says_body(w, id, "part");
    egress_says(w, LANE_ANSWER_CUT, id);
    client_reads(w, fd, ANSWER("200 OK", "Content-Length: 100\r\n\r\npart"));
    client_reads_end(w, fd);
    close(fd);
}

static void rs_07_more_or_less_than_the_length_is_cut(void **state) {
    struct world *w = *state;
    int fd = client_dial(w);
    uint32_t id = ask(w, fd, GET("/") "\r\n");
    egress_answers(w, id, false, 200, FRAMING_LENGTH, 3);
    egress_says_body(w, id, "four");
    client_reads(w, fd, ANSWER("200 OK", "Content-Length: 3\r\n\r\n"));
    client_reads_end(w, fd);
    close(fd);
    fd = client_dial(w);
    id = ask(w, fd, GET("/") "\r\n");
    egress_answers(w, id, false, 200, FRAMING_LENGTH, 3);
    egress_says_body(w, id, "tw");
    egress_says(w, LANE_ANSWER_END, id);
    client_reads(w, fd, ANSWER("200 OK", "Content-Length: 3\r\n\r\ntw"));
    client_reads_end(w, fd);
    close(fd);
}

/* ---- back-pressure ---- */

static void a_request_body_stops_at_the_window(void **state) {
    struct world *w = *state;
    int fd = client_dial(w);
    enum { WINDOW = 32 * 1024, TOTAL = 1024 * 1024 };
    w->limits.v[LIMIT_WINDOW] = WINDOW;
    proxy_limit(w->proxy, &w->limits);
    client_say(
        w, fd,
        "PUT http://api.test/ HTTP/1.1\r\nHost: api.test\r\nContent-Length: 1048576\r\n\r\n");
    uint32_t id = egress_hears_request(w)->id;
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

static void credit_comes_back_only_for_what_the_client_has_taken(void **state) {
    struct world *w = *state;
    enum { PIECE = 16 * 1024, TOTAL = 1024 * 1024, WINDOW = 256 * 1024 };
    int fd = client_dial(w);
    uint32_t id = ask(w, fd, GET("/big") "\r\n");
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
    ask(w, fd, GET("/next") "\r\n");
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
    client_say(
        w, fd,
        "POST http://api.test/ HTTP/1.1\r\nHost: api.test\r\nTransfer-Encoding: chunked\r\n\r\n"
        "3\r\nabc\r\n0\r\nx-long: "
        "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa\r\n"
        "x-long: "
        "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa\r\n\r\n");
    egress_hears_request(w);
    egress_hears(w, LANE_BODY);
    egress_hears(w, LANE_END);
    close(fd);
}

/* ---- time: the sweep is told a later now ---- */

static void later(struct world *w, uint64_t seconds) {
    world_settle(w);
    proxy_sweep(w->proxy, loop_now(w->loop) + seconds * SECOND);
    world_settle(w);
}

static void a_client_that_says_nothing_is_closed(void **state) {
    struct world *w = *state;
    int fd = client_dial(w);
    later(w, 28);
    client_reads_nothing(w, fd);
    later(w, 31);
    assert_int_equal(client_reads_end(w, fd), 0);
    egress_hears_nothing(w);
    close(fd);
}

static void an_idle_connection_is_closed(void **state) {
    struct world *w = *state;
    int fd = client_dial(w);
    uint32_t id = ask(w, fd, GET("/") "\r\n");
    egress_answers_all(w, id, false, 200, "");
    client_reads(w, fd, ANSWER("200 OK", "Content-Length: 0\r\n\r\n"));
    later(w, 118);
    client_reads_nothing(w, fd);
    later(w, 121);
    assert_int_equal(client_reads_end(w, fd), 0);
    egress_hears_nothing(w);
    close(fd);
}

static void rx_01_a_slow_head_is_408_however_it_drips(void **state) {
    struct world *w = *state;
    int fd = client_dial(w);
    client_say(w, fd, "GET http://api.test/ HTTP/1.1\r\n");
    later(w, 18);
    client_say(w, fd, "Host: api.test\r\n");
    egress_hears_nothing(w);
    later(w, 21);
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
    client_say(w, fd,
               "POST http://api.test/ HTTP/1.1\r\nHost: api.test\r\nContent-Length: 9\r\n\r\nab");
    egress_hears_request(w);
    egress_hears(w, LANE_BODY);
    later(w, 118);
    egress_hears_nothing(w);
    later(w, 121);
    assert_int_equal(egress_hears_reason(w, LANE_GONE), REASON_REQUEST_TIMEOUT);
    egress_hears_nothing(w);
    close(fd);
}

static void rx_02_a_client_that_waits_for_100_is_not_the_slow_one(void **state) {
    struct world *w = *state;
    int fd = client_dial(w);
    client_say(w, fd, EXPECTING);
    egress_hears_request(w);
    later(w, 500);
    egress_hears_nothing(w);
    close(fd);
}

static void rx_02_time_without_credit_does_not_count(void **state) {
    struct world *w = *state;
    w->limits.v[LIMIT_WINDOW] = 4;
    proxy_limit(w->proxy, &w->limits);
    int fd = client_dial(w);
    client_say(w, fd,
               "POST http://api.test/ HTTP/1.1\r\nHost: api.test\r\nContent-Length: 9\r\n\r\nabcd");
    uint32_t id = egress_hears_request(w)->id;
    egress_hears(w, LANE_BODY);
    w->proxy->limits.v[LIMIT_BODY_STALL] = 0;
    later(w, 0);
    egress_hears_nothing(w);
    w->proxy->limits.v[LIMIT_BODY_STALL] = 120;
    uint64_t before = loop_now(w->loop);
    while (loop_now(w->loop) == before)
        world_turn(w);
    egress_says_number(w, LANE_BODY_CREDIT, id, 4);
    world_settle(w);
    proxy_sweep(w->proxy, before + 120 * SECOND);
    egress_hears_nothing(w);
    later(w, 121);
    assert_int_equal(egress_hears_reason(w, LANE_GONE), REASON_REQUEST_TIMEOUT);
    close(fd);
}

static void rx_02_the_whole_of_an_exchange_is_bounded(void **state) {
    struct world *w = *state;
    w->limits.v[LIMIT_REQUEST_TIME] = 1000;
    proxy_limit(w->proxy, &w->limits);
    int fd = client_dial(w);
    ask(w, fd, GET("/") "\r\n");
    later(w, 998);
    egress_hears_nothing(w);
    later(w, 1001);
    egress_hears(w, LANE_GONE);
    client_reads_end(w, fd);
    close(fd);
}

static void a_client_that_does_not_read_is_dropped(void **state) {
    struct world *w = *state;
    int fd = client_dial(w);
    uint32_t id = ask(w, fd, GET("/") "\r\n");
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
    later(w, 118);
    egress_hears_nothing(w);
    later(w, 121);
    assert_int_equal(egress_hears_reason(w, LANE_GONE), REASON_CLIENT_CLOSED);
    close(fd);
}

/* ---- listeners ---- */

static int listen_unix(struct sockaddr_un *at) {
    int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
    *at = (struct sockaddr_un){.sun_family = AF_UNIX};
    /* An abstract name: nothing to clean up. */
    snprintf(at->sun_path + 1, sizeof at->sun_path - 1, "exeat-test-%d", (int)getpid());
    assert_int_equal(bind(fd, (struct sockaddr *)at, sizeof *at), 0);
    assert_int_equal(listen(fd, 16), 0);
    return fd;
}

static int connect_unix(const struct sockaddr_un *to) {
    int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
    assert_int_equal(connect(fd, (const struct sockaddr *)to, sizeof *to), 0);
    assert_int_equal(fcntl(fd, F_SETFL, O_NONBLOCK), 0);
    return fd;
}

static void nobody_is_let_in_before_the_door_is_opened(void **state) {
    struct sockaddr_un at;
    struct world *w = world_new();
    int listener = listen_unix(&at);
    (void)state;
    world_start(w, &listener, 1);
    int fd = connect_unix(&at);
    client_say(w, fd, GET("/") "\r\n");
    egress_hears_nothing(w);
    assert_int_equal(w->proxy->n_clients, 0);
    proxy_open(w->proxy);
    struct told_request *t = egress_hears_request(w);
    char peer[64];
    snprintf(peer, sizeof peer, "unix uid %u", (unsigned)getuid());
    assert_true(view_equal(t->peer, view_str(peer)));
    close(fd);
    world_free(w);
    close(listener);
}

static void rx_04_accepting_pauses_at_the_limit_and_goes_on(void **state) {
    struct sockaddr_un at;
    struct world *w = world_new();
    int listener = listen_unix(&at), fds[5];
    (void)state;
    w->limits.v[LIMIT_CONNECTIONS] = 2;
    world_start(w, &listener, 1);
    proxy_open(w->proxy);
    for (size_t i = 0; i < 5; i++) {
        fds[i] = connect_unix(&at);
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
    world_free(w);
    close(listener);
}

static void rx_04_a_newcomer_takes_the_place_of_the_one_silent_for_longest(void **state) {
    struct sockaddr_un at;
    struct world *w = world_new();
    int listener = listen_unix(&at), fds[4];
    (void)state;
    w->limits.v[LIMIT_CONNECTIONS] = 2;
    world_start(w, &listener, 1);
    proxy_open(w->proxy);
    for (size_t i = 0; i < 2; i++) {
        fds[i] = connect_unix(&at);
        world_settle(w);
    }
    /* The first has begun to speak: now the second has been silent for longer. */
    client_say(w, fds[0], "GET http");
    world_settle(w);
    fds[2] = connect_unix(&at);
    assert_int_equal(client_reads_end(w, fds[1]), 0);
    assert_int_equal(w->proxy->n_clients, 2);
    uint32_t id = ask(w, fds[2], GET("/") "\r\n");
    fds[3] = connect_unix(&at);
    assert_int_equal(client_reads_end(w, fds[0]), 0);
    client_reads_nothing(w, fds[2]);
    egress_answers_all(w, id, false, 200, "ok");
    client_reads(w, fds[2], ANSWER("200 OK", "Content-Length: 2\r\n\r\nok"));
    for (size_t i = 0; i < 4; i++)
        close(fds[i]);
    world_free(w);
    close(listener);
}

static void rx_04_what_waits_for_a_client_that_does_not_read_yields(void **state) {
    struct world *w = *state;
    int fd = client_dial(w), small = 4096;
    char *body = calloc(1, LANE_BODY_MAX);
    assert_non_null(body);
    memset(body, 'x', LANE_BODY_MAX - 1);
    setsockopt(w->proxy->clients->wire.fd, SOL_SOCKET, SO_SNDBUF, &small, sizeof small);
    uint32_t id = ask(w, fd, GET("/") "\r\n");
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

static void rx_04_without_descriptors_accepting_pauses_without_a_busy_loop(void **state) {
    struct sockaddr_un at;
    struct world *w = world_new();
    struct rlimit before, few;
    int listener = listen_unix(&at), taken[64];
    size_t n = 0;
    (void)state;
    world_start(w, &listener, 1);
    proxy_open(w->proxy);
    int fd = connect_unix(&at);
    int events = event_base_get_num_events(loop_base(w->loop), EVENT_BASE_COUNT_ADDED);
    assert_int_equal(getrlimit(RLIMIT_NOFILE, &before), 0);
    few = (struct rlimit){64, before.rlim_max};
    assert_int_equal(setrlimit(RLIMIT_NOFILE, &few), 0);
    while (n < 64 && (taken[n] = dup(listener)) >= 0)
        n++;
    world_settle(w);
    assert_int_equal(w->proxy->n_clients, 0);
    /* The connection still waits, and no event tells of it. */
    assert_int_equal(event_base_get_num_events(loop_base(w->loop), EVENT_BASE_COUNT_ADDED),
                     events - 1);
    while (n > 0)
        close(taken[--n]);
    assert_int_equal(setrlimit(RLIMIT_NOFILE, &before), 0);
    later(w, 0);
    assert_int_equal(w->proxy->n_clients, 1);
    close(fd);
    world_free(w);
    close(listener);
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
    world_start(w, &listener, 1);
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
    id = ask(w, fd, "GET http://api.test/ HTTP/1.0\r\n\r\n");
    egress_answers(w, id, false, 200, FRAMING_CHUNKED, 0);
    egress_says_body(w, id, "part");
    client_reads(w, fd, ANSWER("200 OK", "Connection: close\r\n\r\npart"));
    later(w, 86401);
    assert_int_equal(client_reads_end(w, fd), ECONNRESET);
    close(fd);
    world_free(w);
    close(listener);
}

/* ---- the process's end ---- */

static void without_egress_the_process_ends(void **state) {
    struct world *w = *state;
    int fd = client_dial(w);
    ask(w, fd, GET("/") "\r\n");
    channel_free(w->egress);
    w->egress = NULL;
    for (int i = 0; i < TURNS && !w->proxy->lost; i++)
        world_turn(w);
    assert_true(w->proxy->lost);
    close(fd);
}

static void what_egress_may_not_say_ends_the_process(void **state) {
    struct world *w = *state;
    channel_send(w->egress, 63, 1, 0, VIEW("nonsense"));
    for (int i = 0; i < TURNS && !w->proxy->lost; i++)
        world_turn(w);
    assert_true(w->proxy->lost);
}

static void what_is_said_to_the_dead_is_ignored(void **state) {
    struct world *w = *state;
    for (uint32_t id = 0; id < 3; id++) {
        egress_answers_all(w, id, false, 200, "x");
        egress_says(w, LANE_ANSWER_CUT, id);
        egress_says(w, LANE_CONTINUE, id);
        egress_says(w, LANE_CUT, id);
        egress_says_number(w, LANE_BODY_CREDIT, id, 77);
    }
    world_settle(w);
    assert_false(w->proxy->lost);
}

static void a_stop_lets_exchanges_end(void **state) {
    struct world *w = *state;
    int idle = client_dial(w), busy = client_dial(w);
    uint32_t id = ask(w, busy, GET("/") "\r\n");
    proxy_stop(w->proxy);
    assert_int_equal(client_reads_end(w, idle), 0);
    close(idle);
    egress_answers_all(w, id, false, 200, "last");
    client_reads(w, busy, ANSWER("200 OK", "Content-Length: 4\r\nConnection: close\r\n\r\nlast"));
    assert_int_equal(client_reads_end(w, busy), 0);
    close(busy);
    for (int i = 0; i < TURNS && w->proxy->n_clients > 0; i++)
        world_turn(w);
    assert_int_equal(w->proxy->n_clients, 0);
}

static void many_clients_leave_nothing_behind(void **state) {
    struct world *w = *state;
    for (int i = 0; i < 300; i++) {
        int fd = client_dial(w);
        uint32_t id = ask(w, fd, GET("/") "\r\n");
        if (i % 3 == 0)
            egress_answers_all(w, id, false, 200, "x");
        if (i % 3 == 1)
            egress_says(w, LANE_ANSWER_CUT, id);
        close(fd);
        world_settle(w);
        while (w->first)
            free(world_pop(w));
    }
    /* Those that were never answered have half-closed and wait. */
    assert_true(w->proxy->n_clients <= 100);
    later(w, 86401);
    struct buf text;
    buf_init(&text, 256);
    proxy_status(w->proxy, &text);
    assert_view(buf_view(&text), "\"connections\":0,\"exchanges\":0,\"tunnels\":0,\"leaves\":0");
    buf_free(&text);
}

#define WITH_WORLD(test) cmocka_unit_test_setup_teardown(test, world_setup, world_teardown)

int main(void) {
    log_open("test", LOG_FATAL);
    const struct CMUnitTest tests[] = {
        WITH_WORLD(a_request_is_told_as_facts_and_its_answer_written),
        WITH_WORLD(proxy_authorization_is_taken_out_and_counted),
        WITH_WORLD(a_token_that_cannot_be_told_is_refused),
        WITH_WORLD(any_fragmentation_of_the_input_gives_the_same),
        WITH_WORLD(sm_16_pipelined_requests_wait_for_their_turn),
        WITH_WORLD(sm_17_bytes_behind_connection_close_are_ignored),
        WITH_WORLD(sm_18_an_answer_before_the_request_is_whole_ends_the_connection),
        WITH_WORLD(sm_19_100_is_sent_only_after_egress_says_so),
        WITH_WORLD(sm_19_a_refusal_instead_of_100_closes),
        WITH_WORLD(sm_19_no_100_when_the_body_is_there_already),
        WITH_WORLD(sm_19_another_expectation_is_417),
        WITH_WORLD(interim_answers_are_passed_on_but_not_to_http_1_0),
        WITH_WORLD(chunks_go_both_ways),
        WITH_WORLD(an_answer_until_close_becomes_chunks),
        WITH_WORLD(http_1_0_gets_no_chunks_but_the_end_of_the_connection),
        WITH_WORLD(answers_to_head_and_204_and_304_have_no_body),
        WITH_WORLD(malformed_input_is_reported_answered_and_closed),
        WITH_WORLD(a_body_that_breaks_is_told_and_answered),
        WITH_WORLD(a_body_that_breaks_under_an_answer_cuts_it),
        WITH_WORLD(tls_without_connect_is_recorded_and_closed),
        WITH_WORLD(a_half_closed_client_gets_its_answer),
        WITH_WORLD(a_client_that_leaves_within_its_body_is_told_as_gone),
        WITH_WORLD(a_client_that_leaves_under_its_answer_is_told_as_gone),
        WITH_WORLD(a_head_that_ends_early_is_refused),
        WITH_WORLD(rs_07_a_cut_answer_never_looks_whole),
        WITH_WORLD(rs_07_more_or_less_than_the_length_is_cut),
        WITH_WORLD(a_request_body_stops_at_the_window),
        WITH_WORLD(credit_comes_back_only_for_what_the_client_has_taken),
        WITH_WORLD(bytes_behind_what_is_judged_are_not_hoarded),
        WITH_WORLD(a_trailer_longer_than_the_credit_does_not_hang),
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
        cmocka_unit_test(rx_04_without_descriptors_accepting_pauses_without_a_busy_loop),
        cmocka_unit_test(rs_07_a_cut_without_framing_is_a_reset),
        WITH_WORLD(without_egress_the_process_ends),
        WITH_WORLD(what_egress_may_not_say_ends_the_process),
        WITH_WORLD(what_is_said_to_the_dead_is_ignored),
        WITH_WORLD(a_stop_lets_exchanges_end),
        WITH_WORLD(many_clients_leave_nothing_behind),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
