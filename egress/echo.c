#include "egress/echo.h"

#include "base/json.h"
#include "policy/echo.h"

/* ---- judging ---- */

static struct verdict verdict_of(enum reason why) {
    return (struct verdict){.allow = why == REASON_ALLOWED, .reason = why, .swap = -1};
}

static enum reason find_door(const struct policy *p, struct view sandbox, bool tls,
                             const struct authority *a) {
    if (!policy_has_sandbox(p, sandbox))
        return REASON_UNKNOWN_SANDBOX;
    return echo_is_open(a, tls) ? REASON_ALLOWED : REASON_PORT_NOT_ALLOWED;
}

struct verdict echo_judge_host(const struct policy *p, struct view sandbox, bool tls,
                               const struct authority *a) {
    return echo_is_host(a) ? verdict_of(find_door(p, sandbox, tls, a))
                           : policy_judge_host(p, sandbox, tls, a);
}

static enum reason judge_placeholders(const struct materials *m) {
    for (size_t i = 0; i < m->n; i++) {
        if (m->at[i].origin == ORIGIN_OTHER)
            return REASON_PLACEHOLDER_WRONG_IDENTITY;
        if (m->at[i].origin == ORIGIN_OURS)
            return REASON_PLACEHOLDER_WRONG_DESTINATION;
    }
    return REASON_ALLOWED;
}

struct verdict echo_judge(const struct exchange *ex, bool elsewhere) {
    const struct request_head *h = &ex->request;
    bool reads = view_equal(h->method, VIEW("GET")) || view_equal(h->method, VIEW("HEAD"));
    enum reason why =
        find_door(ex->generation->policy, view_str(ex->sandbox), ex->tls, &ex->authority);
    if (why == REASON_ALLOWED && elsewhere)
        why = REASON_PLACEHOLDER_WRONG_PLACE;
    if (why == REASON_ALLOWED)
        why = judge_placeholders(&ex->materials);
    if (why == REASON_ALLOWED && (!reads || h->framing != FRAMING_NONE))
        why = REASON_OPERATION_NOT_ALLOWED;
    return verdict_of(why);
}

/* ---- answering ---- */

enum { PATH_SHOWN = 1024 };

/* What `git ls-remote` takes for a repository without a branch. */
static const struct view git_path = VIEW("/info/refs");
static const char git_refs[] = "001e# service=git-upload-pack\n00000000";

static bool is_git(const struct target *t) {
    return t->path.n >= git_path.n &&
           view_equal(view_skip(t->path, t->path.n - git_path.n), git_path) &&
           view_equal(t->query, VIEW("service=git-upload-pack"));
}

static void put_body(const struct exchange *ex, bool git, struct buf *out) {
    if (git) {
        buf_put_str(out, git_refs);
        return;
    }
    buf_put_str(out, "{");
    json_put_text(out, "echo", VIEW("exeat"));
    json_put_text(out, "sandbox", view_str(ex->sandbox));
    json_put_text(out, "door", view_str(ex->trail.door));
    json_put_text(out, "scheme", ex->tls ? VIEW("https") : VIEW("http"));
    json_put_text(out, "meant", ex->trail.meant);
    json_put_text(out, "method", ex->request.method);
    json_put_text(out, "path", view_head(ex->target.path, PATH_SHOWN));
    json_put_text(out, "record", view_str(ex->trail.id));
    buf_put_str(out, "}\n");
}

/* A handful of fields: FIELDS_MAX cannot be reached. */
static void add(struct answer_head *h, struct view name, struct view value) {
    int result = fields_add(&h->fields, name, value);
    (void)result;
}

static void make_head(struct answer_head *h, bool git, size_t length) {
    *h = (struct answer_head){
        .status = 200, .minor = 1, .framing = FRAMING_LENGTH, .length = length, .keep_alive = true};
    add(h, VIEW("content-type"),
        git ? VIEW("application/x-git-upload-pack-advertisement") : VIEW("application/json"));
    add(h, VIEW("x-content-type-options"), VIEW("nosniff"));
    add(h, VIEW("cache-control"), VIEW("no-store"));
}

static bool record(struct exchange *ex) {
    ex->trail.verdict = ex->verdict;
    ex->trail.generation = ex->generation->number;
    ex->trail.detail = VIEW("answered by exeat itself");
    ex->decided = trail_decide(ex->lane, &ex->trail, 0) == 0;
    return ex->decided;
}

void echo_answer(struct exchange *ex) {
    struct answer_head head;
    struct buf body;
    bool git = is_git(&ex->target);
    if (!record(ex)) {
        exchange_refuse(ex, REASON_AUDIT_UNAVAILABLE, (struct view){NULL, 0});
        return;
    }
    buf_init(&body, LANE_BODY_MAX);
    put_body(ex, git, &body);
    make_head(&head, git, buf_len(&body));
    ex->answer_bytes = buf_len(&body);
    exchange_send(ex, &head, buf_view(&body));
    buf_free(&body);
    exchange_finish(ex, REASON_ALLOWED, (struct view){NULL, 0});
}
