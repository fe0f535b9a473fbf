/* `exeat status`, `exeat reload`, `exeat stop`. */
#include "cli/client.h"
#include "cli/grants.h"
#include "cli/json_scan.h"
#include "cli/list.h"
#include "cli/options.h"

#include <limits.h>
#include <poll.h>
#include <stdio.h>
#include <sys/pidfd.h>
#include <unistd.h>

enum { STOP_WAIT_SECONDS = 30 }; /* exeatd kills what has not stopped after 15 */

static const struct option_spec no_options[] = {{NULL, NULL, NULL}};

static const struct list_column process_columns[] = {
    {"ROLE", "role", LIST_TEXT},
    {"LANE", "lane", LIST_TEXT},
    {"STATE", "state", LIST_TEXT},
    {"PID", "pid", LIST_TEXT},
    {"RESTARTS", "restarts", LIST_TEXT},
    {"GENERATION", "generation", LIST_TEXT},
    {NULL, NULL, LIST_TEXT},
};

static const struct list_column lane_columns[] = {
    {"LANE", "lane", LIST_TEXT},
    {"SHARED", "shared", LIST_YES_NO},
    {"UNENFORCED", "unenforced", LIST_YES_NO},
    {"SANDBOXES", "sandboxes", LIST_TEXT},
    {"LISTENERS", "listeners", LIST_WORDS},
    {NULL, NULL, LIST_TEXT},
};

static void print_member(struct view status, const char *member, const char *title) {
    struct view value;
    struct buf text;
    buf_init(&text, 8192);
    if (json_member(status, member, &value)) {
        json_text(value, &text);
        struct view told = buf_view(&text);
        printf("%-12s %.*s%s", title, VIEW_ARG(told), view_ends(told, VIEW("\n")) ? "" : "\n");
    }
    buf_free(&text);
}

/* Which words of the configuration wait for a restart, between these two. */
static void print_restart(struct view status, const char *before, const char *after) {
    struct view value;
    struct buf text;
    buf_init(&text, 1024);
    if (json_member(status, "restart", &value)) {
        json_text(value, &text);
        printf("%s%.*s%s\n", before, VIEW_ARG(buf_view(&text)), after);
    }
    buf_free(&text);
}

static void print_table(struct view status, const char *member, const struct list_column *columns) {
    struct view value;
    struct buf text;
    buf_init(&text, 1 << 20);
    if (json_member(status, member, &value)) {
        list_write(value, columns, &text);
        printf("\n%.*s", VIEW_ARG(buf_view(&text)));
    }
    buf_free(&text);
}

static void print_grants(struct view status, void (*write)(struct view grants, struct buf *out)) {
    struct buf grants, text;
    buf_init(&grants, 1 << 20);
    buf_init(&text, 1 << 20);
    grants_gather(status, VIEW(""), &grants);
    write(buf_view(&grants), &text);
    cli_print(stdout, &text);
    buf_free(&grants);
    buf_free(&text);
}

static void write_grants(struct view grants, struct buf *out) {
    buf_put_u8(out, '\n');
    grants_write(grants, out);
    if (buf_len(out) == 1)
        buf_reset(out);
}

/* Calls put, if any, for each process that cannot do its work; how many there are. */
static size_t each_trouble(struct view status, void (*put)(struct view process, struct view why)) {
    struct view processes, rest, process, why;
    size_t n = 0;
    if (!json_member(status, "processes", &processes))
        return 0;
    for (rest = json_elements(processes); json_element(&rest, &process);) {
        if (!json_member(process, "trouble", &why))
            continue;
        n++;
        if (put)
            put(process, why);
    }
    return n;
}

static void print_trouble(struct view process, struct view why) {
    struct view value;
    struct buf text;
    buf_init(&text, 8192);
    if (json_member(process, "role", &value))
        list_put_text(value, &text);
    if (json_member(process, "lane", &value))
        buf_printf(&text, " %.*s", VIEW_ARG(value));
    buf_put_str(&text, ": ");
    list_put_text(why, &text);
    printf("%-12s %.*s\n", "TROUBLE", VIEW_ARG(buf_view(&text)));
    buf_free(&text);
}

