#include "egress/resolver.h"

#include "base/log.h"

/* Debian 13's library marks the calls that both versions have as deprecated. */
#define CARES_NO_DEPRECATED
#include <ares.h>
#include <assert.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

/*
 * Two tries of 1.5 s and 3 s: with one server the library is done at about
 * the time LIMIT_DNS_TIME gives up by default.
 */
enum { TRY_MS = 1500, TRIES = 2, GRACE_MS = 250, EDNS_SIZE = 1232, CLASS_IN = 1 };

static const uint64_t ns_per_ms = 1000000;

/* A descriptor the library wants watched. */
struct watch {
    struct resolver *resolver;
    struct event *event;
    ares_socket_t fd;
    struct watch *next;
};

struct resolver {
    struct loop *loop;
    ares_channel channel;
    struct event *tick;
    struct watch *watches;
    struct lookup *lookups;
    size_t n_lookups, most, n_servers;
    bool restarting; /* cancelled questions will be asked again */
};

struct half {
    struct lookup *lookup;
    enum dns_type type;
    bool pending; /* the library will call back */
    int result;   /* once it is not: 0, ERR_MISSING, ERR_BAD, ERR_TIMEOUT, ERR_SYSTEM */
    const char *why;
};

struct lookup {
    struct resolver *resolver;
    struct lookup *next;
    char name[HOST_SIZE];
    struct half halves[2];
    struct event *timer;
    struct deferred finish;
    resolver_done *done; /* NULL once called or cancelled */
    void *ctx;
    uint64_t deadline;
    bool late; /* the timer fired */
    struct resolved answer;
};

/* ---- the library's sockets and clock ---- */

static void tick_arm(struct resolver *r) {
    struct timeval tv;
    if (ares_timeout(r->channel, NULL, &tv))
        event_add(r->tick, &tv);
    else
        event_del(r->tick);
}

static void on_tick(evutil_socket_t fd, short what, void *ctx) {
    struct resolver *r = ctx;
    (void)fd;
    (void)what;
    ares_process_fd(r->channel, ARES_SOCKET_BAD, ARES_SOCKET_BAD);
    tick_arm(r);
}

static void on_socket(evutil_socket_t fd, short what, void *ctx) {
    struct watch *w = ctx;
    struct resolver *r = w->resolver; /* w may be gone after the next call */
    ares_process_fd(r->channel, what & EV_READ ? fd : ARES_SOCKET_BAD,
                    what & EV_WRITE ? fd : ARES_SOCKET_BAD);
    tick_arm(r);
}

static void watch_free(struct watch **at) {
    struct watch *w = *at;
    *at = w->next;
    if (w->event)
        event_free(w->event);
    free(w);
}

static void watch_set(struct watch *w, short what) {
    if (w->event)
        event_free(w->event);
    w->event =
        event_new(loop_base(w->resolver->loop), w->fd, (short)(what | EV_PERSIST), on_socket, w);
    /* Without the event the question runs into its timeout. */
    if (w->event)
        event_add(w->event, NULL);
}

static void on_socket_state(void *ctx, ares_socket_t fd, int readable, int writable) {
    struct resolver *r = ctx;
    struct watch **at = &r->watches;
    while (*at && (*at)->fd != fd)
        at = &(*at)->next;
    if (!readable && !writable) {
        if (*at)
            watch_free(at);
        return;
    }
    if (!*at) {
        struct watch *w = calloc(1, sizeof *w);
        if (!w)
            return;
        w->resolver = r;
        w->fd = fd;
        *at = w;
    }
    watch_set(*at, (short)((readable ? EV_READ : 0) | (writable ? EV_WRITE : 0)));
}

/* ---- one lookup ---- */

static void lookup_free(struct lookup *l) {
    struct resolver *r = l->resolver;
    struct lookup **at = &r->lookups;
    while (*at != l)
        at = &(*at)->next;
    *at = l->next;
    r->n_lookups--;
    loop_forget(r->loop, &l->finish);
    event_free(l->timer);
    free(l);
}

