/* What a ledger makes of records: one chain over restarts, files and signed heads. */
#include "tests/unit/ledger_place.h"

#include <sys/stat.h>

/* ---- records ---- */

/* The packet is freed. */
static int take_packet(struct place *p, struct buf *packet) {
    assert_true(buf_ok(packet));
    int result = take_view(p, "egress 1", buf_view(packet));
    buf_free(packet);
    return result;
}

static void records_of_several_producers_become_one_chain(void **state) {
    struct place *p = *state;
    for (uint64_t i = 1; i <= 10; i++) {
        assert_int_equal(take(p, "egress 1", 7, i), 0);
        assert_int_equal(take(p, "broker", 8, i), 0);
    }
    flush(p);
    assert_lines(p->dir,
                 "\"origin\":\"egress 1\",\"n\":10,\"epoch\":\"0000000000000007\","
                 "\"mono\":10,\"kind\":\"decision\",\"host\":\"h.example\"",
                 1);
    assert_lines(p->dir, "\"kind\":\"decision\"", 20);
    assert_lines(p->dir, "\"event\":\"gap\"", 0);
    must_be_good(p->dir);
}

static void lost_numbers_become_a_gap_that_names_them(void **state) {
    struct place *p = *state;
    assert_int_equal(take(p, "egress 1", 7, 1), 0);
    assert_int_equal(take(p, "egress 1", 7, 5), 0);
    assert_int_equal(take(p, "egress 2", 7, 3), 0);
    flush(p);
    assert_lines(p->dir, "\"event\":\"gap\"", 2);
    assert_lines(p->dir, "\"producer\":\"egress 1\",\"first\":2,\"last\":4", 1);
    assert_lines(p->dir, "\"producer\":\"egress 2\",\"first\":1,\"last\":2", 1);
    must_be_good(p->dir);
}

static void a_new_epoch_is_a_restart_and_counts_from_one(void **state) {
    struct place *p = *state;
    assert_int_equal(take(p, "egress 1", 7, 1), 0);
    assert_int_equal(take(p, "egress 1", 7, 2), 0);
    assert_int_equal(take(p, "egress 1", 9, 1), 0);
    flush(p);
    assert_lines(p->dir, "\"event\":\"producer_restarted\"", 1);
    assert_lines(p->dir, "\"event\":\"gap\"", 0);
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
    assert_lines(p->dir, "\"kind\":\"decision\"", 2);
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
    assert_lines(p->dir, "\"n\":2,", 1);
    assert_lines(p->dir, "third.example", 1);
    assert_lines(p->dir, "\"n\":7,", 1);
    assert_lines(p->dir, "records 4 to 5 of egress 1 are lost", 1);
    must_be_good(p->dir);
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
    assert_lines(p->dir, "\"kind\":\"decision\"", 1);
    assert_lines(p->dir, "first.example", 1);
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
    must_be_good(p->dir);
}

static void au_02_a_hostile_host_stays_inside_its_line(void **state) {
    struct place *p = *state;
    struct buf packet;
    make_packet("egress 1", 7, 1, "x\"}\n{\"v\":1,\"seq\":3,\"verdict\":\"allow\"}\n\xe2\x80\xae",
                &packet);
    assert_int_equal(take_packet(p, &packet), 0);
    flush(p);
    assert_lines(p->dir, "\"verdict\"", 0);
    assert_lines(p->dir, "\"host\":\"x\\u0022}\\u000a{", 1);
    must_be_good(p->dir);
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
    assert_lines(p->dir, "\"event\":\"gap\"", 0);
    assert_lines(p->dir, "\"event\":\"producer_restarted\"", 0);
    assert_lines(p->dir, "\"event\":\"started\"", 2);
    must_be_good(p->dir);
}

static void ad_05_what_was_written_and_comes_again_is_passed_over(void **state) {
    struct place *p = *state;
    for (int again = 0; again < 2; again++) {
        /* Of three writers, one after the other, then after a kill that left all in the kernel. */
        for (uint64_t epoch = 9; epoch >= 7; epoch--)
            for (uint64_t n = 1; n <= 3; n++)
                assert_int_equal(take(p, "egress 1", epoch, n), 0);
        flush(p);
        assert_lines(p->dir, "h.example", 9);
        ledger_free(p->ledger);
        place_start(p);
    }
    assert_int_equal(take(p, "egress 1", 7, 4), 0);
    assert_int_equal(take(p, "egress 1", 6, 1), 0);
    flush(p);
    assert_lines(p->dir, "h.example", 11);
    assert_lines(p->dir, "producer_restarted", 3);
    assert_lines(p->dir, "\"gap\"", 0);
    must_be_good(p->dir);
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
    assert_lines(p->dir, "\"event\":\"recovered\"", 1);
    assert_lines(p->dir, "\"producer\":\"egress 1\",\"first\":3,\"last\":3", 1);
    must_be_good(p->dir);
}

