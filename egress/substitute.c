#include "egress/substitute.h"

#include "base/base64.h"
#include "base/eight.h"
#include "base/utf8.h"
#include "policy/target.h"

#include <assert.h>

/* ---- how a secret is spelled ---- */

static bool is_visible_text(struct view v) {
    if (v.n == 0 || v.p[0] == ' ' || v.p[v.n - 1] == ' ')
        return false;
    for (; v.n >= 8; v = view_skip(v, 8))
        if (eight_control(eight_at(v.p)))
            return false;
    for (size_t i = 0; i < v.n; i++)
        if (v.p[i] < 0x20 || v.p[i] == 0x7f)
            return false;
    return true;
}

/* RFC 6265 4.1.1 */
static bool is_cookie_value(struct view v) {
    for (size_t i = 0; i < v.n; i++)
        if (v.p[i] <= ' ' || v.p[i] > '~' || memchr("\",;\\", v.p[i], 4) != NULL)
            return false;
    return true;
}

const char *substitute_misfit(enum place place, struct view secret) {
    if (!is_visible_text(secret))
        return "the secret is empty, or has a control character or a blank at an end";
    if (place == PLACE_BASIC_USER && view_find(secret, ':') < secret.n)
        return "the secret has a colon, which ends a user of Basic";
    if (place == PLACE_COOKIE && !is_cookie_value(secret))
        return "the secret has a blank, '\"', ',', ';', '\\' or a byte beyond ASCII, which no "
               "cookie "
               "can hold";
    if (place == PLACE_JSON && !utf8_is_text(secret))
        return "the secret is not in UTF-8, which JSON is";
    return NULL;
}

static void put_percent(struct view v, struct buf *out) {
    static const char digits[] = "0123456789ABCDEF";
    for (size_t i = 0; i < v.n; i++) {
        uint8_t c = v.p[i];
        bool reserved = !is_alnum(c) && memchr("-._~", c, 4) == NULL;
        if (reserved) {
            buf_put_u8(out, '%');
            buf_put_u8(out, (uint8_t)digits[c >> 4]);
        }
        buf_put_u8(out, reserved ? (uint8_t)digits[c & 15] : c);
    }
}

static void put_json(struct view v, struct buf *out) {
    for (size_t i = 0; i < v.n; i++) {
        if (v.p[i] == '"' || v.p[i] == '\\')
            buf_put_u8(out, '\\');
        buf_put_u8(out, v.p[i]);
    }
}

void substitute_spell(enum place place, struct view secret, struct buf *out) {
    if (place == PLACE_QUERY || place == PLACE_PATH || place == PLACE_FORM)
        put_percent(secret, out);
    else if (place == PLACE_JSON)
        put_json(secret, out);
    else
        buf_put(out, secret);
}

/* ---- one material ---- */

static int put_pair(const struct material *m, struct view pair, struct view secret,
                    struct buf *out) {
    struct view password = pair;
    size_t colon = view_find(pair, ':');
    struct view user = view_cut(&password, ':');
    struct view *half = m->place == PLACE_BASIC_USER ? &user : &password;
    if (colon == pair.n || !view_equal(*half, m->token))
        return ERR_BAD;
    *half = secret;
    buf_put(out, user);
    buf_put_u8(out, ':');
    buf_put(out, password);
    return buf_ok(out) ? 0 : ERR_MEMORY;
}

static int put_basic(const struct material *m, struct view secret, struct buf *out) {
    struct buf before, after;
    buf_init(&before, BASIC_MAX);
    buf_init_secret(&after, SUBSTITUTE_MAX);
    int result = base64_decode(m->raw, &before);
    if (result == 0)
        result = put_pair(m, buf_view(&before), secret, &after);
    if (result == 0)
        base64_encode(buf_view(&after), out);
    buf_free(&before);
    buf_free(&after);
    return result;
}

/* What the judge was told of is what these bytes say. */
static bool says_token(const struct material *m) {
    struct buf decoded;
    if (m->place != PLACE_QUERY && m->place != PLACE_PATH)
        return view_equal(m->raw, m->token);
    buf_init(&decoded, m->raw.n);
    int result = percent_decode(m->raw, m->place == PLACE_QUERY, &decoded);
    bool same = result == 0 && view_equal(buf_view(&decoded), m->token);
    buf_free(&decoded);
    return same;
}

static int put_secret(const struct material *m, struct view secret, struct buf *out) {
    if (m->malformed || m->token.n == 0 || substitute_misfit(m->place, secret))
        return ERR_BAD;
    switch (m->place) {
    case PLACE_BASIC_USER:
    case PLACE_BASIC_PASSWORD:
        return put_basic(m, secret, out);
    case PLACE_HEADER:
    case PLACE_COOKIE:
    case PLACE_QUERY:
    case PLACE_PATH:
        if (!says_token(m))
            return ERR_BAD;
        substitute_spell(m->place, secret, out);
        return 0;
    default:
        return ERR_BAD;
    }
}

/* ---- all of them ---- */

static bool holds(struct view whole, struct view part) {
    uintptr_t from = (uintptr_t)whole.p, at = (uintptr_t)part.p;
    return part.n > 0 && part.n <= whole.n && at >= from && at - from <= whole.n - part.n;
}

static bool is_swapped(uint32_t swaps, size_t i) {
    return swaps >> i & 1;
}

/* Lets *whole point to itself with the secret in it, if a swap stands there; *left loses those that do. */
static int rewrite(struct view *whole, const struct materials *m, uint32_t *left,
                   struct view secret, struct buf *out) {
    size_t start = buf_len(out), done = 0;
    for (size_t i = 0; i < m->n; i++) {
        const struct material *at = &m->at[i];
        if (!is_swapped(*left, i) || !holds(*whole, at->raw))
            continue;
        size_t offset = (size_t)(at->raw.p - whole->p);
        if (offset < done)
            return ERR_BAD;
        buf_put(out, view_slice(*whole, done, offset));
        int result = put_secret(at, secret, out);
        if (result != 0)
            return result;
        done = offset + at->raw.n;
        *left &= ~(UINT32_C(1) << i);
    }
    if (done == 0)
        return 0;
    buf_put(out, view_skip(*whole, done));
    *whole = view_skip(buf_view(out), start);
    return buf_ok(out) ? 0 : ERR_MEMORY;
}

/* What everything that changes may take: reserved at once, since memory that moved would not be pointed to any more. */
static size_t room_for(const struct fields *fields, struct view target, const struct materials *m,
                       uint32_t swaps, struct view secret) {
    size_t n = target.n;
    for (size_t i = 0; i < m->n; i++) {
        if (!is_swapped(swaps, i))
            continue;
        n += SUBSTITUTE_GROWTH * secret.n + 4; /* base64 is padded to four */
        for (size_t k = 0; k < fields->n; k++)
            if (holds(fields->at[k].value, m->at[i].raw))
                n += fields->at[k].value.n;
    }
    return n;
}

int substitute_request(struct fields *fields, struct view *target, const struct materials *m,
                       uint32_t swaps, struct view secret, struct buf *out) {
    uint32_t left = swaps;
    assert(out->secret);
    if (!buf_reserve(out, room_for(fields, *target, m, swaps, secret)))
        return ERR_MEMORY;
    int result = rewrite(target, m, &left, secret, out);
    for (size_t i = 0; i < fields->n && result == 0; i++)
        result = rewrite(&fields->at[i].value, m, &left, secret, out);
    return result == 0 && left != 0 ? ERR_BAD : result;
}
