/*
 * Rules out of an audit trail that sandboxes had a part in: whatever stands in its lines, each rule that is suggested is
 * policy text as `fmt` writes it, grants no more than what was asked for, and is not suggested again once it is in the policy.
 *
 * Input: a policy, or nothing, and behind a NUL the trail.
 */
#include "cli/suggestion.h"
#include "policy/layout.h"

#include <stdlib.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

enum { TEXT_MAX = 1 << 18, ROOM = 1 << 14 };

static struct policy_errors errors;

static void must(bool x) {
    if (!x)
        abort();
}

static void begin(struct suggestion *s, const struct policy *p, struct view text,
                  struct view trail) {
    *s = (struct suggestion){.policy = p, .number = suggestion_last_number(text)};
    wishes_init(&s->asked, ROOM);
    while (trail.n > 0)
        wishes_line(&s->asked, view_cut(&trail, '\n'));
    must(suggestion_sort(s) == 0);
}

static void end(struct suggestion *s) {
    merge_free(&s->merge);
    buf_free(&s->notes);
    wishes_free(&s->asked);
}

/* That wish alone, or none. */
static void leave_but(struct suggestion *s, const struct wish *one) {
    for (struct wish *w = s->asked.requests.first; w; w = w->next)
        w->out = w != one;
}

static bool judge(const struct policy *p, const struct wish *w, struct view method,
                  struct view path) {
    static struct materials none;
    struct target target;
    struct buf canonical;
    bool allow = false;
    buf_init(&canonical, path.n + 1);
    if (target_parse_slashed(path, SEGMENTS_MAX, &canonical, &target, NULL) == 0) {
        struct request_facts f = {.sandbox = w->sandbox,
                                  .tls = w->tls,
                                  .authority = &w->authority,
                                  .method = method,
                                  .target = &target,
                                  .materials = &none};
        allow = policy_judge(p, &f).allow;
    }
    buf_free(&canonical);
    return allow;
}

/* Neither another method nor another path, where the policy did not allow them before. */
static void check_narrow(const struct policy *before, const struct policy *after,
                         const struct wish *w) {
    static const struct {
        struct view method, path;
    } others[] = {{VIEW("DELETE"), VIEW("/never/asked")}, {VIEW("GET"), VIEW("/never/asked/for")}};
    for (size_t i = 0; i < 2; i++)
        must(view_equal(w->path, others[i].path) ||
             (before && judge(before, w, others[i].method, others[i].path)) ||
             !judge(after, w, others[i].method, others[i].path));
}

/* What stays to be done by hand (a grant in a block with a star) is told again, but nothing is added twice. */
static void check_settled(const struct policy *p, struct view text, struct view trail,
                          const struct wish *w) {
    struct suggestion again;
    struct buf out;
    begin(&again, p, text, trail);
    for (struct wish *x = again.asked.requests.first; x; x = x->next) {
        if (!wish_same_place(x, w) || !view_equal(x->sandbox, w->sandbox) ||
            !view_equal(x->method, w->method) || !view_equal(x->path, w->path))
            continue;
        buf_init(&out, TEXT_MAX);
        leave_but(&again, x);
        must(suggestion_build(&again, text, "policy") == 0);
        merge_print(&again.merge, &out);
        must(view_equal(buf_view(&out), text));
        buf_free(&out);
        break;
    }
    end(&again);
}

static void check_one(struct suggestion *s, struct view text, struct view trail,
                      const struct wish *w) {
    struct policy *after;
    struct buf out, formatted;
    if (w->authority.port == 0) /* its rule is no policy, and is told as what does not fit */
        return;
    leave_but(s, w);
    must(suggestion_build(s, text, "policy") == 0);
    buf_init(&out, TEXT_MAX);
    buf_init(&formatted, TEXT_MAX);
    merge_print(&s->merge, &out);
    must(buf_ok(&out));
    must(policy_format(buf_view(&out), "policy", &formatted, &errors) == 0);
    must(view_equal(buf_view(&out), buf_view(&formatted)));
    if (policy_load(buf_view(&out), "policy", &after, &errors) == 0) {
        check_narrow(s->policy, after, w);
        check_settled(after, buf_view(&out), trail, w);
        policy_free(after);
    }
    buf_free(&out);
    buf_free(&formatted);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    struct view trail = view_of(data, size), text = view_cut(&trail, 0);
    struct suggestion s;
    struct policy *p = NULL;
    size_t n = 0;
    if (text.n > 0 && policy_load(text, "policy", &p, &errors) != 0)
        return 0;
    begin(&s, p, text, trail);
    for (struct wish *w = s.asked.requests.first; w && n < 8; w = w->next, n++)
        check_one(&s, text, trail, w);
    suggestion_note_rest(&s);
    end(&s);
    policy_free(p);
    return 0;
}
