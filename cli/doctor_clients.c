#include "base/digest.h"
#include "base/loop.h"
#include "cli/doctor.h"
#include "cli/doctor_why.h"
#include "policy/echo.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <linux/close_range.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/pidfd.h>
#include <sys/wait.h>
#include <unistd.h>

enum { WORDS_MAX = 16, OUTPUT_MAX = 64 << 10, CLIENT_MS = 20000, ENDING_MS = 5000, WORD_MAX = 512 };

/* ---- the clients ---- */

enum { BY_ENVIRONMENT = 1, BY_SOCKS = 2, BY_NOTHING = 4, BY_SOCKET = 8 };

/* What "@" in a word stands for is the URL; it has a word that nobody sent before. */
static const struct client {
    const char *name;
    int ways; /* which it has */
    const char *
        mark; /* that it worked, if it also ends well; NULL: what exeat answered to this way and URL */
    const char
        *needs[WORDS_MAX]; /* what succeeds where the client is; argv, without its last NULL */
    const char *words[WORDS_MAX];
    const char *fix;
} clients[] = {
    {"curl",
     BY_ENVIRONMENT | BY_SOCKS | BY_NOTHING | BY_SOCKET,
     NULL,
     {"curl", "--version"},
     {"curl", "-sS", "-m", "15", "@"},
     "CURL_CA_BUNDLE, https_proxy"},
    {"wget",
     BY_ENVIRONMENT | BY_NOTHING,
     NULL,
     {"wget", "--version"},
     {"wget", "-nv", "-O", "-", "-T", "15", "-t", "1", "@"},
     "WGETRC, https_proxy"},
    {"git",
     BY_ENVIRONMENT | BY_SOCKS | BY_NOTHING,
     "",
     {"git", "--version"},
     {"git", "ls-remote", "@"},
     "GIT_SSL_CAINFO, https_proxy"},
    {"python3 urllib",
     BY_ENVIRONMENT | BY_NOTHING,
     NULL,
     {"python3", "-c", "import ssl"},
     {"python3", "-c",
      "import sys, urllib.request as u; print(u.urlopen(sys.argv[1], timeout=15).read().decode())",
      "@"},
     "SSL_CERT_FILE, https_proxy"},
    {"python3 requests",
     BY_ENVIRONMENT | BY_NOTHING,
     NULL,
     {"python3", "-c", "import requests"},
     {"python3", "-c", "import sys, requests; print(requests.get(sys.argv[1], timeout=15).text)",
      "@"},
     "REQUESTS_CA_BUNDLE, https_proxy"},
    {"node fetch",
     BY_ENVIRONMENT | BY_NOTHING,
     NULL,
     {"node", "-e", "fetch"},
     {"node", "-e",
      "fetch(process.argv[1]).then(r => r.text()).then(t => console.log(t))"
      ".catch(e => { console.error(String(e.cause || e)); process.exitCode = 1 })",
      "@"},
     "NODE_EXTRA_CA_CERTS, NODE_USE_ENV_PROXY=1 with Node.js 22.21, 24 or later"},
    {"ruby net/http",
     BY_ENVIRONMENT | BY_NOTHING,
     NULL,
     {"ruby", "-ropenssl", "-e", ""},
     {"ruby", "-rnet/http", "-e", "puts Net::HTTP.get(URI(ARGV[0]))", "@"},
     "SSL_CERT_FILE, https_proxy"},
    {"perl HTTP::Tiny",
     BY_ENVIRONMENT | BY_NOTHING,
     NULL,
     {"perl", "-MIO::Socket::SSL", "-MHTTP::Tiny", "-e", "1"},
     {"perl", "-MHTTP::Tiny", "-e",
      "my $r = HTTP::Tiny->new(verify_SSL => 1)->get($ARGV[0]); print $r->{content}", "@"},
     "SSL_CERT_FILE, https_proxy"},
    {"php streams",
     BY_ENVIRONMENT | BY_NOTHING,
     NULL,
     {"php", "-r", "exit(extension_loaded('openssl') ? 0 : 1);"},
     {"php", "-r",
      "include ini_get('auto_prepend_file') ?: '/dev/null'; echo file_get_contents($argv[1]);",
      "@"},
     "PHP_INI_SCAN_DIR, https_proxy"},
    {"npm",
     BY_ENVIRONMENT | BY_NOTHING,
     "",
     {"npm", "--version"},
     {"npm", "ping", "--fetch-retries=0", "--update-notifier=false", "--registry=@"},
     "npm_config_cafile, npm_config_https_proxy"},
    {"openssl s_client",
     BY_NOTHING,
     "Verify return code: 0",
     {"openssl", "version"},
     {"openssl", "s_client", "-verify_return_error", "-connect", (ECHO_HOST ":443"), "-servername",
      ECHO_HOST},
     "SSL_CERT_FILE"},
    {"getent",
     BY_NOTHING,
     "",
     {"getent", "--version"},
     {"getent", "ahosts", ECHO_HOST},
     "a resolver in /etc/resolv.conf that is exeat's"},
    {"dig",
     BY_NOTHING,
     "status: NOERROR",
     {"dig", "-v"},
     {"dig", "+time=5", "+tries=1", ECHO_HOST},
     "a resolver in /etc/resolv.conf that is exeat's"},
};

