#include "policy/trial.h"

#include "base/base64.h"
#include "policy/body_credential.h"
#include "policy/body_request.h"
#include "policy/explain.h"
#include "policy/judge_material.h"
#include "policy/placeholder.h"
#include "policy/rules.h"

#include <stdlib.h>

enum { VALUE_SIZE = 512, FIELDS_MAX_OF_TRIAL = 96 };

/* ---- a request in text ---- */

int trial_url(struct view url, struct trial *t, const char **why) {
    struct view rest;
    if (view_starts(url, VIEW("https://"))) {
        t->tls = true;
        rest = view_skip(url, 8);
    } else if (view_starts(url, VIEW("http://"))) {
        t->tls = false;
        rest = view_skip(url, 7);
    } else {
        *why = "a URL begins with https:// or http://";
        return ERR_BAD;
    }
    size_t path = view_find(rest, '/'), query = view_find(rest, '?');
    if (query < path) {
        *why = "the path is missing before '?'";
        return ERR_BAD;
    }
    t->target = view_skip(rest, path);
    if (view_find(view_head(rest, path), '@') < view_head(rest, path).n) {
        *why = "clients send a user and password as a field: --header 'Authorization: Basic ...'";
        return ERR_BAD;
    }
    return authority_parse(view_head(rest, path), t->tls ? 443 : 80, &t->authority, why);
}

/* ---- credentials for it ---- */

/* A field's value with the token in the place. */
static void put_value(struct buf *out, const struct credential_place *place, struct view token) {
    struct buf pair;
    switch (place->place) {
    case PLACE_BASIC_USER:
    case PLACE_BASIC_PASSWORD:
        buf_init(&pair, VALUE_SIZE);
        buf_put(&pair, place->place == PLACE_BASIC_USER ? token : VIEW("user"));
        buf_put_u8(&pair, ':');
        buf_put(&pair, place->place == PLACE_BASIC_USER ? VIEW("x") : token);
        buf_put_str(out, "Basic ");
        base64_encode(buf_view(&pair), out);
        buf_free(&pair);
        break;
    case PLACE_COOKIE:
        buf_put(out, place->name);
        buf_put_u8(out, '=');
        buf_put(out, token);
        break;
    default:
        buf_put(out, place->scheme);
        if (place->scheme.n)
            buf_put_u8(out, ' ');
        buf_put(out, token);
    }
}

static bool make_token(enum with with, char token[PLACEHOLDER_SIZE]) {
    static const uint8_t random[32] = {1, 2, 3, 4, 5, 6, 7, 8};
    if (with == WITH_OURS)
        return placeholder_make(VIEW(""), random, token) == 0;
    return view_cstr(VIEW("sk-foreign-0123456789abcdef0123456789"), token, PLACEHOLDER_SIZE) == 0;
}

bool trial_place_is_seen(const struct credential_place *place) {
    const struct watched watched = {{place}, 1};
    char token[PLACEHOLDER_SIZE];
    struct materials m = {.n = 0};
    struct buf value;
    bool seen = false;
    buf_init(&value, VALUE_SIZE);
    if (make_token(WITH_FOREIGN, token))
        put_value(&value, place, view_str(token));
    if (buf_ok(&value))
        provenance_field(place->name, buf_view(&value), &watched, &m);
    for (size_t i = 0; i < m.n; i++)
        seen = seen || material_stands_in(&m.at[i], place);
    buf_free(&value);
    return seen;
}

/* ---- the request of a trial ---- */

struct request {
    const struct policy *policy;
    const struct who *who; /* NULL: looked up by the trial's sandbox */
    const struct trial *trial;
    const struct service *service; /* the first that covers the authority; NULL: none */
    struct watched watched;
    struct field fields[FIELDS_MAX_OF_TRIAL];
    size_t n_fields;
    struct buf raw, path, value; /* target as sent, as parsed; a field with a credential */
    struct target target;
    struct materials materials;
    struct body_read *reader;  /* of the body, where the verdict depends on it */
    struct body_value *values; /* of its facts */
    struct body_facts facts;
    bool facts_known;
    struct material in_body; /* the credential that is put there; without a token: none */
    char token[PLACEHOLDER_SIZE];
    bool elsewhere;
    struct nearest *nearest; /* NULL: not asked for */
};

