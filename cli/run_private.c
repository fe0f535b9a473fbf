#include "cli/run_private.h"

#include "audit/segment.h"
#include "base/attach.h"
#include "base/file.h"
#include "base/loop.h"
#include "ca/mint.h"
#include "cli/ca_store.h"
#include "cli/client.h"
#include "cli/run_settings.h"
#include "cli/run_told.h"
#include "cli/vault_key.h"
#include "run/say.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/close_range.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/pidfd.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

enum {
    READY_SECONDS = 30,
    CONFIGURATION_MAX = 2 << 20,
    LOG_SHOWN = 2048,
};

/* A name in the directory; valid until the next call. */
static const char *in(const struct run_private *p, const char *name) {
    static char path[PATH_MAX + 32];
    snprintf(path, sizeof path, "%s/%s", p->directory, name);
    return path;
}

/* ---- what a start needs ---- */

/* In the quotes that it has none of. */
static int put_path(const char *word, const char *path, struct buf *out) {
    char quote = strchr(path, '"') ? '\'' : '"';
    for (const char *at = path; *at; at++)
        if (*at == quote || (unsigned char)*at < 0x20 || *at == 0x7f)
            return run_say("a configuration cannot hold the name of %s: a control character, or "
                           "quotes of both kinds, are in it",
                           path);
    buf_printf(out, "%s %c%s%c", word, quote, path, quote);
    return 0;
}

/* Absolute, as the settings are read as a file in another folder. Root's daemon gives each role a user of its own. */
static int put_configuration(const struct run_private *p, const struct run_options *o,
                             struct buf *out) {
    if (put_path("state", in(p, "state"), out) != 0 || put_path("\npolicy", o->policy, out) != 0 ||
        put_path("\ncontrol", in(p, "control.sock"), out) != 0 ||
        put_path("\nattach", in(p, "attach.sock"), out) != 0)
        return -1;
    buf_put_str(out, " { mode 0600 }\n");
    if (geteuid() == 0)
        buf_put_str(out, "uids 61800 - 61999\n");
    return 0;
}

static int write_configuration(const struct run_private *p, const struct run_options *o) {
    struct buf text;
    buf_init(&text, CONFIGURATION_MAX);
    int result = run_settings_read(o->settings, &text);
    size_t own = buf_len(&text);
    if (result == 0)
        result = put_configuration(p, o, &text);
    if (result == 0 && own > 0)
        result = run_settings_check(o->settings, buf_view(&text), own);
    int fd =
        result == 0 ? open(in(p, "exeat.conf"), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600) : -1;
    if (result == 0 && (fd < 0 || !buf_ok(&text) || file_write(fd, buf_view(&text)) != 0))
        result = run_say("%s: %s", in(p, "exeat.conf"), strerror(errno));
    if (fd >= 0)
        close(fd);
    buf_free(&text);
    return result;
}

static int make_ca(const struct run_private *p) {
    struct ca_store store;
    mint_lock_memory();
    int result = ca_store_open(in(p, "state"), true, &store);
    store.only_certificates = true;
    if (result == 0)
        result = ca_store_init(&store, clock_wall() / UINT64_C(1000000000));
    const char *why = err_why(result);
    ca_store_close(&store);
    return result == 0 ? 0 : run_say("a CA for the sandbox: %s", why);
}

static int make_vault_key(const struct run_private *p) {
    char text[VAULT_KEY_TEXT_SIZE + 1];
    vault_key_make(text);
    int code = vault_key_write(in(p, "state/vault.key"), text, p->directory);
    explicit_bzero(text, sizeof text);
    return code == EXIT_YES ? 0 : -1;
}

/* Before the command is there: a file that it has put in the log's place meanwhile would be any of the user's. */
static int open_log(struct run_private *p, const char *log) {
    if (!*log)
        return 0;
    p->log = file_open(log, O_WRONLY | O_CREAT | O_APPEND | O_NOFOLLOW, 0600);
    return p->log >= 0
               ? 0
               : run_say("--log %s: %s", log,
                         errno == ELOOP ? "it is a link: name the file that is meant" : file_why());
}

int run_private_make(struct run_private *p, const char *directory, const struct run_options *o) {
    *p = (struct run_private){.directory = directory, .keeper = -1, .log = -1};
    if (open_log(p, o->log) != 0)
        return -1;
    if (mkdir(in(p, "state"), 0755) != 0)
        return run_say("%s: %s", in(p, "state"), strerror(errno));
    return write_configuration(p, o) == 0 && make_ca(p) == 0 && make_vault_key(p) == 0 ? 0 : -1;
}

