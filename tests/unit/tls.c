/* TLS between our ends: the server, sessions, the stream, and the rights of a role. */
#include "tests/unit/tls_ends.h"

#include <fcntl.h>
#include <seccomp.h>
#include <sys/wait.h>
#include <time.h>

/* ---- our server ---- */

static void test_our_ends_speak_tls_1_3_with_each_other(void **state) {
    (void)state;
    struct ends e;
    open_ends(&e, NAME, NULL);
    assert_true(shake(e.c, e.s));
    assert_string_equal(tls_version(e.c), "TLSv1.3");
    assert_false(tls_resumed(e.c));
    assert_false(tls_resumed(e.s));
    say_hello(&e);
    close_ends(&e);
}

static void test_ct_05_a_hello_read_before_may_be_cut_anywhere(void **state) {
    (void)state;
    size_t size = 1;
    for (size_t n = 0; n <= size; n++) {
        uint8_t first[4096];
        struct ends e;
        make_pair(e.fd);
        e.c = tls_connect(client, e.fd[0], NAME, NO_ADDRESS, NULL, NULL);
        assert_int_equal(tls_handshake(e.c), TLS_WANT_READ);
        size = (size_t)recv(e.fd[1], first, sizeof first, MSG_PEEK);
        if (n > 0)
            assert_int_equal(read(e.fd[1], first, n), n);
        e.s = tls_accept(server, e.fd[1], leaf, NAME, view_of(first, n));
        if (!shake(e.c, e.s))
            fail_msg("cut at %zu: %s, %s", n, tls_error(e.c), tls_error(e.s));
        say_hello(&e);
        close_ends(&e);
    }
    assert_true(size > 200);
}

static void test_tu_09_protocols_of_clients(void **state) {
    (void)state;
    static const struct {
        const char *offer;
        const char *chosen; /* NULL: refused */
    } cases[] = {
        {"", ""},
        {"\x08http/1.1", "http/1.1"},
        {"\x02h2\x08http/1.1", "http/1.1"},
        {"\x02h2", NULL},
        {"\x08http/1.0", NULL},
        {"\x03"
         "foo",
         NULL},
    };
    for (size_t i = 0; i < COUNT(cases); i++) {
        int fd[2];
        struct peer p;
        make_pair(fd);
        peer_new(&p, TLS_client_method(), fd[0]);
        SSL_set_connect_state(p.ssl);
        if (cases[i].offer[0])
            SSL_set_alpn_protos(p.ssl, (const uint8_t *)cases[i].offer,
                                (unsigned)strlen(cases[i].offer));
        struct tls *t = tls_accept(server, fd[1], leaf, NAME, NO_ADDRESS);
        enum tls_result r = shake_with_peer(t, &p);
        assert_int_equal(r, cases[i].chosen ? TLS_DONE : TLS_FAILED);
        const unsigned char *name;
        unsigned n;
        SSL_get0_alpn_selected(p.ssl, &name, &n);
        assert_true(view_equal(view_of(name, n), view_str(cases[i].chosen)));
        if (!cases[i].chosen) {
            assert_int_equal(peer_shake(&p), -1);
            assert_int_equal(ERR_GET_REASON(ERR_peek_error()),
                             SSL_R_TLSV1_ALERT_NO_APPLICATION_PROTOCOL);
        }
        tls_free(t);
        peer_free(&p);
        close_pair(fd);
    }
}

static void test_our_server_refuses_old_versions_and_renegotiation(void **state) {
    (void)state;
    static const int versions[] = {TLS1_1_VERSION, TLS1_2_VERSION};
    for (size_t i = 0; i < COUNT(versions); i++) {
        int fd[2];
        struct peer p;
        uint8_t byte;
        size_t n;
        make_pair(fd);
        peer_new(&p, TLS_client_method(), -1);
        SSL_CTX_set_max_proto_version(p.ctx, versions[i]);
        SSL_CTX_set_cipher_list(p.ctx, "ALL:@SECLEVEL=0");
        peer_start(&p, fd[0]);
        SSL_set_connect_state(p.ssl);
        struct tls *t = tls_accept(server, fd[1], leaf, NAME, NO_ADDRESS);
        enum tls_result r = shake_with_peer(t, &p);
        assert_int_equal(r, i == 0 ? TLS_FAILED : TLS_DONE);
        if (r == TLS_DONE) {
            SSL_renegotiate(p.ssl);
            assert_int_equal(peer_shake(&p), 0);
            assert_int_equal(tls_read(t, &byte, 1, &n), TLS_WANT_READ);
            assert_int_equal(peer_shake(&p), -1);
        }
        tls_free(t);
        peer_free(&p);
        close_pair(fd);
    }
}

