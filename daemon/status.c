#include "daemon/status.h"

#include "base/json.h"
#include "daemon/lanes.h"
#include "daemon/listeners.h"
#include "daemon/process.h"

#include <string.h>

enum { STATUS_MAX = 512 << 10, LATE_MS = 500 };

void control_answer(struct parent *p, uint32_t ask, int code, struct view text) {
    struct process *control = process_find(p, ROLE_CONTROL, 0);
    if (!control || control->state != PROCESS_UP)
        return;
    struct buf *b = channel_begin(control->channel, PARENT_ANSWER, ask, p->generation);
    buf_put_u8(b, (uint8_t)-code);
    buf_put_block(b, text);
    channel_end(control->channel);
}

/* ---- the text ---- */

/* Nobody is served there any more, or yet: a sandbox was detached, or is being attached. */
static bool serves_nobody(const struct process *of) {
    const struct lane *lane = of->lane ? lanes_find(of->parent, of->lane) : NULL;
    return lane && (lane->ended || (lane->attach && !lane->attached_up));
}

/* A role that runs says itself what it cannot do. */
static void put_trouble(const struct process *of, struct buf *out) {
    if (of->state == PROCESS_UP || of->state == PROCESS_ASLEEP || serves_nobody(of))
        return;
    json_put_text(out, "trouble",
                  VIEW("does not run, and what needs it is refused: the daemon's log tells why"));
}

static const char *state_name(const struct process *of) {
    static const char *const states[] = {"down", "asleep", "starting", "up", "ending"};
    return states[of->state];
}

static void put_process(const struct process *of, struct buf *out) {
    buf_put_str(out, "{");
    /* What it says of itself first: what the parent knows comes later and counts. */
    buf_put(out, buf_view(&of->status));
    json_put_text(out, "role", view_str(role_name(of->role)));
    if (of->lane)
        json_put_number(out, "lane", of->lane);
    json_put_text(out, "state", view_str(state_name(of)));
    json_put_number(out, "pid", process_runs(of) ? (uint64_t)of->pid : 0);
    json_put_number(out, "restarts", of->restarts);
    if (of->role != ROLE_CONTROL)
        json_put_number(out, "generation", of->generation);
    put_trouble(of, out);
    buf_put_str(out, "}");
}

/* Of what its proxy says of itself; 0: nothing. */
static uint64_t courier_pid(const struct process *proxy) {
    struct view key = VIEW("\"courier_pid\":"), said = buf_view(&proxy->status);
    uint64_t pid = 0;
    size_t n = 0;
    said = view_skip(said, view_search(said, key) + key.n);
    while (n < said.n && is_digit(said.p[n]))
        n++;
    return process_runs(proxy) && view_number(view_head(said, n), INT32_MAX, &pid) == 0 ? pid : 0;
}

/* A courier is its proxy's child, and lives and dies with it. */
static void put_courier(const struct process *proxy, struct buf *out) {
    bool is_there = false;
    for (const char *way = proxy->ways; *way; way++)
        is_there = is_there || way_is_carried((enum way_in)(*way - '0'));
    if (proxy->role != ROLE_PROXY || !is_there)
        return;
    buf_put_str(out, ",{");
    json_put_text(out, "role", view_str(role_name(ROLE_COURIER)));
    json_put_number(out, "lane", proxy->lane);
    json_put_text(out, "state", view_str(state_name(proxy)));
    json_put_number(out, "pid", courier_pid(proxy));
    json_put_number(out, "restarts", proxy->restarts);
    put_trouble(proxy, out);
    buf_put_str(out, "}");
}

static void put_lane(const struct lane *lane, struct buf *out) {
    char name[256];
    buf_put_str(out, "{");
    json_put_number(out, "lane", lane->id);
    buf_printf(out, ",\"shared\":%s", lane->config && lane->config->shared ? "true" : "false");
    buf_printf(out, ",\"attached\":%s", lane->sandbox[0] ? "true" : "false");
    buf_printf(out, ",\"unenforced\":%s", lane->unenforced ? "true" : "false");
    if (lane->config && lane->config->everybody)
        json_put_text(out, "sandboxes", VIEW("all that have no lane of their own"));
    else
        json_put_text(out, "sandboxes", lanes_names(lane));
    buf_put_str(out, ",\"listeners\":[");
    for (size_t i = 0; i < lane->n_listeners; i++) {
        if (i > 0 && !lane->listeners[i].at)
            continue; /* all of an attached sandbox are in one place */
        const struct config_listener *at = lane->listeners[i].at;
        buf_put_str(out, i == 0 ? "" : ",");
        json_put_string(out, at                 ? view_str(listener_name(at, name, sizeof name))
                             : lane->unenforced ? VIEW("on this machine")
                                                : VIEW("in the sandbox"));
    }
    buf_put_str(out, "]}");
}

