#include "policy/credential_name.h"

#include <string.h>

enum { HEADER = 1, QUERY = 2, BODY = 4, ANYWHERE = HEADER | QUERY | BODY };

/* END and WORD pass over what numbers a name: "Authorization-1", "Api-Token-V2". */
enum match { WHOLE, BEGIN, END, WITHIN, WORD };

/* Letters and digits of a name in lower case, and at which of them a word begins. */
struct letters {
    uint8_t at[CREDENTIAL_LABEL_MAX];
    bool begins[CREDENTIAL_LABEL_MAX + 1]; /* also behind the last */
    size_t n;
    bool odd;            /* bytes that no API has in a name stand between them */
    size_t n_unnumbered; /* without a number at the end; for fields, the only place of such names */
};

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
    {ANYWHERE, END, CREDENTIAL_NONE, LETTERS("paginationtoken")},
    {ANYWHERE, END, CREDENTIAL_NONE, LETTERS("skiptoken")},
    {ANYWHERE, END, CREDENTIAL_NONE, LETTERS("deltatoken")},
    {QUERY | BODY, WHOLE, CREDENTIAL_NONE, LETTERS("clienttoken")},
    {QUERY | BODY, WHOLE, CREDENTIAL_NONE, LETTERS("clientrequesttoken")},
    {HEADER, WHOLE, CREDENTIAL_NONE, LETTERS("xatlassiantoken")},
    {HEADER, WHOLE, CREDENTIAL_NONE, LETTERS("locktoken")}, /* WebDAV's (RFC 4918 10.5) */
    {HEADER, WHOLE, CREDENTIAL_NONE, LETTERS("mcpsessionid")},
    {HEADER, WHOLE, CREDENTIAL_NONE, LETTERS("npmsession")},
    {HEADER, WHOLE, CREDENTIAL_NONE, LETTERS("kubectlsession")},
    {HEADER, WHOLE, CREDENTIAL_NONE, LETTERS("xclaudecodesessionid")},
    {HEADER, WHOLE, CREDENTIAL_NONE, LETTERS("sessionid")}, /* a conversation's, from Codex */
    {HEADER, BEGIN, CREDENTIAL_NONE, LETTERS("secwebsocket")},
    {HEADER, BEGIN, CREDENTIAL_NONE, LETTERS("acceptsignature")}, /* which ones are liked */
    {HEADER, END, CREDENTIAL_NONE, LETTERS("cachekey")},
    {HEADER, END, CREDENTIAL_NONE, LETTERS("surrogatekey")},
    {HEADER, END, CREDENTIAL_NONE, LETTERS("partitionkey")},
    {HEADER, END, CREDENTIAL_NONE, LETTERS("routingkey")},
    {HEADER, END, CREDENTIAL_NONE, LETTERS("customerkey")}, /* encryption of stored objects */

    /* signed and presigned requests (RFC 9421, RFC 9449, object storage) */
    {HEADER, WHOLE, CREDENTIAL_SIGNATURE, LETTERS("dpop")},
    {HEADER, WHOLE, CREDENTIAL_SIGNATURE, LETTERS("signature")},
    {HEADER, WHOLE, CREDENTIAL_SIGNATURE, LETTERS("signatureinput")},
    {HEADER, WORD, CREDENTIAL_SIGNATURE, LETTERS("signature")},
    {HEADER | QUERY, WITHIN, CREDENTIAL_SIGNATURE, LETTERS("hmac")},
    {HEADER, WORD, CREDENTIAL_SIGNATURE, LETTERS("sign")},
    {QUERY, WHOLE, CREDENTIAL_SIGNATURE, LETTERS("sig")},
    {QUERY, WHOLE, CREDENTIAL_SIGNATURE, LETTERS("sign")},
    {QUERY | BODY, WHOLE, CREDENTIAL_SIGNATURE, LETTERS("googleaccessid")},
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
    {HEADER, WHOLE, CREDENTIAL_VALUE, LETTERS("xhoneycombteam")},
    {HEADER, WHOLE, CREDENTIAL_VALUE, LETTERS("xjfrogartapi")},
    {HEADER, WHOLE, CREDENTIAL_VALUE, LETTERS("xwsse")},
    {HEADER, WHOLE, CREDENTIAL_VALUE, LETTERS("xm2morigin")},
    {HEADER, END, CREDENTIAL_VALUE, LETTERS("cookie")},
    {HEADER, END, CREDENTIAL_VALUE, LETTERS("protectionbypass")},
    {HEADER, END, CREDENTIAL_VALUE, LETTERS("appcheck")},
    {HEADER, WORD, CREDENTIAL_VALUE, LETTERS("token")},
    {HEADER, WORD, CREDENTIAL_VALUE, LETTERS("secret")},
    {HEADER, WORD, CREDENTIAL_VALUE, LETTERS("pass")},
    {HEADER, WORD, CREDENTIAL_VALUE, LETTERS("assertion")},
    {HEADER, WORD, CREDENTIAL_VALUE, LETTERS("authenticate")},
    {HEADER, WORD, CREDENTIAL_VALUE, LETTERS("authn")},
    {HEADER, WORD, CREDENTIAL_VALUE, LETTERS("authz")},
    {HEADER, WORD, CREDENTIAL_VALUE, LETTERS("kerberos")},
    {HEADER, WORD, CREDENTIAL_VALUE, LETTERS("authorization")},
    {HEADER, WORD, CREDENTIAL_VALUE, LETTERS("authentication")},
    {HEADER, WORD, CREDENTIAL_VALUE, LETTERS("session")},
    {HEADER, WORD, CREDENTIAL_VALUE, LETTERS("sessionid")},
    {HEADER, WORD, CREDENTIAL_VALUE, LETTERS("credential")},
    {HEADER, WORD, CREDENTIAL_VALUE, LETTERS("credentials")},
    {HEADER, WORD, CREDENTIAL_VALUE, LETTERS("passphrase")},
    {HEADER, WORD, CREDENTIAL_VALUE, LETTERS("macaroon")},
    {HEADER, WORD, CREDENTIAL_VALUE, LETTERS("macaroons")},
    {HEADER, WITHIN, CREDENTIAL_VALUE, LETTERS("clientcert")}, /* RFC 9440 and its forerunners */
    {HEADER, WITHIN, CREDENTIAL_VALUE, LETTERS("apikey")},
    {HEADER, END, CREDENTIAL_VALUE, LETTERS("auth")},
    {HEADER, END, CREDENTIAL_VALUE, LETTERS("key")},
    {QUERY, WHOLE, CREDENTIAL_VALUE, LETTERS("key")},
    {QUERY, WHOLE, CREDENTIAL_VALUE, LETTERS("pass")},
    {QUERY, WHOLE, CREDENTIAL_VALUE, LETTERS("session")},
    {QUERY, WHOLE, CREDENTIAL_VALUE,
     LETTERS("httpheaders")}, /* fields, as some gateways take them */
    {QUERY | BODY, WHOLE, CREDENTIAL_VALUE, LETTERS("auth")},
    {QUERY | BODY, WHOLE, CREDENTIAL_VALUE, LETTERS("credentials")},
    {QUERY | BODY, END, CREDENTIAL_VALUE, LETTERS("credential")},
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
    {QUERY | BODY, END, CREDENTIAL_VALUE, LETTERS("sessionkey")},
    {QUERY | BODY, END, CREDENTIAL_VALUE, LETTERS("sharedkey")},
    {QUERY | BODY, END, CREDENTIAL_VALUE, LETTERS("signingkey")},
    {QUERY | BODY, END, CREDENTIAL_VALUE, LETTERS("servicekey")},
    {QUERY | BODY, END, CREDENTIAL_VALUE, LETTERS("serverkey")},
    {QUERY | BODY, END, CREDENTIAL_VALUE, LETTERS("securitykey")},
    {QUERY | BODY, END, CREDENTIAL_VALUE, LETTERS("adminkey")},
    {QUERY | BODY, END, CREDENTIAL_VALUE, LETTERS("deploykey")},
    {QUERY | BODY, END, CREDENTIAL_VALUE, LETTERS("passkey")},
    /* what is handed in for a token (GF-07; RFC 6749, RFC 7636, RFC 8628, SAML, WS-Federation) */
    {QUERY | BODY, END, CREDENTIAL_VALUE, LETTERS("authcode")},
    {QUERY | BODY, END, CREDENTIAL_VALUE, LETTERS("authorizationcode")},
    {QUERY | BODY, END, CREDENTIAL_VALUE, LETTERS("devicecode")},
    {QUERY | BODY, END, CREDENTIAL_VALUE, LETTERS("codeverifier")},
    {QUERY | BODY, WHOLE, CREDENTIAL_VALUE, LETTERS("samlresponse")},
    {QUERY | BODY, WHOLE, CREDENTIAL_VALUE, LETTERS("samlart")},
    {QUERY | BODY, WHOLE, CREDENTIAL_VALUE, LETTERS("wresult")},
    {QUERY | BODY, WHOLE, CREDENTIAL_VALUE, LETTERS("softwarestatement")},
    /* keys that say into whose account something is put (GF-08) */
    {QUERY | BODY, END, CREDENTIAL_VALUE, LETTERS("userkey")},
    {QUERY | BODY, END, CREDENTIAL_VALUE, LETTERS("accountkey")},
    {QUERY | BODY, END, CREDENTIAL_VALUE, LETTERS("partnerkey")},
    {QUERY | BODY, END, CREDENTIAL_VALUE, LETTERS("merchantkey")},
    {QUERY | BODY, END, CREDENTIAL_VALUE, LETTERS("publishablekey")},
    {QUERY | BODY, END, CREDENTIAL_VALUE, LETTERS("sentrykey")},
    {QUERY | BODY, END, CREDENTIAL_VALUE, LETTERS("consumerkey")},
    {QUERY | BODY, END, CREDENTIAL_VALUE, LETTERS("developerkey")},
    {QUERY | BODY, END, CREDENTIAL_VALUE, LETTERS("licensekey")},
    {QUERY | BODY, END, CREDENTIAL_VALUE, LETTERS("writekey")},
    {QUERY | BODY, END, CREDENTIAL_VALUE, LETTERS("insertkey")},
    {QUERY | BODY, END, CREDENTIAL_VALUE, LETTERS("integrationkey")},
    {QUERY | BODY, END, CREDENTIAL_VALUE, LETTERS("instrumentationkey")},
    {QUERY | BODY, END, CREDENTIAL_VALUE, LETTERS("connectionstring")},
    {BODY, WHOLE, CREDENTIAL_VALUE, LETTERS("dsn")},
    {ANYWHERE, END, CREDENTIAL_VALUE, LETTERS("secret")},
    {ANYWHERE, END, CREDENTIAL_VALUE, LETTERS("password")},
    {ANYWHERE, END, CREDENTIAL_VALUE, LETTERS("passwd")},
    {ANYWHERE, END, CREDENTIAL_VALUE, LETTERS("passphrase")},
    {ANYWHERE, END, CREDENTIAL_VALUE, LETTERS("passcode")},
    {ANYWHERE, END, CREDENTIAL_VALUE, LETTERS("macaroon")},
    {ANYWHERE, END, CREDENTIAL_VALUE, LETTERS("pwd")},
    {ANYWHERE, END, CREDENTIAL_VALUE, LETTERS("jwt")},
    {ANYWHERE, END, CREDENTIAL_VALUE, LETTERS("assertion")},
    {ANYWHERE, END, CREDENTIAL_VALUE, LETTERS("authorization")},
    {ANYWHERE, END, CREDENTIAL_VALUE, LETTERS("bearer")},
};

