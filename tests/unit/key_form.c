#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "policy/key_form.h"

#define COUNT(array) (sizeof(array) / sizeof *(array))

/* Made up, all of them. */
static void pv_02_a_key_is_known_by_its_form_wherever_it_stands(void **state) {
    static const char *const cases[][2] = {
        {"sk-live-Qx7LmV2aBcD4eFgH6iJk", "sk-live-Qx7LmV2aBcD4eFgH6iJk"},
        {"https://x.test/?k=ghp_Qx7LmV2aBcD4eFgH6iJkL8mNoPqRs0123456&y",
         "ghp_Qx7LmV2aBcD4eFgH6iJkL8mNoPqRs0123456"},
        {"\"github_pat_11QX7LMV2A0bcd4EFGH6iJ_Q8mNoPqRs\"",
         "github_pat_11QX7LMV2A0bcd4EFGH6iJ_Q8mNoPqRs"},
        {"AKIAQX7LMV2ABCD4EFGH", "AKIAQX7LMV2ABCD4EFGH"},
        {"token xoxb-123456789012-1234567890123-Qx7LmV2aBcD4eFgH6iJkL8mN",
         "xoxb-123456789012-1234567890123-Qx7LmV2aBcD4eFgH6iJkL8mN"},
        {"a,b;k=AIzaSyQx7LmV2aBcD4eFgH6iJkL8mNoPqRs0123",
         "AIzaSyQx7LmV2aBcD4eFgH6iJkL8mNoPqRs0123"},
        {"eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiJhdHRhY2tlciJ9.c2ln",
         "eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiJhdHRhY2tlciJ9.c2ln"},
        {"a%20sk-live-Qx7LmV2aBcD4eFgH6iJk%22", "sk-live-Qx7LmV2aBcD4eFgH6iJk"},
        {"100%dckr_pat_Qx7LmV2aBcD4eFgH6iJk", "dckr_pat_Qx7LmV2aBcD4eFgH6iJk"},
    };
    (void)state;
    for (size_t i = 0; i < COUNT(cases); i++) {
        struct view key;
        if (!key_form_inside(view_str(cases[i][0]), &key))
            fail_msg("%s holds none", cases[i][0]);
        if (!view_equal(key, view_str(cases[i][1])))
            fail_msg("%s: got %.*s", cases[i][0], VIEW_ARG(key));
    }
}

static void what_only_begins_like_a_key_is_none(void **state) {
    static const char *const cases[] = {
        "",
        "sk-",
        "sk-learn-examples-2024-and-more-of-them",
        "sk-SK,sk;q=0.9,cs;q=0.8,en-US;q=0.7",
        "npm_config_registry_of_mine_2024",
        "hf_hub_download_of_a_model_2024",
        "pul-requests-0123456789012345678",
        "xsk-live-Qx7LmV2aBcD4eFgH6iJk",
        "%2xsk-live-Qx7LmV2aBcD4eFgH6iJk",
        "%20xsk-live-Qx7LmV2aBcD4eFgH6iJk",
        "20sk-live-Qx7LmV2aBcD4eFgH6iJk",
        "%2",
        "0123456789abcdef0123456789abcdef01234567",
        "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01",
        "Mozilla/5.0 (X11; Linux x86_64; rv:128.0) Gecko/20100101 Firefox/128.0",
        "eyJhbGciOiJIUzI1NiJ9.x.c2ln",
        "eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiJhdHRhY2tlciJ9.",
    };
    (void)state;
    for (size_t i = 0; i < COUNT(cases); i++) {
        struct view key;
        if (key_form_inside(view_str(cases[i]), &key))
            fail_msg("%s: %.*s", cases[i], VIEW_ARG(key));
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(pv_02_a_key_is_known_by_its_form_wherever_it_stands),
        cmocka_unit_test(what_only_begins_like_a_key_is_none),
    };
    return cmocka_run_group_tests_name("key_form", tests, NULL, NULL);
}
