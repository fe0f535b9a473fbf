/* What is kept of lanes that have ended. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "daemon/ledgers.h"

#include <fcntl.h>
#include <stdio.h>
#include <sys/resource.h>
#include <unistd.h>

/* A lane with one sandbox, and the ledger of its egress. */
static struct parent parent;
static struct lane lane = {.parent = &parent};
static struct process egress;

static void name_lane(unsigned number) {
    snprintf(lane.sandbox, sizeof lane.sandbox, "s%u", number);
}

static bool was_kept(unsigned number) {
    name_lane(number);
    int fd = ledgers_take(&lane);
    if (fd < 0)
        return false;
    close(fd);
    return true;
}

static void a_ledger_goes_to_the_lane_of_the_same_sandbox_and_to_no_other(void **state) {
    (void)state;
    name_lane(1);
    ledgers_keep(&lane, &egress);
    assert_false(was_kept(2));
    assert_true(was_kept(1));
    assert_false(was_kept(1));
}

/* How many of n are kept. */
static unsigned kept_of(unsigned n) {
    unsigned kept = 0;
    for (unsigned i = 0; i < n; i++) {
        name_lane(i);
        ledgers_keep(&lane, &egress);
    }
    for (unsigned i = 0; i < n; i++)
        kept += was_kept(i);
    return kept;
}

/* Names of attached lanes come from attach, which may have been taken over: they must not cost the parent all descriptors. */
static void rx_no_more_are_kept_than_the_parent_can_hold(void **state) {
    (void)state;
    struct rlimit before, few;
    assert_int_equal(getrlimit(RLIMIT_NOFILE, &before), 0);
    rlim_t share = before.rlim_cur / LEDGERS_SHARE;
    assert_int_equal(kept_of(LEDGERS_MAX + 2), share < LEDGERS_MAX ? share : LEDGERS_MAX);
    few = (struct rlimit){512, before.rlim_max};
    assert_int_equal(setrlimit(RLIMIT_NOFILE, &few), 0);
    assert_int_equal(kept_of(512), 512 / LEDGERS_SHARE);
    assert_int_equal(setrlimit(RLIMIT_NOFILE, &before), 0);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_ledger_goes_to_the_lane_of_the_same_sandbox_and_to_no_other),
        cmocka_unit_test(rx_no_more_are_kept_than_the_parent_can_hold),
    };
    struct rlimit r;
    if (getrlimit(RLIMIT_NOFILE, &r) == 0) {
        r.rlim_cur = r.rlim_max;
        setrlimit(RLIMIT_NOFILE, &r);
    }
    egress.ledger = open("/dev/null", O_RDONLY | O_CLOEXEC);
    return egress.ledger < 0 ? 1 : cmocka_run_group_tests(tests, NULL, NULL);
}
