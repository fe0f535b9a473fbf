#include "policy/reader.h"

#include "policy/method.h"
#include "policy/own_field.h"

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

static int add_host(struct policy_source *s, struct lexer *l, const struct token *t) {
    const char *why = "malformed";
    struct host_rule *h = arena_alloc(&s->policy->arena, sizeof *h);
    if (!h)
        return ERR_MEMORY;
    *h = (struct host_rule){.text = t->text, .service = s->service, .at = t->at};
    if (host_pattern_parse(t->text, &h->pattern, &why) != 0) {
        errors_add(l->errors, t->at, "'%.*s' is no host: %s%s", WORD_ARG(t->text), why,
                   host_hint(t->text));
        return ERR_BAD;
    }
    if (s->policy->n_entries == HOSTS_MAX) {
        errors_add(l->errors, t->at, "more than %d hosts", HOSTS_MAX);
        return ERR_BAD;
    }
    *s->hosts = h;
    s->hosts = &h->next;
    s->policy->n_entries++;
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
    switch (address_classify(&r->base)) {
    case ADDRESS_UNSPECIFIED:
    case ADDRESS_MULTICAST:
    case ADDRESS_BROADCAST:
        return "such addresses are never dialled";
    default:
        return NULL;
    }
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

static int read_clear(void *source, struct lexer *l, const struct token *at) {
    (void)l;
    (void)at;
    ((struct policy_source *)source)->service->clear = true;
    return 0;
}

/* ---- the credential ---- */

/* Takes a token of RFC 9110 5.6.2 and copies it in lower case. */
static int read_lower(struct policy_source *s, struct lexer *l, const char *what,
                      struct view *out) {
    struct token t;
    if (lexer_word(l, what, &t) != 0)
        return ERR_BAD;
    bool good = t.text.n <= POLICY_NAME_MAX;
    for (size_t i = 0; i < t.text.n; i++)
        good = good && is_tchar(t.text.p[i]);
    if (!good) {
        errors_add(l->errors, t.at, "expected %s, not '%.*s'", what, WORD_ARG(t.text));
        return ERR_BAD;
    }
    uint8_t *lower = arena_alloc(&s->policy->arena, t.text.n);
    if (!lower)
        return ERR_MEMORY;
    for (size_t i = 0; i < t.text.n; i++)
        lower[i] = to_lower(t.text.p[i]);
    *out = view_of(lower, t.text.n);
    return 0;
}

static int read_header_place(struct policy_source *s, struct lexer *l,
                             struct credential_place *place) {
    struct position at = l->token.at;
    place->place = PLACE_HEADER;
    int err = read_lower(s, l, "the name of a field", &place->header);
    if (err != 0)
        return err;
    if (own_field_is(place->header)) {
        errors_add(l->errors, at, "a credential cannot stand in '%.*s'", VIEW_ARG(place->header));
        return ERR_BAD;
    }
    return lexer_skip_word(l, "scheme") ? read_lower(s, l, "a scheme", &place->scheme) : 0;
}

static int read_basic_place(struct lexer *l, struct credential_place *place) {
    static const char *const halves[] = {"user", "password"};
    struct token t;
    if (lexer_word(l, "'user' or 'password'", &t) != 0)
        return ERR_BAD;
    place->header = VIEW("authorization");
    place->scheme = VIEW("basic");
    place->place = view_equal(t.text, VIEW("user")) ? PLACE_BASIC_USER : PLACE_BASIC_PASSWORD;
    if (place->place == PLACE_BASIC_PASSWORD && !view_equal(t.text, VIEW("password")))
        return word_unknown(l, &t, halves, 2);
    return 0;
}

static int read_in(void *source, struct lexer *l, const struct token *at) {
    (void)at;
    static const char *const kinds[] = {"header", "basic"};
    struct policy_source *s = source;
    struct credential_place *place = &s->service->place;
    struct token t;
    if (lexer_word(l, "'header' or 'basic'", &t) != 0)
        return ERR_BAD;
    if (view_equal(t.text, VIEW("header")))
        return read_header_place(s, l, place);
    if (view_equal(t.text, VIEW("basic")))
        return read_basic_place(l, place);
    if (view_equal(t.text, VIEW("bearer"))) {
        errors_add(l->errors, t.at,
                   "a bearer token is written: in header authorization scheme bearer");
        return ERR_BAD;
    }
    return word_unknown(l, &t, kinds, 2);
}

static int read_credential(void *source, struct lexer *l, const struct token *at) {
    static const struct statement words[] = {{"in", read_in, true}};
    struct policy_source *s = source;
    struct token name = {.at = at->at};
    int err = lexer_name(l, "the name of a credential", &name);
    size_t before = l->errors->total;
    s->service->credential = name.text;
    s->service->credential_at = name.at;
    if (err != 0 && !lexer_at(l, TOKEN_OPEN))
        return err;
    int block = statements_read(l, words, 1, "a credential", s);
    if (block != 0 || err != 0)
        return block != 0 ? block : err;
    if (s->service->place.header.n != 0 || l->errors->total != before)
        return 0;
    errors_add(l->errors, name.at, "where the credential goes is missing: '{ in header ... }'");
    return ERR_BAD;
}

static int read_accept(void *source, struct lexer *l, const struct token *at) {
    static const char *const known[] = {"any", "cookies", "destinations"};
    struct service *service = ((struct policy_source *)source)->service;
    struct token t;
    if (lexer_word(l, "'any credential', 'cookies' or 'destinations'", &t) != 0)
        return ERR_BAD;
    bool *accept = view_equal(t.text, VIEW("any"))            ? &service->accept_any
                   : view_equal(t.text, VIEW("cookies"))      ? &service->accept_cookies
                   : view_equal(t.text, VIEW("destinations")) ? &service->accept_destinations
                                                              : NULL;
    if (!accept)
        return word_unknown(l, &t, known, 3);
    if (accept == &service->accept_any && !lexer_skip_word(l, "credential"))
        return lexer_expected(l, "'credential'");
    if (*accept)
        errors_add(l->errors, at->at, "the same 'accept' twice in a service");
    *accept = true;
    return 0;
}

/* ---- operations ---- */

static int read_method(struct policy_source *s, struct lexer *l, struct rule *r) {
    struct token t = lexer_take(l);
    bool star = view_equal(t.text, VIEW("*"));
    uint64_t bit = star ? methods_grantable() : method_bit(t.text);
    if (bit == 0) {
        struct guess g = guess_of(t.text);
        for (size_t i = 0; method_at(i).n; i++)
            guess_offer(&g, method_at(i));
        const char *guess = guess_text(&g);
        errors_add(l->errors, t.at, "'%.*s' is no registered method%s", WORD_ARG(t.text),
                   *guess ? guess : "; a path begins with '/'");
    } else if ((bit & ~s->methods) != 0) {
        errors_add(l->errors, t.at, "%.*s cannot be granted", WORD_ARG(t.text));
    } else if ((r->methods & bit) != 0) {
        errors_add(l->errors, t.at, "'%.*s' names a method twice", WORD_ARG(t.text));
    } else {
        r->methods |= bit;
        r->any_method = r->any_method || (star && s->methods == UINT64_MAX);
        return 0;
    }
    return ERR_BAD;
}

static int read_path(struct lexer *l, struct rule *r) {
    const char *why = "malformed";
    struct token t;
    if (lexer_word(l, "a path that begins with '/'", &t) != 0)
        return ERR_BAD;
    if (path_pattern_parse(t.text, &r->path, &why) == 0)
        return 0;
    errors_add(l->errors, t.at, "'%.*s' is no path pattern: %s", WORD_ARG(t.text), why);
    return ERR_BAD;
}

static int read_rule(void *source, struct lexer *l) {
    struct policy_source *s = source;
    struct rule *r = arena_alloc(&s->policy->arena, sizeof *r);
    if (!r)
        return ERR_MEMORY;
    r->at = l->token.at;
    if (s->n_rules++ == RULES_MAX) {
        errors_add(l->errors, r->at, "more than %d rules in a block", RULES_MAX);
        return ERR_BAD;
    }
    while (lexer_at(l, TOKEN_WORD) && !view_starts(l->token.text, VIEW("/")))
        if (read_method(s, l, r) != 0)
            return ERR_BAD;
    if (r->methods == 0 && lexer_at(l, TOKEN_WORD))
        return lexer_expected(l, "a method before the path");
    if (read_path(l, r) != 0)
        return ERR_BAD;
    *s->rules = r;
    s->rules = &r->next;
    return 0;
}

static int read_operation(void *source, struct lexer *l, const struct token *at) {
    struct policy_source *s = source;
    struct operation *o = arena_alloc(&s->policy->arena, sizeof *o);
    if (!o)
        return ERR_MEMORY;
    struct token name = {.at = at->at};
    int err = lexer_name(l, "the name of an operation", &name);
    size_t before = l->errors->total;
    *o = (struct operation){
        .name = name.text, .service = s->service, .index = s->policy->n_operations, .at = name.at};
    o->anonymous = lexer_skip_word(l, "anonymous");
    s->rules = &o->rules;
    s->n_rules = 0;
    s->methods = methods_grantable();
    if (err != 0 && !lexer_at(l, TOKEN_OPEN))
        return err;
    int block = lines_read(l, read_rule, "an operation", s);
    if (block != 0 || err != 0)
        return block != 0 ? block : err;
    if (!o->rules && l->errors->total == before) {
        errors_add(l->errors, name.at, "an operation without a rule");
        return ERR_BAD;
    }
    s->policy->n_operations++;
    *s->operations = o;
    s->operations = &o->next;
    return 0;
}

static int read_never(void *source, struct lexer *l, const struct token *at) {
    struct policy_source *s = source;
    if (lexer_skip_word(l, "all")) {
        if (s->service->never_all.line != 0)
            errors_add(l->errors, at->at, "a second 'never all', the first is in line %u",
                       s->service->never_all.line);
        s->service->never_all = at->at;
        return 0;
    }
    struct rule **first = s->rules = s->nevers;
    size_t before = l->errors->total;
    s->n_rules = 0;
    s->methods = UINT64_MAX;
    int err = lines_read(l, read_rule, "never", s);
    s->nevers = s->rules;
    if (err == 0 && !*first && l->errors->total == before)
        errors_add(l->errors, at->at, "a 'never' without a rule");
    return err;
}

/* ---- the block ---- */

int read_service(void *source, struct lexer *l, const struct token *at) {
    static const struct statement words[] = {
        {"host", read_host, false},
        {"port", read_port, false},
        {"credential", read_credential, true},
        {"operation", read_operation, false},
        {"never", read_never, false},
        {"accept", read_accept, false},
        {"range", read_range, false},
        {"clear", read_clear, true},
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
    *service = (struct service){.name = name.text, .at = name.at};
    service->index = s->policy->n_services++;
    *s->services = service;
    s->services = &service->next;
    s->service = service;
    s->hosts = &service->hosts;
    s->ranges = &service->ranges;
    s->n_ranges = 0;
    s->nevers = &service->nevers;
    s->operations = &service->operations;
    int block = err;
    if (err == 0 || lexer_at(l, TOKEN_OPEN))
        block = statements_read(l, words, sizeof words / sizeof words[0], "a service", s);
    s->service = NULL;
    service->broken = err != 0 || l->errors->total != before;
    return block != 0 ? block : err;
}
