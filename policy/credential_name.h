/*
 * Names under which APIs read a credential: of header fields, query parameters
 * and members of bodies. One table for all of them.
 *
 * Names are compared by their letters and digits only, without case: what CGI,
 * PHP and the frameworks call the same ("X-Api-Key", "x_api_key", "apiKey", "user[api_key]",
 * "key[]", "key[0]", "key[x]") is the same here (HD-03). Some names of fields are found by a word that
 * stands anywhere in them ("X-Ops-Authorization-1", "Api-Sign"), and a number behind a field's name is
 * passed over. In a body a name of fewer than five letters ("pwd") counts only where no control and no
 * byte from 0x80 stands between letters: a file that is called a form is full of such.
 * A name of more than CREDENTIAL_LABEL_MAX bytes
 * counts as one: refused rather than not compared.
 */
#ifndef POLICY_CREDENTIAL_NAME_H
#define POLICY_CREDENTIAL_NAME_H

#include "base/bytes.h"

enum { CREDENTIAL_LABEL_MAX = 128 };

enum credential_kind {
    CREDENTIAL_NONE,
    CREDENTIAL_AUTHORIZATION, /* header fields only: Authorization itself, and Cookie and */
    CREDENTIAL_COOKIE,        /* Sec-WebSocket-Protocol, which have forms of their own */
    CREDENTIAL_SUBPROTOCOL,
    CREDENTIAL_VALUE,     /* the value is, or holds, a credential */
    CREDENTIAL_SIGNATURE, /* a proof made with a key that is not shown */
};

enum credential_kind credential_name_in_header(struct view name);
/* name is already percent-decoded. */
enum credential_kind credential_name_in_query(struct view name);
enum credential_kind credential_name_in_body(struct view name);
/* Whether an API may take one name for the other. */
bool credential_name_same(struct view a, struct view b);
/*
 * The same of a query's parameters, whose names frameworks part at '[': "m[]" and "m[x]" stand in "m", and what
 * calls itself "m" may take the place of "m[x]".
 */
bool credential_name_same_parameter(struct view a, struct view b);

#endif
