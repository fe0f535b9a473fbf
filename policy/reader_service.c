#include "policy/reader.h"

#include "policy/idna.h"

/* ---- where it is ---- */

/* What is meant, where that is plain. */
static const char *host_hint(struct view text) {
    struct view end = view_skip(text, view_find(text, ':') + 1);
    if (view_search(text, VIEW("://")) < text.n)
        return ": give the name alone, without the scheme and a path";
    for (size_t i = 0; i < end.n; i++)
        if (!is_digit(end.p[i]))
            return "";
    return end.n > 0 ? ": the port goes into a line `port` of the service" : "";
}

/* The host as it is asked for on the wire: in ASCII. */
static int parse_host(struct policy_source *s, struct view text, struct host_rule *h,
                      const char **why) {
    struct buf ascii;
    buf_init(&ascii, HOST_SIZE);
    int err = idna_to_ascii(text, &ascii, why);
    if (err == 0) {
        h->text = arena_copy(&s->policy->arena, buf_view(&ascii));
        err = h->text.p ? host_pattern_parse(h->text, &h->pattern, why) : ERR_MEMORY;
    }
    buf_free(&ascii);
    return err;
}

static int add_host(struct policy_source *s, struct lexer *l, const struct token *t) {
    const char *why = "malformed";
    struct host_rule *h = arena_alloc(&s->policy->arena, sizeof *h);
    if (!h)
        return ERR_MEMORY;
    *h = (struct host_rule){.service = s->service, .at = t->at};
    int err = parse_host(s, t->text, h, &why);
    if (err == ERR_MEMORY)
        return err;
    if (err != 0) {
        errors_add(l->errors, t->at, "'%.*s' is no host: %s%s", WORD_ARG(t->text), why,
                   host_hint(t->text));
        return ERR_BAD;
    }
    if (s->policy->n_hosts == HOSTS_MAX) {
        errors_add(l->errors, t->at, "more than %d hosts", HOSTS_MAX);
        return ERR_BAD;
    }
    *s->hosts = h;
    s->hosts = &h->next;
    s->policy->n_hosts++;
    return 0;
}

/* `wide` speaks for the stars of its line. */
static int set_wide(struct lexer *l, struct position at, struct host_rule *hosts) {
    bool star = false;
    for (struct host_rule *h = hosts; h; h = h->next) {
        h->wide = h->pattern.reach != REACH_EXACT;
        star = star || h->wide;
    }
    if (star)
        return 0;
    errors_add(l->errors, at, "'wide' is for hosts with a star, there is none on this line");
    return ERR_BAD;
}

static int read_host(void *source, struct lexer *l, const struct token *at) {
    (void)at;
    struct policy_source *s = source;
    struct host_rule **first = s->hosts;
    int err = 0;
    do {
        struct token t;
        struct position where = l->token.at;
        if (s->hosts != first && lexer_skip_word(l, "wide"))
            return err != 0 ? err : set_wide(l, where, *first);
        if (lexer_word(l, "a host name or address", &t) != 0)
            return ERR_BAD;
        int added = add_host(source, l, &t);
        if (added == ERR_MEMORY)
            return added;
        err = added != 0 ? added : err;
    } while (lexer_at(l, TOKEN_WORD));
    return err;
}

static int read_port(void *source, struct lexer *l, const struct token *at) {
    (void)at;
    struct service *service = ((struct policy_source *)source)->service;
    do {
        struct position where = l->token.at;
        uint64_t port;
        if (lexer_number(l, "a port", 1, UINT16_MAX, &port) != 0)
            return ERR_BAD;
        for (size_t i = 0; i < service->n_ports; i++)
            if (service->ports[i] == port) {
                errors_add(l->errors, where, "port %u twice", (unsigned)port);
                return ERR_BAD;
            }
        if (service->n_ports == PORTS_MAX) {
            errors_add(l->errors, where, "more than %d ports", PORTS_MAX);
            return ERR_BAD;
        }
        service->ports[service->n_ports++] = (uint16_t)port;
    } while (lexer_at(l, TOKEN_WORD));
    return 0;
}

/* Wide ranges would undo what they make an exception from. */
static const char *range_fault(const struct range *r) {
    if (r->bits < (r->base.family == 4 ? 8 : 7))
        return "the range is too wide, its prefix has at least 8 bits (IPv6: 7)";
    return address_is_one(&r->base) ? NULL : "such addresses are never dialled";
}

static int read_range(void *source, struct lexer *l, const struct token *at) {
    (void)at;
    struct policy_source *s = source;
    do {
        struct token t;
        if (lexer_word(l, "an address or a range of addresses", &t) != 0)
            return ERR_BAD;
        struct range_rule *r = arena_alloc(&s->policy->arena, sizeof *r);
        if (!r)
            return ERR_MEMORY;
        r->at = t.at;
        const char *fault = "expected ADDRESS or ADDRESS/BITS with no bits set behind the prefix";
        if (range_parse(t.text, &r->range) == 0)
            fault = s->n_ranges++ < RANGES_MAX ? range_fault(&r->range) : "too many ranges";
        if (fault) {
            errors_add(l->errors, t.at, "'%.*s': %s", WORD_ARG(t.text), fault);
            return ERR_BAD;
        }
        *s->ranges = r;
        s->ranges = &r->next;
    } while (lexer_at(l, TOKEN_WORD));
    return 0;
}

