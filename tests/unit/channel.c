#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "base/channel.h"
#include "base/peer.h"
#include "base/secret.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <unistd.h>

/* Linked with --wrap for write: the kernel, or one that is full, or one that takes all. */
static enum { WRITE_REAL, WRITE_FULL, WRITE_ALL } writing;

ssize_t __real_write(int fd, const void *p, size_t n);
ssize_t __wrap_write(int fd, const void *p, size_t n);

ssize_t __wrap_write(int fd, const void *p, size_t n) {
    if (writing == WRITE_REAL)
        return __real_write(fd, p, n);
    errno = EAGAIN;
    return writing == WRITE_ALL ? (ssize_t)n : -1;
}

enum { PLAIN = 1, WITH_FD = 2, ONE_TIME = 3, BULK = 4, REFUSED = 5, FREES = 6, UNKNOWN = 40 };

/* One end under test; the other is a raw socket, or a second channel. */
struct end {
    struct loop *loop;
    struct channel *ch;
    int raw;
    unsigned n, closed;
    int why;
    uint32_t ids[256];
    char text[256];
    size_t bytes;
    int fds[64];
    size_t n_fds;
    bool free_when_closed;
};

static int take_plain(void *ctx, struct channel *ch, struct message *m) {
    struct end *e = ctx;
    (void)ch;
    assert_int_equal(m->fd, -1);
    e->ids[e->n++ % 256] = m->id;
    snprintf(e->text, sizeof e->text, "%.*s", VIEW_ARG(m->body));
    return 0;
}

static int take_fd(void *ctx, struct channel *ch, struct message *m) {
    struct end *e = ctx;
    (void)ch;
    assert_true(m->fd >= 0);
    e->n++;
    e->fds[e->n_fds++] = m->fd;
    m->fd = -1;
    return 0;
}

static int take_bulk(void *ctx, struct channel *ch, struct message *m) {
    struct end *e = ctx;
    (void)ch;
    for (size_t i = 0; i < m->body.n; i++)
        assert_int_equal(m->body.p[i], (uint8_t)m->id);
    e->n++;
    e->bytes += m->body.n;
    return 0;
}

static int refuse(void *ctx, struct channel *ch, struct message *m) {
    (void)ctx;
    (void)ch;
    (void)m;
    return ERR_DENIED;
}

static int free_inside(void *ctx, struct channel *ch, struct message *m) {
    struct end *e = ctx;
    e->n++;
    channel_free(ch);
    e->ch = NULL;
    /* The body is still there. */
    assert_true(view_equal(m->body, VIEW("still")));
    /* What is sent now goes nowhere. */
    channel_send(ch, PLAIN, 1, 0, VIEW("x"));
    return 0;
}

static const struct channel_rule rules[] = {
    {PLAIN, 0, 100, take_plain, "plain"},
    {WITH_FD, CHANNEL_FD, 100, take_fd, "with fd"},
    {ONE_TIME, CHANNEL_ONCE, 100, take_plain, "one time"},
    {BULK, 0, CHANNEL_BODY_MAX, take_bulk, "bulk"},
    {REFUSED, 0, 100, refuse, "refused"},
    {FREES, 0, 100, free_inside, "frees"},
};

static void on_closed(void *ctx, struct channel *ch, int why) {
    struct end *e = ctx;
    assert_ptr_equal(ch, e->ch);
    e->closed++;
    e->why = why;
    if (e->free_when_closed) {
        channel_free(ch);
        e->ch = NULL;
    }
}

static struct channel *channel_on(struct loop *l, int fd, unsigned flags, struct end *e) {
    return channel_new(l, fd, rules, sizeof rules / sizeof *rules, flags, on_closed, e);
}

static void end_open(struct end *e, unsigned flags) {
    int fds[2];
    *e = (struct end){.loop = loop_new()};
    assert_int_equal(channel_pair(fds), 0);
    e->raw = fds[1];
    fcntl(e->raw, F_SETFL, O_NONBLOCK);
    e->ch = channel_on(e->loop, fds[0], flags, e);
    assert_non_null(e->ch);
}

static void end_close(struct end *e) {
    channel_free(e->ch);
    for (size_t i = 0; i < e->n_fds; i++)
        close(e->fds[i]);
    close(e->raw);
    loop_free(e->loop);
}

static void on_nothing(evutil_socket_t fd, short what, void *ctx) {
    (void)fd;
    (void)what;
    (void)ctx;
}

