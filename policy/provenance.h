/*
 * Provenance (promise P7): every place of a request in which an API would read
 * a credential, and what stands there. Says nothing about whose it is: egress
 * asks the registry, then the judge decides.
 */
#ifndef POLICY_PROVENANCE_H
#define POLICY_PROVENANCE_H

#include "base/bytes.h"
#include "policy/target.h"

enum { MATERIALS_MAX = 32, BASIC_MAX = 4096 };

enum place {
    PLACE_HEADER,     /* a field's whole value, or what stands behind an auth-scheme in it */
    PLACE_BASIC_USER, /* inside Basic, before the first colon (RFC 7617) */
    PLACE_BASIC_PASSWORD,
    PLACE_COOKIE,
    PLACE_QUERY,
    PLACE_PATH, /* a segment that holds a placeholder, or where a well-known API has its secret */
    PLACE_SUBPROTOCOL, /* Sec-WebSocket-Protocol */
    PLACE_SIGNATURE,   /* presigned or signed requests: X-Amz-Signature, Signature, DPoP, ... */
    PLACE_TARGET,      /* no credential: a field that names a second resource */
    PLACE_BODY,        /* a body's field, reported by inspect */
    PLACE_JSON,        /* a member of a JSON body that a policy's pointer leads to */
    PLACE_FORM,        /* the same of a form's field */
};

/* Where a policy puts a credential, and how it is spelled there. */
struct credential_place {
    enum place place;
    /*
     * Of a header (PLACE_HEADER, PLACE_BASIC_*), in lower case; of a cookie, parameter or form field; a JSON
     * pointer. Never empty.
     */
    struct view name;
    struct view scheme; /* PLACE_HEADER: lower-case, or empty for the whole value */
    uint16_t segment;   /* PLACE_PATH: from 1 */
    uint16_t pointer; /* PLACE_JSON, PLACE_FORM: index of the pointer to it (policy_body_pointer) */
};

static inline bool place_is_in_body(enum place p) {
    return p == PLACE_JSON || p == PLACE_FORM;
}

enum { WATCHED_MAX = 8 };

/* The places of an authority's credentials: watched whatever their names are (P7). */
struct watched {
    const struct credential_place *at[WATCHED_MAX];
    size_t n;
};

enum origin {
    ORIGIN_FOREIGN, /* not issued by exeat, or a near miss */
    ORIGIN_OURS,    /* issued to this sandbox */
    ORIGIN_OTHER,   /* issued to another sandbox, or revoked */
};

struct material {
    enum place place;
    struct view name;   /* field, parameter or cookie name, as sent */
    struct view scheme; /* PLACE_HEADER: the auth-scheme as sent ("Bearer"), or empty */
    struct view token;  /* the candidate credential; of Basic, query and path decoded, in storage */
    struct view raw;  /* the bytes of the request that say it: a part of the field or the target */
    uint16_t segment; /* PLACE_PATH: from 1 */
    bool watched;     /* PLACE_PATH: material only because a policy puts a credential there */
    bool
        malformed; /* not one known scheme and one token (PV-06), or a parameter to some servers only */
    /* filled in by the caller before the judge is asked */
    enum origin origin;
    struct view credential; /* ORIGIN_OURS: the credential's name in the policy */
};

struct materials {
    struct material at[MATERIALS_MAX];
    size_t n;
    bool overflow;              /* more than MATERIALS_MAX: refuse */
    uint8_t storage[BASIC_MAX]; /* decoded Basic credentials, query values and segments */
    size_t used;
};

/*
 * One field of a request, name in any case. Adds to m. Which names are credentials says
 * policy/credential_name.h, and beside them the fields among `watched` (policy_watch; NULL:
 * none). A field of any other name is
 * material, too, when its value is a placeholder, alone or behind a scheme, or a word of it has the form of a
 * vendor's key (policy/key_form.h).
 *
 * Authorization and its like are one scheme, one space and one token, or one token
 * alone (an empty scheme); what is neither is malformed. Basic gives its two halves, an
 * empty half none. Signing schemes (AWS4-HMAC-SHA256, Digest, DPoP, ...) give
 * PLACE_SIGNATURE with all that stands behind the scheme. Each cookie is material by itself.
 */
void provenance_field(struct view name, struct view value, const struct watched *watched,
                      struct materials *m);
/*
 * The canonical target, path first. Query parameters are compared percent-decoded, and their
 * tokens are decoded into storage; one without a value is none. What stands behind a ';'
 * is looked at as well, and malformed. A value or name that holds a vendor's key is material whatever the
 * parameter. Path segments: those that hold a placeholder or a vendor's key, and
 * the secret part of well-known webhook and bot addresses. Watched parameters and segments are
 * material whatever they are called.
 */
void provenance_target(const struct target *t, const struct watched *watched, struct materials *m);
/*
 * A name of a body's field (form, JSON member, multipart; percent-decoded by the caller) whose value must
 * not be sent: it would be read as a credential, or as the request's method; which of the two says
 * method_is_override_name.
 */
bool provenance_body_name(struct view name);

#endif
