/* What is dialled: names and addresses that are judged, resolved, recorded and handed over. */
#include "tests/unit/dialer_world.h"

/* ---- scripts ---- */

static void dns_rebinding(struct dns_server *s, const struct dns_query *q, struct buf *out) {
    if (q->type != Q_A) {
        dns_rest(s, q, out);
        return;
    }
    put_head(out, q, 0, 1);
    put_address(out, q->name, q->nth == 1 ? "127.0.0.1" : "10.0.0.1");
}

static void dns_mixed(struct dns_server *s, const struct dns_query *q, struct buf *out) {
    if (q->type != Q_A) {
        dns_rest(s, q, out);
        return;
    }
    put_head(out, q, 0, 2);
    put_address(out, q->name, "127.0.0.1");
    put_address(out, q->name, "10.0.0.1");
}

static void dns_mixed_by_family(struct dns_server *s, const struct dns_query *q, struct buf *out) {
    (void)s;
    put_head(out, q, 0, 1);
    put_address(out, q->name, q->type == Q_A ? "127.0.0.1" : "::ffff:10.0.0.5");
}

static void dns_internal(struct dns_server *s, const struct dns_query *q, struct buf *out) {
    if (q->type != Q_A) {
        dns_rest(s, q, out);
        return;
    }
    put_head(out, q, 0, 2);
    put_cname(out, q->name, "internal.corp.test");
    put_address(out, "internal.corp.test",
                strcmp(q->name, "api.allowed.test") == 0 ? "10.0.0.5" : "127.0.0.1");
}

static const char *table_address;

static void dns_table(struct dns_server *s, const struct dns_query *q, struct buf *out) {
    if ((q->type == Q_AAAA) != (strchr(table_address, ':') != NULL)) {
        dns_rest(s, q, out);
        return;
    }
    put_head(out, q, 0, 1);
    put_address(out, q->name, table_address);
}

static void dns_nxdomain(struct dns_server *s, const struct dns_query *q, struct buf *out) {
    (void)s;
    put_head(out, q, RCODE_NXDOMAIN, 0);
}

/* ---- tests ---- */

static void an_allowed_name_is_resolved_once_dialled_recorded_and_handed_over(void **state) {
    struct world w;
    (void)state;
    world_open(&w, dns_loopback);
    struct answer *a = ask(&w, "api.allowed.test");
    assert_false(a->refused);
    assert_int_equal(a->generation, 1);
    assert_string_equal(a->address, "127.0.0.1");
    assert_true(upstream_was_reached(&w));
    assert_int_equal(w.dns.n_a, 1);
    assert_int_equal(w.dns.n_aaaa, 1);
    const struct record_facts *r = next_record(&w);
    assert_non_null(r);
    assert_int_equal(r->kind, RECORD_EVENT);
    assert_text(r, FIELD_EVENT, "dialled");
    assert_text(r, FIELD_SANDBOX, "a");
    assert_text(r, FIELD_HOST, "api.allowed.test");
    assert_text(r, FIELD_ADDRESS, "127.0.0.1");
    assert_int_equal(r->number_of[FIELD_PORT], w.port);
    assert_int_equal(r->number_of[FIELD_LANE], 1);
    assert_int_equal(r->number_of[FIELD_GENERATION], 1);
    assert_null(next_record(&w));
    world_close(&w);
}

