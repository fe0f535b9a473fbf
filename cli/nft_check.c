#include "cli/nft_check.h"

#include "base/json.h"
#include "cli/client.h"
#include "cli/nft_interfaces.h"
#include "cli/nft_routes.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

enum { OUTPUT_MAX = 4 << 20 };

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
    json_t *wanted = nft_chain_json(chain);
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
        if (nft_chain_is_of(i, text_of(chain, "family")) &&
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
        if (!nft_chain_is_of(chain, family))
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
    return good;
}

/* ---- routes ---- */

static void find_route(struct findings *f, uint8_t family, unsigned faults,
                       enum nft_route_fault fault, const char *what) {
    const char *remedy = nft_route_remedy(family, fault);
    if (faults & fault)
        find(f, family == 4 ? "routes of IPv4" : "routes of IPv6", what,
             remedy ? view_str(remedy) : (struct view){NULL, 0});
}

static int compare_routes(struct findings *f, uint8_t family) {
    unsigned faults;
    if (nft_routes_look(family, &faults) != 0)
        return cli_fail(EXIT_UNSEEN, "the routes of IPv%u: %s", family, strerror(errno));
    find_route(f, family, faults, NFT_ROUTE_NO_RULE,
               "no rule looks up in the table for it what TPROXY has marked");
    find_route(f, family, faults, NFT_ROUTE_NO_ROUTE,
               "the table for what TPROXY has marked does not lead to this host");
    find_route(f, family, faults, NFT_ROUTE_LATE,
               "a rule before that of the mark 0x6578 leads elsewhere (`ip rule` shows them)");
    return EXIT_YES;
}

/* ---- interfaces ---- */

static int compare_interface(struct findings *f, const struct config_listener *l) {
    const char *setting, *source = NULL, *name = l->interface[0] ? l->interface : "all";
    bool four = l->address.family == 4;
    if (nft_bridge_look(l->interface, l->address.family, &setting) != 0 ||
        (four && nft_source_look(l->interface, &source) != 0))
        return EXIT_UNSEEN;
    if (setting)
        find(f, name,
             four ? "TPROXY takes no packets of IPv4 here, as br_netfilter has rules look at them "
                    "at the bridge"
                  : "TPROXY takes no packets of IPv6 here, as br_netfilter has rules look at them "
                    "at the bridge",
             view_str(setting));
    if (source)
        find(f, name,
             "packets that TPROXY has marked are dropped here, as their sources are looked up with "
             "the mark",
             view_str(source));
    return EXIT_YES;
}

/* One that rules are made for, and the first of those that share an interface. */
static bool is_looked_at(const struct config *c, const struct config_listener *l) {
    if (!l->tproxy || !nft_rules_lead_to(l))
        return false;
    for (const struct config_listener *q = c->listeners; q != l; q = q->next)
        if (q->tproxy && nft_rules_lead_to(q) && q->address.family == l->address.family &&
            strcmp(q->interface, l->interface) == 0)
            return false;
    return true;
}

static int compare_interfaces(struct findings *f, const struct config *c) {
    int code = EXIT_YES;
    for (const struct config_listener *l = c->listeners; l && code == EXIT_YES; l = l->next)
        if (is_looked_at(c, l))
            code = compare_interface(f, l);
    return code;
}

/* ---- all ---- */

static int compare_all(struct findings *f, const json_t *all, const struct nft_rules *rules,
                       const struct config *here) {
    int code =
        compare(f, all, rules) ? EXIT_YES : cli_fail(EXIT_UNSEEN, "%s", err_text(ERR_MEMORY));
    if (code == EXIT_YES && here && rules->marks4)
        code = compare_routes(f, 4);
    if (code == EXIT_YES && here && rules->marks6)
        code = compare_routes(f, 6);
    if (code == EXIT_YES && here)
        code = compare_interfaces(f, here);
    return code;
}

/* ---- what is told ---- */

static const char *no_findings(const struct nft_rules *rules, bool here) {
    if (!rules->marks4 && !rules->marks6)
        return "the rules of the configuration are loaded, and no others in their tables\n";
    return here
               ? "the rules of the configuration are loaded, and no others in their tables; what "
                 "they mark for TPROXY comes to this host\n"
               : "the rules of the configuration are loaded, and no others in their tables; routes "
                 "for TPROXY were not looked at, since a file does not tell of them\n";
}

int nft_check(bool json, const struct nft_rules *rules, struct view listing,
              const struct config *here) {
    json_error_t error;
    struct findings f = {.json = json};
    json_t *root = json_loadb((const char *)listing.p, listing.n, 0, &error);
    const json_t *all = json_object_get(root, "nftables");
    if (!json_is_array(all)) {
        json_decref(root);
        return cli_fail(
            EXIT_UNSEEN,
            "this is not what is loaded, as `nft -j list ruleset` prints it in JSON (and "
            "`exeat nft print` does not: it prints what is to be loaded)");
    }
    buf_init(&f.text, OUTPUT_MAX);
    if (f.json)
        buf_put_str(&f.text, "[");
    int code = compare_all(&f, all, rules, here);
    if (f.json)
        buf_put_str(&f.text, "]\n");
    else if (f.n == 0)
        buf_put_str(&f.text, no_findings(rules, here != NULL));
    if (code == EXIT_YES && !buf_ok(&f.text))
        code = cli_fail(EXIT_UNSEEN, "%s", err_text(ERR_MEMORY));
    if (code == EXIT_YES)
        cli_print(stdout, &f.text);
    buf_free(&f.text);
    json_decref(root);
    return code != EXIT_YES || f.n == 0 ? code : EXIT_NO;
}
