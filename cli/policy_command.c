#include "base/file.h"
#include "base/json.h"
#include "cli/command.h"
#include "cli/options.h"
#include "cli/policy_told.h"
#include "policy/errors.h"
#include "policy/explain.h"
#include "policy/media_type.h"
#include "policy/trial.h"

#include <assert.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

enum { HEADERS_MAX = 64, BODY_MAX = 16 << 20 };

/* ---- check ---- */

static void put_wide_json(const struct policy *p, struct buf *out) {
    struct view text;
    struct position at;
    buf_put_str(out, ",\"wide\":[");
    for (size_t i = 0; policy_wide_host(p, i, &text, &at); i++) {
        buf_put_str(out, i ? ",{" : "{");
        policy_told_place(out, &at);
        json_put_text(out, "host", text);
        buf_put_u8(out, '}');
    }
    buf_put_u8(out, ']');
}

static void put_wide(const struct policy *p, struct buf *out) {
    struct view text;
    struct position at;
    for (size_t i = 0; policy_wide_host(p, i, &text, &at); i++)
        buf_printf(out, "%s:%u:%u: note: '%.*s' covers hosts of strangers\n", at.file, at.line,
                   at.column, VIEW_ARG(text));
}

static void put_observing_json(const struct policy *p, struct buf *out) {
    struct view sandbox, service;
    struct position at;
    buf_put_str(out, ",\"observing\":[");
    for (size_t i = 0; policy_observes(p, i, &sandbox, &service, &at); i++) {
        buf_put_str(out, i ? ",{" : "{");
        policy_told_place(out, &at);
        json_put_text(out, "sandbox", sandbox);
        json_put_text(out, "service", service);
        buf_put_u8(out, '}');
    }
    buf_put_u8(out, ']');
}

static void put_observing(const struct policy *p, struct buf *out) {
    struct view sandbox, service;
    struct position at;
    for (size_t i = 0; policy_observes(p, i, &sandbox, &service, &at); i++)
        buf_printf(out, "%s:%u:%u: OBSERVING: '%.*s' may do anything at '%.*s'\n", at.file, at.line,
                   at.column, VIEW_ARG(sandbox), VIEW_ARG(service));
}

int command_policy_check(const struct cli *cli, int argc, char **argv) {
    static const struct option_spec none[] = {{NULL, NULL, NULL}};
    struct policy *p;
    const char *file;
    int code = options_read(argc, argv, none, &file, 1);
    if (code == EXIT_YES)
        code = policy_told_load(cli, file, &p);
    if (code != EXIT_YES)
        return code;
    struct buf out;
    buf_init(&out, POLICY_OUTPUT_MAX);
    if (cli->json) {
        buf_printf(&out, "{\"valid\":true,\"sandboxes\":%zu", policy_sandboxes(p));
        put_wide_json(p, &out);
        put_observing_json(p, &out);
        buf_put_str(&out, "}\n");
    } else {
        put_wide(p, &out);
        put_observing(p, &out);
        buf_printf(&out, "%s: good\n", file);
    }
    cli_print(stdout, &out);
    buf_free(&out);
    policy_free(p);
    return EXIT_YES;
}

/* ---- explain ---- */

struct question {
    const char *policy, *method, *url, *body_file;
    struct view type;
    struct buf body;
    struct view sandbox; /* empty: the policy's only one */
    struct field headers[HEADERS_MAX];
    size_t n_headers;
    enum with with;
};

static int usage(const char *what) {
    return cli_fail(EXIT_USAGE, "%s", what);
}

static int take_with(struct question *q, const char *value) {
    static const char *const words[] = {"ours", "none", "foreign"};
    for (int i = 0; i < 3; i++)
        if (strcmp(value, words[i]) == 0) {
            q->with = (enum with)(WITH_OURS + i);
            return EXIT_YES;
        }
    return usage("--with takes ours, none or foreign");
}

