#include "policy/reason.h"

#include <assert.h>

/* A reason that the sandbox is told as it is. */
#define TOLD(reason, code, status, title, hint) [reason] = {code, status, reason, title, hint}

static const struct reason_info infos[] = {
    TOLD(REASON_ALLOWED, "allowed", 0, "The request is allowed", "Nothing needs to be done."),

    /* ---- policy ---- */
    TOLD(REASON_UNKNOWN_SANDBOX, "unknown_sandbox", 403, "The policy does not know this sandbox",
         "Only the operator can add a sandbox to the policy."),
    TOLD(REASON_HOST_NOT_ALLOWED, "host_not_allowed", 403,
         "The policy does not let this sandbox reach this host",
         "Use a host that was granted to you, or ask the operator to grant a service at this one; "
         "trying again will not help."),
    TOLD(REASON_PORT_NOT_ALLOWED, "port_not_allowed", 403,
         "The policy allows this host, but not this port",
         "Use the port that the service is granted on, or ask the operator to add this one."),
    TOLD(REASON_CLEAR_NOT_ALLOWED, "clear_not_allowed", 403,
         "Plain HTTP to this service is not allowed",
         "Use an https:// address; only the operator can allow clear text."),
    TOLD(REASON_OPERATION_NOT_ALLOWED, "operation_not_allowed", 403,
         "No operation of this host has this method and path",
         "Check the method and the path; they are compared with case. If both are right, "
         "the operator can add the operation to the policy."),
    TOLD(REASON_OPERATION_NOT_GRANTED, "operation_not_granted", 403,
         "The policy knows this operation, but did not grant it to this sandbox",
         "Ask the operator for a grant of this operation."),
    TOLD(REASON_NEVER, "never", 403, "The policy forbids this request whatever else is granted",
         "The operator forbade this on purpose; do without it."),
    TOLD(REASON_FOREIGN_CREDENTIAL, "foreign_credential", 403,
         "The request carries a credential that was not issued to this sandbox",
         "Send the placeholder that this sandbox was given for the service, and no other key, "
         "token, cookie, password or signature; the operator can issue a placeholder anew."),
    TOLD(REASON_CREDENTIAL_MISSING, "credential_missing", 403,
         "This operation needs this sandbox's placeholder, and the request carries none",
         "Configure the client with the placeholder that this sandbox was given for the service, "
         "as if it were the real key."),
    [REASON_PLACEHOLDER_WRONG_IDENTITY] =
        {"placeholder_wrong_identity", 403, REASON_FOREIGN_CREDENTIAL,
         "The request carries a placeholder that was issued to another sandbox, or was revoked",
         "The sandbox is told no more than that the credential is foreign; look at which sandbox "
         "holds the placeholder, and issue one for this sandbox."},
    TOLD(REASON_PLACEHOLDER_WRONG_DESTINATION, "placeholder_wrong_destination", 403,
         "A placeholder was sent to a service that it was not issued for",
         "Send each placeholder only to its own service; check which address the client uses."),
    TOLD(REASON_PLACEHOLDER_WRONG_PLACE, "placeholder_wrong_place", 403,
         "A placeholder stands in a part of the request where this service reads no credential",
         "Let the client send the placeholder the way the service's own key is sent, and keep it "
         "out of addresses, bodies and other fields."),
    TOLD(REASON_PLACEHOLDER_REPEATED, "placeholder_repeated", 403,
         "The request carries the placeholder more than once", "Send the placeholder once."),
    TOLD(REASON_SECOND_TARGET, "second_target", 403,
         "A field of the request names another resource than the one that was judged",
         "Do without copying and moving on the server; the operator can let the service accept "
         "destinations."),
    TOLD(REASON_DNS_MESSAGE, "dns_message", 403,
         "The request asks a resolver for a name, and no operation of this host is for that",
         "Connect by name and leave resolving to the gateway; the operator can add an operation "
         "with the condition content-type application/dns-message."),
    TOLD(REASON_SPLICED, "spliced", 403,
         "TLS to this service is passed on unread: requests to it are not taken",
         "Open a tunnel with CONNECT, as clients do for https:// addresses, and speak TLS in it."),
    TOLD(REASON_NOT_OFFERED, "not_offered", 403,
         "The policy asks something of this service that exeat does not do yet",
         "Tell whoever keeps the policy."),
    TOLD(REASON_METHOD_OVERRIDE, "method_override", 403,
         "The request asks the server to use another method than its own",
         "Send the request with the method that is meant; leave out override fields and _method."),
    TOLD(REASON_UPGRADE_NOT_ALLOWED, "upgrade_not_allowed", 403,
         "The connection may not change to another protocol here",
         "Use the service without WebSocket or other upgrades, or ask the operator."),
    TOLD(REASON_ADDRESS_NOT_ALLOWED, "address_not_allowed", 403,
         "The host's address is one that must not be reached from here",
         "Private, local, metadata and the gateway's own addresses are closed; the operator can "
         "open a range for a service."),
    TOLD(REASON_PROTOCOL_NOT_ALLOWED, "protocol_not_allowed", 403,
         "The connection speaks neither TLS nor HTTP/1",
         "Only HTTPS and HTTP can leave through here; use the service's HTTP interface."),
    TOLD(REASON_PEER_NOT_ALLOWED, "peer_not_allowed", 403,
         "This listener is not for whoever connected",
         "Connect as the user or from the machine that the listener is for; the operator can name "
         "others in its `listen` line."),
    TOLD(REASON_SANDBOX_SUSPENDED, "sandbox_suspended", 403,
         "This sandbox is suspended: its answers held too many parts of a secret",
         "Wait, and look for what repeats parts of a key; the operator finds the event "
         "sandbox_suspended in the audit log, with the credential and the host."),

    TOLD(REASON_GRANT_ENDED, "grant_ended", 403,
         "The grant of this operation was until a time that has passed",
         "Trying again will not help; the operator can grant it for longer."),
    TOLD(REASON_GRANT_USED, "grant_used", 403,
         "The grant of this operation was for a number of requests, and they were sent",
         "Trying again will not help; the operator can grant more uses."),
    TOLD(REASON_GRANT_BYTES, "grant_bytes", 403,
         "The request is larger than what the grant of this operation has left to send",
         "Send less, if something is left; the operator can grant more bytes."),
    TOLD(REASON_GRANT_RATE, "grant_rate", 429,
         "This operation is asked for more often than its grant allows",
         "Wait as long as Retry-After says, then ask less often."),
    TOLD(REASON_GRANT_CONCURRENT, "grant_concurrent", 429,
         "As many requests are in progress as the grant of this operation allows",
         "Let one of them end first, then try again."),

    /* ---- identity ---- */
    TOLD(REASON_AUTHORITY_MISMATCH, "authority_mismatch", 421,
         "The Host field names another host than the connection was opened for",
         "Open a connection of its own for each host, and let Host be the name in the address."),
    TOLD(REASON_SNI_MISMATCH, "sni_mismatch", 0,
         "The TLS handshake names another host than the connection was opened for",
         "Let the server name of the handshake be the name in the CONNECT request."),
    TOLD(REASON_PROXY_AUTH_REQUIRED, "proxy_auth_required", 407,
         "The sandbox did not prove which one it is",
         "Put the sandbox's name and token into the proxy's address; the operator issues tokens."),

    /* ---- malformed ---- */
    TOLD(REASON_MALFORMED_REQUEST, "malformed_request", 400, "The request is not well-formed HTTP",
         "The detail says which rule was broken; use an ordinary HTTP client."),
    TOLD(REASON_MALFORMED_TARGET, "malformed_target", 400,
         "The path or query can be read in more than one way",
         "Remove dot segments, empty segments, fragments, encoded slashes and double encodings."),
    TOLD(REASON_MALFORMED_AUTHORITY, "malformed_authority", 400,
         "The host or port is not in its plain form",
         "Write a name in ASCII letters, or four plain decimals, or IPv6 in brackets, and a port "
         "of 1 to 65535; without user information."),
    TOLD(REASON_MALFORMED_HELLO, "malformed_hello", 0, "The TLS handshake does not begin properly",
         "Use an ordinary TLS client with TLS 1.2 or 1.3."),
    TOLD(REASON_EXPECTATION, "expectation", 417, "The request expects something unknown",
         "Send no Expect field but 100-continue."),
    TOLD(REASON_METHOD_REFUSED, "method_refused", 405, "This method is never sent on",
         "Use another method; CONNECT inside a tunnel and TRACE are refused everywhere."),
    TOLD(REASON_HEAD_TOO_LARGE, "head_too_large", 431, "The request's fields are too large",
         "Send fewer or shorter fields; the operator can raise the limit."),
    TOLD(REASON_TARGET_TOO_LONG, "target_too_long", 414, "The request's target is too long",
         "Send long arguments in a body; the operator can raise the limit."),
    TOLD(REASON_BODY_TOO_LARGE, "body_too_large", 413, "The request's body is too large",
         "Send less at once; the operator can raise the limit."),
    TOLD(REASON_BODY_CODING, "body_coding", 415,
         "The request's body is compressed and would have to be looked into",
         "Send the body without Content-Encoding."),
    TOLD(REASON_REQUEST_TIMEOUT, "request_timeout", 408, "The request did not come in time",
         "Send the request without long pauses, on a new connection."),
    TOLD(REASON_RATE, "rate", 429, "This sandbox asks too often", "Wait, then ask less often."),
    TOLD(REASON_TOO_MANY, "too_many", 503, "Too many things are in progress for this sandbox",
         "Let some requests or connections end first, then try again."),

    /* ---- ours ---- */
    TOLD(REASON_AUDIT_UNAVAILABLE, "audit_unavailable", 503,
         "The request cannot be recorded, so it may not leave",
         "Try again later; if it lasts, the operator must look at the audit log's disk."),
    TOLD(REASON_BROKER_UNAVAILABLE, "broker_unavailable", 503,
         "The credential cannot be had at the moment",
         "Try again later; if it lasts, the operator must look at the vault."),
    TOLD(REASON_CA_UNAVAILABLE, "ca_unavailable", 503,
         "A certificate for this host cannot be made at the moment",
         "Try again later; if it lasts, the operator must look at the certificate authority."),
    TOLD(REASON_DIALER_UNAVAILABLE, "dialer_unavailable", 503,
         "Connections cannot be made at the moment",
         "Try again later; if it lasts, the operator must look at the dialer."),
    TOLD(REASON_INSPECT_UNAVAILABLE, "inspect_unavailable", 503,
         "The body cannot be inspected at the moment, so it may not pass",
         "Try again later; if it lasts, the operator must look at the lane's inspector."),
    TOLD(REASON_SECRET_UNFIT, "secret_unfit", 503,
         "The credential cannot be written where this service reads it",
         "Only the operator can help: the record says what about the secret does not fit."),
    TOLD(REASON_CERTIFICATE_UNAVAILABLE, "certificate_unavailable", 503,
         "The client certificate that this service wants to see cannot be shown",
         "Only the operator can help: the record says whether it is missing, has expired or is not "
         "for this sandbox."),
    TOLD(REASON_NOT_READY, "not_ready", 503, "No policy is in use yet",
         "Try again in a moment; if it lasts, the operator must look at the policy."),
    TOLD(REASON_NOT_PROBED, "not_probed", 503,
         "It is not known yet whether this sandbox has other ways out",
         "Try again in a moment; whoever attaches the sandbox must report what its probes found."),

    /* ---- upstream ---- */
    TOLD(REASON_NAME_NOT_RESOLVED, "name_not_resolved", 502, "The host's name has no address",
         "Check the name; if it is right, its DNS or the operator's resolver fails."),
    TOLD(REASON_CONNECT_FAILED, "connect_failed", 502, "The host cannot be connected to",
         "The service is down or unreachable; try again later."),
    TOLD(REASON_CONNECT_TIMEOUT, "connect_timeout", 504, "The host did not take the connection",
         "The service is slow or unreachable; try again later."),
    TOLD(REASON_UPSTREAM_TLS, "upstream_tls", 502, "The host did not prove that it is the one",
         "Its certificate or TLS is at fault, and nothing was sent; the record has the detail. "
         "The operator can add a trust anchor for a private service."),
    TOLD(REASON_UPSTREAM_TIMEOUT, "upstream_timeout", 504, "The host did not answer in time",
         "Ask for less at once, or try again later; the operator can raise the limit."),
    TOLD(REASON_UPSTREAM_CLOSED, "upstream_closed", 502,
         "The host closed the connection before its answer was complete",
         "Find out whether the request took effect before it is sent again."),
    TOLD(REASON_MALFORMED_ANSWER, "malformed_answer", 502, "The host's answer is not well-formed",
         "The service is at fault; the record has the detail."),
    TOLD(REASON_ANSWER_CODING, "answer_coding", 502,
         "The answer is encoded in a way that cannot be scanned for secrets",
         "Ask for gzip, deflate or identity in Accept-Encoding."),
    TOLD(REASON_ANSWER_TOO_LARGE, "answer_too_large", 502, "The host's answer is too large",
         "Ask for less at once; the operator can raise the limit."),

    /* ---- ends without a refusal ---- */
    TOLD(REASON_CLIENT_CLOSED, "client_closed", 0, "The client went away",
         "Nothing was refused; the client closed its connection."),
    TOLD(REASON_CLIENT_TLS, "client_tls", 0, "The TLS handshake with the client failed",
         "Let the client trust the gateway's certificate authority; the operator hands it out."),
    TOLD(REASON_CUT, "cut", 0, "The connection was cut by a newer policy or a stop",
         "Connect again; what is still granted will work."),
};

static_assert(sizeof infos / sizeof infos[0] == REASON_COUNT, "a reason has no text");

const struct reason_info *reason_info(enum reason r) {
    assert((size_t)r < REASON_COUNT);
    return &infos[r];
}

const struct reason_info *reason_info_of_conditions(void) {
    static const struct reason_info info = {
        "operation_not_allowed", 403, REASON_OPERATION_NOT_ALLOWED,
        "An operation of this host has this method and path, but not all of its conditions hold",
        "Look at the query, the fields, and the type, size and content of the body; the operator "
        "finds the condition in the record, and can change it in the policy."};
    return &info;
}

int reason_find(struct view code, enum reason *out) {
    for (size_t i = 0; i < REASON_COUNT; i++)
        if (view_equal(code, view_str(infos[i].code))) {
            *out = (enum reason)i;
            return 0;
        }
    return ERR_MISSING;
}
