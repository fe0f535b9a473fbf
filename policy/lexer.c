#include "policy/lexer.h"

#include <assert.h>
#include <stdio.h>

/* ---- bytes to tokens ---- */

static struct position here(const struct lexer *l) {
    return (struct position){l->file, l->line, (uint32_t)(l->pos - l->line_start) + 1};
}

static bool at_end(const struct lexer *l) {
    return l->pos >= l->text.n;
}

static uint8_t byte_at(const struct lexer *l, size_t ahead) {
    struct view rest = view_skip(l->text, l->pos + ahead);
    return rest.n ? rest.p[0] : 0;
}

static bool at_newline(const struct lexer *l) {
    return byte_at(l, 0) == '\n' || (byte_at(l, 0) == '\r' && byte_at(l, 1) == '\n');
}

static void skip_line(struct lexer *l) {
    l->pos += view_find(view_skip(l->text, l->pos), '\n');
}

/*
 * Characters that make a line look different from what it says: C1 controls,
 * marks that turn the direction of text, and line breaks that are not ours.
 */
static bool deceives(struct view v) {
    static const struct {
        uint8_t first[3], last[3];
        size_t n;
    } ranges[] = {
        {{0xc2, 0x80}, {0xc2, 0x9f}, 2},             /* C1 controls */
        {{0xd8, 0x9c}, {0xd8, 0x9c}, 2},             /* Arabic letter mark */
        {{0xe2, 0x80, 0x8b}, {0xe2, 0x80, 0x8f}, 3}, /* zero width, direction marks */
        {{0xe2, 0x80, 0xa8}, {0xe2, 0x80, 0xae}, 3}, /* separators, embeddings, overrides */
        {{0xe2, 0x81, 0xa6}, {0xe2, 0x81, 0xa9}, 3}, /* isolates */
    };
    for (size_t i = 0; i < sizeof ranges / sizeof ranges[0]; i++) {
        struct view c = view_head(v, ranges[i].n);
        if (c.n == ranges[i].n && view_compare(c, view_of(ranges[i].first, c.n)) >= 0 &&
            view_compare(c, view_of(ranges[i].last, c.n)) <= 0)
            return true;
    }
    return false;
}

static void skip_comment(struct lexer *l) {
    while (!at_end(l) && !at_newline(l)) {
        uint8_t c = byte_at(l, 0);
        if ((c < 0x20 && c != '\t') || c == 0x7f)
            errors_add(l->errors, here(l), "control character 0x%02x in a comment", c);
        else if (c >= 0x80 && deceives(view_skip(l->text, l->pos)))
            errors_add(l->errors, here(l),
                       "a character in this comment makes the line read differently");
        else {
            l->pos++;
            continue;
        }
        skip_line(l);
    }
}

static void skip_blanks(struct lexer *l) {
    while (byte_at(l, 0) == ' ' || byte_at(l, 0) == '\t')
        l->pos++;
    if (byte_at(l, 0) == '#')
        skip_comment(l);
}

static bool ends_word(const struct lexer *l, uint8_t c) {
    return c == ' ' || c == '\t' || c == '\n' || c == '\r' || c == ';' || c == '{' || c == '}' ||
           (l->in_list && (c == ',' || c == ']'));
}

/*
 * How many bytes at pos, inside a word that began at start, are the template of a path, `{name}` or `{name:int}`;
 * 0: none, the brace opens a block.
 */
static size_t template_at(const struct lexer *l, size_t start) {
    size_t n = 1;
    struct view before = view_slice(l->text, start, l->pos);
    if (byte_at(l, 0) != '{' || view_find(before, '/') == before.n)
        return 0;
    while (is_alnum(byte_at(l, n)) || byte_at(l, n) == '_' || byte_at(l, n) == '-' ||
           byte_at(l, n) == ':')
        n++;
    return byte_at(l, n) == '}' && n > 1 ? n + 1 : 0;
}

#define DECEPTION "a character in this word makes the line read differently"

static struct token bad_token(struct lexer *l) {
    skip_line(l);
    return (struct token){.kind = TOKEN_BAD, .at = here(l)};
}

