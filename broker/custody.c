#include "broker/custody.h"

#include "base/log.h"
#include "base/secret.h"

#include <stdio.h>

static void lock(struct custody *c, const char *why) {
    snprintf(c->why, sizeof c->why, "%s", why);
}

void custody_take_key(struct custody *c, uint8_t *kek) {
    secret_free(c->kek);
    c->kek = kek;
}

static void take_key_text(struct custody *c, struct view text) {
    uint8_t *kek = secret_alloc(SEAL_KEY_SIZE);
    if (kek && seal_parse_key(text, kek) == 0) {
        custody_take_key(c, kek);
        return;
    }
    secret_free(kek);
    custody_take_key(c, NULL);
    lock(c, text.n == 0 ? "there is no vault key: `exeat vault init` makes one"
                        : "vault.key is not 64 hexadecimal digits: put the right key back");
}

void custody_open(struct custody *c, struct view key_text) {
    vault_close(c->vault);
    c->vault = NULL;
    take_key_text(c, key_text);
    if (c->kek && vault_open(c->directory, c->kek, &c->vault, c->why) == 0)
        log_info("vault: open (secrets: %zu, sandboxes: %zu, state %llu)",
                 vault_inventory(c->vault)->n_secrets, vault_inventory(c->vault)->n_sandboxes,
                 (unsigned long long)vault_counter(c->vault));
    else
        log_warn("vault: locked, no secret is lent: %s", c->why);
}

uint64_t custody_state(const struct custody *c) {
    return c->vault ? vault_counter(c->vault) : 0;
}

void custody_close(struct custody *c) {
    vault_close(c->vault);
    mandate_free(c->mandate);
    journal_free(c->journal);
    secret_free(c->kek);
}
