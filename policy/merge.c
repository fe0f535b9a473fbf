#include "policy/merge.h"

#include "policy/layout.h"
#include "policy/rules.h"

enum { STATEMENTS_SIZE_MAX = 1 << 16 };

int merge_read(struct merge *m, struct view text, const char *file, struct policy_errors *errors) {
    *m = (struct merge){.lines = NULL};
    int err = layout_check(text, file, errors);
    return err == 0 ? layout_read(text, file, &m->arena, &m->lines) : err;
}

void merge_free(struct merge *m) {
    arena_free(&m->arena);
}

static bool is_word(const struct layout_word *w, const char *text) {
    return w && !w->quoted && !w->list && view_equal(w->text, view_str(text));
}

static struct layout_line *find_block(const struct merge *m, const char *kind, struct view name) {
    struct layout_line *l = m->lines;
    while (l && !(l->block && is_word(l->words, kind) && l->words->next &&
                  view_equal(l->words->next->text, name)))
        l = l->next;
    return l;
}

/* Where the next line goes: behind the last that begins with this word, or that there is. */
static struct layout_line **find_end(struct layout_line **first, const struct layout_word *like) {
    struct layout_line **end = first, **last = NULL;
    for (; *end; end = &(*end)->next)
        if (like && (*end)->words && view_equal((*end)->words->text, like->text))
            last = &(*end)->next;
    return last ? last : end;
}

static void put_in(struct layout_line **at, struct layout_line *lines) {
    struct layout_line *rest = *at;
    *at = lines;
    *find_end(&lines, NULL) = rest;
}

int merge_add(struct merge *m, const char *kind, struct view name, struct view statements) {
    struct layout_line *block = kind ? find_block(m, kind, name) : NULL, *lines;
    if (kind && !block)
        return ERR_MISSING;
    struct view kept = arena_copy(&m->arena, statements);
    int err = kept.p ? layout_read(kept, "", &m->arena, &lines) : ERR_MEMORY;
    if (err == 0 && lines)
        put_in(block ? find_end(&block->lines, NULL) : find_end(&m->lines, lines->words), lines);
    return err;
}

/* ---- grants ---- */

static bool is_term(const struct layout_word *w) {
    bool found = false;
    for (size_t i = 0; grant_term(i) && !found; i++)
        found = is_word(w, grant_term(i));
    return found;
}

static bool is_grant(const struct layout_line *l, struct view service) {
    return is_word(l->words, "grant") && l->words->next &&
           view_equal(l->words->next->text, service);
}

static bool has_word(const struct layout_line *l, struct view operation) {
    const struct layout_word *w = l->words->next->next;
    while (w && !is_term(w) && !view_equal(w->text, operation))
        w = w->next;
    return w && !is_term(w);
}

/* The last operation of a line that has no term but its mode; of another one NULL. */
static struct layout_word *last_word(const struct layout_line *l) {
    struct layout_word *w = l->words;
    while (w->next && !is_term(w->next))
        w = w->next;
    const struct layout_word *mode = w->next;
    return !mode || (is_word(mode, "mode") && mode->next && !mode->next->next) ? w : NULL;
}

static int add_word(struct merge *m, struct layout_word *behind, struct view text) {
    struct layout_word *w = arena_alloc(&m->arena, sizeof *w);
    struct view kept = arena_copy(&m->arena, text);
    if (!w || !kept.p)
        return ERR_MEMORY;
    w->text = kept;
    w->next = behind->next;
    behind->next = w;
    return 0;
}

static int add_grant(struct merge *m, bool block, struct view sandbox, struct view service,
                     struct view operation) {
    struct buf b;
    buf_init(&b, STATEMENTS_SIZE_MAX);
    if (!block)
        buf_printf(&b, "sandbox %.*s {\n", VIEW_ARG(sandbox));
    buf_printf(&b, "grant %.*s %.*s\n", VIEW_ARG(service), VIEW_ARG(operation));
    if (!block)
        buf_put_str(&b, "}\n");
    int err =
        buf_ok(&b) ? merge_add(m, block ? "sandbox" : NULL, sandbox, buf_view(&b)) : ERR_LIMIT;
    buf_free(&b);
    return err;
}

int merge_grant(struct merge *m, struct view sandbox, struct view service, struct view operation) {
    const struct layout_line *block = find_block(m, "sandbox", sandbox);
    struct layout_word *last = NULL;
    for (const struct layout_line *l = block ? block->lines : NULL; l; l = l->next) {
        if (!is_grant(l, service))
            continue;
        if (is_word(l->words->next->next, "all") || has_word(l, operation))
            return 0;
        last = last ? last : last_word(l);
    }
    return last ? add_word(m, last, operation)
                : add_grant(m, block != NULL, sandbox, service, operation);
}

bool merge_has(const struct merge *m, const char *kind, struct view name) {
    return find_block(m, kind, name) != NULL;
}

void merge_print(const struct merge *m, struct buf *out) {
    layout_print(m->lines, out);
}
