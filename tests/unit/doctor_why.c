/* Which line of a client's output the doctor shows. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "cli/doctor_why.h"

static const struct {
    const char *out, *line;
    bool trust;
} clients[] = {
    {"curl: (60) SSL certificate problem: unable to get local issuer certificate\n"
     "More details here: https://a.test/docs/sslcerts.html\n\n"
     "curl failed to verify the legitimacy of the server and therefore could not\n"
     "establish a secure connection to it. To learn more about this situation and\n"
     "how to fix it, please visit the web page mentioned above.\n",
     "curl: (60) SSL certificate problem: unable to get local issuer certificate", true},
    {"npm error code SELF_SIGNED_CERT_IN_CHAIN\n"
     "npm error request to https://a.test/ failed, reason: self-signed certificate in certificate "
     "chain\n"
     "npm error A complete log of this run can be found in: /root/.npm/_logs/1-debug-0.log\n",
     "npm error code SELF_SIGNED_CERT_IN_CHAIN", true},
    {"CONNECTED(00000003)\n---\nCertificate chain\n0 s:CN=a.test\n"
     "verify error:num=20:unable to get local issuer certificate\n---\n",
     "verify error:num=20:unable to get local issuer certificate", true},
    {"ERROR: cannot verify a.test's certificate, issued by 'CN=exeat CA':\n"
     "  Unable to locally verify the issuer's authority.\n"
     "To connect to a.test insecurely, use `--no-check-certificate'.\n???\n",
     "ERROR: cannot verify a.test's certificate, issued by 'CN=exeat CA':", true},
    {"Traceback (most recent call last):\n  File \"<string>\", line 1\n"
     "urllib.error.URLError: <urlopen error [SSL: CERTIFICATE_VERIFY_FAILED] certificate verify "
     "failed: unable to get local issuer certificate (_ssl.c:1000)>\n",
     "urllib.error.URLError: <urlopen error [SSL: CERTIFICATE_VERIFY_FAILED] certificate verify "
     "failed: unable to get local issuer certificate (_ssl.c:1000)>",
     true},
    {"curl: (7) Failed to connect to a.test port 443 after 0 ms: Couldn't connect to server\nsee "
     "the manual\n",
     "curl: (7) Failed to connect to a.test port 443 after 0 ms: Couldn't connect to server",
     false},
    {"curl: (6) Could not resolve host: a.test\n", "curl: (6) Could not resolve host: a.test",
     false},
    {"first\nwhat it said last\n---\n???\n\n", "what it said last", false},
    {"---\n", "it printed nothing", false},
    {"", "it printed nothing", false},
};

static void the_line_that_tells_why_is_shown(void **state) {
    (void)state;
    for (size_t i = 0; i < sizeof clients / sizeof *clients; i++) {
        struct view line = doctor_why(view_str(clients[i].out));
        if (!view_equal(line, view_str(clients[i].line)))
            fail_msg("%zu: %.*s", i, VIEW_ARG(line));
        assert_int_equal(doctor_why_is_trust(line), clients[i].trust);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(the_line_that_tells_why_is_shown)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
