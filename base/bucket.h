/* So many of something a minute: refilled in proportion to the time that passed. Pure. */
#ifndef BASE_BUCKET_H
#define BASE_BUCKET_H

#include <stdbool.h>
#include <stdint.h>

/* Zeroed: full. */
struct bucket {
    double tokens;
    uint64_t refilled; /* monotonic nanoseconds */
};

/* Takes one token of at most a_minute; false when there is none. */
bool bucket_take(struct bucket *b, uint64_t now, uint64_t a_minute);

#endif
