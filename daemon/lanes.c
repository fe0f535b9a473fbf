#include "daemon/lanes.h"

#include "base/log.h"
#include "base/patience.h"
#include "daemon/attached.h"
#include "daemon/ledgers.h"
#include "daemon/links.h"
#include "daemon/listeners.h"
#include "daemon/parent.h"
#include "daemon/places.h"
#include "daemon/process.h"
#include "daemon/rollout.h"
#include "daemon/start.h"
#include "daemon/suspended.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

enum { TICK_MS = 50, EGRESS_SECONDS = 2, CONFIG_MAX = 1 << 20 };

static bool has_ended(const struct lane *l) {
    return l->ended != 0;
}

struct lane *lanes_find(struct parent *p, uint32_t id) {
    struct lane *l = p->lanes;
    while (l && l->id != id)
        l = l->next;
    return l;
}

struct view lanes_names(const struct lane *l) {
    return l->config ? l->config->names : view_str(l->sandbox);
}

bool lanes_names_it(const struct lane *l, struct view sandbox) {
    struct view rest = lanes_names(l), name;
    while (lane_sandbox(&rest, &name))
        if (view_equal(name, sandbox))
            return true;
    return false;
}

bool lanes_serves(const struct lane *l, struct view sandbox) {
    return lanes_names_it(l, sandbox) || (l->config && l->config->everybody);
}

/* ---- one lane ---- */

static void close_listeners(struct lane *l) {
    for (size_t i = 0; i < l->n_listeners; i++)
        patience_close(l->listeners[i].fd);
    l->n_listeners = 0;
}

static void lane_free(struct lane *l) {
    struct lane **at = &l->parent->lanes;
    while (*at != l)
        at = &(*at)->next;
    *at = l->next;
    close_listeners(l);
    free(l);
}

/* The lowest number that is free; 0: there is none. */
static uint32_t free_number(struct parent *p) {
    uint32_t id = 1;
    while (lanes_find(p, id))
        id++;
    return id <= places_lanes(p) ? id : 0;
}

/* ERR_LIMIT, ERR_MEMORY. */
static int lane_add(struct parent *p, struct lane **out) {
    struct lane **at = &p->lanes;
    uint32_t id = free_number(p);
    struct lane *l = id ? calloc(1, sizeof *l) : NULL;
    if (!l)
        return id ? ERR_MEMORY : ERR_LIMIT;
    l->parent = p;
    l->id = id;
    /* In the order of their numbers, as the bundle has them. */
    while (*at && (*at)->id < id)
        at = &(*at)->next;
    l->next = *at;
    *at = l;
    *out = l;
    return 0;
}

/* Whom its listeners let in, as proxy reads it. */
static bool put_admissions(const struct lane *l, struct buf *out) {
    for (size_t i = 0; i < l->n_listeners; i++) {
        if (i > 0)
            buf_put_u8(out, ';');
        if (l->listeners[i].at)
            buf_put(out, l->listeners[i].at->admit);
    }
    buf_put_u8(out, 0);
    return buf_ok(out);
}

void lanes_start(struct lane *l) {
    struct parent *p = l->parent;
    struct process *audit = process_find(p, ROLE_AUDIT, 0), *of[LANE_ROLES];
    for (size_t i = 0; i < LANE_ROLES; i++)
        of[i] = process_add(p, lane_roles[i], l->id);
    if (!of[0] || !of[1] || !of[2]) {
        log_warn("lane %u: no memory or descriptors for its processes", l->id);
        lanes_end(l, "no memory or descriptors");
        return;
    }
    /* An audit that comes up later is given the streams of all. */
    if (audit->state == PROCESS_UP)
        links_send_records(audit, of[1]);
    of[1]->ledger = ledgers_take(l);
    for (size_t i = 0; i < l->n_listeners; i++) {
        of[0]->listeners[i] = l->listeners[i].fd;
        of[0]->ways[i] = (char)('0' + l->listeners[i].way);
    }
    of[0]->n_listeners = l->n_listeners;
    if (!put_admissions(l, &of[0]->admit)) {
        log_warn("lane %u: no memory for whom its listeners let in", l->id);
        lanes_end(l, "no memory");
        return;
    }
    start_lane(p, l->id);
}

