#include "daemon/attach.h"

#include "base/attach.h"
#include "base/file.h"
#include "base/json.h"
#include "base/limits.h"
#include "base/log.h"
#include "base/patience.h"
#include "base/rights.h"
#include "broker/broker_messages.h"
#include "daemon/attach_refusals.h"
#include "daemon/attach_report.h"
#include "daemon/attach_request.h"
#include "daemon/front.h"
#include "policy/lexer.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

enum {
    REQUEST_SECONDS = 30, /* from the connection to the request */
    SERVE_SECONDS =
        180, /* from the request to the answer, and on to the report; longer than broker waits for a generation */
    PROBE_SECONDS = 30,  /* for a report that was asked for */
    GUESTS_EXTRA = 1024, /* connections beyond the sandboxes that may be attached */
    GUESTS_SILENT = 128, /* of one user that have asked for nothing yet: a fraction of those */
    GROUPS_MAX = 1024,
    BARRED_MAX = 64 << 10, /* bytes, four of each user */
    CA_MAX = 64 << 10,
    REQUEST_ROOM = 512,
};

enum guest_state {
    GUEST_NEW,      /* has not asked yet */
    GUEST_ASKED,    /* the parent was asked for a lane */
    GUEST_ADDED,    /* the lane is being made, and broker was asked */
    GUEST_ANSWERED, /* a report of its sandbox is awaited */
    GUEST_REPORTED, /* its sandbox is tight: the parent was asked to open the lane */
    GUEST_SERVED,
};

/* One launcher. */
struct guest {
    struct attach *owner;
    struct guest *next;
    enum guest_state state;
    int fd;
    struct event *readable, *timer;
    uint32_t id; /* its lane's, for the parent, and that of its questions to broker */
    uint32_t uid;
    char sandbox[SANDBOX_NAME_MAX + 1];
    bool up;           /* the lane answers */
    bool unenforced;   /* nothing forces the sandbox to the lane: it has no walls to be tried */
    uint32_t probe;    /* the ask of who wants it probed again; 0: nobody */
    struct buf issued; /* what broker answered */
};

struct attach {
    struct front front; /* the first: daemon/front.h */
    struct guest *guests;
    size_t n_guests;
    uint32_t last_id;
    struct buf ca;
    struct bundle now, next; /* their views point into the texts that child keeps */
    struct attach_refusals refusals;
    struct buf barred; /* uids of those whose descriptors could not be closed */
    uint64_t attached;
};

/* ---- who may ---- */

/* Whoever controls exeat anyway. */
static bool is_trusted(const struct guest *g) {
    return g->uid == 0 || g->uid == getuid();
}

/* The trusted may attach all that the policy has. */
static bool is_permitted(const struct guest *g) {
    uint32_t groups[GROUPS_MAX];
    socklen_t size = sizeof groups;
    struct ucred who;
    socklen_t who_size = sizeof who;
    if (is_trusted(g))
        return true;
    size_t n = getsockopt(g->fd, SOL_SOCKET, SO_PEERGROUPS, groups, &size) == 0
                   ? size / sizeof *groups
                   : 0;
    /* The first of a process' groups need not be among the others. */
    if (n < GROUPS_MAX && getsockopt(g->fd, SOL_SOCKET, SO_PEERCRED, &who, &who_size) == 0)
        groups[n++] = who.gid;
    return attach_request_permitted(g->owner->now.attach_rights, g->uid, groups, n,
                                    view_str(g->sandbox));
}

static size_t count(const struct attach *a, bool of_one, uint32_t uid) {
    size_t n = 0;
    for (const struct guest *g = a->guests; g; g = g->next)
        n += g->state != GUEST_NEW && (!of_one || g->uid == uid);
    return n;
}

static size_t count_silent(const struct attach *a, uint32_t uid) {
    size_t n = 0;
    for (const struct guest *g = a->guests; g; g = g->next)
        n += g->state == GUEST_NEW && g->uid == uid;
    return n;
}

