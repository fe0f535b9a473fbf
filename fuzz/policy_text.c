/*
 * A policy, behind a NUL the method and URL of a request to be judged for each of its sandboxes, and behind
 * another one the text of every file that is included, whose words are values of the request's body, too.
 */
#include "policy/errors.h"
#include "policy/trial.h"

#include <stdlib.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void must(bool x) {
    if (!x)
        abort();
}

static void show_errors(const struct policy_errors *errors, struct view text) {
    struct buf out;
    buf_init(&out, 1 << 20);
    for (size_t i = 0; i < errors->n; i++)
        errors_show(&errors->at[i], text, &out);
    buf_free(&out);
}

/* What holds for every verdict. */
static void judge(const struct policy *p, struct trial *t, enum with with) {
    const char *why = NULL;
    struct verdict v;
    t->with = with;
    if (trial_run(p, t, &v, &why) != 0)
        return;
    must(v.allow == (v.reason == REASON_ALLOWED));
    if (!v.allow) {
        must(v.swap == -1);
        return;
    }
    must(v.service && v.operation && v.at.file);
    must(policy_judge_host(p, t->sandbox, t->tls, &t->authority).allow);
    struct view credential = verdict_credential(&v);
    must(v.swap < 0 || policy_lends(p, t->sandbox, credential, &t->authority));
    if (with == WITH_FOREIGN)
        must(service_accepts_any(v.service));
    if (with == WITH_NONE && credential.n != 0)
        must(operation_is_anonymous(v.operation) || v.swap >= 0);
}

/* Every file has the same text; its names differ. */
static int read_file(void *ctx, const char *from, struct view path, struct buf *out, char *name,
                     size_t size, const char **why) {
    (void)from;
    *why = "no C string";
    if (view_cstr(path, name, size) != 0)
        return ERR_BAD;
    buf_put(out, *(struct view *)ctx);
    return 0;
}

/* What the pointers lead to is in turn of every type. */
static void judge_body(const struct policy *p, const struct trial *t, struct view words) {
    enum { VALUES = 16 };
    struct body_value values[VALUES];
    struct body_facts body = {.values = values, .size = words.n};
    static struct materials none;
    struct target target;
    struct buf path;
    struct body_needs needs;
    for (; body.n_values < VALUES && words.n > 0; body.n_values++)
        values[body.n_values] =
            (struct body_value){.pointer = (uint16_t)(body.n_values / 2),
                                .type = (enum body_type)(body.n_values % (BODY_OBJECT + 1)),
                                .value = view_cut(&words, ' ')};
    buf_init(&path, t->target.n + 1);
    if (target_parse_slashed(t->target, SEGMENTS_MAX, &path, &target, NULL) == 0) {
        struct request_facts f = {.sandbox = t->sandbox,
                                  .tls = t->tls,
                                  .authority = &t->authority,
                                  .method = t->method,
                                  .target = &target,
                                  .materials = &none};
        bool needed = policy_body_needs(p, &f, &needs);
        struct verdict head, whole = policy_judge(p, &f);
        bool before = whole.allow;
        must(policy_judge_head(p, &f, &head, &needs) == !needed);
        must(needed || (head.reason == whole.reason && head.swaps == whole.swaps &&
                        head.operation == whole.operation && head.at.line == whole.at.line));
        f.body = &body;
        bool after = policy_judge(p, &f).allow;
        must(needed || before == after);
        body.unclear = true;
        must(policy_judge(p, &f).allow == before);
        f.length_known = true;
        (void)policy_judge(p, &f);
    }
    buf_free(&path);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    static struct policy_errors errors;
    struct view rest = view_of(data, size), text = view_cut(&rest, 0), request = view_cut(&rest, 0);
    struct policy_files files = {read_file, &rest};
    struct policy *p;
    if (policy_load_files(text, "fuzz", &files, &p, &errors) != 0) {
        show_errors(&errors, text);
        return 0;
    }
    struct trial t = {.method = view_cut(&request, ' ')};
    const char *why;
    if (trial_url(request, &t, &why) == 0)
        for (size_t i = 0; i <= policy_sandboxes(p); i++) {
            t.sandbox = policy_sandbox_at(p, i);
            for (int with = WITH_DEFAULT; with <= WITH_FOREIGN; with++)
                judge(p, &t, (enum with)with);
            judge_body(p, &t, rest);
        }
    policy_free(p);
    return 0;
}