static void dn_04_what_policy_denies_is_never_asked_of_dns(void **state) {
    struct world w;
    (void)state;
    world_open(&w, dns_loopback);
    const struct {
        uint32_t lane;
        const char *sandbox, *host;
        uint16_t port;
        bool tls;
        enum reason reason;
    } cases[] = {
        {1, "a", "s3cr3t.evil.test", w.port, true, REASON_HOST_NOT_ALLOWED},
        {1, "a", "allowed.test", w.port, true, REASON_HOST_NOT_ALLOWED},
        {1, "a", "deep.api.allowed.test", w.port, true, REASON_HOST_NOT_ALLOWED},
        {1, "a", "api.allowed.test", 22, true, REASON_PORT_NOT_ALLOWED},
        {1, "a", "api.allowed.test", w.port, false, REASON_CLEAR_NOT_ALLOWED},
        {1, "a", "10.0.0.1", w.port, true, REASON_HOST_NOT_ALLOWED},
        /* Sandboxes of the other lane, and one nobody knows. */
        {1, "b", "api.allowed.test", w.port, true, REASON_UNKNOWN_SANDBOX},
        {2, "a", "api.allowed.test", w.port, true, REASON_UNKNOWN_SANDBOX},
        {2, "", "api.allowed.test", w.port, true, REASON_UNKNOWN_SANDBOX},
        {1, "nobody", "api.allowed.test", w.port, true, REASON_UNKNOWN_SANDBOX},
        {2, "c", "api.allowed.test", w.port, true, REASON_HOST_NOT_ALLOWED},
        {2, "b", "x.strict.test", w.port, true, REASON_HOST_NOT_ALLOWED},
    };
    for (uint32_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        send_ask(&w, cases[i].lane, i + 1, 1, cases[i].sandbox, cases[i].tls, cases[i].host,
                 cases[i].port);
        struct answer *a = answer(&w, cases[i].lane, 1000);
        if (!a->refused || a->reason != cases[i].reason)
            fail_msg("%u %s %s:%u: %s, not %s", cases[i].lane, cases[i].sandbox, cases[i].host,
                     cases[i].port, reason_info(a->reason)->code,
                     reason_info(cases[i].reason)->code);
        const struct record_facts *r = next_record(&w);
        assert_non_null(r);
        assert_int_equal(r->kind, RECORD_DECISION);
        assert_text(r, FIELD_VERDICT, "deny");
        assert_text(r, FIELD_REASON, reason_info(cases[i].reason)->code);
        assert_text(r, FIELD_HOST, cases[i].host);
        assert_null(next_record(&w));
    }
    assert_int_equal(dns_server_questions(&w.dns), 0);
    assert_false(upstream_was_reached(&w));
    world_close(&w);
}

static void an_ask_that_is_not_canonical_drops_the_lane(void **state) {
    static const char *const hosts[] = {"API.allowed.test",
                                        "api.allowed.test.",
                                        "",
                                        ".",
                                        "api..allowed.test",
                                        "0x7f.1",
                                        "2130706433",
                                        "0177.0.0.1",
                                        "127.1",
                                        "127.0.0.1.",
                                        "[::1]",
                                        "::0001",
                                        "::1%lo",
                                        "user@api.allowed.test",
                                        "api.allowed.test:443",
                                        "a b",
                                        "\xc3\xa9.test"};
    (void)state;
    for (size_t i = 0; i < sizeof hosts / sizeof *hosts; i++) {
        struct world w;
        world_open(&w, dns_loopback);
        send_ask(&w, 1, 1, 1, "a", true, hosts[i], w.port);
        if (!turn_until(w.loop, &w.lanes[0].closed, 1000))
            fail_msg("not dropped: %s", hosts[i]);
        assert_int_equal(w.bad_peers, 1);
        assert_int_equal(w.lanes[0].n, 0);
        assert_int_equal(dns_server_questions(&w.dns), 0);
        /* The other lane goes on. */
        send_ask(&w, 2, 1, 1, "b", true, "api.allowed.test", w.port);
        assert_false(answer(&w, 2, 2000)->refused);
        world_close(&w);
    }
}

static void dn_01_br_56_the_checked_address_is_the_dialled_one(void **state) {
    struct world w;
    (void)state;
    world_open(&w, dns_rebinding);
    struct answer *a = ask(&w, "api.allowed.test");
    assert_false(a->refused);
    assert_string_equal(a->address, "127.0.0.1");
    assert_int_equal(w.dns.n_a, 1);
    assert_true(upstream_was_reached(&w));
    /* Again: a new lookup, whose answer is checked again. */
    assert_refused(ask(&w, "api.allowed.test"), REASON_ADDRESS_NOT_ALLOWED);
    assert_int_equal(w.dns.n_a, 2);
    assert_false(upstream_was_reached(&w));
    world_close(&w);
}

