#include "daemon/parent.h"

#include "audit/record.h"
#include "base/json.h"
#include "base/log.h"
#include "base/patience.h"
#include "daemon/activated.h"
#include "daemon/attached.h"
#include "daemon/lanes.h"
#include "daemon/links.h"
#include "daemon/listeners.h"
#include "daemon/load.h"
#include "daemon/notify.h"
#include "daemon/places.h"
#include "daemon/process.h"
#include "daemon/rollout.h"
#include "daemon/start.h"
#include "daemon/status.h"
#include "daemon/suspended.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

/*
 * The processes, in the order in which they are started: those that others need come first.
 *
 *   audit    appends records, chains, signs heads          broker   opens the vault, lends secrets
 *   ca       uses the CA's private key                     dialer   resolves names, connects outward
 *   control  serves the operator's socket                 attach   serves users' socket, if there is one
 * and for each lane:
 *   proxy    speaks TLS and HTTP with sandboxes            egress   judges, speaks with upstreams
 *   inspect  reads bodies and decompresses for egress
 */
static const enum role shared_roles[] = {ROLE_AUDIT,  ROLE_BROKER,  ROLE_CA,
                                         ROLE_DIALER, ROLE_CONTROL, ROLE_ATTACH};

enum { STOP_SECONDS = 15, KILLED_SECONDS = 2 };

/* ---- the audit trail ---- */

static struct record *begin_event(struct parent *p, const char *event, const char *detail) {
    static struct record r;
    record_begin(&r, RECORD_EVENT, clock_wall(), clock_mono());
    record_str(&r, FIELD_EVENT, event);
    record_str(&r, FIELD_DETAIL, detail);
    record_number(&r, FIELD_GENERATION, p->generation);
    return &r;
}

static void end_event(struct parent *p, struct record *r, const char *event) {
    if (p->audit && audit_write(p->audit, r) != 0)
        log_warn("event %s is not in the audit log", event);
}

static void record_event(struct parent *p, const char *event, const char *detail) {
    end_event(p, begin_event(p, event, detail), event);
}

void parent_record_lane(const struct lane *l, const char *event, const char *detail) {
    struct record *r = begin_event(l->parent, event, detail);
    record_number(r, FIELD_LANE, l->id);
    record_text(r, FIELD_SANDBOX, lanes_names(l));
    if (l->unenforced)
        record_number(r, FIELD_UNENFORCED, 1);
    end_event(l->parent, r, event);
}

/* ---- what children say ---- */

static int take_up(void *ctx, struct channel *ch, struct message *m) {
    struct process *of = ctx;
    struct parent *p = of->parent;
    struct reader r = reader_of(m->body);
    (void)ch;
    struct view key = read_block(&r, of->key.max);
    if (!read_done(&r) || of->state != PROCESS_STARTING || (of->role == ROLE_PROXY) != (key.n > 0))
        return ERR_BAD;
    buf_reset(&of->key);
    buf_put(&of->key, key);
    of->state = PROCESS_UP;
    links_make(of);
    if (of->role == ROLE_AUDIT && p->exit_status != 0) {
        parent_stop(p);
        return 0;
    }
    if (of->role == ROLE_EGRESS) {
        suspended_send(of);
        attached_greet(of);
    }
    rollout_greet(of);
    return 0;
}

static int take_ready(void *ctx, struct channel *ch, struct message *m) {
    (void)ch;
    return rollout_ready(ctx, m->generation);
}

static int take_committed(void *ctx, struct channel *ch, struct message *m) {
    (void)ch;
    return rollout_confirmed(ctx, m->generation);
}

static int take_refused(void *ctx, struct channel *ch, struct message *m) {
    struct reader r = reader_of(m->body);
    (void)ch;
    struct view why = read_block(&r, 512);
    return read_done(&r) ? rollout_refused(ctx, m->generation, why) : ERR_BAD;
}

