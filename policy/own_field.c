#include "policy/own_field.h"

#include "policy/credential_name.h"

#define NAME(text)                                                                                 \
    { (const uint8_t *)(text), sizeof(text) - 1 }

static const struct view removed[] = {
    NAME("proxy-authorization"),
    NAME("proxy-connection"),
    NAME("forwarded"),
    NAME("via"),
    NAME("x-forwarded-for"),
    NAME("x-forwarded-host"),
    NAME("x-forwarded-proto"),
    NAME("x-forwarded-port"),
    NAME("x-forwarded-server"),
    NAME("x-forwarded-prefix"),
    NAME("x-real-ip"),
    NAME("x-client-ip"),
    NAME("client-ip"),
    NAME("true-client-ip"),
    NAME("cf-connecting-ip"),
    NAME("x-original-url"),
    NAME("x-rewrite-url"),
    NAME("x-original-host"),
    NAME("x-http-method"),
    NAME("x-http-method-override"),
    NAME("x-method-override"),
    NAME("x-http-host-override"),
    NAME("alt-used"),
    NAME("http2-settings"),
    NAME("proxy"),
    NAME("early-data"),
    NAME("expect"),
};

static const struct view kept[] = {
    NAME("host"),
    NAME("connection"),
    NAME("content-length"),
    NAME("transfer-encoding"),
    NAME("te"),
    NAME("trailer"),
    NAME("upgrade"),
    NAME("keep-alive"),
    NAME("proxy-authenticate"),
    NAME("cookie"),
    NAME("set-cookie"),
    NAME("content-encoding"),
    NAME("accept-encoding"),
    NAME("content-type"),
    NAME("range"),
    NAME("if-range"),
    NAME("date"),
    NAME("origin"),
    NAME("referer"),
    NAME("sec-websocket-protocol"),
    NAME("sec-websocket-key"),
};

/* Asked for every field of every request: the first letter rules out nearly all. */
static bool is_one_of(struct view name, const struct view *names, size_t n) {
    uint8_t first = name.n > 0 && is_alnum(name.p[0]) ? to_lower(name.p[0]) : 0;
    for (size_t i = 0; i < n; i++)
        if ((first == 0 || first == names[i].p[0]) && credential_name_same(name, names[i]))
            return true;
    return false;
}

bool own_field_is_removed(struct view name) {
    return is_one_of(name, removed, sizeof removed / sizeof *removed);
}

bool own_field_is(struct view name) {
    return own_field_is_removed(name) || is_one_of(name, kept, sizeof kept / sizeof *kept);
}
