/*
 * A policy, behind a NUL the method and URL of a request to be judged for each of its sandboxes, with lines of
 * "name: value" for its fields, and behind another one the text of every file that is included, which is the request's body, too, and
 * whose words are values in it.
 */
#include "policy/errors.h"
#include "policy/explain.h"
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

enum { FIELDS = 16 };

static bool is_field(struct view name, struct view value) {
    for (size_t i = 0; i < name.n; i++)
        if (to_lower(name.p[i]) != name.p[i] || !(is_alnum(name.p[i]) || name.p[i] == '-'))
            return false;
    for (size_t i = 0; i < value.n; i++)
        if (value.p[i] < ' ' || value.p[i] == 0x7f)
            return false;
    return name.n > 0;
}

static size_t read_fields(struct view lines, struct field *fields) {
    size_t n = 0;
    while (lines.n > 0 && n < FIELDS) {
        struct view value = view_cut(&lines, '\n'), name = view_cut(&value, ':');
        fields[n] = (struct field){name, view_trim(value)};
        n += is_field(name, fields[n].value);
    }
    return n;
}

/* It is the evaluator itself that explains. */
static void explain(const struct policy *p, const struct trial *t, const struct verdict *v) {
    struct nearest nearest;
    struct verdict again;
    const char *why = NULL;
    must(trial_explain(p, t, &again, &nearest, &why) == 0);
    must(again.allow == v->allow && again.reason == v->reason && again.swap == v->swap &&
         again.at.line == v->at.line);
    if (!again.allow && nearest.operation)
        must(nearest.service && nearest.at.file && nearest.n_failures <= FAILURES_MAX);
}

/* What holds for every verdict. */
static void judge(const struct policy *p, struct trial *t, enum with with) {
    const char *why = NULL;
    struct verdict v;
    t->with = with;
    if (trial_run(p, t, &v, &why) != 0)
        return;
    explain(p, t, &v);
    must(v.allow == (v.reason == REASON_ALLOWED));
    if (!v.allow) {
        must(v.swap == -1);
        return;
    }
    /* Nobody's operation allows what is only observed. */
    must(v.service && v.at.file && (v.operation || v.observed != REASON_ALLOWED));
    must(policy_judge_host(p, t->sandbox, t->tls, &t->authority).allow);
    struct view credential = verdict_credential(&v);
    must(v.swap < 0 || policy_lends(p, t->sandbox, credential, &t->authority));
    if (with == WITH_FOREIGN)
        must(service_accepts_any(v.service));
    if (with == WITH_NONE && credential.n != 0)
        must(!v.operation || operation_is_anonymous(v.operation) || v.swap >= 0);
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
                                  .materials = &none,
                                  .fields = t->fields,
                                  .n_fields = t->n_fields};
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
    struct field fields[FIELDS];
    struct view line = view_cut(&request, '\n');
    struct trial t = {.method = view_cut(&line, ' '), .fields = fields, .body = rest};
    t.n_fields = read_fields(request, fields);
    const char *why;
    if (trial_url(line, &t, &why) == 0)
        for (size_t i = 0; i <= policy_sandboxes(p); i++) {
            t.sandbox = policy_sandbox_at(p, i);
            for (int with = WITH_DEFAULT; with <= WITH_FOREIGN; with++)
                judge(p, &t, (enum with)with);
            judge_body(p, &t, rest);
        }
    policy_free(p);
    return 0;
}