static int take_bad_peer(void *ctx, struct channel *ch, struct message *m) {
    struct process *of = ctx;
    struct reader r = reader_of(m->body);
    (void)ch;
    uint8_t role = read_u8(&r);
    uint32_t lane = read_u32(&r);
    struct process *bad =
        read_done(&r) && role < ROLE_COUNT ? process_find(of->parent, (enum role)role, lane) : NULL;
    bool records =
        bad && of->role == ROLE_AUDIT && bad->role != ROLE_PARENT && bad->audit_read >= 0;
    if (!bad || !(records || links_may_talk(of, bad)))
        return ERR_BAD;
    log_warn("%s says that %s broke the contract between them: it is started anew", of->origin,
             bad->origin);
    record_event(of->parent, "role_misbehaved", bad->origin);
    process_kill(bad);
    /* What it has sent will never be read, and neither would what its successor sends behind it. */
    if (records) {
        process_renew_records(bad);
        links_send_records(of, bad);
    }
    if (bad->state == PROCESS_ASLEEP)
        start_asleep_again(bad);
    return 0;
}

static int take_status(void *ctx, struct channel *ch, struct message *m) {
    (void)ch;
    return status_take(ctx, m);
}

static int take_head(void *ctx, struct channel *ch, struct message *m) {
    struct process *of = ctx;
    struct reader r = reader_of(m->body);
    (void)ch;
    int code = -(int)read_u8(&r);
    struct view text = read_block(&r, 2048);
    if (!read_done(&r) || of->role != ROLE_AUDIT)
        return ERR_BAD;
    /* Audit answers what it was asked, and nothing else that control waits for. */
    if (!of->parent->has_head_ask || m->id != of->parent->head_ask)
        return 0;
    of->parent->has_head_ask = false;
    control_answer(of->parent, m->id, code, text);
    return 0;
}

static void ask_head(struct parent *p, uint32_t ask) {
    struct process *audit = process_find(p, ROLE_AUDIT, 0);
    if (p->has_head_ask)
        control_answer(p, p->head_ask, ERR_AGAIN, VIEW("another head was asked for meanwhile"));
    p->has_head_ask = audit->state == PROCESS_UP;
    p->head_ask = ask;
    if (p->has_head_ask)
        channel_send(audit->channel, PARENT_HEAD_ASK, ask, 0, VIEW(""));
    else
        control_answer(p, ask, ERR_CLOSED, VIEW("audit is not running: see `exeat status`"));
}

static int take_registry(void *ctx, struct channel *ch, struct message *m) {
    struct process *of = ctx;
    struct reader r = reader_of(m->body);
    (void)ch;
    uint64_t state = read_u64(&r);
    uint8_t change = read_u8(&r);
    struct view sandbox = read_block(&r, SANDBOX_NAME_MAX);
    struct view registry = read_block(&r, CHANNEL_BODY_MAX);
    if (!read_done(&r) || of->role != ROLE_BROKER || change > REGISTRY_LEFT)
        return ERR_BAD;
    if (change == REGISTRY_ISSUED)
        lanes_issued(of->parent, sandbox);
    rollout_registry(of->parent, state, registry, change == REGISTRY_LEFT);
    return 0;
}

static int take_ask(void *ctx, struct channel *ch, struct message *m) {
    struct process *of = ctx;
    struct parent *p = of->parent;
    struct reader r = reader_of(m->body);
    char text[32];
    (void)ch;
    uint8_t what = read_u8(&r);
    struct view argument = read_block(&r, 4096);
    bool confirmed = view_equal(argument, VIEW("yes"));
    if (!read_done(&r) || of->role != ROLE_CONTROL)
        return ERR_BAD;
    switch (what) {
    case ASK_STATUS:
        status_ask(p, m->id);
        return 0;
    case ASK_RELOAD:
        if (p->has_reload_ask) {
            control_answer(p, m->id, ERR_AGAIN, VIEW("another reload is in progress"));
            return 0;
        }
        p->has_reload_ask = true;
        p->reload_ask = m->id;
        rollout_load(p, confirmed);
        return 0;
    case ASK_HEAD:
        ask_head(p, m->id);
        return 0;
    case ASK_PROBE:
        attached_ask_probe(p, m->id, argument);
        return 0;
    case ASK_STOP:
        snprintf(text, sizeof text, "{\"pid\":%d}", (int)getpid());
        control_answer(p, m->id, 0, view_str(text));
        parent_stop(p);
        return 0;
    default:
        return ERR_BAD;
    }
}

