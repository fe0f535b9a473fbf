/* `exeat doctor`: from inside of a sandbox, what works and what gets out. */
#include "base/json.h"
#include "cli/client.h"
#include "cli/doctor.h"
#include "cli/options.h"
#include "policy/authority.h"
#include "run/probe_host.h"
#include "run/probe_network.h"

#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdlib.h>
#include <unistd.h>

enum { WAIT_MS = 1000, TARGETS_MAX = 16, ROWS_MAX = 4 << 20, PATHS_MAX = 1 << 20 };

/* ---- rows ---- */

static void put_row(const struct doctor_row *r, struct buf *b) {
    buf_put_str(b, "{");
    json_put_text(b, "part", view_str(r->part));
    json_put_text(b, "name", view_str(r->name));
    json_put_text(b, "what", view_str(r->what));
    json_put_text(b, "verdict", view_str(r->verdict));
    json_put_text(b, "why", view_str(r->why));
    if (r->fix)
        json_put_text(b, "fix", view_str(r->fix));
    buf_put_str(b, "}");
}

bool doctor_add(struct doctor *d, const struct doctor_row *r) {
    struct buf row;
    buf_init(&row, ROWS_MAX);
    put_row(r, &row);
    bool is_new = view_search(buf_view(&d->rows), buf_view(&row)) == buf_len(&d->rows);
    if (is_new) {
        buf_put_str(&d->rows, buf_len(&d->rows) > 1 ? "," : "");
        buf_put(&d->rows, buf_view(&row));
        d->failed += strcmp(r->verdict, "fails") == 0;
    }
    buf_free(&row);
    return is_new;
}

/* Of a containment probe. */
static void tell(void *doctor, const struct finding *f) {
    static const char *const words[] = {
        [PROBE_CONTAINED] = "contained", [PROBE_ESCAPED] = "escaped", [PROBE_UNSURE] = "unsure"};
    struct doctor *d = doctor;
    bool out = f->verdict == PROBE_ESCAPED;
    const char *verdict = out && !d->in_sandbox ? "open" : words[f->verdict];
    if (!doctor_add(
            d, &(struct doctor_row){"containment", f->probe, f->what, verdict, f->why, f->fix}))
        return;
    d->escaped += out && d->in_sandbox;
    d->open += out && !d->in_sandbox;
    d->unsure += f->verdict == PROBE_UNSURE;
}

/* ---- where to ---- */

/* Where clouds keep their keys. */
static const char *const metadata[] = {"169.254.169.254", "169.254.170.2", "100.100.100.200",
                                       "168.63.129.16", "fd00:ec2::254"};
static const char *const servers[] = {"192.0.2.53", "2001:db8::53"};

static int read_targets(const char *const *texts, size_t n, struct authority *out) {
    const char *why = NULL;
    for (size_t i = 0; i < n; i++)
        if (authority_parse(view_str(texts[i]), 443, &out[i], &why) != 0 ||
            out[i].kind != HOST_ADDRESS)
            return cli_fail(EXIT_USAGE, "%s: %s; ADDRESS, ADDRESS:PORT or [ADDRESS]:PORT is wanted",
                            texts[i],
                            why ? why : "a name would be resolved by what is to be tried");
    return EXIT_YES;
}

static void probe_outside(const struct probe *p, const struct authority *targets, size_t n) {
    static const uint16_t ports[] = {80, 443, 22, 25};
    for (size_t i = 0; i < PROBE_NOWHERE; i++) {
        for (size_t k = 0; k < sizeof ports / sizeof *ports; k++)
            probe_tcp(p, probe_nowhere[i], ports[k]);
        probe_udp(p, probe_nowhere[i], 443);
        probe_udp(p, probe_nowhere[i], 123);
    }
    for (size_t i = 0; i < sizeof metadata / sizeof *metadata; i++)
        probe_tcp(p, metadata[i], 80);
    for (size_t i = 0; i < n; i++) {
        probe_tcp(p, targets[i].host, targets[i].port);
        probe_udp(p, targets[i].host, targets[i].port);
        probe_dns(p, targets[i].host, false);
    }
}

