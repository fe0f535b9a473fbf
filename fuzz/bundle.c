#include "policy/bundle.h"

#include <stdlib.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

/* What is read is written back as the same bytes, so that no two texts mean one bundle. */
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    struct bundle b;
    struct buf again;
    if (bundle_read(view_of(data, size), &b) != 0)
        return 0;
    struct lane_info lane;
    struct view lanes = b.lanes, name;
    while (bundle_lane(&lanes, &lane)) {
        struct lane_info found;
        struct view names = lane.names;
        while (lane_sandbox(&names, &name))
            if (name.n == 0)
                abort();
        if (bundle_find_lane(&b, lane.id, &found) != 0)
            abort();
    }
    buf_init(&again, size);
    bundle_write(&b, &again);
    if (!buf_ok(&again) || !view_equal(buf_view(&again), view_of(data, size)))
        abort();
    buf_free(&again);
    return 0;
}
