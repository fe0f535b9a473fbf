#include "policy/graphql_token.h"

/* ---- what is ignored ---- */

/* Behind '#'. False: a character that is not allowed, or at which some may take the line to end. */
static bool skip_comment(struct view *rest) {
    static const char *const ends[] = {"\xc2\x85", "\xe2\x80\xa8", "\xe2\x80\xa9"};
    size_t n = 0;
    while (n < rest->n && rest->p[n] != '\n' && rest->p[n] != '\r') {
        if ((rest->p[n] < 0x20 && rest->p[n] != '\t') || rest->p[n] == 0x7f)
            return false;
        n++;
    }
    struct view comment = view_head(*rest, n);
    for (size_t i = 0; i < sizeof ends / sizeof *ends; i++)
        if (view_search(comment, view_str(ends[i])) < n)
            return false;
    *rest = view_skip(*rest, n);
    return true;
}

static bool is_ignored(uint8_t c) {
    return c == ' ' || c == '\t' || c == '\n' || c == '\r' || c == ',';
}

static bool skip_ignored(struct view *rest) {
    while (rest->n > 0) {
        if (is_ignored(rest->p[0]))
            *rest = view_skip(*rest, 1);
        else if (view_starts(*rest, VIEW("\xef\xbb\xbf")))
            *rest = view_skip(*rest, 3);
        else if (rest->p[0] != '#')
            return true;
        else if (!skip_comment(rest))
            return false;
    }
    return true;
}

/* ---- tokens: how long the one is that v begins with; 0: it is none ---- */

static bool is_name_byte(uint8_t c) {
    return is_alnum(c) || c == '_';
}

static size_t name_length(struct view v) {
    size_t n = 0;
    while (n < v.n && is_name_byte(v.p[n]))
        n++;
    return n;
}

static size_t digits(struct view v, size_t from) {
    size_t n = from;
    while (n < v.n && is_digit(v.p[n]))
        n++;
    return n;
}

static bool at(struct view v, size_t i, const char *any) {
    return i < v.n && v.p[i] != 0 && strchr(any, v.p[i]);
}

/* IntValue and FloatValue (2.9.1, 2.9.2). */
static size_t number_length(struct view v) {
    size_t from = at(v, 0, "-"), n = digits(v, from);
    if (n == from || (v.p[from] == '0' && n > from + 1))
        return 0;
    if (at(v, n, ".")) {
        from = n + 1;
        n = digits(v, from);
        if (n == from)
            return 0;
    }
    if (at(v, n, "eE")) {
        from = n + 1 + at(v, n + 1, "+-");
        n = digits(v, from);
        if (n == from)
            return 0;
    }
    return n < v.n && (is_name_byte(v.p[n]) || v.p[n] == '.') ? 0 : n;
}

static size_t block_length(struct view v) {
    size_t n = 3;
    while (n < v.n) {
        struct view here = view_skip(v, n);
        if (view_starts(here, VIEW("\\\"\"\"")))
            n += 4;
        else if (view_starts(here, VIEW("\"\"\"")))
            return n + 3;
        else if ((v.p[n] < 0x20 && !is_ignored(v.p[n])) || v.p[n] == 0x7f)
            return 0;
        else
            n++;
    }
    return 0;
}

/* How long the escape is whose backslash v begins with; "\u{...}" is newer than most servers. */
static size_t escape_length(struct view v) {
    if (at(v, 1, "\"\\/bfnrt"))
        return 2;
    if (!at(v, 1, "u") || v.n < 6)
        return 0;
    for (size_t i = 2; i < 6; i++)
        if (hex_value(v.p[i]) < 0)
            return 0;
    return 6;
}

static size_t string_length(struct view v) {
    size_t n = 1;
    if (view_starts(v, VIEW("\"\"\"")))
        return block_length(v);
    while (n < v.n && v.p[n] != '"') {
        if ((v.p[n] < 0x20 && v.p[n] != '\t') || v.p[n] == 0x7f)
            return 0;
        size_t escape = v.p[n] == '\\' ? escape_length(view_skip(v, n)) : 1;
        if (escape == 0)
            return 0;
        n += escape;
    }
    return n < v.n ? n + 1 : 0;
}

static struct graphql_token token(enum graphql_token_kind kind, struct view *rest, size_t n) {
    struct graphql_token t = {n > 0 ? kind : GRAPHQL_WRONG, view_head(*rest, n)};
    *rest = view_skip(*rest, n);
    return t;
}

struct graphql_token graphql_token_take(struct view *rest) {
    if (!skip_ignored(rest))
        return token(GRAPHQL_WRONG, rest, 0);
    if (rest->n == 0)
        return (struct graphql_token){GRAPHQL_END, *rest};
    uint8_t c = rest->p[0];
    if (is_digit(c) || c == '-')
        return token(GRAPHQL_NUMBER, rest, number_length(*rest));
    if (is_name_byte(c))
        return token(GRAPHQL_NAME, rest, name_length(*rest));
    if (c == '"')
        return token(GRAPHQL_STRING, rest, string_length(*rest));
    if (c == '.')
        return token(GRAPHQL_SPREAD, rest, view_starts(*rest, VIEW("...")) ? 3 : 0);
    return token(GRAPHQL_SIGN, rest, at(*rest, 0, "!$&():=@[]{|}"));
}
