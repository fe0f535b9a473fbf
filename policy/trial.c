#include "policy/trial.h"

#include "base/base64.h"
#include "policy/placeholder.h"
#include "policy/rules.h"

#include <string.h>

enum { VALUE_SIZE = 512 };

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

static int put_credential(const struct credential_place *place, enum with with, struct buf *value,
                          struct materials *m) {
    char token[PLACEHOLDER_SIZE];
    if (!make_token(with, token))
        return ERR_MEMORY;
    put_value(value, place, view_str(token));
    if (!buf_ok(value))
        return ERR_MEMORY;
    provenance_field(place->header, buf_view(value), place->header, m);
    return 0;
}

bool trial_place_is_seen(const struct credential_place *place) {
    struct materials m = {.n = 0};
    struct buf value;
    bool seen = false;
    buf_init(&value, VALUE_SIZE);
    if (put_credential(place, WITH_FOREIGN, &value, &m) == 0)
        for (size_t i = 0; i < m.n; i++)
            seen = seen || material_stands_in(&m.at[i], place);
    buf_free(&value);
    return seen;
}

/* ---- the run ---- */

/* Services that cover the same host and port have the same credential, so the first one does. */
static const struct service *service_of(const struct policy *p, const struct authority *a) {
    struct host_facts host = host_facts_of(a);
    for (const struct service *s = p->services; s; s = s->next)
        if (s->operations && service_covers_port(s, a->port) && service_covering_host(s, &host))
            return s;
    return NULL;
}

/* Returns whether a placeholder stands in a field where no credential is read. */
static bool read_fields(const struct trial *t, struct view watched, struct materials *m) {
    bool elsewhere = false;
    for (size_t i = 0; i < t->n_fields; i++) {
        size_t before = m->n;
        provenance_field(t->fields[i].name, t->fields[i].value, watched, m);
        if (m->n == before && placeholder_inside(t->fields[i].value))
            elsewhere = true;
    }
    return elsewhere;
}

static enum with choose(const struct service *s, enum with with, const struct materials *m) {
    if (with != WITH_DEFAULT)
        return with;
    return s && s->credential.n != 0 && m->n == 0 ? WITH_OURS : WITH_NONE;
}

static int put_chosen(const struct service *s, enum with with, struct buf *value,
                      struct materials *m, const char **why) {
    static const struct credential_place usual = {
        PLACE_HEADER, {(const uint8_t *)"authorization", 13}, {(const uint8_t *)"bearer", 6}};
    bool has_credential = s && s->credential.n != 0;
    if (with == WITH_NONE)
        return 0;
    if (with == WITH_OURS && !has_credential) {
        *why = "there is no credential at this service";
        return ERR_BAD;
    }
    return put_credential(has_credential ? &s->place : &usual, with, value, m);
}

static bool method_is_token(struct view method) {
    for (size_t i = 0; i < method.n; i++)
        if (!is_tchar(method.p[i]))
            return false;
    return method.n != 0;
}

static int judge_trial(const struct policy *p, const struct rights *rights, const struct trial *t,
                       const struct target *target, struct buf *value, struct verdict *out,
                       const char **why) {
    const struct service *s = service_of(p, &t->authority);
    struct materials m = {.n = 0};
    bool elsewhere = read_fields(t, policy_credential_field(p, &t->authority), &m);
    int err = put_chosen(s, choose(s, t->with, &m), value, &m, why);
    if (err != 0)
        return err;
    provenance_target(target, &m);
    for (size_t i = 0; i < m.n; i++) {
        bool ours = placeholder_is(m.at[i].token);
        m.at[i].origin = ours ? ORIGIN_OURS : ORIGIN_FOREIGN;
        m.at[i].credential = ours && s ? s->credential : (struct view){NULL, 0};
    }
    struct request_facts facts = {
        .sandbox = t->sandbox,
        .tls = t->tls,
        .authority = &t->authority,
        .method = t->method,
        .target = target,
        .materials = &m,
        .placeholder_elsewhere = elsewhere,
    };
    *out = rights ? judge_rights(p, rights, &facts) : policy_judge(p, &facts);
    return 0;
}

int trial_run_as(const struct policy *p, const struct rights *rights, const struct trial *t,
                 struct verdict *out, const char **why) {
    struct target target;
    struct buf path, value;
    if (!method_is_token(t->method)) {
        *why = "a method is a token of RFC 9110";
        return ERR_BAD;
    }
    struct view raw = t->target.n ? t->target : VIEW("/");
    buf_init(&path, raw.n + 1);
    buf_init(&value, VALUE_SIZE);
    *why = "the path has too many segments";
    int err = target_parse(raw, SEGMENTS_MAX, &path, &target, why);
    if (err == 0)
        err = judge_trial(p, rights, t, &target, &value, out, why);
    buf_free(&value);
    buf_free(&path);
    return err == ERR_LIMIT ? ERR_BAD : err;
}

int trial_run(const struct policy *p, const struct trial *t, struct verdict *out,
              const char **why) {
    return trial_run_as(p, NULL, t, out, why);
}
