#include "cli/registry.h"
#include "policy/pattern.h"

#include <string.h>

/*
 * What a protocol needs, behind the registry's own path: `@` stands for it, `^` for the folder above it. A line
 * with a sample is tried by it; all lines of one operation stand together.
 */
struct line {
    const char *operation, *methods, *pattern, *sample; /* sample NULL: not tried */
};

enum { LINES_MAX = 16 };

static const struct shape {
    const char *name;
    bool encoded_slash;
    struct line lines[LINES_MAX];
} shapes[REGISTRY_KINDS] = {
    [REGISTRY_NPM] =
        {"npm",
         true,
         {{"install", "GET HEAD", "@/{package}", "@/left-pad"},
          {"install", "GET HEAD", "@/{package}/{version}", "@/left-pad/latest"},
          {"install", "GET HEAD", "@/{package}/-/{file}", "@/left-pad/-/left-pad-1.3.0.tgz"},
          {"install", "GET HEAD", "@/{scope}/{package}/-/{file}", "@/@acme/x/-/x-1.0.0.tgz"},
          {"audit", "POST", "@/-/npm/v1/security/advisories/bulk",
           "@/-/npm/v1/security/advisories/bulk"},
          {"audit", "POST", "@/-/npm/v1/security/audits/quick", NULL},
          {"publish", "PUT", "@/{package}", "@/left-pad"},
          {"publish", "PUT DELETE", "@/{package}/-rev/{revision}", NULL},
          {"publish", "PUT DELETE", "@/-/package/**", NULL}}},
    [REGISTRY_PYPI] = {"pypi",
                       false,
                       {{"install", "GET HEAD", "@/{project}/", "@/requests/"},
                        {"install", "GET HEAD", "@/{project}", NULL},
                        {"install", "GET HEAD", "@/", NULL},
                        {"install", "GET HEAD", "^/packages/**",
                         "^/packages/ab/cd/requests-1.0.whl"},
                        {"install", "GET HEAD", "^/+f/**", NULL},
                        {"install", "GET HEAD", "^/pypi/{project}/json", NULL},
                        {"publish", "POST", "^/", "^/"},
                        {"publish", "POST", "^/legacy/", NULL}}},
    [REGISTRY_PYPI_FILES] = {"pypi-files",
                             false,
                             {{"install", "GET HEAD", "@/packages/**",
                               "@/packages/ab/cd/requests-1.0.whl"}}},
    [REGISTRY_PYPI_UPLOAD] = {"pypi-upload",
                              false,
                              {{"publish", "POST", "@", "@"}, {"publish", "POST", "@/", NULL}}},
    [REGISTRY_CARGO] = {"cargo",
                        false,
                        {{"install", "GET HEAD", "@/config.json", "@/config.json"},
                         {"install", "GET HEAD", "@/{n:int}/{crate}", "@/2/ab"},
                         {"install", "GET HEAD", "@/3/{letter}/{crate}", "@/3/l/log"},
                         {"install", "GET HEAD", "@/{a}/{b}/{crate}", "@/se/rd/serde"}}},
    [REGISTRY_CARGO_FILES] = {"cargo-files",
                              false,
                              {{"install", "GET HEAD", "@/{crate}/{version}/download",
                                "@/serde/1.0.0/download"},
                               {"install", "GET HEAD", "@/{crate}/{file}", NULL}}},
    [REGISTRY_CARGO_API] = {"cargo-api",
                            false,
                            {{"search", "GET", "@/api/v1/crates", "@/api/v1/crates"},
                             {"publish", "PUT", "@/api/v1/crates/new", "@/api/v1/crates/new"},
                             {"publish", "DELETE", "@/api/v1/crates/{crate}/{version}/yank", NULL},
                             {"publish", "PUT", "@/api/v1/crates/{crate}/{version}/unyank", NULL},
                             {"invite", "PUT DELETE", "@/api/v1/crates/{crate}/owners",
                              "@/api/v1/crates/serde/owners"}}},
    [REGISTRY_GO] = {"go",
                     false,
                     {{"install", "GET HEAD", "@/**/@v/{file}", "@/example.com/m/@v/list"},
                      {"install", "GET HEAD", "@/**/@latest", "@/example.com/m/@latest"},
                      {"install", "GET HEAD", "@/sumdb/**", NULL}}},
    [REGISTRY_GO_SUMS] = {"go-sums",
                          false,
                          {{"install", "GET HEAD", "@/lookup/**", "@/lookup/example.com/m@v1.0.0"},
                           {"install", "GET HEAD", "@/tile/**", NULL},
                           {"install", "GET HEAD", "@/latest", NULL}}},
    [REGISTRY_MAVEN] = {"maven",
                        false,
                        {{"install", "GET HEAD", "@/**", "@/com/example/a/1.0/a-1.0.jar"},
                         {"publish", "PUT", "@/**", "@/com/example/a/1.0/a-1.0.jar"}}},
    [REGISTRY_APT] = {"apt", false, {{"install", "GET HEAD", "@/**", "@/dists/stable/InRelease"}}},
    [REGISTRY_GEM] = {"gem",
                      false,
                      {{"install", "GET HEAD", "@/info/{gem}", "@/info/rake"},
                       {"install", "GET HEAD", "@/versions", NULL},
                       {"install", "GET HEAD", "@/names", NULL},
                       {"install", "GET HEAD", "@/gems/{file}", "@/gems/rake-13.0.0.gem"},
                       {"install", "GET HEAD", "@/quick/**", NULL},
                       {"install", "GET HEAD", "@/specs.4.8.gz", NULL},
                       {"install", "GET HEAD", "@/latest_specs.4.8.gz", NULL},
                       {"install", "GET HEAD", "@/prerelease_specs.4.8.gz", NULL},
                       {"publish", "POST", "@/api/v1/gems", "@/api/v1/gems"},
                       {"publish", "DELETE", "@/api/v1/gems/yank", NULL},
                       {"invite", "POST DELETE", "@/api/v1/gems/{gem}/owners",
                        "@/api/v1/gems/rake/owners"}}},
};

