#include "policy/errors.h"

#include "policy/sort.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

enum { LINE_SHOWN = 160, GUESS_MAX = 32 };

void errors_add(struct policy_errors *e, struct position at, const char *format, ...) {
    e->total++;
    if (e->n == POLICY_ERRORS_MAX)
        return;
    struct policy_error *error = &e->at[e->n++];
    error->at = at;
    va_list args;
    va_start(args, format);
    vsnprintf(error->text, sizeof error->text, format, args);
    va_end(args);
}

const char *place_text(struct place_text *out, struct position at, struct position here) {
    if (at.file == here.file)
        snprintf(out->text, sizeof out->text, "line %u", at.line);
    else
        snprintf(out->text, sizeof out->text, "line %u of %.64s", at.line, at.file);
    return out->text;
}

struct position errors_position(struct view text, size_t offset, const char *file) {
    struct position at = {file, 1, 1};
    for (size_t i = 0; i < offset && i < text.n; i++) {
        at.column++;
        if (text.p[i] == '\n')
            at = (struct position){file, at.line + 1, 1};
    }
    return at;
}

void errors_reset(struct policy_errors *e) {
    e->n = e->total = e->n_names = 0;
}

static int compare_errors(const void *left, const void *right, const void *first) {
    const struct position *a = &((const struct policy_error *)left)->at;
    const struct position *b = &((const struct policy_error *)right)->at;
    if (a->file != b->file) {
        if (a->file == first || b->file == first)
            return a->file == first ? -1 : 1;
        return strcmp(a->file, b->file);
    }
    if (a->line != b->line)
        return a->line < b->line ? -1 : 1;
    return (a->column > b->column) - (a->column < b->column);
}

void errors_sort(struct policy_errors *e, const char *first) {
    sort_items(e->at, e->n, sizeof e->at[0], compare_errors, first);
}

static const char *keep_name(struct policy_errors *e, const char *name) {
    for (size_t i = 0; i < e->n_names; i += strlen(e->names + i) + 1)
        if (strcmp(e->names + i, name) == 0)
            return e->names + i;
    size_t n = strlen(name) + 1;
    if (n > sizeof e->names - e->n_names)
        return "(an included file)";
    char *copy = memcpy(e->names + e->n_names, name, n);
    e->n_names += n;
    return copy;
}

void errors_keep_names(struct policy_errors *e, const char *file) {
    for (size_t i = 0; i < e->n; i++)
        if (e->at[i].at.file != file)
            e->at[i].at.file = keep_name(e, e->at[i].at.file);
}

static struct view line_of(struct view text, uint32_t number) {
    struct view line = view_cut(&text, '\n');
    while (--number > 0 && text.n > 0)
        line = view_cut(&text, '\n');
    return number == 0 ? line : (struct view){NULL, 0};
}

void errors_show(const struct policy_error *e, struct view text, struct buf *out) {
    buf_printf(out, "%s:%u:%u: %s\n", e->at.file, e->at.line, e->at.column, e->text);
    struct view line = view_head(line_of(text, e->at.line), LINE_SHOWN);
    if (line.n == 0 || e->at.column == 0 || e->at.column > line.n + 1)
        return;
    buf_put_str(out, "    ");
    for (size_t i = 0; i < line.n && line.p[i] != '\r'; i++) {
        uint8_t c = line.p[i];
        buf_put_u8(out, c == '\t' || (c >= 0x20 && c < 0x7f) ? c : '?');
    }
    buf_put_str(out, "\n    ");
    for (size_t i = 0; i + 1 < e->at.column; i++)
        buf_put_u8(out, line.p[i] == '\t' ? '\t' : ' ');
    buf_put_str(out, "^\n");
}

/* ---- the nearest word ---- */

static size_t least(size_t a, size_t b) {
    return a < b ? a : b;
}

/* Edits between two short words: insert, remove, replace, swap of neighbours. */
static size_t edit_distance(struct view a, struct view b) {
    size_t rows[3][GUESS_MAX + 1];
    size_t *before = rows[0], *last = rows[1], *row = rows[2];
    for (size_t j = 0; j <= b.n; j++)
        last[j] = j;
    for (size_t i = 1; i <= a.n; i++) {
        row[0] = i;
        for (size_t j = 1; j <= b.n; j++) {
            size_t change = to_lower(a.p[i - 1]) != to_lower(b.p[j - 1]);
            row[j] = least(least(row[j - 1], last[j]) + 1, last[j - 1] + change);
            if (i > 1 && j > 1 && a.p[i - 1] == b.p[j - 2] && a.p[i - 2] == b.p[j - 1])
                row[j] = least(row[j], before[j - 2] + 1);
        }
        size_t *free_row = before;
        before = last;
        last = row;
        row = free_row;
    }
    return last[b.n];
}

struct guess guess_of(struct view word) {
    return (struct guess){.word = word, .distance = SIZE_MAX};
}

void guess_offer(struct guess *g, struct view known) {
    if (g->word.n == 0 || g->word.n > GUESS_MAX || known.n == 0 || known.n > GUESS_MAX)
        return;
    size_t distance = edit_distance(g->word, known);
    if (distance < g->distance) {
        g->distance = distance;
        g->best = known;
    }
}

void guess_offer_sandboxes(struct guess *g, const struct policy *p) {
    for (size_t i = 0; i < policy_sandboxes(p); i++)
        guess_offer(g, policy_sandbox_at(p, i));
}

const char *guess_text(struct guess *g) {
    size_t allowed = g->word.n < 5 ? 1 : 1 + g->word.n / 4;
    g->text[0] = '\0';
    if (g->distance <= allowed && g->distance < g->word.n)
        snprintf(g->text, sizeof g->text, ", did you mean '%.*s'?", VIEW_ARG(g->best));
    return g->text;
}
