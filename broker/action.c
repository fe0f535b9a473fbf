#include "broker/action.h"

#include "base/json.h"
#include "base/log.h"
#include "base/secret.h"
#include "broker/certificate.h"
#include "broker/issue.h"
#include "broker/revival.h"

#include <stdio.h>
#include <stdlib.h>

enum { REGISTRY_MAX = CHANNEL_BODY_MAX / 2 };

/* ---- records ---- */

static const struct action_name {
    uint16_t type;
    const char *done;
    bool on_sandbox;
} names[] = {
    {BROKER_SECRET_ADD, "secret_added", false},
    {BROKER_SECRET_ROTATE, "secret_rotated", false},
    {BROKER_SECRET_REMOVE, "secret_removed", false},
    {BROKER_SANDBOX_ADD, "sandbox_added", true},
    {BROKER_SANDBOX_REMOVE, "sandbox_removed", true},
    {BROKER_VAULT_BACKUP, "vault_backup", false},
    {BROKER_VAULT_RESTORE, "vault_restored", false},
    {BROKER_VAULT_REKEY, "vault_rekeyed", false},
};

static const struct action_name *name_of(uint16_t type) {
    size_t i = 0;
    while (names[i].type != type)
        i++;
    return &names[i];
}

static int record(struct custody *c, const struct request *r, const char *event, uint32_t version,
                  const char *detail) {
    const struct action_name *action = name_of(r->type);
    struct journal_event e = {
        .event = event,
        .uid = r->uid,
        .version = version,
        .state = c->vault ? vault_counter(c->vault) : 0,
        .detail = detail,
    };
    *(action->on_sandbox ? &e.sandbox : &e.credential) = view_str(r->name);
    return journal_event(c->journal, &e);
}

/* Before anything is changed. */
static int announce(struct custody *c, const struct request *r, uint32_t version,
                    struct buf *text) {
    if (record(c, r, name_of(r->type)->done, version, NULL) == 0)
        return 0;
    return action_say(text, ERR_SYSTEM, "the audit trail takes no record: nothing was changed");
}

/* What was announced did not happen: the trail must say so too. */
static int failed(struct custody *c, const struct request *r, int code, const char *why,
                  struct buf *text) {
    char detail[VAULT_WHY_SIZE + 64];
    snprintf(detail, sizeof detail, "%s did not happen: %s", name_of(r->type)->done, why);
    if (record(c, r, "vault_failed", 0, detail) != 0)
        log_warn("vault: %s", detail);
    return action_say(text, code, "nothing was changed: %s", why);
}

/* ---- secrets ---- */

static void begin_done(const struct request *r, uint32_t version, struct buf *text) {
    buf_reset(text);
    buf_put_str(text, "{");
    json_put_text(text, "name", view_str(r->name));
    if (version)
        json_put_number(text, "version", version);
}

static void put_done(const struct request *r, uint32_t version, struct buf *text) {
    begin_done(r, version, text);
    buf_put_str(text, "}");
}

/* A new secret that no service of the policy in use names is most likely a slip of the hand. */
static void put_added(const struct custody *c, const struct request *r, struct buf *text) {
    struct view nearest = {NULL, 0}, name = view_str(r->name);
    begin_done(r, 1, text);
    if (c->mandate &&
        !(buf_len(&r->pem) > 0 ? policy_has_certificate(c->mandate->policy, name)
                               : policy_has_credential(c->mandate->policy, name, &nearest))) {
        buf_put_str(text, ",\"lent\":false");
        json_put_text(text, "nearest", nearest);
    }
    buf_put_str(text, "}");
}

/* What is kept of a request: of a client certificate, the digits of its key in the arena. */
struct kept {
    struct certificate certificate;
    struct buf digits;
    struct view value;
};

static void kept_free(struct kept *k) {
    certificate_free(&k->certificate);
    buf_free(&k->digits);
}

static int read_certificate(const struct request *r, struct view source, uint64_t now,
                            struct kept *k, struct buf *text) {
    const char *why = certificate_read(buf_view(&r->pem), now, &k->certificate);
    if (why)
        return action_say(text, ERR_BAD, "the certificate is refused: %s", why);
    why = certificate_key(&k->certificate, source, &k->digits);
    k->value = buf_view(&k->digits);
    return why ? action_say(text, ERR_BAD, "the private key is refused: %s", why) : 0;
}

static int read_value(const struct request *r, struct view source, uint64_t now, struct kept *k,
                      struct buf *text) {
    if (buf_len(&r->pem) > 0)
        return read_certificate(r, source, now, k, text);
    if (source.n > 0 && source.p[source.n - 1] == '\n')
        source = view_head(source, source.n - 1);
    k->value = source;
    const char *why = vault_refuses_value(source, r->allow_short);
    return why ? action_say(text, ERR_BAD, "the value is refused: %s", why) : 0;
}

