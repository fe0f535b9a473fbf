/* Requests of a hostile client. */
#include "fuzz/http1_talk.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    talk_fuzz(HTTP1_REQUESTS, data, size);
    return 0;
}
