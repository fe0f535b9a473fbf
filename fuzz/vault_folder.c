/*
 * A vault whose files somebody edited, or brought back from an older state, and a copy that is restored into it. What opens
 * is the newest state as a whole, or the older one where its head was brought back as well; never a mixture. A copy that
 * is refused changes nothing.
 *
 * Input: edits (fuzz/folder.h).
 */
#include "base/log.h"
#include "base/secret.h"
#include "broker/store.h"
#include "broker/vault.h"
#include "fuzz/folder.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

enum { INPUT_MAX = 4096 };

enum files { DB, HEAD, OLD_DB, OLD_HEAD, COPY, FILES };

static struct edited files[FILES];
static uint64_t newest, older; /* counters */
static const uint8_t kek[SEAL_KEY_SIZE] = {1};
static char why[VAULT_WHY_SIZE];

#define FIRST "first-secret-0123456789"
#define SECOND "second-secret-0123456789"

/* ---- the vault as it was ---- */

static void keep(enum files as, const char *name, bool own) {
    edited_keep(&files[as], name);
    if (!own)
        files[as].name[0] = 0;
}

static void start(void) {
    struct vault *v;
    log_open("fuzz", LOG_FATAL);
    REQUIRE(secret_arena_open(2 << 20) == 0 && store_open_library() == 0 &&
            seal_open_library() == 0);
    folder_make();
    REQUIRE(vault_open(folder_path, kek, &v, why) == 0);
    REQUIRE(vault_add(v, VIEW("demo"), VIEW("sk-"), VIEW(FIRST), 1) == 0);
    older = vault_counter(v);
    vault_close(v);
    keep(OLD_DB, "vault.db", false);
    keep(OLD_HEAD, "vault.head", false);
    REQUIRE(vault_open(folder_path, kek, &v, why) == 0);
    struct vault_placeholder p = {.credential = "demo", .secret_id = 1, .fingerprint = {7}};
    struct vault_sandbox s = {.name = "worker", .placeholders = &p, .n = 1};
    REQUIRE(vault_put_sandbox(v, &s) == 0);
    REQUIRE(vault_rotate(v, VIEW("demo"), VIEW(SECOND), 2) == 0);
    newest = vault_counter(v);
    buf_init(&files[COPY].good, EDITED_MAX);
    buf_init(&files[COPY].text, EDITED_MAX);
    REQUIRE(vault_backup(v, &files[COPY].good) == 0);
    vault_close(v);
    keep(DB, "vault.db", true);
    keep(HEAD, "vault.head", true);
}

/* ---- what holds ---- */

static void check_value(struct vault *v, struct view value, uint32_t version) {
    struct buf out;
    uint32_t got = 0;
    buf_init_secret(&out, SECRET_MAX);
    REQUIRE(vault_reveal(v, VIEW("demo"), &out, &got) == 0 && got == version);
    REQUIRE(view_equal(buf_view(&out), value));
    buf_free(&out);
}

/* One of the states that there were, whole. */
static void check_state(struct vault *v) {
    const struct inventory *all = vault_inventory(v);
    uint64_t counter = vault_counter(v);
    if (all->n_secrets == 0) {
        REQUIRE(all->n_sandboxes == 0 && counter < older);
        return;
    }
    REQUIRE(all->n_secrets == 1 && counter >= older);
    if (all->n_sandboxes == 0) {
        check_value(v, VIEW(FIRST), 1);
    } else {
        REQUIRE(all->n_sandboxes == 1 && all->sandboxes[0].n == 1 &&
                all->sandboxes[0].placeholders[0].fingerprint[0] == 7);
        check_value(v, VIEW(SECOND), 2);
    }
}

/* Against vault.head no older state opens, and where there was a vault none is made anew; a file of one byte is an empty one to SQLite. */
static void check_opened(struct vault *v) {
    bool headless = files[HEAD].removed, made = files[DB].removed || buf_len(&files[DB].text) <= 1;
    check_state(v);
    REQUIRE(vault_counter(v) == newest || !edited_is_good(&files[HEAD]));
    REQUIRE(vault_inventory(v)->n_secrets > 0 || (headless && made));
}

static void check_restore(struct vault *v) {
    uint64_t before = v ? vault_counter(v) : 0;
    bool open = v != NULL;
    if (vault_restore(&v, folder_path, kek, buf_view(&files[COPY].text), why) == 0)
        check_state(v);
    else if (open)
        REQUIRE(v && vault_counter(v) == before);
    if (v && open)
        check_state(v);
    vault_close(v);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    struct vault *v = NULL;
    if (folder < 0)
        start();
    if (size > INPUT_MAX)
        return 0;
    edited_write(files, FILES, view_of(data, size));
    if (vault_open(folder_path, kek, &v, why) == 0)
        check_opened(v);
    else
        REQUIRE(!v && why[0]);
    check_restore(v);
    REQUIRE(secret_in_use() == 0);
    return 0;
}
