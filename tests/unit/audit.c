#include "tests/unit/log_folder.h"
#include "tests/unit/parent_part.h"

#include "audit/audit.h"
#include "audit/record.h"
#include "base/log.h"
#include "base/rights.h"

#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/wait.h>

/* audit in a forked child, this test as its parent; everything but the narrowing of rights. */

struct world {
    char path[64];
    int dir;
    pid_t child;
    struct loop *loop;
    struct channel *channel;
    bool up, ready;
    unsigned bad_peers;
    char status[1024];
    int head_code;
    char head[1024]; /* what was answered to the ask for it */
};

static int on_up(void *ctx, struct channel *ch, struct message *m) {
    struct world *w = ctx;
    (void)ch;
    (void)m;
    w->up = true;
    return 0;
}

static int on_ready(void *ctx, struct channel *ch, struct message *m) {
    struct world *w = ctx;
    (void)ch;
    (void)m;
    w->ready = true;
    return 0;
}

static int on_bad_peer(void *ctx, struct channel *ch, struct message *m) {
    struct world *w = ctx;
    (void)ch;
    (void)m;
    w->bad_peers++;
    return 0;
}

static int on_status(void *ctx, struct channel *ch, struct message *m) {
    struct world *w = ctx;
    struct reader r = reader_of(m->body);
    (void)ch;
    return view_cstr(read_block(&r, sizeof w->status), w->status, sizeof w->status);
}

static int on_head(void *ctx, struct channel *ch, struct message *m) {
    struct world *w = ctx;
    struct reader r = reader_of(m->body);
    (void)ch;
    assert_int_equal(m->id, 7);
    w->head_code = -(int)read_u8(&r);
    return view_cstr(read_block(&r, sizeof w->head), w->head, sizeof w->head);
}

static void on_closed(void *ctx, struct channel *ch, int why) {
    (void)ctx;
    (void)ch;
    (void)why;
}

static int on_committed(void *ctx, struct channel *ch, struct message *m) {
    (void)ctx;
    (void)ch;
    (void)m;
    return 0;
}

static const struct channel_rule rules[] = {
    {ROLE_UP, 0, 1024, on_up, "up"},
    {ROLE_READY, 0, 16, on_ready, "ready"},
    {ROLE_COMMITTED, 0, 0, on_committed, "committed"},
    {ROLE_BAD_PEER, 0, 16, on_bad_peer, "bad peer"},
    {ROLE_STATUS, 0, 1024, on_status, "status"},
    {ROLE_HEAD, 0, 1024, on_head, "head"},
};

static void world_start(struct world *w, rlim_t file_size) {
    int fds[2];
    assert_int_equal(channel_pair(fds), 0);
    w->up = w->ready = false;
    w->child = fork();
    if (w->child == 0) {
        struct role_args args = {.role = ROLE_AUDIT, .directory = w->path};
        struct rlimit limit;
        int dir = open(w->path, O_RDONLY | O_DIRECTORY);
        int high = fcntl(dir, F_DUPFD, 20);
        if (file_size) {
            getrlimit(RLIMIT_FSIZE, &limit);
            limit.rlim_cur = file_size;
            setrlimit(RLIMIT_FSIZE, &limit);
        }
        signal(SIGXFSZ, SIG_IGN);
        close(fds[0]); /* its parent's end: the end of the parent must show */
        dup2(fds[1], PARENT_FD);
        log_open("audit", LOG_FATAL);
        /* A call that is not on audit's page kills it. */
        _exit(rights_enter(&args) == 0 ? audit_serve(&args, high) : 1);
    }
    close(fds[1]);
    w->channel = channel_new(w->loop, fds[0], rules, sizeof rules / sizeof *rules, 0, on_closed, w);
    WAIT_FOR(w->loop, w->up);
}

static void world_open(struct world *w) {
    *w = (struct world){0};
    w->dir = log_folder_make(w->path);
    w->loop = loop_new();
}

