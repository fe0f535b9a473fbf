#include "egress/names.h"

#include "base/log.h"
#include "egress/echo.h"
#include "egress/identity.h"
#include "egress/lane_messages.h"
#include "egress/suspension.h"
#include "egress/trail.h"
#include "http/dns_query.h"
#include "policy/placeholder.h"

#include <stdio.h>
#include <stdlib.h>

enum { BUCKETS = 256, TTL_SECONDS = 60, NUMBER_BITS = 20 };

/* The n-th address of each range, from 1, is its own. */
struct mapped {
    char host[HOST_SIZE];
    uint32_t n;
    struct mapped *next;          /* of the bucket */
    struct mapped *newer, *older; /* by the last question */
};

struct names {
    struct bucket queries, fresh;
    struct mapped *buckets[BUCKETS], *newest, *oldest;
    struct table by_number;
    uint32_t last; /* question */
};

static struct names *names_get(struct lane *l) {
    if (!l->names)
        l->names = calloc(1, sizeof *l->names);
    return l->names;
}

/* ---- numbers and addresses ---- */

/* How many numbers the range has addresses for; its first address is nobody's. */
static uint32_t capacity(const struct range *r) {
    unsigned free_bits = (r->base.family == 4 ? 32u : 128u) - r->bits;
    return (UINT32_C(1) << (free_bits < NUMBER_BITS ? free_bits : NUMBER_BITS)) - 2;
}

static uint32_t most_names(const struct lane *l) {
    uint64_t most = lane_limit(l, LIMIT_DNS_NAMES);
    for (size_t i = 0; i < GENERATED_RANGES; i++) {
        const struct range *r = &l->now->synthetic[i];
        if (r->base.family != 0 && capacity(r) < most)
            most = capacity(r);
    }
    return (uint32_t)most;
}

static struct address address_of(const struct range *r, uint32_t n) {
    struct address a = r->base;
    size_t last = a.family == 4 ? 3 : 15;
    for (size_t i = 0; i < 3; i++)
        a.bytes[last - i] = (uint8_t)(a.bytes[last - i] | n >> 8 * i);
    return a;
}

static const struct range *range_of(const struct lane *l, uint8_t family) {
    for (size_t i = 0; i < GENERATED_RANGES; i++)
        if (l->now->synthetic[i].base.family == family)
            return &l->now->synthetic[i];
    return NULL;
}

/* Whether the address is of the ranges from which addresses are given out. */
static bool is_of_ranges(const struct lane *l, const struct address *a) {
    const struct range *r = l->now ? range_of(l, a->family) : NULL;
    return r && range_holds(r, a);
}

const char *names_of_address(const struct lane *l, const struct address *a) {
    if (!l->names || !is_of_ranges(l, a))
        return NULL;
    size_t last = a->family == 4 ? 3 : 15;
    uint32_t n =
        (uint32_t)a->bytes[last - 2] << 16 | (uint32_t)a->bytes[last - 1] << 8 | a->bytes[last];
    n &= capacity(range_of(l, a->family)) + 1;
    const struct mapped *m = n != 0 ? table_get(&l->names->by_number, n) : NULL;
    if (!m)
        return NULL;
    struct address own = address_of(range_of(l, a->family), n);
    return address_equal(&own, a) ? m->host : NULL;
}

/* ---- the names that are kept ---- */

static struct mapped **bucket_of(struct names *n, const char *host) {
    uint32_t hash = 2166136261u;
    for (; *host; host++)
        hash = (hash ^ (uint8_t)*host) * 16777619u;
    return &n->buckets[hash % BUCKETS];
}

static void unlink_age(struct names *n, struct mapped *m) {
    *(m->newer ? &m->newer->older : &n->newest) = m->older;
    *(m->older ? &m->older->newer : &n->oldest) = m->newer;
}

static void link_newest(struct names *n, struct mapped *m) {
    m->newer = NULL;
    m->older = n->newest;
    *(n->newest ? &n->newest->newer : &n->oldest) = m;
    n->newest = m;
}

static uint32_t drop(struct names *n, struct mapped *m) {
    struct mapped **at = bucket_of(n, m->host);
    uint32_t number = m->n;
    while (*at != m)
        at = &(*at)->next;
    *at = m->next;
    unlink_age(n, m);
    table_take(&n->by_number, number);
    free(m);
    return number;
}