static void test_a_leaf_is_der_and_for_our_key(void **state) {
    (void)state;
    struct buf der;
    buf_init(&der, 65536);
    put_der(&der, &root);
    struct view v = buf_view(&der);
    struct tls_leaf *foreign = tls_leaf_new(v, v);
    assert_non_null(foreign);
    assert_null(tls_accept(server, 0, foreign, NAME, NO_ADDRESS));
    tls_leaf_free(foreign);
    assert_null(tls_leaf_new(NO_ADDRESS, v));
    assert_null(tls_leaf_new(view_head(v, v.n - 1), NO_ADDRESS));
    assert_null(tls_leaf_new(v, view_head(v, v.n - 1)));
    assert_null(tls_leaf_new(VIEW("x"), NO_ADDRESS));
    for (int i = 0; i < 9; i++)
        put_der(&der, &root);
    v = buf_view(&der);
    assert_null(tls_leaf_new(v, NO_ADDRESS)); /* bytes behind the leaf */
    assert_null(tls_leaf_new(view_head(v, v.n / 10), v));
    buf_free(&der);
}

/* ---- sessions ---- */

static struct tls_session *session_from(const char *name, struct tls_session *offered,
                                        bool resumes) {
    struct ends e;
    open_ends(&e, name, offered);
    assert_true(shake(e.c, e.s));
    say_hello(&e);
    assert_int_equal(tls_resumed(e.c), resumes);
    assert_int_equal(tls_resumed(e.s), resumes);
    struct tls_session *s = tls_take_session(e.c);
    assert_non_null(s);
    assert_null(tls_take_session(e.c));
    close_ends(&e);
    return s;
}

static void test_sessions_resume_as_often_as_they_are_offered(void **state) {
    (void)state;
    struct tls_session *first = session_from(NAME, NULL, false);
    for (int i = 0; i < 3; i++) {
        struct tls_session *next = session_from(NAME, first, true);
        tls_session_free(next);
    }
    tls_session_free(first);
}

static uint64_t end_of(const struct tls_session *s) {
    uint64_t now = (uint64_t)time(NULL), at = now;
    while (tls_session_fresh(s, at) && at < now + 2 * 3600)
        at++;
    return at;
}

static void test_a_session_ends_an_hour_after_the_certificate_was_verified(void **state) {
    (void)state;
    uint64_t now = (uint64_t)time(NULL);
    struct tls_session *first = session_from(NAME, NULL, false);
    uint64_t end = end_of(first);
    assert_true(end >= now + 3600 && end <= now + 3602);
    sleep(1);
    struct tls_session *second = session_from(NAME, first, true);
    assert_int_equal(end_of(second), end);
    tls_session_free(first);
    tls_session_free(second);
}

static void test_a_session_ends_with_the_certificate(void **state) {
    (void)state;
    struct tls_leaf *usual = leaf;
    uint64_t now = (uint64_t)time(NULL);
    leaf = our_leaf(600);
    struct tls_session *s = session_from(NAME, NULL, false);
    uint64_t end = end_of(s);
    assert_true(end >= now + 599 && end <= now + 602);
    tls_session_free(s);
    tls_leaf_free(leaf);
    leaf = usual;
}

/* Bytes of the hello that our client sends. */
static size_t hello_size(const char *name, const uint8_t *pin, struct tls_session *session) {
    uint8_t bytes[8192];
    int fd[2];
    make_pair(fd);
    struct tls *t = tls_connect(client, fd[0], name, NO_ADDRESS, pin, session);
    assert_int_equal(tls_handshake(t), TLS_WANT_READ);
    ssize_t n = read(fd[1], bytes, sizeof bytes);
    tls_free(t);
    close_pair(fd);
    return n > 0 ? (size_t)n : 0;
}

