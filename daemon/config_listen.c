#include "daemon/config_reader.h"
#include "policy/admission.h"

#include <string.h>

/* ---- who is behind a listener ---- */

static bool lane_has(const struct config_lane *lane, struct view name) {
    struct view rest = lane->names, other;
    while (lane_sandbox(&rest, &other))
        if (view_equal_nocase(other, name))
            return true;
    return false;
}

/* The lane that has the sandbox, among those complete. */
static struct config_lane *lane_of(const struct config_source *s, struct view name) {
    for (struct config_lane *lane = s->config->lanes; lane; lane = lane->next)
        if (lane_has(lane, name))
            return lane;
    return NULL;
}

static struct config_lane *lane_new(struct config_source *s, struct position at) {
    struct config_lane *lane = arena_alloc(&s->config->arena, sizeof *lane);
    if (lane)
        lane->at = at;
    return lane;
}

static int second_who(struct config_source *s, struct lexer *l, const struct token *at) {
    if (!s->who)
        return 0;
    errors_add(l->errors, at->at, "a listener has one 'sandbox' or one 'shared'");
    return ERR_BAD;
}

static int name_taken(struct lexer *l, const struct token *t, const struct config_lane *lane) {
    errors_add(l->errors, t->at, "the sandbox '%.*s' has a lane already, from line %u",
               VIEW_ARG(t->text), lane->at.line);
    return ERR_BAD;
}

static int read_sandbox(void *source, struct lexer *l, const struct token *at) {
    struct config_source *s = source;
    struct token name;
    if (second_who(s, l, at) != 0 || lexer_name(l, "the name of a sandbox", &name) != 0)
        return ERR_BAD;
    struct config_lane *lane = lane_of(s, name.text);
    if (lane && (lane->shared || !view_equal(lane->names, name.text)))
        return name_taken(l, &name, lane);
    s->who = lane ? lane : lane_new(s, s->listener->at);
    if (!s->who)
        return ERR_MEMORY;
    s->who->names = name.text;
    return 0;
}

static int read_shared_names(struct config_source *s, struct lexer *l, struct buf *names) {
    while (lexer_at(l, TOKEN_WORD)) {
        struct token name;
        if (lexer_name(l, "the name of a sandbox", &name) != 0)
            return ERR_BAD;
        const struct config_lane *lane = lane_of(s, name.text);
        s->who->names = buf_view(names);
        if (!lane && lane_has(s->who, name.text))
            lane = s->who;
        if (lane)
            return name_taken(l, &name, lane);
        if (buf_len(names))
            buf_put_u8(names, ' ');
        buf_put(names, name.text);
    }
    s->who->names = arena_copy(&s->config->arena, buf_view(names));
    return buf_ok(names) && s->who->names.p ? 0 : ERR_MEMORY;
}

static bool everybody_is_taken(const struct config_source *s) {
    for (const struct config_lane *lane = s->config->lanes; lane; lane = lane->next)
        if (lane->everybody)
            return true;
    return false;
}

static int read_shared(void *source, struct lexer *l, const struct token *at) {
    struct config_source *s = source;
    if (second_who(s, l, at) != 0)
        return ERR_BAD;
    s->who = lane_new(s, s->listener->at);
    if (!s->who)
        return ERR_MEMORY;
    s->who->shared = true;
    s->who->everybody = !lexer_at(l, TOKEN_WORD);
    if (s->who->everybody && everybody_is_taken(s)) {
        errors_add(l->errors, at->at, "a second 'shared' without names");
        return ERR_BAD;
    }
    struct buf names;
    buf_init(&names, POLICY_TEXT_MAX);
    int err = read_shared_names(s, l, &names);
    buf_free(&names);
    return err;
}

/* What a file has and a port has not. */
static int check_unix(const struct config_source *s, struct lexer *l, const struct token *at) {
    if (s->listener->place == PLACE_UNIX)
        return 0;
    errors_add(l->errors, at->at, "'%.*s' is for Unix sockets", VIEW_ARG(at->text));
    return ERR_BAD;
}

static int read_owner(void *source, struct lexer *l, const struct token *at) {
    struct config_source *s = source;
    return check_unix(s, l, at) == 0 ? config_id(l, false, &s->listener->owner) : ERR_BAD;
}

