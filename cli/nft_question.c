#include "cli/nft_question.h"

#include "base/error.h"

#include <assert.h>
#include <errno.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

enum { ANSWER_SIZE = 1 << 16 };

void question_begin(struct question *q, uint16_t type, uint16_t flags) {
    memset(q, 0, sizeof *q);
    q->header = (struct nlmsghdr *)q->at;
    *q->header = (struct nlmsghdr){
        .nlmsg_len = NLMSG_HDRLEN, .nlmsg_type = type, .nlmsg_flags = NLM_F_REQUEST | flags};
}

void *question_put(struct question *q, size_t n) {
    void *at = q->at + NLMSG_ALIGN(q->header->nlmsg_len);
    q->header->nlmsg_len = (uint32_t)(NLMSG_ALIGN(q->header->nlmsg_len) + n);
    assert(q->header->nlmsg_len <= sizeof q->at);
    return at;
}

void question_put_attribute(struct question *q, uint16_t type, const void *value, size_t n) {
    struct rtattr *a = question_put(q, RTA_LENGTH(n));
    a->rta_type = type;
    a->rta_len = (uint16_t)RTA_LENGTH(n);
    memcpy(RTA_DATA(a), value, n);
}

/* 1: one of the messages is it, 0: none is. More of them may follow until *end. */
static int look_at(const struct nlmsghdr *m, size_t n, answer_test *test, void *ctx, bool *end) {
    for (; NLMSG_OK(m, n); m = NLMSG_NEXT(m, n)) {
        if (m->nlmsg_type == NLMSG_ERROR) {
            errno = -((const struct nlmsgerr *)NLMSG_DATA(m))->error;
            return ERR_SYSTEM;
        }
        *end = m->nlmsg_type == NLMSG_DONE || !(m->nlmsg_flags & NLM_F_MULTI);
        if (m->nlmsg_type != NLMSG_DONE && test(m, ctx))
            return 1;
    }
    return 0;
}

int question_ask(const struct question *q, answer_test *test, void *ctx) {
    static _Alignas(struct nlmsghdr) uint8_t answer[ANSWER_SIZE];
    bool end = false;
    int result = ERR_SYSTEM, s = socket(AF_NETLINK, SOCK_RAW | SOCK_CLOEXEC, NETLINK_ROUTE);
    if (s < 0)
        return ERR_SYSTEM;
    if (send(s, q->at, q->header->nlmsg_len, 0) == (ssize_t)q->header->nlmsg_len)
        result = 0;
    while (result == 0 && !end) {
        ssize_t n = recv(s, answer, sizeof answer, 0);
        result = n <= 0 ? ERR_SYSTEM : look_at((void *)answer, (size_t)n, test, ctx, &end);
    }
    int why = errno;
    close(s);
    errno = why;
    return result;
}

const struct rtattr *question_attribute(const void *attributes, size_t n, uint16_t type) {
    for (const struct rtattr *a = attributes; RTA_OK(a, n); a = RTA_NEXT(a, n))
        if ((a->rta_type & NLA_TYPE_MASK) == type)
            return a;
    return NULL;
}

uint32_t question_number(const struct nlmsghdr *m, size_t head, uint16_t type) {
    uint32_t number = 0;
    if (m->nlmsg_len < NLMSG_SPACE(head))
        return 0;
    const struct rtattr *a = question_attribute((const uint8_t *)m + NLMSG_SPACE(head),
                                                m->nlmsg_len - NLMSG_SPACE(head), type);
    if (a && RTA_PAYLOAD(a) == sizeof number)
        memcpy(&number, RTA_DATA(a), sizeof number);
    return number;
}
