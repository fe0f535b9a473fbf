#include "policy/json_read.h"

#include <stdlib.h>

enum { SETS = 2 };

struct name {
    size_t at, n; /* in names */
};

struct level {
    bool object;
    size_t index;      /* array: of the next item */
    size_t first_name; /* object: where its names begin */
    size_t first_byte;
};

struct json_read {
    enum body_fault fault;
    struct json_token token;
    struct json_finds *sets[SETS];
    struct level levels[JSON_DEPTH];
    struct buf names; /* of open objects */
    struct name *name;
    size_t n_names, name_size;
    struct buf text; /* of values that were found */
    struct utf8 utf8;
    uint16_t high;        /* half of a surrogate pair that waits for the other; 0: none */
    struct buf *into;     /* where the string or number goes; NULL: nowhere */
    size_t kept_at;       /* where the value that is kept begins in text */
    size_t value_at;      /* depth of the value that is kept */
    size_t string_from;   /* of the string that is read: its first byte in the document */
    size_t fed, position; /* bytes; of the one that is read */
    enum body_type type, root;
    bool begun;
    size_t item;
};

struct json_read *json_read_new(struct json_finds *first, struct json_finds *second) {
    struct json_read *r = calloc(1, sizeof *r);
    if (!r)
        return NULL;
    json_token_init(&r->token);
    r->sets[0] = first;
    r->sets[1] = second;
    buf_init(&r->names, SIZE_MAX / 2);
    buf_init(&r->text, BODY_TEXT_MAX);
    return r;
}

void json_read_free(struct json_read *r) {
    if (!r)
        return;
    buf_free(&r->names);
    buf_free(&r->text);
    free(r->name);
    free(r);
}

void json_finds_free(struct json_finds *f) {
    json_paths_free(&f->paths);
    free(f->found);
    f->found = NULL;
    f->n = f->size = 0;
}

static void fail(struct json_read *r, enum body_fault f) {
    if (r->fault == BODY_FAULTLESS)
        r->fault = f;
}

/* ---- what is found ---- */

/* Room for one more object in a list that doubles; false at its maximum or without memory. */
static bool grow(void **list, size_t n, size_t *size, size_t max, size_t each) {
    if (n < *size)
        return true;
    size_t wanted = *size ? 2 * *size : 16;
    void *p = n < max ? realloc(*list, wanted * each) : NULL;
    if (!p)
        return false;
    *list = p;
    *size = wanted;
    return true;
}

bool json_finds_add(struct json_finds *f, const struct json_found *found) {
    void *list = f->found;
    if (!grow(&list, f->n, &f->size, BODY_VALUES_MAX, sizeof *f->found))
        return false;
    f->found = list;
    f->found[f->n++] = *found;
    return true;
}

/* The value at this depth is complete, as far as it is told; its text lies at the end. */
static void note(struct json_read *r, size_t depth, struct json_found value) {
    for (size_t i = 0; i < SETS; i++) {
        struct json_finds *set = r->sets[i];
        uint64_t alike, here = set ? json_paths_here(&set->paths, depth, &alike) : 0;
        for (; here != 0; here &= here - 1) {
            uint64_t bit = here & -here;
            struct json_found f = value;
            f.pointer = (uint16_t)__builtin_ctzll(here);
            f.alike = (alike & bit) != 0;
            f.item = r->item;
            if (set->bare & bit)
                f.n = 0;
            if (!json_finds_add(set, &f))
                fail(r, BODY_TOO_MANY);
        }
    }
}

/* Whether somebody asks for the text of the value at this depth. */
static bool is_kept(const struct json_read *r, size_t depth) {
    uint64_t alike;
    for (size_t i = 0; i < SETS; i++)
        if (r->sets[i] && (json_paths_here(&r->sets[i]->paths, depth, &alike) & ~r->sets[i]->bare))
            return true;
    return false;
}

/* ---- names ---- */

static struct view name_text(const struct buf *names, const struct name *n) {
    return view_slice(buf_view(names), n->at, n->at + n->n);
}

static int compare_names(const void *a, const void *b, void *names) {
    return view_compare(name_text(names, a), name_text(names, b));
}

