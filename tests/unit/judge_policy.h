/*
 * One policy with a service of each kind, for those who ask it: what a request may (judge.c) and what
 * the other roles want to know (ask.c). Its lines are numbered where tests name them.
 */
#ifndef TESTS_UNIT_JUDGE_POLICY_H
#define TESTS_UNIT_JUDGE_POLICY_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "policy/errors.h"
#include "policy/policy.h"

#include <stdio.h>

static const char *const text =
    /* 1 */
    "service api {\n"
    /* 2 */ "    host api.allowed.test\n"
    /* 3 */ "    credential key-a { in header authorization scheme bearer }\n"
    /* 4 */ "    operation read { GET /v1/items; GET /v1/items/** }\n"
    /* 5 */ "    operation create { POST /v1/items }\n"
    /* 6 */ "    operation docs anonymous { GET /docs/**; GET /v1/items/free }\n"
    /* 7 */ "    never { * /v1/items/*/share; * /v1/items/@evil/** }\n"
    /* 8 */ "}\n"
    "service messages {\n"
    "    host llm.allowed.test; port 443 8443\n"
    "    credential key-m { in header x-api-key }\n"
    "    operation send { POST /v1/messages }\n"
    "    accept cookies; accept destinations\n"
    "}\n"
    "service git { host git.allowed.test; credential key-g { in basic password }\n"
    "    operation all-of-it { * /**; * / } }\n"
    "service pay { host pay.allowed.test; credential key-p { in basic user }\n"
    "    operation charge { POST /charges }\n"
    "    operation ping anonymous { GET /ping } }\n"
    "service open { host *.open.test; accept any credential; operation all-of-it { * /** } }\n"
    "service plain { host plain.test; clear; operation get { GET /** } }\n"
    "service files { host files.test; operation get { GET /** } }\n"
    "service twice { host api.allowed.test\n"
    "    credential key-a { in header authorization scheme bearer }\n"
    "    operation more { PUT /v1/more }; never { DELETE /** } }\n"
    "service deep { host **.deep.test *.exeat.internal; operation get { GET /** } }\n"
    "service blocked { host blocked.open.test; never all }\n"
    "service inner { host 10.0.0.1 169.254.169.254 127.0.0.1 [::1]\n"
    "    range 10.0.0.0/16 169.254.169.254 127.0.0.0/8 ::1/128; operation get { GET /** } }\n"
    "sandbox a { grant api read docs; grant messages all; grant git all; grant pay all\n"
    "    grant open all; grant plain all; grant files get; grant inner all; grant deep all }\n"
    "sandbox b { grant api read create docs; grant twice more }\n"
    "sandbox c { grant files get; grant messages send }\n"
    "sandbox empty { }\n";

static struct policy *policy;

static int load(void **state) {
    (void)state;
    static struct policy_errors errors;
    if (policy_load(view_str(text), "policy", &policy, &errors) == 0)
        return 0;
    fprintf(stderr, "%u:%u: %s\n", errors.at[0].at.line, errors.at[0].at.column, errors.at[0].text);
    return -1;
}

static int unload(void **state) {
    (void)state;
    policy_free(policy);
    return 0;
}

static struct authority authority_of(const char *text_form) {
    struct authority a;
    assert_int_equal(authority_parse(view_str(text_form), 443, &a, NULL), 0);
    return a;
}

#endif
