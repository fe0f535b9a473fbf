#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "base/attach.h"
#include "base/patience.h"
#include "base/peer.h"
#include "daemon/attach_request.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

static void pair(int fds[2]) {
    assert_int_equal(socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, fds), 0);
}

static bool is_open(int fd) {
    return fcntl(fd, F_GETFD) >= 0;
}

static int lowest_free(void) {
    int fd = dup(0);
    close(fd);
    return fd;
}

/* ---- the conversation ---- */

static void a_request_arrives_with_its_listeners_in_order(void **state) {
    (void)state;
    int fds[2], listeners[2];
    pair(fds);
    pair(listeners);
    struct attach_request sent = {.sandbox = VIEW("worker-1"),
                                  .n = 2,
                                  .kinds = {WAY_EXPLICIT, WAY_TRANSPARENT},
                                  .fds = {listeners[0], listeners[1]}};
    struct attach_request got;
    struct buf b;
    buf_init(&b, 512);
    assert_int_equal(attach_receive_request(fds[1], &b, &got), ERR_AGAIN);
    assert_int_equal(attach_send_request(fds[0], &sent), 0);
    assert_int_equal(attach_receive_request(fds[1], &b, &got), 0);
    assert_true(view_equal(got.sandbox, VIEW("worker-1")));
    assert_int_equal(got.n, 2);
    assert_int_equal(got.kinds[0], WAY_EXPLICIT);
    assert_int_equal(got.kinds[1], WAY_TRANSPARENT);
    assert_true(fcntl(got.fds[0], F_GETFD) & FD_CLOEXEC);
    /* What is written to the first is read from the second. */
    char c = 0;
    assert_int_equal(write(got.fds[0], "x", 1), 1);
    assert_int_equal(read(got.fds[1], &c, 1), 1);
    assert_int_equal(c, 'x');
    assert_true(is_open(listeners[0]) && is_open(listeners[1]));
    for (int i = 0; i < 2; i++) {
        close(got.fds[i]);
        close(listeners[i]);
        close(fds[i]);
    }
    buf_free(&b);
}

static void a_request_that_does_not_fit_is_not_sent(void **state) {
    (void)state;
    char name[ATTACH_NAME_MAX + 1];
    memset(name, 'a', sizeof name);
    struct attach_request many = {.sandbox = VIEW("a"), .n = ATTACH_LISTENERS_MAX + 1},
                          longer = {.sandbox = view_of(name, sizeof name)};
    assert_int_equal(attach_send_request(-1, &many), ERR_LIMIT);
    assert_int_equal(attach_send_request(-1, &longer), ERR_LIMIT);
}

/* Sends raw bytes with n descriptors. */
static void send_raw(int fd, struct view bytes, size_t n) {
    int fds[PEER_FDS_MAX];
    for (size_t i = 0; i < n; i++)
        fds[i] = fd;
    assert_int_equal(peer_send(fd, bytes, fds, n, 0), (ssize_t)bytes.n);
}

static void a_malformed_request_is_refused_and_no_descriptor_stays(void **state) {
    (void)state;
    static const struct {
        struct view bytes;
        size_t fds;
    } cases[] = {
        {VIEW("\2"), 1},
        {VIEW("\3\0\0\0\1a\1\1"), 1},         /* another version */
        {VIEW("\2\0\0\0\1a\1"), 1},           /* no kind */
        {VIEW("\2\0\0\0\1a\1\1\1"), 1},       /* a kind too many */
        {VIEW("\2\0\0\0\1a\2\1\1"), 1},       /* a descriptor too few */
        {VIEW("\2\0\0\0\1a\1\1"), 2},         /* one too many */
        {VIEW("\2\0\0\0\1a\1\1"), 0},         /* none */
        {VIEW("\2\0\0\0\1a\1\1"), 33},        /* more than anything may have */
        {VIEW("\2\377\377\377\377a\1\1"), 1}, /* a length that is a lie */
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct attach_request got;
        struct buf b;
        int fds[2];
        pair(fds);
        buf_init(&b, 512);
        int before = lowest_free();
        send_raw(fds[0], cases[i].bytes, cases[i].fds);
        assert_int_equal(attach_receive_request(fds[1], &b, &got), ERR_BAD);
        assert_true(attach_close_listeners(&got, false));
        assert_int_equal(lowest_free(), before);
        buf_free(&b);
        close(fds[0]);
        close(fds[1]);
    }
}