static void world_kill(struct world *w) {
    kill(w->child, SIGKILL);
    waitpid(w->child, NULL, 0);
    channel_free(w->channel);
    w->channel = NULL;
}

static void world_stop(struct world *w) {
    int status = -1;
    channel_send(w->channel, PARENT_STOP, 0, 0, (struct view){NULL, 0});
    channel_flush(w->channel);
    waitpid(w->child, &status, 0);
    assert_true(WIFEXITED(status));
    assert_int_equal(WEXITSTATUS(status), 0);
    channel_free(w->channel);
    w->channel = NULL;
}

static void world_close(struct world *w) {
    log_folder_remove(w->path, w->dir);
    loop_free(w->loop);
}

/* ---- producers ---- */

struct producer {
    enum role role;
    uint32_t lane;
    const char *name;
    struct audit_writer *writer;
    int reader; /* kept, as the parent does */
    struct record record;
};

static void producer_open(struct producer *p, const char *name, uint32_t lane, uint64_t epoch) {
    int fds[2];
    assert_int_equal(socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, fds), 0);
    *p = (struct producer){.role = ROLE_EGRESS, .lane = lane, .name = name, .reader = fds[1]};
    p->writer = audit_writer_new(fds[0], name, epoch);
    assert_non_null(p->writer);
}

static void producer_join(struct producer *p, struct world *w) {
    parent_sends_peer(w->channel, p->role, p->lane, view_str(p->name), dup(p->reader));
    parent_turn(w->loop);
}

static int producer_write(struct producer *p, const char *host) {
    record_begin(&p->record, RECORD_DECISION, clock_wall(), clock_mono());
    record_str(&p->record, FIELD_HOST, host);
    return audit_write(p->writer, &p->record);
}

static void producer_close(struct producer *p) {
    audit_writer_free(p->writer);
    close(p->reader);
    record_free(&p->record);
}

/* ---- what the parent sends ---- */

static void use_generation(struct world *w, uint32_t number, bool durable, uint64_t file_bytes) {
    struct bundle b = {.policy_file = VIEW("policy"), .audit_durable = durable};
    limits_default(&b.limits);
    b.limits.v[LIMIT_AUDIT_FILE] = file_bytes;
    w->ready = false;
    parent_sends_generation(w->channel, number, &b);
    WAIT_FOR(w->loop, w->ready);
    channel_send(w->channel, PARENT_COMMIT, 0, number, (struct view){NULL, 0});
    parent_turn(w->loop);
}

/* ---- tests ---- */

static void records_of_producers_reach_the_disk(void **state) {
    (void)state;
    struct world w;
    struct producer a, b;
    world_open(&w);
    world_start(&w, 0);
    producer_open(&a, "egress 1", 1, 11);
    producer_open(&b, "egress 2", 2, 12);
    assert_int_equal(producer_write(&a, "before.example"), 0); /* also what was written before */
    producer_join(&a, &w);
    producer_join(&b, &w);
    for (int i = 0; i < 1000; i++) {
        while (producer_write(&a, "one.example") != 0)
            parent_turn(w.loop);
        while (producer_write(&b, "two.example") != 0)
            parent_turn(w.loop);
    }
    WAIT_FOR(w.loop, lines_with(w.dir, ".example") == 2001);
    world_stop(&w);
    assert_lines(w.dir, "\"event\":\"stopped\"", 1);
    assert_lines(w.dir, "\"event\":\"gap\"", 0);
    assert_true(lines_with(w.dir, "\"kind\":\"head\"") >= 1);
    must_be_good(w.dir);
    producer_close(&a);
    producer_close(&b);
    world_close(&w);
}

