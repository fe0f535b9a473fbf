#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "cli/environment_format.h"

#include <stdio.h>
#include <string.h>

static const char answer[] = "{\"name\":\"worker\",\"token\":\"ext_abc\",\"placeholders\":["
                             "{\"credential\":\"demo-key\",\"value\":\"sk-exeat1\"},"
                             "{\"credential\":\"demo.key\",\"value\":\"sk-exeat2\"},"
                             "{\"credential\":\"path\",\"value\":\"sk-exeat3\"}]}";

static struct environment read_answer(void) {
    struct environment e = {.proxy_url = VIEW("http://127.0.0.1:3128"),
                            .proxy_host = VIEW("127.0.0.1"),
                            .proxy_port = 3128,
                            .public = VIEW("/it's")};
    struct view token;
    assert_int_equal(environment_read_issued(view_str(answer), &e, &token), 0);
    assert_true(view_equal(token, VIEW("ext_abc")));
    return e;
}

static bool has(const struct buf *b, const char *text) {
    return view_search(buf_view(b), view_str(text)) < buf_len(b);
}

static void what_was_issued_is_read(void **state) {
    struct environment e = read_answer();
    (void)state;
    assert_true(view_equal(e.sandbox, VIEW("worker")));
    assert_int_equal(e.n_credentials, 3);
    assert_true(view_equal(e.credentials[1].placeholder, VIEW("sk-exeat2")));
}

static void an_answer_that_broker_does_not_write_is_refused(void **state) {
    static const char *const cases[] = {
        "",
        "{}",
        "[]",
        "{\"name\":\"w\",\"token\":\"t\"}",
        "{\"name\":\"w\",\"token\":\"t';x\",\"placeholders\":[]}",
        "{\"name\":\"w\",\"token\":\"a\\u0022\",\"placeholders\":[]}",
        "{\"name\":\"w\",\"token\":\"\",\"placeholders\":[]}",
        "{\"name\":\"w\",\"token\":\"t\",\"placeholders\":[{\"credential\":\"x\"}]}",
        "{\"name\":\"w\",\"token\":\"t\",\"placeholders\":[{\"credential\":\"x\",\"value\":\"$(y)"
        "\"}]}",
        "{\"name\":\"w\",\"token\":3,\"placeholders\":[]}",
    };
    struct environment e;
    struct view token;
    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++)
        assert_int_equal(environment_read_issued(view_str(cases[i]), &e, &token), ERR_BAD);
}

static void the_shell_gets_lines_fit_for_eval(void **state) {
    static const char *const lines[] = {
        "export http_proxy='http://127.0.0.1:3128'\n",
        "export HTTPS_PROXY='http://127.0.0.1:3128'\n",
        "export no_proxy='localhost,127.0.0.1,::1'\n",
        "export NO_PROXY='localhost,127.0.0.1,::1'\n",
        "export NODE_USE_ENV_PROXY='1'\n",
        "export GIT_HTTP_PROXY_AUTHMETHOD='basic'\n",
        "export SSL_CERT_FILE='/it'\\''s/bundle.pem'\n",
        "export NODE_EXTRA_CA_CERTS='/it'\\''s/ca.pem'\n",
        "export DENO_CERT='/it'\\''s/ca.pem'\n",
        "export WGETRC='/it'\\''s/wgetrc'\n",
        "export GIT_CONFIG_SYSTEM='/it'\\''s/gitconfig'\n",
        "export APT_CONFIG='/it'\\''s/apt.conf'\n",
        "export PHP_INI_SCAN_DIR=':/it'\\''s'\n",
        "export JAVA_TOOL_OPTIONS='-Dhttp.proxyHost=127.0.0.1 -Dhttp.proxyPort=3128 "
        "-Dhttps.proxyHost=127.0.0.1 -Dhttps.proxyPort=3128 "
        "\"-Djavax.net.ssl.trustStore=/it'\\''s/roots.p12\"'\n",
        "export DEMO_KEY='sk-exeat1'\n",
        "# credential demo.key: its variable would hide another one\n",
        "# credential path: its variable would hide another one\n",
    };
    struct environment e = read_answer();
    struct buf b;
    (void)state;
    buf_init(&b, 65536);
    assert_int_equal(environment_write(&e, "sh", &b), 0);
    for (size_t i = 0; i < sizeof lines / sizeof *lines; i++)
        assert_true(has(&b, lines[i]));
    assert_false(has(&b, "export PATH="));
    assert_false(has(&b, "EXEAT_SOCKET"));
    buf_free(&b);
}

