#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "audit/ledger.h"
#include "audit/sign_key.h"
#include "audit/verify.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#define WALL UINT64_C(1790000000000000000)

/* A disk that fails: the library's fdatasync is replaced by this one. */
static bool sync_fails;

int fdatasync(int fd) {
    if (!sync_fails)
        return fsync(fd);
    errno = EIO;
    return -1;
}

/* ---- a directory, a ledger, and producers that hand over packets without a socket ---- */

struct place {
    char path[64];
    int dir;
    struct ledger *ledger;
};

static void place_start(struct place *p) {
    assert_int_equal(ledger_open(p->dir, WALL, 1, &p->ledger), 0);
}

static void place_open(struct place *p) {
    snprintf(p->path, sizeof p->path, "/tmp/exeat-ledger-XXXXXX");
    assert_non_null(mkdtemp(p->path));
    p->dir = open(p->path, O_RDONLY | O_DIRECTORY);
    place_start(p);
}

static void place_close(struct place *p) {
    struct segment_list l;
    static const char *const others[] = {"sign.key", "sign.pub", "head.json", "head.json.new"};
    ledger_free(p->ledger);
    assert_int_equal(segment_list_read(p->dir, &l), 0);
    for (size_t i = 0; i < l.n; i++)
        unlinkat(p->dir, l.at[i].text, 0);
    segment_list_free(&l);
    for (size_t i = 0; i < sizeof others / sizeof *others; i++)
        unlinkat(p->dir, others[i], 0);
    close(p->dir);
    assert_int_equal(rmdir(p->path), 0);
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

/* The packet is freed. */
static int take_packet(struct place *p, struct buf *packet) {
    assert_true(buf_ok(packet));
    int result = take_view(p, "egress 1", buf_view(packet));
    buf_free(packet);
    return result;
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

/* How many lines of all files contain the text. */
static size_t lines_with(const struct place *p, const char *text) {
    struct segment_list l;
    size_t n = 0;
    assert_int_equal(segment_list_read(p->dir, &l), 0);
    for (size_t i = 0; i < l.n; i++) {
        struct segment s;
        struct view line;
        assert_int_equal(segment_open(p->dir, l.at[i].text, &s), 0);
        while (segment_next(&s, &line) == 0)
            if (view_search(line, view_str(text)) != line.n)
                n++;
        segment_close(&s);
    }
    segment_list_free(&l);
    return n;
}

static struct verify_report verified(const struct place *p, const struct chain_head *head) {
    struct verify_report r;
    struct chain_keys *keys = NULL;
    assert_int_equal(sign_key_public(p->dir, "sign.pub", &keys), 0);
    assert_int_equal(verify_log(p->dir, keys, head, &r), 0);
    chain_keys_free(keys);
    return r;
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

static void must_be_good(const struct place *p) {
    struct verify_report r = verified(p, NULL);
    if (!r.good)
        fail_msg("%s (%s:%llu)", r.text, r.file, (unsigned long long)r.line);
}

/* ---- records ---- */

static void records_of_several_producers_become_one_chain(void **state) {
    struct place *p = *state;
    for (uint64_t i = 1; i <= 10; i++) {
        assert_int_equal(take(p, "egress 1", 7, i), 0);
        assert_int_equal(take(p, "broker", 8, i), 0);
    }
    flush(p);
    assert_int_equal(lines_with(p,
                                "\"origin\":\"egress 1\",\"n\":10,\"epoch\":\"0000000000000007\","
                                "\"mono\":10,\"kind\":\"decision\",\"host\":\"h.example\""),
                     1);
    assert_int_equal(lines_with(p, "\"kind\":\"decision\""), 20);
    assert_int_equal(lines_with(p, "\"event\":\"gap\""), 0);
    must_be_good(p);
}

static void lost_numbers_become_a_gap_that_names_them(void **state) {
    struct place *p = *state;
    assert_int_equal(take(p, "egress 1", 7, 1), 0);
    assert_int_equal(take(p, "egress 1", 7, 5), 0);
    assert_int_equal(take(p, "egress 2", 7, 3), 0);
    flush(p);
    assert_int_equal(lines_with(p, "\"event\":\"gap\""), 2);
    assert_int_equal(lines_with(p, "\"producer\":\"egress 1\",\"first\":2,\"last\":4"), 1);
    assert_int_equal(lines_with(p, "\"producer\":\"egress 2\",\"first\":1,\"last\":2"), 1);
    must_be_good(p);
}

static void a_new_epoch_is_a_restart_and_counts_from_one(void **state) {
    struct place *p = *state;
    assert_int_equal(take(p, "egress 1", 7, 1), 0);
    assert_int_equal(take(p, "egress 1", 7, 2), 0);
    assert_int_equal(take(p, "egress 1", 9, 1), 0);
    flush(p);
    assert_int_equal(lines_with(p, "\"event\":\"producer_restarted\""), 1);
    assert_int_equal(lines_with(p, "\"event\":\"gap\""), 0);
}

static void what_breaks_the_contract_is_not_taken(void **state) {
    struct place *p = *state;
    struct buf packet;
    size_t one, two;
    assert_int_equal(take(p, "egress 1", 7, 2), 0);
    assert_int_equal(take(p, "egress 1", 7, 2), ERR_BAD); /* a number twice */
    assert_int_equal(take(p, "egress 1", 7, 1), ERR_BAD);
    assert_int_equal(ledger_producer(p->ledger, "egress 1", &one), 0);
    assert_int_equal(ledger_producer(p->ledger, "egress 2", &two), 0);
    assert_int_not_equal(one, two);
    make_packet("egress 1", 7, 3, "h", &packet);
    assert_int_equal(take_view(p, "egress 2", buf_view(&packet)), ERR_BAD); /* another's name */
    assert_int_equal(take_view(p, "egress 1", view_head(buf_view(&packet), 20)), ERR_BAD);
    assert_int_equal(take_packet(p, &packet), 0);
    flush(p);
    assert_int_equal(lines_with(p, "\"kind\":\"decision\""), 2);
}

static void a_packet_of_several_records_becomes_as_many_lines(void **state) {
    struct place *p = *state;
    struct buf packet;
    make_packet("egress 1", 7, 1, "first.example", &packet);
    add_record(2, "second.example", &packet);
    add_record(3, "third.example", &packet);
    assert_int_equal(take_view(p, "egress 1", buf_view(&packet)), 0);
    assert_int_equal(take_packet(p, &packet), ERR_BAD);
    make_packet("egress 1", 7, 6, "sixth.example", &packet);
    add_record(7, "seventh.example", &packet);
    assert_int_equal(take_packet(p, &packet), 0);
    flush(p);
    assert_int_equal(lines_with(p, "\"n\":2,"), 1);
    assert_int_equal(lines_with(p, "third.example"), 1);
    assert_int_equal(lines_with(p, "\"n\":7,"), 1);
    assert_int_equal(lines_with(p, "records 4 to 5 of egress 1 are lost"), 1);
    must_be_good(p);
}

static void a_malformed_record_ends_its_packet_and_loses_none_before_it(void **state) {
    struct place *p = *state;
    struct buf packet;
    make_packet("egress 1", 7, 1, "first.example", &packet);
    add_record(2, "", &packet);
    add_record(3, "third.example", &packet);
    assert_int_equal(take_packet(p, &packet), ERR_BAD);
    make_packet("egress 1", 7, 2, "h", &packet);
    size_t head = 1 + 8 + 8 + 4 + strlen("egress 1");
    assert_int_equal(take_view(p, "egress 1", view_head(buf_view(&packet), head)), ERR_BAD);
    buf_free(&packet);
    flush(p);
    assert_int_equal(lines_with(p, "\"kind\":\"decision\""), 1);
    assert_int_equal(lines_with(p, "first.example"), 1);
}

/* Each byte of it becomes six: what ledger_has_room promises must be enough. */
static void the_largest_packet_fits_when_there_is_room(void **state) {
    struct place *p = *state;
    struct buf packet;
    char host[RECORD_PACKET_SIZE / RECORDS_A_PACKET - 64];
    uint64_t number = 1;
    memset(host, 1, sizeof host - 1);
    host[sizeof host - 1] = 0;
    for (int flushes = 0; flushes < 3; flushes++) {
        for (; ledger_has_room(p->ledger); number += RECORDS_A_PACKET) {
            make_packet("egress 1", 7, number, host, &packet);
            for (uint64_t i = 1; i < RECORDS_A_PACKET; i++)
                add_record(number + i, host, &packet);
            assert_int_equal(take_packet(p, &packet), 0);
        }
        flush(p);
    }
    make_packet("egress 1", 7, number, "h", &packet);
    for (uint64_t i = 1; i <= RECORDS_A_PACKET; i++)
        add_record(number + i, "h", &packet);
    assert_int_equal(take_packet(p, &packet), ERR_BAD); /* one too many */
    flush(p);
    must_be_good(p);
}

static void au_02_a_hostile_host_stays_inside_its_line(void **state) {
    struct place *p = *state;
    struct buf packet;
    make_packet("egress 1", 7, 1, "x\"}\n{\"v\":1,\"seq\":3,\"verdict\":\"allow\"}\n\xe2\x80\xae",
                &packet);
    assert_int_equal(take_packet(p, &packet), 0);
    flush(p);
    assert_int_equal(lines_with(p, "\"verdict\""), 0);
    assert_int_equal(lines_with(p, "\"host\":\"x\\u0022}\\u000a{"), 1);
    must_be_good(p);
}

/* ---- restarts ---- */

static void a_restart_continues_numbers_without_a_gap(void **state) {
    struct place *p = *state;
    uint64_t epoch, number;
    size_t producer;
    take_records(p, 1, 3);
    flush(p);
    ledger_free(p->ledger);
    place_start(p);
    assert_int_equal(ledger_producer(p->ledger, "egress 1", &producer), 0);
    assert_true(ledger_written(p->ledger, producer, &epoch, &number));
    assert_int_equal(epoch, 7);
    assert_int_equal(number, 3);
    assert_int_equal(take(p, "egress 1", 7, 4), 0);
    flush(p);
    assert_int_equal(lines_with(p, "\"event\":\"gap\""), 0);
    assert_int_equal(lines_with(p, "\"event\":\"producer_restarted\""), 0);
    assert_int_equal(lines_with(p, "\"event\":\"started\""), 2);
    must_be_good(p);
}

static void ad_05_what_was_written_and_comes_again_is_passed_over(void **state) {
    struct place *p = *state;
    for (int again = 0; again < 2; again++) {
        /* Of three writers, one after the other, then after a kill that left all in the kernel. */
        for (uint64_t epoch = 9; epoch >= 7; epoch--)
            for (uint64_t n = 1; n <= 3; n++)
                assert_int_equal(take(p, "egress 1", epoch, n), 0);
        flush(p);
        assert_int_equal(lines_with(p, "h.example"), 9);
        ledger_free(p->ledger);
        place_start(p);
    }
    assert_int_equal(take(p, "egress 1", 7, 4), 0);
    assert_int_equal(take(p, "egress 1", 6, 1), 0);
    flush(p);
    assert_int_equal(lines_with(p, "h.example"), 11);
    assert_int_equal(lines_with(p, "producer_restarted"), 3);
    assert_int_equal(lines_with(p, "\"gap\""), 0);
    must_be_good(p);
}

static void ad_05_a_torn_end_is_cut_and_recorded_and_what_was_in_hand_is_a_gap(void **state) {
    struct place *p = *state;
    take_records(p, 1, 3);
    flush(p);
    ledger_free(p->ledger);
    int fd = openat(p->dir, SEGMENT_CURRENT, O_RDWR);
    off_t size = lseek(fd, 0, SEEK_END);
    assert_int_equal(ftruncate(fd, size - 10), 0);
    close(fd);
    place_start(p);
    assert_int_equal(take(p, "egress 1", 7, 4), 0);
    flush(p);
    assert_int_equal(lines_with(p, "\"event\":\"recovered\""), 1);
    assert_int_equal(lines_with(p, "\"producer\":\"egress 1\",\"first\":3,\"last\":3"), 1);
    must_be_good(p);
}

static void au_04_a_changed_file_is_set_aside_and_verification_keeps_saying_so(void **state) {
    struct place *p = *state;
    take_records(p, 1, 5);
    flush(p);
    ledger_free(p->ledger);
    int fd = openat(p->dir, SEGMENT_CURRENT, O_RDWR);
    struct buf b;
    buf_init(&b, 65536);
    uint8_t *at = buf_reserve(&b, 60000);
    ssize_t n = pread(fd, at, 60000, 0);
    buf_commit(&b, (size_t)n);
    size_t host = view_search(buf_view(&b), VIEW("\"n\":3,"));
    assert_int_equal(pwrite(fd, "\"n\":9,", 6, (off_t)host), 6);
    close(fd);
    buf_free(&b);
    place_start(p);
    flush(p);
    assert_int_equal(lines_with(p, "\"event\":\"set_aside\""), 1);
    struct verify_report r = verified(p, NULL);
    assert_false(r.good);
    assert_string_equal(r.file, "audit-000000000001.bad.jsonl");
    assert_int_equal(r.line, 6); /* header, key, started, n 1, n 2, n 3 */
    assert_int_equal(r.seq, 6);
}

static void au_04_a_log_that_lost_its_end_since_its_signed_head_says_so_at_the_start(void **state) {
    struct place *p = *state;
    take_records(p, 1, 5);
    assert_int_equal(ledger_sign(p->ledger, WALL), 0);
    ledger_free(p->ledger);
    assert_int_equal(unlinkat(p->dir, SEGMENT_CURRENT, 0), 0);
    place_start(p);
    flush(p);
    assert_int_equal(lines_with(p, "\"event\":\"head_mismatch\""), 1);
    struct verify_report r = verified(p, NULL);
    assert_false(r.good);
    assert_string_equal(r.file, SEGMENT_CURRENT);
    assert_true(r.line > 1 && r.seq == r.line);
    assert_non_null(strstr(r.text, "are missing from the end of the log"));
    /* The rest is read all the same. */
    assert_int_equal(take(p, "egress 1", 8, 1), 0);
    flush(p);
    assert_int_equal(verified(p, NULL).records, r.records + 1);
}

/* ---- rotation ---- */

static void the_chain_spans_rotation_and_each_file_restates_its_producers(void **state) {
    struct place *p = *state;
    struct segment_list l;
    struct ledger_settings s = {.file_bytes = 64 * 1024};
    ledger_set(p->ledger, &s);
    for (uint64_t i = 1; i <= 1000; i++) {
        assert_int_equal(take(p, "egress 1", 7, i), 0);
        flush(p);
    }
    assert_int_equal(segment_list_read(p->dir, &l), 0);
    assert_true(l.n >= 4);
    assert_int_equal(lines_with(p, "\"kind\":\"segment\""), l.n);
    assert_int_equal(lines_with(p, "\"kind\":\"producer\""), l.n - 1);
    must_be_good(p);
    struct verify_report r = verified(p, NULL);
    assert_int_equal(r.files, l.n);
    assert_int_equal(r.first, 1);

    /* a finished file that is missing shows; with all older ones gone the rest is a chain */
    char away[SEGMENT_NAME_SIZE];
    memcpy(away, l.at[1].text, sizeof away);
    assert_int_equal(unlinkat(p->dir, away, 0), 0);
    r = verified(p, NULL);
    assert_false(r.good);
    assert_string_equal(r.file, l.at[2].text);
    assert_int_equal(r.line, 1);
    assert_int_equal(unlinkat(p->dir, l.at[0].text, 0), 0);
    r = verified(p, NULL);
    assert_true(r.good);
    assert_int_equal(r.first, l.at[2].first);
    segment_list_free(&l);
}

static void old_files_are_removed_as_the_setting_says_and_that_is_recorded(void **state) {
    struct place *p = *state;
    struct segment_list l;
    struct ledger_settings s = {.file_bytes = 64 * 1024, .keep = 2};
    ledger_set(p->ledger, &s);
    for (uint64_t i = 1; i <= 1500; i++) {
        assert_int_equal(take(p, "egress 1", 7, i), 0);
        flush(p);
    }
    assert_int_equal(segment_list_read(p->dir, &l), 0);
    assert_int_equal(l.n, 3);
    segment_list_free(&l);
    assert_true(lines_with(p, "\"event\":\"file_removed\"") >= 2);
    must_be_good(p);
}

static void ad_05_a_kill_between_renaming_and_the_new_file_loses_no_link(void **state) {
    struct place *p = *state;
    take_records(p, 1, 5);
    flush(p);
    ledger_free(p->ledger);
    assert_int_equal(renameat(p->dir, SEGMENT_CURRENT, p->dir, "audit-000000000001.jsonl"), 0);
    place_start(p);
    assert_int_equal(take(p, "egress 1", 7, 6), 0);
    flush(p);
    assert_int_equal(lines_with(p, "\"event\":\"gap\""), 0);
    must_be_good(p);
}

/* ---- heads ---- */

static void au_04_an_exported_head_shows_a_cut_end_and_a_log_written_anew(void **state) {
    struct place *p = *state, other;
    take_records(p, 1, 5);
    flush(p);
    struct stat st;
    assert_int_equal(fstatat(p->dir, SEGMENT_CURRENT, &st, 0), 0);
    assert_int_equal(take(p, "egress 1", 7, 6), 0);
    assert_int_equal(ledger_sign(p->ledger, WALL), 0);
    struct chain_head h = exported(p);
    struct verify_report r = verified(p, &h);
    assert_true(r.good);
    assert_int_equal(r.heads, 1);
    assert_int_equal(r.last, h.seq + 1);

    /* cut at a line's end: good by itself, not with the head */
    int fd = openat(p->dir, SEGMENT_CURRENT, O_RDWR);
    assert_int_equal(ftruncate(fd, st.st_size), 0);
    close(fd);
    assert_true(verified(p, NULL).good);
    r = verified(p, &h);
    assert_false(r.good);
    assert_int_equal(r.seq, h.seq);

    /* another log under the same key, longer than the head */
    place_open(&other);
    assert_int_equal(take(&other, "egress 1", 7, 1), 0);
    for (uint64_t i = 2; i <= 9; i++)
        assert_int_equal(take(&other, "egress 1", 8, i), 0);
    flush(&other);
    struct chain_keys *keys = NULL;
    assert_int_equal(sign_key_public(p->dir, "sign.pub", &keys), 0);
    assert_int_equal(verify_log(other.dir, keys, &h, &r), 0);
    assert_false(r.good);
    assert_int_equal(r.seq, h.seq);

    /* a head that somebody made up */
    h.seq = 2;
    assert_int_equal(verify_log(p->dir, keys, &h, &r), 0);
    assert_false(r.good);
    chain_keys_free(keys);
    place_close(&other);
}

static void heads_are_signed_only_when_something_was_added(void **state) {
    struct place *p = *state;
    assert_int_equal(ledger_sign(p->ledger, WALL), 0);
    uint64_t seq = ledger_seq(p->ledger);
    assert_int_equal(ledger_sign(p->ledger, WALL), 0);
    assert_int_equal(ledger_seq(p->ledger), seq);
    assert_int_equal(take(p, "ca", 7, 1), 0);
    assert_int_equal(ledger_sign(p->ledger, WALL), 0);
    assert_int_equal(ledger_seq(p->ledger), seq + 2);
}

static void a_lost_signing_key_is_replaced_and_older_heads_still_verify(void **state) {
    struct place *p = *state;
    struct stat st;
    assert_int_equal(ledger_sign(p->ledger, WALL), 0);
    ledger_free(p->ledger);
    assert_int_equal(fstatat(p->dir, "sign.key", &st, 0), 0);
    assert_int_equal(st.st_mode & 07777, 0600);
    assert_int_equal(unlinkat(p->dir, "sign.key", 0), 0);
    place_start(p);
    assert_int_equal(ledger_sign(p->ledger, WALL), 0);
    assert_int_equal(lines_with(p, "\"event\":\"signing_key_made\""), 2);
    assert_int_equal(lines_with(p, "\"kind\":\"head\""), 2);
    must_be_good(p);
}

static void a_signing_key_that_cannot_be_read_stops_the_start(void **state) {
    struct place *p = *state;
    ledger_free(p->ledger);
    p->ledger = NULL;
    assert_int_equal(log_file_replace(p->dir, "sign.key", 0600, VIEW("nothing")), 0);
    assert_int_equal(ledger_open(p->dir, WALL, 1, &p->ledger), ERR_CRYPTO);
}

/* ---- trouble with the disk ---- */

static void au_01_a_full_disk_drops_nothing_and_heals_by_itself(void **state) {
    struct place *p = *state;
    struct rlimit saved, small;
    struct stat st;
    uint64_t epoch, number;
    size_t producer;
    assert_int_equal(take(p, "egress 1", 7, 1), 0);
    flush(p);
    signal(SIGXFSZ, SIG_IGN);
    assert_int_equal(fstatat(p->dir, SEGMENT_CURRENT, &st, 0), 0);
    getrlimit(RLIMIT_FSIZE, &saved);
    small = (struct rlimit){(rlim_t)st.st_size + 700, saved.rlim_max};
    assert_int_equal(setrlimit(RLIMIT_FSIZE, &small), 0);
    take_records(p, 2, 20);
    for (int i = 0; i < 3; i++)
        assert_int_equal(ledger_flush(p->ledger, WALL), ERR_SYSTEM);
    assert_true(ledger_is_behind(p->ledger));
    assert_int_equal(ledger_producer(p->ledger, "egress 1", &producer), 0);
    assert_true(ledger_written(p->ledger, producer, &epoch, &number));
    assert_int_equal(number, 1);
    setrlimit(RLIMIT_FSIZE, &saved);
    flush(p);
    assert_false(ledger_is_behind(p->ledger));
    assert_true(ledger_written(p->ledger, producer, &epoch, &number));
    assert_int_equal(number, 20);
    assert_int_equal(lines_with(p, "\"kind\":\"decision\""), 20);
    assert_int_equal(lines_with(p, "\"event\":\"gap\""), 0);
    must_be_good(p);
}

static void au_01_room_in_memory_ends_before_a_record_could_be_lost(void **state) {
    struct place *p = *state;
    uint64_t n = 0;
    while (ledger_has_room(p->ledger))
        assert_int_equal(take(p, "egress 1", 7, ++n), 0);
    assert_true(n > 1000);
    flush(p);
    assert_true(ledger_has_room(p->ledger));
    assert_int_equal(lines_with(p, "\"kind\":\"decision\""), n);
    must_be_good(p);
}

static void au_01_records_that_a_failed_sync_may_have_lost_are_named(void **state) {
    struct place *p = *state;
    char range[64];
    assert_int_equal(ledger_sign(p->ledger, WALL), 0);
    uint64_t before = ledger_seq(p->ledger);
    take_records(p, 1, 3);
    sync_fails = true;
    assert_int_equal(ledger_sign(p->ledger, WALL), ERR_SYSTEM);
    assert_int_equal(exported(p).seq, before - 1); /* no head promises what may be lost */
    assert_int_equal(ledger_sign(p->ledger, WALL), ERR_SYSTEM);
    sync_fails = false;
    assert_int_equal(ledger_sign(p->ledger, WALL), 0);
    snprintf(range, sizeof range, "\"first\":%llu,\"last\":%llu", (unsigned long long)before,
             (unsigned long long)before + 3);
    assert_int_equal(lines_with(p, "\"event\":\"sync_failed\""), 1);
    assert_int_equal(lines_with(p, range), 1);
    must_be_good(p);
}

static void au_01_a_durable_record_counts_only_once_its_sync_succeeded(void **state) {
    struct place *p = *state;
    struct ledger_settings s = {.file_bytes = 1 << 20, .durable = true};
    uint64_t epoch, number;
    size_t producer;
    ledger_set(p->ledger, &s);
    assert_int_equal(take(p, "egress 1", 7, 1), 0);
    sync_fails = true;
    assert_int_equal(ledger_flush(p->ledger, WALL), ERR_SYSTEM);
    assert_int_equal(ledger_producer(p->ledger, "egress 1", &producer), 0);
    assert_false(ledger_written(p->ledger, producer, &epoch, &number));
    sync_fails = false;
    flush(p);
    assert_true(ledger_written(p->ledger, producer, &epoch, &number));
    assert_int_equal(lines_with(p, "\"kind\":\"decision\""), 1);
    must_be_good(p);
}

/* ---- kill -9 ---- */

/* Writes records until it is killed; numbers are told over the pipe once they are durable. */
static void write_until_killed(const char *path, uint64_t epoch, int out) {
    struct place p = {.dir = open(path, O_RDONLY | O_DIRECTORY)};
    struct ledger_settings s = {.file_bytes = 64 * 1024, .durable = epoch % 2 == 0};
    if (ledger_open(p.dir, WALL, 1, &p.ledger) != 0)
        _exit(1);
    ledger_set(p.ledger, &s);
    for (uint64_t i = 1;; i++) {
        if (take(&p, "egress 1", epoch, i) != 0)
            _exit(2);
        if (i % 5 == 0 && ledger_flush(p.ledger, WALL) != 0)
            _exit(3);
        if (i % 40 == 0 && ledger_sign(p.ledger, WALL) != 0)
            _exit(4);
        if (i % 5 == 0 && write(out, &i, sizeof i) != sizeof i)
            _exit(5);
    }
}

static void ad_05_a_writer_killed_at_any_moment_loses_nothing_that_was_flushed(void **state) {
    struct place *p = *state;
    unsigned seed = (unsigned)time(NULL);
    ledger_free(p->ledger);
    p->ledger = NULL;
    print_message("seed %u\n", seed);
    srand(seed);
    for (uint64_t round = 1; round <= 60; round++) {
        int fds[2];
        uint64_t told = 0, n;
        assert_int_equal(pipe(fds), 0);
        pid_t child = fork();
        if (child == 0) {
            close(fds[0]);
            write_until_killed(p->path, round, fds[1]);
        }
        close(fds[1]);
        /* Not before it has written something, then at a random moment. */
        assert_int_equal(read(fds[0], &told, sizeof told), sizeof told);
        usleep((useconds_t)(rand() % 3000));
        kill(child, SIGKILL);
        int status;
        waitpid(child, &status, 0);
        assert_true(WIFSIGNALED(status));
        while (read(fds[0], &n, sizeof n) == sizeof n)
            told = n;
        close(fds[0]);
        struct verify_report r = verified(p, NULL);
        if (!r.good)
            fail_msg("round %llu: %s (%s:%llu)", (unsigned long long)round, r.text, r.file,
                     (unsigned long long)r.line);
        char line[96];
        snprintf(line, sizeof line, "\"n\":%llu,\"epoch\":\"%016llx\"", (unsigned long long)told,
                 (unsigned long long)round);
        assert_true(lines_with(p, line) >= 1);
    }
    place_start(p);
    flush(p);
    assert_int_equal(lines_with(p, "\"event\":\"set_aside\""), 0);
    assert_int_equal(lines_with(p, "\"event\":\"head_mismatch\""), 0);
    must_be_good(p);
}

/* ---- speed ---- */

static void many_records_a_second_are_taken(void **state) {
    struct place *p = *state;
    struct buf packet;
    struct timespec from, to;
    size_t producer;
    const uint64_t rounds = 20000;
    make_packet("egress 1", 7, 1, "api.example.com", &packet);
    size_t head = 1 + 8 + 8 + 4 + strlen("egress 1");
    buf_put_u8(&packet, FIELD_PATH);
    buf_put_block(&packet, VIEW("/v1/items/1234567/comments"));
    buf_put_u8(&packet, FIELD_SANDBOX);
    buf_put_block(&packet, VIEW("worker-1"));
    buf_put_u8(&packet, FIELD_STATUS);
    buf_put_u64(&packet, 200);
    buf_patch_u32(&packet, head, (uint32_t)(buf_len(&packet) - head - 4));
    assert_int_equal(ledger_producer(p->ledger, "egress 1", &producer), 0);
    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &from);
    for (uint64_t i = 1; i <= rounds; i++) {
        for (int k = 0; k < 8; k++)
            packet.p[1 + k] = (uint8_t)(i >> (56 - 8 * k));
        if (ledger_take(p->ledger, producer, buf_view(&packet)) != 0)
            fail_msg("record %llu", (unsigned long long)i);
        if (i % 64 == 0)
            flush(p);
    }
    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &to);
    double us = ((double)(to.tv_sec - from.tv_sec) * 1e9 + (double)(to.tv_nsec - from.tv_nsec)) /
                1e3 / (double)rounds;
    print_message("%.2f us of CPU a record\n", us);
    assert_true(us < 1000); /* far above any real figure: only a mistake of kind shows */
    buf_free(&packet);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        WITH_PLACE(records_of_several_producers_become_one_chain),
        WITH_PLACE(lost_numbers_become_a_gap_that_names_them),
        WITH_PLACE(a_new_epoch_is_a_restart_and_counts_from_one),
        WITH_PLACE(what_breaks_the_contract_is_not_taken),
        WITH_PLACE(a_packet_of_several_records_becomes_as_many_lines),
        WITH_PLACE(a_malformed_record_ends_its_packet_and_loses_none_before_it),
        WITH_PLACE(the_largest_packet_fits_when_there_is_room),
        WITH_PLACE(au_02_a_hostile_host_stays_inside_its_line),
        WITH_PLACE(a_restart_continues_numbers_without_a_gap),
        WITH_PLACE(ad_05_what_was_written_and_comes_again_is_passed_over),
        WITH_PLACE(ad_05_a_torn_end_is_cut_and_recorded_and_what_was_in_hand_is_a_gap),
        WITH_PLACE(au_04_a_changed_file_is_set_aside_and_verification_keeps_saying_so),
        WITH_PLACE(au_04_a_log_that_lost_its_end_since_its_signed_head_says_so_at_the_start),
        WITH_PLACE(the_chain_spans_rotation_and_each_file_restates_its_producers),
        WITH_PLACE(old_files_are_removed_as_the_setting_says_and_that_is_recorded),
        WITH_PLACE(ad_05_a_kill_between_renaming_and_the_new_file_loses_no_link),
        WITH_PLACE(au_04_an_exported_head_shows_a_cut_end_and_a_log_written_anew),
        WITH_PLACE(heads_are_signed_only_when_something_was_added),
        WITH_PLACE(a_lost_signing_key_is_replaced_and_older_heads_still_verify),
        WITH_PLACE(a_signing_key_that_cannot_be_read_stops_the_start),
        WITH_PLACE(au_01_a_full_disk_drops_nothing_and_heals_by_itself),
        WITH_PLACE(au_01_room_in_memory_ends_before_a_record_could_be_lost),
        WITH_PLACE(au_01_records_that_a_failed_sync_may_have_lost_are_named),
        WITH_PLACE(au_01_a_durable_record_counts_only_once_its_sync_succeeded),
        WITH_PLACE(ad_05_a_writer_killed_at_any_moment_loses_nothing_that_was_flushed),
        WITH_PLACE(many_records_a_second_are_taken),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