static void ad_05_a_killed_audit_is_continued_without_a_gap(void **state) {
    (void)state;
    struct world w;
    struct producer a;
    world_open(&w);
    world_start(&w, 0);
    producer_open(&a, "egress 1", 1, 11);
    producer_join(&a, &w);
    for (int i = 0; i < 10; i++)
        assert_int_equal(producer_write(&a, "first.example"), 0);
    WAIT_FOR(w.loop, lines_with(w.dir, "first.example") == 10);
    world_kill(&w);
    for (int i = 0; i < 10; i++)
        assert_int_equal(producer_write(&a, "meanwhile.example"), 0); /* the kernel holds them */
    world_start(&w, 0);
    producer_join(&a, &w);
    WAIT_FOR(w.loop, lines_with(w.dir, "meanwhile.example") == 10);
    world_stop(&w);
    assert_lines(w.dir, "\"event\":\"gap\"", 0);
    must_be_good(w.dir);
    producer_close(&a);
    world_close(&w);
}

static void ad_05_kills_under_load_lose_and_repeat_nothing(void **state) {
    (void)state;
    struct world w;
    struct producer a;
    uint64_t epoch = 11, written = 0;
    unsigned seed = (unsigned)getpid();
    print_message("seed %u\n", seed);
    srand(seed);
    world_open(&w);
    producer_open(&a, "egress 1", 1, epoch);
    for (int round = 0; round < 30; round++) {
        world_start(&w, 0);
        producer_join(&a, &w);
        int n = rand() % 3000;
        for (int i = 0; i < n; i++) {
            while (producer_write(&a, "load.example") != 0)
                parent_turn(w.loop);
            written++;
            if (rand() % 500 == 0) { /* its successor writes to the same socket */
                int fd = dup(audit_writer_fd(a.writer));
                audit_writer_free(a.writer);
                a.writer = audit_writer_new(fd, a.name, ++epoch);
            }
        }
        world_kill(&w);
    }
    world_start(&w, 0);
    producer_join(&a, &w);
    assert_int_equal(producer_write(&a, "last.example"), 0);
    WAIT_FOR(w.loop, lines_with(w.dir, "last.example") == 1);
    world_stop(&w);
    must_be_good(w.dir);
    assert_lines(w.dir, "load.example", written);
    assert_lines(w.dir, "\"event\":\"gap\"", 0);
    producer_close(&a);
    world_close(&w);
}

static void a_producer_that_breaks_the_contract_is_dropped_and_the_others_go_on(void **state) {
    (void)state;
    struct world w;
    struct producer good;
    static const char *const names[] = {"egress 9", "egress 9", "egress 9", "egress 9"};
    world_open(&w);
    world_start(&w, 0);
    producer_open(&good, "egress 1", 1, 11);
    producer_join(&good, &w);
    for (unsigned i = 0; i < 4; i++) {
        struct producer bad;
        static uint8_t big[RECORD_PACKET_SIZE + 100];
        producer_open(&bad, names[i], 9, 20 + i);
        producer_join(&bad, &w);
        int fd = audit_writer_fd(bad.writer);
        if (i == 0)
            assert_int_equal(write(fd, "nonsense", 8), 8);
        else if (i == 1)
            assert_int_equal(write(fd, big, sizeof big), sizeof big);
        else if (i == 2)
            assert_int_equal(write(fd, "", 0), 0);
        else { /* another's name */
            struct audit_writer *other = audit_writer_new(dup(fd), "egress 1", 11);
            record_begin(&bad.record, RECORD_DECISION, 1, 1);
            assert_int_equal(audit_write(other, &bad.record), 0);
            audit_writer_free(other);
        }
        WAIT_FOR(w.loop, w.bad_peers == i + 1);
        producer_close(&bad);
    }
    assert_int_equal(producer_write(&good, "good.example"), 0);
    WAIT_FOR(w.loop, lines_with(w.dir, "good.example") == 1);
    assert_lines(w.dir, "\"event\":\"bad_producer\"", 4);
    world_stop(&w);
    must_be_good(w.dir);
    producer_close(&good);
    world_close(&w);
}

