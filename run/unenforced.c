#include "run/unenforced.h"

#include "run/say.h"
#include "run/signals.h"
#include "run/variables.h"

#include <arpa/inet.h>
#include <errno.h>
#include <linux/close_range.h>
#include <netinet/in.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

enum { BACKLOG = 1024 };

static int listen_on_loopback(uint16_t *port) {
    struct sockaddr_in at = {.sin_family = AF_INET, .sin_addr = {htonl(INADDR_LOOPBACK)}};
    socklen_t size = sizeof at;
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    if (fd < 0)
        return -1;
    if (bind(fd, (struct sockaddr *)&at, sizeof at) == 0 && listen(fd, BACKLOG) == 0 &&
        getsockname(fd, (struct sockaddr *)&at, &size) == 0) {
        *port = ntohs(at.sin_port);
        return fd;
    }
    close(fd);
    return -1;
}

int unenforced_begin(struct launch *l, uint16_t *port) {
    l->listeners[0] = listen_on_loopback(port);
    if (l->listeners[0] < 0)
        return run_say("a port on loopback: %s", strerror(errno));
    l->n_listeners = 1;
    return 0;
}

static _Noreturn void command(const struct launch *l, char **argv, struct view environment) {
    unsetenv("EXEAT_CONFIG");
    if (variables_set(environment) != 0)
        _exit(RUN_FAILED);
    close_range(STDERR_FILENO + 1, ~0U, 0);
    umask(l->mask);
    sigprocmask(SIG_SETMASK, &l->before, NULL);
    run_execute(argv);
}

int unenforced_go(struct launch *l, char **argv, struct view environment) {
    l->init = fork();
    if (l->init == 0)
        command(l, argv, environment);
    return l->init > 0 ? 0 : run_say("a process for the command: %s", strerror(errno));
}

int unenforced_wait(struct launch *l) {
    return launch_await(l);
}
