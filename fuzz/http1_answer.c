/* Answers of a hostile upstream. */
#include "fuzz/http1_talk.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    talk_fuzz(HTTP1_ANSWERS, data, size);
    return 0;
}
