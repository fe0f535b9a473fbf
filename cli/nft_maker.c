#include "cli/nft_maker.h"

#include "cli/nft_routes.h"

#include <stdlib.h>
#include <string.h>

enum { RULE_MAX = 1024 };

/* ---- its beginning, and its statements ---- */

void maker_begin(struct maker *m, enum nft_chain chain) {
    m->now = calloc(1, sizeof *m->now);
    if (!m->now) {
        m->failed = true;
        return;
    }
    m->now->chain = chain;
    m->now->expr = json_array();
    buf_init(&m->now->text, RULE_MAX);
}

static bool is_there(const struct nft_rules *rules, const struct nft_rule *wanted) {
    for (const struct nft_rule *r = rules->first; r; r = r->next)
        if (r->chain == wanted->chain && view_equal(buf_view(&r->text), buf_view(&wanted->text)))
            return true;
    return false;
}

/* One that is there already, since listeners share an interface, is not made twice. */
void maker_end(struct maker *m) {
    struct nft_rule *r = m->now;
    if (!r)
        return;
    m->now = NULL;
    m->failed = m->failed || !buf_ok(&r->text) || !r->expr;
    if (m->failed || is_there(m->rules, r)) {
        nft_rule_free(r);
        return;
    }
    *m->rules->last = r;
    m->rules->last = &r->next;
}

void maker_put(struct maker *m, json_t *statement, const char *text) {
    if (!m->now) {
        json_decref(statement);
        return;
    }
    buf_printf(&m->now->text, " %s", text);
    if (json_array_append_new(m->now->expr, statement) != 0)
        m->failed = true;
}

static void put_match(struct maker *m, const char *op, json_t *left, json_t *right,
                      const char *text) {
    maker_put(m, json_pack("{s:{s:s,s:o,s:o}}", "match", "op", op, "left", left, "right", right),
              text);
}

void maker_put_meta(struct maker *m, const char *key, const char *value) {
    char text[64];
    bool named = strcmp(key, "iifname") == 0 || strcmp(key, "oifname") == 0;
    snprintf(text, sizeof text, named ? "%s \"%s\"" : "meta %s %s", key, value);
    put_match(m, "==", json_pack("{s:{s:s}}", "meta", "key", key), json_string(value), text);
}

void maker_put_payload(struct maker *m, const char *protocol, const char *field, json_t *value,
                       const char *written) {
    char text[128];
    snprintf(text, sizeof text, "%s %s %s", protocol, field, written);
    put_match(m, "==", json_pack("{s:{s:s,s:s}}", "payload", "protocol", protocol, "field", field),
              value, text);
}

void maker_put_port(struct maker *m, const char *protocol, uint16_t port) {
    char text[8];
    snprintf(text, sizeof text, "%u", port);
    maker_put_payload(m, protocol, "dport", json_integer(port), text);
}

static const char *ip(uint8_t family) {
    return family == 4 ? "ip" : "ip6";
}

void maker_put_range_of(struct maker *m, const char *protocol, const char *field,
                        const struct range *r) {
    char address[ADDRESS_TEXT_SIZE], text[ADDRESS_TEXT_SIZE + 8];
    address_format(&r->base, address);
    bool one = r->bits == (r->base.family == 4 ? 32 : 128);
    snprintf(text, sizeof text, one ? "%s" : "%s/%u", address, r->bits);
    maker_put_payload(
        m, protocol, field,
        one ? json_string(address)
            : json_pack("{s:{s:s,s:i}}", "prefix", "addr", address, "len", (int)r->bits),
        text);
}

void maker_put_range(struct maker *m, const char *field, const struct range *r) {
    maker_put_range_of(m, ip(r->base.family), field, r);
}

void maker_put_address(struct maker *m, const char *field, const struct address *a) {
    struct range one = {*a, a->family == 4 ? 32 : 128};
    maker_put_range(m, field, &one);
}

void maker_put_connection(struct maker *m, const char *key, const char *value) {
    char text[64];
    bool is_set = strcmp(key, "direction") != 0;
    snprintf(text, sizeof text, "ct %s %s", key, value);
    put_match(m, is_set ? "in" : "==", json_pack("{s:{s:s}}", "ct", "key", key), json_string(value),
              text);
}

/* ---- how a rule ends ---- */

void maker_end_plainly(struct maker *m, const char *verdict) {
    maker_put(m, json_pack("{s:n}", verdict), verdict);
    maker_end(m);
}

bool maker_is_wildcard(const struct address *a) {
    static const uint8_t zeros[sizeof a->bytes];
    return memcmp(a->bytes, zeros, a->family == 4 ? 4 : 16) == 0;
}

void maker_end_leading_to(struct maker *m, const struct config_listener *l) {
    char address[ADDRESS_TEXT_SIZE], text[ADDRESS_TEXT_SIZE + 32];
    if (maker_is_wildcard(&l->address)) {
        snprintf(text, sizeof text, "redirect to :%u", l->port);
        maker_put(m, json_pack("{s:{s:i}}", "redirect", "port", (int)l->port), text);
    } else {
        address_format(&l->address, address);
        snprintf(text, sizeof text,
                 l->address.family == 4 ? "dnat %s to %s:%u" : "dnat %s to [%s]:%u",
                 ip(l->address.family), address, l->port);
        maker_put(m,
                  json_pack("{s:{s:s,s:s,s:i}}", "dnat", "family", ip(l->address.family), "addr",
                            address, "port", (int)l->port),
                  text);
    }
    maker_end(m);
}

void maker_end_diverting(struct maker *m, const struct config_listener *l) {
    char address[ADDRESS_TEXT_SIZE] = "", text[ADDRESS_TEXT_SIZE + 32];
    const char *family = ip(l->address.family);
    bool anywhere = maker_is_wildcard(&l->address);
    if (!anywhere)
        address_format(&l->address, address);
    snprintf(text, sizeof text,
             l->address.family == 4 || anywhere ? "tproxy %s to %s:%u" : "tproxy %s to [%s]:%u",
             family, address, l->port);
    maker_put(m,
              json_pack("{s:{s:s,s:s*,s:i}}", "tproxy", "family", family, "addr",
                        anywhere ? NULL : address, "port", (int)l->port),
              text);
    snprintf(text, sizeof text, "meta mark set 0x%08x", NFT_MARK);
    maker_put(m,
              json_pack("{s:{s:{s:{s:s}},s:i}}", "mangle", "key", "meta", "key", "mark", "value",
                        NFT_MARK),
              text);
    maker_end_plainly(m, "accept");
}

void maker_end_refusing(struct maker *m, bool tcp) {
    if (tcp) {
        maker_put_meta(m, "l4proto", "tcp");
        maker_put(m, json_pack("{s:{s:s}}", "reject", "type", "tcp reset"),
                  "reject with tcp reset");
    } else {
        maker_put(m,
                  json_pack("{s:{s:s,s:s}}", "reject", "type", "icmpx", "expr", "admin-prohibited"),
                  "reject with icmpx admin-prohibited");
    }
    maker_end(m);
}
