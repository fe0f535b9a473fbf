#include "broker/broker.h"

#include "base/child.h"
#include "base/file.h"
#include "base/json.h"
#include "base/log.h"
#include "base/rights.h"
#include "base/secret.h"
#include "broker/desk.h"
#include "broker/issue.h"
#include "broker/lend.h"

#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

enum { KEY_FILE_MAX = 4096, MIB = 1 << 20 };

struct broker {
    struct child *child;
    struct custody custody;
    struct lender *lender;
    struct desk *desk, *attach; /* control's, attach's */
    struct mandate *next;       /* accepted, not yet in use */
};

/* ---- the registry ---- */

static void send_registry(void *ctx, enum registry_change change, struct view sandbox) {
    struct broker *b = ctx;
    struct buf registry;
    buf_init(&registry, CHANNEL_BODY_MAX);
    issue_registry(b->custody.vault ? vault_inventory(b->custody.vault) : NULL, &registry);
    struct buf *out = channel_begin(child_channel(b->child), ROLE_REGISTRY, 0, 0);
    buf_put_u64(out, custody_state(&b->custody));
    buf_put_u8(out, (uint8_t)change);
    buf_put_block(out, sandbox);
    buf_put_block(out, buf_view(&registry));
    channel_end(child_channel(b->child));
    buf_free(&registry);
}

static void on_recall(void *ctx, struct view credential) {
    struct broker *b = ctx;
    lender_recall(b->lender, credential);
}

static void on_bad_lane(void *ctx, uint32_t lane) {
    struct broker *b = ctx;
    child_bad_peer(b->child, ROLE_EGRESS, lane);
}

static void on_bad_control(void *ctx) {
    struct broker *b = ctx;
    child_bad_peer(b->child, ROLE_CONTROL, 0);
}

static void on_bad_attach(void *ctx) {
    struct broker *b = ctx;
    child_bad_peer(b->child, ROLE_ATTACH, 0);
}

/* ---- the parent ---- */

static int on_peer(void *ctx, enum role role, uint32_t lane, struct view name, int fd) {
    struct broker *b = ctx;
    (void)name;
    switch (role) {
    case ROLE_EGRESS:
        return lender_add(b->lender, lane, fd);
    case ROLE_CONTROL:
        return desk_attach(b->desk, fd);
    case ROLE_ATTACH:
        return desk_attach(b->attach, fd);
    case ROLE_AUDIT:
        return journal_attach(b->custody.journal, fd);
    default:
        close(fd);
        return ERR_BAD;
    }
}

static void on_peer_gone(void *ctx, enum role role, uint32_t lane) {
    struct broker *b = ctx;
    if (role == ROLE_EGRESS)
        lender_remove(b->lender, lane);
    else if (role == ROLE_AUDIT)
        journal_away(b->custody.journal);
}

static int on_file(void *ctx, struct view name, int fd) {
    struct broker *b = ctx;
    struct buf text;
    if (!view_equal(name, VIEW("vault-key"))) {
        close(fd);
        return ERR_BAD;
    }
    buf_init_secret(&text, 2 * KEY_FILE_MAX);
    if (file_read(fd, KEY_FILE_MAX, &text) != 0)
        log_warn("vault.key: it cannot be read");
    custody_open(&b->custody, buf_view(&text));
    buf_free(&text);
    send_registry(b, REGISTRY_OTHER, VIEW(""));
    return 0;
}

static int on_generation(void *ctx, uint32_t generation, struct view text) {
    struct broker *b = ctx;
    struct mandate *m;
    int result = mandate_new(generation, text, &m);
    if (result != 0)
        return result;
    mandate_free(b->next);
    b->next = m;
    return 0;
}

/* An operator who was told that it is done may count on it. */
static void on_in_use(void *ctx, uint64_t registry_state) {
    struct broker *b = ctx;
    desk_in_use(b->desk, registry_state);
    desk_in_use(b->attach, registry_state);
}