static int take_suspended(void *ctx, struct channel *ch, struct message *m) {
    (void)ch;
    return suspended_take(ctx, m->body);
}

static int take_lane_add(void *ctx, struct channel *ch, struct message *m) {
    (void)ch;
    return attached_add(ctx, m);
}

static int take_lane_listener(void *ctx, struct channel *ch, struct message *m) {
    (void)ch;
    return attached_listener(ctx, m);
}

static int take_lane_end(void *ctx, struct channel *ch, struct message *m) {
    (void)ch;
    return attached_end(ctx, m);
}

static int take_lane_open(void *ctx, struct channel *ch, struct message *m) {
    (void)ch;
    return attached_open(ctx, m);
}

static int take_opened(void *ctx, struct channel *ch, struct message *m) {
    (void)ch;
    (void)m;
    return attached_opened(ctx);
}

static int take_probed(void *ctx, struct channel *ch, struct message *m) {
    (void)ch;
    return attached_probed(ctx, m);
}

static const struct channel_rule rules[] = {
    {ROLE_UP, CHANNEL_ONCE, 2048, take_up, "up"},
    {ROLE_READY, 0, 0, take_ready, "ready"},
    {ROLE_COMMITTED, 0, 0, take_committed, "committed"},
    {ROLE_REFUSED, 0, 1024, take_refused, "refused"},
    {ROLE_BAD_PEER, 0, 5, take_bad_peer, "bad peer"},
    {ROLE_STATUS, 0, 20000, take_status, "status"},
    {ROLE_REGISTRY, 0, CHANNEL_BODY_MAX, take_registry, "registry"},
    {ROLE_ASK, 0, 8192, take_ask, "ask"},
    {ROLE_HEAD, 0, 4096, take_head, "head"},
    {ROLE_SUSPENDED, 0, 256, take_suspended, "suspended"},
    {ROLE_LANE_ADD, 0, ATTACHED_BODY_MAX, take_lane_add, "lane add"},
    {ROLE_LANE_LISTENER, CHANNEL_FD, 1, take_lane_listener, "lane listener"},
    {ROLE_LANE_END, 0, 0, take_lane_end, "lane end"},
    {ROLE_LANE_OPEN, 0, 0, take_lane_open, "lane open"},
    {ROLE_OPENED, 0, 0, take_opened, "opened"},
    {ROLE_PROBED, 0, CHILD_PROBED_MAX, take_probed, "probed"},
};

static void on_channel_closed(void *ctx, struct channel *ch, int why) {
    struct process *of = ctx;
    struct parent *p = of->parent;
    if (why != ERR_CLOSED && !p->stopping)
        log_warn("%s: channel: %s", of->origin, err_text(why));
    channel_free(ch);
    of->channel = NULL;
    if (process_runs(of))
        of->state = PROCESS_ENDING;
    /* A process without its channel is of no use; SIGCHLD does the rest. */
    if (!p->stopping)
        process_kill(of);
}

void parent_listen(struct parent *p) {
    p->rules = rules;
    p->n_rules = sizeof rules / sizeof *rules;
    p->closed = on_channel_closed;
}

static bool all_down(const struct parent *p) {
    for (const struct process *of = p->processes; of; of = of->next)
        if (of->state != PROCESS_DOWN)
            return false;
    return true;
}

static void stop_next(struct parent *p);