static void dn_02_one_refused_address_refuses_the_name(void **state) {
    dns_script *const scripts[] = {dns_mixed, dns_mixed_by_family};
    const char *const addresses[] = {"10.0.0.1", "10.0.0.5"};
    (void)state;
    for (size_t i = 0; i < 2; i++) {
        struct world w;
        world_open(&w, scripts[i]);
        struct answer *a = ask(&w, "api.allowed.test");
        assert_refused(a, REASON_ADDRESS_NOT_ALLOWED);
        assert_string_equal(a->address, addresses[i]);
        turn_for(w.loop, 300);
        assert_false(upstream_was_reached(&w));
        world_close(&w);
    }
}

static void dn_03_an_alias_of_an_internal_name_is_judged_by_its_address(void **state) {
    struct world w;
    (void)state;
    world_open(&w, dns_internal);
    struct answer *a = ask(&w, "api.allowed.test");
    assert_refused(a, REASON_ADDRESS_NOT_ALLOWED);
    assert_string_equal(a->aliases, "internal.corp.test");
    const struct record_facts *r = next_record(&w);
    assert_non_null(r);
    assert_int_equal(r->kind, RECORD_DECISION);
    assert_text(r, FIELD_VERDICT, "deny");
    assert_text(r, FIELD_REASON, "address_not_allowed");
    assert_text(r, FIELD_ALIASES, "internal.corp.test");
    assert_text(r, FIELD_ADDRESS, "10.0.0.5");
    a = ask(&w, "other.allowed.test");
    assert_false(a->refused);
    assert_string_equal(a->aliases, "internal.corp.test");
    r = next_record(&w);
    assert_text(r, FIELD_EVENT, "dialled");
    assert_text(r, FIELD_ALIASES, "internal.corp.test");
    world_close(&w);
}

static void ip_rule_answers_that_are_not_public_are_refused(void **state) {
    static const char *const addresses[] = {"127.0.0.1",
                                            "10.0.0.1",
                                            "172.16.0.1",
                                            "192.168.0.1",
                                            "169.254.169.254",
                                            "169.254.170.2",
                                            "100.100.100.200",
                                            "192.0.0.192",
                                            "168.63.129.16",
                                            "0.0.0.0",
                                            "0.1.2.3",
                                            "100.64.0.1",
                                            "224.0.0.1",
                                            "255.255.255.255",
                                            "192.0.2.1",
                                            "198.18.0.1",
                                            "203.0.113.1",
                                            "240.0.0.1",
                                            "::",
                                            "::1",
                                            "fe80::1",
                                            "fd00::1",
                                            "fd00:ec2::254",
                                            "ff02::1",
                                            "2001:db8::1",
                                            "100::1",
                                            "::ffff:127.0.0.1",
                                            "::ffff:169.254.169.254",
                                            "::ffff:10.0.0.1",
                                            "64:ff9b::a9fe:a9fe",
                                            "64:ff9b:1::7f00:1",
                                            "2002:a00:1::",
                                            "::127.0.0.1",
                                            "fe80::5efe:7f00:1"};
    struct world w;
    (void)state;
    world_prepare(&w, dns_table, 64, 64);
    use_generation(&w, 1);
    for (size_t i = 0; i < sizeof addresses / sizeof *addresses; i++) {
        table_address = addresses[i];
        struct answer *a = ask(&w, "x.strict.test");
        if (!a->refused || a->reason != REASON_ADDRESS_NOT_ALLOWED)
            fail_msg("%s: %s", addresses[i], reason_info(a->reason)->code);
        assert_true(a->address[0] != 0);
    }
    assert_false(upstream_was_reached(&w));
    world_close(&w);
}

