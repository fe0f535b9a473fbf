#include "broker/state.h"

#include "base/secret.h"

#include <string.h>

enum {
    CHECK_AT = 12, /* behind u32 schema and u64 counter */
    DIGEST_AT = CHECK_AT + DIGEST_SIZE,
    STATE_SIZE = DIGEST_AT + DIGEST_SIZE,
    ROWS_MAX = 100000,
};

/* What a walk over all rows gathers. */
struct scan {
    struct inventory inventory;
    struct buf hashes; /* of every row but STATE, in order */
    struct buf last;   /* kind and name of the row before */
    uint64_t n_rows;
    uint8_t state[STATE_SIZE];
    bool has_state;
};

static void scan_init(struct scan *s) {
    memset(s, 0, sizeof *s);
    buf_init(&s->hashes, (size_t)ROWS_MAX * DIGEST_SIZE);
    buf_init(&s->last, STORE_BODY_MAX);
}

static void scan_free(struct scan *s) {
    inventory_free(&s->inventory);
    buf_free(&s->hashes);
    buf_free(&s->last);
}

static int scan_state(struct scan *s, const struct row *r) {
    if (s->has_state || r->name.n != 0 || r->body.n != STATE_SIZE)
        return ERR_CRYPTO;
    memcpy(s->state, r->body.p, STATE_SIZE);
    s->has_state = true;
    return 0;
}

/* Strictly ascending: a broken index cannot show a row twice. */
static int scan_order(struct scan *s, const struct row *r) {
    struct buf key;
    buf_init(&key, STORE_BODY_MAX);
    buf_put_u8(&key, r->kind);
    buf_put(&key, r->name);
    int result = !buf_ok(&key)                                          ? ERR_CRYPTO
                 : view_compare(buf_view(&s->last), buf_view(&key)) < 0 ? 0
                                                                        : ERR_CRYPTO;
    buf_free(&s->last);
    s->last = key;
    return result;
}

static int scan_hash(struct scan *s, const struct row *r) {
    struct buf bytes;
    uint8_t hash[DIGEST_SIZE];
    buf_init(&bytes, 2 * STORE_BODY_MAX);
    buf_put_u8(&bytes, r->kind);
    buf_put_block(&bytes, r->name);
    buf_put_block(&bytes, r->body);
    bool ok = buf_ok(&bytes);
    if (ok) {
        digest_sha256(buf_view(&bytes), hash);
        buf_put(&s->hashes, view_of(hash, sizeof hash));
        s->n_rows++;
    }
    buf_free(&bytes);
    return ok && buf_ok(&s->hashes) ? 0 : ERR_MEMORY;
}

static int scan_row(void *ctx, const struct row *r) {
    struct scan *s = ctx;
    int result = scan_order(s, r);
    if (result != 0)
        return result;
    if (r->kind == ROW_STATE)
        return scan_state(s, r);
    result = scan_hash(s, r);
    return result == 0 ? inventory_add(&s->inventory, r) : result;
}

/* The STATE row that belongs to what was scanned. */
static int state_make(const struct scan *s, const struct seal_keys *keys, uint64_t counter,
                      uint8_t out[STATE_SIZE]) {
    struct view key = view_of(keys->digest, sizeof keys->digest);
    struct buf b;
    buf_init(&b, buf_len(&s->hashes) + 256);
    buf_put_u32(&b, SEAL_SCHEMA);
    buf_put_u64(&b, counter);
    if (buf_ok(&b))
        memcpy(out, buf_view(&b).p, CHECK_AT);
    buf_put_u64(&b, s->n_rows);
    buf_put(&b, buf_view(&s->hashes));
    bool ok = buf_ok(&b);
    if (ok) {
        digest_hmac(key, VIEW("exeat vault: key check"), out + CHECK_AT);
        digest_hmac(key, buf_view(&b), out + DIGEST_AT);
    }
    buf_free(&b);
    return ok ? 0 : ERR_MEMORY;
}

static int state_compare(const struct scan *s, const struct seal_keys *keys, uint64_t *counter) {
    uint8_t right[STATE_SIZE];
    struct reader r = reader_of(view_of(s->state, STATE_SIZE));
    uint32_t schema = read_u32(&r);
    uint64_t claimed = read_u64(&r);
    int result = state_make(s, keys, claimed, right);
    if (result != 0)
        return result;
    if (!secret_equal(s->state + CHECK_AT, right + CHECK_AT, DIGEST_SIZE))
        return ERR_DENIED;
    if (schema != SEAL_SCHEMA)
        return ERR_BAD;
    if (!secret_equal(s->state, right, STATE_SIZE))
        return ERR_CRYPTO;
    *counter = claimed;
    return 0;
}

int state_check(struct store *store, const struct seal_keys *keys, struct inventory *out,
                uint64_t *counter) {
    struct scan s;
    scan_init(&s);
    int result = store_walk(store, scan_row, &s);
    if (result == 0 && !s.has_state)
        result = s.n_rows == 0 ? ERR_MISSING : ERR_CRYPTO;
    if (result == 0)
        result = state_compare(&s, keys, counter);
    if (result == 0) {
        *out = s.inventory;
        memset(&s.inventory, 0, sizeof s.inventory);
    }
    scan_free(&s);
    return result;
}

int state_seal(struct store *store, const struct seal_keys *keys, uint64_t counter,
               struct inventory *out) {
    struct scan s;
    uint8_t state[STATE_SIZE];
    scan_init(&s);
    int result = store_walk(store, scan_row, &s);
    if (result == 0)
        result = state_make(&s, keys, counter, state);
    if (result == 0)
        result = store_put(store, &(struct row){ROW_STATE, VIEW(""), view_of(state, sizeof state)});
    if (result == 0) {
        *out = s.inventory;
        memset(&s.inventory, 0, sizeof s.inventory);
    }
    scan_free(&s);
    return result;
}
