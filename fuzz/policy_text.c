/*
 * A policy, and behind a NUL the method and URL of a request to be judged for
 * each of its sandboxes.
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

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    static struct policy_errors errors;
    struct view request = view_of(data, size), text = view_cut(&request, 0);
    struct policy *p;
    if (policy_load(text, "fuzz", &p, &errors) != 0) {
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
        }
    policy_free(p);
    return 0;
}
