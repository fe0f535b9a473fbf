#include "proxy/gate.h"

#include "base/openssl_memory.h"
#include "http/hello.h"
#include "http/socks.h"
#include "http/ssh.h"
#include "proxy/say.h"

#include <stdio.h>

enum { SNIFF_METHOD_MAX = 32 };

/* ---- what is spoken ---- */

/*
 * A method is letters, perhaps with hyphens, and a space behind it. A banner like SSH's, which
 * begins with letters too, has digits and dots before its first space.
 */
static int starts_http(struct view v) {
    size_t i = 0;
    while (i < v.n && i < SNIFF_METHOD_MAX && (is_alpha(v.p[i]) || (i > 0 && v.p[i] == '-')))
        i++;
    if (i == v.n && i < SNIFF_METHOD_MAX)
        return ERR_AGAIN;
    return i > 0 && i < v.n && v.p[i] == ' ' ? 0 : ERR_BAD;
}

/* ---- opening ---- */

static void open_tunnel(struct client *c, const struct opening *o) {
    struct proxy *p = c->proxy;
    uint32_t id = ++p->last_tunnel;
    if (table_put(&p->tunnels, id, c) != 0) {
        client_drop(c);
        return;
    }
    c->tunnel = id;
    say_open(c, o);
    client_parser_done(c);
    client_enter(c, CLIENT_OPENING);
}

void gate_open(struct client *c, const struct request_head *h) {
    struct opening o = {.authority = h->authority,
                        .fields = &h->fields,
                        .placeholder_dropped = h->placeholder_dropped};
    o.n_tokens = fields_find(&h->fields, VIEW("proxy-authorization"), &o.token);
    open_tunnel(c, &o);
}

void gate_open_socks(struct client *c, struct view authority, struct view login) {
    open_tunnel(c,
                &(struct opening){.authority = authority, .token = login, .n_tokens = login.n > 0});
}

void gate_open_transparent(struct client *c, struct view name, bool tls) {
    open_tunnel(c, &(struct opening){.authority = name, .tls = tls});
}

void gate_opened(struct client *c) {
    if (c->state != CLIENT_OPENING)
        return;
    if (c->way == LANE_WAY_CONNECT)
        buf_put(client_out(c), VIEW("HTTP/1.1 200 Connection Established\r\n\r\n"));
    else if (c->way == LANE_WAY_SOCKS)
        socks_put_reply(client_out(c), SOCKS_SUCCEEDED);
    client_enter(c, CLIENT_SNIFF);
    client_wake(c);
}

static void put_answer(struct client *c, struct answer_head *h, struct view body) {
    h->framing = FRAMING_LENGTH;
    h->length = body.n;
    h->has_length = false;
    http1_write_answer(client_out(c), h, false);
    buf_put(client_out(c), body);
}

/* In the words of ssh, whose user sees them. */
static void put_ssh_refusal(struct client *c, const struct answer_head *h) {
    struct view line = VIEW("exeat: SSH cannot leave here");
    char text[SSH_TEXT_MAX];
    if (h)
        fields_find(&h->fields, VIEW(REFUSAL_FIELD), &line);
    int n = snprintf(text, sizeof text,
                     "%.*s. Only HTTPS and HTTP can: use the https:// address of the repository, "
                     "as with git config --global url.https://HOST/.insteadOf ssh://git@HOST/",
                     VIEW_ARG(view_head(line, SSH_TEXT_MAX / 2)));
    ssh_put_refusal(client_out(c), view_of(text, n > 0 ? (size_t)n : 0));
}

/* A transparent client is told in the protocol that it speaks, if that has a way to say it. */
static void put_refusal(struct client *c, struct answer_head *h, struct view body) {
    struct view first = buf_view(&c->in);
    if (first.n > 0 && hello_starts(first.p[0]))
        gate_put_alert(c, h->status == 421 ? ALERT_UNRECOGNIZED_NAME : ALERT_ACCESS_DENIED);
    else if (ssh_starts(first))
        put_ssh_refusal(c, h);
    else if (starts_http(first) == 0)
        put_answer(c, h, body);
}

void gate_refused(struct client *c, struct answer_head *h, struct view body) {
    if (c->state != CLIENT_OPENING)
        return;
    /* Egress keeps nothing of a tunnel that it refused. */
    table_take(&c->proxy->tunnels, c->tunnel);
    c->tunnel = 0;
    if (c->way == LANE_WAY_CONNECT)
        put_answer(c, h, body);
    else if (c->way == LANE_WAY_SOCKS)
        socks_put_reply(client_out(c), socks_reply_of(h->status));
    else
        put_refusal(c, h, body);
    buf_reset(&c->in);
    client_shut(c);
}

/* A transparent connection that ended before it said where to: the attempt gets its record. */
static void tell_of_attempt(struct client *c) {
    if (c->way != LANE_WAY_TRANSPARENT || c->told || c->proxy->lost)
        return;
    c->tunnel = ++c->proxy->last_tunnel;
    say_open(c, &(struct opening){.tls = false});
}

void gate_forget(struct client *c) {
    tell_of_attempt(c);
    if (c->tunnel == 0)
        return;
    say_close(c);
    table_take(&c->proxy->tunnels, c->tunnel);
    c->tunnel = 0;
}

/* ---- the first bytes ---- */

