#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "egress/body_scan.h"
#include "egress/json_scan.h"
#include "egress/multipart_scan.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct outcome {
    enum body_step verdict;
    uint64_t clear;
    struct body_scan *scan;
};

static struct outcome scan(enum body_kind kind, const char *boundary, struct view body,
                           size_t piece) {
    struct outcome o = {BODY_CLEAR, 0, NULL};
    assert_int_equal(body_scan_new(kind, view_str(boundary), NULL, &o.scan), 0);
    uint64_t fed = 0;
    while (body.n > 0 && o.verdict == BODY_CLEAR) {
        o.verdict = body_scan_feed(o.scan, view_head(body, piece));
        fed += view_head(body, piece).n;
        body = view_skip(body, piece);
        assert_true(body_scan_clear(o.scan) >= o.clear && body_scan_clear(o.scan) <= fed);
        o.clear = body_scan_clear(o.scan);
    }
    if (o.verdict == BODY_CLEAR)
        o.verdict = body_scan_end(o.scan);
    o.clear = body_scan_clear(o.scan);
    return o;
}

struct body {
    struct view text;
    enum body_step verdict;
    const char *name, *value; /* BODY_FOUND: decoded name, sent value */
    const char *from;         /* BODY_FOUND: bytes from which on nothing may be clear */
};

static void check(enum body_kind kind, const char *boundary, const struct body *b) {
    for (size_t piece = 1; piece <= b->text.n; piece++) {
        struct outcome o = scan(kind, boundary, b->text, piece);
        if (o.verdict != b->verdict)
            print_error("%.*s in pieces of %zu: %d (%s)\n", VIEW_ARG(b->text), piece, o.verdict,
                        o.verdict == BODY_BAD ? body_scan_why(o.scan) : "");
        assert_int_equal(o.verdict, b->verdict);
        if (o.verdict == BODY_CLEAR)
            assert_int_equal(o.clear, b->text.n);
        if (o.verdict == BODY_BAD)
            assert_non_null(body_scan_why(o.scan));
        if (o.verdict == BODY_FOUND) {
            assert_true(view_equal(body_scan_name(o.scan), view_str(b->name)));
            assert_true(view_equal(body_scan_value(o.scan), view_str(b->value)));
            assert_true(o.clear <= view_search(b->text, view_str(b->from)));
        }
        body_scan_free(o.scan);
    }
}

#define CLEAN(t)                                                                                   \
    { VIEW(t), BODY_CLEAR, NULL, NULL, NULL }
#define BAD(t)                                                                                     \
    { VIEW(t), BODY_BAD, NULL, NULL, NULL }
#define FOUND(t, name, value, from)                                                                \
    { VIEW(t), BODY_FOUND, name, value, from }
#define CHECK_ALL(kind, boundary, table)                                                           \
    for (size_t i = 0; i < sizeof(table) / sizeof *(table); i++)                                   \
    check(kind, boundary, &(table)[i])

/* ---- overrides of the method ---- */

#define PART(name, content)                                                                        \
    "--b0\r\nContent-Disposition: form-data; name=" name "\r\n\r\n" content "\r\n"
#define END "--b0--\r\n"

static void pn_09_fields_that_change_the_method_are_found(void **state) {
    (void)state;
    static const struct body form = FOUND("a=1&_method=PUT", "_method", "PUT", "_method");
    static const struct body json = FOUND("{\"_method\":\"PUT\"}", "_method", "PUT", "_method");
    static const struct body part =
        FOUND(PART("_method", "PUT") END, "_method", "PUT", "Content-D");
    /* ordinary names, and below the outermost object */
    static const struct body others[] = {CLEAN("{\"method\":\"card\",\"a\":{\"_method\":\"PUT\"}}"),
                                         CLEAN("[{\"_method\":\"PUT\"}]")};
    check(BODY_FORM, "", &form);
    check(BODY_JSON, "", &json);
    check(BODY_MULTIPART, "b0", &part);
    CHECK_ALL(BODY_JSON, "", others);
}

/* ---- JSON ---- */

