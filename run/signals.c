#include "run/signals.h"

#include "run/say.h"

#include <errno.h>
#include <stdbool.h>
#include <string.h>
#include <sys/signalfd.h>
#include <unistd.h>

void signals_hold(sigset_t *before) {
    sigset_t all;
    sigfillset(&all);
    sigprocmask(SIG_BLOCK, &all, before);
    /* Who ignores it has its children reaped by the kernel, and never learns how they ended. */
    signal(SIGCHLD, SIG_DFL);
}

int signals_open(void) {
    sigset_t all;
    sigfillset(&all);
    int fd = signalfd(-1, &all, SFD_CLOEXEC | SFD_NONBLOCK);
    return fd >= 0 ? fd : run_say("signals cannot be taken: %s", strerror(errno));
}

static bool next_signal(int signals, struct signalfd_siginfo *info) {
    return read(signals, info, sizeof *info) == (ssize_t)sizeof *info;
}

/* By kill(2) and the like; what the terminal sends went to the command's process group as well. */
static bool is_from_process(const struct signalfd_siginfo *info) {
    return info->ssi_code == SI_USER || info->ssi_code == SI_QUEUE || info->ssi_code == SI_TKILL;
}

static bool is_stop(int number) {
    return number == SIGTSTP || number == SIGTTIN || number == SIGTTOU;
}

/* As the kernel would have it, who lets a process group stop only when somebody can continue it. */
static void stop_too(int number) {
    sigset_t one;
    sigemptyset(&one);
    sigaddset(&one, number);
    kill(getpid(), number);
    sigprocmask(SIG_UNBLOCK, &one, NULL);
    sigprocmask(SIG_BLOCK, &one, NULL);
}

/* Whether it ends a process that neither handles nor ignores it. */
static bool is_ending(int number) {
    struct sigaction now;
    return number != SIGCHLD && number != SIGCONT && number != SIGURG && number != SIGWINCH &&
           !is_stop(number) && !(sigaction(number, NULL, &now) == 0 && now.sa_handler == SIG_IGN);
}

int signals_ending(int signals) {
    struct signalfd_siginfo info;
    while (next_signal(signals, &info)) {
        int number = (int)info.ssi_signo;
        if (is_ending(number))
            return number;
        if (is_stop(number))
            stop_too(number);
    }
    return 0;
}

/* Queued, so that the first process knows it from one that came to it otherwise. */
static void pass_on(pid_t init, int number) {
    sigqueue(init, number, (union sigval){.sival_int = 0});
}

void signals_relay(int signals, pid_t init) {
    struct signalfd_siginfo info;
    while (next_signal(signals, &info)) {
        int number = (int)info.ssi_signo;
        if (number == SIGCHLD)
            continue;
        if (is_from_process(&info) || number == SIGCONT)
            pass_on(init, number);
        if (is_stop(number))
            stop_too(number);
    }
}

void signals_deliver(int signals, pid_t command) {
    struct signalfd_siginfo info;
    while (next_signal(signals, &info))
        /* Whoever is outside of the namespace has no number in it. */
        if (info.ssi_signo != SIGCHLD && info.ssi_code == SI_QUEUE && info.ssi_pid == 0)
            kill(command, (int)info.ssi_signo);
}
