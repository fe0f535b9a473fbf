#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "run/host_sockets.h"

#include <stdlib.h>
#include <sys/socket.h>
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
    struct buf out;
    (void)state;
    buf_init(&out, 4096);
    host_sockets_read(view_of(table, sizeof table - 1), &out);
    CHECK(&out, "/run/docker.sock\0/home/a b/agent");
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

static void a_socket_that_is_bound_now_is_found(void **state) {
    char path[] = "/tmp/host-sockets-XXXXXX";
    struct sockaddr_un at = {.sun_family = AF_UNIX};
    struct buf out;
    (void)state;
    assert_non_null(mkdtemp(path));
    strcat(strcpy(at.sun_path, path), "/s");
    int fd = socket(AF_UNIX, SOCK_STREAM, 0);
    assert_int_equal(bind(fd, (struct sockaddr *)&at, sizeof at), 0);
    buf_init(&out, 1 << 20);
    assert_int_equal(host_sockets(&out), 0);
    assert_true(view_search(buf_view(&out), view_of(at.sun_path, strlen(at.sun_path) + 1)) <
                buf_len(&out));
    buf_free(&out);
    close(fd);
    unlink(at.sun_path);
    rmdir(path);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(bound_sockets_are_read_from_the_kernels_table),
        cmocka_unit_test(variables_name_sockets_in_many_ways),
        cmocka_unit_test(a_socket_that_is_bound_now_is_found),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