/* A policy that was refused leaves the running one in use, but is a "no", and so is what does not work. */
static int judge(struct view status) {
    struct view value;
    bool refused = json_member(status, "policy_error", &value);
    return refused || each_trouble(status, NULL) > 0 ? EXIT_NO : EXIT_YES;
}

int command_status(const struct cli *cli, int argc, char **argv) {
    struct buf text;
    int code = options_read(argc, argv, no_options, NULL, 0);
    if (code != EXIT_YES)
        return code;
    buf_init(&text, CHANNEL_BODY_MAX);
    code = client_ask(cli, CONTROL_STATUS, (struct view){NULL, 0}, -1, &text, NULL);
    struct view status = buf_view(&text);
    if (code == EXIT_YES && cli->json) {
        printf("%.*s\n", VIEW_ARG(status));
    } else if (code == EXIT_YES) {
        print_member(status, "version", "version");
        print_member(status, "generation", "generation");
        print_member(status, "uptime_seconds", "up seconds");
        print_member(status, "config", "config");
        print_member(status, "policy", "policy");
        print_member(status, "policy_error", "REFUSED");
        print_restart(status, "RESTART      ",
                      ": the configuration says otherwise now, which takes a restart of exeatd");
        each_trouble(status, print_trouble);
        print_grants(status, grants_shout);
        print_table(status, "lanes", lane_columns);
        print_table(status, "processes", process_columns);
        print_grants(status, write_grants);
    }
    if (code == EXIT_YES)
        code = judge(status);
    buf_free(&text);
    return code;
}

static void tell_reloaded(struct view answer) {
    puts("the new configuration and policy are in use");
    print_restart(answer, "but for ", ": that takes a restart of exeatd");
}

int command_reload(const struct cli *cli, int argc, char **argv) {
    struct buf text;
    bool yes = false;
    const struct option_spec options[] = {{"--yes", NULL, &yes}, {NULL, NULL, NULL}};
    int code = options_read(argc, argv, options, NULL, 0);
    if (code != EXIT_YES)
        return code;
    buf_init(&text, CHANNEL_BODY_MAX);
    code = client_ask(cli, CONTROL_RELOAD, yes ? VIEW("yes") : VIEW(""), -1, &text, NULL);
    if (code == EXIT_YES && cli->json)
        printf("%.*s\n", VIEW_ARG(buf_view(&text)));
    else if (code == EXIT_YES)
        tell_reloaded(buf_view(&text));
    buf_free(&text);
    return code;
}

/* Its listeners and files are free only when the parent is gone. */
static int await_end(struct view answer) {
    struct view value = {NULL, 0};
    uint64_t pid;
    if (!json_member(answer, "pid", &value) || view_number(value, INT_MAX, &pid) != 0)
        return cli_fail(EXIT_NO, "the daemon's answer is malformed");
    struct pollfd ended = {.fd = pidfd_open((pid_t)pid, 0), .events = POLLIN};
    if (ended.fd < 0)
        return EXIT_YES; /* gone already */
    int n = poll(&ended, 1, STOP_WAIT_SECONDS * 1000);
    close(ended.fd);
    if (n == 1)
        return EXIT_YES;
    return cli_fail(EXIT_NO, "exeatd (process %llu) has not ended after %d s",
                    (unsigned long long)pid, STOP_WAIT_SECONDS);
}

int command_stop(const struct cli *cli, int argc, char **argv) {
    struct buf text;
    int code = options_read(argc, argv, no_options, NULL, 0);
    if (code != EXIT_YES)
        return code;
    buf_init(&text, CHANNEL_BODY_MAX);
    code = client_ask(cli, CONTROL_STOP, (struct view){NULL, 0}, -1, &text, NULL);
    if (code == EXIT_YES)
        code = await_end(buf_view(&text));
    if (code == EXIT_YES && cli->json)
        printf("%.*s\n", VIEW_ARG(buf_view(&text)));
    else if (code == EXIT_YES)
        puts("stopped");
    buf_free(&text);
    return code;
}
