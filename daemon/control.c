#include "daemon/control.h"

#include "base/file.h"
#include "base/json.h"
#include "base/log.h"
#include "base/patience.h"
#include "base/rights.h"
#include "daemon/control_messages.h"
#include "daemon/front.h"
#include "policy/bundle.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

enum { UIDS_MAX = 256, UIDS_TEXT_MAX = 4096 };

struct client {
    struct control *owner;
    struct client *next;
    struct channel *channel;
    struct event *timer;
    uint32_t uid;
    uint32_t ask;      /* our id of what is in progress; 0: nothing */
    uint32_t their_id; /* the client's */
    bool at_broker, at_audit;
};

struct control {
    struct front front; /* the first: daemon/front.h */
    struct client *clients;
    size_t n_clients;
    uint32_t last_ask;
    uint32_t uids[UIDS_MAX];
    size_t n_uids;
    uint64_t asked, refused;
};

/* ---- clients ---- */

/* Nobody is left to be answered: broker must not go on reading what is typed. */
static void cancel_at_broker(struct client *k) {
    if (k->ask && k->at_broker && k->owner->front.broker)
        channel_send(k->owner->front.broker, BROKER_CANCEL, k->ask, 0, VIEW(""));
}

static void client_free(struct client *k) {
    struct client **at = &k->owner->clients;
    while (*at != k)
        at = &(*at)->next;
    *at = k->next;
    k->owner->n_clients--;
    cancel_at_broker(k);
    if (k->timer)
        event_free(k->timer);
    channel_free(k->channel);
    free(k);
}

static void arm(struct client *k, unsigned seconds) {
    struct timeval end = {(time_t)seconds, 0};
    event_add(k->timer, &end);
}

static void put_done(struct buf *b, int code, struct view text) {
    buf_put_u8(b, (uint8_t)-code);
    buf_put_block(b, text);
}

static void client_answer(struct client *k, int code, struct view text) {
    put_done(channel_begin(k->channel, CONTROL_DONE, k->their_id, 0), code, text);
    channel_end(k->channel);
    k->ask = 0;
    arm(k, CONTROL_IDLE_SECONDS);
}

static void on_client_timer(evutil_socket_t fd, short what, void *ctx) {
    struct client *k = ctx;
    (void)fd;
    (void)what;
    if (!k->ask) {
        client_free(k);
        return;
    }
    cancel_at_broker(k);
    client_answer(k, ERR_CLOSED,
                  k->at_broker  ? VIEW("the broker does not answer: look whether it was done")
                  : k->at_audit ? VIEW("audit does not answer: see `exeat status`")
                                : VIEW("the daemon does not answer: see its log"));
}

static void on_client_closed(void *ctx, struct channel *ch, int why) {
    (void)ch;
    (void)why;
    client_free(ctx);
}

static struct client *client_of(const struct control *c, uint32_t ask) {
    struct client *k = c->clients;
    while (k && k->ask != ask)
        k = k->next;
    return k;
}

/* ---- requests ---- */

/* A new ask of this client; ERR_BAD when it has one already. */
static int begin_ask(struct client *k, uint32_t their_id, bool at_broker) {
    struct control *c = k->owner;
    if (k->ask || their_id == 0)
        return ERR_BAD;
    if (++c->last_ask == 0)
        c->last_ask = 1;
    k->ask = c->last_ask;
    k->their_id = their_id;
    k->at_broker = at_broker;
    k->at_audit = false;
    c->asked++;
    arm(k, CONTROL_ASK_SECONDS);
    return 0;
}

static int take_for_parent(void *ctx, struct channel *ch, struct message *m) {
    static const enum role_ask asks[] = {[CONTROL_STATUS] = ASK_STATUS,
                                         [CONTROL_RELOAD] = ASK_RELOAD,
                                         [CONTROL_STOP] = ASK_STOP,
                                         [CONTROL_HEAD] = ASK_HEAD,
                                         [CONTROL_SANDBOX_PROBE] = ASK_PROBE};
    struct client *k = ctx;
    (void)ch;
    if (begin_ask(k, m->id, false) != 0)
        return ERR_BAD;
    /* Audit signs at once, or has died with the question. */
    k->at_audit = m->type == CONTROL_HEAD;
    if (k->at_audit)
        arm(k, CONTROL_HEAD_SECONDS);
    /* Whoever watches exeat asks for the status again and again. */
    log_line(m->type == CONTROL_STATUS ? LOG_DEBUG : LOG_INFO, "uid %u asks for %s", k->uid,
             m->type == CONTROL_STOP            ? "a stop"
             : m->type == CONTROL_RELOAD        ? "a reload"
             : m->type == CONTROL_HEAD          ? "a signed head"
             : m->type == CONTROL_SANDBOX_PROBE ? "a sandbox's probe"
                                                : "the status");
    struct channel *parent = child_channel(k->owner->front.child);
    struct buf *b = channel_begin(parent, ROLE_ASK, k->ask, 0);
    buf_put_u8(b, (uint8_t)asks[m->type]);
    buf_put_block(b, m->body);
    channel_end(parent);
    return 0;
}

