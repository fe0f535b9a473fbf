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
