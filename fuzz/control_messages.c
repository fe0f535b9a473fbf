/*
 * A hostile client of the control socket, and a hostile broker. Control must be there afterwards, without the client; each
 * request that came whole was answered at most once, and all that the client hears is whole answers.
 *
 * Input: flags; with FLAG_BROKER two bytes of length, the client's bytes, and then the broker's; else the client's.
 */
#include "daemon/control_messages.h"
#include "daemon/control.h"
#include "fuzz/ends.h"

#include <stdio.h>
#include <sys/un.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

enum { INPUT_MAX = 65536, SETTLE_MAX = 64 };

enum flags {
    FLAG_FD =
        1, /* a descriptor goes along; never the client's own, which would keep it open until it idles */
    FLAG_ANSWER = 2, /* parent and broker answer what they are asked */
    FLAG_BROKER = 4, /* the broker says something of its own */
};

static struct loop *loop;
static struct end parent, broker;
static int null;
static struct sockaddr_un address = {.sun_family = AF_UNIX};
static socklen_t address_size = sizeof(sa_family_t); /* the kernel chooses an abstract name */
static size_t asked;                                 /* of parent and broker, in this input */
static bool idle;                                    /* by the last status */

/* ---- the beginning ---- */

static void listen_here(void) {
    int listener = socket(AF_UNIX, SOCK_STREAM, 0);
    REQUIRE(bind(listener, (struct sockaddr *)&address, address_size) == 0 &&
            listen(listener, 16) == 0);
    address_size = sizeof address;
    REQUIRE(getsockname(listener, (struct sockaddr *)&address, &address_size) == 0);
    REQUIRE(listener == LISTENER_FD || dup2(listener, LISTENER_FD) == LISTENER_FD);
    if (listener != LISTENER_FD)
        close(listener);
}

static void join_broker(void) {
    int fds[2];
    REQUIRE(channel_pair(fds) == 0);
    end_close(&broker);
    end_open(&broker, fds[0]);
    send_peer(parent.fd, ROLE_BROKER, 0, VIEW("broker"), fds[1]);
    turns(loop, 2);
}

static void start(void) {
    struct role_args args = {.role = ROLE_CONTROL, .listeners = 1};
    log_open("fuzz", LOG_FATAL);
    /* Whatever is opened first may not be where the role's descriptors are wanted. */
    for (int fd = PARENT_FD; fd <= LISTENER_FD; fd++)
        REQUIRE(open("/dev/null", O_RDONLY) >= 0);
    end_open(&parent, open_parent());
    listen_here();
    loop = loop_new();
    REQUIRE(loop && control_new(loop, &args));
    broker.fd = -1;
    null = open("/dev/null", O_RDONLY | O_CLOEXEC);
    send_file(parent.fd, "control-uids", VIEW("1000\n"));
    turns(loop, 2);
}

/* ---- who is asked ---- */

static void answer(int to, uint16_t type, const struct message *m) {
    struct buf b;
    buf_init(&b, 256);
    buf_put_u8(&b, (uint8_t)(m->id % 3));
    buf_put_block(&b, VIEW("{\"x\":1}"));
    send_frame(to, type, m->id, 0, buf_view(&b), -1);
    buf_free(&b);
}

static void take_from_parent(const struct message *m, unsigned flags) {
    if (m->type == ROLE_STATUS)
        idle = view_search(m->body, VIEW("\"clients\":0,")) < m->body.n;
    if (m->type != ROLE_ASK)
        return;
    asked++;
    if (flags & FLAG_ANSWER)
        answer(parent.fd, PARENT_ANSWER, m);
}

static bool serve(unsigned flags) {
    struct message m;
    bool any = end_read(&parent);
    any |= end_read(&broker);
    while (end_next(&parent, &m))
        take_from_parent(&m, flags);
    while (end_next(&broker, &m)) {
        asked += m.type != BROKER_CANCEL;
        if (flags & FLAG_ANSWER)
            answer(broker.fd, BROKER_DONE, &m);
    }
    return any;
}

static void settle(unsigned flags) {
    bool any = true;
    for (int i = 0; any && i < SETTLE_MAX; i++) {
        turns(loop, 2);
        any = serve(flags);
    }
}

/* ---- the client ---- */

static void check_answers(struct end *client) {
    struct message m;
    size_t done = 0;
    end_read(client);
    while (end_next(client, &m)) {
        struct reader r = reader_of(m.body);
        REQUIRE(m.type == CONTROL_DONE);
        read_u8(&r);
        read_block(&r, BROKER_TEXT_MAX);
        REQUIRE(read_done(&r));
        done++;
    }
    /* One more for what was refused at once. */
    REQUIRE(buf_len(&client->in) == 0 && done <= asked + 1);
}

static void talk(unsigned flags, struct view bytes, struct view of_broker) {
    struct end client;
    end_open(&client, socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0));
    REQUIRE(connect(client.fd, (struct sockaddr *)&address, address_size) == 0);
    turns(loop, 2);
    send_bytes_fd(client.fd, bytes, flags & FLAG_FD ? fcntl(null, F_DUPFD_CLOEXEC, 0) : -1);
    settle(flags);
    send_bytes_fd(broker.fd, of_broker, -1);
    settle(flags);
    check_answers(&client);
    end_close(&client);
    settle(flags);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    if (!loop)
        start();
    if (size < 1 || size > INPUT_MAX)
        return 0;
    struct reader r = reader_of(view_of(data + 1, size - 1));
    struct view bytes = data[0] & FLAG_BROKER ? read_bytes(&r, read_u16(&r)) : r.rest;
    asked = 0;
    join_broker();
    talk(data[0], bytes, data[0] & FLAG_BROKER ? r.rest : NOTHING);
    send_frame(parent.fd, PARENT_STATUS_ASK, 1, 0, NOTHING, -1);
    idle = false;
    settle(0);
    REQUIRE(idle);
    return 0;
}