static int read_group(void *source, struct lexer *l, const struct token *at) {
    struct config_source *s = source;
    return check_unix(s, l, at) == 0 ? config_id(l, true, &s->listener->group) : ERR_BAD;
}

int config_mode(struct lexer *l, mode_t *out) {
    struct token t;
    if (lexer_word(l, "an octal mode", &t) != 0)
        return ERR_BAD;
    unsigned mode = 0;
    bool good = t.text.n == 3 || (t.text.n == 4 && t.text.p[0] == '0');
    for (size_t i = 0; i < t.text.n && good; i++) {
        good = t.text.p[i] >= '0' && t.text.p[i] <= '7';
        mode = mode * 8 + (t.text.p[i] - '0');
    }
    if (!good) {
        errors_add(l->errors, t.at, "'%.*s' is no mode such as 0660", WORD_ARG(t.text));
        return ERR_BAD;
    }
    *out = (mode_t)mode;
    return 0;
}

static int read_mode(void *source, struct lexer *l, const struct token *at) {
    struct config_source *s = source;
    return check_unix(s, l, at) != 0 ? ERR_BAD : config_mode(l, &s->listener->mode);
}

static int read_tproxy(void *source, struct lexer *l, const struct token *at) {
    struct config_source *s = source;
    if (s->listener->way != WAY_TRANSPARENT) {
        errors_add(l->errors, at->at, "'tproxy' is for 'listen transparent'");
        return ERR_BAD;
    }
    s->listener->tproxy = true;
    return 0;
}

static int read_nflog(void *source, struct lexer *l, const struct token *at) {
    struct config_source *s = source;
    uint64_t group;
    if (s->listener->way != WAY_TRANSPARENT) {
        errors_add(l->errors, at->at, "'nflog' is for 'listen transparent'");
        return ERR_BAD;
    }
    if (lexer_number(l, "a group of nfnetlink_log", 1, UINT16_MAX, &group) != 0)
        return ERR_BAD;
    s->listener->nflog = (uint16_t)group;
    return 0;
}

/* ---- where it listens ---- */

static int read_tcp(struct lexer *l, struct config_listener *listener) {
    const char *why = "a name, where an address is needed";
    struct token t;
    struct authority a;
    if (lexer_word(l, "ADDRESS:PORT", &t) != 0)
        return ERR_BAD;
    if (authority_parse(t.text, 0, &a, &why) != 0 || a.kind != HOST_ADDRESS) {
        errors_add(l->errors, t.at, "'%.*s' is no ADDRESS:PORT: %s", WORD_ARG(t.text), why);
        return ERR_BAD;
    }
    listener->address = a.address;
    listener->port = a.port;
    return 0;
}

static int read_vsock(struct lexer *l, struct config_listener *listener) {
    uint64_t port;
    listener->place = PLACE_VSOCK;
    if (lexer_number(l, "the port of a vsock listener", 1, UINT32_MAX - 1, &port) != 0)
        return ERR_BAD;
    listener->vsock_port = (uint32_t)port;
    return 0;
}

static int read_where(struct config_source *s, struct lexer *l) {
    static const struct {
        const char *word;
        enum way_in way;
    } ways[] = {{"tcp", WAY_EXPLICIT}, {"transparent", WAY_TRANSPARENT}, {"dns", WAY_DNS_TCP}};
    struct config_listener *listener = s->listener;
    for (size_t i = 0; i < sizeof ways / sizeof *ways; i++) {
        listener->way = ways[i].way;
        if (lexer_skip_word(l, ways[i].word))
            return read_tcp(l, listener);
    }
    listener->way = WAY_EXPLICIT;
    if (lexer_skip_word(l, "vsock"))
        return read_vsock(l, listener);
    if (!lexer_skip_word(l, "unix"))
        return lexer_expected(l, "'tcp', 'unix', 'vsock', 'transparent' or 'dns'");
    listener->place = PLACE_UNIX;
    return config_socket(s, l, &listener->path);
}

