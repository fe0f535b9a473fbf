#include "audit/segment.h"
#include "base/json.h"
#include "cli/command.h"
#include "cli/json_scan.h"
#include "cli/options.h"
#include "cli/policy_told.h"
#include "policy/arena.h"
#include "policy/echo.h"
#include "policy/explain.h"
#include "policy/lexer.h"
#include "policy/method.h"
#include "policy/pattern.h"
#include "policy/trial.h"
#include "run/probe_network.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* ---- records ---- */

/* What one decision of the audit trail says of its request. */
struct decision {
    struct buf memory; /* what the views point into */
    struct view id, verdict, reason, sandbox, method, scheme, host, path, query;
    bool bare;          /* only a name, or a connection before there was a request */
    bool lent, foreign; /* a credential was lent; one that was not ours was seen */
    struct authority authority;
    enum reason why;
    enum reason observed; /* why an allowed one would be refused, where somebody only watched */
};

static bool is_text(struct view line, const char *name, const char *value) {
    struct view raw, word;
    return json_member(line, name, &raw) && json_word(raw, &word) &&
           view_equal(word, view_str(value));
}

static struct view member(struct decision *d, struct view line, const char *name) {
    struct view raw;
    size_t before = buf_len(&d->memory);
    if (json_member(line, name, &raw))
        json_text(raw, &d->memory);
    return view_skip(buf_view(&d->memory), before);
}

/* False: the line is no decision on a request, a connection or a name, or says too little of it. */
static bool read_decision(struct view line, struct decision *d) {
    struct view port, raw;
    uint64_t number = 0;
    bool named = is_text(line, "door", "dns"); /* which is asked for without a port */
    buf_reset(&d->memory);
    if (!is_text(line, "kind", "decision") || json_member(line, "target_bytes", &raw) ||
        !buf_reserve(&d->memory, 8 * line.n))
        return false;
    d->id = member(d, line, "id");
    d->verdict = member(d, line, "verdict");
    d->reason = member(d, line, "reason");
    d->sandbox = member(d, line, "sandbox");
    d->method = member(d, line, "method");
    d->scheme = member(d, line, "scheme");
    d->host = member(d, line, "host");
    d->path = member(d, line, "path");
    d->query = member(d, line, "query");
    port = member(d, line, "port");
    d->bare = named || d->method.n == 0 || view_equal(d->method, VIEW("CONNECT"));
    d->lent = json_member(line, "credential", &raw);
    d->foreign = json_member(line, "material", &raw);
    d->why = d->observed = REASON_ALLOWED;
    struct view observed = member(d, line, "observed");
    if (observed.n > 0 && reason_find(observed, &d->observed) != 0)
        return false;
    if (view_equal(d->verdict, VIEW("deny")) && reason_find(d->reason, &d->why) != 0)
        return false;
    return buf_ok(&d->memory) && (named || view_number(port, UINT16_MAX, &number) == 0) &&
           authority_parse_host(d->host, (uint16_t)number, &d->authority, NULL) == 0;
}

static bool is_request(const struct decision *d) {
    return view_starts(d->path, VIEW("/")) && !d->bare;
}

/* No rule can be made for what exeat answers itself, as the doctor asks it. */
static bool is_exeats(const struct decision *d) {
    return echo_is_host(&d->authority) || probe_is_name(d->host);
}

/* Whether it was a policy that decided, and from what the record tells. */
static bool is_of_policy(const struct decision *d) {
    static const enum reason reasons[] = {REASON_ALLOWED,
                                          REASON_UNKNOWN_SANDBOX,
                                          REASON_HOST_NOT_ALLOWED,
                                          REASON_PORT_NOT_ALLOWED,
                                          REASON_CLEAR_NOT_ALLOWED,
                                          REASON_NEVER,
                                          REASON_METHOD_REFUSED,
                                          REASON_OPERATION_NOT_ALLOWED,
                                          REASON_OPERATION_NOT_GRANTED,
                                          REASON_CREDENTIAL_MISSING,
                                          REASON_FOREIGN_CREDENTIAL};
    for (size_t i = 0; i < sizeof reasons / sizeof reasons[0]; i++)
        if (d->why == reasons[i])
            return !is_exeats(d);
    return false;
}

/* ---- files ---- */

enum { LOGS_MAX = 64 };