/* Services that cover the same host and port have the same credentials, so the first one does. */
static const struct service *service_of(const struct policy *p, const struct authority *a) {
    struct host_facts host = host_facts_of(a);
    struct host_walk walk = host_walk_of(&p->hosts, &host);
    const struct service *first = NULL;
    unsigned level;
    for (const struct host_rule *h; (h = host_walk_next(&walk, &level)) != NULL;)
        if (h->service->operations && service_covers_port(h->service, a->port) &&
            (!first || h->service->index < first->index))
            first = h->service;
    return first;
}

static int add_field(struct request *r, struct view name, struct view value) {
    if (r->n_fields == FIELDS_MAX_OF_TRIAL)
        return ERR_MEMORY;
    r->fields[r->n_fields++] = (struct field){name, value};
    return 0;
}

/* Whether a placeholder stands in a field where no credential is read. */
static void find_materials(struct request *r) {
    struct materials *m = &r->materials;
    m->n = m->used = 0;
    m->overflow = r->elsewhere = false;
    for (size_t i = 0; i < r->n_fields; i++) {
        size_t before = m->n;
        provenance_field(r->fields[i].name, r->fields[i].value, &r->watched, m);
        if (m->n == before && placeholder_inside(r->fields[i].value))
            r->elsewhere = true;
    }
    provenance_target(&r->target, &r->watched, m);
    if (r->in_body.token.n > 0 && m->n < MATERIALS_MAX)
        m->at[m->n++] = r->in_body;
}

/* What is ours is taken to be for the credential of the place where it stands, or for the first one. */
static struct view credential_of(const struct request *r, const struct material *m) {
    const struct credential *c = r->service ? r->service->credentials : NULL;
    struct view first = c ? c->name : (struct view){NULL, 0};
    for (; c; c = c->next)
        if (material_stands_in(m, &c->place))
            return c->name;
    return first;
}

static void set_origins(struct request *r) {
    for (size_t i = 0; i < r->materials.n; i++) {
        struct material *m = &r->materials.at[i];
        bool ours = placeholder_is(m->token);
        m->origin = ours ? ORIGIN_OURS : ORIGIN_FOREIGN;
        m->credential = ours ? credential_of(r, m) : (struct view){NULL, 0};
    }
}

static int parse_target(struct request *r, struct view raw, const char **why) {
    *why = "the path has too many segments";
    buf_reset(&r->path);
    bool slashes = policy_allows_encoded_slash(r->policy, &r->trial->authority);
    return slashes ? target_parse_slashed(raw, SEGMENTS_MAX, &r->path, &r->target, why)
                   : target_parse(raw, SEGMENTS_MAX, &r->path, &r->target, why);
}

static struct request_facts facts_of(const struct request *r) {
    const struct trial *t = r->trial;
    return (struct request_facts){
        .sandbox = t->sandbox,
        .tls = t->tls,
        .authority = &t->authority,
        .method = t->method,
        .target = &r->target,
        .materials = &r->materials,
        .placeholder_elsewhere = r->elsewhere,
        .fields = r->fields,
        .n_fields = r->n_fields,
        .length_known = true,
        .length = t->body.n > 0 ? t->body.n : t->length,
        .body = r->facts_known ? &r->facts : t->facts,
        .websocket = t->websocket,
        .now = t->now,
    };
}

static bool needs_body(const struct request *r, struct body_needs *needs) {
    struct request_facts facts = facts_of(r);
    return r->who ? body_needs_who(r->policy, r->who, &facts, needs)
                  : policy_body_needs(r->policy, &facts, needs);
}

static struct verdict judge_request(const struct request *r) {
    struct request_facts facts = facts_of(r);
    return r->who ? judge_who(r->policy, r->who, &facts) : policy_judge(r->policy, &facts);
}

/* ---- its credential ---- */

/* The one that the operation wants, as a judge says who finds none; else the first of the service. */
static const struct credential *wanted_credential(struct request *r) {
    find_materials(r);
    r->materials.n = 0;
    struct verdict v = judge_request(r);
    if (v.credential)
        return v.credential;
    return r->service ? r->service->credentials : NULL;
}

