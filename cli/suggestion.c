#include "cli/suggestion.h"

#include "cli/policy_told.h"
#include "policy/explain.h"
#include "policy/trial.h"

#include <stdio.h>
#include <string.h>
#include <time.h>

/* Those that get a service of their own. */
static bool is_apart(const struct wish *w) {
    return !w->service && !w->out;
}

static bool is_first(const struct suggestion *s, const struct wish *w,
                     bool (*same)(const struct wish *, const struct wish *)) {
    for (const struct wish *before = s->asked.requests.first; before != w; before = before->next)
        if (is_apart(before) && same(before, w))
            return false;
    return true;
}

/* ---- services of their own ---- */

/* One operation for each rule, so that each sandbox is granted what it asked for. */
static void put_rules(const struct suggestion *s, const struct wish *place, struct buf *out) {
    size_t n = 0;
    for (const struct wish *w = place; w; w = w->next)
        if (is_apart(w) && wish_same_place(w, place) && is_first(s, w, wish_same_rule)) {
            buf_printf(out, "    operation r%zu { %.*s ", ++n, VIEW_ARG(w->method));
            buf_printf(out, "\"%.*s\" }\n", VIEW_ARG(w->path));
            buf_printf(out, "    expect allow %.*s ", VIEW_ARG(w->method));
            buf_printf(out, "\"%.*s\"\n", VIEW_ARG(w->path));
        }
}

static bool holds(struct view path, const char *what) {
    return view_search(path, view_str(what)) < path.n;
}

static bool has_parameters(struct view path) {
    return holds(path, ";") || holds(path, "%3B");
}

