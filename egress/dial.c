#include "egress/dial.h"

#include "base/log.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

struct dial {
    struct dial_tools *tools;
    struct dial_wish wish;
    dial_done *done;
    void *ctx;
    const struct service *service; /* of the rules in use */
    struct event *deadline;
    struct lookup *lookup;
    struct connect *connect;
    bool abandoned;
    struct address addresses[RESOLVED_MAX]; /* of the target */
    size_t n;
    struct dial_end end;
    char aliases[RESOLVED_ALIASES_SIZE], detail[256], address[48];
};

/* ---- records ---- */

static void record_wish(const struct dial *d, struct record *r) {
    const struct dial_wish *w = &d->wish;
    record_str(r, FIELD_SANDBOX, w->sandbox);
    record_str(r, FIELD_HOST, w->authority.host);
    record_str(r, FIELD_SCHEME, w->tls ? "https" : "http");
    record_str(r, FIELD_ADDRESS, d->address);
    record_str(r, FIELD_ALIASES, d->aliases);
    record_str(r, FIELD_DETAIL, d->detail);
    record_number(r, FIELD_PORT, w->authority.port);
    record_number(r, FIELD_LANE, w->lane);
    if (bundle_lane_unenforced(d->tools->rules->bundle.lanes, w->lane))
        record_number(r, FIELD_UNENFORCED, 1);
    record_number(r, FIELD_GENERATION, d->end.generation);
    record_str(r, FIELD_COUNTRY, d->end.where.country);
    record_str(r, FIELD_ASN, d->end.where.asn);
}

static int write_record(struct dial *d, struct record *r) {
    struct audit_stream *audit = &d->tools->audit;
    char id[40];
    if (!audit->writer)
        return ERR_CLOSED;
    audit_id(audit->writer, id);
    record_str(r, FIELD_ID, id);
    return audit_stream_write(audit, r);
}

/* A refusal by the dialer's own copy of the rules: egress should not have asked, or DNS has lied. */
static void record_refusal(struct dial *d, enum reason reason) {
    struct record r = {.present = 0};
    record_begin(&r, RECORD_DECISION, clock_wall(), clock_mono());
    record_str(&r, FIELD_VERDICT, "deny");
    record_str(&r, FIELD_REASON, reason_info(reason)->code);
    record_wish(d, &r);
    int result = write_record(d, &r);
    if (result != 0)
        log_warn("lane %u: a refused dial could not be recorded: %s", d->wish.lane,
                 err_text(result));
    record_free(&r);
}

static int record_connection(struct dial *d) {
    struct record r = {.present = 0};
    record_begin(&r, RECORD_EVENT, clock_wall(), clock_mono());
    record_str(&r, FIELD_EVENT, "dialled");
    record_wish(d, &r);
    int result = write_record(d, &r);
    record_free(&r);
    return result;
}

static bool audit_is_usable(const struct dial *d) {
    return audit_stream_ready(&d->tools->audit);
}

/* ---- ends ---- */

static void finish(struct dial *d, enum reason reason) {
    d->end.reason = reason;
    d->end.detail = d->detail;
    d->end.address = d->address;
    d->end.aliases = d->aliases;
    d->done(d->ctx, &d->end);
    d->end.fd = -1; /* taken */
    dial_free(d);
}

static void fail(struct dial *d, enum reason reason, const char *detail) {
    snprintf(d->detail, sizeof d->detail, "%s", detail);
    finish(d, reason);
}

static void refuse(struct dial *d, enum reason reason, const char *detail) {
    snprintf(d->detail, sizeof d->detail, "%s", detail);
    record_refusal(d, reason);
    finish(d, reason);
}

static void on_deadline(evutil_socket_t fd, short what, void *ctx) {
    (void)fd;
    (void)what;
    fail(ctx, REASON_CONNECT_TIMEOUT, "not connected in time");
}

/* ---- where addresses are ---- */

static void locate(const struct dial *d, const struct address *a, struct geography_facts *out) {
    *out = (struct geography_facts){{0}, {0}};
    if (d->tools->geography)
        geography_find(d->tools->geography, a, out);
}

/* ---- connecting ---- */

