#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "audit/log_file.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

enum { LINES = 5 };

/* ---- a directory with a log in it ---- */

struct place {
    char path[64];
    int dir;
};

static void place_open(struct place *p) {
    snprintf(p->path, sizeof p->path, "/tmp/exeat-log-XXXXXX");
    assert_non_null(mkdtemp(p->path));
    p->dir = open(p->path, O_RDONLY | O_DIRECTORY);
    assert_true(p->dir >= 0);
}

static void place_close(struct place *p) {
    struct segment_list l;
    assert_int_equal(segment_list_read(p->dir, &l), 0);
    for (size_t i = 0; i < l.n; i++)
        unlinkat(p->dir, l.at[i].text, 0);
    segment_list_free(&l);
    unlinkat(p->dir, "small", 0);
    unlinkat(p->dir, "small.new", 0);
    close(p->dir);
    assert_int_equal(rmdir(p->path), 0);
}

static void put_file(const struct place *p, const char *name, struct view v) {
    int fd = openat(p->dir, name, O_WRONLY | O_CREAT | O_TRUNC, 0600);
    assert_int_equal(write(fd, v.p, v.n), v.n);
    close(fd);
}

static uint64_t file_size(const struct place *p, const char *name) {
    struct stat st;
    return fstatat(p->dir, name, &st, 0) == 0 ? (uint64_t)st.st_size : UINT64_MAX;
}

static void add_line(struct chain *c, const char *kind, struct buf *out) {
    struct buf b;
    buf_init(&b, 1024);
    chain_open_line(c, 0, &b);
    buf_printf(&b, ",\"origin\":\"ca\",\"kind\":\"%s\"", kind);
    assert_int_equal(chain_close_line(c, &b), 0);
    buf_put(out, buf_view(&b));
    buf_free(&b);
}

/* A segment of LINES lines behind c. ends[i] is the offset behind line i+1. */
static void build(struct chain *c, struct buf *out, size_t ends[LINES]) {
    for (int i = 0; i < LINES; i++) {
        add_line(c, i == 0 ? "segment" : "event", out);
        ends[i] = buf_len(out);
    }
}

static void count(void *ctx, const struct chain_line *line) {
    (void)line;
    ++*(size_t *)ctx;
}

struct opened {
    struct log_file file;
    struct log_found found;
    size_t seen;
};

static void reopen(const struct place *p, struct opened *o) {
    o->seen = 0;
    assert_int_equal(log_file_open(&o->file, p->dir, count, &o->seen, &o->found), 0);
}

/* ---- what a start finds ---- */

static void an_empty_directory_is_a_new_log(void **state) {
    (void)state;
    struct place p;
    struct opened o;
    struct chain zero = {0};
    place_open(&p);
    reopen(&p, &o);
    assert_true(o.found.needs_header);
    assert_memory_equal(&o.found.chain, &zero, sizeof zero);
    assert_int_equal(o.found.cut, 0);
    assert_string_equal(o.found.set_aside, "");
    assert_int_equal(file_size(&p, SEGMENT_CURRENT), UINT64_MAX);
    log_file_close(&o.file);
    place_close(&p);
}

static void a_good_file_is_continued(void **state) {
    (void)state;
    struct place p;
    struct opened o;
    struct chain c = {0};
    struct buf b;
    size_t ends[LINES];
    place_open(&p);
    buf_init(&b, 65536);
    build(&c, &b, ends);
    put_file(&p, SEGMENT_CURRENT, buf_view(&b));
    reopen(&p, &o);
    assert_false(o.found.needs_header);
    assert_memory_equal(&o.found.chain, &c, sizeof c);
    assert_int_equal(o.seen, LINES);
    assert_int_equal(o.file.size, buf_len(&b));
    add_line(&c, "event", &b);
    struct view added = view_skip(buf_view(&b), ends[LINES - 1]);
    assert_int_equal(log_file_append(&o.file, added, true), 0);
    log_file_close(&o.file);
    reopen(&p, &o);
    assert_int_equal(o.seen, LINES + 1);
    log_file_close(&o.file);
    buf_free(&b);
    place_close(&p);
}

