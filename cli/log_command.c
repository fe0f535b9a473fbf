#include "cli/client.h"
#include "cli/decision.h"
#include "cli/log_since.h"
#include "cli/log_table.h"
#include "cli/options.h"

#include "audit/log_file.h"
#include "audit/segment.h"
#include "audit/sign_key.h"
#include "audit/verify.h"
#include "base/json.h"
#include "base/loop.h"
#include "policy/reason.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

enum { FILES_MAX = 64, FOLLOW_MS = 200, FOLLOW_BACK = 64 * 1024 };

static int fail(const char *path, int result) {
    if (result == ERR_MISSING)
        return cli_fail(EXIT_UNSEEN, "%s: there is no audit trail", path);
    int code = cli_unread(path, result);
    if (code == EXIT_PERMISSION)
        fputs("exeat: note: root and the user of the daemon's audit can read it: `sudo -u "
              "exeat-audit exeat log ...`\n",
              stderr);
    return code;
}

/* The log's directory: given, or that of the configuration. path holds 4096 bytes. */
static int open_directory(const struct cli *cli, const char *given, char *path, int *dir) {
    struct config config;
    if (given) {
        snprintf(path, 4096, "%s", given);
    } else {
        int code = client_place(cli, &config);
        if (code != EXIT_YES)
            return code;
        snprintf(path, 4096, "%s/audit", config.state);
        config_free(&config);
    }
    *dir = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    return *dir >= 0 ? EXIT_YES : fail(path, errno == ENOENT ? ERR_MISSING : ERR_SYSTEM);
}

/* ---- exeat log ---- */

/* 0 at the end of the file as it is now. */
static int show_rest(struct segment *s, struct log_table *t) {
    struct view line;
    int result;
    while ((result = segment_next(s, &line)) == 0 || result == ERR_LIMIT)
        log_table_line(t, result == 0 ? line : VIEW(""), clock_mono());
    return result == ERR_AGAIN ? 0 : result;
}

static int show_file(int dir, const char *name, struct log_table *t) {
    struct segment s;
    int result = segment_open(dir, name, &s);
    if (result == 0)
        result = show_rest(&s, t);
    segment_close(&s);
    return result;
}

static int show_directory(int dir, struct log_table *t) {
    struct segment_list list;
    int result = segment_list_read(dir, &list);
    for (size_t i = 0; result == 0 && i < list.n; i++) {
        result = show_file(dir, list.at[i].text, t);
        if (result == ERR_MISSING)
            result = 0; /* rotated or removed while we read */
    }
    segment_list_free(&list);
    return result;
}

static bool was_rotated(int dir, const struct segment *s) {
    struct stat now, ours;
    return fstatat(dir, SEGMENT_CURRENT, &now, 0) == 0 && fstat(s->fd, &ours) == 0 &&
           now.st_ino != ours.st_ino;
}

static int follow_open(int dir, struct segment *s, bool from_the_end) {
    struct timespec pause = {0, FOLLOW_MS * 1000000L};
    struct view line;
    int result;
    while ((result = segment_open(dir, SEGMENT_CURRENT, s)) == ERR_MISSING) {
        segment_close(s);
        nanosleep(&pause, NULL); /* between renaming and the new file */
    }
    /* A little of what was: the first line there is most likely cut. */
    if (result == 0 && from_the_end && lseek(s->fd, -FOLLOW_BACK, SEEK_END) > 0)
        result = segment_next(s, &line) == ERR_SYSTEM ? ERR_SYSTEM : 0;
    return result;
}

static int follow(int dir, struct log_table *t) {
    struct timespec pause = {0, FOLLOW_MS * 1000000L};
    struct segment s;
    int result = follow_open(dir, &s, true);
    while (result == 0) {
        bool rotated = was_rotated(dir, &s);
        result = show_rest(&s, t);
        log_table_tick(t, clock_mono());
        if (fflush(stdout) != 0)
            break; /* nobody reads any more */
        if (result == 0 && rotated) {
            segment_close(&s);
            result = follow_open(dir, &s, false);
        } else if (result == 0) {
            nanosleep(&pause, NULL);
        }
    }
    segment_close(&s);
    return result;
}

