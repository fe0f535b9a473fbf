#include "http/message.h"

#include "http/known.h"
#include "http/strict.h"

#include <stddef.h>
#include <string.h>

/* ---- fields ---- */

size_t fields_find(const struct fields *f, struct view name, struct view *value) {
    size_t found = 0;
    for (size_t i = 0; i < f->n; i++) {
        if (!view_equal(f->at[i].name, name))
            continue;
        if (found == 0 && value)
            *value = f->at[i].value;
        found++;
    }
    return found;
}

int fields_add(struct fields *f, struct view name, struct view value) {
    if (f->n == FIELDS_MAX)
        return ERR_LIMIT;
    f->at[f->n++] = (struct field){name, value};
    return 0;
}

static bool is_any_of(struct view name, const struct view *names, size_t n) {
    for (size_t i = 0; i < n; i++)
        if (names[i].n == name.n && view_equal(names[i], name))
            return true;
    return false;
}

size_t fields_remove_any(struct fields *f, const struct view *names, size_t n) {
    size_t kept = 0;
    for (size_t i = 0; i < f->n; i++)
        if (!is_any_of(f->at[i].name, names, n))
            f->at[kept++] = f->at[i];
    size_t removed = f->n - kept;
    f->n = kept;
    return removed;
}

size_t fields_remove(struct fields *f, struct view name) {
    return fields_remove_any(f, &name, 1);
}

/* ---- the binary form ---- */

enum { PART_MAX = 1 << 20 }; /* no single part is longer; the channel bounds the whole */

/* Bits of a head's one byte of flags. */
enum {
    FLAG_HTTPS = 1,
    FLAG_HAS_HOST = 2,
    FLAG_EXPECT = 4,
    FLAG_KEEP_ALIVE = 8,
    FLAG_UPGRADE = 16,
    FLAG_HAS_LENGTH = 32,
    FLAG_PLACEHOLDER = 64,
    REQUEST_FLAGS = FLAG_HTTPS | FLAG_HAS_HOST | FLAG_EXPECT | FLAG_KEEP_ALIVE | FLAG_UPGRADE |
                    FLAG_PLACEHOLDER,
    ANSWER_FLAGS = FLAG_KEEP_ALIVE | FLAG_HAS_LENGTH,
};

static void write_fields(const struct fields *f, struct buf *out) {
    buf_put_u16(out, (uint16_t)f->n);
    for (size_t i = 0; i < f->n; i++) {
        buf_put_block(out, f->at[i].name);
        buf_put_block(out, f->at[i].value);
    }
}

static bool field_fits(enum known k, bool request, uint32_t *seen) {
    if (known_is_taken(k) || k == KNOWN_PROXY_AUTHORIZATION)
        return false;
    if (!request)
        return true;
    if (k == KNOWN_PROXY_AUTHENTICATE || (known_is_single(k) && (*seen & 1u << k)))
        return false;
    *seen |= 1u << k;
    return true;
}

static int read_fields(struct reader *r, bool request, struct fields *f) {
    uint32_t seen = 0;
    size_t n = read_u16(r);
    f->n = 0;
    if (r->bad || n > FIELDS_MAX)
        return ERR_BAD;
    for (size_t i = 0; i < n; i++) {
        struct view name = read_block(r, PART_MAX), value = read_block(r, PART_MAX);
        if (r->bad || !strict_is_name(name) || !strict_is_value(value) ||
            !field_fits(known_field(name), request, &seen))
            return ERR_BAD;
        f->at[f->n++] = (struct field){name, value};
    }
    return 0;
}

static bool length_fits(enum framing framing, uint64_t length) {
    return framing == FRAMING_LENGTH ? length <= INT64_MAX : length == 0;
}

/* ---- requests ---- */

void request_write(const struct request_head *h, struct buf *out) {
    buf_put_u8(out, (uint8_t)h->form);
    buf_put_u8(out, h->minor);
    buf_put_u8(out, (uint8_t)h->framing);
    buf_put_u8(out,
               (uint8_t)((h->https ? FLAG_HTTPS : 0) | (h->has_host ? FLAG_HAS_HOST : 0) |
                         (h->expect_continue ? FLAG_EXPECT : 0) |
                         (h->keep_alive ? FLAG_KEEP_ALIVE : 0) | (h->upgrade ? FLAG_UPGRADE : 0) |
                         (h->placeholder_dropped ? FLAG_PLACEHOLDER : 0)));
    buf_put_u64(out, h->length);
    buf_put_block(out, h->method);
    buf_put_block(out, h->authority);
    buf_put_block(out, h->host);
    buf_put_block(out, h->target);
    write_fields(&h->fields, out);
}

static bool is_path(struct view target) {
    return strict_is_target(target) && target.p[0] == '/';
}

