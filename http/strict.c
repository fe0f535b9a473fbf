#include "http/strict.h"

#include "base/eight.h"

#include <string.h>

/* ---- classes of bytes, computed by the compiler ---- */

enum { TCHAR = 1, UPPER = 2, TARGET = 4, AUTHORITY = 8, VALUE = 16 };

#define BETWEEN(c, a, b) ((c) >= (a) && (c) <= (b))
#define IS_ALNUM(c) (BETWEEN(c, '0', '9') || BETWEEN(c, 'a', 'z') || BETWEEN(c, 'A', 'Z'))
#define IS_TCHAR(c)                                                                                \
    (IS_ALNUM(c) || (c) == '!' || BETWEEN(c, '#', '\'') || (c) == '*' || (c) == '+' ||             \
     (c) == '-' || (c) == '.' || BETWEEN(c, '^', '`') || (c) == '|' || (c) == '~')
#define IS_TARGET(c) (BETWEEN(c, 0x21, 0x7e) && (c) != '#' && (c) != '\\')
#define IS_AUTHORITY(c)                                                                            \
    (IS_ALNUM(c) || (c) == '-' || (c) == '.' || (c) == '_' || (c) == ':' || (c) == '[' ||          \
     (c) == ']')
#define IS_VALUE(c) ((c) == '\t' || BETWEEN(c, 0x20, 0x7e) || (c) >= 0x80)

#define CLASS(c)                                                                                   \
    ((IS_TCHAR(c) ? TCHAR : 0) | (BETWEEN(c, 'A', 'Z') ? UPPER : 0) |                              \
     (IS_TARGET(c) ? TARGET : 0) | (IS_AUTHORITY(c) ? AUTHORITY : 0) | (IS_VALUE(c) ? VALUE : 0))
#define CLASS4(c) CLASS(c), CLASS((c) + 1), CLASS((c) + 2), CLASS((c) + 3)
#define CLASS16(c) CLASS4(c), CLASS4((c) + 4), CLASS4((c) + 8), CLASS4((c) + 12)
#define CLASS64(c) CLASS16(c), CLASS16((c) + 16), CLASS16((c) + 32), CLASS16((c) + 48)

static const uint8_t classes[256] = {CLASS64(0), CLASS64(64), CLASS64(128), CLASS64(192)};

/* How many bytes from p on, before end, are of a class. */
static size_t run_of(const uint8_t *p, size_t n, int class) {
    size_t i = 0;
    while (i < n && (classes[p[i]] & class))
        i++;
    return i;
}

/* The same for values, eight bytes at a time: most of a head is values. */
static size_t run_of_value(const uint8_t *p, size_t n) {
    size_t i = 0;
    while (n - i >= 8) {
        if (eight_control(eight_at(p + i))) {
            size_t part = run_of(p + i, 8, VALUE);
            if (part < 8)
                return i + part;
        }
        i += 8;
    }
    return i + run_of(p + i, n - i, VALUE);
}

static bool is_all(struct view v, int class) {
    return v.n > 0 && run_of(v.p, v.n, class) == v.n;
}

bool strict_is_token(struct view v) {
    return is_all(v, TCHAR);
}

bool strict_is_name(struct view v) {
    for (size_t i = 0; i < v.n; i++)
        if ((classes[v.p[i]] & (TCHAR | UPPER)) != TCHAR)
            return false;
    return v.n > 0;
}

bool strict_is_value(struct view v) {
    if (v.n == 0)
        return true;
    return v.p[0] != ' ' && v.p[0] != '\t' && v.p[v.n - 1] != ' ' && v.p[v.n - 1] != '\t' &&
           run_of_value(v.p, v.n) == v.n;
}

bool strict_is_target(struct view v) {
    return is_all(v, TARGET);
}

bool strict_is_authority(struct view v) {
    return is_all(v, AUTHORITY);
}

/* ---- heads ---- */

enum head_state {
    IN_METHOD,
    IN_TARGET,
    IN_VERSION,
    IN_STATUS,
    AFTER_STATUS,
    IN_REASON,
    IN_LINE_END,
    AT_FIELD,
    IN_NAME,
    IN_VALUE,
    IN_HEAD_END,
    HEAD_DONE,
};

