#include "policy/value_test.h"

#include <stdlib.h>
#include <string.h>

enum { NUMBER_SIZE = 64, EXPONENT_MAX = 10000 };

/* ---- numbers ---- */

static size_t digits_at(struct view v, size_t i) {
    while (i < v.n && is_digit(v.p[i]))
        i++;
    return i;
}

bool number_is_good(struct view v) {
    size_t i = v.n > 0 && v.p[0] == '-', end = digits_at(v, i);
    if (end == i || (v.p[i] == '0' && end > i + 1))
        return false;
    if (end < v.n && v.p[end] == '.') {
        i = end + 1;
        end = digits_at(v, i);
        if (end == i)
            return false;
    }
    if (end < v.n && (v.p[end] == 'e' || v.p[end] == 'E')) {
        i = end + 1;
        i += i < v.n && (v.p[i] == '+' || v.p[i] == '-');
        end = digits_at(v, i);
        if (end == i)
            return false;
    }
    return end == v.n;
}

enum answer { NO, YES, UNDECIDED };

/* A number without what spellings of it differ in: its digits from the first to the last that is not 0. */
struct decimal {
    char text[NUMBER_SIZE], digits[NUMBER_SIZE];
    size_t n;
    bool minus;
    long power; /* of ten, of the last digit */
};

/* False: longer than servers agree about. */
static bool decimal_read(struct view v, struct decimal *d) {
    *d = (struct decimal){.minus = v.p[0] == '-'};
    if (view_cstr(v, d->text, sizeof d->text) != 0)
        return false;
    const char *p = d->text + d->minus;
    bool fraction = false;
    for (; is_digit((uint8_t)*p) || *p == '.'; p++) {
        fraction = fraction || *p == '.';
        if (*p == '.')
            continue;
        d->power -= fraction;
        if (*p != '0' || d->n > 0)
            d->digits[d->n++] = *p;
    }
    for (; d->n > 0 && d->digits[d->n - 1] == '0'; d->n--)
        d->power++;
    long e = *p ? strtol(p + 1, NULL, 10) : 0;
    d->power = d->n > 0 ? d->power + e : 0;
    d->minus = d->minus && d->n > 0;
    return e > -EXPONENT_MAX && e < EXPONENT_MAX;
}

static bool decimals_equal(const struct decimal *a, const struct decimal *b) {
    return a->minus == b->minus && a->power == b->power && a->n == b->n &&
           memcmp(a->digits, b->digits, a->n) == 0;
}

/* 1, 1.0 and 10e-1 are one number; two that only a double cannot tell apart are not for everybody. */
static enum answer same_number(struct view a, struct view b) {
    struct decimal x, y;
    if (!number_is_good(a) || !number_is_good(b))
        return NO;
    if (!decimal_read(a, &x) || !decimal_read(b, &y))
        return UNDECIDED;
    if (decimals_equal(&x, &y))
        return YES;
    return strtod(x.text, NULL) == strtod(y.text, NULL) ? UNDECIDED : NO;
}

/* ---- globs ---- */

static bool bytes_match(uint8_t a, uint8_t b, bool fold) {
    return a == b || (fold && to_lower(a) == to_lower(b));
}

static bool glob_matches(struct view glob, struct view text, bool fold) {
    size_t g = 0, t = 0, star = SIZE_MAX, again = 0;
    while (t < text.n) {
        if (g < glob.n && glob.p[g] == '*') {
            star = g++;
            again = t;
        } else if (g < glob.n && bytes_match(glob.p[g], text.p[t], fold)) {
            g++;
            t++;
        } else if (star != SIZE_MAX) {
            g = star + 1;
            t = ++again;
        } else {
            return false;
        }
    }
    while (g < glob.n && glob.p[g] == '*')
        g++;
    return g == glob.n;
}

bool glob_match(struct view glob, struct view text) {
    return glob_matches(glob, text, false);
}

