#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "cli/log_table.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Lines in, printed text out. The chain's members do not matter here. */

#define T(n) "{\"v\":1,\"seq\":" #n ",\"time\":\"2026-01-02T03:04:0" #n ".678901Z\""

static const char allow_1[] =
    T(1) ",\"kind\":\"decision\",\"id\":\"e1-1\",\"verdict\":\"allow\","
         "\"reason\":\"allowed\",\"sandbox\":\"one\",\"method\":\"GET\","
         "\"scheme\":\"https\",\"host\":\"api.example.com\","
         "\"path\":\"/v1/items\",\"credential\":\"demo-key\",\"port\":443}";
static const char allow_2[] = T(2) ",\"kind\":\"decision\",\"id\":\"e1-2\",\"verdict\":\"allow\","
                                   "\"sandbox\":\"two\",\"method\":\"PUT\",\"scheme\":\"http\","
                                   "\"host\":\"other.test\",\"path\":\"/b\",\"port\":8080}";
static const char deny_3[] = T(3) ",\"kind\":\"decision\",\"id\":\"e1-3\",\"verdict\":\"deny\","
                                  "\"reason\":\"host_not_allowed\",\"sandbox\":\"one\","
                                  "\"method\":\"POST\",\"scheme\":\"https\",\"host\":\"evil.test\","
                                  "\"path\":\"/\",\"port\":443,\"status\":403}";
static const char end_2[] = T(4) ",\"kind\":\"outcome\",\"id\":\"e1-2\",\"reason\":\"cut\","
                                 "\"status\":200,\"bytes_out\":5,\"bytes_in\":77}";
static const char end_1[] = T(5) ",\"kind\":\"outcome\",\"id\":\"e1-1\",\"status\":201,"
                                 "\"bytes_out\":1234,\"bytes_in\":0}";
static const char event_6[] =
    T(6) ",\"kind\":\"event\",\"event\":\"gap\",\"producer\":\"egress 1\"}";
static const char segment[] = T(7) ",\"origin\":\"audit\",\"kind\":\"segment\"}";

struct printed {
    char *text;
    size_t size;
    FILE *out;
    struct log_table *table;
};

static void begin(struct printed *p, const struct log_filter *f, bool lines, bool late) {
    static const struct log_filter none;
    p->text = NULL;
    p->out = open_memstream(&p->text, &p->size);
    p->table = log_table_new(f ? f : &none, lines, late, p->out);
    assert_non_null(p->table);
}

static void put(struct printed *p, const char *line, uint64_t now) {
    log_table_line(p->table, view_str(line), now);
    fflush(p->out);
}

static void put_all(struct printed *p) {
    static const char *const all[] = {allow_1, allow_2, deny_3, end_2, end_1, event_6, segment};
    for (size_t i = 0; i < sizeof all / sizeof *all; i++)
        put(p, all[i], 0);
    log_table_end(p->table);
    fflush(p->out);
}

static void end(struct printed *p) {
    log_table_free(p->table);
    fclose(p->out);
    free(p->text);
}

/* Which of the texts stand in this order. */
static void must_follow(const char *text, const char *const *parts, size_t n) {
    const char *at = text;
    for (size_t i = 0; i < n; i++) {
        const char *found = strstr(at, parts[i]);
        if (!found)
            fail_msg("'%s' is missing, or out of order, in:\n%s", parts[i], text);
        at = found + strlen(parts[i]);
    }
}

static size_t count_lines(const char *text) {
    size_t n = 0;
    for (; *text; text++)
        n += *text == '\n';
    return n;
}

static void what_nothing_forced_is_shown(void **state) {
    static const char free[] = T(1) ",\"kind\":\"decision\",\"id\":\"e1-1\",\"verdict\":\"deny\","
                                    "\"sandbox\":\"one\",\"host\":\"evil.test\",\"path\":\"/x\","
                                    "\"unenforced\":1}";
    static const char lane[] =
        T(2) ",\"kind\":\"event\",\"event\":\"lane_added\",\"unenforced\":1}";
    struct printed p;
    (void)state;
    begin(&p, NULL, false, false);
    put(&p, free, 0);
    put(&p, lane, 0);
    log_table_end(p.table);
    fflush(p.out);
    must_follow(p.text,
                (const char *const[]){"evil.test/x  UNENFORCED\n", "lane_added", "unenforced: 1\n"},
                3);
    end(&p);
}

