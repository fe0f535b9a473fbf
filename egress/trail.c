#include "egress/trail.h"

#include "base/digest.h"
#include "base/log.h"
#include "egress/exchange.h"
#include "egress/lane_messages.h"
#include "egress/splice.h"
#include "policy/bundle.h"
#include "policy/key_form.h"
#include "policy/placeholder.h"
#include "policy/punycode.h"

#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* ---- the writer ---- */

static void on_held(void *ctx) {
    exchange_recorded(ctx);
    splice_recorded(ctx);
}

static void on_durable(void *ctx, uint64_t number) {
    (void)number;
    on_held(ctx);
}

static void on_lost(void *ctx) {
    exchange_lose_audit(ctx);
    splice_lose_audit(ctx);
}

void trail_start(struct lane *l) {
    static const struct audit_stream_events events = {
        .held = on_held, .durable = on_durable, .lost = on_lost};
    char origin[32];
    snprintf(origin, sizeof origin, "egress %u", l->id);
    audit_stream_init(&l->audit, l->loop, origin, &events, l);
    random_bytes(l->salt, sizeof l->salt);
}

int trail_attach(struct lane *l, int fd) {
    return audit_stream_attach(&l->audit, fd);
}

void trail_away(struct lane *l) {
    audit_stream_away(&l->audit);
    on_lost(l);
}

bool trail_ready(const struct lane *l) {
    return audit_stream_ready(&l->audit);
}

/* ---- fields ---- */

static size_t put_number(char *text, size_t n, uint32_t number) {
    text[n] = ':';
    return n + 1 + digits_write(number, 10, text + n + 1);
}

static void put_rule(struct record *r, enum record_field field, const struct position *at) {
    char text[PATH_MAX + 32];
    if (!at->file)
        return;
    struct view file = view_head(view_str(at->file), PATH_MAX);
    view_copy(file, text);
    size_t n = put_number(text, file.n, at->line);
    n = put_number(text, n, at->column);
    record_text(r, field, view_of(text, n));
}

/* Nearly always one: a layer is seldom all that says how much. */
static void put_grants(struct record *r, const struct trail *t) {
    struct buf text;
    if (t->n_grants == 1)
        put_rule(r, FIELD_GRANT, &t->grants[0]);
    if (t->n_grants < 2)
        return;
    buf_init(&text, RECORD_TEXT_MAX);
    for (size_t i = 0; i < t->n_grants; i++)
        buf_printf(&text, "%s%s:%u:%u", i ? ", " : "", t->grants[i].file, t->grants[i].line,
                   t->grants[i].column);
    record_text(r, FIELD_GRANT, buf_view(&text));
    buf_free(&text);
}

/* The n-th, from 1. Where a credential stands for other operations only, what was allowed is plain. */
static bool segment_is_material(const struct trail *t, unsigned n) {
    const struct materials *m = t->materials;
    for (size_t i = 0; m && i < m->n; i++) {
        const struct material *at = &m->at[i];
        bool plain = at->watched && at->origin == ORIGIN_FOREIGN && t->verdict.allow;
        if (at->place == PLACE_PATH && at->segment == n && !plain)
            return true;
    }
    return false;
}

/* What does not stand in the record whole can be told from its like all the same. */
static void put_target_digest(struct record *r, const struct target *t) {
    struct buf sent;
    uint8_t digest[DIGEST_SIZE];
    char text[2 * DIGEST_SIZE + 1];
    buf_init(&sent, LANE_HEAD_MAX);
    buf_put(&sent, t->path);
    buf_put_str(&sent, t->has_query ? "?" : "");
    buf_put(&sent, t->query);
    if (buf_ok(&sent)) {
        digest_sha256(buf_view(&sent), digest);
        hex_encode(view_of(digest, sizeof digest), text);
        record_str(r, FIELD_TARGET_SHA256, text);
    }
    record_number(r, FIELD_TARGET_BYTES, t->path.n + t->has_query + t->query.n);
    buf_free(&sent);
}

static bool is_telling(struct view name) {
    struct view key;
    return placeholder_inside(name) || key_form_inside(name, &key);
}