/* Sorting keeps this cheap whatever the names are. */
static void close_object(struct json_read *r, const struct level *l) {
    size_t n = r->n_names - l->first_name;
    struct name *names = n > 0 ? r->name + l->first_name : NULL;
    if (n > 1)
        qsort_r(names, n, sizeof *names, compare_names, &r->names);
    for (size_t i = 1; i < n; i++)
        if (compare_names(&names[i - 1], &names[i], &r->names) == 0)
            fail(r, BODY_DUPLICATE);
    r->n_names = l->first_name;
    buf_truncate(&r->names, l->first_byte);
}

static void begin_name(struct json_read *r) {
    void *list = r->name;
    if (!grow(&list, r->n_names, &r->name_size, BODY_NAMES_MAX, sizeof *r->name)) {
        fail(r, BODY_TOO_MANY);
        return;
    }
    r->name = list;
    r->name[r->n_names++] = (struct name){buf_len(&r->names), 0};
    r->into = &r->names;
}

static void end_name(struct json_read *r) {
    struct name *n = &r->name[r->n_names - 1];
    n->n = buf_len(&r->names) - n->at;
    if (view_equal(name_text(&r->names, n), VIEW("__proto__")))
        fail(r, BODY_PROTOTYPE);
    for (size_t i = 0; i < SETS; i++)
        if (r->sets[i])
            json_paths_member(&r->sets[i]->paths, r->token.depth, name_text(&r->names, n));
    r->into = NULL;
}

/* ---- strings ---- */

static void put_byte(struct json_read *r, uint8_t c) {
    if (r->high != 0)
        fail(r, BODY_SURROGATE);
    if (!utf8_byte(&r->utf8, c))
        fail(r, BODY_NOT_UTF8);
    if (r->into)
        buf_put_u8(r->into, c);
}

static void put_plain(struct json_read *r, struct view v) {
    if (r->high != 0)
        fail(r, BODY_SURROGATE);
    for (size_t i = 0; i < v.n; i++)
        if ((v.p[i] >= 0x80 || r->utf8.due > 0) && !utf8_byte(&r->utf8, v.p[i]))
            fail(r, BODY_NOT_UTF8);
    if (r->into)
        buf_put(r->into, v);
}

static void put_unit(struct json_read *r, uint16_t unit) {
    bool low = unit >= 0xdc00 && unit <= 0xdfff;
    if (r->utf8.due > 0)
        fail(r, BODY_NOT_UTF8);
    if (low != (r->high != 0))
        fail(r, BODY_SURROGATE);
    uint32_t point = low ? 0x10000 + ((r->high - 0xd800u) << 10) + (unit - 0xdc00u) : unit;
    r->high = unit >= 0xd800 && unit <= 0xdbff ? unit : 0;
    if (!r->into || r->high != 0 || r->fault != BODY_FAULTLESS)
        return;
    if (unit == 0)
        fail(r, BODY_NUL);
    utf8_put(r->into, point);
}

static void end_string(struct json_read *r, bool name) {
    if (r->high != 0)
        fail(r, BODY_SURROGATE);
    if (r->utf8.due > 0)
        fail(r, BODY_NOT_UTF8);
    if (name)
        end_name(r);
    else if (r->into)
        note(r, r->value_at,
             (struct json_found){.type = BODY_STRING,
                                 .at = r->kept_at,
                                 .n = buf_len(&r->text) - r->kept_at,
                                 .from = r->string_from,
                                 .to = r->position});
    r->into = NULL;
}

/* ---- values ---- */

/* The value that begins stands in what is open at this depth. */
static void place_value(struct json_read *r, size_t depth) {
    if (depth == 0) {
        if (r->begun)
            fail(r, BODY_TRAILING);
        r->begun = true;
        return;
    }
    struct level *l = &r->levels[depth - 1];
    if (l->object)
        return;
    if (depth == 1)
        r->item = l->index;
    for (size_t i = 0; i < SETS; i++)
        if (r->sets[i])
            json_paths_item(&r->sets[i]->paths, depth, l->index);
    l->index++;
}

static void begin_value(struct json_read *r, enum body_type type) {
    size_t depth = r->token.depth;
    place_value(r, depth);
    if (depth == 0)
        r->root = type;
    r->type = type;
    r->value_at = depth;
    r->kept_at = buf_len(&r->text);
    r->string_from = r->position + 1; /* behind the quote */
    bool kept = type != BODY_NULL && is_kept(r, depth);
    r->into = kept ? &r->text : NULL;
    /* Of what is not kept only the type is told. */
    if (!kept)
        note(r, depth, (struct json_found){.type = type});
}