void strict_head_init(struct strict_head *s, enum strict_kind kind, size_t max_bytes,
                      size_t max_target, size_t max_fields) {
    static const int first[] = {IN_METHOD, IN_STATUS, AT_FIELD};
    *s = (struct strict_head){.kind = kind,
                              .state = first[kind],
                              .max_bytes = max_bytes,
                              .max_target = max_target,
                              .max_fields = max_fields};
}

static int refuse(struct strict_head *s, uint16_t status, const char *why) {
    s->status = status;
    s->why = why;
    return ERR_BAD;
}

static int go(struct strict_head *s, enum head_state next) {
    s->state = (int)next;
    s->part = 0;
    return 0;
}

/* A run of one class from the current place on; false when the input ends within it. */
static bool pass_run(struct strict_head *s, struct view input, int class) {
    size_t n = class == VALUE ? run_of_value(input.p + s->at, input.n - s->at)
                              : run_of(input.p + s->at, input.n - s->at, class);
    s->at += n;
    s->part += n;
    return s->at < input.n;
}

/* The byte that must stand here, then the next state. */
static int pass_byte(struct strict_head *s, struct view input, uint8_t byte, enum head_state next,
                     const char *why) {
    if (input.p[s->at] != byte)
        return refuse(s, 400, why);
    s->at++;
    return go(s, next);
}

static int in_method(struct strict_head *s, struct view input) {
    bool ended = pass_run(s, input, TCHAR);
    if (s->part > METHOD_MAX)
        return refuse(s, 400, "the method is too long");
    if (!ended)
        return 0;
    if (s->part == 0)
        return refuse(s, 400, "the request line does not begin with a method");
    return pass_byte(s, input, ' ', IN_TARGET, "a byte that cannot be part of a method");
}

static int in_target(struct strict_head *s, struct view input) {
    bool ended = pass_run(s, input, TARGET);
    if (s->part > s->max_target)
        return refuse(s, 414, "the target is too long");
    if (!ended)
        return 0;
    if (s->part == 0)
        return refuse(s, 400, "the target is empty");
    return pass_byte(s, input, ' ', IN_VERSION, "a byte that cannot be part of a target");
}

/* 'v' stands for 0 or 1, 'd' for any digit. */
static bool fits(uint8_t c, char pattern) {
    if (pattern == 'v')
        return c == '0' || c == '1';
    if (pattern == 'd')
        return is_digit(c);
    return c == (uint8_t)pattern;
}

static int pass_pattern(struct strict_head *s, struct view input, const char *pattern,
                        enum head_state next, const char *why) {
    while (s->at < input.n && pattern[s->part]) {
        if (!fits(input.p[s->at], pattern[s->part]))
            return refuse(s, 400, why);
        s->at++;
        s->part++;
    }
    return pattern[s->part] ? 0 : go(s, next);
}

static int in_version(struct strict_head *s, struct view input) {
    return pass_pattern(s, input, "HTTP/1.v\r\n", AT_FIELD,
                        "the request line does not end with HTTP/1.0 or HTTP/1.1 and CRLF");
}

static int in_status(struct strict_head *s, struct view input) {
    return pass_pattern(s, input, "HTTP/1.v ddd", AFTER_STATUS,
                        "the status line is not HTTP/1.0 or HTTP/1.1 and three digits");
}

static int after_status(struct strict_head *s, struct view input) {
    if (input.p[s->at] == '\r')
        return pass_byte(s, input, '\r', IN_LINE_END, "");
    return pass_byte(s, input, ' ', IN_REASON, "no space after the status");
}

static int in_reason(struct strict_head *s, struct view input) {
    if (!pass_run(s, input, VALUE))
        return 0;
    return pass_byte(s, input, '\r', IN_LINE_END, "a control byte in the reason phrase");
}

static int in_line_end(struct strict_head *s, struct view input) {
    return pass_byte(s, input, '\n', AT_FIELD, "a CR without LF");
}

static int at_field(struct strict_head *s, struct view input) {
    uint8_t c = input.p[s->at];
    if (c == '\r')
        return pass_byte(s, input, '\r', IN_HEAD_END, "");
    if (c == ' ' || c == '\t')
        return refuse(s, 400, "a line that begins with a blank");
    if (!(classes[c] & TCHAR))
        return refuse(s, 400, "a field line without a name");
    if (s->fields == s->max_fields)
        return refuse(s, 431, "too many fields");
    s->fields++;
    return go(s, IN_NAME);
}

