#include "egress/splice.h"

#include "egress/dialing.h"
#include "egress/lane_messages.h"
#include "egress/share.h"
#include "egress/suspension.h"
#include "egress/trail.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#define SECOND UINT64_C(1000000000)

enum splice_state { SPLICE_DIALING, SPLICE_RECORDING, SPLICE_RUNNING };

struct splice {
    struct lane *lane;
    struct tunnel *tunnel;
    struct splice *next, **back; /* all */
    enum splice_state state;
    struct dialing dialing;
    struct trail trail; /* once decided; its views are the tunnel's and dialing's */
    int fd;
    struct event *readable, *writable;
    struct buf out;        /* of the client, not yet written */
    size_t window, credit; /* bytes that proxy will still take */
    size_t taken;          /* written, and not yet told to proxy */
    uint64_t most, bytes_out, bytes_in;
    uint64_t began, moved, until; /* monotonic nanoseconds */
    bool client_ended, upstream_ended, shut;
};

/* ---- life ---- */

static void unlink_splice(struct splice *s) {
    *s->back = s->next;
    if (s->next)
        s->next->back = s->back;
    s->lane->n_splices--;
}

static void splice_free(struct splice *s) {
    s->tunnel->splice = NULL;
    unlink_splice(s);
    dialing_end(&s->dialing);
    if (s->readable)
        event_free(s->readable);
    if (s->writable)
        event_free(s->writable);
    if (s->fd >= 0)
        close(s->fd);
    buf_free(&s->out);
    free(s);
}

void splice_end(struct splice *s, enum reason why, struct view detail) {
    if (!s)
        return;
    struct outcome o = {.reason = why,
                        .detail = detail,
                        .bytes_out = s->bytes_out,
                        .bytes_in = s->bytes_in,
                        .us_total = (loop_now(s->lane->loop) - s->began) / 1000};
    if (s->state != SPLICE_DIALING)
        trail_end(s->lane, s->trail.id, &o);
    splice_free(s);
}

/* Before it was decided: the tunnel's own record tells of it. */
static void refuse(struct splice *s, enum reason why, struct view detail) {
    struct lane *l = s->lane;
    struct tunnel *t = s->tunnel;
    char text[256] = ""; /* detail may be dialing's */
    if (view_cstr(view_head(detail, sizeof text - 1), text, sizeof text) != 0)
        text[0] = 0;
    splice_free(s);
    tunnel_refused(l, t, why, view_str(text));
}

/* After it was decided. The client notices that something is missing: TLS has an end of its own. */
static void cut(struct splice *s, enum reason why, const char *detail) {
    struct lane *l = s->lane;
    if (s->state == SPLICE_DIALING) {
        refuse(s, why, view_str(detail));
        return;
    }
    channel_send(l->proxy, LANE_CUT, s->tunnel->id, l->now->number, (struct view){NULL, 0});
    splice_end(s, why, view_str(detail));
}

static void end_when_both_have(struct splice *s) {
    if (s->upstream_ended && s->client_ended && buf_len(&s->out) == 0)
        splice_end(s, REASON_ALLOWED, (struct view){NULL, 0});
}

/* ---- towards the upstream ---- */

static bool has_gone_by_itself(int error) {
    return error == EPIPE || error == ECONNRESET;
}

static void say_number(struct splice *s, uint16_t type, size_t n) {
    struct buf *b = channel_begin(s->lane->proxy, type, s->tunnel->id, 0);
    buf_put_u32(b, (uint32_t)n);
    channel_end(s->lane->proxy);
}

/* Gives credit back in quarters of the window, so that small pieces do not cost a message each. */
static void tell_taken(struct splice *s) {
    if (s->taken < s->window / 4)
        return;
    say_number(s, LANE_RAW_TAKEN, s->taken);
    s->taken = 0;
}

