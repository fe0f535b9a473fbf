#include "broker/mandate.h"

#include "base/log.h"
#include "policy/bundle.h"

#include <stdlib.h>

static int load_policy(struct view text, struct policy **out) {
    struct policy_errors *errors = calloc(1, sizeof *errors);
    if (!errors)
        return ERR_MEMORY;
    int result = policy_load(text, "policy", out, errors);
    if (result != 0 && errors->n > 0)
        log_warn("policy:%u:%u: %s", errors->at[0].at.line, errors->at[0].at.column,
                 errors->at[0].text);
    free(errors);
    return result;
}

int mandate_new(uint32_t number, struct view text, struct mandate **out) {
    struct bundle bundle;
    int result = bundle_read(text, &bundle);
    if (result != 0)
        return result;
    struct mandate *m = calloc(1, sizeof *m);
    if (!m)
        return ERR_MEMORY;
    m->number = number;
    m->limits = bundle.limits;
    buf_init(&m->lanes, bundle.lanes.n);
    buf_put(&m->lanes, bundle.lanes);
    result = buf_ok(&m->lanes) ? load_policy(bundle.policy_text, &m->policy) : ERR_MEMORY;
    if (result != 0) {
        mandate_free(m);
        return result;
    }
    *out = m;
    return 0;
}

void mandate_free(struct mandate *m) {
    if (!m)
        return;
    policy_free(m->policy);
    buf_free(&m->lanes);
    free(m);
}

bool mandate_lane_has(const struct mandate *m, uint32_t lane, struct view sandbox) {
    struct view rest = buf_view(&m->lanes), names, name;
    struct lane_info info;
    while (bundle_lane(&rest, &info)) {
        names = info.names;
        while (info.id == lane && lane_sandbox(&names, &name))
            if (view_equal(name, sandbox))
                return true;
    }
    return false;
}
