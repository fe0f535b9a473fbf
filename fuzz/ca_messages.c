/*
 * A hostile egress: messages to ca, framed by us (type, id, generation, length and body in the input) or,
 * when the first byte is odd, raw bytes. Whatever they are, a leaf that leaves names one host that the lane's
 * policy allows, is for the lane's key, and was recorded before.
 */
#include "ca/ca_messages.h"
#include "audit/record.h"
#include "ca/ca.h"
#include "ca/mint.h"
#include "fuzz/ends.h"
#include "policy/bundle.h"

#include <openssl/x509v3.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

enum { INPUT_MAX = 16384 };

static const char policy_text[] =
    "service web {\n"
    "    host api.example.com *.wild.example.com 9.9.9.9 [2620:fe::fe]\n"
    "    operation any { * /** }\n"
    "}\n"
    "service unread { host spliced.example.com; tls splice }\n"
    "sandbox one { grant web all; grant unread all }\n"
    "sandbox two { }\n";

static struct loop *loop;
static struct policy *policy;
static struct buf spki;
static int parent, audit;

/* ---- the beginning ---- */

static void give_authority(void) {
    static const uint8_t serial[MINT_SERIAL_SIZE] = {1};
    struct buf key, certificate;
    uint64_t now = clock_wall() / 1000000000;
    struct mint_validity validity = {now - 3600, now + 3650 * UINT64_C(86400)};
    buf_init(&key, MINT_PEM_MAX);
    buf_init(&certificate, MINT_PEM_MAX);
    REQUIRE(mint_key(&key) == 0 &&
            mint_root(buf_view(&key), "fuzz", validity, serial, &certificate) == 0);
    send_file(parent, "ca-key", buf_view(&key));
    send_file(parent, "ca-cert", buf_view(&certificate));
    buf_free(&key);
    buf_free(&certificate);
}

static void make_lane_key(void) {
    uint8_t *der = NULL;
    EVP_PKEY *key = EVP_EC_gen("P-256");
    int n = i2d_PUBKEY(key, &der);
    buf_init(&spki, 1024);
    buf_put(&spki, view_of(der, (size_t)n));
    OPENSSL_free(der);
    EVP_PKEY_free(key);
}

static void give_generation(void) {
    struct lane_info lane = {.id = 1, .names = VIEW("one")};
    struct bundle b = {.policy_file = VIEW("policy"), .policy_text = view_str(policy_text)};
    struct buf lanes, text;
    buf_init(&lanes, 256);
    buf_init(&text, 1 << 20);
    limits_default(&b.limits);
    b.limits.v[LIMIT_NEW_NAMES] = limit_info(LIMIT_NEW_NAMES)->most;
    bundle_put_lane(&lanes, &lane);
    b.lanes = buf_view(&lanes);
    bundle_write(&b, &text);
    send_generation(parent, 1, buf_view(&text));
    buf_free(&lanes);
    buf_free(&text);
}

static void start(void) {
    static struct policy_errors errors;
    struct role_args args = {.role = ROLE_CA};
    int fds[2];
    log_open("fuzz", LOG_FATAL);
    parent = open_parent();
    loop = loop_new();
    REQUIRE(loop && ca_new(loop, &args));
    make_lane_key();
    give_authority();
    REQUIRE(socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, 0, fds) == 0);
    audit = fds[0];
    send_peer(parent, ROLE_AUDIT, 0, VIEW("ca"), fds[1]);
    REQUIRE(policy_load(view_str(policy_text), "policy", &policy, &errors) == 0);
    give_generation();
    turns(loop, 4);
}

/* ---- what leaves ---- */