/* What status tells; at the next start as well, until the file is taken away. */
static void must_tell(struct place *p, const char *expected) {
    struct buf told;
    ledger_free(p->ledger);
    place_start(p);
    flush(p);
    buf_init(&told, FINDINGS_MAX);
    findings_tell(p->dir, &told);
    size_t n = buf_len(&told);
    if (*expected ? view_search(buf_view(&told), view_str(expected)) == n : n > 0)
        fail_msg("told: %.*s", VIEW_ARG(buf_view(&told)));
    buf_free(&told);
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
    assert_lines(p->dir, "\"event\":\"set_aside\"", 1);
    must_tell(p, "audit-000000000001.bad.jsonl: line 6 ");
    struct verify_report r = verified(p->dir, NULL);
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
    assert_lines(p->dir, "\"event\":\"head_mismatch\"", 1);
    must_tell(p, "are missing from the end of the log (record ");
    struct verify_report r = verified(p->dir, NULL);
    assert_false(r.good);
    assert_string_equal(r.file, SEGMENT_CURRENT);
    assert_true(r.line > 1 && r.seq == r.line);
    assert_non_null(strstr(r.text, "are missing from the end of the log"));
    /* The rest is read all the same. */
    assert_int_equal(take(p, "egress 1", 8, 1), 0);
    flush(p);
    assert_int_equal(verified(p->dir, NULL).records, r.records + 1);
}

static void put_back(struct place *p, struct view head) {
    int fd = openat(p->dir, "head.json", O_WRONLY | O_TRUNC);
    assert_int_equal(write(fd, head.p, head.n), (ssize_t)head.n);
    close(fd);
}

static void au_04_a_head_that_is_not_the_newest_of_the_log_is_found_at_the_start(void **state) {
    struct place *p = *state;
    struct buf old;
    buf_init(&old, HEAD_JSON_MAX);
    take_records(p, 1, 5);
    assert_int_equal(ledger_sign(p->ledger, WALL), 0);
    assert_int_equal(log_file_read(p->dir, "head.json", HEAD_JSON_MAX - 1, &old), 0);
    take_records(p, 6, 7);
    assert_int_equal(ledger_sign(p->ledger, WALL), 0);
    must_tell(p, "");
    const struct view heads[] = {VIEW(""), VIEW("{}"), buf_view(&old)};
    for (size_t i = 0; i < sizeof heads / sizeof *heads; i++) {
        ledger_free(p->ledger);
        put_back(p, heads[i]);
        place_start(p);
        assert_int_equal(ledger_sign(p->ledger, WALL), 0);
        must_tell(p, "head.json is not the newest head that the log has");
        assert_lines(p->dir, "\"event\":\"head_mismatch\"", i + 1);
        assert_int_equal(unlinkat(p->dir, FINDINGS_FILE, 0), 0);
        must_tell(p, "");
    }
    buf_free(&old);
    assert_false(verified(p->dir, NULL).good);
}

static void au_04_what_was_found_is_kept_or_nothing_is_written(void **state) {
    struct place *p = *state;
    take_records(p, 1, 5);
    assert_int_equal(ledger_sign(p->ledger, WALL), 0);
    ledger_free(p->ledger);
    assert_int_equal(unlinkat(p->dir, SEGMENT_CURRENT, 0), 0);
    assert_int_equal(mkdirat(p->dir, FINDINGS_FILE ".new", 0700), 0);
    place_start(p);
    assert_int_equal(ledger_flush(p->ledger, WALL), ERR_SYSTEM);
    assert_int_equal(unlinkat(p->dir, FINDINGS_FILE ".new", AT_REMOVEDIR), 0);
    assert_int_equal(ledger_sign(p->ledger, WALL), 0);
    must_tell(p, "are missing from the end of the log");
    assert_lines(p->dir, "\"event\":\"head_mismatch\"", 1);
}