/* ---- listeners ---- */

static bool same_rights(const struct config_listener *a, const struct config_listener *b) {
    return a->mode == b->mode && a->owner == b->owner && a->group == b->group && a->way == b->way &&
           a->tproxy == b->tproxy && strcmp(a->interface, b->interface) == 0;
}

/* One that is open at that place already. */
static const struct listener *find_open(const struct parent *p, const struct config_listener *at) {
    for (const struct lane *l = p->lanes; l; l = l->next)
        for (size_t i = 0; !has_ended(l) && i < l->n_listeners; i++)
            if (l->listeners[i].at && config_same_place(l->listeners[i].at, at) &&
                listener_hears(l->listeners[i].fd, l->listeners[i].at))
                return &l->listeners[i];
    return NULL;
}

/* A place that another lane has, and gives up with this plan, is taken over open: nobody is turned away. */
static int open_one(struct lane *l, const struct config_listener *at, struct buf *why) {
    const struct listener *open = find_open(l->parent, at);
    char name[256];
    listener_name(at, name, sizeof name);
    if (l->n_listeners == LISTENERS_MAX) {
        buf_printf(why, "%s:%u:%u: a lane has at most %d listeners", at->at.file, at->at.line,
                   at->at.column, LISTENERS_MAX);
        return ERR_LIMIT;
    }
    if (open && !same_rights(open->at, at) &&
        (at->place == PLACE_UNIX || open->at->tproxy != at->tproxy ||
         strcmp(open->at->interface, at->interface) != 0)) {
        buf_printf(why,
                   "%s:%u:%u: another mode, owner, group, interface or `tproxy` for the socket %s, "
                   "which is open: that takes a restart of exeatd",
                   at->at.file, at->at.line, at->at.column, name);
        return ERR_DENIED;
    }
    int fd = open ? fcntl(open->fd, F_DUPFD_CLOEXEC, 0) : listener_open(at, why);
    if (fd < 0)
        return ERR_SYSTEM;
    l->listeners[l->n_listeners++] = (struct listener){at, at->way, fd, open != NULL};
    return 0;
}

static int open_all(struct lane *l, const struct config *c, uint32_t id, struct buf *why) {
    int result = 0;
    for (const struct config_listener *at = c->listeners; at && result == 0; at = at->next)
        if (at->lane == id)
            result = open_one(l, at, why);
    return result;
}

/* The same places as before, in any order. */
static bool same_listeners(const struct lane *l, const struct config *c, uint32_t id) {
    size_t n = 0;
    for (const struct config_listener *at = c->listeners; at; at = at->next) {
        bool found = at->lane != id;
        n += at->lane == id;
        for (size_t i = 0; i < l->n_listeners && !found; i++)
            found = config_same_place(l->listeners[i].at, at) &&
                    same_rights(l->listeners[i].at, at) && listener_hears(l->listeners[i].fd, at) &&
                    view_equal(l->listeners[i].at->admit, at->admit);
        if (!found)
            return false;
    }
    return n == l->n_listeners;
}

/* ---- the configuration's lanes ---- */

static int add_configured(struct parent *p, const struct config *c, const struct config_lane *lane,
                          struct buf *why) {
    struct lane *l;
    int result = lane_add(p, &l);
    if (result == ERR_LIMIT)
        buf_printf(why,
                   "%s:%u:%u: every lane has a uid of its own, and none is left: the line `uids` "
                   "must name more, which takes a restart of exeatd",
                   lane->at.file, lane->at.line, lane->at.column);
    if (result != 0)
        return result == ERR_LIMIT ? ERR_DENIED : result;
    l->planned = lane;
    return open_all(l, c, lane->id, why);
}

