/*
 * Hostile roles at the parent, each with the table of messages that all of them have: whatever a role says, it is heard or
 * loses its channel, and the parent is there afterwards. Only control may have it stop, only broker changes what was
 * issued, only attach adds lanes, and the generation in use never goes back.
 *
 * Nothing is executed: a child that is to be started is a channel whose other end is ours.
 *
 * Input: messages, each a byte for the role, type, id, generation, which descriptor goes along, two bytes of length and a body.
 */
#include "base/patience.h"
#include "daemon/attached.h"
#include "daemon/lanes.h"
#include "daemon/ledgers.h"
#include "daemon/parent.h"
#include "daemon/process.h"
#include "fuzz/ends.h"

#include <netinet/in.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);
bool __wrap_process_start(struct process *of, const struct channel_rule *rules, size_t n_rules,
                          channel_closed *closed);
int __wrap_process_start_loader(struct parent *p, int running);

enum {
    INPUT_MAX = 8192,
    STEPS_MAX = 64,
    ROLES_MAX = 64,
    NO_PROCESS = 0x3fffffff, /* more than any process id */
    LANE_NAME = 1000,        /* by which attach knows the lane that is there */
};

enum carried { CARRIED_NOTHING, CARRIED_LISTENER, CARRIED_FILE, CARRIED_COUNT };

static struct loop *loop;
static struct parent parent;
static struct end roles[ROLES_MAX]; /* in the order in which they were started */
static enum role role_of[ROLES_MAX];
static size_t n_roles;
static char names[STEPS_MAX + 1][SANDBOX_NAME_MAX + 1]; /* of all lanes that there were */
static size_t n_names;

/* ---- children that are none ---- */

bool __wrap_process_start(struct process *of, const struct channel_rule *rules, size_t n_rules,
                          channel_closed *closed) {
    int pair[2];
    if (of->lane_fd >= 0)
        close(of->lane_fd);
    of->lane_fd = -1;
    if (n_roles == ROLES_MAX || channel_pair(pair) != 0)
        return false;
    of->channel = channel_new(of->parent->loop, pair[0], rules, n_rules, 0, closed, of);
    of->pid = NO_PROCESS;
    of->state = PROCESS_STARTING;
    of->started = clock_mono();
    role_of[n_roles] = of->role;
    end_open(&roles[n_roles++], pair[1]);
    return true;
}

int __wrap_process_start_loader(struct parent *p, int running) {
    (void)p;
    (void)running;
    return -1;
}

/* ---- the beginning ---- */

static struct process *add(enum role role) {
    struct process *of = process_add(&parent, role, 0);
    REQUIRE(of);
    if (role != ROLE_PARENT)
        REQUIRE(__wrap_process_start(of, parent.rules, parent.n_rules, parent.closed));
    of->state = role == ROLE_PARENT ? PROCESS_DOWN : PROCESS_UP;
    of->generation = 1;
    return of;
}

static void put_base(struct buf *out) {
    struct bundle b = {.policy_file = VIEW("policy"), .policy_text = VIEW("sandbox first { }")};
    limits_default(&b.limits);
    buf_init(out, 1 << 20);
    buf_put_block(out, VIEW(""));
    bundle_write(&b, out);
}

static void add_lane(void) {
    struct lane *l;
    REQUIRE(lanes_attach(&parent, VIEW("first"), &l) == 0);
    l->attach = LANE_NAME;
    l->since = 1;
    l->closed = true;
    lanes_start(l);
    for (struct process *of = parent.processes; of; of = of->next)
        if (of->lane && of->state == PROCESS_STARTING)
            of->state = PROCESS_UP;
}

static void begin(void) {
    static const enum role shared[] = {ROLE_AUDIT,   ROLE_BROKER, ROLE_CA,    ROLE_DIALER,
                                       ROLE_CONTROL, ROLE_ATTACH, ROLE_PARENT};
    parent = (struct parent){.loop = loop, .text = -1, .loader_fd = -1, .ready = true};
    parent.generation = parent.rollout.number = 1;
    parent.rollout.text = -1;
    parent.config.first_uid = 1000;
    parent.config.last_uid = 1099;
    limits_default(&parent.limits);
    parent_listen(&parent);
    put_base(&parent.base);
    buf_init(&parent.candidate, 1 << 20);
    buf_init(&parent.rollout.base, 1 << 20);
    buf_init(&parent.registry, CHANNEL_BODY_MAX);
    buf_init(&parent.former, CHILD_SUSPENDED_MAX);
    buf_init(&parent.suspended, CHILD_SUSPENDED_MAX);
    n_roles = n_names = 0;
    for (size_t i = 0; i < sizeof shared / sizeof *shared; i++)
        add(shared[i]);
    add_lane();
}

/* ---- the end ---- */

