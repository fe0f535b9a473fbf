/*
 * Tests of one value: `is`, `in`, `matches`. Internal to policy/. Pure.
 *
 * Widely (condition.h) a value also passes that some server may take for one that does: case, 1 and 1.0, "5" and 5, ["x"] and "x".
 */
#ifndef POLICY_VALUE_TEST_H
#define POLICY_VALUE_TEST_H

#include "policy/policy.h"

enum test_kind {
    TEST_PRESENT, /* nothing is said of the value */
    TEST_VALUES,  /* it is one of these */
    TEST_TYPE,    /* is boolean, number, string, null */
    TEST_GLOB,    /* `*` in the glob stands for any run of bytes, the rest for itself */
};

/* As written: a quoted value is a string; otherwise true, false, null and numbers are what they look like. */
struct test_value {
    enum body_type type; /* BODY_NULL, BODY_BOOLEAN, BODY_NUMBER or BODY_STRING */
    struct view text;
};

struct test {
    enum test_kind kind;
    enum body_type type;       /* TEST_TYPE */
    struct test_value *values; /* TEST_VALUES */
    size_t n_values;
    struct view glob; /* TEST_GLOB */
};

/* Of a decoded text that has no type: a parameter, a field, a form's field. */
bool test_text(const struct test *t, struct view text, bool widely);
bool test_body_value(const struct test *t, const struct body_value *v, bool widely);
/* Whether no value passes both. May say false where that is hard to see. */
bool tests_exclude(const struct test *a, const struct test *b);

bool glob_match(struct view glob, struct view text);
/* RFC 8259 */
bool number_is_good(struct view v);

#endif