static int fail_log(const char *path, int err) {
    if (err == ERR_SYSTEM || err == ERR_MISSING)
        return cli_fail(errno == EACCES ? EXIT_PERMISSION : EXIT_INVALID, "%s: %s", path,
                        strerror(errno));
    if (err == ERR_BAD)
        return cli_fail(EXIT_INVALID, "%s: this is no audit trail: no line of it is a record",
                        path);
    return cli_fail(EXIT_INVALID, "%s: %s", path, err_text(err));
}

/*
 * Calls each for every line; one that is too long for a record, or not whole, is none. ERR_BAD:
 * there are lines, and none of them is a record.
 */
static int read_segment(int dir, const char *name, void (*each)(void *ctx, struct view line),
                        void *ctx) {
    struct segment s;
    struct view line, raw;
    size_t lines = 0, records = 0;
    int err = segment_open(dir, name, &s);
    while (err == 0 || err == ERR_LIMIT) {
        err = segment_next(&s, &line);
        if (err != 0)
            continue;
        lines++;
        records += json_member(line, "kind", &raw);
        each(ctx, line);
    }
    segment_close(&s);
    if (err != ERR_AGAIN)
        return err;
    return lines > 0 && records == 0 ? ERR_BAD : 0;
}

/* The files of a trail in the order in which they were written. */
static int read_directory(int dir, void (*each)(void *ctx, struct view line), void *ctx) {
    struct segment_list list = {.n = 0};
    int err = segment_list_read(dir, &list);
    for (size_t i = 0; err == 0 && i < list.n; i++) {
        err = list.at[i].bad ? 0 : read_segment(dir, list.at[i].text, each, ctx);
        if (err == ERR_MISSING)
            err = 0; /* rotated or removed while we read */
    }
    segment_list_free(&list);
    return err;
}

/* A file of the trail, or its directory with all of them. EXIT_YES; anything else was told. */
static int read_log(const char *path, void (*each)(void *ctx, struct view line), void *ctx) {
    int dir = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC), err;
    if (dir >= 0) {
        err = read_directory(dir, each, ctx);
        close(dir);
    } else {
        err = read_segment(AT_FDCWD, path, each, ctx);
    }
    return err == 0 ? EXIT_YES : fail_log(path, err);
}

static int read_logs(const char *const *paths, int n, void (*each)(void *ctx, struct view line),
                     void *ctx) {
    int code = EXIT_YES;
    for (int i = 0; i < n && code == EXIT_YES; i++)
        code = read_log(paths[i], each, ctx);
    return code;
}

/* ---- replay ---- */

struct replay {
    const struct policy *p;
    struct decision d;
    bool json;
    size_t replayed, left_out, unsure, allowed, denied;
    struct nearest nearest;
    struct buf out;
};

static enum with with_of(const struct decision *d) {
    if (d->foreign)
        return WITH_FOREIGN;
    return d->why == REASON_CREDENTIAL_MISSING ? WITH_NONE : WITH_DEFAULT;
}

/* False: it is no request that could be tried. */
static bool judge(struct replay *r, struct verdict *v) {
    const struct decision *d = &r->d;
    struct buf target;
    const char *why;
    buf_init(&target, d->path.n + d->query.n + 2);
    buf_put(&target, d->path);
    struct trial t = {.sandbox = d->sandbox,
                      .method = d->method,
                      .tls = !view_equal(d->scheme, VIEW("http")),
                      .authority = d->authority,
                      .target = buf_view(&target),
                      .with = with_of(d)};
    r->nearest.n_failures = 0;
    int err = trial_explain(r->p, &t, v, &r->nearest, &why);
    buf_free(&target);
    return err == 0;
}

static void put_change(struct replay *r, const struct verdict *v) {
    const struct decision *d = &r->d;
    const char *reason = reason_info(v->reason)->code;
    if (r->json) {
        buf_put_str(&r->out, r->allowed + r->denied > 1 ? ",{" : "{");
        json_put_text(&r->out, "id", d->id);
        json_put_text(&r->out, "sandbox", d->sandbox);
        json_put_text(&r->out, "method", d->method);
        json_put_text(&r->out, "host", d->host);
        json_put_text(&r->out, "path", d->path);
        json_put_text(&r->out, "was", view_str(reason_info(d->why)->code));
        json_put_text(&r->out, "is", view_str(reason));
        policy_told_place(&r->out, &v->at);
        buf_put_u8(&r->out, '}');
        return;
    }
    buf_printf(&r->out, "%c %.*s %.*s: %.*s %.*s%.*s: was %s, is %s", v->allow ? '+' : '-',
               VIEW_ARG(d->id), VIEW_ARG(d->sandbox), VIEW_ARG(d->method), VIEW_ARG(d->host),
               VIEW_ARG(d->path), reason_info(d->why)->code, reason);
    if (v->at.file)
        buf_printf(&r->out, " at %s:%u:%u", v->at.file, v->at.line, v->at.column);
    buf_put_u8(&r->out, '\n');
}

