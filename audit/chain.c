#include "audit/chain.h"

#include <stdio.h>
#include <string.h>
#include <time.h>

enum { HEX_SIZE = 2 * DIGEST_SIZE };

#define PREV_NAME ",\"prev\":\""
#define HASH_NAME ",\"hash\":\""

/* ---- writing ---- */

void chain_time(uint64_t wall, char out[CHAIN_TIME_SIZE]) {
    /* Records come thousands to the second: the date is worked out once for all of them. */
    static time_t known = -1;
    static char date[CHAIN_TIME_SIZE];
    time_t seconds = (time_t)(wall / 1000000000);
    unsigned micro = (unsigned)(wall % 1000000000 / 1000);
    if (seconds != known) {
        struct tm t;
        gmtime_r(&seconds, &t); /* 64-bit nanoseconds end in 2554: the year has four digits */
        strftime(date, sizeof date, "%Y-%m-%dT%H:%M:%S.000000Z", &t);
        known = seconds;
    }
    memcpy(out, date, CHAIN_TIME_SIZE);
    for (size_t at = CHAIN_TIME_SIZE - 3; micro; micro /= 10)
        out[at--] = (char)('0' + micro % 10);
}

void chain_open_line(const struct chain *c, uint64_t wall, struct buf *line) {
    char time[CHAIN_TIME_SIZE];
    chain_time(wall, time);
    buf_reset(line);
    buf_put_str(line, "{\"v\":1,\"seq\":");
    buf_put_decimal(line, c->seq + 1);
    buf_put_str(line, ",\"time\":\"");
    buf_put_str(line, time);
    buf_put_u8(line, '"');
}

static void put_hash(struct buf *line, const char *name, const uint8_t hash[DIGEST_SIZE]) {
    char hex[HEX_SIZE + 1];
    hex_encode(view_of(hash, DIGEST_SIZE), hex);
    buf_put_str(line, name);
    buf_put_str(line, hex);
    buf_put_u8(line, '"');
}

int chain_close_line(struct chain *c, struct buf *line) {
    uint8_t hash[DIGEST_SIZE];
    put_hash(line, PREV_NAME, c->hash);
    if (!buf_ok(line))
        return ERR_MEMORY;
    digest_sha256(buf_view(line), hash);
    put_hash(line, HASH_NAME, hash);
    buf_put_str(line, "}\n");
    if (!buf_ok(line))
        return ERR_MEMORY;
    if (buf_len(line) > LINE_MAX_BYTES)
        return ERR_LIMIT;
    c->seq++;
    memcpy(c->hash, hash, DIGEST_SIZE);
    return 0;
}

/* ---- checking ---- */

/* Cuts `name<64 hex>"` off the end of *v; lower-case digits only, so that a line has one form. */
static bool take_hash(struct view *v, struct view name, uint8_t out[DIGEST_SIZE]) {
    char hex[HEX_SIZE + 1];
    size_t whole = name.n + HEX_SIZE + 1;
    if (v->n < whole)
        return false;
    struct view member = view_skip(*v, v->n - whole);
    struct view digits = view_slice(member, name.n, whole - 1);
    *v = view_head(*v, v->n - whole);
    if (!view_starts(member, name) || member.p[whole - 1] != '"' ||
        hex_decode(digits, out, DIGEST_SIZE) != 0)
        return false;
    hex_encode(view_of(out, DIGEST_SIZE), hex);
    return view_equal(digits, view_of(hex, HEX_SIZE));
}

/* The members that must stand first, in this order. */
static bool read_front(struct line *l, struct chain_line *out) {
    struct line_member m;
    if (!line_next(l, &m) || !view_equal(m.name, VIEW("v")) || !m.number || m.number_is != 1)
        return false;
    if (!line_next(l, &m) || !view_equal(m.name, VIEW("seq")) || !m.number)
        return false;
    out->seq = m.number_is;
    if (!line_next(l, &m) || !view_equal(m.name, VIEW("time")) || m.number)
        return false;
    out->time = m.value;
    return out->seq > 0;
}

/* Digits as in the ids: 16 of them, so that readers which know only doubles keep them all. */
static bool read_epoch(struct view text, uint64_t *out) {
    uint8_t bytes[8];
    if (hex_decode(text, bytes, sizeof bytes) != 0)
        return false;
    struct reader r = reader_of(view_of(bytes, sizeof bytes));
    *out = read_u64(&r);
    return true;
}

static bool read_member(const struct line_member *m, struct chain_line *out) {
    if (view_equal(m->name, VIEW("kind")) && !m->number)
        out->kind = m->value;
    else if (view_equal(m->name, VIEW("origin")) && !m->number)
        out->origin = m->value;
    else if (view_equal(m->name, VIEW("key")) && !m->number)
        out->key = m->value;
    else if (view_equal(m->name, VIEW("signature")) && !m->number)
        out->signature = m->value;
    else if (view_equal(m->name, VIEW("n")) && m->number)
        out->n = m->number_is;
    else if (view_equal(m->name, VIEW("epoch")) && !m->number)
        return out->numbered = read_epoch(m->value, &out->epoch);
    return true;
}

enum chain_fault chain_read(struct view text, struct chain_line *out) {
    struct line l = line_of(text);
    struct line_member m;
    *out = (struct chain_line){0};
    if (!read_front(&l, out))
        return CHAIN_MALFORMED;
    while (line_next(&l, &m))
        if (!read_member(&m, out))
            return CHAIN_MALFORMED;
    struct view rest = view_head(text, text.n - (text.n ? 1 : 0));
    if (l.bad || view_is_empty(out->kind) || !take_hash(&rest, VIEW(HASH_NAME), out->hash))
        return CHAIN_MALFORMED;
    struct view hashed = rest;
    if (!take_hash(&rest, VIEW(PREV_NAME), out->prev))
        return CHAIN_MALFORMED;
    uint8_t hash[DIGEST_SIZE];
    digest_sha256(hashed, hash);
    return memcmp(hash, out->hash, DIGEST_SIZE) == 0 ? CHAIN_GOOD : CHAIN_CHANGED;
}

enum chain_fault chain_step(struct chain *c, bool begun, struct view text, struct chain_line *out) {
    enum chain_fault fault = chain_read(text, out);
    if (fault != CHAIN_GOOD)
        return fault;
    if (begun && out->seq <= c->seq)
        return CHAIN_REPEATED;
    if (begun && out->seq != c->seq + 1)
        return CHAIN_MISSING;
    if (begun && memcmp(out->prev, c->hash, DIGEST_SIZE) != 0)
        return CHAIN_UNLINKED;
    c->seq = out->seq;
    memcpy(c->hash, out->hash, DIGEST_SIZE);
    return CHAIN_GOOD;
}

const char *chain_fault_text(enum chain_fault f) {
    static const char *const texts[] = {
        [CHAIN_GOOD] = "is good",
        [CHAIN_MALFORMED] = "is not a line of an audit log",
        [CHAIN_CHANGED] = "was changed: its hash is not that of its bytes",
        [CHAIN_MISSING] = "follows a gap: records before it are missing",
        [CHAIN_REPEATED] = "stands at a wrong place: repeated or moved",
        [CHAIN_UNLINKED] = "does not continue the record before it, which was changed or replaced",
    };
    return texts[f];
}
