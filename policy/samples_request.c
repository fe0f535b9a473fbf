#include "policy/samples.h"

static const struct sample *chosen(const struct subject *s) {
    return &s->at[s->chosen];
}

/* ---- the query ---- */

static void put_encoded(struct buf *out, struct view v) {
    for (size_t i = 0; i < v.n; i++)
        if (is_alnum(v.p[i]) || view_find(VIEW("-._~"), v.p[i]) < 4)
            buf_put_u8(out, v.p[i]);
        else
            buf_printf(out, "%%%02X", v.p[i]);
}

static void put_parameter(struct buf *out, struct view name, struct view value) {
    if (buf_len(out) > 0)
        buf_put_u8(out, '&');
    put_encoded(out, name);
    buf_put_u8(out, '=');
    put_encoded(out, value);
}

static void put_query(struct buf *out, const struct subject *s) {
    const struct sample *sample = chosen(s);
    uint8_t memory[POLICY_NAME_MAX];
    struct view name = s->name;
    if (sample->form == SAMPLE_ABSENT)
        return;
    if (sample->form == SAMPLE_ALIKE && name.n <= sizeof memory) {
        for (size_t i = 0; i < name.n; i++)
            memory[i] = is_alpha(name.p[i]) ? name.p[i] ^ 0x20 : name.p[i];
        name = view_of(memory, name.n);
    }
    put_parameter(out, name, sample->text);
    if (sample->second.p)
        put_parameter(out, name, sample->second);
}

/* ---- fields ---- */

static void add_field(struct sample_request *out, struct view name, struct view value) {
    if (out->n_fields < SAMPLE_FIELDS)
        out->fields[out->n_fields++] = (struct field){name, value};
}

static void put_header(struct sample_request *out, const struct subject *s) {
    const struct sample *sample = chosen(s);
    if (sample->form == SAMPLE_ABSENT || sample->form == SAMPLE_ALIKE)
        return;
    add_field(out, s->name, sample->text);
    if (sample->second.p)
        add_field(out, s->name, sample->second);
}

/* ---- the body ---- */

static uint16_t pointer_in(const struct policy *p, struct view name) {
    size_t i = 0;
    while (p && i < p->n_pointers && !view_equal(p->pointers[i], name))
        i++;
    return (uint16_t)i;
}

static void put_values(struct sample_request *out, const struct subject *s,
                       const struct policy *p) {
    const struct sample *sample = chosen(s);
    struct body_facts *f = &out->facts;
    struct body_value value = {.pointer = pointer_in(p, s->name),
                               .type = sample->type,
                               .value = sample->text,
                               .alike = sample->form == SAMPLE_ALIKE};
    f->unclear = f->unclear || sample->form == SAMPLE_UNCLEAR;
    if (sample->form == SAMPLE_ABSENT || sample->form == SAMPLE_UNCLEAR)
        return;
    out->values[f->n_values++] = value;
    value.value = sample->second;
    value.type = sample->second_type;
    if (sample->second.p)
        out->values[f->n_values++] = value;
}

static void put_content(struct sample_request *out, const struct subject *s) {
    const struct sample *sample = chosen(s);
    struct body_facts *f = &out->facts;
    f->unclear = f->unclear || sample->form == SAMPLE_UNCLEAR;
    if (sample->form != SAMPLE_VALUE)
        return;
    if (s->kind == SUBJECT_GRAPHQL) {
        f->graphql = (struct graphql_facts){true, sample->graphql, sample->names, sample->n_names};
        return;
    }
    for (size_t i = 0; i < sample->n_names; i++)
        out->calls[i] = (struct rpc_call){sample->names[i], sample->tool};
    f->rpc = (struct rpc_facts){true, sample->n_names > 1, out->calls, sample->n_names};
}

static bool says_content(const struct subject *s) {
    return (s->kind == SUBJECT_BODY || s->kind == SUBJECT_UNREADABLE ||
            s->kind == SUBJECT_GRAPHQL || s->kind == SUBJECT_RPC) &&
           s->chosen != 0;
}

/* ---- all of it ---- */

