/* `exeat run`: a command in a sandbox whose only way out is exeat. */
#include "broker/broker_messages.h"
#include "cli/command.h"
#include "cli/environment.h"
#include "cli/nss_place.h"
#include "cli/policy_told.h"
#include "cli/run_attach.h"
#include "cli/run_folder.h"
#include "cli/run_links.h"
#include "cli/run_options.h"
#include "cli/run_private.h"
#include "cli/run_public.h"
#include "policy/errors.h"
#include "run/host_sockets.h"
#include "run/launch.h"
#include "run/refusal.h"
#include "run/report.h"
#include "run/say.h"
#include "run/talk.h"
#include "run/unenforced.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

enum { URL_SIZE = 512 };

/* ---- which policy, which sandbox ---- */

static const char example[] =
    "    service packages { host packages.example.com; operation read { GET HEAD /** } }\n"
    "    service files { host files.example.com; operation read { GET HEAD /** } }\n"
    "    sandbox default { grant packages all; grant files all }";

static const char *const own_variables[] = {"XDG_CONFIG_HOME", "HOME"};
enum { N_OWN = sizeof own_variables / sizeof *own_variables };

/* Where a user has what is his own, by either variable. False: not by this one. */
static bool find_own_folder(const char *variable, char out[PATH_MAX]) {
    const char *base = getenv(variable);
    const char *below = strcmp(variable, "HOME") == 0 ? "/.config" : "";
    return base && base[0] == '/' && snprintf(out, PATH_MAX, "%s%s/exeat", base, below) < PATH_MAX;
}

/* A file of the user's own settings, as it is named; false when there is none. */
static bool find_own(const char *name, char out[PATH_MAX]) {
    char folder[PATH_MAX];
    bool is_there =
        (find_own_folder("XDG_CONFIG_HOME", folder) || find_own_folder("HOME", folder)) &&
        snprintf(out, PATH_MAX, "%s/%s", folder, name) < PATH_MAX && access(out, F_OK) == 0;
    if (!is_there)
        out[0] = 0;
    return is_there;
}

static int find_policy(struct run_options *o, const char *not_attached) {
    if (*o->policy)
        return 0;
    if (!*o->settings)
        find_own("settings", o->settings);
    if (find_own("policy", o->policy))
        return 0;
    return run_say("there is no policy: neither --policy FILE nor ~/.config/exeat/policy%s. One to "
                   "begin with:\n%s",
                   not_attached, example);
}

static void put_sandboxes(const struct policy *p, struct buf *out) {
    for (size_t i = 0; i < policy_sandboxes(p) && buf_ok(out); i++)
        buf_printf(out, "%s%.*s", i ? ", " : "", VIEW_ARG(policy_sandbox_at(p, i)));
}

static int say_sandboxes(const struct policy *p, const struct run_options *o) {
    enum { TOLD_MAX = 1024 };
    size_t n = policy_sandboxes(p);
    struct guess g = guess_of(view_str(o->sandbox ? o->sandbox : ""));
    struct buf names;
    buf_init(&names, TOLD_MAX);
    put_sandboxes(p, &names);
    guess_offer_sandboxes(&g, p);
    if (n == 0)
        run_say("%s declares no sandbox by name: add `sandbox NAME { grant SERVICE OPERATION }` to "
                "it, or name with --sandbox one that a block with a star stands for",
                o->policy);
    else if (o->sandbox)
        run_say("%s has no sandbox %s%s%s only: %.*s", o->policy, o->sandbox, guess_text(&g),
                *guess_text(&g) ? " It has" : ",", VIEW_ARG(buf_view(&names)));
    else
        run_say("%s has %zu sandboxes: --sandbox NAME says which one is meant: %.*s", o->policy, n,
                VIEW_ARG(buf_view(&names)));
    buf_free(&names);
    return -1;
}

