#include "daemon/config_reader.h"
#include "policy/admission.h"

enum { ADMIT_TEXT_MAX = 2048 };

/* What stands behind the word: at least one, each spelled as proxy reads it. */
static int read_items(struct config_source *s, struct lexer *l, enum admission_kind kind,
                      int (*item)(struct lexer *l, struct buf *out)) {
    struct buf text, one;
    size_t n = 0;
    int err = 0;
    if (!view_is_empty(s->listener->admit)) {
        errors_add(l->errors, l->token.at,
                   "a listener has one of 'source' and 'proxy-protocol': behind a relay, sources "
                   "are its to check");
        return ERR_BAD;
    }
    buf_init(&text, ADMIT_TEXT_MAX);
    buf_init(&one, 64);
    do {
        struct position at = l->token.at;
        buf_reset(&one);
        err = item(l, &one);
        if (err == 0 && n++ == ADMISSION_MAX) {
            errors_add(l->errors, at, "more than %d for one listener", ADMISSION_MAX);
            err = ERR_BAD;
        }
        admission_put(&text, kind, buf_view(&one));
    } while (err == 0 && lexer_at(l, TOKEN_WORD));
    if (err == 0) {
        s->listener->admit = arena_copy(&s->config->arena, buf_view(&text));
        err = buf_ok(&text) && buf_ok(&one) && s->listener->admit.p ? 0 : ERR_MEMORY;
    }
    buf_free(&text);
    buf_free(&one);
    return err;
}

static int check_place(struct lexer *l, const struct token *at, bool fits, const char *what) {
    if (fits)
        return 0;
    errors_add(l->errors, at->at, "'%.*s' is for %s", VIEW_ARG(at->text), what);
    return ERR_BAD;
}

static int read_user(struct lexer *l, struct buf *out) {
    uint32_t uid;
    int err = config_id(l, false, &uid);
    if (err == 0)
        buf_put_decimal(out, uid);
    return err;
}

int config_admit_users(void *source, struct lexer *l, const struct token *at) {
    struct config_source *s = source;
    int err = check_place(l, at, s->listener->place == PLACE_UNIX, "Unix sockets");
    return err == 0 ? read_items(s, l, ADMIT_USERS, read_user) : err;
}

static int read_guest(struct lexer *l, struct buf *out) {
    uint64_t cid;
    int err = lexer_number(l, "the CID of a guest", 1, NOBODY - 1, &cid);
    if (err == 0)
        buf_put_decimal(out, cid);
    return err;
}

int config_admit_guests(void *source, struct lexer *l, const struct token *at) {
    struct config_source *s = source;
    int err = check_place(l, at, s->listener->place == PLACE_VSOCK, "vsock");
    return err == 0 ? read_items(s, l, ADMIT_GUESTS, read_guest) : err;
}

static int put_range(struct lexer *l, const char *what, struct buf *out) {
    struct token t;
    struct range range;
    char text[ADDRESS_TEXT_SIZE];
    if (lexer_word(l, what, &t) != 0)
        return ERR_BAD;
    if (range_parse(t.text, &range) != 0) {
        errors_add(l->errors, t.at, "'%.*s' is no ADDRESS or ADDRESS/BITS", WORD_ARG(t.text));
        return ERR_BAD;
    }
    address_format(&range.base, text);
    buf_printf(out, "%s/%u", text, range.bits);
    return 0;
}

static int read_relay(struct lexer *l, struct buf *out) {
    return put_range(l, "the address of a relay", out);
}

int config_admit_relays(void *source, struct lexer *l, const struct token *at) {
    struct config_source *s = source;
    bool fits = s->listener->place == PLACE_INTERNET && s->listener->way == WAY_EXPLICIT;
    int err = check_place(l, at, fits, "'listen tcp'");
    return err == 0 ? read_items(s, l, ADMIT_RELAYS, read_relay) : err;
}

static int read_source(struct lexer *l, struct buf *out) {
    return put_range(l, "an address of the sandbox", out);
}

int config_admit_sources(void *source, struct lexer *l, const struct token *at) {
    struct config_source *s = source;
    int err = check_place(l, at, s->listener->place == PLACE_INTERNET, "TCP and UDP");
    return err == 0 ? read_items(s, l, ADMIT_SOURCES, read_source) : err;
}

static int read_interface(struct config_source *s, struct lexer *l, const struct token *at,
                          char out[INTERFACE_SIZE]) {
    struct token t;
    int err = check_place(l, at, s->listener->place == PLACE_INTERNET, "TCP and UDP");
    if (err != 0 || lexer_word(l, "the name of a network interface", &t) != 0)
        return ERR_BAD;
    struct view name = t.text;
    bool good = name.n > 0 && name.n < INTERFACE_SIZE && !view_equal(name, VIEW(".")) &&
                !view_equal(name, VIEW(".."));
    for (size_t i = 0; i < name.n && good; i++)
        good = is_alnum(name.p[i]) || (name.p[i] != 0 && strchr("-_.:@+", name.p[i]));
    if (!good) {
        errors_add(l->errors, t.at, "'%.*s' is no name of an interface such as veth-a",
                   WORD_ARG(t.text));
        return ERR_BAD;
    }
    memcpy(out, name.p, name.n);
    return 0;
}

int config_interface(void *source, struct lexer *l, const struct token *at) {
    struct config_source *s = source;
    return read_interface(s, l, at, s->listener->interface);
}

int config_port(void *source, struct lexer *l, const struct token *at) {
    struct config_source *s = source;
    return read_interface(s, l, at, s->listener->port_of_bridge);
}
