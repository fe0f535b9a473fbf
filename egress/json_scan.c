#include "egress/json_scan.h"

#include "policy/method.h"

#include <string.h>

void json_scan_init(struct json_scan *s) {
    memset(s, 0, sizeof *s);
    s->state = JSON_START;
}

static bool is_space(uint8_t c) {
    return c == ' ' || c == '\t' || c == '\n' || c == '\r';
}

static bool in_object(const struct json_scan *s) {
    size_t level = s->depth - 1;
    return s->depth > 0 && (s->is_object[level / 64] >> level % 64 & 1);
}

static enum body_step malformed(struct json_scan *s) {
    return body_bad(&s->member, "malformed JSON");
}

/* Between two tokens. */
static enum body_step settled(const struct json_scan *s) {
    return s->credential ? BODY_HOLD : BODY_CLEAR;
}

/* ---- levels ---- */

static enum body_step open_level(struct json_scan *s, bool object) {
    if (s->depth == JSON_DEPTH)
        return body_bad(&s->member, "JSON is nested too deeply");
    uint64_t bit = UINT64_C(1) << s->depth % 64, *word = &s->is_object[s->depth / 64];
    *word = object ? *word | bit : *word & ~bit;
    s->depth++;
    s->state = object ? JSON_FIRST_NAME : JSON_FIRST_ELEMENT;
    return settled(s);
}

static void end_value(struct json_scan *s) {
    s->credential = false;
    s->state = s->depth > 0 ? JSON_AFTER : JSON_BETWEEN;
}

static enum body_step close_level(struct json_scan *s, bool object) {
    if (s->depth == 0 || in_object(s) != object)
        return malformed(s);
    s->depth--;
    end_value(s);
    return BODY_CLEAR;
}

/* ---- strings ---- */

static enum body_step begin_string(struct json_scan *s, bool name) {
    s->state = JSON_STRING;
    s->in_name = name;
    s->watched = name && s->depth <= JSON_WATCHED;
    if (s->watched)
        body_member_begin(&s->member);
    return s->watched || s->credential ? BODY_HOLD : BODY_CLEAR;
}

/* Only the outermost object's members may be taken for the method. */
static bool counts(const struct json_scan *s) {
    struct view name = view_of(s->member.name, s->member.n_name);
    return body_member_is_credential(&s->member) &&
           (s->depth == 1 || !method_is_override_name(name));
}

static enum body_step end_string(struct json_scan *s) {
    if (s->in_name) {
        s->credential = s->watched && counts(s);
        s->state = JSON_COLON;
        return settled(s);
    }
    bool found = s->credential && s->member.n_value > 0;
    end_value(s);
    return found ? BODY_FOUND : BODY_CLEAR;
}

/* After a byte inside of a string. */
static enum body_step inside(struct json_scan *s, uint8_t c) {
    if (!s->in_name && s->credential)
        return body_member_put_value(&s->member, c) ? BODY_FOUND : BODY_HOLD;
    return s->watched ? body_member_in_name(&s->member) : BODY_CLEAR;
}

static enum body_step put_name(struct json_scan *s, uint8_t c, uint32_t point) {
    if (s->watched && point == 0)
        return body_bad(&s->member, "NUL in a member's name");
    if (s->watched)
        body_member_put_point(&s->member, point);
    return inside(s, c);
}

static enum body_step string_byte(struct json_scan *s, uint8_t c) {
    if (c == '"')
        return end_string(s);
    if (c < 0x20)
        return malformed(s);
    if (c == '\\')
        s->state = JSON_ESCAPE;
    else if (s->watched)
        body_member_put(&s->member, c);
    return inside(s, c);
}

static enum body_step escape_byte(struct json_scan *s, uint8_t c) {
    static const char from[] = "\"\\/bfnrt", to[] = "\"\\/\b\f\n\r\t";
    if (c == 'u') {
        s->state = JSON_HEX;
        s->n_hex = 0;
        s->hex = 0;
        return inside(s, c);
    }
    const char *at = c ? strchr(from, c) : NULL;
    if (!at)
        return malformed(s);
    s->state = JSON_STRING;
    return put_name(s, c, (uint8_t)to[at - from]);
}

