#include "base/file.h"
#include "cli/doctor.h"
#include "run/probe_network.h"

#include <arpa/inet.h>
#include <fcntl.h>
#include <unistd.h>

enum { TABLE_MAX = 4 << 20, LISTENING = 0x0a };

/* One column of the table, without the blanks around it. */
static struct view column(struct view *line) {
    *line = view_trim(*line);
    return view_cut(line, ' ');
}

/* "0100007F:0C38" of IPv4: four bytes in the machine's order; on all addresses: loopback is one of them. */
static bool read_listener(struct view line, struct endpoint *out) {
    uint32_t address, port, state;
    char text[INET_ADDRSTRLEN];
    column(&line);
    struct view where = column(&line), digits = view_cut(&where, ':');
    column(&line);
    if (hex_number(column(&line), &state) != 0 || state != LISTENING ||
        hex_number(where, &port) != 0)
        return false;
    if (digits.n != 8)
        return endpoint_of("::1", (uint16_t)port, out);
    if (hex_number(digits, &address) != 0)
        return false;
    struct in_addr in = {address ? address : htonl(INADDR_LOOPBACK)};
    return inet_ntop(AF_INET, &in, text, sizeof text) && endpoint_of(text, (uint16_t)port, out);
}

static bool try_listener(const struct probe *p, const struct ways *w, const struct endpoint *e) {
    char sandbox[sizeof w->sandbox];
    int fd = endpoint_connect(e, p->wait_ms);
    if (fd < 0 || !ways_ask(fd, "", p->wait_ms, sandbox, sizeof sandbox) ||
        strcmp(sandbox, w->sandbox) == 0)
        return false;
    probe_tell(p, "listener", e->text, PROBE_ESCAPED,
               "give each sandbox a network of its own, with its own listener in it",
               "it is the listener of the sandbox %s", sandbox);
    return true;
}

static size_t try_table(const struct probe *p, const struct ways *w, const char *path) {
    struct buf text;
    struct endpoint e;
    size_t found = 0;
    buf_init(&text, TABLE_MAX);
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    if (fd >= 0 && file_read(fd, TABLE_MAX, &text) == 0)
        for (struct view rest = buf_view(&text); rest.n > 0;)
            if (read_listener(view_cut(&rest, '\n'), &e))
                found += try_listener(p, w, &e);
    buf_free(&text);
    return found;
}

void listeners_try(const struct probe *p, const struct ways *w) {
    if (try_table(p, w, "/proc/net/tcp") + try_table(p, w, "/proc/net/tcp6") == 0)
        probe_tell(p, "listener", "other sandboxes'", PROBE_CONTAINED, NULL,
                   "none of exeat's in this network is another's");
}