static void br_13_an_address_that_is_never_reached_is_not_by_name_either(void **state) {
    static const struct {
        const char *rest, *address;
        bool refused;
    } cases[] = {
        {"service off {\n host 127.0.0.5\n never all\n}\n", "127.0.0.5", true},
        {"service off {\n host 127.0.0.5\n never all\n}\n", "::ffff:127.0.0.5", true},
        {"service off {\n host 127.0.0.5\n port 1\n never all\n}\n", "127.0.0.1", false},
        {"service off {\n host 127.0.0.1\n port 1\n never all\n}\n", "127.0.0.1", false},
        {"service off {\n host 127.0.0.1\n never { GET /x }\n}\n", "127.0.0.1", false},
        {"service off {\n host x.other.test [::1]\n never all\n}\n", "127.0.0.1", false},
    };
    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct world w;
        world_prepare(&w, dns_table, 64, 64);
        write_policy(&w, cases[i].rest);
        use_generation(&w, 1);
        table_address = cases[i].address;
        struct answer *a = ask(&w, "api.allowed.test");
        if (a->refused != cases[i].refused)
            fail_msg("%s: %s", cases[i].rest, reason_info(a->reason)->code);
        if (a->refused) {
            assert_refused(a, REASON_NEVER);
            assert_string_equal(a->address, "127.0.0.5");
            assert_false(upstream_was_reached(&w));
        }
        world_close(&w);
    }
}

static void dn_09_a_translated_address_is_judged_by_what_is_inside(void **state) {
    struct world w;
    (void)state;
    world_open(&w, dns_table);
    table_address = "64:ff9b::a00:1";
    assert_refused(ask(&w, "x.strict.test"), REASON_ADDRESS_NOT_ALLOWED);
    world_close(&w);
}

static void ip_06_a_mapped_address_is_dialled_as_what_it_is(void **state) {
    struct world w;
    (void)state;
    world_open(&w, dns_table);
    table_address = "::ffff:127.0.0.1";
    struct answer *a = ask(&w, "api.allowed.test");
    assert_false(a->refused);
    assert_string_equal(a->address, "127.0.0.1");
    world_close(&w);
}

static void ip_11_ad_01_br_76_our_own_listeners_are_never_dialled(void **state) {
    struct world w;
    (void)state;
    world_open(&w, dns_loopback);
    uint16_t port = w.own_port;
    int own = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    struct sockaddr_in in = {
        .sin_family = AF_INET, .sin_port = htons(port), .sin_addr = {htonl(INADDR_LOOPBACK)}};
    assert_int_equal(bind(own, (struct sockaddr *)&in, sizeof in), 0);
    assert_int_equal(listen(own, 8), 0);
    send_ask(&w, 1, 1, 1, "a", true, "127.0.0.1", port);
    assert_refused(answer(&w, 1, 1000), REASON_ADDRESS_NOT_ALLOWED);
    assert_int_equal(dns_server_questions(&w.dns), 0);
    send_ask(&w, 1, 2, 1, "a", true, "api.allowed.test", port);
    assert_refused(answer(&w, 1, 1000), REASON_ADDRESS_NOT_ALLOWED);
    fcntl(own, F_SETFL, O_NONBLOCK);
    assert_int_equal(accept(own, NULL, NULL), -1);
    close(own);
    world_close(&w);
}

static void ip_11_a_listener_on_every_address_is_refused_on_each(void **state) {
    struct world w;
    char text[32];
    (void)state;
    world_prepare(&w, dns_loopback, 8, 8);
    buf_reset(&w.own);
    snprintf(text, sizeof text, "[::]:%u", w.port);
    buf_put_block(&w.own, view_str(text));
    w.bundle.own_addresses = buf_view(&w.own);
    use_generation(&w, 1);
    assert_refused(ask(&w, "api.allowed.test"), REASON_ADDRESS_NOT_ALLOWED);
    assert_false(upstream_was_reached(&w));
    world_close(&w);
}

static void ip_11_the_resolver_is_never_dialled(void **state) {
    struct world w;
    (void)state;
    world_prepare(&w, dns_loopback, 8, 8);
    w.bundle.resolver_ports[0] = w.port;
    use_generation(&w, 1);
    assert_refused(ask(&w, "127.0.0.1"), REASON_ADDRESS_NOT_ALLOWED);
    assert_false(upstream_was_reached(&w));
    world_close(&w);
}

static void a_literal_needs_no_dns(void **state) {
    struct world w;
    (void)state;
    world_open(&w, dns_loopback);
    struct answer *a = ask(&w, "127.0.0.1");
    assert_false(a->refused);
    assert_string_equal(a->address, "127.0.0.1");
    /* IPv6, where nobody listens. */
    a = ask(&w, "::1");
    assert_refused(a, REASON_CONNECT_FAILED);
    assert_string_equal(a->detail, "::1: Connection refused");
    assert_int_equal(dns_server_questions(&w.dns), 0);
    world_close(&w);
}

