#include "policy/policy.h"

#include "policy/errors.h"
#include "policy/pack.h"
#include "policy/rules.h"

#include <stdlib.h>

static int compile(struct policy *p, struct view text, const char *file,
                   const struct policy_files *files, struct policy_errors *errors) {
    int err = policy_read(p, text, file, files, errors);
    if (err == 0)
        err = policy_check(p, errors);
    if (err == 0)
        err = policy_compile(p);
    if (err == 0 && errors->total == 0)
        policy_check_ties(p, errors);
    return err == 0 && errors->total != 0 ? ERR_BAD : err;
}

int policy_load_failing(struct view text, const char *file, const struct policy_files *files,
                        struct policy **out, struct policy_errors *errors) {
    *out = NULL;
    errors_reset(errors);
    struct policy *p = calloc(1, sizeof *p);
    if (!p)
        return ERR_MEMORY;
    int err = compile(p, text, file, files, errors);
    if (err == 0)
        err = policy_try(p, errors);
    errors_sort(errors, file);
    if (err != 0) {
        errors_keep_names(errors, file);
        policy_free(p);
    } else {
        *out = p;
    }
    return err;
}

int policy_load_files(struct view text, const char *file, const struct policy_files *files,
                      struct policy **out, struct policy_errors *errors) {
    int err = policy_load_failing(text, file, files, out, errors);
    if (err != 0 || errors->total == 0)
        return err;
    errors_keep_names(errors, file);
    policy_free(*out);
    *out = NULL;
    return ERR_BAD;
}

int policy_load(struct view text, const char *file, struct policy **out,
                struct policy_errors *errors) {
    struct unpacker packed;
    if (!pack_is(text))
        return policy_load_files(text, file, NULL, out, errors);
    struct view first;
    struct policy_files files = unpack_begin(&packed, text, &first);
    int err = policy_load_files(first, file, &files, out, errors);
    if (err != 0 || unpack_is_whole(&packed))
        return err;
    errors_add(errors, (struct position){file, 1, 1}, "the packed text is cut off");
    policy_free(*out);
    *out = NULL;
    return ERR_BAD;
}

int policy_load_packing(struct view text, const char *file, const struct policy_files *files,
                        struct buf *packed, struct policy **out, struct policy_errors *errors) {
    struct packer packer;
    struct policy_files keeping = pack_begin(&packer, files, text, packed);
    int err = policy_load_files(text, file, &keeping, out, errors);
    pack_end(&packer, text);
    if (err != 0 || buf_ok(packed))
        return err;
    policy_free(*out);
    *out = NULL;
    return ERR_LIMIT;
}

void policy_free(struct policy *p) {
    if (!p)
        return;
    arena_free(&p->arena);
    free(p);
}