static void on_connected(void *ctx, const struct connected *c) {
    struct dial *d = ctx;
    d->connect = NULL;
    if (c->result != 0) {
        fail(d,
             c->result == ERR_TIMEOUT  ? REASON_CONNECT_TIMEOUT
             : c->result == ERR_MEMORY ? REASON_DIALER_UNAVAILABLE
                                       : REASON_CONNECT_FAILED,
             c->detail);
        return;
    }
    d->end.fd = c->fd;
    address_format(&c->address, d->address);
    /* Behind a hop: of the address that the name has here. */
    locate(d, d->tools->rules->has_hop ? &d->addresses[0] : &c->address, &d->end.where);
    if (!audit_is_usable(d) || record_connection(d) != 0) {
        close(d->end.fd);
        d->end.fd = -1;
        fail(d, REASON_AUDIT_UNAVAILABLE, "the connection could not be recorded");
        return;
    }
    finish(d, REASON_ALLOWED);
}

static unsigned limit_ms(const struct dial *d, enum limit which) {
    return (unsigned)d->tools->rules->bundle.limits.v[which] * 1000;
}

static void connect_to(struct dial *d, const struct address *addresses, size_t n, uint16_t port,
                       const struct authority *behind_hop) {
    d->connect = connect_start(d->tools->loop, addresses, n, port, behind_hop,
                               limit_ms(d, LIMIT_CONNECT_TIME), on_connected, d);
    if (!d->connect)
        fail(d, REASON_DIALER_UNAVAILABLE, "out of memory");
}

/* ---- resolving ---- */

static void on_hop_resolved(void *ctx, const struct resolved *r) {
    struct dial *d = ctx;
    const struct dial_rules *rules = d->tools->rules;
    d->lookup = NULL;
    if (d->abandoned)
        finish(d, REASON_CLIENT_CLOSED);
    else if (r->result == ERR_MEMORY)
        fail(d, REASON_DIALER_UNAVAILABLE, r->why);
    else if (r->result != 0)
        fail(d, REASON_CONNECT_FAILED, "the upstream proxy's name does not resolve");
    else if (!rules->has_hop)
        fail(d, REASON_CUT, "the upstream proxy was removed meanwhile");
    else
        connect_to(d, r->addresses, r->n, rules->hop.port, &d->wish.authority);
}

static void resolve(struct dial *d, const char *name, resolver_done *resolved) {
    d->lookup = resolver_ask(d->tools->resolver, name, limit_ms(d, LIMIT_DNS_TIME), resolved, d);
    if (!d->lookup)
        fail(d, REASON_TOO_MANY, "too many names are being resolved");
}

/* The hop is the operator's: its address is not vetted. */
static void connect_to_hop(struct dial *d) {
    const struct authority *hop = &d->tools->rules->hop;
    struct address addresses[RESOLVED_MAX];
    if (hop->kind == HOST_ADDRESS) {
        connect_to(d, &hop->address, 1, hop->port, &d->wish.authority);
        return;
    }
    size_t n = dial_rules_static(d->tools->rules, hop->host, addresses, RESOLVED_MAX);
    if (n > 0)
        connect_to(d, addresses, n, hop->port, &d->wish.authority);
    else
        resolve(d, hop->host, on_hop_resolved);
}

/* Whether the service may not be reached there; why goes into detail. */
static bool is_misplaced(struct dial *d, const struct address *a, char *detail, size_t size) {
    struct geography_facts where;
    locate(d, a, &where);
    if (service_permits_location(d->service, view_str(where.country), geography_asn(where.asn)))
        return false;
    char address[48];
    address_format(a, address);
    snprintf(detail, size, "%s: country %s, autonomous system %s: not permitted by service %.*s",
             address, where.country[0] ? where.country : "not known",
             where.asn[0] ? where.asn : "not known", VIEW_ARG(service_name(d->service)));
    d->end.where = where;
    return true;
}

/* False: the dial is gone. */
static bool vet_address(struct dial *d, const struct address *a) {
    const struct dial_tools *t = d->tools;
    uint16_t port = d->wish.authority.port;
    const char *why = dial_rules_refuse(t->rules, t->interfaces, d->service, a, port);
    const struct service *never = why ? NULL : policy_never_address(t->rules->policy, a, port);
    char detail[sizeof d->detail];
    bool misplaced = !why && !never && is_misplaced(d, a, detail, sizeof detail);
    if (!why && !never && !misplaced)
        return true;
    address_format(a, d->address);
    if (why)
        snprintf(detail, sizeof detail, "%s: %s", d->address, why);
    else if (never)
        snprintf(detail, sizeof detail, "%s: never all of service %.*s", d->address,
                 VIEW_ARG(service_name(never)));
    refuse(d, never ? REASON_NEVER : REASON_ADDRESS_NOT_ALLOWED, detail);
    return false;
}