/* The IPv4 gateway, as /proc/net/route has it: eight digits in the machine's order. */
static void probe_gateway(const struct probe *p) {
    char line[256], text[INET_ADDRSTRLEN];
    uint32_t destination, gateway;
    FILE *routes = fopen("/proc/net/route", "re");
    while (routes && fgets(line, sizeof line, routes)) {
        struct view rest = view_str(line);
        (void)view_cut(&rest, '\t'); /* the interface */
        if (hex_number(view_cut(&rest, '\t'), &destination) != 0 || destination != 0 ||
            hex_number(view_cut(&rest, '\t'), &gateway) != 0 || gateway == 0)
            continue;
        inet_ntop(AF_INET, &(struct in_addr){gateway}, text, sizeof text);
        probe_tcp(p, text, 80);
        probe_tcp(p, text, 22);
        probe_dns(p, text, false);
    }
    if (routes)
        fclose(routes);
}

/* Those that the sandbox is told to ask, which are the ones that answer. */
static void probe_resolvers(const struct probe *p) {
    char line[256], address[128];
    FILE *conf = fopen("/etc/resolv.conf", "re");
    while (conf && fgets(line, sizeof line, conf))
        if (sscanf(line, "nameserver %127s", address) == 1)
            probe_dns(p, address, false);
    if (conf)
        fclose(conf);
    for (size_t i = 0; i < sizeof servers / sizeof *servers; i++) {
        probe_dns(p, servers[i], false);
        probe_dns(p, servers[i], true);
    }
}

/* ---- exeat's own ---- */

/* The places of a configuration that can be read here, beside the usual ones. */
static void find_own(const struct cli *cli, struct buf *sockets, struct buf *files) {
    struct config config;
    probe_known_sockets(sockets);
    probe_known_files(files);
    if (access(cli->config, R_OK) != 0 || client_place(cli, &config) != EXIT_YES)
        return;
    buf_put(sockets, view_of(config.control, strlen(config.control) + 1));
    buf_put(files, view_of(config.state, strlen(config.state) + 1));
    if (config.vault_key)
        buf_put(files, view_of(config.vault_key, strlen(config.vault_key) + 1));
    config_free(&config);
}

static void probe_own(const struct probe *p, const struct cli *cli) {
    struct buf sockets, files;
    buf_init(&sockets, PATHS_MAX);
    buf_init(&files, PATHS_MAX);
    find_own(cli, &sockets, &files);
    probe_socket_files(p, buf_view(&sockets));
    probe_files(p, buf_view(&files));
    buf_free(&sockets);
    buf_free(&files);
}

/* ---- all of it ---- */

/* Something says that it is one, or exeat answers; of which sandbox it then is, it says itself. */
static bool is_sandbox(const struct ways *w) {
    return w->sandbox[0] || w->socket || getenv("EXEAT_SANDBOX");
}

static int exit_of(const struct doctor *d) {
    return !d->in_sandbox ? EXIT_UNSEEN : d->escaped > 0 ? EXIT_NO : EXIT_YES;
}

static void examine(struct doctor *d, const struct cli *cli, const struct authority *targets,
                    size_t n) {
    static struct ways ways;
    const struct probe p = {.wait_ms = WAIT_MS, .tell = tell, .ctx = d};
    ways_try(d, &ways);
    d->in_sandbox = is_sandbox(&ways);
    clients_try(d, &ways);
    probe_interfaces(&p);
    probe_outside(&p, targets, n);
    probe_gateway(&p);
    probe_resolvers(&p);
    probe_sockets(&p);
    probe_own(&p, cli);
    probe_abstract(&p);
    listeners_try(&p, &ways);
    probe_processes(&p);
}

int command_doctor(const struct cli *cli, int argc, char **argv) {
    static const struct option_spec options[] = {{NULL, NULL, NULL}};
    const char *texts[TARGETS_MAX];
    static struct authority targets[TARGETS_MAX];
    struct doctor d = {.failed = 0};
    int n, code = options_read_some(argc, argv, options, texts, 0, TARGETS_MAX, &n);
    if (code == EXIT_YES)
        code = read_targets(texts, (size_t)n, targets);
    if (code != EXIT_YES)
        return code;
    buf_init(&d.rows, ROWS_MAX);
    buf_put_str(&d.rows, "[");
    examine(&d, cli, targets, (size_t)n);
    buf_put_str(&d.rows, "]");
    if (!buf_ok(&d.rows))
        code = cli_fail(EXIT_NO, "there is too much to tell");
    else
        doctor_print(cli, &d);
    buf_free(&d.rows);
    return code == EXIT_YES ? exit_of(&d) : code;
}
