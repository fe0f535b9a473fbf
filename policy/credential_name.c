#include "policy/credential_name.h"

#include <string.h>

enum { HEADER = 1, QUERY = 2, BODY = 4, ANYWHERE = HEADER | QUERY | BODY };

enum match { WHOLE, BEGIN, END, WITHIN };

struct row {
    uint8_t where;
    enum match match;
    enum credential_kind kind;
    const char *letters;
};

/* The first row that matches decides. */
static const struct row rows[] = {
    {HEADER, WHOLE, CREDENTIAL_AUTHORIZATION, "authorization"},
    {HEADER, WHOLE, CREDENTIAL_COOKIE, "cookie"},
    {HEADER, WHOLE, CREDENTIAL_SUBPROTOCOL, "secwebsocketprotocol"},

    /* what is called a token or a key and gives no access to anything */
    {ANYWHERE, WITHIN, CREDENTIAL_NONE, "csrf"},
    {ANYWHERE, WITHIN, CREDENTIAL_NONE, "xsrf"},
    {ANYWHERE, WITHIN, CREDENTIAL_NONE, "idempoten"},
    {ANYWHERE, WITHIN, CREDENTIAL_NONE, "continuation"},
    {ANYWHERE, END, CREDENTIAL_NONE, "pagetoken"},
    {ANYWHERE, END, CREDENTIAL_NONE, "nexttoken"},
    {ANYWHERE, END, CREDENTIAL_NONE, "synctoken"},
    {QUERY | BODY, WHOLE, CREDENTIAL_NONE, "clienttoken"},
    {QUERY | BODY, WHOLE, CREDENTIAL_NONE, "clientrequesttoken"},
    {HEADER, WHOLE, CREDENTIAL_NONE, "xatlassiantoken"},
    {HEADER, BEGIN, CREDENTIAL_NONE, "secwebsocket"},
    {HEADER, END, CREDENTIAL_NONE, "cachekey"},
    {HEADER, END, CREDENTIAL_NONE, "surrogatekey"},
    {HEADER, END, CREDENTIAL_NONE, "partitionkey"},
    {HEADER, END, CREDENTIAL_NONE, "routingkey"},
    {HEADER, END, CREDENTIAL_NONE, "customerkey"}, /* encryption of stored objects */

    /* signed and presigned requests (RFC 9421, RFC 9449, object storage) */
    {HEADER, WHOLE, CREDENTIAL_SIGNATURE, "dpop"},
    {HEADER, WHOLE, CREDENTIAL_SIGNATURE, "signature"},
    {HEADER, WHOLE, CREDENTIAL_SIGNATURE, "signatureinput"},
    {HEADER, END, CREDENTIAL_SIGNATURE, "signature256"},
    {QUERY, WHOLE, CREDENTIAL_SIGNATURE, "sig"},
    {QUERY, WHOLE, CREDENTIAL_SIGNATURE, "sign"},
    {QUERY, WHOLE, CREDENTIAL_SIGNATURE, "hmac"},
    {QUERY, WHOLE, CREDENTIAL_SIGNATURE, "googleaccessid"},
    {QUERY, WHOLE, CREDENTIAL_SIGNATURE, "keypairid"},
    {HEADER | QUERY, END, CREDENTIAL_SIGNATURE, "signature"},
    {BODY, BEGIN, CREDENTIAL_SIGNATURE, "xamzsignature"},
    {BODY, BEGIN, CREDENTIAL_SIGNATURE, "xgoogsignature"},
    {ANYWHERE, WHOLE, CREDENTIAL_SIGNATURE, "xamzsecuritytoken"},
    {ANYWHERE, END, CREDENTIAL_SIGNATURE, "xamzcredential"},
    {ANYWHERE, END, CREDENTIAL_SIGNATURE, "xgoogcredential"},
    {ANYWHERE, END, CREDENTIAL_SIGNATURE, "osscredential"},
    {ANYWHERE, END, CREDENTIAL_SIGNATURE, "accesskeyid"},

    /* credentials that are sent as they are */
    {HEADER, BEGIN, CREDENTIAL_VALUE, "xgoogiam"},
    {HEADER, WHOLE, CREDENTIAL_VALUE, "xmsauthorizationauxiliary"},
    {HEADER, WHOLE, CREDENTIAL_VALUE, "xhoneycombteam"},
    {HEADER, END, CREDENTIAL_VALUE, "auth"},
    {HEADER, END, CREDENTIAL_VALUE, "key"},
    {QUERY, WHOLE, CREDENTIAL_VALUE, "key"},
    {QUERY, WHOLE, CREDENTIAL_VALUE, "pass"},
    {QUERY, WHOLE, CREDENTIAL_VALUE, "session"},
    {QUERY | BODY, WHOLE, CREDENTIAL_VALUE, "auth"},
    {QUERY | BODY, END, CREDENTIAL_VALUE, "sessionid"},
    {QUERY | BODY, END, CREDENTIAL_VALUE, "sessid"},
    {ANYWHERE, END, CREDENTIAL_VALUE, "token"},
    {ANYWHERE, END, CREDENTIAL_VALUE, "apikey"},
    {ANYWHERE, END, CREDENTIAL_VALUE, "appkey"},
    {ANYWHERE, END, CREDENTIAL_VALUE, "applicationkey"},
    {ANYWHERE, END, CREDENTIAL_VALUE, "subscriptionkey"},
    {ANYWHERE, END, CREDENTIAL_VALUE, "accesskey"},
    {ANYWHERE, END, CREDENTIAL_VALUE, "authkey"},
    {ANYWHERE, END, CREDENTIAL_VALUE, "secretkey"},
    {ANYWHERE, END, CREDENTIAL_VALUE, "privatekey"},
    {ANYWHERE, END, CREDENTIAL_VALUE, "masterkey"},
    {ANYWHERE, END, CREDENTIAL_VALUE, "secret"},
    {ANYWHERE, END, CREDENTIAL_VALUE, "password"},
    {ANYWHERE, END, CREDENTIAL_VALUE, "passwd"},
    {ANYWHERE, END, CREDENTIAL_VALUE, "pwd"},
    {ANYWHERE, END, CREDENTIAL_VALUE, "jwt"},
    {ANYWHERE, END, CREDENTIAL_VALUE, "assertion"},
    {ANYWHERE, END, CREDENTIAL_VALUE, "authorization"},
    {ANYWHERE, END, CREDENTIAL_VALUE, "bearer"},
};

