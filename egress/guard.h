/*
 * The guard: a secret that was lent never comes back (promise P8). Scans
 * answers for every secret that a sandbox was lent lately, in the spellings an
 * upstream can produce (egress/spelling.h), and writes '*' over what it finds,
 * byte for byte, so that lengths and framing stay as they are. Pure: no clock,
 * no socket; what derives from a secret lies in the locked arena.
 *
 * What is masked. The longest run of bytes that the text shares with a
 * spelling, when it holds at least `run` (LIMIT_GUARD_RUN) consecutive bytes
 * of the secret, or the whole of a shorter secret. Bytes of the secret's
 * public head (spelling_public_head) are masked with such a run but do not
 * count towards it. Without this the mask would be an oracle: whoever knows
 * run - 1 consecutive bytes of a secret (a long vendor prefix, a JWT's header)
 * has an API repeat them with a guess behind, sees which guess is masked, and
 * so reads the secret byte by byte. It also keeps a foreign JWT with the same
 * header as it was.
 *
 * Line breaks inside of a spelling (egress/fold.h) do not hide it, nor what a writer escaped in it, or in what is
 * written already (egress/escape.h), twice: the text is looked at as it is, without folds, and with escapes undone.
 *
 * What is counted. A run that is not a whole spelling, nor part of one that
 * stands there, is a fragment: an upstream cut an echo, or somebody who knows a
 * part of the secret has guesses repeated and sees which one is masked. It is
 * counted when the first byte of it is released, by the bytes of the secret that
 * it is of, whatever the spelling; one that tells nothing new is not. What is
 * released together cannot be asked for one after the other: fragments in it that
 * overlap in the secret are one. When the values of one name have had more than the
 * set allows, the set is exceeded (docs/decisions/0006).
 *
 * What may be seen all the same: the public head and fewer than `run` bytes
 * behind it where an upstream cuts an echo short there, fewer than `run` at
 * the end, a spelling that is not in the table (reversed, encrypted, spaced
 * out, base64 of hexadecimal and the like).
 *
 * What is held back at the end of a piece is the trailing run of token bytes and
 * folds, at most guard_set_hold(). Both depend on public facts: token bytes are the
 * visible ASCII ones and NUL (UTF-16), with SP or with the bytes from 0x80 if a
 * secret of the set has such; the most that is held is twice the longest spelling's length
 * rounded up to a power of two, at least 1024. What matched has no influence,
 * or a sandbox could read a secret from delays (RF-07, RF-08).
 */
#ifndef EGRESS_GUARD_H
#define EGRESS_GUARD_H

#include "base/bytes.h"

enum {
    GUARD_SECRET_MIN = 8, /* a shorter one cannot be told from ordinary text: it must not be lent */
    GUARD_SECRET_MAX = 8192, /* SECRET_MAX of broker's messages */
    GUARD_RUN_MAX = 64,      /* the most LIMIT_GUARD_RUN can be */
    GUARD_PIECE_MAX = 16384, /* bytes looked at in one go */
    GUARD_NAME_MAX = 64,     /* of what a secret is called */
};

/* ---- the secrets a sandbox was lent ---- */

struct guard_set;

/*
 * At most max secrets (LIMIT_SECRETS), runs of at least `run` bytes;
 * random: 64 random bits. One reference is the caller's. NULL: no memory.
 */
struct guard_set *guard_set_new(size_t max, size_t run, uint64_t random);
/*
 * Other limits, for what is in the set as well; of more secrets than max none goes. Streams in progress keep
 * to the new ones. ERR_MEMORY: those that did not fit are as they were, to be tried again.
 */
MUST_USE int guard_set_limit(struct guard_set *set, size_t max, size_t run);
/* One more reference; streams have their own. */
struct guard_set *guard_set_ref(struct guard_set *set);
/* Gives a reference back; NULL is fine. */
void guard_set_free(struct guard_set *set);
/* More than `most` fragments of one name within `time` (nanoseconds) exceed the set, for `time`; without this none do. */
void guard_set_count_fragments(struct guard_set *set, size_t most, uint64_t time);

/*
 * From now on until `until` (any clock's nanoseconds), and while fragments of it count, all streams
 * of the set look for this value, those in progress too; and for what it is in small letters, as field
 * names are. A value that is in the set is
 * only kept longer, or with a longer public head. name: what it is called, to be told with guard_set_exceeded.
 * prefix: how many bytes at its beginning the sandbox knows
 * from its placeholder. All is copied. To be called before the secret
 * leaves; on ERR_BAD (a length), ERR_LIMIT (max) and ERR_MEMORY (arena) it must not leave.
 */
MUST_USE int guard_set_add(struct guard_set *set, struct view value, struct view name,
                           size_t prefix, uint64_t until);
/* To be called often. Forgets what was kept until now or earlier (longer when the arena is full), and fragments after their time. */
void guard_set_expire(struct guard_set *set, uint64_t now);
/* The name of the secrets whose fragments exceed the set; NULL when they do not. */
const char *guard_set_exceeded(const struct guard_set *set);
size_t guard_set_count(const struct guard_set *set);
/* The most bytes a stream holds back. */
size_t guard_set_hold(const struct guard_set *set);

/*
 * Masks a whole value (a field) in place; returns how many runs were masked. Where that exceeds the set,
 * the value must not be sent.
 */
size_t guard_mask(struct guard_set *set, uint8_t *p, size_t n);
/* The same for one more value that is sent together with the last one, and judged with it. */
size_t guard_mask_more(struct guard_set *set, uint8_t *p, size_t n);

/* ---- one answer's body ---- */

struct guard_stream {
    struct guard_set *set;
    struct buf kept;   /* bytes that were released, as context, then those held back */
    size_t released;   /* how many of them were released */
    size_t whole;      /* the first of them belong to a whole spelling that began before */
    uint64_t masked;   /* runs masked so far */
    bool ends_in_mask; /* the last byte released was masked */
};

void guard_stream_init(struct guard_stream *s, struct guard_set *set);
void guard_stream_free(struct guard_stream *s);

/*
 * Appends to out what may be released of the bytes held and the piece, masked;
 * keeps the rest. Never gives back a byte more than it was fed in all. Any cut
 * of the text into pieces releases the same bytes in the end. ERR_MEMORY (the
 * arena is full), ERR_LIMIT (out has no room), ERR_DENIED (the set is exceeded; nothing of the piece that did it
 * is released): the answer must be cut.
 */
MUST_USE int guard_stream_feed(struct guard_stream *s, struct view piece, struct buf *out);
/* The same for the last piece: all is released, in one look, and the stream takes no more. */
MUST_USE int guard_stream_end(struct guard_stream *s, struct view piece, struct buf *out);
/*
 * Releases what is held: the answer is complete. Not to be called for the passing of time, which
 * shows the beginning of a secret (docs/decisions/0005). The stream may go on all the same: a
 * secret that was cut so is still recognised, and the rest of it masked.
 */
MUST_USE int guard_stream_release(struct guard_stream *s, struct buf *out);
/* Bytes held back. */
size_t guard_stream_held(const struct guard_stream *s);
/* No secret is lent and nothing is held: pieces may be passed on without a feed. */
bool guard_stream_idle(const struct guard_stream *s);

#endif
