#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "policy/media_type.h"

#define NONE (-1)

static void check(struct view value, uint8_t first, enum reason wanted, int job) {
    struct media_scan scan;
    enum reason why = media_type_choose(value, true, first, &scan);
    if (why != wanted || (why == REASON_ALLOWED && scan.wanted != (job != NONE)) ||
        (why == REASON_ALLOWED && job != NONE && (int)scan.kind != job))
        fail_msg("%.*s, then %02x: %s, %d of job %d", VIEW_ARG(value), first,
                 reason_info(why)->code, scan.wanted, (int)scan.kind);
}

static void pv_02_a_type_says_how_its_body_is_read(void **state) {
    (void)state;
    static const struct {
        const char *value;
        int job;
    } cases[] = {
        {"application/json", BODY_JSON},
        {"APPLICATION/JSON", BODY_JSON},
        {" application/json\t", BODY_JSON},
        {"application/json; charset=utf-8", BODY_JSON},
        {"application/json;charset=\"UTF-8\"", BODY_JSON},
        {"application/json;", BODY_JSON},
        {"application/json;;a=b", BODY_JSON},
        {"application/json \t;\tversion=1 ; x=\"a, b\"", BODY_JSON},
        {"text/json", BODY_JSON},
        {"text/x-json", BODY_JSON},
        {"application/problem+json", BODY_JSON},
        {"application/json5", BODY_JSON},
        {"application/x-ndjson", BODY_JSON},
        {"application/jsonl", BODY_JSON},
        {"application/x-amz-json-1.1", BODY_JSON},
        {"application/csp-report", BODY_JSON},
        {"application/x-www-form-urlencoded", BODY_FORM},
        {"application/X-WWW-Form-URLEncoded;charset=iso-8859-1", BODY_FORM},
        {"application/x-url-encoded", BODY_FORM},
        {"multipart/form-data; boundary=b", BODY_MULTIPART},
        {"multipart/mixed; charset=us-ascii; boundary=b", BODY_MULTIPART},
        {"Multipart/Related; type=\"text/xml\"; BOUNDARY=\"b\"", BODY_MULTIPART},
        {"", BODY_FORM},
        {"text/plain", NONE},
        {"text/html; charset=utf-16", NONE},
        {"application/octet-stream", NONE},
        {"application/x-git-receive-pack-request", NONE},
        {"image/png", NONE},
        {"application/xml", NONE},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++)
        check(view_str(cases[i].value), 'a', REASON_ALLOWED, cases[i].job);
}

static void pv_02_what_begins_like_json_is_json_where_some_api_reads_it_so(void **state) {
    (void)state;
    static const uint8_t firsts[] = {'{', '['};
    for (size_t i = 0; i < sizeof firsts; i++) {
        check(VIEW("text/plain"), firsts[i], REASON_ALLOWED, BODY_JSON);
        check(VIEW("text/plain; charset=utf-8"), firsts[i], REASON_ALLOWED, BODY_JSON);
        /* a server of forms reads it as one */
        check(VIEW(""), firsts[i], REASON_ALLOWED, BODY_JSON_OR_FORM);
        check(VIEW("application/x-www-form-urlencoded"), firsts[i], REASON_ALLOWED,
              BODY_JSON_OR_FORM);
        /* many disregard types */
        check(VIEW("application/octet-stream"), firsts[i], REASON_ALLOWED, BODY_JSON_UNSAID);
        check(VIEW("text/html; charset=utf-16"), firsts[i], REASON_ALLOWED, BODY_JSON_UNSAID);
        check(VIEW("multipart/mixed; boundary=b"), firsts[i], REASON_ALLOWED, BODY_MULTIPART);
    }
    check(VIEW("application/json"), 'a', REASON_ALLOWED, BODY_JSON);
}