static int put_value(struct custody *c, const struct request *r, const struct kept *k,
                     uint64_t now) {
    struct view name = view_str(r->name), chain = buf_view(&k->certificate.chain);
    const struct vault_certificate *told = &k->certificate.told;
    bool rotates = r->type == BROKER_SECRET_ROTATE;
    if (buf_len(&r->pem) > 0)
        return rotates ? vault_rotate_certificate(c->vault, name, told, chain, k->value, now)
                       : vault_add_certificate(c->vault, name, told, chain, k->value, now);
    return rotates ? vault_rotate(c->vault, name, k->value, now)
                   : vault_add(c->vault, name, view_str(r->like), k->value, now);
}

static int keep_value(struct custody *c, const struct request *r, const struct kept *k,
                      uint64_t now, struct buf *text) {
    const struct vault_secret *old = inventory_secret(vault_inventory(c->vault), view_str(r->name));
    uint32_t version = old ? old->version + 1 : 1;
    int result = announce(c, r, version, text);
    if (result != 0)
        return result;
    result = put_value(c, r, k, now);
    if (result != 0)
        return failed(c, r, result, err_text(result), text);
    if (r->type == BROKER_SECRET_ADD)
        put_added(c, r, text);
    else
        put_done(r, version, text);
    return 0;
}

int action_value(struct custody *c, const struct request *r, struct view source, uint64_t now,
                 struct buf *text) {
    struct kept k = {.value = {NULL, 0}};
    int result = action_check(c, r, text);
    if (result != 0)
        return result;
    buf_init_secret(&k.digits, SECRET_MAX);
    result = read_value(r, source, now, &k, text);
    if (result == 0)
        result = keep_value(c, r, &k, now, text);
    kept_free(&k);
    return result;
}

int action_secret_remove(struct custody *c, const struct request *r, struct buf *text) {
    int result = action_check(c, r, text);
    if (result == 0)
        result = announce(c, r, 0, text);
    if (result != 0)
        return result;
    result = vault_remove(c->vault, view_str(r->name));
    if (result != 0)
        return failed(c, r, result, err_text(result), text);
    put_done(r, 0, text);
    return 0;
}

/* ---- sandboxes ---- */

/* A certificate is never put into a request, so that no placeholder stands for it. NULL: all can be issued. */
static const struct view *certificate_among(const struct inventory *v,
                                            const struct view *credentials, size_t n) {
    for (size_t i = 0; i < n; i++) {
        const struct vault_secret *s = inventory_secret(v, credentials[i]);
        if (s && vault_secret_is_certificate(s))
            return &credentials[i];
    }
    return NULL;
}

static int issue(const struct custody *c, const struct request *r, uint64_t now, struct issued *out,
                 struct buf *text) {
    struct view name = view_str(r->name), which;
    size_t n = policy_sandbox_credentials(c->mandate->policy, name);
    struct view *credentials = calloc(n + 1, sizeof *credentials);
    if (!credentials)
        return action_say(text, ERR_MEMORY, "no memory");
    for (size_t i = 0; i < n; i++)
        credentials[i] = policy_sandbox_credential_at(c->mandate->policy, name, i);
    const struct view *wrong = certificate_among(vault_inventory(c->vault), credentials, n);
    int result = wrong ? ERR_BAD
                       : issue_sandbox(vault_inventory(c->vault), name, credentials, n,
                                       random_bytes, now, out, &which);
    if (wrong)
        action_say(
            text, result,
            "the policy lends %s the credential %.*s, but that is a client certificate in the "
            "vault",
            r->name, VIEW_ARG(*wrong));
    else if (result == ERR_MISSING)
        action_say(
            text, result,
            "the policy lends %s the credential %.*s, but the vault has no secret of that name: "
            "`exeat secret add %.*s`",
            r->name, VIEW_ARG(which), VIEW_ARG(which));
    else if (result != 0)
        action_say(text, result, "nothing was issued: %s", err_text(result));
    free(credentials);
    return result;
}

/* The registry travels in one message: what would not fit must not be kept. */
static bool registry_fits(const struct custody *c, const struct issued *issued) {
    struct vault_sandbox more = issued->sandbox;
    struct inventory one = {.sandboxes = &more, .n_sandboxes = 1};
    struct buf b;
    buf_init(&b, REGISTRY_MAX);
    issue_registry(vault_inventory(c->vault), &b);
    issue_registry(&one, &b);
    bool fits = buf_ok(&b);
    buf_free(&b);
    return fits;
}

