/*
 * The evaluator against a slow, obvious one: random policies are written as text for policy_load, and kept as plain
 * structures for the functions below, which share no code with policy/.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "policy/json_form.h"
#include "policy/layout.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

enum { PARTS = 4, CONDITIONS = 3, RULES = 3, OPERATIONS = 4, SERVICES = 3, NEVERS = 2, PAIRS = 3 };

static uint64_t state_of_random;

static unsigned any(unsigned n) {
    state_of_random ^= state_of_random << 13;
    state_of_random ^= state_of_random >> 7;
    state_of_random ^= state_of_random << 17;
    return (unsigned)(state_of_random >> 33) % n;
}

#define PICK(array) (array)[any(sizeof(array) / sizeof *(array))]

/* ---- a policy as structures ---- */

struct test_condition {
    int kind; /* 0 query, 1 query only, 2 header, 3 body size, 4 body member */
    bool no, valued;
    const char *name, *value;
    unsigned limit;
};

struct test_rule {
    const char *method; /* "*": any */
    const char *parts[PARTS];
    unsigned n_parts;
    bool slash;
    struct test_condition conditions[CONDITIONS];
    unsigned n_conditions;
};

struct test_operation {
    bool anonymous, granted;
    int credential; /* 0 or 1; -1: none */
    struct test_rule rules[RULES];
    unsigned n_rules;
};

struct test_service {
    const char *host;
    unsigned n_credentials;
    bool never_all, parameters;
    struct test_operation operations[OPERATIONS];
    unsigned n_operations;
    struct test_rule nevers[NEVERS];
    unsigned n_nevers;
};

static struct test_service services[SERVICES];
static unsigned n_services;

static const char *const hosts[] = {"a.test", "x.a.test", "*.a.test", "**.a.test", "**.test"};
static const char *const methods[] = {"GET", "POST", "*"};
static const char *const parts[] = {"a", "b", "7", "*", "**", "{n}", "{n:int}", "a.b"};
static const char *const names[] = {"p", "q"};
static const char *const values[] = {"1", "2", "x"};
static const char *const members[] = {"/m", "/n"};

static void make_condition(struct test_condition *c) {
    c->kind = (int)any(5);
    c->no = c->kind != 1 && c->kind != 3 && any(3) == 0;
    c->valued = c->kind != 1 && c->kind != 3 && any(2);
    c->name = c->kind == 4 ? PICK(members) : PICK(names);
    c->value = PICK(values);
    c->limit = any(3) * 10;
}

static void make_rule(struct test_rule *r, bool conditions) {
    *r = (struct test_rule){.method = PICK(methods), .n_parts = any(PARTS)};
    for (unsigned i = 0; i < r->n_parts; i++)
        r->parts[i] = PICK(parts);
    r->slash = r->n_parts > 0 && any(5) == 0;
    r->n_conditions = conditions && any(2) ? 1 + any(CONDITIONS - 1) : 0;
    for (unsigned i = 0; i < r->n_conditions; i++)
        make_condition(&r->conditions[i]);
}

static void make_service(struct test_service *s, unsigned n_credentials) {
    *s = (struct test_service){.host = PICK(hosts), .n_credentials = n_credentials};
    s->parameters = any(2);
    s->n_operations = 1 + any(OPERATIONS);
    for (unsigned i = 0; i < s->n_operations; i++) {
        struct test_operation *o = &s->operations[i];
        o->n_rules = 1 + any(RULES);
        for (unsigned k = 0; k < o->n_rules; k++)
            make_rule(&o->rules[k], true);
        o->granted = any(4) != 0;
        o->credential = n_credentials == 0 ? -1 : (int)any(n_credentials);
        o->anonymous = n_credentials > 0 && any(3) == 0;
    }
    s->n_nevers = any(NEVERS + 1);
    for (unsigned i = 0; i < s->n_nevers; i++)
        make_rule(&s->nevers[i], true);
}

static void make_policy(void) {
    unsigned n_credentials = any(3);
    n_services = 1 + any(SERVICES);
    for (unsigned i = 0; i < n_services; i++)
        make_service(&services[i], n_credentials);
}

/* ---- the same as text ---- */

static void write_condition(struct buf *b, const struct test_condition *c) {
    static const char *const words[] = {"query", "query only", "header", "body at most", "body"};
    buf_printf(b, "%s%s ", c->no ? "no " : "", words[c->kind]);
    if (c->kind == 3)
        buf_printf(b, "%u", c->limit);
    else if (c->kind != 1)
        buf_printf(b, "%s", c->name);
    if (c->valued)
        buf_printf(b, any(2) ? " is \"%s\"" : " in [\"%s\", \"never-sent\"]", c->value);
}

