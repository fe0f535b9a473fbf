/* Rules for nftables: what a configuration's listeners come to, as text and as nft lists it. */
#include "tests/unit/policy_texts.h"

#include "cli/nft_rules.h"

#include <stdio.h>
#include <stdlib.h>

struct world {
    struct config config;
    struct nft_rules rules;
    const struct config_listener *bad;
};

static int make(struct world *w, const char *listeners) {
    char text[2048];
    snprintf(text, sizeof text, "state s; policy p\n%s", listeners);
    if (config_read(view_str(text), "exeat.conf", &w->config, &errors) != 0)
        fail_with_errors(text);
    return nft_rules_make(&w->config, &w->rules, &w->bad);
}

static void unmake(struct world *w) {
    nft_rules_free(&w->rules);
    config_free(&w->config);
}

/* The chains one after another: "NAME:" and its rules, a line each. */
static void rules_are(const char *listeners, const char *wanted) {
    struct world w;
    struct buf text;
    assert_int_equal(make(&w, listeners), 0);
    buf_init(&text, 1 << 16);
    for (enum nft_chain chain = 0; chain < NFT_CHAINS; chain++) {
        if (!nft_rules_some(&w.rules, nft_chain_info(chain)->family))
            continue;
        buf_printf(&text, "%s:\n", nft_chain_info(chain)->name);
        for (const struct nft_rule *r = w.rules.first; r; r = r->next)
            if (r->chain == chain)
                buf_printf(&text, "%.*s\n", VIEW_ARG(view_skip(buf_view(&r->text), 1)));
    }
    buf_put_u8(&text, 0);
    assert_string_equal((const char *)buf_view(&text).p, wanted);
    buf_free(&text);
    unmake(&w);
}

#define LET_THROUGH(interface)                                                                     \
    "iifname \"" interface "\" ct state established accept\n"                                      \
    "iifname \"" interface "\" ct state related meta l4proto icmp accept\n"                        \
    "iifname \"" interface "\" icmpv6 type nd-router-solicit accept\n"                             \
    "iifname \"" interface "\" icmpv6 type nd-neighbor-solicit accept\n"                           \
    "iifname \"" interface "\" icmpv6 type nd-neighbor-advert accept\n"
#define KEEP(packets, icmp)                                                                        \
    "kept:\n" packets " ct state established accept\n" packets                                     \
    " ct state related meta l4proto " icmp " accept\n" REFUSE(packets)
#define REFUSE(packets)                                                                            \
    packets " meta l4proto tcp reject with tcp reset\n" packets                                    \
            " reject with icmpx admin-prohibited\n"

#define KEEP_BOTH(interface)                                                                       \
    "kept:\n"                                                                                      \
    "iifname \"" interface "\" ct state established accept\n"                                      \
    "iifname \"" interface "\" ct state related meta l4proto icmp accept\n"                        \
    "iifname \"" interface "\" ct state related meta l4proto ipv6-icmp accept\n" REFUSE(           \
        "iifname \"" interface "\"")

static void all_of_an_interface_is_led_to_its_listener_or_refused(void **state) {
    (void)state;
    rules_are(
        "listen transparent 0.0.0.0:3129 { sandbox a; interface tap0 }",
        "spoofed:\nredirected:\n"
        "iifname \"tap0\" meta nfproto ipv4 meta l4proto tcp redirect to :3129\n"
        "refused:\n"
        "iifname \"tap0\" meta nfproto ipv4 ct status dnat tcp dport 3129 accept\n" LET_THROUGH(
            "tap0") REFUSE("iifname \"tap0\"") KEEP("iifname \"tap0\"", "icmp"));
}

static void sources_are_told_apart_and_others_are_dropped(void **state) {
    (void)state;
    rules_are(
        "listen transparent 10.0.0.1:1 { sandbox a; interface br0; source 10.0.0.2 fd00::2 }\n"
        "listen transparent [fd00::1]:2 { sandbox b; interface br0; source fd00::/64 }\n",
        "spoofed:\n"
        "iifname \"br0\" ip saddr 10.0.0.2 accept\n"
        "iifname \"br0\" ip6 saddr fd00::/64 accept\n"
        "iifname \"br0\" ip6 saddr fe80::/10 meta l4proto ipv6-icmp accept\n"
        "iifname \"br0\" ip6 saddr :: meta l4proto ipv6-icmp accept\n"
        "iifname \"br0\" drop\n"
        "redirected:\n"
        "iifname \"br0\" ip saddr 10.0.0.2 meta l4proto tcp dnat ip to 10.0.0.1:1\n"
        "iifname \"br0\" ip6 saddr fd00::/64 meta l4proto tcp dnat ip6 to [fd00::1]:2\n"
        "refused:\n"
        "iifname \"br0\" ip saddr 10.0.0.2 ct status dnat ip daddr 10.0.0.1 tcp dport 1 accept\n"
        "iifname \"br0\" ip6 saddr fd00::/64 ct status dnat ip6 daddr fd00::1 tcp dport 2 "
        "accept\n" LET_THROUGH("br0") "iifname \"br0\" ct state related meta l4proto ipv6-icmp "
                                      "accept\n" REFUSE("iifname \"br0\"") KEEP_BOTH("br0"));
}

