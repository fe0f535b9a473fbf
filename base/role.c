#include "base/role.h"

static const char *const names[ROLE_COUNT] = {
    [ROLE_PARENT] = "parent",   [ROLE_PROXY] = "proxy",   [ROLE_EGRESS] = "egress",
    [ROLE_INSPECT] = "inspect", [ROLE_BROKER] = "broker", [ROLE_CA] = "ca",
    [ROLE_DIALER] = "dialer",   [ROLE_AUDIT] = "audit",   [ROLE_CONTROL] = "control",
    [ROLE_ATTACH] = "attach",   [ROLE_LOAD] = "load",     [ROLE_COURIER] = "courier",
};

const char *role_name(enum role role) {
    return names[role];
}

int role_find(struct view name, enum role *out) {
    for (int i = 0; i < ROLE_COUNT; i++) {
        if (!view_equal(name, view_str(names[i])))
            continue;
        *out = (enum role)i;
        return 0;
    }
    return ERR_MISSING;
}
