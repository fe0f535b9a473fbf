/*
 * exeat: the operator's command. One table makes the dispatcher and the help.
 */
#include "cli/command.h"
#include "cli/environment_format.h"
#include "cli/help.h"
#include "policy/errors.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static const struct command commands[] = {
    {"ca", "init", "", "make the CA that intercepted connections are signed with", command_ca_init},
    {"ca", "show", "", "its name, fingerprint and validity", command_ca_show},
    {"ca", "export", "[--bundle]", "print the certificate, or a bundle with the system's",
     command_ca_export},
    {"ca", "rotate", "[--finish]", "a new CA; the old one stays valid until --finish",
     command_ca_rotate},
    {"vault", "init", "", "make the vault's key-encryption key", command_vault_init},
    {"vault", "backup", "FILE", "write an encrypted copy of the vault", command_vault_backup},
    {"vault", "restore", "FILE", "put a copy in the vault's place", command_vault_restore},
    {"vault", "rekey", "[KEYFILE]", "wrap all secrets by a new key-encryption key, made or given",
     command_vault_rekey},
    {"secret", "add",
     "NAME [--like PREFIX] [--client-certificate FILE] [--file FILE] [--allow-short]",
     "put a secret in the vault (from a prompt, standard input or a file)", command_secret_add},
    {"secret", "list", "", "names and versions, never values", command_secret_list},
    {"secret", "rotate", "NAME [--client-certificate FILE] [--file FILE] [--allow-short]",
     "replace a secret's value", command_secret_rotate},
    {"secret", "remove", "NAME", "remove a secret and end its placeholders", command_secret_remove},
    {"run", NULL, "[--sandbox NAME | --policy FILE] [OPTION]... -- COMMAND...",
     "a command in a sandbox whose only way out is exeat", command_run},
    {"doctor", NULL, "[ADDRESS[:PORT]]...",
     "from inside of a sandbox: which clients work, and what gets out", command_doctor},
    {"env", NULL, "NAME [--format " ENVIRONMENT_FORMATS "]",
     "the same as `sandbox add`: issues anew, which ends what the sandbox holds until then",
     command_sandbox_add},
    {"sandbox", "add", "NAME [--format " ENVIRONMENT_FORMATS "]",
     "issue token and placeholders anew, which ends those before; print the sandbox's environment",
     command_sandbox_add},
    {"sandbox", "list", "",
     "sandboxes, and the credentials that were issued or only granted to them",
     command_sandbox_list},
    {"sandbox", "probe", "NAME",
     "try again what gets out of a running sandbox of `exeat run`; end it if something does",
     command_sandbox_probe},
    {"sandbox", "remove", "NAME", "end a sandbox's token and placeholders", command_sandbox_remove},
    {"policy", "check", "FILE", "load a policy with all its expectations", command_policy_check},
    {"policy", "explain",
     "--policy FILE [--sandbox S] [--with ours|none|foreign] [--header 'N: V']... [--type TYPE] "
     "[--body FILE] METHOD URL",
     "the verdict on a request, and the clause that decides it", command_policy_explain},
    {"policy", "registries", "[--root DIR]",
     "print a policy for the package registries of this machine's clients",
     command_policy_registries},
    {"policy", "import", "openapi [--service NAME] [--url URL] FILE",
     "print a policy for an API's description", command_policy_import},
    {"policy", "fmt", "[--check] [--write] [--to text|json] FILE",
     "print a policy in its canonical layout", command_policy_fmt},
    {"policy", "lint", "FILE", "what is dead, too wide or untried in a policy",
     command_policy_lint},
    {"policy", "test", "--policy FILE TESTS", "try expectations that stand in a file of their own",
     command_policy_test},
    {"policy", "diff", "OLD NEW", "which requests two policies judge differently",
     command_policy_diff},
    {"policy", "replay", "FILE LOG ...",
     "which recorded requests another policy judges differently", command_policy_replay},
    {"policy", "suggest", "[--policy FILE] LOG ...",
     "the smallest policy, or addition to one, that would allow what was refused",
     command_policy_suggest},
    {"log", "verify", "[--head FILE] [--dir DIR | --file FILE [--key FILE]]",
     "find a changed, missing or cut record", command_log_verify},
    {"log", "head", "[--dir DIR]", "sign where the trail stands, and print that head to be kept",
     command_log_head},
    {"log", NULL,
     "[--sandbox S] [--host H] [--denied] [--reason R] [--credential C] [--since T] [--id] [--all] "
     "[--record ID] "
     "[--follow] [--dir DIR | [--file F] FILE ...]",
     "the audit trail as a table", command_log},
    {"status", NULL, "", "processes, lanes and generation", command_status},
    {"reload", NULL, "[--yes]", "read configuration and policy anew", command_reload},
    {"stop", NULL, "", "stop the daemon in order", command_stop},
    {"nft", "print", "[--routes]",
     "rules for nftables that lead sandboxes behind interfaces to exeat", command_nft_print},
    {"nft", "check", "[--file FILE]", "whether these rules are loaded", command_nft_check},
    {"limits", NULL, "", "every limit, its default and what happens at it", command_limits},
    {"reasons", NULL, "[CODE]", "every reason of a refusal, what it means and what to do",
     command_reasons},
    {"completion", NULL, "SHELL", "print what bash, zsh or fish reads to complete these words",
     command_completion},
    {"version", NULL, "[--deps]", "version, and those of the linked libraries", command_version},
};