static void put_subject(struct sample_request *out, const struct subject *s,
                        const struct policy *p) {
    switch (s->kind) {
    case SUBJECT_QUERY:
        put_query(&out->query, s);
        return;
    case SUBJECT_STRANGER:
        if (s->chosen != 0)
            put_parameter(&out->query, VIEW("zq9"), VIEW("1"));
        return;
    case SUBJECT_HEADER:
        put_header(out, s);
        return;
    case SUBJECT_TYPE:
        out->type = chosen(s)->text;
        return;
    case SUBJECT_SIZE:
        out->length = chosen(s)->size;
        return;
    case SUBJECT_BODY:
        put_values(out, s, p);
        return;
    case SUBJECT_GRAPHQL:
    case SUBJECT_RPC:
        put_content(out, s);
        return;
    case SUBJECT_UPGRADE:
        out->websocket = s->chosen != 0;
        return;
    case SUBJECT_UNREADABLE:
        out->facts.unclear = out->facts.unclear || s->chosen != 0;
        return;
    }
}

void samples_request(const struct samples *s, const struct policy *p, struct sample_request *out) {
    bool content = false;
    struct buf query = out->query;
    *out = (struct sample_request){.query = query};
    buf_reset(&out->query);
    for (size_t i = 0; i < s->n; i++) {
        put_subject(out, &s->at[i], p);
        content = content || says_content(&s->at[i]);
    }
    if (content && out->length == 0)
        out->length = 1;
    out->has_facts = out->length > 0;
    out->facts.size = out->length;
    out->facts.read = true;
    out->facts.values = out->values;
}

/* ---- for a person ---- */

static const char *form_word(const struct sample *s) {
    if (s->form == SAMPLE_ALIKE)
        return " (in a name that is read alike)";
    return s->second.p ? " and another value" : "";
}

static void write_names(struct buf *out, const struct sample *s) {
    for (size_t i = 0; i < s->n_names; i++)
        buf_printf(out, "%s%.*s", i ? ", " : " ", VIEW_ARG(s->names[i]));
    if (s->tool.n > 0)
        buf_printf(out, " of the tool %.*s", VIEW_ARG(s->tool));
}

static void write_value(struct buf *out, const struct subject *s, const struct sample *sample) {
    buf_printf(out, ", in the body %.*s = ", VIEW_ARG(s->name));
    if (sample->type == BODY_ARRAY)
        buf_put_str(out, "[...]");
    else if (sample->type == BODY_OBJECT)
        buf_put_str(out, "{...}");
    else
        buf_printf(out, "'%.*s'", VIEW_ARG(sample->text));
    buf_printf(out, "%s%s", sample->type == BODY_TEXT ? " of a form" : "", form_word(sample));
}

static void write_subject(struct buf *out, const struct subject *s) {
    static const char *const graphql[] = {"query", "mutation", "subscription"};
    const struct sample *sample = chosen(s);
    if (s->chosen == 0)
        return;
    if (sample->form == SAMPLE_UNCLEAR || s->kind == SUBJECT_UNREADABLE) {
        buf_put_str(out, ", a body that reads in two ways");
        return;
    }
    switch (s->kind) {
    case SUBJECT_HEADER:
        buf_printf(out, ", header '%.*s: %.*s'%s", VIEW_ARG(s->name), VIEW_ARG(sample->text),
                   form_word(sample));
        return;
    case SUBJECT_TYPE:
        buf_printf(out, ", content type %.*s", VIEW_ARG(sample->text));
        return;
    case SUBJECT_SIZE:
        buf_printf(out, ", a body of %llu bytes", (unsigned long long)sample->size);
        return;
    case SUBJECT_BODY:
        write_value(out, s, sample);
        return;
    case SUBJECT_GRAPHQL:
        buf_printf(out, ", a GraphQL %s", graphql[sample->graphql]);
        write_names(out, sample);
        return;
    case SUBJECT_RPC:
        buf_put_str(out, ", a call of");
        write_names(out, sample);
        return;
    case SUBJECT_UPGRADE:
        buf_put_str(out, ", an upgrade to WebSocket");
        return;
    default:
        return;
    }
}

void samples_write(const struct samples *s, struct buf *out) {
    for (size_t i = 0; i < s->n; i++)
        write_subject(out, &s->at[i]);
}