static void a_port_of_a_bridge_has_its_sources_and_no_neighbours(void **state) {
    (void)state;
    rules_are(
        "listen tcp 10.0.0.1:1 { sandbox a; interface br0; port tap0; source 10.0.0.2 fd00::2 }\n"
        "listen tcp [fd00::1]:1 { sandbox a; interface br0; port tap0; source fd00::2 }\n",
        "spoofed:\n"
        "iifname \"br0\" ip saddr 10.0.0.2 accept\n"
        "iifname \"br0\" ip6 saddr fd00::2 accept\n"
        "iifname \"br0\" ip6 saddr fe80::/10 meta l4proto ipv6-icmp accept\n"
        "iifname \"br0\" ip6 saddr :: meta l4proto ipv6-icmp accept\n"
        "iifname \"br0\" drop\n"
        "redirected:\n"
        "iifname \"br0\" ip saddr 10.0.0.2 ip daddr 10.0.0.1 tcp dport 1 accept\n"
        "iifname \"br0\" ip6 saddr fd00::2 ip6 daddr fd00::1 tcp dport 1 accept\n"
        "refused:\n"
        "iifname \"br0\" ip saddr 10.0.0.2 ip daddr 10.0.0.1 tcp dport 1 accept\n"
        "iifname \"br0\" ip6 saddr fd00::2 ip6 daddr fd00::1 tcp dport 1 accept\n" LET_THROUGH(
            "br0") "iifname \"br0\" ct state related meta l4proto ipv6-icmp accept\n" REFUSE("iifna"
                                                                                             "me "
                                                                                             "\"br0"
                                                                                             "\"")
            KEEP_BOTH("br0") "ports:\n"
                             "iifname \"tap0\" ip saddr 10.0.0.2 accept\n"
                             "iifname \"tap0\" arp saddr ip 10.0.0.2 accept\n"
                             "iifname \"tap0\" ip6 saddr fd00::2 accept\n"
                             "iifname \"tap0\" ip6 saddr fe80::/10 meta l4proto "
                             "ipv6-icmp accept\n"
                             "iifname \"tap0\" ip6 saddr :: meta l4proto ipv6-icmp "
                             "accept\n"
                             "iifname \"tap0\" drop\n"
                             "between:\n"
                             "iifname \"tap0\" drop\n"
                             "oifname \"tap0\" drop\n");
}

/* Whatever the order of the lines: names before connections, the proxy before both. */
static void names_and_the_proxy_come_before_all_connections(void **state) {
    (void)state;
    rules_are("listen transparent 0.0.0.0:1 { sandbox a; source 10.0.0.2 }\n"
              "listen dns 0.0.0.0:5300 { sandbox a; source 10.0.0.2 }\n"
              "listen tcp 10.0.0.1:3128 { sandbox a; source 10.0.0.2 }\n"
              "listen tcp 127.0.0.1:3128 { sandbox b }\n",
              "spoofed:\n"
              "redirected:\n"
              "ip saddr 10.0.0.2 ip daddr 10.0.0.1 tcp dport 3128 accept\n"
              "ip saddr 10.0.0.2 tcp dport 53 redirect to :5300\n"
              "ip saddr 10.0.0.2 udp dport 53 redirect to :5300\n"
              "ip saddr 10.0.0.2 meta l4proto tcp redirect to :1\n"
              "refused:\n"
              "ip saddr 10.0.0.2 ct status dnat tcp dport 1 accept\n"
              "ip saddr 10.0.0.2 ct status dnat tcp dport 5300 accept\n"
              "ip saddr 10.0.0.2 ct status dnat udp dport 5300 accept\n"
              "ip saddr 10.0.0.2 ip daddr 10.0.0.1 tcp dport 3128 accept\n"
              "ip saddr 10.0.0.2 ct state established accept\n"
              "ip saddr 10.0.0.2 ct state related meta l4proto icmp accept\n" REFUSE(
                  "ip saddr 10.0.0.2") KEEP("ip saddr 10.0.0.2", "icmp"));
}