static void what_is_told_of_findings_is_short_and_never_nothing(void **state) {
    struct place *p = *state;
    char line[1024];
    struct buf told, more;
    buf_init(&told, FINDINGS_MAX);
    buf_init(&more, 4 * FINDINGS_MAX);
    memset(line, 'x', sizeof line);
    line[sizeof line - 1] = '\n';
    assert_int_equal(findings_add(p->dir, view_of(line, sizeof line)), 0);
    findings_tell(p->dir, &told);
    assert_int_equal(buf_len(&told), 512);
    /* Longer than what any start has made of it. */
    while (buf_len(&more) <= 2 * FINDINGS_MAX)
        buf_put(&more, view_of(line, sizeof line));
    assert_int_equal(log_file_replace(p->dir, FINDINGS_FILE, 0640, buf_view(&more)), 0);
    buf_reset(&told);
    findings_tell(p->dir, &told);
    assert_true(view_starts(buf_view(&told), VIEW("findings: ")));
    buf_free(&told);
    buf_free(&more);
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
    assert_lines(p->dir, "\"kind\":\"segment\"", l.n);
    assert_lines(p->dir, "\"kind\":\"producer\"", l.n - 1);
    must_be_good(p->dir);
    struct verify_report r = verified(p->dir, NULL);
    assert_int_equal(r.files, l.n);
    assert_int_equal(r.first, 1);

    /* a finished file that is missing shows; with all older ones gone the rest is a chain */
    char away[SEGMENT_NAME_SIZE];
    memcpy(away, l.at[1].text, sizeof away);
    assert_int_equal(unlinkat(p->dir, away, 0), 0);
    r = verified(p->dir, NULL);
    assert_false(r.good);
    assert_string_equal(r.file, l.at[2].text);
    assert_int_equal(r.line, 1);
    assert_int_equal(unlinkat(p->dir, l.at[0].text, 0), 0);
    r = verified(p->dir, NULL);
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
    assert_true(lines_with(p->dir, "\"event\":\"file_removed\"") >= 2);
    must_be_good(p->dir);
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
    assert_lines(p->dir, "\"event\":\"gap\"", 0);
    must_be_good(p->dir);
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
    struct verify_report r = verified(p->dir, &h);
    assert_true(r.good);
    assert_int_equal(r.heads, 1);
    assert_int_equal(r.last, h.seq + 1);

    /* cut at a line's end: good by itself, not with a head, be it the one that lies beside it */
    int fd = openat(p->dir, SEGMENT_CURRENT, O_RDWR);
    assert_int_equal(ftruncate(fd, st.st_size), 0);
    close(fd);
    r = verified(p->dir, NULL);
    assert_false(r.good);
    assert_non_null(strstr(r.text, "but head.json is of record"));
    assert_int_equal(unlinkat(p->dir, "head.json", 0), 0);
    assert_true(verified(p->dir, NULL).good);
    r = verified(p->dir, &h);
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
    assert_lines(p->dir, "\"event\":\"signing_key_made\"", 2);
    assert_lines(p->dir, "\"kind\":\"head\"", 2);
    must_be_good(p->dir);
}

static void a_signing_key_that_cannot_be_read_stops_the_start(void **state) {
    struct place *p = *state;
    ledger_free(p->ledger);
    p->ledger = NULL;
    assert_int_equal(log_file_replace(p->dir, "sign.key", 0600, VIEW("nothing")), 0);
    assert_int_equal(ledger_open(p->dir, WALL, 1, &p->ledger), ERR_CRYPTO);
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
        WITH_PLACE(au_04_a_head_that_is_not_the_newest_of_the_log_is_found_at_the_start),
        WITH_PLACE(au_04_what_was_found_is_kept_or_nothing_is_written),
        WITH_PLACE(what_is_told_of_findings_is_short_and_never_nothing),
        WITH_PLACE(the_chain_spans_rotation_and_each_file_restates_its_producers),
        WITH_PLACE(old_files_are_removed_as_the_setting_says_and_that_is_recorded),
        WITH_PLACE(ad_05_a_kill_between_renaming_and_the_new_file_loses_no_link),
        WITH_PLACE(au_04_an_exported_head_shows_a_cut_end_and_a_log_written_anew),
        WITH_PLACE(heads_are_signed_only_when_something_was_added),
        WITH_PLACE(a_lost_signing_key_is_replaced_and_older_heads_still_verify),
        WITH_PLACE(a_signing_key_that_cannot_be_read_stops_the_start),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