static bool is_attached(const struct attach *a, struct view sandbox) {
    for (const struct guest *g = a->guests; g; g = g->next)
        if (g->state != GUEST_NEW && view_equal(view_str(g->sandbox), sandbox))
            return true;
    return false;
}

static bool is_barred(const struct guest *g) {
    struct reader r = reader_of(buf_view(&g->owner->barred));
    while (r.rest.n > 0)
        if (read_u32(&r) == g->uid)
            return true;
    return false;
}

/* Each of his requests would leave more of them open. */
static void bar(const struct guest *g) {
    log_warn("uid %u sent descriptors that are no sockets: they stay open, and this user attaches "
             "nothing more",
             g->uid);
    if (!is_barred(g))
        buf_put_u32(&g->owner->barred, g->uid);
}

/* Why whoever asks is refused, whatever came along, or NULL. */
static const char *find_fault_of_user(struct guest *g, struct view sandbox) {
    const struct attach *a = g->owner;
    /* What is no name stays out of the log: it is any bytes. */
    if (!name_is_good(sandbox) || view_cstr(sandbox, g->sandbox, sizeof g->sandbox) != 0)
        return "no sandbox has such a name";
    if (a->front.home == 0 || front_is_elsewhere(&a->front, g->fd))
        return "from another network namespace than exeatd's nobody attaches: no sandbox makes "
               "another one";
    if (!is_permitted(g))
        return "this user may not attach this sandbox: the configuration's `attach` names who may "
               "attach what";
    if (is_barred(g))
        return "this user sent what is no socket in an earlier request, and attaches nothing until "
               "exeatd's process attach begins anew";
    return NULL;
}

/* Why the request is refused, or NULL. */
static const char *find_fault(const struct guest *g, const struct attach_request *r) {
    const struct attach *a = g->owner;
    if (attach_request_fault(r))
        return attach_request_fault(r);
    if (is_attached(a, r->sandbox))
        return "the sandbox is attached already: end that one first, or give this one another "
               "sandbox of the policy";
    if (count(a, false, 0) >= a->now.limits.v[LIMIT_ATTACHED])
        return "too many sandboxes are attached: the limit is `attached`";
    if (count(a, true, g->uid) >= a->now.limits.v[LIMIT_ATTACHED_USER])
        return "this user has too many sandboxes attached: the limit is `attached-per-user`";
    if (!a->front.broker)
        return "the broker is not running: see `exeat status`";
    return NULL;
}

/* ---- guests ---- */

static void say_end(struct attach *a, uint32_t id) {
    channel_send(child_channel(a->front.child), ROLE_LANE_END, id, 0, VIEW(""));
}

static void ask_broker(struct guest *g, uint16_t type, uint32_t id) {
    struct buf *b = channel_begin(g->owner->front.broker, type, id, 0);
    buf_put_u32(b, g->uid);
    buf_put_block(b, view_str(g->sandbox));
    channel_end(g->owner->front.broker);
}

/* What was made for it ends with it. Its answer from broker would find nobody. */
static void undo(struct guest *g) {
    if (g->state == GUEST_NEW)
        return;
    say_end(g->owner, g->id);
    if (g->state >= GUEST_ADDED && g->owner->front.broker)
        ask_broker(g, BROKER_SANDBOX_REMOVE, 0);
}

static void answer_ask(struct attach *a, uint32_t ask, int code, struct view text) {
    struct channel *parent = child_channel(a->front.child);
    struct buf *b = channel_begin(parent, ROLE_PROBED, ask, 0);
    buf_put_u8(b, (uint8_t)-code);
    buf_put_block(b, text);
    channel_end(parent);
}

static void answer_probe(struct guest *g, int code, struct view text) {
    answer_ask(g->owner, g->probe, code, text);
    g->probe = 0;
}

