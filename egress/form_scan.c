#include "egress/form_scan.h"

#include <string.h>

static void begin(struct form_scan *s) {
    s->state = FORM_NAME;
    body_member_begin(&s->member);
}

void form_scan_init(struct form_scan *s) {
    memset(s, 0, sizeof *s);
    begin(s);
}

static bool is_separator(uint8_t c) {
    return c == '&' || c == ';';
}

/* Blanks and controls before a name are cut off by some servers. */
static enum body_step put(struct form_scan *s, uint32_t point, bool is_byte) {
    if (s->member.n_name == 0 && point <= ' ')
        return BODY_CLEAR;
    if (is_byte)
        body_member_put(&s->member, (uint8_t)point);
    else
        body_member_put_point(&s->member, point);
    return body_member_in_name(&s->member);
}

static enum body_step name_byte(struct form_scan *s, uint8_t c) {
    if (is_separator(c)) {
        begin(s);
        return BODY_CLEAR;
    }
    if (c == '=') {
        bool credential = body_member_is_credential(&s->member);
        s->state = credential ? FORM_CREDENTIAL : FORM_VALUE;
        return credential ? BODY_HOLD : BODY_CLEAR;
    }
    if (c == '%') {
        s->state = FORM_ESCAPE;
        s->escape[0] = c;
        s->n_escape = 1;
        return body_member_in_name(&s->member);
    }
    return put(s, c == '+' ? ' ' : c, true);
}

/* What was no encoding stands for itself. */
static enum body_step leave_escape(struct form_scan *s, uint8_t c) {
    s->state = FORM_NAME;
    for (size_t i = 0; i < s->n_escape; i++)
        if (put(s, s->escape[i], true) == BODY_BAD)
            return BODY_BAD;
    return name_byte(s, c);
}

static enum body_step escape_byte(struct form_scan *s, uint8_t c) {
    bool wide = s->escape[1] == 'u' && s->n_escape > 1;
    uint32_t point = 0;
    if (hex_value(c) < 0 && !(c == 'u' && s->n_escape == 1))
        return leave_escape(s, c);
    s->escape[s->n_escape++] = c;
    if (s->n_escape < (wide ? sizeof s->escape : 3))
        return body_member_in_name(&s->member);
    for (size_t i = wide ? 2 : 1; i < s->n_escape; i++)
        point = point << 4 | (uint32_t)hex_value(s->escape[i]);
    s->state = FORM_NAME;
    return put(s, point, !wide);
}

static enum body_step credential_byte(struct form_scan *s, uint8_t c) {
    /* At ';' a value ends for some servers only: to the others it is not empty. */
    if (c != '&')
        return body_member_put_value(&s->member, c) ? BODY_FOUND : BODY_HOLD;
    if (s->member.n_value > 0)
        return BODY_FOUND;
    begin(s);
    return BODY_CLEAR;
}

enum body_step form_scan_byte(struct form_scan *s, uint8_t c) {
    switch (s->state) {
    case FORM_NAME:
        return name_byte(s, c);
    case FORM_ESCAPE:
        return escape_byte(s, c);
    case FORM_CREDENTIAL:
        return credential_byte(s, c);
    default:
        if (is_separator(c))
            begin(s);
        return BODY_CLEAR;
    }
}

size_t form_scan_skip(const struct form_scan *s, struct view v) {
    size_t n = 0;
    bool long_name = s->state == FORM_NAME && s->member.too_long;
    if (s->state != FORM_VALUE && !long_name)
        return 0;
    while (n < v.n && !is_separator(v.p[n]) && !(long_name && v.p[n] == '='))
        n++;
    return n;
}

enum body_step form_scan_end(struct form_scan *s) {
    return s->state == FORM_CREDENTIAL && s->member.n_value > 0 ? BODY_FOUND : BODY_CLEAR;
}