static void pv_02_json_members_that_are_credentials_are_found(void **state) {
    (void)state;
    static const struct body bodies[] = {
        FOUND("{\"api_key\":\"sk-ATTACKER\"}", "api_key", "sk-ATTACKER", "api_key"),
        FOUND("{\"model\":\"m\",\"n\":1.5e3,\"access_token\" \n: \t\"x\"}", "access_token", "x",
              "access_token"),
        FOUND("{\"a\":{\"b\":[1,{\"c\":null}]},\"PassWord\":\"p\\\"q\"}", "PassWord", "p\\\"q",
              "PassWord"),
        /* escapes in names */
        FOUND("{\"api\\u005fk\\u0065y\":\"s\"}", "api_key", "s", "api"),
        FOUND("{\"ap\\u0069\\/key\":\"s\"}", "api/key", "s", "ap"),
        /* letters that are equal without case to some: K and long s */
        FOUND("{\"api\\u212aey\":\"v\"}", "apikey", "v", "api"),
        FOUND("{\"pa\xc5\xbf\xc5\xbfword\":\"v\"}", "password", "v", "pa"),
        /* the second of two of a name */
        FOUND("{\"token\":\"\",\"token\":\"t\"}", "token", "t", "token\":\"t"),
        FOUND("{\"token\":null,\"secret\":\"t\"}", "secret", "t", "secret"),
        /* the second level, of objects and arrays */
        FOUND("{\"user\":{\"api_key\":\"s\"}}", "api_key", "s", "api_key"),
        FOUND("[1,{\"a\":{\"b\":[{}]},\"api_key\":\"s\"}]", "api_key", "s", "api_key"),
        FOUND("{\"a\":{\"b\":{}},\"c\":{\"api_key\":\"s\"}}", "api_key", "s", "api_key"),
        /* values that are no strings */
        FOUND("{\"api_key\" : -12.5e3 }", "api_key", "-12.5e3", "api_key"),
        FOUND("{\"api_key\":0}", "api_key", "0", "api_key"),
        FOUND("{\"api_key\":true,\"a\":1}", "api_key", "true", "api_key"),
        FOUND("{\"api_key\": [ \"s\"]}", "api_key", "[\"", "api_key"),
        FOUND("{\"api_key\":[[]]}", "api_key", "[[", "api_key"),
        FOUND("{\"api_key\":{ \"v\":\"s\"}}", "api_key", "{\"", "api_key"),
        /* behind a byte order mark */
        FOUND("\xef\xbb\xbf {\"api_key\":\"s\"}", "api_key", "s", "api_key"),
        /* documents in a row */
        FOUND("{\"a\":1}\n{\"api_key\":\"s\"}\n", "api_key", "s", "api_key"),
        FOUND("{}[]{\"api_key\":\"s\"}", "api_key", "s", "api_key"),
        FOUND("7 \"x\" {\"api_key\":\"s\"}", "api_key", "s", "api_key"),
    };
    CHECK_ALL(BODY_JSON, "", bodies);
}

static void json_without_credentials_is_clear_to_its_end(void **state) {
    (void)state;
    static const struct body bodies[] = {
        CLEAN("{}"),
        CLEAN("{\"a\":\"b\"}"),
        CLEAN(" [ ] "),
        CLEAN("null"),
        CLEAN("\"api_key\""),
        CLEAN("-0.5E-7"),
        CLEAN("10"),
        CLEAN("\n"),
        CLEAN("{\"messages\":[{\"role\":\"user\",\"content\":\"my api_key is \\\"x\\\"\"}]}"),
        /* deeper, in an array, as a value, not a string, empty */
        CLEAN("{\"messages\":[{\"api_key\":\"x\"}]}"),
        CLEAN("{\"a\":{\"b\":{\"api_key\":\"x\"}}}"),
        CLEAN("[[{\"api_key\":\"x\"}]]"),
        CLEAN("{\"name\":\"api_key\"}"),
        CLEAN("{\"api_key\":null,\"token\":false,\"secret\":\"\",\"password\":[ ],\"jwt\":{ }}"),
        CLEAN("{\"a\":{\"api_key\":null,\"b\":[]},\"jwt\":{},\"c\":[{}]}"),
        CLEAN("\xef\xbb\xbf{\"a\":1}"),
        CLEAN("{\"max_tokens\":100,\"stop\":[],\"e\":\"\\u00e9\\ud83d\\ude00\\\\\"}"),
        CLEAN("[[[[true],false],null],-1,0,1E5]"),
    };
    CHECK_ALL(BODY_JSON, "", bodies);
}

