#include "http/dns_query.h"

#include <stdio.h>

enum {
    HEAD = 12,
    CLASS_IN = 1,
    TYPE_OPT = 41,
    LABEL_MAX = 63,
    NAME_MAX_BYTES = 255,
    PAYLOAD = 1232, /* what we would take; RFC 9715 */
    OPTION_ERROR = 15,
    ERROR_BLOCKED = 15,
    OFFSET_QUESTION = 0xc000 | HEAD,
};
/* Of the second word of a head. */
enum { IS_ANSWER = 0x8000, OPCODE = 0x7800, RECURSION_WANTED = 0x0100, RECURSION_OFFERED = 0x80 };

/* ---- names ---- */

static bool is_plain(uint8_t c) {
    return is_alnum(c) || c == '-' || c == '_';
}

static size_t put_byte(char *out, uint8_t c) {
    if (is_plain(c)) {
        *out = (char)to_lower(c);
        return 1;
    }
    const char digits[] = {'\\', (char)('0' + c / 100), (char)('0' + c / 10 % 10),
                           (char)('0' + c % 10)};
    memcpy(out, digits, sizeof digits);
    return sizeof digits;
}

/* Four bytes of text for each of at most 255 fit, and the length bytes make room for dots and the NUL. */
static bool read_name(struct reader *r, char *out) {
    size_t bytes = 0, n = 0;
    for (;;) {
        struct view label = read_bytes(r, read_u8(r));
        bytes += 1 + label.n;
        if (r->bad || label.n > LABEL_MAX || bytes > NAME_MAX_BYTES)
            return false;
        if (label.n == 0)
            break;
        if (n > 0)
            out[n++] = '.';
        for (size_t i = 0; i < label.n; i++)
            n += put_byte(out + n, label.p[i]);
    }
    out[n] = 0;
    return true;
}

/* ---- queries ---- */

static int bad(enum reply_code which, const char *text, enum reply_code *code, const char **why) {
    *code = which;
    *why = text;
    return ERR_BAD;
}

static bool read_options(struct reader *r) {
    bool root = read_u8(r) == 0, options = read_u16(r) == TYPE_OPT;
    read_u16(r); /* what the client would take: no answer of ours is longer than the least */
    uint32_t flags = read_u32(r);
    uint16_t n = read_u16(r);
    read_bytes(r, n);
    return !r->bad && root && options && (flags >> 16 & 0xff) == 0;
}

static int read_question(struct reader *r, struct dns_query *q, enum reply_code *code,
                         const char **why) {
    struct view before = r->rest;
    bool named = read_name(r, q->name);
    q->type = read_u16(r);
    uint16_t class = read_u16(r);
    if (!named || r->bad)
        return bad(REPLY_MALFORMED, "the question's name is not well-formed", code, why);
    q->n_question = before.n - r->rest.n;
    memcpy(q->question, before.p, q->n_question);
    return class == CLASS_IN ? 0 : bad(REPLY_REFUSED, "a class other than IN", code, why);
}

int dns_query_read(struct view bytes, struct dns_query *q, enum reply_code *code,
                   const char **why) {
    struct reader r = reader_of(bytes);
    *q = (struct dns_query){.id = read_u16(&r)};
    uint16_t flags = read_u16(&r), questions = read_u16(&r), answers = read_u16(&r),
             authorities = read_u16(&r), others = read_u16(&r);
    if (r.bad || flags & IS_ANSWER)
        return ERR_DENIED;
    q->recursion = (flags & RECURSION_WANTED) != 0;
    if (flags & OPCODE)
        return bad(REPLY_NOT_OFFERED, "an operation other than a query", code, why);
    if (bytes.n > QUERY_BYTES_MAX)
        return bad(REPLY_MALFORMED, "the query is too long", code, why);
    if (questions != 1 || answers != 0 || authorities != 0 || others > 1)
        return bad(REPLY_MALFORMED, "not one question and nothing else", code, why);
    int result = read_question(&r, q, code, why);
    if (result != 0)
        return result;
    q->has_options = others == 1;
    if (q->has_options && !read_options(&r))
        return bad(REPLY_MALFORMED, "the one other record is no OPT of version 0", code, why);
    return read_done(&r) ? 0 : bad(REPLY_MALFORMED, "bytes behind the query", code, why);
}

/* ---- answers ---- */

static void put_address(struct buf *out, const struct address *a, uint32_t ttl) {
    uint16_t n = a->family == 4 ? 4 : 16;
    buf_put_u16(out, OFFSET_QUESTION);
    buf_put_u16(out, a->family == 4 ? QUERY_A : QUERY_AAAA);
    buf_put_u16(out, CLASS_IN);
    buf_put_u32(out, ttl);
    buf_put_u16(out, n);
    buf_put(out, view_of(a->bytes, n));
}

static void put_options(struct buf *out, struct view text) {
    text = view_head(text, REPLY_TEXT_MAX);
    buf_put_u8(out, 0);
    buf_put_u16(out, TYPE_OPT);
    buf_put_u16(out, PAYLOAD);
    buf_put_u32(out, 0);
    buf_put_u16(out, view_is_empty(text) ? 0 : (uint16_t)(6 + text.n));
    if (view_is_empty(text))
        return;
    buf_put_u16(out, OPTION_ERROR);
    buf_put_u16(out, (uint16_t)(2 + text.n));
    buf_put_u16(out, ERROR_BLOCKED);
    buf_put(out, text);
}

void dns_reply_write(struct buf *out, const struct dns_query *q, const struct dns_reply *a) {
    unsigned flags = IS_ANSWER | RECURSION_OFFERED | (unsigned)a->code;
    size_t n = a->n < REPLY_ADDRESSES_MAX ? a->n : REPLY_ADDRESSES_MAX;
    buf_put_u16(out, q->id);
    buf_put_u16(out, (uint16_t)(q->recursion ? flags | RECURSION_WANTED : flags));
    buf_put_u16(out, q->n_question > 0);
    buf_put_u16(out, q->n_question > 0 ? (uint16_t)n : 0);
    buf_put_u16(out, 0);
    buf_put_u16(out, q->has_options);
    buf_put(out, view_of(q->question, q->n_question));
    for (size_t i = 0; q->n_question > 0 && i < n; i++)
        put_address(out, &a->addresses[i], a->ttl);
    if (q->has_options)
        put_options(out, a->text);
}

const char *dns_query_type_name(uint16_t type, char out[12]) {
    static const struct {
        uint16_t type;
        const char *name;
    } names[] = {{QUERY_A, "A"}, {2, "NS"},    {5, "CNAME"},  {6, "SOA"},
                 {12, "PTR"},    {15, "MX"},   {16, "TXT"},   {QUERY_AAAA, "AAAA"},
                 {33, "SRV"},    {64, "SVCB"}, {65, "HTTPS"}, {255, "ANY"}};
    for (size_t i = 0; i < sizeof names / sizeof *names; i++)
        if (names[i].type == type)
            return names[i].name;
    snprintf(out, 12, "TYPE%u", type);
    return out;
}
