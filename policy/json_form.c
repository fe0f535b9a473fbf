#include "policy/json_form.h"

#include "policy/json_place.h"
#include "policy/layout.h"
#include "policy/lexer.h"

#include <jansson.h>
#include <stdio.h>
#include <string.h>

enum { POINTER_MAX = 400, BLOCKS_MAX = 16 };

bool json_form_is(struct view text) {
    while (text.n > 0 &&
           (text.p[0] == ' ' || text.p[0] == '\t' || text.p[0] == '\n' || text.p[0] == '\r'))
        text = view_skip(text, 1);
    return text.n > 0 && text.p[0] == '{';
}

/* ---- reading ---- */

struct form {
    struct arena arena;
    struct view json;
    const char *file;
    struct policy_errors *errors;
    char pointer[POINTER_MAX]; /* to the value being read */
    bool failed;               /* no memory */
    /* the two words before, for lists */
    const struct layout_word *last, *before;
};

static void fail(struct form *f, const char *what) {
    errors_add(f->errors,
               errors_position(f->json, json_place(f->json, view_str(f->pointer)), f->file),
               "%s%s%s", f->pointer, *f->pointer ? ": " : "", what);
}

static void *make(struct form *f, size_t size) {
    void *p = arena_alloc(&f->arena, size);
    f->failed = f->failed || !p;
    return p;
}

/* Goes to a part of the value being read; what leave_part needs to go back. */
static size_t enter_part(struct form *f, const char *name, size_t index) {
    size_t n = strlen(f->pointer);
    if (name)
        snprintf(f->pointer + n, sizeof f->pointer - n, "/%s", name);
    else
        snprintf(f->pointer + n, sizeof f->pointer - n, "/%zu", index);
    return n;
}

static void leave_part(struct form *f, size_t n) {
    f->pointer[n] = '\0';
}

/* Whether an object has these members only. */
static bool has_only(struct form *f, json_t *object, const char *const *names, size_t n) {
    const char *name;
    json_t *value;
    json_object_foreach(object, name, value) {
        size_t i = 0;
        while (i < n && strcmp(names[i], name) != 0)
            i++;
        if (i < n)
            continue;
        struct guess g = guess_of(view_str(name));
        char text[160];
        for (i = 0; i < n; i++)
            guess_offer(&g, view_str(names[i]));
        snprintf(text, sizeof text, "'%.40s' is no member of this%s", name, guess_text(&g));
        fail(f, text);
        return false;
    }
    return true;
}

static struct view text_of(json_t *value) {
    return json_is_string(value) ? view_of(json_string_value(value), json_string_length(value))
                                 : (struct view){NULL, 0};
}

/* A comment with its '#'. */
static bool read_note(struct form *f, json_t *object, const char *name, struct view *out) {
    json_t *value = json_object_get(object, name);
    struct view note = text_of(value);
    bool good = !value || json_is_string(value);
    for (size_t i = 0; i < note.n; i++)
        good = good && (note.p[i] >= 0x20 || note.p[i] == '\t') && note.p[i] != 0x7f;
    if (!good) {
        fail(f, "a note is a text without line ends and control characters");
        return false;
    }
    while (note.n > 0 && (note.p[note.n - 1] == ' ' || note.p[note.n - 1] == '\t'))
        note.n--;
    if (!value)
        return true;
    uint8_t *text = make(f, note.n + 1);
    if (!text)
        return false;
    text[0] = '#';
    view_copy(note, text + 1);
    *out = view_of(text, note.n + 1);
    return true;
}

/* ---- words ---- */

static bool is_bare(struct view text, bool item) {
    static struct policy_errors errors;
    struct lexer l;
    errors_reset(&errors);
    lexer_init(&l, view_head(text, 0), "", &errors);
    l.text = text;
    l.international = true;
    lexer_take(&l);
    struct token t = lexer_take(&l);
    bool whole =
        t.kind == TOKEN_WORD && !t.quoted && view_equal(t.text, text) && lexer_at(&l, TOKEN_EOF);
    return whole && errors.total == 0 &&
           !(item && (view_find(text, ',') < text.n || view_find(text, ']') < text.n));
}