static void json_that_is_not_rfc_8259_is_refused(void **state) {
    (void)state;
    static const struct body bodies[] = {
        BAD("{"),
        BAD("{\"a\""),
        BAD("{\"a\":"),
        BAD("{\"a\":1"),
        BAD("{\"a\":1,}"),
        BAD("[1,]"),
        BAD("{'a':1}"),
        BAD("{a:1}"),
        BAD("{\"a\":1 \"b\":2}"),
        BAD("{\"a\":01}"),
        BAD("[+1]"),
        BAD("[1.]"),
        BAD("[.5]"),
        BAD("[1e]"),
        BAD("[1x]"),
        BAD("-"),
        BAD("[nul]"),
        BAD("nulL"),
        BAD("NaN"),
        BAD("[\"\\x41\"]"),
        BAD("[\"\\u12g4\"]"),
        BAD("[\"a\nb\"]"),
        BAD("\"abc"),
        BAD("[}"),
        BAD("{]"),
        BAD("]"),
        BAD("{\"a\":1}}"),
        BAD("// c\n{}"),
        BAD("\xef\xbb\xbf"
            "\xef\xbb\xbf{}"),
        BAD(" \xef\xbb\xbf{}"),
        BAD("\xef\xbb"),
        BAD("\xef\xbb{}"),
        BAD("{\"api_key\":fals}"),
        BAD("{\"api_key\":tru}"),
        BAD("{\"api_key\":1x}"),
        BAD("{\"api_key\":"),
        BAD("{\"api_key\":["),
        BAD("\v{}"),
        BAD("{\0\"\0}"),
        BAD("{\"api_key\\u0000\":\"x\"}"),
        BAD("\x1e{}"),
    };
    CHECK_ALL(BODY_JSON, "", bodies);
}

static void rx_09_json_depth_names_and_gaps_are_bounded(void **state) {
    (void)state;
    static uint8_t text[100000];
    memset(text, '[', sizeof text);
    struct outcome o = scan(BODY_JSON, "", view_of(text, JSON_DEPTH), 100);
    assert_string_equal(body_scan_why(o.scan), "malformed JSON");
    body_scan_free(o.scan);
    o = scan(BODY_JSON, "", view_of(text, JSON_DEPTH + 1), 100);
    assert_string_equal(body_scan_why(o.scan), "JSON is nested too deeply");
    body_scan_free(o.scan);

    /* A long name is nobody's: it is passed on as it comes. */
    memset(text, 'a', sizeof text);
    memcpy(text, "{\"", 2);
    assert_int_equal(body_scan_new(BODY_JSON, VIEW(""), NULL, &o.scan), 0);
    assert_int_equal(body_scan_feed(o.scan, view_of(text, 130)), BODY_CLEAR);
    assert_int_equal(body_scan_clear(o.scan), 1);
    assert_int_equal(body_scan_feed(o.scan, view_of(text + 130, 50000)), BODY_CLEAR);
    assert_int_equal(body_scan_clear(o.scan), 50130);
    assert_int_equal(body_scan_feed(o.scan, VIEW("_token\":\"x\"}")), BODY_CLEAR);
    assert_int_equal(body_scan_end(o.scan), BODY_CLEAR);
    body_scan_free(o.scan);

    /* But not when its beginning is somebody's. */
    for (int form = 0; form < 2; form++) {
        memset(text, 'a', 400);
        memcpy(text, form ? "  api_key[" : "{\"api_key[", 10);
        memcpy(text + 300, form ? "]=xxxxx" : "]\":\"x\"}", 7);
        o = scan(form ? BODY_FORM : BODY_JSON, "", view_of(text, 307), 7);
        assert_int_equal(o.verdict, BODY_BAD);
        assert_true(o.clear <= 2);
        body_scan_free(o.scan);
    }

    /* White space behind a credential's name is held back, and so must end. */
    memset(text, ' ', sizeof text);
    memcpy(text, "{\"token\"", 8);
    o = scan(BODY_JSON, "", view_of(text, sizeof text), 1000);
    assert_int_equal(o.verdict, BODY_BAD);
    assert_true(o.clear <= 1);
    body_scan_free(o.scan);
}

static void a_long_value_is_reported_by_its_beginning(void **state) {
    (void)state;
    char text[1000] = "{\"token\":\"", value[BODY_VALUE_MAX + 1] = "";
    memset(text + 10, 'v', 500);
    memset(value, 'v', BODY_VALUE_MAX);
    const struct body json = {view_str(text), BODY_FOUND, "token", value, "token"};
    check(BODY_JSON, "", &json);
    memcpy(text, "    token=", 10);
    const struct body form = {view_str(text), BODY_FOUND, "token", value, "token"};
    check(BODY_FORM, "", &form);
}

/* ---- forms ---- */