static int take_header(struct question *q, const char *value) {
    struct view rest = view_str(value), name = view_cut(&rest, ':');
    for (size_t i = 0; i < name.n; i++)
        if (!is_tchar(name.p[i]))
            return usage("the name of a header is a token of RFC 9110");
    if (name.n == 0 || name.n == strlen(value))
        return usage("a header is written 'Name: value'");
    if (q->n_headers == HEADERS_MAX)
        return usage("more than 64 headers");
    q->headers[q->n_headers++] = (struct field){name, view_trim(rest)};
    return EXIT_YES;
}

static int fail_option(const char *name) {
    static const char *const known[] = {"--policy", "--sandbox", "--with",
                                        "--body",   "--type",    "--header"};
    struct guess g = guess_of(view_str(name));
    for (size_t i = 0; i < sizeof known / sizeof *known; i++)
        guess_offer(&g, view_str(known[i]));
    return cli_fail(EXIT_USAGE, "there is no option %s here%s", name, guess_text(&g));
}

static int take_option(struct question *q, const char *name, const char *value) {
    if (!value)
        return usage("an option without its value");
    if (strcmp(name, "--policy") == 0)
        q->policy = value;
    else if (strcmp(name, "--sandbox") == 0)
        q->sandbox = view_str(value);
    else if (strcmp(name, "--with") == 0)
        return take_with(q, value);
    else if (strcmp(name, "--body") == 0)
        q->body_file = value;
    else if (strcmp(name, "--type") == 0)
        q->type = view_str(value);
    else if (strcmp(name, "--header") == 0)
        return take_header(q, value);
    else
        return fail_option(name);
    return EXIT_YES;
}

static int take_arguments(struct question *q, int argc, char **argv) {
    for (int i = 0; i < argc; i++) {
        if (strncmp(argv[i], "--", 2) == 0) {
            int code = take_option(q, argv[i], i + 1 < argc ? argv[i + 1] : NULL);
            if (code != EXIT_YES)
                return code;
            i++;
        } else if (!q->method) {
            q->method = argv[i];
        } else if (!q->url) {
            q->url = argv[i];
        } else {
            return usage("too many arguments");
        }
    }
    if (!q->policy)
        return usage("--policy is needed");
    return q->url ? EXIT_YES : usage("METHOD and URL are needed");
}

static struct view verdict_operation(const struct verdict *v) {
    return v->operation ? operation_name(v->operation) : (struct view){NULL, 0};
}

static struct view verdict_service(const struct verdict *v) {
    return v->service ? service_name(v->service) : (struct view){NULL, 0};
}

static void put_nearest_json(const struct nearest *n, struct buf *out) {
    buf_put_str(out, ",\"nearest\":{");
    json_put_text(out, "service", service_name(n->service));
    json_put_text(out, "operation", operation_name(n->operation));
    policy_told_place(out, &n->at);
    buf_printf(out, ",\"granted\":%s,\"failures\":[", n->granted ? "true" : "false");
    for (size_t i = 0; i < n->n_failures; i++) {
        buf_put_str(out, i ? ",{" : "{");
        json_put_text(out, "clause", view_str(clause_word(n->failures[i].clause)));
        policy_told_place(out, &n->failures[i].at);
        json_put_text(out, "text", view_str(n->failures[i].text));
        buf_put_u8(out, '}');
    }
    buf_put_str(out, "]}");
}

static void put_verdict_json(const struct verdict *v, const struct nearest *nearest,
                             struct buf *out) {
    const struct reason_info *info = verdict_reason(v, v->reason);
    buf_put_str(out, "{");
    json_put_text(out, "verdict", v->allow ? VIEW("allow") : VIEW("deny"));
    json_put_text(out, "reason", view_str(info->code));
    json_put_text(out, "title", view_str(info->title));
    if (v->service)
        json_put_text(out, "service", verdict_service(v));
    if (v->operation)
        json_put_text(out, "operation", verdict_operation(v));
    if (v->swap >= 0)
        json_put_text(out, "credential", verdict_credential(v));
    policy_told_place(out, &v->at);
    if (v->allow && v->observed != REASON_ALLOWED)
        json_put_text(out, "observed", view_str(reason_info(v->observed)->code));
    if (v->n_grants > 0)
        policy_told_grants(v, out);
    if (info->hint && !v->allow)
        json_put_text(out, "hint", view_str(info->hint));
    if (nearest->operation)
        put_nearest_json(nearest, out);
    buf_put_str(out, "}\n");
}