static bool form_fits(const struct request_head *h) {
    bool connect = view_equal(h->method, VIEW("CONNECT"));
    switch (h->form) {
    case FORM_ORIGIN:
        return !connect && !h->https && h->authority.n == 0 && is_path(h->target);
    case FORM_ABSOLUTE:
        return !connect && strict_is_authority(h->authority) &&
               (h->target.n == 0 || is_path(h->target));
    case FORM_AUTHORITY:
        return connect && !h->https && strict_is_authority(h->authority) && h->target.n == 0 &&
               h->framing == FRAMING_NONE;
    case FORM_ASTERISK:
        return view_equal(h->method, VIEW("OPTIONS")) && !h->https && h->authority.n == 0 &&
               view_equal(h->target, VIEW("*"));
    }
    return false;
}

static bool host_fits(const struct request_head *h) {
    if (h->has_host)
        return strict_is_authority(h->host);
    return h->host.n == 0 && h->minor == 0;
}

static bool request_framing_fits(const struct request_head *h) {
    bool body = h->framing == FRAMING_CHUNKED || h->length > 0;
    if (h->framing == FRAMING_CLOSE || !length_fits(h->framing, h->length))
        return false;
    if (h->minor == 0)
        return h->framing != FRAMING_CHUNKED && !h->keep_alive && !h->expect_continue;
    return body || !h->expect_continue;
}

static int read_request_start(struct reader *r, struct request_head *out) {
    uint8_t form = read_u8(r), minor = read_u8(r), framing = read_u8(r), flags = read_u8(r);
    if (r->bad || form > FORM_ASTERISK || minor > 1 || framing > FRAMING_CLOSE ||
        (flags & ~REQUEST_FLAGS))
        return ERR_BAD;
    out->form = (enum form)form;
    out->minor = minor;
    out->framing = (enum framing)framing;
    out->https = flags & FLAG_HTTPS;
    out->has_host = flags & FLAG_HAS_HOST;
    out->expect_continue = flags & FLAG_EXPECT;
    out->keep_alive = flags & FLAG_KEEP_ALIVE;
    out->upgrade = flags & FLAG_UPGRADE;
    out->placeholder_dropped = flags & FLAG_PLACEHOLDER;
    out->length = read_u64(r);
    return 0;
}

int request_read(struct reader *r, struct request_head *out) {
    if (read_request_start(r, out) != 0)
        return ERR_BAD;
    out->method = read_block(r, METHOD_MAX);
    out->authority = read_block(r, PART_MAX);
    out->host = read_block(r, PART_MAX);
    out->target = read_block(r, PART_MAX);
    if (r->bad || !strict_is_token(out->method) || !form_fits(out) || !host_fits(out) ||
        !request_framing_fits(out))
        return ERR_BAD;
    return read_fields(r, true, &out->fields);
}

/* ---- answers ---- */

void answer_write(const struct answer_head *h, struct buf *out) {
    buf_put_u16(out, h->status);
    buf_put_u8(out, h->minor);
    buf_put_u8(out, (uint8_t)h->framing);
    buf_put_u8(out, (uint8_t)((h->keep_alive ? FLAG_KEEP_ALIVE : 0) |
                              (h->has_length ? FLAG_HAS_LENGTH : 0)));
    buf_put_u64(out, h->length);
    write_fields(&h->fields, out);
}

void answer_copy(const struct answer_head *h, struct answer_head *out) {
    memcpy(out, h, offsetof(struct answer_head, fields));
    out->fields.n = h->fields.n;
    memcpy(out->fields.at, h->fields.at, h->fields.n * sizeof *h->fields.at);
}

static bool answer_framing_fits(const struct answer_head *h) {
    if (h->has_length)
        return h->framing == FRAMING_NONE && h->length <= INT64_MAX && h->status >= 200 &&
               h->status != 204;
    if (h->status < 200 || h->status == 204 || h->status == 304)
        return h->framing == FRAMING_NONE && h->length == 0;
    return length_fits(h->framing, h->length);
}

int answer_read(struct reader *r, struct answer_head *out) {
    uint16_t status = read_u16(r);
    uint8_t minor = read_u8(r), framing = read_u8(r), flags = read_u8(r);
    uint64_t length = read_u64(r);
    if (r->bad || status < 100 || status > 599 || status == 101 || minor > 1 ||
        framing > FRAMING_CLOSE || (flags & ~ANSWER_FLAGS))
        return ERR_BAD;
    out->status = status;
    out->minor = minor;
    out->framing = (enum framing)framing;
    out->length = length;
    out->has_length = flags & FLAG_HAS_LENGTH;
    out->keep_alive = flags & FLAG_KEEP_ALIVE;
    if (!answer_framing_fits(out))
        return ERR_BAD;
    return read_fields(r, false, &out->fields);
}
