#include "daemon/start.h"

#include "base/log.h"
#include "daemon/lanes.h"
#include "daemon/links.h"
#include "daemon/parent.h"
#include "daemon/places.h"
#include "daemon/process.h"

#include <sys/socket.h>
#include <unistd.h>

const enum role lane_roles[LANE_ROLES] = {ROLE_PROXY, ROLE_EGRESS, ROLE_INSPECT};

enum { BACKOFF_FIRST_MS = 100, BACKOFF_MOST_MS = 10000, STEADY_SECONDS = 60 };

static void wait_to_start(struct process *of);

static bool lane_is_down(struct parent *p, uint32_t lane) {
    for (struct process *of = p->processes; of; of = of->next)
        if (of->lane == lane && of->state != PROCESS_DOWN)
            return false;
    return true;
}

/* Only inspect is missing, which comes back alone. */
static bool lane_is_up(struct parent *p, uint32_t lane) {
    return process_runs(process_find(p, ROLE_PROXY, lane)) &&
           process_runs(process_find(p, ROLE_EGRESS, lane));
}

/* ---- inspect sleeps until egress writes to the channel between them ---- */

void start_cancel(struct process *inspect) {
    if (inspect->wake)
        event_free(inspect->wake);
    inspect->wake = NULL;
    if (inspect->lane_fd >= 0)
        close(inspect->lane_fd);
    inspect->lane_fd = -1;
    inspect->state = PROCESS_DOWN;
}

static void on_wake(evutil_socket_t fd, short what, void *ctx) {
    struct process *inspect = ctx;
    uint8_t byte;
    (void)what;
    /* Readable because egress has ended: the whole lane begins again. */
    if (recv(fd, &byte, 1, MSG_PEEK | MSG_DONTWAIT) <= 0)
        return;
    event_free(inspect->wake);
    inspect->wake = NULL;
    start_process(inspect);
}

static void put_to_sleep(struct parent *p, uint32_t lane) {
    struct process *inspect = process_find(p, ROLE_INSPECT, lane),
                   *egress = process_find(p, ROLE_EGRESS, lane);
    int pair[2];
    /* No channel: egress does not run, and the lane begins again. */
    if (!egress->channel)
        return;
    if (channel_pair(pair) != 0) {
        log_warn("%s: no descriptors", inspect->origin);
        start_again_later(inspect);
        return;
    }
    inspect->lane_fd = pair[0];
    inspect->wake = event_new(loop_base(p->loop), pair[0], EV_READ, on_wake, inspect);
    if (inspect->wake && event_add(inspect->wake, NULL) == 0) {
        inspect->state = PROCESS_ASLEEP;
        links_send_peer(egress, ROLE_INSPECT, lane, view_str(inspect->origin), pair[1]);
    } else {
        close(pair[1]);
        start_cancel(inspect);
        start_again_later(inspect);
    }
}

/* Egress has given up its end of the channel before anybody was woken. */
void start_asleep_again(struct process *inspect) {
    start_cancel(inspect);
    put_to_sleep(inspect->parent, inspect->lane);
}

/* Proxy and egress of a lane are born with a channel between them, and die together. */
void start_lane(struct parent *p, uint32_t lane) {
    struct process *proxy = process_find(p, ROLE_PROXY, lane),
                   *egress = process_find(p, ROLE_EGRESS, lane);
    int pair[2];
    if (channel_pair(pair) != 0) {
        log_warn("lane %u: no descriptors", lane);
        start_again_later(proxy);
        return;
    }
    proxy->lane_fd = pair[0];
    start_process(proxy);
    start_process(egress);
    if (egress->channel)
        links_send_peer(egress, ROLE_PROXY, lane, view_str(proxy->origin), pair[1]);
    else
        close(pair[1]);
    put_to_sleep(p, lane);
}

static void on_restart(evutil_socket_t fd, short what, void *ctx) {
    struct process *of = ctx;
    struct parent *p = of->parent;
    (void)fd;
    (void)what;
    if (p->stopping || of->state != PROCESS_DOWN)
        return;
    if (of->lane == 0)
        start_process(of);
    else if (of->role == ROLE_INSPECT && lane_is_up(p, of->lane))
        put_to_sleep(p, of->lane);
    else if (lane_is_down(p, of->lane))
        start_lane(p, of->lane);
    else
        wait_to_start(of); /* the rest of its lane has not been reaped yet */
}

static void wait_to_start(struct process *of) {
    const struct lane *lane = lanes_find(of->parent, of->lane);
    if (lane && lane->ended)
        return;
    struct timeval t = {of->backoff_ms / 1000, of->backoff_ms % 1000 * 1000};
    if (!of->restart)
        of->restart = event_new(loop_base(of->parent->loop), -1, 0, on_restart, of);
    if (!of->restart || event_add(of->restart, &t) != 0)
        log_warn("%s cannot be started again: no memory", of->origin);
}

void start_again_later(struct process *of) {
    bool steady = clock_mono() - of->started > STEADY_SECONDS * UINT64_C(1000000000);
    of->backoff_ms = steady || of->backoff_ms == 0 ? BACKOFF_FIRST_MS : of->backoff_ms * 2;
    if (of->backoff_ms > BACKOFF_MOST_MS)
        of->backoff_ms = BACKOFF_MOST_MS;
    wait_to_start(of);
    of->restarts++;
}

void start_process(struct process *of) {
    struct parent *p = of->parent;
    if (!process_start(of, p->rules, p->n_rules, p->closed)) {
        of->state = PROCESS_DOWN;
        start_again_later(of);
        return;
    }
    if (!place_files(p, of)) {
        /* A key file that cannot be opened is for the operator to mend. */
        if (!p->ready) {
            p->exit_status = 1;
            parent_stop(p);
        } else {
            process_kill(of);
        }
    }
}

/* The rest of a lane goes with its proxy or egress; inspect comes back alone. */
void lane_end(struct process *of) {
    for (size_t i = 0; i < LANE_ROLES; i++) {
        struct process *other = process_find(of->parent, lane_roles[i], of->lane);
        if (other->state == PROCESS_ASLEEP)
            start_cancel(other);
        if (other == of || !process_runs(other))
            continue;
        other->killed = true;
        process_kill(other);
    }
}
