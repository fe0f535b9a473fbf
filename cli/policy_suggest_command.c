#include "cli/command.h"
#include "cli/decision.h"
#include "cli/json_scan.h"
#include "cli/options.h"
#include "cli/policy_files.h"
#include "cli/policy_told.h"
#include "policy/explain.h"
#include "policy/json_form.h"
#include "policy/lexer.h"
#include "policy/merge.h"
#include "policy/method.h"
#include "policy/pattern.h"
#include "policy/trial.h"

#include <string.h>
#include <time.h>

/* What is added is called so, with a number behind it. */
static const char new_name[] = "suggested-";

/*
 * A sandbox can have any number of requests refused, and each is held against those that are kept: these are only as many as a policy
 * has room for. RULE_MORE is what is written of one beside its words.
 */
enum { NAME_SIZE = sizeof new_name + 20, RULE_MORE = 256, TUNNELS_ROOM = 1 << 18 };

/* One request that was refused for want of a rule or a grant. */
struct wish {
    struct authority authority;
    bool tls;
    struct view sandbox, method, path;
    char name[NAME_SIZE]; /* of the operation that it made in a service of the policy */
    struct wish *next;
};

struct suggestion {
    struct decision d;
    struct arena arena;
    struct wish *wishes, **end;
    struct wish *tunnels, **tunnels_end; /* refused before there was a request; names: port 0 */
    struct wish *placed;                 /* in services of the policy */
    size_t room, tunnels_room;           /* bytes of text that are left for more of them */
    size_t crowded_out;                  /* refusals for which there was none */
    size_t left_out, number;             /* the last number of a name */
    struct buf notes;
    struct merge merge;
    bool failed;
};

static bool same_place(const struct wish *a, const struct wish *b) {
    return a->tls == b->tls && authority_equal(&a->authority, &b->authority);
}

static bool same_rule(const struct wish *a, const struct wish *b) {
    return same_place(a, b) && view_equal(a->method, b->method) && view_equal(a->path, b->path);
}

/* Only what a rule can say exactly: a registered method, a path without stars, and no address that is never dialled. */
static bool can_be_said(const struct decision *d) {
    struct path_pattern pattern;
    const char *why;
    if (d->authority.kind == HOST_ADDRESS && !address_is_one(&d->authority.address))
        return false;
    return (method_bit(d->method) & methods_grantable()) != 0 && name_is_good(d->sandbox) &&
           view_find(d->path, '*') == d->path.n && view_find(d->path, '"') == d->path.n &&
           path_pattern_parse(d->path, false, &pattern, &why) == 0;
}

static bool is_for_want_of_a_rule(enum reason why) {
    return why == REASON_HOST_NOT_ALLOWED || why == REASON_PORT_NOT_ALLOWED ||
           why == REASON_CLEAR_NOT_ALLOWED || why == REASON_OPERATION_NOT_ALLOWED ||
           why == REASON_OPERATION_NOT_GRANTED;
}

static bool is_known(const struct suggestion *s, const struct wish *new) {
    for (const struct wish *w = s->wishes; w; w = w->next)
        if (same_rule(w, new) && view_equal(w->sandbox, new->sandbox))
            return true;
    return false;
}

static bool take_room(struct suggestion *s, size_t *room, const struct wish *w) {
    size_t wanted =
        RULE_MORE + strlen(w->authority.host) + 2 * w->sandbox.n + 2 * w->method.n + 2 * w->path.n;
    if (wanted > *room) {
        s->crowded_out++;
        return false;
    }
    *room -= wanted;
    return true;
}

static void keep(struct suggestion *s, struct wish ***end, size_t *room, const struct wish *new) {
    if (!take_room(s, room, new))
        return;
    struct wish *w = arena_alloc(&s->arena, sizeof *w);
    s->failed = s->failed || !w;
    if (!w)
        return;
    *w = *new;
    w->sandbox = arena_copy(&s->arena, new->sandbox);
    w->method = arena_copy(&s->arena, new->method);
    w->path = arena_copy(&s->arena, new->path);
    s->failed = s->failed || !w->sandbox.p || !w->method.p || (new->path.n > 0 && !w->path.p);
    **end = w;
    *end = &w->next;
}