struct place {
    struct authority host;
    bool tls;
    struct view base; /* its path, without a final '/' */
};

/* Maven's own settings block plain HTTP by a mirror at 0.0.0.0. */
static bool is_dialled(const struct address *a) {
    enum address_class class = address_classify(a);
    return class != ADDRESS_UNSPECIFIED && class != ADDRESS_MULTICAST && class != ADDRESS_BROADCAST;
}

/* Mirrors stand in private networks more often than not. */
static void put_range(const struct place *p, struct buf *out) {
    const char *host = p->host.host;
    if (p->host.kind == HOST_ADDRESS && address_classify(&p->host.address) != ADDRESS_PUBLIC)
        buf_printf(out, "    range %s\n", host);
    else if (strcmp(host, "localhost") == 0)
        buf_put_str(out, "    range 127.0.0.1 ::1\n");
    else
        buf_put_str(out,
                    "    # range 10.0.0.0/8, say, where the name leads to a private address\n");
}

static bool read_place(const struct registry *r, struct place *out) {
    const char *why;
    struct view url = view_str(r->url);
    out->tls = view_starts(url, VIEW("https://"));
    struct view rest = view_skip(url, out->tls ? 8 : 7);
    size_t slash = view_find(rest, '/');
    out->base = view_skip(rest, slash);
    struct path_pattern pattern;
    if (out->base.n > 0 && path_pattern_parse(out->base, false, &pattern, &why) != 0)
        return false;
    if (authority_parse(view_head(rest, slash), out->tls ? 443 : 80, &out->host, &why) != 0)
        return false;
    return out->host.kind == HOST_NAME || is_dialled(&out->host.address);
}

static struct view folder_above(struct view base) {
    size_t n = base.n;
    while (n > 0 && base.p[n - 1] != '/')
        n--;
    return view_head(base, n > 0 ? n - 1 : 0);
}

static void put_path(const struct place *p, const char *pattern, struct buf *out) {
    struct view base = pattern[0] == '^' ? folder_above(p->base) : p->base;
    struct view rest = view_str(pattern + 1);
    buf_put(out, base.n + rest.n > 0 ? base : VIEW("/"));
    buf_put(out, rest);
}

