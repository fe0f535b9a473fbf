#include "daemon/attached.h"

#include "base/log.h"
#include "base/patience.h"
#include "daemon/lanes.h"
#include "daemon/parent.h"
#include "daemon/process.h"
#include "daemon/rollout.h"
#include "daemon/status.h"
#include "policy/lexer.h"

#include <fcntl.h>
#include <stdio.h>

static void tell(struct parent *p, uint32_t id, enum lane_news news, const char *text) {
    struct process *attach = process_find(p, ROLE_ATTACH, 0);
    if (!attach || attach->state != PROCESS_UP)
        return;
    struct buf *b = channel_begin(attach->channel, PARENT_LANE, id, p->generation);
    buf_put_u8(b, (uint8_t)news);
    buf_put_block(b, view_str(text));
    channel_end(attach->channel);
}

void attached_tell(const struct lane *l, enum lane_news news, const char *text) {
    tell(l->parent, l->attach, news, text);
}

/* 0 is what a lane has that attach calls nothing. */
static struct lane *find(struct parent *p, uint32_t id) {
    struct lane *l = id ? p->lanes : NULL;
    while (l && (l->attach != id || l->ended))
        l = l->next;
    return l;
}

/* The lane that a message of attach is about; NULL: it has ended meanwhile. ERR_BAD: it is another role's. */
static int find_meant(struct process *attach, const struct message *m, struct lane **out) {
    *out = find(attach->parent, m->id);
    return attach->role == ROLE_ATTACH ? 0 : ERR_BAD;
}

/* ---- what attach asks ---- */

static const char *refusal(int result) {
    return result == ERR_EXISTS ? "the sandbox is attached already, until whoever attached it ends"
           : result == ERR_DENIED
               ? "a `listen` line of exeatd's configuration is for this sandbox, "
                 "and who has one is not attached: attach another sandbox of the "
                 "policy, or take that line away and `exeat reload`"
           : result == ERR_LIMIT ? "there is no room for another lane: the configuration's line "
                                   "`uids` must name more user ids"
           : result == ERR_BAD   ? "no sandbox has such a name"
                                 : "exeatd is out of memory";
}

int attached_add(struct process *attach, struct message *m) {
    struct parent *p = attach->parent;
    struct reader r = reader_of(m->body);
    struct lane *l;
    char detail[48];
    uint32_t uid = read_u32(&r);
    size_t n = read_u8(&r);
    uint8_t unenforced = read_u8(&r);
    struct view sandbox = read_block(&r, SANDBOX_NAME_MAX);
    if (!read_done(&r) || attach->role != ROLE_ATTACH || m->id == 0 || find(p, m->id) || n == 0 ||
        n > LISTENERS_MAX || unenforced > 1)
        return ERR_BAD;
    int result = name_is_good(sandbox) ? lanes_attach(p, sandbox, &l) : ERR_BAD;
    if (result != 0) {
        tell(p, m->id, LANE_ENDED, refusal(result));
        return 0;
    }
    l->attach = m->id;
    l->awaited = n;
    l->unenforced = unenforced == 1;
    l->closed = !l->unenforced;
    if (l->unenforced)
        log_warn("lane %u: sandbox %s is attached UNENFORCED: nothing forces it through exeat",
                 l->id, l->sandbox);
    snprintf(detail, sizeof detail, "attached by uid %u", uid);
    parent_record_lane(l, "lane_added", detail);
    attached_tell(l, LANE_ADDED, "");
    return 0;
}

int attached_listener(struct process *attach, struct message *m) {
    struct lane *l = find(attach->parent, m->id);
    struct reader r = reader_of(m->body);
    uint8_t way = read_u8(&r);
    if (!read_done(&r) || way < WAY_EXPLICIT || way > WAY_LAST_ATTACHED ||
        attach->role != ROLE_ATTACH || (l && l->awaited == 0))
        return ERR_BAD;
    /* It was refused, or has ended meanwhile. */
    if (!l) {
        patience_close(m->fd);
        m->fd = -1;
        return 0;
    }
    l->listeners[l->n_listeners++] = (struct listener){.way = (enum way_in)way, .fd = m->fd};
    m->fd = -1;
    if (--l->awaited == 0)
        lanes_start(l);
    return 0;
}

