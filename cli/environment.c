#include "cli/environment.h"

#include "cli/json_scan.h"

#include <linux/vm_sockets.h>
#include <string.h>
#include <sys/socket.h>

enum { VALUE_MAX = 64 * 1024 };

enum kind {
    PROXY,  /* the proxy's URL */
    SOCKET, /* path of the sandbox's Unix socket */
    VSOCK,  /* CID and port of the listener for a guest */
    PUBLIC, /* path of one of the public files (public.h) */
    FOLDER, /* the default folder, then that of the public files */
    JAVA,   /* properties */
    FIXED,
};

#define BUNDLE PUBLIC, "bundle.pem" /* replaces the system's roots */
#define CA PUBLIC, "ca.pem"         /* adds to the system's roots */

static const struct variable {
    const char *name;
    enum kind kind;
    const char *value; /* FIXED; name of the file */
} variables[] = {
    {"http_proxy", PROXY, NULL},
    {"https_proxy", PROXY, NULL},
    {"all_proxy", PROXY, NULL},
    {"HTTP_PROXY", PROXY, NULL},
    {"HTTPS_PROXY", PROXY, NULL},
    {"ALL_PROXY", PROXY, NULL},
    {"no_proxy", FIXED, "localhost,127.0.0.1,::1"},
    {"NO_PROXY", FIXED, "localhost,127.0.0.1,::1"},
    {"grpc_proxy", PROXY, NULL},
    {"npm_config_proxy", PROXY, NULL},
    {"npm_config_https_proxy", PROXY, NULL},
    {"YARN_HTTP_PROXY", PROXY, NULL},
    {"YARN_HTTPS_PROXY", PROXY, NULL},
    {"CARGO_HTTP_PROXY", PROXY, NULL},
    {"NODE_USE_ENV_PROXY", FIXED, "1"},
    {"GIT_HTTP_PROXY_AUTHMETHOD", FIXED, "basic"},
    {"PERL_LWP_ENV_PROXY", FIXED, "1"},
    {"EXEAT_SOCKET", SOCKET, NULL},
    {"EXEAT_VSOCK", VSOCK, NULL},
    {"SSL_CERT_FILE", BUNDLE},
    {"CURL_CA_BUNDLE", BUNDLE},
    {"REQUESTS_CA_BUNDLE", BUNDLE},
    {"PIP_CERT", BUNDLE},
    {"AWS_CA_BUNDLE", BUNDLE},
    {"npm_config_cafile", BUNDLE},
    {"YARN_HTTPS_CA_FILE_PATH", BUNDLE},
    {"GIT_SSL_CAINFO", BUNDLE},
    {"CARGO_HTTP_CAINFO", BUNDLE},
    {"NIX_SSL_CERT_FILE", BUNDLE},
    {"GRPC_DEFAULT_SSL_ROOTS_FILE_PATH", BUNDLE},
    {"CLOUDSDK_CORE_CUSTOM_CA_CERTS_FILE", BUNDLE},
    {"HTTPLIB2_CA_CERTS", BUNDLE},
    {"PERL_LWP_SSL_CA_FILE", BUNDLE},
    {"HTTPS_CA_FILE", BUNDLE},
    {"BUNDLE_SSL_CA_CERT", BUNDLE},
    {"COMPOSER_CAFILE", BUNDLE},
    {"CODEX_CA_CERTIFICATE", BUNDLE},
    {"NODE_EXTRA_CA_CERTS", CA},
    {"DENO_CERT", CA},
    {"WGETRC", PUBLIC, "wgetrc"},
    {"APT_CONFIG", PUBLIC, "apt.conf"},
    {"GIT_CONFIG_SYSTEM", PUBLIC, "gitconfig"},
    {"PHP_INI_SCAN_DIR", FOLDER, NULL},
    {"JAVA_TOOL_OPTIONS", JAVA, NULL},
};

enum { N_VARIABLES = sizeof variables / sizeof *variables };

/* Names that mean something to the shell or the loader that evaluates them. */
static const char *const reserved[] = {
    "PATH", "HOME",   "USER",       "SHELL",    "PWD",
    "IFS",  "ENV",    "BASH_ENV",   "CDPATH",   "LANG",
    "TERM", "TMPDIR", "LD_PRELOAD", "LD_AUDIT", "LD_LIBRARY_PATH",
    "PS4",
};

void environment_put_url(const struct environment *e, bool with_token, struct view token,
                         struct buf *out) {
    buf_put_str(out, "http://");
    if (with_token)
        buf_printf(out, "%.*s:%.*s@", VIEW_ARG(e->sandbox), VIEW_ARG(token));
    buf_printf(out, "%.*s:%u", VIEW_ARG(e->proxy_host), e->proxy_port);
}

/* Java knows the proxy's host and port only; a token has no place in its properties. */
static void put_java(const struct environment *e, struct buf *out) {
    if (!view_is_empty(e->proxy_host))
        buf_printf(out,
                   "-Dhttp.proxyHost=%.*s -Dhttp.proxyPort=%u "
                   "-Dhttps.proxyHost=%.*s -Dhttps.proxyPort=%u ",
                   VIEW_ARG(e->proxy_host), e->proxy_port, VIEW_ARG(e->proxy_host), e->proxy_port);
    buf_printf(out, "\"-Djavax.net.ssl.trustStore=%.*s/roots.p12\"", VIEW_ARG(e->public));
}