static void write_rule(struct buf *b, const struct test_rule *r) {
    buf_printf(b, "%s ", r->method);
    for (unsigned i = 0; i < r->n_parts; i++)
        buf_printf(b, "/%s", r->parts[i]);
    buf_put_str(b, r->n_parts == 0 || r->slash ? "/" : "");
    buf_put_str(b, r->n_conditions ? " { " : "");
    for (unsigned i = 0; i < r->n_conditions; i++) {
        write_condition(b, &r->conditions[i]);
        buf_put_str(b, "; ");
    }
    buf_put_str(b, r->n_conditions ? "}\n" : "\n");
}

static void write_credentials(struct buf *b, const struct test_service *s) {
    for (unsigned c = 0; c < s->n_credentials; c++) {
        unsigned n = 0;
        for (unsigned i = 0; i < s->n_operations; i++)
            n += s->operations[i].credential == (int)c;
        buf_printf(b, "credential k%u { in header x-key-%u", c, c);
        if (s->n_credentials > 1 && n > 0)
            buf_put_str(b, "; for");
        for (unsigned i = 0; s->n_credentials > 1 && i < s->n_operations; i++)
            if (s->operations[i].credential == (int)c)
                buf_printf(b, " o%u", i);
        buf_put_str(b, " }\n");
    }
}

static void write_service(struct buf *b, unsigned index) {
    const struct test_service *s = &services[index];
    buf_printf(b, "service s%u { host %s%s\n", index, s->host, s->host[0] == '*' ? " wide" : "");
    buf_put_str(b, s->parameters ? "path allow parameters\n" : "");
    write_credentials(b, s);
    for (unsigned i = 0; i < s->n_operations; i++) {
        buf_printf(b, "operation o%u %s{\n", i, s->operations[i].anonymous ? "anonymous " : "");
        for (unsigned k = 0; k < s->operations[i].n_rules; k++)
            write_rule(b, &s->operations[i].rules[k]);
        buf_put_str(b, "}\n");
    }
    for (unsigned i = 0; i < s->n_nevers; i++) {
        buf_put_str(b, "never { ");
        write_rule(b, &s->nevers[i]);
        buf_put_str(b, "}\n");
    }
    buf_put_str(b, "}\n");
}

static void write_grants(struct buf *b) {
    buf_put_str(b, "sandbox w {\n");
    for (unsigned i = 0; i < n_services; i++) {
        bool first = true;
        for (unsigned k = 0; k < services[i].n_operations; k++) {
            if (!services[i].operations[k].granted)
                continue;
            if (first)
                buf_printf(b, "grant s%u", i);
            buf_printf(b, " o%u", k);
            first = false;
        }
        buf_put_str(b, first ? "" : "\n");
    }
    buf_put_str(b, "}\n");
}

/* ---- a request ---- */

struct pair {
    const char *name, *value;
};

struct test_request {
    const char *host, *method;
    const char *segments[PARTS];
    unsigned n_segments;
    bool slash;
    struct pair query[PAIRS], fields[PAIRS], body[PAIRS];
    unsigned n_query, n_fields, n_body;
    bool has_body;
    int carries; /* the credential; -1: none; 2: a foreign one */
    unsigned length;
};

static void make_pairs(struct pair *out, unsigned *n, const char *const *from) {
    *n = any(PAIRS + 1);
    for (unsigned i = 0; i < *n; i++)
        out[i] = (struct pair){from[any(2)], PICK(values)};
}

static void make_request(struct test_request *r) {
    static const char *const asked[] = {"a.test", "x.a.test", "y.x.a.test", "b.test"};
    static const char *const used[] = {"GET", "POST", "PUT"};
    static const char *const segments[] = {"a",   "b",      "7",    "42", "A",
                                           "a.b", "a.json", "a%20", "b;x"};
    *r = (struct test_request){.host = PICK(asked), .method = PICK(used), .n_segments = any(PARTS)};
    for (unsigned i = 0; i < r->n_segments; i++)
        r->segments[i] = PICK(segments);
    r->slash = r->n_segments > 0 && any(6) == 0;
    make_pairs(r->query, &r->n_query, names);
    make_pairs(r->fields, &r->n_fields, names);
    make_pairs(r->body, &r->n_body, members);
    r->has_body = any(3) != 0;
    r->length = any(30);
    r->carries = (int)any(4) - 1;
}

/* ---- the obvious meaning ---- */