static void a_decision_and_its_outcome_are_one_row_in_the_order_of_decisions(void **state) {
    (void)state;
    static const char *const parts[] = {
        "TIME (UTC)",
        "2026-01-02T03:04:01.678",
        "one",
        "allow",
        "GET",
        "201",
        "1234/0",
        "allowed",
        "demo-key",
        "api.example.com/v1/items\n",
        "2026-01-02T03:04:02.678",
        "two",
        "allow",
        "PUT",
        "200",
        "5/77",
        "cut",
        "-",
        "other.test:8080/b\n",
        "2026-01-02T03:04:03.678",
        "one",
        "deny",
        "POST",
        "403",
        "host_not_allowed",
        "evil.test/\n",
        "2026-01-02T03:04:06.678",
        "event",
        "gap",
        "producer: egress 1\n",
    };
    struct printed p;
    begin(&p, NULL, false, false);
    put_all(&p);
    must_follow(p.text, parts, sizeof parts / sizeof *parts);
    assert_int_equal(count_lines(p.text), 5);
    end(&p);
}

static void an_event_names_the_credential_it_is_about(void **state) {
    static const char added[] = T(1) ",\"kind\":\"event\",\"event\":\"secret_added\",\"detail\":"
                                     "\"vault state 1\",\"credential\":\"demo-key\"}";
    static const char lease[] = T(2) ",\"kind\":\"event\",\"event\":\"lease\",\"sandbox\":\"one\","
                                     "\"host\":\"api.test\",\"credential\":\"demo-key\"}";
    struct printed p;
    (void)state;
    begin(&p, NULL, false, false);
    put(&p, added, 0);
    put(&p, lease, 0);
    log_table_end(p.table);
    fflush(p.out);
    must_follow(p.text,
                (const char *const[]){"secret_added  credential: demo-key  detail: vault state 1\n",
                                      "lease  credential: demo-key  host: api.test\n"},
                2);
    end(&p);
}

static void a_decision_without_an_outcome_is_open(void **state) {
    (void)state;
    static const char *const parts[] = {"allow", "GET", "open", "api.example.com/v1/items\n"};
    struct printed p;
    begin(&p, NULL, false, false);
    put(&p, allow_1, 0);
    assert_int_equal(p.size, 0);
    log_table_end(p.table);
    fflush(p.out);
    must_follow(p.text, parts, sizeof parts / sizeof *parts);
    end(&p);
}

static void following_shows_what_is_complete_at_once_and_the_rest_after_two_seconds(void **state) {
    (void)state;
    struct printed p;
    begin(&p, NULL, false, true);
    put(&p, allow_1, 0);
    put(&p, deny_3, 1);
    assert_non_null(strstr(p.text, "evil.test"));
    assert_null(strstr(p.text, "api.example.com"));
    log_table_tick(p.table, UINT64_C(1999999999));
    fflush(p.out);
    assert_null(strstr(p.text, "api.example.com"));
    log_table_tick(p.table, UINT64_C(2000000000));
    fflush(p.out);
    assert_non_null(strstr(p.text, "open"));
    put(&p, end_1, 3); /* its outcome is a row of its own then */
    assert_non_null(strstr(p.text, "1234/0"));
    end(&p);
}

