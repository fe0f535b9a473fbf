#include "policy/rpc_read.h"

#include <stdlib.h>

/* By index in the protocols' pointers. */
enum {
    AT_QUERY,
    AT_OPERATION,
    AT_VARIABLES,
    AT_EXTENSIONS,
    AT_PERSISTED,
    AT_MEMBER,
    AT_VERSION, /* from here on JSON-RPC's, of an object */
    AT_METHOD,
    AT_PARAMS,
    AT_TOOL,
    AT_RESULT,
    AT_ERROR,
    AT_ITEM, /* and the same again, of an item */
    AT_COUNT = AT_ITEM + (AT_ITEM - AT_VERSION)
};

static const char *const pointers[AT_COUNT] = {"/query",
                                               "/operationName",
                                               "/variables",
                                               "/extensions",
                                               "/extensions/persistedQuery",
                                               "/*",
                                               "/jsonrpc",
                                               "/method",
                                               "/params",
                                               "/params/name",
                                               "/result",
                                               "/error",
                                               "/*/jsonrpc",
                                               "/*/method",
                                               "/*/params",
                                               "/*/params/name",
                                               "/*/result",
                                               "/*/error"};

#define BIT(i) (UINT64_C(1) << (i))
#define BOTH(i) (BIT(i) | BIT((i) + AT_ITEM - AT_VERSION))

int protocol_finds_init(struct json_finds *f) {
    struct view views[AT_COUNT];
    for (size_t i = 0; i < AT_COUNT; i++)
        views[i] = view_str(pointers[i]);
    memset(f, 0, sizeof *f);
    f->bare = BIT(AT_VARIABLES) | BIT(AT_EXTENSIONS) | BIT(AT_PERSISTED) | BIT(AT_MEMBER) |
              BOTH(AT_PARAMS) | BOTH(AT_RESULT) | BOTH(AT_ERROR);
    return json_paths_init(&f->paths, views, AT_COUNT);
}

/* ---- JSON-RPC ---- */

struct item {
    bool version, method, answer, params, bad;
};

static void read_member(const struct json_read *r, const struct json_found *f, unsigned at,
                        struct item *item, struct rpc_call *call) {
    struct view text = json_read_text(r, f);
    bool string = f->type == BODY_STRING;
    item->bad = item->bad || f->alike;
    switch (at) {
    case AT_VERSION:
        item->version = string && view_equal(text, VIEW("2.0"));
        break;
    case AT_METHOD:
        item->method = true;
        item->bad = item->bad || !string || text.n == 0;
        call->method = text;
        break;
    case AT_PARAMS:
        item->params = f->type == BODY_OBJECT;
        break;
    case AT_TOOL:
        if (string)
            call->tool = text;
        break;
    default:
        item->answer = true;
        break;
    }
}

/* A tool that is not named by a string could be any. */
static bool is_call(const struct item *item, const struct rpc_call *call) {
    bool tool = view_equal_nocase(call->method, VIEW("tools/call"));
    return !item->bad && item->version && item->method != item->answer &&
           (!tool || (item->params && call->tool.n > 0));
}

static size_t count(const struct json_finds *f, unsigned pointer) {
    size_t n = 0;
    for (size_t i = 0; i < f->n; i++)
        n += f->found[i].pointer == pointer;
    return n;
}

bool rpc_read(const struct json_read *r, const struct json_finds *f, struct rpc_call **calls,
              struct rpc_facts *out) {
    bool batch = json_read_root(r) == BODY_ARRAY;
    size_t n = batch ? count(f, AT_MEMBER) : 1;
    struct item *items = calloc(n + 1, sizeof *items);
    *calls = calloc(n + 1, sizeof **calls);
    bool good = items && *calls && n > 0 && (batch || json_read_root(r) == BODY_OBJECT);
    unsigned from = batch ? AT_ITEM : AT_VERSION, length = AT_ITEM - AT_VERSION;
    for (size_t i = 0; good && i < f->n; i++) {
        const struct json_found *found = &f->found[i];
        size_t item = batch ? found->item : 0;
        if (found->pointer >= from && found->pointer < from + length)
            read_member(r, found, AT_VERSION + found->pointer - from, &items[item],
                        &(*calls)[item]);
    }
    for (size_t i = 0; good && i < n; i++)
        good = is_call(&items[i], &(*calls)[i]);
    free(items);
    if (good)
        *out = (struct rpc_facts){.known = true, .batch = batch, .calls = *calls, .n_calls = n};
    return good;
}

/* ---- GraphQL ---- */

static bool is_none_or(const struct json_found *f, enum body_type type) {
    return !f || f->type == BODY_NULL || f->type == type;
}

bool graphql_request_read(const struct json_read *r, const struct json_finds *f,
                          struct graphql **document, struct graphql_facts *out) {
    const struct json_found *at[AT_VERSION] = {NULL};
    size_t known = 0;
    if (json_read_root(r) != BODY_OBJECT)
        return false;
    for (size_t i = 0; i < f->n; i++) {
        const struct json_found *found = &f->found[i];
        if (found->pointer >= AT_MEMBER)
            continue;
        if (found->alike)
            return false;
        at[found->pointer] = found;
        known += found->pointer != AT_PERSISTED;
    }
    if (!at[AT_QUERY] || at[AT_QUERY]->type != BODY_STRING || at[AT_PERSISTED] ||
        known != count(f, AT_MEMBER) || !is_none_or(at[AT_OPERATION], BODY_STRING) ||
        !is_none_or(at[AT_VARIABLES], BODY_OBJECT) || !is_none_or(at[AT_EXTENSIONS], BODY_OBJECT))
        return false;
    bool named = at[AT_OPERATION] && at[AT_OPERATION]->type == BODY_STRING;
    struct view operation = named ? json_read_text(r, at[AT_OPERATION]) : (struct view){NULL, 0};
    if (graphql_read(json_read_text(r, at[AT_QUERY]), named ? &operation : NULL, document) != 0)
        return false;
    *out = graphql_facts(*document);
    return true;
}
