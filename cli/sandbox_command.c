#include "cli/environment_format.h"
#include "cli/grants.h"
#include "cli/json_scan.h"
#include "cli/list.h"
#include "cli/options.h"

#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { URL_MAX = 512, OUTPUT_MAX = 1 << 20 };

/* ---- where the sandbox reaches exeat ---- */

static bool lane_names(const struct config_lane *lane, struct view sandbox) {
    struct view names = lane->names, name;
    while (lane_sandbox(&names, &name))
        if (view_equal(name, sandbox))
            return true;
    return false;
}

/* The lane that names the sandbox, else the one for everybody. */
static const struct config_lane *find_lane(const struct config *c, struct view sandbox) {
    const struct config_lane *everybody = NULL;
    for (const struct config_lane *lane = c->lanes; lane; lane = lane->next) {
        if (lane_names(lane, sandbox))
            return lane;
        if (lane->everybody)
            everybody = lane;
    }
    return everybody;
}

/* A listener on TCP before one on a Unix socket, and that before vsock: fewer clients speak to the latter. */
static const struct config_listener *find_listener(const struct config *c, uint32_t lane) {
    const struct config_listener *found = NULL;
    for (const struct config_listener *l = c->listeners; l; l = l->next)
        if (l->lane == lane && l->way == WAY_EXPLICIT && (!found || l->place < found->place))
            found = l;
    return found;
}

/* A wildcard is where to listen, not where to connect. */
static void put_address(const struct address *a, struct buf *out) {
    char text[64];
    if (address_classify(a) == ADDRESS_UNSPECIFIED) {
        buf_put_str(out, a->family == 4 ? "127.0.0.1" : "[::1]");
        return;
    }
    address_format(a, text);
    buf_printf(out, a->family == 4 ? "%s" : "[%s]", text);
}

/* ---- add ---- */

static void put_public(const struct config *c, struct buf *out) {
    char state[PATH_MAX];
    buf_printf(out, "%s/public", realpath(c->state, state) ? state : c->state);
}

static int print(const struct environment *e, const char *format) {
    struct buf out;
    buf_init(&out, OUTPUT_MAX);
    bool ok = environment_write(e, format, &out) == 0 && buf_ok(&out) &&
              fwrite(buf_view(&out).p, 1, buf_len(&out), stdout) == buf_len(&out);
    buf_free(&out);
    ok = ok && fflush(stdout) == 0;
    return ok ? EXIT_YES
              : cli_fail(EXIT_NO,
                         "the environment could not be printed, and nobody has it now: run "
                         "this again");
}

static int show(const struct config *c, const char *config, struct view answer,
                const char *format) {
    struct environment e = {.n_credentials = 0};
    struct view token;
    struct buf host, url, public;
    if (environment_read_issued(answer, &e, &token) != 0)
        return cli_fail(EXIT_NO, "the daemon's answer is malformed");
    const struct config_lane *lane = find_lane(c, e.sandbox);
    /* None: its connections are captured, and clients need no more than the certificates. */
    const struct config_listener *l = lane ? find_listener(c, lane->id) : NULL;
    if (!lane)
        return cli_fail(EXIT_INVALID,
                        "no `listen` of the configuration is for the sandbox %.*s: add one to %s "
                        "(or have it attached, by `exeat run --sandbox`)",
                        VIEW_ARG(e.sandbox), config);
    buf_init(&host, URL_MAX);
    buf_init(&url, URL_MAX);
    buf_init(&public, PATH_MAX);
    put_public(c, &public);
    if (l && l->place == PLACE_INTERNET) {
        put_address(&l->address, &host);
        e.proxy_host = buf_view(&host);
        e.proxy_port = l->port;
        environment_put_url(&e, lane->shared, token, &url);
    }
    e.socket = view_str(l ? l->path : NULL);
    e.vsock_port = l ? l->vsock_port : 0;
    e.proxy_url = buf_view(&url);
    e.public = buf_view(&public);
    int code = print(&e, format);
    buf_free(&host);
    buf_free(&url);
    buf_free(&public);
    return code;
}

static int add(const struct config *c, const char *config, const char *name, const char *format) {
    struct buf body, answer;
    buf_init(&body, CONTROL_ASK_MAX);
    buf_init(&answer, BROKER_TEXT_MAX);
    buf_put_block(&body, view_str(name));
    int code = buf_ok(&body) ? client_ask_at(c->control, CONTROL_SANDBOX_ADD, buf_view(&body), -1,
                                             &answer, NULL)
                             : cli_fail(EXIT_USAGE, "the name is too long");
    struct view replaces;
    if (code == EXIT_YES && json_member(buf_view(&answer), "replaces", &replaces) &&
        view_equal(replaces, VIEW("true")))
        fprintf(stderr, "exeat: note: the token and placeholders that %s had before have ended\n",
                name);
    if (code == EXIT_YES)
        code = show(c, config, buf_view(&answer), format);
    buf_free(&body);
    buf_free(&answer);
    return code;
}