static void looking_at_a_request_takes_none_of_its_descriptors(void **state) {
    (void)state;
    struct attach_request got;
    struct buf b;
    int fds[2];
    pair(fds);
    buf_init(&b, 1024);
    send_raw(fds[0], VIEW("\2\0\0\0\1a\1\1"), 1);
    int before = lowest_free();
    for (int i = 0; i < 2; i++) {
        buf_reset(&b);
        assert_int_equal(attach_look_at_request(fds[1], &b, &got), 0);
        assert_true(view_equal(got.sandbox, VIEW("a")));
        assert_int_equal(lowest_free(), before);
    }
    buf_reset(&b);
    assert_int_equal(attach_receive_request(fds[1], &b, &got), 0);
    assert_true(is_open(got.fds[0]));
    assert_true(attach_close_listeners(&got, false));
    assert_int_equal(lowest_free(), before);
    buf_free(&b);
    close(fds[0]);
    close(fds[1]);
}

static void what_is_no_socket_is_not_closed(void **state) {
    (void)state;
    int fds[2], file = open("/dev/null", O_RDONLY | O_CLOEXEC);
    pair(fds);
    const struct attach_request r = {.n = 2, .fds = {file, fds[0]}};
    assert_false(attach_close_listeners(&r, false));
    assert_true(is_open(file) && !is_open(fds[0]));
    const struct attach_request of_trusted = {.n = 1, .fds = {file}};
    assert_true(attach_close_listeners(&of_trusted, true));
    assert_true(!is_open(file));
    close(fds[1]);
}

static void the_end_of_the_connection_is_no_request(void **state) {
    (void)state;
    struct attach_request got;
    struct buf b;
    int fds[2];
    pair(fds);
    close(fds[0]);
    buf_init(&b, 512);
    assert_int_equal(attach_receive_request(fds[1], &b, &got), ERR_CLOSED);
    buf_free(&b);
    close(fds[1]);
}

static void an_answer_arrives_whole(void **state) {
    (void)state;
    static char large[ATTACH_ANSWER_MAX];
    struct attach_answer sent = {.err = ERR_DENIED, .text = VIEW("no"), .ca = VIEW("-----BEGIN")},
                         got;
    struct buf b;
    int fds[2];
    pair(fds);
    buf_init(&b, ATTACH_ANSWER_MAX);
    assert_int_equal(attach_send_answer(fds[0], &sent), 0);
    assert_int_equal(attach_receive_answer(fds[1], &b, &got), 0);
    assert_int_equal(got.err, ERR_DENIED);
    assert_true(view_equal(got.text, VIEW("no")) && view_equal(got.ca, VIEW("-----BEGIN")));
    buf_reset(&b);
    memset(large, 'x', sizeof large);
    sent = (struct attach_answer){.text = view_of(large, sizeof large - 9)};
    assert_int_equal(attach_send_answer(fds[0], &sent), 0);
    assert_int_equal(attach_receive_answer(fds[1], &b, &got), 0);
    assert_true(got.err == 0 && got.text.n == sizeof large - 9);
    sent.text = view_of(large, sizeof large - 8);
    assert_int_equal(attach_send_answer(fds[0], &sent), ERR_LIMIT);
    close(fds[0]);
    buf_reset(&b);
    assert_int_equal(attach_receive_answer(fds[1], &b, &got), ERR_CLOSED);
    buf_free(&b);
    close(fds[1]);
}

