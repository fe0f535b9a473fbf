#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "policy/diff.h"
#include "policy/diff_same.h"
#include "policy/errors.h"
#include "policy/trial.h"

#include <stdio.h>
#include <stdlib.h>

static struct policy_errors errors;

/* ---- random policies ---- */

enum { SLOTS = 12, TEXT_SIZE = 160 };

static const char *pick(const char *const *of, size_t n) {
    return of[(size_t)rand() % n];
}

#define PICK(list) pick(list, sizeof(list) / sizeof(list)[0])

static void put_path(struct buf *out) {
    static const char *const words[] = {"a", "b", "*", "**", "{n:int}", "7", "A", "*", "**"};
    int n = rand() % 4;
    for (int i = 0; i < n; i++)
        buf_printf(out, "/%s", PICK(words));
    if (n == 0 || rand() % 5 == 0)
        buf_put_u8(out, '/');
}

static void put_rule(struct buf *out) {
    static const char *const methods[] = {"GET", "POST", "*", "GET POST", "PUT", "GET"};
    static const char *const conditions[] = {
        "query m is x",        "query m in [x, y]",  "no query m",
        "query only; query m", "query m matches x*", "header h is 1",
        "no header h",         "header h",           "content-type a/b",
        "body at most 10",     "body at most 11",    "content-type a/b c/d; query m is y",
        "no query m is x",     "query q is X"};
    buf_printf(out, "%s ", PICK(methods));
    put_path(out);
    if (rand() % 3 == 0)
        buf_printf(out, " { %s }", PICK(conditions));
}

/* What stands in one slot of a policy. */
static void put_slot(struct buf *out, int slot) {
    static const char *const hosts[] = {
        "a.test", "*.b.test", "**.c.test", "x.b.test", "q.c.test *.q.c.test", "a.test *.b.test"};
    static const char *const grants[] = {
        "grant s0 all",      "grant s0 r",       "grant s0 r; grant s1 all", "grant s1 r w", "",
        "grant s0 w uses 3", "grant s0 w uses 4"};
    static const char *const more[] = {"",
                                       "limit body 10",
                                       "accept cookies",
                                       "accept destinations",
                                       "clear",
                                       "path allow parameters",
                                       "path allow encoded-slash",
                                       "path allow encoded-slash; path allow parameters"};
    int kind = slot % 5;
    if (slot >= 10)
        buf_printf(out, "%s", PICK(grants));
    else if (kind == 0)
        buf_printf(out, "host %s", PICK(hosts));
    else if (kind == 1)
        buf_printf(out, "%s", PICK(more));
    else if (kind == 4 && rand() % 2)
        buf_put_str(out, rand() % 4 ? "" : "never all");
    else {
        buf_printf(out, kind == 2 ? "operation r { " : kind == 3 ? "operation w { " : "never { ");
        put_rule(out);
        buf_put_str(out, "; ");
        put_rule(out);
        buf_put_str(out, " }");
    }
}

static void fill(char slots[SLOTS][TEXT_SIZE], unsigned one_in) {
    for (int i = 0; i < SLOTS; i++) {
        struct buf out;
        if ((unsigned)rand() % one_in != 0)
            continue;
        buf_init(&out, TEXT_SIZE - 1);
        put_slot(&out, i);
        assert_int_equal(view_cstr(buf_view(&out), slots[i], TEXT_SIZE), 0);
        buf_free(&out);
    }
}

static struct policy *build(char slots[SLOTS][TEXT_SIZE], bool credential, struct buf *text) {
    static const char *const heads[] = {"service s0 {", "}\nservice s1 {", "}\nsandbox w1 {",
                                        "}\nsandbox w2* {"};
    struct policy *p;
    buf_reset(text);
    for (int i = 0, head = 0; i < SLOTS; i++) {
        if (i == 0 || i == 5 || i == 10 || i == 11)
            buf_printf(text, "%s\n", heads[head++]);
        if ((i == 0 || i == 5) && credential)
            buf_put_str(text, "credential k { in header authorization scheme bearer }\n");
        buf_printf(text, "%s\n", slots[i]);
    }
    buf_put_str(text, "}\n");
    return policy_load(buf_view(text), "p", &p, &errors) == 0 ? p : NULL;
}

/* ---- random requests ---- */

struct request {
    struct trial t;
    struct field fields[2];
    char target[96];
};