/* What is kept of lanes that have ended is found by their sandboxes. */
static void free_ledgers(void) {
    struct lane l = {.parent = &parent};
    for (size_t i = 0; i < n_names; i++) {
        memcpy(l.sandbox, names[i], sizeof l.sandbox);
        for (int fd; (fd = ledgers_take(&l)) >= 0;)
            close(fd);
    }
    REQUIRE(!parent.ledgers);
}

static void free_event(struct event *e) {
    if (e)
        event_free(e);
}

static void free_lanes(void) {
    while (parent.lanes) {
        struct lane *l = parent.lanes;
        parent.lanes = l->next;
        for (size_t i = 0; i < l->n_listeners; i++)
            close(l->listeners[i].fd);
        free(l);
    }
}

static void end(void) {
    for (struct process *of = parent.processes; of; of = of->next) {
        if (of->wake)
            event_free(of->wake);
        of->wake = NULL;
        if (of->lane_fd >= 0)
            close(of->lane_fd);
        of->state = PROCESS_DOWN;
    }
    while (parent.processes)
        process_free(parent.processes);
    free_lanes();
    free_ledgers();
    free_event(parent.rollout.late);
    free_event(parent.rollout.gather);
    free_event(parent.lanes_tick);
    free_event(parent.status_late);
    free_event(parent.stop_late);
    if (parent.text >= 0)
        close(parent.text);
    if (parent.rollout.text >= 0 && parent.rollout.text != parent.text)
        close(parent.rollout.text);
    struct buf *all[] = {&parent.base,   &parent.candidate, &parent.rollout.base, &parent.registry,
                         &parent.former, &parent.suspended, &parent.loaded};
    for (size_t i = 0; i < sizeof all / sizeof *all; i++)
        buf_free(all[i]);
    for (size_t i = 0; i < n_roles; i++)
        end_close(&roles[i]);
    turns(loop, 1);
}

/* ---- what holds ---- */

struct state {
    uint32_t generation;
    size_t lanes;
    uint64_t registry_state;
    bool stopping;
};

static void note_name(const char *name) {
    for (size_t i = 0; i < n_names; i++)
        if (strcmp(names[i], name) == 0)
            return;
    REQUIRE(n_names < sizeof names / sizeof *names);
    memcpy(names[n_names++], name, sizeof *names);
}

static struct state look(void) {
    struct state s = {.generation = parent.generation,
                      .registry_state = parent.registry_state,
                      .stopping = parent.stopping};
    for (const struct lane *l = parent.lanes; l; l = l->next) {
        REQUIRE(l->n_listeners <= LISTENERS_MAX && l->awaited <= LISTENERS_MAX);
        REQUIRE(l->sandbox[0] && memchr(l->sandbox, 0, sizeof l->sandbox));
        note_name(l->sandbox);
        s.lanes++;
    }
    return s;
}

static void check(enum role role, const struct state *before) {
    struct state now = look();
    REQUIRE(now.generation >= before->generation);
    REQUIRE(now.stopping == before->stopping || role == ROLE_CONTROL);
    REQUIRE(now.registry_state == before->registry_state || role == ROLE_BROKER);
    /* Those that have ended are put away by the clock, whoever speaks then. */
    REQUIRE(now.lanes <= before->lanes || role == ROLE_ATTACH);
}

/* ---- messages ---- */

static int listener(void) {
    struct sockaddr_in at = {.sin_family = AF_INET, .sin_addr = {htonl(INADDR_LOOPBACK)}};
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    REQUIRE(bind(fd, (struct sockaddr *)&at, sizeof at) == 0 && listen(fd, 1) == 0);
    return fd;
}

static int descriptor(uint8_t which) {
    switch (which % CARRIED_COUNT) {
    case CARRIED_LISTENER:
        return listener();
    case CARRIED_FILE:
        return memory_file(VIEW("file"));
    default:
        return -1;
    }
}

static void take_step(struct reader *r) {
    size_t i = read_u8(r) % n_roles;
    uint8_t type = read_u8(r), id = read_u8(r), generation = read_u8(r), which = read_u8(r);
    struct view body = read_bytes(r, read_u16(r));
    struct state before = look();
    if (r->bad)
        return;
    send_frame(roles[i].fd, type, id, generation, body, descriptor(which));
    turns(loop, 2);
    check(role_of[i], &before);
    for (size_t k = 0; k < n_roles; k++) {
        end_read(&roles[k]);
        buf_reset(&roles[k].in);
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    if (!loop) {
        log_open("fuzz", LOG_FATAL);
        loop = loop_new();
        REQUIRE(patience_prepare() == 0);
    }
    if (size > INPUT_MAX)
        return 0;
    begin();
    struct reader r = reader_of(view_of(data, size));
    for (int i = 0; i < STEPS_MAX && !r.bad && r.rest.n > 0; i++)
        take_step(&r);
    end();
    return 0;
}