/* The policy's only one, unless one was named. */
static int choose_sandbox(const struct policy *p, struct run_options *o) {
    static char name[256];
    if (o->sandbox && policy_has_sandbox(p, view_str(o->sandbox)))
        return 0;
    if (o->sandbox)
        return say_sandboxes(p, o);
    if (policy_sandboxes(p) == 1 && view_cstr(policy_sandbox_at(p, 0), name, sizeof name) == 0) {
        o->sandbox = name;
        return 0;
    }
    return say_sandboxes(p, o);
}

static bool is_lent(const struct policy *p, struct view sandbox, const char *credential) {
    for (size_t i = 0; i < policy_sandbox_credentials(p, sandbox); i++)
        if (view_equal(policy_sandbox_credential_at(p, sandbox, i), view_str(credential)))
            return true;
    return false;
}

/* A value that nobody asks for is a name that was misspelled. */
static int check_secrets(const struct policy *p, const struct run_options *o) {
    for (size_t i = 0; i < o->n_secrets; i++)
        if (!is_lent(p, view_str(o->sandbox), o->secrets[i].name))
            return run_say("--secret %s: the policy lends %s no credential of this name",
                           o->secrets[i].name, o->sandbox);
    return 0;
}

static int find_secrets(const struct policy *p, struct run_options *o) {
    struct view sandbox = view_str(o->sandbox);
    for (size_t i = 0; i < policy_sandbox_credentials(p, sandbox); i++)
        if (run_options_lend(o, policy_sandbox_credential_at(p, sandbox, i)) != 0)
            return -1;
    run_options_forget(o);
    return check_secrets(p, o);
}

static bool is_own(const char *path) {
    char folder[PATH_MAX], own[PATH_MAX], real[PATH_MAX];
    for (size_t i = 0; i < N_OWN; i++)
        if (find_own_folder(own_variables[i], folder) && realpath(folder, own) &&
            realpath(path, real) && view_starts(view_str(real), view_str(own)) &&
            real[strlen(own)] == '/')
            return true;
    return false;
}

/* Where a name is free a command can put a file, so that the next time it is included; but not where it sees nothing. */
static int check_included(struct view in_place) {
    while (in_place.n > 0) {
        const char *name = (const char *)view_cut(&in_place, 0).p;
        if (!is_own(name))
            return run_say("the policy includes %s, and one that comes with exeat has that name "
                           "(in %s): a command that was run may have put it there; give it "
                           "another name, or include what is meant by its absolute path",
                           name, policy_share());
    }
    return 0;
}

static int load_policy(const struct cli *cli, struct run_options *o, struct policy **p) {
    struct policy_included included;
    *p = NULL;
    buf_init(&included.names, RUN_HIDDEN_MAX);
    buf_init(&included.in_place, RUN_HIDDEN_MAX);
    int result = policy_told_load_naming(cli, o->policy, &included, p) == EXIT_YES ? 0 : -1;
    if (result == 0 && !(buf_ok(&included.names) && buf_ok(&included.in_place)))
        result = run_say("no memory for the names of what the policy includes");
    if (result == 0)
        result = check_included(buf_view(&included.in_place));
    if (result != 0) {
        policy_free(*p);
        *p = NULL;
    }
    buf_put(&o->kept, buf_view(&included.names));
    buf_free(&included.names);
    buf_free(&included.in_place);
    return result;
}

static int find_sandbox(const struct cli *cli, struct run_options *o, const char *not_attached) {
    struct policy *p;
    if (find_policy(o, not_attached) != 0 || load_policy(cli, o, &p) != 0)
        return -1;
    int result = choose_sandbox(p, o);
    if (result == 0)
        result = find_secrets(p, o);
    policy_free(p);
    return result;
}

/* ---- what the command does not have ---- */

static void put_path(const char *path, struct buf *out) {
    if (*path)
        buf_put(out, view_of(path, strlen(path) + 1));
}

/* Those of the other variable are in use where that one is set, or is not. */
static void put_own(struct run_options *o) {
    char own[PATH_MAX];
    for (size_t i = 0; i < N_OWN; i++)
        if (find_own_folder(own_variables[i], own)) {
            put_path(own, &o->hidden);
            run_links_put(own, &o->links);
        }
}

