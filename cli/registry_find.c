#include "base/file.h"
#include "cli/registry.h"

#include <fcntl.h>
#include <glob.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

enum { TEXT_MAX = 1 << 20, KEYS_MAX = 6, ANSWER_SECONDS = 20 };

/* Lines that name registries begin with one of the keys; none: every line may. */
struct source {
    enum registry_kind_of kind;
    const char *path; /* `~/`: the user's; a pattern of glob(7) */
    const char *keys[KEYS_MAX];
};

static const struct source files[] = {
    {REGISTRY_NPM, "~/.npmrc", {"registry", "@"}},
    {REGISTRY_NPM, "/etc/npmrc", {"registry", "@"}},
    {REGISTRY_PYPI, "~/.config/pip/pip.conf", {"index-url", "extra-index-url"}},
    {REGISTRY_PYPI, "~/.pip/pip.conf", {"index-url", "extra-index-url"}},
    {REGISTRY_PYPI, "/etc/pip.conf", {"index-url", "extra-index-url"}},
    {REGISTRY_PYPI,
     "~/.config/uv/uv.toml",
     {"index-url", "extra-index-url", "url", "default-index"}},
    {REGISTRY_PYPI, "/etc/uv/uv.toml", {"index-url", "extra-index-url", "url", "default-index"}},
    {REGISTRY_PYPI_UPLOAD, "~/.pypirc", {"repository"}},
    {REGISTRY_CARGO, "~/.cargo/config.toml", {"registry", "index"}},
    {REGISTRY_CARGO, "~/.cargo/config", {"registry", "index"}},
    {REGISTRY_CARGO_FILES, "~/.cargo/registry/index/*/config.json", {"\"dl\""}},
    {REGISTRY_CARGO_API, "~/.cargo/registry/index/*/config.json", {"\"api\""}},
    {REGISTRY_MAVEN, "~/.m2/settings.xml", {"<url>"}},
    {REGISTRY_MAVEN, "/etc/maven/settings.xml", {"<url>"}},
    {REGISTRY_APT, "/etc/apt/sources.list", {"deb "}},
    {REGISTRY_APT, "/etc/apt/sources.list.d/*.list", {"deb "}},
    {REGISTRY_APT, "/etc/apt/sources.list.d/*.sources", {"uris:"}},
    {REGISTRY_GEM, "~/.gemrc", {"-", ":sources:"}},
};

static const struct {
    enum registry_kind_of kind;
    const char *name;
} variables[] = {
    {REGISTRY_NPM, "npm_config_registry"},    {REGISTRY_NPM, "NPM_CONFIG_REGISTRY"},
    {REGISTRY_PYPI, "PIP_INDEX_URL"},         {REGISTRY_PYPI, "PIP_EXTRA_INDEX_URL"},
    {REGISTRY_PYPI, "UV_DEFAULT_INDEX"},      {REGISTRY_PYPI, "UV_INDEX"},
    {REGISTRY_PYPI, "UV_INDEX_URL"},          {REGISTRY_PYPI, "UV_EXTRA_INDEX_URL"},
    {REGISTRY_CARGO, "CARGO_REGISTRY_INDEX"},
};

/* What clients say themselves, their defaults included. fallback: only where nothing else was found of the kind. */
static const struct {
    enum registry_kind_of kind;
    bool fallback;
    const char *command[5];
} clients[] = {
    {REGISTRY_NPM, false, {"npm", "config", "get", "registry"}},
    {REGISTRY_GO, false, {"go", "env", "GOPROXY"}},
    {REGISTRY_GO_SUMS, false, {"go", "env", "GOSUMDB"}},
    {REGISTRY_GEM, true, {"gem", "sources", "--list"}},
    {REGISTRY_PYPI_FILES,
     true,
     {"python3", "-c",
      "from pip._internal.models.index import PyPI as p; print('https://' + "
      "p.file_storage_domain)"}},
    {REGISTRY_PYPI,
     true,
     {"python3", "-c", "from pip._internal.models.index import PyPI as p; print(p.simple_url)"}},
};

/* ---- URLs ---- */

static bool ends_url(uint8_t c) {
    return c <= 0x20 || c >= 0x7f || strchr("\"'<>,|;{}[]\\?#", c) != NULL;
}