static bool means(const char *part, const char *segment, bool widely) {
    if (strcmp(part, "*") == 0 || strcmp(part, "{n}") == 0)
        return true;
    if (strcmp(part, "{n:int}") == 0)
        return strspn(segment, "0123456789") == strlen(segment);
    if (strcmp(part, segment) == 0)
        return true;
    /* of the segments above these are what a server may take for something else */
    if (!widely)
        return false;
    if (strcmp(part, "a") == 0)
        return strcmp(segment, "A") == 0 || strcmp(segment, "a.b") == 0 ||
               strcmp(segment, "a.json") == 0 || strcmp(segment, "a%20") == 0;
    return strcmp(part, "b") == 0 && strcmp(segment, "b;x") == 0;
}

static bool match_parts(const struct test_rule *r, unsigned i, const struct test_request *q,
                        unsigned k, bool widely) {
    if (i == r->n_parts)
        return k == q->n_segments;
    if (k == q->n_segments)
        return false;
    if (strcmp(r->parts[i], "**") == 0)
        return match_parts(r, i + 1, q, k + 1, widely) || match_parts(r, i, q, k + 1, widely);
    return means(r->parts[i], q->segments[k], widely) && match_parts(r, i + 1, q, k + 1, widely);
}

static bool match_path(const struct test_rule *r, const struct test_request *q, bool widely) {
    bool open = r->n_parts > 0 && strcmp(r->parts[r->n_parts - 1], "**") == 0 && !r->slash;
    if (!widely && !open && r->slash != q->slash)
        return false;
    return match_parts(r, 0, q, 0, widely);
}

static bool match_pairs(const struct test_condition *c, const struct pair *pairs, unsigned n,
                        bool widely) {
    unsigned seen = 0, good = 0;
    for (unsigned i = 0; i < n; i++) {
        if (strcmp(pairs[i].name, c->name) != 0)
            continue;
        seen++;
        good += !c->valued || strcmp(pairs[i].value, c->value) == 0;
    }
    return widely ? good > 0 : seen > 0 && good == seen;
}

static bool names_only(const struct test_rule *r, const struct test_request *q) {
    for (unsigned i = 0; i < q->n_query; i++) {
        bool named = false;
        for (unsigned k = 0; k < r->n_conditions; k++)
            named = named || (r->conditions[k].kind == 0 &&
                              strcmp(r->conditions[k].name, q->query[i].name) == 0);
        if (!named)
            return false;
    }
    return true;
}

static bool meets(const struct test_rule *r, const struct test_condition *c,
                  const struct test_request *q, bool widely) {
    bool wide = c->no ? !widely : widely, holds = false;
    switch (c->kind) {
    case 0:
        holds = match_pairs(c, q->query, q->n_query, wide);
        break;
    case 1:
        holds = names_only(r, q);
        break;
    case 2:
        holds = match_pairs(c, q->fields, q->n_fields, wide);
        break;
    case 3:
        holds = q->length <= c->limit;
        break;
    default:
        holds = q->length == 0 && !q->has_body ? false
                : q->has_body                  ? match_pairs(c, q->body, q->n_body, wide)
                                               : wide;
    }
    return c->no ? !holds : holds;
}

static bool rule_matches(const struct test_rule *r, const struct test_request *q, bool never) {
    if (strcmp(r->method, "*") != 0 && strcmp(r->method, q->method) != 0)
        return false;
    for (unsigned i = 0; i < r->n_conditions; i++)
        if (!meets(r, &r->conditions[i], q, never))
            return false;
    return match_path(r, q, never);
}

/* How specific a host is that covers the request's; 0: it does not. */
static unsigned covers(const char *pattern, const char *host) {
    const char *base = pattern + strspn(pattern, "*.");
    unsigned stars = (unsigned)strspn(pattern, "*");
    size_t n = strlen(host), m = strlen(base);
    if (stars == 0)
        return strcmp(pattern, host) == 0 ? 1000 : 0;
    if (n <= m + 1 || strcmp(host + n - m, base) != 0 || host[n - m - 1] != '.')
        return 0;
    if (stars == 1)
        return memchr(host, '.', n - m - 1) ? 0 : 900;
    return (unsigned)m;
}

static int weight(const char *part) {
    return strcmp(part, "**") == 0        ? 1
           : strcmp(part, "*") == 0       ? 2
           : strcmp(part, "{n}") == 0     ? 2
           : strcmp(part, "{n:int}") == 0 ? 3
                                          : 4;
}

