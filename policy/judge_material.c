#include "policy/judge_material.h"

#include "policy/credential_name.h"
#include "policy/key_form.h"
#include "policy/rules.h"

static bool is_basic(const struct credential_place *place) {
    return place->place == PLACE_BASIC_USER || place->place == PLACE_BASIC_PASSWORD;
}

/* As servers decode it: "a%5Bb%5D" is the parameter "a[b]". */
static bool is_parameter(struct view sent, struct view name) {
    uint8_t memory[POLICY_NAME_MAX];
    struct view decoded;
    return percent_decode_into(sent, true, memory, sizeof memory, &decoded) &&
           view_equal(decoded, name);
}

bool material_stands_in(const struct material *m, const struct credential_place *place) {
    if (m->place != place->place || m->malformed)
        return false;
    switch (place->place) {
    case PLACE_HEADER:
        return view_equal_nocase(m->name, place->name) &&
               view_equal_nocase(m->scheme, place->scheme);
    case PLACE_BASIC_USER:
    case PLACE_BASIC_PASSWORD:
        return view_equal_nocase(m->name, place->name);
    case PLACE_PATH:
        return m->segment == place->segment;
    case PLACE_QUERY:
        return is_parameter(m->name, place->name);
    default:
        return view_equal(m->name, place->name);
    }
}

/* Beside a credential in one half of Basic the other half is only text, unless it is somebody's key: APIs take it in either. */
static bool is_other_half(const struct credential *c, const struct material *m) {
    struct view key;
    return c && is_basic(&c->place) && m->place != c->place.place &&
           (m->place == PLACE_BASIC_USER || m->place == PLACE_BASIC_PASSWORD) &&
           view_equal_nocase(m->name, c->place.name) && m->origin == ORIGIN_FOREIGN &&
           !m->malformed && !key_form_inside(m->token, &key);
}

/* Whether the service reads a credential from this cookie: accepting others must not open it. */
static bool is_cookie_of(const struct service *s, const struct material *m) {
    for (const struct credential *c = s->credentials; c; c = c->next)
        if (c->place.place == PLACE_COOKIE && credential_name_same(m->name, c->place.name))
            return true;
    return false;
}

/* Material only because some credential goes there, and this operation's does not. */
static bool is_plain_segment(const struct credential *c, const struct material *m) {
    return m->watched && !(c && material_stands_in(m, &c->place));
}

static enum reason weigh_material(const struct service *s, const struct credential *c,
                                  const struct material *m) {
    switch (m->origin) {
    case ORIGIN_OTHER:
        return REASON_PLACEHOLDER_WRONG_IDENTITY;
    case ORIGIN_OURS:
        if (!c || !view_equal(m->credential, c->name))
            return REASON_PLACEHOLDER_WRONG_DESTINATION;
        if (m->malformed)
            return REASON_FOREIGN_CREDENTIAL;
        return material_stands_in(m, &c->place) ? REASON_ALLOWED : REASON_PLACEHOLDER_WRONG_PLACE;
    case ORIGIN_FOREIGN:
        break;
    }
    if (m->place == PLACE_TARGET)
        return s->accept_destinations ? REASON_ALLOWED : REASON_SECOND_TARGET;
    if (s->accept_any || is_plain_segment(c, m) ||
        (s->accept_cookies && m->place == PLACE_COOKIE && !is_cookie_of(s, m)))
        return REASON_ALLOWED;
    return REASON_FOREIGN_CREDENTIAL;
}

static int gravity(enum reason r) {
    switch (r) {
    case REASON_PLACEHOLDER_WRONG_IDENTITY:
        return 5;
    case REASON_PLACEHOLDER_WRONG_DESTINATION:
        return 4;
    case REASON_PLACEHOLDER_WRONG_PLACE:
        return 3;
    case REASON_FOREIGN_CREDENTIAL:
        return 2;
    case REASON_PLACEHOLDER_REPEATED:
    case REASON_SECOND_TARGET:
        return 1;
    default:
        return 0;
    }
}

static void worsen(enum reason *worst, enum reason r) {
    if (gravity(r) > gravity(*worst))
        *worst = r;
}

static unsigned count_bits(uint32_t bits) {
    return (unsigned)__builtin_popcount(bits);
}

enum reason judge_materials(const struct service *s, const struct credential *c,
                            const struct request_facts *f, uint32_t *swaps) {
    enum reason worst = REASON_ALLOWED;
    size_t halves = 0;
    *swaps = 0;
    for (size_t i = 0; i < f->materials->n; i++) {
        const struct material *m = &f->materials->at[i];
        if (is_other_half(c, m)) {
            halves++;
            continue;
        }
        enum reason r = weigh_material(s, c, m);
        if (r == REASON_ALLOWED && m->origin == ORIGIN_OURS)
            *swaps |= UINT32_C(1) << i;
        worsen(&worst, r);
    }
    if (c && count_bits(*swaps) > c->at_most)
        worsen(&worst, REASON_PLACEHOLDER_REPEATED);
    if (f->materials->overflow || halves > 1 || (halves == 1 && *swaps == 0))
        worsen(&worst, REASON_FOREIGN_CREDENTIAL);
    if (f->placeholder_elsewhere)
        worsen(&worst, c ? REASON_PLACEHOLDER_WRONG_PLACE : REASON_PLACEHOLDER_WRONG_DESTINATION);
    return worst;
}
