#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "egress/body_names.h"
#include "egress/facts_message.h"
#include "egress/inspect.h"
#include "egress/inspect_messages.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>
#include <zlib.h>

enum { JOBS = 64, WAIT_SECONDS = 20 };

/* What was heard about one job. */
struct heard {
    uint64_t clear, credit, plain_n;
    struct buf plain; /* its beginning */
    char name[64], value[160], why[128];
    bool found, done, bad;
    struct facts *facts;
};

struct world {
    struct loop *loop;
    struct inspect *inspect;
    struct channel *channel; /* egress' end */
    struct event *alarm;
    struct heard job[JOBS];
    int lost; /* why inspect dropped the channel */
    bool is_lost, own_lost, too_late;
};

static void on_lost(void *ctx, int why) {
    struct world *w = ctx;
    w->lost = why;
    w->is_lost = true;
    inspect_free(w->inspect);
    w->inspect = NULL;
}

static void on_own_lost(void *ctx, struct channel *ch, int why) {
    struct world *w = ctx;
    (void)ch;
    (void)why;
    w->own_lost = true;
}

static void on_alarm(evutil_socket_t fd, short what, void *ctx) {
    struct world *w = ctx;
    (void)fd;
    (void)what;
    w->too_late = true;
}

static void keep_text(struct view v, char *out, size_t size) {
    assert_int_equal(view_cstr(v, out, size), 0);
}

static int take(void *ctx, struct channel *ch, struct message *m) {
    struct world *w = ctx;
    struct reader r = reader_of(m->body);
    (void)ch;
    assert_true(m->id < JOBS);
    struct heard *h = &w->job[m->id];
    assert_false(h->done || h->bad || h->found);
    switch (m->type) {
    case INSPECT_PLAIN:
        h->credit += read_u32(&r);
        h->plain_n += r.rest.n;
        if (r.rest.n <= buf_room(&h->plain))
            buf_put(&h->plain, r.rest);
        return 0;
    case INSPECT_CLEAR:
        h->clear += read_u32(&r);
        break;
    case INSPECT_FOUND:
        keep_text(read_block(&r, 64), h->name, sizeof h->name);
        keep_text(read_block(&r, 160), h->value, sizeof h->value);
        h->found = true;
        break;
    case INSPECT_DONE:
        h->done = true;
        break;
    case INSPECT_FACTS:
        assert_null(h->facts);
        return facts_read(m->body, 2, &h->facts);
    default:
        keep_text(read_block(&r, 128), h->why, sizeof h->why);
        h->bad = true;
        break;
    }
    assert_true(read_done(&r));
    return 0;
}

static const struct channel_rule rules[] = {
    {INSPECT_PLAIN, 0, INSPECT_PIECE_MAX + 4, take, "plain"},
    {INSPECT_CLEAR, 0, 4, take, "clear"},
    {INSPECT_FOUND, 0, 1024, take, "found"},
    {INSPECT_DONE, 0, 0, take, "done"},
    {INSPECT_BAD, 0, 1024, take, "bad"},
    {INSPECT_FACTS, 0, FACTS_MAX, take, "facts"},
};

static struct world *world_new(uint64_t exchanges) {
    struct world *w = calloc(1, sizeof *w);
    struct limits limits;
    int fds[2];
    limits_default(&limits);
    limits.v[LIMIT_EXCHANGES] = exchanges;
    w->loop = loop_new();
    assert_int_equal(channel_pair(fds), 0);
    w->inspect = inspect_new(w->loop, fds[0], &limits, on_lost, w);
    w->channel =
        channel_new(w->loop, fds[1], rules, sizeof rules / sizeof *rules, 0, on_own_lost, w);
    assert_non_null(w->inspect);
    assert_non_null(w->channel);
    for (size_t i = 0; i < JOBS; i++)
        buf_init(&w->job[i].plain, 1 << 16);
    struct timeval late = {WAIT_SECONDS, 0};
    w->alarm = event_new(loop_base(w->loop), -1, 0, on_alarm, w);
    event_add(w->alarm, &late);
    return w;
}

static void world_free(struct world *w) {
    for (size_t i = 0; i < JOBS; i++)
        buf_free(&w->job[i].plain);
    for (size_t i = 0; i < JOBS; i++)
        facts_free(w->job[i].facts);
    event_free(w->alarm);
    inspect_free(w->inspect);
    channel_free(w->channel);
    loop_free(w->loop);
    free(w);
}

