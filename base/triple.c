#include "base/triple.h"

#if defined __x86_64__
#include <immintrin.h>
#endif

void triple_prepare(struct triple *t) {
    for (size_t i = 0; i < 3; i++)
        for (size_t c = 0; c < 256; c++)
            for (size_t half = 0; half < TRIPLE_LANES; half += TRIPLE_LANES / 2) {
                t->low[i][half + (c & 15)] |= t->kinds[i][c];
                t->high[i][half + (c >> 4)] |= t->kinds[i][c];
            }
}

#if defined __x86_64__

__attribute__((target("avx2"))) static inline __m256i load(const uint8_t *p) {
    return _mm256_loadu_si256((const __m256i *)(const void *)p);
}

/* Kinds that bytes may be of: those of another byte with the same low and one with the same high half. */
__attribute__((target("avx2"))) static inline __m256i look_up(const struct triple *t, size_t i,
                                                              const uint8_t *p) {
    __m256i bytes = load(p + i), half = _mm256_set1_epi8(15);
    __m256i low = _mm256_and_si256(bytes, half);
    __m256i high = _mm256_and_si256(_mm256_srli_epi16(bytes, 4), half);
    return _mm256_and_si256(_mm256_shuffle_epi8(load(t->low[i]), low),
                            _mm256_shuffle_epi8(load(t->high[i]), high));
}

/* Those of 32 places from p on that may be of a kind. */
__attribute__((target("avx2"))) static inline uint32_t places_from(const struct triple *t,
                                                                   const uint8_t *p) {
    __m256i kinds =
        _mm256_and_si256(_mm256_and_si256(look_up(t, 0, p), look_up(t, 1, p)), look_up(t, 2, p));
    return ~(uint32_t)_mm256_movemask_epi8(_mm256_cmpeq_epi8(kinds, _mm256_setzero_si256()));
}

/* For texts of at least WIDE bytes. The last 32 places overlap those before them. Where hits are many, one is next. */
enum { WIDE = TRIPLE_LANES + 2 };
__attribute__((target("avx2"))) static size_t next_wide(const struct triple *t, struct view v,
                                                        size_t at) {
    if (v.n - at > 2 && triple_kinds(t, v.p + at) != 0)
        return at;
    while (v.n - at > 2) {
        size_t from = v.n - at >= WIDE ? at : v.n - WIDE;
        for (uint32_t places = places_from(t, v.p + from) >> (at - from) << (at - from); places;
             places &= places - 1) {
            size_t place = from + (size_t)__builtin_ctz(places);
            if (triple_kinds(t, v.p + place) != 0)
                return place;
        }
        at = from + TRIPLE_LANES;
    }
    return v.n;
}

#endif

size_t triple_next(const struct triple *t, struct view v, size_t at) {
#if defined __x86_64__
    if (v.n >= WIDE && __builtin_cpu_supports("avx2"))
        return next_wide(t, v, at);
#endif
    while (v.n - at > 2 && triple_kinds(t, v.p + at) == 0)
        at++;
    return v.n - at > 2 ? at : v.n;
}