/* ---- the environment of a way ---- */

static void forget_proxies(void) {
    static const char *const names[] = {"http_proxy",
                                        "https_proxy",
                                        "all_proxy",
                                        "HTTP_PROXY",
                                        "HTTPS_PROXY",
                                        "ALL_PROXY",
                                        "no_proxy",
                                        "NO_PROXY",
                                        "grpc_proxy",
                                        "npm_config_proxy",
                                        "npm_config_https_proxy",
                                        "YARN_HTTP_PROXY",
                                        "YARN_HTTPS_PROXY",
                                        "CARGO_HTTP_PROXY"};
    for (size_t i = 0; i < sizeof names / sizeof *names; i++)
        unsetenv(names[i]);
}

static void set_way(enum way way, const struct ways *w) {
    char url[PATH_MAX + 64];
    if (way == WAY_OF_ENVIRONMENT)
        return;
    forget_proxies();
    if (way == WAY_OF_NONE)
        return;
    if (way == WAY_OF_SOCKS)
        snprintf(url, sizeof url, "socks5h://%s", w->proxy);
    else
        snprintf(url, sizeof url, "socks5h://localhost%s", w->socket);
    setenv("all_proxy", url, 1);
    setenv("ALL_PROXY", url, 1);
}

/* ---- running ---- */

struct run {
    enum way way;
    const struct ways *ways;
    const char *const *words;
    const char *url;
};

static _Noreturn void execute(const struct run *r, int out) {
    static char texts[WORDS_MAX][WORD_MAX];
    char *argv[WORDS_MAX + 1] = {0};
    for (size_t i = 0; i < WORDS_MAX && r->words[i]; i++) {
        size_t n = strlen(r->words[i]);
        bool ends = n > 0 && r->words[i][n - 1] == '@';
        snprintf(texts[i], WORD_MAX, "%.*s%s", (int)(n - ends), r->words[i], ends ? r->url : "");
        argv[i] = texts[i];
    }
    int null = open("/dev/null", O_RDONLY);
    if (!argv[0] || null < 0 || dup2(null, 0) < 0 || dup2(out, 1) < 0 || dup2(out, 2) < 0)
        _exit(126);
    close_range(3, ~0U, 0);
    set_way(r->way, r->ways);
    execvp(argv[0], argv);
    _exit(127);
}

/* False: it did not end in time. What is behind the buffer's room is lost. */
static bool gather(int fd, struct buf *out) {
    uint8_t rest[4096];
    uint64_t end = clock_mono() + (uint64_t)CLIENT_MS * 1000000u;
    for (uint64_t now = clock_mono(); now < end; now = clock_mono()) {
        struct pollfd one = {.fd = fd, .events = POLLIN};
        if (poll(&one, 1, (int)((end - now) / 1000000u) + 1) != 1)
            return false;
        ssize_t n = read(fd, rest, sizeof rest);
        if (n <= 0)
            return true;
        if (buf_len(out) + (size_t)n <= OUTPUT_MAX)
            buf_put(out, view_of(rest, (size_t)n));
    }
    return false;
}