/* The path with what looks like a credential taken out, and the query's names without values. */
static void put_target(struct record *r, const struct trail *t) {
    struct buf path, names;
    struct view rest = t->target->path, segment, name, value;
    buf_init(&path, LANE_HEAD_MAX);
    buf_init(&names, LANE_HEAD_MAX);
    for (unsigned n = 1; target_segment(&rest, &segment); n++) {
        buf_put_u8(&path, '/');
        if (segment_is_material(t, n))
            buf_put_str(&path, "[credential]");
        else
            buf_put(&path, segment);
    }
    if (t->target->trailing_slash || t->target->n_segments == 0)
        buf_put(&path, view_str(view_equal(t->target->path, VIEW("*")) ? "*" : "/"));
    rest = t->target->query;
    while (t->target->has_query && target_pair(&rest, &name, &value)) {
        if (buf_len(&names) > 0)
            buf_put_u8(&names, '&');
        buf_put(&names, is_telling(name) ? VIEW("[credential]") : name);
    }
    bool whole = record_text(r, FIELD_PATH, buf_view(&path));
    whole = record_text(r, FIELD_QUERY, buf_view(&names)) && whole;
    if (!whole || !buf_ok(&path) || !buf_ok(&names))
        put_target_digest(r, t->target);
    buf_free(&path);
    buf_free(&names);
}

static const char *place_name(enum place p) {
    static const char *const names[] = {"header", "basic user", "basic password", "cookie",
                                        "query",  "path",       "subprotocol",    "signature",
                                        "target", "body",       "json",           "form"};
    return names[p];
}

enum { LABEL_MAX = 40 };

/* What a material is called. In a path the segment is the credential; a placeholder can be anywhere. */
static struct view material_label(const struct material *at) {
    if (at->place == PLACE_PATH || is_telling(at->name))
        return (struct view){NULL, 0};
    return view_head(at->name, LABEL_MAX);
}

/* Behind what is there already: where a material stands, and what it is called there. */
static void put_material_place(struct buf *out, const struct material *at) {
    struct view label = material_label(at);
    buf_printf(out, "%s%s %.*s%s", buf_len(out) ? ", " : "", place_name(at->place), VIEW_ARG(label),
               label.n == LABEL_MAX ? "..." : "");
}

/* Which of the sandbox's own credentials it carries, each once. */
static void put_carried(struct record *r, const struct materials *m) {
    struct buf names;
    buf_init(&names, LANE_HEAD_MAX);
    for (size_t i = 0; i < m->n; i++) {
        const struct material *at = &m->at[i];
        bool again = at->origin != ORIGIN_OURS;
        for (size_t j = 0; j < i && !again; j++)
            again =
                m->at[j].origin == ORIGIN_OURS && view_equal(m->at[j].credential, at->credential);
        if (!again)
            buf_printf(&names, "%s%.*s", buf_len(&names) ? ", " : "", VIEW_ARG(at->credential));
    }
    record_text(r, FIELD_CREDENTIAL, buf_view(&names));
    buf_free(&names);
}

/* Place and salted fingerprint of each material that is not ours; of ours the place. */
static void put_materials(struct record *r, const struct lane *l, const struct materials *m) {
    struct buf theirs, ours;
    uint8_t digest[DIGEST_SIZE];
    buf_init(&theirs, LANE_HEAD_MAX);
    buf_init(&ours, LANE_HEAD_MAX);
    for (size_t i = 0; i < m->n; i++) {
        const struct material *at = &m->at[i];
        char mark[9];
        put_material_place(at->origin == ORIGIN_OURS ? &ours : &theirs, at);
        if (at->origin == ORIGIN_OURS)
            continue;
        digest_hmac(view_of(l->salt, sizeof l->salt), at->token, digest);
        hex_encode(view_of(digest, 4), mark);
        buf_printf(&theirs, ":%s", mark);
    }
    record_text(r, FIELD_PLACE, buf_view(&ours));
    record_text(r, FIELD_MATERIAL, buf_view(&theirs));
    buf_free(&theirs);
    buf_free(&ours);
}

/*
 * What begins an authority and is no host with a port: the half of a login whose password goes on behind a '/' or '?'. Only behind
 * a scheme is a host with a port followed by a path.
 */
