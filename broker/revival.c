#include "broker/revival.h"

enum { NOTES_MAX = 16 << 20, MARK_SIZE = 12 };

/* Another secret of the same name has another id. */
static void put_secret(const struct vault_secret *s, struct buf *out) {
    buf_put_block(out, view_str(s->name));
    buf_put_u64(out, s->id);
    buf_put_u32(out, s->version);
}

static void put_sandbox(const struct vault_sandbox *s, struct buf *out) {
    buf_put_block(out, view_str(s->name));
    buf_put(out, view_of(s->token, DIGEST_SIZE));
}

static bool is_noted(struct view notes, size_t mark_size, struct view wanted) {
    struct reader r = reader_of(notes);
    while (r.rest.n > 0 && !r.bad) {
        struct view before = r.rest;
        read_block(&r, NAME_SIZE);
        read_bytes(&r, mark_size);
        if (view_equal(view_head(before, before.n - r.rest.n), wanted))
            return true;
    }
    return false;
}

int revival_note(struct revival *r, const struct inventory *before) {
    buf_init(&r->sandboxes, NOTES_MAX);
    buf_init(&r->secrets, NOTES_MAX);
    for (size_t i = 0; before && i < before->n_sandboxes; i++)
        put_sandbox(&before->sandboxes[i], &r->sandboxes);
    for (size_t i = 0; before && i < before->n_secrets; i++)
        put_secret(&before->secrets[i], &r->secrets);
    return buf_ok(&r->sandboxes) && buf_ok(&r->secrets) ? 0 : ERR_MEMORY;
}

bool revival_of_sandbox(const struct revival *r, const struct vault_sandbox *s) {
    struct buf wanted;
    buf_init(&wanted, 2 * NAME_SIZE + DIGEST_SIZE);
    put_sandbox(s, &wanted);
    bool same = is_noted(buf_view(&r->sandboxes), DIGEST_SIZE, buf_view(&wanted));
    buf_free(&wanted);
    return !same;
}

bool revival_of_secret(const struct revival *r, const struct vault_secret *s) {
    struct buf wanted;
    buf_init(&wanted, 2 * NAME_SIZE + MARK_SIZE);
    put_secret(s, &wanted);
    bool same = is_noted(buf_view(&r->secrets), MARK_SIZE, buf_view(&wanted));
    buf_free(&wanted);
    return !same;
}

void revival_free(struct revival *r) {
    buf_free(&r->sandboxes);
    buf_free(&r->secrets);
}
