#include "tests/unit/policy_texts.h"

#include "daemon/config.h"

#include <stdio.h>
#include <stdlib.h>

/* What every configuration needs, in three lines. */
#define BASE "state /var/lib/exeat\npolicy policy\nlisten tcp 127.0.0.1:3128 { sandbox a }\n"

static struct config read_config(const char *text) {
    struct config c;
    if (config_read(view_str(text), "/etc/exeat/exeat.conf", &c, &errors) != 0)
        fail_with_errors(text);
    return c;
}

static void the_least_configuration_has_defaults(void **state) {
    (void)state;
    struct config c = read_config(BASE);
    struct limits usual;
    limits_default(&usual);
    assert_string_equal(c.state, "/var/lib/exeat");
    assert_string_equal(c.policy, "/etc/exeat/policy");
    assert_string_equal(c.control, "/var/lib/exeat/control.sock");
    assert_string_equal(c.vault_key, "/var/lib/exeat/vault.key");
    assert_true(c.trust_system);
    assert_null(c.trust);
    assert_null(c.geo_country);
    assert_null(c.geo_asn);
    assert_int_equal(c.n_resolvers, 0);
    assert_int_equal(c.first_uid, 0);
    assert_false(c.audit_durable);
    assert_false(c.debug);
    assert_false(c.reload_unconfirmed);
    assert_int_equal(c.upstream_proxy.n, 0);
    assert_memory_equal(&c.limits, &usual, sizeof usual);
    assert_int_equal(c.n_listeners, 1);
    assert_int_equal(c.n_lanes, 1);
    config_free(&c);
}

static void relative_paths_are_relative_to_the_configurations_folder(void **state) {
    (void)state;
    static const struct {
        const char *file, *state;
    } cases[] = {{"/etc/exeat/exeat.conf", "/etc/exeat/s"},
                 {"exeat.conf", "s"},
                 {"conf/exeat.conf", "conf/s"},
                 {"./exeat.conf", "./s"}};
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        struct config c;
        assert_int_equal(config_read(VIEW("state s\npolicy /p\n"
                                          "listen unix sock { sandbox a }\n"
                                          "vault key k; trust file t; geo asn g\n"),
                                     cases[i].file, &c, &errors),
                         0);
        size_t folder = strlen(cases[i].state) - 1;
        assert_string_equal(c.state, cases[i].state);
        assert_string_equal(c.policy, "/p");
        assert_string_equal(c.listeners->path + folder, "sock");
        assert_string_equal(c.vault_key + folder, "k");
        assert_string_equal(c.trust->path + folder, "t");
        assert_string_equal(c.geo_asn + folder, "g");
        config_free(&c);
    }
}

/* A file system holds any bytes; what an operator would read differently is refused all the same. */
static void names_of_files_may_have_characters_outside_ascii(void **state) {
    (void)state;
    struct config c = read_config("state \"/home/ren\xc3\xa9/a b\"\npolicy '/p\xff\"q'\n"
                                  "trust file caf\xc3\xa9\nlisten unix /\xc3\xa9 { sandbox a }\n");
    assert_string_equal(c.state, "/home/ren\xc3\xa9/a b");
    assert_string_equal(c.policy, "/p\xff\"q");
    assert_string_equal(c.trust->path, "/etc/exeat/caf\xc3\xa9");
    assert_string_equal(c.listeners->path, "/\xc3\xa9");
    config_free(&c);
}

static void listeners_have_addresses_and_lanes_in_order(void **state) {
    (void)state;
    struct config c =
        read_config("state s; policy p\n"
                    "listen tcp 127.0.0.1:3128 { sandbox a }\n"
                    "listen tcp [::]:3128 { shared b c }\n"
                    "listen unix /run/a.sock { mode 0600; sandbox a; owner games; group games }\n"
                    "listen tcp 0.0.0.0:1 { shared }\n"
                    "listen unix d.sock { sandbox d }\n");
    static const struct {
        bool is_unix;
        uint32_t lane;
        uint16_t port;
        mode_t mode;
    } listeners[] = {{false, 1, 3128, 0660},
                     {false, 2, 3128, 0660},
                     {true, 1, 0, 0600},
                     {false, 3, 1, 0660},
                     {true, 4, 0, 0660}};
    const struct config_listener *l = c.listeners;
    for (size_t i = 0; i < 5; i++, l = l->next) {
        assert_int_equal(l->place == PLACE_UNIX, listeners[i].is_unix);
        assert_int_equal(l->lane, listeners[i].lane);
        assert_int_equal(l->port, listeners[i].port);
        assert_int_equal(l->mode, listeners[i].mode);
    }
    assert_null(l);
    assert_int_equal(c.listeners->next->next->owner, 5); /* as in base-passwd */
    assert_int_equal(c.listeners->next->next->group, 60);
    assert_int_equal(c.listeners->next->next->next->next->owner, NOBODY);
    assert_string_equal(c.listeners->next->next->path, "/run/a.sock");
    static const struct {
        const char *names;
        bool shared, everybody;
    } lanes[] = {{"a", false, false}, {"b c", true, false}, {"", true, true}, {"d", false, false}};
    const struct config_lane *lane = c.lanes;
    for (uint32_t i = 0; i < 4; i++, lane = lane->next) {
        assert_int_equal(lane->id, i + 1);
        assert_true(view_equal(lane->names, view_str(lanes[i].names)));
        assert_int_equal(lane->shared, lanes[i].shared);
        assert_int_equal(lane->everybody, lanes[i].everybody);
    }
    assert_null(lane);
    config_free(&c);
}