/* Turns that wait at most a millisecond each. */
static void turns(struct loop *l, int n) {
    const struct timeval soon = {0, 1000};
    struct event *e = event_new(loop_base(l), -1, EV_PERSIST, on_nothing, NULL);
    event_add(e, &soon);
    for (int i = 0; i < n; i++)
        assert_int_equal(loop_turn(l), 0);
    event_free(e);
}

static void put_message(struct buf *out, uint16_t type, uint16_t flags, uint32_t id,
                        struct view body) {
    buf_put_u32(out, (uint32_t)body.n);
    buf_put_u16(out, type);
    buf_put_u16(out, flags);
    buf_put_u32(out, id);
    buf_put_u32(out, 7);
    buf_put(out, body);
}

/* Sends bytes with n descriptors (all of them /dev/null) on the raw socket. */
static void send_raw(struct end *e, struct view v, size_t n) {
    int fds[32];
    for (size_t i = 0; i < n; i++)
        fds[i] = open("/dev/null", O_RDONLY | O_CLOEXEC);
    assert_int_equal(peer_send(e->raw, v, fds, n, 0), v.n);
    for (size_t i = 0; i < n; i++)
        close(fds[i]);
}

static size_t open_descriptors(void) {
    size_t n = 0;
    for (int fd = 0; fd < 1024; fd++)
        n += fcntl(fd, F_GETFD) >= 0;
    return n;
}

/* ---- receiving ---- */

static void messages_arrive_whole_however_they_are_cut(void **state) {
    struct buf b;
    (void)state;
    buf_init(&b, 1000);
    put_message(&b, PLAIN, 0, 5, VIEW("first"));
    put_message(&b, PLAIN, 0, 6, VIEW(""));
    put_message(&b, PLAIN, 0, 7, VIEW("third"));
    for (size_t cut = 0; cut <= buf_len(&b); cut++) {
        struct end e;
        end_open(&e, 0);
        struct view v = buf_view(&b);
        if (cut > 0)
            send_raw(&e, view_head(v, cut), 0);
        turns(e.loop, 2);
        if (cut < v.n)
            send_raw(&e, view_skip(v, cut), 0);
        turns(e.loop, 2);
        assert_int_equal(e.n, 3);
        assert_int_equal(e.ids[0], 5);
        assert_int_equal(e.ids[2], 7);
        assert_string_equal(e.text, "third");
        assert_int_equal(e.closed, 0);
        end_close(&e);
    }
    buf_free(&b);
}

static void what_breaks_the_contract_drops_the_channel(void **state) {
    static char long_body[200];
    static const struct {
        const char *what;
        uint16_t type, flags;
        size_t size, fds;
        unsigned handled;
        int repeat;
    } cases[] = {
        {"an unknown type", UNKNOWN, 0, 1, 0, 0, 1},
        {"type 0", 0, 0, 1, 0, 0, 1},
        {"type 64", 64, 0, 1, 0, 0, 1},
        {"type 65535", 65535, 0, 1, 0, 0, 1},
        {"a body over its limit", PLAIN, 0, 101, 0, 0, 1},
        {"an unknown flag", PLAIN, 2, 1, 0, 0, 1},
        {"a descriptor that is not permitted", PLAIN, 1, 1, 1, 0, 1},
        {"a descriptor that is missing", WITH_FD, 1, 1, 0, 0, 1},
        {"a descriptor that is not announced", WITH_FD, 0, 1, 1, 0, 1},
        {"a stray descriptor", PLAIN, 0, 1, 1, 1, 1},
        {"two descriptors", WITH_FD, 1, 1, 2, 1, 1},
        {"more descriptors than are kept", WITH_FD, 1, 1, 20, 0, 1},
        {"a message that comes once, twice", ONE_TIME, 0, 1, 0, 1, 2},
        {"a handler that refuses", REFUSED, 0, 1, 0, 0, 1},
    };
    (void)state;
    size_t before = open_descriptors();
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct end e;
        struct buf b;
        end_open(&e, 0);
        buf_init(&b, 1000);
        for (int k = 0; k < cases[i].repeat; k++)
            put_message(&b, cases[i].type, cases[i].flags, 1, view_of(long_body, cases[i].size));
        send_raw(&e, buf_view(&b), cases[i].fds);
        turns(e.loop, 3);
        if (e.closed != 1 || e.n != cases[i].handled)
            fail_msg("%s: closed %u, handled %u", cases[i].what, e.closed, e.n);
        buf_free(&b);
        end_close(&e);
    }
    assert_int_equal(open_descriptors(), before);
}