static void open_job(struct world *w, uint32_t id, enum inspect_job kind, const char *argument,
                     uint64_t most) {
    struct buf *b = channel_begin(w->channel, INSPECT_OPEN, id, 0);
    buf_put_u8(b, (uint8_t)kind);
    if (kind >= INSPECT_JSON && kind <= INSPECT_JSON_UNSAID) {
        buf_put_u32(b, (uint32_t)strlen(argument) + 7);
        buf_put_block(b, view_str(argument));
        body_names_write(&(struct body_names){.n = 0}, b);
    } else {
        buf_put_block(b, view_str(argument));
    }
    buf_put_u64(b, most);
    channel_end(w->channel);
}

static void data(struct world *w, uint32_t id, struct view v) {
    channel_send(w->channel, INSPECT_DATA, id, 0, v);
}

static void end(struct world *w, uint32_t id) {
    channel_send(w->channel, INSPECT_END, id, 0, (struct view){NULL, 0});
}

static void turn(struct world *w) {
    assert_int_equal(loop_turn(w->loop), 0);
    assert_false(w->too_late);
}

static bool over(const struct world *w, uint32_t id) {
    const struct heard *h = &w->job[id];
    return h->done || h->bad || h->found || h->facts;
}

static struct buf gzip(struct view text) {
    struct buf b;
    z_stream z = {0};
    buf_init(&b, 1 << 24);
    assert_int_equal(deflateInit2(&z, 9, Z_DEFLATED, 31, 8, Z_DEFAULT_STRATEGY), Z_OK);
    size_t room = 1 << 20;
    z.next_in = (Bytef *)(uintptr_t)text.p;
    z.avail_in = (uInt)text.n;
    z.next_out = buf_reserve(&b, room);
    z.avail_out = (uInt)room;
    assert_int_equal(deflate(&z, Z_FINISH), Z_STREAM_END);
    buf_commit(&b, room - z.avail_out);
    deflateEnd(&z);
    return b;
}

static void each_kind_of_body_is_answered(void **state) {
    (void)state;
    struct world *w = world_new(64);
    struct buf b = gzip(VIEW("plain text"));
    open_job(w, 1, INSPECT_JSON, "", 0);
    open_job(w, 2, INSPECT_FORM, "", 0);
    open_job(w, 3, INSPECT_MULTIPART, "b0", 0);
    open_job(w, 4, INSPECT_GUNZIP, "", UINT64_MAX);
    open_job(w, 5, INSPECT_INFLATE, "", UINT64_MAX);
    /* Interleaved, and cut where it hurts. */
    data(w, 1, VIEW("{\"a\":1,\"api_"));
    data(w, 2, VIEW("a=1&b="));
    data(w, 4, view_head(buf_view(&b), 11));
    data(w, 3, VIEW("--b0\r\nContent-Disposition: form-data; name=\"x\"\r\n\r\n\r\n--b"));
    data(w, 1, VIEW("key\":\"sk-ATTACKER\"}"));
    data(w, 5, VIEW("not deflate"));
    data(w, 4, view_skip(buf_view(&b), 11));
    data(w, 3, VIEW("0--\r\n"));
    data(w, 2, VIEW("2"));
    for (uint32_t id = 1; id <= 5; id++)
        end(w, id);
    while (!over(w, 1) || !over(w, 2) || !over(w, 3) || !over(w, 4) || !over(w, 5))
        turn(w);
    assert_true(w->job[1].found);
    assert_string_equal(w->job[1].name, "api_key");
    assert_string_equal(w->job[1].value, "sk-ATTACKER");
    assert_int_equal(w->job[1].clear, 7);
    assert_true(w->job[2].done);
    assert_int_equal(w->job[2].clear, 7);
    assert_true(w->job[3].done);
    assert_int_equal(w->job[3].clear, 60);
    assert_true(w->job[4].done);
    assert_int_equal(w->job[4].credit, buf_len(&b));
    assert_true(view_equal(buf_view(&w->job[4].plain), VIEW("plain text")));
    assert_true(w->job[5].bad);
    assert_int_equal(inspect_bodies(w->inspect), 0);
    buf_free(&b);
    world_free(w);
}