static void a_static_host_stands_in_place_of_dns_and_is_vetted(void **state) {
    struct static_host good = {VIEW("api.allowed.test"), {4, {127, 0, 0, 1}}};
    struct static_host bad = {VIEW("bad.allowed.test"), {4, {10, 0, 0, 1}}};
    struct world w;
    (void)state;
    world_prepare(&w, dns_loopback, 8, 8);
    bundle_put_host(&w.hosts, &bad);
    bundle_put_host(&w.hosts, &good);
    w.bundle.static_hosts = buf_view(&w.hosts);
    use_generation(&w, 1);
    assert_false(ask(&w, "api.allowed.test")->refused);
    assert_refused(ask(&w, "bad.allowed.test"), REASON_ADDRESS_NOT_ALLOWED);
    assert_int_equal(dns_server_questions(&w.dns), 0);
    assert_false(ask(&w, "other.allowed.test")->refused);
    assert_int_equal(dns_server_questions(&w.dns), 2);
    world_close(&w);
}

/* Eight lines for four names, of which each has two. */
static void static_hosts_are_found_wherever_they_stand_in_the_order_of_their_lines(void **state) {
    static const char *const names[] = {"m.test", "a.test", "zz.test", "aa.test"};
    struct world w;
    struct address got[4];
    (void)state;
    world_prepare(&w, dns_loopback, 8, 8);
    for (uint8_t line = 0; line < 8; line++)
        bundle_put_host(&w.hosts, &(struct static_host){view_str(names[line % 4]),
                                                        {4, {127, 0, 0, (uint8_t)(9 - line)}}});
    w.bundle.static_hosts = buf_view(&w.hosts);
    use_generation(&w, 1);
    struct dial_rules *rules;
    assert_int_equal(dial_rules_new(1, buf_view(&w.texts[1]), NULL, 0, &rules), 0);
    for (uint8_t i = 0; i < 4; i++) {
        assert_int_equal(dial_rules_static(rules, names[i], got, 4), 2);
        assert_int_equal(got[0].bytes[3], 9 - i);
        assert_int_equal(got[1].bytes[3], 5 - i);
        assert_int_equal(dial_rules_static(rules, names[i], got, 1), 1);
        assert_int_equal(got[0].bytes[3], 9 - i);
    }
    assert_int_equal(dial_rules_static(rules, "a.tes", got, 4), 0);
    assert_int_equal(dial_rules_static(rules, "zzz.test", got, 4), 0);
    assert_int_equal(dial_rules_static(rules, "", got, 4), 0);
    dial_rules_free(rules);
    world_close(&w);
}

static void names_that_do_not_resolve(void **state) {
    dns_script *const scripts[] = {dns_nxdomain, dns_rest, dns_silence};
    (void)state;
    for (size_t i = 0; i < 3; i++) {
        struct world w;
        world_open(&w, scripts[i]);
        uint64_t start = clock_mono();
        struct answer *a = ask(&w, "api.allowed.test");
        assert_refused(a, REASON_NAME_NOT_RESOLVED);
        assert_true(strlen(a->detail) > 0);
        assert_true(clock_mono() - start < 1500000000u);
        assert_null(next_record(&w));
        world_close(&w);
    }
}

static void a_refused_connection_is_a_failure(void **state) {
    struct world w;
    (void)state;
    world_open(&w, dns_loopback);
    close(w.upstream);
    w.upstream = -1;
    struct answer *a = ask(&w, "api.allowed.test");
    assert_refused(a, REASON_CONNECT_FAILED);
    assert_string_equal(a->detail, "127.0.0.1: Connection refused");
    world_close(&w);
}

