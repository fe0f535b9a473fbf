#include "proxy/intake.h"

#include "http/hello.h"
#include "http/proxy_v2.h"
#include "http/socks.h"
#include "proxy/gate.h"
#include "proxy/relay.h"
#include "proxy/say.h"

#include <stdio.h>

/* ---- who it is ---- */

/* Of what it sent nothing is recorded: it may be a request with credentials. */
static enum client_step refuse_unread(struct client *c, uint16_t status, const char *why) {
    struct view nothing = {NULL, 0};
    return relay_refuse(c, status, why, &nothing);
}

void intake_admit(struct client *c, enum admitted admitted) {
    if (admitted == ADMITTED_RELAY)
        client_enter(c, CLIENT_RELAYED);
    else
        refuse_unread(c, 403, ADMISSION_REFUSED);
    client_wake(c);
}

static void name_client(struct client *c, const struct proxy_v2 *header) {
    char text[ADDRESS_TEXT_SIZE];
    address_format(&header->client, text);
    snprintf(c->peer, sizeof c->peer, header->client.family == 4 ? "%s:%u" : "[%s]:%u", text,
             header->port);
}

enum client_step intake_relayed(struct client *c, struct view *input) {
    struct proxy_v2 header;
    const char *why;
    size_t used = input->n;
    int result = proxy_v2_read(*input, &used, &header, &why);
    if (result == ERR_AGAIN)
        return STEP_WAIT;
    *input = view_skip(*input, used);
    if (result != 0)
        return refuse_unread(c, 400, why);
    if (header.has_client)
        name_client(c, &header);
    client_enter(c, CLIENT_FIRST);
    return STEP_NEXT;
}

void intake_relayed_ended(struct client *c) {
    /* A relay that looks whether somebody is here. */
    if (buf_len(&c->in) == 0) {
        client_drop(c);
        return;
    }
    buf_reset(&c->in);
    refuse_unread(c, 400, "a PROXY header that is not whole");
}

/* ---- what it wants ---- */

/* Nothing here speaks TLS before a CONNECT: say so in the client's own protocol. */
static enum client_step refuse_tls(struct client *c, struct view *input) {
    uint32_t id = ++c->proxy->last_exchange;
    say_malformed(c, id, 400, REASON_MALFORMED_REQUEST, "TLS without a CONNECT before it", *input);
    *input = view_skip(*input, input->n);
    gate_put_alert(c, ALERT_UNEXPECTED_MESSAGE);
    client_shut(c);
    return STEP_WAIT;
}

static const char *cannot_say(const struct request_head *h, uint16_t *status) {
    struct view token = {NULL, 0};
    fields_find(&h->fields, VIEW("proxy-authorization"), &token);
    if (token.n > SAY_TEXT_MAX) {
        *status = 431;
        return "Proxy-Authorization is too long";
    }
    if (h->authority.n > SAY_TEXT_MAX) {
        *status = 414;
        return "the authority is too long";
    }
    return NULL;
}

/* A whole head is there. input still holds it, since its views point there. */
static enum client_step begin(struct client *c, struct view *input, size_t used) {
    const struct request_head *h = http1_request(c->parser);
    bool connect = h->form == FORM_AUTHORITY, inside = c->tunnel != 0;
    bool transparent = c->way == LANE_WAY_TRANSPARENT;
    struct view name = h->form == FORM_ABSOLUTE ? h->authority : h->host;
    uint16_t status = 400;
    const char *why = cannot_say(h, &status);
    if (!why && connect && inside) {
        status = 405;
        why = "CONNECT inside a tunnel";
    }
    if (!why && transparent && name.n > SAY_TEXT_MAX)
        why = "Host is too long";
    if (!why && transparent && connect) {
        status = 405;
        why = "CONNECT on a connection that is not to the proxy";
    }
    if (!why && !inside && !connect && !transparent && h->form != FORM_ABSOLUTE)
        why = "neither CONNECT nor an absolute target outside a tunnel";
    if (why)
        return relay_refuse(c, status, why, input);
    if (transparent && !inside) {
        /* The head stays where it is, and is read again as one inside the tunnel. */
        gate_open_transparent(c, name, false);
        return STEP_WAIT;
    }
    if (connect)
        gate_open(c, h);
    else
        relay_begin(c, h);
    *input = view_skip(*input, used);
    return STEP_NEXT;
}

enum client_step intake_first(struct client *c, struct view *input) {
    if (input->n == 0)
        return STEP_WAIT;
    if (c->door == WAY_TRANSPARENT)
        client_enter(c, CLIENT_SNIFF);
    else if (c->door == WAY_DNS_TCP)
        client_enter(c, CLIENT_DNS);
    else if (hello_starts(input->p[0]))
        return refuse_tls(c, input);
    else if (proxy_v2_starts(*input))
        return relay_refuse(c, 400, "a PROXY header of a peer that `proxy-protocol` does not name",
                            input);
    else if (input->p[0] == SOCKS_VERSION)
        client_enter(c, CLIENT_SOCKS);
    else
        client_enter(c, CLIENT_HEAD);
    return STEP_NEXT;
}

enum client_step intake_step(struct client *c, struct view *input) {
    if (input->n == 0)
        return STEP_WAIT;
    if (c->state != CLIENT_HEAD)
        client_enter(c, CLIENT_HEAD);
    struct http1 *parser = client_parser(c);
    if (!parser) {
        client_drop(c);
        return STEP_WAIT;
    }
    struct http1_event e = http1_next(parser, *input);
    switch (e.what) {
    case HTTP1_MORE:
        *input = view_skip(*input, e.used);
        return STEP_WAIT;
    case HTTP1_HEAD:
        return begin(c, input, e.used);
    case HTTP1_BAD:
        return relay_refuse(c, e.status, e.why, input);
    case HTTP1_BODY:
    case HTTP1_END:
        break;
    }
    return relay_refuse(c, 400, "a body without a head", input);
}

void intake_ended(struct client *c) {
    struct view input = buf_view(&c->in);
    relay_refuse(c, 400, "the input ended inside a head", &input);
    buf_reset(&c->in);
}

void intake_late(struct client *c) {
    struct view input = buf_view(&c->in);
    relay_refuse(c, 408, "the head took too long", &input);
    buf_reset(&c->in);
}
