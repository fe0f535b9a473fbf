/*
 * A folder that a log is written into, and what stands in its files.
 */
#ifndef TESTS_UNIT_LOG_FOLDER_H
#define TESTS_UNIT_LOG_FOLDER_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "audit/findings.h"
#include "audit/ledger.h"
#include "audit/sign_key.h"
#include "audit/verify.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

/* Below /tmp; its descriptor. */
static int log_folder_make(char path[64]) {
    snprintf(path, 64, "/tmp/exeat-log-XXXXXX");
    assert_non_null(mkdtemp(path));
    return open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
}

/* With all that is audit's in it, and nothing else. */
static void log_folder_remove(const char *path, int dir) {
    struct segment_list l;
    static const char *const others[] = {"sign.key", "sign.pub", "head.json", "head.json.new",
                                         FINDINGS_FILE};
    assert_int_equal(segment_list_read(dir, &l), 0);
    for (size_t i = 0; i < l.n; i++)
        unlinkat(dir, l.at[i].text, 0);
    segment_list_free(&l);
    for (size_t i = 0; i < sizeof others / sizeof *others; i++)
        unlinkat(dir, others[i], 0);
    close(dir);
    assert_int_equal(rmdir(path), 0);
}

/* How many lines of all files contain the text; a file may be renamed meanwhile. */
static size_t lines_with(int dir, const char *text) {
    struct segment_list l;
    size_t n = 0;
    assert_int_equal(segment_list_read(dir, &l), 0);
    for (size_t i = 0; i < l.n; i++) {
        struct segment s;
        struct view line;
        if (segment_open(dir, l.at[i].text, &s) != 0)
            continue;
        while (segment_next(&s, &line) == 0)
            if (view_search(line, view_str(text)) != line.n)
                n++;
        segment_close(&s);
    }
    segment_list_free(&l);
    return n;
}

static void assert_lines(int dir, const char *text, size_t expected) {
    size_t n = lines_with(dir, text);
    if (n != expected)
        fail_msg("%zu lines with %s, not %zu", n, text, expected);
}

static struct verify_report verified(int dir, const struct chain_head *head) {
    struct verify_report r;
    struct chain_keys *keys = NULL;
    assert_int_equal(sign_key_public(dir, "sign.pub", &keys), 0);
    assert_int_equal(verify_log(dir, keys, head, &r), 0);
    chain_keys_free(keys);
    return r;
}

static void must_be_good(int dir) {
    struct verify_report r = verified(dir, NULL);
    if (!r.good)
        fail_msg("%s (%s:%llu)", r.text, r.file, (unsigned long long)r.line);
}

#endif
