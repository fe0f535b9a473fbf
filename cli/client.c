#include "cli/client.h"

#include "base/file.h"
#include "base/peer.h"
#include "policy/errors.h"

#include <assert.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

enum { CONFIG_MAX = 1 << 20, HEADER_FD = 1, OUR_ID = 1 };

/* ---- the configuration ---- */

static int read_all(const char *path, struct buf *out) {
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    int result = fd < 0 ? ERR_SYSTEM : file_read(fd, CONFIG_MAX, out);
    if (result == 0)
        return EXIT_YES;
    if (fd < 0 && errno == ENOENT)
        return cli_fail(EXIT_UNSEEN, "%s: %s (--config FILE or EXEAT_CONFIG names another)", path,
                        err_why(result));
    return cli_unread(path, result);
}

typedef int config_reader(struct view text, const char *file, struct config *out,
                          struct policy_errors *errors);

static int parse(config_reader *reader, const char *path, struct view text, struct config *out) {
    struct policy_errors *errors = calloc(1, sizeof *errors);
    if (!errors)
        return cli_fail(EXIT_INVALID, "no memory");
    int result = reader(text, path, out, errors);
    struct buf shown;
    buf_init(&shown, CONFIG_MAX);
    for (size_t i = 0; i < errors->n; i++)
        errors_show(&errors->at[i], text, &shown);
    fprintf(stderr, "%.*s", VIEW_ARG(buf_view(&shown)));
    if (result == 0 && errors->n > 0)
        cli_fail(EXIT_YES, "note: %s has errors; its `state` and `control` are used all the same",
                 path);
    buf_free(&shown);
    free(errors);
    return result == 0 ? EXIT_YES : cli_fail(EXIT_INVALID, "%s cannot be used", path);
}

static int read_config(config_reader *reader, const struct cli *cli, struct config *out) {
    struct buf text;
    *out = (struct config){.n_lanes = 0};
    buf_init(&text, CONFIG_MAX + 8192);
    int code = read_all(cli->config, &text);
    if (code == EXIT_YES)
        code = parse(reader, cli->config, buf_view(&text), out);
    assert(code != EXIT_YES || out->control);
    buf_free(&text);
    return code;
}

int client_config(const struct cli *cli, struct config *out) {
    return read_config(config_read, cli, out);
}

int client_place(const struct cli *cli, struct config *out) {
    return read_config(config_read_place, cli, out);
}

/* ---- the socket ---- */

bool client_daemon_runs(const char *path) {
    int fd = peer_connect(path, SOCK_STREAM);
    if (fd < 0)
        return errno != ENOENT && errno != ECONNREFUSED;
    close(fd);
    return true;
}

static int connect_to(const char *path, int *out) {
    *out = peer_connect(path, SOCK_STREAM);
    if (*out >= 0)
        return EXIT_YES;
    if (errno == ENAMETOOLONG)
        return cli_fail(EXIT_INVALID, "%s: the path is too long for a socket", path);
    if (errno == EACCES || errno == EPERM)
        return cli_fail(EXIT_PERMISSION,
                        "%s: %s; besides root those may use it whom `control { uid N }` in the "
                        "configuration names (you are uid %u)",
                        path, strerror(errno), geteuid());
    return cli_fail(EXIT_UNREACHABLE, "the daemon is not reachable at %s: %s", path,
                    strerror(errno));
}

/* The descriptor goes with the first byte. */
static int send_ask(int s, uint16_t type, struct view body, int fd) {
    struct buf b;
    buf_init(&b, CHANNEL_HEADER_SIZE + CONTROL_VALUE_MAX);
    buf_put_u32(&b, (uint32_t)body.n);
    buf_put_u16(&b, type);
    buf_put_u16(&b, fd >= 0 ? HEADER_FD : 0);
    buf_put_u32(&b, OUR_ID);
    buf_put_u32(&b, 0);
    buf_put(&b, body);
    int result = buf_ok(&b) ? 0 : ERR_LIMIT;
    while (result == 0 && buf_len(&b) > 0) {
        ssize_t n = peer_send(s, buf_view(&b), &fd, fd >= 0, 0);
        if (n < 0 && errno == EINTR)
            continue;
        if (n <= 0)
            result = ERR_SYSTEM;
        else
            buf_consume(&b, (size_t)n);
        fd = -1;
    }
    buf_free(&b);
    return result;
}