static void filters_choose_rows(void **state) {
    (void)state;
    static const struct {
        struct log_filter filter;
        size_t rows;
        const char *shown, *hidden;
    } cases[] = {
        {{.sandbox = "one"}, 2, "evil.test", "other.test"},
        {{.sandbox = "on"}, 0, NULL, "evil.test"},
        {{.denied = true}, 1, "evil.test", "api.example.com"},
        {{.host = "other.test"}, 1, "5/77", "evil.test"},
        {{.host = "EXAMPLE.com"}, 1, "api.example.com", "evil.test"},
        {{.host = "xample.com"}, 0, NULL, "api.example.com"},
        {{.sandbox = "one", .host = "evil.test", .denied = true}, 1, "403", "1234/0"},
        {{.sandbox = "o\"ne"}, 0, NULL, "evil.test"},
        {{.reason = "host_not_allowed"}, 1, "evil.test", "other.test"},
        {{.reason = "cut"}, 1, "other.test:8080/b", "evil.test"},
        {{.reason = "allowed"}, 1, "1234/0", "evil.test"},
        {{.reason = "rate"}, 0, NULL, "evil.test"},
        {{.credential = "demo-key"}, 1, "1234/0", "evil.test"},
        {{.credential = "demo"}, 0, NULL, "api.example.com"},
        {{.since = "2026-01-02T03:04:03"}, 2, "gap", "other.test"},
        {{.since = "2026-01-02"}, 4, "api.example.com", "nothing"},
        {{.since = "2026-01-03"}, 0, NULL, "evil.test"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct printed p;
        begin(&p, &cases[i].filter, false, false);
        put_all(&p);
        assert_int_equal(count_lines(p.text), cases[i].rows ? cases[i].rows + 1 : 0);
        if (cases[i].shown)
            assert_non_null(strstr(p.text, cases[i].shown));
        assert_null(strstr(p.text, cases[i].hidden));
        end(&p);
    }
}

static void denied_are_events_of_refusals_as_well_and_credentials_several(void **state) {
    static const char attach[] = T(1) ",\"kind\":\"event\",\"event\":\"attach_refused\"}",
                      two[] = T(
                          2) ",\"kind\":\"decision\",\"verdict\":\"deny\",\"credential\":\"a, b\"}";
    static const struct log_filter filters[] = {{.denied = true}, {.credential = "b"}};
    (void)state;
    for (size_t i = 0; i < 2; i++) {
        struct printed p;
        begin(&p, &filters[i], true, false);
        put_all(&p);
        put(&p, attach, 0);
        put(&p, two, 0);
        assert_int_equal(strstr(p.text, attach) != NULL, i == 0);
        assert_non_null(strstr(p.text, two));
        assert_null(strstr(p.text, event_6));
        end(&p);
    }
}

static void a_refused_address_is_shown(void **state) {
    static const char line[] =
        T(1) ",\"kind\":\"decision\",\"verdict\":\"deny\",\"reason\":\"address_not_allowed\","
             "\"host\":\"db.test\",\"path\":\"/\",\"address\":\"192.0.2.7\"}";
    struct printed p;
    (void)state;
    begin(&p, NULL, false, false);
    put(&p, line, 0);
    log_table_end(p.table);
    fflush(p.out);
    assert_non_null(strstr(p.text, "db.test/  at 192.0.2.7\n"));
    end(&p);
}

static void of_an_allowed_request_the_end_tells_the_reason(void **state) {
    struct log_filter cut = {.reason = "cut"}, allowed = {.reason = "allowed"};
    struct printed p;
    (void)state;
    begin(&p, &cut, true, false);
    put(&p, allow_2, 0);
    assert_int_equal(count_lines(p.text), 0);
    put_all(&p);
    log_table_end(p.table);
    fflush(p.out);
    assert_non_null(strstr(p.text, allow_2));
    assert_non_null(strstr(p.text, end_2));
    assert_null(strstr(p.text, "e1-1"));
    end(&p);
    begin(&p, &allowed, false, false); /* which is open */
    put(&p, allow_1, 0);
    log_table_end(p.table);
    assert_int_equal(log_table_matched(p.table), 1);
    end(&p);
}

static void as_lines_records_stay_as_they_are_and_outcomes_come_with_their_decisions(void **state) {
    (void)state;
    struct log_filter one = {.sandbox = "one"};
    struct printed p;
    begin(&p, NULL, true, false);
    put_all(&p);
    assert_int_equal(count_lines(p.text), 7);
    assert_non_null(strstr(p.text, segment));
    end(&p);
    begin(&p, &one, true, false);
    put_all(&p);
    assert_int_equal(count_lines(p.text), 3);
    assert_non_null(strstr(p.text, allow_1));
    assert_non_null(strstr(p.text, deny_3));
    assert_non_null(strstr(p.text, end_1));
    end(&p);
}

static void a_record_is_printed_whole_with_how_it_ended(void **state) {
    static const char *const parts[] = {"kind         decision\n", "id           e1-1\n",
                                        "credential   demo-key\n", "port         443\n\n",
                                        "kind         outcome\n",  "bytes_out    1234\n"};
    struct log_filter wanted = {.record = "e1-1"}, other = {.record = "e1-9"};
    struct printed p;
    (void)state;
    begin(&p, &wanted, false, false);
    put_all(&p);
    must_follow(p.text, parts, sizeof parts / sizeof *parts);
    assert_null(strstr(p.text, "e1-2"));
    assert_int_equal(log_table_matched(p.table), 2);
    end(&p);
    begin(&p, &wanted, true, false);
    put_all(&p);
    assert_int_equal(count_lines(p.text), 2);
    assert_non_null(strstr(p.text, end_1));
    end(&p);
    begin(&p, &other, false, false);
    put_all(&p);
    assert_int_equal(log_table_matched(p.table), 0);
    end(&p);
}

static void a_second_outcome_of_one_decision_is_a_row_of_its_own(void **state) {
    (void)state;
    struct printed p;
    begin(&p, NULL, false, false);
    put(&p, allow_1, 0);
    put(&p, allow_2, 0); /* holds the rows back: allow_1's outcome comes behind it */
    put(&p, end_2, 0);
    put(&p, end_2, 0);
    log_table_end(p.table);
    fflush(p.out);
    assert_int_equal(count_lines(p.text), 4);
    end(&p);
}

static void ids_are_a_column_for_who_wants_it(void **state) {
    struct log_filter ids = {.ids = true};
    struct printed p;
    (void)state;
    begin(&p, &ids, false, false);
    put_all(&p);
    must_follow(p.text,
                (const char *const[]){" RECORD ", "HOST AND PATH\n", " e1-1 ",
                                      " api.example.com/v1/items\n", " e1-3 ", " evil.test/\n"},
                6);
    end(&p);
}

#define ECHO ",\"host\":\"echo.exeat.internal\",\"sandbox\":\"one\""
#define NAME ",\"door\":\"dns\",\"host\":\"0a1b2c3d4e5f.exeat-doctor.invalid\""

static void the_doctors_tries_are_counted(void **state) {
    static const char *const tries[] = {
        T(1) ",\"kind\":\"decision\",\"id\":\"e\",\"verdict\":\"allow\",\"reason\":\"allowed\"" ECHO
             "}",
        T(2) ",\"kind\":\"outcome\",\"id\":\"e\",\"status\":200}",
        T(3) ",\"kind\":\"decision\",\"verdict\":\"deny\",\"reason\":\"port_not_allowed\"" ECHO "}",
        T(4) ",\"kind\":\"decision\",\"verdict\":\"deny\",\"reason\":\"host_not_allowed\"" NAME "}",
        T(5) ",\"kind\":\"decision\",\"verdict\":\"deny\",\"reason\":\"protocol_not_allowed\","
             "\"door\":\"udp\",\"sandbox\":\"one\",\"meant\":\"[2001:db8::1]:443\"}"};
    static const struct {
        struct log_filter filter;
        bool late;
        size_t rows;
        const char *told;
    } cases[] = {
        {{.sandbox = NULL}, false, 0, "4 more"},
        {{.denied = true}, false, 0, "3 more"},
        {{.all = true}, false, 4, NULL},
        {{.denied = true, .all = true}, false, 3, NULL},
        {{.host = "internal"}, false, 2, NULL},
        {{.sandbox = NULL}, true, 4, NULL}, /* there is no end at which they could be told */
    };
    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct printed p;
        begin(&p, &cases[i].filter, false, cases[i].late);
        for (size_t k = 0; k < sizeof tries / sizeof *tries; k++)
            put(&p, tries[k], 0);
        log_table_end(p.table);
        fflush(p.out);
        assert_int_equal(count_lines(p.text), cases[i].told ? 1 : cases[i].rows + 1);
        if (cases[i].told)
            assert_ptr_equal(strstr(p.text, cases[i].told), p.text);
        end(&p);
    }
}

