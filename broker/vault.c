#include "broker/vault_inside.h"

#include "base/log.h"
#include "base/secret.h"
#include "broker/head.h"
#include "broker/state.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { BODY_MAX = STORE_BODY_MAX };

int vault_explain(char why[VAULT_WHY_SIZE], int code, const char *format, ...) {
    va_list ap;
    va_start(ap, format);
    vsnprintf(why, VAULT_WHY_SIZE, format, ap);
    va_end(ap);
    return code;
}

static bool path_make(char out[PATH_MAX], const char *directory, const char *name) {
    int n = snprintf(out, PATH_MAX, "%s/%s", directory, name);
    return n > 0 && n < PATH_MAX;
}

static int paths_make(struct paths *p, const char *directory) {
    p->directory = directory;
    bool ok = path_make(p->db, directory, "vault.db") &&
              path_make(p->head, directory, "vault.head") &&
              path_make(p->journal, directory, "vault.db-journal") &&
              path_make(p->fresh, directory, "vault.restored") &&
              path_make(p->damaged, directory, "vault.db.damaged") &&
              path_make(p->damaged_journal, directory, "vault.db.damaged-journal");
    return ok ? 0 : ERR_LIMIT;
}

/* ---- changes ---- */

int vault_write_head(const struct vault *v) {
    struct head_line line = {v->keys, v->counter};
    return head_write(v->paths.directory, v->paths.head, &line, 1);
}

int vault_change(struct vault *v, const struct seal_keys *keys,
                 int (*edit)(struct vault *v, void *ctx), void *ctx) {
    struct inventory next = {0};
    int result = store_begin(v->store);
    if (result != 0)
        return result;
    result = edit ? edit(v, ctx) : 0;
    if (result == 0)
        result = state_seal(v->store, keys, v->counter + 1, &next);
    if (result != 0) {
        store_rollback(v->store);
        return result;
    }
    result = store_commit(v->store);
    if (result != 0) {
        inventory_free(&next);
        return result;
    }
    inventory_free(&v->inventory);
    v->inventory = next;
    v->counter++;
    return 0;
}

static int change(struct vault *v, int (*edit)(struct vault *v, void *ctx), void *ctx) {
    int result = vault_change(v, v->keys, edit, ctx);
    /* The change is made; a head that lags by it only protects less until the next one. */
    if (result == 0 && vault_write_head(v) != 0)
        log_warn("vault: vault.head could not be written; the change itself was kept");
    return result;
}

/* ---- opening ---- */

static int explain_check(const struct vault *v, int code, char why[VAULT_WHY_SIZE]) {
    /* SQLite keeps to itself what the system said. */
    if (code == ERR_SYSTEM && access(v->paths.db, R_OK | W_OK) != 0)
        return vault_explain(why, code, "%s: %s: broker's user must be able to read and write it",
                             v->paths.db, strerror(errno));
    switch (code) {
    case ERR_DENIED:
        return vault_explain(
            why, code,
            "the vault was sealed under another key: put the right vault.key back (after "
            "an interrupted rekey it is vault.key.new)");
    case ERR_BAD:
        return vault_explain(why, code, "vault.db has another schema than this version of exeat");
    case ERR_CRYPTO:
        return vault_explain(
            why, code,
            "vault.db is damaged or was changed by somebody else: restore a copy with "
            "`exeat vault restore FILE`");
    case ERR_EXISTS:
        return vault_explain(why, code, "vault.db is in use by another process");
    default:
        return vault_explain(why, code, "vault.db cannot be read: %s", err_text(code));
    }
}

int vault_check_values(struct vault *v) {
    int result = 0;
    for (size_t i = 0; result == 0 && i < v->inventory.n_secrets; i++) {
        struct buf value;
        uint32_t version;
        buf_init_secret(&value, SECRET_MAX);
        result = vault_reveal(v, view_str(v->inventory.secrets[i].name), &value, &version);
        buf_free(&value);
    }
    return result;
}

static int compare_head(struct vault *v, int head, uint64_t seen, char why[VAULT_WHY_SIZE]) {
    if (head == ERR_MISSING && v->counter > 1)
        return vault_explain(
            why, ERR_CRYPTO,
            "vault.head is missing: whether vault.db is the newest cannot be told; "
            "restore a copy with `exeat vault restore FILE`");
    if (head == 0 && seen > v->counter)
        return vault_explain(
            why, ERR_CRYPTO,
            "vault.db is older than it was (state %llu, vault.head says %llu): restore "
            "the newest copy with `exeat vault restore FILE`",
            (unsigned long long)v->counter, (unsigned long long)seen);
    if ((head == ERR_MISSING || seen < v->counter) && vault_write_head(v) != 0)
        return vault_explain(why, ERR_SYSTEM, "vault.head cannot be written: %s", strerror(errno));
    return 0;
}

