#include "policy/dns_message.h"

#include "base/base64.h"
#include "policy/path_segment.h"

/* ---- types ---- */

/* A type of application/dns-message, dns-json, dns+json, oblivious-dns-message or dns-udpwireformat in a list of types. */
static bool has_type(struct view types) {
    static const struct view marks[] = {{(const uint8_t *)"/dns", 4},
                                        {(const uint8_t *)"/oblivious-dns", 14}};
    for (size_t at; (at = view_find(types, '/')) < types.n; types = view_skip(types, at + 1))
        for (size_t i = 0; i < sizeof marks / sizeof *marks; i++) {
            struct view found = view_head(view_skip(types, at), marks[i].n);
            struct view rest = view_skip(types, at + marks[i].n);
            bool ends = rest.n == 0 || !is_alnum(rest.p[0]);
            if (ends && view_equal_nocase(found, marks[i]))
                return true;
        }
    return false;
}

static bool has_type_field(const struct request_facts *f) {
    for (size_t i = 0; f->fields && i < f->n_fields; i++) {
        struct view name = f->fields[i].name;
        if ((view_equal_nocase(name, VIEW("content-type")) ||
             view_equal_nocase(name, VIEW("accept"))) &&
            has_type(f->fields[i].value))
            return true;
    }
    return false;
}

/* ---- `?dns=` and a message in base64url, `?ct=` and a type ---- */

/* A message's header: a question, one name, no answer. Lenient servers take base64's own digits, which stand there encoded. */
static bool begins_message(struct view v) {
    uint8_t header[12];
    for (size_t i = 0; i < 16; i += 4) {
        uint32_t bits = 0;
        for (size_t k = 0; k < 4; k++) {
            int six = v.n > 0 ? base64_value(path_segment_decoded(&v)) : -1;
            if (six < 0)
                return false;
            bits = bits << 6 | (uint32_t)six;
        }
        header[i / 4 * 3] = (uint8_t)(bits >> 16);
        header[i / 4 * 3 + 1] = (uint8_t)(bits >> 8);
        header[i / 4 * 3 + 2] = (uint8_t)bits;
    }
    return (header[2] & 0xf8) == 0 && header[4] == 0 && header[5] == 1 && header[6] == 0 &&
           header[7] == 0;
}

/* Some take the type that Accept has from here. */
static bool names_wanted_type(struct view value) {
    uint8_t memory[64];
    struct view type;
    return percent_decode_into(value, true, memory, sizeof memory, &type) && has_type(type);
}

static bool has_parameter(const struct target *t) {
    struct view rest = t->query, name, value;
    while (t->has_query && target_pair(&rest, &name, &value))
        if ((view_equal_nocase(name, VIEW("dns")) && begins_message(value)) ||
            (view_equal_nocase(name, VIEW("ct")) && names_wanted_type(value)))
            return true;
    return false;
}

/* ---- the whole ---- */

bool dns_message_is_in(const struct request_facts *f) {
    return has_parameter(f->target) || has_type_field(f);
}

static bool names_type(const struct condition *c) {
    for (size_t i = 0; i < c->n_names; i++)
        if (has_type(c->names[i]))
            return true;
    return false;
}

bool dns_message_is_named(const struct condition *c) {
    for (; c; c = c->next) {
        bool says = (c->kind == CONDITION_TYPE && names_type(c)) ||
                    (c->kind == CONDITION_HEADER && view_equal(c->name, VIEW("accept"))) ||
                    (c->kind == CONDITION_QUERY &&
                     (view_equal(c->name, VIEW("dns")) || view_equal(c->name, VIEW("ct"))));
        if (says && !c->no)
            return true;
    }
    return false;
}
