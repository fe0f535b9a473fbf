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

/* Its words are for those who called it, who did not. 0 or an errno. */
static int start(char *const argv[], int input, pid_t *pid) {
    static char *const environment[] = {"LC_ALL=C", NULL};
    posix_spawn_file_actions_t files;
    int why = posix_spawn_file_actions_init(&files);
    if (why != 0)
        return why;
    why = posix_spawn_file_actions_adddup2(&files, input, STDIN_FILENO);
    for (int fd = STDOUT_FILENO; fd <= STDERR_FILENO && why == 0; fd++)
        why = posix_spawn_file_actions_addopen(&files, fd, "/dev/null", O_WRONLY, 0);
    if (why == 0)
        why = posix_spawn(pid, CERTUTIL, &files, NULL, argv, environment);
    posix_spawn_file_actions_destroy(&files);
    return why;
}

/* 0 or an errno. */
static int await(pid_t pid) {
    int status;
    while (waitpid(pid, &status, 0) < 0)
        if (errno != EINTR)
            return errno;
    return status == 0 ? 0 : EIO;
}

/* The first that is added to a folder makes the database. */
static int begin_adding(const char *folder, int number, struct view pem, pid_t *pid) {
    char database[PATH_MAX + 32], certificate[32];
    snprintf(database, sizeof database, "sql:%s", folder);
    snprintf(certificate, sizeof certificate, "exeat-%d", number);
    char *argv[] = {"certutil", "-A", "-a", "-d", database, "-n", certificate, "-t", "C,,", NULL};
    int input = memfd_create("ca", MFD_CLOEXEC);
    bool is_written = input >= 0 && file_write(input, pem) == 0 && lseek(input, 0, SEEK_SET) == 0;
    int why = is_written ? start(argv, input, pid) : errno ? errno : EIO;
    if (input >= 0)
        close(input);
    return why;
}

/* Cuts the next one off; empty: there is none. */
static struct view next_certificate(struct view *ca) {
    static const char end[] = "-----END CERTIFICATE-----\n";
    size_t n = view_search(*ca, VIEW(end));
    struct view first = n < ca->n ? view_head(*ca, n + sizeof end - 1) : VIEW("");
    *ca = view_skip(*ca, first.n);
    return first;
}

/* `begun` of them are there. */
static int add_all(const char *folder, struct view ca, int begun) {
    int why = 0, number = 0;
    for (struct view one; why == 0 && (one = next_certificate(&ca)).n > 0;) {
        pid_t pid = 0;
        if (++number <= begun)
            continue;
        why = begin_adding(folder, number, one, &pid);
        if (why == 0)
            why = await(pid);
    }
    return why;
}

bool nss_store_can_be_made(void) {
    return access(CERTUTIL, X_OK) == 0;
}

/* Under a name of its own, as it may be for nothing. */
static void name_begun(const char *folder, char out[PATH_MAX + 32]) {
    snprintf(out, PATH_MAX + 32, "%s/nssdb.begun", folder);
}

void nss_store_begin(struct nss_store *s, const char *folder, struct view expected) {
    char path[PATH_MAX + 32];
    struct view first = next_certificate(&expected);
    name_begun(folder, path);
    if (first.n == 0 || !nss_store_can_be_made() || mkdir(path, 0755) != 0)
        return;
    buf_init(&s->expected, first.n);
    buf_put(&s->expected, first);
    if (!buf_ok(&s->expected) || begin_adding(path, 1, first, &s->certutil) != 0)
        s->certutil = 0;
}

/* Whether it was made, and for what is first in ca. */
static bool take_begun(struct nss_store *s, const char *folder, const char *path, struct view ca) {
    char begun[PATH_MAX + 32];
    if (s->certutil == 0)
        return false;
    int why = await(s->certutil);
    s->certutil = 0;
    name_begun(folder, begun);
    return why == 0 && view_equal(next_certificate(&ca), buf_view(&s->expected)) &&
           rename(begun, path) == 0;
}

void nss_store_end(struct nss_store *s, const char *folder, struct view ca) {
    char path[PATH_MAX + 32];
    if (!nss_store_can_be_made())
        return;
    snprintf(path, sizeof path, "%s/nssdb", folder);
    int why = take_begun(s, folder, path, ca) ? add_all(path, ca, 1)
              : mkdir(path, 0755) == 0        ? add_all(path, ca, 0)
                                              : errno;
    if (why != 0)
        run_say("%s does not make an NSS database: %s (browsers will not trust exeat)", CERTUTIL,
                strerror(why));
}

void nss_store_free(struct nss_store *s) {
    if (s->certutil > 0)
        await(s->certutil);
    buf_free(&s->expected);
    *s = (struct nss_store){0};
}