static void test_a_session_of_one_name_or_pin_is_not_offered_to_another(void **state) {
    (void)state;
    static const uint8_t pin[TLS_PIN_SIZE] = {1};
    struct tls_session *first = session_from(NAME, NULL, false);
    assert_true(hello_size(NAME, NULL, first) > hello_size(NAME, NULL, NULL));
    assert_int_equal(hello_size("b.test", NULL, first), hello_size("b.test", NULL, NULL));
    assert_int_equal(hello_size(NAME, pin, first), hello_size(NAME, NULL, NULL));
    struct tls_session *other = session_from("b.test", first, false);
    tls_session_free(first);
    tls_session_free(other);
}

static SSL_SESSION *last_session;

static int keep(SSL *ssl, SSL_SESSION *session) {
    (void)ssl;
    SSL_SESSION_free(last_session);
    last_session = SSL_SESSION_dup(session);
    return 0;
}

/* A client that offers any ticket anywhere; whether our server resumed. */
static bool resumes_at(const char *name, const char *sni, SSL_SESSION *session, int version) {
    int fd[2];
    struct peer p;
    uint8_t byte;
    size_t n;
    make_pair(fd);
    peer_new(&p, TLS_client_method(), -1);
    SSL_CTX_set_max_proto_version(p.ctx, version);
    SSL_CTX_set_session_cache_mode(p.ctx, SSL_SESS_CACHE_CLIENT);
    SSL_CTX_sess_set_new_cb(p.ctx, keep);
    peer_start(&p, fd[0]);
    SSL_set_connect_state(p.ssl);
    SSL_set_tlsext_host_name(p.ssl, sni);
    if (session) {
        SSL_SESSION *copy = SSL_SESSION_dup(session);
        SSL_set_session(p.ssl, copy);
        SSL_SESSION_free(copy);
    }
    struct tls *t = tls_accept(server, fd[1], leaf, name, NO_ADDRESS);
    assert_int_equal(shake_with_peer(t, &p), TLS_DONE);
    assert_int_equal(tls_write(t, VIEW("x"), &n), TLS_DONE);
    assert_int_equal(SSL_read(p.ssl, &byte, 1), 1);
    bool resumed = tls_resumed(t);
    tls_free(t);
    peer_free(&p);
    close_pair(fd);
    return resumed;
}

static void test_a_ticket_of_one_name_does_not_resume_under_another(void **state) {
    (void)state;
    static const int versions[] = {TLS1_2_VERSION, TLS1_3_VERSION};
    for (size_t i = 0; i < COUNT(versions); i++) {
        int v = versions[i];
        assert_false(resumes_at(NAME, NAME, NULL, v));
        SSL_SESSION *s = last_session;
        last_session = NULL;
        assert_non_null(s);
        assert_true(resumes_at(NAME, NAME, s, v));
        assert_false(resumes_at("b.test", NAME, s, v));
        assert_false(resumes_at("b.test", "b.test", s, v));
        assert_true(resumes_at(NAME, NAME, s, v));
        SSL_SESSION_free(s);
    }
    SSL_SESSION_free(last_session);
    last_session = NULL;
}

static void test_our_client_resumes_tls_1_2_as_well(void **state) {
    (void)state;
    struct tls_session *session = NULL;
    struct peer p;
    peer_new(&p, TLS_server_method(), -1);
    SSL_CTX_set_max_proto_version(p.ctx, TLS1_2_VERSION);
    server_identity(&p);
    for (int i = 0; i < 3; i++) {
        int fd[2];
        make_pair(fd);
        peer_start(&p, fd[1]);
        SSL_set_accept_state(p.ssl);
        struct tls *t = tls_connect(client, fd[0], NAME, NO_ADDRESS, NULL, session);
        assert_int_equal(shake_with_peer(t, &p), TLS_DONE);
        assert_int_equal(tls_resumed(t), i > 0);
        if (i == 0)
            session = tls_take_session(t);
        assert_non_null(session);
        tls_free(t);
        SSL_free(p.ssl);
        p.ssl = NULL;
        close_pair(fd);
    }
    tls_session_free(session);
    peer_free(&p);
}

/* ---- the stream ---- */

