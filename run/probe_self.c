#include "run/probe_self.h"

#include "run/probe_host.h"
#include "run/probe_network.h"

#include <limits.h>
#include <string.h>

/*
 * Ports where nobody listens in such a network (network.h): the kernel refuses at once. Of UDP only: TCP is captured at every port
 * and would be asked of exeat, and goes by the same routes. To nobody's addresses only: a record of one that is somebody's, such as
 * clouds' metadata services, is the sandbox's own then, and where loopback is all that is up they have no other way.
 */
enum { DISCARD = 9, QUIC = 443, WAIT_MS = 1000, PATHS_MAX = 1 << 20 };

static void keep(void *ctx, const struct finding *f) {
    report_put(ctx, f);
}

/* Whether the path is what a bind shows, or in it. */
static bool is_shown(const struct run_plan *plan, struct view path) {
    for (size_t i = 0; i < plan->n_binds; i++) {
        struct view to = view_str(plan->binds[i].to);
        if (view_starts(path, to) && (path.n == to.n || path.p[to.n] == '/' || to.n == 1))
            return true;
    }
    return false;
}

static void probe_paths(const struct probe *p, const struct run_plan *plan, const char *name,
                        void (*known)(struct buf *out),
                        void (*probe)(const struct probe *p, struct view paths)) {
    struct buf all, hidden;
    buf_init(&all, PATHS_MAX);
    buf_init(&hidden, PATHS_MAX);
    known(&all);
    for (struct view rest = buf_view(&all); rest.n > 0;) {
        struct view path = view_cut(&rest, 0);
        if (!is_shown(plan, path))
            buf_put(&hidden, view_of(path.p, path.n + 1));
    }
    if (buf_ok(&all) && buf_ok(&hidden))
        probe(p, buf_view(&hidden));
    else
        probe_tell(p, name, "all", PROBE_UNSURE, "bind fewer sockets in the sandbox",
                   "there are too many to be tried");
    buf_free(&all);
    buf_free(&hidden);
}

void probe_self(const struct run_plan *plan, struct buf *report) {
    const struct probe p = {.wait_ms = WAIT_MS, .tell = keep, .ctx = report};
    probe_interfaces(&p);
    probe_sockets(&p);
    for (size_t i = 0; i < PROBE_NOWHERE; i++) {
        probe_udp(&p, probe_nowhere[i], DISCARD);
        probe_udp(&p, probe_nowhere[i], QUIC);
    }
    probe_abstract(&p);
    probe_processes(&p);
    probe_paths(&p, plan, "socket", probe_known_sockets, probe_socket_files);
    probe_paths(&p, plan, "file", probe_known_files, probe_files);
}