static bool can_be_quoted(struct view text) {
    bool good = text.n > 0 && (view_find(text, '"') == text.n || view_find(text, '\'') == text.n);
    for (size_t i = 0; i < text.n; i++)
        good = good && text.p[i] >= 0x20 && text.p[i] < 0x7f;
    return good;
}

static bool set_text(struct form *f, struct layout_word *w, struct view text, bool quoted,
                     bool item) {
    w->text = text;
    w->quoted = quoted;
    if (quoted && !can_be_quoted(text))
        fail(f, "a quoted word is one or more visible ASCII characters and blanks, not with both "
                "kinds of quotes");
    else if (!quoted && !is_bare(text, item))
        fail(f, "this is no word; what has blanks or signs is written {\"quoted\": \"...\"}");
    else
        return true;
    return false;
}

/* An object: {"quoted": text} or {"word": text}, in a list with a note; there also a note alone. */
static bool read_marked(struct form *f, json_t *value, struct layout_word *w, bool item) {
    static const char *const names[] = {"quoted", "word", "note"};
    json_t *quoted = json_object_get(value, "quoted"), *word = json_object_get(value, "word");
    if (!has_only(f, value, names, item ? 3 : 2) || !read_note(f, value, "note", &w->comment))
        return false;
    if (quoted || word) {
        if (json_is_string(quoted ? quoted : word) && !(quoted && word))
            return set_text(f, w, text_of(quoted ? quoted : word), quoted != NULL, item);
    } else if (w->comment.n > 0) {
        return true;
    }
    fail(f, "expected {\"quoted\": text} or {\"word\": text}");
    return false;
}

static struct layout_word *read_word(struct form *f, json_t *value, bool item);

static bool read_items(struct form *f, json_t *list, struct layout_word *w) {
    struct layout_word **end = &w->items, *named = NULL;
    size_t i;
    json_t *value;
    w->list = true;
    json_array_foreach(list, i, value) {
        size_t mark = enter_part(f, NULL, i);
        struct layout_word *item = read_word(f, value, true);
        if (!item)
            return false;
        leave_part(f, mark);
        *end = item;
        end = &item->next;
        if (item->text.n == 0)
            continue;
        if (named)
            named->more = true;
        named = item;
    }
    if (!named)
        fail(f, "an empty list");
    return named != NULL;
}

static bool takes_list(const struct form *f) {
    struct view before = f->before ? f->before->text : (struct view){NULL, 0};
    return f->last && layout_takes_list(before, f->last->text, f->last->quoted);
}

/* NULL: an error was reported, or there is no memory. */
static struct layout_word *read_word(struct form *f, json_t *value, bool item) {
    struct layout_word *w = make(f, sizeof *w);
    bool list = !item && takes_list(f), good = false;
    if (!w)
        return NULL;
    if (json_is_string(value) && list && view_starts(text_of(value), VIEW("[")))
        fail(f, "a list is written as an array");
    else if (json_is_string(value))
        good = set_text(f, w, text_of(value), false, item);
    else if (json_is_object(value))
        good = read_marked(f, value, w, item);
    else if (json_is_array(value) && list)
        good = read_items(f, value, w);
    else
        fail(f, json_is_array(value) ? "no list stands here"
                                     : "expected a word: a text, or an object with one");
    return good ? w : NULL;
}