/* What is asked of the listener itself is led nowhere; its address tells the family. */
static void a_listener_for_names_at_port_53_can_be_asked_itself(void **state) {
    (void)state;
    rules_are("listen dns 10.0.0.1:53 { sandbox a; interface tap0 }\n"
              "listen dns [::]:53 { sandbox a; interface tap0 }\n",
              "spoofed:\n"
              "redirected:\n"
              "iifname \"tap0\" meta nfproto ipv4 tcp dport 53 dnat ip to 10.0.0.1:53\n"
              "iifname \"tap0\" meta nfproto ipv4 udp dport 53 dnat ip to 10.0.0.1:53\n"
              "iifname \"tap0\" meta nfproto ipv6 tcp dport 53 redirect to :53\n"
              "iifname \"tap0\" meta nfproto ipv6 udp dport 53 redirect to :53\n"
              "refused:\n"
              "iifname \"tap0\" ip daddr 10.0.0.1 tcp dport 53 accept\n"
              "iifname \"tap0\" ip daddr 10.0.0.1 udp dport 53 accept\n"
              "iifname \"tap0\" meta nfproto ipv6 tcp dport 53 accept\n"
              "iifname \"tap0\" meta nfproto ipv6 udp dport 53 accept\n" LET_THROUGH(
                  "tap0") "iifname \"tap0\" ct state related meta l4proto ipv6-icmp "
                          "accept\n" REFUSE("iifname \"tap0\"") KEEP_BOTH("tap0"));
}

/* Behind what is asked of the host itself, before what answers to it. */
static void tproxy_takes_all_that_a_sandbox_begins(void **state) {
    (void)state;
    rules_are("listen transparent 0.0.0.0:1 { sandbox a; interface tap0; tproxy }\n"
              "listen transparent [fd00::1]:2 { sandbox a; interface tap0; source fd00::2; tproxy "
              "}\n"
              "listen dns 0.0.0.0:5300 { sandbox a; interface tap0 }\n"
              "listen tcp 10.0.0.1:3128 { sandbox a; interface tap0 }\n",
              "spoofed:\n"
              "iifname \"tap0\" ip6 saddr fd00::2 accept\n"
              "iifname \"tap0\" ip6 saddr fe80::/10 meta l4proto ipv6-icmp accept\n"
              "iifname \"tap0\" ip6 saddr :: meta l4proto ipv6-icmp accept\n"
              "iifname \"tap0\" drop\n"
              "redirected:\n"
              "iifname \"tap0\" ip daddr 10.0.0.1 tcp dport 3128 accept\n"
              "iifname \"tap0\" meta nfproto ipv4 tcp dport 53 redirect to :5300\n"
              "iifname \"tap0\" meta nfproto ipv4 udp dport 53 redirect to :5300\n"
              "refused:\n"
              "iifname \"tap0\" meta nfproto ipv4 ct status dnat tcp dport 5300 accept\n"
              "iifname \"tap0\" meta nfproto ipv4 ct status dnat udp dport 5300 accept\n"
              "iifname \"tap0\" ip daddr 10.0.0.1 tcp dport 3128 accept\n"
              "iifname \"tap0\" meta nfproto ipv4 meta l4proto tcp ct direction original "
              "tproxy ip to :1 meta mark set 0x00006578 accept\n"
              "iifname \"tap0\" ip6 saddr fd00::2 meta l4proto tcp ct direction original "
              "tproxy ip6 to [fd00::1]:2 meta mark set 0x00006578 accept\n" LET_THROUGH(
                  "tap0") "iifname \"tap0\" ct state related meta l4proto ipv6-icmp "
                          "accept\n" REFUSE("iifname \"tap0\"") KEEP_BOTH("tap0"));
}

