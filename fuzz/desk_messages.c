/*
 * A hostile control and a hostile attach at the broker, with a vault that has a secret and a sandbox. What is refused has
 * changed nothing; attach changes no secret; and whatever they did, the vault on the disk opens as it was last told.
 *
 * Input: steps, each a byte of enum step and what it takes.
 */
#include "base/secret.h"
#include "broker/broker.h"
#include "broker/broker_messages.h"
#include "broker/store.h"
#include "broker/vault.h"
#include "fuzz/ends.h"
#include "fuzz/folder.h"
#include "policy/bundle.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

enum { INPUT_MAX = 8192, STEPS_MAX = 24, DESKS = 2 };

enum step {
    STEP_FRAME,  /* u8 desk, u8 type, u8 id, u16 n: a message */
    STEP_FD,     /* the same, and u16 n: what its descriptor gives */
    STEP_RAW,    /* u8 desk, u16 n: bytes */
    STEP_COPY,   /* u8 desk, u8 id, u32 uid: the restore of a good copy */
    STEP_IN_USE, /* a generation with the newest registry is in use */
    STEP_JOIN,   /* u8 desk: another one */
    STEP_COUNT
};

#define KEY_TEXT "0100000000000000000000000000000000000000000000000000000000000000\n"
static const uint8_t kek[SEAL_KEY_SIZE] = {1};
static const char policy_text[] = "service demo-api {\n"
                                  "    host api.example.com\n"
                                  "    credential demo { in header authorization scheme bearer }\n"
                                  "    operation every { * /** }\n"
                                  "}\n"
                                  "service shown { host shown.example.com; upstream "
                                  "client-certificate us; operation every { * /** } }\n"
                                  "sandbox worker { grant demo-api all; grant shown all }\n"
                                  "sandbox other { grant demo-api all }\n"
                                  "sandbox idle { }\n";

static struct buf db, head, copy, generation_text;
static struct loop *loop;
static struct broker *broker;
static struct end parent, desks[DESKS];
static int audit;
static uint32_t number;
static uint64_t state; /* of the vault, as it was told last */
static bool told,
    rekeyed; /* since the last look: it was said that something was done; the key is another */

/* ---- the beginning ---- */

static void make_vault(void) {
    struct vault *v;
    char why[VAULT_WHY_SIZE];
    struct vault_placeholder p = {.credential = "demo", .secret_id = 1};
    struct vault_sandbox s = {.name = "worker", .placeholders = &p, .n = 1};
    REQUIRE(vault_open(folder_path, kek, &v, why) == 0);
    REQUIRE(vault_add(v, VIEW("demo"), VIEW("sk-"), VIEW("0123456789abcdef"), 1) == 0);
    buf_init(&copy, 1 << 20);
    REQUIRE(vault_backup(v, &copy) == 0);
    REQUIRE(vault_put_sandbox(v, &s) == 0);
    vault_close(v);
    buf_init(&db, 1 << 20);
    buf_init(&head, 1 << 20);
    REQUIRE(folder_get("vault.db", &db) && folder_get("vault.head", &head));
}

static void make_generation(void) {
    struct lane_info lane = {.id = 1, .names = VIEW("worker")};
    struct bundle b = {.policy_file = VIEW("policy"), .policy_text = view_str(policy_text)};
    struct buf lanes;
    buf_init(&lanes, 256);
    buf_init(&generation_text, 1 << 20);
    limits_default(&b.limits);
    bundle_put_lane(&lanes, &lane);
    b.lanes = buf_view(&lanes);
    bundle_write(&b, &generation_text);
    buf_free(&lanes);
}

static void start(void) {
    log_open("fuzz", LOG_FATAL);
    end_open(&parent, open_parent());
    end_close(&parent);
    close(PARENT_FD);
    REQUIRE(open("/dev/null", O_RDONLY) == PARENT_FD);
    REQUIRE(secret_arena_open((size_t)4 << 20) == 0);
    REQUIRE(seal_open_library() == 0 && store_open_library() == 0);
    folder_make();
    make_vault();
    make_generation();
    loop = loop_new();
    for (size_t i = 0; i < DESKS; i++)
        desks[i].fd = -1;
}

static void join(size_t desk) {
    int fds[2];
    REQUIRE(channel_pair(fds) == 0);
    end_close(&desks[desk]);
    turns(loop, 2);
    end_open(&desks[desk], fds[0]);
    send_peer(parent.fd, desk == 0 ? ROLE_CONTROL : ROLE_ATTACH, 0, VIEW("peer"), fds[1]);
}

