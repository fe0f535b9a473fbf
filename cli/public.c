#include "cli/public.h"

#include "audit/log_file.h"
#include "cli/java_roots.h"

#include <fcntl.h>
#include <stdlib.h>

int public_system_roots(struct buf *out) {
    static const char *const paths[] = {"/etc/ssl/certs/ca-certificates.crt",
                                        "/etc/pki/tls/certs/ca-bundle.crt", "/etc/ssl/cert.pem"};
    for (size_t i = 0; i < sizeof paths / sizeof *paths; i++) {
        int result = log_file_read(AT_FDCWD, paths[i], PUBLIC_BUNDLE_MAX / 2, out);
        if (result != ERR_MISSING)
            return result;
    }
    return 0;
}

/* "@/" begins a path in the directory. */
static const struct settings {
    const char *name, *text;
} settings[] = {
    {"wgetrc", "ca_certificate = @/bundle.pem\n"},
    {"apt.conf", "Acquire::https::CaInfo \"@/bundle.pem\";\n"},
    /* SSH cannot leave. It takes the place of the system's own, which counts all the same. */
    {"gitconfig", "[include]\n"
                  "\tpath = /etc/gitconfig\n"
                  "[url \"https://\"]\n"
                  "\tinsteadOf = ssh://git@\n"},
    {"php.ini", "curl.cainfo = \"@/bundle.pem\"\n"
                "openssl.cafile = \"@/bundle.pem\"\n"
                "auto_prepend_file = \"@/proxy.php\"\n"},
    /* PHP's streams know no variables. A context that a program makes for itself is its own. */
    {"proxy.php", "<?php\n"
                  "(function () {\n"
                  "    $url = parse_url(getenv('https_proxy') ?: '');\n"
                  "    if (!isset($url['host'], $url['port'])) return;\n"
                  "    $http = ['proxy' => \"tcp://{$url['host']}:{$url['port']}\"];\n"
                  "    if (isset($url['user'], $url['pass']))\n"
                  "        $http['header'] = 'Proxy-Authorization: Basic '\n"
                  "            . base64_encode(\"{$url['user']}:{$url['pass']}\");\n"
                  "    stream_context_set_default(['http' => $http]);\n"
                  "})();\n"},
};

static int write_settings(int dir, const char *path, const struct settings *s) {
    struct buf text;
    buf_init(&text, 1 << 16);
    struct view rest = view_str(s->text);
    while (rest.n > 0) {
        size_t at = view_search(rest, VIEW("@/"));
        buf_put(&text, view_head(rest, at));
        if (at < rest.n)
            buf_put_str(&text, path);
        rest = view_skip(rest, at + 1);
    }
    int result = buf_ok(&text) ? log_file_replace(dir, s->name, 0644, buf_view(&text)) : ERR_LIMIT;
    buf_free(&text);
    return result;
}

static int write_java_roots(int dir, struct java_roots *java) {
    struct buf store;
    buf_init(&store, PUBLIC_BUNDLE_MAX);
    int result = java_roots_write(java, &store);
    if (result == 0)
        result = log_file_replace(dir, "roots.p12", 0644, buf_view(&store));
    buf_free(&store);
    return result;
}

struct public_roots {
    struct buf bundle;
    struct java_roots *java;
};

void public_roots_free(struct public_roots *r) {
    if (!r)
        return;
    buf_free(&r->bundle);
    java_roots_free(r->java);
    free(r);
}

static int add_roots(struct public_roots *r, struct view pem) {
    size_t n = buf_len(&r->bundle);
    if (n > 0 && r->bundle.p[r->bundle.n - 1] != '\n')
        buf_put_u8(&r->bundle, '\n');
    buf_put(&r->bundle, pem);
    return buf_ok(&r->bundle) ? java_roots_add(r->java, pem) : ERR_LIMIT;
}

static int read_system_roots(struct public_roots *r) {
    int result = public_system_roots(&r->bundle);
    return result == 0 ? java_roots_add(r->java, buf_view(&r->bundle)) : result;
}

int public_roots_read(bool strict, struct public_roots **out) {
    struct public_roots *r = calloc(1, sizeof *r);
    if (!r)
        return ERR_MEMORY;
    buf_init(&r->bundle, PUBLIC_BUNDLE_MAX);
    r->java = java_roots_new();
    int result = r->java ? strict ? 0 : read_system_roots(r) : ERR_MEMORY;
    if (result == 0)
        *out = r;
    else
        public_roots_free(r);
    return result;
}

int public_write(int dir, const char *path, struct view ours, struct public_roots *roots) {
    int result = add_roots(roots, ours);
    if (result == 0)
        result = write_java_roots(dir, roots->java);
    for (size_t i = 0; result == 0 && i < sizeof settings / sizeof *settings; i++)
        result = write_settings(dir, path, &settings[i]);
    if (result == 0)
        result = log_file_replace(dir, "bundle.pem", 0644, buf_view(&roots->bundle));
    if (result == 0)
        result = log_file_replace(dir, "ca.pem", 0644, ours);
    return result;
}