static void make_request(struct request *r) {
    static const char *const hosts[] = {"a.test", "x.b.test", "y.b.test",
                                        "c.test", "q.c.test", "r.q.c.test"};
    static const char *const methods[] = {"GET", "POST", "PUT", "DELETE"};
    static const char *const segments[] = {"a",     "b",         "A",      "7",        "70",
                                           "a.x",   "zz",        "7.x",    "a;x",      "zz;x",
                                           "a%2Fb", "b%2Fa%2F7", "zz%2Fb", "A.x%2Fzz", "a%2Fa;x"};
    static const char *const queries[] = {"",         "",     "?m=x", "?m=y",     "?M=x",
                                          "?m=x&m=y", "?m=z", "?q=1", "?m=x&q=1", "?q=x",
                                          "?m=xx",    "?m=X", "?q=X"};
    static const char *const sandboxes[] = {"w1", "w2", "w2x", "w3"};
    static const uint64_t lengths[] = {0, 0, 1, 10, 11, 12};
    *r = (struct request){.t = {.tls = rand() % 5 != 0}};
    for (int i = rand() % 4; i > 0; i--) {
        strcat(r->target, "/");
        strcat(r->target, PICK(segments));
    }
    if (!r->target[0] || rand() % 5 == 0)
        strcat(r->target, "/");
    strcat(r->target, PICK(queries));
    const char *host = PICK(hosts);
    assert_int_equal(
        authority_parse_host(view_str(host), r->t.tls ? 443 : 80, &r->t.authority, NULL), 0);
    r->t.method = view_str(PICK(methods));
    r->t.target = view_str(r->target);
    r->t.sandbox = view_str(PICK(sandboxes));
    r->t.with = (enum with)(rand() % 4);
    r->t.length = lengths[rand() % 6];
    r->t.type = rand() % 2 ? (struct view){NULL, 0} : rand() % 2 ? VIEW("a/b") : VIEW("c/d");
    r->t.fields = r->fields;
    if (rand() % 3 == 0)
        r->fields[r->t.n_fields++] = (struct field){rand() % 2 ? VIEW("h") : VIEW("cookie"),
                                                    rand() % 2 ? VIEW("1") : VIEW("2")};
}

/* ---- the property ---- */

struct seen {
    size_t n[DIFF_KINDS];
    struct verdict verdicts[DIFFERENCES_MAX][2];
    size_t n_verdicts;
};

/* Whether the same clauses were found to decide. */
static bool is_seen(const struct seen *seen, const struct verdict *before,
                    const struct verdict *after) {
    size_t i = 0;
    for (; i < seen->n_verdicts; i++) {
        const struct verdict *v = seen->verdicts[i];
        if (v[0].reason == before->reason && v[1].reason == after->reason &&
            memcmp(&v[0].at, &before->at, sizeof v[0].at) == 0 &&
            memcmp(&v[1].at, &after->at, sizeof v[1].at) == 0)
            break;
    }
    return i < seen->n_verdicts;
}

static void on_found(void *ctx, const struct diff_found *f) {
    struct seen *seen = ctx;
    seen->n[f->kind]++;
    seen->verdicts[seen->n_verdicts][0] = f->before;
    seen->verdicts[seen->n_verdicts++][1] = f->after;
    assert_true(f->before.allow == (f->kind != DIFF_ALLOWED));
    assert_true(f->after.allow == (f->kind != DIFF_DENIED));
}

static void check_request(const struct policy *a, const struct policy *b, const struct request *r,
                          const struct seen *seen, bool exactly, const struct buf *texts,
                          size_t *changed) {
    struct verdict before, after;
    const char *why;
    if (trial_run(a, &r->t, &before, &why) != 0 || trial_run(b, &r->t, &after, &why) != 0 ||
        before.allow == after.allow)
        return;
    ++*changed;
    if (exactly ? !is_seen(seen, &before, &after)
                : seen->n[after.allow ? DIFF_ALLOWED : DIFF_DENIED] == 0)
        fail_msg("%.*s %s%s%s as %.*s, length %llu: %s to %s, not found\n%.*s\n---\n%.*s",
                 VIEW_ARG(r->t.method), r->t.tls ? "https://" : "http://", r->t.authority.host,
                 r->target, VIEW_ARG(r->t.sandbox), (unsigned long long)r->t.length,
                 reason_info(before.reason)->code, reason_info(after.reason)->code,
                 VIEW_ARG(buf_view(&texts[0])), VIEW_ARG(buf_view(&texts[1])));
}

static void compare(char slots[SLOTS][TEXT_SIZE], struct buf *texts, size_t counts[3]) {
    bool credential = rand() % 2;
    struct policy *a = build(slots, credential, &texts[0]);
    fill(slots, rand() % 2 ? 12 : 6);
    struct policy *b = a ? build(slots, credential, &texts[1]) : NULL;
    struct seen seen = {.n_verdicts = 0};
    struct diff_result result;
    if (a && b) {
        assert_int_equal(policy_diff(a, b, on_found, &seen, &result), 0);
        counts[0]++;
        counts[1] += result.whole;
        for (int i = 0; i < 300 && result.whole; i++) {
            struct request r;
            make_request(&r);
            check_request(a, b, &r, &seen, false, texts, &counts[2]);
        }
    }
    policy_free(a);
    policy_free(b);
}

static void what_changes_by_chance_is_found_by_diff(void **state) {
    (void)state;
    size_t counts[3] = {0};
    struct buf texts[2];
    char slots[SLOTS][TEXT_SIZE] = {{0}};
    buf_init(&texts[0], 1 << 14);
    buf_init(&texts[1], 1 << 14);
    for (int i = 0; i < 120; i++) {
        fill(slots, 1);
        compare(slots, texts, counts);
    }
    print_message("%zu pairs, %zu whole, %zu requests that changed\n", counts[0], counts[1],
                  counts[2]);
    assert_true(counts[0] > 30 && counts[1] > counts[0] / 2 && counts[2] > 10);
    buf_free(&texts[0]);
    buf_free(&texts[1]);
}

/* ---- the property, of one kind of words at a time ---- */

/* Writes one of several lines: an operation's, or a never line. */
typedef void line_writer(struct buf *out, bool never);

enum { LINES = 5 };