/* Nobody hides in their shape what he does elsewhere. */
static void what_only_looks_like_the_doctors_is_shown(void **state) {
    static const char *const lines[] = {
        T(1) ",\"kind\":\"decision\",\"verdict\":\"deny\",\"reason\":\"foreign_credential\"" ECHO
             "}",
        T(2) ",\"kind\":\"decision\",\"verdict\":\"deny\",\"reason\":\"host_not_allowed\","
             "\"host\":\"a.echo.exeat.internal\"}",
        T(3) ",\"kind\":\"decision\",\"verdict\":\"allow\",\"reason\":\"allowed\"" NAME "}",
        T(4) ",\"kind\":\"decision\",\"verdict\":\"deny\",\"reason\":\"host_not_allowed\","
             "\"door\":\"http\",\"host\":\"0a1b2c3d4e5f.exeat-doctor.invalid\"}",
        T(5) ",\"kind\":\"decision\",\"verdict\":\"deny\",\"reason\":\"host_not_allowed\","
             "\"door\":\"dns\",\"host\":\"0a1b2c3d4e5x.exeat-doctor.invalid\"}",
        T(6) ",\"kind\":\"decision\",\"verdict\":\"deny\",\"reason\":\"host_not_allowed\","
             "\"door\":\"dns\",\"host\":\"more.0a1b2c3d4e5f.exeat-doctor.invalid\"}",
        T(7) ",\"kind\":\"event\",\"event\":\"leaf_minted\"" ECHO "}",
        T(8) ",\"kind\":\"decision\",\"verdict\":\"deny\",\"reason\":\"protocol_not_allowed\","
             "\"door\":\"udp\",\"meant\":\"192.0.2.2:443\"}",
        T(9) ",\"kind\":\"decision\",\"verdict\":\"deny\",\"reason\":\"protocol_not_allowed\","
             "\"door\":\"transparent\",\"meant\":\"192.0.2.1:443\"}"};
    struct printed p;
    (void)state;
    begin(&p, NULL, false, false);
    for (size_t k = 0; k < sizeof lines / sizeof *lines; k++)
        put(&p, lines[k], 0);
    log_table_end(p.table);
    fflush(p.out);
    assert_int_equal(count_lines(p.text), 1 + sizeof lines / sizeof *lines);
    assert_non_null(
        strstr(p.text, "192.0.2.2:443\n")); /* in the place of a host that nobody said */
    end(&p);
}