static int more_specific(const struct test_rule *a, const struct test_rule *b) {
    for (unsigned i = 0; i < a->n_parts && i < b->n_parts; i++)
        if (weight(a->parts[i]) != weight(b->parts[i]))
            return weight(a->parts[i]) - weight(b->parts[i]);
    unsigned n = a->n_parts + a->slash, m = b->n_parts + b->slash;
    if (a->n_parts != b->n_parts && a->n_parts < b->n_parts && a->slash)
        return -1; /* a slash is less than any part */
    if (a->n_parts != b->n_parts && b->n_parts < a->n_parts && b->slash)
        return 1;
    if (n != m)
        return (int)n - (int)m;
    return (int)a->n_conditions - (int)b->n_conditions;
}

static bool has_parameters(const struct test_request *q) {
    bool has = false;
    for (unsigned i = 0; i < q->n_segments; i++)
        has = has || strchr(q->segments[i], ';');
    return has;
}

struct answer {
    enum reason reason;
    int credential; /* of the operation that counts */
};

static struct answer reference(const struct test_request *q) {
    const struct test_rule *best = NULL;
    const struct test_operation *operation = NULL;
    unsigned best_host = 0;
    bool reached = false, exists = false, anonymous = false;
    for (unsigned i = 0; i < n_services; i++)
        for (unsigned k = 0; covers(services[i].host, q->host) && k < services[i].n_operations; k++)
            reached = reached || services[i].operations[k].granted;
    if (!reached)
        return (struct answer){REASON_HOST_NOT_ALLOWED, -1};
    for (unsigned i = 0; i < n_services; i++) {
        unsigned host = covers(services[i].host, q->host);
        for (unsigned k = 0; host && k < services[i].n_nevers; k++)
            if (rule_matches(&services[i].nevers[k], q, true))
                return (struct answer){REASON_NEVER, -1};
        if (has_parameters(q) && !services[i].parameters)
            continue;
        for (unsigned k = 0; host && k < services[i].n_operations; k++) {
            const struct test_operation *o = &services[i].operations[k];
            for (unsigned m = 0; m < o->n_rules; m++) {
                if (!rule_matches(&o->rules[m], q, false))
                    continue;
                exists = true;
                anonymous = anonymous || (o->granted && o->anonymous);
                if (!o->granted || (best && host < best_host) ||
                    (best && host == best_host && more_specific(&o->rules[m], best) <= 0))
                    continue;
                best = &o->rules[m];
                best_host = host;
                operation = o;
            }
        }
    }
    if (!operation)
        return (struct answer){exists ? REASON_OPERATION_NOT_GRANTED : REASON_OPERATION_NOT_ALLOWED,
                               -1};
    struct answer a = {REASON_ALLOWED, operation->credential};
    if (q->carries == 2)
        a.reason = REASON_FOREIGN_CREDENTIAL;
    else if (q->carries >= 0 && q->carries != operation->credential)
        a.reason = REASON_PLACEHOLDER_WRONG_DESTINATION;
    else if (q->carries < 0 && operation->credential >= 0 && !anonymous)
        a.reason = REASON_CREDENTIAL_MISSING;
    return a;
}

/* ---- what policy/ says ---- */

static void write_target(struct buf *b, const struct test_request *q) {
    for (unsigned i = 0; i < q->n_segments; i++)
        buf_printf(b, "/%s", q->segments[i]);
    buf_put_str(b, q->n_segments == 0 || q->slash ? "/" : "");
    for (unsigned i = 0; i < q->n_query; i++)
        buf_printf(b, "%c%s=%s", i ? '&' : '?', q->query[i].name, q->query[i].value);
}

static size_t read_body(const struct policy *p, const struct test_request *q,
                        struct body_value *out) {
    size_t n = 0;
    for (unsigned i = 0; i < q->n_body; i++)
        for (uint16_t k = 0; policy_body_pointer(p, k).n > 0; k++)
            if (view_equal(policy_body_pointer(p, k), view_str(q->body[i].name)))
                out[n++] = (struct body_value){
                    .pointer = k, .type = BODY_STRING, .value = view_str(q->body[i].value)};
    return n;
}

