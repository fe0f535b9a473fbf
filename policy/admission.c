#include "policy/admission.h"

static const char *const words[] = {[ADMIT_USERS] = "uid=",
                                    [ADMIT_GUESTS] = "cid=",
                                    [ADMIT_RELAYS] = "relay=",
                                    [ADMIT_SOURCES] = "source="};

enum { KINDS = sizeof words / sizeof *words };

/* ---- the text ---- */

void admission_put(struct buf *text, enum admission_kind kind, struct view item) {
    buf_put_str(text, buf_len(text) == 0 ? words[kind] : ",");
    buf_put(text, item);
}

static int read_kind(struct view *text, enum admission_kind *out) {
    for (int i = ADMIT_USERS; i < KINDS; i++)
        if (view_starts(*text, view_str(words[i]))) {
            *text = view_skip(*text, strlen(words[i]));
            *out = (enum admission_kind)i;
            return 0;
        }
    return ERR_BAD;
}

static int read_item(struct view item, struct admission *out) {
    uint64_t id;
    if (out->n == ADMISSION_MAX)
        return ERR_BAD;
    if (out->kind == ADMIT_RELAYS || out->kind == ADMIT_SOURCES)
        return range_parse(item, &out->of[out->n++].range);
    if (view_number(item, UINT32_MAX - 1, &id) != 0)
        return ERR_BAD;
    out->of[out->n++].id = (uint32_t)id;
    return 0;
}

int admission_read(struct view text, struct admission *out) {
    *out = (struct admission){.kind = ADMIT_ALL};
    if (view_is_empty(text))
        return 0;
    int result = read_kind(&text, &out->kind);
    do {
        if (result == 0)
            result = read_item(view_cut(&text, ','), out);
    } while (result == 0 && text.n > 0);
    return result;
}

/* ---- peers ---- */

static bool has_id(const struct admission *a, uint32_t id) {
    for (size_t i = 0; i < a->n; i++)
        if (a->of[i].id == id)
            return true;
    return false;
}

static bool has_address(const struct admission *a, const struct address *address) {
    for (size_t i = 0; i < a->n; i++)
        if (range_holds(&a->of[i].range, address))
            return true;
    return false;
}

enum admitted admission_judge(const struct admission *a, const struct peer *peer) {
    switch (a->kind) {
    case ADMIT_ALL:
        return ADMITTED;
    case ADMIT_USERS:
        return peer->kind == PEER_USER && has_id(a, peer->id) ? ADMITTED : ADMITTED_NOT;
    case ADMIT_GUESTS:
        return peer->kind == PEER_GUEST && has_id(a, peer->id) ? ADMITTED : ADMITTED_NOT;
    case ADMIT_RELAYS:
        if (peer->kind != PEER_ADDRESS)
            return ADMITTED_NOT;
        return has_address(a, &peer->address) ? ADMITTED_RELAY : ADMITTED;
    case ADMIT_SOURCES:
        return peer->kind == PEER_ADDRESS && has_address(a, &peer->address) ? ADMITTED
                                                                            : ADMITTED_NOT;
    }
    return ADMITTED_NOT;
}
