#include "proxy/say.h"

#include "egress/lane_messages.h"

static const struct view proxy_authorization = {(const uint8_t *)"proxy-authorization", 19};

static uint8_t at_most_255(size_t n) {
    return n < 255 ? (uint8_t)n : 255;
}

static struct view text(const char *s) {
    return view_head(view_str(s), LANE_TEXT_MAX);
}

/* ---- tunnels ---- */

static void put_other_fields(struct buf *b, const struct fields *f) {
    size_t at = buf_len(b);
    buf_put_u32(b, 0);
    for (size_t i = 0; f && i < f->n; i++) {
        if (view_equal(f->at[i].name, proxy_authorization))
            continue;
        if (buf_len(b) > at + 4)
            buf_put_u8(b, '\n');
        buf_put(b, f->at[i].name);
        buf_put(b, VIEW(": "));
        buf_put(b, f->at[i].value);
    }
    if (buf_ok(b))
        buf_patch_u32(b, at, (uint32_t)(buf_len(b) - at - 4));
}

void say_open(struct client *c, const struct opening *o) {
    struct buf *b = channel_begin(c->proxy->lane, LANE_OPEN, c->tunnel, 0);
    c->told = true;
    buf_put_block(b, o->authority);
    buf_put_block(b, o->token);
    buf_put_u8(b, at_most_255(o->n_tokens));
    put_other_fields(b, o->fields);
    buf_put_u8(b, o->placeholder_dropped);
    buf_put_block(b, view_str(c->peer));
    buf_put_u8(b, (uint8_t)c->way);
    buf_put_u8(b, o->tls);
    buf_put_block(b, view_str(c->meant));
    channel_end(c->proxy->lane);
}

void say_hello(struct client *c, bool has_sni, struct view sni, bool has_ech) {
    struct buf *b = channel_begin(c->proxy->lane, LANE_HELLO, c->tunnel, 0);
    buf_put_u8(b, has_sni);
    buf_put_block(b, sni);
    buf_put_u8(b, has_ech);
    channel_end(c->proxy->lane);
}

void say_failed(struct client *c, enum reason why, const char *detail) {
    struct buf *b = channel_begin(c->proxy->lane, LANE_FAILED, c->tunnel, 0);
    buf_put_u16(b, (uint16_t)why);
    buf_put_block(b, text(detail));
    channel_end(c->proxy->lane);
}

void say_close(struct client *c) {
    channel_send(c->proxy->lane, LANE_CLOSE, c->tunnel, 0, (struct view){NULL, 0});
}

void say_raw(struct client *c, struct view v) {
    channel_send(c->proxy->lane, LANE_RAW, c->tunnel, 0, v);
}

void say_raw_end(struct client *c) {
    channel_send(c->proxy->lane, LANE_RAW_END, c->tunnel, 0, (struct view){NULL, 0});
}

static void say_passed(struct proxy *p, uint16_t type, uint32_t id, size_t n) {
    struct buf *b = channel_begin(p->lane, type, id, 0);
    buf_put_u32(b, (uint32_t)n);
    channel_end(p->lane);
}

void say_raw_credit(struct client *c, size_t n) {
    say_passed(c->proxy, LANE_RAW_CREDIT, c->tunnel, n);
}

/* ---- names ---- */

void say_lookup(struct proxy *p, uint32_t id, const struct dns_query *q, struct view peer,
                struct view meant, enum reason why, const char *detail) {
    struct buf *b = channel_begin(p->lane, LANE_LOOKUP, id, 0);
    buf_put_block(b, view_str(q->name));
    buf_put_u16(b, q->type);
    buf_put_block(b, peer);
    buf_put_block(b, meant);
    buf_put_u16(b, (uint16_t)why);
    buf_put_block(b, text(detail));
    channel_end(p->lane);
}

void say_refused_datagram(struct proxy *p, struct view peer, struct view meant) {
    struct buf *b = channel_begin(p->lane, LANE_DATAGRAM, 0, 0);
    buf_put_block(b, peer);
    buf_put_block(b, meant);
    channel_end(p->lane);
}

/* ---- exchanges ---- */

/* The head without Proxy-Authorization, which is for us and not for the upstream. */
static const struct request_head *without_token(struct proxy *p, const struct request_head *h,
                                                size_t n_tokens) {
    if (n_tokens == 0)
        return h;
    p->request = *h;
    fields_remove(&p->request.fields, proxy_authorization);
    return &p->request;
}

void say_request(struct client *c, uint32_t id, const struct request_head *h) {
    struct view token = {NULL, 0};
    size_t n_tokens = fields_find(&h->fields, proxy_authorization, &token);
    struct buf *b = channel_begin(c->proxy->lane, LANE_REQUEST, id, 0);
    buf_put_u32(b, c->tunnel);
    buf_put_u8(b, c->wire.tls != NULL);
    buf_put_u8(b, at_most_255(n_tokens));
    buf_put_block(b, c->tunnel == 0 ? token : (struct view){NULL, 0});
    buf_put_block(b, view_str(c->peer));
    request_write(without_token(c->proxy, h, n_tokens), b);
    channel_end(c->proxy->lane);
}

void say_body(struct proxy *p, uint32_t id, struct view v) {
    channel_send(p->lane, LANE_BODY, id, 0, v);
}

void say_end(struct proxy *p, uint32_t id, const struct fields *trailers) {
    struct buf *b = channel_begin(p->lane, LANE_END, id, 0);
    for (size_t i = 0; i < trailers->n; i++) {
        buf_put(b, trailers->at[i].name);
        buf_put_u8(b, ':');
        buf_put(b, trailers->at[i].value);
        buf_put_u8(b, '\n');
    }
    channel_end(p->lane);
}

void say_gone(struct proxy *p, uint32_t id, enum reason why, const char *detail) {
    struct buf *b = channel_begin(p->lane, LANE_GONE, id, 0);
    buf_put_u16(b, (uint16_t)why);
    buf_put_block(b, text(detail));
    channel_end(p->lane);
}

void say_credit(struct proxy *p, uint32_t id, size_t n) {
    say_passed(p, LANE_CREDIT, id, n);
}

void say_malformed(struct client *c, uint32_t id, uint16_t status, enum reason why,
                   const char *detail, struct view bytes) {
    struct buf *b = channel_begin(c->proxy->lane, LANE_MALFORMED, id, 0);
    buf_put_u32(b, c->tunnel);
    buf_put_u16(b, status);
    buf_put_u16(b, (uint16_t)why);
    buf_put_block(b, text(detail));
    buf_put_block(b, view_head(bytes, SAY_BYTES_MAX));
    buf_put_block(b, view_str(c->peer));
    buf_put_u8(b, (uint8_t)c->way);
    buf_put_block(b, view_str(c->meant));
    c->told = true;
    channel_end(c->proxy->lane);
}