const char *run_private_state(const struct run_private *p) {
    return in(p, "state");
}

/* ---- the start ---- */

/* exeatd beside this program, else on the PATH. */
static void find_daemon(char out[PATH_MAX]) {
    static const char name[] = "exeatd";
    ssize_t n = readlink("/proc/self/exe", out, PATH_MAX - sizeof name);
    out[n > 0 ? n : 0] = 0;
    char *slash = strrchr(out, '/');
    memcpy(slash ? slash + 1 : out, name, sizeof name);
    if (access(out, X_OK) != 0)
        memcpy(out, name, sizeof name);
}

/* Its end is bound to ours; the terminal's signals are none of its business. */
static _Noreturn void execute_daemon(const struct run_private *p, const sigset_t *signals,
                                     pid_t launcher) {
    char program[PATH_MAX];
    int null = open("/dev/null", O_RDONLY);
    int log = open(in(p, "exeatd.log"), O_WRONLY | O_CREAT | O_APPEND, 0600);
    find_daemon(program);
    setenv("NOTIFY_SOCKET", in(p, "notify.sock"), 1);
    if (null >= 0 && log >= 0 && dup2(null, 0) == 0 && dup2(log, 1) == 1 && dup2(log, 2) == 2 &&
        close_range(STDERR_FILENO + 1, ~0U, 0) == 0 && setsid() >= 0 &&
        prctl(PR_SET_PDEATHSIG, SIGTERM) == 0 && getppid() == launcher) {
        sigprocmask(SIG_SETMASK, signals, NULL);
        execlp(program, "exeatd", "--config", in(p, "exeat.conf"), (char *)NULL);
        fprintf(stderr, "%s: %s\n", program, strerror(errno));
    }
    _exit(RUN_FAILED);
}

static int open_notify(const struct run_private *p) {
    struct sockaddr_un at = {.sun_family = AF_UNIX};
    int n = snprintf(at.sun_path, sizeof at.sun_path, "%s", in(p, "notify.sock"));
    int fd = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    if (fd >= 0 && n < (int)sizeof at.sun_path && bind(fd, (struct sockaddr *)&at, sizeof at) == 0)
        return fd;
    if (fd >= 0)
        close(fd);
    return run_say("%s: %s", in(p, "notify.sock"), strerror(errno));
}

/* Whether a message says that it is ready. */
static bool says_ready(int notify) {
    char text[256];
    ssize_t n = recv(notify, text, sizeof text - 1, 0);
    text[n > 0 ? n : 0] = 0;
    return strstr(text, "READY=1") != NULL;
}

/* 0, or -1 when it has ended or takes too long, or a signal has ended the launcher. */
static int await_ready(int notify, pid_t daemon, struct launch *l) {
    int ended = pidfd_open(daemon, 0);
    struct pollfd of[2] = {{.fd = notify, .events = POLLIN}, {.fd = ended, .events = POLLIN}};
    bool ready = false, going = ended >= 0;
    while (going && !ready) {
        going = launch_poll(l, of, 2, READY_SECONDS * 1000) > 0 && !of[1].revents;
        ready = going && of[0].revents && says_ready(notify);
    }
    if (ended >= 0)
        close(ended);
    return ready ? 0 : -1;
}

/* What it complains of, without the end of its last line. */
static void put_complaints(struct view log, struct buf *out) {
    while (log.n > 0) {
        struct view line = view_cut(&log, '\n');
        if (line.n > 0 && view_search(line, VIEW(": info: ")) == line.n)
            buf_printf(out, "%s%.*s", buf_len(out) > 0 ? "\n" : "", VIEW_ARG(line));
    }
}

/* A relative path in the user's settings was looked for beside the configuration that they went into. */
static const char *relative_path(const struct run_private *p, const struct run_options *o,
                                 struct view told) {
    bool is_one = *o->settings && view_search(told, view_str(o->settings)) < told.n &&
                  view_search(told, view_str(p->directory)) < told.n;
    return is_one ? "\nthe paths in --settings have to be absolute" : "";
}

/* The end of its log, in which it says why; the place in its configuration is one in the user's settings. */
static int tell_log(const struct run_private *p, const struct run_options *o) {
    char text[LOG_SHOWN];
    struct buf quoted, told;
    int fd = open(in(p, "exeatd.log"), O_RDONLY | O_CLOEXEC);
    off_t size = fd >= 0 ? lseek(fd, 0, SEEK_END) : 0;
    ssize_t n = fd >= 0 ? pread(fd, text, sizeof text, size > LOG_SHOWN ? size - LOG_SHOWN : 0) : 0;
    if (fd >= 0)
        close(fd);
    buf_init(&quoted, LOG_SHOWN * PATH_MAX);
    buf_init(&told, LOG_SHOWN * PATH_MAX);
    run_settings_quote(o->settings, in(p, "exeat.conf"), view_of(text, n > 0 ? (size_t)n : 0),
                       &quoted);
    put_complaints(buf_view(&quoted), &told);
    run_say("exeatd does not start:\n%.*s%s", VIEW_ARG(buf_view(&told)),
            relative_path(p, o, buf_view(&told)));
    buf_free(&quoted);
    buf_free(&told);
    return -1;
}