static void pv_02_form_fields_that_are_credentials_are_found(void **state) {
    (void)state;
    static const struct body bodies[] = {
        FOUND("access_token=x", "access_token", "x", "access"),
        FOUND("a=1&b=2&access_token=abc%2Fd&c", "access_token", "abc%2Fd", "access"),
        FOUND("a=1&acc%65ss%5Ftoken=x", "access_token", "x", "acc"),
        FOUND("api+key=x", "api key", "x", "api"),
        FOUND("+%20api_key=x", "api_key", "x", "api"),
        FOUND("api_key[]=x", "api_key[]", "x", "api"),
        FOUND("api_key[x]=x", "api_key[x]", "x", "api"),
        FOUND("api_key[a=x", "api_key[a", "x", "api"),
        FOUND("api_key%5B0%5D=x", "api_key[0]", "x", "api"),
        FOUND("a=1;access_token=x", "access_token", "x", "access"),
        FOUND("access_token=;x", "access_token", ";x", "access"),
        FOUND("token=&token=y", "token", "y", "token=y"),
        /* as .NET and Perl's CGI decode it */
        FOUND("api%u005fk%u0065y=x", "api_key", "x", "api"),
        FOUND("b%u212A=x&to%u212Aen=y", "token", "y", "to%"),
        /* whatever stands around */
        FOUND("\x1f\x8b\b\0\xff&api_key=x", "api_key", "x", "api"),
        FOUND("\x1f\x8b\b\0\xff;pwd=x", "pwd", "x", "pwd"),
        FOUND("\0\r\n+%00%0apwd=x", "pwd", "x", "pwd"),
        FOUND("\xef\xbb\xbfpwd=x", "\xef\xbb\xbfpwd", "x", "pwd"),
        FOUND("%&api_key=x", "api_key", "x", "api"),
        FOUND("%api_key=x", "%api_key", "x", "%"),
        FOUND("%4&api_key=x", "api_key", "x", "api"),
        FOUND("%u00&api_key=x", "api_key", "x", "api"),
        FOUND("api_key%=x", "api_key%", "x", "api"),
        FOUND("api_%%5fkey%=x", "api_%_key%", "x", "api"),
        FOUND("api%_key%%20=x", "api%_key% ", "x", "api"),
        FOUND("%%61pi_key=x", "%api_key", "x", "%"),
        FOUND("api\xff_\x01key\xfe=x", "api\xff_\x01key\xfe", "x", "api"),
        FOUND("=a=b&&api_key=%zz", "api_key", "%zz", "api"),
        FOUND("%5fmethod=PUT", "_method", "PUT", "%5f"),
        FOUND("\xff%_method=PUT", "\xff%_method", "PUT", "\xff"),
        /* PV-05: a POST policy form */
        FOUND("key=k&X-Amz-Credential=AKIA%2F1", "X-Amz-Credential", "AKIA%2F1", "X-Amz"),
        FOUND("key=k&AWSAccessKeyId=AKIA", "AWSAccessKeyId", "AKIA", "AWS"),
    };
    CHECK_ALL(BODY_FORM, "", bodies);
}

static void pv_02_names_in_a_form_that_end_at_nul_are_found(void **state) {
    (void)state;
    static const struct {
        struct view body, name;
    } cases[] = {
        {VIEW("api_key%00junk=x"), VIEW("api_key\0junk")},
        {VIEW("pwd\0\xff\x01z=x"), VIEW("pwd\0\xff\x01z")},
        {VIEW("%00a\0pi_key=x"), VIEW("a\0pi_key")},
        {VIEW("_method%u0000[=PUT"), VIEW("_method\0[")},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++)
        for (size_t piece = 1; piece <= cases[i].body.n; piece++) {
            struct outcome o = scan(BODY_FORM, "", cases[i].body, piece);
            assert_int_equal(o.verdict, BODY_FOUND);
            assert_true(view_equal(body_scan_name(o.scan), cases[i].name));
            body_scan_free(o.scan);
        }
}

static void pv_02_json_of_another_type_is_json_once_it_has_a_member(void **state) {
    (void)state;
    static const struct body bodies[] = {
        FOUND("{\"api_key\":\"x\"}", "api_key", "x", "api_key"),
        FOUND("[{\"a\":1,\"api_key\":\"x\"}]", "api_key", "x", "api_key"),
        FOUND("{\"a\":{}}\n{\"api_key\":\"x\"}", "api_key", "x", "api_key"),
        CLEAN("{\"a\":\"b\"}"),
        CLEAN("{\\rtf1\\ansi api_key=x}"),
        CLEAN("{{#if a}}\"api_key\":\"x\""),
        CLEAN("[section]\n\"api_key\":\"x\""),
        CLEAN("[1, 2"),
        CLEAN("[["),
        BAD("{\"a\":NaN,\"api_key\":\"x\"}"),
        BAD("{\"a\":1"),
        /* what may stand before it, and other codings of it */
        FOUND("\xef\xbb\xbf{\"api_key\":\"x\"}", "api_key", "x", "api_key"),
        FOUND("\x1e\v\f{\"api_key\":\"x\"}", "api_key", "x", "api_key"),
        BAD("{\0\"\0k\0\"\0:\0\"\0x\0\"\0}\0"),
        BAD("\xfe\xff\0[\0{\0\"\0k\0\"\0:\0\"\0x\0\"\0}\0]"),
        BAD("\xff\xfe\0\0{\0\0\0\"\0\0\0k\0\0\0\"\0\0\0:\0\0\0001\0\0\0}\0\0\0"),
        CLEAN("{\0\0\0\1\0\0\0\"k\":"),
        CLEAN("[\0\0\0\x10\x20\"k\":\"x\""),
        CLEAN("\v\1{\"k\":1"),
    };
    CHECK_ALL(BODY_JSON_UNSAID, "", bodies);
}

