#include "proxy/proxy.h"

#include "base/child.h"
#include "base/json.h"
#include "base/log.h"
#include "base/rights.h"
#include "http/http1.h"
#include "policy/admission.h"
#include "proxy/client.h"
#include "proxy/courier.h"
#include "proxy/door.h"
#include "proxy/hear.h"
#include "proxy/hostile.h"
#include "proxy/intake.h"
#include "proxy/names.h"
#include "proxy/relay.h"

#include <malloc.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

enum {
    LANE_UNSENT_MAX = 1024 * 1024, /* far below CHANNEL_OUT_MAX, where the channel would end */
    LANE_RETRY_MS = 5,
    STOP_SECONDS = 10,
    WAVE = 64,          /* connections; fewer are not worth the time */
    LISTENERS_MAX = 64, /* of a lane */
};
/* Ids are never used twice: some time before the last, the process drains and is started anew. */
#define LAST_ID (UINT32_MAX - (UINT32_C(1) << 26))
#define SECOND UINT64_C(1000000000)

/* ---- the turn of the loop ---- */

static void free_dead(struct proxy *p) {
    while (p->dead) {
        struct client *c = p->dead;
        p->dead = c->next_dead;
        client_free(c);
    }
    door_retry(p->door);
}

static void on_turn_end(void *ctx) {
    struct proxy *p = ctx;
    while (p->dirty) {
        struct client *c = p->dirty;
        p->dirty = c->next_dirty;
        c->is_dirty = false;
        client_flush(c);
    }
    if (p->dead)
        free_dead(p);
    if (p->stopping && p->n_clients == 0)
        loop_stop(p->loop);
}

void proxy_at_turn_end(struct proxy *p) {
    loop_defer(p->loop, &p->turn);
}

static void on_second(evutil_socket_t fd, short what, void *ctx) {
    struct proxy *p = ctx;
    (void)fd;
    (void)what;
    proxy_sweep(p, clock_mono());
}

/* A wave of connections is over: what they took goes back to the system, not only to malloc. */
static void give_memory_back(struct proxy *p) {
    if (p->n_clients > p->most_clients)
        p->most_clients = p->n_clients;
    if (p->most_clients < WAVE || p->n_clients > p->most_clients / 2)
        return;
    p->most_clients = p->n_clients;
    malloc_trim(0);
}

void proxy_sweep(struct proxy *p, uint64_t now) {
    for (struct client *c = p->clients; c; c = c->next)
        client_sweep(c, now);
    names_sweep(p, now);
    door_retry(p->door);
    give_memory_back(p);
    if (p->last_tunnel > LAST_ID || p->last_exchange > LAST_ID || p->last_lookup > LAST_ID)
        proxy_stop(p);
    if (p->stopping && now >= p->stop_by)
        loop_stop(p->loop);
}

/* ---- a lane that takes less than clients give ---- */

bool proxy_lane_full(struct proxy *p) {
    static const struct timeval soon = {0, LANE_RETRY_MS * 1000};
    if (channel_unsent(p->lane) < LANE_UNSENT_MAX)
        return false;
    channel_flush(p->lane);
    if (channel_unsent(p->lane) < LANE_UNSENT_MAX)
        return false;
    event_add(p->retry, &soon);
    return true;
}

static void on_retry(evutil_socket_t fd, short what, void *ctx) {
    struct proxy *p = ctx;
    (void)fd;
    (void)what;
    if (p->n_waiting == 0 || proxy_lane_full(p))
        return;
    for (struct client *c = p->clients; c; c = c->next)
        client_resume(c);
    names_resume(p);
    door_retry(p->door);
}

/* ---- life ---- */

struct proxy *proxy_new(struct loop *l, struct tls_server *server, int lane_fd,
                        const struct proxy_listener *listeners, size_t n_listeners,
                        const struct limits *limits) {
    static const struct timeval second = {1, 0};
    struct proxy *p = calloc(1, sizeof *p);
    if (!p) {
        close(lane_fd);
        return NULL;
    }
    p->loop = l;
    p->server = server;
    p->limits = *limits;
    p->turn = (struct deferred){.run = on_turn_end, .ctx = p};
    TAILQ_INIT(&p->yielding);
    p->leaves = leaf_cache_new((size_t)limits->v[LIMIT_LEAVES]);
    p->door = door_new(p, listeners, n_listeners);
    p->names = names_new(p, listeners, n_listeners);
    p->sweep = event_new(loop_base(l), -1, EV_PERSIST, on_second, p);
    p->retry = event_new(loop_base(l), -1, 0, on_retry, p);
    if (hear_begin(p, lane_fd) != 0 || !p->leaves || !p->door || !p->names || !p->sweep ||
        !p->retry || event_add(p->sweep, &second) != 0) {
        proxy_free(p);
        return NULL;
    }
    return p;
}

void proxy_free(struct proxy *p) {
    if (!p)
        return;
    while (p->clients) {
        struct client *c = p->clients;
        client_drop(c);
        c->is_dirty = false;
        client_free(c);
    }
    loop_forget(p->loop, &p->turn);
    relay_free_spare(p);
    while (p->n_parsers > 0)
        http1_free(p->parsers[--p->n_parsers]);
    table_free(&p->tunnels);
    table_free(&p->relays);
    leaf_cache_free(p->leaves);
    door_free(p->door);
    names_free(p->names);
    if (p->sweep)
        event_free(p->sweep);
    if (p->retry)
        event_free(p->retry);
    channel_free(p->lane);
    free(p);
}

void proxy_open(struct proxy *p) {
    if (!p->stopping)
        door_open(p->door);
}

