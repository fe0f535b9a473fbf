#include "cli/vault_key.h"

#include "base/digest.h"
#include "cli/command.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

enum { KEY_SIZE = 32 };

static void end_key(char text[VAULT_KEY_TEXT_SIZE + 1]) {
    text[VAULT_KEY_TEXT_SIZE - 1] = '\n';
    text[VAULT_KEY_TEXT_SIZE] = 0;
}

void vault_key_make(char text[VAULT_KEY_TEXT_SIZE + 1]) {
    uint8_t key[KEY_SIZE];
    random_bytes(key, sizeof key);
    hex_encode(view_of(key, sizeof key), text);
    end_key(text);
    explicit_bzero(key, sizeof key);
}

int vault_key_read(const char *path, char text[VAULT_KEY_TEXT_SIZE + 1]) {
    uint8_t key[KEY_SIZE];
    struct stat st;
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    if (fd < 0)
        return cli_unread(path, ERR_SYSTEM);
    ssize_t n = fstat(fd, &st) == 0 ? read(fd, text, VAULT_KEY_TEXT_SIZE) : -1;
    bool ends = n >= 0 && st.st_size == n;
    close(fd);
    if (n >= 0 && (st.st_mode & 077) != 0)
        return cli_fail(EXIT_NO, "%s: others can read it (mode 0600 is wanted)", path);
    struct view digits = view_of(text, n > 2 * KEY_SIZE ? 2 * KEY_SIZE : n > 0 ? (size_t)n : 0);
    bool good = ends && hex_decode(digits, key, sizeof key) == 0 &&
                (n == 2 * KEY_SIZE || text[2 * KEY_SIZE] == '\n');
    explicit_bzero(key, sizeof key);
    end_key(text);
    return good ? EXIT_YES : cli_fail(EXIT_NO, "%s: not 64 hexadecimal digits", path);
}

bool vault_key_sync(const char *file) {
    char folder[PATH_MAX];
    const char *slash = strrchr(file, '/');
    int n = slash ? snprintf(folder, sizeof folder, "%.*s/", (int)(slash - file), file)
                  : snprintf(folder, sizeof folder, ".");
    int fd = n > 0 && n < PATH_MAX ? open(folder, O_RDONLY | O_DIRECTORY | O_CLOEXEC) : -1;
    bool ok = fd >= 0 && fsync(fd) == 0;
    if (fd >= 0)
        close(fd);
    return ok;
}

int vault_key_write(const char *path, const char *text, const char *like) {
    struct stat st;
    int fd = open(path, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600);
    if (fd < 0 && errno == EEXIST)
        return cli_fail(EXIT_NO, "%s is there already and is not overwritten", path);
    if (fd < 0)
        return cli_fail(errno == EACCES ? EXIT_PERMISSION : EXIT_NO, "%s: %s", path,
                        strerror(errno));
    bool ok = stat(like, &st) == 0 &&
              (st.st_uid == geteuid() || fchown(fd, st.st_uid, st.st_gid) == 0) &&
              write(fd, text, VAULT_KEY_TEXT_SIZE) == VAULT_KEY_TEXT_SIZE && fsync(fd) == 0;
    ok = close(fd) == 0 && ok && vault_key_sync(path);
    if (ok)
        return EXIT_YES;
    cli_fail(EXIT_NO, "%s: %s", path, strerror(errno));
    unlink(path);
    return EXIT_NO;
}
