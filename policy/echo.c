#include "policy/echo.h"

#include <string.h>

bool echo_is_host(const struct authority *a) {
    return strcmp(a->host, ECHO_HOST) == 0;
}

bool echo_is_open(const struct authority *a, bool tls) {
    return echo_is_host(a) && a->port == (tls ? 443 : 80);
}