static int start_daemon(struct run_private *p, const struct launch *l) {
    pid_t launcher = getpid();
    p->notify = open_notify(p);
    if (p->notify < 0)
        return -1;
    pid_t pid = fork();
    if (pid == 0)
        execute_daemon(p, &l->before, launcher);
    if (pid < 0)
        return run_say("exeatd: %s", strerror(errno));
    p->daemon = pid;
    return 0;
}

/* ---- what it is told ---- */

/* The value as a descriptor, since only broker reads it; or -1. */
static int value_open(const char *value) {
    int fd = memfd_create("secret", MFD_CLOEXEC);
    if (fd >= 0 && (file_write(fd, view_str(value)) != 0 || lseek(fd, 0, SEEK_SET) != 0)) {
        close(fd);
        fd = -1;
    }
    return fd;
}

static int add_secret(const struct run_private *p, const struct run_secret *s) {
    struct buf body, answer;
    int fd = value_open(s->value);
    if (fd < 0)
        return run_say("--secret %s: %s", s->name, strerror(errno));
    buf_init(&body, CONTROL_ASK_MAX);
    buf_init(&answer, BROKER_TEXT_MAX);
    buf_put_u8(&body, false);
    buf_put_block(&body, view_str(s->name));
    buf_put_block(&body, VIEW("")); /* placeholders without a prefix */
    buf_put_block(&body, VIEW("")); /* no client certificate */
    int code = client_ask_at(in(p, "control.sock"), CONTROL_SECRET_ADD, buf_view(&body), fd,
                             &answer, NULL);
    close(fd);
    buf_free(&body);
    buf_free(&answer);
    return code == EXIT_YES ? 0
                            : run_say("the value for the credential %s cannot be used; `exeat run` "
                                      "has no --allow-short",
                                      s->name);
}

int run_private_connect(struct run_private *p, const struct run_options *o, struct launch *l,
                        int *connection) {
    int ready = await_ready(p->notify, p->daemon, l);
    close(p->notify);
    if (ready != 0)
        return l->ended ? -1 : tell_log(p, o);
    for (size_t i = 0; i < o->n_secrets; i++)
        if (add_secret(p, &o->secrets[i]) != 0)
            return -1;
    *connection = attach_connect(in(p, "attach.sock"));
    p->serves = *connection >= 0;
    return p->serves ? 0 : run_say("%s: %s", in(p, "attach.sock"), strerror(errno));
}

/* ---- the end ---- */

static int append_file(int dir, const char *name, int to) {
    struct buf text;
    buf_init(&text, SIZE_MAX);
    int fd = openat(dir, name, O_RDONLY | O_CLOEXEC);
    int result = fd < 0 ? ERR_SYSTEM : file_read(fd, SIZE_MAX, &text);
    if (result == 0)
        result = file_write(to, buf_view(&text));
    buf_free(&text);
    return result;
}

static int append_trail(int dir, int to) {
    struct segment_list list;
    int result = segment_list_read(dir, &list);
    if (result != 0)
        return result;
    for (size_t i = 0; i < list.n && result == 0; i++)
        result = append_file(dir, list.at[i].text, to);
    segment_list_free(&list);
    return result;
}

