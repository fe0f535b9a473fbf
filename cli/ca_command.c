#include "cli/ca_store.h"
#include "cli/client.h"
#include "cli/json_scan.h"
#include "cli/options.h"
#include "cli/public.h"

#include "base/json.h"
#include "base/loop.h"
#include "ca/mint.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

/* 2026-01-01: a clock before that is not set, and a CA made by it would not be valid when it is. */
#define CLOCK_LEAST UINT64_C(1767225600)

static uint64_t now_seconds(void) {
    return clock_wall() / UINT64_C(1000000000);
}

/* The sentence and the exit code for what went wrong with the store. */
static int fail(const char *state, int result) {
    int number = errno;
    if (result == ERR_SYSTEM)
        return cli_fail(number == EACCES || number == EPERM ? EXIT_PERMISSION : EXIT_NO, "%s: %s",
                        state, strerror(number));
    if (result == ERR_AGAIN)
        return cli_fail(EXIT_NO, "%s: another command works on the CA", state);
    if (result == ERR_MISSING)
        return cli_fail(EXIT_NO, "%s: there is no CA; `exeat ca init` makes one", state);
    if (result == ERR_DENIED)
        return cli_fail(EXIT_NO, "%s/ca: the key does not belong to the certificate", state);
    return cli_fail(EXIT_NO, "%s: the CA's files: %s", state, err_text(result));
}

static int open_store(const struct cli *cli, bool make, struct config *config,
                      struct ca_store *store) {
    int code = client_config(cli, config);
    if (code != EXIT_YES)
        return code;
    mint_lock_memory();
    int result = ca_store_open(config->state, make, store);
    if (result == 0)
        return EXIT_YES;
    code = fail(config->state, result == ERR_SYSTEM && errno == ENOENT ? ERR_MISSING : result);
    ca_store_close(store);
    config_free(config);
    return code;
}

/* ---- what a certificate says ---- */

static void put_time(uint64_t seconds, char out[32]) {
    time_t t = (time_t)seconds;
    struct tm tm;
    gmtime_r(&t, &tm);
    strftime(out, 32, "%Y-%m-%dT%H:%M:%SZ", &tm);
}

static void print_facts(const char *title, const struct mint_facts *f) {
    char from[32], to[32];
    put_time(f->validity.not_before, from);
    put_time(f->validity.not_after, to);
    printf("%-9s %s\n  sha256  ", title, f->subject);
    for (size_t i = 0; i < sizeof f->fingerprint; i++)
        printf("%s%02X", i ? ":" : "", f->fingerprint[i]);
    printf("\n  valid   %s to %s\n", from, to);
}

static void put_facts(struct buf *out, const struct mint_facts *f) {
    char hex[2 * DIGEST_SIZE + 1], text[32];
    hex_encode(view_of(f->fingerprint, sizeof f->fingerprint), hex);
    json_put_text(out, "subject", view_str(f->subject));
    json_put_text(out, "sha256", view_str(hex));
    put_time(f->validity.not_before, text);
    json_put_text(out, "not_before", view_str(text));
    put_time(f->validity.not_after, text);
    json_put_text(out, "not_after", view_str(text));
}

/* public/ca.pem holds the certificate in use and, while a rotation overlaps, the one before. */
static int describe_both(const char *state, struct mint_facts facts[2], size_t *n) {
    struct buf pem;
    buf_init(&pem, 2 * CA_FILE_MAX);
    int result = ca_store_certificates(state, &pem);
    *n = 0;
    if (result == 0)
        result = mint_describe(buf_view(&pem), &facts[(*n)++]);
    struct view rest = buf_view(&pem), end = VIEW("-----END CERTIFICATE-----");
    rest = view_skip(rest, view_search(rest, end) + end.n);
    if (result == 0 && view_search(rest, end) != rest.n)
        result = mint_describe(rest, &facts[(*n)++]);
    buf_free(&pem);
    return result;
}

static void show_json(const struct mint_facts facts[2], size_t n) {
    struct buf out;
    buf_init(&out, 4096);
    buf_put_u8(&out, '{');
    put_facts(&out, &facts[0]);
    buf_put_str(&out, ",\"previous\":");
    buf_put_str(&out, n > 1 ? "{" : "null");
    if (n > 1) {
        put_facts(&out, &facts[1]);
        buf_put_u8(&out, '}');
    }
    buf_put_str(&out, "}\n");
    cli_print(stdout, &out);
    buf_free(&out);
}

static int show(const struct cli *cli, const char *state) {
    struct mint_facts facts[2];
    size_t n;
    int result = describe_both(state, facts, &n);
    if (result != 0)
        return fail(state, result);
    if (cli->json) {
        show_json(facts, n);
    } else {
        print_facts("CA", &facts[0]);
        if (n > 1)
            print_facts("previous", &facts[1]);
    }
    return EXIT_YES;
}

/* ---- commands ---- */

int command_ca_init(const struct cli *cli, int argc, char **argv) {
    static const struct option_spec specs[] = {{NULL, NULL, NULL}};
    struct config config;
    struct ca_store store;
    int code = options_read(argc, argv, specs, NULL, 0);
    if (code != EXIT_YES)
        return code;
    if (now_seconds() < CLOCK_LEAST)
        return cli_fail(EXIT_NO, "the clock is not set: a CA made now would not be valid");
    code = open_store(cli, true, &config, &store);
    if (code != EXIT_YES)
        return code;
    int result = ca_store_init(&store, now_seconds());
    if (result == ERR_EXISTS)
        code = cli_fail(EXIT_NO,
                        "%s/ca: there is a CA, or a part of one, and it stays; `exeat ca "
                        "rotate` makes a new one",
                        config.state);
    else
        code = result == 0 ? show(cli, config.state) : fail(config.state, result);
    ca_store_close(&store);
    config_free(&config);
    return code;
}

