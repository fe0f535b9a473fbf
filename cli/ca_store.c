#include "cli/ca_store.h"

#include "audit/log_file.h"
#include "base/digest.h"
#include "base/secret.h"
#include "ca/mint.h"
#include "cli/public.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

enum { CA_YEARS_DAYS = 3650, KEY_SIZE = 4096 };

/* ---- directories ---- */

/* Made by root in a state that is the daemon's user's, it is his. */
static bool prepare(int fd, const char *state, mode_t mode) {
    struct stat st;
    return fchmod(fd, mode) == 0 && stat(state, &st) == 0 &&
           (st.st_uid == geteuid() || fchown(fd, st.st_uid, st.st_gid) == 0);
}

static int open_directory(const char *state, const char *name, mode_t mode, bool make) {
    char path[4096];
    snprintf(path, sizeof path, "%s%s%s", state, *name ? "/" : "", name);
    bool made = make && mkdir(path, mode) == 0;
    /* Whoever owns the state may have put a link in the place of what was made. */
    int fd = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC | (made ? O_NOFOLLOW : 0));
    if (made && fd >= 0 && !prepare(fd, state, mode)) {
        close(fd);
        return -1;
    }
    return fd;
}

static bool find_public(const char *state, char out[PATH_MAX]) {
    char path[PATH_MAX];
    int n = snprintf(path, sizeof path, "%s/public", state);
    return n > 0 && n < PATH_MAX && realpath(path, out);
}

int ca_store_open(const char *state, bool make, struct ca_store *out) {
    int above = open_directory(state, "", 0755, make);
    *out = (struct ca_store){.ca = -1, .public = -1};
    if (above < 0)
        return ERR_SYSTEM;
    close(above);
    out->ca = open_directory(state, "ca", 0700, make);
    out->public = out->ca < 0 ? -1 : open_directory(state, "public", 0755, make);
    if (out->public < 0 || !find_public(state, out->public_path))
        return ERR_SYSTEM;
    if (flock(out->ca, LOCK_EX | LOCK_NB) != 0)
        return errno == EWOULDBLOCK ? ERR_AGAIN : ERR_SYSTEM;
    return 0;
}

void ca_store_close(struct ca_store *s) {
    if (s->ca >= 0)
        close(s->ca);
    if (s->public >= 0)
        close(s->public);
    *s = (struct ca_store){.ca = -1, .public = -1};
}

bool ca_store_has(const struct ca_store *s, const char *name) {
    return faccessat(s->ca, name, F_OK, AT_SYMLINK_NOFOLLOW) == 0;
}

int ca_store_certificates(const char *state, struct buf *out) {
    char path[4096];
    snprintf(path, sizeof path, "%s/public/ca.pem", state);
    return log_file_read(AT_FDCWD, path, CA_FILE_MAX, out);
}

static int publish(struct ca_store *s, struct view ours) {
    struct public_roots *roots;
    if (s->only_certificates)
        return log_file_replace(s->public, "ca.pem", 0644, ours);
    int result = public_roots_read(false, &roots);
    if (result != 0)
        return result;
    result = public_write(s->public, s->public_path, ours, roots);
    public_roots_free(roots);
    return result;
}

/* ---- keys ---- */

/* A buffer for a private key: never grown, cleared in the end. */
static int key_buffer(struct buf *b) {
    buf_init(b, 2 * KEY_SIZE);
    return buf_reserve(b, 2 * KEY_SIZE) ? 0 : ERR_MEMORY;
}

static void key_forget(struct buf *b) {
    if (b->p)
        secret_clear(b->p, b->cap);
    buf_free(b);
}

static int make_root(struct view key, uint64_t now, struct buf *certificate) {
    uint8_t serial[MINT_SERIAL_SIZE], name[4];
    char hex[9], common_name[32];
    struct mint_validity v = {now - MINT_BACKDATE_SECONDS, now + CA_YEARS_DAYS * UINT64_C(86400)};
    random_bytes(serial, sizeof serial);
    random_bytes(name, sizeof name);
    hex_encode(view_of(name, sizeof name), hex);
    snprintf(common_name, sizeof common_name, "exeat CA %s", hex);
    return mint_root(key, common_name, v, serial, certificate);
}

/* Writes key and certificate under the two names, appends the certificate to *certificate. */
static int make_pair(struct ca_store *s, uint64_t now, const char *key_name,
                     const char *certificate_name, struct buf *certificate) {
    struct buf key;
    int result = key_buffer(&key);
    if (result == 0)
        result = mint_key(&key);
    if (result == 0)
        result = make_root(buf_view(&key), now, certificate);
    if (result == 0)
        result = log_file_replace(s->ca, key_name, 0600, buf_view(&key));
    if (result == 0)
        result = log_file_replace(s->ca, certificate_name, 0644, buf_view(certificate));
    key_forget(&key);
    return result;
}