/* Every address, or none: see the header. False: the dial is gone. */
static bool vet(struct dial *d) {
    for (size_t i = 0; i < d->n; i++)
        if (!vet_address(d, &d->addresses[i]))
            return false;
    return true;
}

static void connect_if_vetted(struct dial *d) {
    if (!vet(d))
        return;
    if (d->tools->rules->has_hop)
        connect_to_hop(d);
    else
        connect_to(d, d->addresses, d->n, d->wish.authority.port, NULL);
}

static void on_resolved(void *ctx, const struct resolved *r) {
    struct dial *d = ctx;
    d->lookup = NULL;
    if (d->abandoned) {
        finish(d, REASON_CLIENT_CLOSED);
        return;
    }
    memcpy(d->aliases, r->aliases, sizeof d->aliases);
    if (r->result != 0) {
        fail(d, r->result == ERR_MEMORY ? REASON_DIALER_UNAVAILABLE : REASON_NAME_NOT_RESOLVED,
             r->why);
        return;
    }
    /* A mapped address is its IPv4 address in all that follows. */
    for (size_t i = 0; i < r->n; i++)
        d->addresses[d->n++] = address_unmap(&r->addresses[i]);
    connect_if_vetted(d);
}

void dial_start(struct dial *d) {
    const struct authority *a = &d->wish.authority;
    if (a->kind == HOST_ADDRESS) {
        d->addresses[d->n++] = address_unmap(&a->address);
    } else {
        size_t n = dial_rules_static(d->tools->rules, a->host, d->addresses, RESOLVED_MAX);
        for (size_t i = 0; i < n; i++)
            d->addresses[i] = address_unmap(&d->addresses[i]);
        d->n = n;
    }
    if (d->n > 0)
        connect_if_vetted(d);
    else
        resolve(d, a->host, on_resolved);
}

/* ---- judging ---- */

bool dial_judge(struct dial *d) {
    const struct dial_rules *rules = d->tools->rules;
    struct view sandbox = view_str(d->wish.sandbox);
    d->end.generation = rules->generation;
    if (!dial_rules_serve(rules, d->wish.lane, sandbox)) {
        refuse(d, REASON_UNKNOWN_SANDBOX, "this lane does not serve the sandbox");
        return false;
    }
    struct verdict v = policy_judge_host(rules->policy, sandbox, d->wish.tls, &d->wish.authority);
    if (!v.allow || !v.service) {
        refuse(d, v.allow ? REASON_HOST_NOT_ALLOWED : v.reason,
               "refused by the dialer's own rules");
        return false;
    }
    d->service = v.service;
    if (!audit_is_usable(d)) {
        fail(d, REASON_AUDIT_UNAVAILABLE, "audit is away or in trouble");
        return false;
    }
    return vet(d);
}

/* ---- life ---- */

struct dial *dial_new(struct dial_tools *t, const struct dial_wish *w, dial_done *done, void *ctx) {
    struct dial *d = calloc(1, sizeof *d);
    if (!d)
        return NULL;
    d->tools = t;
    d->wish = *w;
    d->done = done;
    d->ctx = ctx;
    d->end.fd = -1;
    d->deadline = evtimer_new(loop_base(t->loop), on_deadline, d);
    if (!d->deadline) {
        free(d);
        return NULL;
    }
    const struct timeval tv = {
        .tv_sec = (limit_ms(d, LIMIT_DNS_TIME) + limit_ms(d, LIMIT_CONNECT_TIME)) / 1000};
    evtimer_add(d->deadline, &tv);
    return d;
}

void dial_abandon(struct dial *d) {
    d->abandoned = true;
    if (!d->lookup)
        finish(d, REASON_CLIENT_CLOSED);
}

void dial_free(struct dial *d) {
    if (d->lookup)
        lookup_cancel(d->lookup);
    connect_cancel(d->connect);
    if (d->end.fd >= 0)
        close(d->end.fd);
    event_free(d->deadline);
    free(d);
}
