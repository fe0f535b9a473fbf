/* The property of a difference: what changes for a request by chance is found. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "policy/diff.h"
#include "policy/errors.h"
#include "policy/trial.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

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

static void write_policy(char slots[SLOTS][TEXT_SIZE], bool credential, struct buf *text) {
    static const char *const heads[] = {"service s0 {", "}\nservice s1 {", "}\nsandbox w1 {",
                                        "}\nsandbox w2* {"};
    buf_reset(text);
    for (int i = 0, head = 0; i < SLOTS; i++) {
        if (i == 0 || i == 5 || i == 10 || i == 11)
            buf_printf(text, "%s\n", heads[head++]);
        if ((i == 0 || i == 5) && credential)
            buf_put_str(text, "credential k { in header authorization scheme bearer }\n");
        buf_printf(text, "%s\n", slots[i]);
    }
    buf_put_str(text, "}\n");
}

/* ---- random requests ---- */

struct request {
    struct trial t;
    struct field fields[2];
    char target[96];
};

/* Any request to one of several hosts. */
static void ask_anything(struct request *r) {
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

/* Two policies by chance, one pair after the other, and what was seen of all. */
struct pairs {
    struct policy *p[2];
    struct buf texts[2];
    void (*ask)(struct request *r); /* from w1's GET https://a.test on */
    bool exactly;                   /* the clauses that decide, too */
    size_t compared, whole, changed;
};

static struct pairs pairs_new(void (*ask)(struct request *r), bool exactly) {
    struct pairs x = {.ask = ask, .exactly = exactly};
    buf_init(&x.texts[0], 1 << 14);
    buf_init(&x.texts[1], 1 << 14);
    return x;
}

static void check_request(struct pairs *x, const struct seen *seen) {
    struct request r = {.t = {.tls = true, .sandbox = VIEW("w1"), .method = VIEW("GET")}};
    struct verdict before, after;
    const char *why;
    assert_int_equal(authority_parse_host(VIEW("a.test"), 443, &r.t.authority, NULL), 0);
    x->ask(&r);
    if (!r.t.target.n)
        r.t.target = view_str(r.target);
    if (trial_run(x->p[0], &r.t, &before, &why) != 0 ||
        trial_run(x->p[1], &r.t, &after, &why) != 0 || before.allow == after.allow)
        return;
    x->changed++;
    if (x->exactly ? !is_seen(seen, &before, &after)
                   : seen->n[after.allow ? DIFF_ALLOWED : DIFF_DENIED] == 0)
        fail_msg("%.*s %s%s%s as %.*s, length %llu: %s to %s, not found\n%.*s\n---\n%.*s",
                 VIEW_ARG(r.t.method), r.t.tls ? "https://" : "http://", r.t.authority.host,
                 r.target, VIEW_ARG(r.t.sandbox), (unsigned long long)r.t.length,
                 reason_info(before.reason)->code, reason_info(after.reason)->code,
                 VIEW_ARG(buf_view(&x->texts[0])), VIEW_ARG(buf_view(&x->texts[1])));
}

/* The pair that both texts make, if they load. */
static void check_pair(struct pairs *x, int requests) {
    struct seen seen = {.n_verdicts = 0};
    struct diff_result result;
    for (int i = 0; i < 2; i++)
        if (policy_load(buf_view(&x->texts[i]), "p", &x->p[i], &errors) != 0)
            x->p[i] = NULL;
    if (x->p[0] && x->p[1]) {
        assert_int_equal(policy_diff(x->p[0], x->p[1], on_found, &seen, &result), 0);
        x->compared++;
        x->whole += result.whole;
        for (int i = 0; i < requests && result.whole; i++)
            check_request(x, &seen);
    }
    policy_free(x->p[0]);
    policy_free(x->p[1]);
}

static void pairs_end(struct pairs *x, size_t compared, size_t changed) {
    print_message("%zu pairs, %zu whole, %zu requests that changed\n", x->compared, x->whole,
                  x->changed);
    assert_true(x->compared > compared && x->whole > x->compared / 2 && x->changed > changed);
    buf_free(&x->texts[0]);
    buf_free(&x->texts[1]);
}

static void what_changes_by_chance_is_found_by_diff(void **state) {
    (void)state;
    struct pairs x = pairs_new(ask_anything, false);
    char slots[SLOTS][TEXT_SIZE] = {{0}};
    for (int i = 0; i < 120; i++) {
        bool credential = rand() % 2;
        fill(slots, 1);
        write_policy(slots, credential, &x.texts[0]);
        fill(slots, rand() % 2 ? 12 : 6);
        write_policy(slots, credential, &x.texts[1]);
        check_pair(&x, 300);
    }
    pairs_end(&x, 30, 10);
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

static void write_service(char lines[LINES][TEXT_SIZE], const char *head, struct buf *text) {
    buf_reset(text);
    buf_printf(text,
               "service a { host a.test; %s\noperation r { %s }\noperation w { %s }\n"
               "operation v { %s }\nnever { %s; %s }\n}\nsandbox w1 { grant a all }\n",
               head, lines[0], lines[1], lines[2], lines[3], lines[4]);
}

/* Of services that begin with these heads and go on with lines of one kind. */
static void check_words(line_writer *write, const char *head, const char *other_head,
                        void (*ask)(struct request *r), bool exactly) {
    struct pairs x = pairs_new(ask, exactly);
    char lines[LINES][TEXT_SIZE] = {{0}};
    for (int i = 0; i < 150; i++) {
        write_lines(lines, write, 1);
        write_service(lines, head, &x.texts[0]);
        write_lines(lines, write, 5);
        write_service(lines, rand() % 2 ? other_head : head, &x.texts[1]);
        check_pair(&x, 200);
    }
    pairs_end(&x, 100, 20);
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
    check_words(write_path, "path allow encoded-slash; path allow parameters",
                "path allow encoded-slash", ask_path, true);
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
    check_words(write_body_line, "", "", ask_body, true);
}

static void ask_body_with_credential(struct request *r) {
    ask_body(r);
    r->t.with = (enum with)(rand() % 4);
}

static void changed_credentials_in_bodies_are_found(void **state) {
    (void)state;
    check_words(write_body_line, "credential k { in json /k }", "credential k { in header x-k }",
                ask_body_with_credential, false);
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
    check_words(write_grpc, "", "", ask_grpc, true);
}

int main(void) {
    unsigned seed = (unsigned)(getenv("SEED") ? strtoul(getenv("SEED"), NULL, 10) : 1);
    printf("seed %u\n", seed);
    srand(seed);
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(what_changes_by_chance_is_found_by_diff),
        cmocka_unit_test(changed_paths_with_parameters_and_encoded_slashes_are_found),
        cmocka_unit_test(changed_conditions_on_bodies_are_found),
        cmocka_unit_test(changed_credentials_in_bodies_are_found),
        cmocka_unit_test(changed_grpc_lines_are_found),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
