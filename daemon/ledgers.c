#include "daemon/ledgers.h"

#include "base/log.h"
#include "daemon/lanes.h"

#include <fcntl.h>
#include <stdlib.h>
#include <sys/resource.h>
#include <unistd.h>

struct ledger_kept {
    struct ledger_kept *next;
    int fd;
    size_t n;
    char names[]; /* of its sandboxes, n bytes */
};

static bool has_room(const struct parent *p) {
    struct rlimit r;
    rlim_t room = LEDGERS_MAX;
    if (getrlimit(RLIMIT_NOFILE, &r) == 0 && r.rlim_cur / LEDGERS_SHARE < room)
        room = r.rlim_cur / LEDGERS_SHARE;
    for (const struct ledger_kept *k = p->ledgers; k && room > 0; k = k->next)
        room--;
    return room > 0;
}

void ledgers_keep(const struct lane *l, const struct process *egress) {
    struct parent *p = l->parent;
    struct view names = lanes_names(l);
    if (egress->ledger < 0 || view_is_empty(names))
        return;
    struct ledger_kept *k = has_room(p) ? malloc(sizeof *k + names.n) : NULL;
    int fd = k ? fcntl(egress->ledger, F_DUPFD_CLOEXEC, 0) : -1;
    if (fd < 0) {
        free(k);
        log_warn("lane %u: what its sandboxes used of their grants is forgotten: no memory or "
                 "descriptors, or too many are kept",
                 l->id);
        return;
    }
    k->fd = fd;
    k->n = names.n;
    view_copy(names, k->names);
    k->next = p->ledgers;
    p->ledgers = k;
}

int ledgers_take(const struct lane *l) {
    struct ledger_kept **at = &l->parent->ledgers, *k;
    struct view names = lanes_names(l);
    while ((k = *at) && !view_equal(view_of(k->names, k->n), names))
        at = &k->next;
    if (!k)
        return -1;
    int fd = k->fd;
    *at = k->next;
    free(k);
    return fd;
}
