#include "cli/run_told.h"

#include "cli/command.h"
#include "cli/decision.h"
#include "run/say.h"

#include <limits.h>
#include <stdio.h>
#include <string.h>

enum { NAMED = 4, NAME_SIZE = 320, MEMORY_MAX = 1 << 20 };

/* What was refused, each host with each reason once. */
struct told {
    struct decision decision;
    char names[NAMED][NAME_SIZE];
    size_t n;
    bool more;
};

static void take(void *ctx, struct view line) {
    struct told *t = ctx;
    const struct decision *d = &t->decision;
    char name[NAME_SIZE];
    if (!decision_read(line, &t->decision) || !view_equal(d->verdict, VIEW("deny")) ||
        decision_is_exeats(d))
        return;
    snprintf(name, sizeof name, "%.*s (%.*s)", VIEW_ARG(d->host), VIEW_ARG(d->reason));
    for (size_t i = 0; i < t->n; i++)
        if (strcmp(t->names[i], name) == 0)
            return;
    t->more = t->n == NAMED;
    if (!t->more)
        memcpy(t->names[t->n++], name, sizeof name);
}

static void say(const struct told *t, const char *log) {
    char text[NAMED * NAME_SIZE];
    const char *more = t->more ? " and more" : "";
    size_t n = 0;
    for (size_t i = 0; i < t->n; i++)
        n += (size_t)snprintf(text + n, sizeof text - n, "%s%s", i ? ", " : "", t->names[i]);
    if (*log)
        run_say("refused: %s%s. `exeat log --denied --file %s` tells all of it", text, more, log);
    else
        run_say("refused: %s%s. With --log FILE the records are kept; `exeat policy suggest FILE` "
                "then says what would allow it",
                text, more);
}

void run_told(const char *state, const char *log) {
    static struct told t;
    char trail[PATH_MAX];
    const char *paths[] = {trail};
    if (snprintf(trail, sizeof trail, "%s/audit", state) >= PATH_MAX)
        return;
    buf_init(&t.decision.memory, MEMORY_MAX);
    if (decision_read_logs(paths, 1, take, &t) == EXIT_YES && t.n > 0)
        say(&t, log);
    buf_free(&t.decision.memory);
}
