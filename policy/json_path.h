/*
 * JSON pointers (RFC 6901) that are followed while a document is read: which of them lead to
 * the value that is due. The token `*` stands for any member or item. Pure.
 *
 * A pointer leads somewhere `alike` when a name on the way is not its token, and yet is taken
 * for it by readers that disregard case, '-', '_' and the like (Go's, protobuf's).
 */
#ifndef POLICY_JSON_PATH_H
#define POLICY_JSON_PATH_H

#include "policy/json_token.h"

enum { JSON_PATHS_MAX = 64, JSON_PATH_TOKENS = 32, JSON_PATH_TEXT = 512 /* bytes of one */ };

struct json_paths {
    size_t n;
    struct json_path {
        struct view tokens[JSON_PATH_TOKENS]; /* decoded; `*` has no p */
        size_t n;
    } * at;
    uint8_t *text;
    uint64_t ends[JSON_PATH_TOKENS + 1]; /* pointers with so many tokens */
    /* by depth: pointers that led there so far, and those that did so alike */
    uint64_t live[JSON_DEPTH + 1], alike[JSON_DEPTH + 1];
};

/* Copies the pointers. ERR_BAD: one is none; ERR_LIMIT: too many, or a long one; ERR_MEMORY. */
MUST_USE int json_paths_init(struct json_paths *p, const struct view *pointers, size_t n);
void json_paths_free(struct json_paths *p);

/* A member, or the item with this index, of what is open at depth (1: the outermost) is due. */
void json_paths_member(struct json_paths *p, size_t depth, struct view name);
void json_paths_item(struct json_paths *p, size_t depth, size_t index);
/* An item whose index is not known: only `*` leads there certainly. */
void json_paths_some_item(struct json_paths *p, size_t depth);
/*
 * Bits of the pointers that end at it (depth 0: the document), and of those that got there alike, wherever
 * they end: for whoever takes it for the token it is in the place of what stands there.
 */
uint64_t json_paths_here(const struct json_paths *p, size_t depth, uint64_t *alike);

/* Bits of the pointers that go on from there. */
uint64_t json_paths_on(const struct json_paths *p, size_t depth);

#endif
