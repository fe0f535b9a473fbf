#include "cli/public.h"

#include "audit/log_file.h"
#include "cli/java_roots.h"

#include <fcntl.h>

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

/* '@' stands for the directory's path. */
static const struct settings {
    const char *name, *text;
} settings[] = {
    {"wgetrc", "ca_certificate = @/bundle.pem\n"},
    {"apt.conf", "Acquire::https::CaInfo \"@/bundle.pem\";\n"},
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
        size_t at = view_find(rest, '@');
        buf_put(&text, view_head(rest, at));
        if (at < rest.n)
            buf_put_str(&text, path);
        rest = view_skip(rest, at + 1);
    }
    int result = buf_ok(&text) ? log_file_replace(dir, s->name, 0644, buf_view(&text)) : ERR_LIMIT;
    buf_free(&text);
    return result;
}

static int write_java_roots(int dir, struct view bundle) {
    struct buf store;
    buf_init(&store, PUBLIC_BUNDLE_MAX);
    int result = java_roots(bundle, &store);
    if (result == 0)
        result = log_file_replace(dir, "roots.p12", 0644, buf_view(&store));
    buf_free(&store);
    return result;
}

static int make_bundle(struct view ours, bool strict, struct buf *out) {
    int result = strict ? 0 : public_system_roots(out);
    if (result == 0 && buf_len(out) > 0 && out->p[out->n - 1] != '\n')
        buf_put_u8(out, '\n');
    buf_put(out, ours);
    return result == 0 && !buf_ok(out) ? ERR_LIMIT : result;
}

int public_write(int dir, const char *path, struct view ours, bool strict) {
    struct buf bundle;
    buf_init(&bundle, PUBLIC_BUNDLE_MAX);
    int result = make_bundle(ours, strict, &bundle);
    if (result == 0)
        result = write_java_roots(dir, buf_view(&bundle));
    for (size_t i = 0; result == 0 && i < sizeof settings / sizeof *settings; i++)
        result = write_settings(dir, path, &settings[i]);
    if (result == 0)
        result = log_file_replace(dir, "bundle.pem", 0644, buf_view(&bundle));
    if (result == 0)
        result = log_file_replace(dir, "ca.pem", 0644, ours);
    buf_free(&bundle);
    return result;
}
