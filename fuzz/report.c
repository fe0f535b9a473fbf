/* Any bytes as the report of a sandbox's probes: counted, told in a line, put as JSON. */
#include "cli/json_scan.h"
#include "daemon/attach_report.h"
#include "fuzz/require.h"

#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static size_t count_rows(struct view report) {
    struct buf json;
    struct view rest, row, member;
    size_t n = 0;
    buf_init(&json, CHILD_PROBED_MAX);
    attach_report_put(report, &json);
    REQUIRE(buf_ok(&json));
    rest = json_elements(buf_view(&json));
    for (; json_element(&rest, &row); n++)
        REQUIRE(json_member(row, "verdict", &member) && json_member(row, "why", &member));
    buf_free(&json);
    return n;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    struct view report = view_of(data, size);
    struct report_sum sum;
    char line[ATTACH_DETAIL_SIZE];
    if (size > REPORT_MAX)
        return 0;
    int result = report_count(report, &sum);
    REQUIRE(count_rows(report) == sum.tried && sum.contained + sum.escaped <= sum.tried);
    REQUIRE(report_is_tight(report) ==
            (result == 0 && sum.tried > 0 && sum.contained == sum.tried));
    attach_report_tell(report, line);
    for (const char *c = line; *c; c++)
        REQUIRE(*c >= ' ' && *c != 0x7f);
    return 0;
}
