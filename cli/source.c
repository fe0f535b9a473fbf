#include "cli/source.h"

#include "cli/command.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <termios.h>
#include <unistd.h>

static const int ending[] = {SIGINT, SIGTERM, SIGHUP, SIGQUIT};

/* The terminal while its echo is off; for the signal handler. */
static struct {
    int fd;
    struct termios before;
    volatile sig_atomic_t quiet;
} terminal;

static void put_back(void) {
    if (!terminal.quiet)
        return;
    tcsetattr(terminal.fd, TCSANOW, &terminal.before);
    terminal.quiet = 0;
}

static void on_signal(int number) {
    put_back();
    _exit(128 + number);
}

static void watch_signals(void) {
    struct sigaction end = {.sa_handler = on_signal}, ignore = {.sa_handler = SIG_IGN};
    for (size_t i = 0; i < sizeof ending / sizeof *ending; i++)
        sigaction(ending[i], &end, NULL);
    /* A stopped command would leave a terminal without echo to the shell. */
    sigaction(SIGTSTP, &ignore, NULL);
}

static bool silence(int fd) {
    struct termios t;
    if (tcgetattr(fd, &terminal.before) != 0)
        return false;
    t = terminal.before;
    t.c_lflag &= ~(tcflag_t)(ECHO | ECHOE | ECHOK | ECHONL);
    t.c_lflag |= ICANON;
    terminal.fd = fd;
    terminal.quiet = 1;
    watch_signals();
    return tcsetattr(fd, TCSAFLUSH, &t) == 0;
}

static int open_terminal(const char *prompt, int *fd) {
    int tty = open("/dev/tty", O_RDONLY | O_NOCTTY | O_CLOEXEC);
    if (tty < 0)
        return cli_fail(EXIT_NO, "the terminal cannot be opened: %s", strerror(errno));
    if (!silence(tty)) {
        put_back();
        close(tty);
        return cli_fail(EXIT_NO, "the terminal's echo cannot be turned off");
    }
    dprintf(STDERR_FILENO, "%s", prompt);
    *fd = tty;
    return EXIT_YES;
}

int source_open(const char *file, const char *prompt, int *fd) {
    bool standard = !file || strcmp(file, "-") == 0;
    if (standard && isatty(STDIN_FILENO))
        return open_terminal(prompt, fd);
    if (standard)
        *fd = fcntl(STDIN_FILENO, F_DUPFD_CLOEXEC, 3);
    else
        *fd = open(file, O_RDONLY | O_CLOEXEC | O_NOCTTY);
    return *fd >= 0 ? EXIT_YES : cli_unread(standard ? "standard input" : file, ERR_SYSTEM);
}

void source_close(int fd) {
    if (terminal.quiet)
        dprintf(STDERR_FILENO, "\n");
    put_back();
    close(fd);
}