static void pv_02_what_may_stand_before_json_does_not_hide_it(void **state) {
    (void)state;
    static const struct view json[] = {
        VIEW("{"),           VIEW(" \t\r\n{"),     VIEW("\xef\xbb\xbf{"),
        VIEW("\xff\xfe{\0"), VIEW("\xfe\xff\0{"),  VIEW("\0\0\0{"),
        VIEW("\0 \0\n\0{"),  VIEW(" \0\0\0 \0 {"), VIEW("\0\0\xfe\xff\0\0\0{"),
        VIEW("\x1e{"),       VIEW("\v\f{"),
    };
    /* an archive, an image, a disk, an empty file */
    static const struct view others[] = {
        VIEW("\x1f\x8b\x08{"), VIEW("\xff\xd8{"), VIEW("\0\0\0\0{"), VIEW("\x89PNG"), VIEW("\x7f{"),
    };
    for (size_t i = 0; i < sizeof json / sizeof *json; i++) {
        size_t lead = media_type_lead(json[i]);
        assert_true(lead < json[i].n && json[i].p[lead] == '{');
        /* a beginning of it may be followed by anything */
        assert_int_equal(media_type_lead(view_head(json[i], lead)), lead);
    }
    for (size_t i = 0; i < sizeof others / sizeof *others; i++) {
        size_t lead = media_type_lead(others[i]);
        assert_true(lead < others[i].n && others[i].p[lead] != '{');
    }
    assert_int_equal(media_type_lead(VIEW("")), 0);
}

static void sm_types_that_servers_read_differently_are_refused(void **state) {
    (void)state;
    static const char *const cases[] = {
        "json",
        "/json",
        "application/",
        "application /json",
        "application/ json",
        "application/json,text/plain",
        "application/json, text/plain",
        "application/x-www-form-urlencoded,x",
        "application/json x",
        "application/json\tx",
        "application/vnd.api+json;x",
        "application/json; charset",
        "application/json; charset =utf-8",
        "application/json; charset= utf-8",
        "application/json; charset=",
        "application/json; charset=utf-8; charset=utf-7",
        "application/json; charset*=utf-8''utf-7",
        "application/json; =b",
        "application/json; a=\"b",
        "application/json; a=\"b\"c",
        "application/json; a=\"b\\\"\"",
        "application/json; a=\"\\b\"",
        "application/json; a=\"b;c\"",
        "application/json; a=\"\x80\"",
        "application/json; a=\"\x01\"",
        "application/json\x80",
        "application/octet-stream, application/json",
        "*/*",
        "application/*",
        ";",
        " ",
        "text/plain; boundary=a; Boundary=a",
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++)
        check(view_str(cases[i]), '{', REASON_MALFORMED_REQUEST, NONE);
    check(VIEW("application/json\0"), '{', REASON_MALFORMED_REQUEST, NONE);
    check(VIEW("application/json; a=\"\0\""), '{', REASON_MALFORMED_REQUEST, NONE);
}

static void a_multipart_type_has_one_boundary_that_is_one(void **state) {
    (void)state;
    static const char *const bad[] = {
        "multipart/form-data",
        "multipart/mixed; charset=utf-8",
        "multipart/form-data; boundary=\"\"",
        "multipart/form-data; boundary=\"a \"",
        "multipart/form-data; boundary=a*b",
        "multipart/form-data; boundary=\"a\tb\"",
        "multipart/form-data; boundary=A; boundary=B",
        "multipart/form-data; boundary=A; BOUNDARY=A",
        "multipart/form-data; boundary=A,B",
        "multipart/form-data; boundary=\"A\"B",
        "multipart/form-data; boundary =A; boundary=B",
        "multipart/form-data; boundary*=utf-8''A; boundary=B",
        "multipart/form-data; boundary*0=A; boundary=B",
        /* some look for the word, wherever it stands */
        "multipart/form-data; x=\"boundary=A\"; boundary=B",
        "multipart/form-data; x-Boundary=A; boundary=B",
        "multipart/form-data; x=\"; boundary=B; y=\"; boundary=A",
        "multipart/form-data; boundary=A; x=\"; boundary=B; y=\"",
    };
    struct media_scan scan;
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++)
        check(view_str(bad[i]), '-', REASON_MALFORMED_REQUEST, NONE);
    assert_int_equal(
        media_type_choose(VIEW("multipart/form-data; boundary=\"--=_x 'y'/boundary:?\"; a=b"), true,
                          '-', &scan),
        REASON_ALLOWED);
    assert_true(view_equal(scan.boundary, VIEW("--=_x 'y'/boundary:?")));
}

