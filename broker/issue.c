#include "broker/issue.h"

#include "base/json.h"
#include "base/secret.h"
#include "policy/bundle.h"

#include <stdlib.h>
#include <string.h>

enum { BASE = 62, RANDOM_SIZE = 32, TOKEN_PREFIX = 4 };

static const char digits[BASE + 1] =
    "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz";

void issue_token(const uint8_t random[RANDOM_SIZE], char out[TOKEN_SIZE]) {
    uint8_t number[RANDOM_SIZE];
    memcpy(number, random, sizeof number);
    memcpy(out, "ext_", TOKEN_PREFIX);
    for (size_t at = TOKEN_SIZE - 1; at-- > TOKEN_PREFIX;) {
        unsigned rest = 0;
        for (size_t i = 0; i < sizeof number; i++) {
            unsigned x = rest << 8 | number[i];
            number[i] = (uint8_t)(x / BASE);
            rest = x % BASE;
        }
        out[at] = digits[rest];
    }
    out[TOKEN_SIZE - 1] = 0;
    secret_clear(number, sizeof number);
}

static int issue_placeholder(const struct vault_secret *secret, issue_random *random,
                             struct vault_placeholder *p, char value[PLACEHOLDER_SIZE]) {
    uint8_t bytes[RANDOM_SIZE];
    random(bytes, sizeof bytes);
    int result = placeholder_make(view_str(secret->like), bytes, value);
    secret_clear(bytes, sizeof bytes);
    if (result != 0)
        return result;
    memcpy(p->credential, secret->name, NAME_SIZE);
    p->secret_id = secret->id;
    digest_sha256(view_str(value), p->fingerprint);
    return 0;
}

static int issue_all(const struct inventory *v, const struct view *credentials,
                     issue_random *random, struct issued *out, struct view *which) {
    for (size_t i = 0; i < out->sandbox.n; i++) {
        const struct vault_secret *secret = inventory_secret(v, credentials[i]);
        *which = credentials[i];
        int result = secret ? issue_placeholder(secret, random, &out->sandbox.placeholders[i],
                                                out->values[i])
                            : ERR_MISSING;
        if (result != 0)
            return result;
    }
    return 0;
}

int issue_sandbox(const struct inventory *v, struct view name, const struct view *credentials,
                  size_t n, issue_random *random, uint64_t now, struct issued *out,
                  struct view *which) {
    uint8_t bytes[RANDOM_SIZE];
    memset(out, 0, sizeof *out);
    *which = (struct view){NULL, 0};
    if (!vault_name_is_good(name) || view_cstr(name, out->sandbox.name, NAME_SIZE) != 0)
        return ERR_BAD;
    if (n > PLACEHOLDERS_MAX)
        return ERR_LIMIT;
    random(bytes, sizeof bytes);
    issue_token(bytes, out->token);
    secret_clear(bytes, sizeof bytes);
    digest_sha256(view_str(out->token), out->sandbox.token);
    out->replaces = inventory_sandbox(v, name) != NULL;
    out->sandbox.created = now;
    out->sandbox.n = n;
    out->sandbox.placeholders = calloc(n + 1, sizeof *out->sandbox.placeholders);
    out->values = calloc(n + 1, sizeof *out->values);
    int result = out->sandbox.placeholders && out->values
                     ? issue_all(v, credentials, random, out, which)
                     : ERR_MEMORY;
    if (result != 0)
        issued_free(out);
    return result;
}

void issued_free(struct issued *i) {
    if (i->values)
        secret_clear(i->values, i->sandbox.n * sizeof *i->values);
    free(i->values);
    free(i->sandbox.placeholders);
    secret_clear(i, sizeof *i);
}

void issued_write(const struct issued *i, struct buf *out) {
    buf_put_str(out, "{");
    json_put_text(out, "name", view_str(i->sandbox.name));
    json_put_text(out, "token", view_str(i->token));
    buf_put_str(out, ",\"placeholders\":[");
    for (size_t k = 0; k < i->sandbox.n; k++) {
        buf_put_str(out, k ? ",{" : "{");
        json_put_text(out, "credential", view_str(i->sandbox.placeholders[k].credential));
        json_put_text(out, "value", view_str(i->values[k]));
        buf_put_str(out, "}");
    }
    buf_printf(out, "],\"replaces\":%s}", i->replaces ? "true" : "false");
}

static void registry_put_sandbox(const struct vault_sandbox *s, struct buf *out) {
    struct registry_entry e = {.kind = REGISTRY_TOKEN};
    memcpy(e.fingerprint, s->token, FINGERPRINT_SIZE);
    e.sandbox = view_str(s->name);
    registry_put(out, &e);
    for (size_t i = 0; i < s->n; i++) {
        e.kind = REGISTRY_PLACEHOLDER;
        memcpy(e.fingerprint, s->placeholders[i].fingerprint, FINGERPRINT_SIZE);
        e.credential = view_str(s->placeholders[i].credential);
        registry_put(out, &e);
    }
}

void issue_registry(const struct inventory *v, struct buf *out) {
    if (!v)
        registry_put(out, &(struct registry_entry){.kind = REGISTRY_LOCKED});
    for (size_t i = 0; v && i < v->n_sandboxes; i++)
        registry_put_sandbox(&v->sandboxes[i], out);
}

bool issue_covers(const struct inventory *v, struct view sandbox, struct view credential,
                  const uint8_t fingerprint[DIGEST_SIZE]) {
    const struct vault_sandbox *s = inventory_sandbox(v, sandbox);
    const struct vault_secret *secret = inventory_secret(v, credential);
    bool covers = false;
    if (secret && vault_secret_is_certificate(secret))
        return false;
    for (size_t i = 0; s && secret && i < s->n; i++)
        covers |= view_equal(view_str(s->placeholders[i].credential), credential) &&
                  s->placeholders[i].secret_id == secret->id &&
                  secret_equal(s->placeholders[i].fingerprint, fingerprint, DIGEST_SIZE);
    return covers;
}