static void begin(void) {
    struct role_args args = {.role = ROLE_BROKER, .directory = folder_path};
    int fds[2];
    folder_empty();
    folder_put("vault.db", buf_view(&db));
    folder_put("vault.head", buf_view(&head));
    end_open(&parent, open_parent());
    broker = broker_new(loop, &args);
    REQUIRE(broker);
    REQUIRE(socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, 0, fds) == 0);
    audit = fds[0];
    send_peer(parent.fd, ROLE_AUDIT, 0, VIEW("audit"), fds[1]);
    send_file(parent.fd, "vault-key", VIEW(KEY_TEXT));
    send_generation(parent.fd, ++number, buf_view(&generation_text));
    join(0);
    join(1);
    turns(loop, 4);
    told = true;
    rekeyed = false;
}

/* ---- what is told ---- */

static uint64_t number_behind(struct view text, const char *name) {
    uint64_t n = 0;
    struct view rest = view_skip(text, view_search(text, view_str(name)));
    rest = view_skip(rest, view_str(name).n);
    for (; rest.n > 0 && is_digit(rest.p[0]); rest = view_skip(rest, 1))
        n = 10 * n + (uint64_t)(rest.p[0] - '0');
    return n;
}

/* What changes the vault is said to who asked, or to the parent, or both. */
static void look(void) {
    struct message m;
    static uint8_t packet[65536];
    uint64_t now = state;
    send_frame(parent.fd, PARENT_STATUS_ASK, 1, 0, NOTHING, -1);
    turns(loop, 2);
    for (size_t i = 0; i < DESKS; i++) {
        end_read(&desks[i]);
        while (end_next(&desks[i], &m)) {
            struct reader r = reader_of(m.body);
            REQUIRE(m.type == BROKER_DONE);
            told |= read_u8(&r) == 0;
            read_block(&r, BROKER_TEXT_MAX);
            REQUIRE(read_done(&r));
        }
    }
    end_read(&parent);
    while (end_next(&parent, &m)) {
        told |= m.type == ROLE_REGISTRY;
        if (m.type == ROLE_STATUS)
            now = number_behind(m.body, "\"vault_state\":");
    }
    REQUIRE(now == state || told);
    state = now;
    told = false;
    while (recv(audit, packet, sizeof packet, MSG_DONTWAIT) > 0)
        continue;
}

/* ---- steps ---- */

static void step_frame(struct reader *r, bool with_fd) {
    size_t desk = read_u8(r) % DESKS;
    uint8_t type = read_u8(r), id = read_u8(r);
    struct view body = read_bytes(r, read_u16(r));
    struct view content = with_fd ? read_bytes(r, read_u16(r)) : NOTHING;
    rekeyed |= type == BROKER_VAULT_REKEY;
    send_frame(desks[desk].fd, type, id, 0, body, with_fd ? memory_file(content) : -1);
}

static void step_copy(struct reader *r) {
    size_t desk = read_u8(r) % DESKS;
    uint8_t id = read_u8(r);
    send_frame(desks[desk].fd, BROKER_VAULT_RESTORE, id, 0, read_bytes(r, 4),
               memory_file(buf_view(&copy)));
}

static void step_in_use(void) {
    struct buf b;
    buf_init(&b, 8);
    buf_put_u64(&b, state);
    send_generation(parent.fd, ++number, buf_view(&generation_text));
    send_frame(parent.fd, PARENT_IN_USE, 0, number, buf_view(&b), -1);
    buf_free(&b);
}

static void take_step(struct reader *r) {
    uint8_t step = read_u8(r) % STEP_COUNT;
    size_t desk;
    switch (step) {
    case STEP_FRAME:
    case STEP_FD:
        step_frame(r, step == STEP_FD);
        break;
    case STEP_RAW:
        desk = read_u8(r) % DESKS;
        send_bytes_fd(desks[desk].fd, read_bytes(r, read_u16(r)), -1);
        break;
    case STEP_COPY:
        step_copy(r);
        break;
    case STEP_IN_USE:
        step_in_use();
        break;
    default:
        join(read_u8(r) % DESKS);
    }
    turns(loop, 3);
    look();
}

/* ---- the end ---- */

static void end(void) {
    struct vault *v;
    char why[VAULT_WHY_SIZE];
    for (size_t i = 0; i < DESKS; i++)
        end_close(&desks[i]);
    turns(loop, 3);
    look();
    broker_free(broker);
    end_close(&parent);
    close(audit);
    REQUIRE(secret_in_use() == 0);
    if (rekeyed)
        return;
    REQUIRE(vault_open(folder_path, kek, &v, why) == 0 && vault_counter(v) == state);
    vault_close(v);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    if (!loop)
        start();
    if (size > INPUT_MAX)
        return 0;
    begin();
    look();
    struct reader r = reader_of(view_of(data, size));
    for (int i = 0; i < STEPS_MAX && !r.bad && r.rest.n > 0; i++)
        take_step(&r);
    end();
    return 0;
}
