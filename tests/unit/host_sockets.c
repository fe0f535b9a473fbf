#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "run/host_sockets.h"

#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

static void check(const struct buf *out, const char *wanted, size_t n) {
    assert_true(buf_ok(out));
    assert_int_equal(buf_len(out), n);
    assert_memory_equal(buf_view(out).p, wanted, n);
}

/* The literal's last NUL is that of the last path. */
#define CHECK(out, wanted) check(out, wanted, sizeof(wanted))

static void bound_sockets_are_read_from_the_kernels_table(void **state) {
    static const char table[] =
        "Num       RefCount Protocol Flags    Type St Inode Path\n"
        "ffff8881: 00000002 00000000 00010000 0001 01 12345 /run/docker.sock\n"
        "ffff8882: 00000003 00000000 00000000 0001 03 23456\n"
        "ffff8883: 00000002 00000000 00010000 0001 01 34567 @abstract\n"
        "ffff8884: 00000002 00000000 00000000 0002 01     7 /home/a b/agent\n"
        "ffff8885: 00000002 00000000 00010000 0005 01 45678 relative";
    struct buf out, relative;
    (void)state;
    buf_init(&out, 4096);
    buf_init(&relative, 4096);
    host_sockets_read(view_of(table, sizeof table - 1), &out, &relative);
    CHECK(&out, "/run/docker.sock\0/home/a b/agent");
    CHECK(&relative, "relative");
    buf_free(&relative);
    buf_free(&out);
}

static void variables_name_sockets_in_many_ways(void **state) {
    static const char *const values[] = {
        "/tmp/ssh-x/agent.1",
        "unix:path=/run/user/1/bus,guid=1;unix:path=/b",
        "unix:///var/run/docker.sock",
        "tcp://127.0.0.1:2375",
        "/tmp/tmux-1/default,123,0",
        ":0",
        "",
    };
    struct buf out;
    (void)state;
    buf_init(&out, 4096);
    for (size_t i = 0; i < sizeof values / sizeof *values; i++)
        host_sockets_named(view_str(values[i]), &out);
    CHECK(&out, "/tmp/ssh-x/agent.1\0/run/user/1/bus\0/b\0/var/run/docker.sock\0"
                "/tmp/tmux-1/default");
    buf_free(&out);
}

/* Binds a socket at a name below folder; the descriptor. */
static int bound(const char *folder, const char *name) {
    struct sockaddr_un at = {.sun_family = AF_UNIX};
    snprintf(at.sun_path, sizeof at.sun_path, "%s%s", folder, name);
    int fd = socket(AF_UNIX, SOCK_STREAM, 0);
    assert_int_equal(bind(fd, (struct sockaddr *)&at, sizeof at), 0);
    return fd;
}

static void is_found(const char *folder, const char *name) {
    char path[64];
    struct buf out;
    int n = snprintf(path, sizeof path, "%s%s", folder, name);
    buf_init(&out, 1 << 20);
    assert_int_equal(host_sockets(&out, &out), 0);
    assert_true(view_search(buf_view(&out), view_of(path, (size_t)n + 1)) < buf_len(&out));
    buf_free(&out);
}

static void a_socket_that_is_bound_now_is_found(void **state) {
    char folder[] = "/tmp/host-sockets-XXXXXX", home[PATH_MAX], path[64], other[64];
    (void)state;
    assert_non_null(mkdtemp(folder));
    int fds[] = {bound(folder, "/s"), bound(folder, "/renamed"), bound(folder, "/linked"), -1};
    snprintf(path, sizeof path, "%s/renamed", folder);
    snprintf(other, sizeof other, "%s/other", folder);
    assert_int_equal(rename(path, other), 0);
    snprintf(path, sizeof path, "%s/linked", folder);
    snprintf(other, sizeof other, "%s/link", folder);
    assert_int_equal(link(path, other), 0);
    assert_non_null(getcwd(home, sizeof home));
    assert_int_equal(chdir(folder), 0);
    assert_int_equal(mkdir("below", 0700), 0);
    fds[3] = bound("below", "/relative");
    static const char *const names[] = {"/s", "/other", "/link", "/linked", "/below/relative"};
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        is_found(folder, names[i]);
        assert_int_equal(unlink(names[i] + 1), 0);
    }
    assert_int_equal(rmdir("below"), 0);
    assert_int_equal(chdir(home), 0);
    for (size_t i = 0; i < sizeof fds / sizeof *fds; i++)
        close(fds[i]);
    rmdir(folder);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(bound_sockets_are_read_from_the_kernels_table),
        cmocka_unit_test(variables_name_sockets_in_many_ways),
        cmocka_unit_test(a_socket_that_is_bound_now_is_found),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