enum { N_COMMANDS = sizeof commands / sizeof *commands };

const struct command *cli_command(size_t i) {
    return i < N_COMMANDS ? &commands[i] : NULL;
}

static bool is_noun(const char *word);

/* noun NULL: it is one itself. */
static int fail_unknown(const char *noun, const char *word) {
    struct guess g = guess_of(view_str(word));
    for (size_t i = 0; i < N_COMMANDS; i++)
        if (!noun)
            guess_offer(&g, view_str(commands[i].noun));
        else if (strcmp(noun, commands[i].noun) == 0 && commands[i].verb)
            guess_offer(&g, view_str(commands[i].verb));
    if (!noun && word[0] == '-')
        return cli_fail(EXIT_USAGE, "there is no option %s here; `exeat help` lists what there is",
                        word);
    return cli_fail(EXIT_USAGE, "there is no command '%s%s%s'%s `exeat help%s%s` lists them",
                    noun ? noun : "", noun ? " " : "", word, *guess_text(&g) ? guess_text(&g) : ";",
                    noun ? " " : "", noun ? noun : "");
}

static void put_exits(FILE *to, const char *noun) {
    if (noun && strcmp(noun, "run") == 0)
        fputs("\nexit status: the command's; 125 it was not run, 126 it cannot be executed, 127 it "
              "is not found\n",
              to);
    else
        fputs("\nexit status: 0 yes, 1 no, 2 usage, 3 invalid policy or configuration,\n"
              "    4 daemon not reachable, 5 permission, 6 could not be looked at\n",
              to);
}

/* All, or those of one noun. */
static int help(FILE *to, const char *noun) {
    if (noun && !is_noun(noun))
        return fail_unknown(NULL, noun);
    fputs("usage: exeat [--config FILE] [--json] COMMAND\n\n", to);
    for (size_t i = 0; i < N_COMMANDS; i++) {
        const struct command *c = &commands[i];
        if (noun && strcmp(noun, c->noun) != 0)
            continue;
        int n = fprintf(to, "  %s%s%s %s", c->noun, c->verb ? " " : "", c->verb ? c->verb : "",
                        c->arguments);
        fprintf(to, n < 44 ? "%*s%s\n" : "\n%*s%s\n", n < 44 ? 44 - n : 44, "", c->summary);
    }
    fputs("\nexeat COMMAND --help tells of the options of one.\n", to);
    put_exits(to, noun);
    return to == stdout ? EXIT_YES : EXIT_USAGE;
}

static void put_usage(FILE *to, const struct command *c) {
    fprintf(to, "usage: exeat %s%s%s%s%s\n", c->noun, c->verb ? " " : "", c->verb ? c->verb : "",
            *c->arguments ? " " : "", c->arguments);
}

static int help_command(const struct command *c) {
    put_usage(stdout, c);
    printf("\n%s\n", c->summary);
    help_options(stdout, c->noun, c->verb);
    put_exits(stdout, c->noun);
    return EXIT_YES;
}

/* The command that the words name, and how many words that took; a lone noun comes last in the table. */
static const struct command *find(int argc, char **argv, int *used) {
    for (size_t i = 0; i < N_COMMANDS; i++) {
        const struct command *c = &commands[i];
        if (strcmp(argv[0], c->noun) != 0)
            continue;
        if (c->verb && (argc < 2 || strcmp(argv[1], c->verb) != 0))
            continue;
        *used = c->verb ? 2 : 1;
        return c;
    }
    return NULL;
}

