#include "cli/run_public.h"

#include "cli/ca_store.h"
#include "run/plan.h"
#include "run/say.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <sys/stat.h>
#include <unistd.h>

int run_public_make(struct run_public *p, const char *directory, bool where_it_is) {
    snprintf(p->folder, sizeof p->folder, "%s/public", directory);
    p->seen = where_it_is ? p->folder : RUN_PUBLIC;
    return mkdir(p->folder, 0755) == 0 ? 0 : run_say("%s: %s", p->folder, strerror(errno));
}

void run_public_begin(struct run_public *p, const char *state) {
    struct buf ca;
    buf_init(&ca, 2 * CA_FILE_MAX);
    if (ca_store_certificates(state, &ca) == 0)
        nss_store_begin(&p->nss, p->folder, buf_view(&ca));
    buf_free(&ca);
}

int run_public_read(struct run_public *p, bool strict) {
    int result = public_roots_read(strict, &p->roots);
    return result == 0 ? 0 : run_say("the system's roots of trust: %s", err_why(result));
}

int run_public_write(struct run_public *p, struct view ca) {
    int dir = open(p->folder, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    int result = dir < 0 ? ERR_SYSTEM : public_write(dir, p->seen, ca, p->roots);
    const char *why = err_why(result);
    if (dir >= 0)
        close(dir);
    if (result != 0)
        return run_say("%s: %s", p->folder, why);
    nss_store_end(&p->nss, p->folder, ca);
    return 0;
}

void run_public_free(struct run_public *p) {
    public_roots_free(p->roots);
    p->roots = NULL;
    nss_store_free(&p->nss);
}