static void a_length_over_the_largest_is_refused_before_its_bytes_come(void **state) {
    struct end e;
    struct buf b;
    (void)state;
    end_open(&e, 0);
    buf_init(&b, 100);
    buf_put_u32(&b, (uint32_t)CHANNEL_BODY_MAX + 1);
    buf_put_u16(&b, BULK);
    buf_put_u16(&b, 0);
    buf_put_u64(&b, 0);
    send_raw(&e, buf_view(&b), 0);
    turns(e.loop, 2);
    assert_int_equal(e.closed, 1);
    assert_int_equal(e.why, ERR_BAD);
    buf_free(&b);
    end_close(&e);
}

static void the_peer_going_away_is_told_once_after_what_it_sent(void **state) {
    struct end e;
    struct buf b;
    (void)state;
    end_open(&e, 0);
    buf_init(&b, 100);
    put_message(&b, PLAIN, 0, 1, VIEW("last words"));
    send_raw(&e, buf_view(&b), 0);
    shutdown(e.raw, SHUT_RDWR);
    turns(e.loop, 4);
    assert_int_equal(e.n, 1);
    assert_int_equal(e.closed, 1);
    assert_int_equal(e.why, ERR_CLOSED);
    /* A closed channel swallows. */
    channel_send(e.ch, PLAIN, 1, 0, VIEW("x"));
    channel_send_fd(e.ch, WITH_FD, 1, 0, VIEW("x"), open("/dev/null", O_RDONLY));
    turns(e.loop, 2);
    assert_int_equal(channel_unsent(e.ch), 0);
    buf_free(&b);
    end_close(&e);
}

static void a_channel_may_be_freed_by_its_handler_and_by_closed(void **state) {
    struct buf b;
    (void)state;
    buf_init(&b, 1000);
    put_message(&b, FREES, 0, 1, VIEW("still"));
    put_message(&b, PLAIN, 0, 2, VIEW("never handled"));
    struct end e;
    end_open(&e, 0);
    send_raw(&e, buf_view(&b), 0);
    turns(e.loop, 3);
    assert_int_equal(e.n, 1);
    assert_null(e.ch);
    assert_int_equal(e.closed, 0);
    end_close(&e);

    end_open(&e, 0);
    e.free_when_closed = true;
    buf_reset(&b);
    put_message(&b, UNKNOWN, 0, 1, VIEW("x"));
    send_raw(&e, buf_view(&b), 0);
    turns(e.loop, 3);
    assert_int_equal(e.closed, 1);
    assert_null(e.ch);
    end_close(&e);
    buf_free(&b);
}

static void a_reading_end_takes_no_descriptor(void **state) {
    struct end e;
    struct buf b;
    size_t before;
    (void)state;
    end_open(&e, CHANNEL_READ);
    buf_init(&b, 100);
    before = open_descriptors();
    put_message(&b, PLAIN, 0, 1, VIEW("text"));
    send_raw(&e, buf_view(&b), 1);
    turns(e.loop, 2);
    assert_int_equal(e.n, 1);
    assert_int_equal(open_descriptors(), before);
    buf_reset(&b);
    put_message(&b, WITH_FD, 1, 1, VIEW("text"));
    send_raw(&e, buf_view(&b), 1);
    turns(e.loop, 2);
    assert_int_equal(e.closed, 1);
    assert_int_equal(open_descriptors(), before);
    buf_free(&b);
    end_close(&e);
}

/* ---- sending ---- */

static void the_header_is_as_it_is_written_down(void **state) {
    struct end e;
    uint8_t got[64];
    (void)state;
    end_open(&e, 0);
    channel_send(e.ch, 0x0102, 0x03040506, 0x0708090a, VIEW("body"));
    assert_int_equal(recv(e.raw, got, sizeof got, 0), -1); /* not before the end of the turn */
    turns(e.loop, 1);
    assert_int_equal(recv(e.raw, got, sizeof got, 0), 20);
    assert_memory_equal(got,
                        "\0\0\0\4\1\2\0\0\3\4\5\6\7\x08\x09\x0a"
                        "body",
                        20);
    end_close(&e);
}

static void a_turn_is_one_write(void **state) {
    struct end e;
    uint8_t got[4096];
    (void)state;
    end_open(&e, 0);
    for (uint32_t i = 0; i < 10; i++)
        channel_send(e.ch, PLAIN, i, 0, VIEW("body"));
    turns(e.loop, 1);
    assert_int_equal(recv(e.raw, got, sizeof got, 0), 200);
    end_close(&e);
}