static void guest_free(struct guest *g) {
    struct attach *a = g->owner;
    struct guest **at = &a->guests;
    while (*at != g)
        at = &(*at)->next;
    *at = g->next;
    a->n_guests--;
    if (g->probe)
        answer_probe(g, ERR_CLOSED, VIEW("the sandbox has ended meanwhile"));
    undo(g);
    if (g->readable)
        event_free(g->readable);
    if (g->timer)
        event_free(g->timer);
    patience_close(g->fd);
    buf_free(&g->issued);
    free(g);
}

/* Best effort: it may not even be reading. */
static void guest_refuse(struct guest *g, int code, const char *why) {
    struct attach_answer answer = {.err = code, .text = view_str(why)};
    attach_refusals_note(&g->owner->refusals, g->uid, g->sandbox, why);
    if (attach_send_answer(g->fd, &answer) != 0)
        log_debug("a launcher that was turned away did not listen");
    front_drain(g->fd);
    guest_free(g);
}

static void arm(struct guest *g, unsigned seconds) {
    struct timeval end = {(time_t)seconds, 0};
    event_add(g->timer, &end);
}

static void probe_missed(struct guest *g);

static void on_timer(evutil_socket_t fd, short what, void *ctx) {
    struct guest *g = ctx;
    (void)fd;
    (void)what;
    if (g->state == GUEST_SERVED)
        probe_missed(g);
    else
        guest_refuse(g, ERR_TIMEOUT,
                     g->state == GUEST_NEW        ? "no request came in time"
                     : g->state == GUEST_ANSWERED ? "no report of the sandbox came in time"
                                                  : "the lane did not come up in time: see "
                                                    "exeatd's log");
}

static void guest_serve(struct guest *g) {
    g->state = GUEST_SERVED;
    g->owner->attached++;
    event_del(g->timer);
    log_info("uid %u attached sandbox %s", g->uid, g->sandbox);
}

static void guest_answer(struct guest *g) {
    struct attach_answer answer = {.text = buf_view(&g->issued), .ca = buf_view(&g->owner->ca)};
    int result = attach_send_answer(g->fd, &answer);
    if (result != 0) {
        guest_refuse(g, result,
                     result == ERR_LIMIT ? "what was issued is too much for one answer"
                                         : "the launcher does not read");
        return;
    }
    buf_free(&g->issued);
    g->state = GUEST_ANSWERED;
    arm(g, SERVE_SECONDS);
    if (g->unenforced)
        guest_serve(g);
}

static void serve_when_ready(struct guest *g) {
    if (g->state == GUEST_ADDED && g->up && buf_len(&g->issued) > 0)
        guest_answer(g);
}

/* ---- whether the sandbox is tight ---- */

static bool keep_record(struct guest *g, bool tight, const char *detail) {
    log_line(tight ? LOG_INFO : LOG_WARN, "uid %u: sandbox %s is %s: %s", g->uid, g->sandbox,
             tight ? "tight" : "NOT TIGHT", detail);
    return attach_report_record(&g->owner->front.audit, g->uid, g->sandbox, tight, detail) == 0;
}

static void open_lane(struct guest *g) {
    g->state = GUEST_REPORTED;
    channel_send(child_channel(g->owner->front.child), ROLE_LANE_OPEN, g->id, 0, VIEW(""));
}

/* The first one: the lane is closed until then. */
static void judge_first(struct guest *g, bool tight, const char *detail) {
    if (tight) {
        open_lane(g);
        return;
    }
    char why[ATTACH_DETAIL_SIZE + 64];
    snprintf(why, sizeof why, "the sandbox is not tight, and is not served: %s", detail);
    guest_refuse(g, ERR_DENIED, why);
}

static void judge_again(struct guest *g, bool tight, struct view report) {
    struct buf text;
    buf_init(&text, CHILD_PROBED_MAX / 2);
    attach_report_put(report, &text);
    if (buf_ok(&text))
        answer_probe(g, 0, buf_view(&text));
    else
        answer_probe(g, ERR_LIMIT, VIEW("there is too much to tell: the audit trail has it"));
    buf_free(&text);
    event_del(g->timer);
    if (!tight)
        guest_free(g);
}