int lanes_open(struct parent *p) {
    struct buf why;
    int result = 0;
    buf_init(&why, 4096);
    p->served = (struct config){.listeners = p->config.listeners, .lanes = p->config.lanes};
    for (const struct config_lane *c = p->config.lanes; c && result == 0; c = c->next)
        result = add_configured(p, &p->config, c, &why);
    if (result != 0)
        log_fatal("%.*s", VIEW_ARG(buf_view(&why)));
    for (struct lane *l = p->lanes; l; l = l->next)
        l->config = l->planned;
    buf_free(&why);
    return result == 0 ? 0 : 3;
}

/* The lane that goes on as this one: those who share it may be others than before. */
static struct lane *find_same(struct parent *p, const struct config *c,
                              const struct config_lane *lane) {
    for (struct lane *l = p->lanes; l; l = l->next)
        if (l->config && !l->planned && !has_ended(l) && l->config->shared == lane->shared &&
            (lane->shared || view_equal(l->config->names, lane->names)) &&
            same_listeners(l, c, lane->id))
            return l;
    return NULL;
}

int lanes_plan(struct parent *p, struct view config_text, struct buf *out) {
    static struct policy_errors errors;
    struct config *plan = &p->rollout.plan;
    if (config_read(config_text, p->config_file, plan, &errors) != 0)
        return ERR_BAD;
    int result = 0;
    p->rollout.planned = true;
    for (struct lane *l = p->lanes; l; l = l->next)
        l->planned = NULL;
    /* Those that stay first: what another lane gives up is theirs only when it is free. */
    for (struct config_lane *c = plan->lanes; c; c = c->next) {
        struct lane *same = find_same(p, plan, c);
        if (same)
            same->planned = c;
    }
    for (const struct config_lane *c = plan->lanes; c && result == 0; c = c->next) {
        const struct lane *l = p->lanes;
        while (l && l->planned != c)
            l = l->next;
        if (!l)
            result = add_configured(p, plan, c, out);
    }
    if (result != 0)
        lanes_abandon(p);
    return result;
}

/* Added by a plan that is not in use yet. */
static bool is_new(const struct lane *l) {
    return !l->config && l->planned;
}

static void remove_socket(const struct parent *p, const struct config_listener *at) {
    const struct listener *open = find_open(p, at);
    if (at->place == PLACE_UNIX && !open)
        unlink(at->path);
}

void lanes_abandon(struct parent *p) {
    struct lane *next;
    for (struct lane *l = p->lanes; l; l = next) {
        next = l->next;
        if (!is_new(l)) {
            l->planned = NULL;
            continue;
        }
        struct listener had[LISTENERS_MAX];
        size_t n = l->n_listeners;
        memcpy(had, l->listeners, sizeof had);
        lane_free(l);
        for (size_t i = 0; i < n; i++)
            remove_socket(p, had[i].at);
    }
    if (p->rollout.planned)
        config_free(&p->rollout.plan);
    p->rollout.planned = false;
}

/*
 * Whoever waits to be accepted came to the lane that has ended; as many at most as can wait. That lane's proxy may still have
 * the listener, and may have made it block.
 */
static void turn_away(int listener) {
    int fd = 0;
    patience_begin();
    for (int i = 0; i < SOMAXCONN && fd >= 0; i++) {
        fcntl(listener, F_SETFL, O_NONBLOCK);
        fd = accept4(listener, NULL, NULL, SOCK_CLOEXEC);
        if (fd >= 0)
            close(fd);
    }
    patience_end();
}

static bool configured_names(const struct config *c, struct view sandbox) {
    for (const struct config_lane *lane = c->lanes; lane; lane = lane->next) {
        struct view rest = lane->names, name;
        while (lane_sandbox(&rest, &name))
            if (view_equal_nocase(name, sandbox))
                return true;
    }
    return false;
}