/* A record does not tell what conditions ask about. */
static bool hangs_on_conditions(const struct nearest *n) {
    for (size_t i = 0; i < n->n_failures; i++)
        if (n->failures[i].clause != CLAUSE_CONDITION)
            return false;
    return n->n_failures > 0;
}

static void replay_line(void *ctx, struct view line) {
    struct replay *r = ctx;
    struct verdict v;
    if (!is_text(line, "kind", "decision"))
        return;
    if (!read_decision(line, &r->d) || !is_request(&r->d) || !is_of_policy(&r->d) ||
        !judge(r, &v)) {
        r->left_out++;
        return;
    }
    if (!v.allow && r->d.why == REASON_ALLOWED && hangs_on_conditions(&r->nearest)) {
        r->unsure++;
        return;
    }
    r->replayed++;
    if (v.allow == (r->d.why == REASON_ALLOWED))
        return;
    *(v.allow ? &r->allowed : &r->denied) += 1;
    put_change(r, &v);
}

static void put_end(struct replay *r) {
    if (r->json) {
        buf_put_u8(&r->out, ']');
        json_put_number(&r->out, "replayed", r->replayed);
        json_put_number(&r->out, "left_out", r->left_out);
        json_put_number(&r->out, "unsure", r->unsure);
        json_put_number(&r->out, "allowed", r->allowed);
        json_put_number(&r->out, "denied", r->denied);
        buf_put_str(&r->out, "}\n");
        return;
    }
    buf_printf(
        &r->out,
        "newly allowed: %zu, newly refused: %zu, of %zu requests\n"
        "%zu were allowed and now hang on conditions: a record tells no values of the query, "
        "fields or body\n"
        "%zu records left out: cut off, without a path, or refused for what no policy decides\n",
        r->allowed, r->denied, r->replayed, r->unsure, r->left_out);
}

int command_policy_replay(const struct cli *cli, int argc, char **argv) {
    static const struct option_spec none[] = {{NULL, NULL, NULL}};
    struct policy *p = NULL;
    const char *paths[LOGS_MAX + 1];
    int n;
    int code = options_read_some(argc, argv, none, paths, 2, LOGS_MAX + 1, &n);
    if (code == EXIT_YES)
        code = policy_told_load(cli, paths[0], &p);
    if (code != EXIT_YES)
        return code;
    struct replay r = {.p = p, .json = cli->json};
    buf_init(&r.d.memory, 1 << 20);
    buf_init(&r.out, POLICY_OUTPUT_MAX);
    if (cli->json)
        buf_put_str(&r.out, "{\"changes\":[");
    code = read_logs(paths + 1, n - 1, replay_line, &r);
    put_end(&r);
    if (code == EXIT_YES) {
        cli_print(stdout, &r.out);
        code = r.allowed + r.denied > 0 ? EXIT_NO : EXIT_YES;
    }
    buf_free(&r.d.memory);
    buf_free(&r.out);
    policy_free(p);
    return code;
}

/* ---- suggest ---- */

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
    bool allowed = is_text(line, "verdict", "allow");
    if (!is_text(line, "kind", "decision") || (allowed && !json_member(line, "observed", &raw)))
        return;
    bool known = read_decision(line, d);
    if (known && (is_exeats(d) || keep_tunnel(s)))
        return;
    if (!known || !is_request(d) || !is_for_want_of_a_rule(allowed ? d->observed : d->why) ||
        !can_be_said(d)) {
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
    const char *paths[LOGS_MAX];
    int n;
    int code = options_read_some(argc, argv, none, paths, 1, LOGS_MAX, &n);
    if (code != EXIT_YES)
        return code;
    s.end = &s.wishes;
    s.tunnels_end = &s.tunnels;
    buf_init(&s.d.memory, 1 << 20);
    code = read_logs(paths, n, suggest_line, &s);
    if (code == EXIT_YES)
        code = give(cli, &s);
    buf_free(&s.d.memory);
    arena_free(&s.arena);
    return code;
}