static void begin_word(struct json_read *r, uint8_t c) {
    begin_value(r, c == 'n' ? BODY_NULL : BODY_BOOLEAN);
    if (r->into)
        buf_put_u8(r->into, c);
}

static void end_scalar(struct json_read *r) {
    if (r->into)
        note(r, r->value_at,
             (struct json_found){
                 .type = r->type, .at = r->kept_at, .n = buf_len(&r->text) - r->kept_at});
    r->into = NULL;
}

static void open_level(struct json_read *r, bool object) {
    size_t depth = r->token.depth - 1;
    place_value(r, depth);
    if (depth == 0)
        r->root = object ? BODY_OBJECT : BODY_ARRAY;
    note(r, depth, (struct json_found){.type = object ? BODY_OBJECT : BODY_ARRAY});
    r->levels[depth] = (struct level){object, 0, r->n_names, buf_len(&r->names)};
}

static void close_level(struct json_read *r) {
    const struct level *l = &r->levels[r->token.depth];
    if (l->object)
        close_object(r, l);
}

/* ---- bytes ---- */

static void take(struct json_read *r, enum json_event e, uint8_t c, bool name) {
    switch (e) {
    case JSON_INSIDE:
        if (r->into && json_token_in_scalar(&r->token))
            buf_put_u8(r->into, c);
        return;
    case JSON_MARK:
        fail(r, BODY_MARKED);
        return;
    case JSON_OPEN_OBJECT:
    case JSON_OPEN_ARRAY:
        open_level(r, e == JSON_OPEN_OBJECT);
        return;
    case JSON_CLOSE:
        close_level(r);
        return;
    case JSON_BEGIN_NAME:
        begin_name(r);
        return;
    case JSON_BEGIN_STRING:
        begin_value(r, BODY_STRING);
        return;
    case JSON_BYTE:
        put_byte(r, c);
        return;
    case JSON_UNIT:
        put_unit(r, r->token.unit);
        return;
    case JSON_END_STRING:
        end_string(r, name);
        return;
    case JSON_BEGIN_NUMBER:
        begin_value(r, BODY_NUMBER);
        if (r->into)
            buf_put_u8(r->into, c);
        return;
    case JSON_BEGIN_WORD:
        begin_word(r, c);
        return;
    case JSON_END_WORD:
        if (r->into)
            buf_put_u8(r->into, c);
        end_scalar(r);
        return;
    case JSON_END_NUMBER:
        end_scalar(r);
        return;
    case JSON_MALFORMED:
        fail(r, BODY_MALFORMED);
        return;
    case JSON_TOO_DEEP:
        fail(r, BODY_TOO_DEEP);
        return;
    }
}

enum body_fault json_read_feed(struct json_read *r, struct view piece) {
    size_t i = 0, start = r->fed;
    r->fed += piece.n;
    while (i < piece.n && r->fault == BODY_FAULTLESS) {
        size_t plain = json_token_plain(&r->token, view_skip(piece, i));
        if (plain > 0)
            put_plain(r, view_slice(piece, i, i + plain));
        i += plain;
        if (i == piece.n)
            break;
        bool name = r->token.in_name;
        r->position = start + i;
        enum json_event e = json_token_byte(&r->token, piece.p[i]);
        take(r, e, piece.p[i], name);
        i += e != JSON_END_NUMBER;
        if (!buf_ok(&r->text) || !buf_ok(&r->names))
            fail(r, BODY_TOO_MANY);
    }
    return r->fault;
}

enum body_fault json_read_end(struct json_read *r) {
    if (r->fault != BODY_FAULTLESS)
        return r->fault;
    if (!json_token_may_end(&r->token))
        fail(r, BODY_CUT);
    else if (json_token_in_scalar(&r->token))
        end_scalar(r);
    return r->fault;
}

struct view json_read_text(const struct json_read *r, const struct json_found *f) {
    return view_slice(buf_view(&r->text), f->at, f->at + f->n);
}

enum body_type json_read_root(const struct json_read *r) {
    return r->root;
}