/* Sockets of the host, and where exeat keeps what it has. */
static int find_hidden(const char *directory, struct run_options *o) {
    put_path(directory, &o->hidden);
    put_path("/etc/exeat", &o->hidden);
    put_path("/var/lib/exeat", &o->hidden);
    put_own(o);
    int result = host_sockets(&o->sockets, &o->hidden);
    return result == 0 ? 0
                       : run_say("the sockets of this system, /proc/net/unix: %s", err_why(result));
}

/* Without links in them, as those of --bind are. What does not exist stays as it is. */
static int resolve_paths(struct buf *paths) {
    char real[PATH_MAX];
    struct buf resolved;
    buf_init(&resolved, RUN_HIDDEN_MAX);
    struct view rest = buf_view(paths);
    while (rest.n > 0) {
        const char *path = (const char *)view_cut(&rest, 0).p;
        put_path(realpath(path, real) ? real : path, &resolved);
    }
    buf_free(paths);
    *paths = resolved;
    return buf_ok(paths) ? 0 : run_say("there is too much to be hidden or kept");
}

static int check_binds_for(const struct run_options *o, const char *base) {
    char in_it[PATH_MAX + 16], place[RUN_PLACE_MAX];
    int n = snprintf(in_it, sizeof in_it, "%s/" RUN_FOLDER_PREFIX, base);
    for (size_t i = 0; i < o->plan.n_binds; i++)
        if (run_bind_place(&o->plan.binds[i], in_it, place) ||
            strncmp(o->plan.binds[i].from, in_it, (size_t)n) == 0)
            return run_say("--bind %s: sandboxes keep what is theirs in it (%s); a folder in it "
                           "can be shown",
                           o->plan.binds[i].from, base);
    return 0;
}

/* Others of the user have their keys there, who may have an exeatd of their own where this one has none, or another session. */
static int check_binds(const struct run_options *o) {
    char base[PATH_MAX];
    for (size_t i = 0; i < RUN_FOLDER_BASES; i++)
        if (run_folder_base(i, base) && check_binds_for(o, base) != 0)
            return -1;
    return 0;
}

/* What is written into these would decide the next time, or was recorded before. */
static int find_kept(struct run_options *o) {
    for (struct view included = buf_view(&o->kept); included.n > 0;)
        run_links_put((const char *)view_cut(&included, 0).p, &o->links);
    put_path(o->policy, &o->kept);
    put_path(o->settings, &o->kept);
    put_path(o->log, &o->kept);
    return buf_ok(&o->links) ? resolve_paths(&o->kept)
                             : run_say("there are too many links to be kept");
}

/* ---- who serves the sandbox ---- */

/* A running exeatd, or one of its own; either way the sandbox is attached to it. */
struct server {
    struct run_folder folder;
    struct run_public public;
    int connection;       /* -1: there is none yet */
    char state[PATH_MAX]; /* of one that runs */
    bool is_private;
    bool is_unenforced;
    uint16_t port; /* where the command finds the proxy */
    struct nss_place nss;
    struct run_private private;
};

/* A running exeatd has its own policy, vault and trail. */
static int check_attached(const struct run_options *o) {
    if (!o->sandbox)
        return run_say("--sandbox NAME says which sandbox of the running exeatd the command is "
                       "(--policy FILE: one of its own)");
    if (o->n_secrets > 0 || *o->settings || *o->log)
        return run_say("--secret, --settings and --log are for an exeatd of the sandbox's own, "
                       "which takes --policy FILE");
    return 0;
}

static int server_find(struct server *s, const struct cli *cli, struct run_options *o) {
    struct run_attach found;
    if (!o->unenforced && refusal_within(""))
        return run_say("%s", refusal_within(""));
    if (run_attach_find(cli, *o->policy, o, &found) != 0)
        return -1;
    s->connection = found.connection;
    s->is_private = found.connection < 0;
    snprintf(s->state, sizeof s->state, "%s", found.state);
    return s->is_private ? find_sandbox(cli, o, found.why) : check_attached(o);
}