static void process_ended(struct process *of, int status) {
    struct parent *p = of->parent;
    char how[64];
    if (WIFSIGNALED(status))
        snprintf(how, sizeof how, "signal %d%s", WTERMSIG(status),
                 WTERMSIG(status) == SIGSYS ? " (a call it may not make)" : "");
    else
        snprintf(how, sizeof how, "exit status %d", WEXITSTATUS(status));
    bool asked_for = p->stopping || of->killed;
    struct lane *lane = lanes_find(p, of->lane);
    of->state = PROCESS_DOWN;
    channel_free(of->channel);
    of->channel = NULL;
    links_lost(of);
    if (p->stopping) {
        stop_next(p);
        return;
    }
    if (!asked_for) {
        char detail[128];
        snprintf(detail, sizeof detail, "%s: %s", of->origin, how);
        log_warn("%s ended: %s", of->origin, how);
        record_event(p, "role_lost", detail);
    }
    if (!p->ready && !asked_for && of->restarts >= 3) {
        log_fatal("%s does not come up", of->origin);
        p->exit_status = 1;
        parent_stop(p);
        return;
    }
    if (lane && lane->ended) {
        rollout_lost(of);
        return;
    }
    if (of->role == ROLE_ATTACH)
        attached_lost(p);
    if (of->lane && of->role != ROLE_INSPECT)
        lane_end(of);
    /* An inspect that went with its lane comes with it again, and has nothing to pay for. */
    if (of->role != ROLE_INSPECT || !of->killed)
        start_again_later(of);
    rollout_lost(of);
}

/* ---- signals ---- */

static void on_child(evutil_socket_t fd, short what, void *ctx) {
    struct parent *p = ctx;
    int status;
    pid_t pid;
    (void)fd;
    (void)what;
    while ((pid = waitpid(-1, &status, WNOHANG)) > 0) {
        struct process *of = process_by_pid(p, pid);
        if (of)
            process_ended(of, status);
    }
}

static void on_hangup(evutil_socket_t fd, short what, void *ctx) {
    (void)fd;
    (void)what;
    rollout_load(ctx, false);
}

static void on_terminate(evutil_socket_t fd, short what, void *ctx) {
    (void)fd;
    (void)what;
    parent_stop(ctx);
}

static bool watch_signals(struct parent *p) {
    static const struct {
        int number;
        event_callback_fn handle;
    } table[] = {
        {SIGCHLD, on_child}, {SIGHUP, on_hangup}, {SIGTERM, on_terminate}, {SIGINT, on_terminate}};
    for (size_t i = 0; i < sizeof table / sizeof *table; i++) {
        p->signals[i] = event_new(loop_base(p->loop), table[i].number, EV_SIGNAL | EV_PERSIST,
                                  table[i].handle, p);
        if (!p->signals[i] || event_add(p->signals[i], NULL) != 0)
            return false;
    }
    return true;
}

/* ---- stopping: lanes first, audit last ---- */

/* One that was killed can be kept by the kernel, for whoever serves a file that it has (FUSE). */
static void on_stop_in_vain(evutil_socket_t fd, short what, void *ctx) {
    struct parent *p = ctx;
    (void)fd;
    (void)what;
    for (struct process *of = p->processes; of; of = of->next)
        if (process_runs(of))
            log_warn("%s cannot be ended, and is left", of->origin);
    loop_stop(p->loop);
}

static void on_stop_late(evutil_socket_t fd, short what, void *ctx) {
    struct parent *p = ctx;
    const struct timeval killed = {KILLED_SECONDS, 0};
    (void)fd;
    (void)what;
    for (struct process *of = p->processes; of; of = of->next)
        if (process_runs(of)) {
            log_warn("%s did not stop in time", of->origin);
            process_kill(of);
        }
    event_base_once(loop_base(p->loop), -1, EV_TIMEOUT, on_stop_in_vain, p, &killed);
}

