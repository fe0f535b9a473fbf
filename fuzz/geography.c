/*
 * A database of countries or systems that was cut or changed: it is refused, or an address has facts of their form.
 *
 * Input: two bytes, of which the first says which facts are asked for; then the file.
 */
#include "egress/geography.h"
#include "base/log.h"
#include "fuzz/folder.h"
#include "fuzz/quiet.h"

#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);
const char *__asan_default_options(void);

/* The library forgets memory of databases that it refuses, after which no dialer goes on. */
const char *__asan_default_options(void) {
    return "detect_leaks=0";
}

static bool is_country(const char *text) {
    return !*text ||
           (strlen(text) == 2 && is_alnum((uint8_t)text[0]) && is_alnum((uint8_t)text[1]));
}

static void find(struct geography *g, const char *text) {
    struct geography_facts facts;
    struct address a;
    REQUIRE(address_parse(view_str(text), &a) == 0);
    geography_find(g, &a, &facts);
    REQUIRE(is_country(facts.country));
    for (const char *c = facts.asn; *c; c++)
        REQUIRE(is_digit((uint8_t)*c));
    (void)geography_asn(facts.asn);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    static char path[128];
    if (folder < 0) {
        log_open("fuzz", LOG_FATAL);
        folder_make();
        snprintf(path, sizeof path, "%s/db.mmdb", folder_path);
    }
    if (size < 2)
        return 0;
    folder_put("db.mmdb", view_of(data + 2, size - 2));
    quiet_begin();
    struct geography *g = data[0] & 1 ? geography_open(path, NULL) : geography_open(NULL, path);
    quiet_end();
    if (g) {
        find(g, "1.2.3.4");
        find(g, "2001:db8::1");
        find(g, "::ffff:10.0.0.1");
    }
    geography_free(g);
    return 0;
}
