#include "egress/request.h"

#include "base/digest.h"
#include "egress/echo.h"
#include "egress/lane_messages.h"
#include "egress/reading.h"
#include "egress/tunnel.h"
#include "policy/body_credential.h"
#include "policy/echo.h"
#include "policy/field_name.h"

#include <string.h>

/* ---- fields that never leave ---- */

static void drop_fields(struct fields *f) {
    size_t kept = 0;
    for (size_t i = 0; i < f->n; i++)
        if (!field_name_look(f->at[i].name).removed)
            f->at[kept++] = f->at[i];
    f->n = kept;
}

/* ---- reading ---- */

struct sent {
    uint32_t tunnel;
    uint8_t tls, n_tokens;
    struct view token, client;
};

static int read_record(struct exchange *ex, struct sent *s) {
    struct reader r = reader_of(buf_view(&ex->record));
    s->tunnel = read_u32(&r);
    s->tls = read_u8(&r);
    s->n_tokens = read_u8(&r);
    s->token = read_block(&r, LANE_TEXT_MAX);
    s->client = read_block(&r, sizeof ex->client - 1);
    if (r.bad || s->tls > 1 || request_read(&r, &ex->request) != 0 || !read_done(&r))
        return ERR_BAD;
    if (ex->request.form == FORM_AUTHORITY ||
        view_cstr(s->client, ex->client, sizeof ex->client) != 0)
        return ERR_BAD;
    ex->tunnel = s->tunnel;
    ex->tls = s->tls != 0;
    return 0;
}

/* ---- who and where ---- */

static enum reason refuse_text(struct exchange *ex, enum reason why, const char *text) {
    ex->trail.detail = view_str(text);
    return why;
}

/* What was said inside a tunnel must be about the tunnel's authority. */
static enum reason place_in_tunnel(struct exchange *ex, const struct tunnel *t) {
    struct authority said;
    const char *text = NULL;
    memcpy(ex->sandbox, t->sandbox, sizeof ex->sandbox);
    ex->authority = t->authority;
    ex->trail.authority = &ex->authority;
    if (ex->request.form == FORM_ABSOLUTE &&
        (authority_parse(ex->request.authority, t->authority.port, &said, &text) != 0 ||
         !authority_equal(&said, &t->authority) || ex->request.https != ex->tls))
        return refuse_text(ex, REASON_MALFORMED_REQUEST,
                           "an absolute target that is not the tunnel's");
    if (!ex->request.has_host)
        return ex->request.minor == 0 ? REASON_ALLOWED
                                      : refuse_text(ex, REASON_MALFORMED_REQUEST, "no Host field");
    if (authority_parse(ex->request.host, t->authority.port, &said, &text) != 0)
        return refuse_text(ex, REASON_MALFORMED_AUTHORITY, text);
    return authority_equal(&said, &t->authority) ? REASON_ALLOWED : REASON_AUTHORITY_MISMATCH;
}

/* Plain proxying: the target decides, and a Host that says otherwise is refused. */
static enum reason place_by_target(struct exchange *ex) {
    struct authority said;
    const char *text = NULL;
    if (ex->request.form != FORM_ABSOLUTE)
        return refuse_text(ex, REASON_MALFORMED_REQUEST,
                           "a proxy needs an absolute target or CONNECT");
    if (ex->request.https)
        return refuse_text(ex, REASON_MALFORMED_REQUEST, "https goes through CONNECT");
    if (authority_parse(ex->request.authority, 80, &ex->authority, &text) != 0)
        return refuse_text(ex, REASON_MALFORMED_AUTHORITY, text);
    ex->trail.authority = &ex->authority;
    if (!ex->request.has_host)
        return REASON_ALLOWED;
    if (authority_parse(ex->request.host, 80, &said, &text) != 0)
        return refuse_text(ex, REASON_MALFORMED_AUTHORITY, text);
    return authority_equal(&said, &ex->authority) ? REASON_ALLOWED : REASON_AUTHORITY_MISMATCH;
}

static int find_place(struct exchange *ex, const struct sent *s, enum reason *why) {
    if (s->tunnel == 0) {
        if (ex->tls)
            return ERR_BAD;
        if (identity_find(ex->lane, false, s->n_tokens, s->token, ex->sandbox, &ex->proof, why) !=
            0)
            return 0;
        *why = place_by_target(ex);
        return 0;
    }
    struct tunnel *t = tunnel_find(ex->lane, s->tunnel);
    if (!t || t->spoke_tls != ex->tls)
        return ERR_BAD;
    t->recorded = true;
    exchange_place(ex, t);
    ex->proof = t->proof;
    *why = identity_holds(ex->lane, t->sandbox, &t->proof) ? place_in_tunnel(ex, t)
                                                           : REASON_UNKNOWN_SANDBOX;
    return 0;
}

