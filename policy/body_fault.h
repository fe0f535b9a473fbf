/*
 * Why a body cannot be read in one way only. Numbers, so that inspect can tell egress without a text of its own.
 */
#ifndef POLICY_BODY_FAULT_H
#define POLICY_BODY_FAULT_H

enum body_fault {
    BODY_FAULTLESS,
    BODY_MALFORMED, /* not of its type's syntax */
    BODY_CUT,       /* it ends too early */
    BODY_TRAILING,  /* something stands behind the document */
    BODY_MARKED,    /* it begins with a byte order mark */
    BODY_TOO_DEEP,
    BODY_DUPLICATE, /* two members of an object have one name */
    BODY_PROTOTYPE, /* a member __proto__, which some take for what all objects have */
    BODY_NOT_UTF8,
    BODY_SURROGATE,   /* half of a surrogate pair */
    BODY_NUL,         /* in a name, or a value that is asked for */
    BODY_TOO_LARGE,   /* over the limit */
    BODY_TOO_MANY,    /* names at once, or values that are asked for, or bytes of these */
    BODY_UNREAD,      /* of a type that is not read, or coded */
    BODY_NOT_GRAPHQL, /* no single GraphQL request with an operation that is certain */
    BODY_NOT_RPC,     /* no JSON-RPC 2.0 */
    BODY_FAULT_COUNT
};

/* A sentence fragment; NULL for BODY_FAULTLESS. */
const char *body_fault_text(enum body_fault f);

#endif
