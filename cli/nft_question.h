/*
 * Questions to the kernel about the network of this namespace, in rtnetlink(7): one request, and all of its answers.
 */
#ifndef CLI_NFT_QUESTION_H
#define CLI_NFT_QUESTION_H

#include "base/bytes.h"

#include <linux/rtnetlink.h>

enum { QUESTION_SIZE = 128 };

struct question {
    _Alignas(struct nlmsghdr) uint8_t at[QUESTION_SIZE];
    struct nlmsghdr *header;
};

/* True: this answer is what was looked for. */
typedef bool answer_test(const struct nlmsghdr *m, void *ctx);

/* type: RTM_GETROUTE, ...; flags: NLM_F_DUMP, or 0. */
void question_begin(struct question *q, uint16_t type, uint16_t flags);
/* Room of n zeros for a structure or an attribute. */
void *question_put(struct question *q, size_t n);
void question_put_attribute(struct question *q, uint16_t type, const void *value, size_t n);
/* 1: the test is true of one of the answers, and no other is read; 0: of none. ERR_SYSTEM, also for the kernel's refusal. */
MUST_USE int question_ask(const struct question *q, answer_test *test, void *ctx);

/* The attribute of that type among n bytes of them, or NULL. */
const struct rtattr *question_attribute(const void *attributes, size_t n, uint16_t type);
/* Of an answer whose attributes stand behind a structure of this size: a number of 32 bits; 0 if it has none. */
uint32_t question_number(const struct nlmsghdr *m, size_t head, uint16_t type);

#endif
