#include "policy/body_read.h"

#include "policy/form_read.h"
#include "policy/rpc_read.h"

#include <stdlib.h>

struct body_read {
    enum body_source source;
    bool graphql, rpc;
    uint64_t limit;
    enum body_fault fault;
    struct json_finds asked, protocol;
    struct json_read *json;
    struct buf form, text; /* of a form or query: as sent, and decoded */
    struct body_facts facts;
    struct body_value *values;
    struct rpc_call *calls;
    struct graphql *document;
};

/* ---- types ---- */

static bool take_token(struct view *rest, struct view *token) {
    size_t n = 0;
    while (n < rest->n && is_tchar(rest->p[n]))
        n++;
    *token = view_head(*rest, n);
    *rest = view_skip(*rest, n);
    return n > 0;
}

/* Nothing, or ;charset=utf-8 (RFC 9110 8.3.1). */
static bool is_utf8_or_unsaid(struct view rest) {
    rest = view_trim(rest);
    if (rest.n == 0)
        return true;
    if (rest.p[0] != ';')
        return false;
    rest = view_trim(view_skip(rest, 1));
    struct view name = view_cut(&rest, '=');
    return view_equal_nocase(name, VIEW("charset")) &&
           (view_equal_nocase(rest, VIEW("utf-8")) || view_equal_nocase(rest, VIEW("\"utf-8\"")));
}

bool body_source_of(struct view type, enum body_source *out) {
    struct view rest = view_trim(type), main, sub;
    if (!take_token(&rest, &main) || rest.n == 0 || rest.p[0] != '/')
        return false;
    rest = view_skip(rest, 1);
    if (!take_token(&rest, &sub) || !is_utf8_or_unsaid(rest))
        return false;
    bool application = view_equal_nocase(main, VIEW("application"));
    size_t plus = sub.n > 5 ? sub.n - 5 : sub.n;
    if ((application && view_equal_nocase(sub, VIEW("json"))) ||
        view_equal_nocase(view_skip(sub, plus), VIEW("+json")))
        *out = BODY_SOURCE_JSON;
    else if (application && view_equal_nocase(sub, VIEW("x-www-form-urlencoded")))
        *out = BODY_SOURCE_FORM;
    else
        return false;
    return true;
}

/* ---- life ---- */

static int prepare(struct body_read *r, const struct body_wants *wants) {
    int err = json_paths_init(&r->asked.paths, wants->pointers, wants->n_pointers);
    bool protocol = r->source == BODY_SOURCE_JSON && (r->graphql || r->rpc);
    if (err == 0 && protocol)
        err = protocol_finds_init(&r->protocol);
    if (err != 0 || r->source != BODY_SOURCE_JSON)
        return err;
    r->json = json_read_new(&r->asked, protocol ? &r->protocol : NULL);
    return r->json ? 0 : ERR_MEMORY;
}

int body_read_new(enum body_source source, const struct body_wants *wants, struct body_read **out) {
    struct body_read *r = calloc(1, sizeof *r);
    if (!r)
        return ERR_MEMORY;
    r->source = source;
    r->graphql = wants->graphql;
    r->rpc = wants->rpc;
    r->limit = wants->limit;
    buf_init(&r->form, SIZE_MAX / 2);
    buf_init(&r->text, BODY_TEXT_MAX);
    int err = prepare(r, wants);
    if (err == 0)
        *out = r;
    else
        body_read_free(r);
    return err;
}

void body_read_free(struct body_read *r) {
    if (!r)
        return;
    graphql_free(r->document);
    json_read_free(r->json);
    json_finds_free(&r->asked);
    json_finds_free(&r->protocol);
    buf_free(&r->form);
    buf_free(&r->text);
    free(r->values);
    free(r->calls);
    free(r);
}

/* What is wrong within the limit counts, not where the pieces end. */
bool body_read_feed(struct body_read *r, struct view piece) {
    uint64_t room = r->limit > r->facts.size ? r->limit - r->facts.size : 0;
    struct view within = piece.n > room ? view_head(piece, (size_t)room) : piece;
    r->facts.size += piece.n;
    if (r->fault == BODY_FAULTLESS && r->json)
        r->fault = json_read_feed(r->json, within);
    else if (r->fault == BODY_FAULTLESS)
        buf_put(&r->form, within);
    if (r->fault == BODY_FAULTLESS && !buf_ok(&r->form))
        r->fault = BODY_TOO_MANY;
    if (r->fault == BODY_FAULTLESS && within.n < piece.n)
        r->fault = BODY_TOO_LARGE;
    return r->fault == BODY_FAULTLESS;
}