static void ad_05_a_file_cut_at_any_byte_is_cut_to_its_last_whole_line(void **state) {
    (void)state;
    struct place p;
    struct opened o;
    struct chain c = {0};
    struct buf b;
    size_t ends[LINES];
    place_open(&p);
    buf_init(&b, 65536);
    build(&c, &b, ends);
    for (size_t n = 0; n <= buf_len(&b); n++) {
        size_t whole = 0;
        while (whole < LINES && ends[whole] <= n)
            whole++;
        size_t kept = whole ? ends[whole - 1] : 0;
        put_file(&p, SEGMENT_CURRENT, view_head(buf_view(&b), n));
        reopen(&p, &o);
        assert_int_equal(o.found.chain.seq, whole);
        assert_int_equal(o.found.cut, n - kept);
        assert_int_equal(o.found.needs_header, whole == 0);
        assert_string_equal(o.found.set_aside, "");
        assert_int_equal(file_size(&p, SEGMENT_CURRENT), kept);
        log_file_close(&o.file);
    }
    buf_free(&b);
    place_close(&p);
}

/* What a file system may leave at the end of a file after a power cut. */
static void ad_05_garbage_behind_the_last_whole_line_is_cut(void **state) {
    (void)state;
    static const size_t sizes[] = {1, 511, 4096, 300000};
    struct place p;
    struct opened o;
    struct buf b;
    size_t ends[LINES];
    place_open(&p);
    for (int form = 0; form < 3; form++) {
        for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++) {
            struct chain c = {0};
            buf_init(&b, 1 << 20);
            build(&c, &b, ends);
            for (size_t k = 0; k < sizes[i]; k++)
                buf_put_u8(&b, form == 0 ? 0 : form == 1 ? '\n' : (uint8_t)(k * 37));
            put_file(&p, SEGMENT_CURRENT, buf_view(&b));
            reopen(&p, &o);
            assert_int_equal(o.found.chain.seq, LINES);
            assert_int_equal(o.found.cut, sizes[i]);
            assert_string_equal(o.found.set_aside, "");
            assert_int_equal(file_size(&p, SEGMENT_CURRENT), ends[LINES - 1]);
            log_file_close(&o.file);
            buf_free(&b);
        }
    }
    place_close(&p);
}

static void expect_set_aside(struct place *p, struct view content, uint64_t good, const char *name,
                             enum chain_fault fault, uint64_t line) {
    struct opened o;
    put_file(p, SEGMENT_CURRENT, content);
    reopen(p, &o);
    assert_string_equal(o.found.set_aside, name);
    assert_int_equal(o.found.fault, fault);
    assert_int_equal(o.found.fault_line, line);
    assert_int_equal(o.found.chain.seq, good);
    assert_true(o.found.needs_header);
    assert_int_equal(o.found.cut, 0);
    assert_int_equal(file_size(p, name), content.n);
    assert_int_equal(file_size(p, SEGMENT_CURRENT), UINT64_MAX);
    log_file_close(&o.file);
    unlinkat(p->dir, name, 0);
}