/* What its own client cannot have as it is. */
static void put_warning(const struct shape *s, const char *operation, struct buf *out) {
    if (s == &shapes[REGISTRY_NPM] && strcmp(operation, "audit") == 0)
        buf_put_str(out,
                    "    # npm itself compresses this body, which then cannot be looked into for "
                    "credentials (415 body_coding):\n"
                    "    # it installs without a report, and `npm set audit false` saves asking. "
                    "Others send it as it is.\n"
                    "    # With `accept any credential` here it passes, and so does anybody's "
                    "credential.\n");
}

static void put_operations(const struct shape *s, const struct place *p, struct buf *out) {
    const char *open = NULL;
    for (size_t i = 0; i < LINES_MAX && s->lines[i].operation; i++) {
        const struct line *l = &s->lines[i];
        if (p->base.n == 0 && strcmp(l->pattern, "@") == 0)
            continue; /* "@/" is the same */
        bool same = open && strcmp(open, l->operation) == 0;
        if (open && !same)
            buf_put_str(out, "    }\n");
        if (!same) {
            put_warning(s, l->operation, out);
            buf_printf(out, "    operation %s {\n", l->operation);
        }
        buf_printf(out, "        %s ", l->methods);
        put_path(p, l->pattern, out);
        buf_put_u8(out, '\n');
        open = l->operation;
    }
    buf_put_str(out, "    }\n");
}

static void put_expectations(const struct shape *s, const struct place *p, struct buf *out) {
    for (size_t i = 0; i < LINES_MAX && s->lines[i].operation; i++) {
        const struct line *l = &s->lines[i];
        if (!l->sample)
            continue;
        struct view methods = view_str(l->methods), first = view_cut(&methods, ' ');
        buf_printf(out, "    expect allow %.*s ", VIEW_ARG(first));
        put_path(p, l->sample, out);
        buf_put_u8(out, '\n');
    }
    buf_put_str(out, "    expect deny PATCH ");
    put_path(p, "@/", out);
    buf_put_str(out, " reason operation_not_allowed\n");
}

static void put_service(const struct registries *all, size_t i, const struct place *p,
                        struct buf *out) {
    const struct registry *r = &all->at[i];
    const struct shape *s = &shapes[r->kind];
    unsigned number = 1;
    for (size_t k = 0; k < i; k++)
        number += all->at[k].kind == r->kind;
    buf_printf(out, "\n# named by %s\nservice %s", r->from, s->name);
    if (number > 1)
        buf_printf(out, "-%u", number);
    bool address = p->host.kind == HOST_ADDRESS && p->host.address.family == 6;
    buf_printf(out, " {\n    host %s%s%s\n", address ? "[" : "", p->host.host, address ? "]" : "");
    if (p->host.port != (p->tls ? 443 : 80))
        buf_printf(out, "    port %u\n", (unsigned)p->host.port);
    if (!p->tls)
        buf_put_str(out, "    tls clear\n");
    put_range(p, out);
    if (s->encoded_slash)
        buf_put_str(out, "    path allow encoded-slash\n");
    put_operations(s, p, out);
    put_expectations(s, p, out);
    buf_put_str(out, "}\n");
}

int registries_write(const struct registries *r, struct buf *out) {
    buf_put_str(out, "# The package registries that this machine's clients are set up for, by "
                     "`exeat policy registries`.\n"
                     "# `grant NAME install` is what installing needs; `publish` and `invite` are "
                     "apart from it.\n");
    for (size_t i = 0; i < r->n; i++) {
        struct place p;
        if (read_place(&r->at[i], &p))
            put_service(r, i, &p, out);
        else
            buf_printf(out, "\n# %s names what is no host exeat can reach: %s\n", r->at[i].from,
                       r->at[i].url);
    }
    if (r->full)
        buf_printf(out, "\n# and more than these %d\n", REGISTRIES_MAX);
    return buf_ok(out) ? 0 : ERR_LIMIT;
}