int command_ca_show(const struct cli *cli, int argc, char **argv) {
    static const struct option_spec specs[] = {{NULL, NULL, NULL}};
    struct config config;
    int code = options_read(argc, argv, specs, NULL, 0);
    if (code == EXIT_YES)
        code = client_config(cli, &config);
    if (code != EXIT_YES)
        return code;
    code = show(cli, config.state);
    config_free(&config);
    return code;
}

int command_ca_export(const struct cli *cli, int argc, char **argv) {
    bool bundle = false;
    const struct option_spec specs[] = {{"--bundle", NULL, &bundle}, {NULL, NULL, NULL}};
    struct config config;
    struct buf out;
    int code = options_read(argc, argv, specs, NULL, 0);
    if (code == EXIT_YES)
        code = client_config(cli, &config);
    if (code != EXIT_YES)
        return code;
    buf_init(&out, PUBLIC_BUNDLE_MAX);
    /* The roots as they are now, not as they were when public/bundle.pem was written. */
    int result = bundle ? public_system_roots(&out) : 0;
    if (result == 0)
        result = ca_store_certificates(config.state, &out);
    if (result != 0)
        code = fail(config.state, result);
    else
        cli_print(stdout, &out);
    buf_free(&out);
    config_free(&config);
    return code;
}

static int rotated(const struct cli *cli, const struct config *c) {
    int code = show(cli, c->state);
    fputs(client_daemon_runs(c->control)
              ? "The daemon signs with the old CA until `exeat reload` (or a restart).\n"
              : "The daemon signs with the new CA once it is started.\n",
          stderr);
    fputs(
        "Give sandboxes the new certificates (`exeat ca export`), and when the last one that knows "
        "only the old CA is gone, run `exeat ca rotate --finish`.\n",
        stderr);
    return code;
}

/* The fingerprint of the CA that the running daemon signs with. False: it does not tell. */
static bool read_in_use(struct view status, struct view *sha256) {
    struct view processes, rest, process, value, role;
    if (!json_member(status, "processes", &processes))
        return false;
    for (rest = json_elements(processes); json_element(&rest, &process);)
        if (json_member(process, "role", &value) && json_word(value, &role) &&
            view_equal(role, VIEW("ca")))
            return json_member(process, "sha256", &value) && json_word(value, sha256);
    return false;
}

/* Who trusts only the new CA is cut off by a daemon that signs with the old one. */
static int check_in_use(const struct config *c) {
    struct mint_facts facts[2];
    struct view sha256;
    char hex[2 * DIGEST_SIZE + 1];
    struct buf text;
    size_t n;
    int result = describe_both(c->state, facts, &n);
    if (result != 0)
        return fail(c->state, result);
    if (!client_daemon_runs(c->control))
        return EXIT_YES;
    hex_encode(view_of(facts[0].fingerprint, DIGEST_SIZE), hex);
    buf_init(&text, CHANNEL_BODY_MAX);
    int code = client_ask_at(c->control, CONTROL_STATUS, (struct view){NULL, 0}, -1, &text, NULL);
    if (code == EXIT_YES && !read_in_use(buf_view(&text), &sha256))
        code = cli_fail(EXIT_NO, "the daemon's ca does not run: which CA it signs with is not "
                                 "known, and the old one stays; see `exeat status`");
    else if (code == EXIT_YES && !view_equal(sha256, view_str(hex)))
        code = cli_fail(EXIT_NO, "the daemon still signs with the old CA, which stays: run `exeat "
                                 "reload` first");
    buf_free(&text);
    return code;
}

static int finished(const struct cli *cli, const char *state) {
    int code = show(cli, state);
    fputs("The old CA is no longer given to sandboxes.\n", stderr);
    return code;
}

static int finish_rotation(const struct cli *cli, const struct config *c, struct ca_store *store) {
    int code = ca_store_has(store, "previous.pem") ? check_in_use(c) : EXIT_YES;
    if (code != EXIT_YES)
        return code;
    int result = ca_store_finish(store);
    if (result == ERR_MISSING)
        return cli_fail(EXIT_NO, "no rotation overlaps");
    return result == 0 ? finished(cli, c->state) : fail(c->state, result);
}

static int begin_rotation(const struct cli *cli, const struct config *c, struct ca_store *store) {
    int result = ca_store_rotate(store, now_seconds());
    if (result == ERR_EXISTS)
        return cli_fail(EXIT_NO, "a rotation overlaps already; `exeat ca rotate --finish` ends it");
    return result == 0 ? rotated(cli, c) : fail(c->state, result);
}

int command_ca_rotate(const struct cli *cli, int argc, char **argv) {
    bool finish = false;
    const struct option_spec specs[] = {{"--finish", NULL, &finish}, {NULL, NULL, NULL}};
    struct config config;
    struct ca_store store;
    int code = options_read(argc, argv, specs, NULL, 0);
    if (code == EXIT_YES)
        code = open_store(cli, false, &config, &store);
    if (code != EXIT_YES)
        return code;
    code = finish ? finish_rotation(cli, &config, &store) : begin_rotation(cli, &config, &store);
    ca_store_close(&store);
    config_free(&config);
    return code;
}
