#include "cli/command.h"
#include "cli/options.h"
#include "cli/policy_files.h"
#include "cli/policy_told.h"
#include "cli/wishes.h"
#include "policy/explain.h"
#include "policy/json_form.h"
#include "policy/merge.h"
#include "policy/trial.h"

#include <string.h>
#include <time.h>

struct suggestion {
    struct wishes asked;
    struct wish *placed; /* in services of the policy */
    size_t number;       /* the last number of a name */
    struct buf notes;
    struct merge merge;
    const struct policy *policy; /* NULL: by itself */
};

static bool is_first(const struct suggestion *s, const struct wish *w,
                     bool (*same)(const struct wish *, const struct wish *)) {
    for (const struct wish *before = s->asked.requests.first; before && before != w;
         before = before->next)
        if (same(before, w))
            return false;
    return true;
}

/* ---- services of their own ---- */

/* One operation for each rule, so that each sandbox is granted what it asked for. */
static void put_rules(const struct suggestion *s, const struct wish *place, struct buf *out) {
    size_t n = 0;
    for (const struct wish *w = s->asked.requests.first; w; w = w->next)
        if (wish_same_place(w, place) && is_first(s, w, wish_same_rule)) {
            buf_printf(out, "    operation r%zu { %.*s ", ++n, VIEW_ARG(w->method));
            buf_printf(out, "\"%.*s\" }\n", VIEW_ARG(w->path));
            buf_printf(out, "    expect allow %.*s ", VIEW_ARG(w->method));
            buf_printf(out, "\"%.*s\"\n", VIEW_ARG(w->path));
        }
}

static bool holds(struct view path, const char *what) {
    return view_search(path, view_str(what)) < path.n;
}

static void put_path_words(const struct suggestion *s, const struct wish *place, struct buf *out) {
    bool slash = false, parameters = false;
    for (const struct wish *w = s->asked.requests.first; w; w = w->next) {
        if (!wish_same_place(w, place))
            continue;
        slash = slash || holds(w->path, "%2F");
        parameters = parameters || holds(w->path, ";") || holds(w->path, "%3B");
    }
    if (slash)
        buf_put_str(out, "    path allow encoded-slash\n");
    if (parameters)
        buf_put_str(out, "    path allow parameters\n");
}

static void put_service(const struct suggestion *s, const struct wish *place, const char *name,
                        struct buf *out) {
    struct authority host = place->authority;
    host.port = 443;
    buf_printf(out, "service %s {\n    host ", name);
    authority_write(&host, 443, out);
    buf_printf(out, "\n    port %u\n", place->authority.port);
    if (host.kind == HOST_ADDRESS)
        buf_printf(out, "    range %s\n", host.host);
    if (!place->tls)
        buf_put_str(out, "    tls clear\n");
    put_path_words(s, place, out);
    put_rules(s, place, out);
    buf_put_str(out, "}\n");
}

/* A place in another file, or in a block for others as well, where a person adds what follows. Each once. */
static void note(struct suggestion *s, const struct buf *text) {
    if (view_search(buf_view(&s->notes), buf_view(text)) == buf_len(&s->notes))
        buf_put(&s->notes, buf_view(text));
}

static void note_grant(struct suggestion *s, struct view sandbox, struct view service,
                       struct view operation) {
    struct position at;
    struct view block;
    for (size_t i = 0; policy_sandbox_block(s->policy, sandbox, i, &block, &at); i++) {
        struct buf text;
        buf_init(&text, POLICY_TEXT_MAX);
        buf_printf(&text, "# For the sandbox '%.*s', ", VIEW_ARG(sandbox));
        if (view_equal(block, sandbox))
            buf_printf(&text, "which is declared in another file (%s:%u):\n", at.file, at.line);
        else
            buf_printf(&text,
                       "which '%.*s' stands for (%s:%u): there, or in a block of its own with all "
                       "that it needs,\n# since it takes the place of that one:\n",
                       VIEW_ARG(block), at.file, at.line);
        buf_printf(&text, "#     grant %.*s ", VIEW_ARG(service));
        buf_printf(&text, "%.*s\n", VIEW_ARG(operation));
        note(s, &text);
        buf_free(&text);
    }
}

