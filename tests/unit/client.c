/* Clients without TLS: the states of a connection and of its exchanges. */
#include "tests/unit/proxy_world.h"

#include "policy/reason.h"

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
    assert_int_equal(client_asks(w, fd, GET("/again") "\r\n"), 2);
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
    client_say(w, fd, POST("Content-Length: 40") "half");
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
    uint32_t id = client_asks(w, fd, GET("/") "\r\n");
    egress_answers(w, id, false, 103, FRAMING_NONE, 0);
    client_reads(w, fd, ANSWER("103 Early Hints", "\r\n"));
    egress_answers_all(w, id, false, 200, "ok");
    client_reads(w, fd, ANSWER("200 OK", "Content-Length: 2\r\n\r\nok"));
    id = client_asks(w, old, "GET http://api.test/ HTTP/1.0\r\n\r\n");
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
    client_say(w, fd,
               POST("Transfer-Encoding: chunked") "5;ext=1\r\nhello\r\n6\r\n world\r\n0\r\n"
                                                  "trailer: dropped\r\n\r\n");
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
    client_asks(w, fd, GET("/next") "\r\n");
    close(fd);
}

static void an_answer_until_close_becomes_chunks(void **state) {
    struct world *w = *state;
    int fd = client_dial(w);
    uint32_t id = client_asks(w, fd, GET("/") "\r\n");
    egress_answers(w, id, false, 200, FRAMING_CLOSE, 0);
    egress_says_body(w, id, "x");
    egress_says(w, LANE_ANSWER_END, id);
    client_reads(w, fd, ANSWER("200 OK", "Transfer-Encoding: chunked\r\n\r\n1\r\nx\r\n0\r\n\r\n"));
    close(fd);
}

static void http_1_0_gets_no_chunks_but_the_end_of_the_connection(void **state) {
    struct world *w = *state;
    int fd = client_dial(w);
    uint32_t id = client_asks(w, fd, "GET http://api.test/ HTTP/1.0\r\n\r\n");
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
        uint32_t id = client_asks(w, fd, cases[i].request);
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
    client_say(w, fd, POST("Transfer-Encoding: chunked") "3\r\nabcX" GET("/smuggled") "\r\n");
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
    client_say(w, fd, POST("Transfer-Encoding: chunked"));
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
    client_say(w, fd, POST("Content-Length: 9") "ab");
    egress_hears_request(w);
    egress_hears(w, LANE_BODY);
    close(fd);
    assert_int_equal(egress_hears_reason(w, LANE_GONE), REASON_CLIENT_CLOSED);
}

static void a_client_that_leaves_under_its_answer_is_told_as_gone(void **state) {
    struct world *w = *state;
    int fd = client_dial(w);
    uint32_t id = client_asks(w, fd, GET("/") "\r\n");
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
    uint32_t id = client_asks(w, fd, GET("/chunks") "\r\n");
    egress_answers(w, id, false, 200, FRAMING_CHUNKED, 0);
    egress_says_body(w, id, "part");
    egress_says(w, LANE_ANSWER_CUT, id);
    client_reads(w, fd, ANSWER("200 OK", "Transfer-Encoding: chunked\r\n\r\n4\r\npart\r\n"));
    client_reads_end(w, fd);
    close(fd);
    fd = client_dial(w);
    id = client_asks(w, fd, GET("/length") "\r\n");
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
    uint32_t id = client_asks(w, fd, GET("/") "\r\n");
    egress_answers(w, id, false, 200, FRAMING_LENGTH, 3);
    egress_says_body(w, id, "four");
    client_reads(w, fd, ANSWER("200 OK", "Content-Length: 3\r\n\r\n"));
    client_reads_end(w, fd);
    close(fd);
    fd = client_dial(w);
    id = client_asks(w, fd, GET("/") "\r\n");
    egress_answers(w, id, false, 200, FRAMING_LENGTH, 3);
    egress_says_body(w, id, "tw");
    egress_says(w, LANE_ANSWER_END, id);
    client_reads(w, fd, ANSWER("200 OK", "Content-Length: 3\r\n\r\ntw"));
    client_reads_end(w, fd);
    close(fd);
}

/* ---- the process's end ---- */

static void without_egress_the_process_ends(void **state) {
    struct world *w = *state;
    int fd = client_dial(w);
    client_asks(w, fd, GET("/") "\r\n");
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
    uint32_t id = client_asks(w, busy, GET("/") "\r\n");
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
        uint32_t id = client_asks(w, fd, GET("/") "\r\n");
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
    world_later(w, 86401);
    struct buf text;
    buf_init(&text, 256);
    proxy_status(w->proxy, &text);
    assert_view(buf_view(&text), "\"connections\":0,\"exchanges\":0,\"tunnels\":0,\"leaves\":0");
    buf_free(&text);
}

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
        WITH_WORLD(without_egress_the_process_ends),
        WITH_WORLD(what_egress_may_not_say_ends_the_process),
        WITH_WORLD(what_is_said_to_the_dead_is_ignored),
        WITH_WORLD(a_stop_lets_exchanges_end),
        WITH_WORLD(many_clients_leave_nothing_behind),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
