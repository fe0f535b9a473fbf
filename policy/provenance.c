#include "policy/provenance.h"

#include "base/base64.h"
#include "base/eight.h"
#include "policy/credential_name.h"
#include "policy/field_name.h"
#include "policy/key_form.h"
#include "policy/method.h"
#include "policy/placeholder.h"

#include <string.h>

/* A view in a table: VIEW is no constant. */
#define WORD(literal)                                                                              \
    { (const uint8_t *)(literal), sizeof(literal) - 1 }

/* ---- the list ---- */

static void add(struct materials *m, struct material new) {
    if (m->n == MATERIALS_MAX)
        m->overflow = true;
    else
        m->at[m->n++] = new;
}

static void add_plain(struct materials *m, enum place place, struct view name, struct view token) {
    add(m, (struct material){.place = place, .name = name, .token = token, .raw = token});
}

static void add_behind(struct materials *m, enum place place, struct view name, struct view scheme,
                       struct view token) {
    add(m, (struct material){
               .place = place, .name = name, .scheme = scheme, .token = token, .raw = token});
}

static void add_malformed(struct materials *m, struct view name, struct view value) {
    add(m,
        (struct material){
            .place = PLACE_HEADER, .name = name, .token = value, .raw = value, .malformed = true});
}

/* Takes over what b holds; the empty view when there is no room. */
static struct view store(struct materials *m, const struct buf *b) {
    struct view v = buf_view(b);
    if (v.n > sizeof m->storage - m->used) {
        m->overflow = true;
        return (struct view){NULL, 0};
    }
    uint8_t *to = m->storage + m->used;
    view_copy(v, to);
    m->used += v.n;
    return view_of(to, v.n);
}

/* ---- Authorization and fields like it ---- */

enum { SCHEME_MAX = 32 };

static bool is_scheme(struct view v) {
    if (v.n == 0 || v.n > SCHEME_MAX || !is_alpha(v.p[0]))
        return false;
    for (size_t i = 0; i < v.n; i++)
        if (!is_alnum(v.p[i]) && v.p[i] != '-' && v.p[i] != '_')
            return false;
    return true;
}

/* Visible, in one piece, and not a list or a quoted string. */
static bool is_token(struct view v) {
    size_t i = 0;
    for (; v.n - i >= 8; i += 8) {
        uint64_t x = eight_at(v.p + i);
        if (eight_control(x) | eight_beyond_ascii(x) | eight_is(x, ' ') | eight_is(x, ',') |
            eight_is(x, '"'))
            return false;
    }
    for (; i < v.n; i++)
        if (v.p[i] < 0x21 || v.p[i] > 0x7e || v.p[i] == ',' || v.p[i] == '"')
            return false;
    return v.n > 0;
}

/* Schemes whose credentials prove the possession of a key, with parameters. */
static const struct view proof_schemes[] = {
    WORD("aws"),           WORD("digest"), WORD("signature"), WORD("sharedkey"),
    WORD("sharedkeylite"), WORD("hawk"),   WORD("mac"),       WORD("dpop"),
    WORD("hoba"),          WORD("mutual"), WORD("negotiate"), WORD("ntlm"),
    WORD("vapid"),         WORD("oss"),    WORD("gnap"),      WORD("concealed"),
};

static bool is_proof_scheme(struct view scheme) {
    uint8_t lower[SCHEME_MAX];
    for (size_t i = 0; i < scheme.n; i++)
        lower[i] = to_lower(scheme.p[i]);
    struct view v = view_of(lower, scheme.n);
    for (size_t i = 0; i < sizeof proof_schemes / sizeof proof_schemes[0]; i++)
        if (view_equal(v, proof_schemes[i]))
            return true;
    return view_search(v, VIEW("hmac")) < v.n || view_starts(v, VIEW("aws4-")) ||
           view_starts(v, VIEW("scram-"));
}

static bool is_plain_text(struct view v) {
    for (size_t i = 0; i < v.n; i++)
        if (v.p[i] < 0x20 || v.p[i] == 0x7f)
            return false;
    return true;
}

static void add_half(struct materials *m, enum place half, struct view name, struct view scheme,
                     struct view token, struct view raw) {
    if (token.n > 0)
        add(m, (struct material){
                   .place = half, .name = name, .scheme = scheme, .token = token, .raw = raw});
}

