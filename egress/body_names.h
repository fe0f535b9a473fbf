/*
 * The names under which a service reads credentials from bodies: beside those that are known
 * everywhere, the scan of a body looks for these (P7). Pure.
 */
#ifndef EGRESS_BODY_NAMES_H
#define EGRESS_BODY_NAMES_H

#include "policy/credential_name.h"
#include "policy/provenance.h"

enum {
    BODY_NAME_MAX = CREDENTIAL_LABEL_MAX,
    BODY_WAY_MAX = 8,
    SCAN_ASK_MAX = 512 + (WATCHED_MAX + BODY_WAY_MAX) * (BODY_NAME_MAX + 4), /* a scan's question */
};

struct body_name {
    uint8_t at[BODY_NAME_MAX];
    size_t n;
};

struct body_names {
    struct body_name name[WATCHED_MAX];
    size_t n;
    size_t
        depth; /* levels of JSON at which they may stand, where that is more than are looked at anyway */
    /*
     * The members, from the outermost on, inside of which the request's own credential stood. They may be called
     * like credentials ("auth"): what is in them is looked at member by member.
     */
    struct body_name way[BODY_WAY_MAX];
    size_t n_way;
};

/* The name that a place in a body has wherever it stands, of a pointer its last token; for at most WATCHED_MAX of them. */
void body_names_add(struct body_names *b, const struct credential_place *place);
/* The way to this place, which is a pointer. A longer one is cut. */
void body_names_lead(struct body_names *b, const struct credential_place *place);
/* Whether an API that reads one of them may take this name for it. */
bool body_names_have(const struct body_names *b, struct view name);
/* Whether a member of this name at this level (1: the outermost) is on the way. */
bool body_names_pass(const struct body_names *b, struct view name, size_t level);

void body_names_write(const struct body_names *b, struct buf *out);
/* ERR_BAD. */
MUST_USE int body_names_read(struct reader *r, struct body_names *out);

#endif
