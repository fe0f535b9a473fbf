#include "cli/command.h"
#include "cli/options.h"
#include "cli/policy_files.h"
#include "cli/policy_told.h"
#include "cli/suggestion.h"
#include "policy/json_form.h"

#include <stdlib.h>
#include <string.h>

/* So many loads at most; a sandbox can have any number of requests refused of which none fits into the policy. */
enum { TRIES_MAX = 128 };

/* A suggestion on its way into a policy's text. */
struct addition {
    struct suggestion *s;
    struct view text;
    const char *name;
    struct wish **wishes; /* the requests */
    size_t n, tries;
    struct buf why; /* what does not fit */
};

/* ---- what fits ---- */

static struct view line_of(struct view text, uint32_t number) {
    struct view line = {NULL, 0};
    for (uint32_t i = 0; i < number; i++)
        line = view_cut(&text, '\n');
    return view_trim(line);
}

/* In the words of the text: the reader has never seen its lines. */
static void put_error(struct addition *a, const struct policy_error *e, struct view text) {
    buf_reset(&a->why);
    buf_printf(&a->why, "the policy would not load: %s", e->text);
    if (strcmp(e->at.file, a->name) == 0)
        buf_printf(&a->why, ", in `%.*s`", VIEW_ARG(line_of(text, e->at.line)));
}

/* With the wishes that are not out. ERR_BAD, ERR_LIMIT: it does not load, and a->why says why; ERR_MEMORY. */
static int try(struct addition *a) {
    static struct policy_errors errors;
    struct policy *p = NULL;
    struct buf out;
    buf_init(&out, POLICY_TEXT_MAX);
    a->tries++;
    int err = suggestion_build(a->s, a->text, a->name);
    if (err == 0)
        merge_print(&a->s->merge, &out);
    if (err == 0 && !buf_ok(&out))
        err = ERR_LIMIT;
    if (err == 0) {
        err = policy_file_load(buf_view(&out), a->name, NULL, &p, &errors);
        if (err == ERR_BAD)
            put_error(a, &errors.at[0], buf_view(&out));
    }
    if (err == ERR_LIMIT) {
        buf_reset(&a->why);
        buf_put_str(&a->why, "the policy would be too large");
    }
    policy_free(p);
    buf_free(&out);
    return err;
}

static int leave_out(struct addition *a, size_t from, size_t to, struct view why) {
    int err = 0;
    for (size_t i = from; i < to && err == 0; i++) {
        struct wish *w = a->wishes[i];
        w->out = true; /* NOLINT(clang-analyzer-core.NullDereference): list_wishes filled all n */
        w->why = arena_copy(&a->s->asked.arena, why);
        err = w->why.p ? 0 : ERR_MEMORY;
    }
    return err;
}

/* Lets as many of these in as fit beside those that are in. */
static int let_in(struct addition *a, size_t from, size_t to) {
    if (from == to)
        return 0;
    if (a->tries >= TRIES_MAX)
        return leave_out(a, from, to, VIEW("not tried, since too many others do not fit"));
    for (size_t i = from; i < to; i++)
        a->wishes[i]->out = false; /* NOLINT(clang-analyzer-core.NullDereference): as above */
    int err = try(a);
    if (err != ERR_BAD && err != ERR_LIMIT)
        return err;
    if (to - from == 1)
        return leave_out(a, from, to, buf_view(&a->why));
    for (size_t i = from; i < to; i++)
        a->wishes[i]->out = true;
    size_t half = from + (to - from) / 2;
    err = let_in(a, from, half);
    return err == 0 ? let_in(a, half, to) : err;
}

/* The requests as an array. */
static int list_wishes(struct addition *a) {
    size_t n = 0;
    for (struct wish *w = a->s->asked.requests.first; w; w = w->next)
        n++;
    a->wishes = calloc(n + 1, sizeof *a->wishes);
    if (!a->wishes)
        return ERR_MEMORY;
    for (struct wish *w = a->s->asked.requests.first; w; w = w->next)
        a->wishes[a->n++] = w;
    return 0;
}

/* Those that are out have a note instead of a rule. */
static void part_wishes(struct addition *a) {
    struct wishes *asked = &a->s->asked;
    asked->requests.first = NULL;
    asked->requests.end = &asked->requests.first;
    for (size_t i = 0; i < a->n; i++)
        wish_list_add(a->wishes[i]->out ? &asked->refused : &asked->requests, a->wishes[i]);
}

/* Builds the suggestion of all that fits. */
static int fit(struct suggestion *s, struct view text, const char *name) {
    struct addition a = {.s = s, .text = text, .name = name};
    buf_init(&a.why, 4096);
    int err = suggestion_sort(s);
    if (err == 0)
        err = list_wishes(&a);
    if (err == 0)
        err = let_in(&a, 0, a.n);
    if (err == 0) {
        part_wishes(&a);
        err = suggestion_build(s, text, name);
    }
    free(a.wishes);
    buf_free(&a.why);
    return err;
}

