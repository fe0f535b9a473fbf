#include "daemon/config_reader.h"

#include <string.h>

/* ---- paths ---- */

static struct view folder_of(const char *file) {
    struct view v = view_str(file);
    while (v.n > 0 && v.p[v.n - 1] != '/')
        v.n--;
    return v;
}

/* "folder/name" with a NUL behind it; a name that is absolute stays as it is. */
static const char *join(struct config_source *s, struct view folder, struct view name) {
    struct arena *a = &s->config->arena;
    if (view_starts(name, VIEW("/")))
        return (const char *)arena_copy(a, name).p;
    struct buf path;
    buf_init(&path, folder.n + name.n + 1);
    buf_put(&path, folder);
    buf_put(&path, name);
    const char *out = buf_ok(&path) ? (const char *)arena_copy(a, buf_view(&path)).p : NULL;
    buf_free(&path);
    return out;
}

/* Takes a word as a path and makes it absolute or relative to the folder. */
static int read_path(struct config_source *s, struct lexer *l, const char *what, const char **out) {
    struct token t;
    if (lexer_word(l, what, &t) != 0)
        return ERR_BAD;
    *out = join(s, s->folder, t.text);
    return *out ? 0 : ERR_MEMORY;
}

static int read_state(void *source, struct lexer *l, const struct token *at) {
    (void)at;
    struct config_source *s = source;
    return read_path(s, l, "a directory", &s->config->state);
}

static int read_policy(void *source, struct lexer *l, const struct token *at) {
    (void)at;
    struct config_source *s = source;
    return read_path(s, l, "a file", &s->config->policy);
}

static int add_trust(struct config_source *s, struct lexer *l) {
    struct position where = l->token.at;
    struct config_trust *t = arena_alloc(&s->config->arena, sizeof *t);
    int err = t ? read_path(s, l, "a file", &t->path) : ERR_MEMORY;
    if (err != 0)
        return err;
    for (const struct config_trust *q = s->config->trust; q; q = q->next)
        if (strcmp(q->path, t->path) == 0) {
            errors_add(l->errors, where, "the same file twice");
            return ERR_BAD;
        }
    if (s->n_trust++ == TRUST_MAX) {
        errors_add(l->errors, where, "more than %d files", TRUST_MAX);
        return ERR_BAD;
    }
    t->at = where;
    *s->trust = t;
    s->trust = &t->next;
    return 0;
}

static int read_trust(void *source, struct lexer *l, const struct token *at) {
    struct config_source *s = source;
    if (lexer_skip_word(l, "file"))
        return add_trust(s, l);
    if (!lexer_skip_word(l, "system"))
        return lexer_expected(l, "'system' or 'file'");
    if (s->config->trust_system) {
        errors_add(l->errors, at->at, "a second 'trust system'");
        return ERR_BAD;
    }
    s->config->trust_system = true;
    return 0;
}

static int read_vault(void *source, struct lexer *l, const struct token *at) {
    (void)at;
    struct config_source *s = source;
    if (!lexer_skip_word(l, "key"))
        return lexer_expected(l, "'key'");
    return read_path(s, l, "a file", &s->config->vault_key);
}

static int read_geo(void *source, struct lexer *l, const struct token *at) {
    (void)at;
    struct config_source *s = source;
    const char **out = lexer_at_word(l, "country") ? &s->config->geo_country
                       : lexer_at_word(l, "asn")   ? &s->config->geo_asn
                                                   : NULL;
    if (!out)
        return lexer_expected(l, "'country' or 'asn'");
    struct token kind = lexer_take(l);
    if (*out) {
        errors_add(l->errors, kind.at, "a second 'geo %.*s'", VIEW_ARG(kind.text));
        return ERR_BAD;
    }
    return read_path(s, l, "a file", out);
}

/* ---- users ---- */

static int read_uid(void *source, struct lexer *l, const struct token *at) {
    (void)at;
    struct config *c = ((struct config_source *)source)->config;
    if (!c->control_uids)
        c->control_uids = arena_array(&c->arena, CONTROL_UIDS_MAX, sizeof *c->control_uids);
    if (!c->control_uids)
        return ERR_MEMORY;
    do {
        struct position where = l->token.at;
        uint32_t uid;
        if (config_id(l, false, &uid) != 0)
            return ERR_BAD;
        if (c->n_control_uids == CONTROL_UIDS_MAX) {
            errors_add(l->errors, where, "more than %d user ids", CONTROL_UIDS_MAX);
            return ERR_BAD;
        }
        c->control_uids[c->n_control_uids++] = uid;
    } while (lexer_at(l, TOKEN_WORD));
    return 0;
}