static void test_half_of_a_connection_can_be_closed(void **state) {
    (void)state;
    struct ends e;
    uint8_t got[8];
    size_t n;
    open_ends(&e, NAME, NULL);
    assert_true(shake(e.c, e.s));
    tls_shutdown(e.c);
    assert_int_equal(tls_read(e.s, got, sizeof got, &n), TLS_EOF);
    assert_int_equal(tls_read(e.s, got, sizeof got, &n), TLS_EOF);
    assert_int_equal(tls_write(e.s, VIEW("late"), &n), TLS_DONE);
    assert_int_equal(tls_read(e.c, got, sizeof got, &n), TLS_DONE);
    assert_true(view_equal(view_of(got, n), VIEW("late")));
    tls_shutdown(e.s);
    assert_int_equal(tls_read(e.c, got, sizeof got, &n), TLS_EOF);
    close_ends(&e);
}

static void test_rs_07_a_cut_is_told_from_an_end(void **state) {
    (void)state;
    struct ends e;
    uint8_t got[8];
    size_t n;
    open_ends(&e, NAME, NULL);
    assert_true(shake(e.c, e.s));
    assert_int_equal(tls_write(e.s, VIEW("half"), &n), TLS_DONE);
    close(e.fd[1]);
    e.fd[1] = -1;
    assert_int_equal(tls_read(e.c, got, sizeof got, &n), TLS_DONE);
    assert_int_equal(n, 4);
    assert_int_equal(tls_read(e.c, got, sizeof got, &n), TLS_CUT);
    assert_int_equal(tls_read(e.c, got, sizeof got, &n), TLS_CUT);
    assert_int_equal(tls_write(e.c, VIEW("x"), &n), TLS_CUT);
    close_ends(&e);
}

static void test_writing_to_a_peer_that_left_is_a_cut(void **state) {
    (void)state;
    struct ends e;
    size_t n;
    open_ends(&e, NAME, NULL);
    assert_true(shake(e.c, e.s));
    close(e.fd[1]);
    e.fd[1] = -1;
    assert_int_equal(tls_write(e.c, VIEW("x"), &n), TLS_CUT);
    close_ends(&e);
}

static void test_a_changed_byte_on_the_wire_fails(void **state) {
    (void)state;
    struct ends e;
    uint8_t wire[256], got[8];
    size_t n;
    open_ends(&e, NAME, NULL);
    assert_true(shake(e.c, e.s));
    say_hello(&e);
    assert_int_equal(tls_write(e.c, VIEW("hello"), &n), TLS_DONE);
    ssize_t size = read(e.fd[1], wire, sizeof wire);
    wire[size - 1] ^= 1;
    assert_int_equal(write(e.fd[0], wire, (size_t)size), size);
    assert_int_equal(tls_read(e.s, got, sizeof got, &n), TLS_FAILED);
    assert_int_equal(n, 0);
    close_ends(&e);
}

static void test_eight_full_records_are_fetched_at_once(void **state) {
    (void)state;
    static uint8_t sent[8 * 16 * 1024], got[sizeof sent];
    struct ends e;
    size_t n;
    open_ends(&e, NAME, NULL);
    assert_true(shake(e.c, e.s));
    /* The records behind the handshake; then the buffer is empty. */
    assert_int_equal(tls_read(e.c, got, sizeof got, &n), TLS_WANT_READ);
    assert_int_equal(tls_write(e.s, view_of(sent, sizeof sent), &n), TLS_DONE);
    assert_int_equal(n, sizeof sent);
    assert_int_equal(tls_read(e.c, got, sizeof got, &n), TLS_DONE);
    assert_int_equal(recv(e.fd[0], got, 1, MSG_PEEK | MSG_DONTWAIT), -1);
    close_ends(&e);
}