static void a_report_arrives_whole_and_an_ask_is_one_byte(void **state) {
    (void)state;
    static char large[ATTACH_REPORT_MAX + 1];
    struct buf b;
    int fds[2];
    pair(fds);
    buf_init(&b, 2 * ATTACH_REPORT_MAX);
    assert_int_equal(attach_receive_ask(fds[0]), ERR_AGAIN);
    assert_int_equal(attach_send_ask(fds[1]), 0);
    assert_int_equal(attach_receive_ask(fds[0]), 0);
    assert_int_equal(attach_receive_report(fds[1], &b), ERR_AGAIN);
    assert_int_equal(attach_send_report(fds[0], VIEW("")), 0);
    assert_int_equal(attach_receive_report(fds[1], &b), 0);
    assert_int_equal(buf_len(&b), 0);
    memset(large, 'x', sizeof large);
    assert_int_equal(attach_send_report(fds[0], view_of(large, sizeof large)), ERR_LIMIT);
    assert_int_equal(attach_send_report(fds[0], view_of(large, sizeof large - 1)), 0);
    assert_int_equal(attach_receive_report(fds[1], &b), 0);
    assert_int_equal(buf_len(&b), ATTACH_REPORT_MAX);
    buf_reset(&b);
    assert_int_equal(send(fds[0], large, sizeof large, 0), sizeof large);
    assert_int_equal(attach_receive_report(fds[1], &b), ERR_BAD);
    close(fds[0]);
    assert_int_equal(attach_receive_report(fds[1], &b), ERR_CLOSED);
    assert_int_equal(attach_receive_ask(fds[1]), ERR_CLOSED);
    buf_free(&b);
    close(fds[1]);
}

/* ---- who may ---- */

static void rights_go_by_user_or_group_and_by_name(void **state) {
    (void)state;
    static const uint32_t groups[] = {5, 1000};
    struct buf b;
    buf_init(&b, 512);
    bundle_put_right(&b, &(struct attach_right){.id = 1000, .names = VIEW("a b")});
    bundle_put_right(&b, &(struct attach_right){.group = true, .id = 5, .names = VIEW("c")});
    struct view rights = buf_view(&b);
    assert_true(attach_request_permitted(rights, 1000, NULL, 0, VIEW("a")));
    assert_true(attach_request_permitted(rights, 1000, NULL, 0, VIEW("b")));
    assert_false(attach_request_permitted(rights, 1000, NULL, 0, VIEW("c")));
    assert_false(attach_request_permitted(rights, 1000, NULL, 0, VIEW("A")));
    assert_false(attach_request_permitted(rights, 1000, NULL, 0, VIEW("a b")));
    assert_true(attach_request_permitted(rights, 7, groups, 2, VIEW("c")));
    assert_false(attach_request_permitted(rights, 7, groups + 1, 1, VIEW("c")));
    /* A user's number is no group's, nor the other way round. */
    assert_false(attach_request_permitted(rights, 5, NULL, 0, VIEW("c")));
    assert_false(attach_request_permitted(rights, 7, groups, 2, VIEW("a")));
    assert_false(attach_request_permitted((struct view){NULL, 0}, 1000, groups, 2, VIEW("a")));
    buf_free(&b);
}

int main(void) {
    if (patience_prepare() != 0)
        return 1;
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_request_arrives_with_its_listeners_in_order),
        cmocka_unit_test(a_request_that_does_not_fit_is_not_sent),
        cmocka_unit_test(a_malformed_request_is_refused_and_no_descriptor_stays),
        cmocka_unit_test(looking_at_a_request_takes_none_of_its_descriptors),
        cmocka_unit_test(what_is_no_socket_is_not_closed),
        cmocka_unit_test(the_end_of_the_connection_is_no_request),
        cmocka_unit_test(an_answer_arrives_whole),
        cmocka_unit_test(a_report_arrives_whole_and_an_ask_is_one_byte),
        cmocka_unit_test(rights_go_by_user_or_group_and_by_name),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
