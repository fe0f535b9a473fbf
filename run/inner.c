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
#include "run/say.h"
#include "run/signals.h"
#include "run/talk.h"
#include "run/trust.h"
#include "run/variables.h"

#include <errno.h>
#include <linux/close_range.h>
#include <sched.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

/* ---- the command ---- */

/* What the kernel lets nobody uncover is what came into a mount namespace from one of more rights. */
static int enter_namespaces(const struct inner_caller *caller) {
    if (unshare(CLONE_NEWUSER | CLONE_NEWNS) != 0 || identity_keep(caller->uid, caller->gid) != 0)
        return run_say("a user namespace for the command: %s", refusal_reason("", errno));
    return 0;
}

static _Noreturn void command(const struct run_plan *plan, const struct inner_caller *caller) {
    if (enter_namespaces(caller) != 0 || files_enter(plan) != 0 || confine_command() != 0)
        _exit(RUN_FAILED);
    close_range(STDERR_FILENO + 1, ~0U, CLOSE_RANGE_CLOEXEC);
    if (probe_self(plan) != 0 || refused_hear() != 0)
        _exit(RUN_FAILED);
    sigprocmask(SIG_SETMASK, &caller->signals, NULL);
    run_execute(plan->argv);
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

/* Ends what ends, until it is the command: its status. */
static int await(pid_t of) {
    int status;
    for (;;) {
        signals_deliver(of);
        for (pid_t pid = waitpid(-1, &status, WNOHANG); pid > 0;
             pid = waitpid(-1, &status, WNOHANG))
            if (pid == of)
                return status;
    }
}

/* The sandbox is nothing without its launcher. Giving up rights takes this back, so it comes after. */
static bool is_bound_to_launcher(int s) {
    char byte;
    return prctl(PR_SET_PDEATHSIG, SIGKILL) == 0 &&
           !(recv(s, &byte, 1, MSG_PEEK | MSG_DONTWAIT) == 0);
}

void inner_main(const struct run_plan *plan, const struct inner_caller *caller, int s) {
    if (make_sandbox(plan, caller, s) != 0)
        _exit(RUN_FAILED);
    pid_t pid = fork();
    if (pid == 0)
        command(plan, caller);
    if (pid < 0 || confine_init() != 0 || !is_bound_to_launcher(s))
        _exit(RUN_FAILED);
    _exit(talk_send_status(s, await(pid)) == 0 ? 0 : RUN_FAILED);
}