static void point_to_plan(struct lane *l, const struct config *plan) {
    l->config = l->planned;
    for (size_t i = 0; i < l->n_listeners; i++)
        for (const struct config_listener *at = plan->listeners; at; at = at->next)
            if (config_same_place(l->listeners[i].at, at))
                l->listeners[i].at = at;
}

/* It ends as the plan comes into use. */
static bool leaves(const struct lane *l, const struct config *plan) {
    if (l->planned)
        return false;
    return l->config || configured_names(plan, view_str(l->sandbox));
}

void lanes_commit(struct parent *p) {
    struct config *plan = &p->rollout.plan;
    if (!p->rollout.planned)
        return;
    p->rollout.planned = false;
    for (struct lane *l = p->lanes; l; l = l->next) {
        if (has_ended(l))
            continue;
        if (leaves(l, plan))
            lanes_end(l, l->config ? "the configuration does not have it any more"
                                   : "the configuration has a listener for this sandbox now");
    }
    for (struct lane *l = p->lanes; l; l = l->next) {
        if (has_ended(l) || !l->planned)
            continue;
        bool starts = is_new(l);
        point_to_plan(l, plan);
        for (size_t i = 0; starts && i < l->n_listeners; i++)
            if (l->listeners[i].taken_over)
                turn_away(l->listeners[i].fd);
        if (starts) {
            parent_record_lane(l, "lane_added", NULL);
            lanes_start(l);
        }
    }
    config_free(&p->served);
    p->served = *plan;
    *plan = (struct config){0};
}

/* ---- the text of a generation ---- */

/* What the bundle has for it. False: that configuration does not have it. */
static bool find_info(const struct lane *l, struct view bundle_lanes, struct lane_info *out) {
    const struct config_lane *c = l->parent->rollout.planned ? l->planned : l->config;
    while (c && bundle_lane(&bundle_lanes, out))
        if (out->id == c->id)
            return true;
    return false;
}

static bool leaves_with(const struct lane *l, uint32_t number) {
    const struct rollout *r = &l->parent->rollout;
    return r->planned && number > l->parent->generation && leaves(l, &r->plan);
}

void lanes_put(struct parent *p, uint32_t number, struct view bundle_lanes, struct buf *out) {
    for (struct lane *l = p->lanes; l; l = l->next) {
        struct lane_info info = {
            .names = view_str(l->sandbox), .unenforced = l->unenforced, .closed = l->closed};
        if (has_ended(l) || leaves_with(l, number) || lanes_awaits_issue(l) ||
            (!l->sandbox[0] && !find_info(l, bundle_lanes, &info)))
            continue;
        info.id = l->id;
        bundle_put_lane(out, &info);
        if (l->since == 0)
            l->since = number;
    }
}

bool lanes_has(const struct process *of, uint32_t number) {
    const struct lane *l = of->lane ? lanes_find(of->parent, of->lane) : NULL;
    return of->lane == 0 ||
           (l && !has_ended(l) && l->since != 0 && l->since <= number && !leaves_with(l, number));
}

/* ---- attached sandboxes ---- */

static bool is_attached(const struct parent *p, struct view sandbox) {
    for (const struct lane *l = p->lanes; l; l = l->next)
        if (!has_ended(l) && view_equal_nocase(view_str(l->sandbox), sandbox))
            return true;
    return false;
}

static bool is_configured(const struct parent *p, struct view sandbox) {
    return configured_names(&p->served, sandbox) ||
           (p->rollout.planned && configured_names(&p->rollout.plan, sandbox));
}

int lanes_attach(struct parent *p, struct view sandbox, struct lane **out) {
    struct lane *l;
    if (is_attached(p, sandbox))
        return ERR_EXISTS;
    if (is_configured(p, sandbox))
        return ERR_DENIED;
    int result = lane_add(p, &l);
    if (result != 0)
        return result;
    if (view_cstr(sandbox, l->sandbox, sizeof l->sandbox) != 0) {
        lane_free(l);
        return ERR_BAD;
    }
    *out = l;
    return 0;
}

