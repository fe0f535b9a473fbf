#include "policy/json_form.h"
#include "policy/json_place.h"
#include "policy/layout.h"

#include <stdio.h>
#include <string.h>

enum { POINTER_MAX = 400 };

static size_t offset_of(struct view text, const struct layout_word *w) {
    while (w->list || w->text.n == 0)
        w = w->list ? w->items : w->next;
    return (size_t)(w->text.p - text.p) - w->quoted;
}

static size_t offset_at(struct view text, struct position at) {
    struct view rest = text;
    for (uint32_t line = 1; line < at.line && rest.n > 0; line++)
        view_cut(&rest, '\n');
    return text.n - rest.n + at.column - 1;
}

/* The last of the words that begins at or before the offset. */
static void point_to_word(struct view text, const struct layout_word *words, size_t offset,
                          struct buf *out) {
    const struct layout_word *found = words;
    size_t i = 0, index = 0;
    for (const struct layout_word *w = words; w; w = w->next, i++)
        if ((w->list || w->text.n > 0) && offset_of(text, w) <= offset) {
            found = w;
            index = i;
        }
    buf_printf(out, "/%zu", index);
    if (found->list && offset > offset_of(text, found))
        point_to_word(text, found->items, offset, out);
}

static void point_to_line(struct view text, const struct layout_line *lines, size_t offset,
                          struct buf *out) {
    const struct layout_line *found = NULL;
    size_t i = 0, index = 0;
    for (const struct layout_line *l = lines; l; l = l->next, i++)
        if (l->words && offset_of(text, l->words) <= offset) {
            found = l;
            index = i;
        }
    if (!found)
        return;
    buf_printf(out, "/%zu", index);
    const struct layout_line *inner = found->lines;
    while (inner && !inner->words)
        inner = inner->next;
    bool inside = inner && offset_of(text, inner->words) <= offset;
    buf_put_str(out, inside ? "/block" : "/words");
    if (inside)
        point_to_line(text, found->lines, offset, out);
    else
        point_to_word(text, found->words, offset, out);
}

static void place(struct view json, struct view text, const struct layout_line *lines,
                  struct policy_error *e) {
    struct buf pointer, told;
    buf_init(&pointer, POINTER_MAX);
    buf_init(&told, sizeof e->text + POINTER_MAX + 2);
    buf_put_str(&pointer, "/policy");
    point_to_line(text, lines, offset_at(text, e->at), &pointer);
    buf_printf(&told, "%.*s: %s", VIEW_ARG(buf_view(&pointer)), e->text);
    snprintf(e->text, sizeof e->text, "%.*s", VIEW_ARG(buf_view(&told)));
    e->at = errors_position(json, json_place(json, buf_view(&pointer)), e->at.file);
    buf_free(&pointer);
    buf_free(&told);
}

void json_form_place(struct view json, const char *file, struct policy_errors *errors) {
    static struct policy_errors none;
    struct arena arena = {.chunks = NULL};
    struct layout_line *lines;
    struct buf text;
    errors_reset(&none);
    buf_init(&text, JSON_FORM_MAX);
    if (json_form_read(json, file, &text, &none) == 0 &&
        layout_read(buf_view(&text), file, &arena, &lines) == 0)
        for (size_t i = 0; i < errors->n; i++)
            if (strcmp(errors->at[i].at.file, file) == 0)
                place(json, buf_view(&text), lines, &errors->at[i]);
    arena_free(&arena);
    buf_free(&text);
}
