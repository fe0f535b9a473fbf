#include "run/plan.h"

#include <stdio.h>
#include <string.h>

bool run_bind_place(const struct run_bind *bind, const char *path, char out[RUN_PLACE_MAX]) {
    size_t n = strcmp(bind->from, "/") == 0 ? 0 : strlen(bind->from);
    if (strncmp(path, bind->from, n) != 0 || path[n] != '/' || path[n + 1] == 0)
        return false;
    snprintf(out, RUN_PLACE_MAX, "%s%s", bind->to, path + n);
    return true;
}