/* RFC 7617: base64 of user, a colon, and a password that may hold more of them. */
static void add_basic(struct materials *m, struct view name, struct view scheme,
                      struct view token) {
    struct buf decoded;
    buf_init(&decoded, BASIC_MAX);
    int rc = base64_decode(token, &decoded);
    struct view pair = rc == 0 ? store(m, &decoded) : (struct view){NULL, 0};
    buf_free(&decoded);
    bool has_colon = view_find(pair, ':') < pair.n;
    struct view password = pair, user = view_cut(&password, ':');
    if (!has_colon || pair.n == 1 || !is_plain_text(pair)) {
        add_malformed(m, name, token);
        return;
    }
    add_half(m, PLACE_BASIC_USER, name, scheme, user, token);
    add_half(m, PLACE_BASIC_PASSWORD, name, scheme, password, token);
}

/* OAuth 1.0 signs and has parameters; some services put a plain token behind the same word. */
static bool is_oauth_signature(struct view scheme, struct view token) {
    return view_equal_nocase(scheme, VIEW("oauth")) && !is_token(token);
}

/* RFC 9110 11.6.2, strictly: a scheme, one space and one token; or one token alone (PV-06). */
static void add_value(struct materials *m, struct view name, struct view value) {
    struct view token = value, scheme = view_cut(&token, ' ');
    if (scheme.n == value.n) {
        if (is_token(value))
            add_plain(m, PLACE_HEADER, name, value);
        else
            add_malformed(m, name, value);
        return;
    }
    bool good = is_scheme(scheme);
    if (good && (is_proof_scheme(scheme) || is_oauth_signature(scheme, token)))
        add_behind(m, PLACE_SIGNATURE, name, scheme, token);
    else if (!good || !is_token(token))
        add_malformed(m, name, value);
    else if (view_equal_nocase(scheme, VIEW("basic")))
        add_basic(m, name, scheme, token);
    else
        add_behind(m, PLACE_HEADER, name, scheme, token);
}

/* ---- other fields ---- */

/* RFC 6265 4.2.1; each cookie by itself. */
static void add_cookies(struct materials *m, struct view value) {
    while (value.n > 0) {
        struct view cookie = view_trim(view_cut(&value, ';'));
        if (cookie.n == 0)
            continue;
        struct view name = {NULL, 0};
        if (view_find(cookie, '=') < cookie.n)
            name = view_cut(&cookie, '=');
        add_plain(m, PLACE_COOKIE, view_trim(name), view_trim(cookie));
    }
}

/* One word of letters and digits both, and not shorter than least. */
static bool is_mixed(struct view v, size_t least) {
    bool digit = false, letter = false, dot = false;
    for (size_t i = 0; i < v.n; i++) {
        digit = digit || is_digit(v.p[i]);
        letter = letter || is_alpha(v.p[i]);
        dot = dot || v.p[i] == '.';
    }
    return digit && letter && !dot && v.n >= least;
}

enum { DOTTED_TOKEN = 16, BARE_TOKEN = 24 };

/*
 * "openai-insecure-api-key.sk-...": a word that names a credential, a dot, and
 * the credential; or something behind a dot that is too long for a version.
 */
static bool is_dotted_token(struct view item, struct view *token) {
    struct view rest = item, word = view_cut(&rest, '.');
    if (rest.n == 0)
        return false;
    *token = rest;
    if (credential_name_in_header(word) != CREDENTIAL_NONE)
        return true;
    while (rest.n > 0)
        if (view_cut(&rest, '.').n >= DOTTED_TOKEN)
            return true;
    return false;
}

/* Behind an item that names a credential ("bearer") stands the credential. */
static void add_subprotocols(struct materials *m, struct view name, struct view value) {
    bool named = false;
    while (value.n > 0) {
        struct view item = view_trim(view_cut(&value, ','));
        struct view token = item;
        if (is_dotted_token(item, &token) || is_mixed(item, BARE_TOKEN))
            add_plain(m, PLACE_SUBPROTOCOL, name, token);
        else if (named || placeholder_inside(item))
            add_plain(m, PLACE_SUBPROTOCOL, name, item);
        bool is_word = view_find(item, '.') == item.n;
        named = is_word && credential_name_in_header(item) != CREDENTIAL_NONE;
    }
}

/* A placeholder is looked for by the caller, in all spellings. */
static bool tells_key(struct view v, struct view *key) {
    return key_form_inside(v, key) && !placeholder_inside(*key);
}

/* A placeholder, or somebody's key, in a field that nobody is known to read. */
static void add_telling(struct materials *m, struct view name, struct view value) {
    struct view token = value, scheme = view_cut(&token, ' '), key;
    if (placeholder_is(value) || (is_scheme(scheme) && placeholder_is(token)))
        add_value(m, name, value);
    else if (tells_key(value, &key))
        add_plain(m, PLACE_HEADER, name, key);
}

static bool is_header(enum place place) {
    return place == PLACE_HEADER || place == PLACE_BASIC_USER || place == PLACE_BASIC_PASSWORD;
}