static bool is_half(struct view line, size_t from, size_t to) {
    struct view half = view_slice(line, from, to), rest = view_skip(half, view_find(half, ':') + 1);
    bool behind_scheme = view_ends(view_head(line, from), VIEW("//"));
    bool begins = from == 0 || line.p[from - 1] == ' ' || behind_scheme;
    bool is_port = rest.n == 0 || behind_scheme;
    for (size_t i = 0; i < rest.n; i++)
        is_port = is_port && is_digit(rest.p[i]);
    return begins && !is_port && half.p[0] != '[';
}

/* The last '@' from `at` on, before one of these; 0: there is none. */
static size_t last_at(struct view line, size_t at, const char *ends) {
    size_t last = 0;
    for (; at < line.n && !strchr(ends, line.p[at]); at++)
        if (line.p[at] == '@')
            last = at;
    return last;
}

/* Where what stands before an '@', as a user and password do before a host, begins; *end: of it. The end of line: nowhere. */
static size_t find_userinfo(struct view line, size_t *end) {
    size_t from = 0;
    *end = 0;
    for (size_t i = 0; i < line.n && *end <= from; i++) {
        if (line.p[i] == '@' && i > from) {
            *end = last_at(line, i, "/ ?");
        } else if (line.p[i] == '/' || line.p[i] == ' ' || line.p[i] == '?') {
            *end = is_half(line, from, i) ? last_at(line, i, " ") : 0;
            if (line.p[i] == '?')
                break;
            from = *end > from ? from : i + 1;
        }
    }
    if (*end > from)
        return from;
    return *end = line.n;
}

/* The first line of what has no canonical form: behind it there are credentials, and may be in its query and before its host. */
static void put_host_sent(struct record *r, struct view sent) {
    struct view line = view_head(sent, view_find(sent, '\r'));
    struct buf text;
    line = view_head(line, view_find(line, '\n'));
    size_t query = view_find(line, '?'), end = line.n;
    size_t from = is_telling(view_head(line, query)) ? 0 : find_userinfo(line, &end);
    buf_init(&text, LANE_HEAD_MAX);
    buf_put(&text, view_head(line, from < query ? from : query));
    if (from < line.n)
        buf_put_str(&text, "[credential]");
    if (end < query)
        buf_put(&text, view_slice(line, end, query));
    record_text(r, FIELD_HOST, buf_view(&text));
    buf_free(&text);
}

/* Who reads the record sees what a look-alike of another name looks like (HC-09). */
static void put_host(struct record *r, struct view host) {
    record_text(r, FIELD_HOST, host);
    if (view_search(host, VIEW("xn--")) == host.n)
        return;
    struct buf shown;
    buf_init(&shown, 4 * HOST_SIZE);
    if (punycode_show(host, &shown) && buf_ok(&shown))
        record_text(r, FIELD_UNICODE, buf_view(&shown));
    buf_free(&shown);
}

static void put_request(struct record *r, const struct lane *l, const struct trail *t) {
    record_text(r, FIELD_SANDBOX, t->sandbox);
    record_str(r, FIELD_DOOR, t->door);
    record_text(r, FIELD_CLIENT, t->client);
    record_text(r, FIELD_MEANT, t->meant);
    record_text(r, FIELD_METHOD, t->method);
    record_text(r, FIELD_SNI, t->sni);
    if (t->authority) {
        put_host(r, view_str(t->authority->host));
        if (!t->of_name) {
            record_str(r, FIELD_SCHEME, t->tls ? "https" : "http");
            record_number(r, FIELD_PORT, t->authority->port);
        }
    } else {
        put_host_sent(r, t->host_sent);
    }
    if (t->target)
        put_target(r, t);
    record_text(r, FIELD_ADDRESS, t->address);
    record_text(r, FIELD_ALIASES, t->aliases);
    record_text(r, FIELD_COUNTRY, t->country);
    record_text(r, FIELD_ASN, t->asn);
    record_text(r, FIELD_CLIENT_CERTIFICATE, t->client_certificate);
    record_number(r, FIELD_LANE, l->id);
    record_number(r, FIELD_GENERATION, t->generation);
}

/* Where nobody knows better: what the operator must mend. */
static struct view detail_of(const struct lane *l, const struct trail *t) {
    bool locked = t->verdict.reason == REASON_BROKER_UNAVAILABLE && l->now && l->now->locked;
    return locked && view_is_empty(t->detail)
               ? VIEW("the vault is locked: `exeat status` tells why")
               : t->detail;
}

