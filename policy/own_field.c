#include "policy/own_field.h"

#include <string.h>

/* Either half has more than the longest below. */
enum { LETTERS_MAX = 64 };

#define LETTERS(text)                                                                              \
    { (const uint8_t *)(text), sizeof(text) - 1 }

static const struct view removed[] = {
    LETTERS("proxyauthorization"),
    LETTERS("proxyconnection"),
    LETTERS("via"),
    LETTERS("xwebauthuser"),
    LETTERS("xscheme"),
    LETTERS("xurlscheme"),
    LETTERS("xsslclientverify"),
    LETTERS("xforwardfor"),
    LETTERS("xforwarderfor"),
    LETTERS("frontendhttps"),
    LETTERS("xenvoyexternaladdress"),
    LETTERS("xoriginalurl"),
    LETTERS("xrewriteurl"),
    LETTERS("xoriginalhost"),
    LETTERS("xoriginaluri"),
    LETTERS("xoriginalpath"),
    LETTERS("xoriginalmethod"),
    LETTERS("xrewritepath"),
    LETTERS("requesturi"),
    LETTERS("httpurl"),
    LETTERS("baseurl"),
    LETTERS("xproxyurl"),
    LETTERS("proxyurl"),
    LETTERS("proxyhost"),
    LETTERS("proxystatus"),
    LETTERS("xrealhost"),
    LETTERS("xbackendhost"),
    LETTERS("xhost"),
    LETTERS("requestrange"),
    LETTERS("xhttpmethod"),
    LETTERS("xrequestmethod"),
    LETTERS("xmethod"),
    LETTERS("httpmethod"),
    LETTERS("method"),
    LETTERS("altused"),
    LETTERS("http2settings"),
    LETTERS("proxy"),
    LETTERS("earlydata"),
    LETTERS("expect"),
};

/* How the names begin under which relays, gateways and frameworks tell of the request that came to them, and of its user. */
static const struct view beginnings[] = {
    LETTERS("forwarded"),
    LETTERS("xforwarded"),
    LETTERS("xauthrequest"),
    LETTERS("xmsclientprincipal"),
    LETTERS("xamznoidc"),
    LETTERS("xgoogauthenticateduser"),
    LETTERS("cfaccessauthenticated"),
    LETTERS("tailscaleuser"),
    LETTERS("xenvoyoriginal"),
    LETTERS("xmiddleware"),
};

/* How those end. */
static const struct view ends[] = {
    /* the address of who asks */
    LETTERS("clientip"),
    LETTERS("remoteip"),
    LETTERS("realip"),
    LETTERS("userip"),
    LETTERS("trueip"),
    LETTERS("originatingip"),
    LETTERS("connectingip"),
    LETTERS("connectingipv6"),
    LETTERS("remoteaddr"),
    LETTERS("forwardedfor"),
    /* his name */
    LETTERS("remoteuser"),
    /* another request */
    LETTERS("methodoverride"),
    LETTERS("hostoverride"),
    LETTERS("pathoverride"),
};

static const struct view kept[] = {
    LETTERS("host"),
    LETTERS("connection"),
    LETTERS("contentlength"),
    LETTERS("transferencoding"),
    LETTERS("te"),
    LETTERS("trailer"),
    LETTERS("upgrade"),
    LETTERS("keepalive"),
    LETTERS("proxyauthenticate"),
    LETTERS("cookie"),
    LETTERS("setcookie"),
    LETTERS("contentencoding"),
    LETTERS("acceptencoding"),
    LETTERS("contenttype"),
    LETTERS("range"),
    LETTERS("ifrange"),
    LETTERS("date"),
    LETTERS("origin"),
    LETTERS("referer"),
    LETTERS("secwebsocketprotocol"),
    LETTERS("secwebsocketkey"),
};

/* How the names end under which stores, WebDAV and gateways take another resource (SF-04). */
static const struct view targets[] = {
    LETTERS("copysource"),  LETTERS("copyfrom"),       LETTERS("renamesource"),
    LETTERS("destination"), LETTERS("destinationurl"),
};

static bool is_one_of(struct view letters, const struct view *names, size_t n) {
    for (size_t i = 0; i < n; i++)
        if (letters.n == names[i].n && view_equal(letters, names[i]))
            return true;
    return false;
}

/* Of a name with more, the beginning and the end: it is still longer than all of them. */
static struct view letters_of(struct view name, uint8_t out[LETTERS_MAX]) {
    uint8_t *half = out + LETTERS_MAX / 2;
    size_t n = 0;
    for (size_t i = 0; i < name.n; i++) {
        if (!is_alnum(name.p[i]))
            continue;
        if (n == LETTERS_MAX)
            memmove(half, half + 1, (size_t)(out + --n - half));
        out[n++] = to_lower(name.p[i]);
    }
    return view_of(out, n);
}

static bool begins_like_one_of(struct view letters, const struct view *names, size_t n) {
    for (size_t i = 0; i < n; i++)
        if (view_starts(letters, names[i]))
            return true;
    return false;
}

static bool ends_like_one_of(struct view letters, const struct view *names, size_t n) {
    for (size_t i = 0; i < n; i++)
        if (view_ends(letters, names[i]))
            return true;
    return false;
}

bool own_field_is_removed(struct view name) {
    uint8_t letters[LETTERS_MAX];
    struct view v = letters_of(name, letters);
    return is_one_of(v, removed, sizeof removed / sizeof *removed) ||
           begins_like_one_of(v, beginnings, sizeof beginnings / sizeof *beginnings) ||
           ends_like_one_of(v, ends, sizeof ends / sizeof *ends);
}

bool own_field_is(struct view name) {
    uint8_t letters[LETTERS_MAX];
    return own_field_is_removed(name) ||
           is_one_of(letters_of(name, letters), kept, sizeof kept / sizeof *kept);
}

bool own_field_names_target(struct view name) {
    uint8_t letters[LETTERS_MAX];
    return ends_like_one_of(letters_of(name, letters), targets, sizeof targets / sizeof *targets);
}
