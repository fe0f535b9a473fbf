#include "egress/identity.h"

#include "base/base64.h"
#include "base/digest.h"

enum { CREDENTIALS_MAX = 512 };

/* "Basic" and name:token decoded into storage. */
static int read_basic(struct view value, struct buf *storage, struct view *name,
                      struct view *token) {
    struct view rest = view_trim(value);
    struct view scheme = view_cut(&rest, ' ');
    if (!view_equal_nocase(scheme, VIEW("basic")) || base64_decode(rest, storage) != 0)
        return ERR_BAD;
    struct view decoded = buf_view(storage);
    if (view_find(decoded, ':') == decoded.n)
        return ERR_BAD;
    *name = view_cut(&decoded, ':');
    *token = decoded;
    return 0;
}

bool identity_holds(const struct lane *l, const char *name, const struct proof *proof) {
    bool proved = !proof->by_token || generation_token(l->now, proof->fingerprint, view_str(name));
    return proved && generation_has(l->now, view_str(name));
}

static int by_token(struct lane *l, struct view value, char out[IDENTITY_SIZE],
                    struct proof *proof) {
    struct buf storage;
    struct view name, token;
    buf_init(&storage, CREDENTIALS_MAX);
    int result = read_basic(value, &storage, &name, &token);
    if (result == 0)
        result = view_cstr(name, out, IDENTITY_SIZE);
    if (result == 0) {
        proof->by_token = true;
        digest_sha256(token, proof->fingerprint);
        result = identity_holds(l, out, proof) ? 0 : ERR_DENIED;
    }
    if (result != 0)
        out[0] = 0;
    buf_free(&storage);
    return result;
}

int identity_find(struct lane *l, bool captured, size_t n_fields, struct view value,
                  char name[IDENTITY_SIZE], struct proof *proof, enum reason *why) {
    bool wants_token = l->now->shared || (l->now->unenforced && !captured);
    *why = REASON_PROXY_AUTH_REQUIRED;
    proof->by_token = false;
    if (n_fields == 0 && !wants_token)
        return view_cstr(view_str(l->now->names), name, IDENTITY_SIZE);
    if (n_fields == 1 && by_token(l, value, name, proof) == 0)
        return 0;
    if (l->now->locked) {
        *why = REASON_BROKER_UNAVAILABLE;
        return ERR_DENIED;
    }
    /* A client that is asked first has not failed; only wrong credentials count. */
    if (n_fields > 0 &&
        !bucket_take(&l->auth_failures, loop_now(l->loop), lane_limit(l, LIMIT_AUTH_FAILURES)))
        *why = REASON_RATE;
    return ERR_DENIED;
}