/* The condition that failed, and why, as far as that is known. */
static void put_detail(struct record *r, const struct lane *l, const struct trail *t) {
    const struct verdict *v = &t->verdict;
    struct view detail = detail_of(l, t);
    struct buf text;
    buf_init(&text, RECORD_TEXT_MAX);
    if ((v->allow ? v->observed : v->reason) == REASON_OPERATION_NOT_ALLOWED)
        verdict_put_condition(v, &text);
    if (buf_len(&text) > 0 && detail.n > 0)
        buf_printf(&text, ": %.*s", VIEW_ARG(detail));
    record_text(r, FIELD_DETAIL, buf_len(&text) > 0 ? buf_view(&text) : detail);
    buf_free(&text);
}

static void put_verdict(struct record *r, const struct lane *l, const struct trail *t) {
    const struct verdict *v = &t->verdict;
    record_str(r, FIELD_VERDICT, v->allow ? "allow" : "deny");
    record_str(r, FIELD_REASON, reason_info(v->reason)->code);
    put_detail(r, l, t);
    put_rule(r, FIELD_RULE, &v->at);
    if (v->allow && v->observed != REASON_ALLOWED)
        record_str(r, FIELD_OBSERVED, reason_info(v->observed)->code);
    if (v->allow)
        put_grants(r, t);
    if (v->service)
        record_text(r, FIELD_SERVICE, service_name(v->service));
    if (v->operation)
        record_text(r, FIELD_OPERATION, operation_name(v->operation));
    if (v->allow && v->swap >= 0) {
        record_text(r, FIELD_CREDENTIAL, verdict_credential(v));
        record_str(r, FIELD_PLACE, place_name(verdict_place(v)->place));
    }
    if (!v->allow && t->materials) {
        put_carried(r, t->materials);
        put_materials(r, l, t->materials);
    }
}

/* ---- records ---- */

static int hand_over(struct lane *l) {
    if (l->now && l->now->unenforced)
        record_number(&l->record, FIELD_UNENFORCED, 1);
    int result = audit_stream_gather(&l->audit, &l->record, &l->newest_record);
    if (result != 0)
        log_warn("audit record could not be written: %s", err_text(result));
    return result;
}

bool trail_holds(const struct lane *l, const struct trail *t, bool durable) {
    return audit_stream_holds(&l->audit, t->number, durable);
}

int trail_decide(struct lane *l, struct trail *t, uint16_t status) {
    if (!l->audit.writer) {
        snprintf(t->id, sizeof t->id, "unrecorded");
        return ERR_CLOSED;
    }
    uint64_t mono = clock_mono();
    audit_id(l->audit.writer, t->id);
    record_begin(&l->record, RECORD_DECISION, clock_wall(), mono);
    record_str(&l->record, FIELD_ID, t->id);
    put_verdict(&l->record, l, t);
    put_request(&l->record, l, t);
    if (status)
        record_number(&l->record, FIELD_STATUS, status);
    if (t->started)
        record_number(&l->record, FIELD_US_JUDGE, (mono - t->started) / 1000);
    int result = hand_over(l);
    t->number = result == 0 ? l->newest_record : UINT64_MAX;
    return result;
}

int trail_again(struct lane *l, struct trail *t) {
    record_begin(&l->record, RECORD_EVENT, clock_wall(), clock_mono());
    record_str(&l->record, FIELD_ID, t->id);
    record_str(&l->record, FIELD_EVENT, "sent_again");
    record_str(&l->record, FIELD_DETAIL, "the connection used before did not carry it");
    put_request(&l->record, l, t);
    int result = hand_over(l);
    t->number = result == 0 ? l->newest_record : UINT64_MAX;
    return result;
}