static void a_boundary_has_seventy_characters_at_most(void **state) {
    (void)state;
    char value[] = "multipart/mixed; boundary="
                   "12345678901234567890123456789012345678901234567890123456789012345678901";
    struct view longest = view_str(value);
    check(view_head(longest, longest.n - 1), '-', REASON_ALLOWED, BODY_MULTIPART);
    check(longest, '-', REASON_MALFORMED_REQUEST, NONE);
}

static void pv_02_a_charset_in_which_names_are_other_bytes_is_refused(void **state) {
    (void)state;
    static const struct {
        const char *charset;
        bool fine;
    } cases[] = {
        {"utf-8", true},        {"UTF8", true},        {"US-ASCII", true}, {"iso-8859-1", true},
        {"windows-1252", true}, {"\"utf-8\"", true},   {"utf-7", false},   {"utf-16", false},
        {"ibm037", false},      {"\"UTF-16\"", false}, {"\"\"", false},    {"utf-8-sig", false},
        {"' utf-8'", false},    {"x", false},
    };
    static const char *const types[] = {"application/json", "application/x-www-form-urlencoded",
                                        "multipart/form-data; boundary=b"};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++)
        for (size_t k = 0; k < sizeof types / sizeof *types; k++) {
            struct buf b;
            buf_init(&b, 200);
            buf_printf(&b, "%s; charset=%s", types[k], cases[i].charset);
            bool malformed = cases[i].charset[0] == '\'';
            check(buf_view(&b), 'a',
                  malformed       ? REASON_MALFORMED_REQUEST
                  : cases[i].fine ? REASON_ALLOWED
                                  : REASON_BODY_CODING,
                  (int[]){BODY_JSON, BODY_FORM, BODY_MULTIPART}[k]);
            buf_free(&b);
        }
}

static void an_untyped_upload_is_a_file_unless_it_begins_like_json(void **state) {
    struct media_scan scan;
    (void)state;
    assert_int_equal(media_type_choose(VIEW(""), false, 'P', &scan), REASON_ALLOWED);
    assert_false(scan.wanted);
    assert_int_equal(media_type_choose(VIEW(""), false, '{', &scan), REASON_ALLOWED);
    assert_true(scan.wanted && scan.kind == BODY_JSON);
}

static void pv_02_what_a_coded_body_begins_with_is_not_known(void **state) {
    static const struct {
        const char *type, *coding;
        enum reason why;
    } cases[] = {
        {"text/plain", "gzip", REASON_BODY_CODING},
        {"text/plain; charset=utf-8", "identity, br", REASON_BODY_CODING},
        {"", "deflate", REASON_BODY_CODING},
        {"application/json", "zstd", REASON_BODY_CODING},
        {"text/plain", "identity", REASON_ALLOWED},
        {"application/octet-stream", "gzip", REASON_ALLOWED},
        {"application/x-git-upload-pack-request", "gzip", REASON_ALLOWED},
    };
    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        const struct field fields[] = {{VIEW("content-encoding"), view_str(cases[i].coding)},
                                       {VIEW("content-type"), view_str(cases[i].type)}};
        size_t n = *cases[i].type ? 2 : 1;
        struct media_scan scan;
        assert_int_equal(media_type_judge(fields, n, VIEW("PUT"), 0x1f, &scan), cases[i].why);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(pv_02_a_type_says_how_its_body_is_read),
        cmocka_unit_test(pv_02_what_begins_like_json_is_json_where_some_api_reads_it_so),
        cmocka_unit_test(pv_02_what_may_stand_before_json_does_not_hide_it),
        cmocka_unit_test(sm_types_that_servers_read_differently_are_refused),
        cmocka_unit_test(a_multipart_type_has_one_boundary_that_is_one),
        cmocka_unit_test(a_boundary_has_seventy_characters_at_most),
        cmocka_unit_test(pv_02_a_charset_in_which_names_are_other_bytes_is_refused),
        cmocka_unit_test(pv_02_what_a_coded_body_begins_with_is_not_known),
        cmocka_unit_test(an_untyped_upload_is_a_file_unless_it_begins_like_json),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
