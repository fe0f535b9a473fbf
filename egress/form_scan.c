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

static enum body_step put(struct form_scan *s, uint8_t c) {
    if (c == 0)
        return body_bad(&s->member, "NUL in a field's name");
    if (c != ' ' || s->member.n_name > 0)
        body_member_put(&s->member, c);
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
        s->state = FORM_NAME_HIGH;
        return body_member_in_name(&s->member);
    }
    return put(s, c == '+' ? ' ' : c);
}

static enum body_step hex_byte(struct form_scan *s, uint8_t c) {
    int digit = hex_value(c);
    if (digit < 0)
        return body_bad(&s->member, "a bad percent-encoding in a field's name");
    if (s->state == FORM_NAME_HIGH) {
        s->high = digit;
        s->state = FORM_NAME_LOW;
        return body_member_in_name(&s->member);
    }
    s->state = FORM_NAME;
    return put(s, (uint8_t)(s->high << 4 | digit));
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
    case FORM_NAME_HIGH:
    case FORM_NAME_LOW:
        return hex_byte(s, c);
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
    if (s->state != FORM_VALUE)
        return 0;
    while (n < v.n && !is_separator(v.p[n]))
        n++;
    return n;
}

enum body_step form_scan_end(struct form_scan *s) {
    if (s->state == FORM_NAME_HIGH || s->state == FORM_NAME_LOW)
        return body_bad(&s->member, "a bad percent-encoding in a field's name");
    return s->state == FORM_CREDENTIAL && s->member.n_value > 0 ? BODY_FOUND : BODY_CLEAR;
}
