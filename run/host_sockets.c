#include "run/host_sockets.h"

#include "base/file.h"

#include <dirent.h>
#include <fcntl.h>
#include <limits.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

enum { TABLE_MAX = 16 << 20 };

const char *const host_socket_variables[] = {
    "SSH_AUTH_SOCK",
    "SSH_AGENT_PID",
    "GPG_AGENT_INFO",
    "DOCKER_HOST",
    "CONTAINER_HOST",
    "CONTAINERD_ADDRESS",
    "BUILDKIT_HOST",
    "DBUS_SESSION_BUS_ADDRESS",
    "DBUS_SYSTEM_BUS_ADDRESS",
    "DISPLAY",
    "WAYLAND_DISPLAY",
    "WAYLAND_SOCKET",
    "XAUTHORITY",
    "SESSION_MANAGER",
    "ICEAUTHORITY",
    "PULSE_SERVER",
    "PIPEWIRE_REMOTE",
    "TMUX",
    "STY",
    "SWAYSOCK",
    "I3SOCK",
    "KITTY_LISTEN_ON",
    "VSCODE_IPC_HOOK",
    "VSCODE_IPC_HOOK_CLI",
    "VSCODE_GIT_IPC_HANDLE",
    "NOTIFY_SOCKET",
    "LISTEN_PID",
    "LISTEN_FDS",
    "LISTEN_FDNAMES",
    "GNOME_KEYRING_CONTROL",
    NULL,
};

/* Below the home directory: of agents, wherever they were bound. */
static const char *const well_known[] = {
    ".gnupg/S.gpg-agent",
    ".gnupg/S.gpg-agent.ssh",
    ".gnupg/S.gpg-agent.extra",
    ".gnupg/S.gpg-agent.browser",
    ".gnupg/S.scdaemon",
    ".gnupg/S.dirmngr",
    ".gnupg/S.keyboxd",
    ".1password/agent.sock",
    ".docker/run/docker.sock",
    ".docker/desktop/docker.sock",
    ".colima/default/docker.sock",
    ".rd/docker.sock",
};

static void put_text(struct view text, struct buf *out) {
    buf_put(out, text);
    buf_put_u8(out, 0);
}

static void put_path(struct view path, struct buf *out) {
    if (path.n > 0 && path.p[0] == '/' && view_find(path, 0) == path.n)
        put_text(path, out);
}

/* Seven columns without a blank in them, then the path, which may have some. */
void host_sockets_read(struct view text, struct buf *out, struct buf *relative) {
    view_cut(&text, '\n');
    while (text.n > 0) {
        struct view line = view_cut(&text, '\n');
        for (int column = 0; column < 7; column++) {
            line = view_trim(line);
            view_cut(&line, ' ');
        }
        line = view_trim(line);
        if (line.n > 0 && line.p[0] != '/' && line.p[0] != '@')
            put_text(line, relative);
        put_path(line, out);
    }
}

void host_sockets_named(struct view value, struct buf *out) {
    static const char *const schemes[] = {"unix:path=", "unix://", "unix:", "kitty+unix:"};
    while (value.n > 0) {
        struct view rest = view_cut(&value, ';'), path = view_cut(&rest, ',');
        for (size_t i = 0; i < sizeof schemes / sizeof *schemes; i++)
            if (view_starts(path, view_str(schemes[i]))) {
                path = view_skip(path, strlen(schemes[i]));
                break;
            }
        put_path(path, out);
    }
}

static int read_table(struct buf *out, struct buf *relative) {
    struct buf text;
    buf_init(&text, TABLE_MAX);
    int fd = open("/proc/net/unix", O_RDONLY | O_CLOEXEC);
    int result = fd < 0 ? ERR_SYSTEM : file_read(fd, TABLE_MAX, &text);
    if (result == 0)
        host_sockets_read(buf_view(&text), out, relative);
    buf_free(&text);
    return result;
}

/* ---- sockets that are not where the table says ---- */

/* A folder's path is without its last slash: that of "/" is empty. */
static void put_if_socket(const char *folder, struct view name, struct buf *out) {
    char path[PATH_MAX];
    struct stat st;
    int n = snprintf(path, sizeof path, "%s/%.*s", folder, VIEW_ARG(name));
    if (n < PATH_MAX && lstat(path, &st) == 0 && S_ISSOCK(st.st_mode))
        put_path(view_str(path), out);
}

/* The table does not say which folder such a name is in: it is tried in those that processes are in. */
static void put_relative(struct view relative, struct buf *out) {
    char link[64], folder[PATH_MAX];
    DIR *processes = relative.n > 0 ? opendir("/proc") : NULL;
    for (struct dirent *e = processes ? readdir(processes) : NULL; e; e = readdir(processes)) {
        struct view rest = relative;
        int n = snprintf(link, sizeof link, "/proc/%s/cwd", e->d_name);
        ssize_t length = n < (int)sizeof link ? readlink(link, folder, sizeof folder - 1) : -1;
        folder[length > 1 ? length : 0] = 0;
        while (length > 0 && rest.n > 0)
            put_if_socket(folder, view_cut(&rest, 0), out);
    }
    if (processes)
        closedir(processes);
}

static void put_folder(const char *folder, struct buf *out) {
    DIR *names = opendir(*folder ? folder : "/");
    for (struct dirent *e = names ? readdir(names) : NULL; e; e = readdir(names))
        if (e->d_type == DT_SOCK || e->d_type == DT_UNKNOWN)
            put_if_socket(folder, view_str(e->d_name), out);
    if (names)
        closedir(names);
}

static bool has_text(struct view texts, struct view text) {
    while (texts.n > 0)
        if (view_equal(view_cut(&texts, 0), text))
            return true;
    return false;
}

/* A server may bind another name, and then rename it or link it (as ssh's master connections do). */
static void put_neighbours(size_t begin, struct buf *out) {
    struct buf folders;
    buf_init(&folders, TABLE_MAX);
    struct view rest = view_skip(buf_view(out), begin);
    while (rest.n > 0) {
        struct view path = view_cut(&rest, 0), folder = view_of(path.p, path.n);
        while (folder.p[--folder.n] != '/')
            continue;
        if (!has_text(buf_view(&folders), folder))
            put_text(folder, &folders);
    }
    rest = buf_view(&folders);
    while (rest.n > 0)
        put_folder((const char *)view_cut(&rest, 0).p, out);
    buf_free(&folders);
}

int host_sockets(struct buf *bound, struct buf *named) {
    const char *home = getenv("HOME");
    struct buf relative;
    size_t begin = buf_len(bound);
    buf_init(&relative, TABLE_MAX);
    int result = read_table(bound, &relative);
    put_relative(buf_view(&relative), bound);
    put_neighbours(begin, bound);
    buf_free(&relative);
    for (size_t i = 0; host_socket_variables[i]; i++)
        host_sockets_named(view_str(getenv(host_socket_variables[i])), named);
    for (size_t i = 0; home && home[0] == '/' && i < sizeof well_known / sizeof *well_known; i++) {
        buf_printf(named, "%s/%s", home, well_known[i]);
        buf_put_u8(named, 0);
    }
    return result == 0 && !(buf_ok(bound) && buf_ok(named)) ? ERR_LIMIT : result;
}