/* ---- the target ---- */

static enum reason find_target(struct exchange *ex) {
    const char *text = NULL;
    size_t segments = ex->generation->limits.v[LIMIT_PATH_SEGMENTS];
    if (view_equal(ex->request.method, VIEW("TRACE")) ||
        view_equal(ex->request.method, VIEW("CONNECT")) ||
        view_equal(ex->request.method, VIEW("PRI")))
        return REASON_METHOD_REFUSED;
    if (ex->request.form == FORM_ASTERISK)
        return refuse_text(ex, REASON_MALFORMED_TARGET,
                           "the target * names no resource that a rule could allow");
    bool slashes = view_find(ex->request.target, '%') < ex->request.target.n &&
                   policy_allows_encoded_slash(ex->generation->policy, &ex->authority);
    int (*parse)(struct view, size_t, struct buf *, struct target *, const char **) =
        slashes ? target_parse_slashed : target_parse;
    int result = parse(ex->request.target, segments, &ex->canonical, &ex->target, &text);
    if (result == ERR_LIMIT)
        return REASON_TARGET_TOO_LONG;
    if (result != 0)
        return refuse_text(ex, REASON_MALFORMED_TARGET, text);
    ex->trail.target = &ex->target;
    return ex->request.upgrade ? REASON_UPGRADE_NOT_ALLOWED : REASON_ALLOWED;
}

/* ---- credentials ---- */

/* A placeholder comes with request after request. Of a token that is none, which could be anybody's key, nothing is kept. */
static void fingerprint_of(struct view token, uint8_t out[FINGERPRINT_SIZE]) {
    static struct {
        uint8_t token[PLACEHOLDER_SIZE];
        size_t n;
        uint8_t fingerprint[FINGERPRINT_SIZE];
    } last;
    if (last.n > 0 && view_equal(token, view_of(last.token, last.n))) {
        memcpy(out, last.fingerprint, FINGERPRINT_SIZE);
        return;
    }
    digest_sha256(token, out);
    if (token.n > sizeof last.token || !placeholder_is(token))
        return;
    view_copy(token, last.token);
    last.n = token.n;
    memcpy(last.fingerprint, out, FINGERPRINT_SIZE);
}

static void find_origin(struct exchange *ex, size_t at) {
    struct material *m = &ex->materials.at[at];
    uint8_t fingerprint[FINGERPRINT_SIZE];
    struct view sandbox, credential;
    fingerprint_of(m->token, fingerprint);
    m->origin = ORIGIN_FOREIGN;
    if (!generation_issued(ex->generation, fingerprint, &sandbox, &credential)) {
        /* A placeholder of ours that is in no registry was revoked. */
        if (placeholder_is(m->token))
            m->origin = ORIGIN_OTHER;
        return;
    }
    bool ours = view_equal(sandbox, view_str(ex->sandbox));
    m->origin = ours ? ORIGIN_OURS : ORIGIN_OTHER;
    if (!ours)
        return;
    m->credential = credential;
    memcpy(ex->fingerprint, fingerprint, sizeof fingerprint);
    ex->fingerprint_of = (int)at;
}

/*
 * A placeholder that is a material is judged as one; any other in the part of the request in which
 * the materials from that one on were found is hidden.
 */
static bool hides_placeholder(const struct materials *m, size_t from, struct view part) {
    for (size_t i = from; i < m->n; i++) {
        const struct material *at = &m->at[i];
        if (!placeholder_is(at->token)) {
            if (placeholder_inside(at->token))
                return true;
            continue;
        }
        /* Of Basic both halves have the same bytes. */
        if (at->raw.p < part.p)
            continue;
        size_t before = (size_t)(at->raw.p - part.p);
        if (placeholder_inside(view_head(part, before)))
            return true;
        part = view_skip(part, before + at->raw.n);
    }
    return placeholder_inside(part);
}