/* Where the sandbox finds its public files is known before they are there. */
static int server_make(struct server *s, struct run_options *o) {
    if (run_folder_make(&s->folder, !s->is_private) != 0 ||
        run_public_make(&s->public, s->folder.path, s->is_unenforced) != 0)
        return -1;
    o->plan.public = s->public.folder;
    if (s->is_private && run_private_make(&s->private, s->folder.path, o) != 0)
        return -1;
    run_public_begin(&s->public, s->is_private ? run_private_state(&s->private) : s->state);
    return 0;
}

/* To the question for a lane; the roots are read while exeatd starts, or while it makes the lane. */
static int server_ask(struct server *s, const struct run_options *o, struct launch *l) {
    if (!s->is_private)
        return run_attach_ask(s->connection, o->sandbox, l) == 0
                   ? run_public_read(&s->public, o->plan.strict_trust)
                   : -1;
    return run_private_start(&s->private, l, &s->folder, o->log) == 0 &&
                   run_public_read(&s->public, o->plan.strict_trust) == 0 &&
                   run_private_connect(&s->private, o, l, &s->connection) == 0
               ? run_attach_ask(s->connection, o->sandbox, l)
               : -1;
}

static int server_issue(struct server *s, const struct run_options *o, struct launch *l,
                        struct buf *issued) {
    int result = server_ask(s, o, l);
    for (size_t i = 0; i < l->n_listeners; i++)
        close(l->listeners[i]);
    return result == 0 ? run_attach_receive(s->connection, l, &s->public, issued) : -1;
}

static int server_end(struct server *s, const struct run_options *o) {
    if (s->connection >= 0)
        close(s->connection);
    run_public_free(&s->public);
    nss_place_remove(&s->nss);
    int result = run_private_end(&s->private, o->log);
    run_folder_remove(&s->folder);
    return result;
}

/* ---- its environment ---- */

static void put_pair(struct buf *out, const char *name, struct view value) {
    buf_put_u32(out, (uint32_t)(strlen(name) + 1 + value.n));
    buf_printf(out, "%s=%.*s", name, VIEW_ARG(value));
}

/* What an interactive shell shows; that of who has none is a shell's own. */
static void put_prompt(struct buf *out) {
    char prompt[256];
    const char *before = getenv("PS1");
    snprintf(prompt, sizeof prompt, "(exeat UNENFORCED) %s", before ? before : "$ ");
    put_pair(out, "PS1", view_str(prompt));
}

static int write_environment(const struct server *s, struct view issued, struct buf *out) {
    struct environment e = {
        .proxy_host = VIEW("127.0.0.1"), .proxy_port = s->port, .public = view_str(s->public.seen)};
    struct view token;
    struct buf url;
    if (environment_read_issued(issued, &e, &token) != 0)
        return run_say("the daemon's answer is malformed");
    buf_init(&url, URL_SIZE);
    environment_put_url(&e, s->is_unenforced, token, &url);
    e.proxy_url = buf_view(&url);
    environment_each(&e, out, put_pair);
    put_pair(out, "EXEAT_SANDBOX", e.sandbox);
    if (s->is_unenforced) {
        put_pair(out, "EXEAT_UNENFORCED", VIEW("1"));
        put_prompt(out);
    }
    bool ok = buf_ok(&url) && buf_ok(out);
    buf_free(&url);
    return ok ? 0 : run_say("the environment is too large");
}

/* ---- the sandbox ---- */

/* The command is there, tells what it found, and begins when exeatd serves. */
static int begin(struct server *s, struct launch *l, struct view environment) {
    struct buf report;
    buf_init(&report, REPORT_MAX);
    int result = launch_enter(l, environment, &report);
    if (result == 0) {
        result = run_attach_report(s->connection, l, buf_view(&report));
        if (result != 0)
            launch_abandon(l);
        else
            result = launch_go(l);
    }
    l->asks = s->connection;
    buf_free(&report);
    return result;
}

