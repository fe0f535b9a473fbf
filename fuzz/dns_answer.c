/* The bytes of a DNS answer: parsed for both families, and what was accepted must be canonical. */
#include "egress/dns_answer.h"

#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void parse(struct view message, enum dns_type type) {
    static struct dns_answer a;
    const char *why = NULL;
    if (dns_answer_read(message, "api.allowed.test", type, &a, &why) != 0) {
        if (!why)
            abort();
        return;
    }
    for (size_t i = 0; i < a.n_aliases; i++) {
        struct authority canonical;
        if (authority_parse_host(view_str(a.aliases[i]), 1, &canonical, NULL) != 0 ||
            strcmp(canonical.host, a.aliases[i]) != 0)
            abort();
    }
    for (size_t i = 0; i < a.n_addresses; i++)
        if (a.addresses[i].family != (type == DNS_A ? 4 : 6))
            abort();
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    parse(view_of(data, size), DNS_A);
    parse(view_of(data, size), DNS_AAAA);
    return 0;
}
