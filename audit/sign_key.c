#include "audit/sign_key.h"

#include "audit/log_file.h"
#include "base/secret.h"

enum { KEY_FILE_MAX = 4096, PUBLIC_FILE_MAX = 16 * 1024 };

/* Appends pem to sign.pub unless it stands there. */
static int add_public(int dir, struct view pem) {
    struct buf text;
    buf_init(&text, 2 * PUBLIC_FILE_MAX);
    int result = log_file_read(dir, "sign.pub", PUBLIC_FILE_MAX, &text);
    if (result == ERR_MISSING)
        result = 0;
    if (result == 0 && view_search(buf_view(&text), pem) == buf_len(&text)) {
        buf_put(&text, pem);
        result =
            buf_ok(&text) ? log_file_replace(dir, "sign.pub", 0644, buf_view(&text)) : ERR_LIMIT;
    }
    buf_free(&text);
    return result;
}

static int make(int dir, struct buf *private_pem) {
    struct buf public_pem;
    buf_init(&public_pem, KEY_FILE_MAX);
    int result = chain_key_make(private_pem, &public_pem);
    if (result == 0)
        result = log_file_replace(dir, "sign.key", 0600, buf_view(private_pem));
    buf_free(&public_pem);
    return result;
}

static int open_signer(int dir, struct chain_signer **out, bool *made) {
    struct buf pem;
    buf_init(&pem, 2 * KEY_FILE_MAX);
    /* All at once: growing would leave copies of the key behind. */
    int result = buf_reserve(&pem, 2 * KEY_FILE_MAX) ? 0 : ERR_MEMORY;
    if (result == 0)
        result = log_file_read(dir, "sign.key", KEY_FILE_MAX, &pem);
    *made = result == ERR_MISSING;
    if (*made)
        result = make(dir, &pem);
    if (result == 0)
        result = chain_signer_new(buf_view(&pem), out);
    if (pem.p)
        secret_clear(pem.p, pem.cap);
    buf_free(&pem);
    return result;
}

int sign_key_public(int dir, const char *name, struct chain_keys **out) {
    struct buf text;
    buf_init(&text, 2 * PUBLIC_FILE_MAX);
    int result = log_file_read(dir, name, PUBLIC_FILE_MAX, &text);
    if (result == 0)
        result = chain_keys_new(buf_view(&text), out);
    buf_free(&text);
    return result;
}

int sign_key_open(int dir, struct chain_signer **signer, struct chain_keys **keys, bool *made) {
    struct buf public_pem;
    struct chain_signer *s = NULL;
    buf_init(&public_pem, KEY_FILE_MAX);
    int result = open_signer(dir, &s, made);
    if (result == 0)
        result = chain_signer_public(s, &public_pem);
    if (result == 0)
        result = add_public(dir, buf_view(&public_pem));
    if (result == 0)
        result = sign_key_public(dir, "sign.pub", keys);
    buf_free(&public_pem);
    if (result != 0) {
        chain_signer_free(s);
        return result;
    }
    *signer = s;
    return 0;
}