static void pv_02_what_begins_like_json_is_looked_at_as_a_form_as_well(void **state) {
    (void)state;
    static const struct body bodies[] = {
        FOUND("{\"a\":\"&api_key=x&\"}", "api_key", "x", "api_key"),
        FOUND("[\"&_method=PUT\"]", "_method", "PUT\"]", "_method"),
        FOUND("{\"a\":\"&b=c\",\"api_key\":\"x\"}", "api_key", "x", "api_key"),
        FOUND("{\"api_key\":\"x\"}", "api_key", "x", "api_key"),
        CLEAN("{\"a\":\"b=c&d; e\",\"f\":[\"https://a.test/?g=h%\",1]}"),
        CLEAN("[]"),
        BAD("{a=b&c=d}"),
        BAD("{\"a\":1"),
    };
    CHECK_ALL(BODY_JSON_OR_FORM, "", bodies);
}

/* What compressed files are made of. */
static void fill_at_random(uint8_t *bytes, size_t n, uint64_t *seed) {
    for (size_t i = 0; i < n; i++) {
        *seed = *seed * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
        bytes[i] = (uint8_t)(*seed >> 56);
    }
}

static void a_file_that_is_called_a_form_is_clear(void **state) {
    (void)state;
    static uint8_t bytes[1 << 16];
    uint64_t seed = 1;
    struct body_scan *s;
    assert_int_equal(body_scan_new(BODY_FORM, VIEW(""), NULL, &s), 0);
    for (size_t mib = 0; mib < 16 * 16; mib++) {
        fill_at_random(bytes, sizeof bytes, &seed);
        if (body_scan_feed(s, view_of(bytes, sizeof bytes)) != BODY_CLEAR)
            fail_msg("block %zu: '%.*s'", mib, VIEW_ARG(body_scan_name(s)));
    }
    assert_int_equal(body_scan_end(s), BODY_CLEAR);
    body_scan_free(s);
    /* nor do blanks wait for a name */
    memset(bytes, ' ', sizeof bytes);
    struct outcome o = scan(BODY_FORM, "", view_of(bytes, sizeof bytes), 4096);
    assert_int_equal(o.verdict, BODY_CLEAR);
    body_scan_free(o.scan);
}

static void forms_without_credentials_are_clear(void **state) {
    (void)state;
    static const struct body bodies[] = {
        CLEAN("a=b"),
        CLEAN("a"),
        CLEAN("=&&=;"),
        CLEAN("access_token"),
        CLEAN("access_token="),
        CLEAN("access_token=&a=b"),
        CLEAN("a=access_token&text=100%"),
        CLEAN("key=object&csrf_token=x"),
        CLEAN("a%=b"),
        CLEAN("a%4"),
        CLEAN("a%zz=1"),
        CLEAN("%u0061%u=1&%u00e9%u2026=2"),
        CLEAN("a=1&%"),
        CLEAN("\x01\xff\0=\0&\0"),
        /* three letters among other bytes are nobody's name */
        CLEAN("a\xffpwd=1&b\x01j\x02wt=2"),
    };
    CHECK_ALL(BODY_FORM, "", bodies);
}

/* ---- multipart ---- */

