#include "tests/unit/judge_policy.h"

static void a_secret_is_lent_only_to_who_was_granted_it_there(void **state) {
    (void)state;
    struct authority api = authority_of("api.allowed.test"), llm = authority_of("llm.allowed.test"),
                     port = authority_of("api.allowed.test:444"),
                     files = authority_of("files.test");
    assert_true(policy_lends(policy, VIEW("a"), VIEW("key-a"), &api));
    assert_true(policy_lends(policy, VIEW("b"), VIEW("key-a"), &api));
    assert_false(policy_lends(policy, VIEW("c"), VIEW("key-a"), &api));
    assert_false(policy_lends(policy, VIEW("x"), VIEW("key-a"), &api));
    assert_false(policy_lends(policy, VIEW("a"), VIEW("key-a"), &llm));
    assert_false(policy_lends(policy, VIEW("a"), VIEW("key-m"), &api));
    assert_false(policy_lends(policy, VIEW("a"), VIEW("key-a"), &port));
    assert_false(policy_lends(policy, VIEW("a"), VIEW(""), &files));
}

static void answers_are_guarded_at_hosts_with_a_credential_of_the_sandbox(void **state) {
    (void)state;
    struct authority api = authority_of("api.allowed.test"), files = authority_of("files.test"),
                     port = authority_of("api.allowed.test:444");
    assert_true(policy_guards_host(policy, VIEW("a"), &api));
    assert_true(policy_guards_host(policy, VIEW("a"), &port));
    assert_false(policy_guards_host(policy, VIEW("a"), &files));
    assert_false(policy_guards_host(policy, VIEW("c"), &api));
    assert_false(policy_guards_host(policy, VIEW("x"), &api));
}

static void a_credential_is_borrowed_for_every_port_of_its_host(void **state) {
    (void)state;
    struct authority api = authority_of("api.allowed.test"), files = authority_of("files.test"),
                     port = authority_of("api.allowed.test:444"), where;
    assert_true(policy_lends_at_host(policy, VIEW("a"), VIEW("key-a"), &port, &where));
    assert_int_equal(where.port, api.port);
    assert_true(policy_lends(policy, VIEW("a"), VIEW("key-a"), &where));
    assert_false(policy_lends_at_host(policy, VIEW("a"), VIEW("key-a"), &files, &where));
    assert_false(policy_lends_at_host(policy, VIEW("c"), VIEW("key-a"), &port, &where));
}

static void a_credential_can_be_borrowed_without_knowing_a_host(void **state) {
    (void)state;
    struct authority where;
    assert_true(policy_lends_somewhere(policy, VIEW("a"), VIEW("key-a"), &where));
    assert_true(policy_lends(policy, VIEW("a"), VIEW("key-a"), &where));
    assert_false(policy_lends_somewhere(policy, VIEW("c"), VIEW("key-a"), &where));
    assert_false(policy_lends_somewhere(policy, VIEW("a"), VIEW("no-such"), &where));
    struct policy *stars;
    struct policy_errors e;
    assert_int_equal(policy_load(VIEW("service s { host *.api.test; operation o { GET / }\n"
                                      "credential k { in header x-api-key } }\n"
                                      "sandbox a { grant s o }"),
                                 "p", &stars, &e),
                     0);
    assert_true(policy_lends_somewhere(stars, VIEW("a"), VIEW("k"), &where));
    assert_string_equal(where.host, "x.api.test");
    policy_free(stars);
}

static void pv_02_each_authority_has_one_field_for_its_credential(void **state) {
    (void)state;
    static const struct {
        const char *authority, *field;
    } cases[] = {
        {"api.allowed.test", "authorization"},
        {"api.allowed.test:444", ""},
        {"llm.allowed.test:8443", "x-api-key"},
        {"git.allowed.test", "authorization"},
        {"files.test", ""},
        {"a.open.test", ""},
        {"blocked.open.test", ""},
        {"evil.test", ""},
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        struct authority a = authority_of(cases[i].authority);
        struct watched w;
        policy_watch(policy, &a, &w);
        assert_true(w.n <= 1);
        struct view field = w.n > 0 ? w.at[0]->name : (struct view){NULL, 0};
        if (!view_equal(field, view_str(cases[i].field)))
            fail_msg("%s", cases[i].authority);
    }
}