/* ERR_DENIED or ERR_CRYPTO when the key is not the certificate's. */
static int check_pair(struct ca_store *s, const char *key_name, const char *certificate_name) {
    struct buf key, certificate;
    struct mint *m = NULL;
    buf_init(&certificate, 2 * CA_FILE_MAX);
    int result = key_buffer(&key);
    if (result == 0)
        result = log_file_read(s->ca, key_name, KEY_SIZE, &key);
    if (result == 0)
        result = log_file_read(s->ca, certificate_name, CA_FILE_MAX, &certificate);
    if (result == 0)
        result = mint_new(buf_view(&key), buf_view(&certificate), &m);
    mint_free(m);
    key_forget(&key);
    buf_free(&certificate);
    return result;
}

int ca_store_init(struct ca_store *s, uint64_t now) {
    struct buf certificate;
    if (ca_store_has(s, "ca.key") || ca_store_has(s, "ca.pem"))
        return ERR_EXISTS;
    buf_init(&certificate, CA_FILE_MAX);
    int result = make_pair(s, now, "ca.key", "ca.pem", &certificate);
    if (result == 0)
        result = publish(s, buf_view(&certificate));
    buf_free(&certificate);
    return result;
}

/* ---- rotation ---- */

static int move_into_place(struct ca_store *s, const char *from, const char *to) {
    return renameat(s->ca, from, s->ca, to) == 0 && fsync(s->ca) == 0 ? 0 : ERR_SYSTEM;
}

/* From a whole pair next.key and next.pem on; each step may be repeated. */
static int take_next(struct ca_store *s) {
    struct buf ours, old;
    buf_init(&ours, 2 * CA_FILE_MAX);
    buf_init(&old, 2 * CA_FILE_MAX);
    int result = log_file_read(s->ca, "next.pem", CA_FILE_MAX, &ours);
    if (result == 0)
        result = log_file_read(s->ca, "ca.pem", CA_FILE_MAX, &old);
    buf_put(&ours, buf_view(&old));
    if (result == 0)
        result = log_file_replace(s->ca, "previous.pem", 0644, buf_view(&old));
    /* Sandboxes trust the new one before the first leaf comes from it. */
    if (result == 0)
        result = publish(s, buf_view(&ours));
    if (result == 0)
        result = move_into_place(s, "next.key", "ca.key");
    if (result == 0)
        result = move_into_place(s, "next.pem", "ca.pem");
    buf_free(&ours);
    buf_free(&old);
    return result;
}

/* Takes up a rotation that was cut off; ERR_MISSING when there was none. */
static int resume(struct ca_store *s) {
    bool key = ca_store_has(s, "next.key"), certificate = ca_store_has(s, "next.pem");
    if (!key && !certificate)
        return ERR_MISSING;
    if (key && certificate && check_pair(s, "next.key", "next.pem") == 0)
        return take_next(s);
    if (!key && check_pair(s, "ca.key", "next.pem") == 0)
        return move_into_place(s, "next.pem", "ca.pem");
    /* Cut off while it was written: nothing of it is in use. */
    if ((key && unlinkat(s->ca, "next.key", 0) != 0) ||
        (certificate && unlinkat(s->ca, "next.pem", 0) != 0))
        return ERR_SYSTEM;
    return ERR_MISSING;
}

int ca_store_rotate(struct ca_store *s, uint64_t now) {
    struct buf certificate;
    int result = resume(s);
    if (result != ERR_MISSING)
        return result;
    if (ca_store_has(s, "previous.pem"))
        return ERR_EXISTS;
    result = check_pair(s, "ca.key", "ca.pem");
    if (result != 0)
        return result;
    buf_init(&certificate, CA_FILE_MAX);
    result = make_pair(s, now, "next.key", "next.pem", &certificate);
    buf_free(&certificate);
    return result == 0 ? take_next(s) : result;
}

int ca_store_finish(struct ca_store *s) {
    struct buf ours;
    int result = resume(s);
    if (result != 0 && result != ERR_MISSING)
        return result;
    if (!ca_store_has(s, "previous.pem"))
        return ERR_MISSING;
    buf_init(&ours, 2 * CA_FILE_MAX);
    result = log_file_read(s->ca, "ca.pem", CA_FILE_MAX, &ours);
    if (result == 0)
        result = publish(s, buf_view(&ours));
    if (result == 0 && (unlinkat(s->ca, "previous.pem", 0) != 0 || fsync(s->ca) != 0))
        result = ERR_SYSTEM;
    buf_free(&ours);
    return result;
}