static void every_other_word_is_read(void **state) {
    (void)state;
    struct config c = read_config(BASE "control /run/c.sock { uid 1000 1001; uid root }\n"
                                       "resolver 192.0.2.1 192.0.2.2:5353\n"
                                       "resolver 2001:db8::1 [2001:db8::2] [2001:db8::3]:54\n"
                                       "host A.test. 10.0.0.1 ::1; host b.test 10.0.0.2\n"
                                       "upstream-proxy Proxy.test:3128\n"
                                       "geo country c.mmdb; geo asn a.mmdb\n"
                                       "audit durable\n"
                                       "uids 61200 - 61299\n"
                                       "vault key /k\n"
                                       "debug\nreload unconfirmed\n");
    assert_string_equal(c.control, "/run/c.sock");
    assert_int_equal(c.n_control_uids, 3);
    assert_int_equal(c.control_uids[1], 1001);
    static const uint16_t ports[] = {53, 5353, 53, 53, 54};
    assert_int_equal(c.n_resolvers, 5);
    for (size_t i = 0; i < 5; i++) {
        assert_int_equal(c.resolver_ports[i], ports[i]);
        assert_int_equal(c.resolvers[i].family, i < 2 ? 4 : 6);
    }
    assert_true(view_equal(c.hosts->name, VIEW("a.test")));
    assert_int_equal(c.hosts->next->address.family, 6);
    assert_true(view_equal(c.hosts->next->next->name, VIEW("b.test")));
    assert_true(view_equal(c.upstream_proxy, VIEW("proxy.test:3128")));
    assert_string_equal(c.geo_country, "/etc/exeat/c.mmdb");
    assert_string_equal(c.geo_asn, "/etc/exeat/a.mmdb");
    assert_true(c.audit_durable);
    assert_int_equal(c.first_uid, 61200);
    assert_int_equal(c.last_uid, 61299);
    assert_string_equal(c.vault_key, "/k");
    assert_true(c.debug);
    assert_true(c.reload_unconfirmed);
    config_free(&c);
}

static void trust_is_the_systems_or_files_or_both(void **state) {
    (void)state;
    static const struct {
        const char *text;
        bool system;
        const char *files[2];
    } cases[] = {
        {"", true, {NULL}},
        {"trust system", true, {NULL}},
        {"trust file a.pem", false, {"/etc/exeat/a.pem"}},
        {"trust file /b.pem; trust file a.pem", false, {"/b.pem", "/etc/exeat/a.pem"}},
        {"trust file a.pem; trust system; trust file system",
         true,
         {"/etc/exeat/a.pem", "/etc/exeat/system"}},
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        char text[256];
        snprintf(text, sizeof text, "%s%s\n", BASE, cases[i].text);
        struct config c = read_config(text);
        assert_int_equal(c.trust_system, cases[i].system);
        const struct config_trust *t = c.trust;
        for (size_t k = 0; k < 2 && cases[i].files[k]; k++, t = t->next)
            assert_string_equal(t->path, cases[i].files[k]);
        assert_null(t);
        config_free(&c);
    }
}

static void limits_take_units(void **state) {
    (void)state;
    static const struct {
        const char *text;
        enum limit which;
        uint64_t value;
    } cases[] = {{"limit connections 512", LIMIT_CONNECTIONS, 512},
                 {"limit head-bytes 32K", LIMIT_HEAD_BYTES, 32768},
                 {"limit head-bytes 2048", LIMIT_HEAD_BYTES, 2048},
                 {"limit answer-body 2G", LIMIT_ANSWER_BODY, UINT64_C(2) << 30},
                 {"limit request-body 3M", LIMIT_REQUEST_BODY, 3 << 20},
                 {"limit idle-time 2m", LIMIT_IDLE_TIME, 120},
                 {"limit idle-time 90s", LIMIT_IDLE_TIME, 90},
                 {"limit idle-time 5000ms", LIMIT_IDLE_TIME, 5},
                 {"limit idle-time 7", LIMIT_IDLE_TIME, 7},
                 {"limit leaf-days 9d", LIMIT_LEAF_DAYS, 9}};
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        char text[256];
        snprintf(text, sizeof text, "%s%s\n", BASE, cases[i].text);
        struct config c = read_config(text);
        assert_int_equal(c.limits.v[cases[i].which], cases[i].value);
        config_free(&c);
    }
}