/* Fewer letters than these stand in the bytes of a file by chance. */
enum { TELLING_LETTERS = 5 };

static bool has_word(const struct letters *l, struct view wanted) {
    for (size_t i = 0; i + wanted.n <= l->n_unnumbered; i++) {
        size_t end = i + wanted.n;
        if (l->begins[i] && (l->begins[end] || end == l->n_unnumbered) &&
            view_equal(view_slice(view_of(l->at, l->n), i, end), wanted))
            return true;
    }
    return false;
}

static bool ends_in(struct view letters, struct view wanted) {
    return letters.n >= wanted.n && letters.p[letters.n - 1] == wanted.p[wanted.n - 1] &&
           view_ends(letters, wanted);
}

/* Asked for every field of every request: the last letter, or the first, rules out nearly all rows. */
static bool row_matches(const struct row *row, const struct letters *l) {
    struct view wanted = row->letters, letters = view_of(l->at, l->n);
    if (letters.n < wanted.n || (l->odd && wanted.n < TELLING_LETTERS))
        return false;
    switch (row->match) {
    case WHOLE:
        return letters.p[0] == wanted.p[0] && view_equal(letters, wanted);
    case BEGIN:
        return letters.p[0] == wanted.p[0] && view_starts(letters, wanted);
    case END:
        return ends_in(letters, wanted) ||
               (l->n_unnumbered < l->n && ends_in(view_head(letters, l->n_unnumbered), wanted));
    case WITHIN:
        return view_search(letters, wanted) < letters.n;
    case WORD:
        return has_word(l, wanted);
    }
    return true;
}

