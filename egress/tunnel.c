#include "egress/tunnel.h"

#include "base/log.h"
#include "egress/echo.h"
#include "egress/lane_messages.h"
#include "egress/names.h"
#include "egress/refusal.h"
#include "egress/share.h"
#include "egress/splice.h"
#include "egress/suspension.h"
#include "policy/placeholder.h"

#include <stdlib.h>
#include <string.h>

enum { ALERT_ACCESS_DENIED = 49, ALERT_INTERNAL_ERROR = 80, ALERT_UNRECOGNIZED_NAME = 112 };

static void tunnel_free(struct lane *l, struct tunnel *t) {
    splice_end(t->splice, REASON_CLIENT_CLOSED, (struct view){NULL, 0});
    leaf_forget(t);
    table_take(&l->tunnels, t->id);
    share_give(l, t->share, SHARE_CONNECTIONS);
    free(t);
}

struct tunnel *tunnel_find(struct lane *l, uint32_t id) {
    return table_get(&l->tunnels, id);
}

const char *tunnel_door(enum lane_way way, bool tls) {
    static const char *const doors[] = {[LANE_WAY_CONNECT] = "connect",
                                        [LANE_WAY_SOCKS] = "socks",
                                        [LANE_WAY_TRANSPARENT] = "transparent"};
    return tls && way == LANE_WAY_CONNECT ? "tls" : doors[way];
}

struct view tunnel_method(const struct tunnel *t) {
    return t->way == LANE_WAY_TRANSPARENT ? (struct view){NULL, 0} : VIEW("CONNECT");
}

/* ---- opening ---- */

struct open_request {
    struct view authority, token, others, client, meant;
    uint8_t n_tokens, placeholder_dropped, way, tls;
};

static int read_open(struct message *m, struct open_request *o) {
    struct reader r = reader_of(m->body);
    o->authority = read_block(&r, LANE_TEXT_MAX);
    o->token = read_block(&r, LANE_TEXT_MAX);
    o->n_tokens = read_u8(&r);
    o->others = read_block(&r, LANE_HEAD_MAX);
    o->placeholder_dropped = read_u8(&r);
    o->client = read_block(&r, 128);
    o->way = read_u8(&r);
    o->tls = read_u8(&r);
    o->meant = read_block(&r, LANE_ADDRESS_MAX - 1);
    bool transparent = o->way == LANE_WAY_TRANSPARENT;
    return read_done(&r) && o->way < LANE_WAY_COUNT && o->tls <= transparent &&
                   view_is_empty(o->meant) != transparent
               ? 0
               : ERR_BAD;
}

static void refuse_open(struct lane *l, uint32_t id, struct trail *t) {
    struct refusal r;
    struct buf head;
    l->refusals++;
    if (trail_lists(l, t) && trail_decide(l, t, refusal_status(t->verdict.reason, false)) != 0 &&
        t->verdict.reason != REASON_AUDIT_UNAVAILABLE)
        log_warn("refusal %s is not in the audit log", t->id);
    refusal_make(&r, t, false);
    buf_init(&head, LANE_TEXT_MAX);
    answer_write(&r.head, &head);
    struct buf *b = channel_begin(l->proxy, LANE_REFUSED, id, l->now ? l->now->number : 0);
    buf_put_block(b, buf_view(&head));
    buf_put_block(b, buf_view(&r.body));
    channel_end(l->proxy);
    buf_free(&head);
    refusal_free(&r);
}

/*
 * Where a transparent connection goes: to the name that it says, else to that which its address was given out for, else,
 * where a rule allows it, to the address itself. The port is the one it was meant for.
 */
static enum reason find_meant(struct lane *l, const struct open_request *o, struct authority *out,
                              const char **text) {
    struct authority meant;
    if (authority_parse(o->meant, 0, &meant, text) != 0 || meant.kind != HOST_ADDRESS)
        return REASON_MALFORMED_AUTHORITY;
    const char *given = names_of_address(l, &meant.address);
    struct view said = view_is_empty(o->authority) && given ? view_str(given) : o->authority;
    if (view_is_empty(said)) {
        *out = meant;
        return REASON_ALLOWED;
    }
    int result = o->tls ? authority_parse_host(said, meant.port, out, text)
                        : authority_parse(said, meant.port, out, text);
    if (result != 0)
        return REASON_MALFORMED_AUTHORITY;
    if (out->port != meant.port)
        *text = "Host names another port than the connection was made to";
    else if (given && strcmp(given, out->host) != 0)
        *text = "the connection is to an address that was given out for another name";
    return *text ? REASON_AUTHORITY_MISMATCH : REASON_ALLOWED;
}

static enum reason find_authority(struct lane *l, const struct open_request *o,
                                  struct authority *out, const char **text) {
    if (o->way == LANE_WAY_TRANSPARENT)
        return find_meant(l, o, out, text);
    return authority_parse(o->authority, 0, out, text) == 0 ? REASON_ALLOWED
                                                            : REASON_MALFORMED_AUTHORITY;
}

