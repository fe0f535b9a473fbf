/*
 * GraphQL documents: what is read has an operation with root fields that stand in the document as
 * names; and blanks and commas around it change nothing.
 *
 * Input: the document; what stands before a first NUL, if there is one, is the operation's name.
 */
#include "policy/graphql.h"
#include "fuzz/require.h"

#include "base/utf8.h"

#include <stdlib.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static bool stands_in(struct view name, struct view document) {
    return name.n > 0 && name.p >= document.p && name.p + name.n <= document.p + document.n;
}

static void check_padded(struct view document, const struct view *operation,
                         const struct graphql_facts *facts) {
    struct graphql *g = NULL;
    struct buf b;
    buf_init(&b, document.n + 16);
    buf_put_str(&b, "\xef\xbb\xbf,#{\n");
    buf_put(&b, document);
    buf_put_str(&b, "\n ,");
    REQUIRE(graphql_read(buf_view(&b), operation, &g) == 0);
    struct graphql_facts again = graphql_facts(g);
    REQUIRE(again.kind == facts->kind && again.n_fields == facts->n_fields);
    for (size_t i = 0; i < again.n_fields; i++)
        REQUIRE(view_equal(again.fields[i], facts->fields[i]));
    graphql_free(g);
    buf_free(&b);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    struct view document = view_of(data, size), operation = {NULL, 0};
    bool named = view_find(document, 0) < document.n;
    struct graphql *g = NULL;
    if (named)
        operation = view_cut(&document, 0);
    if (!utf8_is_text(document) || graphql_read(document, named ? &operation : NULL, &g) != 0)
        return 0;
    struct graphql_facts facts = graphql_facts(g);
    REQUIRE(facts.known && facts.n_fields > 0);
    for (size_t i = 0; i < facts.n_fields; i++)
        REQUIRE(stands_in(facts.fields[i], document));
    check_padded(document, named ? &operation : NULL, &facts);
    graphql_free(g);
    return 0;
}