static bool watches_field(const struct watched *w, struct view name) {
    for (size_t i = 0; w && i < w->n; i++)
        if (is_header(w->at[i]->place) && credential_name_same(name, w->at[i]->name))
            return true;
    return false;
}

void provenance_field(struct view name, struct view value, const struct watched *watched,
                      struct materials *m) {
    if (watches_field(watched, name)) {
        add_value(m, name, value);
        return;
    }
    struct field_name says = field_name_look(name);
    if (says.names_target)
        add_plain(m, PLACE_TARGET, name, value);
    switch (says.credential) {
    case CREDENTIAL_AUTHORIZATION:
    case CREDENTIAL_VALUE:
        add_value(m, name, value);
        break;
    case CREDENTIAL_COOKIE:
        add_cookies(m, value);
        break;
    case CREDENTIAL_SUBPROTOCOL:
        add_subprotocols(m, name, value);
        break;
    case CREDENTIAL_SIGNATURE:
        add_plain(m, PLACE_SIGNATURE, name, value);
        break;
    case CREDENTIAL_NONE:
        add_telling(m, name, value);
        break;
    }
}

/* ---- the query ---- */

/* A name that does not fit, or cannot be decoded, counts as a credential's. */
static enum credential_kind query_kind(struct view name, const struct watched *w) {
    struct buf decoded;
    buf_init(&decoded, CREDENTIAL_LABEL_MAX);
    int rc = percent_decode(name, true, &decoded);
    enum credential_kind kind =
        rc == 0 ? credential_name_in_query(buf_view(&decoded)) : CREDENTIAL_VALUE;
    for (size_t i = 0; w && i < w->n; i++)
        if (w->at[i]->place == PLACE_QUERY &&
            credential_name_same(buf_view(&decoded), w->at[i]->name))
            kind = CREDENTIAL_VALUE;
    buf_free(&decoded);
    return kind;
}

static bool is_encoded(struct view v) {
    return view_find(v, '%') < v.n || view_find(v, '+') < v.n;
}

/* A value that is too long to be kept decoded is too long for a placeholder; it stays as it was sent. */
static struct view decoded_value(struct materials *m, struct view value, bool plus) {
    struct buf decoded;
    if (!is_encoded(value) || value.n > sizeof m->storage - m->used)
        return value;
    buf_init(&decoded, value.n);
    if (percent_decode(value, plus, &decoded) == 0)
        value = store(m, &decoded);
    buf_free(&decoded);
    return value;
}

/* doubtful: it is a parameter only to those who split at ';', too. */
static void add_parameter(struct materials *m, const struct watched *w, struct view name,
                          struct view value, bool doubtful) {
    struct view key;
    if (tells_key(name, &key))
        add_plain(m, PLACE_QUERY, name, name);
    if (value.n == 0)
        return;
    enum credential_kind kind = query_kind(name, w);
    size_t used = m->used;
    if (kind == CREDENTIAL_SIGNATURE)
        add_plain(m, PLACE_SIGNATURE, name, value);
    if (kind == CREDENTIAL_SIGNATURE || (kind == CREDENTIAL_NONE && value.n < KEY_FORM_MIN))
        return;
    struct view token = decoded_value(m, value, true);
    if (kind == CREDENTIAL_NONE && !tells_key(token, &key))
        m->used = used;
    else
        add(m, (struct material){.place = PLACE_QUERY,
                                 .name = name,
                                 .token = token,
                                 .raw = value,
                                 .malformed = doubtful});
}

/* Some servers split at ';' as well: what would be a credential to them is one. */
static void add_pair(struct materials *m, const struct watched *w, struct view name,
                     struct view value) {
    add_parameter(m, w, name, value, false);
    struct view rest = value, head = name, last = name;
    while (head.n > 0)
        last = view_cut(&head, ';');
    if (last.n < name.n)
        add_parameter(m, w, last, value, true);
    (void)view_cut(&rest, ';');
    while (rest.n > 0) {
        struct view piece = view_cut(&rest, ';');
        struct view piece_name = view_cut(&piece, '=');
        add_parameter(m, w, piece_name, piece, true);
    }
}

/* ---- the path ---- */

enum { BEFORE_MAX = 3 };

/*
 * Addresses that are their own credential (PV-04): what stands right before
 * one. "#" is digits, "T*" begins with T, "" is the start of the path. mixed: the shortest
 * credential, of letters and digits both; 0: anything.
 */
static const struct hook {
    const char *before[BEFORE_MAX]; /* the nearest last; NULL: anything */
    size_t mixed;
} hooks[] = {
    {{"services", "T*", "B*"}, 0}, {{"workflows", "T*", "A*"}, 0}, {{"triggers", "T*", "#"}, 0},
    {{NULL, "webhooks", "#"}, 16}, {{NULL, "catch", "#"}, 0},      {{"", "", "hook"}, 0},
    {{NULL, NULL, "hooks"}, 16},   {{NULL, NULL, "webhook"}, 16},  {{NULL, NULL, "webhookb2"}, 0},
};