/* The kernel keeps Unix socket paths in 108 bytes with their NUL (unix(7)). */
enum { SOCKET_PATH_MAX = 107 };

static int check_socket_path(struct lexer *l, struct position at, const char *path) {
    if (strlen(path) <= SOCKET_PATH_MAX)
        return 0;
    errors_add(l->errors, at, "the path of a Unix socket has at most %d bytes, this one has %zu",
               SOCKET_PATH_MAX, strlen(path));
    return ERR_BAD;
}

int config_socket(struct config_source *s, struct lexer *l, const char **out) {
    struct position at = l->token.at;
    int err = read_path(s, l, "the path of a Unix socket", out);
    return err != 0 ? err : check_socket_path(l, at, *out);
}

static int read_control(void *source, struct lexer *l, const struct token *at) {
    (void)at;
    static const struct statement words[] = {{"uid", read_uid, false}};
    struct config_source *s = source;
    int err = config_socket(s, l, &s->config->control);
    if (err == ERR_MEMORY || !lexer_at(l, TOKEN_OPEN))
        return err;
    int block = statements_read(l, words, 1, "control", s);
    return block != 0 ? block : err;
}

static int read_uids(void *source, struct lexer *l, const struct token *at) {
    struct config *c = ((struct config_source *)source)->config;
    uint64_t first, last;
    if (lexer_number(l, "a user id", 1, UINT32_MAX - 1, &first) != 0)
        return ERR_BAD;
    if (!lexer_skip_word(l, "-"))
        return lexer_expected(l, "'-' between two blanks");
    if (lexer_number(l, "a user id", 1, UINT32_MAX - 1, &last) != 0)
        return ERR_BAD;
    if (last < first) {
        errors_add(l->errors, at->at, "the last user id comes before the first");
        return ERR_BAD;
    }
    c->first_uid = (uid_t)first;
    c->last_uid = (uid_t)last;
    return 0;
}

/* ---- names and addresses ---- */

/* `192.0.2.1`, `192.0.2.1:53`, `[2001:db8::1]:53`, or an IPv6 address alone. */
static bool parse_resolver(struct view text, struct authority *out) {
    out->port = 53;
    if (address_parse(text, &out->address) == 0)
        return true;
    return authority_parse(text, 53, out, NULL) == 0 && out->kind == HOST_ADDRESS;
}

static int read_resolver(void *source, struct lexer *l, const struct token *at) {
    (void)at;
    struct config *c = ((struct config_source *)source)->config;
    do {
        struct token t;
        struct authority a;
        if (lexer_word(l, "the address of a resolver", &t) != 0)
            return ERR_BAD;
        if (!parse_resolver(t.text, &a)) {
            errors_add(l->errors, t.at, "'%.*s' is no ADDRESS or ADDRESS:PORT", WORD_ARG(t.text));
            return ERR_BAD;
        }
        if (c->n_resolvers == RESOLVERS_MAX) {
            errors_add(l->errors, t.at, "more than %d resolvers", RESOLVERS_MAX);
            return ERR_BAD;
        }
        c->resolver_ports[c->n_resolvers] = a.port;
        c->resolvers[c->n_resolvers++] = a.address;
    } while (lexer_at(l, TOKEN_WORD));
    return 0;
}

static int add_host(struct config_source *s, struct lexer *l, struct view name,
                    const struct token *t) {
    struct config_host *h = arena_alloc(&s->config->arena, sizeof *h);
    if (!h)
        return ERR_MEMORY;
    h->name = name;
    if (address_parse(t->text, &h->address) != 0) {
        errors_add(l->errors, t->at, "'%.*s' is no address", WORD_ARG(t->text));
        return ERR_BAD;
    }
    for (const struct config_host *q = s->config->hosts; q; q = q->next)
        if (view_equal(q->name, name) && address_equal(&q->address, &h->address)) {
            errors_add(l->errors, t->at, "the same name and address twice");
            return ERR_BAD;
        }
    if (s->n_hosts++ == CONFIG_HOSTS_MAX) {
        errors_add(l->errors, t->at, "more than %d static hosts", CONFIG_HOSTS_MAX);
        return ERR_BAD;
    }
    *s->hosts = h;
    s->hosts = &h->next;
    return 0;
}

