#include "cli/openapi_policy.h"

#include "policy/method.h"
#include "policy/pattern.h"

#include <stdlib.h>

enum { NAME_MAX_OF_POLICY = 64, PATH_MAX_OF_POLICY = 2048 };

struct writer {
    const struct openapi *api;
    struct buf *out;
    struct view base;  /* the path of the server's URL, without a final '/' */
    struct buf *names; /* of operations, one for each, in the order of api->operations */
};

/* ---- words ---- */

static void put_comment(struct buf *out, struct view text, size_t most) {
    for (size_t i = 0; i < text.n && i < most; i++)
        buf_put_u8(out, text.p[i] > 0x20 && text.p[i] < 0x7f ? text.p[i] : ' ');
}

static bool is_name_byte(uint8_t c) {
    return is_alpha(c) || is_digit(c) || c == '.' || c == '_' || c == '-';
}

/* What is no part of a name becomes one '-' in a row; none at the ends. */
static void put_name(struct buf *out, struct view text, size_t most) {
    size_t put = 0;
    bool gap = false;
    for (size_t i = 0; i < text.n && put < most; i++) {
        bool good =
            is_name_byte(text.p[i]) && (put > 0 || is_alpha(text.p[i]) || is_digit(text.p[i]));
        if (good && gap && put > 0 && put + 1 < most) {
            buf_put_u8(out, '-');
            put++;
        }
        gap = !good;
        if (good) {
            buf_put_u8(out, text.p[i]);
            put++;
        }
    }
}

/* ---- names of operations ---- */

static bool is_taken(const struct writer *w, size_t n, struct view name) {
    static const char *const reserved[] = {"all", "read", "write"};
    for (size_t i = 0; i < 3; i++)
        if (view_equal_nocase(name, view_str(reserved[i])))
            return true;
    for (size_t i = 0; i < n; i++)
        if (view_equal_nocase(buf_view(&w->names[i]), name))
            return true;
    return false;
}

/* Its id, or method and path; with a number behind it where it is another's already. */
static void name_operation(struct writer *w, size_t i) {
    const struct openapi_operation *o = &w->api->operations[i];
    struct buf *name = &w->names[i], base;
    enum { ROOM = 8 };
    buf_init(&base, PATH_MAX_OF_POLICY);
    put_name(&base, o->id, NAME_MAX_OF_POLICY - ROOM);
    if (buf_len(&base) == 0) {
        buf_put(&base, o->method);
        buf_put_u8(&base, '-');
        put_name(&base, o->path, NAME_MAX_OF_POLICY - ROOM - buf_len(&base));
    }
    buf_init(name, NAME_MAX_OF_POLICY);
    buf_put(name, buf_view(&base));
    for (unsigned number = 2; is_taken(w, i, buf_view(name)); number++) {
        buf_reset(name);
        buf_put(name, buf_view(&base));
        buf_printf(name, "-%u", number);
    }
    buf_free(&base);
}

/* ---- paths ---- */

static const struct openapi_parameter *find_parameter(const struct openapi_operation *o,
                                                      struct view name) {
    for (size_t i = 0; i < o->n_parameters; i++)
        if (view_equal(o->parameters[i].name, name))
            return &o->parameters[i];
    return NULL;
}

static void put_template_name(struct buf *out, struct view name) {
    for (size_t i = 0; i < name.n; i++)
        buf_put_u8(out, is_alpha(name.p[i]) || is_digit(name.p[i]) ? name.p[i] : '_');
}

/* One segment as a pattern, or as a sample of what it matches. */
static void put_segment(const struct openapi_operation *o, struct view segment, bool last,
                        bool sample, struct buf *out) {
    bool whole = segment.n > 2 && segment.p[0] == '{' && segment.p[segment.n - 1] == '}' &&
                 view_find(view_skip(segment, 1), '{') == segment.n - 1;
    if (view_find(segment, '{') == segment.n && view_find(segment, '*') == segment.n) {
        buf_put(out, segment);
        return;
    }
    struct view name = whole ? view_slice(segment, 1, segment.n - 1) : VIEW("x");
    const struct openapi_parameter *p = whole ? find_parameter(o, name) : NULL;
    bool many = p && p->many && last, integer = p && p->integer && !many;
    if (sample && integer) {
        buf_put_u8(out, '7');
    } else if (sample) {
        put_template_name(out, name);
        buf_put_str(out, many ? "-1/x" : "-1");
    } else if (many || !whole) {
        buf_put_str(out, many ? "**" : "*");
    } else {
        buf_put_u8(out, '{');
        put_template_name(out, name);
        buf_put_str(out, integer ? ":int}" : "}");
    }
}

