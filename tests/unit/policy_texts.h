/*
 * Texts of policies: those that must load, those that must have one error at a place, and what is
 * asked of them. A configuration's errors are the same.
 */
#ifndef TESTS_UNIT_POLICY_TEXTS_H
#define TESTS_UNIT_POLICY_TEXTS_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "policy/errors.h"
#include "policy/policy.h"

#include <string.h>

static struct policy_errors errors;

static void fail_with_errors(const char *text) {
    struct buf shown;
    buf_init(&shown, 65536);
    for (size_t i = 0; i < errors.n; i++)
        errors_show(&errors.at[i], view_str(text), &shown);
    fail_msg("%s\n%.*s", text, VIEW_ARG(buf_view(&shown)));
}

/* ---- what loads ---- */

static struct policy *load(const char *text) {
    struct policy *p = NULL;
    if (policy_load(view_str(text), "policy", &p, &errors) != 0)
        fail_with_errors(text);
    return p;
}

static inline void loads(const char *text) {
    policy_free(load(text));
}

#define S "service a { host a.test\n"
#define R0 "operation r { GET / }"
#define R R0 "\n"

/* ---- what does not ---- */

/* Has exactly one error. */
struct bad_case {
    const char *text;
    uint32_t line, column;
    const char *says;
};

static inline void check_error(const struct bad_case *c) {
    const struct policy_error *e = &errors.at[0];
    if (errors.total != 1 || e->at.line != c->line || e->at.column != c->column ||
        !strstr(e->text, c->says))
        fail_with_errors(c->text);
}

static inline void refuse_all(const struct bad_case *cases, size_t n) {
    for (size_t i = 0; i < n; i++) {
        struct policy *p = NULL;
        if (policy_load(view_str(cases[i].text), "policy", &p, &errors) != ERR_BAD)
            fail_msg("must not load: %s", cases[i].text);
        assert_null(p);
        check_error(&cases[i]);
    }
}

/* ---- what is asked ---- */

static const struct authority a_test = {.kind = HOST_NAME, .host = "a.test", .port = 443};

/* What s asks of a.test by ten bytes, without fields or a credential. */
static inline struct request_facts facts_of(const char *method, const struct target *t) {
    static const struct materials none;
    static const struct field no_fields[1];
    return (struct request_facts){.sandbox = VIEW("s"),
                                  .tls = true,
                                  .authority = &a_test,
                                  .method = view_str(method),
                                  .target = t,
                                  .materials = &none,
                                  .fields = no_fields,
                                  .length_known = true,
                                  .length = 10};
}

#endif