static struct verdict judge(const struct policy *p, const struct test_request *q, struct buf *raw) {
    static const char *const keys[] = {"x-key-0", "x-key-1", "x-api-key"};
    static const char *const credentials[] = {"k0", "k1", ""};
    struct authority a;
    struct target t;
    struct buf path;
    struct field fields[PAIRS];
    struct body_value found[PAIRS];
    static struct materials m;
    m.n = q->carries >= 0;
    if (m.n)
        m.at[0] = (struct material){.place = PLACE_HEADER,
                                    .name = view_str(keys[q->carries]),
                                    .token = VIEW("t"),
                                    .origin = q->carries == 2 ? ORIGIN_FOREIGN : ORIGIN_OURS,
                                    .credential = view_str(credentials[q->carries])};
    for (unsigned i = 0; i < q->n_fields; i++)
        fields[i] = (struct field){view_str(q->fields[i].name), view_str(q->fields[i].value)};
    struct body_facts body = {
        .size = q->length, .values = found, .n_values = read_body(p, q, found)};
    buf_init(&path, 256);
    write_target(raw, q);
    assert_int_equal(authority_parse(view_str(q->host), 443, &a, NULL), 0);
    assert_int_equal(target_parse(buf_view(raw), SEGMENTS_MAX, &path, &t, NULL), 0);
    struct request_facts f = {.sandbox = VIEW("w"),
                              .tls = true,
                              .authority = &a,
                              .method = view_str(q->method),
                              .target = &t,
                              .materials = &m,
                              .fields = fields,
                              .n_fields = q->n_fields,
                              .length_known = true,
                              .length = q->length,
                              .body = q->has_body ? &body : NULL};
    struct verdict v = policy_judge(p, &f);
    struct body_needs needs;
    /* What is final without the body is what the body cannot change. */
    f.body = NULL;
    struct verdict head, bare = policy_judge(p, &f);
    bool needed = policy_body_needs(p, &f, &needs);
    if (q->has_body && q->length > 0 && !needed)
        assert_int_equal(bare.allow, v.allow);
    assert_int_equal(policy_judge_head(p, &f, &head, &needs), !needed);
    if (!needed) {
        assert_int_equal(head.reason, bare.reason);
        assert_ptr_equal(head.operation, bare.operation);
        assert_int_equal(head.at.line, bare.at.line);
    }
    buf_free(&path);
    return v;
}

static void check(const struct policy *p, const struct buf *text) {
    struct test_request q;
    struct buf raw;
    make_request(&q);
    buf_init(&raw, 256);
    struct verdict v = judge(p, &q, &raw);
    struct answer a = reference(&q);
    bool same = v.reason == a.reason && v.allow == (a.reason == REASON_ALLOWED);
    if (same && v.allow && q.carries >= 0)
        same = v.swap == 0 && verdict_credential(&v).p[1] == (uint8_t)('0' + a.credential);
    if (!same)
        fail_msg("%.*s\n%s %s%.*s carries %d body %d length %u: %s, the reference says %s",
                 VIEW_ARG(buf_view(text)), q.method, q.host, VIEW_ARG(buf_view(&raw)), q.carries,
                 q.has_body, q.length, reason_info(v.reason)->code, reason_info(a.reason)->code);
    buf_free(&raw);
}

/* Text, JSON and text again are one policy: the same bytes as its canonical layout. */
static void check_forms(struct view text) {
    static struct policy_errors errors;
    struct buf formatted, json, back;
    buf_init(&formatted, 1 << 20);
    buf_init(&json, 1 << 20);
    buf_init(&back, 1 << 20);
    errors_reset(&errors);
    int err = policy_format(text, "policy", &formatted, &errors);
    assert_int_equal(json_form_write(text, "policy", &json, &errors), err);
    if (err == 0) {
        assert_int_equal(json_form_read(buf_view(&json), "policy", &back, &errors), 0);
        if (!view_equal(buf_view(&back), buf_view(&formatted)))
            fail_msg("%.*s\n%.*s", VIEW_ARG(text), VIEW_ARG(buf_view(&json)));
    }
    buf_free(&formatted);
    buf_free(&json);
    buf_free(&back);
}

static void wc_pn_the_evaluator_agrees_with_a_slow_obvious_one(void **state) {
    (void)state;
    static struct policy_errors errors;
    enum { POLICIES = 3000, REQUESTS = 60 };
    const char *seed = getenv("SEED");
    state_of_random = seed ? strtoull(seed, NULL, 10) : (uint64_t)time(NULL) | 1;
    printf("SEED=%llu\n", (unsigned long long)state_of_random);
    unsigned loaded = 0;
    for (int i = 0; i < POLICIES; i++) {
        struct buf text;
        struct policy *p;
        buf_init(&text, 65536);
        make_policy();
        for (unsigned k = 0; k < n_services; k++)
            write_service(&text, k);
        write_grants(&text);
        check_forms(buf_view(&text));
        if (policy_load(buf_view(&text), "policy", &p, &errors) == 0) {
            loaded++;
            for (int k = 0; k < REQUESTS; k++)
                check(p, &text);
            policy_free(p);
        }
        buf_free(&text);
    }
    printf("%u of %d random policies loaded\n", loaded, POLICIES);
    assert_true(loaded > POLICIES / 5); /* the others have ties and repeated lines */
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(wc_pn_the_evaluator_agrees_with_a_slow_obvious_one),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