/* One that may carry TLS or clear HTTP is opened by either being allowed; each request is judged again. */
static struct verdict judge_host(const struct lane *l, struct view sandbox, enum lane_way way,
                                 bool tls, const struct authority *a) {
    struct verdict v = echo_judge_host(l->now->policy, sandbox, true, a);
    if (v.allow || (way == LANE_WAY_TRANSPARENT && tls))
        return v;
    struct verdict clear = echo_judge_host(l->now->policy, sandbox, false, a);
    return clear.allow || way == LANE_WAY_TRANSPARENT ? clear : v;
}

static enum reason judge_open(struct lane *l, const struct open_request *o, struct tunnel *t,
                              struct trail *trail) {
    enum reason why;
    const char *text = NULL;
    if (!l->now)
        return REASON_NOT_READY;
    if (!trail_ready(l))
        return REASON_AUDIT_UNAVAILABLE;
    if (identity_find(l, o->way == LANE_WAY_TRANSPARENT, o->n_tokens, o->token, t->sandbox,
                      &t->proof, &why) != 0)
        return why;
    trail->sandbox = view_str(t->sandbox);
    if (lane_is_closed(l))
        return REASON_NOT_PROBED;
    if (suspension_holds(l, trail->sandbox))
        return REASON_SANDBOX_SUSPENDED;
    why = find_authority(l, o, &t->authority, &text);
    trail->detail = view_str(text);
    if (why != REASON_MALFORMED_AUTHORITY)
        trail->authority = &t->authority;
    if (why != REASON_ALLOWED)
        return why;
    if (o->placeholder_dropped || placeholder_inside(o->others) ||
        placeholder_inside_name(o->others) || placeholder_inside_name(view_str(t->authority.host)))
        return REASON_PLACEHOLDER_WRONG_PLACE;
    trail->verdict = judge_host(l, trail->sandbox, t->way, o->tls, &t->authority);
    return trail->verdict.reason;
}

int tunnel_take_open(struct lane *l, struct message *m) {
    struct open_request o;
    struct trail trail = {.started = clock_mono()};
    if (read_open(m, &o) != 0 || m->id <= l->last_tunnel)
        return ERR_BAD;
    l->last_tunnel = m->id;
    struct tunnel *t = calloc(1, sizeof *t);
    if (!t)
        return ERR_MEMORY;
    t->id = m->id;
    t->opened = loop_now(l->loop);
    t->way = (enum lane_way)o.way;
    trail.door = tunnel_door(t->way, false);
    trail.method = tunnel_method(t);
    trail.tls = t->way != LANE_WAY_TRANSPARENT || o.tls;
    trail.sni = o.tls ? o.authority : (struct view){NULL, 0};
    trail.meant = o.meant;
    trail.client = o.client;
    trail.host_sent = o.authority;
    trail.generation = l->now ? l->now->number : 0;
    trail.verdict.reason = judge_open(l, &o, t, &trail);
    trail.verdict.allow = trail.verdict.reason == REASON_ALLOWED;
    bool fits = view_cstr(o.client, t->client, sizeof t->client) == 0 &&
                view_cstr(o.meant, t->meant, sizeof t->meant) == 0;
    if (trail.verdict.allow)
        t->share = share_take(l, t->sandbox, SHARE_CONNECTIONS);
    if (!t->share || !fits || table_put(&l->tunnels, t->id, t) != 0) {
        if (trail.verdict.allow)
            trail.verdict = (struct verdict){.reason = REASON_TOO_MANY, .swap = -1};
        refuse_open(l, m->id, &trail);
        share_give(l, t->share, SHARE_CONNECTIONS);
        free(t);
        return 0;
    }
    struct buf *b = channel_begin(l->proxy, LANE_OPENED, t->id, l->now->number);
    buf_put_block(b, view_str(t->authority.host));
    buf_put_u16(b, t->authority.port);
    channel_end(l->proxy);
    return 0;
}

/* ---- records of a tunnel that carried no request ---- */

static void tunnel_record(struct lane *l, struct tunnel *t, enum reason why, struct view detail) {
    struct trail trail = {.door = tunnel_door(t->way, t->spoke_tls),
                          .client = view_str(t->client),
                          .sandbox = view_str(t->sandbox),
                          .method = tunnel_method(t),
                          .meant = view_str(t->meant),
                          .sni = view_str(t->sni),
                          .detail = detail,
                          .authority = &t->authority,
                          .tls = true,
                          .generation = l->now ? l->now->number : 0,
                          .verdict = {.reason = why, .swap = -1}};
    t->recorded = true;
    l->refusals++;
    if (trail_lists(l, &trail) && trail_decide(l, &trail, 0) != 0)
        log_warn("tunnel %u's end is not in the audit log", t->id);
}

static void send_alert(struct lane *l, struct tunnel *t, uint8_t alert) {
    channel_send(l->proxy, LANE_ALERT, t->id, l->now->number, view_of(&alert, 1));
}