/* Neither TLS nor HTTP. It is refused, but by egress where that has not heard of it, so that it is recorded. */
static enum client_step gate_other(struct client *c, struct view *input) {
    if (c->tunnel == 0) {
        gate_open_transparent(c, (struct view){NULL, 0}, false);
        return STEP_WAIT;
    }
    bool ssh = ssh_starts(*input);
    say_failed(c, REASON_PROTOCOL_NOT_ALLOWED,
               ssh ? "SSH" : "the first bytes are neither TLS nor HTTP");
    *input = view_skip(*input, input->n);
    if (ssh) {
        put_ssh_refusal(c, NULL);
        client_shut(c);
    } else {
        client_drop(c);
    }
    return STEP_WAIT;
}

enum client_step gate_sniff(struct client *c, struct view *input) {
    if (input->n == 0)
        return STEP_WAIT;
    if (hello_starts(input->p[0])) {
        client_enter(c, CLIENT_HELLO);
        return STEP_NEXT;
    }
    switch (starts_http(*input)) {
    case 0:
        client_enter(c, CLIENT_HEAD);
        return STEP_NEXT;
    case ERR_AGAIN:
        return STEP_WAIT;
    default:
        return gate_other(c, input);
    }
}

/* ---- TLS ---- */

void gate_put_alert(struct client *c, uint8_t alert) {
    const uint8_t record[] = {0x15, 3, 3, 0, 2, 2, alert};
    buf_put(client_out(c), view_of(record, sizeof record));
}

static void fail(struct client *c, enum reason why, const char *detail, uint8_t alert) {
    say_failed(c, why, detail);
    gate_put_alert(c, alert);
    client_shut(c);
}

enum client_step gate_hello(struct client *c, struct view *input) {
    struct hello h;
    const char *why;
    int result = hello_read(*input, (size_t)c->proxy->limits.v[LIMIT_HELLO_BYTES], &h, &why);
    if (result == ERR_AGAIN)
        return STEP_WAIT;
    /* Also one that is no name: where the client wanted to go is what is judged and recorded first. */
    struct view sni = h.has_sni ? view_str(h.sni) : (struct view){NULL, 0};
    if (c->tunnel == 0) {
        gate_open_transparent(c, sni, true);
        return STEP_WAIT;
    }
    if (result != 0) {
        *input = view_skip(*input, input->n);
        fail(c, REASON_MALFORMED_HELLO,
             result == ERR_LIMIT ? "a ClientHello that is too long" : why, ALERT_DECODE_ERROR);
        return STEP_WAIT;
    }
    say_hello(c, h.has_sni, sni, h.has_ech);
    client_enter(c, CLIENT_LEAF);
    return STEP_WAIT;
}

static struct tls *start_tls(struct client *c, struct view name, struct view der, struct view chain,
                             uint64_t not_after) {
    struct proxy *p = c->proxy;
    char host[256];
    struct tls_leaf *fresh = NULL;
    const struct tls_leaf *leaf =
        leaf_cache_get(p->leaves, name, der, not_after, clock_wall() / 1000000000u);
    if (view_cstr(name, host, sizeof host) != 0)
        return NULL;
    if (!leaf && der.n > 0)
        leaf = fresh = tls_leaf_new(der, chain);
    if (!leaf)
        return NULL;
    struct tls *tls = tls_accept(p->server, c->wire.fd, leaf, host, buf_view(&c->in));
    if (fresh)
        leaf_cache_put(p->leaves, name, der, not_after, fresh);
    return tls;
}

void gate_leaf(struct client *c, struct view name, struct view leaf, struct view chain,
               uint64_t not_after) {
    if (c->state != CLIENT_LEAF)
        return;
    /* What is still gathered is in clear and must not get into the TLS stream. */
    client_flush(c);
    if (c->state != CLIENT_LEAF || buf_len(&c->wire.out) > 0) {
        client_drop(c);
        return;
    }
    unsigned long refused = openssl_memory_refused();
    c->wire.tls = start_tls(c, name, leaf, chain, not_after);
    if (!c->wire.tls) {
        bool is_short = openssl_memory_refused() != refused;
        fail(c, is_short ? REASON_TOO_MANY : REASON_CLIENT_TLS,
             is_short ? "out of memory" : "the leaf certificate cannot be used",
             ALERT_INTERNAL_ERROR);
        return;
    }
    buf_free(&c->in);
    client_enter(c, CLIENT_HANDSHAKE);
    gate_handshake(c);
    client_wake(c);
}

void gate_alert(struct client *c, uint8_t alert) {
    if (c->state != CLIENT_LEAF)
        return;
    buf_reset(&c->in);
    gate_put_alert(c, alert);
    client_shut(c);
}

void gate_handshake(struct client *c) {
    switch (tls_handshake(c->wire.tls)) {
    case TLS_DONE:
        c->wire.inside = tls_pending(c->wire.tls);
        client_enter(c, CLIENT_IDLE);
        return;
    case TLS_WANT_READ:
        return;
    case TLS_WANT_WRITE:
        wire_await_write(&c->wire);
        return;
    case TLS_WANT_CERTIFICATE:
    case TLS_FAILED:
        say_failed(c, REASON_CLIENT_TLS, tls_error(c->wire.tls));
        client_drop(c);
        return;
    case TLS_NO_MEMORY:
        say_failed(c, REASON_TOO_MANY, tls_error(c->wire.tls));
        client_drop(c);
        return;
    case TLS_EOF:
    case TLS_CUT:
        say_failed(c, REASON_CLIENT_TLS, "the client left during the handshake");
        client_drop(c);
        return;
    }
}

void gate_late(struct client *c) {
    if (c->tunnel != 0)
        say_failed(c, REASON_REQUEST_TIMEOUT, "no TLS session and no request in time");
    client_drop(c);
}