static void lookup_release(struct lookup *l) {
    if (!l->done && !l->halves[0].pending && !l->halves[1].pending)
        lookup_free(l);
}

/* What both halves say together. Any broken answer spoils the name; an address beats the other half's failure. */
static void sum_up(struct lookup *l) {
    static const int order[] = {ERR_BAD, 0, ERR_MEMORY, ERR_TIMEOUT, ERR_SYSTEM, ERR_MISSING};
    for (size_t i = 0; i < sizeof order / sizeof *order; i++)
        for (size_t k = 0; k < 2; k++) {
            const struct half *h = &l->halves[k];
            int result = h->pending ? ERR_TIMEOUT : h->result;
            if (result != order[i])
                continue;
            l->answer.result = result;
            l->answer.why = h->pending ? "no answer from the resolver in time" : h->why;
            return;
        }
}

static void on_finish(void *ctx) {
    struct lookup *l = ctx;
    resolver_done *done = l->done;
    sum_up(l);
    l->done = NULL;
    event_del(l->timer);
    if (done)
        done(l->ctx, &l->answer);
    lookup_release(l);
}

static bool lookup_is_over(const struct lookup *l) {
    bool over = true;
    for (size_t i = 0; i < 2; i++) {
        const struct half *h = &l->halves[i];
        if (!h->pending && h->result == ERR_BAD)
            return true;
        over = over && !h->pending;
    }
    return over || l->late;
}

static void lookup_step(struct lookup *l) {
    const struct timeval grace = {0, GRACE_MS * 1000};
    if (!l->done)
        lookup_release(l);
    else if (lookup_is_over(l))
        loop_defer(l->resolver->loop, &l->finish);
    else if (l->answer.n > 0 && l->deadline > clock_mono() + GRACE_MS * ns_per_ms)
        evtimer_add(l->timer, &grace);
}

static void on_timer(evutil_socket_t fd, short what, void *ctx) {
    struct lookup *l = ctx;
    (void)fd;
    (void)what;
    l->late = true;
    lookup_step(l);
}

static bool alias_is_known(const struct resolved *r, struct view alias) {
    struct view rest = view_str(r->aliases);
    while (!view_is_empty(rest))
        if (view_equal(view_cut(&rest, ' '), alias))
            return true;
    return false;
}

static void add_alias(struct resolved *r, const char *alias) {
    size_t used = strlen(r->aliases), n = strlen(alias);
    if (alias_is_known(r, view_str(alias)) || n + 2 > sizeof r->aliases - used)
        return;
    if (used)
        r->aliases[used++] = ' ';
    memcpy(r->aliases + used, alias, n + 1);
}

static void read_answer(struct half *h, struct view message) {
    struct resolved *r = &h->lookup->answer;
    struct dns_answer a;
    if (dns_answer_read(message, h->lookup->name, h->type, &a, &h->why) != 0) {
        h->result = ERR_BAD;
        return;
    }
    for (size_t i = 0; i < a.n_aliases; i++)
        add_alias(r, a.aliases[i]);
    for (size_t i = 0; i < a.n_addresses; i++)
        r->addresses[r->n++] = a.addresses[i];
    h->result = a.n_addresses ? 0 : ERR_MISSING;
    h->why = "the name has no address";
}

/* The library says of this the same as of a server that cannot be reached. */
static bool lacks_descriptors(void) {
    int fd = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);
    if (fd < 0)
        return errno == EMFILE || errno == ENFILE;
    close(fd);
    return false;
}