static struct mapped *find(struct names *n, const char *host) {
    for (struct mapped *m = *bucket_of(n, host); m; m = m->next)
        if (strcmp(m->host, host) == 0)
            return m;
    return NULL;
}

static struct mapped *add(struct lane *l, const char *host) {
    struct names *n = l->names;
    uint32_t most = most_names(l), number = 0;
    /* A limit that was lowered: until there is room for one. */
    while (n->by_number.n > 0 && n->by_number.n >= most)
        number = drop(n, n->oldest);
    if (number == 0 || number > most)
        for (number = 1; table_get(&n->by_number, number);)
            number++;
    struct mapped *m = calloc(1, sizeof *m), **at = bucket_of(n, host);
    if (!m || table_put(&n->by_number, number, m) != 0) {
        free(m);
        return NULL;
    }
    snprintf(m->host, sizeof m->host, "%s", host);
    m->n = number;
    m->next = *at;
    *at = m;
    link_newest(n, m);
    return m;
}

/* NULL: too many new names a minute, or no memory. */
static struct mapped *map(struct lane *l, const char *host) {
    struct names *n = l->names;
    struct mapped *m = find(n, host);
    /* Ranges that a reload made smaller have no address for it. */
    if (m && m->n > most_names(l)) {
        drop(n, m);
        m = NULL;
    }
    if (m) {
        unlink_age(n, m);
        link_newest(n, m);
        return m;
    }
    if (!bucket_take(&n->fresh, loop_now(l->loop), lane_limit(l, LIMIT_DNS_NEW_NAMES)))
        return NULL;
    return add(l, host);
}

/* ---- questions ---- */

struct lookup {
    struct view name, client, meant, detail;
    uint16_t type, refused; /* enum reason; of proxy */
    char sandbox[IDENTITY_SIZE];
    struct authority authority;
};

static int read_lookup(struct message *m, struct lookup *q) {
    struct reader r = reader_of(m->body);
    q->name = read_block(&r, QUERY_NAME_SIZE);
    q->type = read_u16(&r);
    q->client = read_block(&r, LANE_ADDRESS_MAX);
    q->meant = read_block(&r, LANE_ADDRESS_MAX);
    q->refused = read_u16(&r);
    q->detail = read_block(&r, LANE_TEXT_MAX);
    bool known = q->refused == REASON_ALLOWED || q->refused == REASON_MALFORMED_REQUEST ||
                 q->refused == REASON_PEER_NOT_ALLOWED;
    return read_done(&r) && known ? 0 : ERR_BAD;
}

/* Whether the sandbox may connect to the host in some way: the port is not known yet. */
static struct verdict judge_name(const struct lane *l, struct view sandbox, struct authority *a) {
    a->port = 443;
    struct verdict v = echo_judge_host(l->now->policy, sandbox, true, a);
    if (!v.allow && v.reason == REASON_HOST_NOT_ALLOWED) {
        a->port = 80;
        v = echo_judge_host(l->now->policy, sandbox, false, a);
    }
    if (v.reason == REASON_PORT_NOT_ALLOWED || v.reason == REASON_CLEAR_NOT_ALLOWED) {
        v.allow = true;
        v.reason = REASON_ALLOWED;
    }
    return v;
}

static struct verdict refuse(enum reason why) {
    return (struct verdict){.reason = why, .swap = -1};
}

static struct verdict judge(struct lane *l, struct lookup *q, struct trail *t) {
    struct proof proof;
    enum reason why;
    const char *text = NULL;
    if (!l->now)
        return refuse(REASON_NOT_READY);
    if (!trail_ready(l))
        return refuse(REASON_AUDIT_UNAVAILABLE);
    t->detail = q->detail;
    if (q->refused == REASON_PEER_NOT_ALLOWED)
        return refuse(REASON_PEER_NOT_ALLOWED);
    if (identity_find(l, true, 0, (struct view){NULL, 0}, q->sandbox, &proof, &why) != 0)
        return refuse(why);
    t->sandbox = view_str(q->sandbox);
    if (lane_is_closed(l))
        return refuse(REASON_NOT_PROBED);
    if (suspension_holds(l, t->sandbox))
        return refuse(REASON_SANDBOX_SUSPENDED);
    if (!bucket_take(&l->names->queries, loop_now(l->loop), lane_limit(l, LIMIT_DNS_QUERIES)))
        return refuse(REASON_RATE);
    if (q->refused != REASON_ALLOWED)
        return refuse((enum reason)q->refused);
    if (authority_parse_host(q->name, 443, &q->authority, &text) != 0 ||
        q->authority.kind != HOST_NAME) {
        t->detail = view_str(text ? text : "an address, where a name is needed");
        return refuse(REASON_MALFORMED_AUTHORITY);
    }
    t->authority = &q->authority;
    if (placeholder_inside_name(view_str(q->authority.host)))
        return refuse(REASON_PLACEHOLDER_WRONG_PLACE);
    return judge_name(l, t->sandbox, &q->authority);
}