static void name_of(const X509 *x, struct authority *out) {
    GENERAL_NAMES *names = X509_get_ext_d2i(x, NID_subject_alt_name, NULL, NULL);
    REQUIRE(names && sk_GENERAL_NAME_num(names) == 1);
    const GENERAL_NAME *g = sk_GENERAL_NAME_value(names, 0);
    const ASN1_STRING *s = g->type == GEN_DNS ? g->d.dNSName : g->d.iPAddress;
    struct view text = view_of(ASN1_STRING_get0_data(s), (size_t)ASN1_STRING_length(s));
    if (g->type == GEN_DNS) {
        REQUIRE(authority_parse_host(text, 443, out, NULL) == 0 && out->kind == HOST_NAME);
    } else {
        REQUIRE(g->type == GEN_IPADD && (text.n == 4 || text.n == 16));
        struct address a = {.family = text.n == 4 ? 4 : 6};
        memcpy(a.bytes, text.p, text.n);
        char literal[48];
        address_format(&a, literal);
        REQUIRE(authority_read(view_str(literal), 443, out) == 0);
    }
    GENERAL_NAMES_free(names);
}

static void check_key(X509 *x) {
    uint8_t *der = NULL;
    int n = i2d_PUBKEY(X509_get0_pubkey(x), &der);
    REQUIRE(view_equal(view_of(der, (size_t)n), buf_view(&spki)));
    OPENSSL_free(der);
}

/* Of the record that stands before it. */
static void check_record(const struct authority *a) {
    static uint8_t packet[RECORD_SIZE];
    struct record_facts f;
    do {
        ssize_t n = recv(audit, packet, sizeof packet, 0);
        REQUIRE(n > 0 && record_read(view_of(packet, (size_t)n), &f) == 0);
    } while (!view_equal(f.text[FIELD_EVENT], VIEW("leaf_minted")));
    REQUIRE(view_equal(f.text[FIELD_HOST], view_str(a->host)));
}

static void check_leaf(struct view der) {
    const uint8_t *p = der.p;
    struct authority a;
    X509 *x = d2i_X509(NULL, &p, (long)der.n);
    REQUIRE(x && p == der.p + der.n);
    name_of(x, &a);
    check_key(x);
    check_record(&a);
    struct verdict v = policy_judge_host(policy, VIEW("one"), true, &a);
    REQUIRE(v.allow && service_tls(v.service) != SERVICE_SPLICE);
    X509_free(x);
}

static void check_answers(struct end *egress) {
    struct message m;
    while (end_next(egress, &m)) {
        struct reader r = reader_of(m.body);
        if (m.type == CA_LEAF) {
            struct view leaf = read_block(&r, CA_CERT_MAX);
            REQUIRE(read_block(&r, CA_CERT_MAX).n == 0 && read_u64(&r) > 0 && read_done(&r));
            check_leaf(leaf);
        } else {
            REQUIRE(m.type == CA_REFUSED);
            uint16_t why = read_u16(&r);
            REQUIRE(read_done(&r) && why != REASON_ALLOWED && why < REASON_COUNT);
        }
    }
    REQUIRE(buf_len(&egress->in) == egress->used);
}

/* ---- the input ---- */

static void frame(struct view input, struct buf *out) {
    struct reader r = reader_of(input);
    while (!r.bad && !view_is_empty(r.rest)) {
        uint8_t type = read_u8(&r), id = read_u8(&r), generation = read_u8(&r);
        put_frame(out, type, id, generation, read_bytes(&r, read_u8(&r)), false);
    }
}

static void swallow(int fd) {
    uint8_t p[4096];
    while (recv(fd, p, sizeof p, MSG_DONTWAIT) > 0)
        ;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    struct buf bytes;
    struct end egress;
    int fds[2];
    if (!loop)
        start();
    if (size == 0 || size > INPUT_MAX)
        return 0;
    REQUIRE(channel_pair(fds) == 0);
    end_open(&egress, fds[0]);
    send_peer(parent, ROLE_EGRESS, 1, buf_view(&spki), fds[1]);
    turns(loop, 1);
    buf_init(&bytes, 1 << 20);
    if (data[0] & 1)
        buf_put(&bytes, view_of(data + 1, size - 1));
    else
        frame(view_of(data + 1, size - 1), &bytes);
    send_bytes_fd(egress.fd, buf_view(&bytes), -1);
    shutdown(egress.fd, SHUT_WR);
    turns(loop, 2);
    end_read(&egress);
    check_answers(&egress);
    end_close(&egress);
    turns(loop, 1);
    swallow(audit);
    swallow(parent);
    buf_free(&bytes);
    return 0;
}