static void put_path(const struct writer *w, const struct openapi_operation *o, bool sample,
                     struct buf *out) {
    struct view rest = o->path, segment;
    buf_put(out, w->base);
    while (target_segment(&rest, &segment)) {
        buf_put_u8(out, '/');
        put_segment(o, segment, rest.n == 0, sample, out);
    }
    buf_put(out, rest);
}

static bool is_plain(struct view v) {
    for (size_t i = 0; i < v.n; i++)
        if (v.p[i] <= 0x20 || v.p[i] >= 0x7f || v.p[i] == '"' || v.p[i] == '\'' || v.p[i] == ';' ||
            v.p[i] == '#')
            return false;
    return true;
}

/* Why the path is no pattern; NULL: it is one. */
static const char *path_fault(struct view pattern, struct view sample) {
    struct path_pattern p, s;
    const char *why = "malformed";
    if (!is_plain(pattern) || !is_plain(sample))
        return "characters that need quotes";
    if (path_pattern_parse(pattern, true, &p, &why) != 0 ||
        path_pattern_parse(sample, false, &s, &why) != 0)
        return why;
    return NULL;
}

/* ---- one operation ---- */

static void put_method(struct buf *out, struct view method) {
    for (size_t i = 0; i < method.n; i++)
        buf_put_u8(out, (uint8_t)(method.p[i] - 'a' + 'A'));
}

static void put_operation(const struct writer *w, size_t i) {
    const struct openapi_operation *o = &w->api->operations[i];
    bool reads = view_equal(o->method, VIEW("get")) || view_equal(o->method, VIEW("head"));
    struct buf pattern, sample;
    buf_init(&pattern, PATH_MAX_OF_POLICY);
    buf_init(&sample, PATH_MAX_OF_POLICY);
    put_path(w, o, false, &pattern);
    put_path(w, o, true, &sample);
    const char *fault = buf_ok(&pattern) && buf_ok(&sample)
                            ? path_fault(buf_view(&pattern), buf_view(&sample))
                            : "it is too long";
    if (fault) {
        buf_printf(w->out, "    # left out, %s: ", fault);
        put_comment(w->out, o->path, 128);
        buf_put_u8(w->out, '\n');
    } else {
        buf_printf(w->out, "    %soperation %.*s { ", reads ? "" : "# ",
                   VIEW_ARG(buf_view(&w->names[i])));
        put_method(w->out, o->method);
        buf_printf(w->out, " %.*s }%s\n", VIEW_ARG(buf_view(&pattern)),
                   o->deprecated ? "  # deprecated" : "");
        buf_printf(w->out, "    expect %s ", reads ? "allow" : "deny");
        put_method(w->out, o->method);
        buf_printf(w->out, " %.*s\n", VIEW_ARG(buf_view(&sample)));
    }
    buf_free(&pattern);
    buf_free(&sample);
}

/* ---- the service ---- */

static bool is_first_of_tag(const struct openapi *a, size_t i) {
    for (size_t k = 0; k < i; k++)
        if (view_equal(a->operations[k].tag, a->operations[i].tag))
            return false;
    return true;
}

static void put_tags(const struct writer *w) {
    const struct openapi *a = w->api;
    for (size_t i = 0; i < a->n_operations; i++) {
        if (!is_first_of_tag(a, i))
            continue;
        buf_put_str(w->out, "\n    # ---- ");
        put_comment(w->out, a->operations[i].tag.n > 0 ? a->operations[i].tag : VIEW("no tag"), 80);
        buf_put_str(w->out, " ----\n\n");
        for (size_t k = i; k < a->n_operations; k++)
            if (view_equal(a->operations[k].tag, a->operations[i].tag))
                put_operation(w, k);
    }
}

