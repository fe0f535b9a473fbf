/*
 * Decompression of answers (RF-02): gzip and deflate, strictly. The only file
 * that knows zlib. Pure: bytes in; bytes, "need more", or bad(why) out.
 *
 * Refused: what is truncated, a wrong checksum or length, bytes behind the
 * last gzip member, a preset dictionary, a body that grows beyond its limit or
 * ratio. Several gzip members one after another are one body. "deflate" is the
 * zlib format, or raw deflate as some servers send it, told apart by the first
 * two bytes. An empty body is an empty body: nothing can hide in it.
 */
#ifndef EGRESS_INFLATE_H
#define EGRESS_INFLATE_H

#include "base/bytes.h"

struct inflate;

enum inflate_format { INFLATE_GZIP, INFLATE_DEFLATE };

/* Bodies whose decoded size is below this are not refused for their ratio. */
enum { INFLATE_RATIO_FREE = 256 * 1024 };

/* At most `most` decoded bytes in all (0: no limit), at most `ratio` for each encoded one. NULL: no memory. */
struct inflate *inflate_new(enum inflate_format format, uint64_t most, uint64_t ratio);
void inflate_free(struct inflate *z);

struct inflate_step {
    size_t used;     /* bytes of input that are done with */
    size_t made;     /* bytes that were written */
    const char *why; /* NULL, or why the body is bad: a static sentence fragment */
};

/*
 * Decodes input into out until one of them is used up. Call again with the
 * rest of the input, and with room, as long as it uses or makes something:
 * output may come without input.
 */
struct inflate_step inflate_next(struct inflate *z, struct view input, uint8_t *out, size_t room);
/* The input has ended and all output was taken: NULL when the body is complete, else why it is not. */
const char *inflate_end(const struct inflate *z);

#endif
