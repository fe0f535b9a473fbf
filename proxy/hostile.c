#include "proxy/hostile.h"

#ifdef EXEAT_HOSTILE

#include "base/log.h"
#include "base/peer.h"
#include "egress/lane_messages.h"
#include "proxy/say.h"

#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/ptrace.h>
#include <sys/socket.h>
#include <unistd.h>

/* The one misbehaviour of this process, "NAME" or "NAME=ARGUMENT". */
static struct view name, argument;
static struct proxy *serving;
static struct client *liar; /* never a real connection: only its tunnel and peer are used */

static void report(long result) {
    int why = errno;
    if (result < 0)
        log_warn("hostile: %.*s: denied %d", VIEW_ARG(name), why);
    else
        log_warn("hostile: %.*s: succeeded", VIEW_ARG(name));
}

/* ---- after narrowing ---- */

static void open_file(void) {
    char path[256];
    if (view_cstr(argument, path, sizeof path) != 0 || argument.n == 0)
        strcpy(path, "/etc/passwd");
    report(open(path, O_RDONLY | O_CLOEXEC));
}

static void make_socket(void) {
    report(socket(AF_INET, SOCK_STREAM, 0));
}

/* With connect denied, a listener that was shut down still connects by TCP fast open. */
static void connect_listener(void) {
    struct sockaddr_in to = {.sin_family = AF_INET};
    struct view rest = argument;
    struct view host = view_cut(&rest, ':');
    char text[64];
    uint64_t port = 0;
    if (view_cstr(host, text, sizeof text) != 0 || inet_pton(AF_INET, text, &to.sin_addr) != 1 ||
        view_number(rest, 65535, &port) != 0) {
        log_warn("hostile: connect-listener needs ADDRESS:PORT");
        return;
    }
    to.sin_port = htons((uint16_t)port);
    shutdown(LISTENER_FD, SHUT_RDWR);
    report(sendto(LISTENER_FD, "escaped", 7, MSG_FASTOPEN, (struct sockaddr *)&to, sizeof to));
}

static void trace_parent(void) {
    report(ptrace(PTRACE_ATTACH, getppid(), NULL, NULL));
}

static void run_shell(void) {
    char *const argv[] = {"sh", "-c", "exit 0", NULL};
    report(execve("/bin/sh", argv, NULL));
}

static void signal_parent(void) {
    report(kill(getppid(), SIGTERM));
}

static void send_descriptor(void) {
    report(peer_send(LANE_FD, VIEW("x"), &(int){LISTENER_FD}, 1, 0));
}

/* ---- with a policy: lies to egress ---- */

static void open_as(struct view authority, struct view token) {
    static struct client nobody = {.peer = "127.0.0.1:1"};
    struct opening o = {.authority = authority, .token = token, .n_tokens = token.n > 0};
    nobody.proxy = serving;
    nobody.tunnel = ++serving->last_tunnel;
    liar = &nobody;
    say_open(liar, &o);
}

static void open_tunnel(struct view authority) {
    open_as(authority, (struct view){NULL, 0});
}

/* NAME|ADDRESS:PORT: a transparent connection to that address that says that name. */
static void open_transparent(void) {
    static struct client nobody = {.peer = "127.0.0.1:1", .way = LANE_WAY_TRANSPARENT};
    struct view rest = argument, said = view_cut(&rest, '|');
    if (view_cstr(rest, nobody.meant, sizeof nobody.meant) != 0)
        return;
    nobody.proxy = serving;
    nobody.tunnel = ++serving->last_tunnel;
    liar = &nobody;
    say_open(liar, &(struct opening){.authority = said, .tls = true});
}

static void look_up(void) {
    static struct dns_query q = {.type = QUERY_A};
    if (view_cstr(argument, q.name, sizeof q.name) != 0)
        return;
    say_lookup(serving, ++serving->last_lookup, &q, VIEW("127.0.0.1:1"), VIEW("127.0.0.1:53"),
               REASON_ALLOWED, "");
}

static void open_unlisted(void) {
    open_tunnel(argument.n ? argument : VIEW("unlisted.example.com:443"));
}

static void wrong_sni(void) {
    open_tunnel(argument);
}

/* AUTHORITY, a placeholder, and on a shared listener what proves the sandbox, with '|' between them. */
struct lie {
    struct view authority, placeholder, token;
    uint32_t exchange;
    bool overruns;
};

static struct lie lie;

static void tell_request(void) {
    struct view rest = argument;
    lie.authority = view_cut(&rest, '|');
    lie.placeholder = view_cut(&rest, '|');
    lie.token = rest;
    open_as(lie.authority, lie.token);
}

static void tell_overrun(void) {
    lie.overruns = true;
    tell_request();
}

static void tell_hello(void) {
    struct view rest = lie.authority;
    say_hello(liar, true, view_cut(&rest, ':'), false);
}

/* No window is longer than the longest message. */
static void overrun(void) {
    static const uint8_t piece[LANE_BODY_MAX];
    for (size_t n = 0; n < 64 * CHANNEL_BODY_MAX; n += sizeof piece)
        say_body(serving, lie.exchange, view_of(piece, sizeof piece));
}