static void a_dns_listener_is_two_and_gives_out_private_addresses(void **state) {
    struct config c = read_config("state s; policy p\nlisten dns 0.0.0.0:53 { sandbox a }\n"
                                  "listen transparent 0.0.0.0:443 { sandbox a }\n"
                                  "dns-addresses 10.200.0.0/16\n");
    static const enum way_in ways[] = {WAY_DNS_TCP, WAY_DNS_UDP, WAY_TRANSPARENT};
    const struct config_listener *l = c.listeners;
    (void)state;
    for (size_t i = 0; i < 3; i++, l = l->next) {
        assert_int_equal(l->way, ways[i]);
        assert_int_equal(l->lane, 1);
    }
    assert_null(l);
    assert_int_equal(c.synthetic[0].bits, 16);
    assert_int_equal(c.synthetic[1].base.family, 0);
    config_free(&c);
    c = read_config("state s; policy p; listen tcp 127.0.0.1:1 { sandbox a }\n");
    assert_int_equal(c.synthetic[0].bits, 15);
    assert_int_equal(c.synthetic[1].base.family, 6);
    config_free(&c);
}

static void a_listener_says_whom_it_lets_in(void **state) {
    static const struct {
        const char *listen, *admit;
        enum config_place place;
    } cases[] = {
        {"unix /s { sandbox a; uid 0 1000 }", "uid=0,1000", PLACE_UNIX},
        {"unix /s { sandbox a; uid 1000 root }", "uid=1000,0", PLACE_UNIX},
        {"vsock 3128 { cid 3; sandbox a }", "cid=3", PLACE_VSOCK},
        {"tcp 10.0.0.1:1 { shared; proxy-protocol 10.0.0.5 FD00::/64 }",
         "relay=10.0.0.5/32,fd00::/64", PLACE_INTERNET},
        {"dns 10.0.0.1:53 { sandbox a; source 10.0.0.2 FD00::/64 }", "source=10.0.0.2/32,fd00::/64",
         PLACE_INTERNET},
        {"tcp 10.0.0.1:1 { sandbox a }", "", PLACE_INTERNET},
    };
    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        char text[256];
        snprintf(text, sizeof text, "state s; policy p; listen %s\n", cases[i].listen);
        struct config c = read_config(text);
        assert_true(view_equal(c.listeners->admit, view_str(cases[i].admit)));
        assert_int_equal(c.listeners->place, cases[i].place);
        assert_int_equal(c.listeners->vsock_port, cases[i].place == PLACE_VSOCK ? 3128 : 0);
        config_free(&c);
    }
}

static void a_listener_with_a_group_has_a_second_one_that_hears_it(void **state) {
    struct config c =
        read_config("state s; policy p\nlisten transparent 0.0.0.0:1 { sandbox a; interface "
                    "v; source 10.0.0.2; tproxy; nflog 7 }\n");
    const struct config_listener *first = c.listeners, *second = first->next;
    struct buf own;
    (void)state;
    assert_int_equal(c.n_listeners, 2);
    assert_int_equal(c.n_lanes, 1);
    assert_int_equal(first->way, WAY_TRANSPARENT);
    assert_int_equal(second->way, WAY_LOGGED);
    assert_int_equal(second->lane, first->lane);
    assert_int_equal(first->nflog, 7);
    assert_int_equal(second->nflog, 7);
    /* It is no socket of an address, and what it hears was looked at by rules. */
    assert_true(view_is_empty(second->admit) && !second->interface[0] && !second->tproxy);
    buf_init(&own, 1024);
    config_put_own_addresses(&c, &own);
    struct reader r = reader_of(buf_view(&own));
    assert_true(view_equal(read_block(&r, 64), VIEW("0.0.0.0:1")) && read_done(&r));
    buf_free(&own);
    config_free(&c);
}

static void the_same_port_of_two_interfaces_is_two_places(void **state) {
    struct config c =
        read_config("state s; policy p\n"
                    "listen transparent 0.0.0.0:1 { sandbox a; interface veth-a }\n"
                    "listen transparent 0.0.0.0:1 { sandbox b; interface veth-b.7; tproxy }\n");
    (void)state;
    assert_string_equal(c.listeners->interface, "veth-a");
    assert_string_equal(c.listeners->next->interface, "veth-b.7");
    assert_false(c.listeners->tproxy);
    assert_true(c.listeners->next->tproxy);
    assert_int_equal(c.n_lanes, 2);
    config_free(&c);
}

