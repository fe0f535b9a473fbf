/*
 * What `nft -j list ruleset` printed, or somebody else, against the rules of a configuration: said to be as it should only
 * when all of them are in it.
 *
 * Input: a listing, whose word RULES is replaced by the rules themselves as they are listed.
 */
#include "cli/command.h"
#include "cli/nft_check.h"
#include "fuzz/quiet.h"
#include "policy/errors.h"

#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

enum { LISTING_MAX = 1 << 20 };

static const char text[] =
    "state s; policy p\n"
    "listen transparent 0.0.0.0:1 { sandbox a; interface tap0; tproxy }\n"
    "listen transparent [fd00::1]:2 { sandbox a; interface tap0; source fd00::2; tproxy }\n"
    "listen dns 0.0.0.0:5300 { sandbox a; interface tap0 }\n"
    "listen tcp 10.0.0.1:1 { sandbox b; interface br0; port tap1; source 10.0.0.2 fd00::3 }\n";

static struct nft_rules rules;
static struct buf loaded;

static void must(bool x) {
    if (!x)
        abort();
}

static void put_json(json_t *value) {
    char *made = json_dumps(value, JSON_COMPACT);
    must(made != NULL);
    buf_put_str(&loaded, buf_len(&loaded) ? "," : "");
    buf_put_str(&loaded, made);
    free(made);
    json_decref(value);
}

static void start(void) {
    static struct config config;
    static struct policy_errors errors;
    const struct config_listener *bad;
    must(config_read(view_str(text), "exeat.conf", &config, &errors) == 0);
    must(nft_rules_make(&config, &rules, &bad) == 0);
    buf_init(&loaded, LISTING_MAX / 2);
    for (const char *const *family = nft_families; *family; family++)
        if (nft_rules_some(&rules, *family))
            put_json(json_pack("{s:{s:s,s:s}}", "table", "family", *family, "name", NFT_TABLE));
    for (enum nft_chain chain = 0; chain < NFT_CHAINS; chain++)
        if (nft_rules_some(&rules, nft_chain_info(chain)->family))
            put_json(nft_chain_json(chain));
    for (const struct nft_rule *r = rules.first; r; r = r->next)
        put_json(json_pack("{s:{s:s,s:s,s:s,s:O}}", "rule", "family",
                           nft_chain_info(r->chain)->family, "table", NFT_TABLE, "chain",
                           nft_chain_info(r->chain)->name, "expr", r->expr));
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    struct view rest = view_of(data, size);
    struct buf listing;
    if (!rules.first)
        start();
    size_t at = view_search(rest, VIEW("RULES"));
    buf_init(&listing, LISTING_MAX);
    buf_put(&listing, view_head(rest, at));
    if (at < rest.n)
        buf_put(&listing, buf_view(&loaded));
    buf_put(&listing, view_skip(rest, at + 5));
    if (buf_ok(&listing)) {
        quiet_begin();
        int code = nft_check(size % 2 == 0, &rules, buf_view(&listing), NULL);
        quiet_end();
        /* Without them in the input nobody could have made them up. */
        must(code != EXIT_YES || at < rest.n);
        must(code == EXIT_YES || !view_equal(rest, VIEW("{\"nftables\":[RULES]}")));
    }
    buf_free(&listing);
    return 0;
}