/* Where another block is the sandbox's, a new one would stand beside or before it: then it is only said, and *granted false. */
static int grant(struct suggestion *s, struct view sandbox, struct view service,
                 struct view operation, bool *granted) {
    struct position at;
    struct view block;
    *granted = !s->policy || merge_has(&s->merge, "sandbox", sandbox) ||
               !policy_sandbox_block(s->policy, sandbox, 0, &block, &at);
    if (*granted)
        return merge_grant(&s->merge, sandbox, service, operation);
    note_grant(s, sandbox, service, operation);
    return 0;
}

static int grant_rules(struct suggestion *s, const struct wish *place, struct view service) {
    char operation[WISH_NAME_SIZE];
    bool granted;
    size_t n = 0;
    int err = 0;
    for (const struct wish *rule = s->asked.requests.first; rule; rule = rule->next) {
        if (!wish_same_place(rule, place) || !is_first(s, rule, wish_same_rule))
            continue;
        snprintf(operation, sizeof operation, "r%zu", ++n);
        for (const struct wish *w = rule; w && err == 0; w = w->next)
            if (wish_same_rule(w, rule))
                err = grant(s, w->sandbox, service, view_str(operation), &granted);
    }
    return err;
}

static void take_name(struct suggestion *s, char name[WISH_NAME_SIZE]) {
    snprintf(name, WISH_NAME_SIZE, "%s%zu", WISH_NAME, ++s->number);
}

static int add_services(struct suggestion *s) {
    char name[WISH_NAME_SIZE];
    struct buf text;
    int err = 0;
    buf_init(&text, POLICY_TEXT_MAX);
    for (const struct wish *w = s->asked.requests.first; w && err == 0; w = w->next) {
        if (!is_first(s, w, wish_same_place))
            continue;
        take_name(s, name);
        buf_reset(&text);
        put_service(s, w, name, &text);
        err = buf_ok(&text) ? merge_add(&s->merge, NULL, VIEW(""), buf_view(&text)) : ERR_LIMIT;
        if (err == 0)
            err = grant_rules(s, w, view_str(name));
    }
    buf_free(&text);
    return err;
}

/* ---- in the policy's own ---- */

static int add_expectation(struct suggestion *s, const struct wish *w) {
    struct buf text;
    buf_init(&text, POLICY_TEXT_MAX);
    buf_printf(&text, "expect allow as %.*s %.*s ", VIEW_ARG(w->sandbox), VIEW_ARG(w->method));
    buf_put_u8(&text, '"');
    wish_put_url(w, &text);
    buf_put_str(&text, "\"\n");
    int err = buf_ok(&text) ? merge_add(&s->merge, NULL, VIEW(""), buf_view(&text)) : ERR_LIMIT;
    buf_free(&text);
    return err;
}

/* ERR_MISSING: the service is in another file. */
static int add_operation(struct suggestion *s, const struct service *in, struct wish *w) {
    struct buf text;
    for (const struct wish *before = s->placed; before; before = before->next)
        if (wish_same_rule(before, w)) {
            memcpy(w->name, before->name, sizeof w->name);
            return w->name[0] ? 0 : ERR_MISSING;
        }
    take_name(s, w->name);
    buf_init(&text, POLICY_TEXT_MAX);
    buf_printf(&text, "operation %s { %.*s ", w->name, VIEW_ARG(w->method));
    buf_printf(&text, "\"%.*s\" }\n", VIEW_ARG(w->path));
    int err = buf_ok(&text) ? merge_add(&s->merge, "service", service_name(in), buf_view(&text))
                            : ERR_LIMIT;
    if (err == ERR_MISSING) {
        struct position at = service_position(in);
        buf_printf(&s->notes,
                   "# For the service '%.*s', which is in another file (%s:%u):\n#     %.*s",
                   VIEW_ARG(service_name(in)), at.file, at.line, VIEW_ARG(buf_view(&text)));
        w->name[0] = 0;
    }
    buf_free(&text);
    return err;
}