static void a_long_body_leaves_at_once_behind_what_was_gathered(void **state) {
    enum { LONG = 40000 };
    static uint8_t body[LONG], got[2 * LONG];
    struct end e;
    (void)state;
    end_open(&e, 0);
    memset(body, 7, sizeof body);
    channel_send(e.ch, PLAIN, 1, 0, VIEW("before"));
    channel_send(e.ch, BULK, 7, 0, view_of(body, sizeof body));
    assert_int_equal(channel_unsent(e.ch), 0);
    channel_send(e.ch, PLAIN, 2, 0, VIEW("behind"));
    turns(e.loop, 1);
    assert_int_equal(recv(e.raw, got, sizeof got, 0), 3 * CHANNEL_HEADER_SIZE + 12 + LONG);
    assert_memory_equal(got + CHANNEL_HEADER_SIZE, "before", 6);
    assert_memory_equal(got + 2 * CHANNEL_HEADER_SIZE + 6, body, LONG);
    assert_memory_equal(got + 3 * CHANNEL_HEADER_SIZE + 6 + LONG, "behind", 6);
    end_close(&e);
}

/* Both ends are channels of one loop. */
static void pair_open(struct end *a, struct end *b, unsigned flags) {
    int fds[2];
    *a = *b = (struct end){.loop = loop_new(), .raw = -1};
    b->loop = a->loop;
    assert_int_equal(channel_pair(fds), 0);
    a->ch = channel_on(a->loop, fds[0], flags, a);
    b->ch = channel_on(a->loop, fds[1], flags, b);
}

static void pair_close(struct end *a, struct end *b) {
    channel_free(a->ch);
    channel_free(b->ch);
    for (size_t i = 0; i < b->n_fds; i++)
        close(b->fds[i]);
    loop_free(a->loop);
}

static int numbered_file(int number) {
    int fd = memfd_create("number", MFD_CLOEXEC);
    assert_int_equal(pwrite(fd, &number, sizeof number, 0), sizeof number);
    return fd;
}

static void descriptors_arrive_in_order_with_their_messages(void **state) {
    struct end a, b;
    (void)state;
    pair_open(&a, &b, 0);
    for (int round = 0; round < 4; round++) {
        for (int i = 0; i < 12; i++) {
            channel_send(a.ch, PLAIN, 1, 0, VIEW("between"));
            channel_send_fd(a.ch, WITH_FD, 1, 0, VIEW("x"), numbered_file(round * 12 + i));
        }
        turns(a.loop, 20);
    }
    assert_int_equal(b.n_fds, 48);
    assert_int_equal(b.closed, 0);
    for (int i = 0; i < 48; i++) {
        int number = -1;
        assert_int_equal(pread(b.fds[i], &number, sizeof number, 0), sizeof number);
        assert_int_equal(number, i);
        assert_true(fcntl(b.fds[i], F_GETFD) & FD_CLOEXEC);
    }
    pair_close(&a, &b);
}

static void bulk_beyond_the_kernel_s_room_arrives_whole_and_in_order(void **state) {
    struct end a, b;
    static uint8_t body[CHANNEL_BODY_MAX];
    size_t total = 0;
    (void)state;
    pair_open(&a, &b, 0);
    for (uint32_t i = 0; i < 6; i++) {
        size_t n = i == 5 ? CHANNEL_BODY_MAX : 700000 + i;
        memset(body, (int)i, n);
        channel_send(a.ch, BULK, i, 0, view_of(body, n));
        if (i == 2)
            channel_send_fd(a.ch, WITH_FD, 0, 0, VIEW("x"), numbered_file(42));
        total += n;
    }
    turns(a.loop, 200);
    assert_int_equal(b.n, 7);
    assert_int_equal(b.bytes, total);
    assert_int_equal(b.n_fds, 1);
    assert_int_equal(channel_unsent(a.ch), 0);
    pair_close(&a, &b);
}

static void a_sender_over_its_limit_is_closed_and_the_peer_gets_no_half_message(void **state) {
    struct end e;
    static uint8_t body[CHANNEL_BODY_MAX];
    (void)state;
    end_open(&e, 0);
    for (uint32_t i = 0; i < 12; i++)
        channel_send(e.ch, BULK, i, 0, view_of(body, sizeof body));
    turns(e.loop, 2);
    assert_int_equal(e.closed, 1);
    assert_int_equal(e.why, ERR_LIMIT);
    end_close(&e);
}

