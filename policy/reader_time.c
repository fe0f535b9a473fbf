#include "policy/reader.h"

/* Digits of a fixed width, from at on. */
static int take(struct view v, size_t at, size_t n, uint64_t most, uint64_t *out) {
    return view_number(view_slice(v, at, at + n), most, out);
}

static bool is_leap(uint64_t year) {
    return (year % 4 == 0 && year % 100 != 0) || year % 400 == 0;
}

static uint64_t days_of(uint64_t year, uint64_t month) {
    static const uint8_t days[] = {31, 28, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31};
    return days[month - 1] + (month == 2 && is_leap(year) ? 1u : 0u);
}

static uint64_t days_before(uint64_t year, uint64_t month) {
    uint64_t days = 0;
    for (uint64_t y = 1970; y < year; y++)
        days += is_leap(y) ? 366 : 365;
    for (uint64_t m = 1; m < month; m++)
        days += days_of(year, m);
    return days;
}

/* `Z` or `+hh:mm`. */
static int take_offset(struct view v, int64_t *seconds) {
    uint64_t hours, minutes;
    *seconds = 0;
    if (view_equal(v, VIEW("Z")))
        return 0;
    if (v.n != 6 || (v.p[0] != '+' && v.p[0] != '-') || v.p[3] != ':' ||
        take(v, 1, 2, 23, &hours) != 0 || take(v, 4, 2, 59, &minutes) != 0)
        return ERR_BAD;
    *seconds = (int64_t)(hours * 3600 + minutes * 60) * (v.p[0] == '-' ? -1 : 1);
    return 0;
}

int time_parse(struct view v, uint64_t *out) {
    uint64_t year, month, day, hour, minute, second;
    int64_t offset;
    if (v.n < 20 || v.p[4] != '-' || v.p[7] != '-' || v.p[10] != 'T' || v.p[13] != ':' ||
        v.p[16] != ':' || take(v, 0, 4, 9999, &year) != 0 || take(v, 5, 2, 12, &month) != 0 ||
        take(v, 8, 2, 31, &day) != 0 || take(v, 11, 2, 23, &hour) != 0 ||
        take(v, 14, 2, 59, &minute) != 0 || take(v, 17, 2, 59, &second) != 0 ||
        take_offset(view_skip(v, 19), &offset) != 0)
        return ERR_BAD;
    if (year < 1971 || month == 0 || day == 0 || day > days_of(year, month))
        return ERR_BAD;
    uint64_t days = days_before(year, month) + day - 1;
    *out = (uint64_t)((int64_t)(days * 86400 + hour * 3600 + minute * 60 + second) - offset);
    return 0;
}
