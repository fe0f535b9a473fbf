/* A ledger under a full or failing disk, under kill -9, and in a hurry. */
#include "tests/unit/ledger_place.h"

#include <errno.h>
#include <signal.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>

/* ---- trouble with the disk ---- */

/* A disk that fails: the library's fdatasync is replaced by this one. */
static bool sync_fails;

int fdatasync(int fd) {
    if (!sync_fails)
        return fsync(fd);
    errno = EIO;
    return -1;
}

static void au_01_a_full_disk_drops_nothing_and_heals_by_itself(void **state) {
    struct place *p = *state;
    struct rlimit saved, small;
    struct stat st;
    uint64_t epoch, number;
    size_t producer;
    assert_int_equal(take(p, "egress 1", 7, 1), 0);
    flush(p);
    signal(SIGXFSZ, SIG_IGN);
    assert_int_equal(fstatat(p->dir, SEGMENT_CURRENT, &st, 0), 0);
    getrlimit(RLIMIT_FSIZE, &saved);
    small = (struct rlimit){(rlim_t)st.st_size + 700, saved.rlim_max};
    assert_int_equal(setrlimit(RLIMIT_FSIZE, &small), 0);
    take_records(p, 2, 20);
    for (int i = 0; i < 3; i++)
        assert_int_equal(ledger_flush(p->ledger, WALL), ERR_SYSTEM);
    assert_true(ledger_is_behind(p->ledger));
    assert_int_equal(ledger_producer(p->ledger, "egress 1", &producer), 0);
    assert_true(ledger_written(p->ledger, producer, &epoch, &number));
    assert_int_equal(number, 1);
    setrlimit(RLIMIT_FSIZE, &saved);
    flush(p);
    assert_false(ledger_is_behind(p->ledger));
    assert_true(ledger_written(p->ledger, producer, &epoch, &number));
    assert_int_equal(number, 20);
    assert_lines(p->dir, "\"kind\":\"decision\"", 20);
    assert_lines(p->dir, "\"event\":\"gap\"", 0);
    must_be_good(p->dir);
}

static void au_01_room_in_memory_ends_before_a_record_could_be_lost(void **state) {
    struct place *p = *state;
    uint64_t n = 0;
    while (ledger_has_room(p->ledger))
        assert_int_equal(take(p, "egress 1", 7, ++n), 0);
    assert_true(n > 1000);
    flush(p);
    assert_true(ledger_has_room(p->ledger));
    assert_lines(p->dir, "\"kind\":\"decision\"", n);
    must_be_good(p->dir);
}

static void au_01_records_that_a_failed_sync_may_have_lost_are_named(void **state) {
    struct place *p = *state;
    char range[64];
    assert_int_equal(ledger_sign(p->ledger, WALL), 0);
    uint64_t before = ledger_seq(p->ledger);
    take_records(p, 1, 3);
    sync_fails = true;
    assert_int_equal(ledger_sign(p->ledger, WALL), ERR_SYSTEM);
    assert_int_equal(exported(p).seq, before - 1); /* no head promises what may be lost */
    assert_int_equal(ledger_sign(p->ledger, WALL), ERR_SYSTEM);
    sync_fails = false;
    assert_int_equal(ledger_sign(p->ledger, WALL), 0);
    snprintf(range, sizeof range, "\"first\":%llu,\"last\":%llu", (unsigned long long)before,
             (unsigned long long)before + 3);
    assert_lines(p->dir, "\"event\":\"sync_failed\"", 1);
    assert_lines(p->dir, range, 1);
    must_be_good(p->dir);
}

static void au_01_a_durable_record_counts_only_once_its_sync_succeeded(void **state) {
    struct place *p = *state;
    struct ledger_settings s = {.file_bytes = 1 << 20, .durable = true};
    uint64_t epoch, number;
    size_t producer;
    ledger_set(p->ledger, &s);
    assert_int_equal(take(p, "egress 1", 7, 1), 0);
    sync_fails = true;
    assert_int_equal(ledger_flush(p->ledger, WALL), ERR_SYSTEM);
    assert_int_equal(ledger_producer(p->ledger, "egress 1", &producer), 0);
    assert_false(ledger_written(p->ledger, producer, &epoch, &number));
    sync_fails = false;
    flush(p);
    assert_true(ledger_written(p->ledger, producer, &epoch, &number));
    assert_lines(p->dir, "\"kind\":\"decision\"", 1);
    must_be_good(p->dir);
}

/* ---- kill -9 ---- */