/* Those of a layer are tried in this order. */
static void put_grants(const struct verdict *v, struct buf *out) {
    for (size_t i = 0; i < v->n_grants; i++) {
        const struct grant *g = v->grants[i];
        struct position at = grant_position(g);
        bool other = i > 0 && grant_layer(g) == grant_layer(v->grants[i - 1]);
        struct buf terms;
        buf_init(&terms, 512);
        buf_printf(out, "%s ", other ? "or while:" : "while:");
        grant_put_terms(g, &terms);
        buf_put(out, buf_view(&terms));
        buf_free(&terms);
        if (grant_note(g).n)
            buf_printf(out, " (%.*s)", VIEW_ARG(grant_note(g)));
        buf_printf(out, " at %s:%u:%u\n", at.file, at.line, at.column);
    }
}

static void put_place_text(const struct question *q, const struct verdict *v, struct buf *out) {
    if (v->at.file)
        buf_printf(out, "decided by: %s:%u:%u\n", v->at.file, v->at.line, v->at.column);
    else if (v->at.line != 0)
        buf_printf(out, "decided by: nothing allows it; see %s:%u:%u\n", q->policy, v->at.line,
                   v->at.column);
    else
        buf_put_str(out, "decided by: nothing allows it\n");
}

static void put_nearest(const struct nearest *n, struct buf *out) {
    buf_printf(out, "nearest: '%.*s' of '%.*s' at %s:%u:%u\n",
               VIEW_ARG(operation_name(n->operation)), VIEW_ARG(service_name(n->service)),
               n->at.file, n->at.line, n->at.column);
    for (size_t i = 0; i < n->n_failures; i++) {
        const struct failure *f = &n->failures[i];
        buf_printf(out, "  fails: %s: %s", clause_word(f->clause), f->text);
        if (f->at.file)
            buf_printf(out, " (%s:%u:%u)", f->at.file, f->at.line, f->at.column);
        buf_put_u8(out, '\n');
    }
}

static void put_verdict(const struct question *q, const struct verdict *v,
                        const struct nearest *nearest, struct buf *out) {
    const struct reason_info *info = verdict_reason(v, v->reason);
    buf_printf(out, "%s: %s\n%s\n", v->allow ? "allow" : "deny", info->code, info->title);
    if (v->service)
        buf_printf(out, "service: %.*s\n", VIEW_ARG(verdict_service(v)));
    if (v->operation)
        buf_printf(out, "operation: %.*s\n", VIEW_ARG(verdict_operation(v)));
    if (v->swap >= 0)
        buf_printf(out, "credential: %.*s\n", VIEW_ARG(verdict_credential(v)));
    put_place_text(q, v, out);
    if (v->allow && v->observed != REASON_ALLOWED)
        buf_printf(out, "OBSERVED: it would be refused: %s: %s\n", reason_info(v->observed)->code,
                   verdict_reason(v, v->observed)->title);
    put_grants(v, out);
    if (info->hint && !v->allow)
        buf_printf(out, "hint: %s\n", info->hint);
    if (nearest->operation)
        put_nearest(nearest, out);
}

/*
 * As egress does of what is allowed: whether the body can be looked into for credentials. One that is not given is not known to begin
 * like JSON.
 */
