/*
 * The vault: the secrets, sealed, and what was issued to sandboxes. One file,
 * vault.db (broker/store.h), beside vault.head (broker/head.h).
 *
 * Believed only as a whole. A digest keyed by the key-encryption key covers
 * every row, their number and a counter that grows with each change; it is
 * checked at opening and made anew inside each transaction. So a row that was
 * removed, changed, brought back from an older state or from another
 * installation, and a whole file that is older than vault.head, are refused,
 * never read: the caller then has no vault and a text that says why and what
 * to do. Values are only ever in the arena; SQLite sees sealed boxes.
 *
 * After a kill at any moment the vault is as before the change or as after it.
 * A change that was reported as done is on the disk.
 */
#ifndef BROKER_VAULT_H
#define BROKER_VAULT_H

#include "broker/broker_messages.h"
#include "broker/inventory.h"
#include "broker/seal.h"

struct vault;

enum { VAULT_WHY_SIZE = 320, SECRET_LEAST = 16 };

/*
 * Opens directory/vault.db, or makes it when neither it nor vault.head exists.
 * Any error leaves *out NULL and a sentence in why. now in seconds.
 */
MUST_USE int vault_open(const char *directory, const uint8_t kek[SEAL_KEY_SIZE], struct vault **out,
                        char why[VAULT_WHY_SIZE]);
/* Clears the keys; NULL is fine. */
void vault_close(struct vault *v);

/* Holds until the next change. */
const struct inventory *vault_inventory(const struct vault *v);
/* Grows by one with every change; for the audit trail. */
uint64_t vault_counter(const struct vault *v);

/*
 * Whether a value may be kept: SECRET_LEAST (1 when allow_short) to SECRET_MAX
 * bytes, all visible ASCII (0x21 to 0x7e), so that it can never end a header
 * field (PH-05). NULL, or a static sentence fragment that says what is wrong.
 */
const char *vault_refuses_value(struct view value, bool allow_short);

/* The value was checked; name is good, like is a placeholder's prefix. ERR_EXISTS, or an error of the store or seal. */
MUST_USE int vault_add(struct vault *v, struct view name, struct view like, struct view value,
                       uint64_t now);
/* ERR_MISSING */
MUST_USE int vault_rotate(struct vault *v, struct view name, struct view value, uint64_t now);
/* The same with a client certificate: value has the digits of its key, chain its DER. A secret stays of its kind: ERR_BAD. */
MUST_USE int vault_add_certificate(struct vault *v, struct view name,
                                   const struct vault_certificate *c, struct view chain,
                                   struct view value, uint64_t now);
MUST_USE int vault_rotate_certificate(struct vault *v, struct view name,
                                      const struct vault_certificate *c, struct view chain,
                                      struct view value, uint64_t now);
/* Appends the chain of a client certificate. ERR_MISSING; ERR_CRYPTO as vault_reveal. */
MUST_USE int vault_chain(struct vault *v, struct view name, struct buf *chain);
/* Takes the secret's placeholders away from every sandbox too. ERR_MISSING */
MUST_USE int vault_remove(struct vault *v, struct view name);
/* Appends the value to a secret buffer. ERR_MISSING; ERR_CRYPTO when the row is not what was last written. */
MUST_USE int vault_reveal(struct vault *v, struct view name, struct buf *value, uint32_t *version);

/* Adds or replaces what was issued to s->name. ERR_EXISTS: another one differs only in case. */
MUST_USE int vault_put_sandbox(struct vault *v, const struct vault_sandbox *s);
/* ERR_MISSING */
MUST_USE int vault_drop_sandbox(struct vault *v, struct view name);

/* Appends a copy: sealed as the file is, of use only with the same key. */
MUST_USE int vault_backup(struct vault *v, struct buf *out);
/*
 * Replaces the content by that of a copy, after checking all of it under kek,
 * the vault's own key. *v NULL: the vault could not be opened; its file is
 * set aside as vault.db.damaged and *v is opened anew. On failure nothing has
 * changed, and why says what was wrong.
 */
MUST_USE int vault_restore(struct vault **v, const char *directory,
                           const uint8_t kek[SEAL_KEY_SIZE], struct view image,
                           char why[VAULT_WHY_SIZE]);
/* Wraps all data keys by the new key-encryption key, in one transaction. */
MUST_USE int vault_rekey(struct vault *v, const uint8_t kek[SEAL_KEY_SIZE]);

#endif