static void write_some(struct splice *s) {
    while (buf_len(&s->out) > 0) {
        struct view v = buf_view(&s->out);
        ssize_t n = write(s->fd, v.p, v.n);
        if (n < 0 && (errno == EAGAIN || errno == EINTR)) {
            event_add(s->writable, NULL);
            return;
        }
        /* Its last bytes may still be on their way to the client. */
        if (n < 0 && s->upstream_ended && has_gone_by_itself(errno)) {
            buf_reset(&s->out);
            s->client_ended = true;
            break;
        }
        if (n < 0) {
            cut(s, REASON_UPSTREAM_CLOSED, "the upstream ended the connection");
            return;
        }
        buf_consume(&s->out, (size_t)n);
        s->taken += (size_t)n;
        tell_taken(s);
    }
    if (s->client_ended && !s->shut) {
        s->shut = true;
        shutdown(s->fd, SHUT_WR);
    }
    end_when_both_have(s);
}

static void on_writable(evutil_socket_t fd, short what, void *ctx) {
    (void)fd;
    (void)what;
    write_some(ctx);
}

/* The splice of a tunnel that is running. NULL with *result: 0, it has ended, or ERR_BAD: proxy was not asked. */
static struct splice *running(struct lane *l, uint32_t id, int *result) {
    struct tunnel *t = tunnel_find(l, id);
    *result = 0;
    if (t && t->splice && t->splice->state == SPLICE_RUNNING)
        return t->splice;
    if (id > l->last_tunnel || (t && (t->splice || !t->was_spliced)))
        *result = ERR_BAD;
    return NULL;
}

int splice_take_bytes(struct lane *l, struct message *m) {
    int result;
    struct splice *s = running(l, m->id, &result);
    if (!s)
        return result;
    if (s->client_ended || m->body.n > s->window - buf_len(&s->out) - s->taken)
        return ERR_BAD;
    s->moved = loop_now(l->loop);
    if (m->body.n > s->most - s->bytes_out) {
        cut(s, REASON_BODY_TOO_LARGE, "the client sent more than a spliced connection may");
        return 0;
    }
    s->bytes_out += m->body.n;
    buf_put(&s->out, m->body);
    if (buf_ok(&s->out))
        write_some(s);
    else
        cut(s, REASON_TOO_MANY, "memory");
    return 0;
}

int splice_take_end(struct lane *l, struct message *m) {
    int result;
    struct splice *s = running(l, m->id, &result);
    if (!s || s->client_ended)
        return s ? ERR_BAD : result;
    s->client_ended = true;
    write_some(s);
    return 0;
}

/* ---- towards the client ---- */

static void end_of_upstream(struct splice *s) {
    s->upstream_ended = true;
    event_del(s->readable);
    channel_send(s->lane->proxy, LANE_RAW_BACK_END, s->tunnel->id, 0, (struct view){NULL, 0});
    end_when_both_have(s);
}

static void read_some(struct splice *s) {
    struct lane *l = s->lane;
    static uint8_t piece[LANE_BODY_MAX / 2];
    if (s->credit == 0 || channel_is_full(l->proxy)) {
        event_del(s->readable);
        return;
    }
    ssize_t n = read(s->fd, piece, s->credit < sizeof piece ? s->credit : sizeof piece);
    if (n < 0 && (errno == EAGAIN || errno == EINTR))
        return;
    if (n < 0) {
        cut(s, REASON_UPSTREAM_CLOSED, "the upstream reset the connection");
        return;
    }
    if (n == 0) {
        end_of_upstream(s);
        return;
    }
    s->moved = loop_now(l->loop);
    if ((uint64_t)n > s->most - s->bytes_in) {
        cut(s, REASON_ANSWER_TOO_LARGE, "the upstream sent more than a spliced connection may");
        return;
    }
    s->bytes_in += (uint64_t)n;
    s->credit -= (size_t)n;
    channel_send(l->proxy, LANE_RAW_BACK, s->tunnel->id, 0, view_of(piece, (size_t)n));
}