static void a_real_shell_evaluates_them(void **state) {
    struct environment e = read_answer();
    struct buf b;
    char got[64];
    (void)state;
    buf_init(&b, 65536);
    buf_put_str(&b, "eval \"$(cat <<'END'\n");
    assert_int_equal(environment_write(&e, "sh", &b), 0);
    buf_put_str(&b, "END\n)\"; printf '%s %s' \"$DEMO_KEY\" \"$DENO_CERT\" >&3\n");
    FILE *out = tmpfile();
    char command[64];
    snprintf(command, sizeof command, "sh 3>&%d", fileno(out));
    FILE *shell = popen(command, "w");
    assert_int_equal(fwrite(buf_view(&b).p, 1, buf_len(&b), shell), buf_len(&b));
    assert_int_equal(pclose(shell), 0);
    rewind(out);
    size_t n = fread(got, 1, sizeof got - 1, out);
    got[n] = 0;
    assert_string_equal(got, "sk-exeat1 /it's/ca.pem");
    fclose(out);
    buf_free(&b);
}

static void a_unix_listener_gives_no_proxy_url(void **state) {
    struct environment e = read_answer();
    struct buf b;
    (void)state;
    e.proxy_url = e.proxy_host = VIEW("");
    e.socket = VIEW("/run/exeat/ci.sock");
    buf_init(&b, 65536);
    assert_int_equal(environment_write(&e, "sh", &b), 0);
    assert_false(has(&b, "http_proxy='"));
    assert_true(has(&b, "\n#   socat TCP-LISTEN"));
    assert_false(has(&b, "proxyHost"));
    assert_true(has(&b, "export EXEAT_SOCKET='/run/exeat/ci.sock'\n"));
    buf_free(&b);
}

static void a_vsock_listener_is_told_by_cid_and_port(void **state) {
    struct environment e = read_answer();
    struct buf b;
    (void)state;
    e.proxy_url = e.proxy_host = VIEW("");
    e.vsock_port = 3128;
    buf_init(&b, 65536);
    assert_int_equal(environment_write(&e, "sh", &b), 0);
    assert_true(has(&b, "export EXEAT_VSOCK='2:3128'\n"));
    assert_true(has(&b, "VSOCK-CONNECT:$EXEAT_VSOCK"));
    assert_false(has(&b, "EXEAT_SOCKET"));
    buf_free(&b);
}

static void whose_connections_are_captured_has_no_proxy_and_no_socket(void **state) {
    struct environment e = read_answer();
    struct buf b;
    (void)state;
    e.proxy_url = e.proxy_host = VIEW("");
    buf_init(&b, 65536);
    assert_int_equal(environment_write(&e, "sh", &b), 0);
    assert_true(has(&b, "SSL_CERT_FILE="));
    assert_false(has(&b, "http_proxy='") || has(&b, "socat") || has(&b, "EXEAT_SOCKET"));
    buf_free(&b);
}

static void json_has_variables_and_all_credentials(void **state) {
    struct environment e = read_answer();
    struct buf b;
    (void)state;
    buf_init(&b, 65536);
    assert_int_equal(environment_write(&e, "json", &b), 0);
    assert_true(has(
        &b, "{\"sandbox\":\"worker\",\"variables\":{\"http_proxy\":\"http://127.0.0.1:3128\","));
    assert_true(has(&b, "\"DEMO_KEY\":\"sk-exeat1\"},\"credentials\":{\"demo-key\":\"sk-exeat1\","
                        "\"demo.key\":\"sk-exeat2\",\"path\":\"sk-exeat3\"}}\n"));
    buf_free(&b);
}

