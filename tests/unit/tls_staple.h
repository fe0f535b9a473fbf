/* OCSP answers that a peer of bare OpenSSL staples. */
#ifndef TESTS_UNIT_TLS_STAPLE_H
#define TESTS_UNIT_TLS_STAPLE_H

#include "tests/unit/tls_ends.h"

#include <openssl/ocsp.h>

static struct {
    uint8_t *p;
    int n;
} stapled;

static int give_staple(SSL *ssl, void *arg) {
    (void)arg;
    if (!stapled.p)
        return SSL_TLSEXT_ERR_NOACK;
    SSL_set_tlsext_status_ocsp_resp(ssl, OPENSSL_memdup(stapled.p, (size_t)stapled.n), stapled.n);
    return SSL_TLSEXT_ERR_OK;
}

/* What `signer` says of c; since: seconds from now. */
static void make_staple(const struct certificate *c, const struct certificate *signer, int status,
                        long since) {
    OCSP_BASICRESP *basic = OCSP_BASICRESP_new();
    OCSP_CERTID *id = OCSP_cert_to_id(EVP_sha1(), c->x, middle.x);
    ASN1_TIME *from = X509_gmtime_adj(NULL, since), *to = X509_gmtime_adj(NULL, since + DAY);
    OCSP_basic_add1_status(basic, id, status, 0, status == V_OCSP_CERTSTATUS_REVOKED ? from : NULL,
                           from, to);
    assert_int_equal(OCSP_basic_sign(basic, signer->x, signer->key, EVP_sha256(), NULL, 0), 1);
    OCSP_RESPONSE *response = OCSP_response_create(OCSP_RESPONSE_STATUS_SUCCESSFUL, basic);
    stapled.p = NULL;
    stapled.n = i2d_OCSP_RESPONSE(response, &stapled.p);
    ASN1_TIME_free(from);
    ASN1_TIME_free(to);
    OCSP_CERTID_free(id);
    OCSP_BASICRESP_free(basic);
    OCSP_RESPONSE_free(response);
}

#endif
