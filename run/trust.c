#include "run/trust.h"

#include "base/file.h"
#include "run/covers.h"
#include "run/say.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <unistd.h>

enum { NSS_FILE_MAX = 1 << 20 };

/* What the systems have, and what is shown there. */
static const struct root_file {
    const char *path, *ours;
} root_files[] = {
    {"/etc/ssl/certs/ca-certificates.crt", RUN_PUBLIC "/bundle.pem"},
    {"/etc/pki/tls/certs/ca-bundle.crt", RUN_PUBLIC "/bundle.pem"},
    {"/etc/pki/ca-trust/extracted/pem/tls-ca-bundle.pem", RUN_PUBLIC "/bundle.pem"},
    {"/etc/ssl/cert.pem", RUN_PUBLIC "/bundle.pem"},
    {"/etc/ssl/ca-bundle.pem", RUN_PUBLIC "/bundle.pem"},
    {"/var/lib/ca-certificates/ca-bundle.pem", RUN_PUBLIC "/bundle.pem"},
    {"/etc/ssl/certs/java/cacerts", RUN_PUBLIC "/roots.p12"},
    {"/etc/pki/ca-trust/extracted/java/cacerts", RUN_PUBLIC "/roots.p12"},
    {"/var/lib/ca-certificates/java-cacerts", RUN_PUBLIC "/roots.p12"},
};
enum { N_ROOT_FILES = sizeof root_files / sizeof *root_files };

/* Folders of single certificates, which OpenSSL reads beside a bundle. */
static const char *const root_folders[] = {"/etc/ssl/certs", "/etc/pki/tls/certs"};

/* Where a path is a link, the file that it leads to; which is covered once, whatever leads there. */
static int trust_at(const struct root_file *f) {
    char real[PATH_MAX];
    struct stat ours, there;
    if (!realpath(f->path, real) || stat(real, &there) != 0 || stat(f->ours, &ours) != 0)
        return 0;
    if (there.st_dev == ours.st_dev && there.st_ino == ours.st_ino)
        return 0;
    return mount(f->ours, real, NULL, MS_BIND, NULL) == 0
               ? 0
               : run_say("%s: %s", f->path, strerror(errno));
}

/* An empty folder with links to ours where the system's files were in it. */
static int trust_folder(const char *folder) {
    bool has[N_ROOT_FILES];
    for (size_t i = 0; i < N_ROOT_FILES; i++)
        has[i] = strncmp(root_files[i].path, folder, strlen(folder)) == 0 &&
                 access(root_files[i].path, F_OK) == 0;
    int result = cover_folder(folder, 0755);
    for (size_t i = 0; i < N_ROOT_FILES && result == 0; i++)
        if (has[i])
            result = cover_link(root_files[i].ours, root_files[i].path);
    if (result == 0)
        result = cover_read_only(folder);
    return result == 0 ? 0 : run_say("%s: %s", folder, strerror(errno));
}

static int trust_nobody_else(void) {
    for (size_t i = 0; i < sizeof root_folders / sizeof *root_folders; i++)
        if (access(root_folders[i], F_OK) == 0 && trust_folder(root_folders[i]) != 0)
            return -1;
    return 0;
}

/* ---- NSS ---- */

static int copy_file(const char *name, int to_folder) {
    char from[PATH_MAX];
    struct buf content;
    snprintf(from, sizeof from, RUN_PUBLIC "/nssdb/%s", name);
    buf_init(&content, NSS_FILE_MAX);
    int in = open(from, O_RDONLY | O_CLOEXEC);
    int result = in < 0 ? ERR_SYSTEM : file_read(in, NSS_FILE_MAX, &content);
    int out =
        result == 0 ? openat(to_folder, name, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600) : -1;
    if (result == 0)
        result = out < 0 ? ERR_SYSTEM : file_write(out, buf_view(&content));
    if (out >= 0)
        close(out);
    buf_free(&content);
    return result;
}

bool trust_nss_place(char parent[PATH_MAX], char place[PATH_MAX]) {
    const char *home = getenv("HOME");
    return home && home[0] == '/' && snprintf(parent, PATH_MAX, "%s/.pki", home) < PATH_MAX &&
           snprintf(place, PATH_MAX, "%s/nssdb", parent) < PATH_MAX;
}

static bool is_folder(const char *path) {
    struct stat st;
    return lstat(path, &st) == 0 && S_ISDIR(st.st_mode);
}

static int copy_all(int to_folder) {
    static const char *const files[] = {"cert9.db", "key4.db", "pkcs11.txt"};
    int result = to_folder < 0 ? ERR_SYSTEM : 0;
    for (size_t i = 0; i < sizeof files / sizeof *files && result == 0; i++)
        result = copy_file(files[i], to_folder);
    return result;
}

/* Its users write to theirs, and do without one that they cannot write to. */
static int trust_nss(void) {
    char parent[PATH_MAX], place[PATH_MAX];
    if (access(RUN_PUBLIC "/nssdb/cert9.db", F_OK) != 0 || !trust_nss_place(parent, place) ||
        !is_folder(parent) || !is_folder(place))
        return 0;
    int folder = cover_folder(place, 0700) == 0 ? cover_open(place) : -1;
    int result = copy_all(folder);
    const char *why = err_why(result);
    if (folder >= 0)
        close(folder);
    return result == 0 ? 0 : run_say("%s of its own: %s", place, why);
}

int trust_show(const struct run_plan *plan) {
    if (plan->strict_trust && trust_nobody_else() != 0)
        return -1;
    for (size_t i = 0; i < N_ROOT_FILES; i++)
        if (trust_at(&root_files[i]) != 0)
            return -1;
    return trust_nss();
}
