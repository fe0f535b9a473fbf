#include "egress/body_scan.h"

#include "base/secret.h"
#include "egress/form_scan.h"
#include "egress/json_scan.h"
#include "egress/multipart_scan.h"

#include <stdlib.h>

/* The body as one kind of server reads it. */
struct reading {
    enum body_kind kind;
    bool unsaid, over; /* it may turn out to be no such body; it has, and all of it is clear */
    uint64_t clear;
    size_t skipping;            /* bytes from here on that are known to change nothing */
    struct body_member *member; /* of the scan below */
    union {
        struct json_scan json;
        struct form_scan form;
        struct multipart_scan multipart;
    } of;
};

struct body_scan {
    enum body_step verdict;
    uint64_t seen;
    struct body_names names;
    const struct reading *final; /* whose the verdict is */
    size_t n;
    struct reading readings[2];
};

static int reading_init(struct reading *r, enum body_kind kind, struct view boundary) {
    r->kind = kind;
    switch (kind) {
    case BODY_JSON:
        json_scan_init(&r->of.json);
        r->member = &r->of.json.member;
        return 0;
    case BODY_FORM:
        form_scan_init(&r->of.form);
        r->member = &r->of.form.member;
        return 0;
    default:
        r->member = &r->of.multipart.member;
        return multipart_scan_init(&r->of.multipart, boundary);
    }
}

/* The names are looked for in all readings, and in JSON at all levels at which they may stand. */
static void watch(struct body_scan *s, const struct body_names *names) {
    if (names)
        s->names = *names;
    for (size_t i = 0; i < s->n; i++) {
        s->readings[i].member->names = &s->names;
        if (s->readings[i].kind == BODY_JSON && s->names.depth > JSON_WATCHED)
            s->readings[i].of.json.depth = s->names.depth;
    }
}

int body_scan_new(enum body_kind kind, struct view boundary, const struct body_names *names,
                  struct body_scan **out) {
    struct body_scan *s = calloc(1, sizeof *s);
    if (!s)
        return ERR_MEMORY;
    s->verdict = BODY_CLEAR;
    s->final = &s->readings[0];
    bool both = kind == BODY_JSON_OR_FORM, unsaid = kind == BODY_JSON_UNSAID;
    int result = reading_init(&s->readings[s->n++], both || unsaid ? BODY_JSON : kind, boundary);
    s->readings[0].unsaid = unsaid;
    if (result == 0 && both)
        result = reading_init(&s->readings[s->n++], BODY_FORM, boundary);
    if (result == 0) {
        watch(s, names);
        *out = s;
    } else {
        free(s);
    }
    return result;
}

void body_scan_free(struct body_scan *s) {
    if (s)
        secret_clear(s, sizeof *s);
    free(s);
}

static size_t skip(const struct reading *r, struct view v) {
    if (r->over)
        return v.n;
    switch (r->kind) {
    case BODY_JSON:
        return json_scan_skip(&r->of.json, v);
    case BODY_FORM:
        return form_scan_skip(&r->of.form, v);
    default:
        return multipart_scan_skip(&r->of.multipart, v);
    }
}

/* What is malformed and holds no member is not what it might have been. */
static enum body_step perhaps(struct reading *r, enum body_step now) {
    r->over = r->over || (now == BODY_BAD && r->unsaid && !r->of.json.named);
    return r->over ? BODY_CLEAR : now;
}

/*
 * What may stand before JSON; and in UTF-16 and UTF-32 the other bytes of an ASCII character. Without them a member is
 * found there as well, and what follows it is malformed.
 */
static bool is_between(const struct reading *r, uint8_t c) {
    bool begun = r->of.json.token.state != JSON_AT_START;
    return r->unsaid && !r->of.json.named &&
           (c == 0 || (!begun && media_type_lead(view_of(&c, 1)) == 1));
}

static enum body_step json_step(struct reading *r, uint8_t c) {
    const struct json_token *token = &r->of.json.token;
    if (is_between(r, c))
        return token->in_name && json_token_in_string(token) ? BODY_HOLD : BODY_CLEAR;
    return perhaps(r, json_scan_byte(&r->of.json, c));
}

static enum body_step step(struct reading *r, uint8_t c) {
    switch (r->kind) {
    case BODY_JSON:
        return json_step(r, c);
    case BODY_FORM:
        return form_scan_byte(&r->of.form, c);
    default:
        return multipart_scan_byte(&r->of.multipart, c);
    }
}

static enum body_step end(struct reading *r) {
    switch (r->kind) {
    case BODY_JSON:
        return perhaps(r, json_scan_end(&r->of.json));
    case BODY_FORM:
        return form_scan_end(&r->of.form);
    default:
        return multipart_scan_end(&r->of.multipart);
    }
}

/* Of two readings that end the scan at one byte, the one that found something counts. */
static void note(struct body_scan *s, const struct reading *r, enum body_step now) {
    if (now == BODY_FOUND || (now == BODY_BAD && s->verdict == BODY_CLEAR)) {
        s->verdict = now;
        s->final = r;
    }
}

/* How much of v changes nothing in any reading. */
static size_t skip_all(struct body_scan *s, struct view v) {
    size_t n = v.n;
    for (size_t i = 0; i < s->n; i++) {
        struct reading *r = &s->readings[i];
        if (r->skipping == 0)
            r->skipping = skip(r, v);
        n = r->skipping < n ? r->skipping : n;
    }
    if (n == 0)
        return 0;
    s->seen += n;
    for (size_t i = 0; i < s->n; i++) {
        s->readings[i].skipping -= n;
        s->readings[i].clear = s->seen;
    }
    return n;
}

static void feed_byte(struct body_scan *s, uint8_t c) {
    s->seen++;
    for (size_t i = 0; i < s->n; i++) {
        struct reading *r = &s->readings[i];
        bool skipped = r->skipping > 0;
        enum body_step now = skipped ? BODY_CLEAR : step(r, c);
        r->skipping -= skipped;
        if (now == BODY_CLEAR)
            r->clear = s->seen;
        else if (now == BODY_HOLD && s->seen - r->clear > BODY_HELD_MAX)
            now = body_bad(r->member, "a name is not followed by its value");
        note(s, r, now);
    }
}

enum body_step body_scan_feed(struct body_scan *s, struct view piece) {
    while (piece.n > 0 && s->verdict == BODY_CLEAR) {
        piece = view_skip(piece, skip_all(s, piece));
        if (piece.n == 0)
            break;
        feed_byte(s, piece.p[0]);
        piece = view_skip(piece, 1);
    }
    return s->verdict;
}

enum body_step body_scan_end(struct body_scan *s) {
    if (s->verdict != BODY_CLEAR)
        return s->verdict;
    for (size_t i = 0; i < s->n; i++) {
        enum body_step now = end(&s->readings[i]);
        if (now == BODY_CLEAR)
            s->readings[i].clear = s->seen;
        note(s, &s->readings[i], now);
    }
    return s->verdict;
}

uint64_t body_scan_clear(const struct body_scan *s) {
    uint64_t clear = s->readings[0].clear;
    if (s->n > 1 && s->readings[1].clear < clear)
        clear = s->readings[1].clear;
    return clear;
}

struct view body_scan_name(const struct body_scan *s) {
    return view_of(s->final->member->name, s->final->member->n_name);
}

struct view body_scan_value(const struct body_scan *s) {
    return view_of(s->final->member->value, s->final->member->n_value);
}

const char *body_scan_why(const struct body_scan *s) {
    return s->final->member->why;
}