/* Opened once for all tests. */
static bool has_arena(void) {
    static bool asked, opened;
    if (!asked)
        opened = secret_arena_open(1 << 20) == 0;
    asked = true;
    return opened;
}

static void more_than_the_buffer_holds_may_be_sent_in_one_turn_to_a_peer_that_reads(void **state) {
    struct end a, b;
    static uint8_t body[8192];
    (void)state;
    if (!has_arena()) {
        skip();
        return;
    }
    /* A buffer in the arena holds four of these; the kernel takes ten. */
    pair_open(&a, &b, CHANNEL_SECRET);
    for (uint32_t i = 0; i < 10; i++) {
        memset(body, (int)i, sizeof body);
        channel_send(a.ch, BULK, i, 0, view_of(body, sizeof body));
    }
    turns(a.loop, 20);
    assert_int_equal(a.closed, 0);
    assert_int_equal(b.n, 10);
    pair_close(&a, &b);
}

static void on_drained(void *ctx) {
    ++*(unsigned *)ctx;
}

/* Also when the peer has read all of it by the end of the very turn: whoever waits would wait for ever. */
static void who_saw_the_channel_full_is_told_when_it_is_empty(void **state) {
    struct end e;
    static uint8_t body[4096];
    unsigned drained = 0;
    (void)state;
    end_open(&e, 0);
    channel_on_drained(e.ch, on_drained, &drained);
    writing = WRITE_FULL;
    while (!channel_is_full(e.ch))
        channel_send(e.ch, BULK, 0, 0, view_of(body, sizeof body));
    writing = WRITE_ALL;
    turns(e.loop, 3);
    writing = WRITE_REAL;
    assert_int_equal(channel_unsent(e.ch), 0);
    assert_int_equal(drained, 1);
    end_close(&e);
}

static void too_many_descriptors_in_one_turn_close_the_channel_and_leak_none(void **state) {
    struct end e;
    (void)state;
    size_t before = open_descriptors();
    end_open(&e, 0);
    for (int i = 0; i < 4200; i++)
        channel_send_fd(e.ch, WITH_FD, 0, 0, VIEW("x"), open("/dev/null", O_RDONLY | O_CLOEXEC));
    turns(e.loop, 2);
    assert_int_equal(e.closed, 1);
    end_close(&e);
    assert_int_equal(open_descriptors(), before);
}

static void a_secret_channel_lives_in_the_arena_and_leaves_nothing(void **state) {
    struct end a, b;
    (void)state;
    if (!has_arena()) {
        print_message("skipped: no memory can be locked here\n");
        skip();
    }
    pair_open(&a, &b, CHANNEL_SECRET);
    channel_send(a.ch, PLAIN, 1, 0, VIEW("hush"));
    assert_true(secret_in_use() > 0);
    turns(a.loop, 3);
    assert_string_equal(b.text, "hush");
    pair_close(&a, &b);
    assert_int_equal(secret_in_use(), 0);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(messages_arrive_whole_however_they_are_cut),
        cmocka_unit_test(what_breaks_the_contract_drops_the_channel),
        cmocka_unit_test(a_length_over_the_largest_is_refused_before_its_bytes_come),
        cmocka_unit_test(the_peer_going_away_is_told_once_after_what_it_sent),
        cmocka_unit_test(a_channel_may_be_freed_by_its_handler_and_by_closed),
        cmocka_unit_test(a_reading_end_takes_no_descriptor),
        cmocka_unit_test(the_header_is_as_it_is_written_down),
        cmocka_unit_test(a_turn_is_one_write),
        cmocka_unit_test(a_long_body_leaves_at_once_behind_what_was_gathered),
        cmocka_unit_test(descriptors_arrive_in_order_with_their_messages),
        cmocka_unit_test(bulk_beyond_the_kernel_s_room_arrives_whole_and_in_order),
        cmocka_unit_test(more_than_the_buffer_holds_may_be_sent_in_one_turn_to_a_peer_that_reads),
        cmocka_unit_test(a_sender_over_its_limit_is_closed_and_the_peer_gets_no_half_message),
        cmocka_unit_test(who_saw_the_channel_full_is_told_when_it_is_empty),
        cmocka_unit_test(too_many_descriptors_in_one_turn_close_the_channel_and_leak_none),
        cmocka_unit_test(a_secret_channel_lives_in_the_arena_and_leaves_nothing),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