/* Reads one whole frame; only CONTROL_DONE is expected. */
static int read_answer(int s, struct buf *in) {
    for (;;) {
        struct reader r = reader_of(buf_view(in));
        uint32_t length = read_u32(&r);
        uint16_t type = read_u16(&r);
        read_bytes(&r, CHANNEL_HEADER_SIZE - 6);
        if (!r.bad && (type != CONTROL_DONE || length > CHANNEL_BODY_MAX))
            return ERR_BAD;
        read_bytes(&r, length);
        if (!r.bad)
            return 0;
        uint8_t *p = buf_reserve(in, 65536);
        ssize_t n = p ? read(s, p, 65536) : 0;
        if (n < 0 && errno == EINTR)
            continue;
        if (n <= 0)
            return n < 0 ? ERR_SYSTEM : ERR_CLOSED;
        buf_commit(in, (size_t)n);
    }
}

static int exit_code_of(uint16_t asked, int err, uint32_t id) {
    if (err == 0)
        return EXIT_YES;
    if (id == 0 && err == ERR_DENIED)
        return EXIT_PERMISSION;
    if (asked == CONTROL_RELOAD && err == ERR_BAD)
        return EXIT_INVALID;
    return err == ERR_CLOSED ? EXIT_UNREACHABLE : EXIT_NO;
}

/* What the frame says: the JSON into text, or the sentence to the operator. */
static int take_answer(uint16_t asked, struct view frame, struct buf *text) {
    struct reader r = reader_of(view_skip(frame, 8));
    uint32_t id = read_u32(&r);
    read_u32(&r);
    int err = -(int)read_u8(&r);
    struct view said = read_block(&r, CHANNEL_BODY_MAX);
    if (r.bad)
        return cli_fail(EXIT_UNREACHABLE, "the daemon's answer is malformed");
    while (said.n > 0 && said.p[said.n - 1] == '\n')
        said.n--;
    int code = exit_code_of(asked, err, id);
    if (code != EXIT_YES)
        return cli_fail(code, "%.*s", VIEW_ARG(said));
    buf_put(text, said);
    return buf_ok(text) ? EXIT_YES : cli_fail(EXIT_NO, "the daemon's answer is too long");
}

int client_ask_at(const char *path, uint16_t type, struct view body, int fd, struct buf *text,
                  bool *told) {
    struct buf in;
    int s = -1;
    int code = connect_to(path, &s);
    if (told)
        *told = code != EXIT_YES;
    if (code != EXIT_YES)
        return code;
    buf_init(&in, CHANNEL_BODY_MAX + 131072);
    /* Who is turned away may find its request refused, and has an answer to read all the same. */
    int sent = send_ask(s, type, body, fd);
    int result = read_answer(s, &in);
    close(s);
    if (result == 0)
        code = take_answer(type, buf_view(&in), text);
    else
        code = cli_fail(EXIT_UNREACHABLE, "the daemon closed the connection: %s",
                        err_text(sent != 0 ? sent : result));
    if (told)
        *told = result == 0;
    buf_free(&in);
    return code;
}

int client_ask(const struct cli *cli, uint16_t type, struct view body, int fd, struct buf *text,
               bool *told) {
    struct config config;
    bool in_trouble = type == CONTROL_STATUS || type == CONTROL_STOP || type == CONTROL_HEAD;
    int code = in_trouble ? client_place(cli, &config) : client_config(cli, &config);
    if (told)
        *told = code != EXIT_YES;
    if (code != EXIT_YES)
        return code;
    code = client_ask_at(config.control, type, body, fd, text, told);
    config_free(&config);
    return code;
}