/* ---- what is given ---- */

/* In the form of the policy that it came from. */
static int write_policy(const struct suggestion *s, bool json, const char *path, struct buf *out,
                        struct policy_errors *errors) {
    struct buf text;
    buf_init(&text, POLICY_TEXT_MAX);
    merge_print(&s->merge, &text);
    int err = s->asked.failed || !buf_ok(&text) || !buf_ok(&s->notes) ? ERR_LIMIT : 0;
    if (err == 0 && json)
        err = json_form_write(buf_view(&text), path, out, errors);
    else if (err == 0)
        buf_put(out, buf_view(&text));
    buf_free(&text);
    return err == 0 && !buf_ok(out) ? ERR_LIMIT : err;
}

/* What does not load is not given. */
static int give(const struct cli *cli, const struct suggestion *s, bool json, const char *path) {
    static struct policy_errors errors;
    const char *name = path ? path : "suggestion";
    struct policy *p = NULL;
    struct buf out;
    int code = EXIT_YES;
    buf_init(&out, POLICY_OUTPUT_MAX);
    int err = write_policy(s, json, name, &out, &errors);
    if (err == 0)
        err = policy_file_load(buf_view(&out), name, NULL, &p, &errors);
    if (err == ERR_BAD)
        code = policy_told_refuse(cli, &errors, buf_view(&out), name);
    else if (err != 0)
        code = cli_fail(EXIT_INVALID, "%s", err_text(err));
    if (code == EXIT_YES) {
        cli_print(path ? stderr : stdout, &s->notes);
        cli_print(stdout, &out);
    } else if (path) {
        cli_fail(code, "what is suggested cannot be put into %s", path);
    }
    policy_free(p);
    buf_free(&out);
    return code;
}

/* ---- the policy that it is put into ---- */

/* The text of a policy in either form. */
static int read_policy(const struct cli *cli, const char *path, struct buf *out, bool *json) {
    static struct policy_errors errors;
    struct buf raw;
    buf_init(&raw, POLICY_FILE_MAX);
    errors_reset(&errors);
    int code = policy_told_read(path, &raw);
    *json = code == EXIT_YES && json_form_is(buf_view(&raw));
    if (*json && json_form_read(buf_view(&raw), path, out, &errors) != 0)
        code = policy_told_refuse(cli, &errors, buf_view(&raw), path);
    else if (!*json)
        buf_put(out, buf_view(&raw));
    buf_free(&raw);
    return code;
}

/* Fills in *p, which s->policy is, and the greatest number of its names. */
static int load_policy(const struct cli *cli, struct suggestion *s, const char *path,
                       struct view text, struct policy **p) {
    int code = path ? policy_told_load(cli, path, p) : EXIT_YES;
    s->policy = *p;
    s->number = suggestion_last_number(text);
    for (size_t i = 0; *p && i < policy_services(*p); i++) {
        size_t n = suggestion_last_number(service_name(policy_service_at(*p, i)));
        s->number = n > s->number ? n : s->number;
    }
    return code;
}

static int suggest(const struct cli *cli, struct suggestion *s, const char *path) {
    struct policy *p = NULL;
    struct buf text;
    bool json = false;
    buf_init(&text, POLICY_TEXT_MAX);
    int code = path ? read_policy(cli, path, &text, &json) : EXIT_YES;
    if (code == EXIT_YES)
        code = load_policy(cli, s, path, buf_view(&text), &p);
    if (code == EXIT_YES) {
        int err = fit(s, buf_view(&text), path ? path : "suggestion");
        code = err == 0 ? EXIT_YES : cli_fail(EXIT_INVALID, "%s", err_text(err));
    }
    if (code == EXIT_YES) {
        suggestion_note_rest(s);
        code = give(cli, s, json, path);
    }
    merge_free(&s->merge);
    policy_free(p);
    buf_free(&text);
    return code;
}

int command_policy_suggest(const struct cli *cli, int argc, char **argv) {
    struct suggestion s = {.policy = NULL};
    const char *paths[DECISION_LOGS_MAX], *policy = NULL;
    const struct option_spec options[] = {{"--policy", &policy, NULL}, {NULL, NULL, NULL}};
    int n;
    int code = options_read_some(argc, argv, options, paths, 1, DECISION_LOGS_MAX, &n);
    if (code != EXIT_YES)
        return code;
    wishes_init(&s.asked, policy ? POLICY_TEXT_MAX / 2 : POLICY_TEXT_MAX);
    buf_init(&s.notes, POLICY_OUTPUT_MAX);
    code = decision_read_logs(paths, n, wishes_line, &s.asked);
    if (code == EXIT_YES)
        code = suggest(cli, &s, policy);
    buf_free(&s.notes);
    wishes_free(&s.asked);
    return code;
}
