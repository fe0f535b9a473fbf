#include "base/file.h"
#include "base/secret.h"
#include "cli/json_scan.h"
#include "cli/list.h"
#include "cli/options.h"
#include "cli/source.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

struct secret_options {
    const char *name, *like, *file, *certificate;
    bool allow_short;
};

static int read_options(int argc, char **argv, bool with_like, struct secret_options *o) {
    const struct option_spec specs[] = {
        {"--file", &o->file, NULL},
        {"--allow-short", NULL, &o->allow_short},
        {"--client-certificate", &o->certificate, NULL},
        {with_like ? "--like" : NULL, &o->like, NULL},
        {NULL, NULL, NULL},
    };
    const char *words[2] = {NULL};
    int n;
    *o = (struct secret_options){.like = ""};
    int code = options_read_some(argc, argv, specs, words, 1, 2, &n);
    o->name = words[0];
    if (code == EXIT_YES && n > 1)
        return cli_fail(EXIT_USAGE, "a value is no argument, where others would see it: give it by "
                                    "--file or standard input");
    if (code == EXIT_YES && o->certificate && (o->allow_short || o->like[0]))
        return cli_fail(EXIT_USAGE,
                        "--client-certificate goes with neither --like nor --allow-short");
    return code;
}

/* The chain is public and is read here; a key that stands in the same file is not for our eyes. */
static int read_chain(const char *file, struct buf *out) {
    int fd = open(file, O_RDONLY | O_CLOEXEC | O_NOCTTY);
    int result = fd < 0 ? ERR_SYSTEM : file_read(fd, CERTIFICATE_PEM_MAX, out);
    struct view text = buf_view(out);
    if (result == ERR_LIMIT)
        return cli_fail(EXIT_UNSEEN, "%s: more than %d bytes", file, CERTIFICATE_PEM_MAX);
    if (result != 0)
        return cli_unread(file, result);
    if (view_search(text, VIEW("PRIVATE KEY-----")) < text.n) {
        secret_clear(out->p, out->cap);
        return cli_fail(EXIT_NO,
                        "%s: it holds a private key: name a file of certificates alone, and give "
                        "the key by --file or standard input",
                        file);
    }
    return text.n > 0 ? EXIT_YES : cli_fail(EXIT_NO, "%s: it is empty", file);
}

/* The block behind the name and the prefix: empty for a plain secret. */
static int put_chain(const struct secret_options *o, struct buf *body) {
    struct buf pem;
    buf_init(&pem, 2 * CERTIFICATE_PEM_MAX);
    int code = o->certificate ? read_chain(o->certificate, &pem) : EXIT_YES;
    buf_put_block(body, buf_view(&pem));
    buf_free(&pem);
    return code;
}

/* Of a terminal one line is read. */
static int check_source(const struct secret_options *o) {
    bool standard = !o->file || strcmp(o->file, "-") == 0;
    if (o->certificate && standard && isatty(STDIN_FILENO))
        return cli_fail(EXIT_USAGE,
                        "a private key has several lines: give it by --file or by a pipe");
    return EXIT_YES;
}

/* Not an error: the policy may come later. */
static void note_unlent(struct view answer, const struct secret_options *o) {
    struct view lent, member, nearest = {NULL, 0};
    const char *name = o->name;
    if (!json_member(answer, "lent", &lent) || !view_equal(lent, VIEW("false")))
        return;
    if (o->certificate)
        fprintf(stderr,
                "exeat: note: no service of the policy in use has `upstream client-certificate "
                "%s`\n",
                name);
    else if (json_member(answer, "nearest", &member) && json_word(member, &nearest) &&
             nearest.n > 0)
        fprintf(stderr,
                "exeat: note: no service of the policy in use has a credential %s; "
                "the nearest name is %.*s\n",
                name, VIEW_ARG(nearest));
    else
        fprintf(stderr, "exeat: note: no service of the policy in use has a credential %s\n", name);
}

/* What was done, as JSON or as a sentence. */
static void tell(const struct cli *cli, struct view json, const char *name, const char *done) {
    if (cli->json)
        printf("%.*s\n", VIEW_ARG(json));
    else
        printf("%s: %s\n", name, done);
}