static void every_language_quotes_in_its_own_way(void **state) {
    static const struct {
        const char *format, *line;
    } cases[] = {
        {"fish", "set -gx DENO_CERT '/it\\'s/ca.pem'\n"},
        {"fish", "set -gx DEMO_KEY 'sk-exeat1'\n"},
        {"powershell", "$env:DENO_CERT = '/it''s/ca.pem'\n"},
        {"dotenv", "DENO_CERT=\"/it's/ca.pem\"\n"},
        {"dotenv", "NODE_USE_ENV_PROXY='1'\n"},
        {"docker", "DENO_CERT=/it's/ca.pem\n"},
        {"k8s", "env:\n- name: http_proxy\n  value: \"http://127.0.0.1:3128\"\n"},
        {"k8s", " \\\"-Djavax.net.ssl.trustStore=/it's/roots.p12\\\"\"\n"},
        {"github", "DEMO_KEY=sk-exeat1\n"},
        {"systemd", "DENO_CERT=\"/it's/ca.pem\"\n"},
        {"systemd", " \\\"-Djavax.net.ssl.trustStore=/it's/roots.p12\\\"\"\n"},
        {"systemd", "# credential path: its variable would hide another one\n"},
    };
    struct environment e = read_answer();
    struct buf b;
    (void)state;
    buf_init(&b, 65536);
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        buf_reset(&b);
        assert_int_equal(environment_write(&e, cases[i].format, &b), 0);
        if (!has(&b, cases[i].line))
            fail_msg("%s: no line %s", cases[i].format, cases[i].line);
    }
    buf_free(&b);
}

static void a_language_without_comments_gets_none(void **state) {
    static const char *const formats[] = {"github", "json"};
    struct environment e = read_answer();
    struct buf b;
    (void)state;
    buf_init(&b, 65536);
    for (size_t i = 0; i < 2; i++) {
        buf_reset(&b);
        assert_int_equal(environment_write(&e, formats[i], &b), 0);
        assert_false(has(&b, "#"));
    }
    buf_free(&b);
}

static void an_unknown_language_or_a_value_of_two_lines_is_an_error(void **state) {
    struct environment e = read_answer();
    struct buf b;
    (void)state;
    buf_init(&b, 65536);
    assert_int_equal(environment_write(&e, "csh", &b), ERR_MISSING);
    e.public = VIEW("/a\nLD_PRELOAD=b");
    assert_int_equal(environment_write(&e, "docker", &b), ERR_BAD);
    assert_int_equal(buf_len(&b), 0);
    buf_free(&b);
}

static void a_credentials_variable_is_a_safe_name(void **state) {
    static const struct {
        const char *credential, *variable; /* NULL: none */
    } cases[] = {
        {"demo", "DEMO"},
        {"demo-key.2", "DEMO_KEY_2"},
        {"2fa", "_2FA"},
        {"http-proxy", NULL},
        {"ld_preload", NULL},
        {"home", NULL},
        {"", NULL},
        {"a=b", NULL},
        {"ssl.cert.file", NULL},
    };
    char out[80];
    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        bool fits = environment_variable(view_str(cases[i].credential), out, sizeof out);
        assert_int_equal(fits, cases[i].variable != NULL);
        if (fits)
            assert_string_equal(out, cases[i].variable);
    }
    assert_false(environment_variable(VIEW("long"), out, 5));
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(what_was_issued_is_read),
        cmocka_unit_test(an_answer_that_broker_does_not_write_is_refused),
        cmocka_unit_test(the_shell_gets_lines_fit_for_eval),
        cmocka_unit_test(a_real_shell_evaluates_them),
        cmocka_unit_test(a_unix_listener_gives_no_proxy_url),
        cmocka_unit_test(a_vsock_listener_is_told_by_cid_and_port),
        cmocka_unit_test(whose_connections_are_captured_has_no_proxy_and_no_socket),
        cmocka_unit_test(json_has_variables_and_all_credentials),
        cmocka_unit_test(every_language_quotes_in_its_own_way),
        cmocka_unit_test(a_language_without_comments_gets_none),
        cmocka_unit_test(an_unknown_language_or_a_value_of_two_lines_is_an_error),
        cmocka_unit_test(a_credentials_variable_is_a_safe_name),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