static void judge_body(const struct question *q, struct verdict *v) {
    struct field fields[HEADERS_MAX + 1];
    struct media_scan scan;
    struct view body = buf_view(&q->body);
    size_t n = 0, lead = media_type_lead(body);
    for (; n < q->n_headers; n++)
        fields[n] = q->headers[n];
    if (q->type.n > 0)
        fields[n++] = (struct field){VIEW("content-type"), q->type};
    if (!v->allow || service_accepts_any(v->service) || service_tls(v->service) == SERVICE_SPLICE ||
        (body.n == 0 && !media_type_is_coded(fields, n)))
        return;
    uint8_t first = lead < body.n ? body.p[lead] : body.n > 0 ? '{' : 0;
    enum reason why = media_type_judge(fields, n, view_str(q->method), first, &scan);
    if (why != REASON_ALLOWED)
        *v = (struct verdict){
            .reason = why, .service = v->service, .operation = v->operation, .swap = -1};
}

static int explain(const struct cli *cli, const struct question *q, const struct policy *p) {
    struct trial t = {.sandbox = q->sandbox,
                      .method = view_str(q->method),
                      .with = q->with,
                      .fields = q->headers,
                      .n_fields = q->n_headers,
                      .type = q->type,
                      .body = buf_view(&q->body),
                      .now = (uint64_t)time(NULL)};
    const char *why = "malformed";
    struct verdict v;
    struct nearest nearest = {.operation = NULL};
    struct buf out;
    int err = trial_url(view_str(q->url), &t, &why);
    if (err == 0)
        err = trial_explain(p, &t, &v, &nearest, &why);
    if (err != 0)
        return cli_fail(EXIT_USAGE, "%s %s: %s", q->method, q->url,
                        err == ERR_MEMORY ? err_text(err) : why);
    judge_body(q, &v);
    buf_init(&out, POLICY_OUTPUT_MAX);
    if (cli->json)
        put_verdict_json(&v, &nearest, &out);
    else
        put_verdict(q, &v, &nearest, &out);
    cli_print(stdout, &out);
    buf_free(&out);
    return v.allow ? EXIT_YES : EXIT_NO;
}

/* A policy with one sandbox leaves no doubt about which is meant. */
static int choose_sandbox(struct question *q, const struct policy *p) {
    struct buf names;
    size_t n = policy_sandboxes(p);
    if (q->sandbox.n == 0 && n == 1)
        q->sandbox = policy_sandbox_at(p, 0);
    if (q->sandbox.n > 0)
        return EXIT_YES;
    if (n == 0)
        return cli_fail(EXIT_USAGE, "%s declares no sandbox by name: --sandbox NAME is needed",
                        q->policy);
    buf_init(&names, POLICY_OUTPUT_MAX);
    for (size_t i = 0; i < n; i++)
        buf_printf(&names, "%s%.*s", i ? ", " : "", VIEW_ARG(policy_sandbox_at(p, i)));
    int code =
        cli_fail(EXIT_USAGE, "which sandbox? --sandbox is one of %.*s", VIEW_ARG(buf_view(&names)));
    buf_free(&names);
    return code;
}

static int read_body(struct question *q) {
    if (!q->body_file)
        return EXIT_YES;
    bool standard = strcmp(q->body_file, "-") == 0;
    int fd = standard ? dup(STDIN_FILENO) : open(q->body_file, O_RDONLY | O_CLOEXEC);
    int result = fd < 0 ? ERR_SYSTEM : file_read(fd, BODY_MAX, &q->body);
    if (result == ERR_LIMIT)
        return cli_fail(EXIT_UNSEEN, "%s: it has more than %d bytes", q->body_file, BODY_MAX);
    return result == 0 ? EXIT_YES : cli_unread(standard ? "standard input" : q->body_file, result);
}

int command_policy_explain(const struct cli *cli, int argc, char **argv) {
    struct question q = {.with = WITH_DEFAULT};
    struct policy *p;
    int code = take_arguments(&q, argc, argv);
    if (code != EXIT_YES)
        return code;
    assert(q.policy && q.url);
    code = policy_told_load_failing(cli, q.policy, &p);
    if (code != EXIT_YES)
        return code;
    buf_init(&q.body, BODY_MAX);
    code = choose_sandbox(&q, p);
    if (code == EXIT_YES)
        code = read_body(&q);
    if (code == EXIT_YES)
        code = explain(cli, &q, p);
    buf_free(&q.body);
    policy_free(p);
    return code;
}