static void au_02_values_are_shown_escaped(void **state) {
    (void)state;
    static const char hostile[] = T(1) ",\"kind\":\"decision\",\"verdict\":\"deny\","
                                       "\"host\":\"\\u001b[2J\\u000aallow\",\"path\":\"/\"}";
    struct printed p;
    begin(&p, NULL, false, false);
    put(&p, hostile, 0);
    assert_non_null(strstr(p.text, "\\u001b[2J\\u000aallow/\n"));
    assert_null(strchr(p.text, 0x1b));
    assert_int_equal(count_lines(p.text), 2);
    end(&p);
}

static void what_is_no_line_is_counted_and_left_out(void **state) {
    (void)state;
    static const char *const bad[] = {"", "x", "{}", "{\"v\":1}", "{\"kind\":\"event\"", "\x1b[2J"};
    struct printed p;
    begin(&p, NULL, false, false);
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++)
        put(&p, bad[i], 0);
    assert_int_equal(log_table_unread(p.table), sizeof bad / sizeof *bad);
    assert_int_equal(p.size, 0);
    end(&p);
}

static void rx_no_number_of_open_decisions_fills_the_memory(void **state) {
    (void)state;
    char line[256];
    struct printed p;
    begin(&p, NULL, false, false);
    for (int i = 0; i < 30000; i++) {
        snprintf(line, sizeof line,
                 T(1) ",\"kind\":\"decision\",\"id\":\"e1-%d\",\"verdict\":\"allow\"}", i);
        log_table_line(p.table, view_str(line), 0);
    }
    fflush(p.out);
    assert_int_equal(count_lines(p.text), 10001); /* a title, and what is beyond 20,000 */
    end(&p);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_decision_and_its_outcome_are_one_row_in_the_order_of_decisions),
        cmocka_unit_test(what_nothing_forced_is_shown),
        cmocka_unit_test(an_event_names_the_credential_it_is_about),
        cmocka_unit_test(a_decision_without_an_outcome_is_open),
        cmocka_unit_test(following_shows_what_is_complete_at_once_and_the_rest_after_two_seconds),
        cmocka_unit_test(filters_choose_rows),
        cmocka_unit_test(denied_are_events_of_refusals_as_well_and_credentials_several),
        cmocka_unit_test(a_refused_address_is_shown),
        cmocka_unit_test(of_an_allowed_request_the_end_tells_the_reason),
        cmocka_unit_test(as_lines_records_stay_as_they_are_and_outcomes_come_with_their_decisions),
        cmocka_unit_test(a_record_is_printed_whole_with_how_it_ended),
        cmocka_unit_test(a_second_outcome_of_one_decision_is_a_row_of_its_own),
        cmocka_unit_test(ids_are_a_column_for_who_wants_it),
        cmocka_unit_test(the_doctors_tries_are_counted),
        cmocka_unit_test(what_only_looks_like_the_doctors_is_shown),
        cmocka_unit_test(au_02_values_are_shown_escaped),
        cmocka_unit_test(what_is_no_line_is_counted_and_left_out),
        cmocka_unit_test(rx_no_number_of_open_decisions_fills_the_memory),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