static void put_credential(const struct writer *w, struct view name, bool tls) {
    const struct openapi *a = w->api;
    struct buf header;
    buf_init(&header, NAME_MAX_OF_POLICY);
    put_name(&header, a->key_header, NAME_MAX_OF_POLICY);
    if (!tls) {
        buf_put_str(w->out,
                    "    # No credential goes over plain HTTP. With TLS it would be:\n    # ");
    } else if (a->key == OPENAPI_NO_KEY) {
        buf_put_str(w->out, "    # The description names no key. Where one is needed:\n    # ");
    } else {
        buf_put_str(w->out, "    ");
    }
    buf_printf(w->out, "credential %.*s-key { in ", VIEW_ARG(name));
    if (a->key == OPENAPI_HEADER && buf_len(&header) > 0)
        buf_printf(w->out, "header %.*s }\n", VIEW_ARG(buf_view(&header)));
    else
        buf_put_str(w->out, a->key == OPENAPI_BASIC ? "basic password }\n"
                                                    : "header authorization scheme bearer }\n");
    buf_free(&header);
}

static void put_head(const struct writer *w) {
    buf_put_str(w->out, "# Imported from an OpenAPI description: ");
    put_comment(w->out, w->api->title, 80);
    buf_put_u8(w->out, ' ');
    put_comment(w->out, w->api->version, 40);
    buf_put_str(w->out, "\n#\n# What reads is allowed. What writes is commented out: take the '# ' "
                        "away, and turn its\n"
                        "# expectation into 'allow'. Names of a path's templates are the "
                        "description's. A template also\n"
                        "# matches the words that other operations have in its place.\n\n");
}

/* Splits it: host and port, and the path without a final '/'. */
static int split_url(struct view url, struct authority *host, bool *tls, struct view *base,
                     const char **why) {
    *tls = view_starts(url, VIEW("https://"));
    if (!*tls && !view_starts(url, VIEW("http://"))) {
        *why = "the description names no server with a host; --url https://HOST/PATH does";
        return ERR_BAD;
    }
    struct view rest = view_skip(url, *tls ? 8 : 7);
    size_t slash = view_find(rest, '/');
    *base = view_skip(rest, slash);
    if (view_ends(*base, VIEW("/")))
        *base = view_head(*base, base->n - 1);
    return authority_parse(view_head(rest, slash), *tls ? 443 : 80, host, why);
}

static void put_service(const struct writer *w, struct view name, const struct authority *host,
                        bool tls) {
    put_head(w);
    buf_printf(w->out, "service %.*s {\n    host %s\n", VIEW_ARG(name), host->host);
    if (host->port != (tls ? 443 : 80))
        buf_printf(w->out, "    port %u\n", (unsigned)host->port);
    if (!tls)
        buf_put_str(w->out, "    tls clear\n");
    put_credential(w, name, tls);
    put_tags(w);
    buf_put_str(w->out, "}\n");
}

static int write_named(struct writer *w, struct view name, const struct authority *host, bool tls) {
    size_t n = w->api->n_operations;
    w->names = calloc(n + 1, sizeof *w->names);
    if (!w->names)
        return ERR_MEMORY;
    for (size_t i = 0; i < n; i++)
        name_operation(w, i);
    put_service(w, name, host, tls);
    for (size_t i = 0; i < n; i++)
        buf_free(&w->names[i]);
    free(w->names);
    return buf_ok(w->out) ? 0 : ERR_LIMIT;
}

int openapi_policy_write(const struct openapi *a, const struct openapi_wish *wish, struct buf *out,
                         const char **why) {
    struct writer w = {.api = a, .out = out};
    struct authority host;
    struct buf name;
    bool tls;
    int err = split_url(wish->url.n > 0 ? wish->url : a->url, &host, &tls, &w.base, why);
    if (err != 0)
        return err;
    buf_init(&name, NAME_MAX_OF_POLICY);
    put_name(&name, wish->name.n > 0 ? wish->name : view_str(host.host), NAME_MAX_OF_POLICY - 4);
    *why = "what comes of it is too long for a policy";
    err = write_named(&w, buf_view(&name), &host, tls);
    buf_free(&name);
    return err;
}
