#include "policy/layout.h"

enum { INDENT = 4, WIDTH = 100 };

static void indent(struct buf *out, unsigned depth) {
    for (unsigned i = 0; i < depth * INDENT; i++)
        buf_put_u8(out, ' ');
}

static void put_comment(struct buf *out, struct view comment) {
    if (comment.n > 0)
        buf_put_u8(out, ' ');
    buf_put(out, comment);
}

/* ---- words ---- */

static void put_text(struct buf *out, const struct layout_word *w) {
    uint8_t quote = view_find(w->text, '"') == w->text.n ? '"' : '\'';
    if (w->quoted)
        buf_put_u8(out, quote);
    buf_put(out, w->text);
    if (w->quoted)
        buf_put_u8(out, quote);
}

static void put_flat_list(struct buf *out, const struct layout_word *list) {
    buf_put_u8(out, '[');
    for (const struct layout_word *w = list->items; w; w = w->next) {
        put_text(out, w);
        if (w->more)
            buf_put_str(out, ", ");
    }
    buf_put_u8(out, ']');
}

/* One item a line. */
static void put_open_list(struct buf *out, const struct layout_word *list, unsigned depth) {
    buf_put_str(out, "[\n");
    for (const struct layout_word *w = list->items; w; w = w->next) {
        indent(out, depth + 1);
        bool item = w->text.n > 0;
        if (item)
            put_text(out, w);
        if (w->more)
            buf_put_u8(out, ',');
        if (item)
            put_comment(out, w->comment);
        else
            buf_put(out, w->comment);
        buf_put_u8(out, '\n');
    }
    indent(out, depth);
    buf_put_u8(out, ']');
}

static void put_words(struct buf *out, const struct layout_word *words, bool open, unsigned depth) {
    for (const struct layout_word *w = words; w; w = w->next) {
        if (w != words)
            buf_put_u8(out, ' ');
        if (!w->list)
            put_text(out, w);
        else if (open)
            put_open_list(out, w, depth);
        else
            put_flat_list(out, w);
    }
}

static bool has_list_comment(const struct layout_word *words) {
    for (const struct layout_word *w = words; w; w = w->next)
        for (const struct layout_word *i = w->items; i; i = i->next)
            if (i->comment.n > 0)
                return true;
    return false;
}

static size_t width_of(const struct layout_word *words) {
    struct buf flat;
    buf_init(&flat, POLICY_TEXT_MAX);
    put_words(&flat, words, false, 0);
    size_t n = buf_len(&flat);
    buf_free(&flat);
    return n;
}

/* ---- lines ---- */

static void put_flat_block(struct buf *out, const struct layout_line *lines) {
    buf_put_str(out, lines ? "{ " : "{}");
    for (const struct layout_line *l = lines; l; l = l->next) {
        put_words(out, l->words, false, 0);
        buf_put_str(out, l->next ? "; " : " }");
    }
}

static bool is_flat(const struct layout_line *l) {
    return l->words && !l->block && l->comment.n == 0 && !has_list_comment(l->words);
}

/* Whether the line with its block stands on one line: below the top level, where it fits and holds no comment. */
static bool fits(const struct layout_line *line, unsigned depth) {
    size_t n = depth * INDENT + width_of(line->words) + strlen(" { }");
    if (depth == 0 || line->opening.n > 0 || has_list_comment(line->words))
        return line->block && !line->lines && line->opening.n == 0;
    for (const struct layout_line *l = line->lines; l; l = l->next) {
        if (!is_flat(l))
            return false;
        n += width_of(l->words) + strlen("; ");
    }
    return n <= WIDTH;
}

static void put_lines(struct buf *out, const struct layout_line *lines, unsigned depth);

static void put_block(struct buf *out, const struct layout_line *line, unsigned depth) {
    buf_put_u8(out, ' ');
    if (fits(line, depth)) {
        put_flat_block(out, line->lines);
        return;
    }
    buf_put_u8(out, '{');
    put_comment(out, line->opening);
    buf_put_u8(out, '\n');
    put_lines(out, line->lines, depth + 1);
    indent(out, depth);
    buf_put_u8(out, '}');
}

static void put_line(struct buf *out, const struct layout_line *line, unsigned depth) {
    indent(out, depth);
    if (!line->words) {
        buf_put(out, line->comment);
        buf_put_u8(out, '\n');
        return;
    }
    bool wide = depth * INDENT + width_of(line->words) > WIDTH;
    put_words(out, line->words, wide || has_list_comment(line->words), depth);
    if (line->block)
        put_block(out, line, depth);
    put_comment(out, line->comment);
    buf_put_u8(out, '\n');
}

/* Blank lines stay, one at a time; and one stands behind each block of the top level. */
static void put_lines(struct buf *out, const struct layout_line *lines, unsigned depth) {
    const struct layout_line *last = NULL;
    for (const struct layout_line *l = lines; l; last = l, l = l->next) {
        if (last && (l->blank_before || (depth == 0 && last->block)))
            buf_put_u8(out, '\n');
        put_line(out, l, depth);
    }
}

void layout_print(const struct layout_line *lines, struct buf *out) {
    put_lines(out, lines, 0);
}
