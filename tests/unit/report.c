/* Reports of a sandbox's probes: what is written is read again, and what is not tight never passes for it. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <stdlib.h>
#include <string.h>

#include "daemon/attach_report.h"

static const struct finding contained = {"udp", "192.0.2.1:9", PROBE_CONTAINED, "refused", NULL},
                            escaped = {"tcp", "192.0.2.1:80", PROBE_ESCAPED, "somebody", "mend"},
                            unsure = {"interfaces", "d0", PROBE_UNSURE, "it is up", "take it down"};

static struct buf report;

static int begin(void **state) {
    (void)state;
    buf_init(&report, REPORT_MAX);
    return 0;
}

static int end(void **state) {
    (void)state;
    buf_free(&report);
    return 0;
}

static void assert_told(const char *expected) {
    char line[ATTACH_DETAIL_SIZE];
    attach_report_tell(buf_view(&report), line);
    assert_string_equal(line, expected);
}

static void what_was_found_is_read_again(void **state) {
    (void)state;
    struct report_row row;
    report_put(&report, &contained);
    report_put(&report, &escaped);
    struct view rest = buf_view(&report);
    assert_true(report_next(&rest, &row));
    assert_int_equal(row.verdict, PROBE_CONTAINED);
    assert_true(view_equal(row.probe, VIEW("udp")) && view_equal(row.what, VIEW("192.0.2.1:9")));
    assert_int_equal(row.fix.n, 0);
    assert_true(report_next(&rest, &row));
    assert_int_equal(row.verdict, PROBE_ESCAPED);
    assert_true(view_equal(row.why, VIEW("somebody")) && view_equal(row.fix, VIEW("mend")));
    assert_false(report_next(&rest, &row));
    assert_int_equal(rest.n, 0);
}

static void only_what_is_all_contained_is_tight(void **state) {
    (void)state;
    assert_false(report_is_tight(buf_view(&report)));
    assert_told("the attempts to get out could not be made");
    report_put(&report, &contained);
    assert_true(report_is_tight(buf_view(&report)));
    assert_told("1 tried, 1 contained");
    report_put(&report, &unsure);
    assert_false(report_is_tight(buf_view(&report)));
    report_put(&report, &escaped);
    assert_told("3 tried, 1 contained; not contained: interfaces d0 (it is up), tcp 192.0.2.1:80 "
                "(somebody)");
}

static void what_is_malformed_is_not_tight(void **state) {
    (void)state;
    struct report_sum sum;
    report_put(&report, &contained);
    struct view whole = buf_view(&report);
    for (size_t n = 1; n < whole.n; n++) {
        assert_int_equal(report_count(view_head(whole, n), &sum), ERR_BAD);
        assert_false(report_is_tight(view_head(whole, n)));
    }
    buf_put_u8(&report, PROBE_UNSURE + 1);
    for (int i = 0; i < 4; i++)
        buf_put_block(&report, VIEW("x"));
    assert_false(report_is_tight(buf_view(&report)));
    assert_told("the report is malformed");
}

/* One who reports thousands of holes must not thereby report none, or break the packet. */
static void what_does_not_fit_is_left_out_behind_what_does(void **state) {
    (void)state;
    struct report_sum sum;
    for (int i = 0; i < 4000; i++)
        report_put(&report, &escaped);
    assert_true(buf_ok(&report) && buf_len(&report) <= REPORT_MAX);
    assert_int_equal(report_count(buf_view(&report), &sum), 0);
    assert_true(sum.escaped > 1000 && sum.escaped < 4000);
    char line[ATTACH_DETAIL_SIZE];
    attach_report_tell(buf_view(&report), line);
    assert_true(strlen(line) < sizeof line);
}

static void what_is_contained_leaves_room_for_what_is_not(void **state) {
    (void)state;
    for (int i = 0; i < 4000; i++)
        report_put(&report, &contained);
    assert_true(report_is_tight(buf_view(&report)));
    report_put(&report, &escaped);
    assert_false(report_is_tight(buf_view(&report)));
}

static void a_report_is_any_bytes_to_the_log_and_to_who_reads_it(void **state) {
    (void)state;
    struct buf json;
    const struct finding odd = {"udp\033[2J", "a\nb", PROBE_ESCAPED, "\"quoted\"", "\\"};
    report_put(&report, &odd);
    char line[ATTACH_DETAIL_SIZE];
    attach_report_tell(buf_view(&report), line);
    assert_null(strchr(line, '\033'));
    assert_null(strchr(line, '\n'));
    buf_init(&json, CHILD_PROBED_MAX);
    attach_report_put(buf_view(&report), &json);
    assert_true(view_search(buf_view(&json), VIEW("\"verdict\":\"escaped\"")) < buf_len(&json));
    assert_true(view_search(buf_view(&json), VIEW("\"why\":\"\\\"quoted\\\"\"")) < buf_len(&json));
    assert_int_equal(view_find(buf_view(&json), '\n'), buf_len(&json));
    buf_free(&json);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(what_was_found_is_read_again, begin, end),
        cmocka_unit_test_setup_teardown(only_what_is_all_contained_is_tight, begin, end),
        cmocka_unit_test_setup_teardown(what_is_malformed_is_not_tight, begin, end),
        cmocka_unit_test_setup_teardown(what_does_not_fit_is_left_out_behind_what_does, begin, end),
        cmocka_unit_test_setup_teardown(what_is_contained_leaves_room_for_what_is_not, begin, end),
        cmocka_unit_test_setup_teardown(a_report_is_any_bytes_to_the_log_and_to_who_reads_it, begin,
                                        end),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
