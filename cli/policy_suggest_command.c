#include "cli/command.h"
#include "cli/decision.h"
#include "cli/json_scan.h"
#include "cli/options.h"
#include "cli/policy_told.h"
#include "policy/arena.h"
#include "policy/lexer.h"
#include "policy/method.h"
#include "policy/pattern.h"

/* One request that was refused for want of a rule or a grant. */
struct wish {
    struct authority authority;
    bool tls;
    struct view sandbox, method, path;
    struct wish *next;
};

struct suggestion {
    struct decision d;
    struct arena arena;
    struct wish *wishes, **end;
    struct wish *tunnels, **tunnels_end; /* refused before there was a request; names: port 0 */
    size_t left_out;
    bool failed;
};

static bool same_place(const struct wish *a, const struct wish *b) {
    return a->tls == b->tls && authority_equal(&a->authority, &b->authority);
}

static bool same_rule(const struct wish *a, const struct wish *b) {
    return same_place(a, b) && view_equal(a->method, b->method) && view_equal(a->path, b->path);
}

/* Only what a rule can say exactly: a registered method, and a path without stars. */
static bool can_be_said(const struct decision *d) {
    struct path_pattern pattern;
    const char *why;
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

static void keep(struct suggestion *s, struct wish ***end, const struct wish *new) {
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
    keep(s, &s->tunnels_end, &wish);
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
    if (known && (decision_is_exeats(d) || keep_tunnel(s)))
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
        keep(s, &s->end, &wish);
}

static bool is_first(const struct suggestion *s, const struct wish *w,
                     bool (*same)(const struct wish *, const struct wish *)) {
    for (const struct wish *before = s->wishes; before && before != w; before = before->next)
        if (same(before, w))
            return false;
    return true;
}

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

static void put_service(const struct suggestion *s, const struct wish *place, size_t number,
                        struct buf *out) {
    struct authority host = place->authority;
    host.port = 443;
    buf_printf(out, "service suggested-%zu {\n    host ", number);
    authority_write(&host, 443, out);
    buf_printf(out, "\n    port %u\n", place->authority.port);
    if (host.kind == HOST_ADDRESS)
        buf_printf(out, "    range %s\n", host.host);
    if (!place->tls)
        buf_put_str(out, "    tls clear\n");
    put_path_words(s, place, out);
    put_rules(s, place, out);
    buf_put_str(out, "}\n\n");
}

static bool asked_for(const struct suggestion *s, const struct wish *rule, struct view sandbox) {
    for (const struct wish *w = s->wishes; w; w = w->next)
        if (same_rule(w, rule) && view_equal(w->sandbox, sandbox))
            return true;
    return false;
}

/* The operations of the place that this sandbox asked for. */
static void put_grant(const struct suggestion *s, const struct wish *place, size_t number,
                      struct view sandbox, struct buf *out) {
    size_t n = 0, granted = 0;
    for (const struct wish *w = s->wishes; w; w = w->next) {
        if (!same_place(w, place) || !is_first(s, w, same_rule))
            continue;
        n++;
        if (!asked_for(s, w, sandbox))
            continue;
        if (granted++ == 0)
            buf_printf(out, "    grant suggested-%zu", number);
        buf_printf(out, " r%zu", n);
    }
    if (granted > 0)
        buf_put_u8(out, '\n');
}

static bool same_sandbox(const struct wish *a, const struct wish *b) {
    return view_equal(a->sandbox, b->sandbox);
}

static void put_sandbox(const struct suggestion *s, struct view sandbox, struct buf *out) {
    size_t number = 0;
    buf_printf(out, "sandbox %.*s {\n", VIEW_ARG(sandbox));
    for (const struct wish *w = s->wishes; w; w = w->next)
        if (is_first(s, w, same_place))
            put_grant(s, w, ++number, sandbox, out);
    buf_put_str(out, "}\n");
}

static void put_tunnels(const struct suggestion *s, struct buf *out) {
    if (s->tunnels)
        buf_put_str(out, "# Refused as names or connections, before there was a request. A service "
                         "with this host\n# (and port), granted in `mode observe`, tells what is "
                         "asked there:\n");
    for (const struct wish *w = s->tunnels; w; w = w->next) {
        buf_printf(out, "#     %.*s to ", VIEW_ARG(w->sandbox));
        authority_write(&w->authority, 0, out);
        buf_put_u8(out, '\n');
    }
}

static void put_suggestion(const struct suggestion *s, struct buf *out) {
    size_t number = 0;
    if (s->left_out > 0)
        buf_printf(out,
                   "# %zu refusals left out: not for want of a rule, or not to be said exactly\n",
                   s->left_out);
    put_tunnels(s, out);
    for (const struct wish *w = s->wishes; w; w = w->next)
        if (is_first(s, w, same_place))
            put_service(s, w, ++number, out);
    for (const struct wish *w = s->wishes; w; w = w->next)
        if (is_first(s, w, same_sandbox))
            put_sandbox(s, w->sandbox, out);
}

/* What does not load is not given: a record may name an address that nobody may reach. */
static int give(const struct cli *cli, const struct suggestion *s) {
    static struct policy_errors errors;
    struct policy *p = NULL;
    struct buf out;
    int code = EXIT_YES;
    buf_init(&out, POLICY_TEXT_MAX);
    put_suggestion(s, &out);
    int err = s->failed || !buf_ok(&out) ? ERR_LIMIT : 0;
    if (err == 0)
        err = policy_load(buf_view(&out), "suggestion", &p, &errors);
    if (err == ERR_BAD)
        code = policy_told_refuse(cli, &errors, buf_view(&out), "suggestion");
    else if (err != 0)
        code = cli_fail(EXIT_INVALID, "%s", err_text(err));
    else
        cli_print(stdout, &out);
    policy_free(p);
    buf_free(&out);
    return code;
}

int command_policy_suggest(const struct cli *cli, int argc, char **argv) {
    static const struct option_spec none[] = {{NULL, NULL, NULL}};
    struct suggestion s = {.failed = false};
    const char *paths[DECISION_LOGS_MAX];
    int n;
    int code = options_read_some(argc, argv, none, paths, 1, DECISION_LOGS_MAX, &n);
    if (code != EXIT_YES)
        return code;
    s.end = &s.wishes;
    s.tunnels_end = &s.tunnels;
    buf_init(&s.d.memory, 1 << 20);
    code = decision_read_logs(paths, n, suggest_line, &s);
    if (code == EXIT_YES)
        code = give(cli, &s);
    buf_free(&s.d.memory);
    arena_free(&s.arena);
    return code;
}
