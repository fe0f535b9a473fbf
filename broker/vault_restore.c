#include "broker/vault_inside.h"

#include "base/log.h"
#include "broker/head.h"
#include "broker/state.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

/* Opens a copy, checks all of it, and gives it a counter that nothing has had. */
static int prepare_copy(struct vault *copy, struct view image, uint64_t least) {
    int result = store_open_image(image, &copy->store);
    if (result == 0)
        result = state_check(copy->store, copy->keys, &copy->inventory, &copy->counter);
    if (result == 0)
        result = vault_check_values(copy);
    if (result == 0) {
        copy->counter = copy->counter > least ? copy->counter : least;
        result = vault_change(copy, copy->keys, NULL, NULL);
    }
    return result == ERR_MISSING ? ERR_CRYPTO : result;
}

/* The vault is open: one transaction. */
static int restore_into(struct vault *v, struct vault *copy) {
    int result = store_copy(copy->store, v->store);
    if (result != 0)
        return result;
    inventory_free(&v->inventory);
    v->inventory = copy->inventory;
    memset(&copy->inventory, 0, sizeof copy->inventory);
    v->counter = copy->counter;
    if (vault_write_head(v) != 0)
        log_warn("vault: vault.head could not be written; the vault itself was restored");
    return 0;
}

static int rename_if_there(const char *from, const char *to) {
    return rename(from, to) == 0 || errno == ENOENT ? 0 : ERR_SYSTEM;
}

/*
 * The vault is not open: the new file is made whole under another name first.
 * A kill between the renames leaves no vault.db, which the next start refuses
 * and another restore mends.
 */
static int restore_beside(struct vault *copy) {
    struct paths *p = &copy->paths;
    struct store *fresh = NULL;
    bool blank;
    if (unlink(p->fresh) != 0 && errno != ENOENT)
        return ERR_SYSTEM;
    int result = store_open(p->fresh, true, &fresh, &blank);
    if (result == 0)
        result = store_copy(copy->store, fresh);
    store_close(fresh);
    if (result == 0)
        result = rename_if_there(p->journal, p->damaged_journal);
    if (result == 0)
        result = rename_if_there(p->db, p->damaged);
    if (result == 0 && rename(p->fresh, p->db) != 0)
        result = ERR_SYSTEM;
    return result == 0 ? vault_write_head(copy) : result;
}

int vault_restore(struct vault **v, const char *directory, const uint8_t kek[SEAL_KEY_SIZE],
                  struct view image, char why[VAULT_WHY_SIZE]) {
    uint64_t least = 0;
    struct vault *copy = vault_new(directory, kek);
    if (!copy)
        return vault_explain(why, ERR_MEMORY, "no memory for the vault");
    if (*v)
        least = (*v)->counter;
    else if (head_read(copy->paths.head, copy->keys, &least) != 0)
        least = 0;
    int result = prepare_copy(copy, image, least);
    if (result != 0)
        vault_explain(why, result, "the copy is refused: it is %s",
                      result == ERR_DENIED ? "sealed under another key than vault.key"
                                           : "damaged, cut off, or no copy of a vault");
    else if ((result = *v ? restore_into(*v, copy) : restore_beside(copy)) != 0)
        vault_explain(why, result, "the vault could not be written: %s", err_text(result));
    vault_close(copy);
    return result == 0 && !*v ? vault_open(directory, kek, v, why) : result;
}
