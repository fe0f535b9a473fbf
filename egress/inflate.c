#include "egress/inflate.h"

#include "base/secret.h"

#include <limits.h>
#include <stddef.h>
#include <stdlib.h>
#include <zlib.h>

enum stage {
    STAGE_START,  /* between members: nothing of the next one was seen */
    STAGE_FIRST,  /* deflate: the first byte is in `first` */
    STAGE_INSIDE, /* within a member */
    STAGE_BAD,
};

enum { RAW = -15, ZLIB = 15, GZIP = 31 };

struct inflate {
    z_stream stream;
    enum inflate_format format;
    enum stage stage;
    uint8_t first;
    unsigned members; /* complete ones, counted to 1 */
    uint64_t most, ratio, used, made;
};

/* ---- zlib's memory, cleared before it is given back: its window holds plain bytes ---- */

struct piece {
    size_t n;
    max_align_t bytes[];
};

static voidpf piece_new(voidpf opaque, uInt items, uInt size) {
    size_t n = (size_t)items * size;
    struct piece *p = malloc(sizeof *p + n);
    (void)opaque;
    if (!p)
        return NULL;
    p->n = n;
    return p->bytes;
}

static void piece_free(voidpf opaque, voidpf address) {
    struct piece *p = (struct piece *)((uint8_t *)address - offsetof(struct piece, bytes));
    (void)opaque;
    secret_clear(p->bytes, p->n);
    free(p);
}

/* ---- life ---- */

struct inflate *inflate_new(enum inflate_format format, uint64_t most, uint64_t ratio) {
    struct inflate *z = calloc(1, sizeof *z);
    if (!z)
        return NULL;
    z->stream.zalloc = piece_new;
    z->stream.zfree = piece_free;
    if (inflateInit2(&z->stream, format == INFLATE_GZIP ? GZIP : RAW) != Z_OK) {
        free(z);
        return NULL;
    }
    z->format = format;
    z->most = most;
    z->ratio = ratio;
    return z;
}

void inflate_free(struct inflate *z) {
    if (!z)
        return;
    inflateEnd(&z->stream);
    free(z);
}

/* ---- decoding ---- */

static const char *limit_broken(const struct inflate *z) {
    if (z->most > 0 && z->made > z->most)
        return "the decoded body is too long";
    if (z->made > INFLATE_RATIO_FREE && z->made / z->ratio > z->used)
        return "the decoded body is too long for its encoded length";
    return NULL;
}

static unsigned clamp(size_t n) {
    return n < UINT_MAX ? (unsigned)n : UINT_MAX;
}

/* One call of zlib. Counts in step and z; notes the end of a member. */
static const char *run(struct inflate *z, struct view input, uint8_t *out, size_t room,
                       struct inflate_step *step) {
    uint8_t nowhere;
    unsigned in = clamp(input.n), space = clamp(room);
    z->stream.next_in = (Bytef *)(uintptr_t)input.p;
    z->stream.avail_in = in;
    z->stream.next_out = out ? out : &nowhere;
    z->stream.avail_out = space;
    int result = inflate(&z->stream, Z_NO_FLUSH);
    size_t used = in - z->stream.avail_in, made = space - z->stream.avail_out;
    step->used += used;
    step->made += made;
    z->used += used;
    z->made += made;
    if (result == Z_STREAM_END) {
        z->stage = STAGE_START;
        z->members = 1;
        return limit_broken(z);
    }
    if (result == Z_NEED_DICT)
        return "a preset dictionary is asked for";
    if (result == Z_MEM_ERROR)
        return "no memory to decode";
    /* Z_BUF_ERROR: input or room is used up, and more of it helps. */
    if (result != Z_OK && result != Z_BUF_ERROR)
        return "the encoded bytes are malformed";
    return limit_broken(z);
}

static const char *reset(struct inflate *z, int bits) {
    z->stage = STAGE_INSIDE;
    return inflateReset2(&z->stream, bits) == Z_OK ? NULL : "no memory to decode";
}

/* RFC 1950 2.2: method 8, a window of at most 32 KiB, and a check that makes it a multiple of 31. */
static bool is_zlib_header(uint8_t cmf, uint8_t flags) {
    return (cmf & 15) == 8 && cmf >> 4 <= 7 && (cmf << 8 | flags) % 31 == 0;
}

/* Decides by two bytes and gives zlib the first, which is not in the input any more. */
static const char *open_deflate(struct inflate *z, uint8_t second) {
    struct inflate_step own = {0, 0, NULL};
    const char *why = reset(z, is_zlib_header(z->first, second) ? ZLIB : RAW);
    return why ? why : run(z, view_of(&z->first, 1), NULL, 0, &own);
}

static const char *step_once(struct inflate *z, struct view input, uint8_t *out, size_t room,
                             struct inflate_step *step) {
    if (z->stage == STAGE_INSIDE)
        return run(z, input, out, room, step);
    if (input.n == 0)
        return NULL;
    if (z->stage == STAGE_FIRST)
        return open_deflate(z, input.p[0]);
    if (z->format == INFLATE_GZIP) /* its header is checked by zlib, so garbage is malformed */
        return reset(z, GZIP);
    if (z->members > 0)
        return "bytes follow the end of the encoded body";
    z->first = input.p[0];
    z->stage = STAGE_FIRST;
    step->used++;
    return NULL;
}

struct inflate_step inflate_next(struct inflate *z, struct view input, uint8_t *out, size_t room) {
    struct inflate_step step = {0, 0, NULL};
    if (z->stage == STAGE_BAD) {
        step.why = "the body was refused before";
        return step;
    }
    for (;;) {
        size_t used = step.used, made = step.made;
        enum stage before = z->stage;
        step.why = step_once(z, view_skip(input, used), out + made, room - made, &step);
        if (step.why) {
            z->stage = STAGE_BAD;
            return step;
        }
        if (step.used == used && step.made == made && z->stage == before)
            return step;
    }
}

const char *inflate_end(const struct inflate *z) {
    switch (z->stage) {
    case STAGE_START:
        return NULL;
    case STAGE_BAD:
        return "the body was refused before";
    default:
        return "the encoded body is truncated";
    }
}
