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

/* The first place that is of a kind, or else the first one that was not looked at. */
__attribute__((target("avx2"))) static size_t skip(const struct triple *t, struct view v,
                                                   size_t at) {
    for (; v.n - at >= TRIPLE_LANES + 2; at += TRIPLE_LANES) {
        const uint8_t *p = v.p + at;
        __m256i kinds = _mm256_and_si256(_mm256_and_si256(look_up(t, 0, p), look_up(t, 1, p)),
                                         look_up(t, 2, p));
        __m256i none = _mm256_cmpeq_epi8(kinds, _mm256_setzero_si256());
        for (uint32_t places = ~(uint32_t)_mm256_movemask_epi8(none); places; places &= places - 1)
            if (triple_kinds(t, p + __builtin_ctz(places)) != 0)
                return at + (size_t)__builtin_ctz(places);
    }
    return at;
}

#endif

size_t triple_next(const struct triple *t, struct view v, size_t at) {
#if defined __x86_64__
    if (v.n - at >= TRIPLE_LANES + 2 && __builtin_cpu_supports("avx2"))
        at = skip(t, v, at);
#endif
    while (v.n - at > 2 && triple_kinds(t, v.p + at) == 0)
        at++;
    return v.n - at > 2 ? at : v.n;
}
