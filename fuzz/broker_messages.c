/*
 * A hostile egress's byte stream into the broker: what it sends is malformed,
 * refused or, with the right placeholder of its own sandbox, answered. The
 * vault is a real one, whose files are unlinked once it is open.
 */
#include "base/log.h"
#include "base/secret.h"
#include "broker/issue.h"
#include "broker/lend.h"
#include "policy/bundle.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

enum { INPUT_MAX = 65536 };

static struct loop *loop;
static struct lender *lender;
static struct custody custody;
static int audit;

static const char policy_text[] = "service demo-api {\n"
                                  "    host api.example.com\n"
                                  "    credential demo { in header authorization scheme bearer }\n"
                                  "    operation every { * /** }\n"
                                  "}\n"
                                  "sandbox worker { grant demo-api all }\n";

static void require(bool ok) {
    if (!ok)
        abort();
}

static void ignore_bad(void *ctx, uint32_t lane) {
    (void)ctx;
    (void)lane;
}

static void open_vault(void) {
    static const uint8_t kek[SEAL_KEY_SIZE] = {1};
    char directory[] = "/tmp/exeat-fuzz-XXXXXX", path[64];
    require(mkdtemp(directory) != NULL);
    require(vault_open(directory, kek, &custody.vault, custody.why) == 0);
    require(vault_add(custody.vault, VIEW("demo"), VIEW(""), VIEW("0123456789abcdef"), 1) == 0);
    /* The seeds present the placeholder "p". */
    struct vault_placeholder p = {.credential = "demo",
                                  .secret_id = vault_inventory(custody.vault)->secrets[0].id};
    struct vault_sandbox s = {.name = "worker", .placeholders = &p, .n = 1};
    digest_sha256(VIEW("p"), p.fingerprint);
    require(vault_put_sandbox(custody.vault, &s) == 0);
    snprintf(path, sizeof path, "%s/vault.db", directory);
    unlink(path);
    snprintf(path, sizeof path, "%s/vault.head", directory);
    unlink(path);
    rmdir(directory);
}

static void open_mandate(void) {
    struct bundle b = {.policy_file = VIEW("policy"), .policy_text = view_str(policy_text)};
    struct lane_info lane = {1, false, VIEW("worker"), false, false};
    struct buf lanes, text;
    buf_init(&lanes, 4096);
    buf_init(&text, 1 << 20);
    limits_default(&b.limits);
    bundle_put_lane(&lanes, &lane);
    b.lanes = buf_view(&lanes);
    bundle_write(&b, &text);
    require(mandate_new(1, buf_view(&text), &custody.mandate) == 0);
    buf_free(&lanes);
    buf_free(&text);
}

static void start(void) {
    int fds[2];
    log_open("fuzz", LOG_FATAL);
    require(secret_arena_open(2 << 20) == 0);
    loop = loop_new();
    open_vault();
    open_mandate();
    custody.journal = journal_new(loop);
    require(socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_NONBLOCK, 0, fds) == 0);
    require(journal_attach(custody.journal, fds[1]) == 0);
    audit = fds[0];
    lender = lender_new(loop, &custody, ignore_bad, NULL);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    static char packet[32768];
    int fds[2];
    if (!loop)
        start();
    if (size > INPUT_MAX)
        return 0;
    require(channel_pair(fds) == 0);
    require(lender_add(lender, 1, fds[1]) == 0);
    require(write(fds[0], data, size) == (ssize_t)size);
    shutdown(fds[0], SHUT_WR);
    while (lender_lanes(lender) > 0)
        require(loop_turn(loop) == 0);
    close(fds[0]);
    while (recv(audit, packet, sizeof packet, 0) > 0)
        ;
    return 0;
}