static bool is_noun(const char *word) {
    for (size_t i = 0; i < N_COMMANDS; i++)
        if (strcmp(word, commands[i].noun) == 0)
            return true;
    return false;
}

/* Options of every command may stand anywhere before a "--"; takes them out of argv. -1: one lacks its value. */
static int take_common(struct cli *cli, int argc, char **argv) {
    int n = 0;
    bool ended = false;
    for (int i = 0; i < argc; i++) {
        ended = ended || strcmp(argv[i], "--") == 0;
        if (!ended && strcmp(argv[i], "--json") == 0)
            cli->json = true;
        else if (!ended && strcmp(argv[i], "--config") == 0 && i + 1 < argc)
            cli->config = argv[++i];
        else if (!ended && strncmp(argv[i], "--config=", 9) == 0)
            cli->config = argv[i] + 9;
        else if (!ended && strcmp(argv[i], "--config") == 0)
            return -1;
        else
            argv[n++] = argv[i];
    }
    argv[n] = NULL;
    return n;
}

/* As the last word, unless it belongs to what stands behind a "--". */
static bool asks_for_help(int argc, char **argv) {
    for (int i = 0; i < argc; i++)
        if (strcmp(argv[i], "--") == 0)
            return false;
    return argc > 1 && strcmp(argv[argc - 1], "--help") == 0;
}

/* Whose output is a text of another kind. */
static bool is_plain(const struct command *c) {
    static int (*const plain[])(const struct cli *cli, int argc, char **argv) = {
        command_ca_export,         command_vault_init,    command_vault_rekey,
        command_policy_registries, command_policy_import, command_policy_fmt,
        command_policy_suggest,    command_completion};
    for (size_t i = 0; i < sizeof plain / sizeof *plain; i++)
        if (c->run == plain[i])
            return true;
    return false;
}

/* What is wrong with its arguments it says itself. What `run` ends with is another command's. */
static int run_command(const struct command *c, const struct cli *cli, int argc, char **argv) {
    int code = cli->json && is_plain(c)
                   ? cli_fail(EXIT_USAGE, "what this command prints is no JSON: do without --json")
                   : c->run(cli, argc, argv);
    if (code == EXIT_USAGE && c->run != command_run)
        put_usage(stderr, c);
    return code;
}

/* Words behind `help`: a command, or the noun of several. */
static int help_about(int argc, char **argv) {
    int used;
    const struct command *c = find(argc, argv, &used);
    bool several = c && !c->verb && c > commands && strcmp(c[-1].noun, c->noun) == 0;
    return c && !(several && argc == 1) ? help_command(c) : help(stdout, argv[0]);
}

static int run(const struct cli *cli, int argc, char **argv) {
    int used;
    if (argc == 0)
        return help(stderr, NULL);
    if (strcmp(argv[0], "help") == 0 || strcmp(argv[0], "--help") == 0 ||
        strcmp(argv[0], "-h") == 0)
        return argc > 1 ? help_about(argc - 1, argv + 1) : help(stdout, NULL);
    if (strcmp(argv[0], "--version") == 0)
        argv[0] = "version";
    const struct command *c = find(argc, argv, &used);
    if (asks_for_help(argc, argv))
        return c ? help_command(c) : help(stdout, argv[0]);
    if (c)
        return run_command(c, cli, argc - used, argv + used);
    if (is_noun(argv[0]) && argc == 1)
        return help(stderr, argv[0]);
    if (is_noun(argv[0]))
        return fail_unknown(argv[0], argv[1]);
    return fail_unknown(NULL, argv[0]);
}

int main(int argc, char **argv) {
    struct cli cli = {.config = getenv("EXEAT_CONFIG")};
    if (!cli.config)
        cli.config = CLI_CONFIG;
    argc = take_common(&cli, argc - 1, argv + 1);
    if (argc < 0)
        return cli_fail(EXIT_USAGE, "--config needs a value");
    int code = run(&cli, argc, argv + 1);
    /* A full disk or a closed pipe must not look like success. */
    if (fflush(stdout) != 0)
        code = cli_fail(code == EXIT_YES ? EXIT_NO : code,
                        "what is printed could not be written: %s", strerror(errno));
    else if (ferror(stdout))
        code = cli_fail(code == EXIT_YES ? EXIT_NO : code,
                        "what is printed could not be written whole");
    return code;
}
