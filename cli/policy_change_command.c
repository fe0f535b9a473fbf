#include "base/json.h"
#include "cli/command.h"
#include "cli/options.h"
#include "cli/policy_told.h"
#include "policy/diff.h"

/* ---- diff ---- */

static const struct {
    const char *code, *mark, *title;
} kinds[] = {
    [DIFF_ALLOWED] = {"allowed", "+", "newly allowed"},
    [DIFF_DENIED] = {"denied", "-", "newly refused"},
    [DIFF_CREDENTIAL] = {"credential", "~", "with another credential"},
    [DIFF_UNREAD] = {"unread", "+", "no longer read"},
    [DIFF_READ] = {"read", "-", "now read"},
    [DIFF_LAXER] = {"laxer", "+", "with wider limits"},
    [DIFF_STRICTER] = {"stricter", "-", "with other limits"},
    [DIFF_FURTHER] = {"further", "+", "reaching further"},
    [DIFF_NEARER] = {"nearer", "-", "reaching less far"},
};

enum { KINDS = sizeof kinds / sizeof kinds[0] };

struct differences {
    bool json;
    size_t n;
    struct buf out;
};

static void put_budget(struct buf *out, const struct service *s) {
    uint64_t most = service_splice_most(s);
    if (most == UINT64_MAX)
        buf_put_str(out, ", at most the limit splice-bytes each way");
    else
        buf_printf(out, ", at most %llu bytes each way", (unsigned long long)most);
}

/* ", while rate 10/m": of several of a layer one is enough. */
static void put_limits(struct buf *out, const struct verdict *v) {
    if (service_tls(v->service) == SERVICE_SPLICE)
        put_budget(out, v->service);
    if (v->n_grants == 0)
        buf_put_str(out, ", without limits of its grant");
    for (size_t i = 0; i < v->n_grants; i++) {
        bool other = i > 0 && grant_layer(v->grants[i]) == grant_layer(v->grants[i - 1]);
        struct position at = grant_position(v->grants[i]);
        struct buf terms;
        buf_init(&terms, 512);
        grant_put_terms(v->grants[i], &terms);
        buf_printf(out, "%s %.*s at %s:%u:%u", other ? " or while" : ", while",
                   VIEW_ARG(buf_view(&terms)), at.file, at.line, at.column);
        buf_free(&terms);
    }
}

static void put_side(struct buf *out, const char *when, enum diff_kind kind,
                     const struct verdict *v) {
    buf_printf(out, "    %s %s", when, v->allow ? "allowed" : "refused");
    if (v->allow && v->operation)
        buf_printf(out, " by '%.*s' of", VIEW_ARG(operation_name(v->operation)));
    else if (v->allow)
        buf_put_str(out, " by");
    if (v->allow)
        buf_printf(out, " '%.*s'", VIEW_ARG(service_name(v->service)));
    else
        buf_printf(out, ": %s", reason_info(v->reason)->code);
    if (v->at.file)
        buf_printf(out, " at %s:%u:%u", v->at.file, v->at.line, v->at.column);
    if (v->allow && verdict_credential(v).n > 0)
        buf_printf(out, ", credential %.*s", VIEW_ARG(verdict_credential(v)));
    if (v->allow && (kind == DIFF_LAXER || kind == DIFF_STRICTER))
        put_limits(out, v);
    buf_put_u8(out, '\n');
}

static void put_text(struct buf *out, const struct diff_found *f) {
    buf_printf(out, "%s %.*s: %.*s %.*s", kinds[f->kind].mark, VIEW_ARG(f->sandbox),
               VIEW_ARG(f->method), VIEW_ARG(f->url));
    buf_printf(out, f->more.n > 0 ? " (%.*s)\n" : "%.*s\n", VIEW_ARG(f->more));
    put_side(out, "was", f->kind, &f->before);
    put_side(out, "is", f->kind, &f->after);
}

