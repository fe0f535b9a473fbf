/*
 * Asks a policy many questions: lines `SANDBOX METHOD URL` on standard input, one line of answer each: `allow OPERATION`,
 * `deny REASON`, or `bad WHY` for what is no request. First a line with what loading took in time and memory. Usage: ask POLICY
 */
#include "base/file.h"
#include "policy/trial.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

static double seconds(void) {
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + (double)t.tv_nsec / 1e9;
}

/* Not the most that there was: that is inherited from who started us. */
static long resident(void) {
    long all, pages = 0;
    FILE *f = fopen("/proc/self/statm", "r");
    if (f && fscanf(f, "%ld %ld", &all, &pages) != 2)
        pages = 0;
    if (f)
        fclose(f);
    return pages * (sysconf(_SC_PAGESIZE) / 1024);
}

static struct policy *load(const char *path) {
    static struct policy_errors errors;
    struct policy *p = NULL;
    struct buf text;
    buf_init(&text, 2 * POLICY_TEXT_MAX);
    long before = resident();
    double begin = seconds();
    if (file_read(open(path, O_RDONLY), POLICY_TEXT_MAX, &text) != 0 ||
        policy_load(buf_view(&text), path, &p, &errors) != 0) {
        fprintf(stderr, "%s:%u: %s\n", path, errors.at[0].at.line, errors.at[0].text);
        exit(1);
    }
    double took = seconds() - begin;
    printf("loaded in %.1f ms, %ld KiB more\n", took * 1e3, resident() - before);
    buf_free(&text);
    return p;
}

static void answer(const struct policy *p, struct view line) {
    struct trial t = {.with = WITH_DEFAULT};
    struct verdict v;
    const char *why = "malformed";
    t.sandbox = view_cut(&line, ' ');
    t.method = view_cut(&line, ' ');
    int err = trial_url(line, &t, &why);
    if (err == 0)
        err = trial_run(p, &t, &v, &why);
    if (err != 0)
        printf("bad %s\n", why);
    else if (v.allow)
        printf("allow %.*s\n", VIEW_ARG(operation_name(v.operation)));
    else
        printf("deny %s\n", reason_info(v.reason)->code);
}

int main(int argc, char **argv) {
    char line[8192];
    if (argc != 2)
        return 2;
    struct policy *p = load(argv[1]);
    while (fgets(line, sizeof line, stdin))
        answer(p, view_of(line, strcspn(line, "\n")));
    policy_free(p);
    return 0;
}
