#include "policy/own_field.h"

#include "policy/credential_name.h"

static const char *const removed[] = {
    "proxy-authorization",
    "proxy-connection",
    "forwarded",
    "via",
    "x-forwarded-for",
    "x-forwarded-host",
    "x-forwarded-proto",
    "x-forwarded-port",
    "x-forwarded-server",
    "x-forwarded-prefix",
    "x-real-ip",
    "x-client-ip",
    "client-ip",
    "true-client-ip",
    "cf-connecting-ip",
    "x-original-url",
    "x-rewrite-url",
    "x-original-host",
    "x-http-method",
    "x-http-method-override",
    "x-method-override",
    "x-http-host-override",
    "alt-used",
    "http2-settings",
    "proxy",
    "early-data",
    "expect",
};

static const char *const kept[] = {
    "host",
    "connection",
    "content-length",
    "transfer-encoding",
    "te",
    "trailer",
    "upgrade",
    "keep-alive",
    "proxy-authenticate",
    "cookie",
    "set-cookie",
    "content-encoding",
    "accept-encoding",
    "content-type",
    "range",
    "if-range",
    "date",
    "origin",
    "referer",
    "sec-websocket-protocol",
    "sec-websocket-key",
};

static bool is_one_of(struct view name, const char *const *names, size_t n) {
    for (size_t i = 0; i < n; i++)
        if (credential_name_same(name, view_str(names[i])))
            return true;
    return false;
}

bool own_field_is(struct view name) {
    return is_one_of(name, removed, sizeof removed / sizeof *removed) ||
           is_one_of(name, kept, sizeof kept / sizeof *kept);
}

bool own_field_is_removed(struct view name) {
    for (size_t i = 0; i < sizeof removed / sizeof *removed; i++)
        if (name.n > 0 && name.p[0] == (uint8_t)removed[i][0] &&
            view_equal(name, view_str(removed[i])))
            return true;
    return false;
}