static const struct bad_case bad_cases[] = {
    {"policy p\nlisten tcp 127.0.0.1:1 { sandbox a }", 2, 37, "'state DIR' is missing"},
    {"state s\nlisten tcp 127.0.0.1:1 { sandbox a }", 2, 37, "'policy FILE' is missing"},
    {"state s; policy p", 1, 18, "neither 'listen' nor 'attach'"},
    {BASE "attach", 4, 7, "expected the path of a Unix socket"},
    {BASE "attach a\nattach b", 5, 1, "a second 'attach'"},
    {BASE "attach a { uid no-such_one b }", 4, 16, "no user 'no-such_one' in /etc/passwd"},
    {BASE "attach a { gid no-such_one b }", 4, 16, "no group 'no-such_one' in /etc/group"},
    {BASE "attach a { uid 1.5 b }", 4, 16, "expected a user's name or id"},
    {BASE "attach a { uid 4294967295 b }", 4, 16, "expected a user's name or id"},
    {BASE "attach a { uid root a; uid 0 b }", 4, 24, "the same user as in line 4"},
    {BASE "attach a { uid root }", 4, 21, "expected the name of a sandbox"},
    {BASE "attach a { uid 1 }", 4, 18, "expected the name of a sandbox"},
    {BASE "attach a { gid 1 a/b }", 4, 18, "is no name"},
    {BASE "attach a { uid 1 a; uid 1 b }", 4, 21, "the same user as in line 4"},
    {BASE "attach a { mode 8 }", 4, 17, "is no mode"},
    {BASE "attach a { shared }", 4, 12, "attach"},
    {BASE "stat x", 4, 1, "did you mean 'state'?"},
    {BASE "state x", 4, 1, "a second 'state'"},
    {BASE "debug yes", 4, 7, "expected the end of the statement"},
    {BASE "reload always", 4, 8, "expected 'confirmed' or 'unconfirmed'"},
    {BASE "reload confirmed\nreload unconfirmed", 5, 1, "a second 'reload'"},
    {BASE "listen udp 127.0.0.1:1 { sandbox b }", 4, 8,
     "expected 'tcp', 'unix', 'vsock', 'transparent' or 'dns'"},
    {BASE "listen transparent 127.0.0.1:1 { shared b c }", 4, 1, "needs a 'sandbox NAME'"},
    {BASE "listen dns 127.0.0.1:53 { shared }", 4, 1, "needs a 'sandbox NAME'"},
    {BASE "listen dns 127.0.0.1:53 { sandbox b; mode 0600 }", 4, 38, "is for Unix sockets"},
    {BASE "dns-addresses 198.18.0.0/25", 4, 15, "is too small"},
    {BASE "dns-addresses fd00::/64 fd01::/64", 4, 25, "is a second one of its family"},
    {BASE "dns-addresses 8.8.8.0/24", 4, 15, "is no range for private use"},
    {BASE "dns-addresses 127.0.0.0/8", 4, 15, "is no range for private use"},
    {BASE "dns-addresses x", 4, 15, "is no ADDRESS/BITS"},
    {BASE "listen tcp localhost:1 { sandbox b }", 4, 12, "is no ADDRESS:PORT"},
    {BASE "listen tcp 127.0.0.1 { sandbox b }", 4, 12, "is no ADDRESS:PORT"},
    {BASE "listen tcp 127.0.0.1:0 { sandbox b }", 4, 12, "is no ADDRESS:PORT"},
    {BASE "listen tcp ::1:80 { sandbox b }", 4, 12, "is no ADDRESS:PORT"},
    {BASE "listen tcp 127.0.0.1:3128 { sandbox b }", 4, 1, "the same listener as in line 3"},
    {BASE "listen tcp 127.0.0.1:1 { }", 4, 1, "says neither 'sandbox NAME' nor 'shared'"},
    {BASE "listen tcp 127.0.0.1:1", 4, 23, "expected '{'"},
    {BASE "listen tcp 127.0.0.1:1 { sandbox b; sandbox c }", 4, 37,
     "one 'sandbox' or one 'shared'"},
    {BASE "listen tcp 127.0.0.1:1 { sandbox b; shared }", 4, 37, "one 'sandbox' or one 'shared'"},
    {BASE "listen tcp 127.0.0.1:1 { sandbox A }", 4, 34, "has a lane already, from line 3"},
    {BASE "listen tcp 127.0.0.1:1 { shared b a }", 4, 35, "has a lane already, from line 3"},
    {BASE "listen tcp 127.0.0.1:1 { shared b B }", 4, 35, "has a lane already, from line 4"},
    {BASE "listen tcp 127.0.0.1:1 { shared b }\nlisten tcp 127.0.0.1:2 { sandbox b }", 5, 34,
     "has a lane already"},
    {BASE "listen tcp 127.0.0.1:1 { shared }\nlisten tcp 127.0.0.1:2 { shared }", 5, 26,
     "a second 'shared' without names"},
    {BASE "listen tcp 127.0.0.1:1 { sandbox a/b }", 4, 34, "is no name"},
    {BASE "listen tcp 127.0.0.1:1 { sandbox b; mode 0600 }", 4, 37, "for Unix sockets"},
    {BASE "listen tcp 127.0.0.1:1 { sandbox b; group 7 }", 4, 37, "'group' is for Unix sockets"},
    {BASE "listen unix x { sandbox b; owner -me }", 4, 34, "a user's name or id"},
    {BASE "listen unix x { sandbox b; mode 999 }", 4, 33, "is no mode"},
    {BASE "listen unix x { sandbox b; mode 1777 }", 4, 33, "is no mode"},
    {BASE "listen tcp 127.0.0.1:1 { sandbox b; uid 7 }", 4, 37, "'uid' is for Unix sockets"},
    {BASE "listen unix x { sandbox b; uid }", 4, 32, "expected a user's name or id"},
    {BASE "listen unix x { sandbox b; uid 1 no-such }", 4, 34, "no user 'no-such' in /etc/passwd"},
    {BASE "listen unix x { sandbox b; owner no-such }", 4, 34, "no user 'no-such' in"},
    {BASE "listen unix x { sandbox b; group no-such }", 4, 34, "no group 'no-such' in"},
    {BASE "listen unix x { sandbox b; uid 1; uid 2 }", 4, 35, "a second 'uid'"},
    {BASE "listen unix x { sandbox b; cid 3 }", 4, 28, "'cid' is for vsock"},
    {BASE "listen unix x { sandbox b; proxy-protocol 10.0.0.1 }", 4, 28, "is for 'listen tcp'"},
    {BASE "listen transparent 127.0.0.1:1 { sandbox b; proxy-protocol 10.0.0.1 }", 4, 45,
     "is for 'listen tcp'"},
    {BASE "listen tcp 127.0.0.1:1 { sandbox b; proxy-protocol lb.test }", 4, 52,
     "is no ADDRESS or ADDRESS/BITS"},
    {BASE "listen tcp 127.0.0.1:1 { sandbox b; proxy-protocol 10.0.0.1/8 }", 4, 52,
     "is no ADDRESS or ADDRESS/BITS"},
    {BASE "listen tcp 127.0.0.1:1 { sandbox b; proxy-protocol }", 4, 52,
     "expected the address of a relay"},
    {BASE "listen tcp 127.0.0.1:1 { sandbox b; source a.test }", 4, 44, "is no ADDRESS"},
    {BASE "listen tcp 127.0.0.1:1 { sandbox b; source }", 4, 44, "expected an address"},
    {BASE "listen unix x { sandbox b; source ::1 }", 4, 28, "'source' is for TCP and UDP"},
    {BASE "listen tcp 127.0.0.1:1 { sandbox b; source ::1; proxy-protocol ::2 }", 4, 64,
     "one of 'source' and 'proxy-protocol'"},
    {BASE "listen tcp 127.0.0.1:1 { sandbox b; tproxy }", 4, 37,
     "'tproxy' is for 'listen transparent'"},
    {BASE "listen dns 127.0.0.1:1 { sandbox b; tproxy }", 4, 37,
     "'tproxy' is for 'listen transparent'"},
    {BASE "listen dns 127.0.0.1:1 { sandbox b; nflog 1 }", 4, 37,
     "'nflog' is for 'listen transparent'"},
    {BASE "listen transparent 0.0.0.0:1 { sandbox b; interface i; nflog 0 }", 4, 62,
     "a group of nfnetlink_log"},
    {BASE "listen transparent 0.0.0.0:1 { sandbox b; interface i; nflog 65536 }", 4, 62,
     "a group of nfnetlink_log"},
    {BASE "listen transparent 0.0.0.0:1 { sandbox b; nflog 1 }", 4, 1,
     "that takes 'interface' or 'source'"},
    {BASE "listen transparent 0.0.0.0:1 { sandbox b; interface i; nflog 1 }\n"
          "listen transparent 0.0.0.0:2 { sandbox c; interface j; nflog 1 }",
     5, 1, "the same listener as in line 4"},
    {BASE "listen tcp 127.0.0.1:1 { sandbox b; interface a/b }", 4, 47,
     "is no name of an interface"},
    {BASE "listen tcp 127.0.0.1:1 { sandbox b; interface abcdefghijklmnop }", 4, 47,
     "is no name of an interface"},
    {BASE "listen tcp 0.0.0.0:1 { sandbox b; port p; source 10.0.0.2 }", 4, 1, "'port' says which"},
    {BASE "listen tcp 0.0.0.0:1 { sandbox b; port p; interface i }", 4, 1, "'port' says which"},
    /* Relays are no sources: no rule of the bridge would be made. */
    {BASE "listen tcp 0.0.0.0:1 { sandbox b; port p; interface i; proxy-protocol 10.0.0.2 }", 4, 1,
     "'port' says which"},
    {BASE "listen tcp 0.0.0.0:1 { sandbox b; interface i; source ::1 fd00::/64 }", 4, 1,
     "no 'source' is of the address family"},
    {BASE "listen dns [::]:1 { sandbox b; source 10.0.0.2 }", 4, 1,
     "no 'source' is of the address family"},
    {BASE "listen tcp 0.0.0.0:1 { sandbox b; port a/b }", 4, 40, "is no name of an interface"},
    {BASE "listen unix x { sandbox b; interface a }", 4, 28, "'interface' is for TCP and UDP"},
    {BASE "listen tcp 0.0.0.0:1 { sandbox b }\nlisten tcp 0.0.0.0:1 { sandbox c; interface a }", 5,
     1, "the same listener as in line 4"},
    {BASE "listen tcp 0.0.0.0:1 { sandbox b; interface a }\nlisten tcp 0.0.0.0:1 { sandbox c; "
          "interface a }",
     5, 1, "the same listener as in line 4"},
    {BASE "listen vsock 3128 { sandbox b }", 4, 1, "'cid N'"},
    {BASE "listen vsock 3128 { sandbox b; cid 0 }", 4, 36, "the CID of a guest"},
    {BASE "listen vsock 3128 { sandbox b; cid 3 4294967295 }", 4, 38, "the CID of a guest"},
    {BASE "listen vsock 0 { sandbox b; cid 3 }", 4, 14, "the port of a vsock listener"},
    {BASE "listen vsock 1 { sandbox b; cid 3 }\nlisten vsock 1 { sandbox c; cid 4 }", 5, 1,
     "the same listener as in line 4"},
    {BASE "control c { uid -1 }", 4, 17, "expected a user's name or id"},
    {BASE "control c { uid no-such }", 4, 17, "there is no user 'no-such' in /etc/passwd: one of"},
    {BASE "control c { gid 1 }", 4, 13, "did you mean 'uid'?"},
    {BASE "trust web", 4, 7, "expected 'system' or 'file'"},
    {BASE "trust file", 4, 11, "expected a file"},
    {BASE "trust system file x", 4, 14, "expected the end of the statement"},
    {BASE "trust system\ntrust system", 5, 1, "a second 'trust system'"},
    {BASE "trust file x; trust file ./x; trust file x", 4, 42, "the same file twice"},
    {BASE "resolver dns.test", 4, 10, "is no ADDRESS"},
    {BASE "resolver 1.2.3.4:0", 4, 10, "is no ADDRESS"},
    {BASE "resolver 1.1.1.1 1.1.1.2 1.1.1.3 1.1.1.4 1.1.1.5 1.1.1.6 1.1.1.7 1.1.1.8 1.1.1.9", 4, 74,
     "more than 8 resolvers"},
    {BASE "host a..test 10.0.0.1", 4, 6, "is no host name"},
    {BASE "host 10.0.0.1 10.0.0.1", 4, 6, "is no host name"},
    {BASE "host a.test 10.0.0", 4, 13, "is no address"},
    {BASE "host a.test", 4, 12, "expected an address"},
    {BASE "host a.test 10.0.0.1\nhost A.test 10.0.0.1", 5, 13, "twice"},
    {BASE "upstream-proxy proxy.test", 4, 16, "is no HOST:PORT"},
    {BASE "geo city x", 4, 5, "expected 'country' or 'asn'"},
    {BASE "geo asn x; geo asn y", 4, 16, "a second 'geo asn'"},
    {BASE "audit disk", 4, 7, "expected 'durable'"},
    {BASE "uids 1000-2000", 4, 6, "expected a user id"},
    {BASE "uids 1000 2000", 4, 11, "expected '-'"},
    {BASE "uids 2000 - 1000", 4, 1, "the last user id comes before the first"},
    {BASE "uids 0 - 10", 4, 6, "expected a user id"},
    {BASE "vault kee k", 4, 7, "expected 'key'"},
    {BASE "limit conections 5", 4, 7, "did you mean 'connections'?"},
    {BASE "limit connections 0", 4, 19, "connections is 1 to 100000, not '0'"},
    {BASE "limit head-bytes 1G", 4, 18, "head-bytes is 1024 to 262144 bytes, not '1G'"},
    {BASE "limit head-bytes 99999999999999999999999", 4, 18, "head-bytes is 1024 to"},
    {BASE "limit head-bytes 18014398509481985K", 4, 18, "head-bytes is 1024 to"},
    {BASE "limit connections 5K", 4, 19, "connections is 1 to"},
    {BASE "limit idle-time 1500ms", 4, 17, "idle-time is 1 to"},
    {BASE "limit idle-time K", 4, 17, "idle-time is 1 to"},
    {BASE "limit connections 5\nlimit connections 6", 5, 1, "twice, the first is in line 4"},
};