static void put_side_json(struct buf *out, const char *name, const struct verdict *v) {
    buf_printf(out, ",\"%s\":{", name);
    json_put_text(out, "verdict", v->allow ? VIEW("allow") : VIEW("deny"));
    json_put_text(out, "reason", view_str(reason_info(v->reason)->code));
    if (v->operation)
        json_put_text(out, "operation", operation_name(v->operation));
    if (v->allow && verdict_credential(v).n > 0)
        json_put_text(out, "credential", verdict_credential(v));
    policy_told_place(out, &v->at);
    if (v->allow && v->n_grants > 0)
        policy_told_grants(v, out);
    buf_put_u8(out, '}');
}

static void put_json(struct buf *out, const struct diff_found *f) {
    buf_put_u8(out, '{');
    json_put_text(out, "kind", view_str(kinds[f->kind].code));
    json_put_text(out, "sandbox", f->sandbox);
    json_put_text(out, "method", f->method);
    json_put_text(out, "url", f->url);
    json_put_text(out, "more", f->more);
    put_side_json(out, "before", &f->before);
    put_side_json(out, "after", &f->after);
    buf_put_u8(out, '}');
}

static void put_difference(void *ctx, const struct diff_found *f) {
    struct differences *all = ctx;
    if (all->json && all->n++ > 0)
        buf_put_u8(&all->out, ',');
    if (all->json)
        put_json(&all->out, f);
    else
        put_text(&all->out, f);
}

static void put_summary_json(struct buf *out, const struct diff_result *r) {
    buf_put_u8(out, ']');
    for (size_t i = 0; i < KINDS; i++)
        json_put_number(out, kinds[i].code, r->found[i]);
    json_put_number(out, "requests", r->requests);
    buf_printf(out, ",\"whole\":%s", r->whole ? "true" : "false");
    if (!r->whole)
        json_put_text(out, "why", view_str(r->why));
    buf_put_str(out, "}\n");
}

static void put_summary(struct buf *out, const struct diff_result *r) {
    const char *between = "";
    for (size_t i = 0; i < KINDS; i++)
        if (r->found[i] > 0 || i <= DIFF_DENIED) {
            buf_printf(out, "%s%s: %zu", between, kinds[i].title, r->found[i]);
            between = ", ";
        }
    buf_printf(out, "; by %zu request%s put to both\n", r->requests, r->requests == 1 ? "" : "s");
    if (!r->whole)
        buf_printf(out, "this is not all there may be: %s\n", r->why);
}

static int diff(const struct cli *cli, const struct policy *before, const struct policy *after) {
    struct differences all = {.json = cli->json};
    struct diff_result r;
    buf_init(&all.out, POLICY_OUTPUT_MAX);
    if (cli->json)
        buf_put_str(&all.out, "{\"differences\":[");
    int err = policy_diff(before, after, put_difference, &all, &r);
    if (cli->json)
        put_summary_json(&all.out, &r);
    else
        put_summary(&all.out, &r);
    if (err == 0)
        cli_print(stdout, &all.out);
    buf_free(&all.out);
    if (err != 0)
        return cli_fail(EXIT_INVALID, "%s", err_text(err));
    bool wider = r.found[DIFF_ALLOWED] + r.found[DIFF_CREDENTIAL] + r.found[DIFF_UNREAD] +
                     r.found[DIFF_LAXER] + r.found[DIFF_FURTHER] >
                 0;
    return wider || !r.whole ? EXIT_NO : EXIT_YES;
}

int command_policy_diff(const struct cli *cli, int argc, char **argv) {
    static const struct option_spec none[] = {{NULL, NULL, NULL}};
    struct policy *before = NULL, *after = NULL;
    const char *paths[2];
    int code = options_read(argc, argv, none, paths, 2);
    if (code == EXIT_YES)
        code = policy_told_load_failing(cli, paths[0], &before);
    if (code == EXIT_YES)
        code = policy_told_load_failing(cli, paths[1], &after);
    if (code == EXIT_YES)
        code = diff(cli, before, after);
    policy_free(before);
    policy_free(after);
    return code;
}