static void test_what_waits_inside_is_told(void **state) {
    (void)state;
    struct ends e;
    uint8_t got[4];
    size_t n;
    open_ends(&e, NAME, NULL);
    assert_true(shake(e.c, e.s));
    for (int i = 0; i < 3; i++)
        assert_int_equal(tls_write(e.s, VIEW("12345678"), &n), TLS_DONE);
    /* One read of the socket brings all three records. */
    for (int i = 0; i < 6; i++) {
        assert_int_equal(tls_read(e.c, got, sizeof got, &n), TLS_DONE);
        assert_int_equal(n, 4);
        assert_int_equal(tls_pending(e.c), i < 5);
    }
    assert_int_equal(tls_read(e.c, got, sizeof got, &n), TLS_WANT_READ);
    assert_false(tls_pending(e.c));
    /* Half a record inside is nothing to read. */
    uint8_t wire[256];
    assert_int_equal(tls_write(e.s, VIEW("12345678"), &n), TLS_DONE);
    ssize_t size = read(e.fd[0], wire, sizeof wire);
    assert_int_equal(write(e.fd[1], wire, 10), 10);
    assert_int_equal(tls_read(e.c, got, sizeof got, &n), TLS_WANT_READ);
    assert_false(tls_pending(e.c));
    assert_int_equal(write(e.fd[1], wire + 10, (size_t)size - 10), size - 10);
    assert_int_equal(tls_read(e.c, got, sizeof got, &n), TLS_DONE);
    assert_true(tls_pending(e.c));
    close_ends(&e);
}

static void assert_says(struct tls *t, const char *text) {
    uint8_t got[16];
    size_t n;
    assert_int_equal(tls_read(t, got, sizeof got, &n), TLS_DONE);
    assert_int_equal(n, strlen(text));
    assert_memory_equal(got, text, n);
}

static void send_three(struct ends *e, const char *const texts[3]) {
    size_t n;
    for (int i = 0; i < 3; i++)
        assert_int_equal(tls_write(e->s, view_str(texts[i]), &n), TLS_DONE);
}

static void test_what_one_connection_has_fetched_outlasts_another_one_that_reads(void **state) {
    (void)state;
    struct ends a, b;
    open_ends(&a, NAME, NULL);
    open_ends(&b, NAME, NULL);
    assert_true(shake(a.c, a.s));
    assert_true(shake(b.c, b.s));
    send_three(&a, (const char *const[]){"one", "two", "three"});
    send_three(&b, (const char *const[]){"red", "green", "blue"});
    assert_says(a.c, "one");
    assert_says(b.c, "red");
    assert_true(tls_pending(a.c));
    assert_says(a.c, "two");
    assert_says(b.c, "green");
    /* One that has fetched may go. */
    tls_free(b.c);
    b.c = NULL;
    assert_says(a.c, "three");
    assert_false(tls_pending(a.c));
    send_three(&a, (const char *const[]){"four", "five", "six"});
    assert_says(a.c, "four");
    assert_true(tls_pending(a.c));
    close_ends(&a);
    close_ends(&b);
}

/* One direction of a large transfer, in pieces of odd sizes. */
struct flow {
    struct tls *from, *to;
    size_t sent, got;
    size_t offered; /* how far a write went that was not taken whole */
    unsigned odd;
};

enum { FLOW_SIZE = 5 << 20 };

static uint8_t byte_at(size_t i) {
    return (uint8_t)(i * 7 + (i >> 11));
}

/* After a refusal the same bytes come again, and perhaps more. */
static void flow_send(struct flow *f, uint8_t *scratch) {
    size_t n, end = f->sent + 1 + f->odd % 60000;
    if (end < f->offered)
        end = f->offered;
    if (end > FLOW_SIZE)
        end = FLOW_SIZE;
    if (end == f->sent)
        return;
    for (size_t i = f->sent; i < end; i++)
        scratch[i - f->sent] = byte_at(i);
    enum tls_result r = tls_write(f->from, view_of(scratch, end - f->sent), &n);
    if (r == TLS_DONE ? n == 0 : r != TLS_WANT_WRITE || n > 0)
        fail_msg("write: %d, %zu, %s", r, n, tls_error(f->from));
    f->offered = end;
    f->sent += n;
}

static void flow_take(struct flow *f, uint8_t *scratch) {
    size_t n, want = 1 + f->odd % 40000;
    enum tls_result r = tls_read(f->to, scratch, want, &n);
    if (r == TLS_WANT_READ)
        return;
    assert_int_equal(r, TLS_DONE);
    for (size_t i = 0; i < n; i++)
        if (scratch[i] != byte_at(f->got + i))
            fail_msg("byte %zu", f->got + i);
    f->got += n;
}

