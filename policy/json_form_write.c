#include "base/utf8.h"
#include "policy/json_form.h"
#include "policy/layout.h"

static void put_string(struct buf *out, struct view text) {
    buf_put_u8(out, '"');
    for (size_t i = 0; i < text.n; i++) {
        uint8_t c = text.p[i];
        if (c == '"' || c == '\\')
            buf_put_u8(out, '\\');
        if (c < 0x20)
            buf_printf(out, "\\u%04x", c);
        else
            buf_put_u8(out, c);
    }
    buf_put_u8(out, '"');
}

/* A member behind others of an object that has begun. */
static void put_note(struct buf *out, const char *name, struct view comment) {
    if (comment.n == 0)
        return;
    buf_printf(out, "%s\"%s\": ", view_ends(buf_view(out), VIEW("{")) ? "" : ", ", name);
    put_string(out, view_skip(comment, 1));
}

static void put_words(struct buf *out, const struct layout_word *words);

static void put_word(struct buf *out, const struct layout_word *w) {
    if (w->list) {
        put_words(out, w->items);
        return;
    }
    bool marked = w->quoted || w->comment.n > 0;
    if (marked)
        buf_put_str(out, "{");
    if (marked && w->text.n > 0)
        buf_put_str(out, w->quoted ? "\"quoted\": " : "\"word\": ");
    if (w->text.n > 0)
        put_string(out, w->text);
    put_note(out, "note", w->comment);
    if (marked)
        buf_put_str(out, "}");
}

static void put_words(struct buf *out, const struct layout_word *words) {
    buf_put_u8(out, '[');
    for (const struct layout_word *w = words; w; w = w->next) {
        put_word(out, w);
        buf_put_str(out, w->next ? ", " : "");
    }
    buf_put_u8(out, ']');
}

static void put_lines(struct buf *out, const struct layout_line *lines, unsigned depth) {
    buf_put_u8(out, '[');
    for (const struct layout_line *l = lines; l; l = l->next) {
        buf_printf(out, "\n%*s{", (int)depth, "");
        if (l->blank_before)
            buf_put_str(out, "\"space\": true");
        if (l->words) {
            buf_put_str(out, l->blank_before ? ", \"words\": " : "\"words\": ");
            put_words(out, l->words);
        }
        put_note(out, "note", l->comment);
        put_note(out, "block_note", l->opening);
        if (l->block) {
            buf_put_str(out, ", \"block\": ");
            put_lines(out, l->lines, depth + 1);
        }
        buf_put_str(out, l->next ? "}," : "}");
    }
    if (lines)
        buf_printf(out, "\n%*s", (int)depth - 1, "");
    buf_put_u8(out, ']');
}

/* Comments may have any bytes, texts of JSON not. */
static int check_utf8(struct view text, const char *file, struct policy_errors *errors) {
    struct utf8 u = {.due = 0};
    size_t i = 0;
    while (i < text.n && utf8_byte(&u, text.p[i]))
        i++;
    if (i == text.n && u.due == 0)
        return 0;
    errors_add(errors, errors_position(text, i, file), "this is not UTF-8, as JSON must be");
    return ERR_BAD;
}

/* Of the canonical layout, so that the same policy has the same form. */
int json_form_write(struct view text, const char *file, struct buf *out,
                    struct policy_errors *errors) {
    struct arena arena = {.chunks = NULL};
    struct layout_line *lines;
    struct buf formatted;
    buf_init(&formatted, JSON_FORM_MAX);
    int err = policy_format(text, file, &formatted, errors);
    if (err == 0)
        err = check_utf8(text, file, errors);
    if (err == 0)
        err = layout_read(buf_view(&formatted), file, &arena, &lines);
    if (err == 0) {
        buf_put_str(out, "{\"policy\": ");
        put_lines(out, lines, 1);
        buf_put_str(out, "}\n");
    }
    arena_free(&arena);
    buf_free(&formatted);
    return err != 0 || buf_ok(out) ? err : ERR_MEMORY;
}