bool config_same_place(const struct config_listener *a, const struct config_listener *b) {
    if ((a->way == WAY_DNS_UDP) != (b->way == WAY_DNS_UDP) ||
        (a->way == WAY_LOGGED) != (b->way == WAY_LOGGED))
        return false;
    if (a->way == WAY_LOGGED)
        return a->nflog == b->nflog;
    if (a->place != b->place)
        return false;
    if (a->place == PLACE_UNIX)
        return strcmp(a->path, b->path) == 0;
    if (a->place == PLACE_VSOCK)
        return a->vsock_port == b->vsock_port;
    return a->port == b->port && address_equal(&a->address, &b->address) &&
           (!a->interface[0] || !b->interface[0] || strcmp(a->interface, b->interface) == 0);
}

static int add_listener(struct config_source *s, struct lexer *l) {
    struct config *c = s->config;
    for (const struct config_listener *q = c->listeners; q; q = q->next)
        if (config_same_place(q, s->listener)) {
            errors_add(l->errors, s->listener->at, "the same listener as in line %u", q->at.line);
            return ERR_BAD;
        }
    if (c->n_listeners == LISTENERS_MAX) {
        errors_add(l->errors, s->listener->at, "more than %d listeners", LISTENERS_MAX);
        return ERR_BAD;
    }
    if (s->who->id == 0) {
        s->who->id = (uint32_t)++c->n_lanes;
        *s->lanes = s->who;
        s->lanes = &s->who->next;
    }
    s->listener->lane = s->who->id;
    c->n_listeners++;
    *s->listeners = s->listener;
    s->listeners = &s->listener->next;
    return 0;
}

/* What a listener comes with: the same questions by UDP, what is logged of its sandbox. */
static int add_second(struct config_source *s, struct lexer *l) {
    const struct config_listener *first = s->listener;
    if (first->way != WAY_DNS_TCP && first->nflog == 0)
        return 0;
    struct config_listener *second = arena_alloc(&s->config->arena, sizeof *second);
    if (!second)
        return ERR_MEMORY;
    *second = *first;
    second->way = first->nflog ? WAY_LOGGED : WAY_DNS_UDP;
    /* Rules have looked at what they log. */
    if (first->nflog) {
        second->interface[0] = second->port_of_bridge[0] = 0;
        second->tproxy = false;
        second->admit = VIEW("");
    }
    second->next = NULL;
    s->listener = second;
    return add_listener(s, l);
}

/* Else nobody could come in, and no rule would be made of it. */
static bool may_arrive(const struct config_listener *listener) {
    struct admission a;
    if (admission_read(listener->admit, &a) != 0)
        return false;
    for (size_t i = 0; i < a.n; i++)
        if (a.of[i].range.base.family == listener->address.family)
            return true;
    return false;
}

/* What the statements of a listener say together. */
static int check_whole(const struct config_source *s, struct lexer *l, const struct token *at) {
    bool has_sources = view_starts(s->listener->admit, VIEW("source="));
    if (!s->who) {
        errors_add(l->errors, at->at, "this listener says neither 'sandbox NAME' nor 'shared'");
        return ERR_BAD;
    }
    if (s->who->shared && s->listener->way != WAY_EXPLICIT) {
        errors_add(l->errors, at->at,
                   "who comes in by '%s' cannot show a token: it needs a 'sandbox NAME'",
                   s->listener->way == WAY_TRANSPARENT ? "transparent" : "dns");
        return ERR_BAD;
    }
    if (s->listener->place == PLACE_VSOCK && view_is_empty(s->listener->admit)) {
        errors_add(l->errors, at->at, "a vsock listener says with 'cid N' which guest it is for");
        return ERR_BAD;
    }
    if (s->listener->port_of_bridge[0] && (!s->listener->interface[0] || !has_sources)) {
        errors_add(l->errors, at->at,
                   "'port' says which addresses come in where at a bridge: that takes 'interface' "
                   "(the bridge) and 'source'");
        return ERR_BAD;
    }
    if (s->listener->nflog && !s->listener->interface[0] && !has_sources) {
        errors_add(
            l->errors, at->at,
            "'nflog' says where rules of nftables log to: that takes 'interface' or 'source'");
        return ERR_BAD;
    }
    if (has_sources && !may_arrive(s->listener)) {
        errors_add(l->errors, at->at, "no 'source' is of the address family of this listener");
        return ERR_BAD;
    }
    return 0;
}

