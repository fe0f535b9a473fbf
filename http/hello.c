#include "http/hello.h"

#include <string.h>

enum {
    RECORD_HANDSHAKE = 22,
    RECORD_HEADER = 5,
    RECORD_MAX = 1 << 14,
    RECORDS_MAX = 64, /* bounds the work of calls that each bring one byte */
    HANDSHAKE_HEADER = 4,
    HANDSHAKE_CLIENT_HELLO = 1,
    EXTENSION_SNI = 0,
    EXTENSION_ALPN = 16,
    EXTENSION_ECH = 0xfe0d,
    SESSION_ID_MAX = 32,
};

bool hello_starts(uint8_t first) {
    return first == RECORD_HANDSHAKE;
}

static int refuse(const char **why, const char *text) {
    *why = text;
    return ERR_BAD;
}

/* ---- handshake bytes, taken out of their records one after another ---- */

struct stream {
    struct view records;  /* those not begun, the last perhaps not whole */
    struct view fragment; /* unread part of the current one */
    size_t absent;        /* bytes of the current one that have not come yet */
    size_t n_records;
};

/* Begins the next record: 0, ERR_AGAIN, ERR_BAD. */
static int next_record(struct stream *s, const char **why) {
    struct view v = s->records;
    if (v.n > 0 && v.p[0] != RECORD_HANDSHAKE)
        return refuse(why, "not a TLS handshake record");
    if (v.n > 1 && v.p[1] != 3)
        return refuse(why, "a record version that is not TLS");
    if (v.n < RECORD_HEADER)
        return ERR_AGAIN;
    size_t n = (size_t)v.p[3] << 8 | v.p[4];
    if (n == 0 || n > RECORD_MAX)
        return refuse(why, "a record that is empty or too long");
    if (s->n_records++ == RECORDS_MAX)
        return refuse(why, "a hello in too many records");
    s->fragment = view_slice(v, RECORD_HEADER, RECORD_HEADER + n);
    s->records = view_skip(v, RECORD_HEADER + n);
    s->absent = n - s->fragment.n;
    return s->fragment.n == n ? 0 : ERR_AGAIN;
}

/* Copies the next n bytes to p, or passes them when p is NULL. Records that are not whole count too. */
static int pass(struct stream *s, uint8_t *p, size_t n, const char **why) {
    while (n > 0) {
        if (s->fragment.n == 0) {
            int err = next_record(s, why);
            if (err == ERR_BAD || (err == ERR_AGAIN && s->fragment.n == 0))
                return err;
        }
        struct view part = view_head(s->fragment, n);
        if (p) {
            view_copy(part, p);
            p += part.n;
        }
        s->fragment = view_skip(s->fragment, part.n);
        n -= part.n;
    }
    return 0;
}

/* Finds out whether the message is whole; *length is that of its body. */
static int find_end(struct view bytes, size_t max, size_t *length, size_t *size, const char **why) {
    struct stream s = {.records = view_head(bytes, max)};
    uint8_t header[HANDSHAKE_HEADER];
    int err = pass(&s, header, 1, why);
    if (err == 0 && header[0] != HANDSHAKE_CLIENT_HELLO)
        return refuse(why, "a handshake that does not begin with a ClientHello");
    if (err == 0)
        err = pass(&s, header + 1, sizeof header - 1, why);
    if (err == 0) {
        *length = (size_t)header[1] << 16 | (size_t)header[2] << 8 | header[3];
        if (*length > max)
            return ERR_LIMIT;
        err = pass(&s, NULL, *length, why);
    }
    if (err == ERR_AGAIN)
        return bytes.n >= max ? ERR_LIMIT : ERR_AGAIN;
    if (err == 0 && s.fragment.n + s.absent > 0)
        return refuse(why, "bytes behind the ClientHello");
    *size = view_head(bytes, max).n - s.records.n;
    return err;
}

/* ---- the message: bytes of the body, with the end of what encloses them ---- */

struct body {
    struct stream s;
    size_t left;
    const char **why;
    bool bad;
};

static void take(struct body *b, uint8_t *p, size_t n) {
    if (b->bad || n > b->left || pass(&b->s, p, n, b->why) != 0) {
        if (!b->bad)
            *b->why = "a length that lies";
        b->bad = true;
        if (p)
            memset(p, 0, n);
        return;
    }
    b->left -= n;
}

static unsigned take_u8(struct body *b) {
    uint8_t p[1];
    take(b, p, sizeof p);
    return p[0];
}