/* Lines of a service, some of which differ. */
static void write_lines(char lines[LINES][TEXT_SIZE], line_writer *write, unsigned one_in) {
    for (int i = 0; i < LINES; i++) {
        struct buf out;
        if ((unsigned)rand() % one_in != 0)
            continue;
        buf_init(&out, TEXT_SIZE - 1);
        write(&out, i >= 3);
        assert_int_equal(view_cstr(buf_view(&out), lines[i], TEXT_SIZE), 0);
        buf_free(&out);
    }
}

static struct policy *build_lines(char lines[LINES][TEXT_SIZE], const char *head,
                                  struct buf *text) {
    struct policy *p;
    buf_reset(text);
    buf_printf(text,
               "service a { host a.test; %s\noperation r { %s }\noperation w { %s }\n"
               "operation v { %s }\nnever { %s; %s }\n}\nsandbox w1 { grant a all }\n",
               head, lines[0], lines[1], lines[2], lines[3], lines[4]);
    return policy_load(buf_view(text), "p", &p, &errors) == 0 ? p : NULL;
}

/* Puts requests to both that `ask` makes by chance. */
static void check_words(line_writer *write, const char *const heads[2],
                        void (*ask)(struct request *r), bool exactly) {
    size_t counts[3] = {0};
    struct buf texts[2];
    char lines[LINES][TEXT_SIZE] = {{0}};
    buf_init(&texts[0], 1 << 14);
    buf_init(&texts[1], 1 << 14);
    for (int i = 0; i < 150; i++) {
        struct seen seen = {.n_verdicts = 0};
        struct diff_result result;
        write_lines(lines, write, 1);
        struct policy *a = build_lines(lines, heads[0], &texts[0]);
        write_lines(lines, write, 5);
        struct policy *b = build_lines(lines, heads[rand() % 2], &texts[1]);
        if (a && b) {
            assert_int_equal(policy_diff(a, b, on_found, &seen, &result), 0);
            counts[0]++;
            counts[1] += result.whole;
        }
        for (int k = 0; a && b && k < 200 && result.whole; k++) {
            struct request r = {.t = {.tls = true, .sandbox = VIEW("w1"), .method = VIEW("GET")}};
            assert_int_equal(authority_parse_host(VIEW("a.test"), 443, &r.t.authority, NULL), 0);
            ask(&r);
            if (!r.t.target.n)
                r.t.target = view_str(r.target);
            check_request(a, b, &r, &seen, exactly, texts, &counts[2]);
        }
        policy_free(a);
        policy_free(b);
    }
    print_message("%zu pairs, %zu whole, %zu requests that changed\n", counts[0], counts[1],
                  counts[2]);
    assert_true(counts[0] > 100 && counts[1] > counts[0] / 2 && counts[2] > 20);
    buf_free(&texts[0]);
    buf_free(&texts[1]);
}

static void write_path(struct buf *out, bool never) {
    static const char *const words[] = {"a", "b", "*", "**", "{n:int}", "a%2Fb", "a", "b%2FA", "c"};
    buf_put_str(out, never ? "* " : "GET ");
    for (int i = rand() % 3; i >= 0; i--)
        buf_printf(out, "/%s", PICK(words));
    if (rand() % 4 == 0)
        buf_put_u8(out, '/');
}

static void ask_path(struct request *r) {
    static const char *const pieces[] = {"a", "b", "A", "c", "7", "zz"},
                             *const ends[] = {"", "", "", ".x", ";x", "%3By", "%20"},
                             *const joints[] = {"/", "%2F"};
    for (int i = rand() % 4; i >= 0; i--) {
        strcat(r->target, r->target[0] ? PICK(joints) : "/");
        strcat(r->target, PICK(pieces));
        strcat(r->target, PICK(ends));
    }
    if (rand() % 4 == 0)
        strcat(r->target, "/");
}

static void changed_paths_with_parameters_and_encoded_slashes_are_found(void **state) {
    (void)state;
    static const char *const heads[] = {"path allow encoded-slash; path allow parameters",
                                        "path allow encoded-slash"};
    check_words(write_path, heads, ask_path, true);
}

static void write_body_line(struct buf *out, bool never) {
    static const char *const tests[] = {"is 5",       "is \"5\"",  "in [x, y, 5]", "is true",
                                        "is null",    "is string", "is number",    "is boolean",
                                        "matches x*", "",          "is \"true\"",  "in [x, null]"},
                             *const names[] = {"/m", "/m", "/n"};
    buf_put_str(out, never ? "* / { " : "POST / { ");
    for (int i = rand() % 2; i >= 0; i--)
        buf_printf(out, "%sbody %s %s%s", rand() % 4 ? "" : "no ", PICK(names), PICK(tests),
                   i ? "; " : " }");
}

static void ask_body(struct request *r) {
    static const char *const values[] = {"5",     "\"5\"",    "5.0",     "\"x\"",
                                         "\"X\"", "\"xy\"",   "\"\"",    "true",
                                         "null",  "[]",       "[\"x\"]", "{}",
                                         "7",     "\"true\"", "false",   "\"null\""},
                             *const texts[] = {"5",    "x",    "X", "xy",   "",
                                               "true", "null", "7", "false"},
                             *const names[] = {"m", "m", "n", "M", "o"};
    bool form = rand() % 3 == 0;
    r->t.method = VIEW("POST");
    r->t.type = form ? VIEW("application/x-www-form-urlencoded") : VIEW("application/json");
    r->t.target = VIEW("/");
    strcat(r->target, form ? "" : "{");
    for (int i = rand() % 3, n = 0; i >= 0; i--, n++) {
        if (n)
            strcat(r->target, form ? "&" : ",");
        if (form)
            snprintf(r->target + strlen(r->target), 30, "%s=%s", PICK(names), PICK(texts));
        else
            snprintf(r->target + strlen(r->target), 30, "\"%s\":%s", PICK(names), PICK(values));
    }
    strcat(r->target, form ? "" : "}");
    r->t.body = view_str(r->target);
    if (rand() % 8 == 0)
        r->t.body = (struct view){NULL, 0};
}