static void rf_02_rx_06_a_large_answer_comes_piece_by_piece(void **state) {
    (void)state;
    static uint8_t zeros[80 << 20];
    struct world *w = world_new(64);
    struct buf b = gzip(view_of(zeros, sizeof zeros));
    /* Two at once: more than the channel holds, so that decoding has to wait for it. */
    assert_true(buf_len(&b) < INSPECT_WINDOW);
    for (uint32_t id = 1; id <= 2; id++) {
        open_job(w, id, INSPECT_GUNZIP, "", UINT64_MAX);
        for (struct view v = buf_view(&b); v.n > 0; v = view_skip(v, 4096))
            data(w, id, view_head(v, 4096));
        end(w, id);
    }
    while (!over(w, 1) || !over(w, 2))
        turn(w);
    for (uint32_t id = 1; id <= 2; id++) {
        assert_true(w->job[id].done);
        assert_int_equal(w->job[id].plain_n, sizeof zeros);
        assert_int_equal(w->job[id].credit, buf_len(&b));
    }
    assert_false(w->is_lost);
    buf_free(&b);
    world_free(w);
}

static void credit_comes_with_the_last_output(void **state) {
    (void)state;
    static uint8_t zeros[1 << 20];
    struct world *w = world_new(64);
    struct buf b = gzip(view_of(zeros, sizeof zeros));
    open_job(w, 1, INSPECT_GUNZIP, "", UINT64_MAX);
    data(w, 1, view_head(buf_view(&b), 500));
    while (w->job[1].credit == 0)
        turn(w);
    assert_int_equal(w->job[1].credit, 500);
    /* Nothing of these bytes is left to come. */
    uint64_t made = w->job[1].plain_n;
    assert_true(made > 400000);
    data(w, 1, view_slice(buf_view(&b), 500, 501));
    while (w->job[1].credit == 500)
        turn(w);
    assert_true(w->job[1].plain_n - made < 2000);
    buf_free(&b);
    world_free(w);
}

static void rf_02_a_truncated_or_growing_body_is_bad(void **state) {
    (void)state;
    struct world *w = world_new(64);
    struct buf b = gzip(VIEW("plain text"));
    open_job(w, 1, INSPECT_GUNZIP, "", UINT64_MAX);
    data(w, 1, view_head(buf_view(&b), buf_len(&b) - 1));
    end(w, 1);
    open_job(w, 2, INSPECT_GUNZIP, "", 9);
    data(w, 2, buf_view(&b));
    /* What is still on its way is ignored. */
    data(w, 2, buf_view(&b));
    end(w, 2);
    open_job(w, 3, INSPECT_MULTIPART, "no\"boundary", 0);
    data(w, 3, VIEW("x"));
    while (!over(w, 1) || !over(w, 2) || !over(w, 3))
        turn(w);
    assert_true(w->job[1].bad && w->job[2].bad && w->job[3].bad);
    assert_string_equal(w->job[1].why, "the encoded body is truncated");
    assert_int_equal(w->job[2].plain_n, 0);
    assert_string_equal(w->job[3].why, "not what a scan is told");
    assert_int_equal(inspect_bodies(w->inspect), 0);
    buf_free(&b);
    world_free(w);
}

static void what_only_the_end_shows_is_answered_at_the_end(void **state) {
    (void)state;
    struct world *w = world_new(64);
    open_job(w, 1, INSPECT_JSON, "", 0);
    data(w, 1, VIEW("{\"a\":"));
    end(w, 1);
    open_job(w, 2, INSPECT_FORM, "", 0);
    data(w, 2, VIEW("token=x"));
    end(w, 2);
    open_job(w, 3, INSPECT_JSON, "", 0);
    data(w, 3, VIEW("12"));
    end(w, 3);
    open_job(w, 4, INSPECT_GUNZIP, "", 0);
    end(w, 4);
    while (!over(w, 1) || !over(w, 2) || !over(w, 3) || !over(w, 4))
        turn(w);
    assert_true(w->job[1].bad && w->job[2].found && w->job[3].done && w->job[4].done);
    assert_int_equal(w->job[3].clear, 2);
    assert_int_equal(inspect_bodies(w->inspect), 0);
    world_free(w);
}

