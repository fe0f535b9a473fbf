#include "proxy/names.h"

#include "base/log.h"
#include "http/dns_query.h"
#include "http/unreachable.h"
#include "policy/admission.h"
#include "policy/authority.h"
#include "proxy/courier.h"
#include "proxy/say.h"

#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

enum {
    ASKING_MAX = 1024, /* questions that egress has; what comes then is dropped, and asked again */
    AT_ONCE = 16,      /* datagrams read for one event */
};
#define SECOND UINT64_C(1000000000)

/* A question that egress has. */
struct asking {
    struct client *client; /* over TCP; NULL: over UDP, or its client is gone */
    int fd;                /* UDP: the courier, */
    uint32_t cookie;       /* and what it calls this */
    uint64_t until;
    struct dns_query query;
    enum reply_code malformed; /* how a malformed one is answered */
};

/* One socket of UDP, behind its courier. */
struct carried {
    struct names *names;
    enum way_in way;
    const struct admission *admission;
    struct event *event;
};

struct names {
    struct proxy *proxy;
    struct table asked; /* id to struct asking */
    bool is_waiting;    /* couriers are not read because the lane is full */
    size_t n;
    struct carried couriers[];
};

/* ---- asking ---- */

static struct asking *ask(struct proxy *p, struct view bytes, struct view peer, struct view meant,
                          bool let_in) {
    struct names *n = p->names;
    struct asking *a = n->asked.n < ASKING_MAX ? calloc(1, sizeof *a) : NULL;
    if (!a)
        return NULL;
    const char *why = NULL;
    int result = dns_query_read(bytes, &a->query, &a->malformed, &why);
    if (result == ERR_DENIED || table_put(&n->asked, ++p->last_lookup, a) != 0) {
        free(a);
        return NULL;
    }
    a->until = loop_now(p->loop) + p->limits.v[LIMIT_ASK_TIME] * SECOND;
    if (!let_in)
        say_lookup(p, p->last_lookup, &a->query, peer, meant, REASON_PEER_NOT_ALLOWED,
                   ADMISSION_REFUSED);
    else if (result != 0)
        say_lookup(p, p->last_lookup, &a->query, peer, meant, REASON_MALFORMED_REQUEST, why);
    else
        say_lookup(p, p->last_lookup, &a->query, peer, meant, REASON_ALLOWED, NULL);
    return a;
}

/* ---- answering ---- */

static int read_reply(struct view body, struct dns_reply *out) {
    struct reader r = reader_of(body);
    out->code = (enum reply_code)read_u8(&r);
    out->ttl = read_u32(&r);
    out->n = read_u8(&r);
    if (out->code > REPLY_REFUSED || out->n > REPLY_ADDRESSES_MAX)
        return ERR_BAD;
    for (size_t i = 0; i < out->n; i++) {
        struct address *a = &out->addresses[i];
        a->family = read_u8(&r);
        view_copy(read_bytes(&r, a->family == 4 ? 4 : 16), a->bytes);
    }
    out->text = read_block(&r, REPLY_TEXT_MAX);
    return read_done(&r) ? 0 : ERR_BAD;
}

static void answer_client(struct client *c, struct view answer) {
    buf_put_u16(client_out(c), (uint16_t)answer.n);
    buf_put(client_out(c), answer);
    client_enter(c, CLIENT_DNS);
    client_wake(c);
}

static void answer_courier(const struct asking *a, struct view answer) {
    struct buf packet;
    buf_init(&packet, COURIER_PACKET_MAX);
    buf_put_u32(&packet, a->cookie);
    buf_put(&packet, answer);
    struct view v = buf_view(&packet);
    /* Full: this one is lost, as datagrams are. */
    if (write(a->fd, v.p, v.n) < 0)
        log_debug("an answer to a datagram is lost");
    buf_free(&packet);
}

int names_found(struct proxy *p, uint32_t id, struct view body) {
    struct dns_reply reply;
    if (read_reply(body, &reply) != 0)
        return ERR_BAD;
    struct asking *a = table_take(&p->names->asked, id);
    if (!a)
        return 0;
    struct buf out;
    buf_init(&out, REPLY_BYTES_MAX);
    if (reply.code == REPLY_MALFORMED)
        reply.code = a->malformed;
    dns_reply_write(&out, &a->query, &reply);
    if (a->client) {
        a->client->asking = NULL;
        answer_client(a->client, buf_view(&out));
    } else if (a->fd >= 0) {
        answer_courier(a, buf_view(&out));
    }
    buf_free(&out);
    free(a);
    return 0;
}

/* ---- TCP ---- */

/* Half-closed behind its last question: that was answered. */
static enum client_step wait_for_question(struct client *c) {
    if (c->wire.ended)
        client_shut(c);
    return STEP_WAIT;
}

enum client_step names_step(struct client *c, struct view *input) {
    if (input->n < 2)
        return wait_for_question(c);
    size_t n = (size_t)input->p[0] << 8 | input->p[1];
    if (n <= QUERY_BYTES_MAX && input->n < 2 + n)
        return wait_for_question(c);
    struct view bytes =
        n <= QUERY_BYTES_MAX ? view_slice(*input, 2, 2 + n) : (struct view){NULL, 0};
    struct asking *a = ask(c->proxy, bytes, view_str(c->peer), view_str(c->meant), true);
    if (!a) {
        *input = view_skip(*input, input->n);
        client_shut(c);
        return STEP_WAIT;
    }
    *input = view_skip(*input, 2 + n);
    a->client = c;
    c->asking = a;
    client_enter(c, CLIENT_LOOKUP);
    return STEP_WAIT;
}