bool lanes_awaits_issue(const struct lane *l) {
    return l && l->sandbox[0] && !l->issued && !has_ended(l);
}

bool lanes_await_issue(const struct parent *p) {
    const struct lane *l = p->lanes;
    while (l && !lanes_awaits_issue(l))
        l = l->next;
    return l;
}

void lanes_issued(struct parent *p, struct view sandbox) {
    for (struct lane *l = p->lanes; l; l = l->next)
        if (!has_ended(l) && view_equal(view_str(l->sandbox), sandbox))
            l->issued = true;
}

/* ---- the end of a lane ---- */

static struct process *process_of(const struct lane *l, struct process *after) {
    struct process *of = after ? after->next : l->parent->processes;
    while (of && of->lane != l->id)
        of = of->next;
    return of;
}

static void on_tick(evutil_socket_t fd, short what, void *ctx);

static void tick_later(struct parent *p) {
    struct timeval in = {0, TICK_MS * 1000};
    if (!p->lanes_tick)
        p->lanes_tick = event_new(loop_base(p->loop), -1, 0, on_tick, p);
    if (!p->lanes_tick || event_add(p->lanes_tick, &in) != 0)
        log_warn("lanes that have ended cannot be put away: no memory");
}

/* Egress ends by itself once its proxy is gone, with its records written. */
static void end_processes(struct lane *l) {
    for (struct process *of = process_of(l, NULL); of; of = process_of(l, of)) {
        if (of->state == PROCESS_ASLEEP)
            start_cancel(of);
        if (of->restart)
            event_del(of->restart);
        of->killed = true;
        if (of->role != ROLE_EGRESS || of->state != PROCESS_UP)
            process_kill(of);
    }
}

void lanes_end(struct lane *l, const char *why) {
    struct parent *p = l->parent;
    struct listener had[LISTENERS_MAX];
    size_t n = l->n_listeners;
    const struct process *egress = process_find(p, ROLE_EGRESS, l->id);
    if (has_ended(l))
        return;
    memcpy(had, l->listeners, sizeof had);
    l->ended = clock_mono();
    close_listeners(l);
    for (size_t i = 0; i < n; i++)
        if (had[i].at)
            remove_socket(p, had[i].at);
    log_info("lane %u ends: %s", l->id, why);
    parent_record_lane(l, "lane_ended", why);
    suspended_note_end(l);
    if (egress)
        ledgers_keep(l, egress);
    l->config = l->planned = NULL;
    if (l->attach)
        attached_tell(l, LANE_ENDED, why);
    end_processes(l);
    tick_later(p);
}

/* Its processes are gone, and audit has their records. */
static bool is_gone(const struct lane *l) {
    bool late = clock_mono() - l->ended > EGRESS_SECONDS * UINT64_C(1000000000), gone = true;
    for (struct process *of = process_of(l, NULL); of; of = process_of(l, of)) {
        if (late)
            process_kill(of);
        if (process_runs(of) || !links_records_ended(of))
            gone = false;
    }
    return gone;
}

static void put_away(struct lane *l) {
    struct process *of;
    while ((of = process_of(l, NULL)))
        process_free(of);
    log_debug("lane %u is gone", l->id);
    lane_free(l);
}

static void on_tick(evutil_socket_t fd, short what, void *ctx) {
    struct parent *p = ctx;
    struct lane *next;
    bool left = false;
    (void)fd;
    (void)what;
    for (struct lane *l = p->lanes; l && !p->stopping; l = next) {
        next = l->next;
        if (!has_ended(l))
            continue;
        if (is_gone(l))
            put_away(l);
        else
            left = true;
    }
    rollout_begin(p);
    if (left)
        tick_later(p);
}

void lanes_remove_sockets(struct parent *p) {
    for (const struct lane *l = p->lanes; l; l = l->next)
        for (size_t i = 0; i < l->n_listeners; i++)
            if (l->listeners[i].at && l->listeners[i].at->place == PLACE_UNIX)
                unlink(l->listeners[i].at->path);
}
