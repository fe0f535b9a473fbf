#include "policy/json_token.h"

#include <string.h>

void json_token_init(struct json_token *t) {
    memset(t, 0, sizeof *t);
    t->state = JSON_AT_START;
}

static bool is_space(uint8_t c) {
    return c == ' ' || c == '\t' || c == '\n' || c == '\r';
}

/* ---- levels ---- */

static enum json_event open_level(struct json_token *t, bool object) {
    if (t->depth == JSON_DEPTH)
        return JSON_TOO_DEEP;
    uint64_t bit = UINT64_C(1) << t->depth % 64, *word = &t->is_object[t->depth / 64];
    *word = object ? *word | bit : *word & ~bit;
    t->depth++;
    t->state = object ? JSON_FIRST_NAME : JSON_FIRST_ELEMENT;
    return object ? JSON_OPEN_OBJECT : JSON_OPEN_ARRAY;
}

static void end_value(struct json_token *t) {
    t->state = t->depth > 0 ? JSON_AFTER : JSON_BETWEEN;
}

static enum json_event close_level(struct json_token *t, bool object) {
    if (t->depth == 0 || json_token_in_object(t) != object)
        return JSON_MALFORMED;
    t->depth--;
    end_value(t);
    return JSON_CLOSE;
}

/* ---- strings ---- */

static enum json_event begin_string(struct json_token *t, bool name) {
    t->state = JSON_STRING;
    t->in_name = name;
    return name ? JSON_BEGIN_NAME : JSON_BEGIN_STRING;
}

static enum json_event string_byte(struct json_token *t, uint8_t c) {
    if (c < 0x20)
        return JSON_MALFORMED;
    if (c == '\\') {
        t->state = JSON_ESCAPE;
        return JSON_INSIDE;
    }
    if (c != '"')
        return JSON_BYTE;
    if (t->in_name)
        t->state = JSON_COLON;
    else
        end_value(t);
    return JSON_END_STRING;
}

static enum json_event end_escape(struct json_token *t, uint16_t unit) {
    t->state = JSON_STRING;
    t->unit = unit;
    return JSON_UNIT;
}

static enum json_event escape_byte(struct json_token *t, uint8_t c) {
    static const char from[] = "\"\\/bfnrt", to[] = "\"\\/\b\f\n\r\t";
    if (c == 'u') {
        t->state = JSON_HEX;
        t->n_hex = 0;
        t->unit = 0;
        return JSON_INSIDE;
    }
    const char *at = c ? strchr(from, c) : NULL;
    return at ? end_escape(t, (uint8_t)to[at - from]) : JSON_MALFORMED;
}

static enum json_event hex_byte(struct json_token *t, uint8_t c) {
    int digit = hex_value(c);
    if (digit < 0)
        return JSON_MALFORMED;
    t->unit = (uint16_t)(t->unit << 4 | digit);
    return ++t->n_hex < 4 ? JSON_INSIDE : end_escape(t, t->unit);
}

size_t json_token_plain(const struct json_token *t, struct view v) {
    size_t n = 0;
    if (t->state != JSON_STRING)
        return 0;
    while (n < v.n && v.p[n] >= 0x20 && v.p[n] != '"' && v.p[n] != '\\')
        n++;
    return n;
}

/* ---- numbers and words ---- */

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

static enum json_event number_byte(struct json_token *t, uint8_t c) {
    enum json_state next = number_next(t->state, c);
    if (next != JSON_BETWEEN) {
        t->state = next;
        return JSON_INSIDE;
    }
    /* "01" and "1x" are no numbers, but "1]" and "1 2" end one. */
    if (!number_may_end(t->state) || is_alnum(c) || c == '.' || c == '-' || c == '+')
        return JSON_MALFORMED;
    end_value(t);
    return JSON_END_NUMBER;
}