static int keep_issued(struct custody *c, const struct request *r, const struct issued *issued,
                       struct buf *text) {
    if (!registry_fits(c, issued))
        return action_say(text, ERR_LIMIT,
                          "too many sandboxes and placeholders: remove some first");
    int result = announce(c, r, 0, text);
    if (result != 0)
        return result;
    result = vault_put_sandbox(c->vault, &issued->sandbox);
    if (result != 0)
        return failed(c, r, result, err_text(result), text);
    buf_reset(text);
    issued_write(issued, text);
    return 0;
}

int action_sandbox_add(struct custody *c, const struct request *r, uint64_t now, struct buf *text) {
    struct issued issued;
    int result = action_check(c, r, text);
    if (result == 0)
        result = issue(c, r, now, &issued, text);
    if (result != 0)
        return result;
    result = keep_issued(c, r, &issued, text);
    issued_free(&issued);
    return result;
}

int action_sandbox_remove(struct custody *c, const struct request *r, struct buf *text) {
    int result = action_check(c, r, text);
    if (result == 0)
        result = announce(c, r, 0, text);
    if (result != 0)
        return result;
    result = vault_drop_sandbox(c->vault, view_str(r->name));
    if (result != 0)
        return failed(c, r, result, err_text(result), text);
    put_done(r, 0, text);
    return 0;
}

/* ---- lists ---- */

static void put_kind(const struct vault_secret *s, struct buf *text) {
    char digits[2 * DIGEST_SIZE + 1];
    bool is = vault_secret_is_certificate(s);
    json_put_text(text, "kind", is ? VIEW("client certificate") : VIEW("secret"));
    if (!is)
        return;
    hex_encode(view_of(s->certificate.fingerprint, DIGEST_SIZE), digits);
    json_put_text(text, "subject", view_str(s->certificate.subject));
    json_put_number(text, "not_after", s->certificate.not_after);
    json_put_text(text, "fingerprint", view_str(digits));
}

static void list_secrets(const struct inventory *v, struct buf *text) {
    for (size_t i = 0; i < v->n_secrets; i++) {
        const struct vault_secret *s = &v->secrets[i];
        buf_put_str(text, i ? ",{" : "{");
        json_put_text(text, "name", view_str(s->name));
        json_put_text(text, "like", view_str(s->like));
        json_put_number(text, "version", s->version);
        json_put_number(text, "created", s->created);
        if (s->version > 1)
            json_put_number(text, "rotated", s->rotated);
        put_kind(s, text);
        buf_put_str(text, "}");
    }
}

static void put_element(struct buf *text, struct view name) {
    struct view done = buf_view(text);
    buf_put_str(text, done.n > 0 && done.p[done.n - 1] == '[' ? "" : ",");
    json_put_string(text, name);
}

static bool is_issued(const struct vault_sandbox *s, struct view credential) {
    for (size_t i = 0; s && i < s->n; i++)
        if (view_equal(view_str(s->placeholders[i].credential), credential))
            return true;
    return false;
}

/* p: NULL when the policy does not declare it. s: NULL when nothing was issued to it. */
static void put_sandbox(struct buf *text, struct view name, const struct policy *p,
                        const struct vault_sandbox *s) {
    size_t granted = p ? policy_sandbox_credentials(p, name) : 0;
    buf_put_str(text, buf_len(text) > 1 ? ",{" : "{");
    json_put_text(text, "name", name);
    buf_printf(text, ",\"declared\":%s,\"registered\":%s,\"issued\":[", p ? "true" : "false",
               s ? "true" : "false");
    for (size_t i = 0; s && i < s->n; i++)
        put_element(text, view_str(s->placeholders[i].credential));
    buf_put_str(text, "],\"not_issued\":[");
    for (size_t i = 0; i < granted; i++)
        if (!is_issued(s, policy_sandbox_credential_at(p, name, i)))
            put_element(text, policy_sandbox_credential_at(p, name, i));
    buf_put_str(text, "]}");
}

static void list_declared(const struct custody *c, struct buf *text) {
    const struct policy *p = c->mandate->policy;
    for (size_t i = 0; i < policy_sandboxes(p); i++) {
        struct view name = policy_sandbox_at(p, i);
        put_sandbox(text, name, p, inventory_sandbox(vault_inventory(c->vault), name));
    }
}

static void list_undeclared(const struct custody *c, struct buf *text) {
    const struct inventory *v = vault_inventory(c->vault);
    for (size_t i = 0; i < v->n_sandboxes; i++) {
        struct view name = view_str(v->sandboxes[i].name);
        if (!c->mandate || !policy_has_sandbox(c->mandate->policy, name))
            put_sandbox(text, name, NULL, &v->sandboxes[i]);
    }
}

