#include "cli/run_options.h"

#include "cli/environment.h"
#include "cli/run_links.h"
#include "run/say.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* ---- paths ---- */

static int resolve(const char *option, const char *path, char out[PATH_MAX]) {
    return realpath(path, out) ? 0 : run_say("%s %s: %s", option, path, strerror(errno));
}

/* Of what the command may not change: neither may it change what the name means. */
static int resolve_named(struct run_options *o, const char *option, const char *path,
                         char out[PATH_MAX]) {
    run_links_put(path, &o->links);
    return resolve(option, path, out);
}

/* The same, to be kept. */
static const char *resolved(const char *option, const char *path) {
    char real[PATH_MAX];
    return resolve(option, path, real) == 0 ? strdup(real) : NULL;
}

/* ---- an option each ---- */

static int take_sandbox(struct run_options *o, const char *value) {
    o->sandbox = value;
    return 0;
}

static int take_policy(struct run_options *o, const char *value) {
    return resolve_named(o, "--policy", value, o->policy);
}

static int take_settings(struct run_options *o, const char *value) {
    return resolve_named(o, "--settings", value, o->settings);
}

/* It need not be there yet. */
static int take_log(struct run_options *o, const char *value) {
    int n = snprintf(o->log, sizeof o->log, "%s", value);
    run_links_put(value, &o->links);
    return n > 0 && n < PATH_MAX ? 0 : run_say("--log: no such name for a file");
}

static int take_read_only(struct run_options *o, const char *value) {
    struct run_plan *plan = &o->plan;
    if (plan->n_read_only == RUN_PATHS_MAX)
        return run_say("--ro: more than %d", RUN_PATHS_MAX);
    run_links_put(value, &o->links);
    const char *path = resolved("--ro", value);
    if (!path)
        return -1;
    plan->read_only[plan->n_read_only++] = path;
    return 0;
}

static int take_hidden(struct run_options *o, const char *value) {
    char path[PATH_MAX];
    if (resolve_named(o, "--hide", value, path) != 0)
        return -1;
    if (strcmp(path, "/") == 0)
        return run_say("--hide /: nothing would be left to run");
    buf_put(&o->hidden, view_of(path, strlen(path) + 1));
    return 0;
}

static int take_bind(struct run_options *o, const char *value) {
    struct run_bind *bind = &o->plan.binds[o->plan.n_binds];
    char place[PATH_MAX];
    if (o->plan.n_binds == RUN_PATHS_MAX)
        return run_say("--bind: more than %d", RUN_PATHS_MAX);
    const char *colon = strchr(value, ':');
    if (colon && realpath(colon + 1, place) && strcmp(place, "/") == 0)
        return run_say("--bind %s: it cannot be shown in the place of everything", value);
    char *from = colon ? strndup(value, (size_t)(colon - value)) : strdup(value);
    bind->from = from ? resolved("--bind", from) : NULL;
    free(from);
    bind->to = colon ? colon + 1 : bind->from;
    if (bind->to && bind->to[0] != '/')
        return run_say("--bind %s: the place in the sandbox is an absolute path", value);
    if (!bind->from)
        return -1;
    o->plan.n_binds++;
    return 0;
}

/* The variable's value, which nobody finds in the environment afterwards. */
static const char *take_variable(const char *name) {
    const char *value = getenv(name);
    char *kept = value && *value ? strdup(value) : NULL;
    unsetenv(name);
    return kept;
}

/* NAME=VARIABLE, or NAME alone: the variable that the sandbox will have in its place. */
static int take_secret(struct run_options *o, const char *value) {
    struct run_secret *s = &o->secrets[o->n_secrets];
    char own[ENVIRONMENT_VARIABLE_SIZE];
    struct view rest = view_str(value), name = view_cut(&rest, '=');
    if (o->n_secrets == RUN_SECRETS_MAX)
        return run_say("--secret: more than %d", RUN_SECRETS_MAX);
    if (view_cstr(name, s->name, sizeof s->name) != 0 ||
        (rest.n == 0 && !environment_variable(name, own, sizeof own)))
        return run_say("--secret %s: it is NAME=VARIABLE: a credential of the policy, and the "
                       "environment variable that has its value",
                       value);
    const char *variable = rest.n > 0 ? (const char *)rest.p : own;
    s->value = take_variable(variable);
    if (!s->value)
        return run_say("--secret %s: the environment has no variable %s", value, variable);
    o->n_secrets++;
    return 0;
}

static int take_strict_trust(struct run_options *o, const char *value) {
    (void)value;
    o->plan.strict_trust = true;
    return 0;
}

static int take_unenforced(struct run_options *o, const char *value) {
    (void)value;
    o->unenforced = true;
    return 0;
}

