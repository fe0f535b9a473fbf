/*
 * What the name of a request's field says by itself. Clients send the same few names with every
 * request: what they say is worked out once and remembered, by the name's very bytes. Names come in
 * small letters (http/), and none says anything about whose request it is.
 */
#ifndef POLICY_FIELD_NAME_H
#define POLICY_FIELD_NAME_H

#include "policy/credential_name.h"

struct field_name {
    enum credential_kind credential; /* credential_name_in_header */
    bool removed;                    /* own_field_is_removed */
    bool names_target;               /* own_field_names_target */
    bool placeholder;                /* placeholder_inside, or placeholder_inside_name */
};

struct field_name field_name_look(struct view name);

#endif