/* ---- answers ---- */

/*
 * A name that is refused does not exist, for all types alike: resolvers then ask no other server and do not wait.
 * Our own troubles are failures, after which they may ask again.
 */
static enum reply_code code_of(enum reason why) {
    switch (why) {
    case REASON_ALLOWED:
        return REPLY_OK;
    case REASON_MALFORMED_REQUEST:
        return REPLY_MALFORMED;
    case REASON_RATE:
    case REASON_PEER_NOT_ALLOWED:
        return REPLY_REFUSED;
    case REASON_NOT_READY:
    case REASON_NOT_PROBED:
    case REASON_AUDIT_UNAVAILABLE:
    case REASON_BROKER_UNAVAILABLE:
    case REASON_TOO_MANY:
        return REPLY_FAILURE;
    default:
        return REPLY_NO_NAME;
    }
}

/* Of addresses that the client asked for; whatever else an allowed name may have is withheld. */
static const struct range *wanted(const struct lane *l, uint16_t type) {
    return type == QUERY_A ? range_of(l, 4) : type == QUERY_AAAA ? range_of(l, 6) : NULL;
}

static void answer(struct lane *l, uint32_t id, const struct trail *t, const struct range *r,
                   uint32_t number) {
    const struct reason_info *info = reason_info(reason_info(t->verdict.reason)->shown);
    char text[REPLY_TEXT_MAX];
    int n = snprintf(text, sizeof text, "exeat: %s; record %s", info->code, t->id);
    struct buf *b = channel_begin(l->proxy, LANE_FOUND, id, l->now ? l->now->number : 0);
    buf_put_u8(b, (uint8_t)code_of(t->verdict.reason));
    buf_put_u32(b, TTL_SECONDS);
    buf_put_u8(b, r != NULL);
    if (r) {
        struct address a = address_of(r, number);
        buf_put_u8(b, a.family);
        buf_put(b, view_of(a.bytes, a.family == 4 ? 4 : 16));
    }
    buf_put_block(b, t->verdict.allow || n <= 0 ? (struct view){NULL, 0} : view_str(text));
    channel_end(l->proxy);
}

static void record(struct lane *l, struct trail *t) {
    bool listed = t->verdict.allow || trail_lists(l, t);
    if (!t->verdict.allow)
        l->refusals++;
    if (!listed || trail_decide(l, t, 0) == 0)
        return;
    log_warn("a question for a name is not in the audit log");
    t->verdict = refuse(REASON_AUDIT_UNAVAILABLE);
}

int names_take_lookup(struct lane *l, struct message *m) {
    struct lookup q = {.type = 0};
    char type[12];
    struct names *n = names_get(l);
    if (!n)
        return ERR_MEMORY;
    if (read_lookup(m, &q) != 0 || m->id <= n->last)
        return ERR_BAD;
    n->last = m->id;
    struct trail t = {.door = "dns",
                      .of_name = true,
                      .client = q.client,
                      .meant = q.meant,
                      .host_sent = q.name,
                      .method = view_str(dns_query_type_name(q.type, type)),
                      .started = clock_mono(),
                      .generation = l->now ? l->now->number : 0};
    t.verdict = judge(l, &q, &t);
    const struct range *r = t.verdict.allow ? wanted(l, q.type) : NULL;
    struct mapped *found = r ? map(l, q.authority.host) : NULL;
    if (r && !found)
        t.verdict = refuse(REASON_RATE);
    record(l, &t);
    answer(l, m->id, &t, found && t.verdict.allow ? r : NULL, found ? found->n : 0);
    return 0;
}
