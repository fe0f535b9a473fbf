#include "base/error.h"

#include <errno.h>
#include <string.h>

const char *err_text(int code) {
    switch (code) {
    case 0:
        return "no error";
    case ERR_AGAIN:
        return "more input needed";
    case ERR_BAD:
        return "malformed";
    case ERR_LIMIT:
        return "over the limit";
    case ERR_MEMORY:
        return "out of memory";
    case ERR_SYSTEM:
        return "system call failed";
    case ERR_DENIED:
        return "not permitted";
    case ERR_MISSING:
        return "not found";
    case ERR_EXISTS:
        return "already there";
    case ERR_CLOSED:
        return "closed by the peer";
    case ERR_TIMEOUT:
        return "timed out";
    case ERR_CRYPTO:
        return "cryptographic check failed";
    default:
        return "unknown error";
    }
}

const char *err_why(int code) {
    return code == ERR_SYSTEM && errno != 0 ? strerror(errno) : err_text(code);
}