static int read_host(void *source, struct lexer *l, const struct token *at) {
    (void)at;
    struct config_source *s = source;
    struct token t;
    struct authority a;
    const char *why = "an address";
    if (lexer_word(l, "a host name", &t) != 0)
        return ERR_BAD;
    if (authority_parse_host(t.text, 443, &a, &why) != 0 || a.kind != HOST_NAME) {
        errors_add(l->errors, t.at, "'%.*s' is no host name: %s", WORD_ARG(t.text), why);
        return ERR_BAD;
    }
    struct view name = arena_copy(&s->config->arena, view_str(a.host));
    if (!name.p)
        return ERR_MEMORY;
    do {
        if (lexer_word(l, "an address", &t) != 0)
            return ERR_BAD;
        int err = add_host(s, l, name, &t);
        if (err != 0)
            return err;
    } while (lexer_at(l, TOKEN_WORD));
    return 0;
}

static int read_upstream_proxy(void *source, struct lexer *l, const struct token *at) {
    (void)at;
    struct config *c = ((struct config_source *)source)->config;
    const char *why = "malformed";
    struct token t;
    struct authority a;
    if (lexer_word(l, "HOST:PORT", &t) != 0)
        return ERR_BAD;
    if (authority_parse(t.text, 0, &a, &why) != 0) {
        errors_add(l->errors, t.at, "'%.*s' is no HOST:PORT: %s", WORD_ARG(t.text), why);
        return ERR_BAD;
    }
    struct buf text;
    buf_init(&text, HOST_SIZE + 16);
    authority_write(&a, 0, &text);
    c->upstream_proxy = buf_ok(&text) ? arena_copy(&c->arena, buf_view(&text)) : c->upstream_proxy;
    buf_free(&text);
    return c->upstream_proxy.p ? 0 : ERR_MEMORY;
}

/* ---- addresses that the DNS door gives out ---- */

static const struct range normal_ranges[GENERATED_RANGES] = {
    {{4, {198, 18}}, 15}, {{6, {0xfd, 0x65, 0x78, 0x65, 0x61, 0x74}}, 64}};

/* Big enough for names, and nobody's on the internet. */
static const char *unfit(const struct range *r) {
    if (r->bits > (r->base.family == 4 ? 24 : 112))
        return "is too small: /24 and /112 are the smallest";
    switch (address_classify(&r->base)) {
    case ADDRESS_PRIVATE:
    case ADDRESS_BENCHMARK:
    case ADDRESS_SHARED:
        return NULL;
    default:
        return "is no range for private use, such as 198.18.0.0/15, 10.200.0.0/16 or fd00:200::/64";
    }
}

static int read_dns_addresses(void *source, struct lexer *l, const struct token *at) {
    struct config *c = ((struct config_source *)source)->config;
    (void)at;
    memset(c->synthetic, 0, sizeof c->synthetic);
    do {
        struct token t;
        struct range r;
        if (lexer_word(l, "a range such as 198.18.0.0/15", &t) != 0)
            return ERR_BAD;
        const char *why = range_parse(t.text, &r) != 0 ? "is no ADDRESS/BITS" : unfit(&r);
        struct range *place = &c->synthetic[!why && r.base.family == 6];
        if (!why && place->base.family != 0)
            why = "is a second one of its family";
        if (why) {
            errors_add(l->errors, t.at, "'%.*s' %s", WORD_ARG(t.text), why);
            return ERR_BAD;
        }
        *place = r;
    } while (lexer_at(l, TOKEN_WORD));
    return 0;
}

/* ---- switches ---- */

static int read_audit(void *source, struct lexer *l, const struct token *at) {
    (void)at;
    if (!lexer_skip_word(l, "durable"))
        return lexer_expected(l, "'durable'");
    ((struct config_source *)source)->config->audit_durable = true;
    return 0;
}

static int read_reload(void *source, struct lexer *l, const struct token *at) {
    struct config *c = ((struct config_source *)source)->config;
    (void)at;
    c->reload_unconfirmed = lexer_skip_word(l, "unconfirmed");
    if (c->reload_unconfirmed || lexer_skip_word(l, "confirmed"))
        return 0;
    return lexer_expected(l, "'confirmed' or 'unconfirmed'");
}