static int stop_order(enum role role) {
    return role == ROLE_PROXY                            ? 0
           : role == ROLE_EGRESS || role == ROLE_INSPECT ? 1
           : role == ROLE_AUDIT                          ? 3
                                                         : 2;
}

static void stop_next(struct parent *p) {
    int least = 9;
    for (struct process *of = p->processes; of; of = of->next)
        if (of->state != PROCESS_DOWN && stop_order(of->role) < least)
            least = stop_order(of->role);
    if (all_down(p)) {
        loop_stop(p->loop);
        return;
    }
    for (struct process *of = p->processes; of; of = of->next) {
        if (of->state == PROCESS_DOWN || stop_order(of->role) != least || of->killed)
            continue;
        of->killed = true;
        if (of->channel)
            channel_send(of->channel, PARENT_STOP, 0, 0, (struct view){NULL, 0});
    }
}

void parent_stop(struct parent *p) {
    struct timeval late = {STOP_SECONDS, 0};
    if (p->stopping)
        return;
    p->stopping = true;
    notify_systemd("STOPPING=1");
    record_event(p, "stop", p->exit_status ? "after a failure" : "asked for");
    p->stop_late = event_new(loop_base(p->loop), -1, 0, on_stop_late, p);
    if (p->stop_late)
        event_add(p->stop_late, &late);
    for (struct process *of = p->processes; of; of = of->next) {
        of->killed = false;
        if (of->state == PROCESS_ASLEEP)
            start_cancel(of);
    }
    stop_next(p);
}

/* ---- from rollout.c ---- */

/* The first line of several says what is wrong. */
static void record_refused(struct parent *p, struct view text) {
    char detail[512];
    struct view first = view_cut(&text, '\n');
    size_t more = 0;
    while (text.n > 0) {
        view_cut(&text, '\n');
        more++;
    }
    int n = snprintf(detail, sizeof detail, "%.*s", VIEW_ARG(view_head(first, 400)));
    if (more > 0)
        snprintf(detail + n, sizeof detail - (size_t)n, " (and %zu more line%s)", more,
                 more == 1 ? "" : "s");
    record_event(p, "reload_refused", detail);
}

void parent_loaded(struct parent *p, int result, struct view text) {
    char line[512];
    if (p->has_reload_ask)
        control_answer(p, p->reload_ask, result, text);
    p->has_reload_ask = false;
    record_refused(p, text);
    if (p->ready || p->stopping)
        return;
    for (const char *not = "exeatd does not start: "; text.n > 0; not = "")
        log_fatal("%s%s", not, log_text(view_cut(&text, '\n'), line, sizeof line));
    p->exit_status = 3;
    /* What was just recorded is lost when audit does not read it. */
    if (process_find(p, ROLE_AUDIT, 0)->state != PROCESS_STARTING)
        parent_stop(p);
}

/* Who asked for the reload, and the log of who only sent a signal. */
static void tell_loaded(struct parent *p) {
    struct buf words, text;
    buf_init(&words, 256);
    buf_init(&text, 512);
    config_put_kept(&p->config, &p->served, &words);
    if (buf_len(&words) > 0)
        log_warn("%.*s: the configuration says otherwise now, which takes a restart",
                 VIEW_ARG(buf_view(&words)));
    buf_put_str(&text, "{");
    json_put_number(&text, "generation", p->generation);
    status_put_restart(p, &text);
    buf_put_str(&text, "}");
    if (p->has_reload_ask)
        control_answer(p, p->reload_ask, 0, buf_view(&text));
    p->has_reload_ask = false;
    buf_free(&words);
    buf_free(&text);
}

void parent_committed(struct parent *p) {
    record_event(p, p->ready ? "generation" : "start", "exeatd " EXEAT_VERSION);
    log_info("generation %u is in use", p->generation);
    if (p->rollout.loaded)
        tell_loaded(p);
    if (p->ready)
        return;
    p->ready = true;
    notify_systemd("READY=1");
    log_info("ready");
}