/* ---- a text: of the query, a field, a form ---- */

static bool is_boolean(struct view v) {
    return view_equal(v, VIEW("true")) || view_equal(v, VIEW("false"));
}

static bool is_space(uint8_t c) {
    return c == ' ' || (c >= '\t' && c <= '\r');
}

/* Without what many drop around a value. */
static struct view bare_of(struct view text) {
    while (text.n > 0 && is_space(text.p[0]))
        text = view_skip(text, 1);
    while (text.n > 0 && is_space(text.p[text.n - 1]))
        text.n--;
    return text;
}

static bool texts_equal(const struct test_value *wanted, struct view text, bool widely) {
    if (!widely)
        return view_equal(wanted->text, text);
    struct view bare = bare_of(text);
    return view_equal_nocase(wanted->text, text) || view_equal_nocase(wanted->text, bare) ||
           (wanted->type == BODY_NUMBER && same_number(wanted->text, bare) != NO);
}

static bool text_matches(struct view glob, struct view text, bool widely) {
    return glob_matches(glob, text, widely) || (widely && glob_matches(glob, bare_of(text), true));
}

static bool text_has_type(enum body_type type, struct view text, bool widely) {
    switch (type) {
    case BODY_STRING:
        return true;
    case BODY_NUMBER:
        return number_is_good(text);
    case BODY_BOOLEAN:
        return is_boolean(text);
    default:
        return widely && (text.n == 0 || view_equal(text, VIEW("null")));
    }
}

bool test_text(const struct test *t, struct view text, bool widely) {
    switch (t->kind) {
    case TEST_PRESENT:
        return true;
    case TEST_TYPE:
        return text_has_type(t->type, text, widely);
    case TEST_GLOB:
        return text_matches(t->glob, text, widely);
    case TEST_VALUES:
        break;
    }
    for (size_t i = 0; i < t->n_values; i++)
        if (texts_equal(&t->values[i], text, widely))
            return true;
    return false;
}

/* ---- a JSON value ---- */

static bool values_equal(const struct test_value *wanted, const struct body_value *v, bool widely) {
    if (widely && v->type < BODY_ARRAY)
        return texts_equal(wanted, v->type == BODY_NULL ? VIEW("null") : v->value, true);
    if (wanted->type != v->type)
        return false;
    if (v->type == BODY_NUMBER)
        return same_number(wanted->text, v->value) == YES;
    return v->type == BODY_NULL || view_equal(wanted->text, v->value);
}

bool test_body_value(const struct test *t, const struct body_value *v, bool widely) {
    if (v->type == BODY_TEXT)
        return test_text(t, v->value, widely);
    /* What stands in it is not told, and a list of one is its item to some. */
    bool unknown = v->type >= BODY_ARRAY && widely;
    switch (t->kind) {
    case TEST_PRESENT:
        return true;
    case TEST_TYPE:
        return t->type == v->type;
    case TEST_GLOB:
        return v->type == BODY_STRING
                   ? text_matches(t->glob, v->value, widely)
                   : unknown || (widely && glob_matches(t->glob, v->value, true));
    case TEST_VALUES:
        break;
    }
    for (size_t i = 0; i < t->n_values; i++)
        if (values_equal(&t->values[i], v, widely))
            return true;
    return unknown;
}

/* ---- two tests ---- */

/* Widely: two values that could be taken for one are in common. */
bool tests_exclude(const struct test *a, const struct test *b) {
    if (a->kind == TEST_TYPE && b->kind == TEST_TYPE)
        return a->type != b->type && a->type != BODY_STRING && b->type != BODY_STRING;
    if (a->kind != TEST_VALUES || b->kind != TEST_VALUES)
        return false;
    for (size_t i = 0; i < a->n_values; i++)
        for (size_t k = 0; k < b->n_values; k++)
            if (texts_equal(&a->values[i], b->values[k].text, true))
                return false;
    return true;
}