/* What the policy says of it now. False: it is no request. */
static bool ask(const struct policy *p, const struct wish *w, struct verdict *v,
                struct nearest *nearest) {
    const char *why;
    const struct trial t = {.sandbox = w->sandbox,
                            .method = w->method,
                            .tls = w->tls,
                            .authority = w->authority,
                            .target = w->path,
                            .now = (uint64_t)time(NULL)};
    *nearest = (struct nearest){.operation = NULL};
    return trial_explain(p, &t, v, nearest, &why) == 0;
}

static bool only_lacks_a_grant(const struct nearest *n) {
    for (size_t i = 0; i < n->n_failures; i++)
        if (n->failures[i].clause != CLAUSE_GRANT)
            return false;
    return n->operation && n->n_failures > 0;
}

/* Words that let such paths pass would let them pass for all of the service's operations. */
static bool wants_path_words(const struct wish *w) {
    return holds(w->path, "%2F") || holds(w->path, ";") || holds(w->path, "%3B");
}

static int place(struct suggestion *s, const struct policy *p, struct wish *w, bool *placed) {
    struct verdict v;
    struct nearest nearest;
    const struct service *service = policy_service_of(p, w->tls, &w->authority);
    struct view operation = {NULL, 0};
    bool granted = false;
    int err = 0;
    *placed = true;
    if (!ask(p, w, &v, &nearest) ||
        (!v.allow && !wish_is_reason(v.reason) && v.reason != REASON_UNKNOWN_SANDBOX)) {
        s->asked.left_out++;
        return 0;
    }
    if (v.allow)
        return 0;
    if (only_lacks_a_grant(&nearest)) {
        service = nearest.service;
        operation = operation_name(nearest.operation);
    } else if (!service) {
        *placed = false;
        return 0;
    } else if (wants_path_words(w)) {
        s->asked.left_out++;
        return 0;
    } else {
        err = add_operation(s, service, w);
        operation = view_str(w->name);
    }
    if (err == 0)
        err = grant(s, w->sandbox, service_name(service), operation, &granted);
    if (err == 0 && granted)
        err = add_expectation(s, w);
    return err == ERR_MISSING ? 0 : err;
}

/* What is left has no service there. */
static int place_wishes(struct suggestion *s) {
    int err = 0;
    for (struct wish **at = &s->asked.requests.first; *at && err == 0;) {
        struct wish *w = *at;
        bool placed;
        err = place(s, s->policy, w, &placed);
        if (placed) {
            *at = w->next;
            w->next = s->placed;
            s->placed = w;
        } else {
            at = &w->next;
        }
    }
    return err;
}

/* The greatest number that a name in the text has. */
static size_t last_number(struct view text) {
    size_t last = 0;
    for (size_t at; (at = view_search(text, VIEW(WISH_NAME))) < text.n;) {
        size_t n = 0;
        for (text = view_skip(text, at + sizeof WISH_NAME - 1);
             text.n > 0 && is_digit(text.p[0]) && n < SIZE_MAX / 100; text = view_skip(text, 1))
            n = 10 * n + (size_t)(text.p[0] - '0');
        last = n > last ? n : last;
    }
    return last;
}

/* ---- what is given ---- */

static void put_notes(struct suggestion *s) {
    const struct wishes *w = &s->asked;
    if (!w->requests.first && !s->placed && !w->tunnels.first && !w->closed.first &&
        w->left_out == 0)
        buf_put_str(&s->notes, "# Nothing was refused.\n");
    wishes_put_notes(w, &s->notes);
}

/* In the form of the policy that it came from. */
static int write_policy(const struct suggestion *s, bool json, const char *path, struct buf *out,
                        struct policy_errors *errors) {
    struct buf text;
    buf_init(&text, POLICY_TEXT_MAX);
    merge_print(&s->merge, &text);
    int err = s->asked.failed || !buf_ok(&text) || !buf_ok(&s->notes) ? ERR_LIMIT : 0;
    if (err == 0 && json)
        err = json_form_write(buf_view(&text), path, out, errors);
    else if (err == 0)
        buf_put(out, buf_view(&text));
    buf_free(&text);
    return err == 0 && !buf_ok(out) ? ERR_LIMIT : err;
}

