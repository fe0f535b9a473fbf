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

struct view own_field_removed(size_t i) {
    return i < sizeof removed / sizeof *removed ? view_str(removed[i]) : (struct view){NULL, 0};
}
