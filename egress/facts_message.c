#include "egress/facts_message.h"

#include "policy/body_credential.h"
#include "policy/graphql.h"
#include "policy/json_read.h"

#include <stdlib.h>

enum { PROTOCOL_GRAPHQL = 1, PROTOCOL_RPC = 2 };

/* ---- the question ---- */

void facts_ask_write(enum body_source source, const struct body_wants *wants, struct buf *out) {
    buf_put_u8(out, (uint8_t)source);
    buf_put_u8(
        out, (uint8_t)((wants->graphql ? PROTOCOL_GRAPHQL : 0) | (wants->rpc ? PROTOCOL_RPC : 0)));
    buf_put_u64(out, wants->limit);
    buf_put_u16(out, (uint16_t)wants->n_pointers);
    for (size_t i = 0; i < wants->n_pointers; i++)
        buf_put_block(out, wants->pointers[i]);
}

int facts_ask_read(struct view message, struct facts_ask *out) {
    struct reader r = reader_of(message);
    uint8_t source = read_u8(&r), protocols = read_u8(&r);
    uint64_t limit = read_u64(&r);
    uint16_t n = read_u16(&r);
    if (source > BODY_SOURCE_QUERY || protocols > (PROTOCOL_GRAPHQL | PROTOCOL_RPC) ||
        n > JSON_PATHS_MAX)
        return ERR_BAD;
    for (size_t i = 0; i < n; i++)
        out->pointers[i] = read_block(&r, JSON_PATH_TEXT);
    out->source = (enum body_source)source;
    out->wants = (struct body_wants){.pointers = out->pointers,
                                     .n_pointers = n,
                                     .graphql = protocols & PROTOCOL_GRAPHQL,
                                     .rpc = protocols & PROTOCOL_RPC,
                                     .limit = limit};
    return read_done(&r) ? 0 : ERR_BAD;
}

/* ---- the answer, written ---- */

static void write_head(bool unclear, enum body_fault fault, uint64_t size, struct buf *out) {
    buf_put_u8(out, unclear);
    buf_put_u8(out, (uint8_t)fault);
    buf_put_u64(out, size);
}

static void write_values(const struct body_facts *f, struct buf *out) {
    buf_put_u16(out, (uint16_t)f->n_values);
    for (size_t i = 0; i < f->n_values; i++) {
        const struct body_value *v = &f->values[i];
        buf_put_u16(out, v->pointer);
        buf_put_u8(out, (uint8_t)v->type);
        buf_put_u8(out, v->alike);
        buf_put_u64(out, v->from);
        buf_put_u64(out, v->to);
        buf_put_block(out, v->value);
    }
}

static void write_protocols(const struct body_facts *f, struct buf *out) {
    const struct graphql_facts *g = &f->graphql;
    buf_put_u8(out, g->known);
    buf_put_u8(out, g->known ? (uint8_t)g->kind : 0);
    buf_put_u16(out, g->known ? (uint16_t)g->n_fields : 0);
    for (size_t i = 0; g->known && i < g->n_fields; i++)
        buf_put_block(out, g->fields[i]);
    const struct rpc_facts *r = &f->rpc;
    buf_put_u8(out, r->known);
    buf_put_u8(out, r->known && r->batch);
    buf_put_u16(out, r->known ? (uint16_t)r->n_calls : 0);
    for (size_t i = 0; r->known && i < r->n_calls; i++) {
        buf_put_block(out, r->calls[i].method);
        buf_put_block(out, r->calls[i].tool);
    }
}

void facts_write(const struct body_facts *facts, enum body_fault fault, struct buf *out) {
    static const struct body_facts nothing;
    struct buf b;
    buf_init(&b, FACTS_MAX);
    write_head(facts->unclear, fault, facts->size, &b);
    write_values(facts->unclear ? &nothing : facts, &b);
    write_protocols(facts->unclear ? &nothing : facts, &b);
    if (!buf_ok(&b)) {
        buf_reset(&b);
        write_head(true, BODY_TOO_MANY, facts->size, &b);
        write_values(&nothing, &b);
        write_protocols(&nothing, &b);
    }
    buf_put(out, buf_view(&b));
    buf_free(&b);
}

/* ---- and read ---- */

struct facts {
    struct body_facts content;
    uint8_t *bytes; /* the message: views point into it */
    struct body_value *values;
    struct view *fields;
    struct rpc_call *calls;
};

void facts_free(struct facts *f) {
    if (!f)
        return;
    free(f->bytes);
    free(f->values);
    free(f->fields);
    free(f->calls);
    free(f);
}

struct body_facts *facts_content(struct facts *f) {
    return &f->content;
}

void facts_compare(struct facts *f, struct view body) {
    body_values_compare(f->values, f->content.n_values, body);
}

struct facts *facts_unread(enum body_fault fault, uint64_t size) {
    struct facts *f = calloc(1, sizeof *f);
    if (f)
        f->content = (struct body_facts){.size = size,
                                         .unclear = fault != BODY_FAULTLESS,
                                         .read = fault != BODY_UNREAD,
                                         .why = body_fault_text(fault)};
    return f;
}

