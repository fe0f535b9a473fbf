#include "policy/errors.h"
#include "policy/reason.h"
#include "policy/rules.h"
#include "policy/trial.h"

/* A path inside a service means its first host that is one host, at its first port. */
static int place_in_service(const struct expectation *e, struct trial *t, const char **why) {
    const struct service *s = e->service;
    const struct host_rule *h = s->hosts;
    while (h && h->pattern.reach != REACH_EXACT)
        h = h->next;
    if (!h) {
        *why = "all hosts of this service have stars, write a whole URL";
        return ERR_BAD;
    }
    t->authority = h->pattern.base;
    t->authority.port = s->ports[0];
    t->tls = s->tls != SERVICE_CLEAR;
    t->target = e->url;
    return 0;
}

static int run(const struct policy *p, const struct expectation *e, struct verdict *out,
               const char **why) {
    struct trial t = {.sandbox = e->sandbox,
                      .method = e->method,
                      .with = e->with,
                      .fields = e->fields,
                      .n_fields = e->n_fields,
                      .type = e->type,
                      .body = e->body};
    struct who all = who_of(e->service ? &e->service->everything : NULL);
    const struct who *who = e->sandbox.n ? NULL : &all;
    bool path = e->service && view_starts(e->url, VIEW("/"));
    int err = path ? place_in_service(e, &t, why) : trial_url(e->url, &t, why);
    return err != 0 ? err : trial_run_as(p, who, &t, out, why);
}

static void compare(const struct expectation *e, const struct verdict *v,
                    struct policy_errors *errors) {
    const struct reason_info *info = reason_info(v->reason);
    if (e->allow && !v->allow)
        errors_add(errors, e->at, "expected allow, but this is refused: %s (%s)", info->code,
                   info->title);
    else if (!e->allow && v->allow)
        errors_add(errors, e->at, "expected deny, but this is allowed by '%.*s' in %s",
                   VIEW_ARG(v->operation->name), PLACE_TEXT(v->at, e->at));
    else if (e->reason.n && !view_equal(e->reason, view_str(info->code)))
        errors_add(errors, e->at, "expected the reason %.*s, but it is %s", WORD_ARG(e->reason),
                   info->code);
}

int policy_try(const struct policy *p, struct policy_errors *errors) {
    for (const struct expectation *e = p->expectations; e; e = e->next) {
        struct verdict v;
        const char *why = "malformed";
        int err = run(p, e, &v, &why);
        if (err == ERR_MEMORY)
            return err;
        if (err == 0)
            compare(e, &v, errors);
        else
            errors_add(errors, e->url_at, "%.*s %.*s: %s", WORD_ARG(e->method), WORD_ARG(e->url),
                       why);
    }
    return 0;
}