/* "1" of "-1", or "v2" when it is a word. */
static size_t without_number(const struct letters *l) {
    size_t n = l->n;
    while (n > 0 && is_digit(l->at[n - 1]))
        n--;
    return n > 0 && n < l->n && l->at[n - 1] == 'v' && l->begins[n - 1] ? n - 1 : n;
}

static enum credential_kind kind_of(struct letters *l, unsigned where) {
    if (l->n == 0)
        return CREDENTIAL_NONE;
    l->n_unnumbered = where == HEADER ? without_number(l) : l->n;
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++)
        if ((rows[i].where & where) && row_matches(&rows[i], l))
            return rows[i].kind;
    return CREDENTIAL_NONE;
}

/* Controls but for blanks, and what is not ASCII. */
static bool is_odd(uint8_t c) {
    bool blank = c == '\t' || c == '\r' || c == '\n';
    return (c < ' ' && !blank) || c > '~';
}

/*
 * An index is no part of a name: "key[0]" and "api_key[x]" are "key" and "api_key" to whoever
 * reads them, "user[api_key]" is a name of its own. So what stands before each '[' is asked
 * for, and then the whole without a list index. What C programs take a name for ends at NUL.
 */
static enum credential_kind find(struct view name, unsigned where) {
    struct letters l;
    bool odd = false;
    if (name.n > sizeof l.at)
        return CREDENTIAL_VALUE;
    l.n = 0;
    l.odd = false;
    l.begins[0] = true;
    for (size_t i = 0, asked = 0; i < name.n; i++) {
        uint8_t c = name.p[i];
        if (is_alnum(c)) {
            l.odd = odd;
            l.at[l.n++] = to_lower(c);
            l.begins[l.n] = false;
            continue;
        }
        l.begins[l.n] = true;
        odd = odd || (where == BODY && l.n > 0 && is_odd(c));
        if ((c != '[' && c != 0) || l.n == asked)
            continue;
        enum credential_kind kind = kind_of(&l, where);
        if (kind != CREDENTIAL_NONE)
            return kind;
        asked = l.n;
    }
    l.begins[l.n] = true;
    return kind_of(&l, where);
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

/* Letters that some readers take for ASCII ones when they disregard case: K, long s, dotted I, dotless i. */
static uint8_t folded_letter(struct view *rest) {
    static const struct {
        struct view text;
        uint8_t letter;
    } folds[] = {{{(const uint8_t *)"\xe2\x84\xaa", 3}, 'k'},
                 {{(const uint8_t *)"\xc5\xbf", 2}, 's'},
                 {{(const uint8_t *)"\xc4\xb0", 2}, 'i'},
                 {{(const uint8_t *)"\xc4\xb1", 2}, 'i'}};
    for (size_t i = 0; i < sizeof folds / sizeof *folds; i++) {
        if (!view_starts(*rest, folds[i].text))
            continue;
        *rest = view_skip(*rest, folds[i].text.n);
        return folds[i].letter;
    }
    return 0;
}

/* The next letter or digit in lower case, or 0 at the end. */
static uint8_t next_letter(struct view *rest) {
    while (rest->n > 0) {
        uint8_t c = rest->p[0], letter = c < 0x80 ? 0 : folded_letter(rest);
        if (letter != 0)
            return letter;
        *rest = view_skip(*rest, 1);
        if (is_alnum(c))
            return to_lower(c);
    }
    return 0;
}

bool credential_name_same(struct view a, struct view b) {
    if (view_equal(a, b))
        return true;
    for (;;) {
        uint8_t letter = next_letter(&a);
        if (letter != next_letter(&b))
            return false;
        if (letter == 0)
            return true;
    }
}

/* Whether name is whole with something in brackets behind it. */
static bool is_part_of(struct view name, struct view whole) {
    for (size_t i = 1; i < name.n; i++)
        if (name.p[i] == '[' && credential_name_same(view_head(name, i), whole))
            return true;
    return false;
}

bool credential_name_same_parameter(struct view a, struct view b) {
    return credential_name_same(a, b) || is_part_of(a, b) || is_part_of(b, a);
}