static bool find_materials(struct exchange *ex) {
    struct materials *m = &ex->materials;
    struct watched watched;
    bool elsewhere = ex->request.placeholder_dropped || placeholder_inside(ex->request.method) ||
                     placeholder_inside_name(view_str(ex->authority.host));
    policy_watch(ex->generation->policy, &ex->authority, &watched);
    m->n = m->used = 0;
    m->overflow = false;
    for (size_t i = 0; i < ex->request.fields.n; i++) {
        const struct field *f = &ex->request.fields.at[i];
        size_t from = m->n;
        provenance_field(f->name, f->value, &watched, m);
        elsewhere = elsewhere || hides_placeholder(m, from, f->value) ||
                    field_name_look(f->name).placeholder;
    }
    size_t from = m->n;
    provenance_target(&ex->target, &watched, m);
    elsewhere = elsewhere || hides_placeholder(m, from, buf_view(&ex->canonical));
    ex->fingerprint_of = -1;
    for (size_t i = 0; i < m->n; i++)
        find_origin(ex, i);
    ex->trail.materials = m;
    return elsewhere;
}

/* What was read of the body where the service reads a credential. */
static void find_body_materials(struct exchange *ex, const struct body_facts *f) {
    struct watched watched;
    size_t from = ex->materials.n;
    policy_watch(ex->generation->policy, &ex->authority, &watched);
    body_credentials(f, &watched, buf_view(&ex->body), &ex->materials);
    for (size_t i = from; i < ex->materials.n; i++)
        find_origin(ex, i);
}

/* Verdicts on requests to a spliced service say what may pass unread; one that is read here was not meant. */
static void refuse_spliced(struct verdict *v) {
    if (!v->allow || service_tls(v->service) != SERVICE_SPLICE)
        return;
    *v = (struct verdict){.reason = REASON_SPLICED, .service = v->service, .swap = -1};
}

void request_judge(struct exchange *ex) {
    bool elsewhere = find_materials(ex);
    struct request_facts facts = {.sandbox = view_str(ex->sandbox),
                                  .tls = ex->tls,
                                  .authority = &ex->authority,
                                  .method = ex->request.method,
                                  .target = &ex->target,
                                  .materials = &ex->materials,
                                  .placeholder_elsewhere = elsewhere,
                                  .fields = ex->request.fields.at,
                                  .n_fields = ex->request.fields.n,
                                  .length_known = ex->request.framing != FRAMING_CHUNKED,
                                  .length = ex->request.length,
                                  .now = clock_wall() / UINT64_C(1000000000)};
    const struct policy *p = ex->generation->policy;
    ex->undecided = false;
    if (echo_is_host(&ex->authority)) {
        ex->verdict = echo_judge(ex, elsewhere);
        return;
    }
    if (!policy_judge_head(p, &facts, &ex->verdict, &ex->needs)) {
        facts.body = reading_facts(ex->reading, p, &ex->needs);
        ex->undecided = facts.body == NULL;
        if (facts.body)
            find_body_materials(ex, facts.body);
        ex->verdict = policy_judge(p, &facts);
    }
    refuse_spliced(&ex->verdict);
    /* To whom a placeholder was issued is not known then, so it cannot be said to be a wrong one. */
    if (ex->generation->locked && ex->verdict.reason == REASON_PLACEHOLDER_WRONG_IDENTITY)
        ex->verdict.reason = REASON_BROKER_UNAVAILABLE;
    if (ex->verdict.allow && ex->verdict.swap >= 0 && ex->verdict.swap != ex->fingerprint_of)
        digest_sha256(ex->materials.at[ex->verdict.swap].token, ex->fingerprint);
    /* Only now: a placeholder in a field that never leaves is one in the wrong place all the same. */
    if (!ex->undecided)
        drop_fields(&ex->request.fields);
}

/* ---- all of it ---- */

static void deny(struct exchange *ex, enum reason why) {
    ex->verdict = (struct verdict){.reason = why, .swap = -1};
}

int request_build(struct exchange *ex) {
    struct sent sent;
    enum reason why = REASON_NOT_READY;
    if (read_record(ex, &sent) != 0)
        return ERR_BAD;
    ex->trail.door = "http";
    ex->trail.client = view_str(ex->client);
    ex->trail.method = ex->request.method;
    ex->trail.tls = ex->tls;
    ex->trail.host_sent =
        view_is_empty(ex->request.authority) ? ex->request.host : ex->request.authority;
    if (find_place(ex, &sent, &why) != 0)
        return ERR_BAD;
    ex->trail.sandbox = view_str(ex->sandbox);
    if (why == REASON_ALLOWED)
        why = find_target(ex);
    if (why != REASON_ALLOWED)
        deny(ex, why);
    else
        request_judge(ex);
    return 0;
}
