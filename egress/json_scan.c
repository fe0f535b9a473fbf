#include "egress/json_scan.h"

#include "policy/method.h"

#include <string.h>

void json_scan_init(struct json_scan *s) {
    memset(s, 0, sizeof *s);
    json_token_init(&s->token);
    s->depth = JSON_WATCHED;
}

static enum body_step malformed(struct json_scan *s) {
    return body_bad(&s->member, "malformed JSON");
}

/* Between two tokens. */
static enum body_step settled(const struct json_scan *s) {
    return s->credential ? BODY_HOLD : BODY_CLEAR;
}

/* After a byte of a credential's value, as it was sent. */
static enum body_step put_value(struct json_scan *s, uint8_t c) {
    return body_member_put_value(&s->member, c) ? BODY_FOUND : BODY_HOLD;
}

static enum body_step end_value(struct json_scan *s, bool found) {
    s->credential = false;
    return found ? BODY_FOUND : BODY_CLEAR;
}

/* ---- names ---- */

static enum body_step begin_name(struct json_scan *s) {
    s->watched = s->token.depth <= s->depth;
    if (!s->watched)
        return BODY_CLEAR;
    body_member_begin(&s->member);
    return BODY_HOLD;
}

/* Only the outermost object's members may be taken for the method. */
static bool counts(const struct json_scan *s) {
    struct view name = view_of(s->member.name, s->member.n_name);
    return body_member_is_credential(&s->member) &&
           (s->token.depth == 1 || !method_is_override_name(name));
}

static enum body_step end_name(struct json_scan *s) {
    const struct body_names *names = s->member.names;
    struct view name = view_of(s->member.name, s->member.n_name);
    s->credential = s->watched && counts(s);
    s->passes = s->credential && names && body_names_pass(names, name, s->token.depth);
    s->opened = false;
    s->named = true;
    return settled(s);
}

static enum body_step name_event(struct json_scan *s, enum json_event e, uint8_t c) {
    if (e == JSON_END_STRING)
        return end_name(s);
    if (!s->watched)
        return BODY_CLEAR;
    if (e == JSON_UNIT && s->token.unit == 0)
        return body_bad(&s->member, "NUL in a member's name");
    if (e == JSON_UNIT)
        body_member_put_point(&s->member, s->token.unit);
    else if (e == JSON_BYTE)
        body_member_put(&s->member, c);
    return body_member_in_name(&s->member);
}

/* ---- values ---- */

/* What c begins is a credential's value, or stands first in one that is an array or object. */
static enum body_step begin_value(struct json_scan *s, enum json_event e, uint8_t c) {
    if (s->opened) {
        put_value(s, c);
        return BODY_FOUND;
    }
    if (s->passes && e == JSON_OPEN_OBJECT)
        return end_value(s, false);
    s->opened = e == JSON_OPEN_OBJECT || e == JSON_OPEN_ARRAY;
    if (e == JSON_BEGIN_WORD && c != 't')
        s->credential = false; /* as if it were not there */
    else if (e != JSON_BEGIN_STRING)
        put_value(s, c);
    return settled(s);
}

static enum body_step credential_event(struct json_scan *s, enum json_event e, uint8_t c) {
    switch (e) {
    case JSON_OPEN_OBJECT:
    case JSON_OPEN_ARRAY:
    case JSON_BEGIN_NAME:
    case JSON_BEGIN_STRING:
    case JSON_BEGIN_NUMBER:
    case JSON_BEGIN_WORD:
        return begin_value(s, e, c);
    case JSON_CLOSE:
        return end_value(s, false);
    case JSON_END_STRING:
        return end_value(s, s->member.n_value > 0);
    case JSON_END_NUMBER:
        return end_value(s, true);
    case JSON_END_WORD:
        put_value(s, c);
        return end_value(s, true);
    default:
        if (json_token_in_string(&s->token) || json_token_in_scalar(&s->token))
            return put_value(s, c);
        return BODY_HOLD;
    }
}

enum body_step json_scan_byte(struct json_scan *s, uint8_t c) {
    bool in_name = s->token.in_name && json_token_in_string(&s->token);
    enum json_event e = json_token_byte(&s->token, c);
    if (e == JSON_MALFORMED)
        return malformed(s);
    if (e == JSON_TOO_DEEP)
        return body_bad(&s->member, "JSON is nested too deeply");
    if (in_name)
        return name_event(s, e, c);
    enum body_step step = BODY_CLEAR;
    if (s->credential)
        step = credential_event(s, e, c);
    else if (e == JSON_BEGIN_NAME)
        step = begin_name(s);
    return e == JSON_END_NUMBER && step == BODY_CLEAR ? json_scan_byte(s, c) : step;
}

size_t json_scan_skip(const struct json_scan *s, struct view v) {
    bool name = s->token.in_name && s->watched && !s->member.too_long;
    return s->credential || name ? 0 : json_token_plain(&s->token, v);
}

enum body_step json_scan_end(struct json_scan *s) {
    return json_token_may_end(&s->token) ? BODY_CLEAR : malformed(s);
}
