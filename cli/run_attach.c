#include "cli/run_attach.h"

#include "base/attach.h"
#include "cli/client.h"
#include "cli/run_links.h"
#include "run/report.h"
#include "run/say.h"

#include <errno.h>
#include <poll.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

enum { SLOW_MS = 5000 };

/* Hidden, or kept as it is: neither does another thing get its name. */
static void put_path(struct run_options *o, const char *path, struct buf *out) {
    if (!path)
        return;
    run_links_put(path, &o->links);
    buf_put(out, view_of(path, strlen(path) + 1));
}

/* Nobody there is no error: the sandbox gets an exeatd of its own then. */
static int connect_to(const struct cli *cli, const char *path, struct run_attach *out) {
    out->connection = path ? attach_connect(path) : -1;
    if (out->connection >= 0)
        return 0;
    if (path && errno != ENOENT && errno != ECONNREFUSED)
        return run_say("exeatd at %s: %s", path, strerror(errno));
    if (path)
        snprintf(out->why, RUN_WHY_SIZE, ", and no exeatd listens at %s", path);
    else
        snprintf(out->why, RUN_WHY_SIZE, ", and %s has no `attach`", cli->config);
    return 0;
}

int run_attach_find(const struct cli *cli, bool wanted_private, struct run_options *o,
                    struct run_attach *out) {
    struct config config;
    *out = (struct run_attach){.connection = -1};
    if (access(cli->config, R_OK) != 0)
        return wanted_private || strcmp(cli->config, CLI_CONFIG) == 0
                   ? 0
                   : run_say("the configuration %s: %s", cli->config, strerror(errno));
    put_path(o, cli->config, &o->kept);
    int code = wanted_private ? client_place(cli, &config) : client_config(cli, &config);
    if (code != EXIT_YES)
        return wanted_private ? 0 : -1;
    put_path(o, config.state, &o->hidden);
    put_path(o, config.control, &o->hidden);
    put_path(o, config.vault_key, &o->hidden);
    put_path(o, config.attach.path, &o->hidden);
    /* What is written into it, or into the configuration, holds from the next start or reload on. */
    put_path(o, config.policy, &o->kept);
    snprintf(out->state, sizeof out->state, "%s", config.state);
    int result = wanted_private ? 0 : connect_to(cli, config.attach.path, out);
    config_free(&config);
    return result;
}

int run_attach_ask(int connection, const char *sandbox, const struct launch *l) {
    struct attach_request request = {.sandbox = view_str(sandbox), .n = l->n_listeners};
    for (size_t i = 0; i < l->n_listeners; i++) {
        request.kinds[i] = network_kind(i);
        request.fds[i] = l->listeners[i];
    }
    int result = attach_send_request(connection, &request);
    return result == 0 ? 0 : run_say("exeatd cannot be asked for a lane: %s", err_why(result));
}

/* Who waits is told so: exeatd answers in the end, whatever comes of it. -1: a signal has ended the launcher. */
static int await_answer(int connection, struct launch *l) {
    struct pollfd one = {.fd = connection, .events = POLLIN};
    int found = launch_poll(l, &one, 1, SLOW_MS);
    if (found == 0) {
        run_say("waiting for exeatd, which is busy or attaches many sandboxes at once");
        found = launch_poll(l, &one, 1, -1);
    }
    return found > 0 ? 0 : -1;
}

static int receive(int connection, struct launch *l, struct buf *packet,
                   struct attach_answer *answer) {
    if (await_answer(connection, l) != 0)
        return -1;
    int result = attach_receive_answer(connection, packet, answer);
    if (result != 0)
        return run_say("exeatd gives no lane: %s", err_why(result));
    return answer->err == 0 ? 0 : run_say("exeatd: %.*s", VIEW_ARG(answer->text));
}

int run_attach_receive(int connection, struct launch *l, struct run_public *public,
                       struct buf *issued) {
    struct attach_answer answer;
    struct buf packet;
    buf_init_cleared(&packet, ATTACH_ANSWER_MAX);
    int result = receive(connection, l, &packet, &answer);
    if (result == 0)
        result = run_public_write(public, answer.ca);
    if (result == 0)
        buf_put(issued, answer.text);
    buf_free(&packet);
    return result;
}

/* False after saying what is not contained, or that nothing was found out. */
static bool is_tight(struct view report) {
    struct report_row row;
    if (report_is_tight(report))
        return true;
    if (report.n == 0)
        run_say("the sandbox could not be probed, so the command is not run");
    while (report_next(&report, &row))
        if (row.verdict != PROBE_CONTAINED)
            run_say("the sandbox is not tight, so the command is not run: %.*s %.*s: %.*s",
                    VIEW_ARG(row.probe), VIEW_ARG(row.what), VIEW_ARG(row.why));
    return false;
}

/* exeatd is told in any case, since it keeps the record of it. */
int run_attach_report(int connection, struct launch *l, struct view report) {
    struct attach_answer answer;
    struct buf packet;
    buf_init(&packet, ATTACH_ANSWER_MAX);
    bool tight = is_tight(report), ended = false;
    int result = attach_send_report(connection, report);
    if (result == 0)
        ended = await_answer(connection, l) != 0;
    if (result == 0 && !ended)
        result = attach_receive_answer(connection, &packet, &answer);
    if (!tight || ended)
        result = -1;
    else if (result != 0)
        result = run_say("exeatd cannot be told what the probes found: %s", err_why(result));
    else if (answer.err != 0)
        result = run_say("exeatd: %.*s", VIEW_ARG(answer.text));
    buf_free(&packet);
    return result;
}