static void another_generation_is_not_answered(void **state) {
    struct world w;
    (void)state;
    world_prepare(&w, dns_loopback, 8, 8);
    assert_refused(ask(&w, "api.allowed.test"), REASON_NOT_READY);
    assert_int_equal(prepare(&w, 1), 0);
    assert_refused(ask(&w, "api.allowed.test"), REASON_NOT_READY);
    dials_commit(w.dials, 1);
    send_ask(&w, 1, 1, 2, "a", true, "api.allowed.test", w.port);
    assert_refused(answer(&w, 1, 1000), REASON_NOT_READY);
    assert_int_equal(dns_server_questions(&w.dns), 0);
    world_close(&w);
}

static void a_broken_generation_leaves_the_old_one_in_use(void **state) {
    struct world w;
    (void)state;
    world_open(&w, dns_loopback);
    write_policy(&w, "service {");
    assert_int_equal(prepare(&w, 2), ERR_BAD);
    write_policy(&w, "");
    w.bundle.upstream_proxy = VIEW("no port");
    assert_int_equal(prepare(&w, 3), ERR_BAD);
    assert_false(ask(&w, "api.allowed.test")->refused);
    world_close(&w);
}

static void a_dial_in_progress_is_judged_by_the_new_generation(void **state) {
    struct world w;
    (void)state;
    world_open(&w, dns_silence);
    w.bundle.limits.v[LIMIT_DNS_TIME] = 30;
    use_generation(&w, 2);
    send_ask(&w, 1, 1, 2, "a", true, "api.allowed.test", w.port);
    send_ask(&w, 1, 2, 2, "a", true, "x.strict.test", w.port);
    turn_for(w.loop, 100);
    assert_int_equal(w.lanes[0].n, 0);
    write_policy(&w, "service stop {\n host api.allowed.test\n never all\n}\n");
    use_generation(&w, 3);
    struct answer *a = answer(&w, 1, 1000);
    assert_true(a->refused);
    assert_int_equal(a->id, 1);
    assert_int_equal(a->generation, 3);
    turn_for(w.loop, 100);
    assert_int_equal(w.lanes[0].n, 1);
    world_close(&w);
}

static void without_audit_nothing_is_dialled(void **state) {
    struct world w;
    (void)state;
    world_open(&w, dns_loopback);
    assert_int_equal(dials_audit(w.dials, -1), 0);
    assert_refused(ask(&w, "api.allowed.test"), REASON_AUDIT_UNAVAILABLE);
    assert_int_equal(dns_server_questions(&w.dns), 0);
    world_close(&w);
}

static void audit_in_trouble_stops_dials_until_it_is_well(void **state) {
    struct world w;
    (void)state;
    world_open(&w, dns_loopback);
    assert_int_equal(send(w.audit, "D", 1, 0), 1);
    turn_for(w.loop, 20);
    assert_refused(ask(&w, "api.allowed.test"), REASON_AUDIT_UNAVAILABLE);
    assert_int_equal(dns_server_questions(&w.dns), 0);
    assert_int_equal(send(w.audit, "U", 1, 0), 1);
    turn_for(w.loop, 20);
    assert_false(ask(&w, "api.allowed.test")->refused);
    world_close(&w);
}

static void a_connection_that_cannot_be_recorded_is_closed(void **state) {
    struct world w;
    char byte;
    (void)state;
    world_open(&w, dns_loopback);
    /* The kernel takes no more records. */
    static uint8_t filler[4096];
    int size = 1, fds[2];
    assert_int_equal(socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, 0, fds), 0);
    setsockopt(fds[0], SOL_SOCKET, SO_SNDBUF, &size, sizeof size);
    while (send(fds[0], filler, sizeof filler, 0) > 0 || send(fds[0], filler, 1, 0) > 0)
        ;
    assert_int_equal(dials_audit(w.dials, fds[0]), 0);
    struct answer *a = ask(&w, "api.allowed.test");
    assert_refused(a, REASON_AUDIT_UNAVAILABLE);
    int peer = accept(w.upstream, NULL, NULL);
    assert_true(peer >= 0);
    assert_int_equal(recv(peer, &byte, 1, 0), 0);
    close(peer);
    close(fds[1]);
    world_close(&w);
}

/* ---- through an upstream proxy ---- */