static void changed_conditions_on_bodies_are_found(void **state) {
    (void)state;
    static const char *const heads[] = {"", ""};
    check_words(write_body_line, heads, ask_body, true);
}

static void ask_body_with_credential(struct request *r) {
    ask_body(r);
    r->t.with = (enum with)(rand() % 4);
}

static void changed_credentials_in_bodies_are_found(void **state) {
    (void)state;
    static const char *const heads[] = {"credential k { in json /k }",
                                        "credential k { in header x-k }"};
    check_words(write_body_line, heads, ask_body_with_credential, false);
}

static void write_grpc(struct buf *out, bool never) {
    static const char *const services[] = {"a.B", "a.B", "a.C"}, *const methods[] = {"*", "D", "E"},
                             *const paths[] = {"/**", "/*/D", "/a.B/*", "/a.B/D"};
    buf_printf(out, "%s %s", never ? "*" : "POST", PICK(paths));
    if (rand() % 3)
        buf_printf(out, " grpc %s %s", PICK(services), PICK(methods));
}

static void ask_grpc(struct request *r) {
    static const char *const paths[] = {"/a.B/D",   "/a.B/E", "/a.C/D", "/a.C/F", "/a.B",
                                        "/a.B/D/E", "/a.B/d", "/a.B/",  "/x/D"},
                             *const types[] = {"application/grpc", "application/grpc+proto", "a/b",
                                               ""};
    r->t.method = VIEW("POST");
    r->t.target = view_str(PICK(paths));
    r->t.type = view_str(PICK(types));
}

static void changed_grpc_lines_are_found(void **state) {
    (void)state;
    static const char *const heads[] = {"", ""};
    check_words(write_grpc, heads, ask_grpc, true);
}

/* ---- examples ---- */

static struct policy *load(const char *text) {
    struct policy *p;
    if (policy_load(view_str(text), "policy", &p, &errors) != 0)
        fail_msg("%u: %s\n%s", errors.at[0].at.line, errors.at[0].text, text);
    return p;
}

static void nothing(void *ctx, const struct diff_found *f) {
    (void)ctx;
    (void)f;
}

/* How many of which kind; a whole answer. */
static void check(const char *before, const char *after, size_t allowed, size_t denied,
                  size_t other) {
    struct policy *a = load(before), *b = load(after);
    struct diff_result r;
    assert_int_equal(policy_diff(a, b, nothing, NULL, &r), 0);
    if (!r.whole)
        fail_msg("not whole: %s", r.why);
    size_t more = 0;
    for (int kind = DIFF_CREDENTIAL; kind < DIFF_KINDS; kind++)
        more += r.found[kind];
    if (r.found[DIFF_ALLOWED] != allowed || r.found[DIFF_DENIED] != denied || more != other)
        fail_msg("%zu, %zu, %zu for\n%s---\n%s", r.found[DIFF_ALLOWED], r.found[DIFF_DENIED], more,
                 before, after);
    policy_free(a);
    policy_free(b);
}

#define A(lines) "service a { host a.test; " lines " }\nsandbox w { grant a all }\n"