static void au_04_a_file_that_was_changed_is_set_aside_whole(void **state) {
    (void)state;
    static const char name[] = "audit-000000000001.bad.jsonl";
    struct place p;
    struct chain c = {0};
    struct buf b, changed;
    size_t ends[LINES];
    place_open(&p);
    buf_init(&b, 65536);
    buf_init(&changed, 65536);
    build(&c, &b, ends);
    struct view all = buf_view(&b);

    /* an edited line, also the last one: it is whole, so it was not torn */
    for (int i = 1; i < LINES; i++) {
        buf_reset(&changed);
        buf_put(&changed, all);
        size_t kind = view_search(view_skip(all, ends[i - 1]), VIEW("\"event\""));
        changed.p[ends[i - 1] + kind + 1] ^= 1;
        expect_set_aside(&p, buf_view(&changed), (uint64_t)i, name, CHAIN_CHANGED, (uint64_t)i + 1);
    }
    /* a line taken out */
    buf_reset(&changed);
    buf_put(&changed, view_head(all, ends[1]));
    buf_put(&changed, view_skip(all, ends[2]));
    expect_set_aside(&p, buf_view(&changed), 2, name, CHAIN_MISSING, 3);
    /* a line twice */
    buf_reset(&changed);
    buf_put(&changed, all);
    buf_put(&changed, view_slice(all, ends[3], ends[4]));
    expect_set_aside(&p, buf_view(&changed), LINES, name, CHAIN_REPEATED, LINES + 1);
    /* zeros in the middle, good lines behind them */
    buf_reset(&changed);
    buf_put(&changed, all);
    memset(changed.p + ends[1] + 5, 0, 40);
    expect_set_aside(&p, buf_view(&changed), 2, name, CHAIN_MALFORMED, 3);
    /* the beginning is missing */
    expect_set_aside(&p, view_skip(all, ends[0]), 0, name, CHAIN_MISSING, 1);
    buf_free(&b);
    buf_free(&changed);
    place_close(&p);
}

static void
without_a_current_file_the_newest_finished_one_tells_where_the_chain_stands(void **state) {
    (void)state;
    struct place p;
    struct opened o;
    struct chain c = {0}, first;
    struct buf b;
    size_t ends[LINES];
    place_open(&p);
    buf_init(&b, 65536);
    build(&c, &b, ends);
    put_file(&p, "audit-000000000001.jsonl", buf_view(&b));
    first = c;
    reopen(&p, &o);
    assert_true(o.found.needs_header);
    assert_memory_equal(&o.found.chain, &first, sizeof first);
    log_file_close(&o.file);
    buf_reset(&b);
    build(&c, &b, ends);
    put_file(&p, "audit-000000000006.jsonl", buf_view(&b));
    /* a current file of which nothing good is left */
    put_file(&p, SEGMENT_CURRENT, VIEW("{\"v\":1,\"se"));
    reopen(&p, &o);
    assert_true(o.found.needs_header);
    assert_memory_equal(&o.found.chain, &c, sizeof c);
    assert_int_equal(o.found.cut, 10);
    log_file_close(&o.file);
    buf_free(&b);
    place_close(&p);
}

/* ---- writing ---- */

static void a_rotated_file_is_named_by_its_first_record_and_never_overwrites(void **state) {
    (void)state;
    struct place p;
    struct opened o;
    place_open(&p);
    reopen(&p, &o);
    assert_int_equal(log_file_append(&o.file, VIEW("one\n"), false), 0);
    assert_int_equal(log_file_rotate(&o.file, 1), 0);
    assert_int_equal(file_size(&p, "audit-000000000001.jsonl"), 4);
    assert_int_equal(log_file_append(&o.file, VIEW("second\n"), false), 0);
    assert_int_equal(log_file_rotate(&o.file, 1), 0);
    assert_int_equal(file_size(&p, "audit-000000000001.jsonl"), 4);
    assert_int_equal(file_size(&p, "audit-000000000001.1.jsonl"), 7);
    log_file_close(&o.file);
    place_close(&p);
}

static void only_the_oldest_finished_files_are_removed(void **state) {
    (void)state;
    struct place p;
    struct log_file f;
    char name[SEGMENT_NAME_SIZE];
    place_open(&p);
    f = (struct log_file){.dir = p.dir, .fd = -1};
    put_file(&p, "audit-000000000009.jsonl", VIEW("x"));
    put_file(&p, "audit-000000000020.jsonl", VIEW("x"));
    put_file(&p, "audit-000000000100.jsonl", VIEW("x"));
    put_file(&p, "audit-000000000001.bad.jsonl", VIEW("x"));
    put_file(&p, SEGMENT_CURRENT, VIEW("x"));
    assert_int_equal(log_file_remove_oldest(&f, 2, name), 0);
    assert_string_equal(name, "audit-000000000009.jsonl");
    assert_int_equal(log_file_remove_oldest(&f, 2, name), ERR_MISSING);
    assert_int_equal(log_file_remove_oldest(&f, 1, name), 0);
    assert_string_equal(name, "audit-000000000020.jsonl");
    assert_int_equal(file_size(&p, "audit-000000000001.bad.jsonl"), 1);
    assert_int_equal(file_size(&p, SEGMENT_CURRENT), 1);
    place_close(&p);
}