static enum with choose(const struct request *r) {
    if (r->trial->with != WITH_DEFAULT)
        return r->trial->with;
    bool bare = true;
    for (size_t i = 0; i < r->materials.n; i++)
        bare = bare && r->materials.at[i].place == PLACE_PATH &&
               !placeholder_is(r->materials.at[i].token);
    return r->service && r->service->credentials && bare ? WITH_OURS : WITH_NONE;
}

/* The target with the token behind its query or as its n-th segment. */
static int put_into_target(struct request *r, const struct credential_place *place,
                           struct view token, const char **why) {
    struct view raw = buf_view(&r->raw), query = raw, path = view_cut(&query, '?'), segment;
    struct buf out;
    buf_init(&out, raw.n + VALUE_SIZE);
    uint16_t n = 1;
    for (; target_segment(&path, &segment); n++) {
        buf_put_u8(&out, '/');
        buf_put(&out, place->place == PLACE_PATH && place->segment == n ? token : segment);
    }
    buf_put(&out, path);
    bool has_query = view_find(raw, '?') < raw.n;
    if (has_query || place->place == PLACE_QUERY)
        buf_put_u8(&out, '?');
    buf_put(&out, query);
    if (place->place == PLACE_QUERY) {
        buf_put_str(&out, query.n > 0 ? "&" : "");
        buf_put(&out, place->name);
        buf_put_u8(&out, '=');
        buf_put(&out, token);
    }
    int err = buf_ok(&out) ? parse_target(r, buf_view(&out), why) : ERR_MEMORY;
    buf_free(&out);
    return err;
}

/* As if the body had it: what is not said to be another type is one that can hold it. */
static void put_into_body(struct request *r, const struct credential_place *place) {
    enum body_source source = BODY_SOURCE_QUERY,
                     wanted = place->place == PLACE_JSON ? BODY_SOURCE_JSON : BODY_SOURCE_FORM;
    bool typed = r->trial->type.n > 0;
    if (!typed || (body_source_find(r->fields, r->n_fields, true, &source) && source == wanted))
        r->in_body = (struct material){
            .place = place->place, .name = place->name, .token = view_str(r->token)};
}

static int put_credential(struct request *r, const struct credential_place *place, enum with with,
                          const char **why) {
    if (!make_token(with, r->token))
        return ERR_MEMORY;
    struct view token = view_str(r->token);
    switch (place->place) {
    case PLACE_QUERY:
    case PLACE_PATH:
        return put_into_target(r, place, token, why);
    case PLACE_JSON:
    case PLACE_FORM:
        put_into_body(r, place);
        return 0;
    default:
        put_value(&r->value, place, token);
        if (!buf_ok(&r->value))
            return ERR_MEMORY;
        return add_field(r, place->place == PLACE_COOKIE ? VIEW("cookie") : place->name,
                         buf_view(&r->value));
    }
}

static int put_chosen(struct request *r, enum with with, const char **why) {
    static const struct credential_place usual = {.place = PLACE_HEADER,
                                                  .name = {(const uint8_t *)"authorization", 13},
                                                  .scheme = {(const uint8_t *)"bearer", 6}};
    if (with == WITH_NONE)
        return 0;
    const struct credential *c = wanted_credential(r);
    if (with == WITH_OURS && !c) {
        *why = "there is no credential at this service";
        return ERR_BAD;
    }
    return put_credential(r, c ? &c->place : &usual, with, why);
}

/* ---- its body, read as inspect reads it ---- */

static int keep_facts(struct request *r, const struct body_facts *f,
                      const struct body_needs *needs) {
    r->facts = *f;
    r->facts_known = true;
    r->values = calloc(f->n_values + 1, sizeof *r->values);
    if (!r->values)
        return ERR_MEMORY;
    for (size_t i = 0; i < f->n_values; i++) {
        r->values[i] = f->values[i];
        r->values[i].pointer = needs->pointers[f->values[i].pointer];
    }
    body_values_compare(r->values, f->n_values, r->trial->body);
    r->facts.values = r->values;
    body_facts_doubt(&r->facts, r->trial->body.n > 0, &r->target);
    return 0;
}