static enum audit_notice_kind next_notice(struct world *w, struct producer *p, uint64_t *number) {
    struct audit_notice n = {0};
    int result;
    for (int i = 0; (result = audit_writer_read(p->writer, &n)) == ERR_AGAIN && i < 10000; i++)
        parent_turn(w->loop);
    assert_int_equal(result, 0);
    if (number)
        *number = n.number;
    return n.kind;
}

/* While it is down it says so again and again. */
static void wait_for_up(struct world *w, struct producer *p) {
    while (next_notice(w, p, NULL) != AUDIT_UP)
        ;
}

static void set_file_limit(struct world *w, rlim_t size) {
    struct rlimit limit;
    assert_int_equal(prlimit(w->child, RLIMIT_FSIZE, NULL, &limit), 0);
    limit.rlim_cur = size ? size : limit.rlim_max;
    assert_int_equal(prlimit(w->child, RLIMIT_FSIZE, &limit, NULL), 0);
}

static void au_01_a_full_disk_stops_producers_and_heals_without_loss(void **state) {
    (void)state;
    struct world w;
    struct producer a;
    struct stat st;
    unsigned written = 1;
    world_open(&w);
    world_start(&w, 0);
    producer_open(&a, "egress 1", 1, 11);
    producer_join(&a, &w);
    assert_int_equal(next_notice(&w, &a, NULL), AUDIT_UP);
    assert_int_equal(producer_write(&a, "disk.example"), 0);
    WAIT_FOR(w.loop, lines_with(w.dir, "disk.example") == 1);
    assert_int_equal(fstatat(w.dir, SEGMENT_CURRENT, &st, 0), 0);
    set_file_limit(&w, (rlim_t)st.st_size + 100);
    assert_int_equal(producer_write(&a, "disk.example"), 0);
    written++;
    assert_int_equal(next_notice(&w, &a, NULL), AUDIT_DOWN);
    assert_false(audit_writer_usable(a.writer));
    /* It reads no more: the kernel's queue fills, and then the writer is refused. */
    while (producer_write(&a, "disk.example") == 0)
        written++;
    assert_int_equal(producer_write(&a, "disk.example"), ERR_AGAIN);
    /* Whoever comes now is told at once. */
    struct producer late;
    producer_open(&late, "egress 2", 2, 12);
    producer_join(&late, &w);
    assert_int_equal(next_notice(&w, &late, NULL), AUDIT_DOWN);
    set_file_limit(&w, 0);
    wait_for_up(&w, &a);
    assert_true(audit_writer_usable(a.writer));
    wait_for_up(&w, &late);
    WAIT_FOR(w.loop, lines_with(w.dir, "disk.example") == written);
    world_stop(&w);
    assert_lines(w.dir, "\"event\":\"was_down\"", 1);
    assert_lines(w.dir, "\"event\":\"gap\"", 0);
    must_be_good(w.dir);
    producer_close(&a);
    producer_close(&late);
    world_close(&w);
}

static void au_01_a_log_that_cannot_be_opened_is_tried_again(void **state) {
    (void)state;
    struct world w;
    struct producer a;
    world_open(&w);
    world_start(&w, 1); /* not even the signing key can be written */
    producer_open(&a, "egress 1", 1, 11);
    producer_join(&a, &w);
    assert_int_equal(next_notice(&w, &a, NULL), AUDIT_DOWN);
    assert_int_equal(producer_write(&a, "late.example"), 0);
    /* A successor on the same socket hears it, too. */
    struct producer again = a;
    again.writer = audit_writer_new(dup(audit_writer_fd(a.writer)), "egress 1", 12);
    assert_int_equal(next_notice(&w, &again, NULL), AUDIT_DOWN);
    audit_writer_free(again.writer);
    set_file_limit(&w, 0);
    wait_for_up(&w, &a);
    WAIT_FOR(w.loop, lines_with(w.dir, "late.example") == 1);
    world_stop(&w);
    must_be_good(w.dir);
    producer_close(&a);
    world_close(&w);
}

