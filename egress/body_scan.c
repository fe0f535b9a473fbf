#include "egress/body_scan.h"

#include "egress/form_scan.h"
#include "egress/json_scan.h"
#include "egress/multipart_scan.h"

#include <stdlib.h>

struct body_scan {
    enum body_kind kind;
    enum body_step verdict;
    uint64_t seen, clear;
    struct body_member *member; /* of the scan below */
    union {
        struct json_scan json;
        struct form_scan form;
        struct multipart_scan multipart;
    } of;
};

int body_scan_new(enum body_kind kind, struct view boundary, struct body_scan **out) {
    struct body_scan *s = calloc(1, sizeof *s);
    if (!s)
        return ERR_MEMORY;
    s->kind = kind;
    s->verdict = BODY_CLEAR;
    int result = 0;
    if (kind == BODY_JSON) {
        json_scan_init(&s->of.json);
        s->member = &s->of.json.member;
    } else if (kind == BODY_FORM) {
        form_scan_init(&s->of.form);
        s->member = &s->of.form.member;
    } else {
        result = multipart_scan_init(&s->of.multipart, boundary);
        s->member = &s->of.multipart.member;
    }
    if (result == 0)
        *out = s;
    else
        free(s);
    return result;
}

void body_scan_free(struct body_scan *s) {
    free(s);
}

static size_t skip(const struct body_scan *s, struct view v) {
    switch (s->kind) {
    case BODY_JSON:
        return json_scan_skip(&s->of.json, v);
    case BODY_FORM:
        return form_scan_skip(&s->of.form, v);
    default:
        return multipart_scan_skip(&s->of.multipart, v);
    }
}

static enum body_step step(struct body_scan *s, uint8_t c) {
    switch (s->kind) {
    case BODY_JSON:
        return json_scan_byte(&s->of.json, c);
    case BODY_FORM:
        return form_scan_byte(&s->of.form, c);
    default:
        return multipart_scan_byte(&s->of.multipart, c);
    }
}

enum body_step body_scan_feed(struct body_scan *s, struct view piece) {
    size_t at = 0;
    while (at < piece.n && s->verdict == BODY_CLEAR) {
        size_t skipped = skip(s, view_skip(piece, at));
        at += skipped;
        s->seen += skipped;
        if (skipped > 0)
            s->clear = s->seen;
        if (at == piece.n)
            break;
        enum body_step now = step(s, piece.p[at++]);
        s->seen++;
        if (now == BODY_CLEAR)
            s->clear = s->seen;
        else if (now != BODY_HOLD)
            s->verdict = now;
        else if (s->seen - s->clear > BODY_HELD_MAX)
            s->verdict = body_bad(s->member, "a name is not followed by its value");
    }
    return s->verdict;
}

enum body_step body_scan_end(struct body_scan *s) {
    if (s->verdict != BODY_CLEAR)
        return s->verdict;
    if (s->kind == BODY_JSON)
        s->verdict = json_scan_end(&s->of.json);
    else if (s->kind == BODY_FORM)
        s->verdict = form_scan_end(&s->of.form);
    else
        s->verdict = multipart_scan_end(&s->of.multipart);
    if (s->verdict == BODY_CLEAR)
        s->clear = s->seen;
    return s->verdict;
}

uint64_t body_scan_clear(const struct body_scan *s) {
    return s->clear;
}

struct view body_scan_name(const struct body_scan *s) {
    return view_of(s->member->name, s->member->n_name);
}

struct view body_scan_value(const struct body_scan *s) {
    return view_of(s->member->value, s->member->n_value);
}

const char *body_scan_why(const struct body_scan *s) {
    return s->member->why;
}