static void bodies_are_bounded_and_closing_makes_room(void **state) {
    (void)state;
    struct world *w = world_new(1);
    open_job(w, 1, INSPECT_JSON, "", 0);
    open_job(w, 2, INSPECT_GUNZIP, "", 0);
    open_job(w, 3, INSPECT_JSON, "", 0);
    while (!over(w, 3))
        turn(w);
    assert_string_equal(w->job[3].why, "too many bodies at once");
    assert_int_equal(inspect_bodies(w->inspect), 2);
    channel_send(w->channel, INSPECT_CLOSE, 1, 0, (struct view){NULL, 0});
    channel_send(w->channel, INSPECT_CLOSE, 7, 0, (struct view){NULL, 0});
    open_job(w, 4, INSPECT_JSON, "", 0);
    data(w, 4, VIEW("[]"));
    end(w, 4);
    while (!over(w, 4))
        turn(w);
    assert_true(w->job[4].done);
    assert_false(over(w, 1));
    assert_int_equal(inspect_bodies(w->inspect), 1);
    world_free(w);
}

static void ask(struct world *w, uint32_t id, uint64_t limit) {
    static const struct view pointers[] = {{(const uint8_t *)"/model", 6},
                                           {(const uint8_t *)"/n/*", 4}};
    struct body_wants wants = {.pointers = pointers, .n_pointers = 2, .rpc = true, .limit = limit};
    struct buf argument;
    buf_init(&argument, FACTS_ASK_MAX);
    facts_ask_write(BODY_SOURCE_JSON, &wants, &argument);
    struct buf *b = channel_begin(w->channel, INSPECT_OPEN, id, 0);
    buf_put_u8(b, INSPECT_READ);
    buf_put_block(b, buf_view(&argument));
    buf_put_u64(b, 0);
    channel_end(w->channel);
    buf_free(&argument);
}

static void facts_are_told_of_a_body_that_is_read(void **state) {
    (void)state;
    struct world *w = world_new(64);
    ask(w, 1, 1000);
    data(w, 1, VIEW("{\"model\":\"x\",\"jsonrpc\":\"2.0\","));
    data(w, 1, VIEW("\"n\":[1,true],\"method\":\"ping\"}"));
    end(w, 1);
    while (!over(w, 1))
        turn(w);
    const struct body_facts *f = facts_content(w->job[1].facts);
    assert_int_equal(w->job[1].clear, 58);
    assert_int_equal(f->size, 58);
    assert_false(f->unclear);
    assert_int_equal(f->n_values, 3);
    assert_true(view_equal(f->values[0].value, VIEW("x")));
    assert_int_equal(f->values[2].pointer, 1);
    assert_int_equal(f->values[2].type, BODY_BOOLEAN);
    assert_true(f->rpc.known && view_equal(f->rpc.calls[0].method, VIEW("ping")));
    assert_int_equal(inspect_bodies(w->inspect), 0);
    world_free(w);
}

/* A string of n letters that /model leads to. */
static void data_of_long_model(struct world *w, uint32_t id, size_t n) {
    static uint8_t letters[INSPECT_PIECE_MAX];
    memset(letters, 'a', sizeof letters);
    data(w, id, VIEW("{\"model\":\""));
    for (size_t sent = 0; sent < n; sent += sizeof letters)
        data(w, id, view_of(letters, sizeof letters));
    data(w, id, VIEW("\"}"));
}

static void facts_wait_until_egress_reads(void **state) {
    (void)state;
    enum { EACH = 3 * INSPECT_PIECE_MAX };
    static_assert((size_t)EACH * (JOBS - 1) > CHANNEL_OUT_MAX, "more than a channel holds");
    struct world *w = world_new(64);
    for (uint32_t id = 1; id < JOBS; id++) {
        ask(w, id, CHANNEL_OUT_MAX);
        data_of_long_model(w, id, EACH);
        while (w->job[id].clear < EACH)
            turn(w);
    }
    for (uint32_t id = 1; id < JOBS; id++)
        end(w, id);
    for (uint32_t id = 1; id < JOBS; id++)
        while (!over(w, id))
            turn(w);
    assert_false(w->is_lost);
    for (uint32_t id = 1; id < JOBS; id++)
        assert_int_equal(facts_content(w->job[id].facts)->values[0].value.n, EACH);
    world_free(w);
}

static void facts_come_early_where_the_rest_does_not_matter(void **state) {
    (void)state;
    struct world *w = world_new(64);
    ask(w, 1, 8);
    data(w, 1, VIEW("{\"model\":"));
    ask(w, 2, 1000);
    data(w, 2, VIEW("{]"));
    while (!over(w, 1) || !over(w, 2))
        turn(w);
    assert_true(facts_content(w->job[1].facts)->unclear);
    assert_string_equal(facts_content(w->job[1].facts)->why,
                        "the body is larger than what is inspected");
    assert_string_equal(facts_content(w->job[2].facts)->why,
                        "the body is not of its type's syntax");
    world_free(w);
}

