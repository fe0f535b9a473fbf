#include "egress/dial_rules.h"

#include "base/log.h"

#include <stdlib.h>
#include <string.h>

static int load_policy(struct dial_rules *r) {
    static struct policy_errors errors; /* large */
    errors.n = 0;
    size_t size = r->bundle.policy_file.n + 1;
    r->policy_file = malloc(size);
    int result =
        r->policy_file ? view_cstr(r->bundle.policy_file, r->policy_file, size) : ERR_MEMORY;
    if (result == 0)
        result = policy_load(r->bundle.policy_text, r->policy_file, &r->policy, &errors);
    if (result != 0 && errors.n > 0)
        log_warn("generation %u: policy line %u: %s", r->generation, errors.at[0].at.line,
                 errors.at[0].text);
    return result;
}

static void choose_servers(struct dial_rules *r, const struct resolver_server *system,
                           size_t n_system) {
    const struct bundle *b = &r->bundle;
    for (size_t i = 0; i < b->n_resolvers && i < RESOLVERS_MAX; i++)
        r->servers[r->n_servers++] =
            (struct resolver_server){b->resolvers[i], b->resolver_ports[i]};
    if (b->n_resolvers > 0)
        return;
    for (size_t i = 0; i < n_system && i < RESOLVERS_MAX; i++)
        r->servers[r->n_servers++] = system[i];
}

static int compare_hosts(const void *a, const void *b) {
    const struct static_host *x = a, *y = b;
    int order = view_compare(x->name, y->name);
    return order != 0 ? order : (x->name.p > y->name.p) - (x->name.p < y->name.p);
}

static int read_hosts(struct dial_rules *r) {
    struct static_host h;
    size_t n = 0;
    for (struct view rest = r->bundle.static_hosts; bundle_host(&rest, &h);)
        n++;
    r->hosts = calloc(n + 1, sizeof *r->hosts);
    if (!r->hosts)
        return ERR_MEMORY;
    for (struct view rest = r->bundle.static_hosts; bundle_host(&rest, &h);)
        r->hosts[r->n_hosts++] = h;
    qsort(r->hosts, r->n_hosts, sizeof *r->hosts, compare_hosts);
    return 0;
}

static int read_own(struct dial_rules *r) {
    int result = own_addresses_read(&r->own, r->bundle.own_addresses);
    for (size_t i = 0; result == 0 && i < r->n_servers; i++)
        result = own_addresses_add(&r->own, &r->servers[i].address, r->servers[i].port);
    return result;
}

static int read_hop(struct dial_rules *r) {
    r->has_hop = !view_is_empty(r->bundle.upstream_proxy);
    return r->has_hop ? authority_parse(r->bundle.upstream_proxy, 0, &r->hop, NULL) : 0;
}

int dial_rules_new(uint32_t generation, struct view text, const struct resolver_server *system,
                   size_t n_system, struct dial_rules **out) {
    struct dial_rules *r = calloc(1, sizeof *r);
    if (!r)
        return ERR_MEMORY;
    r->generation = generation;
    int result = bundle_read(text, &r->bundle);
    if (result == 0) {
        choose_servers(r, system, n_system);
        result = read_own(r);
    }
    if (result == 0)
        result = read_hosts(r);
    if (result == 0)
        result = read_hop(r);
    if (result == 0)
        result = load_policy(r);
    if (result != 0) {
        dial_rules_free(r);
        return result;
    }
    *out = r;
    return 0;
}

void dial_rules_free(struct dial_rules *r) {
    if (!r)
        return;
    policy_free(r->policy);
    free(r->policy_file);
    free(r->hosts);
    free(r);
}

bool dial_rules_serve(const struct dial_rules *r, uint32_t lane, struct view sandbox) {
    struct lane_info info;
    struct view name;
    if (bundle_find_lane(&r->bundle, lane, &info) != 0)
        return false;
    for (struct view rest = info.names; lane_sandbox(&rest, &name);)
        if (view_equal(name, sandbox))
            return true;
    return false;
}

size_t dial_rules_static(const struct dial_rules *r, const char *host, struct address *out,
                         size_t max) {
    struct view name = view_str(host);
    size_t low = 0, high = r->n_hosts, n = 0;
    while (low < high) {
        size_t middle = (low + high) / 2;
        if (view_compare(r->hosts[middle].name, name) < 0)
            low = middle + 1;
        else
            high = middle;
    }
    for (; n < max && low < r->n_hosts && view_equal(r->hosts[low].name, name); low++)
        out[n++] = r->hosts[low].address;
    return n;
}

const char *dial_rules_refuse(const struct dial_rules *r, struct interfaces *here,
                              const struct service *s, const struct address *a, uint16_t port) {
    const char *own = own_addresses_refuse(&r->own, here, a, port);
    if (own)
        return own;
    return service_permits_address(s, a) ? NULL : address_class_name(address_classify(a));
}