static void judge(struct guest *g, struct view report) {
    char detail[ATTACH_DETAIL_SIZE];
    bool tight = report_is_tight(report);
    attach_report_tell(report, detail);
    if (!keep_record(g, tight, detail))
        guest_refuse(g, ERR_SYSTEM, "the audit trail takes no record of what the probes found");
    else if (g->state == GUEST_ANSWERED)
        judge_first(g, tight, detail);
    else
        judge_again(g, tight, report);
}

static void take_report(struct guest *g) {
    struct buf report;
    buf_init(&report, ATTACH_REPORT_MAX);
    patience_begin();
    int result = attach_receive_report(g->fd, &report);
    patience_end();
    if (result == 0)
        judge(g, buf_view(&report));
    else if (result != ERR_AGAIN)
        guest_free(g);
    buf_free(&report);
}

/* Whoever could keep it from being made would be served on; a launcher that was stopped cannot be told from that. */
static void probe_missed(struct guest *g) {
    static const char why[] = "no report of the sandbox came in time";
    if (!keep_record(g, false, why))
        log_warn("audit: a record was not taken");
    answer_probe(g, ERR_TIMEOUT,
                 VIEW("no report came in time (its launcher does not run, or was stopped): the "
                      "sandbox is served no more"));
    guest_free(g);
}

/* ---- the request ---- */

static uint32_t new_id(struct attach *a) {
    if (++a->last_id == 0)
        a->last_id = 1;
    return a->last_id;
}

static void ask_parent(struct guest *g, struct attach_request *r) {
    struct channel *parent = child_channel(g->owner->front.child);
    struct buf *b = channel_begin(parent, ROLE_LANE_ADD, g->id, 0);
    buf_put_u32(b, g->uid);
    buf_put_u8(b, (uint8_t)r->n);
    g->unenforced = attach_request_unenforced(r, g->owner->front.home);
    buf_put_u8(b, g->unenforced);
    buf_put_block(b, view_str(g->sandbox));
    channel_end(parent);
    for (size_t i = 0; i < r->n; i++)
        channel_send_fd(parent, ROLE_LANE_LISTENER, g->id, 0, view_of(&r->kinds[i], 1), r->fds[i]);
}

static const char malformed[] = "the request is malformed, or of another version of exeat";

static void ask_for_lane(struct guest *g, struct attach_request *r) {
    g->id = new_id(g->owner);
    g->state = GUEST_ASKED;
    arm(g, SERVE_SECONDS);
    ask_parent(g, r);
}

/* Of somebody who may attach the sandbox. */
static void take_listeners(struct guest *g) {
    struct attach_request r;
    struct buf text;
    buf_init(&text, REQUEST_ROOM);
    int result = attach_receive_request(g->fd, &text, &r);
    const char *fault = result == 0 ? find_fault(g, &r) : malformed;
    if (!fault) {
        ask_for_lane(g, &r);
    } else {
        if (!attach_close_listeners(&r, is_trusted(g)))
            bar(g);
        guest_refuse(g, result == 0 ? ERR_DENIED : result, fault);
    }
    buf_free(&text);
}

static void take_request(struct guest *g) {
    struct attach_request r;
    struct buf text;
    buf_init(&text, REQUEST_ROOM);
    int result = attach_look_at_request(g->fd, &text, &r);
    const char *fault = result == 0 ? find_fault_of_user(g, r.sandbox) : malformed;
    if (!fault)
        take_listeners(g);
    else if (result == ERR_CLOSED)
        guest_free(g);
    else if (result != ERR_AGAIN)
        guest_refuse(g, result == 0 ? ERR_DENIED : result, fault);
    buf_free(&text);
}