static void au_01_a_write_that_fails_half_is_written_over_by_the_next(void **state) {
    (void)state;
    struct place p;
    struct opened o;
    struct rlimit saved, small;
    char line[4096];
    memset(line, 'a', sizeof line);
    place_open(&p);
    reopen(&p, &o);
    signal(SIGXFSZ, SIG_IGN);
    getrlimit(RLIMIT_FSIZE, &saved);
    assert_int_equal(log_file_append(&o.file, view_of(line, 1000), false), 0);
    small = (struct rlimit){3000, saved.rlim_max};
    assert_int_equal(setrlimit(RLIMIT_FSIZE, &small), 0);
    memset(line, 'b', sizeof line);
    assert_int_equal(log_file_append(&o.file, view_of(line, sizeof line), false), ERR_SYSTEM);
    assert_int_equal(errno, EFBIG);
    assert_int_equal(o.file.size, 1000);
    assert_int_equal(file_size(&p, SEGMENT_CURRENT), 3000); /* a part of it was written */
    setrlimit(RLIMIT_FSIZE, &saved);
    memset(line, 'c', sizeof line);
    assert_int_equal(log_file_append(&o.file, view_of(line, 500), false), 0);
    assert_int_equal(o.file.size, 1500);
    assert_int_equal(log_file_rotate(&o.file, 1), 0);
    assert_int_equal(file_size(&p, "audit-000000000001.jsonl"), 1500);
    place_close(&p);
}

static void small_files_are_replaced_whole(void **state) {
    (void)state;
    struct place p;
    struct stat st;
    struct buf b;
    place_open(&p);
    buf_init(&b, 100);
    assert_int_equal(log_file_read(p.dir, "small", 10, &b), ERR_MISSING);
    assert_int_equal(log_file_replace(p.dir, "small", 0600, VIEW("first text")), 0);
    assert_int_equal(log_file_replace(p.dir, "small", 0600, VIEW("2nd")), 0);
    assert_int_equal(log_file_read(p.dir, "small", 10, &b), 0);
    assert_true(view_equal(buf_view(&b), VIEW("2nd")));
    assert_int_equal(fstatat(p.dir, "small", &st, 0), 0);
    assert_int_equal(st.st_mode & 07777, 0600);
    assert_int_equal(log_file_read(p.dir, "small", 2, &b), ERR_LIMIT);
    buf_free(&b);
    place_close(&p);
}

/* ---- names ---- */

static void names_are_read_as_they_are_written_and_put_in_order(void **state) {
    (void)state;
    static const char *const foreign[] = {"audit",
                                          "audit.jsonl.new",
                                          "audit-1.jsonl",
                                          "audit-00000000000x.jsonl",
                                          "sign.key",
                                          "head.json",
                                          "xaudit-000000000001.jsonl",
                                          "audit-000000000001.json"};
    struct segment_name n;
    char text[SEGMENT_NAME_SIZE];
    segment_name_write(UINT64_C(1234567890123456), true, 2, text);
    assert_string_equal(text, "audit-1234567890123456.bad.2.jsonl");
    assert_int_equal(segment_name_read(text, &n), 0);
    assert_true(n.bad && n.first == UINT64_C(1234567890123456));
    segment_name_write(7, false, 0, text);
    assert_string_equal(text, "audit-000000000007.jsonl");
    assert_int_equal(segment_name_read(text, &n), 0);
    assert_true(!n.bad && n.first == 7);
    for (size_t i = 0; i < sizeof foreign / sizeof *foreign; i++)
        assert_int_equal(segment_name_read(foreign[i], &n), ERR_MISSING);

    static const char *const order[] = {"audit-000000000001.jsonl", "audit-000000000005.bad.jsonl",
                                        "audit-000000000005.jsonl", "audit-1000000000000.jsonl",
                                        SEGMENT_CURRENT};
    struct place p;
    struct segment_list l;
    place_open(&p);
    for (size_t i = 5; i > 0; i--)
        put_file(&p, order[i - 1], VIEW("x"));
    assert_int_equal(segment_list_read(p.dir, &l), 0);
    assert_int_equal(l.n, 5);
    for (size_t i = 0; i < 5; i++)
        assert_string_equal(l.at[i].text, order[i]);
    segment_list_free(&l);
    place_close(&p);
}