static struct token read_quoted(struct lexer *l, uint8_t quote) {
    struct token t = {.kind = TOKEN_WORD, .quoted = true, .at = here(l)};
    size_t start = ++l->pos;
    for (; !at_end(l) && byte_at(l, 0) != quote; l->pos++) {
        uint8_t c = byte_at(l, 0);
        if (c >= 0x80 && l->international && !deceives(view_skip(l->text, l->pos)))
            continue;
        if (c < 0x20 || c >= 0x7f) {
            if (at_newline(l))
                errors_add(l->errors, here(l), "expected '%c' before the end of the line", quote);
            else if (c >= 0x80 && l->international)
                errors_add(l->errors, here(l), DECEPTION);
            else
                errors_add(l->errors, here(l), "byte 0x%02x in quotes, expected ASCII characters",
                           c);
            return bad_token(l);
        }
    }
    t.text = view_slice(l->text, start, l->pos);
    if (at_end(l))
        errors_add(l->errors, t.at, "these quotes are not closed");
    else if (t.text.n == 0)
        errors_add(l->errors, t.at, "an empty word");
    else if (l->pos++, !at_end(l) && !ends_word(l, byte_at(l, 0)) && byte_at(l, 0) != '#')
        errors_add(l->errors, here(l), "expected a blank behind the quotes");
    else
        return t;
    return bad_token(l);
}

/* Whether a quoted item of a list begins, which is read as a list only when the grammar asks for one. */
static bool begins_item(const struct lexer *l, size_t start) {
    uint8_t before = l->pos > start ? l->text.p[l->pos - 1] : 0;
    return byte_at(l, 0) == '"' && l->text.p[start] == '[' && (before == '[' || before == ',');
}

static struct token read_word(struct lexer *l) {
    struct token t = {.kind = TOKEN_WORD, .at = here(l)};
    size_t start = l->pos, skip;
    while (!at_end(l)) {
        uint8_t c = byte_at(l, 0);
        if ((skip = template_at(l, start)) > 0) {
            l->pos += skip;
            continue;
        }
        if (ends_word(l, c) || begins_item(l, start))
            break;
        if (c == '#')
            errors_add(l->errors, here(l), "'#' inside a word: a comment needs a blank before it");
        else if (c == '"')
            errors_add(l->errors, here(l), "'\"' inside a word: quotes enclose a whole word");
        else if (c >= 0x80 && l->international && deceives(view_skip(l->text, l->pos)))
            errors_add(l->errors, here(l), DECEPTION);
        else if (c <= 0x20 || c == 0x7f || (c >= 0x80 && !l->international))
            errors_add(l->errors, here(l), "byte 0x%02x, expected ASCII characters", c);
        else {
            l->pos++;
            continue;
        }
        return bad_token(l);
    }
    if (l->pos == start) { /* a CR without LF */
        errors_add(l->errors, here(l), "byte 0x%02x, expected ASCII characters", byte_at(l, 0));
        return bad_token(l);
    }
    t.text = view_slice(l->text, start, l->pos);
    return t;
}

static struct token read_token(struct lexer *l) {
    skip_blanks(l);
    struct token t = {.kind = TOKEN_EOF, .at = here(l)};
    if (at_end(l))
        return t;
    if (at_newline(l)) {
        t.kind = TOKEN_END;
        skip_line(l);
        l->line_start = ++l->pos;
        l->line++;
        return t;
    }
    switch (byte_at(l, 0)) {
    case ';':
        t.kind = TOKEN_END;
        break;
    case '{':
        t.kind = TOKEN_OPEN;
        break;
    case '}':
        t.kind = TOKEN_CLOSE;
        break;
    case '"':
    case '\'':
        return read_quoted(l, byte_at(l, 0));
    default:
        return read_word(l);
    }
    l->pos++;
    return t;
}

void lexer_init(struct lexer *l, struct view text, const char *file, struct policy_errors *errors) {
    *l = (struct lexer){.errors = errors, .file = file, .text = text, .line = 1};
    if (text.n > POLICY_TEXT_MAX) {
        errors_add(errors, here(l), "the text has %zu bytes, at most %d are read", text.n,
                   POLICY_TEXT_MAX);
        l->text = view_head(text, 0);
    }
    l->token = read_token(l);
}

/* ---- tokens ---- */

struct token lexer_take(struct lexer *l) {
    struct token t = l->token;
    l->token = read_token(l);
    return t;
}

bool lexer_at(const struct lexer *l, enum token_kind kind) {
    return l->token.kind == kind;
}

bool lexer_at_word(const struct lexer *l, const char *word) {
    return lexer_at(l, TOKEN_WORD) && !l->token.quoted && view_equal(l->token.text, view_str(word));
}

bool lexer_skip_word(struct lexer *l, const char *word) {
    if (!lexer_at_word(l, word))
        return false;
    lexer_take(l);
    return true;
}

