/*
 * The operator's log: one line per event on standard error, which systemd or
 * the parent's caller keeps. Subject first, lower case, no full stop. The audit
 * trail is a different thing (audit/record.h). Never give it a secret, nor raw
 * bytes from a network: those go through log_text.
 */
#ifndef BASE_LOG_H
#define BASE_LOG_H

#include "base/bytes.h"

enum log_level { LOG_FATAL, LOG_WARN, LOG_INFO, LOG_DEBUG };

/* Names this process in every line ("proxy 3"); at most 31 bytes are kept. */
void log_open(const char *name, enum log_level least);
void log_line(enum log_level level, const char *format, ...) __attribute__((format(printf, 2, 3)));

#define log_fatal(...) log_line(LOG_FATAL, __VA_ARGS__)
#define log_warn(...) log_line(LOG_WARN, __VA_ARGS__)
#define log_info(...) log_line(LOG_INFO, __VA_ARGS__)
#define log_debug(...) log_line(LOG_DEBUG, __VA_ARGS__)

/*
 * Hostile bytes made printable: visible ASCII as it is, the rest as \xNN, cut
 * with "..." to fit. Returns out. size of at least 8.
 */
const char *log_text(struct view v, char *out, size_t size);

#endif