/* ---- how it is spoken to ---- */

static int set_tls(struct policy_source *s, struct lexer *l, enum service_tls tls,
                   struct position at) {
    if (s->service->tls_at.line != 0) {
        errors_add(l->errors, at, "a second word on TLS, the first is in line %u",
                   s->service->tls_at.line);
        return ERR_BAD;
    }
    s->service->tls = tls;
    s->service->tls_at = at;
    return 0;
}

static int read_clear(void *source, struct lexer *l, const struct token *at) {
    return set_tls(source, l, SERVICE_CLEAR, at->at);
}

static int read_tls(void *source, struct lexer *l, const struct token *at) {
    static const char *const known[] = {"intercept", "splice", "clear"};
    size_t which;
    struct policy_source *s = source;
    if (word_choose(l, "'intercept', 'splice' or 'clear'", known, 3, &which) != 0 ||
        set_tls(source, l, (enum service_tls)which, at->at) != 0)
        return ERR_BAD;
    if (which != SERVICE_SPLICE || !lexer_skip_word(l, "at"))
        return 0;
    if (!lexer_skip_word(l, "most"))
        return lexer_expected(l, "'most'");
    return word_size(l, "a size", &s->service->splice_most);
}

static int read_alpn(void *source, struct lexer *l, const struct token *at) {
    (void)source;
    (void)at;
    do {
        struct token t;
        if (lexer_word(l, "a protocol such as http/1.1", &t) != 0)
            return ERR_BAD;
        if (!view_equal(t.text, VIEW("http/1.1"))) {
            errors_add(l->errors, t.at, "'%.*s' is not offered yet, only http/1.1",
                       WORD_ARG(t.text));
            return ERR_BAD;
        }
    } while (lexer_at(l, TOKEN_WORD));
    return 0;
}

enum { LOCATIONS_MAX = 256 };

static struct location_rule *begin_location(struct location_rule *r, struct lexer *l,
                                            struct position at) {
    r->given = true;
    r->at = at;
    r->not = lexer_skip_word(l, "not");
    return r;
}

static int read_country(void *source, struct lexer *l, const struct token *at) {
    struct policy_source *s = source;
    struct location_rule *r = begin_location(&s->service->country, l, at->at);
    r->countries = arena_array(&s->policy->arena, LOCATIONS_MAX, sizeof *r->countries);
    if (!r->countries)
        return ERR_MEMORY;
    do {
        struct token t;
        if (lexer_word(l, "a country of two capital letters", &t) != 0)
            return ERR_BAD;
        bool good = t.text.n == 2 && r->n < LOCATIONS_MAX;
        for (size_t i = 0; good && i < 2; i++)
            good = t.text.p[i] >= 'A' && t.text.p[i] <= 'Z';
        if (!good) {
            errors_add(l->errors, t.at, "expected a country of two capital letters, not '%.*s'",
                       WORD_ARG(t.text));
            return ERR_BAD;
        }
        r->countries[r->n++] = t.text;
    } while (lexer_at(l, TOKEN_WORD));
    return 0;
}

static int read_asn(void *source, struct lexer *l, const struct token *at) {
    struct policy_source *s = source;
    struct location_rule *r = begin_location(&s->service->asn, l, at->at);
    r->systems = arena_array(&s->policy->arena, LOCATIONS_MAX, sizeof *r->systems);
    if (!r->systems)
        return ERR_MEMORY;
    do {
        if (r->n == LOCATIONS_MAX)
            return lexer_expected(l, "at most 256 autonomous systems");
        if (lexer_number(l, "the number of an autonomous system", 1, UINT32_MAX,
                         &r->systems[r->n]) != 0)
            return ERR_BAD;
        r->n++;
    } while (lexer_at(l, TOKEN_WORD));
    return 0;
}

static int read_pin(struct policy_source *s, struct lexer *l) {
    struct token t;
    if (lexer_word(l, "sha256: and 64 hexadecimal digits", &t) != 0)
        return ERR_BAD;
    uint8_t *pin = arena_alloc(&s->policy->arena, 32);
    if (!pin)
        return ERR_MEMORY;
    if (!view_starts(t.text, VIEW("sha256:")) || hex_decode(view_skip(t.text, 7), pin, 32) != 0) {
        errors_add(l->errors, t.at, "expected sha256: and 64 hexadecimal digits, not '%.*s'",
                   WORD_ARG(t.text));
        return ERR_BAD;
    }
    s->service->upstream.pin = pin;
    return 0;
}