static void test_large_transfers_go_both_ways_at_once(void **state) {
    (void)state;
    static uint8_t scratch[65536];
    struct ends e;
    open_ends(&e, NAME, NULL);
    int small = 8192;
    for (int i = 0; i < 2; i++)
        setsockopt(e.fd[i], SOL_SOCKET, SO_SNDBUF, &small, sizeof small);
    assert_true(shake(e.c, e.s));
    struct flow up = {.from = e.c, .to = e.s}, down = {.from = e.s, .to = e.c};
    for (int i = 0; i < TURNS && (up.got < FLOW_SIZE || down.got < FLOW_SIZE); i++) {
        up.odd = (unsigned)i * 40503;
        down.odd = (unsigned)i * 60493;
        flow_send(&up, scratch);
        flow_send(&down, scratch);
        flow_take(&up, scratch);
        flow_take(&down, scratch);
    }
    assert_int_equal(up.got, FLOW_SIZE);
    assert_int_equal(down.got, FLOW_SIZE);
    close_ends(&e);
}

/* ---- the rights of a role ---- */

/* Runs in a process of its own, from the beginning: 0 when a handshake goes without these calls. */
static int be_narrow(void) {
    static const int forbidden[] = {SCMP_SYS(open),     SCMP_SYS(openat),  SCMP_SYS(newfstatat),
                                    SCMP_SYS(sendto),   SCMP_SYS(sendmsg), SCMP_SYS(recvmsg),
                                    SCMP_SYS(recvfrom), SCMP_SYS(connect)};
    struct ends e;
    if (tls_start() != 0)
        return 1;
    make_pair(e.fd);
    scmp_filter_ctx filter = seccomp_init(SCMP_ACT_ALLOW);
    for (size_t i = 0; i < COUNT(forbidden); i++)
        if (seccomp_rule_add(filter, SCMP_ACT_KILL_PROCESS, forbidden[i], 0) != 0)
            return 2;
    if (seccomp_load(filter) != 0)
        return 3;
    if (ends_setup(NULL) != 0)
        return 4;
    e.c = tls_connect(client, e.fd[0], NAME, NO_ADDRESS, NULL, NULL);
    e.s = tls_accept(server, e.fd[1], leaf, NAME, NO_ADDRESS);
    return shake(e.c, e.s) ? 0 : 5;
}

static void test_no_file_is_opened_once_tls_was_started(void **state) {
    (void)state;
    int status;
    pid_t pid = fork();
    if (pid == 0) {
        execl("/proc/self/exe", "tls", "narrow", (char *)NULL);
        _exit(6);
    }
    assert_int_equal(waitpid(pid, &status, 0), pid);
    assert_int_equal(status, 0);
}

int main(int argc, char **argv) {
    if (argc == 2 && strcmp(argv[1], "narrow") == 0)
        _exit(be_narrow());
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_our_ends_speak_tls_1_3_with_each_other),
        cmocka_unit_test(test_ct_05_a_hello_read_before_may_be_cut_anywhere),
        cmocka_unit_test(test_tu_09_protocols_of_clients),
        cmocka_unit_test(test_our_server_refuses_old_versions_and_renegotiation),
        cmocka_unit_test(test_a_leaf_is_der_and_for_our_key),
        cmocka_unit_test(test_sessions_resume_as_often_as_they_are_offered),
        cmocka_unit_test(test_a_session_ends_an_hour_after_the_certificate_was_verified),
        cmocka_unit_test(test_a_session_ends_with_the_certificate),
        cmocka_unit_test(test_a_session_of_one_name_or_pin_is_not_offered_to_another),
        cmocka_unit_test(test_a_ticket_of_one_name_does_not_resume_under_another),
        cmocka_unit_test(test_our_client_resumes_tls_1_2_as_well),
        cmocka_unit_test(test_half_of_a_connection_can_be_closed),
        cmocka_unit_test(test_rs_07_a_cut_is_told_from_an_end),
        cmocka_unit_test(test_writing_to_a_peer_that_left_is_a_cut),
        cmocka_unit_test(test_a_changed_byte_on_the_wire_fails),
        cmocka_unit_test(test_eight_full_records_are_fetched_at_once),
        cmocka_unit_test(test_what_waits_inside_is_told),
        cmocka_unit_test(test_what_one_connection_has_fetched_outlasts_another_one_that_reads),
        cmocka_unit_test(test_large_transfers_go_both_ways_at_once),
        cmocka_unit_test(test_no_file_is_opened_once_tls_was_started),
    };
    return cmocka_run_group_tests(tests, ends_setup, ends_teardown);
}
