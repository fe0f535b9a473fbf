#include "policy/policy.h"

#include "policy/errors.h"
#include "policy/rules.h"

#include <stdlib.h>

static int compile(struct policy *p, struct view text, const char *file,
                   struct policy_errors *errors) {
    int err = policy_read(p, text, file, errors);
    if (err == 0)
        err = policy_check(p, errors);
    if (err == 0 && errors->total == 0)
        err = policy_try(p, errors);
    return err;
}

int policy_load(struct view text, const char *file, struct policy **out,
                struct policy_errors *errors) {
    *out = NULL;
    errors->n = errors->total = 0;
    struct policy *p = calloc(1, sizeof *p);
    if (!p)
        return ERR_MEMORY;
    int err = compile(p, text, file, errors);
    if (err == 0 && errors->total != 0) {
        errors_sort(errors);
        err = ERR_BAD;
    }
    if (err != 0)
        policy_free(p);
    else
        *out = p;
    return err;
}

void policy_free(struct policy *p) {
    if (!p)
        return;
    arena_free(&p->arena);
    free(p);
}

bool policy_wide_host(const struct policy *p, size_t i, struct view *text, struct position *at) {
    for (const struct host_entry *e = p->entries; e < p->entries + p->n_entries; e++) {
        if (!e->rule->wide || i-- > 0)
            continue;
        *text = e->rule->text;
        *at = e->rule->at;
        return true;
    }
    return false;
}