static int open_content(struct vault *v, char why[VAULT_WHY_SIZE]) {
    uint64_t seen = 0;
    bool fresh = false;
    int head = head_read(v->paths.head, v->keys, &seen);
    if (head == 0 && access(v->paths.db, F_OK) != 0)
        return vault_explain(
            why, ERR_CRYPTO,
            "vault.db is missing, but vault.head says that there was one (state %llu): "
            "restore a copy with `exeat vault restore FILE`",
            (unsigned long long)seen);
    int result = store_open(v->paths.db, head == ERR_MISSING, &v->store, &fresh);
    if (result == 0)
        result = state_check(v->store, v->keys, &v->inventory, &v->counter);
    if (result == ERR_MISSING && head == ERR_MISSING)
        result = vault_change(v, v->keys, NULL, NULL);
    if (result != 0)
        return explain_check(v, result == ERR_MISSING ? ERR_CRYPTO : result, why);
    if (head != 0 && head != ERR_MISSING)
        return vault_explain(
            why, ERR_CRYPTO,
            "vault.head is damaged or was written under another key: restore a copy "
            "with `exeat vault restore FILE`");
    result = vault_check_values(v);
    return result != 0 ? explain_check(v, result, why) : compare_head(v, head, seen, why);
}

struct vault *vault_new(const char *directory, const uint8_t kek[SEAL_KEY_SIZE]) {
    struct vault *v = calloc(1, sizeof *v);
    if (!v)
        return NULL;
    v->keys = seal_keys_new(kek);
    v->directory = strdup(directory);
    if (!v->keys || !v->directory || paths_make(&v->paths, v->directory) != 0) {
        vault_close(v);
        return NULL;
    }
    return v;
}

int vault_open(const char *directory, const uint8_t kek[SEAL_KEY_SIZE], struct vault **out,
               char why[VAULT_WHY_SIZE]) {
    *out = NULL;
    struct vault *v = vault_new(directory, kek);
    if (!v)
        return vault_explain(why, ERR_MEMORY, "no memory for the vault");
    int result = open_content(v, why);
    if (result != 0)
        vault_close(v);
    else
        *out = v;
    return result;
}

void vault_close(struct vault *v) {
    if (!v)
        return;
    store_close(v->store);
    inventory_free(&v->inventory);
    seal_keys_free(v->keys);
    free(v->directory);
    free(v);
}

const struct inventory *vault_inventory(const struct vault *v) {
    return &v->inventory;
}

uint64_t vault_counter(const struct vault *v) {
    return v->counter;
}

/* ---- secrets ---- */

const char *vault_refuses_value(struct view value, bool allow_short) {
    if (value.n == 0)
        return "it is empty";
    if (value.n > SECRET_MAX)
        return "it is longer than 8192 bytes";
    for (size_t i = 0; i < value.n; i++)
        if (value.p[i] < 0x21 || value.p[i] > 0x7e)
            return "it holds a byte that is not visible ASCII (a blank, a line end, a control "
                   "character or a byte above 0x7e)";
    if (value.n < SECRET_LEAST && !allow_short)
        return "it is shorter than 16 bytes, so that answers cannot be guarded well "
               "(--allow-short keeps it all the same)";
    return NULL;
}

struct new_value {
    struct vault_secret secret;
    struct view value, chain;
};

static int edit_value(struct vault *v, void *ctx) {
    const struct new_value *n = ctx;
    struct view name = view_str(n->secret.name);
    struct seal_label label = {n->secret.id, n->secret.version, name};
    struct buf wrapped, box, body;
    buf_init(&wrapped, SEAL_WRAPPED_SIZE);
    buf_init(&box, SECRET_MAX + SEAL_OVERHEAD);
    buf_init(&body, BODY_MAX);
    int result = seal_envelope(v->keys, &label, n->value, &wrapped, &box);
    if (result == 0) {
        struct sealed_secret sealed = {n->secret, buf_view(&wrapped), buf_view(&box), n->chain};
        inventory_write_secret(&sealed, &body);
        result = buf_ok(&body)
                     ? store_put(v->store, &(struct row){ROW_SECRET, name, buf_view(&body)})
                     : ERR_MEMORY;
    }
    buf_free(&wrapped);
    buf_free(&box);
    buf_free(&body);
    return result;
}

