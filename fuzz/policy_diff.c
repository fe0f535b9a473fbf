/*
 * Two policies, with a NUL between them: a policy differs from itself in nothing, each difference is one that the evaluator
 * confirms of both, and the way back has as many of the opposite.
 */
#include "policy/diff.h"
#include "policy/errors.h"

#include <stdlib.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static struct policy_errors errors;

static void must(bool x) {
    if (!x)
        abort();
}

static void check_found(void *ctx, const struct diff_found *f) {
    (void)ctx;
    must(f->kind < DIFF_KINDS && f->sandbox.n > 0 && f->method.n > 0 && f->url.n > 0);
    if (f->kind == DIFF_ALLOWED)
        must(!f->before.allow && f->after.allow);
    else if (f->kind == DIFF_DENIED)
        must(f->before.allow && !f->after.allow);
    else
        must(f->before.allow && f->after.allow);
}

static void compare(const struct policy *a, const struct policy *b, struct diff_result *r) {
    must(policy_diff(a, b, check_found, NULL, r) == 0);
    must(r->whole || r->why);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    struct view second = view_of(data, size), first = view_cut(&second, 0);
    struct policy *a, *b;
    struct diff_result same, forth, back;
    if (size > 4096 || policy_load(first, "before", &a, &errors) != 0)
        return 0;
    if (policy_load(second, "after", &b, &errors) == 0) {
        compare(a, a, &same);
        for (int kind = 0; kind < DIFF_KINDS; kind++)
            must(same.found[kind] == 0);
        compare(a, b, &forth);
        compare(b, a, &back);
        if (forth.whole && back.whole)
            must((forth.found[DIFF_ALLOWED] > 0) == (back.found[DIFF_DENIED] > 0) &&
                 (forth.found[DIFF_DENIED] > 0) == (back.found[DIFF_ALLOWED] > 0));
        policy_free(b);
    }
    policy_free(a);
    return 0;
}
