#include "base/file.h"
#include "cli/client.h"
#include "cli/nft_check.h"
#include "cli/nft_routes.h"
#include "cli/nft_rules.h"
#include "cli/options.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

enum { OUTPUT_MAX = 4 << 20, LISTING_MAX = 64 << 20 };

/* ---- the rules of the configuration ---- */

static int check_name(const struct config_listener *l, const char *name) {
    char own[INTERFACE_SIZE];
    if (!name[0] || !interface_own_name(name, own) || strcmp(own, name) == 0)
        return EXIT_YES;
    return cli_fail(EXIT_INVALID,
                    "%s:%u:%u: %s is an alternative name (altname) of the interface %s, by which "
                    "rules of nftables do not find it: write %s",
                    l->at.file, l->at.line, l->at.column, name, own, own);
}

/* Of interfaces that are there; others may come. */
static int check_names(const struct config *c) {
    int code = EXIT_YES;
    for (const struct config_listener *l = c->listeners; l && code == EXIT_YES; l = l->next) {
        code = check_name(l, l->interface);
        if (code == EXIT_YES)
            code = check_name(l, l->port_of_bridge);
    }
    return code;
}

static int make_rules(const struct cli *cli, struct config *c, struct nft_rules *out) {
    const struct config_listener *bad;
    int code = client_config(cli, c);
    if (code != EXIT_YES)
        return code;
    code = check_names(c);
    if (code != EXIT_YES) {
        config_free(c);
        return code;
    }
    int result = nft_rules_make(c, out, &bad);
    if (result == 0)
        return EXIT_YES;
    if (result == ERR_BAD)
        code = cli_fail(EXIT_INVALID,
                        "%s:%u:%u: nothing that comes in by an interface can be led to a listener "
                        "on loopback: give it a wildcard, or an address of the interface",
                        bad->at.file, bad->at.line, bad->at.column);
    else if (result == ERR_MISSING)
        code = cli_fail(EXIT_INVALID, "no `listen` line of the configuration names an `interface` "
                                      "or a `source`, so that no rule can lead anybody there");
    else
        code = cli_fail(EXIT_NO, "the rules: %s", err_text(result));
    nft_rules_free(out);
    config_free(c);
    return code;
}

static void free_rules(struct config *c, struct nft_rules *r) {
    nft_rules_free(r);
    config_free(c);
}

/* ---- print ---- */

static void write_chain(const struct nft_rules *rules, enum nft_chain chain, struct buf *out) {
    const struct nft_chain_info *info = nft_chain_info(chain);
    buf_printf(out, "\tchain %s {\n\t\ttype %s hook %s priority %s; policy accept;\n", info->name,
               info->type, info->hook, info->priority);
    for (const struct nft_rule *r = rules->first; r; r = r->next)
        if (r->chain == chain)
            buf_printf(out, "\t\t%.*s\n", VIEW_ARG(view_skip(buf_view(&r->text), 1)));
    buf_put_str(out, "\t}\n");
}

static void write_routes(const struct nft_rules *rules, const char *before, struct buf *out) {
    if (rules->marks4)
        nft_routes_write(4, before, out);
    if (rules->marks6)
        nft_routes_write(6, before, out);
}

/* One that has no rules any more is taken away all the same. */
static void write_text(const struct nft_rules *rules, struct buf *out) {
    buf_put_str(out,
                "# Leads sandboxes to exeat; made by `exeat nft print` of its configuration.\n"
                "# Load it with `nft -f`, and look at what is loaded with `exeat nft check`.\n");
    if (rules->marks4 || rules->marks6) {
        buf_put_str(out, "# TPROXY takes routes besides (`exeat nft print --routes`), at each "
                         "start of the machine:\n");
        write_routes(rules, "#     ", out);
    }
    for (const char *const *f = nft_families; *f; f++)
        buf_printf(out, "table %s %s\ndelete table %s %s\n", *f, NFT_TABLE, *f, NFT_TABLE);
    for (const char *const *f = nft_families; *f; f++) {
        if (!nft_rules_some(rules, *f))
            continue;
        buf_printf(out, "table %s %s {\n", *f, NFT_TABLE);
        for (enum nft_chain chain = 0; chain < NFT_CHAINS; chain++)
            if (nft_chain_is_of(chain, *f))
                write_chain(rules, chain, out);
        buf_put_str(out, "}\n");
    }
}

static int add_tables(json_t *all, const struct nft_rules *rules) {
    static const char *const verbs[] = {"add", "delete", "add"};
    int bad = 0;
    for (const char *const *f = nft_families; *f; f++)
        for (size_t i = 0; i < (nft_rules_some(rules, *f) ? 3 : 2); i++)
            bad |= json_array_append_new(all, json_pack("{s:{s:{s:s,s:s}}}", verbs[i], "table",
                                                        "family", *f, "name", NFT_TABLE));
    return bad;
}