static void serve_one_connect(struct world *w, int listener, char *request, size_t size) {
    int peer = -1;
    for (int i = 0; i < 100 && peer < 0; i++) {
        turn_for(w->loop, 10);
        peer = accept(listener, NULL, NULL);
    }
    assert_true(peer >= 0);
    turn_for(w->loop, 50);
    ssize_t n = recv(peer, request, size - 1, MSG_DONTWAIT);
    assert_true(n > 0);
    request[n] = 0;
    assert_int_equal(send(peer, "HTTP/1.1 200 OK\r\n\r\n", 19, 0), 19);
    close(peer);
}

static void the_upstream_proxy_is_dialled_after_the_target_was_vetted(void **state) {
    struct world w;
    uint16_t proxy_port;
    char proxy[64], request[512], expected[512];
    int listener = listen_on_loopback(&proxy_port);
    (void)state;
    world_prepare(&w, dns_internal, 8, 8);
    snprintf(proxy, sizeof proxy, "proxy.corp.test:%u", proxy_port);
    struct static_host host = {VIEW("proxy.corp.test"), {4, {127, 0, 0, 1}}};
    bundle_put_host(&w.hosts, &host);
    w.bundle.static_hosts = buf_view(&w.hosts);
    w.bundle.upstream_proxy = view_str(proxy);
    use_generation(&w, 1);
    assert_refused(ask(&w, "api.allowed.test"), REASON_ADDRESS_NOT_ALLOWED);
    assert_int_equal(accept(listener, NULL, NULL), -1);
    send_ask(&w, 1, 1, 1, "a", true, "other.allowed.test", w.port);
    serve_one_connect(&w, listener, request, sizeof request);
    snprintf(expected, sizeof expected,
             "CONNECT other.allowed.test:%u HTTP/1.1\r\nHost: other.allowed.test:%u\r\n\r\n",
             w.port, w.port);
    assert_string_equal(request, expected);
    turn_for(w.loop, 50);
    assert_int_equal(w.lanes[0].n, 2);
    assert_false(w.lanes[0].answers[1].refused);
    assert_false(upstream_was_reached(&w));
    close(listener);
    world_close(&w);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(an_allowed_name_is_resolved_once_dialled_recorded_and_handed_over),
        cmocka_unit_test(dn_04_what_policy_denies_is_never_asked_of_dns),
        cmocka_unit_test(an_ask_that_is_not_canonical_drops_the_lane),
        cmocka_unit_test(dn_01_br_56_the_checked_address_is_the_dialled_one),
        cmocka_unit_test(dn_02_one_refused_address_refuses_the_name),
        cmocka_unit_test(dn_03_an_alias_of_an_internal_name_is_judged_by_its_address),
        cmocka_unit_test(ip_rule_answers_that_are_not_public_are_refused),
        cmocka_unit_test(br_13_an_address_that_is_never_reached_is_not_by_name_either),
        cmocka_unit_test(dn_09_a_translated_address_is_judged_by_what_is_inside),
        cmocka_unit_test(ip_06_a_mapped_address_is_dialled_as_what_it_is),
        cmocka_unit_test(ip_11_ad_01_br_76_our_own_listeners_are_never_dialled),
        cmocka_unit_test(ip_11_a_listener_on_every_address_is_refused_on_each),
        cmocka_unit_test(ip_11_the_resolver_is_never_dialled),
        cmocka_unit_test(a_literal_needs_no_dns),
        cmocka_unit_test(a_static_host_stands_in_place_of_dns_and_is_vetted),
        cmocka_unit_test(static_hosts_are_found_wherever_they_stand_in_the_order_of_their_lines),
        cmocka_unit_test(names_that_do_not_resolve),
        cmocka_unit_test(a_refused_connection_is_a_failure),
        cmocka_unit_test(another_generation_is_not_answered),
        cmocka_unit_test(a_broken_generation_leaves_the_old_one_in_use),
        cmocka_unit_test(a_dial_in_progress_is_judged_by_the_new_generation),
        cmocka_unit_test(without_audit_nothing_is_dialled),
        cmocka_unit_test(audit_in_trouble_stops_dials_until_it_is_well),
        cmocka_unit_test(a_connection_that_cannot_be_recorded_is_closed),
        cmocka_unit_test(the_upstream_proxy_is_dialled_after_the_target_was_vetted),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