static enum json_event word_byte(struct json_token *t, uint8_t c) {
    if (c != (uint8_t)*t->word)
        return JSON_MALFORMED;
    if (*++t->word != 0)
        return JSON_INSIDE;
    end_value(t);
    return JSON_END_WORD;
}

/* ---- values ---- */

static enum json_event begin_word(struct json_token *t, const char *rest) {
    t->state = JSON_WORD;
    t->word = rest;
    return JSON_BEGIN_WORD;
}

static enum json_event begin_value(struct json_token *t, uint8_t c) {
    switch (c) {
    case '"':
        return begin_string(t, false);
    case '{':
        return open_level(t, true);
    case '[':
        return open_level(t, false);
    case 't':
        return begin_word(t, "rue");
    case 'f':
        return begin_word(t, "alse");
    case 'n':
        return begin_word(t, "ull");
    case '-':
        t->state = JSON_MINUS;
        return JSON_BEGIN_NUMBER;
    default:
        if (!is_digit(c))
            return JSON_MALFORMED;
        t->state = c == '0' ? JSON_ZERO : JSON_DIGITS;
        return JSON_BEGIN_NUMBER;
    }
}

static enum json_event after_byte(struct json_token *t, uint8_t c) {
    if (c == '}' || c == ']')
        return close_level(t, c == '}');
    if (c != ',')
        return JSON_MALFORMED;
    t->state = json_token_in_object(t) ? JSON_NAME : JSON_VALUE;
    return JSON_INSIDE;
}

static enum json_event mark_byte(struct json_token *t, uint8_t c) {
    if (c != (uint8_t) "\xef\xbb\xbf"[t->n_mark++])
        return JSON_MALFORMED;
    t->state = t->n_mark == 3 ? JSON_BETWEEN : JSON_IN_MARK;
    return JSON_MARK;
}

static enum json_event start_byte(struct json_token *t, uint8_t c) {
    if (c == 0xef)
        return mark_byte(t, c);
    t->state = JSON_BETWEEN;
    return json_token_byte(t, c);
}

/* Between tokens, c is not white space. */
static enum json_event token_byte(struct json_token *t, uint8_t c) {
    switch (t->state) {
    case JSON_BETWEEN:
    case JSON_VALUE:
        return begin_value(t, c);
    case JSON_FIRST_ELEMENT:
        return c == ']' ? close_level(t, false) : begin_value(t, c);
    case JSON_FIRST_NAME:
        if (c == '}')
            return close_level(t, true);
        return c == '"' ? begin_string(t, true) : JSON_MALFORMED;
    case JSON_NAME:
        return c == '"' ? begin_string(t, true) : JSON_MALFORMED;
    case JSON_COLON:
        t->state = JSON_VALUE;
        return c == ':' ? JSON_INSIDE : JSON_MALFORMED;
    default:
        return after_byte(t, c);
    }
}

enum json_event json_token_byte(struct json_token *t, uint8_t c) {
    switch (t->state) {
    case JSON_AT_START:
        return start_byte(t, c);
    case JSON_IN_MARK:
        return mark_byte(t, c);
    case JSON_STRING:
        return string_byte(t, c);
    case JSON_ESCAPE:
        return escape_byte(t, c);
    case JSON_HEX:
        return hex_byte(t, c);
    case JSON_WORD:
        return word_byte(t, c);
    case JSON_MINUS:
    case JSON_ZERO:
    case JSON_DIGITS:
    case JSON_POINT:
    case JSON_FRACTION:
    case JSON_EXPONENT:
    case JSON_EXPONENT_SIGN:
    case JSON_EXPONENT_DIGITS:
        return number_byte(t, c);
    default:
        return is_space(c) ? JSON_INSIDE : token_byte(t, c);
    }
}

bool json_token_may_end(const struct json_token *t) {
    bool number = t->depth == 0 && number_may_end(t->state);
    return t->state == JSON_AT_START || t->state == JSON_BETWEEN || number;
}