/* The value's descriptor goes to broker; this process never reads it. */
static int give(const struct cli *cli, uint16_t type, const struct secret_options *o,
                struct view body, const char *done) {
    struct buf text;
    char prompt[128];
    int fd = -1;
    if (check_source(o) != EXIT_YES)
        return EXIT_USAGE;
    snprintf(prompt, sizeof prompt, "value of %.64s (not shown): ", o->name);
    int code = source_open(o->file, prompt, &fd);
    if (code != EXIT_YES)
        return code;
    buf_init(&text, BROKER_TEXT_MAX);
    code = client_ask(cli, type, body, fd, &text, NULL);
    source_close(fd);
    if (code == EXIT_YES)
        tell(cli, buf_view(&text), o->name, done);
    if (code == EXIT_YES)
        note_unlent(buf_view(&text), o);
    buf_free(&text);
    return code;
}

int command_secret_add(const struct cli *cli, int argc, char **argv) {
    struct secret_options o;
    struct buf body;
    int code = read_options(argc, argv, true, &o);
    if (code != EXIT_YES)
        return code;
    buf_init(&body, CONTROL_VALUE_MAX);
    buf_put_u8(&body, o.allow_short);
    buf_put_block(&body, view_str(o.name));
    buf_put_block(&body, view_str(o.like));
    code = put_chain(&o, &body);
    if (code == EXIT_YES)
        code = buf_ok(&body) ? give(cli, CONTROL_SECRET_ADD, &o, buf_view(&body), "added")
                             : cli_fail(EXIT_USAGE, "the name or the prefix is too long");
    buf_free(&body);
    return code;
}

int command_secret_rotate(const struct cli *cli, int argc, char **argv) {
    struct secret_options o;
    struct buf body;
    int code = read_options(argc, argv, false, &o);
    if (code != EXIT_YES)
        return code;
    buf_init(&body, CONTROL_VALUE_MAX);
    buf_put_u8(&body, o.allow_short);
    buf_put_block(&body, view_str(o.name));
    code = put_chain(&o, &body);
    if (code == EXIT_YES)
        code = buf_ok(&body) ? give(cli, CONTROL_SECRET_ROTATE, &o, buf_view(&body), "rotated")
                             : cli_fail(EXIT_USAGE, "the name is too long");
    buf_free(&body);
    return code;
}

int command_secret_remove(const struct cli *cli, int argc, char **argv) {
    static const struct option_spec none[] = {{NULL, NULL, NULL}};
    const char *name;
    struct buf body, text;
    int code = options_read(argc, argv, none, &name, 1);
    if (code != EXIT_YES)
        return code;
    buf_init(&body, CONTROL_ASK_MAX);
    buf_init(&text, BROKER_TEXT_MAX);
    buf_put_block(&body, view_str(name));
    code = buf_ok(&body) ? client_ask(cli, CONTROL_SECRET_REMOVE, buf_view(&body), -1, &text, NULL)
                         : cli_fail(EXIT_USAGE, "the name is too long");
    if (code == EXIT_YES)
        tell(cli, buf_view(&text), name, "removed, and its placeholders with it");
    buf_free(&body);
    buf_free(&text);
    return code;
}

/* ---- the list ---- */

static const struct list_column columns[] = {
    {"NAME", "name", LIST_TEXT},
    {"VERSION", "version", LIST_TEXT},
    {"PREFIX", "like", LIST_TEXT},
    {"CREATED", "created", LIST_TIME},
    {"ROTATED", "rotated", LIST_TIME},
    {"KIND", "kind", LIST_TEXT},
    {"NOT AFTER", "not_after", LIST_TIME},
    {"SUBJECT", "subject", LIST_TEXT},
    {NULL, NULL, LIST_TEXT},
};

int command_secret_list(const struct cli *cli, int argc, char **argv) {
    static const struct option_spec none[] = {{NULL, NULL, NULL}};
    int code = options_read(argc, argv, none, NULL, 0);
    return code == EXIT_YES ? list_ask(cli, CONTROL_SECRET_LIST, columns) : code;
}
