#include "policy/bundle.h"

#include <assert.h>

/* Written first, so that a text of another make is told from a damaged one. */
static const uint32_t magic = 0x45584231; /* "EXB1" */

enum { TEXT_BLOCK_MAX = 16 << 20, FILE_NAME_MAX = 4096 };

/* ---- addresses ---- */

static size_t address_bytes(uint8_t family) {
    return family == 4 ? 4 : family == 6 ? 16 : 0;
}

static void put_address(struct buf *out, const struct address *a) {
    buf_put_u8(out, a->family);
    buf_put(out, view_of(a->bytes, address_bytes(a->family)));
}

static struct address read_address(struct reader *r) {
    struct address a = {.family = read_u8(r)};
    size_t n = address_bytes(a.family);
    r->bad = r->bad || n == 0;
    struct view bytes = read_bytes(r, n);
    for (size_t i = 0; i < bytes.n; i++)
        a.bytes[i] = bytes.p[i];
    return a;
}

static void put_ranges(struct buf *out, const struct range ranges[GENERATED_RANGES]) {
    for (size_t i = 0; i < GENERATED_RANGES; i++) {
        buf_put_u8(out, ranges[i].base.family != 0);
        if (ranges[i].base.family == 0)
            continue;
        put_address(out, &ranges[i].base);
        buf_put_u8(out, ranges[i].bits);
    }
}

static void read_ranges(struct reader *r, struct range ranges[GENERATED_RANGES]) {
    for (size_t i = 0; i < GENERATED_RANGES; i++) {
        uint8_t some = read_u8(r);
        r->bad = r->bad || some > 1;
        if (some != 1)
            continue;
        ranges[i].base = read_address(r);
        ranges[i].bits = read_u8(r);
        r->bad = r->bad || ranges[i].bits > 8 * address_bytes(ranges[i].base.family);
    }
}

/* ---- lanes ---- */

enum lane_kind { LANE_OWN, LANE_SHARED, LANE_UNENFORCED, LANE_CLOSED };

static enum lane_kind kind_of(const struct lane_info *lane) {
    return lane->shared       ? LANE_SHARED
           : lane->unenforced ? LANE_UNENFORCED
           : lane->closed     ? LANE_CLOSED
                              : LANE_OWN;
}

void bundle_put_lane(struct buf *out, const struct lane_info *lane) {
    buf_put_u32(out, lane->id);
    buf_put_u8(out, (uint8_t)kind_of(lane));
    buf_put_block(out, lane->names);
}

bool lane_sandbox(struct view *rest, struct view *name) {
    if (rest->n == 0)
        return false;
    *name = view_cut(rest, ' ');
    return true;
}

static bool name_fits(struct view name, size_t max) {
    return name.n != 0 && name.n <= max;
}

/* How many; SIZE_MAX when one is not good. */
static size_t count_names(struct view names) {
    struct view rest = names, name;
    size_t n = 0;
    if (view_ends(names, VIEW(" ")))
        return SIZE_MAX;
    for (; lane_sandbox(&rest, &name); n++)
        if (!name_fits(name, SANDBOX_NAME_MAX))
            return SIZE_MAX;
    return n;
}

static bool names_are_good(const struct lane_info *lane) {
    size_t n = count_names(lane->names);
    return lane->shared ? n != SIZE_MAX : n == 1;
}

static struct lane_info read_lane(struct reader *r) {
    struct lane_info lane = {.id = read_u32(r)};
    uint8_t kind = read_u8(r);
    lane.shared = kind == LANE_SHARED;
    lane.unenforced = kind == LANE_UNENFORCED;
    lane.closed = kind == LANE_CLOSED;
    lane.names = read_block(r, TEXT_BLOCK_MAX);
    r->bad = r->bad || kind > LANE_CLOSED || lane.id == 0 || !names_are_good(&lane);
    return lane;
}

bool bundle_lane(struct view *rest, struct lane_info *out) {
    if (rest->n == 0)
        return false;
    struct reader r = reader_of(*rest);
    *out = read_lane(&r);
    if (!r.bad)
        *rest = r.rest;
    return !r.bad;
}