int action_list(const struct custody *c, const struct request *r, struct buf *text) {
    int result = action_check(c, r, text);
    if (result != 0)
        return result;
    buf_reset(text);
    buf_put_str(text, "[");
    if (r->type == BROKER_SECRET_LIST) {
        list_secrets(vault_inventory(c->vault), text);
    } else {
        if (c->mandate)
            list_declared(c, text);
        list_undeclared(c, text);
    }
    buf_put_str(text, "]");
    return buf_ok(text) ? 0 : action_say(text, ERR_LIMIT, "the list is too long");
}

/* ---- the whole vault ---- */

/* Without the brace at its end. */
static void put_counts(const struct custody *c, struct buf *text) {
    buf_reset(text);
    buf_put_str(text, "{");
    json_put_number(text, "state", vault_counter(c->vault));
    json_put_number(text, "secrets", vault_inventory(c->vault)->n_secrets);
    json_put_number(text, "sandboxes", vault_inventory(c->vault)->n_sandboxes);
}

static void put_state(const struct custody *c, struct buf *text) {
    put_counts(c, text);
    buf_put_str(text, "}");
}

int action_backup(struct custody *c, const struct request *r, struct buf *image, struct buf *text) {
    int result = action_check(c, r, text);
    if (result == 0)
        result = announce(c, r, 0, text);
    if (result != 0)
        return result;
    result = vault_backup(c->vault, image);
    if (result != 0)
        return failed(c, r, result, err_text(result), text);
    put_state(c, text);
    return 0;
}

/* One record each, so that a search for the name finds it. */
static void tell_back(struct custody *c, const struct request *r, struct view name, bool sandbox,
                      struct buf *text) {
    buf_put_str(text, text->p[text->n - 1] == '[' ? "" : ",");
    json_put_string(text, name);
    struct journal_event e = {.event = sandbox ? "sandbox_restored" : "secret_restored",
                              .uid = r->uid,
                              .state = vault_counter(c->vault),
                              .detail = "what was removed or replaced since the copy counts again"};
    *(sandbox ? &e.sandbox : &e.credential) = name;
    if (journal_event(c->journal, &e) != 0)
        log_warn("vault: the copy brought %.*s back", VIEW_ARG(name));
}

/* {"state":...,"sandboxes_back":[names],"secrets_back":[names]} */
static void put_restored(struct custody *c, const struct request *r, const struct revival *was,
                         struct buf *text) {
    const struct inventory *v = vault_inventory(c->vault);
    put_counts(c, text);
    buf_put_str(text, ",\"sandboxes_back\":[");
    for (size_t i = 0; i < v->n_sandboxes; i++)
        if (revival_of_sandbox(was, &v->sandboxes[i]))
            tell_back(c, r, view_str(v->sandboxes[i].name), true, text);
    buf_put_str(text, "],\"secrets_back\":[");
    for (size_t i = 0; i < v->n_secrets; i++)
        if (revival_of_secret(was, &v->secrets[i]))
            tell_back(c, r, view_str(v->secrets[i].name), false, text);
    buf_put_str(text, "]}");
}

static int restore(struct custody *c, const struct request *r, struct view image,
                   const struct revival *was, struct buf *text) {
    char why[VAULT_WHY_SIZE];
    int result = announce(c, r, 0, text);
    if (result != 0)
        return result;
    result = vault_restore(&c->vault, c->directory, c->kek, image, why);
    if (result != 0)
        return failed(c, r, result, why, text);
    put_restored(c, r, was, text);
    return 0;
}

int action_restore(struct custody *c, const struct request *r, struct view image,
                   struct buf *text) {
    struct revival was;
    int result = action_check(c, r, text);
    if (result != 0)
        return result;
    if (revival_note(&was, c->vault ? vault_inventory(c->vault) : NULL) == 0)
        result = restore(c, r, image, &was, text);
    else
        result = action_say(text, ERR_MEMORY, "no memory: nothing was changed");
    revival_free(&was);
    return result;
}

static int rekey(struct custody *c, const struct request *r, uint8_t *kek, struct buf *text) {
    int result = announce(c, r, 0, text);
    if (result != 0)
        return result;
    result = vault_rekey(c->vault, kek);
    return result == 0 ? 0 : failed(c, r, result, err_text(result), text);
}

int action_rekey(struct custody *c, const struct request *r, struct view source, struct buf *text) {
    int result = action_check(c, r, text);
    if (result != 0)
        return result;
    uint8_t *kek = secret_alloc(SEAL_KEY_SIZE);
    if (!kek)
        return action_say(text, ERR_MEMORY, "the arena is full");
    if (seal_parse_key(source, kek) != 0)
        result = action_say(text, ERR_BAD, "the new key is not 64 hexadecimal digits");
    else
        result = rekey(c, r, kek, text);
    if (result != 0) {
        secret_free(kek);
        return result;
    }
    custody_take_key(c, kek);
    put_state(c, text);
    return 0;
}