/* From the namespaces to the command's start; what was begun is abandoned when a step fails. */
static int start(struct server *s, const struct run_options *o, struct launch *l) {
    struct buf issued, environment;
    buf_init(&issued, BROKER_TEXT_MAX);
    buf_init(&environment, TALK_ENVIRONMENT_MAX);
    int result = server_issue(s, o, l, &issued);
    if (result == 0)
        result = write_environment(s, buf_view(&issued), &environment);
    if (result == 0 && s->is_unenforced)
        result = unenforced_go(l, o->plan.argv, buf_view(&environment));
    else if (result == 0)
        result = begin(s, l, buf_view(&environment));
    else if (!s->is_unenforced)
        launch_abandon(l);
    buf_free(&issued);
    buf_free(&environment);
    return result;
}

/* Whoever reads the terminal, the records or the status learns of it. */
static int run_unenforced(struct server *s, const struct run_options *o, struct launch *l,
                          int *status) {
    run_say(
        "UNENFORCED: there is no sandbox. The command is told of exeat, and nothing keeps it from "
        "going beside it, or from what you may read and write");
    if (unenforced_begin(l, &s->port) != 0 || start(s, o, l) != 0)
        return -1;
    *status = unenforced_wait(l);
    return 0;
}

static int run_sandboxed(struct server *s, struct run_options *o, struct launch *l, int *status) {
    s->port = RUN_PROXY_PORT;
    if (find_hidden(s->folder.path, o) != 0 || resolve_paths(&o->hidden) != 0 ||
        resolve_paths(&o->sockets) != 0 || check_binds(o) != 0 || find_kept(o) != 0)
        return -1;
    o->plan.hidden = buf_view(&o->hidden);
    o->plan.sockets = buf_view(&o->sockets);
    o->plan.kept = buf_view(&o->kept);
    o->plan.links = buf_view(&o->links);
    nss_place_make(&s->nss);
    return launch_begin(l, &o->plan) == 0 && start(s, o, l) == 0 ? launch_wait(l, status) : -1;
}

/* Signals are held back before anything is made that would be left behind. */
static int run_served(struct server *s, struct run_options *o, int *status) {
    struct launch l;
    int result = launch_hold(&l);
    if (result == 0)
        result = server_make(s, o);
    if (result == 0)
        result = o->unenforced ? run_unenforced(s, o, &l, status) : run_sandboxed(s, o, &l, status);
    if (!l.ended)
        return result;
    *status = l.ended;
    return 0;
}

/* As the command ended, or what was to begin it: who waits for us learns of a signal as of one that we had. */
static int end_as(int status) {
    const struct rlimit none = {0, 0};
    sigset_t one;
    if (WIFEXITED(status))
        return WEXITSTATUS(status);
    int number = WTERMSIG(status);
    setrlimit(RLIMIT_CORE, &none);
    signal(number, SIG_DFL);
    sigemptyset(&one);
    sigaddset(&one, number);
    kill(getpid(), number);
    sigprocmask(SIG_UNBLOCK, &one, NULL);
    return 128 + number;
}

int command_run(const struct cli *cli, int argc, char **argv) {
    static struct run_options o;
    struct server s = {.connection = -1, .nss = NSS_PLACE_NONE};
    int status = 0, result = launch_check_files();
    if (result == 0)
        result = run_options_read(argc, argv, &o);
    s.is_unenforced = o.unenforced;
    if (result == 0)
        result = server_find(&s, cli, &o);
    if (result == 0)
        result = run_served(&s, &o, &status);
    if (server_end(&s, &o) != 0)
        result = -1;
    buf_free(&o.hidden);
    buf_free(&o.sockets);
    buf_free(&o.links);
    buf_free(&o.kept);
    return result == 0 ? end_as(status) : RUN_FAILED;
}
