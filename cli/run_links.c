#include "cli/run_links.h"

#include <limits.h>
#include <stdbool.h>
#include <stdio.h>
#include <sys/stat.h>
#include <unistd.h>

enum { LINKS_MAX = 40 /* as many as the kernel follows */ };

struct walk {
    char at[PATH_MAX];       /* without links; "": the root */
    char rest[2 * PATH_MAX]; /* what is still to be walked */
    unsigned links;
};

static bool begin(struct walk *w, const char *name) {
    bool is_absolute = name[0] == '/';
    if (!is_absolute && !getcwd(w->at, sizeof w->at))
        return false;
    if (w->at[0] == '/' && w->at[1] == 0)
        w->at[0] = 0;
    return snprintf(w->rest, sizeof w->rest, "%s", name) < (int)sizeof w->rest;
}

static void go_up(struct walk *w) {
    char *slash = strrchr(w->at, '/');
    if (slash)
        *slash = 0;
}

static bool go_down(struct walk *w, struct view name) {
    size_t n = strlen(w->at);
    return snprintf(w->at + n, sizeof w->at - n, "/%.*s", VIEW_ARG(name)) < (int)(sizeof w->at - n);
}

/* From a link on, with what stands behind it. */
static bool follow(struct walk *w, struct view behind) {
    char target[PATH_MAX], rest[sizeof w->rest];
    ssize_t n = readlink(w->at, target, sizeof target - 1);
    target[n > 0 ? n : 0] = 0;
    int size = snprintf(rest, sizeof rest, "%s/%.*s", target, VIEW_ARG(behind));
    if (n <= 0 || size >= (int)sizeof rest || ++w->links > LINKS_MAX)
        return false;
    go_up(w);
    if (target[0] == '/')
        w->at[0] = 0;
    memcpy(w->rest, rest, (size_t)size + 1);
    return true;
}

/* One name of the path; false at its end. */
static bool step(struct walk *w, struct buf *out) {
    struct stat st;
    struct view behind = view_str(w->rest), name = view_cut(&behind, '/');
    bool is_link = false;
    if (view_equal(name, VIEW("..")))
        go_up(w);
    else if (name.n > 0 && !view_equal(name, VIEW("."))) {
        if (!go_down(w, name) || lstat(w->at, &st) != 0)
            return false;
        is_link = S_ISLNK(st.st_mode);
    }
    if (is_link) {
        buf_put(out, view_of(w->at, strlen(w->at) + 1));
        return follow(w, behind);
    }
    memmove(w->rest, behind.p, behind.n + 1);
    return true;
}

void run_links_put(const char *name, struct buf *out) {
    struct walk w = {.links = 0};
    if (!begin(&w, name))
        return;
    while (w.rest[0] && step(&w, out))
        continue;
}