static enum body_step hex_byte(struct json_scan *s, uint8_t c) {
    int digit = hex_value(c);
    if (digit < 0)
        return malformed(s);
    s->hex = (uint16_t)(s->hex << 4 | digit);
    if (++s->n_hex < 4)
        return inside(s, c);
    s->state = JSON_STRING;
    return put_name(s, c, s->hex);
}

/* ---- numbers and words ---- */

/* After a byte of a number or word. */
static enum body_step value_byte(struct json_scan *s, uint8_t c) {
    if (!s->credential)
        return BODY_CLEAR;
    return body_member_put_value(&s->member, c) ? BODY_FOUND : BODY_HOLD;
}

static bool number_may_end(enum json_state state) {
    return state == JSON_ZERO || state == JSON_DIGITS || state == JSON_FRACTION ||
           state == JSON_EXPONENT_DIGITS;
}

/* The state after c, or JSON_BETWEEN when c is not part of the number. */
static enum json_state number_next(enum json_state state, uint8_t c) {
    bool digit = is_digit(c), exponent = c == 'e' || c == 'E';
    switch (state) {
    case JSON_MINUS:
        return c == '0' ? JSON_ZERO : digit ? JSON_DIGITS : JSON_BETWEEN;
    case JSON_DIGITS:
        if (digit)
            return JSON_DIGITS;
        return c == '.' ? JSON_POINT : exponent ? JSON_EXPONENT : JSON_BETWEEN;
    case JSON_ZERO:
        return c == '.' ? JSON_POINT : exponent ? JSON_EXPONENT : JSON_BETWEEN;
    case JSON_POINT:
        return digit ? JSON_FRACTION : JSON_BETWEEN;
    case JSON_FRACTION:
        return digit ? JSON_FRACTION : exponent ? JSON_EXPONENT : JSON_BETWEEN;
    case JSON_EXPONENT:
        if (c == '+' || c == '-')
            return JSON_EXPONENT_SIGN;
        return digit ? JSON_EXPONENT_DIGITS : JSON_BETWEEN;
    default:
        return digit ? JSON_EXPONENT_DIGITS : JSON_BETWEEN;
    }
}

static enum body_step number_byte(struct json_scan *s, uint8_t c) {
    enum json_state next = number_next(s->state, c);
    if (next != JSON_BETWEEN) {
        s->state = next;
        return value_byte(s, c);
    }
    /* "01" and "1x" are no numbers, but "1]" and "1 2" end one. */
    if (!number_may_end(s->state) || is_alnum(c) || c == '.' || c == '-' || c == '+')
        return malformed(s);
    if (s->credential)
        return BODY_FOUND;
    end_value(s);
    return json_scan_byte(s, c);
}

static enum body_step word_byte(struct json_scan *s, uint8_t c) {
    if (c != (uint8_t)*s->word)
        return malformed(s);
    enum body_step step = value_byte(s, c);
    if (*++s->word != 0)
        return step;
    step = s->credential ? BODY_FOUND : BODY_CLEAR;
    end_value(s);
    return step;
}

/* ---- values ---- */

static enum body_step begin_word(struct json_scan *s, const char *rest) {
    s->state = JSON_WORD;
    s->word = rest;
    return settled(s);
}

static enum body_step begin_value(struct json_scan *s, uint8_t c) {
    if (c == '"')
        return begin_string(s, false);
    if (c == 'f' || c == 'n')
        s->credential = false; /* as if it were not there */
    if (s->credential)
        body_member_put_value(&s->member, c);
    switch (c) {
    case '{':
        return open_level(s, true);
    case '[':
        return open_level(s, false);
    case 't':
        return begin_word(s, "rue");
    case 'f':
        return begin_word(s, "alse");
    case 'n':
        return begin_word(s, "ull");
    case '-':
        s->state = JSON_MINUS;
        return settled(s);
    default:
        if (!is_digit(c))
            return malformed(s);
        s->state = c == '0' ? JSON_ZERO : JSON_DIGITS;
        return settled(s);
    }
}

