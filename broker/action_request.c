#include "broker/action.h"

#include "policy/placeholder.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

int action_say(struct buf *text, int code, const char *format, ...) {
    char sentence[512];
    va_list ap;
    va_start(ap, format);
    vsnprintf(sentence, sizeof sentence, format, ap);
    va_end(ap);
    buf_reset(text);
    buf_put_str(text, sentence);
    return code;
}

static bool has_name(uint16_t type) {
    return type != BROKER_SECRET_LIST && type != BROKER_SANDBOX_LIST &&
           type != BROKER_VAULT_BACKUP && type != BROKER_VAULT_RESTORE &&
           type != BROKER_VAULT_REKEY;
}

int action_read(uint16_t type, struct view body, struct request *out) {
    struct reader r = reader_of(body);
    struct view name = {NULL, 0}, like = {NULL, 0}, pem = {NULL, 0};
    memset(out, 0, sizeof *out);
    out->type = type;
    out->uid = read_u32(&r);
    if (type == BROKER_SECRET_ADD || type == BROKER_SECRET_ROTATE)
        out->allow_short = read_u8(&r) != 0;
    if (has_name(type))
        name = read_block(&r, NAME_SIZE - 1);
    if (type == BROKER_SECRET_ADD)
        like = read_block(&r, LIKE_SIZE - 1);
    if (type == BROKER_SECRET_ADD || type == BROKER_SECRET_ROTATE)
        pem = read_block(&r, CERTIFICATE_PEM_MAX);
    if (!read_done(&r) || view_cstr(name, out->name, NAME_SIZE) != 0 ||
        view_cstr(like, out->like, LIKE_SIZE) != 0)
        return ERR_BAD;
    buf_init(&out->pem, CERTIFICATE_PEM_MAX);
    buf_put(&out->pem, pem);
    return buf_ok(&out->pem) ? 0 : ERR_MEMORY;
}

void request_free(struct request *r) {
    buf_free(&r->pem);
}

static int check_like(const char *like, struct buf *text) {
    static const uint8_t zeros[32];
    char made[PLACEHOLDER_SIZE];
    if (placeholder_make(view_str(like), zeros, made) == 0)
        return 0;
    return action_say(text, ERR_BAD, "--like: a prefix has at most %d letters, digits and _ - . :",
                      PLACEHOLDER_PREFIX_MAX);
}

/* A secret stays of its kind. */
static int check_kind(const struct request *r, const struct vault_secret *old, struct buf *text) {
    bool is = vault_secret_is_certificate(old), given = buf_len(&r->pem) > 0;
    if (r->type != BROKER_SECRET_ROTATE || is == given)
        return 0;
    return is ? action_say(
                    text, ERR_BAD,
                    "%s is a client certificate: give its next one with --client-certificate",
                    r->name)
              : action_say(text, ERR_BAD, "%s is no client certificate: remove it and add one",
                           r->name);
}

static int check_secret(const struct custody *c, const struct request *r, struct buf *text) {
    const struct inventory *v = vault_inventory(c->vault);
    const struct vault_secret *old = inventory_secret(v, view_str(r->name));
    if (r->type == BROKER_SECRET_ADD && old)
        return action_say(text, ERR_EXISTS, "there is a secret %s already: rotate it", r->name);
    if (r->type == BROKER_SECRET_ADD && inventory_has_twin(v, ROW_SECRET, view_str(r->name)))
        return action_say(text, ERR_EXISTS,
                          "there is a secret whose name differs from %s only in case", r->name);
    if (r->type != BROKER_SECRET_ADD)
        return old ? check_kind(r, old, text)
                   : action_say(text, ERR_MISSING, "there is no secret %s", r->name);
    return check_like(r->like, text);
}

static int check_sandbox(const struct custody *c, const struct request *r, struct buf *text) {
    const struct inventory *v = vault_inventory(c->vault);
    struct view name = view_str(r->name);
    if (r->type == BROKER_SANDBOX_REMOVE)
        return inventory_sandbox(v, name)
                   ? 0
                   : action_say(text, ERR_MISSING, "nothing was issued to a sandbox %s", r->name);
    if (!c->mandate)
        return action_say(text, ERR_MISSING, "no policy is in use yet");
    if (!policy_has_sandbox(c->mandate->policy, name))
        return action_say(
            text, ERR_MISSING,
            "the policy in use does not declare a sandbox %s: declare it, then reload", r->name);
    if (inventory_has_twin(v, ROW_SANDBOX, name))
        return action_say(
            text, ERR_EXISTS,
            "there is a sandbox whose name differs from %s only in case: remove it first", r->name);
    return 0;
}

int action_check(const struct custody *c, const struct request *r, struct buf *text) {
    if (r->type == BROKER_VAULT_RESTORE)
        return c->kek ? 0 : action_say(text, ERR_DENIED, "%s", c->why);
    if (!c->vault)
        return action_say(text, ERR_DENIED, "the vault is locked: %s", c->why);
    if (!has_name(r->type))
        return 0;
    if (!vault_name_is_good(view_str(r->name)))
        return action_say(
            text, ERR_BAD,
            "a name has 1 to 64 letters, digits, '-', '_' and '.', and begins with a letter "
            "or a digit");
    return r->type <= BROKER_SECRET_REMOVE ? check_secret(c, r, text) : check_sandbox(c, r, text);
}
