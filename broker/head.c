#include "broker/head.h"

#include "base/file.h"
#include "base/secret.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <unistd.h>

enum { HEAD_MAX = 1024, HMAC_TEXT = 2 * DIGEST_SIZE };

static void head_hmac(const struct seal_keys *keys, uint64_t counter, uint8_t out[DIGEST_SIZE]) {
    struct buf b;
    buf_init(&b, 64);
    buf_put_str(&b, "exeat vault head");
    buf_put_u64(&b, counter);
    digest_hmac(view_of(keys->head, sizeof keys->head), buf_view(&b), out);
    buf_free(&b);
}

static bool line_is_ours(struct view line, const struct seal_keys *keys, uint64_t *counter) {
    uint8_t given[DIGEST_SIZE], right[DIGEST_SIZE];
    struct view number = view_cut(&line, ' ');
    if (view_number(number, UINT64_MAX, counter) != 0 || hex_decode(line, given, sizeof given) != 0)
        return false;
    head_hmac(keys, *counter, right);
    return secret_equal(given, right, sizeof right);
}

int head_read(const char *path, const struct seal_keys *keys, uint64_t *counter) {
    struct buf text;
    int fd = open(path, O_RDONLY | O_CLOEXEC | O_NOFOLLOW);
    if (fd < 0)
        return errno == ENOENT ? ERR_MISSING : ERR_SYSTEM;
    buf_init(&text, HEAD_MAX + 4096);
    int result = file_read(fd, HEAD_MAX, &text);
    struct view rest = buf_view(&text);
    bool found = false;
    while (result == 0 && !found && rest.n > 0)
        found = line_is_ours(view_cut(&rest, '\n'), keys, counter);
    buf_free(&text);
    return found ? 0 : result == ERR_SYSTEM ? ERR_SYSTEM : ERR_CRYPTO;
}

static int write_new(const char *path, struct view text) {
    int fd = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC | O_NOFOLLOW, 0600);
    if (fd < 0)
        return ERR_SYSTEM;
    int result = file_write(fd, text);
    if (result == 0 && fsync(fd) != 0)
        result = ERR_SYSTEM;
    if (close(fd) != 0)
        result = ERR_SYSTEM;
    return result;
}

static int sync_directory(const char *path) {
    int fd = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    int result = fd >= 0 && fsync(fd) == 0 ? 0 : ERR_SYSTEM;
    if (fd >= 0)
        close(fd);
    return result;
}

int head_write(const char *directory, const char *path, const struct head_line *lines, size_t n) {
    char temporary[PATH_MAX];
    struct buf text;
    int length = snprintf(temporary, sizeof temporary, "%s.new", path);
    if (length < 0 || (size_t)length >= sizeof temporary)
        return ERR_LIMIT;
    buf_init(&text, HEAD_MAX);
    for (size_t i = 0; i < n; i++) {
        uint8_t hmac[DIGEST_SIZE];
        char hex[HMAC_TEXT + 1];
        head_hmac(lines[i].keys, lines[i].counter, hmac);
        hex_encode(view_of(hmac, sizeof hmac), hex);
        buf_printf(&text, "%llu %s\n", (unsigned long long)lines[i].counter, hex);
    }
    int result = buf_ok(&text) ? write_new(temporary, buf_view(&text)) : ERR_MEMORY;
    if (result == 0 && rename(temporary, path) != 0)
        result = ERR_SYSTEM;
    if (result == 0)
        result = sync_directory(directory);
    buf_free(&text);
    return result;
}