/* What comes after, or in greater number, is refused all the same. */
static void what_is_refused_of_udp_is_logged_to_the_group(void **state) {
    (void)state;
    rules_are("listen transparent 0.0.0.0:1 { sandbox a; interface tap0; nflog 7 }\n",
              "spoofed:\nredirected:\n"
              "iifname \"tap0\" meta nfproto ipv4 meta l4proto tcp redirect to :1\n"
              "refused:\n"
              "iifname \"tap0\" meta nfproto ipv4 ct status dnat tcp dport 1 accept\n" LET_THROUGH(
                  "tap0") "iifname \"tap0\" meta nfproto ipv4 meta l4proto udp limit rate "
                          "50/second burst 5 packets log "
                          "group 7 snaplen 68\n" REFUSE("iifname \"tap0\"")
                              KEEP("iifname \"tap0\"", "icmp"));
}

static void routes_are_for_the_families_that_tproxy_takes(void **state) {
    static const struct {
        const char *listeners;
        bool marks4, marks6;
    } cases[] = {
        {"listen transparent 0.0.0.0:1 { sandbox a; interface v }", false, false},
        {"listen transparent 0.0.0.0:1 { sandbox a; interface v; tproxy }", true, false},
        {"listen transparent 0.0.0.0:1 { sandbox a; interface v }\n"
         "listen transparent [::]:1 { sandbox a; interface v; tproxy }",
         false, true},
        /* Rules of somebody's own. */
        {"listen transparent 0.0.0.0:1 { sandbox a; tproxy }\n"
         "listen dns [::]:1 { sandbox a; interface v }",
         false, false},
    };
    struct world w;
    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        assert_int_equal(make(&w, cases[i].listeners), 0);
        assert_int_equal(w.rules.marks4, cases[i].marks4);
        assert_int_equal(w.rules.marks6, cases[i].marks6);
        unmake(&w);
    }
}

static void a_rule_is_what_nft_lists(void **state) {
    static const char wanted[] =
        "[{\"match\":{\"op\":\"==\",\"left\":{\"meta\":{\"key\":\"iifname\"}},\"right\":\"v\"}},"
        "{\"match\":{\"op\":\"==\",\"left\":{\"payload\":{\"protocol\":\"ip\",\"field\":\"saddr\"}}"
        ","
        "\"right\":{\"prefix\":{\"addr\":\"10.0.0.0\",\"len\":24}}}},{\"accept\":null}]";
    struct world w;
    (void)state;
    assert_int_equal(
        make(&w, "listen dns 0.0.0.0:53 { sandbox a; interface v; source 10.0.0.0/24 }"), 0);
    char *text = json_dumps(w.rules.first->expr, JSON_COMPACT);
    assert_string_equal(text, wanted);
    free(text);
    unmake(&w);
}

static void there_is_nothing_to_lead_to_a_listener_without_interface_and_source(void **state) {
    static const char *const none[] = {
        "listen tcp 127.0.0.1:1 { sandbox a }", "listen unix s { sandbox a; uid 1 }",
        "listen tcp 10.0.0.1:1 { sandbox a; proxy-protocol 10.0.0.2 }"};
    struct world w;
    (void)state;
    for (size_t i = 0; i < sizeof none / sizeof *none; i++) {
        assert_int_equal(make(&w, none[i]), ERR_MISSING);
        unmake(&w);
    }
}

static void nothing_of_an_interface_is_for_loopback(void **state) {
    struct world w;
    (void)state;
    assert_int_equal(make(&w, "listen dns [::]:53 { sandbox a; interface v }\n"
                              "listen transparent [::1]:1 { sandbox a; interface v }"),
                     ERR_BAD);
    assert_int_equal(w.bad->at.line, 3);
    unmake(&w);
    /* TPROXY leaves the packet's destination as it is. */
    assert_int_equal(make(&w, "listen transparent [::1]:1 { sandbox a; interface v; tproxy }"), 0);
    unmake(&w);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(all_of_an_interface_is_led_to_its_listener_or_refused),
        cmocka_unit_test(sources_are_told_apart_and_others_are_dropped),
        cmocka_unit_test(a_port_of_a_bridge_has_its_sources_and_no_neighbours),
        cmocka_unit_test(names_and_the_proxy_come_before_all_connections),
        cmocka_unit_test(a_listener_for_names_at_port_53_can_be_asked_itself),
        cmocka_unit_test(tproxy_takes_all_that_a_sandbox_begins),
        cmocka_unit_test(what_is_refused_of_udp_is_logged_to_the_group),
        cmocka_unit_test(routes_are_for_the_families_that_tproxy_takes),
        cmocka_unit_test(a_rule_is_what_nft_lists),
        cmocka_unit_test(there_is_nothing_to_lead_to_a_listener_without_interface_and_source),
        cmocka_unit_test(nothing_of_an_interface_is_for_loopback),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
