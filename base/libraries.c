#include "base/libraries.h"

#include <ares.h>
#include <event2/event.h>
#include <idn2.h>
#include <libpsl.h>
#include <llhttp.h>
#include <maxminddb.h>
#include <openssl/crypto.h>
#include <seccomp.h>
#include <sqlite3.h>
#include <stdio.h>
#include <zlib.h>

/*
 * The one exception to "one library, one home": this file asks each for its version and for nothing
 * else, so that the list stands in one place.
 */

static const char *seccomp_text(void) {
    static char text[32];
    const struct scmp_version *v = seccomp_version();
    snprintf(text, sizeof text, "%u.%u.%u", v->major, v->minor, v->micro);
    return text;
}

static const char *llhttp_text(void) {
    static char text[32];
    snprintf(text, sizeof text, "%d.%d.%d", LLHTTP_VERSION_MAJOR, LLHTTP_VERSION_MINOR,
             LLHTTP_VERSION_PATCH);
    return text;
}

static const char *ares_warning(void) {
    int number = 0;
    ares_version(&number);
    return number < 0x012207 ? "older than 1.34.7: run only inside exeat's own resolver process"
                             : NULL;
}

static const char *event_warning(void) {
    return event_get_version_number() < 0x02010c00 ? "older than 2.1.12" : NULL;
}

size_t libraries_count(void) {
    return 10;
}

struct library library_at(size_t i) {
    switch (i) {
    case 0:
        return (struct library){"OpenSSL", OpenSSL_version(OPENSSL_FULL_VERSION_STRING), NULL};
    case 1:
        return (struct library){"libevent", event_get_version(), event_warning()};
    case 2:
        return (struct library){"llhttp", llhttp_text(), NULL};
    case 3:
        return (struct library){"c-ares", ares_version(NULL), ares_warning()};
    case 4:
        return (struct library){"SQLite", sqlite3_libversion(), NULL};
    case 5:
        return (struct library){"libseccomp", seccomp_text(), NULL};
    case 6:
        return (struct library){"zlib", zlibVersion(), NULL};
    case 7:
        return (struct library){"libmaxminddb", MMDB_lib_version(), NULL};
    case 8:
        return (struct library){"libpsl", psl_get_version(), NULL};
    default:
        return (struct library){"libidn2", idn2_check_version(NULL), NULL};
    }
}