static const struct option {
    const char *name;
    bool has_value;
    int (*take)(struct run_options *o, const char *value);
} options[] = {
    {"--sandbox", true, take_sandbox},
    {"--policy", true, take_policy},
    {"--settings", true, take_settings},
    {"--secret", true, take_secret},
    {"--log", true, take_log},
    {"--ro", true, take_read_only},
    {"--hide", true, take_hidden},
    {"--bind", true, take_bind},
    {"--strict-trust", false, take_strict_trust},
    {"--unenforced", false, take_unenforced},
};

/* ---- the line ---- */

/* What stands behind "--name=", NULL when nothing does; false when the word is not this option. */
static bool is_option(const struct option *option, const char *word, const char **value) {
    size_t n = strlen(option->name);
    if (strncmp(word, option->name, n) != 0 || (word[n] != 0 && word[n] != '='))
        return false;
    *value = word[n] == '=' ? word + n + 1 : NULL;
    return true;
}

/* How many words it took, or -1. */
static int take_option(struct run_options *o, int left, char **argv) {
    const char *value;
    for (size_t i = 0; i < sizeof options / sizeof *options; i++) {
        if (!is_option(&options[i], argv[0], &value))
            continue;
        bool takes_next = options[i].has_value && !value;
        if (takes_next && (left < 2 || strcmp(argv[1], "--") == 0))
            return run_say("%s needs a value", argv[0]);
        if (!options[i].has_value && value)
            return run_say("%s takes no value", options[i].name);
        if (options[i].take(o, takes_next ? argv[1] : value) != 0)
            return -1;
        return takes_next ? 2 : 1;
    }
    return run_say("%s is no option; the command stands behind a `--`: exeat run [options] -- "
                   "command",
                   argv[0]);
}

/* What its links lead to may be covered by something else. */
static const char *find_runtime(void) {
    static char real[PATH_MAX];
    const char *path = getenv("XDG_RUNTIME_DIR");
    return !path || path[0] != '/' ? NULL : realpath(path, real) ? real : path;
}

int run_options_read(int argc, char **argv, struct run_options *o) {
    static char folder[PATH_MAX];
    *o = (struct run_options){.sandbox = NULL};
    buf_init(&o->hidden, RUN_HIDDEN_MAX);
    buf_init(&o->sockets, RUN_HIDDEN_MAX);
    buf_init(&o->links, RUN_HIDDEN_MAX);
    buf_init(&o->kept, RUN_HIDDEN_MAX);
    int i = 0;
    while (i < argc && strcmp(argv[i], "--") != 0) {
        int taken = take_option(o, argc - i, argv + i);
        if (taken < 0)
            return RUN_FAILED;
        i += taken;
    }
    if (o->unenforced && (o->plan.n_read_only || o->plan.n_binds || buf_len(&o->hidden))) {
        run_say("--ro, --hide and --bind are done by the sandbox that --unenforced does without");
        return RUN_FAILED;
    }
    if (i + 1 >= argc) {
        run_say("a command is missing: exeat run [options] -- command");
        return RUN_FAILED;
    }
    o->plan.argv = argv + i + 1;
    o->plan.runtime = find_runtime();
    o->plan.folder = getcwd(folder, sizeof folder);
    if (o->plan.folder)
        return 0;
    run_say("the working directory: %s", strerror(errno));
    return RUN_FAILED;
}

static bool has_secret(const struct run_options *o, struct view credential) {
    for (size_t i = 0; i < o->n_secrets; i++)
        if (view_equal(view_str(o->secrets[i].name), credential))
            return true;
    return false;
}

int run_options_lend(struct run_options *o, struct view credential) {
    char variable[ENVIRONMENT_VARIABLE_SIZE], name[ENVIRONMENT_VARIABLE_SIZE];
    if (has_secret(o, credential))
        return 0;
    const char *value =
        environment_variable(credential, variable, sizeof variable) ? getenv(variable) : NULL;
    if (view_cstr(credential, name, sizeof name) == 0 && value && *value)
        return take_secret(o, name);
    return run_say("the policy lends %s the credential %.*s: `--secret %.*s=VARIABLE` says which "
                   "environment variable has its value",
                   o->sandbox, VIEW_ARG(credential), VIEW_ARG(credential));
}

static bool holds_secret(const struct run_options *o, const char *pair) {
    for (size_t i = 0; i < o->n_secrets; i++)
        if (strstr(pair, o->secrets[i].value))
            return true;
    return false;
}

void run_options_forget(const struct run_options *o) {
    char **to = environ;
    for (char **from = environ; *from; from++)
        if (!holds_secret(o, *from))
            *to++ = *from;
    *to = NULL;
}
