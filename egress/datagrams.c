#include "egress/datagrams.h"

#include "base/log.h"
#include "egress/identity.h"
#include "egress/lane_messages.h"
#include "egress/trail.h"

#include <stdlib.h>
#include <string.h>

enum { KEPT = 64 /* destinations that were recorded; of more, the oldest are recorded again */ };
#define MINUTE UINT64_C(60000000000)

struct datagrams {
    struct {
        char to[LANE_ADDRESS_MAX + 1];
        uint64_t until;
    } kept[KEPT];
    size_t next;
};

/* Whether it is the first of its minute; it is kept then. */
static bool is_new(struct datagrams *d, struct view to, uint64_t now) {
    for (size_t i = 0; i < KEPT; i++)
        if (now < d->kept[i].until && view_equal(view_str(d->kept[i].to), to))
            return false;
    d->kept[d->next].until =
        view_cstr(to, d->kept[d->next].to, sizeof d->kept[0].to) == 0 ? now + MINUTE : 0;
    d->next = (d->next + 1) % KEPT;
    return true;
}

static void record(struct lane *l, struct view client, struct view meant) {
    char sandbox[IDENTITY_SIZE];
    struct proof proof;
    enum reason why;
    struct trail t = {.door = "udp",
                      .client = client,
                      .meant = meant,
                      .detail = VIEW("a datagram, which the kernel refused"),
                      .verdict = {.reason = REASON_PROTOCOL_NOT_ALLOWED, .swap = -1},
                      .started = clock_mono(),
                      .generation = l->now->number};
    if (identity_find(l, true, 0, (struct view){NULL, 0}, sandbox, &proof, &why) != 0)
        return;
    t.sandbox = view_str(sandbox);
    l->refusals++;
    if (trail_lists(l, &t) && trail_decide(l, &t, 0) != 0)
        log_warn("a refused datagram is not in the audit log");
}

int datagrams_take(struct lane *l, struct message *m) {
    struct reader r = reader_of(m->body);
    struct view client = read_block(&r, LANE_ADDRESS_MAX), meant = read_block(&r, LANE_ADDRESS_MAX);
    if (!read_done(&r))
        return ERR_BAD;
    if (!l->datagrams)
        l->datagrams = calloc(1, sizeof *l->datagrams);
    if (!l->datagrams)
        return ERR_MEMORY;
    if (l->now && trail_ready(l) && is_new(l->datagrams, meant, loop_now(l->loop)))
        record(l, client, meant);
    return 0;
}
