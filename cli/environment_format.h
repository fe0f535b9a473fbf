/*
 * A sandbox's environment as text, in the languages of those who start sandboxes. One table; adding
 * a language is adding a row. Pure.
 */
#ifndef CLI_ENVIRONMENT_FORMAT_H
#define CLI_ENVIRONMENT_FORMAT_H

#include "cli/environment.h"

/* The formats' names, for a usage: "sh|fish|...". */
#define ENVIRONMENT_FORMATS "sh|fish|powershell|dotenv|docker|k8s|github|systemd|json"

/*
 * Appends e:
 *   sh          `export NAME='value'` lines, fit for eval
 *   fish        `set -gx NAME 'value'`
 *   powershell  `$env:NAME = 'value'`
 *   dotenv      `NAME='value'`, as docker compose and the dotenv libraries read it
 *   docker      `NAME=value`, for `docker run --env-file`
 *   k8s         YAML, the `env:` of a container
 *   github      `NAME=value`, to be appended to $GITHUB_ENV
 *   systemd     `NAME="value"`, for EnvironmentFile=
 *   json        {"sandbox":...,"variables":{"NAME":"value",...},"credentials":{"name":"placeholder",...}}
 * What has no variable is noted in comments where the language has such. ERR_MISSING: there is no
 * such format; ERR_BAD: a value has a line end or a NUL.
 */
MUST_USE int environment_write(const struct environment *e, const char *format, struct buf *out);

#endif
