#include "run/inner.h"

#include "run/confine.h"
#include "run/files.h"
#include "run/host_sockets.h"
#include "run/hostile.h"
#include "run/identity.h"
#include "run/network.h"
#include "run/probe_self.h"
#include "run/refusal.h"
#include "run/refused.h"
#include "run/report.h"
#include "run/say.h"
#include "run/signals.h"
#include "run/talk.h"
#include "run/trust.h"
#include "run/variables.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/close_range.h>
#include <poll.h>
#include <sched.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

/* ---- the command ---- */

/* What the kernel lets nobody uncover is what came into a mount namespace from one of more rights. */
static int enter_namespaces(const struct inner_caller *caller) {
    if (unshare(CLONE_NEWUSER | CLONE_NEWNS) != 0 || identity_keep(caller->uid, caller->gid) != 0)
        return run_say("a user namespace for the command: %s", refusal_reason("", errno));
    return 0;
}

/* As the command is, and before anything else is executed as it. */
static int tell_probes(const struct run_plan *plan, int line) {
    struct buf report;
    buf_init(&report, REPORT_MAX);
    probe_self(plan, &report);
    int result = buf_ok(&report) ? talk_send_report(line, buf_view(&report)) : ERR_MEMORY;
    buf_free(&report);
    return result;
}

static int give_one(int first, const char *path) {
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    int result =
        fd >= 0 && talk_send_fd(first, fd) == 0 ? 0 : run_say("%s: %s", path, strerror(errno));
    if (fd >= 0)
        close(fd);
    return result;
}

/* The first process holds those that the command begins in, as it may leave them for others. */
static int give_namespaces(int first) {
    return give_one(first, "/proc/self/ns/user") == 0 && give_one(first, "/proc/self/ns/mnt") == 0
               ? 0
               : -1;
}

static _Noreturn void command(const struct run_plan *plan, const struct inner_caller *caller,
                              int line, int first) {
    if (enter_namespaces(caller) != 0 || give_namespaces(first) != 0 || files_enter(plan) != 0 ||
        confine_command() != 0)
        _exit(RUN_FAILED);
    close_range(STDERR_FILENO + 1, ~0U, CLOSE_RANGE_CLOEXEC);
    /* Who does not let it go has said why. */
    if (tell_probes(plan, line) != 0 || talk_receive_go(line) != 0 || refused_hear() != 0)
        _exit(RUN_FAILED);
    umask(caller->mask);
    sigprocmask(SIG_SETMASK, &caller->signals, NULL);
    run_execute(plan->argv);
}

/* Those that the command began in: it may be in others of its own later, which are not what it was given. */
struct entrance {
    int user, mounts;
};

/* -1: the command has said why. */
static int take_entrance(int s, struct entrance *out) {
    out->user = talk_receive_fd(s);
    out->mounts = out->user >= 0 ? talk_receive_fd(s) : -1;
    return out->mounts >= 0 ? 0 : -1;
}

/* Who made a user namespace may enter it, without any other right. */
static int enter(const struct entrance *e) {
    return setns(e->user, CLONE_NEWUSER) == 0 && setns(e->mounts, CLONE_NEWNS) == 0
               ? 0
               : run_say("a probe cannot enter the sandbox: %s", strerror(errno));
}

/* Nothing of the launcher's but the line. */
static void keep_line(int line) {
    if (line > STDERR_FILENO + 1)
        close_range(STDERR_FILENO + 1, (unsigned)line - 1, 0);
    close_range((unsigned)line + 1, ~0U, 0);
}

/* In the namespaces of the command, while that runs, and with as few rights. */
static _Noreturn void prober(const struct run_plan *plan, const struct entrance *e, int line) {
    if (enter(e) != 0 || confine_command() != 0)
        _exit(RUN_FAILED);
    keep_line(line);
    _exit(tell_probes(plan, line) == 0 ? 0 : RUN_FAILED);
}

/* ---- its environment ---- */

static int set_environment(struct view blocks) {
    for (size_t i = 0; host_socket_variables[i]; i++)
        unsetenv(host_socket_variables[i]);
    unsetenv("EXEAT_CONFIG");
    return variables_set(blocks);
}

