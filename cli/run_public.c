#include "cli/run_public.h"

#include "cli/nss_store.h"
#include "run/plan.h"
#include "run/say.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <sys/stat.h>
#include <unistd.h>

int run_public_make(const char *directory, char out[RUN_PUBLIC_SIZE]) {
    snprintf(out, RUN_PUBLIC_SIZE, "%s/public", directory);
    return mkdir(out, 0755) == 0 ? 0 : run_say("%s: %s", out, strerror(errno));
}

int run_public_read(bool strict, struct public_roots **out) {
    int result = public_roots_read(strict, out);
    return result == 0 ? 0 : run_say("the system's roots of trust: %s", err_why(result));
}

int run_public_write(const char *folder, const char *seen, struct view ca,
                     struct public_roots *roots) {
    int dir = open(folder, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    int result = dir < 0 ? ERR_SYSTEM : public_write(dir, seen, ca, roots);
    const char *why = err_why(result);
    if (dir >= 0)
        close(dir);
    public_roots_free(roots);
    if (result != 0)
        return run_say("%s: %s", folder, why);
    nss_store_make(folder, ca);
    return 0;
}
