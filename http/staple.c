#include "http/staple.h"

#include <limits.h>
#include <openssl/err.h>
#include <openssl/ocsp.h>
#include <openssl/x509v3.h>

enum {
    CLOCK_SKEW = 300, /* seconds */
    FEATURE_STATUS_REQUEST = 5,
};

/* The issuer's statement about the leaf, looked for under one hash. */
static bool find(OCSP_BASICRESP *basic, STACK_OF(X509) * chain, const EVP_MD *hash, int *status,
                 bool *is_current) {
    ASN1_GENERALIZEDTIME *this_update, *next_update;
    OCSP_CERTID *id = OCSP_cert_to_id(hash, sk_X509_value(chain, 0), sk_X509_value(chain, 1));
    bool found =
        id && OCSP_resp_find_status(basic, id, status, NULL, NULL, &this_update, &next_update) == 1;
    OCSP_CERTID_free(id);
    *is_current = found && OCSP_check_validity(this_update, next_update, CLOCK_SKEW, -1) == 1;
    return found;
}

static enum staple check_basic(OCSP_BASICRESP *basic, STACK_OF(X509) * chain, X509_STORE *store) {
    int status;
    bool is_current;
    if (OCSP_basic_verify(basic, chain, store, 0) != 1)
        return STAPLE_NONE;
    if (!find(basic, chain, EVP_sha1(), &status, &is_current) &&
        !find(basic, chain, EVP_sha256(), &status, &is_current))
        return STAPLE_NONE;
    if (status == V_OCSP_CERTSTATUS_REVOKED)
        return STAPLE_REVOKED;
    return status == V_OCSP_CERTSTATUS_GOOD && is_current ? STAPLE_GOOD : STAPLE_NONE;
}

enum staple staple_check(struct view der, STACK_OF(X509) * chain, X509_STORE *store) {
    const unsigned char *p = der.p;
    if (der.n == 0 || der.n > INT_MAX || sk_X509_num(chain) < 2)
        return STAPLE_NONE;
    OCSP_RESPONSE *answer = d2i_OCSP_RESPONSE(NULL, &p, (long)der.n);
    OCSP_BASICRESP *basic =
        answer && OCSP_response_status(answer) == OCSP_RESPONSE_STATUS_SUCCESSFUL
            ? OCSP_response_get1_basic(answer)
            : NULL;
    enum staple result = basic ? check_basic(basic, chain, store) : STAPLE_NONE;
    OCSP_BASICRESP_free(basic);
    OCSP_RESPONSE_free(answer);
    ERR_clear_error();
    return result;
}

bool staple_is_must(const X509 *leaf) {
    TLS_FEATURE *features = X509_get_ext_d2i(leaf, NID_tlsfeature, NULL, NULL);
    bool must = false;
    for (int i = 0; i < sk_ASN1_INTEGER_num(features); i++)
        must |= ASN1_INTEGER_get(sk_ASN1_INTEGER_value(features, i)) == FEATURE_STATUS_REQUEST;
    TLS_FEATURE_free(features);
    return must;
}