static void pv_02_pv_05_parts_that_are_credentials_are_found(void **state) {
    (void)state;
    static const struct body bodies[] = {
        FOUND(PART("\"api_key\"", "sk-ATTACKER") END, "api_key", "sk-ATTACKER", "Content-D"),
        FOUND(PART("\"a\"", "1") PART("access_token", "x\r\ny") END, "access_token", "x\r\ny",
              "Content-Disposition: form-data; name=access"),
        FOUND(
            "--b0\r\nX-Other: 1\r\ncontent-disposition:FORM-DATA;filename=\"f\";NAME=\"token\"\r\n"
            "Content-Type: text/plain\r\n\r\n\r\n\r\n" END,
            "token", "\r\n", "X-Other"),
        FOUND(PART("\"token\"", "") PART("\"token\"", "--b") END, "token", "--b",
              "Content-Disposition: form-data; name=\"token\"\r\n\r\n--b\r\n"),
        FOUND("\r\n" PART("\"x-amz-credential\"", "AKIA") END, "x-amz-credential", "AKIA",
              "Content-D"),
        FOUND(PART("\"api%5Fke%79\"", "s") END, "api_key", "s", "Content-D"),
        FOUND(PART("\"api_key%00x%\"", "s") END, "api_key", "s", "Content-D"),
        FOUND("--b0\r\nContent-Disposition: form-data; filename=\"api_key\"\r\n\r\ns\r\n" END,
              "api_key", "s", "Content-D"),
        FOUND(
            "--b0\r\nContent-ID: <api_key>\r\nContent-Disposition: x; filename=a\r\n\r\ns\r\n" END,
            "<api_key>", "s", "Content-ID"),
        FOUND(PART("\"AWSAccessKeyId\"", "AKIA") END, "AWSAccessKeyId", "AKIA", "Content-D"),
    };
    CHECK_ALL(BODY_MULTIPART, "b0", bodies);
}

static void parts_without_credentials_are_clear(void **state) {
    (void)state;
    static const struct body bodies[] = {
        CLEAN(PART("\"a\"", "1") END),
        CLEAN(PART("\"key\"", "dir/object") PART("\"file\"; filename=\"C:\\x.png\"",
                                                 "\x89PNG\r\n\r\r\n-\r\n--\r\n--b\r\n\0--b") END),
        CLEAN(PART("\"token\"", "") "--b0--"),
        CLEAN("--b0\r\nContent-Type: application/xop+xml\r\nContent-ID: <root>\r\n\r\nx\r\n" END),
        CLEAN("--b0\r\nContent-Disposition: attachment; filename=a%zz%5\r\n\r\nx\r\n" END),
        CLEAN("--b0--"),
        CLEAN("--b0--\r\n"),
        CLEAN("--b0\r\nContent-Disposition: form-data; name=\"a\"; filename*=UTF-8''x%20y\r\n"
              "Content-Type: application/json\r\n\r\n{\"api_key\":\"x\"}\r\n" END),
    };
    CHECK_ALL(BODY_MULTIPART, "b0", bodies);
}

static void multipart_that_parsers_read_differently_is_refused(void **state) {
    (void)state;
    static const struct body bodies[] = {
        BAD("preamble\r\n" PART("\"a\"", "1") END),
        BAD("\n" PART("\"a\"", "1") END),
        BAD(PART("\"a\"", "1")),
        BAD(PART("\"a\"", "1") "--b0-"),
        BAD(PART("\"a\"", "1") "--b0--\r"),
        BAD(PART("\"a\"", "1") END "epilogue"),
        BAD(PART("\"a\"", "1") END "\r\n"),
        BAD(PART("\"a\"", "x\n--b0\nContent-Disposition: form-data; name=\"token\"\n\ny") END),
        BAD(PART("\"a\"", "x--b0") END),
        BAD(PART("\"a\"", "1") "--b0 \r\n" END),
        BAD(PART("\"a\"", "1") "--b01\r\n" END),
        BAD("--b0\r\n\r\nno head\r\n" END),
        BAD("--b0\nContent-Disposition: form-data; name=\"a\"\n\nx\r\n" END),
        BAD("--b0\r\nContent-Disposition: form-data; name=\"a\"\nX: y\r\n\r\nx\r\n" END),
        BAD("--b0\r\nContent-Disposition: form-data;\r\n name=\"a\"\r\n\r\nx\r\n" END),
        BAD("--b0\r\nContent-Disposition : form-data; name=\"a\"\r\n\r\nx\r\n" END),
        BAD("--b0\r\nContent-Disposition: form-data; name=\"a\"\r\nContent-Disposition: form-data; "
            "name=\"token\"\r\n\r\nx\r\n" END),
        BAD(PART("\"a\"; name=\"token\"", "x") END),
        BAD(PART("\"a\" name=\"token\"", "x") END),
        BAD(PART("\"a\"; name*=UTF-8''token", "x") END),
        BAD(PART("\"a\"; NAME*0=to; name*1=ken", "x") END),
        BAD(PART("\"=?utf-8?q?api=5fkey?=\"", "x") END),
        BAD(PART("\"_charset_\"", "ibm037") END),
        BAD("--b0\r\nContent-Disposition: form-data; filename*=UTF-8''token\r\n\r\nx\r\n" END),
        BAD("--b0\r\nContent-Disposition: x; filename=token; filename=a\r\n\r\nx\r\n" END),
        BAD("--b0\r\nContent-ID: token\r\nContent-ID: a\r\n\r\nx\r\n" END),
        BAD(PART("\"a\\\"; name=\\\"token\"", "x") END),
        BAD(PART("\"a\"; filename=\"x\\\"; name=\"token\"", "x") END),
        BAD(PART("\"a\"; filename=\"x\\\"; y=\"z\"", "x") END),
        BAD(PART("\"a", "x") END),
        BAD(PART("", "x") END),
        BAD(PART("a b", "x") END),
        BAD("--b0\r\nContent-Disposition: form-data; name=\"a\"\r\n\r\n--b0--"),
    };
    CHECK_ALL(BODY_MULTIPART, "b0", bodies);
}