/* The end of the connection, or more than a launcher has to say. */
static void on_readable(evutil_socket_t fd, short what, void *ctx) {
    struct guest *g = ctx;
    (void)fd;
    (void)what;
    if (g->state == GUEST_NEW)
        take_request(g);
    else if (g->state == GUEST_ANSWERED || g->probe)
        take_report(g);
    else
        guest_free(g);
}

/* ---- accepting ---- */

static struct guest *guest_new(struct attach *a, int fd, uint32_t uid) {
    struct guest *g = calloc(1, sizeof *g);
    if (!g) {
        close(fd);
        return NULL;
    }
    *g = (struct guest){.owner = a, .fd = fd, .uid = uid, .next = a->guests};
    buf_init_cleared(&g->issued, BROKER_TEXT_MAX);
    a->guests = g;
    a->n_guests++;
    g->readable = event_new(loop_base(a->front.loop), fd, EV_READ | EV_PERSIST, on_readable, g);
    g->timer = event_new(loop_base(a->front.loop), -1, 0, on_timer, g);
    if (g->readable && g->timer && event_add(g->readable, NULL) == 0) {
        arm(g, REQUEST_SECONDS);
        return g;
    }
    guest_free(g);
    return NULL;
}

static void on_knock(void *ctx, int fd, const struct ucred *who) {
    struct attach *a = ctx;
    struct guest *g = guest_new(a, fd, who->uid);
    if (!g)
        return;
    if (a->n_guests > a->now.limits.v[LIMIT_ATTACHED] + GUESTS_EXTRA ||
        count_silent(a, who->uid) > GUESTS_SILENT)
        guest_refuse(g, ERR_LIMIT, "too many launchers are connected: try again");
}

/* ---- broker ---- */

static struct guest *guest_of(const struct attach *a, uint32_t id) {
    struct guest *g = a->guests;
    while (g && (g->id != id || g->state == GUEST_NEW))
        g = g->next;
    return g;
}

static void on_done(void *ctx, uint32_t id, int code, struct view text) {
    struct attach *a = ctx;
    struct guest *g = guest_of(a, id);
    char why[512];
    if (!g || g->state != GUEST_ADDED || buf_len(&g->issued) > 0)
        return;
    if (code != 0 || text.n == 0) {
        guest_refuse(g, code != 0 ? code : ERR_BAD, log_text(text, why, sizeof why));
        return;
    }
    buf_put(&g->issued, text);
    serve_when_ready(g);
}

/* Those who wait for it are refused; whoever was served goes on. */
static void on_broker_lost(void *ctx) {
    struct attach *a = ctx;
    for (struct guest *g = a->guests, *next; g; g = next) {
        next = g->next;
        if (g->state == GUEST_ADDED && buf_len(&g->issued) == 0)
            guest_refuse(g, ERR_CLOSED, "the broker ended meanwhile: try again");
    }
}

static const struct front_ops front_ops = {
    .on_knock = on_knock,
    .on_done = on_done,
    .on_broker_lost = on_broker_lost,
};

/* ---- the parent ---- */

static int on_file(void *ctx, struct view name, int fd) {
    struct attach *a = ctx;
    if (!view_equal(name, VIEW("public-ca"))) {
        close(fd);
        return ERR_BAD;
    }
    buf_reset(&a->ca);
    return file_read(fd, CA_MAX, &a->ca);
}

static int on_generation(void *ctx, uint32_t generation, struct view text) {
    struct attach *a = ctx;
    (void)generation;
    return bundle_read(text, &a->next);
}

/* Whoever lost the right is put out. */
static void on_commit(void *ctx, uint32_t generation) {
    struct attach *a = ctx;
    (void)generation;
    a->now = a->next;
    for (struct guest *g = a->guests, *next; g; g = next) {
        next = g->next;
        if (g->state != GUEST_NEW && !is_permitted(g)) {
            log_info("uid %u may attach sandbox %s no more", g->uid, g->sandbox);
            guest_free(g);
        }
    }
    /* Nobody was let in before it was known who may. */
    if (event_add(a->front.listener, NULL) != 0)
        log_warn("nobody can attach: no memory");
}