static void put_path_words(const struct wish *place, struct buf *out) {
    bool slash = false, parameters = false;
    for (const struct wish *w = place; w; w = w->next) {
        if (!is_apart(w) || !wish_same_place(w, place))
            continue;
        slash = slash || holds(w->path, "%2F");
        parameters = parameters || has_parameters(w->path);
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
    put_path_words(place, out);
    put_rules(s, place, out);
    buf_put_str(out, "}\n");
}

/* A place in another file, or in a block for others as well, where a person adds what follows. Each once. */
static void note(struct suggestion *s, const struct buf *text) {
    if (view_search(buf_view(&s->notes), buf_view(text)) == buf_len(&s->notes))
        buf_put(&s->notes, buf_view(text));
}

static void note_grant(struct suggestion *s, struct view sandbox, struct view service,
                       struct view operation) {
    struct position at;
    struct view block;
    for (size_t i = 0; policy_sandbox_block(s->policy, sandbox, i, &block, &at); i++) {
        struct buf text;
        buf_init(&text, POLICY_TEXT_MAX);
        buf_printf(&text, "# For the sandbox '%.*s', ", VIEW_ARG(sandbox));
        if (view_equal(block, sandbox))
            buf_printf(&text, "which is declared in another file (%s:%u):\n", at.file, at.line);
        else
            buf_printf(&text,
                       "which '%.*s' stands for (%s:%u): there, or in a block of its own with all "
                       "that it needs,\n# since it takes the place of that one:\n",
                       VIEW_ARG(block), at.file, at.line);
        buf_printf(&text, "#     grant %.*s ", VIEW_ARG(service));
        buf_printf(&text, "%.*s\n", VIEW_ARG(operation));
        note(s, &text);
        buf_free(&text);
    }
}

/* Where another block is the sandbox's, a new one would stand beside or before it: then it is only said, and *granted false. */
static int grant(struct suggestion *s, struct view sandbox, struct view service,
                 struct view operation, bool *granted) {
    struct position at;
    struct view block;
    *granted = !s->policy || merge_has(&s->merge, "sandbox", sandbox) ||
               !policy_sandbox_block(s->policy, sandbox, 0, &block, &at);
    if (*granted)
        return merge_grant(&s->merge, sandbox, service, operation);
    note_grant(s, sandbox, service, operation);
    return 0;
}

static int grant_rules(struct suggestion *s, const struct wish *place, struct view service) {
    char operation[WISH_NAME_SIZE];
    bool granted;
    size_t n = 0;
    int err = 0;
    for (const struct wish *rule = place; rule; rule = rule->next) {
        if (!is_apart(rule) || !wish_same_place(rule, place) || !is_first(s, rule, wish_same_rule))
            continue;
        snprintf(operation, sizeof operation, "r%zu", ++n);
        for (const struct wish *w = rule; w && err == 0; w = w->next)
            if (is_apart(w) && wish_same_rule(w, rule))
                err = grant(s, w->sandbox, service, view_str(operation), &granted);
    }
    return err;
}

static int add_service(struct suggestion *s, const struct wish *place, size_t *number) {
    char name[WISH_NAME_SIZE];
    struct buf text;
    snprintf(name, sizeof name, "%s%zu", WISH_NAME, ++*number);
    buf_init(&text, POLICY_TEXT_MAX);
    put_service(s, place, name, &text);
    int err = buf_ok(&text) ? merge_add(&s->merge, NULL, VIEW(""), buf_view(&text)) : ERR_LIMIT;
    buf_free(&text);
    return err == 0 ? grant_rules(s, place, view_str(name)) : err;
}

/* ---- in the policy's own ---- */

static int add_expectation(struct suggestion *s, const struct wish *w) {
    struct buf text;
    buf_init(&text, POLICY_TEXT_MAX);
    buf_printf(&text, "expect allow as %.*s %.*s ", VIEW_ARG(w->sandbox), VIEW_ARG(w->method));
    buf_put_u8(&text, '"');
    wish_put_url(w, &text);
    buf_put_str(&text, "\"\n");
    int err = buf_ok(&text) ? merge_add(&s->merge, NULL, VIEW(""), buf_view(&text)) : ERR_LIMIT;
    buf_free(&text);
    return err;
}

/* ERR_MISSING: the service is in another file. */
static int add_operation(struct suggestion *s, struct wish *w, size_t *number) {
    struct buf text;
    for (const struct wish *before = s->asked.requests.first; before != w; before = before->next)
        if (before->service && !before->out && wish_same_rule(before, w)) {
            memcpy(w->name, before->name, sizeof w->name);
            return w->name[0] ? 0 : ERR_MISSING;
        }
    snprintf(w->name, sizeof w->name, "%s%zu", WISH_NAME, ++*number);
    buf_init(&text, POLICY_TEXT_MAX);
    buf_printf(&text, "operation %s { %.*s ", w->name, VIEW_ARG(w->method));
    buf_printf(&text, "\"%.*s\" }\n", VIEW_ARG(w->path));
    int err = buf_ok(&text)
                  ? merge_add(&s->merge, "service", service_name(w->service), buf_view(&text))
                  : ERR_LIMIT;
    if (err == ERR_MISSING) {
        struct position at = service_position(w->service);
        buf_printf(&s->notes,
                   "# For the service '%.*s', which is in another file (%s:%u):\n#     %.*s",
                   VIEW_ARG(service_name(w->service)), at.file, at.line, VIEW_ARG(buf_view(&text)));
        w->name[0] = 0;
    }
    buf_free(&text);
    return err;
}

static int add_to_policy(struct suggestion *s, struct wish *w, size_t *number) {
    struct view operation = w->operation;
    bool granted = false;
    int err = 0;
    if (operation.n == 0) {
        err = add_operation(s, w, number);
        operation = view_str(w->name);
    }
    if (err == 0)
        err = grant(s, w->sandbox, service_name(w->service), operation, &granted);
    if (err == 0 && granted)
        err = add_expectation(s, w);
    return err == ERR_MISSING ? 0 : err;
}

int suggestion_build(struct suggestion *s, struct view text, const char *file) {
    static struct policy_errors errors;
    size_t number = s->number;
    errors_reset(&errors);
    merge_free(&s->merge);
    buf_reset(&s->notes);
    int err = merge_read(&s->merge, text, file, &errors);
    for (struct wish *w = s->asked.requests.first; w && err == 0; w = w->next)
        if (w->service && !w->out)
            err = add_to_policy(s, w, &number);
    for (const struct wish *w = s->asked.requests.first; w && err == 0; w = w->next)
        if (is_apart(w) && is_first(s, w, wish_same_place))
            err = add_service(s, w, &number);
    return err;
}

/* ---- what the policy says of it ---- */

enum fate { FATE_RULE, FATE_SETTLED, FATE_LEFT_OUT, FATE_TAKEN /* into another list */ };

/* False: it is no request. */
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

/* A rule without the conditions would take them away from whoever wrote them. */
static int refuse_by_conditions(struct suggestion *s, struct wish *w, const struct nearest *n) {
    struct buf why;
    int err;
    buf_init(&why, 1024);
    buf_printf(&why, "refused by the conditions of '%.*s' (%s:%u:%u)%s",
               VIEW_ARG(operation_name(n->operation)), n->at.file, n->at.line, n->at.column,
               n->granted ? "" : ", which is not granted");
    err = wish_refuse(&s->asked, w, buf_view(&why));
    buf_free(&why);
    return err;
}

/* By the record alone, where no policy tells of them. */
static int find_fate_alone(struct suggestion *s, struct wish *w, enum fate *fate) {
    struct buf why;
    if (w->condition.n == 0)
        return 0;
    *fate = FATE_TAKEN;
    buf_init(&why, 1024);
    buf_printf(&why, "refused by a condition of the policy in use then (%.*s)",
               VIEW_ARG(view_head(w->condition, 512)));
    int err = wish_refuse(&s->asked, w, buf_view(&why));
    buf_free(&why);
    return err;
}

/* Words that let such paths pass would let them pass for all of the service's operations. */
static bool wants_path_words(const struct wish *w) {
    return holds(w->path, "%2F") || has_parameters(w->path);
}

static int find_fate(struct suggestion *s, struct wish *w, enum fate *fate) {
    enum { GRANT = 1 << CLAUSE_GRANT, CONDITION = 1 << CLAUSE_CONDITION };
    struct verdict v;
    struct nearest nearest;
    *fate = FATE_LEFT_OUT;
    if (!ask(s->policy, w, &v, &nearest))
        return 0;
    enum reason why = v.allow ? v.observed : v.reason;
    s->observed = s->observed || (v.allow && why != REASON_ALLOWED);
    if (why == REASON_ALLOWED) {
        *fate = FATE_SETTLED;
    } else if (!wish_is_reason(why) && why != REASON_UNKNOWN_SANDBOX) {
        *fate = FATE_LEFT_OUT;
    } else if (nearest_fails_only(&nearest, GRANT)) {
        *fate = FATE_RULE;
        w->service = nearest.service;
        w->operation = operation_name(nearest.operation);
    } else if (nearest_fails_only(&nearest, GRANT | CONDITION)) {
        *fate = FATE_TAKEN;
        return refuse_by_conditions(s, w, &nearest);
    } else {
        w->service = policy_service_of(s->policy, w->tls, &w->authority);
        *fate = w->service && wants_path_words(w) ? FATE_LEFT_OUT : FATE_RULE;
    }
    return 0;
}

static enum fate take_closed(struct suggestion *s, struct wish *w, enum fate fate) {
    if (fate != FATE_RULE || w->service || !wish_is_closed(w))
        return fate;
    wish_list_add(&s->asked.closed, w);
    return FATE_TAKEN;
}

int suggestion_sort(struct suggestion *s) {
    struct wish *w = s->asked.requests.first, *next;
    int err = 0;
    s->asked.requests.first = NULL;
    s->asked.requests.end = &s->asked.requests.first;
    for (; w && err == 0; w = next) {
        enum fate fate = FATE_RULE;
        next = w->next;
        err = s->policy ? find_fate(s, w, &fate) : find_fate_alone(s, w, &fate);
        fate = take_closed(s, w, fate);
        s->settled += fate == FATE_SETTLED;
        s->asked.left_out += fate == FATE_LEFT_OUT;
        if (fate == FATE_RULE)
            wish_list_add(&s->asked.requests, w);
    }
    return err == 0 && s->asked.failed ? ERR_MEMORY : err;
}

size_t suggestion_last_number(struct view text) {
    size_t last = 0;
    for (size_t at; (at = view_search(text, VIEW(WISH_NAME))) < text.n;) {
        size_t n = 0;
        for (text = view_skip(text, at + sizeof WISH_NAME - 1);
             text.n > 0 && is_digit(text.p[0]) && n < SIZE_MAX / 100; text = view_skip(text, 1))
            n = 10 * n + (size_t)(text.p[0] - '0');
        last = n > last ? n : last;
    }
    return last;
}

/* ---- what is said ---- */

static void note_observing(struct suggestion *s) {
    struct view sandbox, service;
    struct position at;
    if (!s->observed)
        return;
    buf_put_str(&s->notes, "# `mode observe` stays, and lets through what has no rule here until "
                           "it is taken away:\n");
    for (size_t i = 0; policy_observes(s->policy, i, &sandbox, &service, &at); i++)
        buf_printf(&s->notes, "#     %.*s at %.*s (%s:%u:%u)\n", VIEW_ARG(sandbox),
                   VIEW_ARG(service), at.file, at.line, at.column);
}

void suggestion_note_rest(struct suggestion *s) {
    const struct wishes *w = &s->asked;
    bool nothing = !w->requests.first && !w->tunnels.first && !w->closed.first &&
                   !w->refused.first && w->left_out == 0;
    if (nothing && s->settled == 0)
        buf_put_str(&s->notes, "# Nothing was refused.\n");
    else if (nothing)
        buf_put_str(&s->notes, "# The policy allows all that was refused.\n");
    note_observing(s);
    wishes_put_notes(w, &s->notes);
}