static bool is_number(struct view v) {
    for (size_t i = 0; i < v.n; i++)
        if (!is_digit(v.p[i]))
            return false;
    return v.n > 0;
}

static bool segment_fits(struct view segment, const char *wanted) {
    if (!wanted)
        return true;
    struct view w = view_str(wanted);
    if (view_equal(w, VIEW("#")))
        return is_number(segment);
    if (view_ends(w, VIEW("*")))
        return view_starts(segment, view_head(w, w.n - 1));
    return view_equal_nocase(segment, w);
}

static bool is_hook(const struct view before[BEFORE_MAX], struct view segment) {
    for (size_t i = 0; i < sizeof hooks / sizeof hooks[0]; i++) {
        bool fits = hooks[i].mixed == 0 || is_mixed(segment, hooks[i].mixed);
        for (size_t k = 0; fits && k < BEFORE_MAX; k++)
            fits = segment_fits(before[k], hooks[i].before[k]);
        if (fits)
            return true;
    }
    return false;
}

enum { BOT_TOKEN = 8 };

/* "bot", digits, ':', and a token, as chat bots are called. */
static bool is_bot(struct view segment, struct view *token) {
    struct view rest = view_skip(segment, 3);
    if (!view_equal(view_head(segment, 3), VIEW("bot")))
        return false;
    *token = rest;
    size_t colon = view_find(rest, ':'), encoded = view_search(rest, VIEW("%3A"));
    size_t at = colon < encoded ? colon : encoded;
    size_t n_colon = colon < encoded ? 1 : 3;
    return at < rest.n && is_number(view_head(rest, at)) && rest.n - at >= n_colon + BOT_TOKEN;
}

/* Sessions without cookies: "(S(...))", "(X(1)F(...))". */
static bool is_session(struct view v) {
    return v.n > 3 && v.p[0] == '(' && is_alpha(v.p[1]) && v.p[2] == '(' && v.p[v.n - 1] == ')';
}

/* Parameters of a segment (RFC 3986 3.3) are read like those of a query by who knows them. */
static bool has_credential_parameter(struct view segment) {
    (void)view_cut(&segment, ';');
    while (segment.n > 0) {
        struct view value = view_cut(&segment, ';'), name = view_cut(&value, '=');
        if (value.n > 0 && credential_name_in_query(name) != CREDENTIAL_NONE)
            return true;
    }
    return false;
}

static bool carries_credential(struct view segment) {
    struct buf decoded;
    if (!is_encoded(segment))
        return is_session(segment) || has_credential_parameter(segment);
    buf_init(&decoded, segment.n);
    int result = percent_decode(segment, false, &decoded);
    struct view plain = buf_view(&decoded);
    bool found = result != 0 || is_session(plain) || has_credential_parameter(plain);
    buf_free(&decoded);
    return found;
}

static bool watches_segment(const struct watched *w, unsigned n) {
    for (size_t i = 0; w && i < w->n; i++)
        if (w->at[i]->place == PLACE_PATH && w->at[i]->segment == n)
            return true;
    return false;
}

static void add_segment(struct materials *m, struct view segment, struct view raw, uint16_t n,
                        bool watched) {
    add(m, (struct material){.place = PLACE_PATH,
                             .name = segment,
                             .token = decoded_value(m, raw, false),
                             .raw = raw,
                             .segment = n,
                             .watched = watched});
}

static void add_segments(struct materials *m, const struct watched *w, struct view path) {
    struct view before[BEFORE_MAX] = {0}, segment, key;
    for (uint16_t n = 1; target_segment(&path, &segment); n++) {
        struct view token = segment;
        if (is_bot(segment, &token) || is_hook(before, segment) || placeholder_inside(segment) ||
            carries_credential(segment) || key_form_inside(segment, &key))
            add_segment(m, segment, token, n, false);
        else if (watches_segment(w, n))
            add_segment(m, segment, segment, n, true);
        memmove(before, before + 1, sizeof before - sizeof before[0]);
        before[BEFORE_MAX - 1] = segment;
    }
}

void provenance_target(const struct target *t, const struct watched *watched, struct materials *m) {
    struct view rest = t->query, name, value;
    add_segments(m, watched, t->path);
    while (t->has_query && target_pair(&rest, &name, &value))
        add_pair(m, watched, name, value);
}

bool provenance_body_name(struct view name) {
    return credential_name_in_body(name) != CREDENTIAL_NONE || method_is_override_name(name);
}