static void each_kind_of_rule_is_compared(void **state) {
    (void)state;
    check(A("operation r { GET /a }"), A("operation r { GET /a }"), 0, 0, 0);
    check(A("operation r { GET /a }"), A("operation r { GET /*; GET /a }"), 1, 0, 0);
    check(A("operation r { GET /*; GET /a }"), A("operation x { GET /* }"), 0, 0, 0);
    check(A("operation r { GET /** }"), A("operation r { GET /**/x; GET /** }"), 0, 0, 0);
    check(A("operation r { GET /** }"), A("operation r { GET /*; GET /*/** }"), 0, 1, 0);
    check(A("operation r { GET /{n:int} }"), A("operation r { GET /* }"), 1, 0, 0);
    check(A("operation r { GET /*/ }; never { * /Share }"),
          A("operation r { GET /*/ }; never { * /share/ }"), 0, 0, 0);
    check(A("operation r { GET /*/ }; never { * /share }"),
          A("operation r { GET /*/ }; never { * /share.x }"), 1, 0, 0);
    check(A("operation r { POST / { body at most 10 } }"),
          A("operation r { POST / { body at most 11 } }"), 1, 0, 0);
    check(A("limit body 10; operation r { POST / }"), A("limit body 9; operation r { POST / }"), 0,
          1, 0);
    check(A("operation r { GET / { query q in [a, b] } }"),
          A("operation r { GET / { query q in [b, c] } }"), 1, 1, 0);
    check(A("operation r { GET / { query q is a; query only } }"),
          A("operation r { GET / { query q is a } }"), 1, 0, 0);
    check(A("operation r { POST / { body /m is 5 } }"),
          A("operation r { POST / { body /m is \"5\" } }"), 1, 1, 0);
    check(A("operation r { POST / { no body /u } }"),
          A("operation r { POST / { body /u is null } }"), 1, 1, 0);
    check(A("operation r { POST / graphql query [a]; POST / graphql query [b] }"),
          A("operation r { POST / graphql query [a, b] }"), 1, 0, 0);
    check(A("operation r { POST / mcp tools/call [x] }"),
          A("operation r { POST / mcp tools/call }"), 1, 0, 0);
    check(A("operation r { POST / jsonrpc [x, y] }"), A("operation r { POST / jsonrpc [x] }"), 0, 1,
          0);
    check(A("operation r { GET / websocket; GET /a }"), A("operation r { GET /a }"), 0, 1, 0);
    check(A("operation r { GET / }"), A("host **.b.test; operation r { GET / }"), 1, 0, 0);
    check(A("host *.b.test x.b.test; operation r { GET / }"),
          A("host *.b.test; operation r { GET / }"), 0, 0, 0);
    check(A("host **.b.test; operation r { GET / }"),
          A("host *.b.test *.zz.b.test; operation r { GET / }"), 0, 1, 0);
    /* only where both are sent */
    check(A("operation r { GET / { query m is a } }; operation w { GET / { query m is b } }"),
          A("operation r { GET / { query m in [a, b] } }"), 1, 0, 0);
    check(A("operation r { POST / { body /m is 5 } }; operation w { POST / { body /m is array } }"),
          A("operation r { POST / { body /m is 5 } }"), 0, 1, 0);
    check(A("operation r { POST / grpc a.B C }"), A("operation r { POST / }"), 1, 0, 0);
    check(A("operation r { POST /** grpc a.B * }"), A("operation r { POST /** grpc a.B C }"), 0, 1,
          0);
    check(A("path allow parameters; operation r { GET /* }"), A("operation r { GET /* }"), 0, 1, 0);
    check(A("path allow encoded-slash; operation r { GET /* }"), A("operation r { GET /* }"), 0, 1,
          0);
    check(A("path allow encoded-slash; operation r { GET /*; GET /x%2Fy/a }"),
          A("path allow encoded-slash; operation r { GET /* }"), 0, 1, 0);
    check(A("path allow encoded-slash; operation r { GET /* }; never { * /a/b/c }"),
          A("path allow encoded-slash; operation r { GET /* }"), 1, 0, 0);
    check(A("path allow encoded-slash; operation r { GET /*/c }; never { * /a/**/b/c }"),
          A("path allow encoded-slash; operation r { GET /*/c }; never { * /a/*/**/b/c }"), 1, 0,
          0);
    check(A("path allow encoded-slash; operation r { GET /* }; never { * /a }"),
          A("path allow encoded-slash; operation r { GET /* }; never { * /a; * /a.x%2Fy }"), 0, 0,
          0);
    check(A("path allow parameters; operation r { GET /a; GET /* }; never { * /a }"),
          A("path allow parameters; operation r { GET /* }; never { * /a }"), 0, 0, 0);
    check(A("path allow parameters; operation r { GET /*/x }; never { * /a/x }"),
          A("path allow parameters; operation r { GET /*/x }; never { * '/a;v=1/x' }"), 1, 0, 0);
    check(A("accept cookies; operation r { GET / }"), A("operation r { GET / }"), 0, 1, 0);
    check(A("operation r { GET / }"), A("accept any; operation r { GET / }"), 2, 0, 0);
}

static size_t found_of(const char *before, const char *after, enum diff_kind kind) {
    struct policy *a = load(before), *b = load(after);
    struct diff_result r;
    assert_int_equal(policy_diff(a, b, nothing, NULL, &r), 0);
    assert_true(r.whole);
    policy_free(a);
    policy_free(b);
    return r.found[kind];
}

static void that_requests_are_no_longer_read_is_a_difference_of_its_own(void **state) {
    (void)state;
    static const char all[] = A("accept any; accept cookies; accept destinations; "
                                "operation r { * /; * /** }"),
                      splice[] = A("tls splice"), little[] = A("tls splice at most 1K");
    check(splice, splice, 0, 0, 0);
    assert_true(found_of(A("operation r { GET / }"), splice, DIFF_ALLOWED) > 0);
    assert_int_equal(found_of(all, splice, DIFF_ALLOWED), 0);
    assert_true(found_of(all, splice, DIFF_UNREAD) > 0);
    assert_int_equal(found_of(splice, all, DIFF_UNREAD), 0);
    assert_true(found_of(splice, all, DIFF_READ) > 0);
    assert_true(found_of(little, splice, DIFF_LAXER) > 0);
    assert_true(found_of(splice, little, DIFF_STRICTER) > 0);
}

#undef A
#define K(lines, grants)                                                                           \
    "service a { host a.test; credential k { in header x-a };" lines " }\n"                        \
    "sandbox w { " grants " }\nsandbox ci-* { grant a r }\n"
#define R "operation r { GET / }"