/* Before the daemon issues anything. */
static bool is_format(const char *name) {
    static const struct environment none = {.n_credentials = 0};
    struct buf out;
    buf_init(&out, OUTPUT_MAX);
    bool known = environment_write(&none, name, &out) == 0;
    buf_free(&out);
    return known;
}

int command_sandbox_add(const struct cli *cli, int argc, char **argv) {
    const char *name, *format = cli->json ? "json" : "sh";
    const struct option_spec specs[] = {{"--format", &format, NULL}, {NULL, NULL, NULL}};
    struct config config;
    int code = options_read(argc, argv, specs, &name, 1);
    if (code != EXIT_YES)
        return code;
    if (!is_format(format))
        return cli_fail(EXIT_USAGE, "--format is one of " ENVIRONMENT_FORMATS);
    code = client_config(cli, &config);
    if (code != EXIT_YES)
        return code;
    code = add(&config, cli->config, name, format);
    config_free(&config);
    return code;
}

/* ---- remove and list ---- */

int command_sandbox_remove(const struct cli *cli, int argc, char **argv) {
    static const struct option_spec none[] = {{NULL, NULL, NULL}};
    const char *name;
    struct buf body, text;
    int code = options_read(argc, argv, none, &name, 1);
    if (code != EXIT_YES)
        return code;
    buf_init(&body, CONTROL_ASK_MAX);
    buf_init(&text, BROKER_TEXT_MAX);
    buf_put_block(&body, view_str(name));
    code = buf_ok(&body) ? client_ask(cli, CONTROL_SANDBOX_REMOVE, buf_view(&body), -1, &text, NULL)
                         : cli_fail(EXIT_USAGE, "the name is too long");
    if (code == EXIT_YES && cli->json)
        printf("%.*s\n", VIEW_ARG(buf_view(&text)));
    else if (code == EXIT_YES)
        printf("%s: its token and placeholders have ended\n", name);
    buf_free(&body);
    buf_free(&text);
    return code;
}

/* The elements of the broker's array, each with its grants as the last member. */
static void add_grants(struct view sandboxes, struct view status, struct buf *out) {
    struct view rest = json_elements(sandboxes), sandbox, raw, name;
    const char *between = "";
    buf_put_u8(out, '[');
    while (json_element(&rest, &sandbox)) {
        if (!json_member(sandbox, "name", &raw) || !json_word(raw, &name))
            continue;
        buf_put_str(out, between);
        buf_put(out, view_head(sandbox, sandbox.n - 1));
        buf_put_str(out, ",\"grants\":");
        grants_gather(status, name, out);
        buf_put_u8(out, '}');
        between = ",";
    }
    buf_put_str(out, "]\n");
}

static void put_list(struct view sandboxes, struct view status, const struct list_column *columns,
                     struct buf *out) {
    struct buf grants;
    buf_init(&grants, OUTPUT_MAX);
    grants_gather(status, VIEW(""), &grants);
    list_write(sandboxes, columns, out);
    if (json_elements(buf_view(&grants)).n > 0)
        buf_put_u8(out, '\n');
    grants_write(buf_view(&grants), out);
    buf_free(&grants);
}

int command_sandbox_list(const struct cli *cli, int argc, char **argv) {
    static const struct list_column columns[] = {
        {"NAME", "name", LIST_TEXT},
        {"DECLARED", "declared", LIST_YES_NO},
        {"REGISTERED", "registered", LIST_YES_NO},
        {"ISSUED", "issued", LIST_WORDS},
        {"ONLY GRANTED", "not_issued", LIST_WORDS},
        {NULL, NULL, LIST_TEXT},
    };
    static const struct option_spec none[] = {{NULL, NULL, NULL}};
    struct buf sandboxes, status, out;
    int code = options_read(argc, argv, none, NULL, 0);
    if (code != EXIT_YES)
        return code;
    buf_init(&sandboxes, BROKER_TEXT_MAX);
    buf_init(&status, CHANNEL_BODY_MAX);
    buf_init(&out, 4 * OUTPUT_MAX);
    code = client_ask(cli, CONTROL_SANDBOX_LIST, VIEW(""), -1, &sandboxes, NULL);
    if (code == EXIT_YES)
        code = client_ask(cli, CONTROL_STATUS, VIEW(""), -1, &status, NULL);
    if (code == EXIT_YES && cli->json)
        add_grants(buf_view(&sandboxes), buf_view(&status), &out);
    else if (code == EXIT_YES)
        put_list(buf_view(&sandboxes), buf_view(&status), columns, &out);
    cli_print(stdout, &out);
    buf_free(&sandboxes);
    buf_free(&status);
    buf_free(&out);
    return code;
}
