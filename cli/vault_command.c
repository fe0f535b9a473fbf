#include "cli/client.h"
#include "cli/json_scan.h"
#include "cli/options.h"
#include "cli/vault_key.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static const struct option_spec none[] = {{NULL, NULL, NULL}};

/* ---- init ---- */

int command_vault_init(const struct cli *cli, int argc, char **argv) {
    char text[VAULT_KEY_TEXT_SIZE + 1];
    struct config config;
    int code = options_read(argc, argv, none, NULL, 0);
    if (code == EXIT_YES)
        code = client_config(cli, &config);
    if (code != EXIT_YES)
        return code;
    if (mkdir(config.state, 0755) != 0 && errno != EEXIST) {
        code = cli_fail(errno == EACCES ? EXIT_PERMISSION : EXIT_NO, "%s: %s", config.state,
                        strerror(errno));
    } else {
        vault_key_make(text);
        code = vault_key_write(config.vault_key, text, config.state);
        explicit_bzero(text, sizeof text);
    }
    if (code == EXIT_YES)
        printf("%s: made; keep a copy of it in another place than copies of the vault\n",
               config.vault_key);
    config_free(&config);
    return code;
}

/* ---- backup and restore ---- */

static int ask_with(const struct cli *cli, uint16_t type, int fd, const char *done) {
    struct buf text;
    buf_init(&text, BROKER_TEXT_MAX);
    int code = client_ask(cli, type, VIEW(""), fd, &text, NULL);
    if (code == EXIT_YES && cli->json)
        printf("%.*s\n", VIEW_ARG(buf_view(&text)));
    else if (code == EXIT_YES)
        printf("%s\n", done);
    buf_free(&text);
    return code;
}

int command_vault_backup(const struct cli *cli, int argc, char **argv) {
    const char *file;
    int code = options_read(argc, argv, none, &file, 1);
    if (code != EXIT_YES)
        return code;
    int fd = open(file, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
    if (fd < 0)
        return cli_fail(errno == EACCES || errno == EPERM ? EXIT_PERMISSION : EXIT_NO, "%s: %s",
                        file, strerror(errno));
    code = ask_with(cli, CONTROL_VAULT_BACKUP, fd, "written; of use only with vault.key");
    if (close(fd) != 0 && code == EXIT_YES)
        code = cli_fail(EXIT_NO, "%s: %s", file, strerror(errno));
    if (code != EXIT_YES)
        unlink(file);
    return code;
}

/* Names that count again, which nobody may expect. */
static void print_back(struct view json, const char *member, const char *what) {
    struct view value, rest, name;
    struct buf names;
    buf_init(&names, BROKER_TEXT_MAX);
    if (json_member(json, member, &value))
        for (rest = json_elements(value); json_element(&rest, &name);) {
            buf_put_u8(&names, ' ');
            json_text(name, &names);
        }
    if (buf_len(&names) > 0)
        printf("%s:%.*s\n", what, VIEW_ARG(buf_view(&names)));
    buf_free(&names);
}

int command_vault_restore(const struct cli *cli, int argc, char **argv) {
    const char *file;
    struct buf text;
    int code = options_read(argc, argv, none, &file, 1);
    if (code != EXIT_YES)
        return code;
    int fd = open(file, O_RDONLY | O_CLOEXEC);
    if (fd < 0)
        return cli_unread(file, ERR_SYSTEM);
    buf_init(&text, BROKER_TEXT_MAX);
    code = client_ask(cli, CONTROL_VAULT_RESTORE, VIEW(""), fd, &text, NULL);
    close(fd);
    if (code == EXIT_YES && cli->json) {
        printf("%.*s\n", VIEW_ARG(buf_view(&text)));
    } else if (code == EXIT_YES) {
        puts("restored");
        print_back(buf_view(&text), "sandboxes_back",
                   "sandboxes whose token and placeholders of then count again");
        print_back(buf_view(&text), "secrets_back", "secrets that have their value of then again");
    }
    buf_free(&text);
    return code;
}

/* ---- rekey ---- */

/* The key before stays under another name: copies of the vault from before need it. */
static bool keep_old(const char *key) {
    char old[PATH_MAX];
    int n = snprintf(old, sizeof old, "%s.old", key);
    if (n < 0 || n >= PATH_MAX)
        return false;
    unlink(old);
    return link(key, old) == 0;
}

/*
 * The new key is on the disk beside the old one before broker is asked, and
 * takes its place afterwards: a cut at any moment leaves both, and the vault's
 * own message says which one it wants.
 */
static int rekey(const struct config *c, const char *fresh) {
    struct buf text;
    bool told;
    int fd = open(fresh, O_RDONLY | O_CLOEXEC | O_NOFOLLOW);
    if (fd < 0)
        return cli_unread(fresh, ERR_SYSTEM);
    buf_init(&text, BROKER_TEXT_MAX);
    int code = client_ask_at(c->control, CONTROL_VAULT_REKEY, VIEW(""), fd, &text, &told);
    close(fd);
    buf_free(&text);
    if (code != EXIT_YES && told)
        unlink(fresh);
    else if (code != EXIT_YES)
        cli_fail(code,
                 "whether the vault was rekeyed is not known: `exeat status` tells whether it "
                 "wants %s in the place of %s",
                 fresh, c->vault_key);
    else if (!keep_old(c->vault_key) || rename(fresh, c->vault_key) != 0 ||
             !vault_key_sync(c->vault_key))
        code = cli_fail(EXIT_NO,
                        "the vault has the new key, but %s could not be moved to %s, which would "
                        "have become %s.old: %s",
                        fresh, c->vault_key, c->vault_key, strerror(errno));
    return code;
}

static int place_key(const struct config *c, const char *given, char fresh[PATH_MAX]) {
    char text[VAULT_KEY_TEXT_SIZE + 1];
    int n = snprintf(fresh, PATH_MAX, "%s.new", c->vault_key), code = EXIT_YES;
    if (n < 0 || n >= PATH_MAX)
        return cli_fail(EXIT_NO, "%s: the path is too long", c->vault_key);
    if (access(c->vault_key, F_OK) != 0 && errno == ENOENT)
        return cli_fail(EXIT_NO, "%s: there is no key; `exeat vault init` makes one", c->vault_key);
    if (access(fresh, F_OK) == 0)
        return cli_fail(EXIT_NO,
                        "%s: an interrupted rekey left this key. When `exeat status` says that the "
                        "vault wants another key, move it to %s and restart the daemon; "
                        "otherwise remove it, and try again",
                        fresh, c->vault_key);
    if (given)
        code = vault_key_read(given, text);
    else
        vault_key_make(text);
    if (code == EXIT_YES)
        code = vault_key_write(fresh, text, c->vault_key);
    explicit_bzero(text, sizeof text);
    return code;
}

int command_vault_rekey(const struct cli *cli, int argc, char **argv) {
    char fresh[PATH_MAX];
    const char *given = NULL;
    struct config config;
    /* Without a file a key is made. */
    int code = options_read(argc, argv, none, &given, argc > 0 ? 1 : 0);
    if (code == EXIT_YES)
        code = client_config(cli, &config);
    if (code != EXIT_YES)
        return code;
    code = place_key(&config, given, fresh);
    if (code == EXIT_YES)
        code = rekey(&config, fresh);
    if (code == EXIT_YES)
        printf("rekeyed; earlier copies of the vault need the earlier key, which is %s.old now\n",
               config.vault_key);
    config_free(&config);
    return code;
}