static void credentials_grants_and_limits_are_compared(void **state) {
    (void)state;
    check(K(R, "grant a r"), K("operation r anonymous { GET / }", "grant a r"), 1, 0, 0);
    check(K(R, "grant a r"), K("credential q { in header x-b; for r };" R, "grant a r"), 0, 0, 1);
    check(K(R, "grant a r uses 5"), K(R, "grant a r uses 6"), 0, 0, 1);
    check(K(R, "grant a r rate 5/m"), K(R, "grant a r rate 5/m note \"x\""), 0, 0, 0);
    check(K(R, "grant a r"), K(R, ""), 0, 1, 0);
    check(K(R, ""), K(R, "grant a r mode observe"), 2, 0, 0);
    static const struct {
        const char *before, *after;
        bool laxer, differs;
    } limits[] = {
        {"grant a r uses 5", "grant a r uses 6", true, true},
        {"grant a r uses 5", "grant a r uses 4", false, true},
        {"grant a r uses 5", "grant a r", true, true},
        {"grant a r", "grant a r uses 5", false, true},
        {"grant a r until 2030-01-01T00:00:00Z", "grant a r until 2030-01-01T00:00:01Z", true,
         true},
        {"grant a r until 2030-01-01T00:00:00Z", "grant a r until 2029-01-01T00:00:00Z", false,
         true},
        {"grant a r rate 60/m", "grant a r rate 1/s", false, true},
        {"grant a r rate 1/s", "grant a r rate 60/m", true, true},
        {"grant a r rate 1/m", "grant a r rate 61/h", true, true},
        {"grant a r concurrent 1", "grant a r concurrent 1 bytes out 1M", false, true},
        /* another one beside it; in either order of the text */
        {"grant a r uses 5", "grant a r uses 5; grant a r uses 1 note 1", true, true},
        {"grant a r uses 5; grant a r uses 1 note 1", "grant a r uses 5", false, true},
        {"grant a r uses 5; grant a r uses 1 note 1", "grant a r uses 1 note 1; grant a r uses 5",
         false, false},
        /* what was counted is forgotten */
        {"grant a r uses 5", "grant a r uses 5 note again", true, true},
        {"grant a r rate 5/s", "grant a r rate 5/s note again", false, false},
        /* counted apart */
        {"grant a r w rate 5/s", "grant a r rate 5/s; grant a w rate 5/s", true, true},
    };
    for (size_t i = 0; i < sizeof limits / sizeof limits[0]; i++) {
        char text[2][512];
        const char *const grants[2] = {limits[i].before, limits[i].after};
        struct policy *p[2];
        struct diff_result r;
        for (int k = 0; k < 2; k++) {
            snprintf(text[k], sizeof text[k],
                     "service a { host a.test; operation r { GET / }; operation w { PUT / } }\n"
                     "sandbox s { %s }\n",
                     grants[k]);
            p[k] = load(text[k]);
        }
        assert_int_equal(policy_diff(p[0], p[1], nothing, NULL, &r), 0);
        if ((r.found[DIFF_LAXER] > 0) != limits[i].laxer ||
            (r.found[DIFF_LAXER] + r.found[DIFF_STRICTER] > 0) != limits[i].differs)
            fail_msg("%s, then %s: %zu laxer, %zu stricter", grants[0], grants[1],
                     r.found[DIFF_LAXER], r.found[DIFF_STRICTER]);
        policy_free(p[0]);
        policy_free(p[1]);
    }
    check(K(R, ""), K(R, "") "sandbox ci-x { }\nsandbox o { grant a r }\n", 1, 1, 0);
}

#define A(lines) "service a { host a.test; " lines " }\nsandbox w { grant a all }\n"

/* A service that is too much to compare, under another name or at another host as it is wished. */
#define LONG(name, host, more)                                                                     \
    "service " name " { host " host "; path allow parameters; credential k { in json /k }\n"       \
    "operation r { POST /x/zq9 { query a in [1, 2, 3, 4, 5, 6, 7, 8]; query b in "                 \
    "[1, 2, 3, 4, 5, 6, 7, 8]; query c in [1, 2, 3, 4, 5, 6, 7, 8] } }\n" more " }\n"
#define ALL "sandbox w { grant long all; grant a r }\n"
#define SHORT(lines) "service a { host a.test; operation r { " lines " } }\n"

static void what_is_the_same_in_both_needs_no_comparing(void **state) {
    (void)state;
    check(LONG("long", "l.test", "") SHORT("GET /") ALL,
          LONG("long", "l.test", "") SHORT("GET /") ALL, 0, 0, 0);
    check(LONG("long", "l.test", "") SHORT("GET /") ALL,
          SHORT("GET /; GET /x") LONG("long", "l.test", "") ALL, 1, 0, 0);
    check(LONG("long", "l.test", "") SHORT("GET /; GET /x") ALL,
          LONG("long", "l.test", "# comment\n") SHORT("GET /") ALL, 0, 1, 0);
    /* others come and go */
    check(LONG("long", "l.test", "") SHORT("GET /") ALL,
          LONG("long", "l.test", "") SHORT("GET /") ALL "sandbox v { grant a r }", 1, 0, 0);
    check(LONG("long", "l.test", "") SHORT("GET /") ALL,
          LONG("long", "l.test", "") SHORT("GET /") "sandbox w { grant long all }", 0, 1, 0);
    /* of the same service other paths */
    check(
        A("operation r { POST /l { query a in [1, 2, 3, 4, 5, 6, 7]; query b in [1, 2, 3, 4, 5, 6, "
          "7]; query c in [1, 2, 3, 4, 5, 6, 7] } }; operation w { GET /m }"),
        A("operation r { POST /l { query a in [1, 2, 3, 4, 5, 6, 7]; query b in [1, 2, 3, 4, 5, 6, "
          "7]; query c in [1, 2, 3, 4, 5, 6, 7] } }; operation w { GET /m; GET /n }"),
        1, 0, 0);
    /* globs that overlap, left alone */
    check(SHORT("GET /") "sandbox a*b* { grant a r }\nsandbox *b { grant a r }\n",
          "# once more\n" SHORT("GET /") "sandbox a*b* { grant a r }\nsandbox *b { grant a r }\n",
          0, 0, 0);
}