/* A real file system that is really full, where this test may mount one. */
static void au_01_a_tiny_file_system_fills_and_heals_without_loss(void **state) {
    (void)state;
    struct world w;
    struct producer a;
    char ballast[96];
    static char big[150000];
    unsigned written = 0;
    world_open(&w);
    if (mount("none", w.path, "tmpfs", 0, "size=256k") != 0) {
        world_close(&w);
        skip();
    }
    close(w.dir);
    w.dir = open(w.path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    snprintf(ballast, sizeof ballast, "%s/ballast", w.path);
    int fd = open(ballast, O_WRONLY | O_CREAT, 0600);
    assert_int_equal(write(fd, big, sizeof big), sizeof big);
    close(fd);
    world_start(&w, 0);
    producer_open(&a, "egress 1", 1, 11);
    producer_join(&a, &w);
    assert_int_equal(next_notice(&w, &a, NULL), AUDIT_UP);
    struct pollfd news = {audit_writer_fd(a.writer), POLLIN, 0};
    while (poll(&news, 1, 0) == 0) {
        if (producer_write(&a, "tiny.example") == 0)
            written++;
        parent_turn(w.loop);
    }
    assert_int_equal(next_notice(&w, &a, NULL), AUDIT_DOWN);
    assert_int_equal(unlink(ballast), 0);
    wait_for_up(&w, &a);
    WAIT_FOR(w.loop, lines_with(w.dir, "tiny.example") == written);
    world_stop(&w);
    must_be_good(w.dir);
    producer_close(&a);
    close(w.dir);
    assert_int_equal(umount2(w.path, MNT_DETACH), 0);
    w.dir = open(w.path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    world_close(&w);
}

static void durable_audit_tells_what_is_on_the_disk(void **state) {
    (void)state;
    struct world w;
    struct producer a;
    uint64_t number = 0;
    world_open(&w);
    world_start(&w, 0);
    use_generation(&w, 1, true, 64 << 20);
    producer_open(&a, "egress 1", 1, 11);
    producer_join(&a, &w);
    assert_int_equal(next_notice(&w, &a, NULL), AUDIT_UP);
    for (int i = 0; i < 20; i++)
        assert_int_equal(producer_write(&a, "durable.example"), 0);
    while (number < 20)
        assert_int_equal(next_notice(&w, &a, &number), AUDIT_DURABLE);
    assert_int_equal(audit_writer_durable(a.writer), 20);
    assert_lines(w.dir, "durable.example", 20);
    /* A successor tells what its predecessor did not get to tell. */
    world_kill(&w);
    world_start(&w, 0);
    use_generation(&w, 1, true, 64 << 20);
    producer_join(&a, &w);
    assert_int_equal(next_notice(&w, &a, NULL), AUDIT_UP);
    assert_int_equal(next_notice(&w, &a, &number), AUDIT_DURABLE);
    assert_int_equal(number, 20);
    world_stop(&w);
    assert_lines(w.dir, "\"event\":\"generation_in_use\"", 2);
    must_be_good(w.dir);
    producer_close(&a);
    world_close(&w);
}

static void a_full_file_is_rotated_and_records_go_on(void **state) {
    (void)state;
    struct world w;
    struct producer a;
    struct segment_list l;
    world_open(&w);
    world_start(&w, 0);
    use_generation(&w, 1, false, 64 << 10);
    producer_open(&a, "egress 1", 1, 11);
    producer_join(&a, &w);
    for (int i = 0; i < 1000; i++)
        while (producer_write(&a, "rotated.example") != 0)
            parent_turn(w.loop);
    world_stop(&w);
    assert_int_equal(segment_list_read(w.dir, &l), 0);
    assert_true(l.n >= 3);
    segment_list_free(&l);
    assert_lines(w.dir, "rotated.example", 1000);
    must_be_good(w.dir);
    producer_close(&a);
    world_close(&w);
}

static void a_restarted_producer_is_read_after_what_its_predecessor_left(void **state) {
    (void)state;
    struct world w;
    struct producer old, new;
    world_open(&w);
    world_start(&w, 0);
    producer_open(&old, "egress 1", 1, 11);
    producer_open(&new, "egress 1", 1, 12);
    /* More than audit reads in a turn, where this test may make the queue long enough. */
    int room = 8 << 20;
    size_t left = 0;
    setsockopt(audit_writer_fd(old.writer), SOL_SOCKET, SO_SNDBUFFORCE, &room, sizeof room);
    while (left < 2000 && producer_write(&old, "old.example") == 0)
        left++;
    assert_true(left > 100);
    assert_int_equal(producer_write(&new, "new.example"), 0);
    producer_join(&old, &w);
    producer_join(&new, &w);
    WAIT_FOR(w.loop, lines_with(w.dir, "new.example") == 1);
    world_stop(&w);
    assert_lines(w.dir, "old.example", left);
    assert_lines(w.dir, "\"event\":\"producer_restarted\"", 1);
    assert_lines(w.dir, "\"event\":\"gap\"", 0);
    must_be_good(w.dir);
    producer_close(&old);
    producer_close(&new);
    world_close(&w);
}

static void status_tells_where_the_chain_stands(void **state) {
    (void)state;
    struct world w;
    world_open(&w);
    world_start(&w, 0);
    channel_send(w.channel, PARENT_STATUS_ASK, 1, 0, (struct view){NULL, 0});
    WAIT_FOR(w.loop, w.status[0]);
    assert_non_null(strstr(w.status, "\"usable\":true"));
    assert_non_null(strstr(w.status, "\"seq\":"));
    world_stop(&w);
    world_close(&w);
}

static void a_head_covers_what_was_written_before_it_was_asked_for(void **state) {
    (void)state;
    struct world w;
    struct chain_head first, second;
    world_open(&w);
    world_start(&w, 0);
    channel_send(w.channel, PARENT_HEAD_ASK, 7, 0, VIEW(""));
    WAIT_FOR(w.loop, w.head[0]);
    assert_int_equal(w.head_code, 0);
    assert_int_equal(chain_head_read(view_str(w.head), &first), 0);
    struct producer p;
    producer_open(&p, "egress 1", 1, 7);
    producer_join(&p, &w);
    for (int i = 0; i < 5; i++)
        assert_int_equal(producer_write(&p, "a.test"), 0);
    w.head[0] = 0;
    channel_send(w.channel, PARENT_HEAD_ASK, 7, 0, VIEW(""));
    WAIT_FOR(w.loop, w.head[0]);
    assert_int_equal(chain_head_read(view_str(w.head), &second), 0);
    assert_true(second.seq >= first.seq + 1 + 5);
    producer_close(&p);
    world_stop(&w);
    world_close(&w);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(records_of_producers_reach_the_disk),
        cmocka_unit_test(ad_05_a_killed_audit_is_continued_without_a_gap),
        cmocka_unit_test(ad_05_kills_under_load_lose_and_repeat_nothing),
        cmocka_unit_test(a_producer_that_breaks_the_contract_is_dropped_and_the_others_go_on),
        cmocka_unit_test(au_01_a_full_disk_stops_producers_and_heals_without_loss),
        cmocka_unit_test(au_01_a_log_that_cannot_be_opened_is_tried_again),
        cmocka_unit_test(au_01_a_tiny_file_system_fills_and_heals_without_loss),
        cmocka_unit_test(durable_audit_tells_what_is_on_the_disk),
        cmocka_unit_test(a_full_file_is_rotated_and_records_go_on),
        cmocka_unit_test(a_restarted_producer_is_read_after_what_its_predecessor_left),
        cmocka_unit_test(status_tells_where_the_chain_stands),
        cmocka_unit_test(a_head_covers_what_was_written_before_it_was_asked_for),
    };
    signal(SIGPIPE, SIG_IGN);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