static void these_configurations_are_refused_and_say_where_and_why(void **state) {
    (void)state;
    for (size_t i = 0; i < sizeof bad_cases / sizeof bad_cases[0]; i++) {
        const struct bad_case *b = &bad_cases[i];
        struct config c;
        if (config_read(view_str(b->text), "exeat.conf", &c, &errors) != ERR_BAD)
            fail_msg("must be refused: %s", b->text);
        check_error(b);
        assert_null(c.listeners);
    }
}

static void what_only_a_start_takes_over_is_named(void **state) {
    static const char least[] = "state /s\npolicy p\nlisten tcp 127.0.0.1:3128 { sandbox a }\n";
    static const struct {
        const char *text, *words;
    } cases[] = {
        {"state /s\npolicy other\ntrust system\nlisten tcp 127.0.0.1:3129 { sandbox a }\n"
         "limit connections 7\nreload unconfirmed\naudit durable\nresolver 192.0.2.53\n",
         ""},
        {"state /t\ncontrol /s/control.sock\nvault key /s/vault.key\npolicy p\n"
         "listen tcp 127.0.0.1:3128 { sandbox a }\n",
         "state"},
        {"state /t\npolicy p\nlisten tcp 127.0.0.1:3128 { sandbox a }\n",
         "state, control, vault key"},
        {"state /s\ncontrol /s/control.sock { uid 7 }\npolicy p\nattach /a { uid 7 a }\n"
         "geo asn /g\nuids 100 - 200\ndebug\n",
         "control, attach, geo, uids, debug"},
    };
    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct config running, read;
        struct buf out;
        buf_init(&out, 256);
        assert_int_equal(config_read(view_str(least), "c", &running, &errors), 0);
        assert_int_equal(config_read(view_str(cases[i].text), "c", &read, &errors), 0);
        config_put_kept(&running, &read, &out);
        assert_true(view_equal(buf_view(&out), view_str(cases[i].words)));
        buf_free(&out);
        config_free(&read);
        config_free(&running);
    }
}