/* Takes every `--file F` out of argv. */
static int take_files(int *argc, char **argv, const char *files[FILES_MAX], size_t *n) {
    int kept = 0;
    *n = 0;
    for (int i = 0; i < *argc; i++) {
        bool joined = strncmp(argv[i], "--file=", 7) == 0;
        if (!joined && strcmp(argv[i], "--file") != 0) {
            argv[kept++] = argv[i];
            continue;
        }
        if (*n == FILES_MAX || (!joined && i + 1 == *argc))
            return cli_fail(EXIT_USAGE,
                            *n == FILES_MAX ? "too many files" : "--file needs a value");
        files[(*n)++] = joined ? argv[i] + 7 : argv[++i];
    }
    *argc = kept;
    return EXIT_YES;
}

static int show_files(const char *const *files, size_t n, struct log_table *t) {
    for (size_t i = 0; i < n; i++) {
        uint64_t before = log_table_records(t);
        bool standard = strcmp(files[i], "-") == 0;
        int result = show_file(AT_FDCWD, standard ? "/dev/stdin" : files[i], t);
        if (result != 0)
            return cli_unread(files[i], result == ERR_MISSING ? ERR_SYSTEM : result);
        if (log_table_records(t) == before)
            return cli_fail(EXIT_UNSEEN, "%s: " DECISION_NO_TRAIL, files[i]);
    }
    return EXIT_YES;
}

static int show_log(const struct cli *cli, const char *given, bool followed, struct log_table *t) {
    char path[4096];
    int dir;
    int code = open_directory(cli, given, path, &dir);
    if (code != EXIT_YES)
        return code;
    int result = followed ? follow(dir, t) : show_directory(dir, t);
    if (result != 0)
        code = fail(path, result);
    close(dir);
    return code;
}

/* The one or the other, and what belongs to neither. */
static int check_options(const struct log_filter *f, const char *dir, bool followed, size_t n) {
    enum reason known;
    if (n > 0 && (followed || dir))
        return cli_fail(EXIT_USAGE, "--follow and --dir read a whole trail, not a file");
    if (f->reason && reason_find(view_str(f->reason), &known) != 0)
        return cli_fail_reason(EXIT_USAGE, f->reason);
    return EXIT_YES;
}

int command_log(const struct cli *cli, int argc, char **argv) {
    struct log_filter filter = {0};
    const char *files[FILES_MAX], *more[FILES_MAX], *dir = NULL, *since = NULL;
    char time[CHAIN_TIME_SIZE];
    int n_more = 0;
    size_t n;
    bool followed = false;
    const struct option_spec specs[] = {{"--follow", NULL, &followed},
                                        {"--sandbox", &filter.sandbox, NULL},
                                        {"--host", &filter.host, NULL},
                                        {"--denied", NULL, &filter.denied},
                                        {"--record", &filter.record, NULL},
                                        {"--id", NULL, &filter.ids},
                                        {"--all", NULL, &filter.all},
                                        {"--dir", &dir, NULL},
                                        {"--since", &since, NULL},
                                        {"--reason", &filter.reason, NULL},
                                        {"--credential", &filter.credential, NULL},
                                        {NULL, NULL, NULL}};
    int code = take_files(&argc, argv, files, &n);
    if (code == EXIT_YES)
        code = options_read_some(argc, argv, specs, more, 0, (int)(FILES_MAX - n), &n_more);
    for (int i = 0; code == EXIT_YES && i < n_more; i++)
        files[n++] = more[i];
    if (code == EXIT_YES)
        code = check_options(&filter, dir, followed, n);
    if (code == EXIT_YES && since) {
        filter.since = time;
        if (log_since_read(since, clock_wall(), time) != 0)
            code = cli_fail(EXIT_USAGE, "--since %s: " LOG_SINCE_FORM, since);
    }
    if (code != EXIT_YES)
        return code;
    struct log_table *t = log_table_new(&filter, cli->json, followed, stdout);
    if (!t)
        return cli_fail(EXIT_NO, "no memory");
    code = n > 0 ? show_files(files, n, t) : show_log(cli, dir, followed, t);
    log_table_end(t);
    if (code == EXIT_YES && filter.record && log_table_matched(t) == 0)
        code = cli_fail(EXIT_NO, "there is no record %s in the trail", filter.record);
    else if (code == EXIT_YES && !cli->json && !followed && log_table_matched(t) == 0)
        fputs("exeat: note: no record of the trail is of this kind\n", stderr);
    if (log_table_unread(t) > 0 && code != EXIT_UNSEEN)
        fprintf(stderr, "exeat: %llu lines could not be read; `exeat log verify` tells more\n",
                (unsigned long long)log_table_unread(t));
    log_table_free(t);
    return code;
}