static int in_name(struct strict_head *s, struct view input) {
    if (!pass_run(s, input, TCHAR))
        return 0;
    return pass_byte(s, input, ':', IN_VALUE, "a byte that cannot be part of a field's name");
}

static int in_value(struct strict_head *s, struct view input) {
    if (!pass_run(s, input, VALUE))
        return 0;
    return pass_byte(s, input, '\r', IN_LINE_END, "a control byte in a field's value");
}

static int in_head_end(struct strict_head *s, struct view input) {
    return pass_byte(s, input, '\n', HEAD_DONE, "a CR without LF");
}

int strict_head_scan(struct strict_head *s, struct view input) {
    static int (*const steps[])(struct strict_head *, struct view) = {
        [IN_METHOD] = in_method,     [IN_TARGET] = in_target,       [IN_VERSION] = in_version,
        [IN_STATUS] = in_status,     [AFTER_STATUS] = after_status, [IN_REASON] = in_reason,
        [IN_LINE_END] = in_line_end, [AT_FIELD] = at_field,         [IN_NAME] = in_name,
        [IN_VALUE] = in_value,       [IN_HEAD_END] = in_head_end,
    };
    struct view within = view_head(input, s->max_bytes);
    if (input.n < s->at)
        return ERR_AGAIN;
    while (s->state != HEAD_DONE && s->at < within.n)
        if (steps[s->state](s, within) != 0)
            return ERR_BAD;
    if (s->state == HEAD_DONE)
        return 0;
    if (s->at == s->max_bytes)
        return refuse(s, 431,
                      s->kind == STRICT_TRAILERS ? "the trailers are too long"
                                                 : "the head is too long");
    return ERR_AGAIN;
}

bool strict_field(struct view *lines, struct view *name, struct view *value) {
    struct view line = view_cut(lines, '\n');
    if (line.n > 0 && line.p[line.n - 1] == '\r')
        line.n--;
    if (line.n == 0)
        return false;
    *name = view_cut(&line, ':');
    *value = view_trim(line);
    return true;
}

/* ---- chunks ---- */

enum {
    DIGITS_MAX = 16,
    EXTENSION_MAX = 256, /* of one chunk */
    LINES_FREE = 16,     /* chunk lines that each KiB of data may have for nothing */
    LINE_COST = 5,       /* the least that a chunk adds to its data: "1", CRLF, CRLF */
};

enum chunk_state {
    AT_SIZE,
    IN_SIZE,
    IN_EXTENSION,
    AT_EXTENSION_VALUE,
    IN_EXTENSION_TOKEN,
    IN_EXTENSION_QUOTED,
    AFTER_EXTENSION,
    AT_SIZE_LF,
    IN_DATA,
    AT_DATA_CR,
    AT_DATA_LF,
    CHUNKS_DONE,
};

void strict_chunks_init(struct strict_chunks *c, uint64_t max_overhead) {
    *c = (struct strict_chunks){.state = AT_SIZE, .max_overhead = max_overhead};
}

static int refuse_chunk(struct strict_chunks *c, const char *why) {
    c->why = why;
    return ERR_BAD;
}

static bool over_budget(const struct strict_chunks *c) {
    uint64_t lines_free = (c->data >> 10) * LINES_FREE;
    uint64_t lines = c->lines > lines_free ? c->lines - lines_free : 0;
    return c->extensions + lines * LINE_COST > c->max_overhead;
}

static int on_size(struct strict_chunks *c, uint8_t byte) {
    int digit = hex_value(byte);
    if (digit < 0)
        return refuse_chunk(c, "a chunk size that is not hexadecimal");
    if (c->digits == DIGITS_MAX || c->left > (uint64_t)INT64_MAX >> 4)
        return refuse_chunk(c, "a chunk size that is too long");
    c->left = c->left << 4 | (uint64_t)digit;
    c->digits++;
    c->state = IN_SIZE;
    return 0;
}

