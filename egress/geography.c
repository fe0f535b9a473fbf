#include "egress/geography.h"

#include "base/log.h"

#include <maxminddb.h>
#include <netinet/in.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct geography {
    MMDB_s country, asn;
    bool has_country, has_asn;
};

static int open_database(const char *path, MMDB_s *db, bool *has) {
    if (!path)
        return 0;
    int status = MMDB_open(path, MMDB_MODE_MMAP, db);
    if (status != MMDB_SUCCESS) {
        log_fatal("geography: %s: %s", path, MMDB_strerror(status));
        return ERR_BAD;
    }
    *has = true;
    return 0;
}

struct geography *geography_open(const char *country, const char *asn) {
    struct geography *g = calloc(1, sizeof *g);
    if (!g)
        return NULL;
    if (open_database(country, &g->country, &g->has_country) != 0 ||
        open_database(asn, &g->asn, &g->has_asn) != 0) {
        geography_free(g);
        return NULL;
    }
    return g;
}

void geography_free(struct geography *g) {
    if (!g)
        return;
    if (g->has_country)
        MMDB_close(&g->country);
    if (g->has_asn)
        MMDB_close(&g->asn);
    free(g);
}

/* The entry of an address; false when there is none. */
static bool find_entry(const MMDB_s *db, const struct address *a, MMDB_entry_s *out) {
    struct sockaddr_in in = {.sin_family = AF_INET};
    struct sockaddr_in6 in6 = {.sin6_family = AF_INET6};
    int status = MMDB_SUCCESS;
    memcpy(&in.sin_addr, a->bytes, 4);
    memcpy(&in6.sin6_addr, a->bytes, 16);
    const struct sockaddr *sa =
        a->family == 4 ? (const struct sockaddr *)&in : (const struct sockaddr *)&in6;
    MMDB_lookup_result_s found = MMDB_lookup_sockaddr(db, sa, &status);
    *out = found.entry;
    return status == MMDB_SUCCESS && found.found_entry;
}

static void find_country(const MMDB_s *db, const struct address *a, char out[3]) {
    MMDB_entry_s entry;
    MMDB_entry_data_s data;
    if (!find_entry(db, a, &entry) ||
        MMDB_get_value(&entry, &data, "country", "iso_code", NULL) != MMDB_SUCCESS ||
        !data.has_data || data.type != MMDB_DATA_TYPE_UTF8_STRING || data.data_size != 2)
        return;
    struct view code = view_of(data.utf8_string, data.data_size);
    if (is_alnum(code.p[0]) && is_alnum(code.p[1]))
        memcpy(out, code.p, 2);
}

static void find_asn(const MMDB_s *db, const struct address *a, char out[11]) {
    MMDB_entry_s entry;
    MMDB_entry_data_s data;
    if (!find_entry(db, a, &entry) ||
        MMDB_get_value(&entry, &data, "autonomous_system_number", NULL) != MMDB_SUCCESS ||
        !data.has_data || data.type != MMDB_DATA_TYPE_UINT32)
        return;
    snprintf(out, 11, "%u", data.uint32);
}

uint32_t geography_asn(const char *digits) {
    return (uint32_t)strtoul(digits, NULL, 10);
}

void geography_find(struct geography *g, const struct address *a, struct geography_facts *out) {
    *out = (struct geography_facts){{0}, {0}};
    if (g->has_country)
        find_country(&g->country, a, out->country);
    if (g->has_asn)
        find_asn(&g->asn, a, out->asn);
}