static bool lanes_are_good(struct view rest) {
    struct lane_info lane;
    uint32_t last = 0;
    while (bundle_lane(&rest, &lane)) {
        if (lane.id <= last)
            return false;
        last = lane.id;
    }
    return rest.n == 0;
}

bool bundle_lane_unenforced(struct view lanes, uint32_t id) {
    struct lane_info lane;
    while (bundle_lane(&lanes, &lane))
        if (lane.id == id)
            return lane.unenforced;
    return false;
}

int bundle_find_lane(const struct bundle *b, uint32_t id, struct lane_info *out) {
    struct view rest = b->lanes;
    while (bundle_lane(&rest, out))
        if (out->id == id)
            return 0;
    return ERR_MISSING;
}

/* ---- who may attach ---- */

void bundle_put_right(struct buf *out, const struct attach_right *right) {
    buf_put_u8(out, right->group);
    buf_put_u32(out, right->id);
    buf_put_block(out, right->names);
}

bool bundle_right(struct view *rest, struct attach_right *out) {
    if (rest->n == 0)
        return false;
    struct reader r = reader_of(*rest);
    uint8_t group = read_u8(&r);
    out->group = group == 1;
    out->id = read_u32(&r);
    out->names = read_block(&r, TEXT_BLOCK_MAX);
    size_t n = r.bad ? 0 : count_names(out->names);
    if (r.bad || group > 1 || n == 0 || n == SIZE_MAX)
        return false;
    *rest = r.rest;
    return true;
}

static bool rights_are_good(struct view rest) {
    struct attach_right right;
    while (bundle_right(&rest, &right))
        ;
    return rest.n == 0;
}

/* ---- static hosts ---- */

void bundle_put_host(struct buf *out, const struct static_host *host) {
    buf_put_block(out, host->name);
    put_address(out, &host->address);
}

bool bundle_host(struct view *rest, struct static_host *out) {
    if (rest->n == 0)
        return false;
    struct reader r = reader_of(*rest);
    out->name = read_block(&r, HOST_SIZE - 1);
    out->address = read_address(&r);
    if (r.bad || out->name.n == 0)
        return false;
    *rest = r.rest;
    return true;
}

static bool hosts_are_good(struct view rest) {
    struct static_host host;
    while (bundle_host(&rest, &host))
        ;
    return rest.n == 0;
}

/* ---- trust anchors of services ---- */

void bundle_put_anchors(struct buf *out, struct view service, struct view pem) {
    buf_put_block(out, service);
    buf_put_block(out, pem);
}

bool bundle_anchors(struct view *rest, struct view *service, struct view *pem) {
    if (rest->n == 0)
        return false;
    struct reader r = reader_of(*rest);
    *service = read_block(&r, POLICY_NAME_MAX);
    *pem = read_block(&r, TEXT_BLOCK_MAX);
    if (r.bad || service->n == 0 || pem->n == 0)
        return false;
    *rest = r.rest;
    return true;
}

static bool anchors_are_good(struct view rest) {
    struct view service, pem;
    while (bundle_anchors(&rest, &service, &pem))
        ;
    return rest.n == 0;
}

/* ---- the registry ---- */

void registry_put(struct buf *out, const struct registry_entry *e) {
    buf_put_u8(out, (uint8_t)e->kind);
    buf_put_block(out, e->sandbox);
    buf_put_block(out, e->credential);
    buf_put(out, view_of(e->fingerprint, FINGERPRINT_SIZE));
}

static bool entry_is_good(const struct registry_entry *e) {
    if (e->kind == REGISTRY_LOCKED)
        return e->sandbox.n == 0 && e->credential.n == 0;
    if (!name_fits(e->sandbox, SANDBOX_NAME_MAX))
        return false;
    return e->kind == REGISTRY_PLACEHOLDER ? name_fits(e->credential, CREDENTIAL_NAME_MAX)
                                           : e->kind == REGISTRY_TOKEN && e->credential.n == 0;
}

