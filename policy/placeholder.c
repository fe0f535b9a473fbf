#include "policy/placeholder.h"

#include <string.h>

enum { BASE = 62 };

static const char digits[BASE + 1] =
    "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz";

static struct view marker(void) {
    return VIEW("exeat");
}

/* CRC-32 as in IEEE 802.3, reflected, four bits at a time. */
static uint32_t crc32_of(struct view v) {
    static const uint32_t table[16] = {
        0x00000000, 0x1db71064, 0x3b6e20c8, 0x26d930ac, 0x76dc4190, 0x6b6b51f4,
        0x4db26158, 0x5005713c, 0xedb88320, 0xf00f9344, 0xd6d6a3e8, 0xcb61b38c,
        0x9b64c2b0, 0x86d3d2d4, 0xa00ae278, 0xbdbdf21c,
    };
    uint32_t crc = UINT32_MAX;
    for (size_t i = 0; i < v.n; i++) {
        crc ^= v.p[i];
        crc = crc >> 4 ^ table[crc & 15];
        crc = crc >> 4 ^ table[crc & 15];
    }
    return ~crc;
}

static void put_check(struct view random, char out[PLACEHOLDER_CHECK_SIZE]) {
    uint32_t rest = crc32_of(random);
    for (size_t i = PLACEHOLDER_CHECK_SIZE; i-- > 0; rest /= BASE)
        out[i] = digits[rest % BASE];
}

/* The 256-bit number in random, written in base 62 from its low end: 148 bits of it are used. */
static void put_random(const uint8_t random[32], char out[PLACEHOLDER_RANDOM_SIZE]) {
    uint8_t number[32];
    memcpy(number, random, sizeof number);
    for (size_t i = 0; i < PLACEHOLDER_RANDOM_SIZE; i++) {
        unsigned rest = 0;
        for (size_t k = 0; k < sizeof number; k++) {
            unsigned x = rest << 8 | number[k];
            number[k] = (uint8_t)(x / BASE);
            rest = x % BASE;
        }
        out[i] = digits[rest];
    }
}

static bool is_prefix(struct view v) {
    if (v.n > PLACEHOLDER_PREFIX_MAX || view_search(v, marker()) < v.n)
        return false;
    for (size_t i = 0; i < v.n; i++)
        if (!is_alnum(v.p[i]) && memchr("_-.:", v.p[i], 4) == NULL)
            return false;
    return true;
}

int placeholder_make(struct view prefix, const uint8_t random[32], char out[PLACEHOLDER_SIZE]) {
    if (!is_prefix(prefix))
        return ERR_BAD;
    char *at = out;
    if (prefix.n)
        memcpy(at, prefix.p, prefix.n);
    at += prefix.n;
    memcpy(at, marker().p, PLACEHOLDER_MARKER_SIZE);
    at += PLACEHOLDER_MARKER_SIZE;
    put_random(random, at);
    put_check(view_of(at, PLACEHOLDER_RANDOM_SIZE), at + PLACEHOLDER_RANDOM_SIZE);
    at[PLACEHOLDER_RANDOM_SIZE + PLACEHOLDER_CHECK_SIZE] = 0;
    return 0;
}

bool placeholder_is_core(struct view v) {
    char check[PLACEHOLDER_CHECK_SIZE];
    if (v.n != PLACEHOLDER_CORE_SIZE || !view_starts(v, marker()))
        return false;
    for (size_t i = 0; i < v.n; i++)
        if (!is_alnum(v.p[i]))
            return false;
    put_check(view_slice(v, PLACEHOLDER_MARKER_SIZE, v.n - PLACEHOLDER_CHECK_SIZE), check);
    return view_ends(v, view_of(check, sizeof check));
}

bool placeholder_is(struct view v) {
    if (v.n < PLACEHOLDER_CORE_SIZE)
        return false;
    size_t n_prefix = v.n - PLACEHOLDER_CORE_SIZE;
    return is_prefix(view_head(v, n_prefix)) && placeholder_is_core(view_skip(v, n_prefix));
}

static bool is_core_without_case(struct view v) {
    if (v.n < PLACEHOLDER_CORE_SIZE)
        return false;
    for (size_t i = 0; i < PLACEHOLDER_CORE_SIZE; i++)
        if (!is_alnum(v.p[i]))
            return false;
    return view_equal_nocase(view_head(v, PLACEHOLDER_MARKER_SIZE), marker());
}

bool placeholder_inside_name(struct view name) {
    for (struct view rest = name; rest.n >= PLACEHOLDER_CORE_SIZE; rest = view_skip(rest, 1))
        if (is_core_without_case(rest))
            return true;
    return false;
}