static void on_commit(void *ctx, uint32_t generation) {
    struct broker *b = ctx;
    if (!b->next || b->next->number != generation)
        return;
    mandate_free(b->custody.mandate);
    b->custody.mandate = b->next;
    b->next = NULL;
}

static void on_status(void *ctx, struct buf *out) {
    struct broker *b = ctx;
    const struct custody *c = &b->custody;
    struct buf trouble;
    json_put_text(out, "vault", c->vault ? VIEW("open") : VIEW("locked"));
    if (c->vault) {
        json_put_number(out, "vault_state", vault_counter(c->vault));
        json_put_number(out, "secrets", vault_inventory(c->vault)->n_secrets);
        json_put_number(out, "sandboxes", vault_inventory(c->vault)->n_sandboxes);
    } else {
        buf_init(&trouble, 2 * VAULT_WHY_SIZE);
        buf_printf(
            &trouble,
            "the vault is locked, and requests to services with a credential are refused: %s",
            c->why);
        json_put_text(out, "trouble", buf_view(&trouble));
        buf_free(&trouble);
    }
    json_put_number(out, "lanes", lender_lanes(b->lender));
    json_put_number(out, "leases", c->lent);
    json_put_number(out, "refused", c->refused);
}

static const struct child_ops ops = {
    .on_peer = on_peer,
    .on_peer_gone = on_peer_gone,
    .on_file = on_file,
    .on_generation = on_generation,
    .on_commit = on_commit,
    .on_in_use = on_in_use,
    .on_status = on_status,
};

/* ---- the process ---- */

struct broker *broker_new(struct loop *l, const struct role_args *args) {
    struct broker *b = calloc(1, sizeof *b);
    if (!b)
        return NULL;
    struct desk_hooks hooks = {send_registry, on_recall, on_bad_control, b},
                      attach_hooks = {send_registry, on_recall, on_bad_attach, b};
    b->custody.directory = args->directory;
    strcpy(b->custody.why, "the vault key has not come yet");
    b->custody.journal = journal_new(l);
    b->lender = lender_new(l, &b->custody, on_bad_lane, b);
    b->desk = desk_new(l, &b->custody, &hooks, true);
    b->attach = desk_new(l, &b->custody, &attach_hooks, false);
    b->child = child_new(l, args, &ops, b);
    if (!b->custody.journal || !b->lender || !b->desk || !b->attach || !b->child) {
        broker_free(b);
        return NULL;
    }
    child_up(b->child, VIEW(""));
    return b;
}

void broker_free(struct broker *b) {
    if (!b)
        return;
    desk_free(b->desk);
    desk_free(b->attach);
    lender_free(b->lender);
    child_free(b->child);
    mandate_free(b->next);
    custody_close(&b->custody);
    free(b);
}

/* As much as may be locked: each lane's channel needs up to a quarter of a MiB. */
static int open_arena(void) {
    static const size_t sizes[] = {16 * MIB, 8 * MIB, 4 * MIB};
    for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++)
        if (secret_arena_open(sizes[i]) == 0)
            return 0;
    log_fatal("the arena for secrets cannot be locked: raise RLIMIT_MEMLOCK to 4 MiB at least");
    return ERR_SYSTEM;
}

int broker_main(const struct role_args *args) {
    log_open("broker", args->debug ? LOG_DEBUG : LOG_INFO);
    umask(077);
    if (!args->directory || open_arena() != 0)
        return 1;
    if (seal_open_library() != 0 || store_open_library() != 0) {
        log_fatal("a library does not do what it should");
        return 1;
    }
    if (rights_enter(args) != 0)
        return 1;
    struct loop *l = loop_new();
    struct broker *b = l ? broker_new(l, args) : NULL;
    int result = b ? loop_run(l) : ERR_MEMORY;
    broker_free(b);
    loop_free(l);
    return result == 0 ? 0 : 1;
}