static void on_readable(evutil_socket_t fd, short what, void *ctx) {
    (void)fd;
    (void)what;
    read_some(ctx);
}

int splice_take_credit(struct lane *l, struct message *m) {
    int result;
    struct splice *s = running(l, m->id, &result);
    struct reader r = reader_of(m->body);
    uint32_t n = read_u32(&r);
    if (!read_done(&r))
        return ERR_BAD;
    if (!s)
        return result;
    if (n > s->window - s->credit)
        return ERR_BAD;
    s->credit += n;
    if (!s->upstream_ended)
        event_add(s->readable, NULL);
    return 0;
}

void splice_resume_all(struct lane *l) {
    for (struct splice *s = l->splices; s; s = s->next)
        if (s->state == SPLICE_RUNNING && !s->upstream_ended && s->credit > 0)
            event_add(s->readable, NULL);
}

/* ---- beginning ---- */

/* Whether what was begun may go on by this verdict on its host. */
static bool suits(const struct splice *s, const struct verdict *v) {
    if (!v->allow || service_tls(v->service) != SERVICE_SPLICE || v->n_grants > 0)
        return false;
    return s->fd < 0 || dialing_suits(&s->dialing, s->lane->now, v->service);
}

static void run(struct splice *s) {
    struct event_base *base = loop_base(s->lane->loop);
    s->state = SPLICE_RUNNING;
    s->readable = event_new(base, s->fd, EV_READ | EV_PERSIST, on_readable, s);
    s->writable = event_new(base, s->fd, EV_WRITE, on_writable, s);
    if (!s->readable || !s->writable || event_add(s->readable, NULL) != 0) {
        cut(s, REASON_TOO_MANY, "memory");
        return;
    }
    say_number(s, LANE_SPLICED, s->window);
}

static void run_if_recorded(struct splice *s) {
    struct lane *l = s->lane;
    if (s->state == SPLICE_RECORDING && trail_holds(l, &s->trail, l->now->audit_durable))
        run(s);
}

static void on_dialled(void *ctx, int fd) {
    struct splice *s = ctx;
    struct lane *l = s->lane;
    struct tunnel *t = s->tunnel;
    s->fd = fd;
    struct verdict v = policy_judge_host(l->now->policy, view_str(t->sandbox), true, &t->authority);
    if (!suits(s, &v)) {
        refuse(s, v.allow ? REASON_CUT : v.reason, VIEW("denied by a newer policy"));
        return;
    }
    s->trail = (struct trail){.door = "spliced",
                              .client = view_str(t->client),
                              .meant = view_str(t->meant),
                              .sandbox = view_str(t->sandbox),
                              .method = tunnel_method(t),
                              .sni = view_str(t->sni),
                              .aliases = view_str(s->dialing.aliases),
                              .address = view_str(s->dialing.address),
                              .country = view_str(s->dialing.country),
                              .asn = view_str(s->dialing.asn),
                              .authority = &t->authority,
                              .tls = true,
                              .generation = l->now->number,
                              .verdict = v};
    if (trail_decide(l, &s->trail, 0) != 0) {
        refuse(s, REASON_AUDIT_UNAVAILABLE, (struct view){NULL, 0});
        return;
    }
    t->recorded = t->was_spliced = true;
    l->requests++;
    s->state = SPLICE_RECORDING;
    run_if_recorded(s);
}

static void on_not_dialled(void *ctx, enum reason why, struct view detail) {
    refuse(ctx, why, detail);
}

/* A limit of the lane, of which each sandbox has a share. */
static bool has_room(const struct lane *l, const struct tunnel *t) {
    size_t own = 0, all = 0;
    for (const struct splice *s = l->splices; s; s = s->next) {
        if (!authority_equal(&s->tunnel->authority, &t->authority))
            continue;
        all++;
        own += view_equal(view_str(s->tunnel->sandbox), view_str(t->sandbox));
    }
    return share_allows(l, own, all, lane_limit(l, LIMIT_UPSTREAMS));
}