static bool read_bool(struct reader *r) {
    uint8_t x = read_u8(r);
    r->bad = r->bad || x > 1;
    return x == 1;
}

static uint16_t read_count(struct reader *r, size_t max) {
    uint16_t n = read_u16(r);
    r->bad = r->bad || n > max;
    return r->bad ? 0 : n;
}

static void *list(struct reader *r, size_t n, size_t size, int *err) {
    void *p = r->bad ? NULL : calloc(n + 1, size);
    if (!p && *err == 0)
        *err = r->bad ? ERR_BAD : ERR_MEMORY;
    return p;
}

static bool has_place(const struct body_value *v, uint64_t size) {
    if (v->type != BODY_STRING && v->type != BODY_TEXT)
        return v->from == 0 && v->to == 0;
    return v->from <= v->to && v->to <= size;
}

static bool has_form(const struct body_value *v) {
    switch (v->type) {
    case BODY_STRING:
    case BODY_TEXT:
        return true;
    case BODY_NUMBER:
        return v->value.n > 0 && (is_digit(v->value.p[0]) || v->value.p[0] == '-');
    case BODY_BOOLEAN:
        return view_equal(v->value, VIEW("true")) || view_equal(v->value, VIEW("false"));
    default:
        return v->value.n == 0;
    }
}

static int read_values(struct reader *r, size_t n_pointers, struct facts *f) {
    int err = 0;
    size_t n = read_count(r, BODY_VALUES_MAX);
    f->values = list(r, n, sizeof *f->values, &err);
    for (size_t i = 0; err == 0 && i < n; i++) {
        struct body_value *v = &f->values[i];
        v->pointer = read_u16(r);
        uint8_t type = read_u8(r);
        v->alike = read_bool(r);
        v->from = read_u64(r);
        v->to = read_u64(r);
        v->value = read_block(r, FACTS_MAX);
        v->type = (enum body_type)type;
        if (r->bad || v->pointer >= n_pointers || type > BODY_OBJECT || !has_form(v) ||
            !has_place(v, f->content.size))
            return ERR_BAD;
    }
    f->content.values = f->values;
    f->content.n_values = n;
    return err;
}

static int read_graphql(struct reader *r, struct facts *f) {
    int err = 0;
    bool known = read_bool(r);
    uint8_t kind = read_u8(r);
    size_t n = read_count(r, GRAPHQL_ROOTS_MAX);
    f->fields = list(r, n, sizeof *f->fields, &err);
    for (size_t i = 0; err == 0 && i < n; i++) {
        f->fields[i] = read_block(r, FACTS_MAX);
        if (f->fields[i].n == 0)
            return ERR_BAD;
    }
    f->content.graphql = (struct graphql_facts){known, (enum graphql_kind)kind, f->fields, n};
    return kind > GRAPHQL_SUBSCRIPTION || known != (n > 0) ? ERR_BAD : err;
}

static int read_rpc(struct reader *r, struct facts *f) {
    int err = 0;
    bool known = read_bool(r), batch = read_bool(r);
    size_t n = read_count(r, BODY_VALUES_MAX);
    f->calls = list(r, n, sizeof *f->calls, &err);
    for (size_t i = 0; err == 0 && i < n; i++) {
        f->calls[i].method = read_block(r, FACTS_MAX);
        f->calls[i].tool = read_block(r, FACTS_MAX);
    }
    f->content.rpc = (struct rpc_facts){known, batch, f->calls, n};
    return known != (n > 0) || (!batch && n > 1) ? ERR_BAD : err;
}

/* Nothing is told of what is unclear, and nothing is unclear without a reason. */
static bool fits_together(const struct body_facts *c, uint8_t fault) {
    if (c->unclear)
        return fault != BODY_FAULTLESS && c->n_values == 0 && !c->graphql.known && !c->rpc.known;
    return fault == BODY_FAULTLESS || fault == BODY_NOT_GRAPHQL || fault == BODY_NOT_RPC;
}

static int read_all(struct view message, size_t n_pointers, struct facts *f) {
    struct reader r = reader_of(message);
    f->content.unclear = read_bool(&r);
    uint8_t fault = read_u8(&r);
    f->content.size = read_u64(&r);
    if (r.bad || fault >= BODY_FAULT_COUNT)
        return ERR_BAD;
    f->content.why = body_fault_text((enum body_fault)fault);
    f->content.read = fault != BODY_UNREAD;
    int err = read_values(&r, n_pointers, f);
    if (err == 0)
        err = read_graphql(&r, f);
    if (err == 0)
        err = read_rpc(&r, f);
    if (err == 0 && (!read_done(&r) || !fits_together(&f->content, fault)))
        err = ERR_BAD;
    return err;
}

int facts_read(struct view message, size_t n_pointers, struct facts **out) {
    struct facts *f = calloc(1, sizeof *f);
    if (!f)
        return ERR_MEMORY;
    f->bytes = malloc(message.n + 1);
    int err = f->bytes ? 0 : ERR_MEMORY;
    if (err == 0) {
        view_copy(message, f->bytes);
        err = read_all(view_of(f->bytes, message.n), n_pointers, f);
    }
    if (err == 0)
        *out = f;
    else
        facts_free(f);
    return err;
}