struct step {
    uint16_t type;
    uint32_t id;
    struct view body;
};

#define OPEN_JSON                                                                                  \
    { INSPECT_OPEN, 1, VIEW("\2\0\0\0\7\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0") }
#define NONE                                                                                       \
    { NULL, 0 }

/* Each ends the channel by its last message. */
static const struct {
    const char *what;
    struct step steps[3];
} broken[] = {
    {"an unknown type", {{9, 1, NONE}}},
    {"a message of the other direction", {{40, 1, NONE}}},
    {"an unknown kind", {{INSPECT_OPEN, 1, VIEW("\10\0\0\0\0\0\0\0\0\0\0\0\0")}}},
    {"no id", {{INSPECT_OPEN, 0, VIEW("\2\0\0\0\0\0\0\0\0\0\0\0\0")}}},
    {"an open cut short", {{INSPECT_OPEN, 1, VIEW("\2\0\0\0\0\0\0\0\0\0\0\0")}}},
    {"an open with more behind it", {{INSPECT_OPEN, 1, VIEW("\2\0\0\0\0\0\0\0\0\0\0\0\0x")}}},
    {"a block longer than the message", {{INSPECT_OPEN, 1, VIEW("\2\0\0\0\xff\0\0\0\0\0\0\0\0")}}},
    {"the same id twice", {OPEN_JSON, OPEN_JSON}},
    {"an end with a body", {OPEN_JSON, {INSPECT_END, 1, VIEW("x")}}},
    {"a close with a body", {OPEN_JSON, {INSPECT_CLOSE, 1, VIEW("x")}}},
};

static void a_bad_message_drops_the_channel(void **state) {
    (void)state;
    for (size_t i = 0; i < sizeof broken / sizeof *broken; i++) {
        struct world *w = world_new(64);
        for (size_t k = 0; k < 3 && broken[i].steps[k].type; k++) {
            const struct step *s = &broken[i].steps[k];
            channel_send(w->channel, s->type, s->id, 0, s->body);
        }
        while (!w->is_lost)
            turn(w);
        assert_int_equal(w->lost, ERR_BAD);
        world_free(w);
    }
}

static void more_than_the_window_drops_the_channel(void **state) {
    (void)state;
    static uint8_t zeros[64 << 20];
    struct world *w = world_new(64);
    struct buf b = gzip(view_of(zeros, sizeof zeros));
    open_job(w, 1, INSPECT_GUNZIP, "", UINT64_MAX);
    /* Nothing is read meanwhile, so decoding has to wait with all the input in hand. */
    for (size_t n = 0; n < 2 * INSPECT_WINDOW; n += buf_len(&b))
        for (struct view v = buf_view(&b); v.n > 0; v = view_skip(v, INSPECT_PIECE_MAX))
            data(w, 1, view_head(v, INSPECT_PIECE_MAX));
    while (!w->is_lost)
        turn(w);
    assert_int_equal(w->lost, ERR_BAD);
    buf_free(&b);
    world_free(w);
}

static void the_end_of_egress_frees_its_bodies(void **state) {
    (void)state;
    struct world *w = world_new(64);
    open_job(w, 1, INSPECT_JSON, "", 0);
    open_job(w, 2, INSPECT_GUNZIP, "", 0);
    channel_flush(w->channel);
    channel_free(w->channel);
    w->channel = NULL;
    while (!w->is_lost)
        turn(w);
    assert_int_equal(w->lost, ERR_CLOSED);
    world_free(w);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(each_kind_of_body_is_answered),
        cmocka_unit_test(rf_02_rx_06_a_large_answer_comes_piece_by_piece),
        cmocka_unit_test(credit_comes_with_the_last_output),
        cmocka_unit_test(rf_02_a_truncated_or_growing_body_is_bad),
        cmocka_unit_test(what_only_the_end_shows_is_answered_at_the_end),
        cmocka_unit_test(bodies_are_bounded_and_closing_makes_room),
        cmocka_unit_test(facts_are_told_of_a_body_that_is_read),
        cmocka_unit_test(facts_wait_until_egress_reads),
        cmocka_unit_test(facts_come_early_where_the_rest_does_not_matter),
        cmocka_unit_test(a_bad_message_drops_the_channel),
        cmocka_unit_test(more_than_the_window_drops_the_channel),
        cmocka_unit_test(the_end_of_egress_frees_its_bodies),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
