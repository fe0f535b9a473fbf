#include "policy/method.h"

#define METHOD(name)                                                                               \
    { (const uint8_t *)(name), sizeof(name) - 1 }

/* The frequent ones first; CONNECT, TRACE and PRI are the last three. */
static const struct view methods[] = {
    METHOD("GET"),
    METHOD("POST"),
    METHOD("HEAD"),
    METHOD("PUT"),
    METHOD("DELETE"),
    METHOD("PATCH"),
    METHOD("OPTIONS"),
    METHOD("ACL"),
    METHOD("BIND"),
    METHOD("BASELINE-CONTROL"),
    METHOD("CHECKIN"),
    METHOD("CHECKOUT"),
    METHOD("COPY"),
    METHOD("LABEL"),
    METHOD("LINK"),
    METHOD("LOCK"),
    METHOD("MERGE"),
    METHOD("MKACTIVITY"),
    METHOD("MKCALENDAR"),
    METHOD("MKCOL"),
    METHOD("MKWORKSPACE"),
    METHOD("MKREDIRECTREF"),
    METHOD("MOVE"),
    METHOD("ORDERPATCH"),
    METHOD("PROPFIND"),
    METHOD("PROPPATCH"),
    METHOD("PURGE"),
    METHOD("QUERY"),
    METHOD("REBIND"),
    METHOD("REPORT"),
    METHOD("SEARCH"),
    METHOD("UNBIND"),
    METHOD("UNCHECKOUT"),
    METHOD("UNLINK"),
    METHOD("UNLOCK"),
    METHOD("UPDATE"),
    METHOD("UPDATEREDIRECTREF"),
    METHOD("VERSION-CONTROL"),
    METHOD("CONNECT"),
    METHOD("TRACE"),
    METHOD("PRI"),
};

enum { METHODS = sizeof methods / sizeof methods[0], UNGRANTABLE = 3 };
_Static_assert(METHODS <= 64, "a method is one bit");

uint64_t method_bit(struct view method) {
    for (size_t i = 0; i < METHODS; i++)
        if (view_equal(method, methods[i]))
            return UINT64_C(1) << i;
    return 0;
}

uint64_t methods_grantable(void) {
    return (UINT64_C(1) << (METHODS - UNGRANTABLE)) - 1;
}

bool method_is_refused(struct view method) {
    return view_equal(method, VIEW("CONNECT")) || view_equal(method, VIEW("TRACE"));
}

struct view method_at(size_t i) {
    return i < METHODS ? methods[i] : (struct view){NULL, 0};
}

/* ---- override names ---- */

enum { OVERRIDE_MAX = 24 /* more than the longest below */ };

static const struct override {
    struct view letters;
    bool marked; /* counts only behind a byte that is neither letter nor digit */
} overrides[] = {
    {METHOD("method"), true},
    {METHOD("httpmethod"), true},
    {METHOD("xhttpmethod"), false},
    {METHOD("methodoverride"), false},
    {METHOD("xmethodoverride"), false},
    {METHOD("httpmethodoverride"), false},
    {METHOD("xhttpmethodoverride"), false},
};

bool method_is_override_name(struct view decoded_name) {
    uint8_t letters[OVERRIDE_MAX];
    size_t n = 0;
    for (size_t i = 0; i < decoded_name.n && n < sizeof letters; i++) {
        uint8_t c = decoded_name.p[i];
        if (is_alnum(c))
            letters[n++] = to_lower(c);
        else if (n > 0 && (c == '[' || c == 0))
            break;
    }
    bool marked = decoded_name.n > 0 && !is_alnum(decoded_name.p[0]);
    for (size_t i = 0; i < sizeof overrides / sizeof overrides[0]; i++)
        if ((marked || !overrides[i].marked) &&
            view_equal(view_of(letters, n), overrides[i].letters))
            return true;
    return false;
}

/* A name of the query. */
static bool is_override(struct view name) {
    enum { DECODED = 1024 };
    uint8_t memory[DECODED];
    struct view decoded;
    if (view_find(name, '%') == name.n && view_find(name, '+') == name.n)
        return method_is_override_name(name);
    return !percent_decode_into(name, true, memory, sizeof memory, &decoded) ||
           method_is_override_name(decoded);
}

bool method_is_overridden(const struct target *t) {
    struct view rest = t->has_query ? t->query : (struct view){NULL, 0};
    while (rest.n > 0) {
        struct view pair = view_cut(&rest, '&');
        while (pair.n > 0) {
            struct view piece = view_cut(&pair, ';');
            if (is_override(view_cut(&piece, '=')))
                return true;
        }
    }
    return false;
}