static void all_errors_are_met_in_one_run(void **state) {
    (void)state;
    struct config c;
    assert_int_equal(config_read(VIEW("stat x\nlisten tcp a { who b\nmode 1 }\nuids 5\n}\n"),
                                 "exeat.conf", &c, &errors),
                     ERR_BAD);
    static const uint32_t lines[] = {1, 2, 2, 3, 4, 5};
    assert_int_equal(errors.total, 6);
    for (size_t i = 0; i < 6; i++)
        assert_int_equal(errors.at[i].at.line, lines[i]);
}

static void a_socket_path_fits_the_kernel(void **state) {
    (void)state;
    char path[110], text[512];
    memset(path, 'a', sizeof path);
    path[0] = '/';
    for (size_t n = 107; n <= 108; n++) {
        struct config c;
        snprintf(text, sizeof text, "%slisten unix %.*s { sandbox b }\n", BASE, (int)n, path);
        int err = config_read(view_str(text), "c", &c, &errors);
        assert_int_equal(err, n == 107 ? 0 : ERR_BAD);
        config_free(&c);
    }
    struct config c;
    snprintf(text, sizeof text, "state %.*s\npolicy p\nlisten tcp 127.0.0.1:1 { sandbox b }\n", 100,
             path);
    assert_int_equal(config_read(view_str(text), "c", &c, &errors), ERR_BAD);
    assert_non_null(strstr(errors.at[0].text, "at most 107 bytes"));
}

