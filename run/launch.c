#include "run/launch.h"

#include "run/inner.h"
#include "run/refusal.h"
#include "run/say.h"
#include "run/signals.h"
#include "run/talk.h"

#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

/* A folder as standard input would be a way to what covers hide. Closed ones would become something else. */
static int check_standard_files(void) {
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

void launch_hold(struct launch *l) {
    signals_hold(&l->signals);
    l->foreground = find_foreground();
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
    reap(l->init);
}

static int receive_listeners(struct launch *l) {
    l->n_listeners = NETWORK_LISTENERS;
    for (size_t i = 0; i < NETWORK_LISTENERS; i++) {
        l->listeners[i] = talk_receive_fd(l->talk);
        if (l->listeners[i] >= 0)
            continue;
        while (i > 0)
            close(l->listeners[--i]);
        return -1;
    }
    return 0;
}

int launch_begin(struct launch *l, const struct run_plan *plan) {
    struct inner_caller caller = {.uid = geteuid(), .gid = getegid()};
    int ends[2];
    if (check_standard_files() != 0)
        return -1;
    if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends) != 0)
        return run_say("a socket pair: %s", strerror(errno));
    launch_hold(l);
    caller.signals = l->signals;
    l->init = clone_into_namespaces();
    if (l->init == 0) {
        close(ends[0]);
        inner_main(plan, &caller, ends[1]);
    }
    int why = errno;
    l->talk = ends[0];
    close(ends[1]);
    if (l->init < 0) {
        close(l->talk);
        return run_say("namespaces: %s. Without them the command is not run, unless you say "
                       "--unenforced",
                       refusal_reason("", why));
    }
    if (receive_listeners(l) == 0)
        return 0;
    end_talk(l);
    return -1;
}

int launch_go(struct launch *l, struct view environment) {
    int result = talk_send_environment(l->talk, environment);
    if (result == ERR_LIMIT)
        run_say("the environment is too large");
    if (result == 0)
        return 0;
    end_talk(l);
    return -1;
}

/* An interactive shell in the sandbox made groups of its own the terminal's. */
static void take_terminal_back(const struct launch *l) {
    if (l->foreground > 0 && tcgetpgrp(STDIN_FILENO) != l->foreground)
        tcsetpgrp(STDIN_FILENO, l->foreground);
}

int launch_await(const struct launch *l) {
    int status = 0;
    while (waitpid(l->init, &status, WNOHANG) == 0)
        signals_relay(l->init);
    take_terminal_back(l);
    return status;
}

int launch_wait(struct launch *l, int *status) {
    launch_await(l);
    int result = talk_receive_status(l->talk, status);
    close(l->talk);
    return result == 0 ? 0 : -1;
}

void launch_abandon(struct launch *l) {
    end_talk(l);
}
