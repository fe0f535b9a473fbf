#include "daemon/config_reader.h"

#include <inttypes.h>
#include <string.h>

/* What a suffix multiplies by, in the unit of the limit; 0 ends the table. */
struct suffix {
    const char *unit, *text;
    uint64_t factor, divisor;
};

static const struct suffix suffixes[] = {
    {"bytes", "K", UINT64_C(1) << 10, 1},
    {"bytes", "M", UINT64_C(1) << 20, 1},
    {"bytes", "G", UINT64_C(1) << 30, 1},
    {"bytes", "T", UINT64_C(1) << 40, 1},
    {"s", "ms", 1, 1000},
    {"s", "s", 1, 1},
    {"s", "m", 60, 1},
    {"s", "h", 3600, 1},
    {"ms", "ms", 1, 1},
    {"ms", "s", 1000, 1},
    {"days", "d", 1, 1},
};

static const struct suffix *find_suffix(const char *unit, struct view text) {
    static const struct suffix none = {"", "", 1, 1};
    if (text.n == 0)
        return &none;
    for (size_t i = 0; i < sizeof suffixes / sizeof suffixes[0]; i++)
        if (strcmp(suffixes[i].unit, unit) == 0 && view_equal(text, view_str(suffixes[i].text)))
            return &suffixes[i];
    return NULL;
}

/* ERR_BAD: no number of that unit. ERR_LIMIT: more than any limit. */
static int parse_value(struct view text, const char *unit, uint64_t *out) {
    size_t digits = 0;
    while (digits < text.n && is_digit(text.p[digits]))
        digits++;
    const struct suffix *s = find_suffix(unit, view_skip(text, digits));
    if (digits == 0 || !s)
        return ERR_BAD;
    int err = view_number(view_head(text, digits), UINT64_MAX / s->factor, out);
    if (err != 0)
        return err;
    *out *= s->factor;
    if (*out % s->divisor != 0)
        return ERR_BAD;
    *out /= s->divisor;
    return 0;
}

static int unknown_limit(struct lexer *l, const struct token *t) {
    struct guess g = guess_of(t->text);
    for (int i = 0; i < LIMIT_COUNT; i++)
        guess_offer(&g, view_str(limit_info((enum limit)i)->name));
    errors_add(l->errors, t->at, "there is no limit '%.*s'%s", WORD_ARG(t->text), guess_text(&g));
    return ERR_BAD;
}

static int bad_value(struct lexer *l, const struct token *t, const struct limit_info *info) {
    errors_add(l->errors, t->at, "%s is %" PRIu64 " to %" PRIu64 "%s%s, not '%.*s'", info->name,
               info->least, info->most, info->unit[0] ? " " : "", info->unit, WORD_ARG(t->text));
    return ERR_BAD;
}

int config_limit(void *source, struct lexer *l, const struct token *at) {
    struct config_source *s = source;
    struct token name, value;
    enum limit which;
    uint64_t number;
    if (lexer_word(l, "the name of a limit", &name) != 0)
        return ERR_BAD;
    if (limit_find(name.text, &which) != 0)
        return unknown_limit(l, &name);
    if (lexer_word(l, "a value", &value) != 0)
        return ERR_BAD;
    const struct limit_info *info = limit_info(which);
    if (parse_value(value.text, info->unit, &number) != 0 || number < info->least ||
        number > info->most)
        return bad_value(l, &value, info);
    if (s->limit_lines[which] != 0) {
        errors_add(l->errors, at->at, "the limit %s twice, the first is in line %u", info->name,
                   s->limit_lines[which]);
        return ERR_BAD;
    }
    s->limit_lines[which] = at->at.line;
    s->config->limits.v[which] = number;
    return 0;
}