static int keep_trail(const struct run_private *p, const char *log) {
    int dir = open(in(p, "state/audit"), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    /* Of an exeatd that has not come as far as to make the folder there is none. */
    int result = dir >= 0 ? append_trail(dir, p->log) : errno == ENOENT ? 0 : ERR_SYSTEM;
    const char *why = err_why(result);
    if (dir >= 0)
        close(dir);
    close(p->log);
    return result == 0 ? 0 : run_say("--log %s: %s", log, why);
}

/* ---- the keeper ---- */

static int order(const void *a, const void *b) {
    return *(const int *)a - *(const int *)b;
}

/* Nothing else that the launcher has, such as what its sandbox hears its end by. -1 in kept stands for none. */
static bool keep_only(int kept[], size_t n) {
    int null = open("/dev/null", O_RDWR);
    unsigned next = STDERR_FILENO + 1;
    bool ok =
        dup2(null, STDIN_FILENO) == STDIN_FILENO && dup2(null, STDOUT_FILENO) == STDOUT_FILENO;
    qsort(kept, n, sizeof *kept, order);
    for (size_t i = 0; i < n && ok; i++) {
        if (kept[i] < 0)
            continue;
        ok = (unsigned)kept[i] == next || close_range(next, (unsigned)kept[i] - 1, 0) == 0;
        next = (unsigned)kept[i] + 1;
    }
    return ok && close_range(next, ~0U, 0) == 0;
}

/* False: who would say it is gone. */
static bool await_word(int fd) {
    char word;
    ssize_t n;
    do
        n = read(fd, &word, 1);
    while (n < 0 && errno == EINTR);
    return n == 1;
}

static void end_daemon(int daemon) {
    struct pollfd one = {.fd = daemon, .events = POLLIN};
    pidfd_send_signal(daemon, SIGTERM, NULL, 0);
    while (poll(&one, 1, -1) < 0 && errno == EINTR)
        continue;
}

static _Noreturn void keeper(struct run_private *p, struct run_folder *folder, int listens,
                             int daemon, const char *log) {
    int kept_open[] = {listens, daemon, folder->lock, p->log};
    if (setsid() < 0 || chdir("/") != 0 ||
        !keep_only(kept_open, sizeof kept_open / sizeof *kept_open))
        _exit(RUN_FAILED);
    bool told = await_word(listens);
    end_daemon(daemon);
    char kept = p->log < 0 || keep_trail(p, log) == 0;
    if (told)
        send(listens, &kept, 1, MSG_NOSIGNAL);
    else
        run_folder_remove(folder);
    _exit(0);
}

/* No child of ours, so that nobody has to wait for it who waits for what we have begun. */
static void fork_keeper(struct run_private *p, struct run_folder *folder, int listens, int daemon,
                        const char *log) {
    pid_t between = fork();
    if (between == 0) {
        if (fork() == 0)
            keeper(p, folder, listens, daemon, log);
        _exit(0);
    }
    while (between > 0 && waitpid(between, NULL, 0) < 0 && errno == EINTR)
        continue;
}

static int start_keeper(struct run_private *p, struct run_folder *folder, const char *log) {
    int s[2], daemon = pidfd_open(p->daemon, 0);
    if (daemon < 0 || socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, s) != 0) {
        run_say("who ends exeatd: %s", strerror(errno));
        if (daemon >= 0)
            close(daemon);
        return -1;
    }
    p->keeper = s[0];
    fork_keeper(p, folder, s[1], daemon, log);
    close(s[1]);
    close(daemon);
    return 0;
}

int run_private_start(struct run_private *p, const struct launch *l, struct run_folder *folder,
                      const char *log) {
    return start_daemon(p, l) == 0 ? start_keeper(p, folder, log) : -1;
}

/* False: it is not there, and has kept nothing. */
static bool have_it_kept(struct run_private *p, char *kept) {
    ssize_t n = p->keeper >= 0 && send(p->keeper, "e", 1, MSG_NOSIGNAL) == 1 ? -1 : 0;
    while (n < 0 && (n = recv(p->keeper, kept, 1, 0)) < 0 && errno == EINTR)
        continue;
    if (p->keeper >= 0)
        close(p->keeper);
    return n == 1;
}

/* The command found nobody from then on, and has not said why. */
static void tell_early_end(const struct run_private *p) {
    siginfo_t end = {0};
    if (!p->serves || waitid(P_PID, (id_t)p->daemon, &end, WEXITED | WNOHANG | WNOWAIT) != 0 ||
        end.si_pid == 0)
        return;
    if (end.si_code == CLD_EXITED)
        run_say("exeatd has ended before the command, with exit status %d: from then on nothing "
                "left the sandbox",
                end.si_status);
    else
        run_say("exeatd was ended before the command, by a signal (%s): from then on nothing left "
                "the sandbox",
                strsignal(end.si_status));
}

int run_private_end(struct run_private *p, const char *log) {
    char kept;
    if (p->daemon <= 0)
        return 0;
    tell_early_end(p);
    bool is_kept = have_it_kept(p, &kept);
    if (!is_kept)
        kill(p->daemon, SIGTERM);
    while (waitpid(p->daemon, NULL, 0) < 0 && errno == EINTR)
        continue;
    if (isatty(STDERR_FILENO))
        run_told(in(p, "state"), log);
    if (is_kept)
        return kept ? 0 : -1;
    return p->log >= 0 ? keep_trail(p, log) : 0;
}
