#include "cli/openapi.h"

#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>

static const char *const methods[] = {"get", "head", "post", "put", "patch", "delete", "options"};
enum { METHODS = sizeof methods / sizeof methods[0], REFERENCE_DEPTH = 8 };

static struct view text_of(const json_t *value) {
    return json_is_string(value) ? view_of(json_string_value(value), json_string_length(value))
                                 : (struct view){NULL, 0};
}

static bool has_text(const json_t *object, const char *name, const char *text) {
    return view_equal(text_of(json_object_get(object, name)), view_str(text));
}

/* ---- references inside the document: RFC 6901 behind '#' ---- */

static json_t *member(json_t *value, struct view token) {
    char name[256];
    size_t n = 0;
    for (size_t i = 0; i < token.n && n + 1 < sizeof name; i++) {
        bool escape = token.p[i] == '~' && i + 1 < token.n;
        name[n++] = escape ? (token.p[++i] == '0' ? '~' : '/') : (char)token.p[i];
    }
    name[n] = '\0';
    return json_object_get(value, name);
}

static json_t *resolve(json_t *document, json_t *value) {
    for (int depth = 0; depth < REFERENCE_DEPTH; depth++) {
        struct view rest = text_of(json_object_get(value, "$ref"));
        if (rest.n == 0)
            return value;
        if (!view_starts(rest, VIEW("#/")))
            return NULL;
        rest = view_skip(rest, 2);
        for (value = document; rest.n > 0 && value;)
            value = member(value, view_cut(&rest, '/'));
    }
    return NULL;
}

/* ---- parameters ---- */

static bool is_integer(json_t *document, json_t *parameter) {
    json_t *schema = resolve(document, json_object_get(parameter, "schema"));
    return has_text(schema ? schema : parameter, "type", "integer");
}

static int add_parameters(json_t *document, json_t *list, struct openapi_operation *o) {
    size_t n = json_array_size(list);
    if (n == 0)
        return 0;
    struct openapi_parameter *more =
        realloc(o->parameters, (o->n_parameters + n) * sizeof *o->parameters);
    if (!more)
        return ERR_MEMORY;
    o->parameters = more;
    for (size_t i = 0; i < n; i++) {
        json_t *p = resolve(document, json_array_get(list, i));
        if (has_text(p, "in", "path"))
            o->parameters[o->n_parameters++] = (struct openapi_parameter){
                .name = text_of(json_object_get(p, "name")),
                .integer = is_integer(document, p),
                .many = json_is_true(json_object_get(p, "x-multi-segment"))};
    }
    return 0;
}

/* ---- operations ---- */

static int add_operation(struct openapi *a, const char *path, json_t *item, const char *method) {
    json_t *operation = json_object_get(item, method);
    struct openapi_operation *o = &a->operations[a->n_operations];
    *o = (struct openapi_operation){
        .method = view_str(method),
        .path = view_str(path),
        .id = text_of(json_object_get(operation, "operationId")),
        .tag = text_of(json_array_get(json_object_get(operation, "tags"), 0)),
        .deprecated = json_is_true(json_object_get(operation, "deprecated"))};
    a->n_operations++;
    /* The operation's own come first: they hide those of the path. */
    int err = add_parameters(a->document, json_object_get(operation, "parameters"), o);
    return err != 0 ? err : add_parameters(a->document, json_object_get(item, "parameters"), o);
}

static int read_paths(struct openapi *a) {
    json_t *paths = json_object_get(a->document, "paths"), *item;
    const char *path;
    a->operations = calloc(json_object_size(paths) * METHODS + 1, sizeof *a->operations);
    if (!a->operations)
        return ERR_MEMORY;
    json_object_foreach(paths, path, item) {
        item = resolve(a->document, item);
        for (size_t i = 0; i < METHODS; i++)
            if (json_is_object(json_object_get(item, methods[i])) &&
                add_operation(a, path, item, methods[i]) != 0)
                return ERR_MEMORY;
    }
    return 0;
}

/* ---- server and key ---- */

/* Swagger 2.0 has it in three members. */
static void read_server(struct openapi *a) {
    json_t *servers = json_object_get(a->document, "servers");
    struct view host = text_of(json_object_get(a->document, "host"));
    a->url = text_of(json_object_get(json_array_get(servers, 0), "url"));
    if (a->url.n > 0 || host.n == 0)
        return;
    json_t *schemes = json_object_get(a->document, "schemes");
    bool clear = json_array_size(schemes) == 1 &&
                 view_equal(text_of(json_array_get(schemes, 0)), VIEW("http"));
    buf_put_str(&a->made, clear ? "http://" : "https://");
    buf_put(&a->made, host);
    buf_put(&a->made, text_of(json_object_get(a->document, "basePath")));
    a->url = buf_view(&a->made);
}

static enum openapi_key key_of(json_t *scheme, struct view *header) {
    bool http = has_text(scheme, "type", "http");
    if ((http && has_text(scheme, "scheme", "bearer")) || has_text(scheme, "type", "oauth2"))
        return OPENAPI_BEARER;
    if ((http && has_text(scheme, "scheme", "basic")) || has_text(scheme, "type", "basic"))
        return OPENAPI_BASIC;
    if (!has_text(scheme, "type", "apiKey") || !has_text(scheme, "in", "header"))
        return OPENAPI_NO_KEY;
    *header = text_of(json_object_get(scheme, "name"));
    return OPENAPI_HEADER;
}

/* The one that is easiest for clients: bearer before a field of its own before Basic. */
static void read_key(struct openapi *a) {
    json_t *schemes =
        json_object_get(json_object_get(a->document, "components"), "securitySchemes");
    if (!schemes)
        schemes = json_object_get(a->document, "securityDefinitions");
    const char *name;
    json_t *scheme;
    json_object_foreach(schemes, name, scheme) {
        struct view header = {NULL, 0};
        enum openapi_key key = key_of(resolve(a->document, scheme), &header);
        if (key != OPENAPI_NO_KEY && (a->key == OPENAPI_NO_KEY || key < a->key)) {
            a->key = key;
            a->key_header = header;
        }
    }
}

int openapi_read(struct view json, struct openapi *out, char *why, size_t size) {
    json_error_t error;
    *out = (struct openapi){.key = OPENAPI_NO_KEY};
    buf_init(&out->made, 4096);
    out->document = json_loadb((const char *)json.p, json.n, JSON_REJECT_DUPLICATES, &error);
    if (!out->document) {
        snprintf(why, size, "line %d: %s", error.line, error.text);
        return ERR_BAD;
    }
    if (!json_is_object(json_object_get(out->document, "paths"))) {
        snprintf(why, size, "it has no paths: is it an OpenAPI description?");
        return ERR_BAD;
    }
    json_t *info = json_object_get(out->document, "info");
    out->title = text_of(json_object_get(info, "title"));
    out->version = text_of(json_object_get(info, "version"));
    read_server(out);
    read_key(out);
    return read_paths(out);
}

void openapi_free(struct openapi *a) {
    for (size_t i = 0; i < a->n_operations; i++)
        free(a->operations[i].parameters);
    free(a->operations);
    json_decref(a->document);
    buf_free(&a->made);
}
