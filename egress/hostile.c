#include "egress/hostile.h"

#ifdef EXEAT_HOSTILE

#include "base/log.h"
#include "broker/broker_messages.h"
#include "ca/ca_messages.h"
#include "egress/dialer_messages.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

/* Ids above any that ask.c gives in a test. */
enum { HOSTILE_ID = 0xfffffff0u };

static struct view name, argument;
static bool started;

void hostile_plan(const struct role_args *args) {
    char lane[16];
    struct view rest = view_str(args->misbehave);
    if (!view_starts(rest, VIEW("egress:")))
        return;
    rest = view_skip(rest, 7);
    argument = rest;
    name = view_cut(&argument, '=');
    snprintf(lane, sizeof lane, "%u/", args->lane);
    if (view_starts(name, view_str(lane)))
        name = view_skip(name, strlen(lane));
}

static void report(long result) {
    if (result < 0)
        log_warn("hostile: %.*s: denied %d", VIEW_ARG(name), errno);
    else
        log_warn("hostile: %.*s: succeeded", VIEW_ARG(name));
}

static void open_file(struct lane *l) {
    char path[256];
    (void)l;
    if (argument.n == 0 || view_cstr(argument, path, sizeof path) != 0)
        report(open("/etc/passwd", O_RDONLY | O_CLOEXEC));
    else
        report(open(path, O_RDONLY | O_CLOEXEC));
}

static void make_socket(struct lane *l) {
    (void)l;
    report(socket(AF_INET, SOCK_STREAM, 0));
}

/* HOST:PORT from the argument. */
static uint16_t split(struct view *host) {
    struct view rest = argument;
    uint64_t port = 443;
    *host = view_cut(&rest, ':');
    if (rest.n > 0 && view_number(rest, 65535, &port) != 0)
        log_warn("hostile: the port is not one");
    return (uint16_t)port;
}

static struct view any_sandbox(struct lane *l) {
    struct view rest = view_str(l->now->names), sandbox = {NULL, 0};
    lane_sandbox(&rest, &sandbox);
    return sandbox;
}

static void dial(struct lane *l) {
    struct view host;
    uint16_t port = split(&host);
    struct buf *b = channel_begin(l->dialer, DIAL_ASK, HOSTILE_ID, l->now->number);
    buf_put_block(b, any_sandbox(l));
    buf_put_u8(b, 1);
    buf_put_block(b, host);
    buf_put_u16(b, port);
    channel_end(l->dialer);
}

static void leaf(struct lane *l) {
    struct view host;
    uint16_t port = split(&host);
    struct buf *b = channel_begin(l->ca, CA_ASK_LEAF, HOSTILE_ID, l->now->number);
    buf_put_block(b, host);
    buf_put_u16(b, port);
    channel_end(l->ca);
}

/* SANDBOX/CREDENTIAL@HOST:PORT */
static struct buf *ask_broker(struct lane *l, uint16_t type) {
    struct view rest = argument, sandbox = view_cut(&rest, '/'), credential = view_cut(&rest, '@'),
                host;
    argument = rest;
    uint16_t port = split(&host);
    struct buf *b = channel_begin(l->broker, type, HOSTILE_ID, l->now->number);
    buf_put_block(b, sandbox);
    buf_put_block(b, credential);
    buf_put_block(b, host);
    buf_put_u16(b, port);
    return b;
}

static void lease(struct lane *l) {
    uint8_t fingerprint[FINGERPRINT_SIZE] = {0};
    buf_put(ask_broker(l, LEASE_ASK), view_of(fingerprint, sizeof fingerprint));
    channel_end(l->broker);
}

static void certificate(struct lane *l) {
    ask_broker(l, LEASE_ASK_CERTIFICATE);
    channel_end(l->broker);
}

static void packet(struct lane *l) {
    report(write(audit_writer_fd(l->audit.writer), argument.p, argument.n));
}

void hostile_start(struct lane *l) {
    static const struct {
        const char *name;
        void (*act)(struct lane *l);
    } acts[] = {{"open-file", open_file}, {"socket", make_socket}, {"dial", dial},
                {"leaf", leaf},           {"lease", lease},        {"certificate", certificate},
                {"packet", packet}};
    if (started)
        return;
    started = true;
    for (size_t i = 0; i < sizeof acts / sizeof *acts; i++)
        if (view_equal(name, view_str(acts[i].name)))
            acts[i].act(l);
}

bool hostile_heard(const char *what, const struct message *m, bool granted) {
    struct reader r = reader_of(m->body);
    if (m->id != HOSTILE_ID)
        return false;
    if (granted)
        log_warn("hostile: %s: succeeded", what);
    else
        log_warn("hostile: %s: denied %u", what, read_u16(&r));
    return true;
}

#endif
