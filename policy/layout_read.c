#include "policy/layout.h"
#include "policy/lexer.h"

struct source {
    struct lexer lexer;
    struct arena *arena;
    struct view comment; /* between the token that was taken last and the one in hand */
    struct view before;  /* the two words before the one in hand */
    struct view last;
    bool last_quoted, failed;
    /* the list being read */
    struct layout_word *item, **items;
    size_t end; /* of what was read of it */
};

/* ---- comments ---- */

static struct view cut_comment(struct view rest) {
    struct view line = view_head(rest, view_find(rest, '\n'));
    while (line.n > 0 &&
           (line.p[line.n - 1] == '\r' || line.p[line.n - 1] == ' ' || line.p[line.n - 1] == '\t'))
        line.n--;
    return line;
}

static struct view comment_at(struct view text, size_t at) {
    struct view rest = view_skip(text, at);
    while (rest.n > 0 && (rest.p[0] == ' ' || rest.p[0] == '\t'))
        rest = view_skip(rest, 1);
    return rest.n > 0 && rest.p[0] == '#' ? cut_comment(rest) : (struct view){NULL, 0};
}

static struct token take(struct source *s) {
    s->comment = comment_at(s->lexer.text, s->lexer.pos);
    return lexer_take(&s->lexer);
}

static void *make(struct source *s, size_t size) {
    void *p = arena_alloc(s->arena, size);
    s->failed = s->failed || !p;
    return p;
}

/* ---- lists ---- */

static struct layout_word *add_item(struct source *s) {
    struct layout_word *w = make(s, sizeof *w);
    if (w) {
        *s->items = w;
        s->items = &w->next;
    }
    return w;
}

/* The comments from s->end up to `to`: of the item before on its line, or of their own. */
static void take_list_comments(struct source *s, size_t to) {
    struct view text = s->lexer.text;
    bool same_line = s->item && s->item->comment.n == 0;
    for (size_t i = s->end; i < to; i++) {
        if (text.p[i] == '\n')
            same_line = false;
        if (text.p[i] != '#')
            continue;
        struct view comment = cut_comment(view_skip(text, i));
        struct layout_word *w = same_line ? s->item : add_item(s);
        if (w)
            w->comment = comment;
        i += view_find(view_skip(text, i), '\n') - 1;
    }
}

static int on_item(void *ctx, struct lexer *l, const struct token *t) {
    struct source *s = ctx;
    struct layout_word *before = s->item;
    take_list_comments(s, (size_t)(t->text.p - l->text.p) - t->quoted);
    s->end = l->pos;
    s->item = add_item(s);
    if (!s->item)
        return ERR_MEMORY;
    if (before)
        before->more = true;
    s->item->text = t->text;
    s->item->quoted = t->quoted;
    return 0;
}

/* Where the list ends: at the first ']' behind its last item that is not in a comment. */
static size_t find_close(const struct source *s) {
    struct view text = s->lexer.text;
    size_t i = s->end;
    while (i < text.n && text.p[i] != ']')
        i += text.p[i] == '#' ? view_find(view_skip(text, i), '\n') : 1;
    return i;
}

static void read_list(struct source *s, struct layout_word *w) {
    s->end = (size_t)(s->lexer.token.text.p - s->lexer.text.p) + 1;
    s->item = NULL;
    s->items = &w->items;
    w->list = true;
    if (lexer_list(&s->lexer, "an item", on_item, s) != 0)
        s->failed = true;
    size_t close = find_close(s);
    take_list_comments(s, close);
    s->comment = comment_at(s->lexer.text, close + 1);
}

bool layout_takes_list(struct view before, struct view last, bool last_quoted) {
    return !last_quoted && (view_equal(last, VIEW("in")) || view_equal(last, VIEW("jsonrpc")) ||
                            view_equal(before, VIEW("graphql")) || view_equal(before, VIEW("mcp")));
}

static bool at_list(const struct source *s) {
    return lexer_at_list(&s->lexer) && layout_takes_list(s->before, s->last, s->last_quoted);
}

/* ---- statements ---- */

static void read_word(struct source *s, struct layout_word *w) {
    if (at_list(s)) {
        read_list(s, w);
        return;
    }
    struct token t = take(s);
    w->text = t.text;
    w->quoted = t.quoted;
    s->before = s->last;
    s->last = t.text;
    s->last_quoted = t.quoted;
}

static void read_lines(struct source *s, struct layout_line **first);

static void read_statement(struct source *s, struct layout_line *line) {
    struct layout_word **end = &line->words;
    s->before = s->last = (struct view){NULL, 0};
    while (lexer_at(&s->lexer, TOKEN_WORD) && !s->failed) {
        struct layout_word *w = *end = make(s, sizeof *w);
        if (!w)
            return;
        end = &w->next;
        read_word(s, w);
    }
    line->last = s->lexer.token.at.line;
    line->comment = s->comment;
    if (!lexer_at(&s->lexer, TOKEN_OPEN))
        return;
    take(s);
    line->block = true;
    line->opening = s->comment;
    read_lines(s, &line->lines);
    line->last = s->lexer.token.at.line;
    take(s);
    line->comment = s->comment;
}

/* A line behind `last`, of the token in hand. */
static struct layout_line *add_line(struct source *s, struct layout_line *last,
                                    struct layout_line **first) {
    struct layout_line *line = make(s, sizeof *line);
    if (!line)
        return NULL;
    line->last = s->lexer.token.at.line;
    line->blank_before = last && line->last > last->last + 1;
    *(last ? &last->next : first) = line;
    return line;
}

/* A comment behind ';' is the statement's before it; any other stands alone. */
static struct layout_line *keep_comment(struct source *s, struct layout_line *last,
                                        struct layout_line **first) {
    uint32_t number = s->lexer.token.at.line;
    if (s->comment.n == 0)
        return last;
    if (last && last->last == number && last->comment.n == 0) {
        last->comment = s->comment;
        return last;
    }
    struct layout_line *line = add_line(s, last, first);
    if (line)
        line->comment = s->comment;
    return line;
}

/* Up to the end of the block or text, which stays in hand. */
static void read_lines(struct source *s, struct layout_line **first) {
    struct layout_line *last = *first;
    while (!lexer_at(&s->lexer, TOKEN_EOF) && !lexer_at(&s->lexer, TOKEN_CLOSE) && !s->failed) {
        if (lexer_at(&s->lexer, TOKEN_END)) {
            take(s);
            last = keep_comment(s, last, first);
        } else if ((last = add_line(s, last, first)) != NULL) {
            read_statement(s, last);
        }
    }
}

int layout_read(struct view text, const char *file, struct arena *arena, struct layout_line **out) {
    static struct policy_errors none;
    struct source s = {.arena = arena};
    *out = NULL;
    errors_reset(&none);
    lexer_init(&s.lexer, text, file, &none);
    s.lexer.international = true; /* where it may be was checked */
    s.comment = comment_at(text, 0);
    keep_comment(&s, NULL, out);
    read_lines(&s, out);
    return s.failed ? ERR_MEMORY : 0;
}