static bool read_words(struct form *f, json_t *words, struct layout_line *line) {
    struct layout_word **end = &line->words;
    size_t i, mark = enter_part(f, "words", 0);
    json_t *value;
    f->last = f->before = NULL;
    if (!json_is_array(words) || json_array_size(words) == 0) {
        fail(f, "expected an array of words");
        return false;
    }
    json_array_foreach(words, i, value) {
        size_t inner = enter_part(f, NULL, i);
        struct layout_word *w = read_word(f, value, false);
        if (!w)
            return false;
        leave_part(f, inner);
        *end = w;
        end = &w->next;
        f->before = f->last;
        f->last = w;
    }
    leave_part(f, mark);
    return true;
}

/* ---- statements ---- */

static bool read_lines(struct form *f, json_t *array, unsigned depth, struct layout_line **first);

static bool read_inside(struct form *f, json_t *block, unsigned depth, struct layout_line *line) {
    size_t mark = enter_part(f, "block", 0);
    line->block = true;
    if (!json_is_array(block) || depth == BLOCKS_MAX) {
        fail(f, "expected an array of statements, within at most 16 others");
        return false;
    }
    bool good = read_lines(f, block, depth, &line->lines);
    if (good)
        leave_part(f, mark);
    return good;
}

static bool read_line(struct form *f, json_t *value, unsigned depth, struct layout_line *line) {
    static const char *const names[] = {"words", "block", "note", "block_note", "space"};
    json_t *words = json_object_get(value, "words"), *block = json_object_get(value, "block"),
           *space = json_object_get(value, "space");
    if (!json_is_object(value)) {
        fail(f, "expected a statement: an object with words, or a note");
        return false;
    }
    if (!has_only(f, value, names, 5) || !read_note(f, value, "note", &line->comment) ||
        !read_note(f, value, "block_note", &line->opening))
        return false;
    line->blank_before = json_is_true(space);
    if ((space && !json_is_boolean(space)) || (!words && (block || line->comment.n == 0)) ||
        (!block && line->opening.n > 0)) {
        fail(f, "a statement has words, and perhaps a block, a note, a note of its block, and true "
                "or false for a space "
                "before it; a note may stand alone");
        return false;
    }
    return (!words || read_words(f, words, line)) &&
           (!block || read_inside(f, block, depth + 1, line));
}

/* The first error of each statement is reported. */
static bool read_lines(struct form *f, json_t *array, unsigned depth, struct layout_line **first) {
    size_t i;
    json_t *value;
    bool good = true;
    json_array_foreach(array, i, value) {
        struct layout_line *line = make(f, sizeof *line);
        size_t mark = enter_part(f, NULL, i);
        if (!line)
            return false;
        good = read_line(f, value, depth, line) && good;
        leave_part(f, mark);
        *first = line;
        first = &line->next;
    }
    return good;
}

static json_t *parse(struct form *f) {
    json_error_t error;
    json_t *document =
        json_loadb((const char *)f->json.p, f->json.n, JSON_REJECT_DUPLICATES, &error);
    if (!document)
        errors_add(f->errors,
                   (struct position){f->file, (uint32_t)(error.line > 0 ? error.line : 1),
                                     (uint32_t)(error.column > 0 ? error.column : 1)},
                   "JSON: %s", error.text);
    return document;
}

int json_form_read(struct view json, const char *file, struct buf *out,
                   struct policy_errors *errors) {
    static const char *const names[] = {"policy"};
    struct form f = {.json = json, .file = file, .errors = errors};
    struct layout_line *lines = NULL;
    json_t *document = parse(&f), *policy = json_object_get(document, "policy");
    bool good = document && has_only(&f, document, names, 1);
    if (good && !json_is_array(policy)) {
        good = false;
        fail(&f, "expected {\"policy\": [...]}, an array of statements");
    }
    if (good) {
        enter_part(&f, "policy", 0);
        good = read_lines(&f, policy, 0, &lines);
    }
    if (good)
        layout_print(lines, out);
    json_decref(document);
    arena_free(&f.arena);
    if (f.failed || (good && !buf_ok(out)))
        return ERR_MEMORY;
    return good ? 0 : ERR_BAD;
}
