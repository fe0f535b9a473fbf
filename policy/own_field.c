#include "policy/own_field.h"

/* More than the longest below. */
enum { LETTERS_MAX = 32 };

#define LETTERS(text)                                                                              \
    { (const uint8_t *)(text), sizeof(text) - 1 }

static const struct view removed[] = {
    LETTERS("proxyauthorization"),
    LETTERS("proxyconnection"),
    LETTERS("forwarded"),
    LETTERS("via"),
    LETTERS("xforwardedfor"),
    LETTERS("xforwardedhost"),
    LETTERS("xforwardedproto"),
    LETTERS("xforwardedport"),
    LETTERS("xforwardedserver"),
    LETTERS("xforwardedprefix"),
    LETTERS("xforwardedscheme"),
    LETTERS("xforwardedssl"),
    LETTERS("xforwardeduser"),
    LETTERS("xforwardedemail"),
    LETTERS("xforwardedgroups"),
    LETTERS("xforwardedpreferredusername"),
    LETTERS("xauthrequestuser"),
    LETTERS("xauthrequestemail"),
    LETTERS("xremoteuser"),
    LETTERS("remoteuser"),
    LETTERS("xwebauthuser"),
    LETTERS("xscheme"),
    LETTERS("xurlscheme"),
    LETTERS("xsslclientverify"),
    LETTERS("xrealip"),
    LETTERS("xremoteip"),
    LETTERS("xremoteaddr"),
    LETTERS("xclusterclientip"),
    LETTERS("xoriginatingip"),
    LETTERS("fastlyclientip"),
    LETTERS("xclientip"),
    LETTERS("clientip"),
    LETTERS("trueclientip"),
    LETTERS("cfconnectingip"),
    LETTERS("xoriginalurl"),
    LETTERS("xrewriteurl"),
    LETTERS("xoriginalhost"),
    LETTERS("xoriginaluri"),
    LETTERS("xoriginalpath"),
    LETTERS("xoriginalmethod"),
    LETTERS("xforwardeduri"),
    LETTERS("xforwardedpath"),
    LETTERS("xforwardedmethod"),
    LETTERS("xenvoyoriginalpath"),
    LETTERS("xhost"),
    LETTERS("requestrange"),
    LETTERS("xhttpmethod"),
    LETTERS("xhttpmethodoverride"),
    LETTERS("xmethodoverride"),
    LETTERS("httpmethodoverride"),
    LETTERS("methodoverride"),
    LETTERS("xrequestmethod"),
    LETTERS("xmethod"),
    LETTERS("httpmethod"),
    LETTERS("method"),
    LETTERS("xhttphostoverride"),
    LETTERS("xhttppathoverride"),
    LETTERS("xpathoverride"),
    LETTERS("altused"),
    LETTERS("http2settings"),
    LETTERS("proxy"),
    LETTERS("earlydata"),
    LETTERS("expect"),
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

/* Asked for every field of every request: the length rules out nearly all names. */
static bool is_one_of(struct view letters, const struct view *names, size_t n) {
    for (size_t i = 0; i < n; i++)
        if (letters.n == names[i].n && view_equal(letters, names[i]))
            return true;
    return false;
}

/* A name that is longer than all of them is cut, and still is. */
static struct view letters_of(struct view name, uint8_t out[LETTERS_MAX]) {
    size_t n = 0;
    for (size_t i = 0; i < name.n && n < LETTERS_MAX; i++)
        if (is_alnum(name.p[i]))
            out[n++] = to_lower(name.p[i]);
    return view_of(out, n);
}

bool own_field_is_removed(struct view name) {
    uint8_t letters[LETTERS_MAX];
    return is_one_of(letters_of(name, letters), removed, sizeof removed / sizeof *removed);
}

bool own_field_is(struct view name) {
    uint8_t letters[LETTERS_MAX];
    return own_field_is_removed(name) ||
           is_one_of(letters_of(name, letters), kept, sizeof kept / sizeof *kept);
}

bool own_field_names_target(struct view name) {
    uint8_t letters[LETTERS_MAX];
    struct view v = letters_of(name, letters);
    for (size_t i = 0; i < sizeof targets / sizeof *targets; i++)
        if (view_ends(v, targets[i]))
            return true;
    return false;
}
