#include "run/signals.h"

#include <stdbool.h>
#include <stddef.h>
#include <unistd.h>

void signals_hold(sigset_t *before) {
    sigset_t all;
    sigfillset(&all);
    sigprocmask(SIG_BLOCK, &all, before);
    /* Who ignores it has its children reaped by the kernel, and never learns how they ended. */
    signal(SIGCHLD, SIG_DFL);
}

static int next_signal(siginfo_t *info) {
    sigset_t all;
    int number;
    sigfillset(&all);
    do
        number = sigwaitinfo(&all, info);
    while (number < 0);
    return number;
}

/* By kill(2) and the like; what the terminal sends went to the command's process group as well. */
static bool is_from_process(const siginfo_t *info) {
    return info->si_code == SI_USER || info->si_code == SI_QUEUE || info->si_code == SI_TKILL;
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

/* Queued, so that the first process knows it from one that came to it otherwise. */
static void pass_on(pid_t init, int number) {
    sigqueue(init, number, (union sigval){.sival_int = 0});
}

void signals_relay(pid_t init) {
    siginfo_t info;
    for (;;) {
        int number = next_signal(&info);
        if (number == SIGCHLD)
            return;
        if (is_from_process(&info) || number == SIGCONT)
            pass_on(init, number);
        if (is_stop(number))
            stop_too(number);
    }
}

void signals_deliver(pid_t command) {
    siginfo_t info;
    for (;;) {
        int number = next_signal(&info);
        if (number == SIGCHLD)
            return;
        /* Whoever is outside of the namespace has no number in it. */
        if (info.si_code == SI_QUEUE && info.si_pid == 0)
            kill(command, number);
    }
}