static int learn_facts(struct request *r, const struct body_needs *needs, const char **why) {
    struct view body = r->trial->body, pointers[BODY_POINTERS_MAX];
    struct body_wants wants = {.pointers = pointers,
                               .n_pointers = needs->n_pointers,
                               .graphql = needs->graphql,
                               .rpc = needs->rpc,
                               .limit = needs->limit};
    enum body_source source;
    if (needs->too_many || !body_source_find(r->fields, r->n_fields, body.n > 0, &source)) {
        r->facts = (struct body_facts){
            .size = body.n, .unclear = true, .why = body_fault_text(BODY_UNREAD)};
        r->facts_known = true;
        return 0;
    }
    for (size_t i = 0; i < needs->n_pointers; i++)
        pointers[i] = policy_body_pointer(r->policy, needs->pointers[i]);
    int err = body_read_new(source, &wants, &r->reader);
    if (err != 0) {
        *why = "what is asked of the body cannot be read";
        return err;
    }
    body_read_feed(r->reader, body.n > 0 ? body : r->target.query);
    return keep_facts(r, body_read_end(r->reader), needs);
}

/* ---- the run ---- */

static bool method_is_token(struct view method) {
    for (size_t i = 0; i < method.n; i++)
        if (!is_tchar(method.p[i]))
            return false;
    return method.n != 0;
}

static int read_request(struct request *r, const char **why) {
    const struct trial *t = r->trial;
    int err = 0;
    for (size_t i = 0; i < t->n_fields && err == 0; i++)
        err = add_field(r, t->fields[i].name, t->fields[i].value);
    if (err == 0 && t->type.n > 0)
        err = add_field(r, VIEW("content-type"), t->type);
    return err != 0 ? err : parse_target(r, buf_view(&r->raw), why);
}

static int judge_trial(struct request *r, struct verdict *out, const char **why) {
    int err = read_request(r, why);
    if (err != 0)
        return err;
    r->service = service_of(r->policy, &r->trial->authority);
    policy_watch(r->policy, &r->trial->authority, &r->watched);
    find_materials(r);
    err = put_chosen(r, choose(r), why);
    if (err != 0)
        return err;
    find_materials(r);
    set_origins(r);
    struct body_needs needs;
    err = !r->trial->facts && needs_body(r, &needs) ? learn_facts(r, &needs, why) : 0;
    if (err != 0)
        return err;
    const struct body_facts *facts_of_body = r->facts_known ? &r->facts : r->trial->facts;
    if (facts_of_body) {
        body_credentials(facts_of_body, &r->watched, r->trial->body, &r->materials);
        set_origins(r);
    }
    *out = judge_request(r);
    struct request_facts facts = facts_of(r);
    if (r->nearest && (!out->allow || out->observed != REASON_ALLOWED))
        policy_explain(r->policy, r->who, &facts, out, r->nearest);
    return 0;
}

static int run(const struct policy *p, const struct who *who, const struct trial *t,
               struct verdict *out, struct nearest *nearest, const char **why) {
    struct view raw = t->target.n ? t->target : VIEW("/");
    if (!method_is_token(t->method)) {
        *why = "a method is a token of RFC 9110";
        return ERR_BAD;
    }
    struct request *r = calloc(1, sizeof *r);
    if (!r)
        return ERR_MEMORY;
    r->policy = p;
    r->who = who;
    r->trial = t;
    r->nearest = nearest;
    buf_init(&r->raw, raw.n);
    buf_init(&r->path, raw.n + VALUE_SIZE + 1);
    buf_init(&r->value, VALUE_SIZE);
    buf_put(&r->raw, raw);
    int err = buf_ok(&r->raw) ? judge_trial(r, out, why) : ERR_MEMORY;
    body_read_free(r->reader);
    free(r->values);
    buf_free(&r->raw);
    buf_free(&r->path);
    buf_free(&r->value);
    free(r);
    return err == ERR_LIMIT ? ERR_BAD : err;
}

int trial_run_as(const struct policy *p, const struct who *who, const struct trial *t,
                 struct verdict *out, struct nearest *nearest, const char **why) {
    return run(p, who, t, out, nearest, why);
}

int trial_run(const struct policy *p, const struct trial *t, struct verdict *out,
              const char **why) {
    return run(p, NULL, t, out, NULL, why);
}

int trial_explain(const struct policy *p, const struct trial *t, struct verdict *out,
                  struct nearest *nearest, const char **why) {
    return run(p, NULL, t, out, nearest, why);
}