static void read_failure(struct half *h, int status) {
    switch (status) {
    case ARES_ENOTFOUND:
        h->result = ERR_MISSING;
        h->why = "there is no such name";
        break;
    case ARES_ENODATA:
        h->result = ERR_MISSING;
        h->why = "the name has no address";
        break;
    case ARES_EBADRESP:
    case ARES_EBADSTR:
    case ARES_EBADNAME:
        h->result = ERR_BAD;
        h->why = "the answer is malformed";
        break;
    case ARES_ETIMEOUT:
        h->result = ERR_TIMEOUT;
        h->why = "no answer from the resolver in time";
        break;
    case ARES_ENOMEM:
        h->result = ERR_MEMORY;
        h->why = "out of memory";
        break;
    case ARES_ECONNREFUSED:
        h->result = lacks_descriptors() ? ERR_MEMORY : ERR_SYSTEM;
        h->why = h->result == ERR_MEMORY ? "no descriptors" : "the resolver cannot be reached";
        break;
    default:
        h->result = ERR_SYSTEM;
        h->why = "the resolver failed or refused to answer";
    }
}

static void on_answer(void *ctx, int status, int timeouts, unsigned char *p, int n) {
    struct half *h = ctx;
    (void)timeouts;
    if (status == ARES_ECANCELLED && h->lookup->resolver->restarting)
        return; /* stays pending: resolver_use asks again */
    h->pending = false;
    if (status == ARES_SUCCESS && p && n > 0)
        read_answer(h, view_of(p, (size_t)n));
    else
        read_failure(h, status);
    lookup_step(h->lookup);
}

/* ---- asking ---- */

static void ask_half(struct half *h) {
    struct resolver *r = h->lookup->resolver;
    if (r->n_servers > 0) {
        ares_query(r->channel, h->lookup->name, CLASS_IN, (int)h->type, on_answer, h);
        return;
    }
    h->pending = false;
    h->result = ERR_SYSTEM;
    h->why = "no resolver is configured";
    lookup_step(h->lookup);
}

static struct lookup *lookup_new(struct resolver *r, const char *name, resolver_done *done,
                                 void *ctx) {
    struct lookup *l = calloc(1, sizeof *l);
    if (!l)
        return NULL;
    l->resolver = r;
    l->timer = evtimer_new(loop_base(r->loop), on_timer, l);
    if (!l->timer || view_cstr(view_str(name), l->name, sizeof l->name) != 0) {
        if (l->timer)
            event_free(l->timer);
        free(l);
        return NULL;
    }
    l->finish = (struct deferred){.run = on_finish, .ctx = l};
    l->done = done;
    l->ctx = ctx;
    l->halves[0] = (struct half){l, DNS_AAAA, true, 0, NULL};
    l->halves[1] = (struct half){l, DNS_A, true, 0, NULL};
    l->next = r->lookups;
    r->lookups = l;
    r->n_lookups++;
    return l;
}

struct lookup *resolver_ask(struct resolver *r, const char *name, unsigned milliseconds,
                            resolver_done *done, void *ctx) {
    struct timeval tv = {milliseconds / 1000, (long)(milliseconds % 1000) * 1000};
    struct lookup *l = r->n_lookups < r->most ? lookup_new(r, name, done, ctx) : NULL;
    if (!l)
        return NULL;
    l->deadline = clock_mono() + milliseconds * ns_per_ms;
    evtimer_add(l->timer, &tv);
    for (size_t i = 0; i < 2; i++)
        ask_half(&l->halves[i]);
    tick_arm(r);
    return l;
}

void lookup_cancel(struct lookup *l) {
    l->done = NULL;
    event_del(l->timer);
    lookup_release(l);
}

size_t resolver_lookups(const struct resolver *r) {
    return r->n_lookups;
}

/* ---- servers ---- */

static struct ares_addr_port_node *server_list(const struct resolver_server *servers, size_t n) {
    struct ares_addr_port_node *nodes = calloc(n ? n : 1, sizeof *nodes);
    for (size_t i = 0; nodes && i < n; i++) {
        struct ares_addr_port_node *node = &nodes[i];
        node->next = i + 1 < n ? node + 1 : NULL;
        node->udp_port = node->tcp_port = servers[i].port;
        node->family = servers[i].address.family == 4 ? AF_INET : AF_INET6;
        if (node->family == AF_INET)
            memcpy(&node->addr.addr4, servers[i].address.bytes, 4);
        else
            memcpy(&node->addr.addr6, servers[i].address.bytes, 16);
    }
    return nodes;
}