int lexer_expected(struct lexer *l, const char *what) {
    static const char *const names[] = {[TOKEN_OPEN] = "'{'",
                                        [TOKEN_CLOSE] = "'}'",
                                        [TOKEN_END] = "the end of the statement",
                                        [TOKEN_EOF] = "the end of the file"};
    const struct token *t = &l->token;
    if (t->kind == TOKEN_WORD)
        errors_add(l->errors, t->at, "expected %s, not '%.*s'", what, WORD_ARG(t->text));
    else if (t->kind != TOKEN_BAD)
        errors_add(l->errors, t->at, "expected %s, not %s", what, names[t->kind]);
    return ERR_BAD;
}

int lexer_word(struct lexer *l, const char *what, struct token *out) {
    if (!lexer_at(l, TOKEN_WORD))
        return lexer_expected(l, what);
    *out = lexer_take(l);
    return 0;
}

int lexer_number(struct lexer *l, const char *what, uint64_t least, uint64_t most, uint64_t *out) {
    struct token t;
    if (lexer_word(l, what, &t) != 0)
        return ERR_BAD;
    if (view_number(t.text, most, out) == 0 && *out >= least)
        return 0;
    errors_add(l->errors, t.at, "expected %s of %llu to %llu, not '%.*s'", what,
               (unsigned long long)least, (unsigned long long)most, WORD_ARG(t.text));
    return ERR_BAD;
}

/* ---- lists ---- */

static void skip_list_blanks(struct lexer *l) {
    for (skip_blanks(l); at_newline(l); skip_blanks(l)) {
        skip_line(l);
        l->line_start = ++l->pos;
        l->line++;
    }
}

/* One item and what stands behind it; *more: another one follows. */
static int read_item(struct lexer *l, const char *what,
                     int (*item)(void *ctx, struct lexer *l, const struct token *t), void *ctx,
                     bool *more) {
    skip_list_blanks(l);
    if (at_end(l) || byte_at(l, 0) == ',' || byte_at(l, 0) == ']') {
        errors_add(l->errors, here(l), "expected %s", what);
        return ERR_BAD;
    }
    struct token t = l->token = read_token(l);
    if (t.kind != TOKEN_WORD)
        return lexer_expected(l, what);
    int err = item(ctx, l, &t);
    skip_list_blanks(l);
    uint8_t c = byte_at(l, 0);
    *more = c == ',';
    if (c == ',' || c == ']') {
        l->pos++;
        return err;
    }
    errors_add(l->errors, here(l), "expected ',' or ']'");
    return ERR_BAD;
}

bool lexer_at_list(const struct lexer *l) {
    return lexer_at(l, TOKEN_WORD) && !l->token.quoted && l->token.text.p[0] == '[';
}

int lexer_list(struct lexer *l, const char *what,
               int (*item)(void *ctx, struct lexer *l, const struct token *t), void *ctx) {
    if (!lexer_at_list(l))
        return lexer_expected(l, "'['");
    l->pos -= l->token.text.n - 1;
    l->in_list = true;
    bool more = true;
    int err = 0;
    while (err == 0 && more)
        err = read_item(l, what, item, ctx, &more);
    l->in_list = false;
    l->token = read_token(l);
    return err;
}

bool name_is_good(struct view v) {
    if (v.n == 0 || v.n > POLICY_NAME_MAX || !is_alnum(v.p[0]))
        return false;
    for (size_t i = 0; i < v.n; i++)
        if (!is_alnum(v.p[i]) && v.p[i] != '-' && v.p[i] != '_' && v.p[i] != '.')
            return false;
    return true;
}

int lexer_name(struct lexer *l, const char *what, struct token *out) {
    if (lexer_word(l, what, out) != 0)
        return ERR_BAD;
    if (name_is_good(out->text))
        return 0;
    errors_add(l->errors, out->at,
               "'%.*s' is no name: 1 to 64 letters, digits, '-', '_' and '.', beginning with a "
               "letter or digit",
               WORD_ARG(out->text));
    return ERR_BAD;
}

/* ---- statements ---- */

/* Up to the end of the statement, over whole blocks; leaves the end in hand. */
static void recover(struct lexer *l) {
    unsigned depth = 0;
    while (!lexer_at(l, TOKEN_EOF)) {
        if (depth == 0 && (lexer_at(l, TOKEN_END) || lexer_at(l, TOKEN_CLOSE)))
            return;
        if (lexer_at(l, TOKEN_OPEN))
            depth++;
        else if (lexer_at(l, TOKEN_CLOSE))
            depth--;
        lexer_take(l);
    }
}

static bool at_statement_end(const struct lexer *l) {
    return lexer_at(l, TOKEN_END) || lexer_at(l, TOKEN_CLOSE) || lexer_at(l, TOKEN_EOF);
}