static int on_size_end(struct strict_chunks *c, uint8_t byte) {
    if (byte != '\r' && byte != ';')
        return on_size(c, byte);
    c->state = byte == '\r' ? AT_SIZE_LF : IN_EXTENSION;
    return 0;
}

/*
 * One extension: name, name=token or name="text" (RFC 9112 7.1.1). Several of them, and escapes in
 * a quoted text, are read by some parsers and not by others.
 */
static int extension_next(const struct strict_chunks *c, uint8_t byte) {
    bool token = classes[byte] & TCHAR, ends = byte == '\r';
    switch (c->state) {
    case IN_EXTENSION:
        if (c->extension > 0 && (ends || byte == '='))
            return ends ? AT_SIZE_LF : AT_EXTENSION_VALUE;
        return token ? IN_EXTENSION : -1;
    case AT_EXTENSION_VALUE:
        return byte == '"' ? IN_EXTENSION_QUOTED : token ? IN_EXTENSION_TOKEN : -1;
    case IN_EXTENSION_TOKEN:
        return ends ? AT_SIZE_LF : token ? IN_EXTENSION_TOKEN : -1;
    case IN_EXTENSION_QUOTED:
        if (byte == '"')
            return AFTER_EXTENSION;
        return (classes[byte] & VALUE) && byte < 0x80 && byte != '\\' ? IN_EXTENSION_QUOTED : -1;
    default:
        return ends ? AT_SIZE_LF : -1;
    }
}

static int on_extension(struct strict_chunks *c, uint8_t byte) {
    int next = extension_next(c, byte);
    if (next < 0)
        return refuse_chunk(c, "a chunk extension that is not one name with at most one value");
    c->state = next;
    if (next == AT_SIZE_LF)
        return 0;
    c->extension++;
    c->extensions++;
    if (c->extension > EXTENSION_MAX || over_budget(c))
        return refuse_chunk(c, "chunk extensions are too long");
    return 0;
}

static int on_size_lf(struct strict_chunks *c, uint8_t byte) {
    if (byte != '\n')
        return refuse_chunk(c, "a chunk line that does not end with CRLF");
    c->lines++;
    c->state = c->left ? IN_DATA : CHUNKS_DONE;
    if (c->left && over_budget(c))
        return refuse_chunk(c, "too many small chunks");
    return 0;
}

static int on_data_end(struct strict_chunks *c, uint8_t byte) {
    if (byte != (c->state == AT_DATA_CR ? '\r' : '\n'))
        return refuse_chunk(c, "a chunk that does not end with CRLF");
    c->state = c->state == AT_DATA_CR ? AT_DATA_LF : AT_SIZE;
    c->digits = 0;
    c->extension = 0;
    return 0;
}

static int on_chunk_byte(struct strict_chunks *c, uint8_t byte) {
    static int (*const steps[])(struct strict_chunks *, uint8_t) = {
        [AT_SIZE] = on_size,
        [IN_SIZE] = on_size_end,
        [IN_EXTENSION] = on_extension,
        [AT_EXTENSION_VALUE] = on_extension,
        [IN_EXTENSION_TOKEN] = on_extension,
        [IN_EXTENSION_QUOTED] = on_extension,
        [AFTER_EXTENSION] = on_extension,
        [AT_SIZE_LF] = on_size_lf,
        [AT_DATA_CR] = on_data_end,
        [AT_DATA_LF] = on_data_end,
    };
    return steps[c->state](c, byte);
}

enum strict_piece strict_chunks_next(struct strict_chunks *c, struct view input, size_t *used,
                                     struct view *data) {
    size_t i = 0;
    *data = (struct view){NULL, 0};
    *used = 0;
    while (i < input.n && c->state != IN_DATA && c->state != CHUNKS_DONE)
        if (on_chunk_byte(c, input.p[i++]) != 0)
            return STRICT_BAD;
    *used = i;
    if (c->state == CHUNKS_DONE)
        return STRICT_LAST;
    if (c->state != IN_DATA || i == input.n)
        return STRICT_MORE;
    *data = view_skip(input, i);
    if (data->n > c->left)
        *data = view_head(*data, (size_t)c->left);
    c->left -= data->n;
    c->data += data->n;
    *used = i + data->n;
    if (c->left == 0)
        c->state = AT_DATA_CR;
    return STRICT_DATA;
}
