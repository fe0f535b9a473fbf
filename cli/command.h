/*
 * The operator's command: `exeat NOUN VERB [options] [arguments]`. One table of
 * commands (cli/main.c) makes the dispatcher, the help and the completions.
 */
#ifndef CLI_COMMAND_H
#define CLI_COMMAND_H

#include "base/bytes.h"

#include <stdbool.h>
#include <stdio.h>

/* Exit codes, the same for every command. */
enum exit_code {
    EXIT_YES = 0, /* success, allowed */
    EXIT_NO = 1,  /* a negative answer: denied, a finding, verification failed */
    EXIT_USAGE = 2,
    EXIT_INVALID = 3,     /* invalid policy or configuration */
    EXIT_UNREACHABLE = 4, /* the daemon */
    EXIT_PERMISSION = 5,
    EXIT_UNSEEN = 6, /* no answer: a file that was named or asked about could not be read */
};

#define CLI_CONFIG "/etc/exeat/exeat.conf" /* unless another was named */

/* Options that every command takes, but that --json is refused by those which have none. */
struct cli {
    bool json;
    const char *config; /* --config FILE; NULL: $EXEAT_CONFIG, else CLI_CONFIG */
};

struct command {
    const char *noun, *verb; /* verb NULL: the noun alone */
    const char *arguments;   /* "NAME [--like PREFIX] [--file FILE]" */
    const char *summary;     /* one line */
    /* argv[0] is the first argument behind noun and verb; returns an exit_code. */
    int (*run)(const struct cli *cli, int argc, char **argv);
};

/* Prints "exeat: ..." to standard error; returns code, so that a command can end with it. */
int cli_fail(int code, const char *format, ...) __attribute__((format(printf, 2, 3)));
/*
 * The same for a file, or what is read like one, that could not be: the error's text behind its name, and EXIT_PERMISSION or
 * EXIT_UNSEEN. result: ERR_SYSTEM (errno says why), ERR_LIMIT, or what else the reading came to.
 */
int cli_unread(const char *path, int result);
/* The same of a word that is no reason's code. */
int cli_fail_reason(int code, const char *word);
/* Prints what is in the buffer, which may be empty. */
void cli_print(FILE *to, const struct buf *b);

/* The table's commands one by one, those of a noun together; NULL behind the last. */
const struct command *cli_command(size_t i);

/* The commands, one file a noun. */
int command_ca_init(const struct cli *cli, int argc, char **argv);
int command_ca_show(const struct cli *cli, int argc, char **argv);
int command_ca_export(const struct cli *cli, int argc, char **argv);
int command_ca_rotate(const struct cli *cli, int argc, char **argv);
int command_secret_add(const struct cli *cli, int argc, char **argv);
int command_secret_list(const struct cli *cli, int argc, char **argv);
int command_secret_rotate(const struct cli *cli, int argc, char **argv);
int command_secret_remove(const struct cli *cli, int argc, char **argv);
int command_vault_init(const struct cli *cli, int argc, char **argv);
int command_vault_backup(const struct cli *cli, int argc, char **argv);
int command_vault_restore(const struct cli *cli, int argc, char **argv);
int command_vault_rekey(const struct cli *cli, int argc, char **argv);
int command_run(const struct cli *cli, int argc, char **argv);
int command_doctor(const struct cli *cli, int argc, char **argv);
int command_sandbox_add(const struct cli *cli, int argc, char **argv);
int command_sandbox_list(const struct cli *cli, int argc, char **argv);
int command_sandbox_probe(const struct cli *cli, int argc, char **argv);
int command_sandbox_remove(const struct cli *cli, int argc, char **argv);
int command_policy_check(const struct cli *cli, int argc, char **argv);
int command_policy_registries(const struct cli *cli, int argc, char **argv);
int command_policy_import(const struct cli *cli, int argc, char **argv);
int command_policy_explain(const struct cli *cli, int argc, char **argv);
int command_policy_fmt(const struct cli *cli, int argc, char **argv);
int command_policy_lint(const struct cli *cli, int argc, char **argv);
int command_policy_test(const struct cli *cli, int argc, char **argv);
int command_policy_diff(const struct cli *cli, int argc, char **argv);
int command_policy_replay(const struct cli *cli, int argc, char **argv);
int command_policy_suggest(const struct cli *cli, int argc, char **argv);
int command_log(const struct cli *cli, int argc, char **argv);
int command_log_head(const struct cli *cli, int argc, char **argv);
int command_log_verify(const struct cli *cli, int argc, char **argv);
int command_status(const struct cli *cli, int argc, char **argv);
int command_reload(const struct cli *cli, int argc, char **argv);
int command_stop(const struct cli *cli, int argc, char **argv);
int command_nft_print(const struct cli *cli, int argc, char **argv);
int command_nft_check(const struct cli *cli, int argc, char **argv);
int command_limits(const struct cli *cli, int argc, char **argv);
int command_completion(const struct cli *cli, int argc, char **argv);
int command_reasons(const struct cli *cli, int argc, char **argv);
int command_version(const struct cli *cli, int argc, char **argv);

#endif
