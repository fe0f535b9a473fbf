#include "base/file.h"
#include "base/json.h"
#include "cli/client.h"
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

static int make_rules(const struct cli *cli, struct config *c, struct nft_rules *out) {
    const struct config_listener *bad;
    int code = client_config(cli, c);
    if (code != EXIT_YES)
        return code;
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

static bool is_of(enum nft_chain chain, const char *family) {
    return strcmp(nft_chain_info(chain)->family, family) == 0;
}

/* One that has no rules any more is taken away all the same. */
static void write_text(const struct nft_rules *rules, struct buf *out) {
    buf_put_str(out,
                "# Leads sandboxes to exeat; made by `exeat nft print` of its configuration.\n"
                "# Load it with `nft -f`, and look at what is loaded with `exeat nft check`.\n");
    for (const char *const *f = nft_families; *f; f++)
        buf_printf(out, "table %s %s\ndelete table %s %s\n", *f, NFT_TABLE, *f, NFT_TABLE);
    for (const char *const *f = nft_families; *f; f++) {
        if (!nft_rules_some(rules, *f))
            continue;
        buf_printf(out, "table %s %s {\n", *f, NFT_TABLE);
        for (enum nft_chain chain = 0; chain < NFT_CHAINS; chain++)
            if (is_of(chain, *f))
                write_chain(rules, chain, out);
        buf_put_str(out, "}\n");
    }
}

static json_t *chain_json(const struct nft_chain_info *info) {
    return json_pack("{s:{s:s,s:s,s:s,s:s,s:s,s:i,s:s}}", "chain", "family", info->family, "table",
                     NFT_TABLE, "name", info->name, "type", info->type, "hook", info->hook, "prio",
                     info->prio, "policy", "accept");
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
            bad |= json_array_append_new(
                all, json_pack("{s:o}", "add", chain_json(nft_chain_info(chain))));
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
    static const struct option_spec none[] = {{NULL, NULL, NULL}};
    struct nft_rules rules;
    struct config config;
    struct buf out;
    int code = options_read(argc, argv, none, NULL, 0);
    if (code == EXIT_YES)
        code = make_rules(cli, &config, &rules);
    if (code != EXIT_YES)
        return code;
    buf_init(&out, OUTPUT_MAX);
    int result = 0;
    if (cli->json)
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
        return cli_fail(EXIT_UNSEEN, "%s: %s", file, err_why(result));
    return EXIT_YES;
}

/* ---- check ---- */

/* One line for each difference; as JSON an array of them. */
struct findings {
    bool json;
    size_t n;
    struct buf text;
};

/* where: a chain, or the family of a table. */
static void find(struct findings *f, const char *where, const char *what, struct view rule) {
    struct buf *b = &f->text;
    if (f->json) {
        buf_put_str(b, f->n ? ",{" : "{");
        json_put_text(b, "where", view_str(where));
        json_put_text(b, "finding", view_str(what));
        json_put_text(b, "rule", rule);
        buf_put_str(b, "}");
    } else {
        buf_printf(b, "%s: %s%s%.*s\n", where, what, rule.n ? ": " : "", VIEW_ARG(rule));
    }
    f->n++;
}

static const char *text_of(const json_t *object, const char *key) {
    const char *text = json_string_value(json_object_get(object, key));
    return text ? text : "";
}

/* The first object of this kind in our table that is called so, or NULL. */
static const json_t *loaded(const json_t *all, const char *family, const char *kind,
                            const char *name) {
    size_t i;
    const json_t *entry;
    json_array_foreach(all, i, entry) {
        const json_t *o = json_object_get(entry, kind);
        bool is_table = strcmp(kind, "table") == 0;
        if (o && strcmp(text_of(o, "family"), family) == 0 &&
            (is_table || strcmp(text_of(o, "table"), NFT_TABLE) == 0) &&
            strcmp(text_of(o, "name"), name) == 0)
            return o;
    }
    return NULL;
}

/* What the rules of a chain say, in order. NULL: no memory. */
static json_t *loaded_rules(const json_t *all, const struct nft_chain_info *chain) {
    json_t *found = json_array();
    size_t i;
    const json_t *entry;
    json_array_foreach(all, i, entry) {
        const json_t *rule = json_object_get(entry, "rule");
        if (rule && strcmp(text_of(rule, "family"), chain->family) == 0 &&
            strcmp(text_of(rule, "table"), NFT_TABLE) == 0 &&
            strcmp(text_of(rule, "chain"), chain->name) == 0 &&
            json_array_append(found, json_object_get(rule, "expr")) != 0) {
            json_decref(found);
            return NULL;
        }
    }
    return found;
}

static void find_extra(struct findings *f, const char *chain, const json_t *expr) {
    char *text = json_dumps(expr, JSON_COMPACT | JSON_ENCODE_ANY);
    find(f, chain, "a rule is loaded that is not the configuration's", view_str(text ? text : ""));
    free(text);
}

static void compare_chain(struct findings *f, const json_t *all, enum nft_chain chain) {
    const struct nft_chain_info *info = nft_chain_info(chain);
    const json_t *is = loaded(all, info->family, "chain", info->name);
    json_t *wanted = chain_json(info);
    static const char *const members[] = {"type", "hook", "prio", "policy"};
    if (!is)
        find(f, info->name, "the chain is missing", (struct view){NULL, 0});
    for (size_t i = 0; is && i < 4; i++)
        if (!json_equal(json_object_get(is, members[i]),
                        json_object_get(json_object_get(wanted, "chain"), members[i])))
            find(f, info->name, "the chain has another value than the configuration's of",
                 view_str(members[i]));
    json_decref(wanted);
}

/* Where the next rule like this is, from the n-th on; where the rules end: there is none. */
static size_t find_like(const json_t *rules, size_t n, const json_t *expr) {
    while (n < json_array_size(rules) && !json_equal(json_array_get(rules, n), expr))
        n++;
    return n;
}

/* False: no memory. */
static bool compare_rules(struct findings *f, const json_t *all, const struct nft_rules *rules,
                          enum nft_chain chain) {
    const char *name = nft_chain_info(chain)->name;
    json_t *are = loaded_rules(all, nft_chain_info(chain));
    size_t n = 0, end = json_array_size(are);
    for (const struct nft_rule *r = rules->first; r && are; r = r->next) {
        if (r->chain != chain)
            continue;
        size_t at = find_like(are, n, r->expr);
        if (at == end) {
            find(f, name, "a rule is missing, or not in its place",
                 view_skip(buf_view(&r->text), 1));
            continue;
        }
        while (n < at)
            find_extra(f, name, json_array_get(are, n++));
        n++;
    }
    while (n < end)
        find_extra(f, name, json_array_get(are, n++));
    json_decref(are);
    return are != NULL;
}

static bool is_chain_of_ours(const json_t *chain) {
    for (enum nft_chain i = 0; i < NFT_CHAINS; i++)
        if (is_of(i, text_of(chain, "family")) &&
            strcmp(text_of(chain, "name"), nft_chain_info(i)->name) == 0)
            return true;
    return false;
}

static void find_other_chains(struct findings *f, const json_t *all, const char *family) {
    size_t i;
    const json_t *entry;
    json_array_foreach(all, i, entry) {
        const json_t *chain = json_object_get(entry, "chain");
        if (chain && strcmp(text_of(chain, "family"), family) == 0 &&
            strcmp(text_of(chain, "table"), NFT_TABLE) == 0 && !is_chain_of_ours(chain))
            find(f, text_of(chain, "name"), "a chain is loaded that is not the configuration's",
                 (struct view){NULL, 0});
    }
}

static bool compare_table(struct findings *f, const json_t *all, const struct nft_rules *rules,
                          const char *family) {
    bool good = true, some = nft_rules_some(rules, family);
    const json_t *there = loaded(all, family, "table", NFT_TABLE);
    if (some && !there)
        find(f, family, "the table is not loaded: `exeat nft print | nft -f -` loads it",
             (struct view){NULL, 0});
    else if (there && !some)
        find(f, family, "a table is loaded of which the configuration has nothing",
             (struct view){NULL, 0});
    if (!some || !there)
        return true;
    /* A dormant one does nothing. Some versions of nft do not say which flags these are. */
    if (json_object_get(there, "flags"))
        find(f, family, "the table has flags, such as `dormant`, that are not the configuration's",
             (struct view){NULL, 0});
    find_other_chains(f, all, family);
    for (enum nft_chain chain = 0; chain < NFT_CHAINS && good; chain++) {
        if (!is_of(chain, family))
            continue;
        compare_chain(f, all, chain);
        good = compare_rules(f, all, rules, chain);
    }
    return good;
}

static bool compare(struct findings *f, const json_t *all, const struct nft_rules *rules) {
    bool good = true;
    for (const char *const *family = nft_families; *family && good; family++)
        good = compare_table(f, all, rules, *family);
    return good && buf_ok(&f->text);
}

static int check(const struct cli *cli, const struct nft_rules *rules, struct view listing) {
    json_error_t error;
    struct findings f = {.json = cli->json};
    json_t *root = json_loadb((const char *)listing.p, listing.n, 0, &error);
    const json_t *all = json_object_get(root, "nftables");
    if (!json_is_array(all)) {
        json_decref(root);
        return cli_fail(EXIT_UNSEEN, "this is no output of `nft -j list ruleset`");
    }
    buf_init(&f.text, OUTPUT_MAX);
    if (f.json)
        buf_put_str(&f.text, "[");
    int code =
        compare(&f, all, rules) ? EXIT_YES : cli_fail(EXIT_UNSEEN, "%s", err_text(ERR_MEMORY));
    if (f.json)
        buf_put_str(&f.text, "]\n");
    else if (f.n == 0)
        buf_put_str(&f.text, "the rules of the configuration are loaded, and no others in their "
                             "tables\n");
    if (code == EXIT_YES)
        cli_print(stdout, &f.text);
    buf_free(&f.text);
    json_decref(root);
    return code != EXIT_YES || f.n == 0 ? code : EXIT_NO;
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
        code = check(cli, &rules, buf_view(&listing));
    buf_free(&listing);
    free_rules(&config, &rules);
    return code;
}