/* For `nft -j -f`. */
static int write_json(const struct nft_rules *rules, struct buf *out) {
    json_t *all = json_array();
    int bad = add_tables(all, rules);
    for (enum nft_chain chain = 0; chain < NFT_CHAINS; chain++)
        if (nft_rules_some(rules, nft_chain_info(chain)->family))
            bad |= json_array_append_new(all, json_pack("{s:o}", "add", nft_chain_json(chain)));
    for (const struct nft_rule *r = rules->first; r; r = r->next)
        bad |= json_array_append_new(
            all, json_pack("{s:{s:{s:s,s:s,s:s,s:O}}}", "add", "rule", "family",
                           nft_chain_info(r->chain)->family, "table", NFT_TABLE, "chain",
                           nft_chain_info(r->chain)->name, "expr", r->expr));
    json_t *root = json_pack("{s:o}", "nftables", all);
    char *text = root && !bad ? json_dumps(root, JSON_COMPACT) : NULL;
    if (text)
        buf_printf(out, "%s\n", text);
    free(text);
    json_decref(root);
    return text ? 0 : ERR_MEMORY;
}

int command_nft_print(const struct cli *cli, int argc, char **argv) {
    bool routes = false;
    const struct option_spec specs[] = {{"--routes", NULL, &routes}, {NULL, NULL, NULL}};
    struct nft_rules rules;
    struct config config;
    struct buf out;
    int code = options_read(argc, argv, specs, NULL, 0);
    if (code == EXIT_YES && routes && cli->json)
        code = cli_fail(EXIT_USAGE, "`--routes` prints commands, of which there is no JSON");
    if (code == EXIT_YES)
        code = make_rules(cli, &config, &rules);
    if (code != EXIT_YES)
        return code;
    buf_init(&out, OUTPUT_MAX);
    int result = 0;
    if (routes)
        write_routes(&rules, "", &out);
    else if (cli->json)
        result = write_json(&rules, &out);
    else
        write_text(&rules, &out);
    if (result == 0 && buf_ok(&out))
        cli_print(stdout, &out);
    else
        code = cli_fail(EXIT_NO, "the rules: %s", err_text(ERR_MEMORY));
    buf_free(&out);
    free_rules(&config, &rules);
    return code;
}

/* ---- what is loaded ---- */

static _Noreturn void become_nft(int out) {
    static const char *const programs[] = {"nft", "/usr/sbin/nft"};
    dup2(out, STDOUT_FILENO);
    for (size_t i = 0; i < 2; i++)
        execlp(programs[i], "nft", "-j", "list", "ruleset", (char *)NULL);
    cli_fail(0, "nft cannot be executed: %s", strerror(errno));
    _exit(127);
}

static int list_ruleset(struct buf *out) {
    int ends[2], status = 0;
    if (pipe2(ends, O_CLOEXEC) != 0)
        return cli_fail(EXIT_UNSEEN, "a pipe: %s", strerror(errno));
    pid_t pid = fork();
    if (pid == 0)
        become_nft(ends[1]);
    close(ends[1]);
    int result = pid > 0 ? file_read(ends[0], LISTING_MAX, out) : ERR_SYSTEM;
    if (pid <= 0)
        close(ends[0]);
    while (pid > 0 && waitpid(pid, &status, 0) < 0 && errno == EINTR)
        continue;
    if (result == 0 && WIFEXITED(status) && WEXITSTATUS(status) == 0)
        return EXIT_YES;
    return cli_fail(geteuid() == 0 ? EXIT_UNSEEN : EXIT_PERMISSION,
                    "`nft -j list ruleset` does not say what is loaded%s",
                    geteuid() == 0 ? "" : ": it takes root");
}

static int read_listing(const char *file, struct buf *out) {
    if (!file)
        return list_ruleset(out);
    int fd = strcmp(file, "-") == 0 ? dup(STDIN_FILENO) : open(file, O_RDONLY | O_CLOEXEC);
    int result = fd < 0 ? ERR_SYSTEM : file_read(fd, LISTING_MAX, out);
    if (result == ERR_LIMIT)
        return cli_fail(EXIT_UNSEEN, "%s: it has more than %d bytes", file, LISTING_MAX);
    if (result != 0)
        return cli_unread(file, result);
    return EXIT_YES;
}

int command_nft_check(const struct cli *cli, int argc, char **argv) {
    const char *file = NULL;
    const struct option_spec specs[] = {{"--file", &file, NULL}, {NULL, NULL, NULL}};
    struct nft_rules rules;
    struct config config;
    struct buf listing;
    int code = options_read(argc, argv, specs, NULL, 0);
    if (code == EXIT_YES)
        code = make_rules(cli, &config, &rules);
    if (code != EXIT_YES)
        return code;
    buf_init(&listing, LISTING_MAX);
    code = read_listing(file, &listing);
    if (code == EXIT_YES)
        code = nft_check(cli->json, &rules, buf_view(&listing), file ? NULL : &config);
    buf_free(&listing);
    free_rules(&config, &rules);
    return code;
}
