#include "cli/nft_routes.h"

#include "base/error.h"
#include "cli/nft_question.h"

#include <arpa/inet.h>
#include <linux/fib_rules.h>

/* ---- commands ---- */

static const struct {
    uint8_t family;
    enum nft_route_fault mends;
    const char *text;
} commands[] = {
    {4, NFT_ROUTE_NO_RULE, "ip rule add fwmark 0x6578 lookup 25976"},
    {4, NFT_ROUTE_NO_ROUTE, "ip route add local default dev lo table 25976"},
    {6, NFT_ROUTE_NO_RULE, "ip -6 rule add fwmark 0x6578 lookup 25976"},
    {6, NFT_ROUTE_NO_ROUTE, "ip -6 route add local default dev lo table 25976"},
};
enum { COMMANDS = sizeof commands / sizeof *commands };
_Static_assert(NFT_MARK == 0x6578 && NFT_ROUTE_TABLE == 25976, "the numbers of the commands");

void nft_routes_write(uint8_t family, const char *before, struct buf *out) {
    for (size_t i = 0; i < COMMANDS; i++)
        if (commands[i].family == family)
            buf_printf(out, "%s%s\n", before, commands[i].text);
}

const char *nft_route_remedy(uint8_t family, enum nft_route_fault fault) {
    for (size_t i = 0; i < COMMANDS; i++)
        if (commands[i].family == family && commands[i].mends == fault)
            return commands[i].text;
    return NULL;
}

/* ---- what is so ---- */

static uint8_t kernel_family(uint8_t family) {
    return family == 4 ? AF_INET : AF_INET6;
}

static bool is_local(const struct nlmsghdr *m, void *ctx) {
    (void)ctx;
    return m->nlmsg_type == RTM_NEWROUTE &&
           ((const struct rtmsg *)NLMSG_DATA(m))->rtm_type == RTN_LOCAL;
}

static bool is_our_route(const struct nlmsghdr *m, void *ctx) {
    const struct rtmsg *r = NLMSG_DATA(m);
    return is_local(m, ctx) && r->rtm_dst_len == 0 &&
           question_number(m, sizeof *r, RTA_TABLE) == NFT_ROUTE_TABLE;
}

static bool is_our_rule(const struct nlmsghdr *m, void *ctx) {
    (void)ctx;
    const struct fib_rule_hdr *r = NLMSG_DATA(m);
    return m->nlmsg_type == RTM_NEWRULE && r->action == FR_ACT_TO_TBL &&
           question_number(m, sizeof *r, FRA_FWMARK) == NFT_MARK &&
           question_number(m, sizeof *r, FRA_TABLE) == NFT_ROUTE_TABLE;
}

/* Of an address that documents alone have, since each of this host's is local by itself. */
static int ask_where(uint8_t family) {
    static const char *const texts[] = {"192.0.2.1", "2001:db8::1"};
    const uint32_t mark = NFT_MARK;
    uint8_t address[16];
    struct question q;
    inet_pton(kernel_family(family), texts[family == 6], address);
    question_begin(&q, RTM_GETROUTE, 0);
    struct rtmsg *r = question_put(&q, sizeof *r);
    r->rtm_family = kernel_family(family);
    r->rtm_dst_len = family == 4 ? 32 : 128;
    question_put_attribute(&q, RTA_DST, address, family == 4 ? 4 : 16);
    question_put_attribute(&q, RTA_MARK, &mark, sizeof mark);
    return question_ask(&q, is_local, NULL);
}

static int ask_all(uint8_t family, uint16_t type, answer_test *test) {
    struct question q;
    question_begin(&q, type, NLM_F_DUMP);
    struct rtmsg *r = question_put(&q, sizeof *r);
    r->rtm_family = kernel_family(family);
    return question_ask(&q, test, NULL);
}

int nft_routes_look(uint8_t family, unsigned *faults) {
    *faults = 0;
    /* That it leads nowhere is told as an error. */
    if (ask_where(family) == 1)
        return 0;
    int rule = ask_all(family, RTM_GETRULE, is_our_rule);
    int route = rule < 0 ? rule : ask_all(family, RTM_GETROUTE, is_our_route);
    if (route < 0)
        return ERR_SYSTEM;
    *faults = (rule ? 0 : NFT_ROUTE_NO_RULE) | (route ? 0 : NFT_ROUTE_NO_ROUTE);
    if (*faults == 0)
        *faults = NFT_ROUTE_LATE;
    return 0;
}