/* A name or a connection that was refused for its host or port: what for is not known. */
static bool keep_tunnel(struct suggestion *s) {
    const struct decision *d = &s->d;
    if (!d->bare || !name_is_good(d->sandbox) ||
        (d->why != REASON_HOST_NOT_ALLOWED && d->why != REASON_PORT_NOT_ALLOWED))
        return false;
    struct wish wish = {
        .authority = d->authority, .tls = true, .sandbox = d->sandbox, .method = d->method};
    for (const struct wish *w = s->tunnels; w; w = w->next)
        if (same_place(w, &wish) && view_equal(w->sandbox, wish.sandbox))
            return true;
    keep(s, &s->tunnels_end, &s->tunnels_room, &wish);
    return true;
}

static void suggest_line(void *ctx, struct view line) {
    struct suggestion *s = ctx;
    struct decision *d = &s->d;
    struct view raw;
    bool allowed = decision_line_says(line, "verdict", "allow");
    if (!decision_line_says(line, "kind", "decision") ||
        (allowed && !json_member(line, "observed", &raw)))
        return;
    bool known = decision_read(line, d);
    if (known ? decision_is_exeats(d) || keep_tunnel(s) : decision_is_doctors_datagram(line))
        return;
    if (!known || !decision_is_request(d) ||
        !is_for_want_of_a_rule(allowed ? d->observed : d->why) || !can_be_said(d)) {
        s->left_out++;
        return;
    }
    struct wish wish = {.authority = d->authority,
                        .tls = !view_equal(d->scheme, VIEW("http")),
                        .sandbox = d->sandbox,
                        .method = d->method,
                        .path = d->path};
    if (!is_known(s, &wish))
        keep(s, &s->end, &s->room, &wish);
}

static bool is_first(const struct suggestion *s, const struct wish *w,
                     bool (*same)(const struct wish *, const struct wish *)) {
    for (const struct wish *before = s->wishes; before && before != w; before = before->next)
        if (same(before, w))
            return false;
    return true;
}

/* ---- services of their own ---- */