int attached_end(struct process *attach, struct message *m) {
    struct lane *l;
    int result = find_meant(attach, m, &l);
    if (result != 0 || !l)
        return result;
    l->attach = 0;
    lanes_end(l, "detached");
    rollout_leave(attach->parent);
    return 0;
}

/* ---- whether it is tight ---- */

void attached_greet(struct process *egress) {
    const struct lane *l = lanes_find(egress->parent, egress->lane);
    if (l && l->open)
        channel_send(egress->channel, PARENT_OPEN, 0, 0, VIEW(""));
}

int attached_open(struct process *attach, struct message *m) {
    struct lane *l;
    int result = find_meant(attach, m, &l);
    if (result != 0 || !l)
        return result;
    if (!l->closed || l->open)
        return ERR_BAD;
    l->open = true;
    struct process *egress = process_find(attach->parent, ROLE_EGRESS, l->id);
    /* One that comes up later is told then. */
    if (egress && egress->state == PROCESS_UP)
        attached_greet(egress);
    return 0;
}

int attached_opened(struct process *egress) {
    struct lane *l = lanes_find(egress->parent, egress->lane);
    if (egress->role != ROLE_EGRESS || !l || !l->open)
        return ERR_BAD;
    if (l->attach && !l->attached_open && !l->ended)
        attached_tell(l, LANE_SERVES, "");
    l->attached_open = true;
    return 0;
}

static const char not_attached[] =
    "no sandbox of this name is attached: only those that `exeat run` has made can be probed from "
    "here; in others run `exeat doctor`";

/* Why it cannot be probed; NULL: it can. */
static const char *probe_refusal(const struct lane *l) {
    return l->probing      ? "the sandbox is being probed already"
           : l->unenforced ? "the sandbox is unenforced: nothing keeps it from going beside exeat"
           : !l->open      ? "the sandbox is being made, and is probed before its command begins"
                           : NULL;
}

void attached_ask_probe(struct parent *p, uint32_t ask, struct view sandbox) {
    struct process *attach = process_find(p, ROLE_ATTACH, 0);
    struct lane *l = p->lanes;
    while (l && (!l->attach || l->ended || !view_equal(view_str(l->sandbox), sandbox)))
        l = l->next;
    const char *why = l ? probe_refusal(l) : not_attached;
    if (!why && attach->state != PROCESS_UP)
        why = "attach is not running: see `exeat status`";
    if (why) {
        control_answer(p, ask, ERR_MISSING, view_str(why));
        return;
    }
    l->probing = ask;
    struct buf *b = channel_begin(attach->channel, PARENT_PROBE, l->attach, 0);
    buf_put_u32(b, ask);
    channel_end(attach->channel);
}

int attached_probed(struct process *attach, struct message *m) {
    struct reader r = reader_of(m->body);
    int code = -(int)read_u8(&r);
    struct view text = read_block(&r, CHILD_PROBED_MAX);
    if (!read_done(&r) || attach->role != ROLE_ATTACH || m->id == 0)
        return ERR_BAD;
    for (struct lane *l = attach->parent->lanes; l; l = l->next)
        if (l->probing == m->id)
            l->probing = 0;
    control_answer(attach->parent, m->id, code, text);
    return 0;
}

/* ---- the end ---- */

void attached_lost(struct parent *p) {
    for (struct lane *l = p->lanes; l; l = l->next) {
        if (l->probing)
            control_answer(p, l->probing, ERR_CLOSED,
                           VIEW("the process attach has died, and the sandbox has ended with it"));
        l->probing = 0;
        if (!l->attach || l->ended)
            continue;
        l->attach = 0;
        lanes_end(l, "attach has died");
        p->rollout.wanted = true;
    }
    rollout_begin(p);
}

void attached_serves(struct lane *l) {
    if (!l || !l->attach || l->attached_up || l->ended)
        return;
    l->attached_up = true;
    attached_tell(l, LANE_UP, "");
}