/* Each in one of two services that else are the same: it must not pass for the same. */
static void no_word_of_a_service_is_overlooked(void **state) {
    (void)state;
    static const char *const lines[][2] = {
        {"operation r { GET / }", "operation r { GET /x }"},
        {"operation r { GET / }", "operation r { HEAD / }"},
        {"operation r { GET /* }", "operation r { GET /** }"},
        {"operation r { GET /a }", "operation r { GET /a/ }"},
        {"operation r { GET / { query a is 1 } }", "operation r { GET / { query a is 2 } }"},
        {"operation r { GET / { query a is 1 } }", "operation r { GET / { no query a is 1 } }"},
        {"operation r { GET / { query a is 1 } }", "operation r { GET / { header a is 1 } }"},
        {"operation r { GET / { query a } }", "operation r { GET / { query a; query only } }"},
        {"operation r { GET / websocket }", "operation r { GET / }"},
        {"operation r { POST / { content-type a/b } }",
         "operation r { POST / { content-type a/c } }"},
        {"operation r { POST / { body at most 5 } }", "operation r { POST / { body at most 6 } }"},
        {"operation r { POST / { body /a is 5 } }", "operation r { POST / { body /b is 5 } }"},
        {"operation r { POST / mcp tools/call [a] }", "operation r { POST / mcp tools/call [b] }"},
        {"operation r { POST / graphql query [a] }", "operation r { POST / graphql mutation [a] }"},
        {"operation r { POST / jsonrpc [a] }", "operation r { POST / jsonrpc [b] }"},
        {"operation r { GET / }; never { * /a }", "operation r { GET / }; never { * /b }"},
        {"operation r { GET / }; limit body 5", "operation r { GET / }; limit body 6"},
        {"operation r { GET / }; accept any", "operation r { GET / }"},
        {"operation r { GET / }; accept cookies", "operation r { GET / }"},
        {"operation r { GET / }; accept destinations", "operation r { GET / }"},
        {"operation r { GET / }; accept ours or none", "operation r { GET / }"},
        {"operation r { GET / }; clear", "operation r { GET / }"},
        {"operation r { GET / }; path allow parameters", "operation r { GET / }"},
        {"operation r { GET / }; path allow encoded-slash", "operation r { GET / }"},
        {"operation r { GET / }; never all", "operation r { GET / }"},
        {"operation r anonymous { GET / }", "operation r { GET / }"},
        {"operation r { GET / }; operation w { PUT / }", "operation r { GET / }"},
        {"operation r { GET / }; operation w { GET /w }",
         "operation r { GET / }; operation w preset write { GET /w }"},
    };
    for (size_t i = 0; i < sizeof lines / sizeof lines[0]; i++) {
        char text[2][512];
        struct policy *p[2];
        for (int k = 0; k < 2; k++) {
            bool bare = strstr(lines[i][0], "clear") || strstr(lines[i][0], "accept any");
            snprintf(text[k], sizeof text[k], "service a { host a.test; %s %s }\n",
                     bare ? "" : "credential k { in header x-a };", lines[i][k]);
            p[k] = load(text[k]);
        }
        const struct service *a = policy_service_at(p[0], 0), *b = policy_service_at(p[1], 0);
        if (service_same(a, b) || service_same(b, a) || !service_same(a, a))
            fail_msg("%s and %s", lines[i][0], lines[i][1]);
        policy_free(p[0]);
        policy_free(p[1]);
    }
}

#define PIN "00000000000000000000000000000000000000000000000000000000000000"

