#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "base/limits.h"

#include <string.h>

static void every_limit_has_a_name_a_range_and_an_end(void **state) {
    (void)state;
    for (int i = 0; i < LIMIT_COUNT; i++) {
        const struct limit_info *info = limit_info((enum limit)i);
        enum limit found;
        assert_non_null(info->name);
        assert_non_null(info->unit);
        assert_true(strlen(info->what) > 0 && strlen(info->then) > 0);
        if (info->least > info->normal || info->normal > info->most)
            fail_msg("%s: its default is outside its range", info->name);
        assert_int_equal(limit_find(view_str(info->name), &found), 0);
        if ((int)found != i)
            fail_msg("two limits are called %s", info->name);
        for (const char *c = info->name; *c; c++)
            assert_true((*c >= 'a' && *c <= 'z') || *c == '-');
    }
    enum limit none;
    assert_int_equal(limit_find(VIEW("no-such"), &none), ERR_MISSING);
    assert_int_equal(limit_find(VIEW(""), &none), ERR_MISSING);
    assert_int_equal(limit_find(VIEW("Window"), &none), ERR_MISSING);
}

static int read_text(struct view v, struct limits *out) {
    struct reader r = reader_of(v);
    int result = limits_read(&r, out);
    return result == 0 && !read_done(&r) ? ERR_BAD : result;
}

static void numbers_travel_whole_and_in_range_or_not_at_all(void **state) {
    struct limits before, after;
    struct buf b;
    (void)state;
    buf_init(&b, 8192);
    limits_default(&before);
    limits_write(&before, &b);
    assert_int_equal(read_text(buf_view(&b), &after), 0);
    assert_memory_equal(&before, &after, sizeof before);
    for (size_t n = 0; n < buf_len(&b); n++)
        assert_int_equal(read_text(view_head(buf_view(&b), n), &after), ERR_BAD);
    for (int i = 0; i < LIMIT_COUNT; i++) {
        const struct limit_info *info = limit_info((enum limit)i);
        const struct {
            uint64_t value;
            int result;
        } cases[] = {{info->least, 0}, {info->most, 0}, {info->most + 1, ERR_BAD}};
        for (size_t k = 0; k < 3; k++) {
            struct limits changed = before;
            changed.v[i] = cases[k].value;
            buf_reset(&b);
            limits_write(&changed, &b);
            if (read_text(buf_view(&b), &after) != cases[k].result)
                fail_msg("%s: %llu", info->name, (unsigned long long)cases[k].value);
        }
        if (info->least == 0)
            continue;
        struct limits changed = before;
        changed.v[i] = info->least - 1;
        buf_reset(&b);
        limits_write(&changed, &b);
        assert_int_equal(read_text(buf_view(&b), &after), ERR_BAD);
    }
    buf_free(&b);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_limit_has_a_name_a_range_and_an_end),
        cmocka_unit_test(numbers_travel_whole_and_in_range_or_not_at_all),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