/* Writes records until it is killed; numbers are told over the pipe once they are durable. */
static void write_until_killed(const char *path, uint64_t epoch, int out) {
    struct place p = {.dir = open(path, O_RDONLY | O_DIRECTORY)};
    struct ledger_settings s = {.file_bytes = 64 * 1024, .durable = epoch % 2 == 0};
    if (ledger_open(p.dir, WALL, 1, &p.ledger) != 0)
        _exit(1);
    ledger_set(p.ledger, &s);
    for (uint64_t i = 1;; i++) {
        if (take(&p, "egress 1", epoch, i) != 0)
            _exit(2);
        if (i % 5 == 0 && ledger_flush(p.ledger, WALL) != 0)
            _exit(3);
        if (i % 40 == 0 && ledger_sign(p.ledger, WALL) != 0)
            _exit(4);
        if (i % 5 == 0 && write(out, &i, sizeof i) != sizeof i)
            _exit(5);
    }
}

static void ad_05_a_writer_killed_at_any_moment_loses_nothing_that_was_flushed(void **state) {
    struct place *p = *state;
    unsigned seed = (unsigned)time(NULL);
    ledger_free(p->ledger);
    p->ledger = NULL;
    print_message("seed %u\n", seed);
    srand(seed);
    for (uint64_t round = 1; round <= 60; round++) {
        int fds[2];
        uint64_t told = 0, n;
        assert_int_equal(pipe(fds), 0);
        pid_t child = fork();
        if (child == 0) {
            close(fds[0]);
            write_until_killed(p->path, round, fds[1]);
        }
        close(fds[1]);
        /* Not before it has written something, then at a random moment. */
        assert_int_equal(read(fds[0], &told, sizeof told), sizeof told);
        usleep((useconds_t)(rand() % 3000));
        kill(child, SIGKILL);
        int status;
        waitpid(child, &status, 0);
        assert_true(WIFSIGNALED(status));
        while (read(fds[0], &n, sizeof n) == sizeof n)
            told = n;
        close(fds[0]);
        struct verify_report r = verified(p->dir, NULL);
        if (!r.good)
            fail_msg("round %llu: %s (%s:%llu)", (unsigned long long)round, r.text, r.file,
                     (unsigned long long)r.line);
        char line[96];
        snprintf(line, sizeof line, "\"n\":%llu,\"epoch\":\"%016llx\"", (unsigned long long)told,
                 (unsigned long long)round);
        assert_true(lines_with(p->dir, line) >= 1);
    }
    place_start(p);
    flush(p);
    assert_lines(p->dir, "\"event\":\"set_aside\"", 0);
    assert_lines(p->dir, "\"event\":\"head_mismatch\"", 0);
    must_be_good(p->dir);
}

/* ---- speed ---- */

static void many_records_a_second_are_taken(void **state) {
    struct place *p = *state;
    struct buf packet;
    struct timespec from, to;
    size_t producer;
    const uint64_t rounds = 20000;
    make_packet("egress 1", 7, 1, "api.example.com", &packet);
    size_t head = 1 + 8 + 8 + 4 + strlen("egress 1");
    buf_put_u8(&packet, FIELD_PATH);
    buf_put_block(&packet, VIEW("/v1/items/1234567/comments"));
    buf_put_u8(&packet, FIELD_SANDBOX);
    buf_put_block(&packet, VIEW("worker-1"));
    buf_put_u8(&packet, FIELD_STATUS);
    buf_put_u64(&packet, 200);
    buf_patch_u32(&packet, head, (uint32_t)(buf_len(&packet) - head - 4));
    assert_int_equal(ledger_producer(p->ledger, "egress 1", &producer), 0);
    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &from);
    for (uint64_t i = 1; i <= rounds; i++) {
        for (int k = 0; k < 8; k++)
            packet.p[1 + k] = (uint8_t)(i >> (56 - 8 * k));
        if (ledger_take(p->ledger, producer, buf_view(&packet)) != 0)
            fail_msg("record %llu", (unsigned long long)i);
        if (i % 64 == 0)
            flush(p);
    }
    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &to);
    double us = ((double)(to.tv_sec - from.tv_sec) * 1e9 + (double)(to.tv_nsec - from.tv_nsec)) /
                1e3 / (double)rounds;
    print_message("%.2f us of CPU a record\n", us);
    assert_true(us < 1000); /* far above any real figure: only a mistake of kind shows */
    buf_free(&packet);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        WITH_PLACE(au_01_a_full_disk_drops_nothing_and_heals_by_itself),
        WITH_PLACE(au_01_room_in_memory_ends_before_a_record_could_be_lost),
        WITH_PLACE(au_01_records_that_a_failed_sync_may_have_lost_are_named),
        WITH_PLACE(au_01_a_durable_record_counts_only_once_its_sync_succeeded),
        WITH_PLACE(ad_05_a_writer_killed_at_any_moment_loses_nothing_that_was_flushed),
        WITH_PLACE(many_records_a_second_are_taken),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