/* ---- exeat log verify ---- */

static void print_behind(const struct verify_report *r, bool signs) {
    printf("note: %s: %llu record%s, only chained, so that it does not show when some were cut or "
           "replaced\n",
           signs ? "behind the last signed head" : "without a signed head",
           (unsigned long long)r->behind, r->behind == 1 ? "" : "s");
}

static void print_report(const struct verify_report *r, const struct chain_head *head) {
    if (!r->good) {
        printf("bad: %s", r->text);
        if (r->file[0])
            printf(" (%s:%llu)", r->file, (unsigned long long)r->line);
        putchar('\n');
        return;
    }
    printf("good: %llu records (%llu to %llu) in %llu file%s, %llu signed head%s",
           (unsigned long long)r->records, (unsigned long long)r->first,
           (unsigned long long)r->last, (unsigned long long)r->files, r->files == 1 ? "" : "s",
           (unsigned long long)r->heads, r->heads == 1 ? "" : "s");
    if (r->key[0])
        printf(" (the newest by key %s)", r->key);
    if (r->trails > 1)
        printf(", of %llu trails one behind the other", (unsigned long long)r->trails);
    if (head)
        printf(", and the exported head of record %llu", (unsigned long long)head->seq);
    putchar('\n');
    if (r->unchecked)
        puts("note: who signed the heads was not checked: --key FILE, the sign.pub of that trail");
    if (r->behind > 0)
        print_behind(r, r->heads > 0 || head);
    if (r->first > 1)
        printf("note: records before %llu are not here\n", (unsigned long long)r->first);
    if (r->unfinished)
        printf("note: %llu bytes of a record that is being written\n",
               (unsigned long long)r->unfinished);
}

static void print_report_json(const struct verify_report *r) {
    struct buf out;
    buf_init(&out, 4096);
    buf_put_str(&out, r->good ? "{\"good\":true" : "{\"good\":false");
    json_put_number(&out, "records", r->records);
    json_put_number(&out, "first", r->first);
    json_put_number(&out, "last", r->last);
    json_put_number(&out, "files", r->files);
    json_put_number(&out, "heads", r->heads);
    if (r->key[0])
        json_put_text(&out, "key", view_str(r->key));
    json_put_number(&out, "trails", r->trails);
    json_put_number(&out, "unchecked", r->unchecked);
    json_put_number(&out, "behind", r->behind);
    json_put_number(&out, "unfinished", r->unfinished);
    if (!r->good) {
        json_put_text(&out, "finding", view_str(r->text));
        json_put_text(&out, "file", view_str(r->file));
        json_put_number(&out, "line", r->line);
        json_put_number(&out, "seq", r->seq);
    }
    buf_put_str(&out, "}\n");
    cli_print(stdout, &out);
    buf_free(&out);
}

static int read_head(int dir, const char *path, struct chain_head *out) {
    struct buf text;
    buf_init(&text, 2 * HEAD_JSON_MAX);
    int result = log_file_read(dir, path, HEAD_JSON_MAX, &text);
    if (result == 0)
        result = chain_head_read(buf_view(&text), out);
    buf_free(&text);
    return result;
}

static int tell(const struct cli *cli, const char *path, int result,
                const struct verify_report *report, const struct chain_head *head) {
    if (result != 0)
        return fail(path, result);
    if (report->records == 0 && report->line == 0 && !report->has_head)
        return cli_fail(EXIT_UNSEEN, "%s: " DECISION_NO_TRAIL, path);
    if (cli->json)
        print_report_json(report);
    else
        print_report(report, head);
    return report->good ? EXIT_YES : EXIT_NO;
}

static int verify(const struct cli *cli, const char *given, const struct chain_head *head) {
    struct verify_report report = {0};
    struct chain_keys *keys = NULL;
    char path[4096];
    int dir, code = open_directory(cli, given, path, &dir);
    if (code != EXIT_YES)
        return code;
    int result = sign_key_public(dir, "sign.pub", &keys);
    /* Missing or unusable keys are a finding like others; not to be permitted is none. */
    if (result != ERR_SYSTEM)
        result = verify_log(dir, keys, head, &report);
    code = tell(cli, path, result, &report, head);
    chain_keys_free(keys);
    close(dir);
    return code;
}