static void a_sandbox_has_each_credential_of_its_grants_once(void **state) {
    (void)state;
    assert_int_equal(policy_sandbox_credentials(policy, VIEW("a")), 4);
    assert_int_equal(policy_sandbox_credentials(policy, VIEW("b")), 1);
    assert_int_equal(policy_sandbox_credentials(policy, VIEW("empty")), 0);
    assert_true(view_equal(policy_sandbox_credential_at(policy, VIEW("b"), 0), VIEW("key-a")));
    assert_true(view_is_empty(policy_sandbox_credential_at(policy, VIEW("b"), 1)));
}

static void addresses_are_dialled_when_public_or_in_a_range(void **state) {
    (void)state;
    static const struct {
        const char *address;
        bool inner, files;
    } cases[] = {
        {"93.184.216.34", true, true},
        {"10.0.255.1", true, false},
        {"10.1.0.1", false, false},
        {"127.8.9.1", true, false},
        {"::1", true, false},
        {"::ffff:10.0.0.1", true, false},
        {"::ffff:10.1.0.1", false, false},
        {"169.254.169.254", true, false},
        {"169.254.169.253", false, false},
        {"192.168.0.1", false, false},
        {"0.0.0.0", false, false},
        {"224.0.0.1", false, false},
        {"255.255.255.255", false, false},
        {"64:ff9b::10.0.0.1", false, false},
    };
    struct authority inner = authority_of("10.0.0.1"), files = authority_of("files.test");
    const struct service *i = policy_judge_host(policy, VIEW("a"), true, &inner).service;
    const struct service *f = policy_judge_host(policy, VIEW("a"), true, &files).service;
    for (size_t k = 0; k < sizeof cases / sizeof cases[0]; k++) {
        struct address a;
        assert_int_equal(address_parse(view_str(cases[k].address), &a), 0);
        if (service_permits_address(i, &a) != cases[k].inner ||
            service_permits_address(f, &a) != cases[k].files)
            fail_msg("%s", cases[k].address);
    }
}

static void a_metadata_address_inside_a_wider_range_is_not_dialled(void **state) {
    (void)state;
    static struct policy_errors errors;
    struct policy *p;
    assert_int_equal(policy_load(VIEW("service s { host s.test; range 169.254.0.0/16\n"
                                      "operation r { GET / } }\nsandbox a { grant s all }"),
                                 "p", &p, &errors),
                     0);
    struct authority s = authority_of("s.test");
    const struct service *service = policy_judge_host(p, VIEW("a"), true, &s).service;
    struct address a;
    assert_int_equal(address_parse(VIEW("169.254.169.254"), &a), 0);
    assert_false(service_permits_address(service, &a));
    assert_int_equal(address_parse(VIEW("169.254.1.1"), &a), 0);
    assert_true(service_permits_address(service, &a));
    policy_free(p);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_secret_is_lent_only_to_who_was_granted_it_there),
        cmocka_unit_test(answers_are_guarded_at_hosts_with_a_credential_of_the_sandbox),
        cmocka_unit_test(a_credential_is_borrowed_for_every_port_of_its_host),
        cmocka_unit_test(a_credential_can_be_borrowed_without_knowing_a_host),
        cmocka_unit_test(pv_02_each_authority_has_one_field_for_its_credential),
        cmocka_unit_test(a_sandbox_has_each_credential_of_its_grants_once),
        cmocka_unit_test(addresses_are_dialled_when_public_or_in_a_range),
        cmocka_unit_test(a_metadata_address_inside_a_wider_range_is_not_dialled),
    };
    return cmocka_run_group_tests(tests, load, unload);
}