/* ---- with a policy ---- */

static void a_lane_for_everybody_has_who_has_no_other(void **state) {
    (void)state;
    struct config c = read_config(BASE "listen tcp 127.0.0.1:2 { shared }\n"
                                       "listen tcp 127.0.0.1:3 { shared c d }\n");
    struct policy *p =
        load("sandbox a { }\nsandbox b { }\nsandbox c { }\nsandbox d { }\nsandbox e { }\n");
    struct buf out;
    buf_init(&out, 4096);
    assert_int_equal(config_put_lanes(&c, p, &out, &errors), 0);
    static const char *const names[] = {"a", "b e", "c d"};
    struct view rest = buf_view(&out);
    struct lane_info lane;
    for (size_t i = 0; i < 3; i++) {
        assert_true(bundle_lane(&rest, &lane));
        assert_true(view_equal(lane.names, view_str(names[i])));
    }
    assert_int_equal(rest.n, 0);
    buf_free(&out);
    policy_free(p);
    config_free(&c);
}

static void a_listener_for_a_sandbox_that_is_not_in_the_policy_is_an_error(void **state) {
    (void)state;
    struct config c = read_config(BASE "listen tcp 127.0.0.1:2 { sandbox Worker }\n");
    struct policy *p = load("sandbox a { }\nsandbox worker { }");
    struct buf out;
    buf_init(&out, 4096);
    assert_int_equal(config_put_lanes(&c, p, &out, &errors), ERR_BAD);
    assert_int_equal(errors.total, 1);
    assert_int_equal(errors.at[0].at.line, 4);
    assert_non_null(strstr(errors.at[0].text, "did you mean 'worker'?"));
    buf_free(&out);
    policy_free(p);
    config_free(&c);
}