static enum body_step after_byte(struct json_scan *s, uint8_t c) {
    if (c == '}' || c == ']')
        return close_level(s, c == '}');
    if (c != ',')
        return malformed(s);
    s->state = in_object(s) ? JSON_NAME : JSON_VALUE;
    return BODY_CLEAR;
}

static enum body_step colon_byte(struct json_scan *s, uint8_t c) {
    if (c != ':')
        return malformed(s);
    s->state = JSON_VALUE;
    return settled(s);
}

/* A credential's array or object has something in it. */
static bool fills(const struct json_scan *s, uint8_t c) {
    return s->credential && ((s->state == JSON_FIRST_ELEMENT && c != ']') ||
                             (s->state == JSON_FIRST_NAME && c != '}'));
}

static enum body_step mark_byte(struct json_scan *s, uint8_t c) {
    if (c != (uint8_t) "\xef\xbb\xbf"[s->n_mark++])
        return malformed(s);
    if (s->n_mark == 3)
        s->state = JSON_BETWEEN;
    return BODY_CLEAR;
}

static enum body_step start_byte(struct json_scan *s, uint8_t c) {
    s->state = c == 0xef ? JSON_MARK : JSON_BETWEEN;
    return json_scan_byte(s, c);
}

/* Between tokens, c is not white space. */
static enum body_step token_byte(struct json_scan *s, uint8_t c) {
    if (fills(s, c)) {
        body_member_put_value(&s->member, c);
        return BODY_FOUND;
    }
    switch (s->state) {
    case JSON_BETWEEN:
    case JSON_VALUE:
        return begin_value(s, c);
    case JSON_FIRST_ELEMENT:
        return c == ']' ? close_level(s, false) : begin_value(s, c);
    case JSON_FIRST_NAME:
        if (c == '}')
            return close_level(s, true);
        return c == '"' ? begin_string(s, true) : malformed(s);
    case JSON_NAME:
        return c == '"' ? begin_string(s, true) : malformed(s);
    case JSON_COLON:
        return colon_byte(s, c);
    default:
        return after_byte(s, c);
    }
}

enum body_step json_scan_byte(struct json_scan *s, uint8_t c) {
    switch (s->state) {
    case JSON_START:
        return start_byte(s, c);
    case JSON_MARK:
        return mark_byte(s, c);
    case JSON_STRING:
        return string_byte(s, c);
    case JSON_ESCAPE:
        return escape_byte(s, c);
    case JSON_HEX:
        return hex_byte(s, c);
    case JSON_WORD:
        return word_byte(s, c);
    case JSON_MINUS:
    case JSON_ZERO:
    case JSON_DIGITS:
    case JSON_POINT:
    case JSON_FRACTION:
    case JSON_EXPONENT:
    case JSON_EXPONENT_SIGN:
    case JSON_EXPONENT_DIGITS:
        return number_byte(s, c);
    default:
        return is_space(c) ? settled(s) : token_byte(s, c);
    }
}

size_t json_scan_skip(const struct json_scan *s, struct view v) {
    size_t n = 0;
    if (s->state != JSON_STRING || s->credential || (s->watched && !s->member.too_long))
        return 0;
    while (n < v.n && v.p[n] >= 0x20 && v.p[n] != '"' && v.p[n] != '\\')
        n++;
    return n;
}

enum body_step json_scan_end(struct json_scan *s) {
    bool number = s->depth == 0 && number_may_end(s->state);
    return s->state == JSON_START || s->state == JSON_BETWEEN || number ? BODY_CLEAR : malformed(s);
}