static void lines_are_read_whatever_their_length_and_while_the_file_grows(void **state) {
    (void)state;
    struct place p;
    struct segment s;
    struct view line;
    static char big[LINE_MAX_BYTES + 10];
    place_open(&p);
    memset(big, 'y', sizeof big);
    put_file(&p, "audit.jsonl", VIEW("ab\n\ncd"));
    assert_int_equal(segment_open(p.dir, "audit.jsonl", &s), 0);
    assert_int_equal(segment_next(&s, &line), 0);
    assert_true(view_equal(line, VIEW("ab")));
    assert_int_equal(segment_next(&s, &line), 0);
    assert_true(view_equal(line, VIEW("")));
    assert_int_equal(segment_next(&s, &line), ERR_AGAIN);
    assert_int_equal(segment_rest(&s), 2);
    int fd = openat(p.dir, "audit.jsonl", O_WRONLY | O_APPEND);
    assert_int_equal(write(fd, "ef\n", 3), 3);
    assert_int_equal(segment_next(&s, &line), 0);
    assert_true(view_equal(line, VIEW("cdef")));
    assert_int_equal(s.line, 3);
    assert_int_equal(s.offset, 4);
    assert_int_equal(write(fd, big, LINE_MAX_BYTES), LINE_MAX_BYTES);
    assert_int_equal(write(fd, "\n", 1), 1);
    assert_int_equal(segment_next(&s, &line), 0);
    assert_int_equal(line.n, LINE_MAX_BYTES);
    assert_int_equal(write(fd, big, LINE_MAX_BYTES + 1), LINE_MAX_BYTES + 1);
    assert_int_equal(write(fd, "\nend\n", 5), 5);
    assert_int_equal(segment_next(&s, &line), ERR_LIMIT);
    assert_int_equal(segment_next(&s, &line), 0);
    assert_true(view_equal(line, VIEW("y")));
    assert_int_equal(segment_next(&s, &line), 0);
    assert_true(view_equal(line, VIEW("end")));
    close(fd);
    segment_close(&s);
    place_close(&p);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(an_empty_directory_is_a_new_log),
        cmocka_unit_test(a_good_file_is_continued),
        cmocka_unit_test(ad_05_a_file_cut_at_any_byte_is_cut_to_its_last_whole_line),
        cmocka_unit_test(ad_05_garbage_behind_the_last_whole_line_is_cut),
        cmocka_unit_test(au_04_a_file_that_was_changed_is_set_aside_whole),
        cmocka_unit_test(
            without_a_current_file_the_newest_finished_one_tells_where_the_chain_stands),
        cmocka_unit_test(a_rotated_file_is_named_by_its_first_record_and_never_overwrites),
        cmocka_unit_test(only_the_oldest_finished_files_are_removed),
        cmocka_unit_test(au_01_a_write_that_fails_half_is_written_over_by_the_next),
        cmocka_unit_test(small_files_are_replaced_whole),
        cmocka_unit_test(names_are_read_as_they_are_written_and_put_in_order),
        cmocka_unit_test(lines_are_read_whatever_their_length_and_while_the_file_grows),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
