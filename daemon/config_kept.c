#include "daemon/config.h"

#include <string.h>

static bool same_text(const char *a, const char *b) {
    return a == b || (a && b && strcmp(a, b) == 0);
}

static bool same_control(const struct config *a, const struct config *b) {
    return same_text(a->control, b->control) && a->n_control_uids == b->n_control_uids &&
           (a->n_control_uids == 0 || memcmp(a->control_uids, b->control_uids,
                                             a->n_control_uids * sizeof *a->control_uids) == 0);
}

static bool same_attach(const struct config *a, const struct config *b) {
    return same_text(a->attach.path, b->attach.path) &&
           (!a->attach.path || a->attach.mode == b->attach.mode);
}

void config_put_kept(const struct config *running, const struct config *read, struct buf *out) {
    const struct config *a = running, *b = read;
    const struct {
        const char *word;
        bool same;
    } words[] = {
        {"state", same_text(a->state, b->state)},
        {"control", same_control(a, b)},
        {"attach", same_attach(a, b)},
        {"geo", same_text(a->geo_country, b->geo_country) && same_text(a->geo_asn, b->geo_asn)},
        {"uids", a->first_uid == b->first_uid && a->last_uid == b->last_uid},
        {"vault key", same_text(a->vault_key, b->vault_key)},
        {"debug", a->debug == b->debug},
    };
    const char *before = "";
    for (size_t i = 0; i < sizeof words / sizeof *words; i++)
        if (!words[i].same) {
            buf_printf(out, "%s%s", before, words[i].word);
            before = ", ";
        }
}