/* A password may hold '@' itself, and stand there as it is. */
static struct view without_user(struct view rest) {
    size_t begin = 0;
    for (size_t i = 0; i < rest.n && rest.p[i] != '/'; i++)
        if (rest.p[i] == '@')
            begin = i + 1;
    return view_skip(rest, begin);
}

static void add(struct registries *r, enum registry_kind_of kind, bool extra, struct view scheme,
                struct view rest, const char *from) {
    struct view host = without_user(rest);
    while (view_ends(host, VIEW("/")))
        host = view_head(host, host.n - 1);
    struct registry *new = &r->at[r->n];
    r->full = r->full || r->n == REGISTRIES_MAX;
    if (host.n == 0 || r->full || scheme.n + host.n >= sizeof new->url)
        return;
    *new = (struct registry){.kind = kind, .extra = extra};
    memcpy(new->url, scheme.p, scheme.n);
    memcpy(new->url + scheme.n, host.p, host.n);
    snprintf(new->from, sizeof new->from, "%s", from);
    for (size_t i = 0; i < r->n; i++)
        if (r->at[i].kind == kind && strcmp(r->at[i].url, new->url) == 0)
            return;
    r->n++;
}

/* All that there are in the line. */
static void add_urls(struct registries *r, enum registry_kind_of kind, bool extra, struct view line,
                     const char *from) {
    static const char *const schemes[] = {"https://", "http://"};
    for (size_t i = 0; i < line.n; i++)
        for (size_t k = 0; k < 2; k++) {
            struct view rest = view_skip(line, i), scheme = view_str(schemes[k]);
            if (!view_starts(rest, scheme))
                continue;
            size_t n = scheme.n;
            while (n < rest.n && !ends_url(rest.p[n]))
                n++;
            add(r, kind, extra, scheme, view_slice(rest, scheme.n, n), from);
        }
}

/* ---- texts ---- */

static bool has_key(struct view line, const char *const *keys) {
    for (size_t i = 0; i < KEYS_MAX && keys[i]; i++) {
        struct view key = view_str(keys[i]);
        if (view_equal_nocase(view_head(line, key.n), key))
            return true;
    }
    return !keys[0];
}

/* XML's comments may go over lines; they are blanked, before lines are looked at. */
static void blank_comments(uint8_t *text, size_t n) {
    struct view v = view_of(text, n);
    for (size_t begin; (begin = view_search(v, VIEW("<!--"))) < v.n;) {
        size_t end = begin + view_search(view_skip(v, begin), VIEW("-->"));
        for (size_t i = begin; i < end && i < v.n; i++)
            text[i] = ' ';
    }
}

/* Members of JSON, and elements of XML, may stand in one line: each begins one. */
static void read_text(struct registries *r, const struct source *s, struct view text,
                      const char *from) {
    bool continued = false, extra = false; /* pip, and apt's URIs, go on in indented lines */
    while (text.n > 0) {
        struct view whole = view_cut(&text, '\n'), line = view_trim(whole);
        bool indented = whole.n > 0 && (whole.p[0] == ' ' || whole.p[0] == '\t');
        if (line.n == 0 || line.p[0] == '#' || line.p[0] == ';')
            continue;
        while (line.n > 0 && (line.p[0] == '{' || line.p[0] == ' ' || line.p[0] == ','))
            line = view_skip(line, 1);
        bool key = has_key(line, s->keys);
        continued = key || (continued && indented && view_find(line, '=') == line.n);
        if (key)
            extra = view_starts(line, VIEW("extra-"));
        if (continued)
            add_urls(r, s->kind, extra, line, from);
    }
}

static void read_one(struct registries *r, const struct source *s, const char *path) {
    struct buf text;
    buf_init(&text, TEXT_MAX + 4096);
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    if (fd >= 0 && file_read(fd, TEXT_MAX, &text) == 0) {
        for (size_t i = 0; s->kind >= REGISTRY_CARGO_FILES && i < text.n; i++)
            if (s->kind <= REGISTRY_CARGO_API && text.p[i] == ',')
                text.p[i] = '\n';
        if (s->kind == REGISTRY_MAVEN)
            blank_comments(text.p, text.n);
        read_text(r, s, buf_view(&text), path);
    }
    buf_free(&text);
}