/* ---- the beginning ---- */

static bool give_listener(struct parent *p, enum role role, int fd) {
    struct process *of = process_find(p, role, 0);
    of->listeners[of->n_listeners++] = fd;
    return fd >= 0;
}

/* 0, or an exit status. */
static int open_listeners(struct parent *p) {
    int result = lanes_open(p);
    if (result != 0)
        return result;
    int control = listener_open_control(p->config.control, p->config.n_control_uids > 0);
    if (!give_listener(p, ROLE_CONTROL, control))
        return 3;
    return !p->config.attach.path ||
                   give_listener(p, ROLE_ATTACH, listener_open_attach(&p->config.attach))
               ? 0
               : 3;
}

static bool make_table(struct parent *p) {
    bool ok = true;
    for (size_t i = 0; i < sizeof shared_roles / sizeof *shared_roles && ok; i++)
        if (shared_roles[i] != ROLE_ATTACH || p->config.attach.path)
            ok = process_add(p, shared_roles[i], 0) != NULL;
    struct process *self = ok ? process_add(p, ROLE_PARENT, 0) : NULL;
    if (!self) {
        log_fatal("no memory or descriptors for the processes");
        return false;
    }
    p->audit =
        audit_writer_new(fcntl(self->audit_write, F_DUPFD_CLOEXEC, 0), "parent", clock_wall());
    return true;
}

static void start_all(struct parent *p) {
    for (struct process *of = p->processes; of && !p->stopping; of = of->next)
        if (of->role != ROLE_PARENT)
            start_process(of);
    for (struct lane *l = p->lanes; l && !p->stopping; l = l->next)
        lanes_start(l);
    if (!p->stopping)
        rollout_load(p, false);
}

static int prepare(struct parent *p) {
    struct buf why;
    buf_init(&why, 64 << 10);
    int result = load_config(p->config_file, &p->config, &why);
    if (result != 0)
        fprintf(stderr, "exeatd: %.*s", VIEW_ARG(buf_view(&why)));
    if (result != 0 && access(p->config_file, F_OK) != 0)
        fputs("exeatd: --config FILE or EXEAT_CONFIG names another\n", stderr);
    buf_free(&why);
    if (result != 0)
        return 3;
    buf_init(&p->base, 64 << 20);
    buf_init(&p->candidate, 64 << 20);
    buf_init(&p->rollout.base, 64 << 20);
    buf_init(&p->registry, CHANNEL_BODY_MAX);
    buf_init(&p->former, CHILD_SUSPENDED_MAX);
    buf_init(&p->suspended, CHILD_SUSPENDED_MAX);
    p->loop = loop_new();
    p->text = p->loader_fd = -1;
    if (!places_check(p))
        return 1;
    if (!places_claim(p))
        return 3;
    if (!p->loop || !watch_signals(p) || patience_prepare() != 0 || !places_prepare(p))
        return 1;
    return make_table(p) ? open_listeners(p) : 1;
}

static void remove_sockets(struct parent *p) {
    lanes_remove_sockets(p);
    unlink(p->config.control);
    if (p->config.attach.path)
        unlink(p->config.attach.path);
}

int parent_main(const struct parent_options *options) {
    static struct parent p;
    p.config_file = options->config_file;
    p.misbehave = options->misbehave;
    p.debug = options->debug;
    p.started = clock_mono();
    parent_listen(&p);
    log_open("parent", options->debug ? LOG_DEBUG : LOG_INFO);
    activated_note();
    if (process_raise_descriptors() != 0)
        return 1;
    /* Keys pass through as descriptors, but no debugger has business here either. */
    prctl(PR_SET_DUMPABLE, 0);
    int result = prepare(&p);
    if (result != 0)
        return result;
    prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0);
    start_all(&p);
    if (loop_run(p.loop) != 0)
        p.exit_status = 1;
    remove_sockets(&p);
    log_info("stopped");
    return p.exit_status;
}