struct block {
    const struct statement *table;
    size_t n;
    int (*read_line)(void *ctx, struct lexer *l); /* instead of a table */
    const char *inside;
    unsigned opened; /* the line of its '{' */
    void *ctx;
    struct position seen[STATEMENTS_MAX];
};

/* Where a '}' was forgotten. */
static bool begins_top_level(const struct lexer *l) {
    size_t i = 0;
    while (i < l->n_top && !lexer_at_word(l, l->top[i].word))
        i++;
    return i < l->n_top;
}

/* ": its words are a, b"; nothing when the word is one of them, in quotes. */
static void list_words(const struct lexer *l, const struct block *b, struct buf *out) {
    for (size_t i = 0; i < b->n; i++) {
        if (view_equal(l->token.text, view_str(b->table[i].word))) {
            buf_reset(out);
            return;
        }
        buf_printf(out, "%s%s",
                   i > 0      ? ", "
                   : b->n > 1 ? ": its words are "
                              : ": its word is ",
                   b->table[i].word);
    }
}

static int unknown_word(struct lexer *l, const struct block *b) {
    if (b->inside && begins_top_level(l)) {
        errors_add(l->errors, l->token.at,
                   "'%.*s' is no word of %s: is the '}' missing of the block opened in line %u?",
                   WORD_ARG(l->token.text), b->inside, b->opened);
        return ERR_BAD;
    }
    struct guess g = guess_of(l->token.text);
    for (size_t i = 0; i < b->n; i++)
        guess_offer(&g, view_str(b->table[i].word));
    struct buf words;
    buf_init(&words, 320);
    if (!*guess_text(&g))
        list_words(l, b, &words);
    errors_add(l->errors, l->token.at, "'%.*s' is no word of %s%s%.*s", WORD_ARG(l->token.text),
               b->inside ? b->inside : "this file", guess_text(&g), VIEW_ARG(buf_view(&words)));
    buf_free(&words);
    return ERR_BAD;
}

static int read_statement(struct lexer *l, struct block *b) {
    if (!lexer_at(l, TOKEN_WORD))
        return lexer_expected(l, "a statement");
    if (b->read_line)
        return b->read_line(b->ctx, l);
    size_t i = 0;
    while (i < b->n && !lexer_at_word(l, b->table[i].word))
        i++;
    if (i == b->n)
        return unknown_word(l, b);
    if ((b->table[i].use & STATEMENT_ONCE) && b->seen[i].line != 0) {
        errors_add(l->errors, l->token.at, "a second '%s' in %s, the first is in line %u",
                   b->table[i].word, b->inside ? b->inside : "this file", b->seen[i].line);
        return ERR_BAD;
    }
    l->international = b->table[i].use & STATEMENT_NAMES;
    struct token keyword = lexer_take(l);
    b->seen[i] = keyword.at;
    int err = b->table[i].read(b->ctx, l, &keyword);
    l->international = false;
    return err;
}

static int read_statements(struct lexer *l, struct block *b) {
    b->opened = l->token.at.line;
    if (b->inside && !lexer_at(l, TOKEN_OPEN))
        return lexer_expected(l, "'{'");
    if (b->inside)
        lexer_take(l);
    while (!lexer_at(l, TOKEN_EOF)) {
        if (lexer_at(l, TOKEN_END)) {
            lexer_take(l);
            continue;
        }
        if (lexer_at(l, TOKEN_CLOSE)) {
            struct token close = lexer_take(l);
            if (b->inside)
                return 0;
            errors_add(l->errors, close.at, "a '}' that closes no block");
            continue;
        }
        int err = read_statement(l, b);
        if (err == ERR_MEMORY)
            return err;
        if (err == 0 && !at_statement_end(l))
            lexer_expected(l, "the end of the statement (a new line or ';')");
        if (!at_statement_end(l))
            recover(l);
    }
    if (b->inside)
        errors_add(l->errors, l->token.at,
                   "expected '}' before the end of the file, for the block opened in line %u",
                   b->opened);
    return 0;
}

int statements_read(struct lexer *l, const struct statement *table, size_t n, const char *inside,
                    void *ctx) {
    assert(n <= STATEMENTS_MAX);
    struct block b = {.table = table, .n = n, .inside = inside, .ctx = ctx};
    if (!inside) {
        l->top = table;
        l->n_top = n;
    }
    return read_statements(l, &b);
}

int lines_read(struct lexer *l, int (*read)(void *ctx, struct lexer *l), const char *inside,
               void *ctx) {
    struct block b = {.read_line = read, .inside = inside, .ctx = ctx};
    return read_statements(l, &b);
}
