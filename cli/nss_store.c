#include "cli/nss_store.h"

#include "base/file.h"
#include "run/say.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <spawn.h>
#include <stdio.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#define CERTUTIL "/usr/bin/certutil"

/* 0 or an errno. Its words are for those who called it, who did not. */
static int run_certutil(char *const argv[], int input) {
    static char *const environment[] = {"LC_ALL=C", NULL};
    posix_spawn_file_actions_t files;
    pid_t pid;
    int status, why = posix_spawn_file_actions_init(&files);
    if (why != 0)
        return why;
    why = posix_spawn_file_actions_adddup2(&files, input, STDIN_FILENO);
    for (int fd = STDOUT_FILENO; fd <= STDERR_FILENO && why == 0; fd++)
        why = posix_spawn_file_actions_addopen(&files, fd, "/dev/null", O_WRONLY, 0);
    if (why == 0)
        why = posix_spawn(&pid, CERTUTIL, &files, NULL, argv, environment);
    posix_spawn_file_actions_destroy(&files);
    if (why != 0)
        return why;
    while (waitpid(pid, &status, 0) < 0 && errno == EINTR)
        continue;
    return status == 0 ? 0 : EIO;
}

/* The first that is added makes the database. */
static int add_certificate(const char *folder, int number, struct view pem) {
    char database[PATH_MAX + 32], name[32];
    snprintf(database, sizeof database, "sql:%s/nssdb", folder);
    snprintf(name, sizeof name, "exeat-%d", number);
    char *argv[] = {"certutil", "-A", "-a", "-d", database, "-n", name, "-t", "C,,", NULL};
    int input = memfd_create("ca", MFD_CLOEXEC);
    int why = input < 0 || file_write(input, pem) != 0 || lseek(input, 0, SEEK_SET) != 0
                  ? errno
                  : run_certutil(argv, input);
    if (input >= 0)
        close(input);
    return why;
}

static int add_all(const char *folder, struct view ca) {
    static const char end[] = "-----END CERTIFICATE-----\n";
    int why = 0;
    size_t n = view_search(ca, VIEW(end));
    for (int number = 1; n < ca.n && why == 0; number++) {
        why = add_certificate(folder, number, view_head(ca, n + sizeof end - 1));
        ca = view_skip(ca, n + sizeof end - 1);
        n = view_search(ca, VIEW(end));
    }
    return why;
}

bool nss_store_can_be_made(void) {
    return access(CERTUTIL, X_OK) == 0;
}

void nss_store_make(const char *folder, struct view ca) {
    char path[PATH_MAX + 32];
    if (!nss_store_can_be_made())
        return;
    snprintf(path, sizeof path, "%s/nssdb", folder);
    int why = mkdir(path, 0755) == 0 ? add_all(folder, ca) : errno;
    if (why != 0)
        run_say("%s does not make an NSS database: %s (browsers will not trust exeat)", CERTUTIL,
                strerror(why));
}
