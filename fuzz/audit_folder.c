/*
 * An audit log that somebody edited. What verification calls good has, in the records that it names, no other bytes than
 * were written; with a head that was exported before, all up to that head is there (P9). And audit opens what is left, or
 * says why not, and goes on: a log that was good stays so.
 *
 * Input: edits (fuzz/folder.h).
 */
#include "audit/findings.h"
#include "audit/ledger.h"
#include "audit/sign_key.h"
#include "audit/verify.h"
#include "base/log.h"
#include "fuzz/folder.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

enum { INPUT_MAX = 4096, FILES_MAX = 8, LINES_MAX = 64 };
#define WALL UINT64_C(1790000000000000000)

static struct edited files[FILES_MAX];
static size_t n_files;
static struct buf written[LINES_MAX + 1]; /* by number */
static struct chain_head middle, last;    /* that were exported */
static struct chain_keys *keys;

/* ---- the log as it was ---- */

static void put_record(uint64_t number, struct ledger *l) {
    struct record r = {.present = 0};
    struct buf b;
    size_t producer;
    record_begin(&r, RECORD_DECISION, WALL + number, number);
    record_str(&r, FIELD_HOST, "api.example.com");
    record_str(&r, FIELD_VERDICT, "allow");
    buf_init(&b, RECORD_PACKET_SIZE);
    buf_put_u8(&b, 2);
    buf_put_u64(&b, number);
    buf_put_u64(&b, 7);
    buf_put_block(&b, VIEW("egress 1"));
    buf_put_block(&b, buf_view(&r.bytes));
    REQUIRE(ledger_producer(l, "egress 1", &producer) == 0);
    REQUIRE(ledger_take(l, producer, buf_view(&b)) == 0 && ledger_flush(l, WALL) == 0);
    buf_free(&b);
    record_free(&r);
}

static void write_log(void) {
    static const struct ledger_settings settings = {.file_bytes = 3000};
    struct ledger *l;
    REQUIRE(ledger_open(folder, WALL, 1, &l) == 0);
    ledger_set(l, &settings);
    for (uint64_t i = 1; i <= 20; i++) {
        put_record(i, l);
        if (i == 9)
            REQUIRE(ledger_sign(l, WALL) == 0);
        if (i == 9)
            middle = *ledger_head(l);
    }
    REQUIRE(ledger_sign(l, WALL) == 0);
    last = *ledger_head(l);
    put_record(21, l);
    ledger_free(l);
}

static void keep_file(const char *name) {
    REQUIRE(n_files < FILES_MAX);
    edited_keep(&files[n_files++], name);
}

static void keep_lines(struct view text) {
    struct chain_line line;
    while (text.n > 0) {
        struct view v = view_cut(&text, '\n');
        REQUIRE(chain_read(v, &line) == CHAIN_GOOD && line.seq <= LINES_MAX);
        buf_init(&written[line.seq], LINE_MAX_BYTES);
        buf_put(&written[line.seq], v);
    }
}

static void start(void) {
    struct segment_list list;
    log_open("fuzz", LOG_FATAL);
    folder_make();
    write_log();
    REQUIRE(sign_key_public(folder, "sign.pub", &keys) == 0);
    REQUIRE(segment_list_read(folder, &list) == 0 && list.n >= 3);
    for (size_t i = 0; i < list.n; i++) {
        keep_file(list.at[i].text);
        keep_lines(buf_view(&files[i].good));
    }
    segment_list_free(&list);
    keep_file("head.json");
    keep_file("sign.key");
    keep_file("sign.pub");
}

/* ---- what holds ---- */

static void check_line(struct view text, const struct verify_report *report, bool *there) {
    struct chain_line line;
    if (chain_read(text, &line) != CHAIN_GOOD || line.seq < report->first ||
        line.seq > report->last)
        return;
    REQUIRE(line.seq <= LINES_MAX && view_equal(text, buf_view(&written[line.seq])));
    REQUIRE(!there[line.seq]);
    there[line.seq] = true;
}

/* Each record that the report speaks of is there once, and as it was written. */
static void check_lines(const struct verify_report *report) {
    struct segment_list list;
    struct segment s;
    struct view text;
    bool there[LINES_MAX + 1] = {false};
    REQUIRE(segment_list_read(folder, &list) == 0);
    for (size_t i = 0; i < list.n; i++) {
        if (segment_open(folder, list.at[i].text, &s) != 0)
            continue;
        while (segment_next(&s, &text) == 0)
            check_line(text, report, there);
        segment_close(&s);
    }
    segment_list_free(&list);
    for (uint64_t seq = report->first; report->records > 0 && seq <= report->last; seq++)
        REQUIRE(there[seq]);
}

static bool verify(const struct chain_head *head, struct verify_report *report) {
    int result = verify_log(folder, keys, head, report);
    return result == 0 && report->good;
}

static void go_on(bool was_good) {
    struct verify_report report;
    struct ledger *l;
    if (ledger_open(folder, WALL, 1, &l) != 0)
        return;
    put_record(22, l);
    REQUIRE(ledger_sign(l, WALL) == 0);
    ledger_free(l);
    if (was_good)
        REQUIRE(verify(&last, &report));
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    struct verify_report report;
    if (folder < 0)
        start();
    if (size > INPUT_MAX)
        return 0;
    edited_write(files, n_files, view_of(data, size));
    if (verify(NULL, &report))
        check_lines(&report);
    if (verify(&middle, &report)) {
        REQUIRE(report.last >= middle.seq);
        check_lines(&report);
    }
    bool good = verify(&last, &report);
    if (good)
        REQUIRE(report.last >= last.seq);
    /* What audit notes about its own files is a finding that verification tells. */
    for (size_t i = n_files - 3; i < n_files; i++)
        good = good && edited_is_good(&files[i]);
    go_on(good);
    return 0;
}