static int add(struct vault *v, struct view name, struct view like, struct new_value n) {
    n.secret.id = v->counter + 1;
    n.secret.version = 1;
    if (vault_refuses_value(n.value, true) || !vault_name_is_good(name) ||
        view_cstr(name, n.secret.name, NAME_SIZE) != 0 ||
        view_cstr(like, n.secret.like, LIKE_SIZE) != 0)
        return ERR_BAD;
    if (inventory_secret(&v->inventory, name) ||
        inventory_has_twin(&v->inventory, ROW_SECRET, name))
        return ERR_EXISTS;
    return change(v, edit_value, &n);
}

static int rotate(struct vault *v, struct view name, const struct vault_certificate *c,
                  struct view chain, struct view value, uint64_t now) {
    const struct vault_secret *old = inventory_secret(&v->inventory, name);
    if (!old)
        return ERR_MISSING;
    if (vault_refuses_value(value, true) || old->version == UINT32_MAX ||
        vault_secret_is_certificate(old) != (c != NULL))
        return ERR_BAD;
    struct new_value n = {*old, value, chain};
    n.secret.version++;
    n.secret.rotated = now;
    if (c)
        n.secret.certificate = *c;
    return change(v, edit_value, &n);
}

int vault_add(struct vault *v, struct view name, struct view like, struct view value,
              uint64_t now) {
    return add(v, name, like,
               (struct new_value){.secret = {.created = now, .rotated = now}, .value = value});
}

int vault_add_certificate(struct vault *v, struct view name, const struct vault_certificate *c,
                          struct view chain, struct view value, uint64_t now) {
    struct new_value n = {{.created = now, .rotated = now, .certificate = *c}, value, chain};
    return add(v, name, VIEW(""), n);
}

int vault_rotate(struct vault *v, struct view name, struct view value, uint64_t now) {
    return rotate(v, name, NULL, (struct view){NULL, 0}, value, now);
}

int vault_rotate_certificate(struct vault *v, struct view name, const struct vault_certificate *c,
                             struct view chain, struct view value, uint64_t now) {
    return rotate(v, name, c, chain, value, now);
}

static int put_sandbox(struct vault *v, const struct vault_sandbox *s) {
    struct buf body;
    buf_init(&body, BODY_MAX);
    inventory_write_sandbox(s, &body);
    int result =
        buf_ok(&body)
            ? store_put(v->store, &(struct row){ROW_SANDBOX, view_str(s->name), buf_view(&body)})
            : ERR_MEMORY;
    buf_free(&body);
    return result;
}

/* *s without the placeholders of a secret; true when it had some. s->placeholders is a copy. */
static bool drop_placeholders(struct vault_sandbox *s, uint64_t secret_id) {
    size_t kept = 0;
    for (size_t i = 0; i < s->n; i++)
        if (s->placeholders[i].secret_id != secret_id)
            s->placeholders[kept++] = s->placeholders[i];
    bool changed = kept != s->n;
    s->n = kept;
    return changed;
}

static int edit_sandbox_without(struct vault *v, const struct vault_sandbox *old,
                                uint64_t secret_id) {
    struct vault_sandbox s = *old;
    s.placeholders = calloc(s.n + 1, sizeof *s.placeholders);
    if (!s.placeholders)
        return ERR_MEMORY;
    memcpy(s.placeholders, old->placeholders, s.n * sizeof *s.placeholders);
    int result = drop_placeholders(&s, secret_id) ? put_sandbox(v, &s) : 0;
    free(s.placeholders);
    return result;
}

static int edit_remove(struct vault *v, void *ctx) {
    const struct vault_secret *secret = ctx;
    int result = store_drop(v->store, ROW_SECRET, view_str(secret->name));
    for (size_t i = 0; result == 0 && i < v->inventory.n_sandboxes; i++)
        result = edit_sandbox_without(v, &v->inventory.sandboxes[i], secret->id);
    return result;
}

int vault_remove(struct vault *v, struct view name) {
    const struct vault_secret *old = inventory_secret(&v->inventory, name);
    if (!old)
        return ERR_MISSING;
    struct vault_secret copy = *old;
    return change(v, edit_remove, &copy);
}

/* The row of a secret, whose views point into body; checked against the inventory. */
static int get_sealed(struct vault *v, const struct vault_secret *secret, struct buf *body,
                      struct sealed_secret *out) {
    int result = store_get(v->store, ROW_SECRET, view_str(secret->name), body);
    if (result == 0)
        result = inventory_read_secret(buf_view(body), out);
    if (result == 0 && (out->secret.id != secret->id || out->secret.version != secret->version))
        result = ERR_CRYPTO;
    return result == ERR_MISSING ? ERR_CRYPTO : result;
}