static void tell_head(void) {
    static struct request_head h = {.form = FORM_ORIGIN, .minor = 1, .has_host = true};
    char value[256];
    snprintf(value, sizeof value, "Bearer %.*s", VIEW_ARG(lie.placeholder));
    h.method = VIEW("GET");
    h.target = VIEW("/v1/items");
    h.host = lie.authority;
    h.fields.n = 0;
    h.framing = lie.overruns ? FRAMING_LENGTH : FRAMING_NONE;
    h.length = lie.overruns ? UINT32_MAX : 0;
    if (fields_add(&h.fields, VIEW("authorization"), view_str(value)) != 0)
        return;
    lie.exchange = ++serving->last_exchange;
    struct buf *b = channel_begin(serving->lane, LANE_REQUEST, lie.exchange, 0);
    buf_put_u32(b, liar->tunnel);
    buf_put_u8(b, 1);
    buf_put_u8(b, 0);
    buf_put_block(b, VIEW(""));
    buf_put_block(b, VIEW("127.0.0.1:1"));
    request_write(&h, b);
    channel_end(serving->lane);
    if (lie.overruns)
        overrun();
}

static void again(evutil_socket_t fd, short what, void *ctx);

static void repeat(void) {
    static const struct timeval soon = {0, 1000};
    event_base_once(loop_base(serving->loop), -1, EV_TIMEOUT, again, NULL, &soon);
}

static void flood(void) {
    for (int i = 0; i < 256 && !proxy_lane_full(serving); i++)
        open_tunnel(VIEW("unlisted.example.com:443"));
    repeat();
}

static void bad_message(void) {
    channel_send(serving->lane, 63, 1, 0, VIEW("nonsense"));
    report(0);
}

/* Bytes for an upstream, in a tunnel of which nobody said that it is spliced. */
static void raw(void) {
    open_tunnel(argument);
    say_raw(liar, VIEW("escaped"));
}

static void huge_credit(void) {
    if (serving->last_exchange > 0) {
        say_credit(serving, serving->last_exchange, UINT32_MAX);
        report(0);
        return;
    }
    repeat();
}

static const struct {
    const char *name;
    bool with_policy;
    void (*run)(void);
} deeds[] = {
    {"open-file", false, open_file},
    {"socket", false, make_socket},
    {"connect-listener", false, connect_listener},
    {"ptrace", false, trace_parent},
    {"exec", false, run_shell},
    {"signal-parent", false, signal_parent},
    {"send-fd", false, send_descriptor},
    {"open-unlisted", true, open_unlisted},
    {"wrong-sni", true, wrong_sni},
    {"transparent", true, open_transparent},
    {"lookup", true, look_up},
    {"request", true, tell_request},
    {"overrun", true, tell_overrun},
    {"flood", true, flood},
    {"bad-message", true, bad_message},
    {"huge-credit", true, huge_credit},
    {"raw", true, raw},
};

/* "2/NAME": only in lane 2. */
static bool is_meant(const struct role_args *args, struct view *deed) {
    struct view rest = view_str(args->misbehave), lane = view_cut(&rest, '/');
    uint64_t number = 0;
    *deed = view_str(args->misbehave);
    if (view_number(lane, UINT32_MAX, &number) != 0)
        return true;
    *deed = rest;
    return number == args->lane;
}

static void misbehave(const struct role_args *args, bool with_policy) {
    if (!is_meant(args, &argument))
        return;
    name = view_cut(&argument, '=');
    for (size_t i = 0; i < sizeof deeds / sizeof *deeds; i++)
        if (deeds[i].with_policy == with_policy && view_equal(name, view_str(deeds[i].name)))
            deeds[i].run();
}

static void again(evutil_socket_t fd, short what, void *ctx) {
    (void)fd;
    (void)what;
    (void)ctx;
    if (view_equal(name, VIEW("flood")))
        flood();
    else
        huge_credit();
}

void proxy_hostile_narrowed(const struct role_args *args) {
    misbehave(args, false);
}

void proxy_hostile_serve(struct proxy *p, const struct role_args *args) {
    if (serving)
        return;
    serving = p;
    misbehave(args, true);
}

static void heard_of_tunnel(const struct message *m) {
    bool lies = view_equal(name, VIEW("request")) || lie.overruns;
    if (view_equal(name, VIEW("wrong-sni")) && m->type == LANE_OPENED)
        say_hello(liar, true, VIEW("other.example.com"), false);
    else if (lies && m->type == LANE_OPENED)
        tell_hello();
    else if (lies && m->type == LANE_LEAF)
        tell_head();
    else
        log_warn("hostile: %.*s: heard %u", VIEW_ARG(name), m->type);
}

static void heard_of_name(const struct message *m) {
    struct reader r = reader_of(m->body);
    unsigned code = read_u8(&r);
    read_u32(&r);
    log_warn("hostile: %.*s: heard code %u, %u addresses", VIEW_ARG(name), code, read_u8(&r));
}

void proxy_hostile_heard(const struct message *m) {
    if (m->type == LANE_FOUND) {
        heard_of_name(m);
        return;
    }
    if ((m->type >= LANE_CONTINUE && m->type < LANE_SPLICED) || m->type == LANE_WINDOW) {
        if (lie.exchange != 0 && m->id == lie.exchange)
            log_warn("hostile: %.*s: heard %u %.*s", VIEW_ARG(name), m->type, VIEW_ARG(m->body));
    } else if (liar && m->id == liar->tunnel) {
        heard_of_tunnel(m);
    }
}

#endif