static void lane_added(struct guest *g) {
    g->state = GUEST_ADDED;
    if (g->owner->front.broker)
        ask_broker(g, BROKER_SANDBOX_ADD, g->id);
    else
        guest_refuse(g, ERR_CLOSED, "the broker is not running: try again");
}

static void lane_open(struct guest *g) {
    if (attach_send_answer(g->fd, &(struct attach_answer){.err = 0}) == 0)
        guest_serve(g);
    else
        guest_refuse(g, ERR_SYSTEM, "the launcher does not read");
}

static int on_lane(void *ctx, uint32_t id, enum lane_news news, struct view text) {
    struct attach *a = ctx;
    struct guest *g = guest_of(a, id);
    char why[512];
    if (!g)
        return 0;
    if (news == LANE_ENDED && g->state == GUEST_SERVED) {
        guest_free(g);
    } else if (news == LANE_ENDED) {
        guest_refuse(g, ERR_DENIED, log_text(text, why, sizeof why));
    } else if (news == LANE_ADDED && g->state == GUEST_ASKED) {
        lane_added(g);
    } else if (news == LANE_UP) {
        g->up = true;
        serve_when_ready(g);
    } else if (news == LANE_SERVES && g->state == GUEST_REPORTED) {
        lane_open(g);
    }
    return 0;
}

static void on_probe(void *ctx, uint32_t id, uint32_t ask) {
    struct attach *a = ctx;
    struct guest *g = guest_of(a, id);
    if (!g || g->state != GUEST_SERVED) {
        answer_ask(a, ask, ERR_MISSING, VIEW("the sandbox has ended meanwhile"));
    } else {
        g->probe = ask;
        arm(g, PROBE_SECONDS);
        if (attach_send_ask(g->fd) != 0)
            probe_missed(g);
    }
}

static void on_status(void *ctx, struct buf *out) {
    const struct attach *a = ctx;
    json_put_number(out, "connections", a->n_guests);
    json_put_number(out, "attached", count(a, false, 0));
    json_put_number(out, "attached_ever", a->attached);
    json_put_number(out, "refused", a->refusals.all);
}

static const struct child_ops ops = {
    .on_peer = front_on_peer,
    .on_peer_gone = front_on_peer_gone,
    .on_file = on_file,
    .on_generation = on_generation,
    .on_commit = on_commit,
    .on_status = on_status,
    .on_lane = on_lane,
    .on_probe = on_probe,
};

/* ---- the process ---- */

struct attach *attach_new(struct loop *l, const struct role_args *args) {
    struct attach *a = calloc(1, sizeof *a);
    if (!a)
        return NULL;
    buf_init(&a->ca, 2 * CA_MAX);
    buf_init(&a->barred, BARRED_MAX);
    a->refusals.audit = &a->front.audit;
    if (!front_init(&a->front, l, args, "attach", &front_ops, &ops)) {
        attach_free(a);
        return NULL;
    }
    if (a->front.home == 0)
        log_warn("this kernel does not tell network namespaces: nobody can attach");
    child_up(a->front.child, VIEW(""));
    return a;
}

void attach_free(struct attach *a) {
    if (!a)
        return;
    for (struct guest *g = a->guests, *next; g; g = next) {
        next = g->next;
        guest_free(g);
    }
    front_free(&a->front);
    buf_free(&a->ca);
    buf_free(&a->barred);
    free(a);
}

int attach_main(const struct role_args *args) {
    log_open("attach", args->debug ? LOG_DEBUG : LOG_INFO);
    if (args->listeners != 1) {
        log_fatal("exactly one listener is wanted");
        return 1;
    }
    if (rights_enter(args) != 0)
        return 1;
    struct loop *l = loop_new();
    struct attach *a = l ? attach_new(l, args) : NULL;
    int result = a ? loop_run(l) : ERR_MEMORY;
    attach_free(a);
    loop_free(l);
    return result == 0 ? 0 : 1;
}