static unsigned take_u16(struct body *b) {
    uint8_t p[2];
    take(b, p, sizeof p);
    return (unsigned)p[0] << 8 | p[1];
}

static void fail(struct body *b, const char *why) {
    if (!b->bad)
        *b->why = why;
    b->bad = true;
}

/* The part of b that is n bytes long, with the same place in the records. */
static struct body part_of(struct body *b, size_t n) {
    struct body part = *b;
    take(b, NULL, n);
    part.left = b->bad ? 0 : n;
    part.bad = b->bad;
    return part;
}

/* ---- extensions ---- */

/* RFC 6066 3: a literal address is no name. */
static bool is_address(const char *name) {
    return strspn(name, "0123456789.") == strlen(name) || strchr(name, ':');
}

static void read_sni(struct body *b, struct hello *out) {
    size_t list = take_u16(b);
    if (list != b->left || list == 0)
        fail(b, "an SNI list whose length lies");
    if (take_u8(b) != 0)
        fail(b, "an SNI of an unknown type");
    size_t n = take_u16(b);
    if (n == 0 || n >= sizeof out->sni)
        fail(b, "an SNI that is empty or too long");
    if (b->bad)
        return;
    take(b, (uint8_t *)out->sni, n);
    out->sni[n] = 0;
    for (size_t i = 0; i < n && !b->bad; i++)
        if (out->sni[i] <= ' ' || out->sni[i] >= 0x7f)
            fail(b, "an SNI with a byte that no name has");
    if (b->left > 0)
        fail(b, "an SNI that is not alone");
    if (!b->bad && is_address(out->sni))
        fail(b, "an SNI that is an address");
    out->has_sni = true;
}

static void read_protocol(struct body *b, struct hello *out) {
    uint8_t name[8];
    size_t n = take_u8(b);
    if (n == 0)
        fail(b, "an empty protocol name");
    if (n > sizeof name) {
        take(b, NULL, n);
        return;
    }
    take(b, name, n);
    out->alpn_http1 |= view_equal(view_of(name, n), VIEW("http/1.1"));
    out->alpn_h2 |= view_equal(view_of(name, n), VIEW("h2"));
}

static void read_alpn(struct body *b, struct hello *out) {
    size_t list = take_u16(b);
    if (list != b->left || list == 0)
        fail(b, "a protocol list that is empty, or whose length lies");
    while (b->left > 0 && !b->bad)
        read_protocol(b, out);
    out->has_alpn = true;
}

static void read_extension(struct body *b, struct hello *out) {
    unsigned type = take_u16(b);
    struct body part = part_of(b, take_u16(b));
    bool again = (type == EXTENSION_SNI && out->has_sni) ||
                 (type == EXTENSION_ALPN && out->has_alpn) ||
                 (type == EXTENSION_ECH && out->has_ech);
    if (again)
        fail(b, "an extension twice");
    if (b->bad)
        return;
    if (type == EXTENSION_SNI)
        read_sni(&part, out);
    if (type == EXTENSION_ALPN)
        read_alpn(&part, out);
    if (type == EXTENSION_ECH)
        out->has_ech = true;
    b->bad = part.bad;
}

static void read_extensions(struct body *b, struct hello *out) {
    if (b->left == 0)
        return;
    size_t n = take_u16(b);
    if (n != b->left)
        fail(b, "extensions whose length lies");
    while (b->left > 0 && !b->bad)
        read_extension(b, out);
}

static void read_fixed_part(struct body *b) {
    if (take_u8(b) != 3)
        fail(b, "a version that is not TLS");
    take(b, NULL, 1 + 32); /* minor version, random */
    size_t n = take_u8(b);
    if (n > SESSION_ID_MAX)
        fail(b, "a session id that is too long");
    take(b, NULL, n);
    n = take_u16(b);
    if (n == 0 || n % 2 != 0)
        fail(b, "a cipher list whose length lies");
    take(b, NULL, n);
    n = take_u8(b);
    if (n == 0)
        fail(b, "no compression method");
    take(b, NULL, n);
}

int hello_read(struct view bytes, size_t max, struct hello *out, const char **why) {
    size_t length = 0;
    memset(out, 0, sizeof *out);
    *why = "";
    int err = find_end(bytes, max, &length, &out->size, why);
    if (err != 0)
        return err;
    struct body b = {.s = {.records = bytes}, .left = HANDSHAKE_HEADER + length, .why = why};
    take(&b, NULL, HANDSHAKE_HEADER);
    read_fixed_part(&b);
    read_extensions(&b, out);
    return b.bad ? ERR_BAD : 0;
}
