/*
 * A hostile egress's byte stream into the broker: what it sends is malformed,
 * refused or, with the right placeholder of its own sandbox, answered. The
 * vault is a real one.
 */
#include "base/log.h"
#include "base/openssl_memory.h"
#include "base/secret.h"
#include "broker/certificate.h"
#include "broker/issue.h"
#include "broker/lend.h"
#include "fuzz/folder.h"
#include "fuzz/require.h"
#include "policy/bundle.h"

#include <openssl/pem.h>
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
                                  "service shown {\n"
                                  "    host shown.example.com\n"
                                  "    upstream client-certificate us\n"
                                  "    operation every { * /** }\n"
                                  "}\n"
                                  "sandbox worker { grant demo-api all; grant shown all }\n";

static void ignore_bad(void *ctx, uint32_t lane) {
    (void)ctx;
    (void)lane;
}

static void put_text(BIO *from, struct buf *out) {
    char *p;
    long n = BIO_get_mem_data(from, &p);
    buf_put(out, view_of(p, (size_t)n));
    BIO_free(from);
}

/* With a key of its own, both as PEM. */
static void make_certificate(struct buf *pem, struct buf *key_pem) {
    X509 *x = X509_new();
    EVP_PKEY *key = EVP_EC_gen("P-256");
    BIO *certificate = BIO_new(BIO_s_mem()), *secret = BIO_new(BIO_s_mem());
    ASN1_INTEGER_set(X509_get_serialNumber(x), 1);
    X509_gmtime_adj(X509_getm_notBefore(x), -86400);
    X509_gmtime_adj(X509_getm_notAfter(x), 86400);
    X509_set_pubkey(x, key);
    REQUIRE(X509_sign(x, key, EVP_sha256()) > 0 && PEM_write_bio_X509(certificate, x) == 1);
    REQUIRE(PEM_write_bio_PKCS8PrivateKey(secret, key, NULL, NULL, 0, NULL, NULL) == 1);
    put_text(certificate, pem);
    put_text(secret, key_pem);
    X509_free(x);
    EVP_PKEY_free(key);
}

static void add_certificate(void) {
    struct buf pem, key, digits;
    struct certificate c;
    buf_init(&pem, CERTIFICATE_PEM_MAX);
    buf_init_secret(&key, SECRET_MAX);
    buf_init_secret(&digits, SECRET_MAX);
    make_certificate(&pem, &key);
    REQUIRE(!certificate_read(buf_view(&pem), clock_wall() / 1000000000, &c) &&
            !certificate_key(&c, buf_view(&key), &digits));
    REQUIRE(vault_add_certificate(custody.vault, VIEW("us"), &c.told, buf_view(&c.chain),
                                  buf_view(&digits), 1) == 0);
    certificate_free(&c);
    buf_free(&pem);
    buf_free(&key);
    buf_free(&digits);
}

static void open_vault(void) {
    static const uint8_t kek[SEAL_KEY_SIZE] = {1};
    folder_make();
    REQUIRE(vault_open(folder_path, kek, &custody.vault, custody.why) == 0);
    REQUIRE(vault_add(custody.vault, VIEW("demo"), VIEW(""), VIEW("0123456789abcdef"), 1) == 0);
    /* The seeds present the placeholder "p". */
    struct vault_placeholder p = {.credential = "demo",
                                  .secret_id = vault_inventory(custody.vault)->secrets[0].id};
    struct vault_sandbox s = {.name = "worker", .placeholders = &p, .n = 1};
    digest_sha256(VIEW("p"), p.fingerprint);
    REQUIRE(vault_put_sandbox(custody.vault, &s) == 0);
    add_certificate();
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
    REQUIRE(mandate_new(1, buf_view(&text), &custody.mandate) == 0);
    buf_free(&lanes);
    buf_free(&text);
}

static void start(void) {
    int fds[2];
    log_open("fuzz", LOG_FATAL);
    REQUIRE(openssl_memory_start() == 0 && secret_arena_open(2 << 20) == 0);
    loop = loop_new();
    open_vault();
    open_mandate();
    custody.journal = journal_new(loop);
    REQUIRE(socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_NONBLOCK, 0, fds) == 0);
    REQUIRE(journal_attach(custody.journal, fds[1]) == 0);
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
    REQUIRE(channel_pair(fds) == 0);
    REQUIRE(lender_add(lender, 1, fds[1]) == 0);
    REQUIRE(write(fds[0], data, size) == (ssize_t)size);
    shutdown(fds[0], SHUT_WR);
    while (lender_lanes(lender) > 0)
        REQUIRE(loop_turn(loop) == 0);
    close(fds[0]);
    while (recv(audit, packet, sizeof packet, 0) > 0)
        ;
    return 0;
}
