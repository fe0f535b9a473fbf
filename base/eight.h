/*
 * Questions asked of eight bytes at once, as one word: text is looked at byte by byte only where an answer is yes.
 */
#ifndef BASE_EIGHT_H
#define BASE_EIGHT_H

#include <stdint.h>
#include <string.h>

/* The byte eight times. */
#define EIGHT(byte) (UINT64_C(0x0101010101010101) * (byte))

/* The eight bytes at p. */
static inline uint64_t eight_at(const uint8_t *p) {
    uint64_t x;
    memcpy(&x, p, sizeof x);
    return x;
}

/*
 * Whether any byte of x is below limit, the one that is given, a control character (RFC 5234 CTL), or beyond ASCII: 0
 * when none is. Which one is cannot be read from an answer: a borrow marks the next as well. Answers may be or-ed.
 * `limit` is at most 0x80; a byte from 0x80 on is not below it.
 */
static inline uint64_t eight_below(uint64_t x, uint8_t limit) {
    return (x - EIGHT(limit)) & ~x & EIGHT(0x80);
}
static inline uint64_t eight_is(uint64_t x, uint8_t byte) {
    return eight_below(x ^ EIGHT(byte), 1);
}
static inline uint64_t eight_control(uint64_t x) {
    return eight_below(x, 0x20) | eight_is(x, 0x7f);
}
static inline uint64_t eight_beyond_ascii(uint64_t x) {
    return x & EIGHT(0x80);
}

/* With the ASCII letters among them in lower case. */
static inline uint64_t eight_lower(uint64_t x) {
    uint64_t low = x & EIGHT(0x7f), from_a = low + EIGHT(0x80 - 'A');
    uint64_t beyond_z = low + EIGHT(0x80 - 'Z' - 1);
    return x | (from_a & ~beyond_z & ~x & EIGHT(0x80)) >> 2;
}

#endif