/* ---- GraphQL in a query ---- */

struct parameters {
    struct view query, operation;
    bool has_query, has_operation, has_variables;
};

/* False: it stands there twice. */
static bool set(bool *has, struct view *place, struct view value) {
    bool first = !*has;
    *has = true;
    *place = value;
    return first;
}

static bool take_parameter(struct parameters *p, struct view name, struct view value) {
    struct view variables;
    if (view_equal(name, VIEW("query")))
        return set(&p->has_query, &p->query, value);
    if (view_equal(name, VIEW("operationName")))
        return set(&p->has_operation, &p->operation, value);
    return view_equal(name, VIEW("variables")) && set(&p->has_variables, &variables, value);
}

/* All of it is decoded into memory that does not move: decoding makes nothing longer. */
static bool read_query(struct body_read *r) {
    struct view rest = buf_view(&r->form), name, value;
    struct parameters p = {.has_query = false};
    enum body_fault fault;
    if (!buf_reserve(&r->text, rest.n + 1))
        return false;
    while (form_field(&rest, &r->text, &name, &value, &fault))
        if (!take_parameter(&p, name, value))
            return false;
    if (fault != BODY_FAULTLESS || !p.has_query ||
        graphql_read(p.query, p.has_operation ? &p.operation : NULL, &r->document) != 0)
        return false;
    r->facts.graphql = graphql_facts(r->document);
    /* A GET must not change anything (GraphQL over HTTP, 5.3). */
    r->facts.graphql.known = r->facts.graphql.kind != GRAPHQL_MUTATION;
    return r->facts.graphql.known;
}

/* ---- the end ---- */

static void read_protocols(struct body_read *r) {
    struct body_facts *f = &r->facts;
    if (r->source == BODY_SOURCE_QUERY) {
        if (r->graphql && !read_query(r))
            r->fault = BODY_NOT_GRAPHQL;
        return;
    }
    if (r->rpc && !(r->json && rpc_read(r->json, &r->protocol, &r->calls, &f->rpc)))
        r->fault = BODY_NOT_RPC;
    if (r->graphql &&
        !(r->json && graphql_request_read(r->json, &r->protocol, &r->document, &f->graphql)))
        r->fault = BODY_NOT_GRAPHQL;
}

static void list_values(struct body_read *r) {
    const struct json_finds *f = &r->asked;
    r->values = calloc(f->n + 1, sizeof *r->values);
    if (!r->values) {
        r->fault = BODY_TOO_MANY;
        return;
    }
    for (size_t i = 0; i < f->n; i++) {
        const struct json_found *found = &f->found[i];
        struct view text = buf_view(&r->text);
        text = r->json ? json_read_text(r->json, found)
                       : view_slice(text, found->at, found->at + found->n);
        r->values[i] = (struct body_value){.pointer = found->pointer,
                                           .type = found->type,
                                           .alike = found->alike,
                                           .value = text,
                                           .from = found->from,
                                           .to = found->to};
    }
    r->facts.values = r->values;
    r->facts.n_values = f->n;
}

const struct body_facts *body_read_end(struct body_read *r) {
    if (r->fault == BODY_FAULTLESS && r->json && r->facts.size > 0)
        r->fault = json_read_end(r->json);
    else if (r->fault == BODY_FAULTLESS && r->source == BODY_SOURCE_FORM)
        r->fault = form_read(buf_view(&r->form), &r->asked, &r->text);
    if (r->fault == BODY_FAULTLESS)
        list_values(r);
    r->facts.unclear = r->fault != BODY_FAULTLESS;
    r->facts.read = true;
    if (!r->facts.unclear)
        read_protocols(r);
    r->facts.why = body_fault_text(r->fault);
    return &r->facts;
}

enum body_fault body_read_fault(const struct body_read *r) {
    return r->fault;
}