static void ask_again(struct resolver *r) {
    for (struct lookup *l = r->lookups, *next; l; l = next) {
        next = l->next;
        struct half *halves = l->halves;
        bool pending[2] = {halves[0].pending, halves[1].pending};
        /* The name's owner no longer waits: nothing is asked on nobody's behalf. */
        if (!l->done) {
            halves[0].pending = halves[1].pending = false;
            lookup_release(l);
            continue;
        }
        for (size_t i = 0; i < 2; i++)
            if (pending[i])
                ask_half(&halves[i]);
    }
}

int resolver_use(struct resolver *r, const struct resolver_server *servers, size_t n) {
    struct ares_addr_port_node *nodes = server_list(servers, n);
    if (!nodes)
        return ERR_MEMORY;
    /* Older libraries change servers only while no question is open. */
    r->restarting = true;
    ares_cancel(r->channel);
    r->restarting = false;
    int status = n ? ares_set_servers_ports(r->channel, nodes) : ARES_SUCCESS;
    free(nodes);
    r->n_servers = status == ARES_SUCCESS ? n : 0;
    ask_again(r);
    tick_arm(r);
    return status == ARES_SUCCESS ? 0 : ERR_SYSTEM;
}

/* ---- life ---- */

/* Every setting is given, so that the library has no reason to look for one in a file. */
static int open_channel(struct resolver *r) {
    struct ares_options o = {
        .flags = ARES_FLAG_NOSEARCH | ARES_FLAG_NOALIASES | ARES_FLAG_EDNS,
        .timeout = TRY_MS,
        .tries = TRIES,
        .ndots = 1,
        .udp_port = 53,
        .tcp_port = 53,
        .lookups = (char *)(uintptr_t) "b",
        .sock_state_cb = on_socket_state,
        .sock_state_cb_data = r,
        .ednspsz = EDNS_SIZE,
    };
    int mask = ARES_OPT_FLAGS | ARES_OPT_TIMEOUTMS | ARES_OPT_TRIES | ARES_OPT_NDOTS |
               ARES_OPT_UDP_PORT | ARES_OPT_TCP_PORT | ARES_OPT_SERVERS | ARES_OPT_DOMAINS |
               ARES_OPT_LOOKUPS | ARES_OPT_SOCK_STATE_CB | ARES_OPT_SORTLIST | ARES_OPT_EDNSPSZ |
               ARES_OPT_NOROTATE;
#ifdef ARES_OPT_UDP_MAX_QUERIES
    /* A port of its own for each question: a spoofed answer must guess it as well. */
    o.udp_max_queries = 1;
    mask |= ARES_OPT_UDP_MAX_QUERIES;
#endif
#ifdef ARES_OPT_QUERY_CACHE
    o.qcache_max_ttl = 0;
    mask |= ARES_OPT_QUERY_CACHE;
#endif
    return ares_init_options(&r->channel, &o, mask);
}

struct resolver *resolver_new(struct loop *l, size_t most) {
    if (ares_library_init(ARES_LIB_INIT_ALL) != ARES_SUCCESS)
        return NULL;
    struct resolver *r = calloc(1, sizeof *r);
    if (!r)
        return NULL;
    r->loop = l;
    r->most = most;
    r->tick = evtimer_new(loop_base(l), on_tick, r);
    int status = r->tick ? open_channel(r) : ARES_ENOMEM;
    if (status == ARES_SUCCESS)
        return r;
    log_warn("resolver: %s", ares_strerror(status));
    if (r->tick)
        event_free(r->tick);
    free(r);
    return NULL;
}

void resolver_free(struct resolver *r) {
    if (!r)
        return;
    for (struct lookup *l = r->lookups, *next; l; l = next) {
        next = l->next;
        lookup_cancel(l);
    }
    ares_destroy(r->channel);
    assert(!r->lookups && !r->watches);
    event_free(r->tick);
    free(r);
}
