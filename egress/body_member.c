#include "egress/body_member.h"

#include "policy/provenance.h"

void body_member_begin(struct body_member *m) {
    m->n_name = m->n_value = 0;
    m->too_long = m->hides = false;
}

static void fold_tail(struct body_member *m, struct view tail, uint8_t letter) {
    if (!view_ends(view_of(m->name, m->n_name), tail))
        return;
    m->n_name -= tail.n;
    m->name[m->n_name++] = letter;
}

void body_member_put(struct body_member *m, uint8_t c) {
    if (m->too_long)
        return;
    if (m->n_name == sizeof m->name) {
        m->too_long = true;
        m->hides = provenance_body_name(view_of(m->name, m->n_name));
        return;
    }
    m->name[m->n_name++] = c;
    fold_tail(m, VIEW("\xe2\x84\xaa"), 'k');
    fold_tail(m, VIEW("\xc5\xbf"), 's');
}

void body_member_put_point(struct body_member *m, uint32_t point) {
    if (point < 0x80) {
        body_member_put(m, (uint8_t)point);
        return;
    }
    if (point < 0x800) {
        body_member_put(m, (uint8_t)(0xc0 | point >> 6));
    } else {
        body_member_put(m, (uint8_t)(0xe0 | point >> 12));
        body_member_put(m, (uint8_t)(0x80 | (point >> 6 & 63)));
    }
    body_member_put(m, (uint8_t)(0x80 | (point & 63)));
}

bool body_member_is_credential(const struct body_member *m) {
    struct view name = view_of(m->name, m->n_name);
    if (m->too_long)
        return m->hides;
    return provenance_body_name(name) || (m->names && body_names_have(m->names, name));
}

enum body_step body_member_in_name(struct body_member *m) {
    if (m->hides)
        return body_bad(m, "the name of a field is too long");
    return m->too_long ? BODY_CLEAR : BODY_HOLD;
}

bool body_member_put_value(struct body_member *m, uint8_t c) {
    if (m->n_value < sizeof m->value)
        m->value[m->n_value++] = c;
    return m->n_value == sizeof m->value;
}

enum body_step body_bad(struct body_member *m, const char *why) {
    m->why = why;
    return BODY_BAD;
}
