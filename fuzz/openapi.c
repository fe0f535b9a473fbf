/*
 * A policy out of somebody else's OpenAPI description: whatever words stand in it, what loads is one service, and no sandbox is
 * granted anything.
 */
#include "cli/openapi_policy.h"
#include "policy/errors.h"
#include "policy/policy.h"

#include <stdlib.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

enum { TEXT_MAX = 4 << 20 };

static void check(struct view text) {
    static struct policy_errors errors;
    struct policy *p;
    if (policy_load(text, "openapi", &p, &errors) != 0)
        return;
    if (policy_services(p) != 1 || policy_sandboxes(p) != 0)
        abort();
    policy_free(p);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    struct openapi a;
    struct openapi_wish wish = {.url = {NULL, 0}};
    struct buf out;
    char why[256];
    const char *fault = NULL;
    buf_init(&out, TEXT_MAX);
    if (openapi_read(view_of(data, size), &a, why, sizeof why) == 0) {
        int result = openapi_policy_write(&a, &wish, &out, &fault);
        if (result == 0)
            check(buf_view(&out));
        else if (result == ERR_BAD && !fault)
            abort();
    }
    openapi_free(&a);
    buf_free(&out);
    return 0;
}