static int read_upstream(void *source, struct lexer *l, const struct token *at) {
    static const char *const known[] = {"ca", "pin", "client-certificate"};
    struct policy_source *s = source;
    struct upstream_terms *u = &s->service->upstream;
    size_t which;
    if (word_choose(l, "'ca', 'pin' or 'client-certificate'", known, 3, &which) != 0)
        return ERR_BAD;
    bool said = which == 0   ? u->ca.n > 0
                : which == 1 ? u->pin != NULL
                             : u->client_certificate.n > 0;
    if (said) {
        errors_add(l->errors, at->at, "a second 'upstream %s' in a service", known[which]);
        return ERR_BAD;
    }
    u->at = at->at;
    if (which == 1)
        return read_pin(s, l);
    struct token t;
    int err = which == 0 ? lexer_word(l, "a file of certificates", &t)
                         : lexer_name(l, "the name of a client certificate", &t);
    if (err == 0)
        *(which == 0 ? &u->ca : &u->client_certificate) = t.text;
    return err;
}

/* ---- what it takes ---- */

static int accept_ours(struct service *service, struct lexer *l, struct position at) {
    service->accept_at = at;
    if (!lexer_skip_word(l, "or"))
        return 0;
    if (!lexer_skip_word(l, "none"))
        return lexer_expected(l, "'none'");
    service->accept_none = true;
    return 0;
}

static int accept_once(struct lexer *l, struct position at, bool *accept) {
    if (*accept)
        errors_add(l->errors, at, "the same 'accept' twice in a service");
    *accept = true;
    return 0;
}

static int read_accept(void *source, struct lexer *l, const struct token *at) {
    static const char *const known[] = {"ours", "any", "cookies", "destinations"};
    struct service *service = ((struct policy_source *)source)->service;
    bool *const accepts[] = {NULL, &service->accept_any, &service->accept_cookies,
                             &service->accept_destinations};
    size_t which;
    if (word_choose(l, "'ours', 'any', 'cookies' or 'destinations'", known, 4, &which) != 0)
        return ERR_BAD;
    if (which == 1)
        lexer_skip_word(l, "credential");
    if (which != 0)
        return accept_once(l, at->at, accepts[which]);
    if (service->accept_at.line == 0)
        return accept_ours(service, l, at->at);
    errors_add(l->errors, at->at, "the same 'accept' twice in a service");
    return ERR_BAD;
}

static int read_path_allow(void *source, struct lexer *l, const struct token *at) {
    static const char *const known[] = {"encoded-slash", "parameters"};
    struct service *service = ((struct policy_source *)source)->service;
    bool *const allowed[] = {&service->encoded_slash, &service->parameters};
    (void)at;
    if (!lexer_skip_word(l, "allow"))
        return lexer_expected(l, "'allow'");
    do {
        struct position where = l->token.at;
        size_t which;
        if (word_choose(l, "'encoded-slash' or 'parameters'", known, 2, &which) != 0)
            return ERR_BAD;
        if (*allowed[which]) {
            errors_add(l->errors, where, "'%s' is allowed twice", known[which]);
            return ERR_BAD;
        }
        *allowed[which] = true;
    } while (lexer_at(l, TOKEN_WORD));
    return 0;
}

static int read_limit(void *source, struct lexer *l, const struct token *at) {
    struct policy_source *s = source;
    (void)at;
    if (!lexer_skip_word(l, "body"))
        return lexer_expected(l, "'body'");
    return word_size(l, "a size", &s->service->body_limit);
}

/* ---- the block ---- */

int read_service(void *source, struct lexer *l, const struct token *at) {
    static const struct statement words[] = {
        {"host", read_host, STATEMENT_NAMES},
        {"port", read_port, false},
        {"tls", read_tls, false},
        {"alpn", read_alpn, true},
        {"country", read_country, true},
        {"asn", read_asn, true},
        {"upstream", read_upstream, STATEMENT_NAMES},
        {"credential", read_credential, false},
        {"operation", read_operation, false},
        {"never", read_never, false},
        {"accept", read_accept, false},
        {"range", read_range, false},
        {"clear", read_clear, true},
        {"path", read_path_allow, false},
        {"limit", read_limit, true},
        {"expect", read_expect, false},
    };
    struct policy_source *s = source;
    if (s->policy->n_services == SERVICES_MAX) {
        errors_add(l->errors, at->at, "more than %d services", SERVICES_MAX);
        return ERR_BAD;
    }
    struct service *service = arena_alloc(&s->policy->arena, sizeof *service);
    if (!service)
        return ERR_MEMORY;
    struct token name = {.at = at->at};
    size_t before = l->errors->total;
    int err = lexer_name(l, "the name of a service", &name);
    *service = (struct service){
        .name = name.text, .at = name.at, .body_limit = UINT64_MAX, .splice_most = UINT64_MAX};
    service->index = s->policy->n_services++;
    *s->services = service;
    s->services = &service->next;
    s->service = service;
    s->hosts = &service->hosts;
    s->ranges = &service->ranges;
    s->n_ranges = s->n_credentials = 0;
    s->credentials = &service->credentials;
    s->mentions = &service->guards;
    s->nevers = &service->nevers;
    s->operations = &service->operations;
    int block = err;
    if (err == 0 || lexer_at(l, TOKEN_OPEN))
        block = statements_read(l, words, sizeof words / sizeof words[0], "a service", s);
    s->service = NULL;
    service->broken = err != 0 || l->errors->total != before;
    return block != 0 ? block : err;
}