/* Appends nothing for a variable that this sandbox has no use for. */
static void put_value(const struct environment *e, const struct variable *v, struct buf *out) {
    switch (v->kind) {
    case PROXY:
        buf_put(out, e->proxy_url);
        break;
    case SOCKET:
        buf_put(out, e->socket);
        break;
    case VSOCK:
        if (e->vsock_port)
            buf_printf(out, "%d:%u", VMADDR_CID_HOST, e->vsock_port);
        break;
    case PUBLIC:
        buf_printf(out, "%.*s/%s", VIEW_ARG(e->public), v->value);
        break;
    case FOLDER:
        buf_printf(out, ":%.*s", VIEW_ARG(e->public));
        break;
    case JAVA:
        put_java(e, out);
        break;
    case FIXED:
        buf_put_str(out, v->value);
        break;
    }
}

/* Those of the table that have a value. */
static void put_variables(const struct environment *e, struct buf *out, environment_put *put) {
    struct buf value;
    buf_init(&value, VALUE_MAX);
    for (size_t i = 0; i < N_VARIABLES; i++) {
        buf_reset(&value);
        put_value(e, &variables[i], &value);
        if (buf_len(&value) > 0)
            put(out, variables[i].name, buf_view(&value));
    }
    buf_free(&value);
}

/* ---- credentials ---- */

static bool is_taken(const char *name) {
    for (size_t i = 0; i < N_VARIABLES; i++)
        if (strcmp(variables[i].name, name) == 0)
            return true;
    for (size_t i = 0; i < sizeof reserved / sizeof *reserved; i++)
        if (strcmp(reserved[i], name) == 0)
            return true;
    return false;
}

bool environment_variable(struct view credential, char *out, size_t size) {
    size_t at = 0;
    if (credential.n == 0 || credential.n + 2 > size)
        return false;
    if (is_digit(credential.p[0]))
        out[at++] = '_';
    for (size_t i = 0; i < credential.n; i++) {
        uint8_t c = credential.p[i];
        if (!is_alnum(c) && c != '-' && c != '.' && c != '_')
            return false;
        out[at++] = (char)(!is_alnum(c) ? '_' : c >= 'a' && c <= 'z' ? c - 'a' + 'A' : c);
    }
    out[at] = 0;
    return !is_taken(out);
}

/* Whether an earlier credential has the same variable ("a-b" and "a.b"). */
static bool is_repeated(const struct environment *e, size_t which, const char *name) {
    char other[ENVIRONMENT_VARIABLE_SIZE];
    for (size_t i = 0; i < which; i++)
        if (environment_variable(e->credentials[i].name, other, sizeof other) &&
            strcmp(other, name) == 0)
            return true;
    return false;
}

static bool variable_at(const struct environment *e, size_t i,
                        char name[ENVIRONMENT_VARIABLE_SIZE]) {
    return environment_variable(e->credentials[i].name, name, ENVIRONMENT_VARIABLE_SIZE) &&
           !is_repeated(e, i, name);
}

void environment_each(const struct environment *e, struct buf *out, environment_put *put) {
    char name[ENVIRONMENT_VARIABLE_SIZE];
    put_variables(e, out, put);
    for (size_t i = 0; i < e->n_credentials; i++)
        if (variable_at(e, i, name))
            put(out, name, e->credentials[i].placeholder);
}

void environment_notes(const struct environment *e, struct buf *out) {
    char name[ENVIRONMENT_VARIABLE_SIZE];
    const char *to = !view_is_empty(e->socket) ? "UNIX-CONNECT:\"$EXEAT_SOCKET\""
                     : e->vsock_port           ? "VSOCK-CONNECT:$EXEAT_VSOCK"
                                               : NULL;
    if (to)
        buf_printf(
            out,
            "# In the sandbox, a port for clients that know no socket:\n"
            "#   socat TCP-LISTEN:3128,bind=127.0.0.1,fork %s &\n"
            "#   export http_proxy=http://127.0.0.1:3128 https_proxy=http://127.0.0.1:3128\n",
            to);
    for (size_t i = 0; i < e->n_credentials; i++)
        if (!variable_at(e, i, name))
            buf_printf(out, "# credential %.*s: its variable would hide another one\n",
                       VIEW_ARG(e->credentials[i].name));
}

/* ---- what broker answers ---- */

/* Names, tokens and placeholders hold nothing that JSON or a shell would escape. */
static bool read_word(struct view object, const char *name, struct view *word) {
    struct view value;
    if (!json_member(object, name, &value) || !json_word(value, word) || word->n == 0)
        return false;
    for (size_t i = 0; i < word->n; i++)
        if (!is_alnum(word->p[i]) && !memchr("-_.:", word->p[i], 4))
            return false;
    return true;
}

int environment_read_issued(struct view json, struct environment *e, struct view *token) {
    struct view list, rest, object;
    e->n_credentials = 0;
    if (!read_word(json, "name", &e->sandbox) || !read_word(json, "token", token) ||
        !json_member(json, "placeholders", &list))
        return ERR_BAD;
    rest = json_elements(list);
    while (json_element(&rest, &object)) {
        size_t i = e->n_credentials;
        if (i == CREDENTIALS_MAX || !read_word(object, "credential", &e->credentials[i].name) ||
            !read_word(object, "value", &e->credentials[i].placeholder))
            return ERR_BAD;
        e->n_credentials++;
    }
    return 0;
}
