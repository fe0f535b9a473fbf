#include "base/bucket.h"

bool bucket_take(struct bucket *b, uint64_t now, uint64_t a_minute) {
    double full = (double)a_minute;
    if (b->refilled == 0)
        b->tokens = full;
    else
        b->tokens += (double)(now - b->refilled) * full / 60e9;
    b->refilled = now;
    if (b->tokens > full)
        b->tokens = full;
    if (b->tokens < 1)
        return false;
    b->tokens -= 1;
    return true;
}