void proxy_limit(struct proxy *p, const struct limits *limits) {
    p->limits = *limits;
    leaf_cache_limit(p->leaves, (size_t)limits->v[LIMIT_LEAVES]);
}

void proxy_take(struct proxy *p, int fd, enum way_in way, const char *peer, const char *meant) {
    evutil_make_socket_nonblocking(fd);
    client_new(p, fd, way, peer, meant);
}

void proxy_take_relayed(struct proxy *p, int fd, const char *peer) {
    evutil_make_socket_nonblocking(fd);
    struct client *c = client_new(p, fd, WAY_EXPLICIT, peer, "");
    if (c)
        intake_admit(c, ADMITTED_RELAY);
}

void proxy_stop(struct proxy *p) {
    if (p->stopping)
        return;
    p->stopping = true;
    p->stop_by = loop_now(p->loop) + STOP_SECONDS * SECOND;
    door_close(p->door);
    for (struct client *c = p->clients; c; c = c->next) {
        if (c->state == CLIENT_IDLE)
            client_shut(c);
        else if (c->state < CLIENT_EXCHANGE)
            client_drop(c);
    }
    proxy_at_turn_end(p);
}

void proxy_status(const struct proxy *p, struct buf *out) {
    buf_printf(out, "\"connections\":%zu,\"exchanges\":%zu,\"tunnels\":%zu,\"leaves\":%zu",
               p->n_clients, p->relays.n, p->tunnels.n, leaf_cache_count(p->leaves));
}

/* ---- the process ---- */

/* What the parent has said and not yet committed. */
struct process {
    struct proxy *proxy;
    const struct role_args *args;
    pid_t courier; /* 0: there is none */
    struct limits next;
};

static int on_generation(void *ctx, uint32_t generation, struct view text) {
    struct process *s = ctx;
    struct reader r = reader_of(text);
    struct limits limits;
    (void)generation;
    if (limits_read(&r, &limits) != 0 || !read_done(&r))
        return ERR_BAD;
    s->next = limits;
    return 0;
}

static void on_commit(void *ctx, uint32_t generation) {
    struct process *s = ctx;
    (void)generation;
    proxy_limit(s->proxy, &s->next);
    proxy_open(s->proxy);
    proxy_hostile_serve(s->proxy, s->args);
}

static void on_stop(void *ctx) {
    struct process *s = ctx;
    proxy_stop(s->proxy);
}

static void on_status(void *ctx, struct buf *out) {
    struct process *s = ctx;
    proxy_status(s->proxy, out);
    if (s->courier > 0)
        json_put_number(out, "courier_pid", (uint64_t)s->courier);
}

static const struct child_ops ops = {
    .on_generation = on_generation,
    .on_commit = on_commit,
    .on_stop = on_stop,
    .on_status = on_status,
};

static int serve(struct loop *l, struct tls_server *server, const struct role_args *args,
                 const struct proxy_listener *listeners, pid_t courier) {
    struct process s = {.args = args, .courier = courier};
    limits_default(&s.next);
    s.proxy = proxy_new(l, server, LANE_FD, listeners, args->listeners, &s.next);
    struct child *parent = s.proxy ? child_new(l, args, &ops, &s) : NULL;
    int result = 1;
    if (parent) {
        child_up(parent, tls_server_public_key(server));
        result = loop_run(l) != 0 || s.proxy->lost ? 1 : 0;
    }
    proxy_free(s.proxy);
    child_free(parent);
    return result;
}

/* What each of them is for: a digit for each on the command line, none: explicit. And whom it lets in. */
static bool find_listeners(const struct role_args *args, struct proxy_listener *out) {
    static struct admission admissions[LISTENERS_MAX];
    struct view ways = view_str(args->ways), admit = view_str(args->admit);
    if (!view_is_empty(ways) && ways.n != args->listeners)
        return false;
    for (int i = 0; i < args->listeners; i++) {
        int way = view_is_empty(ways) ? WAY_EXPLICIT : ways.p[i] - '0';
        if (way < WAY_EXPLICIT || way > WAY_LAST)
            return false;
        bool last = i + 1 == args->listeners;
        if (args->admit && (view_find(admit, ';') == admit.n) != last)
            return false;
        if (admission_read(view_cut(&admit, ';'), &admissions[i]) != 0)
            return false;
        out[i] = (struct proxy_listener){LISTENER_FD + i, (enum way_in)way, &admissions[i]};
    }
    return true;
}

int proxy_main(const struct role_args *args) {
    char name[32];
    snprintf(name, sizeof name, "proxy %u", args->lane);
    log_open(name, args->debug ? LOG_DEBUG : LOG_INFO);
    if (args->listeners > LISTENERS_MAX) {
        log_fatal("%u listeners are too many", args->listeners);
        return 1;
    }
    struct proxy_listener listeners[LISTENERS_MAX];
    pid_t courier;
    /* Before this process holds anything of its own, and narrows itself. */
    if (!find_listeners(args, listeners) || courier_start(args, listeners, &courier) != 0) {
        log_fatal("the listeners are not usable");
        return 1;
    }
    struct tls_server *server = tls_server_new();
    if (!server || http1_self_test() != 0) {
        log_fatal("the TLS or the HTTP library is not usable");
        return 1;
    }
    if (rights_enter(args) != 0) {
        log_fatal("rights cannot be narrowed");
        return 1;
    }
    proxy_hostile_narrowed(args);
    struct loop *l = loop_new();
    int result = l ? serve(l, server, args, listeners, courier) : 1;
    loop_free(l);
    tls_server_free(server);
    return result;
}
