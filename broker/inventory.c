#include "broker/inventory.h"

#include "broker/broker_messages.h"
#include "broker/seal.h"

#include <stdlib.h>
#include <string.h>

bool vault_name_is_good(struct view name) {
    if (name.n == 0 || name.n >= NAME_SIZE)
        return false;
    for (size_t i = 0; i < name.n; i++) {
        uint8_t c = name.p[i];
        if (!is_alnum(c) && (i == 0 || (c != '.' && c != '_' && c != '-')))
            return false;
    }
    return true;
}

static int copy_name(struct view name, char out[NAME_SIZE]) {
    return vault_name_is_good(name) ? view_cstr(name, out, NAME_SIZE) : ERR_CRYPTO;
}

void inventory_free(struct inventory *v) {
    for (size_t i = 0; i < v->n_sandboxes; i++)
        free(v->sandboxes[i].placeholders);
    free(v->sandboxes);
    free(v->secrets);
    memset(v, 0, sizeof *v);
}

/* ---- secrets ---- */

bool vault_secret_is_certificate(const struct vault_secret *s) {
    return s->certificate.not_after != 0;
}

static void read_digest(struct reader *r, uint8_t out[DIGEST_SIZE]) {
    struct view v = read_bytes(r, DIGEST_SIZE);
    if (!r->bad)
        memcpy(out, v.p, DIGEST_SIZE);
}

static int read_certificate(struct reader *r, struct sealed_secret *out) {
    struct vault_certificate *c = &out->secret.certificate;
    struct view subject = read_block(r, SUBJECT_SIZE - 1);
    c->not_after = read_u64(r);
    read_digest(r, c->fingerprint);
    out->chain = read_block(r, CERTIFICATE_CHAIN_MAX);
    return view_cstr(subject, c->subject, SUBJECT_SIZE) == 0 && c->not_after != 0 ? 0 : ERR_CRYPTO;
}

int inventory_read_secret(struct view body, struct sealed_secret *out) {
    struct reader r = reader_of(body);
    memset(out, 0, sizeof *out);
    out->secret.id = read_u64(&r);
    out->secret.version = read_u32(&r);
    out->secret.created = read_u64(&r);
    out->secret.rotated = read_u64(&r);
    struct view like = read_block(&r, LIKE_SIZE - 1);
    out->wrapped = read_block(&r, SEAL_WRAPPED_SIZE);
    out->box = read_block(&r, SECRET_MAX + SEAL_OVERHEAD);
    if (r.rest.n > 0 && read_certificate(&r, out) != 0)
        return ERR_CRYPTO;
    if (!read_done(&r) || view_cstr(like, out->secret.like, LIKE_SIZE) != 0)
        return ERR_CRYPTO;
    return 0;
}

void inventory_write_secret(const struct sealed_secret *s, struct buf *out) {
    buf_put_u64(out, s->secret.id);
    buf_put_u32(out, s->secret.version);
    buf_put_u64(out, s->secret.created);
    buf_put_u64(out, s->secret.rotated);
    buf_put_block(out, view_str(s->secret.like));
    buf_put_block(out, s->wrapped);
    buf_put_block(out, s->box);
    if (!vault_secret_is_certificate(&s->secret))
        return;
    buf_put_block(out, view_str(s->secret.certificate.subject));
    buf_put_u64(out, s->secret.certificate.not_after);
    buf_put(out, view_of(s->secret.certificate.fingerprint, DIGEST_SIZE));
    buf_put_block(out, s->chain);
}

static int add_secret(struct inventory *v, const struct row *r) {
    struct sealed_secret sealed;
    int result = inventory_read_secret(r->body, &sealed);
    if (result == 0)
        result = copy_name(r->name, sealed.secret.name);
    if (result != 0)
        return ERR_CRYPTO;
    struct vault_secret *more = reallocarray(v->secrets, v->n_secrets + 1, sizeof *more);
    if (!more)
        return ERR_MEMORY;
    v->secrets = more;
    v->secrets[v->n_secrets++] = sealed.secret;
    return 0;
}

const struct vault_secret *inventory_secret(const struct inventory *v, struct view name) {
    for (size_t i = 0; i < v->n_secrets; i++)
        if (view_equal(view_str(v->secrets[i].name), name))
            return &v->secrets[i];
    return NULL;
}

/* ---- sandboxes ---- */

void inventory_write_sandbox(const struct vault_sandbox *s, struct buf *out) {
    buf_put_u64(out, s->created);
    buf_put(out, view_of(s->token, DIGEST_SIZE));
    buf_put_u16(out, (uint16_t)s->n);
    for (size_t i = 0; i < s->n; i++) {
        buf_put_block(out, view_str(s->placeholders[i].credential));
        buf_put_u64(out, s->placeholders[i].secret_id);
        buf_put(out, view_of(s->placeholders[i].fingerprint, DIGEST_SIZE));
    }
}

static int read_placeholders(struct reader *r, struct vault_sandbox *s) {
    for (size_t i = 0; i < s->n; i++) {
        struct vault_placeholder *p = &s->placeholders[i];
        struct view credential = read_block(r, NAME_SIZE - 1);
        p->secret_id = read_u64(r);
        read_digest(r, p->fingerprint);
        if (r->bad || copy_name(credential, p->credential) != 0)
            return ERR_CRYPTO;
    }
    return read_done(r) ? 0 : ERR_CRYPTO;
}

static int read_sandbox(const struct row *row, struct vault_sandbox *s) {
    struct reader r = reader_of(row->body);
    s->created = read_u64(&r);
    read_digest(&r, s->token);
    s->n = read_u16(&r);
    if (r.bad || s->n > PLACEHOLDERS_MAX || copy_name(row->name, s->name) != 0)
        return ERR_CRYPTO;
    s->placeholders = calloc(s->n + 1, sizeof *s->placeholders);
    return s->placeholders ? read_placeholders(&r, s) : ERR_MEMORY;
}

static int add_sandbox(struct inventory *v, const struct row *r) {
    struct vault_sandbox s = {0};
    int result = read_sandbox(r, &s);
    struct vault_sandbox *more =
        result == 0 ? reallocarray(v->sandboxes, v->n_sandboxes + 1, sizeof *more) : NULL;
    if (!more) {
        free(s.placeholders);
        return result == 0 ? ERR_MEMORY : result;
    }
    v->sandboxes = more;
    v->sandboxes[v->n_sandboxes++] = s;
    return 0;
}

const struct vault_sandbox *inventory_sandbox(const struct inventory *v, struct view name) {
    for (size_t i = 0; i < v->n_sandboxes; i++)
        if (view_equal(view_str(v->sandboxes[i].name), name))
            return &v->sandboxes[i];
    return NULL;
}

static bool is_twin(const char *a, struct view b) {
    return view_equal_nocase(view_str(a), b) && !view_equal(view_str(a), b);
}

bool inventory_has_twin(const struct inventory *v, enum row_kind kind, struct view name) {
    for (size_t i = 0; kind == ROW_SECRET && i < v->n_secrets; i++)
        if (is_twin(v->secrets[i].name, name))
            return true;
    for (size_t i = 0; kind == ROW_SANDBOX && i < v->n_sandboxes; i++)
        if (is_twin(v->sandboxes[i].name, name))
            return true;
    return false;
}

int inventory_add(struct inventory *v, const struct row *r) {
    switch (r->kind) {
    case ROW_SECRET:
        return add_secret(v, r);
    case ROW_SANDBOX:
        return add_sandbox(v, r);
    default:
        return ERR_CRYPTO;
    }
}
