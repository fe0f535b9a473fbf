#include "policy/field_name.h"

#include "policy/own_field.h"
#include "policy/placeholder.h"

enum { NAME_MAX_BYTES = 47, ROWS_BITS = 7 };

static struct row {
    uint8_t n; /* 0: empty */
    uint8_t name[NAME_MAX_BYTES];
    struct field_name says;
} rows[1 << ROWS_BITS];

static struct field_name work_out(struct view name) {
    return (struct field_name){.credential = credential_name_in_header(name),
                               .removed = own_field_is_removed(name),
                               .names_target = own_field_names_target(name),
                               .placeholder =
                                   placeholder_inside(name) || placeholder_inside_name(name)};
}

/* Names that are unlike in their length, their beginning or their end have rows of their own, mostly. */
static struct row *row_of(struct view name) {
    uint64_t begin = 0, end = 0;
    size_t n = name.n < sizeof begin ? name.n : sizeof begin;
    memcpy(&begin, name.p, n);
    memcpy(&end, name.p + name.n - n, n);
    uint64_t hash = (begin + 31 * end + name.n) * UINT64_C(0x9e3779b97f4a7c15);
    return &rows[hash >> (64 - ROWS_BITS)];
}

struct field_name field_name_look(struct view name) {
    if (name.n == 0 || name.n > NAME_MAX_BYTES)
        return work_out(name);
    struct row *row = row_of(name);
    if (row->n != name.n || memcmp(row->name, name.p, name.n) != 0) {
        row->says = work_out(name);
        row->n = (uint8_t)name.n;
        memcpy(row->name, name.p, name.n);
    }
    return row->says;
}