/* A process that closed its output ends soon, or is ended. */
static int reap(pid_t pid, bool ended) {
    int status = 1, fd = pidfd_open(pid, 0);
    struct pollfd one = {.fd = fd, .events = POLLIN};
    if (!ended || poll(&one, 1, ENDING_MS) != 1)
        kill(pid, SIGKILL);
    if (fd >= 0)
        close(fd);
    while (waitpid(pid, &status, 0) < 0 && errno == EINTR)
        continue;
    return status;
}

/* Whether it ended well; out: what it printed. */
static bool run(const struct run *r, struct buf *out) {
    int ends[2];
    if (pipe2(ends, O_CLOEXEC) != 0)
        return false;
    pid_t pid = fork();
    if (pid == 0)
        execute(r, ends[1]);
    close(ends[1]);
    int status = pid > 0 ? reap(pid, gather(ends[0], out)) : 1;
    close(ends[0]);
    return pid > 0 && WIFEXITED(status) && WEXITSTATUS(status) == 0;
}

/* ---- what became of it ---- */

/* How exeat calls the way that a client with these variables came. */
static const char *door_of(enum way way) {
    return way == WAY_OF_ENVIRONMENT ? "tls" : way == WAY_OF_NONE ? "transparent" : "socks";
}

static bool has_text(struct view in, const char *text) {
    return *text == 0 || view_search(in, view_str(text)) < in.n;
}

static bool is_answer(struct view out, const struct run *r) {
    char door[64];
    snprintf(door, sizeof door, "\"door\":\"%s\"", door_of(r->way));
    return has_text(out, "\"echo\":\"exeat\"") && has_text(out, door) &&
           has_text(out, strrchr(r->url, '/'));
}

/* An answer that came by another way than was meant is no proof of this one. */
static void find_why(struct view out, const struct run *r, char *why, size_t size) {
    struct view line = doctor_why(out);
    if (has_text(out, strrchr(r->url, '/')) && has_text(out, "\"echo\":\"exeat\""))
        line = VIEW("it reached exeat by another way: it does not read this environment");
    snprintf(why, size, "%s%.*s",
             doctor_why_is_trust(line) ? "exeat's CA is not trusted there: " : "", VIEW_ARG(line));
}

static void try_client(struct doctor *d, const struct client *c, enum way way,
                       const struct ways *w) {
    uint8_t nonce[8];
    char hex[2 * sizeof nonce + 1], url[128], why[200] = "", fix[200];
    struct buf out;
    random_bytes(nonce, sizeof nonce);
    hex_encode(view_of(nonce, sizeof nonce), hex);
    snprintf(url, sizeof url, "https://" ECHO_HOST "/%s", hex);
    const struct run r = {way, w, c->words, url};
    buf_init(&out, OUTPUT_MAX);
    bool works = run(&r, &out);
    works = works && (c->mark ? has_text(buf_view(&out), c->mark) : is_answer(buf_view(&out), &r));
    if (!works)
        find_why(buf_view(&out), &r, why, sizeof why);
    snprintf(fix, sizeof fix, "what it reads: %s (docs/clients.md)", c->fix);
    doctor_add(d, &(struct doctor_row){"client", c->name, way_name(way), works ? "works" : "fails",
                                       why, works ? NULL : fix});
    buf_free(&out);
}

static bool is_there(const struct client *c, const struct ways *w) {
    struct buf out;
    buf_init(&out, OUTPUT_MAX);
    bool there = run(&(struct run){WAY_OF_ENVIRONMENT, w, c->needs, ""}, &out);
    buf_free(&out);
    return there;
}

void clients_try(struct doctor *d, const struct ways *w) {
    for (size_t i = 0; i < sizeof clients / sizeof *clients; i++) {
        bool there = is_there(&clients[i], w);
        for (enum way way = 0; there && way < WAYS; way++)
            if (w->works[way] && clients[i].ways & 1 << way)
                try_client(d, &clients[i], way, w);
    }
}