bool registry_next(struct view *rest, struct registry_entry *out) {
    if (rest->n == 0)
        return false;
    struct reader r = reader_of(*rest);
    out->kind = (enum registry_kind)read_u8(&r);
    out->sandbox = read_block(&r, SANDBOX_NAME_MAX);
    out->credential = read_block(&r, CREDENTIAL_NAME_MAX);
    struct view fingerprint = read_bytes(&r, FINGERPRINT_SIZE);
    if (r.bad || !entry_is_good(out))
        return false;
    for (size_t i = 0; i < fingerprint.n; i++)
        out->fingerprint[i] = fingerprint.p[i];
    *rest = r.rest;
    return true;
}

static bool registry_is_good(struct view rest) {
    struct registry_entry e;
    while (registry_next(&rest, &e))
        ;
    return rest.n == 0;
}

/* ---- the whole ---- */

static bool blocks_are_good(struct view rest) {
    struct reader r = reader_of(rest);
    while (r.rest.n != 0 && !r.bad)
        read_block(&r, HOST_SIZE);
    return !r.bad;
}

void bundle_write(const struct bundle *b, struct buf *out) {
    assert(b->n_resolvers <= RESOLVERS_MAX);
    buf_put_u32(out, magic);
    limits_write(&b->limits, out);
    buf_put_block(out, b->policy_file);
    buf_put_block(out, b->policy_text);
    buf_put_block(out, b->registry);
    buf_put_block(out, b->lanes);
    buf_put_block(out, b->static_hosts);
    buf_put_u8(out, (uint8_t)b->n_resolvers);
    for (size_t i = 0; i < b->n_resolvers; i++) {
        put_address(out, &b->resolvers[i]);
        buf_put_u16(out, b->resolver_ports[i]);
    }
    buf_put_block(out, b->upstream_proxy);
    buf_put_block(out, b->own_addresses);
    buf_put_block(out, b->anchors);
    buf_put_block(out, b->own_anchors);
    buf_put_block(out, b->attach_rights);
    put_ranges(out, b->synthetic);
    buf_put_u8(out, b->audit_durable);
}

static void read_resolvers(struct reader *r, struct bundle *out) {
    size_t n = read_u8(r);
    r->bad = r->bad || n > RESOLVERS_MAX;
    for (out->n_resolvers = 0; out->n_resolvers < n && !r->bad; out->n_resolvers++) {
        out->resolvers[out->n_resolvers] = read_address(r);
        out->resolver_ports[out->n_resolvers] = read_u16(r);
        r->bad = r->bad || out->resolver_ports[out->n_resolvers] == 0;
    }
}

int bundle_read(struct view text, struct bundle *out) {
    *out = (struct bundle){0};
    struct reader r = reader_of(text);
    if (read_u32(&r) != magic || limits_read(&r, &out->limits) != 0)
        return ERR_BAD;
    out->policy_file = read_block(&r, FILE_NAME_MAX);
    out->policy_text = read_block(&r, POLICY_TEXT_MAX);
    out->registry = read_block(&r, TEXT_BLOCK_MAX);
    out->lanes = read_block(&r, TEXT_BLOCK_MAX);
    out->static_hosts = read_block(&r, TEXT_BLOCK_MAX);
    read_resolvers(&r, out);
    out->upstream_proxy = read_block(&r, HOST_SIZE + 8);
    out->own_addresses = read_block(&r, TEXT_BLOCK_MAX);
    out->anchors = read_block(&r, TEXT_BLOCK_MAX);
    out->own_anchors = read_block(&r, TEXT_BLOCK_MAX);
    out->attach_rights = read_block(&r, TEXT_BLOCK_MAX);
    read_ranges(&r, out->synthetic);
    uint8_t durable = read_u8(&r);
    out->audit_durable = durable != 0;
    if (!read_done(&r) || durable > 1 || !lanes_are_good(out->lanes) ||
        !hosts_are_good(out->static_hosts) || !registry_is_good(out->registry) ||
        !blocks_are_good(out->own_addresses) || !anchors_are_good(out->own_anchors) ||
        !rights_are_good(out->attach_rights))
        return ERR_BAD;
    return 0;
}