int vault_reveal(struct vault *v, struct view name, struct buf *value, uint32_t *version) {
    const struct vault_secret *secret = inventory_secret(&v->inventory, name);
    struct sealed_secret sealed;
    struct buf body;
    if (!secret)
        return ERR_MISSING;
    buf_init(&body, BODY_MAX);
    int result = get_sealed(v, secret, &body, &sealed);
    if (result == 0) {
        struct seal_label label = {secret->id, secret->version, name};
        result = seal_reveal(v->keys, &label, sealed.wrapped, sealed.box, value);
    }
    /* Checked again on use: no path into a header may depend on the check at writing alone. */
    if (result == 0 && vault_refuses_value(buf_view(value), true)) {
        buf_reset(value);
        result = ERR_CRYPTO;
    }
    *version = secret->version;
    buf_free(&body);
    return result;
}

int vault_chain(struct vault *v, struct view name, struct buf *chain) {
    const struct vault_secret *secret = inventory_secret(&v->inventory, name);
    struct sealed_secret sealed;
    struct buf body;
    if (!secret)
        return ERR_MISSING;
    buf_init(&body, BODY_MAX);
    int result = get_sealed(v, secret, &body, &sealed);
    if (result == 0)
        buf_put(chain, sealed.chain);
    buf_free(&body);
    return result == 0 && !buf_ok(chain) ? ERR_MEMORY : result;
}

/* ---- sandboxes ---- */

static int edit_put_sandbox(struct vault *v, void *ctx) {
    return put_sandbox(v, ctx);
}

int vault_put_sandbox(struct vault *v, const struct vault_sandbox *s) {
    struct vault_sandbox copy = *s;
    if (!vault_name_is_good(view_str(s->name)) || s->n > PLACEHOLDERS_MAX)
        return ERR_BAD;
    if (inventory_has_twin(&v->inventory, ROW_SANDBOX, view_str(s->name)))
        return ERR_EXISTS;
    return change(v, edit_put_sandbox, &copy);
}

static int edit_drop_sandbox(struct vault *v, void *ctx) {
    const char *name = ctx;
    return store_drop(v->store, ROW_SANDBOX, view_str(name));
}

int vault_drop_sandbox(struct vault *v, struct view name) {
    char copy[NAME_SIZE];
    if (!inventory_sandbox(&v->inventory, name) || view_cstr(name, copy, sizeof copy) != 0)
        return ERR_MISSING;
    return change(v, edit_drop_sandbox, copy);
}

/* ---- the whole ---- */

int vault_backup(struct vault *v, struct buf *out) {
    return store_image(v->store, out);
}

static int edit_rewrap(struct vault *v, void *ctx) {
    const struct seal_keys *keys = ctx;
    int result = 0;
    for (size_t i = 0; result == 0 && i < v->inventory.n_secrets; i++) {
        const struct vault_secret *secret = &v->inventory.secrets[i];
        struct seal_label label = {secret->id, secret->version, view_str(secret->name)};
        struct sealed_secret sealed;
        struct buf old, wrapped, body;
        buf_init(&old, BODY_MAX);
        buf_init(&wrapped, SEAL_WRAPPED_SIZE);
        buf_init(&body, BODY_MAX);
        result = get_sealed(v, secret, &old, &sealed);
        if (result == 0)
            result = seal_rewrap(v->keys, keys, &label, sealed.wrapped, &wrapped);
        if (result == 0) {
            sealed.wrapped = buf_view(&wrapped);
            inventory_write_secret(&sealed, &body);
            result = store_put(v->store, &(struct row){ROW_SECRET, label.name, buf_view(&body)});
        }
        buf_free(&old);
        buf_free(&wrapped);
        buf_free(&body);
    }
    return result;
}

int vault_rekey(struct vault *v, const uint8_t kek[SEAL_KEY_SIZE]) {
    struct seal_keys *keys = seal_keys_new(kek);
    if (!keys)
        return ERR_MEMORY;
    /* Whichever key the next start comes with, the head it finds is one it can read. */
    struct head_line both[] = {{v->keys, v->counter}, {keys, v->counter + 1}};
    int result = head_write(v->paths.directory, v->paths.head, both, 2);
    if (result == 0)
        result = vault_change(v, keys, edit_rewrap, keys);
    if (result != 0) {
        seal_keys_free(keys);
        return result;
    }
    seal_keys_free(v->keys);
    v->keys = keys;
    if (vault_write_head(v) != 0)
        log_warn("vault: vault.head could not be written; it still names the old key too");
    return 0;
}
