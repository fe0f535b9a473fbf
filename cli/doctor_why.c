#include "cli/doctor_why.h"

/* As OpenSSL, GnuTLS, Node.js, Go, Java and their clients say it. */
static const char *const distrust[] = {"local issuer",
                                       "self-signed",
                                       "self signed",
                                       "self_signed",
                                       "certificate verify",
                                       "verify the first certificate",
                                       "unable_to_verify",
                                       "unable_to_get_issuer",
                                       "unknown authority",
                                       "cannot verify",
                                       "verification failed",
                                       "isn't trusted",
                                       "is not trusted",
                                       "unknownissuer",
                                       "pkix path",
                                       "problem with the ssl ca cert",
                                       "error:num=19",
                                       "error:num=20",
                                       "verify error",
                                       "trust anchors",
                                       "certificate file",
                                       "certificate locations",
                                       NULL};
static const char *const failures[] = {"refused",   "timed out", "timeout",  "resolve", "not known",
                                       "enotfound", "econn",     "denied",   "error",   "failed",
                                       "unable",    "cannot",    "couldn't", NULL};

static bool has_any(struct view line, const char *const *words) {
    for (; *words; words++) {
        struct view word = view_str(*words);
        for (size_t at = 0; at + word.n <= line.n; at++)
            if (view_equal_nocase(view_slice(line, at, at + word.n), word))
                return true;
    }
    return false;
}

static bool has_letter(struct view line) {
    for (size_t i = 0; i < line.n; i++)
        if ((line.p[i] | 0x20) >= 'a' && (line.p[i] | 0x20) <= 'z')
            return true;
    return false;
}

bool doctor_why_is_trust(struct view line) {
    return has_any(line, distrust);
}

struct view doctor_why(struct view out) {
    struct view trust = {NULL, 0}, failure = {NULL, 0}, last = VIEW("it printed nothing");
    while (out.n > 0) {
        struct view line = view_trim(view_cut(&out, '\n'));
        if (!has_letter(line))
            continue;
        last = line;
        if (trust.n == 0 && doctor_why_is_trust(line))
            trust = line;
        if (failure.n == 0 && has_any(line, failures))
            failure = line;
    }
    return trust.n > 0 ? trust : failure.n > 0 ? failure : last;
}
