/*
 * What a launcher hears of exeatd at the attach socket, and what it and the processes of its sandbox hear of each other: any
 * bytes are a whole message or an error, and nobody waits for more than was sent.
 *
 * Input: a byte of enum what, then the bytes.
 */
#include "base/attach.h"
#include "fuzz/require.h"
#include "run/report.h"
#include "run/talk.h"

#include <stdlib.h>
#include <sys/socket.h>
#include <unistd.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

enum what {
    ATTACH_ANSWERED,
    ATTACH_ASKED,
    TALK_ENVIRONMENT,
    TALK_REPORT,
    TALK_STATUS,
    TALK_FD,
    WHATS
};

enum { INPUT_MAX = 65536 };

static void receive_answer(int fd) {
    struct attach_answer a;
    struct buf out;
    buf_init(&out, ATTACH_ANSWER_MAX);
    int result = attach_receive_answer(fd, &out, &a);
    if (result == 0)
        REQUIRE(a.err <= 0 && a.text.n + a.ca.n <= buf_len(&out));
    buf_free(&out);
}

static void receive_environment(int fd, size_t sent) {
    struct buf blocks;
    buf_init(&blocks, TALK_ENVIRONMENT_MAX);
    if (talk_receive_environment(fd, &blocks) == 0)
        REQUIRE(buf_len(&blocks) + sizeof(uint32_t) <= sent);
    buf_free(&blocks);
}

static void receive_report(int fd, size_t sent) {
    struct buf report;
    struct report_sum sum;
    buf_init(&report, REPORT_MAX);
    if (talk_receive_report(fd, &report) == 0) {
        REQUIRE(buf_len(&report) < sent);
        (void)!report_count(buf_view(&report), &sum);
    }
    buf_free(&report);
}

static void receive(enum what what, int fd, size_t sent) {
    int status;
    switch (what) {
    case ATTACH_ANSWERED:
        receive_answer(fd);
        break;
    case ATTACH_ASKED:
        (void)!attach_receive_ask(fd);
        break;
    case TALK_ENVIRONMENT:
        receive_environment(fd, sent);
        break;
    case TALK_REPORT:
        receive_report(fd, sent);
        break;
    case TALK_STATUS:
        REQUIRE((talk_receive_status(fd, &status) == 0) == (sent >= sizeof status));
        break;
    default:
        REQUIRE(talk_receive_fd(fd) == -1);
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    int fds[2];
    if (size < 2 || size > INPUT_MAX)
        return 0;
    enum what what = (enum what)(data[0] % WHATS);
    bool packets = what == ATTACH_ANSWERED || what == ATTACH_ASKED || what == TALK_REPORT;
    REQUIRE(socketpair(AF_UNIX, packets ? SOCK_SEQPACKET : SOCK_STREAM, 0, fds) == 0);
    REQUIRE(send(fds[1], data + 1, size - 1, MSG_DONTWAIT) == (ssize_t)size - 1);
    close(fds[1]);
    receive(what, fds[0], size - 1);
    close(fds[0]);
    return 0;
}