static void a_boundary_that_overlaps_itself_is_found(void **state) {
    (void)state;
    static const struct body body = CLEAN(
        "----\r\nContent-Disposition: form-data; name=a\r\n\r\nx\r\n-\r\n--\r\n---\r\n------");
    check(BODY_MULTIPART, "--", &body);
    static const struct body twice =
        CLEAN("--aabaab\r\nContent-Disposition: form-data; name=a\r\n\r\n"
              "--aabaa\r\n--aab\r\n--aabaab--");
    check(BODY_MULTIPART, "aabaab", &twice);
}

static void what_is_no_boundary_is_refused(void **state) {
    (void)state;
    char longest[BOUNDARY_MAX + 2];
    memset(longest, 'b', sizeof longest);
    longest[sizeof longest - 1] = 0;
    struct body_scan *s;
    assert_int_equal(body_scan_new(BODY_MULTIPART, VIEW(""), NULL, &s), ERR_BAD);
    assert_int_equal(body_scan_new(BODY_MULTIPART, VIEW("a\"b"), NULL, &s), ERR_BAD);
    assert_int_equal(body_scan_new(BODY_MULTIPART, VIEW("a\0b"), NULL, &s), ERR_BAD);
    assert_int_equal(body_scan_new(BODY_MULTIPART, VIEW("ab "), NULL, &s), ERR_BAD);
    assert_int_equal(body_scan_new(BODY_MULTIPART, view_str(longest), NULL, &s), ERR_BAD);
    longest[BOUNDARY_MAX] = 0;
    assert_int_equal(body_scan_new(BODY_MULTIPART, view_str(longest), NULL, &s), 0);
    body_scan_free(s);
}

static void a_parts_head_is_bounded(void **state) {
    (void)state;
    static char text[20000] = "--b0\r\nContent-Disposition: form-data; name=\"a\"\r\nX: ";
    memset(text + strlen(text), 'x', 9000);
    struct outcome o = scan(BODY_MULTIPART, "b0", view_str(text), 700);
    assert_int_equal(o.verdict, BODY_BAD);
    assert_true(o.clear <= 6);
    body_scan_free(o.scan);
}

/* ---- names of a policy ---- */

static enum body_step scan_for(const struct body_names *names, enum body_kind kind,
                               struct view body) {
    struct body_scan *s;
    assert_int_equal(body_scan_new(kind, VIEW("b"), names, &s), 0);
    enum body_step step = body_scan_feed(s, body);
    if (step == BODY_CLEAR)
        step = body_scan_end(s);
    body_scan_free(s);
    return step;
}

/* As inspect gets them. */
static struct body_names names_of(const struct credential_place *at, size_t n,
                                  const struct credential_place *way) {
    struct body_names names = {.n = 0}, out = {.n = 0};
    struct buf b;
    for (size_t i = 0; i < n; i++)
        body_names_add(&names, &at[i]);
    if (way)
        body_names_lead(&names, way);
    buf_init(&b, SCAN_ASK_MAX);
    body_names_write(&names, &b);
    struct reader r = reader_of(buf_view(&b));
    assert_int_equal(body_names_read(&r, &out), 0);
    assert_true(read_done(&r));
    for (size_t cut = 0; cut < buf_len(&b); cut++) {
        struct body_names part = {.n = 0};
        struct reader short_of = reader_of(view_head(buf_view(&b), cut));
        assert_int_equal(body_names_read(&short_of, &part), ERR_BAD);
    }
    buf_free(&b);
    return out;
}

static const struct credential_place named[] = {
    {.place = PLACE_JSON, .name = {(const uint8_t *)"/auth/x/wo~1rd~0", 16}},
    {.place = PLACE_FORM, .name = {(const uint8_t *)"my[word]", 8}}};