void status_put_restart(const struct parent *p, struct buf *out) {
    struct buf words;
    buf_init(&words, 256);
    if (p->served.state)
        config_put_kept(&p->config, &p->served, &words);
    if (buf_len(&words) > 0)
        json_put_text(out, "restart", buf_view(&words));
    buf_free(&words);
}

static void put_status(const struct parent *p, struct buf *out) {
    buf_put_str(out, "{");
    json_put_text(out, "version", view_str(EXEAT_VERSION));
    json_put_number(out, "generation", p->generation);
    json_put_number(out, "uptime_seconds", (clock_mono() - p->started) / 1000000000u);
    json_put_text(out, "config", view_str(p->config_file));
    json_put_text(out, "policy", view_str((p->served.policy ? &p->served : &p->config)->policy));
    if (p->load_error[0])
        json_put_text(out, "policy_error", view_str(p->load_error));
    status_put_restart(p, out);
    buf_put_str(out, ",\"lanes\":[");
    bool first = true;
    for (const struct lane *l = p->lanes; l; l = l->next) {
        if (l->ended)
            continue;
        buf_put_str(out, first ? "" : ",");
        put_lane(l, out);
        first = false;
    }
    buf_put_str(out, "],\"processes\":[");
    first = true;
    for (const struct process *of = p->processes; of; of = of->next) {
        if (of->role == ROLE_PARENT)
            continue;
        buf_put_str(out, first ? "" : ",");
        put_process(of, out);
        put_courier(of, out);
        first = false;
    }
    buf_put_str(out, "]}");
}

static void answer(struct parent *p) {
    struct buf out;
    if (!p->has_status_ask)
        return;
    p->has_status_ask = false;
    event_del(p->status_late);
    buf_init(&out, STATUS_MAX);
    put_status(p, &out);
    if (buf_ok(&out))
        control_answer(p, p->status_ask, 0, buf_view(&out));
    else
        control_answer(p, p->status_ask, ERR_LIMIT, VIEW("the status is too long"));
    buf_free(&out);
}

/* ---- asking ---- */

static void on_late(evutil_socket_t fd, short what, void *ctx) {
    (void)fd;
    (void)what;
    answer(ctx);
}

void status_ask(struct parent *p, uint32_t ask) {
    struct timeval late = {0, LATE_MS * 1000};
    if (!p->status_late)
        p->status_late = event_new(loop_base(p->loop), -1, 0, on_late, p);
    if (p->has_status_ask || !p->status_late || event_add(p->status_late, &late) != 0) {
        control_answer(p, ask, ERR_AGAIN, VIEW("another status is being gathered"));
        return;
    }
    p->has_status_ask = true;
    p->status_ask = ask;
    for (struct process *of = p->processes; of; of = of->next) {
        buf_reset(&of->status);
        of->told = false;
        if (of->state == PROCESS_UP)
            channel_send(of->channel, PARENT_STATUS_ASK, ask, 0, (struct view){NULL, 0});
    }
}

static bool all_told(const struct parent *p) {
    for (const struct process *of = p->processes; of; of = of->next)
        if (of->state == PROCESS_UP && !of->told)
            return false;
    return true;
}

enum { DEPTH_MAX = 4 };

/* Members of one object, which cannot end it or begin another: what they open they close. */
static bool is_closed(struct view members) {
    uint8_t open[DEPTH_MAX];
    size_t depth = 0;
    bool quoted = false;
    for (size_t i = 0; i < members.n; i++) {
        uint8_t c = members.p[i];
        if (c < 0x20 || c > 0x7e)
            return false;
        if (quoted && c == '\\' && i + 1 < members.n)
            i++;
        else if (c == '"')
            quoted = !quoted;
        else if (!quoted && (c == '{' || c == '[')) {
            if (depth == DEPTH_MAX)
                return false;
            open[depth++] = c == '{' ? '}' : ']';
        } else if (!quoted && (c == '}' || c == ']')) {
            if (depth == 0 || open[--depth] != c)
                return false;
        } else if (!quoted && c == '\\') {
            return false;
        }
    }
    return !quoted && depth == 0;
}

int status_take(struct process *of, struct message *m) {
    struct parent *p = of->parent;
    struct reader r = reader_of(m->body);
    struct view members = read_block(&r, of->status.max);
    if (!read_done(&r))
        return ERR_BAD;
    if (!p->has_status_ask || m->id != p->status_ask)
        return 0;
    buf_reset(&of->status);
    if (is_closed(members))
        buf_put(&of->status, members);
    of->told = true;
    if (all_told(p))
        answer(p);
    return 0;
}
