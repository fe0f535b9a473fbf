#include "base/json.h"
#include "cli/command.h"
#include "cli/decision.h"
#include "cli/options.h"
#include "cli/policy_told.h"
#include "policy/explain.h"
#include "policy/trial.h"

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
            return !decision_is_exeats(d);
    return false;
}

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
    return nearest_fails_only(n, 1u << CLAUSE_CONDITION);
}

static void replay_line(void *ctx, struct view line) {
    struct replay *r = ctx;
    struct verdict v;
    if (!decision_line_says(line, "kind", "decision"))
        return;
    if (!decision_read(line, &r->d) || !decision_is_request(&r->d) || !is_of_policy(&r->d) ||
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
        "newly allowed: %zu, newly refused: %zu, of %zu request%s\n"
        "%zu were allowed and now hang on conditions: a record tells no values of the query, "
        "fields or body\n"
        "%zu record%s left out: cut off, without a path, or refused for what no policy decides\n",
        r->allowed, r->denied, r->replayed, r->replayed == 1 ? "" : "s", r->unsure, r->left_out,
        r->left_out == 1 ? "" : "s");
}

int command_policy_replay(const struct cli *cli, int argc, char **argv) {
    static const struct option_spec none[] = {{NULL, NULL, NULL}};
    struct policy *p = NULL;
    const char *paths[DECISION_LOGS_MAX + 1];
    int n;
    int code = options_read_some(argc, argv, none, paths, 2, DECISION_LOGS_MAX + 1, &n);
    if (code == EXIT_YES)
        code = policy_told_load_failing(cli, paths[0], &p);
    if (code != EXIT_YES)
        return code;
    struct replay r = {.p = p, .json = cli->json};
    buf_init(&r.d.memory, 1 << 20);
    buf_init(&r.out, POLICY_OUTPUT_MAX);
    if (cli->json)
        buf_put_str(&r.out, "{\"changes\":[");
    code = decision_read_logs(paths + 1, n - 1, replay_line, &r);
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