static bool row_matches(const struct row *row, struct view letters) {
    struct view wanted = view_str(row->letters);
    switch (row->match) {
    case WHOLE:
        return view_equal(letters, wanted);
    case BEGIN:
        return view_starts(letters, wanted);
    case END:
        return view_ends(letters, wanted);
    case WITHIN:
        return view_search(letters, wanted) < letters.n;
    }
    return true;
}

/* A name without its list index, "[]" or "[0]". */
static struct view without_index(struct view name) {
    size_t n = name.n;
    if (n == 0 || name.p[--n] != ']')
        return name;
    while (n > 0 && is_digit(name.p[n - 1]))
        n--;
    return n > 0 && name.p[n - 1] == '[' ? view_head(name, n - 1) : name;
}

static enum credential_kind find(struct view name, unsigned where) {
    uint8_t letters[CREDENTIAL_LABEL_MAX];
    size_t n = 0;
    if (name.n > sizeof letters)
        return CREDENTIAL_VALUE;
    name = without_index(name);
    for (size_t i = 0; i < name.n; i++)
        if (is_alnum(name.p[i]))
            letters[n++] = to_lower(name.p[i]);
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++)
        if ((rows[i].where & where) && row_matches(&rows[i], view_of(letters, n)))
            return rows[i].kind;
    return CREDENTIAL_NONE;
}

enum credential_kind credential_name_in_header(struct view name) {
    return find(name, HEADER);
}

enum credential_kind credential_name_in_query(struct view name) {
    return find(name, QUERY);
}

enum credential_kind credential_name_in_body(struct view name) {
    return find(name, BODY);
}
