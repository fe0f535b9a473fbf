#include "policy/body_request.h"

#include "policy/credential_name.h"

bool body_source_find(const struct field *fields, size_t n, bool has_body, enum body_source *out) {
    struct view type = {NULL, 0};
    size_t types = 0;
    if (!has_body) {
        *out = BODY_SOURCE_QUERY;
        return true;
    }
    for (size_t i = 0; i < n; i++) {
        const struct field *f = &fields[i];
        if (view_equal_nocase(f->name, VIEW("content-encoding")) &&
            !view_equal_nocase(f->value, VIEW("identity")))
            return false;
        if (!view_equal_nocase(f->name, VIEW("content-type")))
            continue;
        type = f->value;
        types++;
    }
    return types == 1 && body_source_of(type, out);
}

static bool is_like_graphql(struct view name) {
    static const char *const names[] = {"query",      "operationName", "variables", "extensions",
                                        "documentId", "doc_id",        "id",        "batch"};
    uint8_t memory[64];
    struct view decoded;
    if (!percent_decode_into(name, true, memory, sizeof memory, &decoded))
        return true;
    for (size_t i = 0; i < sizeof names / sizeof *names; i++)
        if (credential_name_same_parameter(decoded, view_str(names[i])))
            return true;
    return false;
}

static bool may_be_graphql(struct view query) {
    while (query.n > 0) {
        struct view pair = view_cut(&query, '&');
        while (pair.n > 0) {
            struct view piece = view_cut(&pair, ';');
            if (is_like_graphql(view_cut(&piece, '=')))
                return true;
        }
    }
    return false;
}

void body_facts_doubt(struct body_facts *f, bool has_body, const struct target *t) {
    if (!has_body || !f->graphql.known || !t->has_query || !may_be_graphql(t->query))
        return;
    f->graphql.known = false;
    f->why = body_fault_text(BODY_NOT_GRAPHQL);
}
