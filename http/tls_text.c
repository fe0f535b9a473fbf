#include "http/tls_text.h"

#include <openssl/err.h>
#include <openssl/ssl.h>
#include <openssl/x509_vfy.h>
#include <stddef.h>

struct text {
    int code;
    const char *text;
    const char *above; /* where it is another for a certificate above the upstream's own */
};

static const struct text verify_texts[] = {
    {X509_V_ERR_CERT_HAS_EXPIRED, "the upstream's certificate has expired",
     "a certificate above the upstream's has expired"},
    {X509_V_ERR_CERT_NOT_YET_VALID, "the upstream's certificate is not yet valid",
     "a certificate above the upstream's is not yet valid"},
    {X509_V_ERR_HOSTNAME_MISMATCH, "the upstream's certificate is for another host", NULL},
    {X509_V_ERR_IP_ADDRESS_MISMATCH, "the upstream's certificate is for another host", NULL},
    {X509_V_ERR_DEPTH_ZERO_SELF_SIGNED_CERT,
     "the upstream's certificate is self-signed and no trust anchor", NULL},
    {X509_V_ERR_SELF_SIGNED_CERT_IN_CHAIN,
     "the upstream's certificate is of an authority that is no trust anchor", NULL},
    {X509_V_ERR_UNABLE_TO_GET_ISSUER_CERT_LOCALLY,
     "no chain to a trust anchor: the upstream's authority is unknown, or the upstream did not "
     "send "
     "the certificate in between",
     NULL},
    {X509_V_ERR_CERT_SIGNATURE_FAILURE, "a signature in the upstream's chain is wrong", NULL},
    {X509_V_ERR_INVALID_PURPOSE, "the upstream's certificate is not for servers",
     "an authority above the upstream may not issue certificates for servers"},
    {X509_V_ERR_INVALID_CA, "the upstream's certificate was issued by what is no authority", NULL},
    {X509_V_ERR_PATH_LENGTH_EXCEEDED,
     "an authority above the upstream may not have authorities below it", NULL},
    {X509_V_ERR_PERMITTED_VIOLATION,
     "an authority above the upstream may not issue certificates for this host", NULL},
    {X509_V_ERR_EXCLUDED_VIOLATION,
     "an authority above the upstream may not issue certificates for this host", NULL},
    {X509_V_ERR_UNHANDLED_CRITICAL_EXTENSION,
     "the upstream's certificate has a critical extension that is not understood",
     "a certificate above the upstream's has a critical extension that is not understood"},
    {X509_V_ERR_EE_KEY_TOO_SMALL, "the upstream's key is too weak", NULL},
    {X509_V_ERR_CA_KEY_TOO_SMALL, "the key of an authority above the upstream is too weak", NULL},
    {X509_V_ERR_CA_MD_TOO_WEAK, "a signature in the upstream's chain is by a hash that is too weak",
     NULL},
    {X509_V_ERR_EC_KEY_EXPLICIT_PARAMS, "the upstream's key is on a curve of its own making",
     "the key of an authority above the upstream is on a curve of its own making"},
    {X509_V_ERR_CERT_CHAIN_TOO_LONG, "the upstream sent too many certificates", NULL},
};

static const char not_tls[] = "the upstream does not speak TLS on this port";
static const char too_old[] = "the upstream speaks only versions of TLS older than 1.2";
static const char nothing_in_common[] =
    "the upstream takes no cipher or version of TLS that is safe enough";
static const char chose_wrong[] = "the upstream chose something that was not offered";

static const struct text library_texts[] = {
    {SSL_R_WRONG_VERSION_NUMBER, not_tls, NULL},
    {SSL_R_HTTP_REQUEST, not_tls, NULL},
    {SSL_R_PACKET_LENGTH_TOO_LONG, not_tls, NULL},
    {SSL_R_UNSUPPORTED_PROTOCOL, too_old, NULL},
    {SSL_R_TLSV1_ALERT_PROTOCOL_VERSION, too_old, NULL},
    {SSL_R_SSLV3_ALERT_HANDSHAKE_FAILURE, nothing_in_common, NULL},
    {SSL_R_TLSV1_ALERT_INSUFFICIENT_SECURITY, nothing_in_common, NULL},
    {SSL_R_WRONG_CIPHER_RETURNED, chose_wrong, NULL},
    {SSL_R_UNKNOWN_CIPHER_RETURNED, chose_wrong, NULL},
    {SSL_R_UNSUPPORTED_COMPRESSION_ALGORITHM, chose_wrong, NULL},
    {SSL_R_COMPRESSION_DISABLED, chose_wrong, NULL},
    {SSL_R_UNSOLICITED_EXTENSION, chose_wrong, NULL},
    {SSL_R_BAD_EXTENSION, chose_wrong, NULL}, /* ALPN, to OpenSSL of 2024 and later */
    {SSL_R_WRONG_SSL_VERSION, chose_wrong, NULL},
    {SSL_R_EE_KEY_TOO_SMALL, "the upstream's key is too weak", NULL},
    {SSL_R_DH_KEY_TOO_SMALL, "the upstream's Diffie-Hellman key is too weak", NULL},
    {SSL_R_EXCESSIVE_MESSAGE_SIZE, "the upstream's certificates are too large", NULL},
    {SSL_R_UNSAFE_LEGACY_RENEGOTIATION_DISABLED,
     "the upstream does not know safe renegotiation (RFC 5746)", NULL},
    {SSL_R_TLSV1_UNRECOGNIZED_NAME, "the upstream does not know this host", NULL},
    {SSL_R_TLSV13_ALERT_CERTIFICATE_REQUIRED, "the upstream demands a client certificate", NULL},
};

static const struct text *find(const struct text *table, size_t n, int code) {
    for (size_t i = 0; i < n; i++)
        if (table[i].code == code)
            return &table[i];
    return NULL;
}

const char *tls_text_verify(int code, int depth) {
    const struct text *t = find(verify_texts, sizeof verify_texts / sizeof *verify_texts, code);
    if (!t)
        return X509_verify_cert_error_string(code);
    return depth > 0 && t->above ? t->above : t->text;
}

const char *tls_text_library(unsigned long code) {
    const struct text *t = ERR_GET_LIB(code) == ERR_LIB_SSL
                               ? find(library_texts, sizeof library_texts / sizeof *library_texts,
                                      ERR_GET_REASON(code))
                               : NULL;
    const char *own = t ? t->text : ERR_reason_error_string(code);
    return own ? own : "the TLS library failed";
}