/* ---- TLS inside ---- */

/* The SNI, when there is one, must be the CONNECT name in its canonical form; ECH is ignored (design 3). */
static bool sni_agrees(const struct tunnel *t, struct view sni) {
    struct authority named;
    return authority_parse_host(sni, t->authority.port, &named, NULL) == 0 &&
           named.kind == HOST_NAME && authority_same_host(&named, &t->authority);
}

int tunnel_take_hello(struct lane *l, struct message *m) {
    struct reader r = reader_of(m->body);
    uint8_t has_sni = read_u8(&r);
    struct view sni = read_block(&r, 256);
    read_u8(&r); /* ECH: recorded nowhere, decides nothing */
    if (!read_done(&r) || m->id > l->last_tunnel)
        return ERR_BAD;
    struct tunnel *t = tunnel_find(l, m->id);
    if (!t || t->spoke_tls)
        return t ? ERR_BAD : 0;
    t->spoke_tls = true;
    if (view_cstr(view_head(sni, sizeof t->sni - 1), t->sni, sizeof t->sni) != 0)
        t->sni[0] = 0;
    if (has_sni && !sni_agrees(t, sni)) {
        tunnel_record(l, t, REASON_SNI_MISMATCH, (struct view){NULL, 0});
        send_alert(l, t, ALERT_UNRECOGNIZED_NAME);
        return 0;
    }
    struct verdict v = echo_judge_host(l->now->policy, view_str(t->sandbox), true, &t->authority);
    if (!v.allow) {
        tunnel_refused(l, t, v.reason,
                       VIEW("TLS inside a tunnel that is open for plain HTTP only"));
        return 0;
    }
    if (v.service && service_tls(v.service) == SERVICE_SPLICE)
        splice_begin(l, t, &v);
    else
        leaf_get(l, t->authority.host, t->authority.port, t);
    return 0;
}

void tunnel_leaf(struct lane *l, struct tunnel *t, const struct leaf_certificates *c) {
    struct buf *b = channel_begin(l->proxy, LANE_LEAF, t->id, l->now->number);
    buf_put_block(b, view_str(c->host));
    buf_put_block(b, c->leaf);
    buf_put_block(b, c->chain);
    buf_put_u64(b, c->not_after);
    channel_end(l->proxy);
}

/* Those of policy are answered by 403 where HTTP is spoken. */
void tunnel_refused(struct lane *l, struct tunnel *t, enum reason why, struct view detail) {
    bool denied = reason_info(why)->status == 403;
    tunnel_record(l, t, why, detail);
    send_alert(l, t, denied ? ALERT_ACCESS_DENIED : ALERT_INTERNAL_ERROR);
}

/* ---- the end ---- */

int tunnel_take_failed(struct lane *l, struct message *m) {
    struct reader r = reader_of(m->body);
    uint16_t why = read_u16(&r);
    struct view detail = read_block(&r, LANE_TEXT_MAX);
    if (!read_done(&r) || m->id > l->last_tunnel)
        return ERR_BAD;
    if (why != REASON_PROTOCOL_NOT_ALLOWED && why != REASON_MALFORMED_HELLO &&
        why != REASON_CLIENT_TLS && why != REASON_REQUEST_TIMEOUT && why != REASON_TOO_MANY)
        return ERR_BAD;
    struct tunnel *t = tunnel_find(l, m->id);
    if (t && !t->recorded)
        tunnel_record(l, t, (enum reason)why, detail);
    return 0;
}

int tunnel_take_close(struct lane *l, struct message *m) {
    if (m->id > l->last_tunnel)
        return ERR_BAD;
    struct tunnel *t = tunnel_find(l, m->id);
    if (!t)
        return 0;
    if (!t->recorded)
        tunnel_record(l, t, REASON_CLIENT_CLOSED, VIEW("no request was made"));
    tunnel_free(l, t);
    return 0;
}

/* ---- another generation ---- */

static void judge_again(void *ctx, uint32_t id, void *object) {
    struct lane *l = ctx;
    struct tunnel *t = object;
    struct view sandbox = view_str(t->sandbox);
    bool holds = identity_holds(l, t->sandbox, &t->proof);
    struct verdict v = echo_judge_host(l->now->policy, sandbox, true, &t->authority);
    if (holds && (!t->splice || splice_goes_on(t->splice, &v)) &&
        (v.allow || echo_judge_host(l->now->policy, sandbox, false, &t->authority).allow))
        return;
    struct view why = holds ? VIEW("denied by a newer policy")
                            : VIEW("its sandbox or its token is no longer valid");
    if (!t->recorded)
        tunnel_record(l, t, REASON_CUT, why);
    splice_end(t->splice, REASON_CUT, why);
    channel_send(l->proxy, LANE_CUT, id, l->now->number, (struct view){NULL, 0});
}

void tunnel_judge_all(struct lane *l) {
    table_each(&l->tunnels, judge_again, l);
}
