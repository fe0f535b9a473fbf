/* `exeat sandbox probe`: whether a sandbox of `exeat run` that runs now is tight, tried from inside. */
#include "cli/client.h"
#include "cli/doctor.h"
#include "cli/json_scan.h"
#include "cli/options.h"

/* How many there are, and how many of each verdict. */
static size_t count(struct doctor *d) {
    struct view rest = json_elements(buf_view(&d->rows)), row, verdict;
    size_t n = 0;
    for (; json_element(&rest, &row); n++) {
        bool told = json_member(row, "verdict", &verdict);
        d->escaped += told && view_equal(verdict, VIEW("\"escaped\""));
        d->unsure += told && view_equal(verdict, VIEW("\"unsure\""));
    }
    return n;
}

static int tell(const struct cli *cli, const char *name, struct doctor *d) {
    size_t n = count(d);
    doctor_print(cli, d);
    if (n == 0)
        return cli_fail(EXIT_NO, "%s could not be probed, and is served no more", name);
    if (d->escaped + d->unsure > 0)
        return cli_fail(EXIT_NO, "%s is not tight, and is served no more", name);
    return EXIT_YES;
}

int command_sandbox_probe(const struct cli *cli, int argc, char **argv) {
    static const struct option_spec none[] = {{NULL, NULL, NULL}};
    const char *name;
    struct doctor d = {.in_sandbox = true};
    int code = options_read(argc, argv, none, &name, 1);
    if (code != EXIT_YES)
        return code;
    if (strlen(name) > SANDBOX_NAME_MAX)
        return cli_fail(EXIT_USAGE, "%s: no sandbox has so long a name", name);
    buf_init(&d.rows, CHANNEL_BODY_MAX);
    code = client_ask(cli, CONTROL_SANDBOX_PROBE, view_str(name), -1, &d.rows, NULL);
    if (code == EXIT_YES)
        code = tell(cli, name, &d);
    buf_free(&d.rows);
    return code;
}
