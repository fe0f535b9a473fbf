#include "egress/dialer.h"

#include "base/child.h"
#include "base/file.h"
#include "base/log.h"
#include "base/rights.h"
#include "egress/connect.h"
#include "egress/dials.h"
#include "egress/resolv_conf.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>

enum {
    LANE_DIALS = 512,
    ACTIVE_MAX = 1024,
    ACTIVE_LEAST = 32,
    OTHER_DESCRIPTORS = 256, /* channels, resolver, loop */
    RESOLV_CONF_MAX = 64 * 1024,
    DNS_PORT = 53,
};

struct process {
    struct child *child;
    struct dials *dials;
};

static int on_peer(void *ctx, enum role role, uint32_t lane, struct view name, int fd) {
    struct process *p = ctx;
    (void)name;
    if (role == ROLE_EGRESS)
        return dials_peer(p->dials, lane, fd);
    if (role == ROLE_AUDIT)
        return dials_audit(p->dials, fd);
    close(fd);
    return ERR_BAD;
}

static void on_peer_gone(void *ctx, enum role role, uint32_t lane) {
    struct process *p = ctx;
    if (role == ROLE_EGRESS)
        dials_peer_gone(p->dials, lane);
    else if (role == ROLE_AUDIT && dials_audit(p->dials, -1) != 0)
        log_warn("audit's end could not be noted");
}

static int on_generation(void *ctx, uint32_t generation, struct view text) {
    struct process *p = ctx;
    return dials_generation(p->dials, generation, text);
}

static void on_commit(void *ctx, uint32_t generation) {
    struct process *p = ctx;
    dials_commit(p->dials, generation);
}

static void on_status(void *ctx, struct buf *out) {
    struct process *p = ctx;
    dials_status(p->dials, out);
}

static void on_bad_peer(void *ctx, uint32_t lane) {
    struct process *p = ctx;
    child_bad_peer(p->child, ROLE_EGRESS, lane);
}

static const struct child_ops ops = {.on_peer = on_peer,
                                     .on_peer_gone = on_peer_gone,
                                     .on_generation = on_generation,
                                     .on_commit = on_commit,
                                     .on_status = on_status};

/* The system's servers; none is no failure here, since the configuration may name some. */
static size_t read_system_servers(struct resolver_server *out) {
    static const char path[] = "/etc/resolv.conf";
    struct resolv_conf conf = {.n = 0};
    struct buf text;
    size_t line;
    buf_init(&text, RESOLV_CONF_MAX + 4096);
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    int result = fd < 0 ? ERR_SYSTEM : file_read(fd, RESOLV_CONF_MAX, &text);
    if (result != 0)
        log_warn("%s: %s", path, fd < 0 ? strerror(errno) : err_text(result));
    else if ((result = resolv_conf_read(buf_view(&text), &conf, &line)) == ERR_BAD)
        log_warn("%s:%zu: not a nameserver's address; the file is not used", path, line);
    buf_free(&text);
    if (result != 0)
        return 0;
    for (size_t i = 0; i < conf.n; i++)
        out[i] = (struct resolver_server){conf.servers[i], DNS_PORT};
    return conf.n;
}

/* How many dials can be at work with the descriptors we may have; 0: too few. */
static size_t active_dials(void) {
    struct rlimit files;
    const size_t least = OTHER_DESCRIPTORS + ACTIVE_LEAST * CONNECT_ATTEMPTS_MAX;
    if (getrlimit(RLIMIT_NOFILE, &files) != 0 || files.rlim_cur < least) {
        log_fatal("too few open files are allowed: raise the limit (RLIMIT_NOFILE) to %zu at least",
                  least);
        return 0;
    }
    size_t n = (files.rlim_cur - OTHER_DESCRIPTORS) / CONNECT_ATTEMPTS_MAX;
    if (n < ACTIVE_MAX)
        log_warn("%llu open files are allowed: no more than %zu dials at once",
                 (unsigned long long)files.rlim_cur, n);
    return n < ACTIVE_MAX ? n : ACTIVE_MAX;
}

static int run(struct process *p, struct loop *loop, const struct role_args *args) {
    p->child = child_new(loop, args, &ops, p);
    if (!p->child)
        return 1;
    child_up(p->child, (struct view){NULL, 0});
    int result = loop_run(loop) == 0 ? 0 : 1;
    /* Dials first: they may still report a bad peer. */
    dials_free(p->dials);
    p->dials = NULL;
    child_free(p->child);
    return result;
}

int dialer_main(const struct role_args *args) {
    struct resolver_server system[RESOLVERS_MAX];
    struct process p = {NULL, NULL};
    int result = 1;
    log_open("dialer", args->debug ? LOG_DEBUG : LOG_INFO);
    size_t active = active_dials();
    struct loop *loop = active > 0 ? loop_new() : NULL;
    struct dials_options o = {.loop = loop,
                              .system = system,
                              .n_system = read_system_servers(system),
                              .lane_max = LANE_DIALS,
                              .active_max = active,
                              .bad_peer = on_bad_peer,
                              .ctx = &p};
    struct interfaces *interfaces = loop ? interfaces_new(loop) : NULL;
    struct geography *geography = geography_open(args->geo_country, args->geo_asn);
    o.resolver = loop ? resolver_new(loop, 4 * active) : NULL;
    o.interfaces = interfaces;
    o.geography = geography;
    if (interfaces && geography && o.resolver)
        p.dials = dials_new(&o);
    if (p.dials && rights_enter(args) == 0)
        result = run(&p, loop, args);
    dials_free(p.dials);
    resolver_free(o.resolver);
    interfaces_free(interfaces);
    geography_free(geography);
    loop_free(loop);
    return result;
}