static void read_files(struct registries *r, const char *home, const char *root) {
    for (size_t i = 0; i < sizeof files / sizeof files[0]; i++) {
        const char *path = files[i].path;
        bool own = path[0] == '~';
        char pattern[1024];
        glob_t found;
        snprintf(pattern, sizeof pattern, "%s%s", own ? home : root, own ? path + 1 : path);
        if (glob(pattern, 0, NULL, &found) != 0)
            continue;
        for (size_t k = 0; k < found.gl_pathc; k++)
            read_one(r, &files[i], found.gl_pathv[k]);
        globfree(&found);
    }
}

/* ---- clients ---- */

static void become(const char *const *command, int out) {
    char *argv[6] = {NULL};
    for (size_t i = 0; i < 5 && command[i]; i++)
        argv[i] = strdup(command[i]);
    if (!argv[0])
        _exit(127);
    int null = open("/dev/null", O_RDWR);
    dup2(null, STDIN_FILENO);
    dup2(null, STDERR_FILENO);
    dup2(out, STDOUT_FILENO);
    execvp(argv[0], argv);
    _exit(127);
}

/* What it prints until it ends, or for as long as it may take. */
static void listen_to(int fd, struct buf *out) {
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    time_t end = now.tv_sec + ANSWER_SECONDS;
    struct pollfd p = {.fd = fd, .events = POLLIN};
    for (;;) {
        clock_gettime(CLOCK_MONOTONIC, &now);
        if (now.tv_sec >= end || poll(&p, 1, (int)(end - now.tv_sec) * 1000) <= 0)
            return;
        uint8_t *room = buf_reserve(out, 1024);
        ssize_t n = room ? read(fd, room, 1024) : 0;
        if (n <= 0)
            return;
        buf_commit(out, (size_t)n);
    }
}

static void ask(const char *const *command, struct buf *out) {
    int pipe_of[2];
    if (pipe2(pipe_of, O_CLOEXEC) != 0)
        return;
    pid_t pid = fork();
    if (pid == 0)
        become(command, pipe_of[1]);
    close(pipe_of[1]);
    if (pid > 0) {
        listen_to(pipe_of[0], out);
        kill(pid, SIGKILL);
        waitpid(pid, NULL, 0);
    }
    close(pipe_of[0]);
}

/* One that takes the place of the client's default. */
static bool has_kind(const struct registries *r, enum registry_kind_of kind) {
    for (size_t i = 0; i < r->n; i++)
        if (r->at[i].kind == kind && !r->at[i].extra)
            return true;
    return false;
}

/* The checksum database's name may stand without a scheme, with its key behind it. */
static void add_answer(struct registries *r, enum registry_kind_of kind, struct view answer,
                       const char *client) {
    size_t before = r->n;
    add_urls(r, kind, false, answer, client);
    struct view name = view_trim(view_cut(&answer, '\n'));
    name = view_cut(&name, '+');
    if (r->n == before && kind == REGISTRY_GO_SUMS && view_find(name, '.') < name.n &&
        view_find(name, ' ') == name.n && view_find(name, '/') == name.n)
        add(r, kind, false, VIEW("https://"), name, client);
}

/* The files of a default are wanted only where the default is. */
static void ask_clients(struct registries *r) {
    bool pypi = has_kind(r, REGISTRY_PYPI);
    for (size_t i = 0; i < sizeof clients / sizeof clients[0]; i++) {
        enum registry_kind_of kind = clients[i].kind;
        bool found = kind == REGISTRY_PYPI_FILES ? pypi : has_kind(r, kind);
        if (clients[i].fallback && found)
            continue;
        struct buf answer;
        buf_init(&answer, TEXT_MAX);
        ask(clients[i].command, &answer);
        add_answer(r, kind, buf_view(&answer), clients[i].command[0]);
        buf_free(&answer);
    }
}

void registries_find(const char *home, const char *root, struct registries *out) {
    *out = (struct registries){.n = 0};
    read_files(out, home, root);
    for (size_t i = 0; i < sizeof variables / sizeof variables[0]; i++) {
        const char *name = variables[i].name;
        add_urls(out, variables[i].kind, strstr(name, "EXTRA") != NULL, view_str(getenv(name)),
                 name);
    }
    ask_clients(out);
}