static void what_addresses_and_upstreams_are_asked_for_is_compared(void **state) {
    (void)state;
    static const struct {
        const char *before, *after;
        size_t further, nearer;
    } pairs[] = {
        {"", "range 10.0.0.0/8", 1, 0},
        {"range 10.0.0.0/8", "", 0, 1},
        {"range 10.0.0.0/8", "range 10.1.0.0/16", 0, 1},
        {"range 10.0.0.0/8", "range 10.0.0.0/9 10.128.0.0/9", 0, 0},
        {"range 10.0.0.0/9 10.128.0.0/9", "range 10.0.0.0/8", 0, 0},
        {"range 10.0.0.0/9 10.128.0.0/10", "range 10.0.0.0/8", 1, 0},
        {"range 10.0.0.0/8", "range fd00::/8", 1, 1},
        {"range 169.254.0.0/16", "range 169.254.169.254", 1, 1},
        {"country FR DE", "country FR", 0, 1},
        {"country FR DE", "country DE FR", 0, 0},
        {"", "country FR", 0, 1},
        {"country FR", "country not DE", 1, 0},
        {"country not DE", "country not DE FR", 0, 1},
        {"asn 64500", "asn 64500 64501", 1, 0},
        {"asn 64500", "asn 64500; country FR", 0, 1},
        {"upstream ca a.pem", "", 1, 1},
        {"upstream ca a.pem", "upstream ca b.pem", 1, 1},
        {"upstream pin sha256:" PIN "00", "", 1, 0},
        {"upstream pin sha256:" PIN "00", "upstream pin sha256:" PIN "01", 1, 1},
        {"", "upstream client-certificate us", 1, 0},
        {"upstream client-certificate us", "", 0, 1},
        {"upstream client-certificate us", "upstream client-certificate them", 1, 1},
        {"}\nservice n { host 10.0.0.1; never all", "", 0, 0},
        {"range 10.0.0.0/8 }\nservice n { host 10.0.0.1; never all", "range 10.0.0.0/8", 1, 0},
        {"range 10.0.0.0/8 }\nservice n { host 10.0.0.1; port 80; never all", "range 10.0.0.0/8", 0,
         0},
    };
    for (size_t i = 0; i < sizeof pairs / sizeof pairs[0]; i++) {
        char text[2][512];
        struct policy *p[2];
        struct diff_result r;
        for (int k = 0; k < 2; k++) {
            snprintf(
                text[k], sizeof text[k],
                "service a { host a.test; operation r { GET / }\n%s }\nsandbox w { grant a all }\n",
                k ? pairs[i].after : pairs[i].before);
            p[k] = load(text[k]);
        }
        assert_int_equal(policy_diff(p[0], p[1], nothing, NULL, &r), 0);
        if (!r.whole || r.found[DIFF_FURTHER] != pairs[i].further ||
            r.found[DIFF_NEARER] != pairs[i].nearer || r.found[DIFF_ALLOWED] > 0)
            fail_msg("%s, then %s: %zu further, %zu nearer", pairs[i].before, pairs[i].after,
                     r.found[DIFF_FURTHER], r.found[DIFF_NEARER]);
        policy_free(p[0]);
        policy_free(p[1]);
    }
}

static void what_is_not_compared_is_told(void **state) {
    (void)state;
    static const char *const texts[] = {
        "service a { host a.test; credential k { in json /k }; operation r { POST /a { body /k }; "
        "GET %s } }\nsandbox w "
        "{ grant a r }\n",
        "service a { host a.test; credential k { in header x-k; at most %.1s }; operation r { GET "
        "/ } }\n"
        "sandbox w { grant a r }\n",
        "service a { host a.test; operation r { GET /x/zq9; GET %s } }\nsandbox w { grant a r }\n",
        "service a { host zq9.test; operation r { GET %s } }\nsandbox w { grant a r }\n",
    };
    for (size_t i = 0; i < sizeof texts / sizeof texts[0]; i++) {
        char text[2][512];
        struct policy *p[2];
        struct diff_result r;
        for (int k = 0; k < 2; k++) {
            snprintf(text[k], sizeof text[k], texts[i],
                     strstr(texts[i], "at most") ? (k ? "2" : "1")
                     : k                         ? "/a"
                                                 : "/b");
            p[k] = load(text[k]);
        }
        assert_int_equal(policy_diff(p[0], p[1], nothing, NULL, &r), 0);
        if (r.whole || !r.why)
            fail_msg("whole: %s", texts[i]);
        policy_free(p[0]);
        policy_free(p[1]);
    }
}

/* Of many conditions pairs are tried: also two of a body that a limit measures as well. */
static void what_a_limited_body_says_is_compared_in_pairs(void **state) {
    (void)state;
#define LINE(models, more)                                                                         \
    "service a { host a.test; limit body 1M; operation ask { POST /chat { content-type "           \
    "application/json; body /model in [" models "]; no body /tools/*/url" more                     \
    " } }; never { POST /** "                                                                      \
    "{ body /callback } } }\nsandbox w { grant a all }\n"
#define MANY                                                                                       \
    "; no query a; no query b; no query c; no query d; no query e; no query f; no query g; "       \
    "no query h; no query i; no query j; no query k; no query l"
    check(LINE("s, m", ""), LINE("s, m, l", ""), 1, 0, 0);
    struct policy *a = load(LINE("s, m", MANY)), *b = load(LINE("s, m, l", MANY));
    struct diff_result r;
    assert_int_equal(policy_diff(a, b, nothing, NULL, &r), 0);
    assert_false(r.whole);
    assert_int_equal(r.found[DIFF_ALLOWED], 1);
    policy_free(a);
    policy_free(b);
}

int main(void) {
    unsigned seed = (unsigned)(getenv("SEED") ? strtoul(getenv("SEED"), NULL, 10) : 1);
    printf("seed %u\n", seed);
    srand(seed);
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(each_kind_of_rule_is_compared),
        cmocka_unit_test(that_requests_are_no_longer_read_is_a_difference_of_its_own),
        cmocka_unit_test(credentials_grants_and_limits_are_compared),
        cmocka_unit_test(what_is_the_same_in_both_needs_no_comparing),
        cmocka_unit_test(no_word_of_a_service_is_overlooked),
        cmocka_unit_test(what_addresses_and_upstreams_are_asked_for_is_compared),
        cmocka_unit_test(what_is_not_compared_is_told),
        cmocka_unit_test(what_a_limited_body_says_is_compared_in_pairs),
        cmocka_unit_test(what_changes_by_chance_is_found_by_diff),
        cmocka_unit_test(changed_paths_with_parameters_and_encoded_slashes_are_found),
        cmocka_unit_test(changed_conditions_on_bodies_are_found),
        cmocka_unit_test(changed_credentials_in_bodies_are_found),
        cmocka_unit_test(changed_grpc_lines_are_found),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