int config_listen(void *source, struct lexer *l, const struct token *at) {
    static const struct statement words[] = {{"sandbox", read_sandbox, false},
                                             {"shared", read_shared, false},
                                             {"mode", read_mode, true},
                                             {"owner", read_owner, true},
                                             {"group", read_group, true},
                                             {"uid", config_admit_users, true},
                                             {"cid", config_admit_guests, true},
                                             {"proxy-protocol", config_admit_relays, true},
                                             {"source", config_admit_sources, true},
                                             {"interface", config_interface, true},
                                             {"port", config_port, true},
                                             {"tproxy", read_tproxy, true},
                                             {"nflog", read_nflog, true}};
    struct config_source *s = source;
    s->who = NULL;
    s->listener = arena_alloc(&s->config->arena, sizeof *s->listener);
    if (!s->listener)
        return ERR_MEMORY;
    *s->listener =
        (struct config_listener){.mode = 0660, .owner = NOBODY, .group = NOBODY, .at = at->at};
    size_t before = l->errors->total;
    int err = read_where(s, l);
    if (err != 0 && (err == ERR_MEMORY || !lexer_at(l, TOKEN_OPEN)))
        return err;
    int block = statements_read(l, words, sizeof words / sizeof *words, "a listener", s);
    if (block != 0 || l->errors->total != before)
        return block != 0 ? block : err;
    if (check_whole(s, l, at) != 0)
        return ERR_BAD;
    int result = add_listener(s, l);
    return result == 0 ? add_second(s, l) : result;
}

/* ---- for the bundle ---- */

static bool is_taken(const struct config *c, struct view sandbox) {
    for (const struct config_lane *lane = c->lanes; lane; lane = lane->next)
        if (lane_has(lane, sandbox))
            return true;
    return false;
}

static void put_everybody(const struct config *c, const struct policy *p, struct buf *names) {
    for (size_t i = 0; i < policy_sandboxes(p); i++) {
        struct view name = policy_sandbox_at(p, i);
        if (is_taken(c, name))
            continue;
        if (buf_len(names))
            buf_put_u8(names, ' ');
        buf_put(names, name);
    }
}

void config_check_names(struct view names, struct position at, const struct policy *p,
                        struct policy_errors *errors) {
    struct view rest = names, name;
    while (lane_sandbox(&rest, &name)) {
        if (policy_has_sandbox(p, name))
            continue;
        struct guess g = guess_of(name);
        guess_offer_sandboxes(&g, p);
        errors_add(errors, at, "the policy has no sandbox '%.*s'%s", VIEW_ARG(name),
                   guess_text(&g));
    }
}

int config_put_lanes(const struct config *c, const struct policy *p, struct buf *out,
                     struct policy_errors *errors) {
    struct buf names;
    buf_init(&names, POLICY_TEXT_MAX);
    errors_reset(errors);
    for (const struct config_lane *lane = c->lanes; lane; lane = lane->next) {
        struct lane_info info = {.id = lane->id, .shared = lane->shared, .names = lane->names};
        if (lane->everybody) {
            put_everybody(c, p, &names);
            info.names = buf_view(&names);
        }
        config_check_names(lane->names, lane->at, p, errors);
        bundle_put_lane(out, &info);
    }
    bool good = buf_ok(&names) && buf_ok(out);
    buf_free(&names);
    if (errors->total != 0)
        return ERR_BAD;
    return good ? 0 : ERR_MEMORY;
}

void config_put_hosts(const struct config *c, struct buf *out) {
    for (const struct config_host *h = c->hosts; h; h = h->next)
        bundle_put_host(out, &(struct static_host){h->name, h->address});
}

void config_put_own_addresses(const struct config *c, struct buf *out) {
    struct buf text;
    buf_init(&text, HOST_SIZE + 16);
    for (const struct config_listener *l = c->listeners; l; l = l->next) {
        if (l->place != PLACE_INTERNET || l->way == WAY_DNS_UDP || l->way == WAY_LOGGED)
            continue;
        struct authority a = {.kind = HOST_ADDRESS, .address = l->address, .port = l->port};
        address_format(&l->address, a.host);
        authority_write(&a, 0, &text);
        buf_put_block(out, buf_view(&text));
        buf_reset(&text);
    }
    if (!buf_ok(&text))
        out->failed = true;
    buf_free(&text);
}
