#include "egress/dns_answer.h"

#include <string.h>

enum {
    HEADER_SIZE = 12,
    LABEL_MAX = 63,
    POINTER = 0xc0,
    FLAG_ANSWER = 0x8000,
    FLAG_OPCODE = 0x7800,
    FLAG_TRUNCATED = 0x0200,
    CLASS_IN = 1,
};

/* A name as text; `odd` when a label holds what no host name has, so that the text must not be trusted. */
struct name {
    char text[HOST_SIZE];
    size_t n;
    bool odd;
};

struct walk {
    struct view message;
    size_t at;
    uint16_t left; /* records not yet read */
};

struct resource {
    struct name owner;
    uint16_t type, class;
    size_t data_at;
    struct view data;
};

static int append_label(struct name *out, struct view label) {
    bool first = out->n == 0;
    if (label.n + (first ? 0 : 1) >= sizeof out->text - out->n)
        return ERR_BAD;
    if (!first)
        out->text[out->n++] = '.';
    for (size_t i = 0; i < label.n; i++) {
        uint8_t c = label.p[i];
        if (!is_alnum(c) && c != '-' && c != '_')
            out->odd = true;
        out->text[out->n++] = (char)to_lower(c);
    }
    return 0;
}

/*
 * Reads the name at *at and moves *at behind it (RFC 1035 4.1.4). A pointer must point in front of
 * everything read of this name so far, so that there are no loops.
 */
static int read_name(struct view message, size_t *at, struct name *out) {
    size_t here = *at, start = *at;
    bool jumped = false;
    *out = (struct name){{0}, 0, false};
    for (;;) {
        struct reader r = reader_of(view_skip(message, here));
        uint8_t length = read_u8(&r);
        if ((length & POINTER) == POINTER) {
            size_t target = (size_t)(length & ~POINTER & 0xff) << 8 | read_u8(&r);
            if (r.bad || target >= start)
                return ERR_BAD;
            if (!jumped)
                *at = here + 2;
            jumped = true;
            here = start = target;
            continue;
        }
        struct view label = read_bytes(&r, length);
        if (r.bad || length > LABEL_MAX)
            return ERR_BAD;
        here += 1 + (size_t)length;
        if (length == 0)
            break;
        if (append_label(out, label) != 0)
            return ERR_BAD;
    }
    if (!jumped)
        *at = here;
    out->text[out->n] = 0;
    return 0;
}

static bool name_is(const struct name *n, const char *canonical) {
    return !n->odd && view_equal(view_of(n->text, n->n), view_str(canonical));
}

/* Header and question; leaves w at the first record of the answer section. */
static int read_question(struct walk *w, const char *name, enum dns_type type) {
    struct reader r = reader_of(w->message);
    (void)read_u16(&r); /* id: matched by c-ares */
    uint16_t flags = read_u16(&r), questions = read_u16(&r);
    w->left = read_u16(&r);
    if (r.bad || (flags & (FLAG_ANSWER | FLAG_OPCODE | FLAG_TRUNCATED)) != FLAG_ANSWER ||
        questions != 1)
        return ERR_BAD;
    struct name asked;
    w->at = HEADER_SIZE;
    if (read_name(w->message, &w->at, &asked) != 0 || !name_is(&asked, name))
        return ERR_BAD;
    r = reader_of(view_skip(w->message, w->at));
    uint16_t asked_type = read_u16(&r), class = read_u16(&r);
    w->at += 4;
    return r.bad || asked_type != type || class != CLASS_IN ? ERR_BAD : 0;
}

/* 1: a record; 0: no more; ERR_BAD. */
static int next_resource(struct walk *w, struct resource *out) {
    if (w->left == 0)
        return 0;
    w->left--;
    if (read_name(w->message, &w->at, &out->owner) != 0)
        return ERR_BAD;
    struct reader r = reader_of(view_skip(w->message, w->at));
    out->type = read_u16(&r);
    out->class = read_u16(&r);
    (void)read_u32(&r); /* TTL: nothing is kept for later */
    out->data = read_bytes(&r, read_u16(&r));
    if (r.bad)
        return ERR_BAD;
    out->data_at = w->at + 10;
    w->at = out->data_at + out->data.n;
    return 1;
}

/* Finds the CNAME of `of`. 1 with its target, 0 without, ERR_BAD. */
static int find_alias(struct walk w, const char *of, struct name *target) {
    struct resource r;
    int more;
    while ((more = next_resource(&w, &r)) == 1) {
        if (r.class != CLASS_IN || r.type != DNS_CNAME || !name_is(&r.owner, of))
            continue;
        size_t at = r.data_at;
        bool whole = read_name(w.message, &at, target) == 0 && at == r.data_at + r.data.n;
        return whole ? 1 : ERR_BAD;
    }
    return more;
}

static bool is_canonical(const struct name *n) {
    struct authority a;
    return !n->odd && authority_parse_host(view_of(n->text, n->n), 1, &a, NULL) == 0 &&
           a.kind == HOST_NAME && strcmp(a.host, n->text) == 0;
}

static int follow_chain(const struct walk *w, const char *name, struct dns_answer *out,
                        const char **why) {
    const char *last = name;
    struct name target;
    int found;
    while ((found = find_alias(*w, last, &target)) == 1) {
        if (!is_canonical(&target)) {
            *why = "an alias in the answer is not a host name";
            return ERR_BAD;
        }
        if (out->n_aliases == DNS_ALIASES_MAX) {
            *why = "the chain of aliases is too long or a loop";
            return ERR_BAD;
        }
        char *copy = out->aliases[out->n_aliases++];
        memcpy(copy, target.text, target.n + 1);
        last = copy;
    }
    return found;
}

static int add_address(struct dns_answer *out, enum dns_type type, struct view data,
                       const char **why) {
    if (data.n != (type == DNS_A ? 4u : 16u)) {
        *why = "an address in the answer has the wrong size";
        return ERR_BAD;
    }
    if (out->n_addresses == DNS_ADDRESSES_MAX) {
        *why = "the answer has too many addresses";
        return ERR_BAD;
    }
    struct address *a = &out->addresses[out->n_addresses++];
    *a = (struct address){.family = type == DNS_A ? 4 : 6};
    memcpy(a->bytes, data.p, data.n);
    return 0;
}

int dns_answer_read(struct view message, const char *name, enum dns_type type,
                    struct dns_answer *out, const char **why) {
    struct walk w = {.message = message};
    struct resource r;
    out->n_addresses = out->n_aliases = 0;
    *why = "the answer is malformed";
    if (read_question(&w, name, type) != 0) {
        *why = "the answer is malformed, truncated or to another question";
        return ERR_BAD;
    }
    if (follow_chain(&w, name, out, why) != 0)
        return ERR_BAD;
    const char *last = out->n_aliases ? out->aliases[out->n_aliases - 1] : name;
    int more;
    while ((more = next_resource(&w, &r)) == 1) {
        if (r.class != CLASS_IN || r.type != type || !name_is(&r.owner, last))
            continue;
        if (add_address(out, type, r.data, why) != 0)
            return ERR_BAD;
    }
    return more;
}
