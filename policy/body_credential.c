#include "policy/body_credential.h"

#include "policy/target.h"

static bool says(struct view sent, const struct body_value *v) {
    struct buf decoded;
    if (v->type != BODY_TEXT)
        return view_equal(sent, v->value);
    buf_init(&decoded, sent.n);
    bool same =
        percent_decode(sent, true, &decoded) == 0 && view_equal(buf_view(&decoded), v->value);
    buf_free(&decoded);
    return same;
}

static bool is_text(const struct body_value *v) {
    return v->type == BODY_STRING || v->type == BODY_TEXT;
}

void body_values_compare(struct body_value *values, size_t n, struct view body) {
    for (size_t i = 0; i < n; i++) {
        struct body_value *v = &values[i];
        v->as_sent = is_text(v) && v->to <= body.n && says(view_slice(body, v->from, v->to), v);
    }
}

static bool is_nothing(const struct body_value *v) {
    return v->type == BODY_NULL || (is_text(v) && v->value.n == 0) ||
           (v->type == BODY_BOOLEAN && view_equal(v->value, VIEW("false")));
}

static void add(struct materials *m, const struct body_value *v, struct view name,
                struct view body) {
    if (m->n == MATERIALS_MAX) {
        m->overflow = true;
        return;
    }
    m->at[m->n++] =
        (struct material){.place = v->type == BODY_TEXT ? PLACE_FORM : PLACE_JSON,
                          .name = name,
                          .token = v->value,
                          .raw = v->as_sent ? view_slice(body, v->from, v->to) : v->value,
                          .malformed = v->alike || !v->as_sent};
}

void body_credentials(const struct body_facts *f, const struct watched *watched, struct view body,
                      struct materials *m) {
    for (size_t i = 0; i < watched->n; i++) {
        const struct credential_place *place = watched->at[i];
        if (!place_is_in_body(place->place))
            continue;
        m->overflow = m->overflow || (f->unclear && f->read);
        for (size_t k = 0; k < f->n_values; k++)
            if (f->values[k].pointer == place->pointer && !is_nothing(&f->values[k]))
                add(m, &f->values[k], place->name, body);
    }
}
