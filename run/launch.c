#include "run/launch.h"

#include "base/attach.h"
#include "run/inner.h"
#include "run/refusal.h"
#include "run/report.h"
#include "run/say.h"
#include "run/signals.h"
#include "run/talk.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <sched.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

/* A folder as standard input would be a way to what covers hide. Closed ones would become something else. */
int launch_check_files(void) {
    for (int fd = 0; fd <= 2; fd++) {
        struct stat st;
        if (fstat(fd, &st) != 0 && open("/dev/null", O_RDWR) != fd)
            return run_say("descriptor %d is closed, and /dev/null: %s", fd, strerror(errno));
        if (fstat(fd, &st) == 0 && S_ISDIR(st.st_mode))
            return run_say("descriptor %d is a folder, through which the command would see what "
                           "the sandbox hides",
                           fd);
    }
    return 0;
}

/* The terminal's process group when that is ours. */
static pid_t find_foreground(void) {
    pid_t group = tcgetpgrp(STDIN_FILENO);
    return group == getpgrp() ? group : -1;
}

int launch_hold(struct launch *l) {
    *l = (struct launch){.talk = -1, .line = -1, .asks = -1};
    l->mask = umask(022);
    signals_hold(&l->before);
    l->foreground = find_foreground();
    l->signals = signals_open();
    return l->signals >= 0 ? 0 : -1;
}

int launch_poll(struct launch *l, struct pollfd *of, size_t n, int milliseconds) {
    struct pollfd all[LAUNCH_POLL_MAX + 1] = {{.fd = l->signals, .events = POLLIN}};
    memcpy(all + 1, of, n * sizeof *of);
    int found;
    do {
        found = poll(all, n + 1, milliseconds);
        if (found > 0 && all[0].revents && !l->ended)
            l->ended = signals_ending(l->signals);
    } while (!l->ended && ((found == 1 && all[0].revents) || (found < 0 && errno == EINTR)));
    memcpy(of, all + 1, n * sizeof *of);
    return l->ended ? -1 : found - (found > 0 && all[0].revents);
}

/* -1: a signal has ended us. */
static int await_one(struct launch *l, int fd) {
    struct pollfd one = {.fd = fd, .events = POLLIN};
    return launch_poll(l, &one, 1, -1) > 0 ? 0 : -1;
}

static pid_t clone_into_namespaces(void) {
    const unsigned long flags =
        CLONE_NEWUSER | CLONE_NEWNET | CLONE_NEWNS | CLONE_NEWPID | CLONE_NEWIPC | SIGCHLD;
    return (pid_t)syscall(SYS_clone, flags, 0UL, 0UL, 0UL, 0UL);
}

static int reap(pid_t pid) {
    int status = 0;
    while (waitpid(pid, &status, 0) < 0 && errno == EINTR)
        continue;
    return status;
}

static void end_talk(struct launch *l) {
    close(l->talk);
    close(l->line);
    reap(l->init);
}

static int receive_listeners(struct launch *l) {
    l->n_listeners = NETWORK_LISTENERS;
    for (size_t i = 0; i < NETWORK_LISTENERS; i++) {
        l->listeners[i] = await_one(l, l->talk) == 0 ? talk_receive_fd(l->talk) : -1;
        if (l->listeners[i] >= 0)
            continue;
        while (i > 0)
            close(l->listeners[--i]);
        return -1;
    }
    return 0;
}

static int make_talk(struct launch *l, struct inner_talk *theirs) {
    int s[2], line[2];
    if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, s) != 0)
        return -1;
    if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, line) != 0) {
        close(s[0]);
        close(s[1]);
        return -1;
    }
    l->talk = s[0];
    l->line = line[0];
    *theirs = (struct inner_talk){s[1], line[1]};
    return 0;
}

/* The first process' number, or -1 with errno. */
static pid_t clone_inner(const struct launch *l, const struct run_plan *plan,
                         const struct inner_talk *theirs) {
    const struct inner_caller caller = {
        .uid = geteuid(), .gid = getegid(), .signals = l->before, .mask = l->mask};
    pid_t init = clone_into_namespaces();
    if (init != 0)
        return init;
    close(l->talk);
    close(l->line);
    close(l->signals);
    inner_main(plan, &caller, theirs);
}

int launch_begin(struct launch *l, const struct run_plan *plan) {
    struct inner_talk theirs;
    if (make_talk(l, &theirs) != 0)
        return run_say("a socket pair: %s", strerror(errno));
    l->init = clone_inner(l, plan, &theirs);
    int why = errno;
    close(theirs.s);
    close(theirs.line);
    if (l->init < 0) {
        close(l->talk);
        close(l->line);
        return run_say("namespaces: %s. Without them the command is not run, unless you say "
                       "--unenforced",
                       refusal_reason("", why));
    }
    if (receive_listeners(l) == 0)
        return 0;
    end_talk(l);
    return -1;
}

int launch_enter(struct launch *l, struct view environment, struct buf *report) {
    int result = talk_send_environment(l->talk, environment);
    if (result == ERR_LIMIT)
        run_say("the environment is too large");
    if (result == 0)
        result = await_one(l, l->line);
    if (result == 0)
        result = talk_receive_report(l->line, report);
    if (result == 0)
        return 0;
    end_talk(l);
    return -1;
}

int launch_go(struct launch *l) {
    if (talk_send_go(l->line) == 0)
        return 0;
    end_talk(l);
    return -1;
}

/* An interactive shell in the sandbox made groups of its own the terminal's. */
static void take_terminal_back(const struct launch *l) {
    if (l->foreground > 0 && tcgetpgrp(STDIN_FILENO) != l->foreground)
        tcsetpgrp(STDIN_FILENO, l->foreground);
}

/* ---- until the end ---- */

/* exeatd asks for the probes again, or is gone: then nobody serves the sandbox, and the command goes on. */
static void take_ask(struct launch *l) {
    int result = attach_receive_ask(l->asks);
    if (result == ERR_AGAIN)
        return;
    if (result != 0 || talk_send_again(l->talk) != 0)
        l->asks = -1;
}

static void pass_report(struct launch *l) {
    struct buf report;
    buf_init(&report, REPORT_MAX);
    if (talk_receive_report(l->line, &report) != 0 ||
        attach_send_report(l->asks, buf_view(&report)) != 0)
        l->asks = -1;
    buf_free(&report);
}

static void await_something(struct launch *l) {
    struct pollfd of[] = {{.fd = l->signals, .events = POLLIN},
                          {.fd = l->asks, .events = POLLIN},
                          {.fd = l->asks < 0 ? -1 : l->line, .events = POLLIN}};
    poll(of, sizeof of / sizeof *of, -1);
    signals_relay(l->signals, l->init);
    if (of[1].revents)
        take_ask(l);
    if (of[2].revents)
        pass_report(l);
}

int launch_await(struct launch *l) {
    int status = 0;
    while (waitpid(l->init, &status, WNOHANG) == 0)
        await_something(l);
    take_terminal_back(l);
    return status;
}

int launch_wait(struct launch *l, int *status) {
    int end = launch_await(l);
    if (WIFSIGNALED(end))
        run_say("the sandbox's first process was ended by a signal (%s)", strsignal(WTERMSIG(end)));
    int result = talk_receive_status(l->talk, status);
    close(l->talk);
    close(l->line);
    return result == 0 ? 0 : -1;
}

void launch_abandon(struct launch *l) {
    end_talk(l);
}