/* One operation for each rule, so that each sandbox is granted what it asked for. */
static void put_rules(const struct suggestion *s, const struct wish *place, struct buf *out) {
    size_t n = 0;
    for (const struct wish *w = s->wishes; w; w = w->next)
        if (same_place(w, place) && is_first(s, w, same_rule)) {
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
    for (const struct wish *w = s->wishes; w; w = w->next) {
        if (!same_place(w, place))
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

static int grant_rules(struct suggestion *s, const struct wish *place, struct view service) {
    char operation[NAME_SIZE];
    size_t n = 0;
    int err = 0;
    for (const struct wish *rule = s->wishes; rule; rule = rule->next) {
        if (!same_place(rule, place) || !is_first(s, rule, same_rule))
            continue;
        snprintf(operation, sizeof operation, "r%zu", ++n);
        for (const struct wish *w = rule; w && err == 0; w = w->next)
            if (same_rule(w, rule))
                err = merge_grant(&s->merge, w->sandbox, service, view_str(operation));
    }
    return err;
}

static void take_name(struct suggestion *s, char name[NAME_SIZE]) {
    snprintf(name, NAME_SIZE, "%s%zu", new_name, ++s->number);
}

static int add_services(struct suggestion *s) {
    char name[NAME_SIZE];
    struct buf text;
    int err = 0;
    buf_init(&text, POLICY_TEXT_MAX);
    for (const struct wish *w = s->wishes; w && err == 0; w = w->next) {
        if (!is_first(s, w, same_place))
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

static void put_url(const struct wish *w, struct buf *out) {
    buf_put_str(out, w->tls ? "\"https://" : "\"http://");
    authority_write(&w->authority, w->tls ? 443 : 80, out);
    buf_printf(out, "%.*s\"", VIEW_ARG(w->path));
}

static int add_expectation(struct suggestion *s, const struct wish *w) {
    struct buf text;
    buf_init(&text, POLICY_TEXT_MAX);
    buf_printf(&text, "expect allow as %.*s %.*s ", VIEW_ARG(w->sandbox), VIEW_ARG(w->method));
    put_url(w, &text);
    buf_put_u8(&text, '\n');
    int err = buf_ok(&text) ? merge_add(&s->merge, NULL, VIEW(""), buf_view(&text)) : ERR_LIMIT;
    buf_free(&text);
    return err;
}

/* ERR_MISSING: the service is in another file. */
static int add_operation(struct suggestion *s, const struct service *in, struct wish *w) {
    struct buf text;
    for (const struct wish *before = s->placed; before; before = before->next)
        if (same_rule(before, w)) {
            memcpy(w->name, before->name, sizeof w->name);
            return 0;
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
    int err = 0;
    *placed = true;
    if (!ask(p, w, &v, &nearest) ||
        (!v.allow && !is_for_want_of_a_rule(v.reason) && v.reason != REASON_UNKNOWN_SANDBOX)) {
        s->left_out++;
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
        s->left_out++;
        return 0;
    } else {
        err = add_operation(s, service, w);
        operation = view_str(w->name);
    }
    if (err == 0)
        err = merge_grant(&s->merge, w->sandbox, service_name(service), operation);
    if (err == 0)
        err = add_expectation(s, w);
    return err == ERR_MISSING ? 0 : err;
}

/* What is left has no service there. */
static int place_wishes(struct suggestion *s, const struct policy *p) {
    int err = 0;
    for (struct wish **at = &s->wishes; *at && err == 0;) {
        struct wish *w = *at;
        bool placed;
        err = place(s, p, w, &placed);
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
    for (size_t at; (at = view_search(text, view_str(new_name))) < text.n;) {
        size_t n = 0;
        for (text = view_skip(text, at + sizeof new_name - 1);
             text.n > 0 && is_digit(text.p[0]) && n < SIZE_MAX / 100; text = view_skip(text, 1))
            n = 10 * n + (size_t)(text.p[0] - '0');
        last = n > last ? n : last;
    }
    return last;
}

/* ---- what is given ---- */

static void put_notes(struct suggestion *s) {
    if (!s->wishes && !s->tunnels && s->left_out == 0)
        buf_put_str(&s->notes, "# Nothing was refused.\n");
    if (s->left_out > 0)
        buf_printf(&s->notes,
                   "# %zu refusals left out: not for want of a rule, or not to be said exactly\n",
                   s->left_out);
    if (s->crowded_out > 0)
        buf_printf(
            &s->notes,
            "# %zu later refusals left out: a policy has no room for so many different ones\n",
            s->crowded_out);
    if (s->tunnels)
        buf_put_str(&s->notes,
                    "# Refused as names or connections, before there was a request. A service "
                    "with this host\n# (and port), granted in `mode observe`, tells what is "
                    "asked there:\n");
    for (const struct wish *w = s->tunnels; w; w = w->next) {
        buf_printf(&s->notes, "#     %.*s to ", VIEW_ARG(w->sandbox));
        authority_write(&w->authority, 0, &s->notes);
        buf_put_u8(&s->notes, '\n');
    }
}

/* In the form of the policy that it came from. */
static int write_policy(const struct suggestion *s, bool json, const char *path, struct buf *out,
                        struct policy_errors *errors) {
    struct buf text;
    buf_init(&text, POLICY_TEXT_MAX);
    merge_print(&s->merge, &text);
    int err = s->failed || !buf_ok(&text) || !buf_ok(&s->notes) ? ERR_LIMIT : 0;
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
    if (err == 0 && p)
        err = place_wishes(s, p);
    if (err == 0)
        err = add_services(s);
    put_notes(s);
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
    struct suggestion s = {.failed = false};
    const char *paths[DECISION_LOGS_MAX], *policy = NULL;
    const struct option_spec options[] = {{"--policy", &policy, NULL}, {NULL, NULL, NULL}};
    int n;
    int code = options_read_some(argc, argv, options, paths, 1, DECISION_LOGS_MAX, &n);
    if (code != EXIT_YES)
        return code;
    s.room = policy ? POLICY_TEXT_MAX / 2 : POLICY_TEXT_MAX;
    s.tunnels_room = TUNNELS_ROOM;
    s.end = &s.wishes;
    s.tunnels_end = &s.tunnels;
    buf_init(&s.d.memory, 1 << 20);
    buf_init(&s.notes, POLICY_OUTPUT_MAX);
    code = decision_read_logs(paths, n, suggest_line, &s);
    if (code == EXIT_YES)
        code = suggest(cli, &s, policy);
    buf_free(&s.notes);
    buf_free(&s.d.memory);
    arena_free(&s.arena);
    return code;
}
