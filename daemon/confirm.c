#include "daemon/confirm.h"

#include "base/role.h"
#include "policy/bundle.h"
#include "policy/diff.h"

#include <fcntl.h>
#include <limits.h>
#include <sys/mman.h>
#include <sys/stat.h>

enum { EXAMPLES_MAX = 10 };

int confirm_running(void) {
    int seals = fcntl(RUNNING_FD, F_GET_SEALS);
    return seals > 0 && (seals & F_SEAL_WRITE) != 0 ? RUNNING_FD : -1;
}

struct examples {
    struct buf *why;
    size_t n;
};

/* What is said of a difference that takes a word; NULL: it takes none. */
static const char *more_text(enum diff_kind kind) {
    switch (kind) {
    case DIFF_ALLOWED:
        return "";
    case DIFF_CREDENTIAL:
        return ", with another credential";
    case DIFF_UNREAD:
        return ", passed on unread";
    case DIFF_LAXER:
        return ", with wider limits";
    case DIFF_FURTHER:
        return ", reaching further";
    default:
        return NULL;
    }
}

static void put_example(void *ctx, const struct diff_found *f) {
    struct examples *e = ctx;
    const char *more = more_text(f->kind);
    if (!more || e->n++ >= EXAMPLES_MAX)
        return;
    buf_printf(e->why, "  %.*s: %.*s %.*s", VIEW_ARG(f->sandbox), VIEW_ARG(f->method),
               VIEW_ARG(f->url));
    if (f->more.n > 0)
        buf_printf(e->why, " (%.*s)", VIEW_ARG(f->more));
    buf_put_str(e->why, more);
    buf_printf(e->why, ", by %s:%u:%u\n", f->after.at.file, f->after.at.line, f->after.at.column);
}

static int compare(const struct policy *before, const struct policy *after, struct buf *why) {
    struct diff_result result;
    struct buf told;
    buf_init(&told, 1 << 16);
    struct examples examples = {.why = &told};
    int err = policy_diff(before, after, put_example, &examples, &result);
    if (err == 0 && (examples.n > 0 || !result.whole)) {
        buf_put_str(why, examples.n > 0 ? "the policy newly allows requests"
                                        : "what the policy newly allows is not known");
        buf_put_str(
            why, ": `exeat reload --yes` loads it, or `reload unconfirmed` in the configuration\n");
        buf_put(why, buf_view(&told));
        if (examples.n > EXAMPLES_MAX)
            buf_printf(why, "  and %zu more\n", examples.n - EXAMPLES_MAX);
        if (!result.whole)
            buf_printf(why, "  not all could be compared: %s\n", result.why);
        err = ERR_DENIED;
    }
    buf_free(&told);
    return err;
}

static int compare_texts(struct view running, struct view packed, const struct policy *policy,
                         struct buf *why) {
    static struct policy_errors errors;
    struct policy *before = NULL;
    struct bundle b;
    char file[PATH_MAX] = "";
    if (bundle_read(running, &b) != 0)
        return ERR_BAD;
    if (view_equal(b.policy_text, packed))
        return 0;
    int err = view_cstr(b.policy_file, file, sizeof file);
    if (err == 0)
        err = policy_load(b.policy_text, file, &before, &errors);
    if (err == 0)
        err = compare(before, policy, why);
    policy_free(before);
    return err;
}

int confirm_policy(int running, struct view packed, const struct policy *policy, struct buf *why) {
    struct stat st;
    if (running < 0)
        return 0;
    if (fstat(running, &st) != 0 || st.st_size <= 0)
        return ERR_BAD;
    size_t size = (size_t)st.st_size;
    void *text = mmap(NULL, size, PROT_READ, MAP_PRIVATE, running, 0);
    if (text == MAP_FAILED)
        return ERR_MEMORY;
    int err = compare_texts(view_of(text, size), packed, policy, why);
    munmap(text, size);
    return err;
}
