#include "daemon/config.h"
#include "policy/errors.h"

#include <stdlib.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

/* What was read can be put into a bundle and read back. */
static void put(const struct config *c, struct policy_errors *errors) {
    struct policy *p;
    struct buf lanes, hosts, own;
    struct lane_info lane;
    struct static_host host;
    buf_init(&lanes, 1 << 24);
    buf_init(&hosts, 1 << 24);
    buf_init(&own, 1 << 24);
    config_put_hosts(c, &hosts);
    config_put_own_addresses(c, &own);
    if (policy_load(VIEW("sandbox a { }\nsandbox b { }"), "p", &p, errors) != 0)
        abort();
    struct view rest = buf_view(&hosts);
    while (bundle_host(&rest, &host))
        ;
    if (rest.n != 0)
        abort();
    if (config_put_lanes(c, p, &lanes, errors) == 0) {
        rest = buf_view(&lanes);
        while (bundle_lane(&rest, &lane))
            ;
        if (rest.n != 0)
            abort();
    }
    policy_free(p);
    buf_free(&lanes);
    buf_free(&hosts);
    buf_free(&own);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    static struct policy_errors errors;
    struct config c;
    if (config_read(view_of(data, size), "conf/exeat.conf", &c, &errors) != 0) {
        struct buf out;
        buf_init(&out, 1 << 20);
        for (size_t i = 0; i < errors.n; i++)
            errors_show(&errors.at[i], view_of(data, size), &out);
        buf_free(&out);
        return 0;
    }
    put(&c, &errors);
    config_free(&c);
    return 0;
}