static void pv_02_names_of_a_policy_count_in_every_kind_of_body(void **state) {
    static const struct {
        enum body_kind kind;
        struct view body;
        enum body_step step; /* without the names all are clear */
    } cases[] = {
        {BODY_JSON, VIEW("{\"wo/rd~\":\"v\"}"), BODY_FOUND},
        {BODY_JSON, VIEW("{\"a\":{\"b\":{\"WoRd\":1}}}"), BODY_FOUND},
        {BODY_JSON, VIEW("{\"a\":{\"b\":{\"c\":{\"wo/rd~\":1}}}}"), BODY_CLEAR},
        {BODY_JSON, VIEW("{\"wo/rd~\":\"\",\"my[word]\":null}"), BODY_CLEAR},
        {BODY_JSON, VIEW("{\"words\":1}"), BODY_CLEAR},
        {BODY_FORM, VIEW("a=b&my%5Bword]=v"), BODY_FOUND},
        {BODY_FORM, VIEW("a=b&my[word]="), BODY_CLEAR},
        {BODY_JSON_OR_FORM, VIEW("{\"a\":\"&wo/rd~=v\"}"), BODY_FOUND},
        {BODY_MULTIPART,
         VIEW("--b\r\nContent-Disposition: form-data; name=\"my[word]\"\r\n\r\nv\r\n--b--\r\n"),
         BODY_FOUND},
    };
    struct body_names names = names_of(named, 2, NULL), none = {.n = 0};
    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        assert_int_equal(scan_for(&names, cases[i].kind, cases[i].body), cases[i].step);
        assert_int_equal(scan_for(&none, cases[i].kind, cases[i].body), BODY_CLEAR);
    }
}

static void pv_02_on_the_way_to_the_own_credential_members_are_looked_at_one_by_one(void **state) {
    struct body_names names = names_of(named, 2, &named[0]), none = names_of(named, 2, NULL);
    struct view own = VIEW("{\"auth\":{\"x\":{\"wo/rd~\":\"\",\"kind\":\"k\"}},\"a\":1}");
    static const struct view foreign[] = {
        VIEW("{\"auth\":{\"x\":{\"wo/rd~\":\"v\"}}}"),
        VIEW("{\"auth\":{\"token\":\"v\",\"x\":{\"wo/rd~\":\"\"}}}"),
        VIEW("{\"auth\":\"v\"}"),
        VIEW("{\"auth\":[\"v\"]}"),
        VIEW("{\"Auth\":{\"a\":\"v\"}}"),
        VIEW("{\"y\":{\"auth\":{\"a\":\"v\"}}}"),
    };
    (void)state;
    assert_int_equal(scan_for(&names, BODY_JSON, own), BODY_CLEAR);
    assert_int_equal(scan_for(&none, BODY_JSON, own), BODY_FOUND);
    for (size_t i = 0; i < sizeof foreign / sizeof *foreign; i++)
        assert_int_equal(scan_for(&names, BODY_JSON, foreign[i]), BODY_FOUND);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(pn_09_fields_that_change_the_method_are_found),
        cmocka_unit_test(pv_02_json_members_that_are_credentials_are_found),
        cmocka_unit_test(json_without_credentials_is_clear_to_its_end),
        cmocka_unit_test(json_that_is_not_rfc_8259_is_refused),
        cmocka_unit_test(rx_09_json_depth_names_and_gaps_are_bounded),
        cmocka_unit_test(a_long_value_is_reported_by_its_beginning),
        cmocka_unit_test(pv_02_form_fields_that_are_credentials_are_found),
        cmocka_unit_test(pv_02_names_in_a_form_that_end_at_nul_are_found),
        cmocka_unit_test(pv_02_what_begins_like_json_is_looked_at_as_a_form_as_well),
        cmocka_unit_test(pv_02_json_of_another_type_is_json_once_it_has_a_member),
        cmocka_unit_test(a_file_that_is_called_a_form_is_clear),
        cmocka_unit_test(forms_without_credentials_are_clear),
        cmocka_unit_test(pv_02_pv_05_parts_that_are_credentials_are_found),
        cmocka_unit_test(parts_without_credentials_are_clear),
        cmocka_unit_test(multipart_that_parsers_read_differently_is_refused),
        cmocka_unit_test(a_boundary_that_overlaps_itself_is_found),
        cmocka_unit_test(what_is_no_boundary_is_refused),
        cmocka_unit_test(a_parts_head_is_bounded),
        cmocka_unit_test(pv_02_names_of_a_policy_count_in_every_kind_of_body),
        cmocka_unit_test(pv_02_on_the_way_to_the_own_credential_members_are_looked_at_one_by_one),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
