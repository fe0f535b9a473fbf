#include "policy/reader.h"

#include <stdio.h>

int word_unknown(struct lexer *l, const struct token *t, const char *const *known, size_t n) {
    struct guess g = guess_of(t->text);
    char list[160] = "";
    for (size_t i = 0, at = 0; i < n && at < sizeof list; i++) {
        guess_offer(&g, view_str(known[i]));
        const char *between = i == 0 ? "" : i + 1 == n ? " or " : ", ";
        int put = snprintf(list + at, sizeof list - at, "%s'%s'", between, known[i]);
        at += put > 0 ? (size_t)put : 0;
    }
    errors_add(l->errors, t->at, "expected %s, not '%.*s'%s", list, WORD_ARG(t->text),
               guess_text(&g));
    return ERR_BAD;
}

int word_choose(struct lexer *l, const char *what, const char *const *known, size_t n,
                size_t *out) {
    struct token t;
    if (lexer_word(l, what, &t) != 0)
        return ERR_BAD;
    for (*out = 0; *out < n; (*out)++)
        if (!t.quoted && view_equal(t.text, view_str(known[*out])))
            return 0;
    return word_unknown(l, &t, known, n);
}

int word_lower(struct policy_source *s, struct lexer *l, const char *what, struct view *out) {
    struct token t;
    if (lexer_word(l, what, &t) != 0)
        return ERR_BAD;
    bool good = t.text.n <= POLICY_NAME_MAX;
    for (size_t i = 0; i < t.text.n; i++)
        good = good && is_tchar(t.text.p[i]);
    if (!good) {
        errors_add(l->errors, t.at, "expected %s, not '%.*s'", what, WORD_ARG(t.text));
        return ERR_BAD;
    }
    uint8_t *lower = arena_alloc(&s->policy->arena, t.text.n);
    if (!lower)
        return ERR_MEMORY;
    for (size_t i = 0; i < t.text.n; i++)
        lower[i] = to_lower(t.text.p[i]);
    *out = view_of(lower, t.text.n);
    return 0;
}

int word_size(struct lexer *l, const char *what, uint64_t *out) {
    static const struct {
        uint8_t letter;
        unsigned shift;
    } units[] = {{'K', 10}, {'M', 20}, {'G', 30}};
    struct token t;
    if (lexer_word(l, what, &t) != 0)
        return ERR_BAD;
    unsigned shift = 0;
    struct view digits = t.text;
    for (size_t i = 0; i < sizeof units / sizeof units[0]; i++)
        if (t.text.p[t.text.n - 1] == units[i].letter) {
            shift = units[i].shift;
            digits = view_head(t.text, t.text.n - 1);
        }
    if (view_number(digits, UINT64_C(1) << 32, out) == 0) {
        *out <<= shift;
        return 0;
    }
    errors_add(l->errors, t.at, "expected %s such as 4096, 16K or 1M, not '%.*s'", what,
               WORD_ARG(t.text));
    return ERR_BAD;
}

int word_mention(struct policy_source *s, struct lexer *l, const char *what,
                 struct mention ***end) {
    struct token t;
    if (lexer_name(l, what, &t) != 0)
        return ERR_BAD;
    struct mention *m = arena_alloc(&s->policy->arena, sizeof *m);
    if (!m)
        return ERR_MEMORY;
    *m = (struct mention){.name = t.text, .at = t.at};
    **end = m;
    *end = &m->next;
    return 0;
}

struct list {
    struct arena *arena;
    struct view *words;
    size_t n, room;
};

static int add_word(void *ctx, struct lexer *l, const struct token *t) {
    struct list *list = ctx;
    for (size_t i = 0; i < list->n; i++)
        if (view_equal(list->words[i], t->text)) {
            errors_add(l->errors, t->at, "'%.*s' twice in a list", WORD_ARG(t->text));
            return ERR_BAD;
        }
    if (list->n == VALUES_MAX) {
        errors_add(l->errors, t->at, "more than %d words in a list", VALUES_MAX);
        return ERR_BAD;
    }
    if (list->n == list->room) {
        list->room = list->room ? 2 * list->room : 4;
        struct view *more = arena_array(list->arena, list->room, sizeof *more);
        if (!more)
            return ERR_MEMORY;
        for (size_t i = 0; i < list->n; i++)
            more[i] = list->words[i];
        list->words = more;
    }
    list->words[list->n++] = t->text;
    return 0;
}

int word_list(struct policy_source *s, struct lexer *l, const char *what, struct view **out,
              size_t *n) {
    struct list list = {.arena = &s->policy->arena};
    int err = lexer_list(l, what, add_word, &list);
    *out = list.words;
    *n = list.n;
    return err;
}