static void who_may_attach_what_goes_into_the_bundle(void **state) {
    (void)state;
    struct config c =
        read_config("state s; policy p\nattach a.sock {\n"
                    "    uid 1000 a b\n    gid 7 b\n    uid games a\n    gid games a\n"
                    "    mode 0660\n}\n");
    struct policy *p = load("sandbox a { }\nsandbox b { }"), *less = load("sandbox a { }");
    struct attach_right right;
    struct buf out;
    assert_string_equal(c.attach.path, "/etc/exeat/a.sock");
    assert_int_equal(c.attach.mode, 0660);
    buf_init(&out, 4096);
    assert_int_equal(config_put_rights(&c, p, &out, &errors), 0);
    struct view rest = buf_view(&out);
    assert_true(bundle_right(&rest, &right));
    assert_true(!right.group && right.id == 1000 && view_equal(right.names, VIEW("a b")));
    assert_true(bundle_right(&rest, &right));
    assert_true(right.group && right.id == 7 && view_equal(right.names, VIEW("b")));
    assert_true(bundle_right(&rest, &right) && !right.group && right.id == 5);
    assert_true(bundle_right(&rest, &right) && right.group && right.id == 60);
    assert_int_equal(rest.n, 0);
    assert_int_equal(config_put_rights(&c, less, &out, &errors), ERR_BAD);
    assert_int_equal(errors.total, 2);
    assert_int_equal(errors.at[0].at.line, 3);
    assert_non_null(strstr(errors.at[0].text, "no sandbox 'b'"));
    buf_free(&out);
    policy_free(p);
    policy_free(less);
    config_free(&c);
}

static void hosts_and_own_addresses_go_into_the_bundle(void **state) {
    (void)state;
    struct config c = read_config(BASE "listen tcp [::]:2 { sandbox b }\n"
                                       "listen unix x { sandbox b }\n"
                                       "host a.test 10.0.0.1 ::1\n");
    struct buf hosts, own;
    struct static_host h;
    buf_init(&hosts, 4096);
    buf_init(&own, 4096);
    config_put_hosts(&c, &hosts);
    config_put_own_addresses(&c, &own);
    struct view rest = buf_view(&hosts);
    assert_true(bundle_host(&rest, &h));
    assert_true(bundle_host(&rest, &h));
    assert_int_equal(h.address.family, 6);
    assert_int_equal(rest.n, 0);
    struct reader r = reader_of(buf_view(&own));
    assert_true(view_equal(read_block(&r, 64), VIEW("127.0.0.1:3128")));
    assert_true(view_equal(read_block(&r, 64), VIEW("[::]:2")));
    assert_true(read_done(&r));
    buf_free(&hosts);
    buf_free(&own);
    config_free(&c);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_least_configuration_has_defaults),
        cmocka_unit_test(relative_paths_are_relative_to_the_configurations_folder),
        cmocka_unit_test(names_of_files_may_have_characters_outside_ascii),
        cmocka_unit_test(listeners_have_addresses_and_lanes_in_order),
        cmocka_unit_test(a_listener_says_whom_it_lets_in),
        cmocka_unit_test(a_listener_with_a_group_has_a_second_one_that_hears_it),
        cmocka_unit_test(the_same_port_of_two_interfaces_is_two_places),
        cmocka_unit_test(a_dns_listener_is_two_and_gives_out_private_addresses),
        cmocka_unit_test(every_other_word_is_read),
        cmocka_unit_test(trust_is_the_systems_or_files_or_both),
        cmocka_unit_test(limits_take_units),
        cmocka_unit_test(these_configurations_are_refused_and_say_where_and_why),
        cmocka_unit_test(what_only_a_start_takes_over_is_named),
        cmocka_unit_test(all_errors_are_met_in_one_run),
        cmocka_unit_test(a_socket_path_fits_the_kernel),
        cmocka_unit_test(a_lane_for_everybody_has_who_has_no_other),
        cmocka_unit_test(a_listener_for_a_sandbox_that_is_not_in_the_policy_is_an_error),
        cmocka_unit_test(who_may_attach_what_goes_into_the_bundle),
        cmocka_unit_test(hosts_and_own_addresses_go_into_the_bundle),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
