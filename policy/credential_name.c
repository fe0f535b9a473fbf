#include "policy/credential_name.h"

#include <string.h>

enum { HEADER = 1, QUERY = 2, BODY = 4, ANYWHERE = HEADER | QUERY | BODY };

enum match { WHOLE, BEGIN, END, WITHIN };

struct row {
    uint8_t where;
    enum match match;
    enum credential_kind kind;
    struct view letters;
};

#define LETTERS(text)                                                                              \
    { (const uint8_t *)(text), sizeof(text) - 1 }

/* The first row that matches decides. */
static const struct row rows[] = {
    {HEADER, WHOLE, CREDENTIAL_AUTHORIZATION, LETTERS("authorization")},
    {HEADER, WHOLE, CREDENTIAL_COOKIE, LETTERS("cookie")},
    {HEADER, WHOLE, CREDENTIAL_SUBPROTOCOL, LETTERS("secwebsocketprotocol")},

    /* what is called a token or a key and gives no access to anything */
    {ANYWHERE, WITHIN, CREDENTIAL_NONE, LETTERS("csrf")},
    {ANYWHERE, WITHIN, CREDENTIAL_NONE, LETTERS("xsrf")},
    {ANYWHERE, WITHIN, CREDENTIAL_NONE, LETTERS("idempoten")},
    {ANYWHERE, WITHIN, CREDENTIAL_NONE, LETTERS("continuation")},
    {ANYWHERE, END, CREDENTIAL_NONE, LETTERS("pagetoken")},
    {ANYWHERE, END, CREDENTIAL_NONE, LETTERS("nexttoken")},
    {ANYWHERE, END, CREDENTIAL_NONE, LETTERS("synctoken")},
    {QUERY | BODY, WHOLE, CREDENTIAL_NONE, LETTERS("clienttoken")},
    {QUERY | BODY, WHOLE, CREDENTIAL_NONE, LETTERS("clientrequesttoken")},
    {HEADER, WHOLE, CREDENTIAL_NONE, LETTERS("xatlassiantoken")},
    {HEADER, BEGIN, CREDENTIAL_NONE, LETTERS("secwebsocket")},
    {HEADER, END, CREDENTIAL_NONE, LETTERS("cachekey")},
    {HEADER, END, CREDENTIAL_NONE, LETTERS("surrogatekey")},
    {HEADER, END, CREDENTIAL_NONE, LETTERS("partitionkey")},
    {HEADER, END, CREDENTIAL_NONE, LETTERS("routingkey")},
    {HEADER, END, CREDENTIAL_NONE, LETTERS("customerkey")}, /* encryption of stored objects */

    /* signed and presigned requests (RFC 9421, RFC 9449, object storage) */
    {HEADER, WHOLE, CREDENTIAL_SIGNATURE, LETTERS("dpop")},
    {HEADER, WHOLE, CREDENTIAL_SIGNATURE, LETTERS("signature")},
    {HEADER, WHOLE, CREDENTIAL_SIGNATURE, LETTERS("signatureinput")},
    {HEADER, END, CREDENTIAL_SIGNATURE, LETTERS("signature256")},
    {QUERY, WHOLE, CREDENTIAL_SIGNATURE, LETTERS("sig")},
    {QUERY, WHOLE, CREDENTIAL_SIGNATURE, LETTERS("sign")},
    {QUERY, WHOLE, CREDENTIAL_SIGNATURE, LETTERS("hmac")},
    {QUERY, WHOLE, CREDENTIAL_SIGNATURE, LETTERS("googleaccessid")},
    {QUERY, WHOLE, CREDENTIAL_SIGNATURE, LETTERS("keypairid")},
    {HEADER | QUERY, END, CREDENTIAL_SIGNATURE, LETTERS("signature")},
    {BODY, BEGIN, CREDENTIAL_SIGNATURE, LETTERS("xamzsignature")},
    {BODY, BEGIN, CREDENTIAL_SIGNATURE, LETTERS("xgoogsignature")},
    {ANYWHERE, WHOLE, CREDENTIAL_SIGNATURE, LETTERS("xamzsecuritytoken")},
    {ANYWHERE, END, CREDENTIAL_SIGNATURE, LETTERS("xamzcredential")},
    {ANYWHERE, END, CREDENTIAL_SIGNATURE, LETTERS("xgoogcredential")},
    {ANYWHERE, END, CREDENTIAL_SIGNATURE, LETTERS("osscredential")},
    {ANYWHERE, END, CREDENTIAL_SIGNATURE, LETTERS("accesskeyid")},

    /* credentials that are sent as they are */
    {HEADER, BEGIN, CREDENTIAL_VALUE, LETTERS("xgoogiam")},
    {HEADER, WHOLE, CREDENTIAL_VALUE, LETTERS("xmsauthorizationauxiliary")},
    {HEADER, WHOLE, CREDENTIAL_VALUE, LETTERS("xhoneycombteam")},
    {HEADER, END, CREDENTIAL_VALUE, LETTERS("auth")},
    {HEADER, END, CREDENTIAL_VALUE, LETTERS("key")},
    {QUERY, WHOLE, CREDENTIAL_VALUE, LETTERS("key")},
    {QUERY, WHOLE, CREDENTIAL_VALUE, LETTERS("pass")},
    {QUERY, WHOLE, CREDENTIAL_VALUE, LETTERS("session")},
    {QUERY | BODY, WHOLE, CREDENTIAL_VALUE, LETTERS("auth")},
    {QUERY | BODY, END, CREDENTIAL_VALUE, LETTERS("sessionid")},
    {QUERY | BODY, END, CREDENTIAL_VALUE, LETTERS("sessid")},
    {ANYWHERE, END, CREDENTIAL_VALUE, LETTERS("token")},
    {ANYWHERE, END, CREDENTIAL_VALUE, LETTERS("apikey")},
    {ANYWHERE, END, CREDENTIAL_VALUE, LETTERS("appkey")},
    {ANYWHERE, END, CREDENTIAL_VALUE, LETTERS("applicationkey")},
    {ANYWHERE, END, CREDENTIAL_VALUE, LETTERS("subscriptionkey")},
    {ANYWHERE, END, CREDENTIAL_VALUE, LETTERS("accesskey")},
    {ANYWHERE, END, CREDENTIAL_VALUE, LETTERS("authkey")},
    {ANYWHERE, END, CREDENTIAL_VALUE, LETTERS("secretkey")},
    {ANYWHERE, END, CREDENTIAL_VALUE, LETTERS("privatekey")},
    {ANYWHERE, END, CREDENTIAL_VALUE, LETTERS("masterkey")},
    {ANYWHERE, END, CREDENTIAL_VALUE, LETTERS("secret")},
    {ANYWHERE, END, CREDENTIAL_VALUE, LETTERS("password")},
    {ANYWHERE, END, CREDENTIAL_VALUE, LETTERS("passwd")},
    {ANYWHERE, END, CREDENTIAL_VALUE, LETTERS("pwd")},
    {ANYWHERE, END, CREDENTIAL_VALUE, LETTERS("jwt")},
    {ANYWHERE, END, CREDENTIAL_VALUE, LETTERS("assertion")},
    {ANYWHERE, END, CREDENTIAL_VALUE, LETTERS("authorization")},
    {ANYWHERE, END, CREDENTIAL_VALUE, LETTERS("bearer")},
};

/* Asked for every field of every request: the last letter, or the first, rules out nearly all rows. */
static bool row_matches(const struct row *row, struct view letters) {
    struct view wanted = row->letters;
    if (letters.n < wanted.n)
        return false;
    switch (row->match) {
    case WHOLE:
        return letters.p[0] == wanted.p[0] && view_equal(letters, wanted);
    case BEGIN:
        return letters.p[0] == wanted.p[0] && view_starts(letters, wanted);
    case END:
        return letters.p[letters.n - 1] == wanted.p[wanted.n - 1] && view_ends(letters, wanted);
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

/* The next letter or digit in lower case, or 0 at the end. */
static uint8_t next_letter(struct view *rest) {
    while (rest->n > 0) {
        uint8_t c = rest->p[0];
        *rest = view_skip(*rest, 1);
        if (is_alnum(c))
            return to_lower(c);
    }
    return 0;
}

bool credential_name_same(struct view a, struct view b) {
    for (;;) {
        uint8_t letter = next_letter(&a);
        if (letter != next_letter(&b))
            return false;
        if (letter == 0)
            return true;
    }
}