static struct splice *splice_new(struct lane *l, struct tunnel *t, const struct verdict *v) {
    struct splice *s = calloc(1, sizeof *s);
    if (!s)
        return NULL;
    uint64_t most = service_splice_most(v->service), normal = lane_limit(l, LIMIT_SPLICE_BYTES);
    s->lane = l;
    s->tunnel = t;
    s->fd = -1;
    s->window = s->credit = (size_t)lane_limit(l, LIMIT_WINDOW);
    buf_init(&s->out, s->window);
    s->most = most < normal ? most : normal;
    s->began = s->moved = loop_now(l->loop);
    s->until = s->began + lane_limit(l, LIMIT_SPLICE_TIME) * SECOND;
    s->next = l->splices;
    s->back = &l->splices;
    if (s->next)
        s->next->back = &s->next;
    l->splices = s;
    l->n_splices++;
    t->splice = s;
    return s;
}

void splice_begin(struct lane *l, struct tunnel *t, const struct verdict *v) {
    if (suspension_holds(l, view_str(t->sandbox))) {
        tunnel_refused(l, t, REASON_SANDBOX_SUSPENDED, (struct view){NULL, 0});
        return;
    }
    if (v->n_grants > 0) {
        tunnel_refused(l, t, REASON_NOT_OFFERED, VIEW("the terms of a grant are not counted yet"));
        return;
    }
    struct splice *s = has_room(l, t) ? splice_new(l, t, v) : NULL;
    if (!s) {
        tunnel_refused(l, t, REASON_TOO_MANY, VIEW("connections to this host"));
        return;
    }
    s->dialing = (struct dialing){.lane = l,
                                  .sandbox = t->sandbox,
                                  .authority = &t->authority,
                                  .generation = l->now->number,
                                  .tls = true,
                                  .connected = on_dialled,
                                  .failed = on_not_dialled,
                                  .ctx = s};
    dialing_start(&s->dialing);
}

/* ---- what changes around it ---- */

bool splice_goes_on(struct splice *s, const struct verdict *v) {
    if (!suits(s, v))
        return false;
    /* Dialer has forgotten the generation by which it was asked. */
    if (s->state == SPLICE_DIALING) {
        dialing_end(&s->dialing);
        s->dialing.generation = s->lane->now->number;
        dialing_start(&s->dialing);
    }
    return true;
}

void splice_recorded(struct lane *l) {
    for (struct splice *s = l->splices, *next; s; s = next) {
        next = s->next;
        run_if_recorded(s);
    }
}

void splice_lose_audit(struct lane *l) {
    for (struct splice *s = l->splices, *next; s; s = next) {
        next = s->next;
        if (s->state == SPLICE_RECORDING)
            cut(s, REASON_AUDIT_UNAVAILABLE, "");
    }
}

static void sweep(struct splice *s, uint64_t now) {
    struct lane *l = s->lane;
    uint64_t idle = lane_limit(l, LIMIT_SPLICE_IDLE) * SECOND;
    if (suspension_holds(l, view_str(s->tunnel->sandbox)))
        cut(s, REASON_SANDBOX_SUSPENDED, "");
    else if (now >= s->until)
        cut(s, REASON_REQUEST_TIMEOUT, "the spliced connection has lasted its time");
    else if (s->state == SPLICE_RUNNING && now >= s->moved + idle)
        cut(s, REASON_REQUEST_TIMEOUT, "no byte either way of the spliced connection");
    else if (s->state == SPLICE_RECORDING &&
             now >= s->moved + lane_limit(l, LIMIT_ASK_TIME) * SECOND)
        cut(s, REASON_AUDIT_UNAVAILABLE, "the record was not taken in time");
}

void splice_sweep(struct lane *l, uint64_t now) {
    for (struct splice *s = l->splices, *next; s; s = next) {
        next = s->next;
        sweep(s, now);
    }
}
