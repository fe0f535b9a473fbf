/*
 * Reads one JSON document (RFC 8259) in pieces of any size, and collects the values that
 * pointers lead to. It is read only if all readers read it alike: exactly one document,
 * valid UTF-8 throughout and no byte order mark, whole surrogate pairs, no two members of an
 * object with one name (compared decoded), none called __proto__, no NUL in a name or a value that is asked for. Pure.
 *
 * Memory is that of the names of open objects and of the values that are asked for; both are bounded.
 */
#ifndef POLICY_JSON_READ_H
#define POLICY_JSON_READ_H

#include "base/utf8.h"
#include "policy/body_facts.h"
#include "policy/body_fault.h"
#include "policy/json_path.h"

enum {
    BODY_NAMES_MAX = 1 << 16, /* of open objects */
    BODY_VALUES_MAX = 4096,   /* that pointers lead to */
    BODY_TEXT_MAX = 256 * 1024
};

/* A value that a pointer leads to. */
struct json_found {
    uint16_t pointer; /* its index among those of its paths */
    bool alike;
    enum body_type type;
    size_t item;  /* index in the outermost array, 0 where the document is none */
    size_t at, n; /* in the text */
    size_t from,
        to; /* of a string or form value: its bytes in the body, as they were sent; else 0 */
};

/* What was found for one set of pointers. */
struct json_finds {
    struct json_paths paths;
    uint64_t bare; /* pointers of whose values only the type is asked for */
    struct json_found *found;
    size_t n, size;
};

struct json_read;

/* finds: NULLs and sets whose paths are ready; they are filled in, and must outlive it. NULL: no memory. */
struct json_read *json_read_new(struct json_finds *first, struct json_finds *second);
void json_read_free(struct json_read *r);
/* BODY_FAULTLESS so far, or what is final. */
enum body_fault json_read_feed(struct json_read *r, struct view piece);
enum body_fault json_read_end(struct json_read *r);
/* The text of a value that was found; until r is freed. */
struct view json_read_text(const struct json_read *r, const struct json_found *f);
/* After the end: an array or object, or something else; BODY_NULL for an empty document. */
enum body_type json_read_root(const struct json_read *r);

/* False: more than BODY_VALUES_MAX, or no memory. */
bool json_finds_add(struct json_finds *f, const struct json_found *found);
void json_finds_free(struct json_finds *f);

#endif
