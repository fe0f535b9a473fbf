#include "policy/json_path.h"

#include "policy/credential_name.h"

#include <stdlib.h>

/* ---- pointers ---- */

/* Decodes a token in its place. False: what stands behind '~' is neither 0 nor 1. */
static bool decode(uint8_t *p, size_t *n) {
    size_t kept = 0;
    for (size_t i = 0; i < *n; i++) {
        uint8_t c = p[i];
        if (c == '~') {
            if (++i == *n || (p[i] != '0' && p[i] != '1'))
                return false;
            c = p[i] == '0' ? '~' : '/';
        }
        p[kept++] = c;
    }
    *n = kept;
    return true;
}

static int read_pointer(struct json_path *path, uint8_t *p, size_t n) {
    size_t i = 0;
    while (i < n) {
        size_t from = i + 1;
        if (p[i] != '/')
            return ERR_BAD;
        if (path->n == JSON_PATH_TOKENS)
            return ERR_LIMIT;
        i = from + view_find(view_of(p + from, n - from), '/');
        size_t length = i - from;
        bool any = length == 1 && p[from] == '*';
        if (!decode(p + from, &length))
            return ERR_BAD;
        path->tokens[path->n++] = any ? view_of(NULL, 0) : view_of(p + from, length);
    }
    return 0;
}

int json_paths_init(struct json_paths *p, const struct view *pointers, size_t n) {
    size_t size = 1;
    memset(p, 0, sizeof *p);
    for (size_t i = 0; i < n; i++) {
        if (n > JSON_PATHS_MAX || pointers[i].n > JSON_PATH_TEXT)
            return ERR_LIMIT;
        size += pointers[i].n;
    }
    p->at = calloc(n + 1, sizeof *p->at);
    p->text = calloc(1, size);
    int err = p->at && p->text ? 0 : ERR_MEMORY;
    uint8_t *text = p->text;
    for (size_t i = 0; i < n && err == 0; i++) {
        view_copy(pointers[i], text);
        err = read_pointer(&p->at[i], text, pointers[i].n);
        text += pointers[i].n;
        p->ends[p->at[i].n] |= UINT64_C(1) << i;
        p->live[0] |= UINT64_C(1) << i;
    }
    p->n = n;
    if (err != 0)
        json_paths_free(p);
    return err;
}

void json_paths_free(struct json_paths *p) {
    free(p->at);
    free(p->text);
    p->at = NULL;
    p->text = NULL;
    p->n = 0;
}

/* ---- following them ---- */

uint64_t json_paths_on(const struct json_paths *p, size_t depth) {
    return depth > JSON_PATH_TOKENS ? 0 : p->live[depth] & ~p->ends[depth];
}

/* Those that got to what is open at depth and go on from there. */
static uint64_t going_on(const struct json_paths *p, size_t depth) {
    return depth > JSON_PATH_TOKENS ? 0 : json_paths_on(p, depth - 1);
}

void json_paths_member(struct json_paths *p, size_t depth, struct view name) {
    uint64_t rest = going_on(p, depth), live = 0, alike = 0;
    for (; rest != 0; rest &= rest - 1) {
        int i = __builtin_ctzll(rest);
        uint64_t bit = UINT64_C(1) << i;
        struct view token = p->at[i].tokens[depth - 1];
        bool same = !token.p || view_equal(token, name);
        if (same || credential_name_same(token, name))
            live |= bit;
        if (!same)
            alike |= bit;
    }
    p->live[depth] = live;
    p->alike[depth] = live & (alike | p->alike[depth - 1]);
}

/* RFC 6901 4: no leading zeros. */
static bool is_index(struct view token, size_t index) {
    uint64_t n;
    return token.n > 0 && is_digit(token.p[0]) && (token.n == 1 || token.p[0] != '0') &&
           view_number(token, SIZE_MAX, &n) == 0 && n == index;
}

void json_paths_item(struct json_paths *p, size_t depth, size_t index) {
    uint64_t rest = going_on(p, depth), live = 0;
    for (; rest != 0; rest &= rest - 1) {
        int i = __builtin_ctzll(rest);
        struct view token = p->at[i].tokens[depth - 1];
        if (!token.p || is_index(token, index))
            live |= UINT64_C(1) << i;
    }
    p->live[depth] = live;
    p->alike[depth] = live & p->alike[depth - 1];
}

void json_paths_some_item(struct json_paths *p, size_t depth) {
    uint64_t live = going_on(p, depth), alike = 0;
    for (uint64_t rest = live; rest != 0; rest &= rest - 1)
        if (p->at[__builtin_ctzll(rest)].tokens[depth - 1].p)
            alike |= rest & -rest;
    p->live[depth] = live;
    p->alike[depth] = live & (alike | p->alike[depth - 1]);
}

uint64_t json_paths_here(const struct json_paths *p, size_t depth, uint64_t *alike) {
    bool out = depth > JSON_PATH_TOKENS;
    *alike = out ? 0 : p->live[depth] & p->alike[depth];
    return out ? 0 : *alike | (p->live[depth] & p->ends[depth]);
}