void names_forget(struct client *c) {
    if (!c->asking)
        return;
    c->asking->client = NULL;
    c->asking->fd = -1;
    c->asking = NULL;
}

/* ---- UDP ---- */

static bool is_let_in(const struct carried *c, struct view peer) {
    struct peer who = {.kind = PEER_ADDRESS};
    struct authority a;
    if (!c->admission)
        return true;
    if (authority_parse(peer, 0, &a, NULL) != 0 || a.kind != HOST_ADDRESS)
        return false;
    who.address = a.address;
    return admission_judge(c->admission, &who) == ADMITTED;
}

static void put_end(const struct address *a, uint16_t port, char out[LANE_ADDRESS_MAX]) {
    char text[ADDRESS_TEXT_SIZE];
    address_format(a, text);
    snprintf(out, LANE_ADDRESS_MAX, a->family == 4 ? "%s:%u" : "[%s]:%u", text, port);
}

/* What was meant for a server of its own the sandbox knows without us. */
static void tell_refused(struct proxy *p, enum way_in way, struct view packet) {
    char peer[LANE_ADDRESS_MAX], meant[LANE_ADDRESS_MAX];
    struct unreachable u;
    int result =
        way == WAY_LOGGED ? unreachable_read_logged(packet, &u) : unreachable_read(packet, &u);
    if (result != 0 || address_classify(&u.to) == ADDRESS_LOOPBACK)
        return;
    put_end(&u.from, u.from_port, peer);
    put_end(&u.to, u.to_port, meant);
    say_refused_datagram(p, view_str(peer), view_str(meant));
}

static bool take_datagram(const struct carried *c, int fd) {
    struct proxy *p = c->names->proxy;
    uint8_t packet[COURIER_PACKET_MAX];
    ssize_t n = read(fd, packet, sizeof packet);
    if (n == 0) {
        log_warn("the courier is gone");
        p->lost = true;
        loop_stop(p->loop);
    }
    if (n <= 0)
        return false;
    struct reader r = reader_of(view_of(packet, (size_t)n));
    uint32_t cookie = read_u32(&r);
    struct view peer = read_block(&r, LANE_ADDRESS_MAX), meant = read_block(&r, LANE_ADDRESS_MAX);
    if (way_only_tells(c->way)) {
        tell_refused(p, c->way, r.bad ? VIEW("") : r.rest);
        return true;
    }
    struct asking *a = r.bad ? NULL : ask(p, r.rest, peer, meant, is_let_in(c, peer));
    if (a) {
        a->fd = fd;
        a->cookie = cookie;
    }
    return true;
}

/* Datagrams that nobody may read now would fire their event again and again. */
static void wait_for_lane(struct names *n) {
    n->is_waiting = true;
    n->proxy->n_waiting++;
    for (size_t i = 0; i < n->n; i++)
        event_del(n->couriers[i].event);
}

void names_resume(struct proxy *p) {
    struct names *n = p->names;
    if (!n->is_waiting)
        return;
    n->is_waiting = false;
    p->n_waiting--;
    for (size_t i = 0; i < n->n; i++)
        event_add(n->couriers[i].event, NULL);
}

static void on_datagram(evutil_socket_t fd, short what, void *ctx) {
    const struct carried *c = ctx;
    (void)what;
    for (int i = 0; i < AT_ONCE; i++) {
        if (proxy_lane_full(c->names->proxy)) {
            wait_for_lane(c->names);
            return;
        }
        if (!take_datagram(c, fd))
            return;
    }
}

/* ---- life ---- */

struct names *names_new(struct proxy *p, const struct proxy_listener *listeners,
                        size_t n_listeners) {
    struct names *n = calloc(1, sizeof *n + n_listeners * sizeof *n->couriers);
    if (!n)
        return NULL;
    n->proxy = p;
    for (size_t i = 0; i < n_listeners; i++) {
        if (!way_is_carried(listeners[i].way))
            continue;
        struct carried *c = &n->couriers[n->n];
        *c = (struct carried){
            .names = n, .way = listeners[i].way, .admission = listeners[i].admission};
        struct event *e =
            event_new(loop_base(p->loop), listeners[i].fd, EV_READ | EV_PERSIST, on_datagram, c);
        if (!e || evutil_make_socket_nonblocking(listeners[i].fd) != 0 || event_add(e, NULL) != 0) {
            if (e)
                event_free(e);
            names_free(n);
            return NULL;
        }
        c->event = e;
        n->n++;
    }
    return n;
}

void names_free(struct names *n) {
    uint32_t id;
    if (!n)
        return;
    while (table_any(&n->asked, &id))
        free(table_take(&n->asked, id));
    table_free(&n->asked);
    for (size_t i = 0; i < n->n; i++)
        event_free(n->couriers[i].event);
    free(n);
}

struct overdue {
    uint64_t now;
    uint32_t id;
};

static void find_overdue(void *ctx, uint32_t id, void *object) {
    struct overdue *o = ctx;
    const struct asking *a = object;
    if (!a->client && o->now >= a->until)
        o->id = id;
}

void names_sweep(struct proxy *p, uint64_t now) {
    struct overdue o = {now, 0};
    do {
        o.id = 0;
        table_each(&p->names->asked, find_overdue, &o);
        if (o.id != 0)
            free(table_take(&p->names->asked, o.id));
    } while (o.id != 0);
}