static void send_to_broker(struct client *k, struct message *m) {
    struct channel *broker = k->owner->front.broker;
    uint16_t type = (uint16_t)(m->type - CONTROL_FOR_BROKER);
    struct buf body;
    buf_init(&body, BROKER_VALUE_MAX);
    buf_put_u32(&body, k->uid);
    buf_put(&body, m->body);
    if (m->fd >= 0)
        channel_send_fd(broker, type, k->ask, 0, buf_view(&body), m->fd);
    else
        channel_send(broker, type, k->ask, 0, buf_view(&body));
    m->fd = -1;
    buf_free(&body);
    channel_flush(broker);
}

static int take_for_broker(void *ctx, struct channel *ch, struct message *m) {
    struct client *k = ctx;
    (void)ch;
    if (begin_ask(k, m->id, true) != 0)
        return ERR_BAD;
    if (!k->owner->front.broker)
        client_answer(k, ERR_CLOSED, VIEW("the broker is not running: see `exeat status`"));
    else if (channel_unsent(k->owner->front.broker) > 0)
        client_answer(k, ERR_AGAIN, VIEW("the broker is busy: try again"));
    else
        send_to_broker(k, m);
    return 0;
}

static const struct channel_rule client_rules[] = {
    {CONTROL_STATUS, 0, 0, take_for_parent, "status"},
    {CONTROL_RELOAD, 0, CONTROL_CONFIRMED, take_for_parent, "reload"},
    {CONTROL_STOP, 0, 0, take_for_parent, "stop"},
    {CONTROL_HEAD, 0, 0, take_for_parent, "head"},
    {CONTROL_SANDBOX_PROBE, 0, SANDBOX_NAME_MAX, take_for_parent, "sandbox probe"},
    {CONTROL_SECRET_ADD, CHANNEL_FD, CONTROL_VALUE_MAX, take_for_broker, "secret add"},
    {CONTROL_SECRET_ROTATE, CHANNEL_FD, CONTROL_VALUE_MAX, take_for_broker, "secret rotate"},
    {CONTROL_SECRET_REMOVE, 0, CONTROL_ASK_MAX, take_for_broker, "secret remove"},
    {CONTROL_SECRET_LIST, 0, 0, take_for_broker, "secret list"},
    {CONTROL_SANDBOX_ADD, 0, CONTROL_ASK_MAX, take_for_broker, "sandbox add"},
    {CONTROL_SANDBOX_REMOVE, 0, CONTROL_ASK_MAX, take_for_broker, "sandbox remove"},
    {CONTROL_SANDBOX_LIST, 0, 0, take_for_broker, "sandbox list"},
    {CONTROL_VAULT_BACKUP, CHANNEL_FD, 0, take_for_broker, "vault backup"},
    {CONTROL_VAULT_RESTORE, CHANNEL_FD, 0, take_for_broker, "vault restore"},
    {CONTROL_VAULT_REKEY, CHANNEL_FD, 0, take_for_broker, "vault rekey"},
};

/* ---- accepting ---- */

/* Best effort: the client may not even be reading. */
static void turn_away(int fd, int code, struct view text) {
    struct buf b;
    buf_init(&b, 1024);
    buf_put_u32(&b, 0);
    buf_put_u16(&b, CONTROL_DONE);
    buf_put_u16(&b, 0);
    buf_put_u64(&b, 0); /* id and generation */
    put_done(&b, code, text);
    buf_patch_u32(&b, 0, (uint32_t)(buf_len(&b) - CHANNEL_HEADER_SIZE));
    struct view v = buf_view(&b);
    if (write(fd, v.p, v.n) < 0)
        log_debug("a client that was turned away did not listen");
    buf_free(&b);
    front_drain(fd);
    patience_close(fd);
}

static bool is_permitted(const struct control *c, uint32_t uid) {
    if (uid == 0 || uid == getuid())
        return true;
    for (size_t i = 0; i < c->n_uids; i++)
        if (c->uids[i] == uid)
            return true;
    return false;
}

static void record_refusal(struct control *c, uint32_t uid) {
    struct record r = {.present = 0};
    char text[16];
    snprintf(text, sizeof text, "%u", uid);
    record_begin(&r, RECORD_EVENT, clock_wall(), clock_mono());
    record_str(&r, FIELD_EVENT, "control_refused");
    record_str(&r, FIELD_PRINCIPAL, text);
    if (audit_stream_write(&c->front.audit, &r) != 0)
        log_warn("audit: a record was not taken");
    record_free(&r);
}

static void client_add(struct control *c, int fd, uint32_t uid) {
    struct client *k = calloc(1, sizeof *k);
    if (!k) {
        close(fd);
        return;
    }
    *k = (struct client){.owner = c, .uid = uid, .next = c->clients};
    c->clients = k;
    c->n_clients++;
    k->timer = event_new(loop_base(c->front.loop), -1, 0, on_client_timer, k);
    k->channel = channel_new(c->front.loop, fd, client_rules,
                             sizeof client_rules / sizeof *client_rules, 0, on_client_closed, k);
    if (k->timer && k->channel)
        arm(k, CONTROL_IDLE_SECONDS);
    else
        client_free(k);
}