static int receive_environment(int s) {
    struct buf blocks;
    buf_init(&blocks, TALK_ENVIRONMENT_MAX);
    int result = talk_receive_environment(s, &blocks);
    /* The launcher has said what is wrong, or is gone. */
    if (result == 0)
        result = set_environment(buf_view(&blocks));
    buf_free(&blocks);
    return result;
}

/* ---- the first process ---- */

static int send_listeners(int s) {
    int result = network_up();
    for (size_t i = 0; i < NETWORK_LISTENERS && result == 0; i++) {
        int fd = network_listen(i);
        result = fd < 0 ? -1 : talk_send_fd(s, fd);
        if (fd >= 0)
            close(fd);
    }
    return result;
}

static int make_sandbox(const struct run_plan *plan, const struct inner_caller *caller, int s) {
    if (identity_keep(caller->uid, caller->gid) != 0)
        return run_say("a user namespace: %s", refusal_reason("", errno));
    if (send_listeners(s) != 0 || files_cover(plan) != 0 || receive_environment(s) != 0)
        return -1;
    if (trust_show(plan) != 0)
        return -1;
    hostile_open_hole();
    return 0;
}

struct inside {
    const struct run_plan *plan;
    struct inner_talk talk; /* s is -1 when nobody is left to ask */
    int signals;
    pid_t command, prober; /* the latter 0: nobody probes */
    struct entrance entrance;
};

static void tell_no_report(const struct inside *i) {
    if (talk_send_report(i->talk.line, VIEW("")) != 0)
        run_say("the launcher does not take what the probes found");
}

static void take_ask(struct inside *i) {
    int result = talk_receive_again(i->talk.s);
    if (result == ERR_CLOSED)
        i->talk.s = -1;
    if (result != 0 || i->prober)
        return;
    i->prober = fork();
    if (i->prober == 0)
        prober(i->plan, &i->entrance, i->talk.line);
    if (i->prober < 0) {
        i->prober = 0;
        tell_no_report(i);
    }
}

/* One that was ended by the command, say, tells nothing. */
static void take_end_of_prober(struct inside *i, int status) {
    i->prober = 0;
    if (status != 0)
        tell_no_report(i);
}

/* Ends what ends; true with its status when it is the command. */
static bool reap(struct inside *i, int *status) {
    for (pid_t pid = waitpid(-1, status, WNOHANG); pid > 0; pid = waitpid(-1, status, WNOHANG)) {
        if (pid == i->command)
            return true;
        if (pid == i->prober)
            take_end_of_prober(i, *status);
    }
    return false;
}

static int await(struct inside *i) {
    int status;
    while (!reap(i, &status)) {
        struct pollfd of[] = {{.fd = i->signals, .events = POLLIN},
                              {.fd = i->talk.s, .events = POLLIN}};
        poll(of, 2, -1);
        signals_deliver(i->signals, i->command);
        if (of[1].revents)
            take_ask(i);
    }
    return status;
}

/* The sandbox is nothing without its launcher. Giving up rights takes this back, so it comes after. */
static bool is_bound_to_launcher(int s) {
    char byte;
    return prctl(PR_SET_PDEATHSIG, SIGKILL) == 0 &&
           !(recv(s, &byte, 1, MSG_PEEK | MSG_DONTWAIT) == 0);
}

/* The command's process, as far as its namespaces, or -1 after saying why. */
static int begin_command(struct inside *i, const struct inner_caller *caller) {
    int s[2];
    if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, s) != 0)
        return run_say("a socket pair: %s", strerror(errno));
    i->command = fork();
    if (i->command == 0) {
        close(s[0]);
        command(i->plan, caller, i->talk.line, s[1]);
    }
    close(s[1]);
    int result = i->command > 0 ? take_entrance(s[0], &i->entrance)
                                : run_say("a process for the command: %s", strerror(errno));
    close(s[0]);
    return result;
}

void inner_main(const struct run_plan *plan, const struct inner_caller *caller,
                const struct inner_talk *talk) {
    struct inside i = {.plan = plan, .talk = *talk};
    if (make_sandbox(plan, caller, talk->s) != 0)
        _exit(RUN_FAILED);
    i.signals = signals_open();
    if (i.signals < 0 || begin_command(&i, caller) != 0 || confine_init() != 0 ||
        !is_bound_to_launcher(talk->s))
        _exit(RUN_FAILED);
    _exit(talk_send_status(talk->s, await(&i)) == 0 ? 0 : RUN_FAILED);
}
