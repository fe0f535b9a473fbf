/*
 * A ledger in a folder, and producers that hand over packets without a socket.
 */
#ifndef TESTS_UNIT_LEDGER_PLACE_H
#define TESTS_UNIT_LEDGER_PLACE_H

#include "tests/unit/log_folder.h"

#include <string.h>

#define WALL UINT64_C(1790000000000000000)

struct place {
    char path[64];
    int dir;
    struct ledger *ledger;
};

static void place_start(struct place *p) {
    assert_int_equal(ledger_open(p->dir, WALL, 1, &p->ledger), 0);
}

static void place_open(struct place *p) {
    p->dir = log_folder_make(p->path);
    place_start(p);
}

static void place_close(struct place *p) {
    ledger_free(p->ledger);
    log_folder_remove(p->path, p->dir);
}

static int setup_place(void **state) {
    static struct place p;
    place_open(&p);
    *state = &p;
    return 0;
}

static int teardown_place(void **state) {
    place_close(*state);
    return 0;
}

#define WITH_PLACE(test) cmocka_unit_test_setup_teardown(test, setup_place, teardown_place)

static void add_record(uint64_t number, const char *host, struct buf *out) {
    size_t at = buf_len(out);
    buf_put_u32(out, 0);
    buf_put_u8(out, RECORD_DECISION);
    buf_put_u64(out, WALL);
    buf_put_u64(out, number * 1000);
    buf_put_u8(out, FIELD_HOST);
    buf_put_block(out, view_str(host));
    buf_patch_u32(out, at, (uint32_t)(buf_len(out) - at - 4));
}

static void make_packet(const char *origin, uint64_t epoch, uint64_t number, const char *host,
                        struct buf *out) {
    buf_init(out, RECORD_PACKET_SIZE);
    buf_put_u8(out, 2);
    buf_put_u64(out, number);
    buf_put_u64(out, epoch);
    buf_put_block(out, view_str(origin));
    add_record(number, host, out);
}

/* What origin's channel brings. */
static int take_view(struct place *p, const char *origin, struct view packet) {
    size_t producer;
    assert_int_equal(ledger_producer(p->ledger, origin, &producer), 0);
    return ledger_take(p->ledger, producer, packet);
}

static int take(struct place *p, const char *origin, uint64_t epoch, uint64_t number) {
    struct buf packet;
    make_packet(origin, epoch, number, "h.example", &packet);
    int result = take_view(p, origin, buf_view(&packet));
    buf_free(&packet);
    return result;
}

static void take_records(struct place *p, uint64_t from, uint64_t to) {
    for (uint64_t i = from; i <= to; i++)
        assert_int_equal(take(p, "egress 1", 7, i), 0);
}

static void flush(struct place *p) {
    assert_int_equal(ledger_flush(p->ledger, WALL), 0);
}

static struct chain_head exported(const struct place *p) {
    struct chain_head h;
    struct buf b;
    buf_init(&b, 4096);
    assert_int_equal(log_file_read(p->dir, "head.json", HEAD_JSON_MAX, &b), 0);
    assert_int_equal(chain_head_read(buf_view(&b), &h), 0);
    buf_free(&b);
    return h;
}

#endif
