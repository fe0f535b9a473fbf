#include "run/trust.h"

#include "run/covers.h"
#include "run/say.h"

#include <errno.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <unistd.h>

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

int trust_show(const struct run_plan *plan) {
    if (plan->strict_trust && trust_nobody_else() != 0)
        return -1;
    for (size_t i = 0; i < N_ROOT_FILES; i++)
        if (trust_at(&root_files[i]) != 0)
            return -1;
    return 0;
}
