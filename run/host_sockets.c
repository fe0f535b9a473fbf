#include "run/host_sockets.h"

#include "base/file.h"

#include <fcntl.h>
#include <stdlib.h>

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

/* Below the home directory, for agents that start later than the sandbox. */
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

static void put_path(struct view path, struct buf *out) {
    if (path.n > 0 && path.p[0] == '/' && view_find(path, 0) == path.n) {
        buf_put(out, path);
        buf_put_u8(out, 0);
    }
}

/* Seven columns without a blank in them, then the path, which may have some. */
void host_sockets_read(struct view text, struct buf *out) {
    view_cut(&text, '\n');
    while (text.n > 0) {
        struct view line = view_cut(&text, '\n');
        for (int column = 0; column < 7; column++) {
            line = view_trim(line);
            view_cut(&line, ' ');
        }
        put_path(view_trim(line), out);
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

static int read_table(struct buf *out) {
    struct buf text;
    buf_init(&text, TABLE_MAX);
    int fd = open("/proc/net/unix", O_RDONLY | O_CLOEXEC);
    int result = fd < 0 ? ERR_SYSTEM : file_read(fd, TABLE_MAX, &text);
    if (result == 0)
        host_sockets_read(buf_view(&text), out);
    buf_free(&text);
    return result;
}

int host_sockets(struct buf *out) {
    const char *home = getenv("HOME");
    int result = read_table(out);
    for (size_t i = 0; host_socket_variables[i]; i++)
        host_sockets_named(view_str(getenv(host_socket_variables[i])), out);
    for (size_t i = 0; home && home[0] == '/' && i < sizeof well_known / sizeof *well_known; i++) {
        buf_printf(out, "%s/%s", home, well_known[i]);
        buf_put_u8(out, 0);
    }
    return result == 0 && !buf_ok(out) ? ERR_LIMIT : result;
}