static void on_knock(void *ctx, int fd, const struct ucred *who) {
    struct control *c = ctx;
    if (front_is_elsewhere(&c->front, fd)) {
        log_warn("uid %u, process %d: in another network namespace", who->uid, (int)who->pid);
        record_refusal(c, who->uid);
        c->refused++;
        turn_away(fd, ERR_DENIED,
                  VIEW("this command runs in another network namespace than exeatd: that is where "
                       "sandboxes are; run it outside"));
    } else if (!is_permitted(c, who->uid)) {
        log_warn("uid %u, process %d: not permitted", who->uid, (int)who->pid);
        record_refusal(c, who->uid);
        c->refused++;
        turn_away(fd, ERR_DENIED,
                  VIEW("this user may not control exeat: the configuration's `control` line "
                       "permits users"));
    } else if (c->n_clients >= CONTROL_CLIENTS_MAX) {
        c->refused++;
        turn_away(fd, ERR_LIMIT, VIEW("too many commands are connected: try again"));
    } else {
        client_add(c, fd, who->uid);
    }
}

/* ---- broker ---- */

static void on_done(void *ctx, uint32_t id, int code, struct view text) {
    struct client *k = client_of(ctx, id);
    if (k && k->at_broker)
        client_answer(k, code, text);
}

static void on_broker_lost(void *ctx) {
    struct control *c = ctx;
    for (struct client *k = c->clients; k; k = k->next)
        if (k->ask && k->at_broker)
            client_answer(
                k, ERR_CLOSED,
                VIEW("the broker ended meanwhile: look whether it was done, then try again"));
}

static const struct front_ops front_ops = {
    .on_knock = on_knock,
    .on_done = on_done,
    .on_broker_lost = on_broker_lost,
};

/* ---- the parent ---- */

static int read_uids(struct control *c, struct view text) {
    while (text.n > 0) {
        uint64_t uid;
        if (c->n_uids == UIDS_MAX || view_number(view_cut(&text, '\n'), UINT32_MAX - 1, &uid) != 0)
            return ERR_BAD;
        c->uids[c->n_uids++] = (uint32_t)uid;
    }
    return 0;
}

static int on_file(void *ctx, struct view name, int fd) {
    struct control *c = ctx;
    struct buf text;
    if (!view_equal(name, VIEW("control-uids"))) {
        close(fd);
        return ERR_BAD;
    }
    buf_init(&text, 2 * UIDS_TEXT_MAX);
    c->n_uids = 0;
    if (file_read(fd, UIDS_TEXT_MAX, &text) != 0 || read_uids(c, buf_view(&text)) != 0) {
        log_warn(
            "the list of permitted users cannot be read: only root may use the control socket");
        c->n_uids = 0;
    }
    buf_free(&text);
    /* Nobody was let in before it was known who may. */
    return event_add(c->front.listener, NULL) == 0 ? 0 : ERR_SYSTEM;
}

static int on_answer(void *ctx, uint32_t id, int code, struct view text) {
    struct client *k = id ? client_of(ctx, id) : NULL;
    if (k && !k->at_broker)
        client_answer(k, code, text);
    return 0;
}

static void on_status(void *ctx, struct buf *out) {
    const struct control *c = ctx;
    json_put_number(out, "clients", c->n_clients);
    json_put_number(out, "asked", c->asked);
    json_put_number(out, "refused", c->refused);
}

static const struct child_ops ops = {
    .on_peer = front_on_peer,
    .on_peer_gone = front_on_peer_gone,
    .on_file = on_file,
    .on_status = on_status,
    .on_answer = on_answer,
};

/* ---- the process ---- */

struct control *control_new(struct loop *l, const struct role_args *args) {
    struct control *c = calloc(1, sizeof *c);
    if (!c)
        return NULL;
    if (!front_init(&c->front, l, args, "control", &front_ops, &ops)) {
        control_free(c);
        return NULL;
    }
    if (c->front.home == 0)
        log_warn(
            "this kernel does not tell network namespaces: whoever is let to the socket by its "
            "file's mode can command");
    child_up(c->front.child, VIEW(""));
    return c;
}

void control_free(struct control *c) {
    if (!c)
        return;
    for (struct client *k = c->clients, *next; k; k = next) {
        next = k->next;
        client_free(k);
    }
    front_free(&c->front);
    free(c);
}

int control_main(const struct role_args *args) {
    log_open("control", args->debug ? LOG_DEBUG : LOG_INFO);
    if (args->listeners != 1) {
        log_fatal("exactly one listener is wanted");
        return 1;
    }
    if (rights_enter(args) != 0)
        return 1;
    struct loop *l = loop_new();
    struct control *c = l ? control_new(l, args) : NULL;
    int result = c ? loop_run(l) : ERR_MEMORY;
    control_free(c);
    loop_free(l);
    return result == 0 ? 0 : 1;
}