void trail_end(struct lane *l, const char *id, const struct outcome *o) {
    record_begin(&l->record, RECORD_OUTCOME, clock_wall(), clock_mono());
    record_str(&l->record, FIELD_ID, id);
    if (o->reason != REASON_ALLOWED)
        record_str(&l->record, FIELD_REASON, reason_info(o->reason)->code);
    record_text(&l->record, FIELD_DETAIL, o->detail);
    if (o->status)
        record_number(&l->record, FIELD_STATUS, o->status);
    record_number(&l->record, FIELD_BYTES_OUT, o->bytes_out);
    record_number(&l->record, FIELD_BYTES_IN, o->bytes_in);
    if (o->masked)
        record_number(&l->record, FIELD_MASKED, o->masked);
    if (o->us_connect)
        record_number(&l->record, FIELD_US_CONNECT, o->us_connect);
    if (o->us_first)
        record_number(&l->record, FIELD_US_FIRST, o->us_first);
    record_number(&l->record, FIELD_US_TOTAL, o->us_total);
    /* Bytes have left already; a lost outcome stays visible as a decision that has none. */
    if (hand_over(l) != 0)
        log_warn("outcome of %s is not in the audit log", id);
}

void trail_suspended(struct lane *l, struct view sandbox, const char *credential,
                     const struct authority *authority) {
    record_begin(&l->record, RECORD_EVENT, clock_wall(), clock_mono());
    record_str(&l->record, FIELD_EVENT, "sandbox_suspended");
    record_str(&l->record, FIELD_REASON, reason_info(REASON_SANDBOX_SUSPENDED)->code);
    record_str(&l->record, FIELD_DETAIL,
               "answers held more parts of the credential than guard-fragments allows");
    record_text(&l->record, FIELD_SANDBOX, sandbox);
    record_str(&l->record, FIELD_HOST, authority->host);
    record_number(&l->record, FIELD_PORT, authority->port);
    record_str(&l->record, FIELD_CREDENTIAL, credential);
    record_number(&l->record, FIELD_LANE, l->id);
    log_warn("sandbox %.*s is suspended: %s gave back too many parts of %s", VIEW_ARG(sandbox),
             authority->host, credential);
    if (hand_over(l) != 0)
        log_warn("the suspension is not in the audit log");
}

/* ---- refusals without end ---- */

/* One sandbox of a shared lane cannot use up what the others' refusals may take of the log. */
struct refused {
    struct refused *next;
    struct view sandbox;  /* empty: who asked was not proved */
    struct bucket listed; /* refusals that may have a record of their own */
    uint64_t unlisted;    /* those that had none since the last event */
    uint8_t name[SANDBOX_NAME_MAX];
};

/* The list ends with the policy's sandboxes: a name is only here once it was proved. NULL: no memory. */
static struct refused *refused_of(struct lane *l, struct view sandbox) {
    struct refused *r = l->refused;
    while (r && !view_equal(r->sandbox, sandbox))
        r = r->next;
    if (r || sandbox.n > SANDBOX_NAME_MAX || !(r = calloc(1, sizeof *r)))
        return r;
    view_copy(sandbox, r->name);
    r->sandbox = view_of(r->name, sandbox.n);
    r->next = l->refused;
    return l->refused = r;
}

bool trail_lists(struct lane *l, struct trail *t) {
    struct refused *r = refused_of(l, t->sandbox);
    if (!l->now || !r ||
        bucket_take(&r->listed, loop_now(l->loop), 60 * lane_limit(l, LIMIT_REFUSALS)))
        return true;
    r->unlisted++;
    t->verdict = (struct verdict){.reason = REASON_RATE, .swap = -1};
    snprintf(t->id, sizeof t->id, "unlisted");
    return false;
}

static void record_unlisted(struct lane *l, struct refused *r) {
    char detail[64];
    snprintf(detail, sizeof detail, "%llu refusals", (unsigned long long)r->unlisted);
    record_begin(&l->record, RECORD_EVENT, clock_wall(), clock_mono());
    record_str(&l->record, FIELD_EVENT, "refusals_unlisted");
    record_str(&l->record, FIELD_REASON, reason_info(REASON_RATE)->code);
    record_str(&l->record, FIELD_DETAIL, detail);
    if (!view_is_empty(r->sandbox))
        record_text(&l->record, FIELD_SANDBOX, r->sandbox);
    record_number(&l->record, FIELD_LANE, l->id);
    if (hand_over(l) == 0)
        r->unlisted = 0;
}

void trail_sweep(struct lane *l) {
    for (struct refused *r = l->refused; r; r = r->next)
        if (r->unlisted > 0)
            record_unlisted(l, r);
}