static int verify_copy(const struct cli *cli, const char *file, const char *key,
                       const struct chain_head *head) {
    struct verify_report report = {0};
    struct chain_keys *keys = NULL;
    int result = key ? sign_key_public(AT_FDCWD, key, &keys) : 0;
    if (result == ERR_SYSTEM || result == ERR_MISSING)
        return cli_unread(key, ERR_SYSTEM);
    if (result != 0)
        return cli_fail(EXIT_USAGE, "%s: this is no sign.pub", key);
    result = verify_file(file, keys, head, &report);
    if (result == ERR_MISSING)
        return cli_unread(file, ERR_SYSTEM);
    int code = tell(cli, file, result, &report, head);
    chain_keys_free(keys);
    return code;
}

/* EXIT_YES with *out, or anything else that was told. */
static int read_exported(const char *file, struct chain_head *out) {
    int result = read_head(AT_FDCWD, file, out);
    if (result == ERR_SYSTEM || result == ERR_MISSING)
        return cli_unread(file, ERR_SYSTEM);
    return result == 0
               ? EXIT_YES
               : cli_fail(EXIT_USAGE, "%s: this is no head as `exeat log head` prints it", file);
}

int command_log_verify(const struct cli *cli, int argc, char **argv) {
    const char *head_file = NULL, *dir = NULL, *file = NULL, *key = NULL;
    const struct option_spec specs[] = {{"--head", &head_file, NULL},
                                        {"--dir", &dir, NULL},
                                        {"--file", &file, NULL},
                                        {"--key", &key, NULL},
                                        {NULL, NULL, NULL}};
    struct chain_head head = {0};
    int code = options_read(argc, argv, specs, NULL, 0);
    if (code == EXIT_YES && (dir ? file || key : key && !file))
        code = cli_fail(EXIT_USAGE, "--key belongs to --file, in the place of --dir");
    if (code == EXIT_YES && file && head_file && !key)
        code =
            cli_fail(EXIT_USAGE, "who signed a head is told by --key FILE, the trail's sign.pub");
    if (code == EXIT_YES && head_file)
        code = read_exported(head_file, &head);
    if (code != EXIT_YES)
        return code;
    return file ? verify_copy(cli, file, key, head_file ? &head : NULL)
                : verify(cli, dir, head_file ? &head : NULL);
}

/* ---- exeat log head ---- */

/* How many records came after the head and its own line; 0 too when the log cannot be read or is not good. */
static uint64_t count_newer(int dir, const struct chain_head *head) {
    struct verify_report report = {0};
    struct chain_keys *keys = NULL;
    bool read = sign_key_public(dir, "sign.pub", &keys) == 0 &&
                verify_log(dir, keys, head, &report) == 0 && report.good;
    chain_keys_free(keys);
    return read && report.last > head->seq + 1 ? report.last - head->seq - 1 : 0;
}

/* The head that was signed last, of a log whose daemon cannot be asked for a newer one. */
static int show_last_head(const struct cli *cli, const char *given) {
    struct chain_head head;
    struct buf out;
    char path[4096];
    int dir;
    int code = open_directory(cli, given, path, &dir);
    if (code != EXIT_YES)
        return code;
    int result = read_head(dir, "head.json", &head);
    uint64_t newer = result == 0 ? count_newer(dir, &head) : 0;
    close(dir);
    if (result == ERR_MISSING)
        return cli_fail(EXIT_UNSEEN, "%s: no head was signed yet", path);
    if (result != 0)
        return fail(path, result);
    buf_init(&out, HEAD_JSON_MAX);
    chain_head_write(&head, &out);
    cli_print(stdout, &out);
    buf_free(&out);
    if (newer > 0)
        fprintf(stderr, "exeat: note: %llu newer records are not covered by this head\n",
                (unsigned long long)newer);
    return EXIT_YES;
}

int command_log_head(const struct cli *cli, int argc, char **argv) {
    const char *given = NULL;
    const struct option_spec specs[] = {{"--dir", &given, NULL}, {NULL, NULL, NULL}};
    struct buf head;
    int code = options_read(argc, argv, specs, NULL, 0);
    if (code != EXIT_YES || given)
        return code == EXIT_YES ? show_last_head(cli, given) : code;
    buf_init(&head, CHANNEL_BODY_MAX);
    code = client_ask(cli, CONTROL_HEAD, (struct view){NULL, 0}, -1, &head, NULL);
    if (code == EXIT_YES)
        printf("%.*s\n", VIEW_ARG(buf_view(&head)));
    else if (code == EXIT_UNREACHABLE)
        code = show_last_head(cli, NULL);
    buf_free(&head);
    return code;
}