static int read_debug(void *source, struct lexer *l, const struct token *at) {
    (void)l;
    (void)at;
    ((struct config_source *)source)->config->debug = true;
    return 0;
}

/* ---- the file ---- */

static void check_whole(const struct config *c, const struct lexer *l) {
    if (!c->state)
        errors_add(l->errors, l->token.at, "'state DIR' is missing");
    if (!c->policy)
        errors_add(l->errors, l->token.at, "'policy FILE' is missing");
    if (!c->listeners && !c->attach.path)
        errors_add(l->errors, l->token.at,
                   "there is neither 'listen' nor 'attach': no sandbox could reach exeat");
}

static int set_paths(struct config_source *s) {
    struct config *c = s->config;
    struct view state = arena_copy(&c->arena, view_str(c->state));
    struct buf folder;
    buf_init(&folder, state.n + 1);
    buf_put(&folder, state);
    if (!view_ends(state, VIEW("/")))
        buf_put_u8(&folder, '/');
    if (!c->control)
        c->control = join(s, buf_view(&folder), VIEW("control.sock"));
    if (!c->vault_key)
        c->vault_key = join(s, buf_view(&folder), VIEW("vault.key"));
    bool good = buf_ok(&folder);
    buf_free(&folder);
    return good && c->control && c->vault_key ? 0 : ERR_MEMORY;
}

static int set_defaults(struct config_source *s, struct lexer *l) {
    struct config *c = s->config;
    c->trust_system = c->trust_system || !c->trust;
    return set_paths(s) == 0 ? check_socket_path(l, l->token.at, c->control) : ERR_MEMORY;
}

static int read_file(struct config_source *s, struct view text, const char *file,
                     struct policy_errors *errors) {
    static const struct statement words[] = {
        {"state", read_state, STATEMENT_NAMES_ONCE},
        {"policy", read_policy, STATEMENT_NAMES_ONCE},
        {"control", read_control, STATEMENT_NAMES_ONCE},
        {"listen", config_listen, STATEMENT_NAMES},
        {"trust", read_trust, STATEMENT_NAMES},
        {"resolver", read_resolver, false},
        {"host", read_host, false},
        {"upstream-proxy", read_upstream_proxy, true},
        {"geo", read_geo, STATEMENT_NAMES},
        {"limit", config_limit, false},
        {"audit", read_audit, true},
        {"uids", read_uids, true},
        {"vault", read_vault, STATEMENT_NAMES_ONCE},
        {"debug", read_debug, true},
        {"reload", read_reload, true},
        {"attach", config_attach, STATEMENT_NAMES_ONCE},
        {"dns-addresses", read_dns_addresses, true},
    };
    struct lexer l;
    lexer_init(&l, text, file, errors);
    int err = statements_read(&l, words, sizeof words / sizeof words[0], NULL, s);
    if (err != 0)
        return err;
    if (errors->total == 0)
        check_whole(s->config, &l);
    return errors->total == 0 ? set_defaults(s, &l) : ERR_BAD;
}

/* Whatever the result: what could be read is in out. */
static int read_text(struct config_source *s, struct view text, const char *file,
                     struct policy_errors *errors) {
    struct config *out = s->config;
    *out = (struct config){0};
    limits_default(&out->limits);
    memcpy(out->synthetic, normal_ranges, sizeof out->synthetic);
    errors_reset(errors);
    s->folder = folder_of(file);
    s->listeners = &out->listeners;
    s->lanes = &out->lanes;
    s->hosts = &out->hosts;
    s->trust = &out->trust;
    struct view copy = arena_copy(&out->arena, text);
    int err = copy.p ? read_file(s, copy, file, errors) : ERR_MEMORY;
    if (err != 0)
        errors_sort(errors, file);
    return err;
}

int config_read(struct view text, const char *file, struct config *out,
                struct policy_errors *errors) {
    struct config_source s = {.config = out};
    int err = read_text(&s, text, file, errors);
    if (err != 0)
        config_free(out);
    return err;
}

int config_read_place(struct view text, const char *file, struct config *out,
                      struct policy_errors *errors) {
    struct config_source s = {.config = out};
    int err = read_text(&s, text, file, errors);
    if (err == ERR_BAD && out->state && set_paths(&s) == 0)
        err = 0;
    if (err != 0)
        config_free(out);
    return err;
}

void config_free(struct config *c) {
    arena_free(&c->arena);
    *c = (struct config){0};
}