/* What does not load is not given. */
static int give(const struct cli *cli, const struct suggestion *s, bool json, const char *path) {
    static struct policy_errors errors;
    const char *name = path ? path : "suggestion";
    struct policy *p = NULL;
    struct buf out;
    int code = EXIT_YES;
    buf_init(&out, POLICY_OUTPUT_MAX);
    int err = write_policy(s, json, name, &out, &errors);
    if (err == 0)
        err = policy_file_load(buf_view(&out), name, NULL, &p, &errors);
    if (err == ERR_BAD)
        code = policy_told_refuse(cli, &errors, buf_view(&out), name);
    else if (err != 0)
        code = cli_fail(EXIT_INVALID, "%s", err_text(err));
    if (code == EXIT_YES) {
        cli_print(path ? stderr : stdout, &s->notes);
        cli_print(stdout, &out);
    } else if (path) {
        cli_fail(code, "what is suggested cannot be put into %s", path);
    }
    policy_free(p);
    buf_free(&out);
    return code;
}

/* Fills in s->merge, from the policy in the file, else from nothing. */
static int build(const struct cli *cli, struct suggestion *s, const char *path, struct view text) {
    static struct policy_errors errors;
    struct policy *p = NULL;
    errors_reset(&errors);
    int code = path ? policy_told_load(cli, path, &p) : EXIT_YES;
    if (code != EXIT_YES)
        return code;
    int err = merge_read(&s->merge, text, path ? path : "", &errors);
    for (size_t i = 0; p && i < policy_services(p); i++) {
        size_t n = last_number(service_name(policy_service_at(p, i)));
        s->number = n > s->number ? n : s->number;
    }
    s->policy = p;
    if (err == 0 && p)
        err = place_wishes(s);
    wishes_close(&s->asked);
    if (err == 0)
        err = add_services(s);
    put_notes(s);
    s->policy = NULL;
    policy_free(p);
    return err == 0 ? EXIT_YES : cli_fail(EXIT_INVALID, "%s", err_text(err));
}

/* The text of a policy in either form. */
static int read_policy(const struct cli *cli, const char *path, struct buf *out, bool *json) {
    static struct policy_errors errors;
    struct buf raw;
    buf_init(&raw, POLICY_FILE_MAX);
    errors_reset(&errors);
    int code = policy_told_read(path, &raw);
    *json = code == EXIT_YES && json_form_is(buf_view(&raw));
    if (*json && json_form_read(buf_view(&raw), path, out, &errors) != 0)
        code = policy_told_refuse(cli, &errors, buf_view(&raw), path);
    else if (!*json)
        buf_put(out, buf_view(&raw));
    buf_free(&raw);
    return code;
}

static int suggest(const struct cli *cli, struct suggestion *s, const char *path) {
    struct buf text;
    bool json = false;
    buf_init(&text, POLICY_TEXT_MAX);
    int code = path ? read_policy(cli, path, &text, &json) : EXIT_YES;
    s->number = last_number(buf_view(&text));
    if (code == EXIT_YES)
        code = build(cli, s, path, buf_view(&text));
    if (code == EXIT_YES)
        code = give(cli, s, json, path);
    merge_free(&s->merge);
    buf_free(&text);
    return code;
}

int command_policy_suggest(const struct cli *cli, int argc, char **argv) {
    struct suggestion s = {.policy = NULL};
    const char *paths[DECISION_LOGS_MAX], *policy = NULL;
    const struct option_spec options[] = {{"--policy", &policy, NULL}, {NULL, NULL, NULL}};
    int n;
    int code = options_read_some(argc, argv, options, paths, 1, DECISION_LOGS_MAX, &n);
    if (code != EXIT_YES)
        return code;
    wishes_init(&s.asked, policy ? POLICY_TEXT_MAX / 2 : POLICY_TEXT_MAX);
    buf_init(&s.notes, POLICY_OUTPUT_MAX);
    code = decision_read_logs(paths, n, wishes_line, &s.asked);
    if (code == EXIT_YES)
        code = suggest(cli, &s, policy);
    buf_free(&s.notes);
    wishes_free(&s.asked);
    return code;
}
