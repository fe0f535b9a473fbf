#include "broker/store.h"

#include "base/log.h"

#include <sqlite3.h>
#include <stdlib.h>
#include <string.h>

#define STORE_APPLICATION 0x65786561 /* "exea" */
#define STORE_SCHEMA 1
#define SCHEMA_TEXT                                                                                \
    "CREATE TABLE item(kind INTEGER NOT NULL, name TEXT NOT NULL, body BLOB NOT NULL, "            \
    "PRIMARY KEY(kind, name)) STRICT, WITHOUT ROWID"

#define TEXT_OF(x) #x
#define TEXT(x) TEXT_OF(x)

enum statement { PUT, DROP, GET, WALK, BEGIN, COMMIT, ROLLBACK, STATEMENTS };

static const char *const statement_text[STATEMENTS] = {
    [PUT] = ("INSERT INTO item(kind, name, body) VALUES(?1, ?2, ?3) "
             "ON CONFLICT(kind, name) DO UPDATE SET body = excluded.body"),
    [DROP] = "DELETE FROM item WHERE kind = ?1 AND name = ?2",
    [GET] = "SELECT body FROM item WHERE kind = ?1 AND name = ?2",
    [WALK] = "SELECT kind, name, body FROM item ORDER BY kind, name",
    [BEGIN] = "BEGIN IMMEDIATE",
    [COMMIT] = "COMMIT",
    [ROLLBACK] = "ROLLBACK",
};

struct store {
    sqlite3 *db;
    sqlite3_stmt *prepared[STATEMENTS];
};

/* ---- errors ---- */

static int store_error(struct store *s, const char *doing, int code) {
    log_warn("vault's database: %s: %s", doing, s->db ? sqlite3_errmsg(s->db) : "out of memory");
    switch (code & 0xff) {
    case SQLITE_BUSY:
    case SQLITE_LOCKED:
        return ERR_EXISTS;
    case SQLITE_NOMEM:
        return ERR_MEMORY;
    case SQLITE_CORRUPT:
    case SQLITE_NOTADB:
    case SQLITE_ERROR:
    case SQLITE_MISMATCH:
        return ERR_CRYPTO;
    case SQLITE_TOOBIG:
        return ERR_LIMIT;
    default:
        return ERR_SYSTEM;
    }
}

static int run(struct store *s, const char *doing, const char *sql) {
    int code = sqlite3_exec(s->db, sql, NULL, NULL, NULL);
    return code == SQLITE_OK ? 0 : store_error(s, doing, code);
}

/* ---- opening ---- */

int store_open_library(void) {
    uint8_t seed[8];
    if (sqlite3_initialize() != SQLITE_OK)
        return ERR_SYSTEM;
    sqlite3_randomness(sizeof seed, seed);
    return 0;
}

static const struct {
    int option, value;
} configuration[] = {
    {SQLITE_DBCONFIG_DEFENSIVE, 1},      {SQLITE_DBCONFIG_TRUSTED_SCHEMA, 0},
    {SQLITE_DBCONFIG_ENABLE_TRIGGER, 0}, {SQLITE_DBCONFIG_ENABLE_VIEW, 0},
    {SQLITE_DBCONFIG_DQS_DDL, 0},        {SQLITE_DBCONFIG_DQS_DML, 0},
    {SQLITE_DBCONFIG_ENABLE_FKEY, 0},    {SQLITE_DBCONFIG_ENABLE_LOAD_EXTENSION, 0},
};

static const char pragmas[] =
    "PRAGMA cell_size_check = ON; PRAGMA mmap_size = 0; PRAGMA temp_store = MEMORY;"
    "PRAGMA secure_delete = ON; PRAGMA locking_mode = EXCLUSIVE; PRAGMA journal_mode = TRUNCATE;"
    "PRAGMA synchronous = FULL";

static int harden(struct store *s) {
    for (size_t i = 0; i < sizeof configuration / sizeof *configuration; i++) {
        int code =
            sqlite3_db_config(s->db, configuration[i].option, configuration[i].value, (int *)NULL);
        if (code != SQLITE_OK)
            return store_error(s, "configuration", code);
    }
    sqlite3_limit(s->db, SQLITE_LIMIT_LENGTH, STORE_BODY_MAX + 4096);
    sqlite3_limit(s->db, SQLITE_LIMIT_ATTACHED, 0);
    return run(s, "opening", pragmas);
}

/* The first column of the first row. ERR_MISSING when there is no row. */
static int ask_number(struct store *s, const char *sql, int64_t *out) {
    sqlite3_stmt *q = NULL;
    int code = sqlite3_prepare_v2(s->db, sql, -1, &q, NULL);
    if (code == SQLITE_OK)
        code = sqlite3_step(q);
    if (code == SQLITE_ROW)
        *out = sqlite3_column_int64(q, 0);
    int result = code == SQLITE_ROW    ? 0
                 : code == SQLITE_DONE ? ERR_MISSING
                                       : store_error(s, sql, code);
    sqlite3_finalize(q);
    return result;
}

static int make_schema(struct store *s) {
    static const char *const steps[] = {
        "BEGIN IMMEDIATE",
        SCHEMA_TEXT,
        "PRAGMA application_id = " TEXT(STORE_APPLICATION),
        "PRAGMA user_version = " TEXT(STORE_SCHEMA),
        "COMMIT",
    };
    int result = 0;
    for (size_t i = 0; result == 0 && i < sizeof steps / sizeof *steps; i++)
        result = run(s, "making the schema", steps[i]);
    return result;
}

struct expectation {
    const char *sql;
    int64_t value;
};

static int check_numbers(struct store *s, const struct expectation *e, size_t n) {
    for (size_t i = 0; i < n; i++) {
        int64_t value = 0;
        int result = ask_number(s, e[i].sql, &value);
        if (result != 0)
            return result;
        if (value != e[i].value)
            return ERR_BAD;
    }
    return 0;
}

/* Nothing in the schema but our table, in our words: no trigger, index or column somebody added. */
static int check_schema(struct store *s) {
    static const struct expectation ours[] = {
        {"PRAGMA application_id", STORE_APPLICATION},
        {"PRAGMA user_version", STORE_SCHEMA},
        {"SELECT count(*) FROM sqlite_schema", 1},
        {"SELECT count(*) FROM sqlite_schema WHERE type = 'table' AND name = 'item' AND sql = "
         "'" SCHEMA_TEXT "'",
         1},
    };
    return check_numbers(s, ours, sizeof ours / sizeof *ours);
}

static int check_integrity(struct store *s) {
    sqlite3_stmt *q = NULL;
    int code = sqlite3_prepare_v2(s->db, "PRAGMA integrity_check(1)", -1, &q, NULL);
    if (code == SQLITE_OK)
        code = sqlite3_step(q);
    const char *text = code == SQLITE_ROW ? (const char *)sqlite3_column_text(q, 0) : NULL;
    int result = text && strcmp(text, "ok") == 0 ? 0 : ERR_CRYPTO;
    if (!text)
        result = store_error(s, "integrity check", code);
    else if (result != 0)
        log_warn("vault's database: the integrity check found damage");
    sqlite3_finalize(q);
    return result;
}

static int prepare(struct store *s) {
    for (int i = 0; i < STATEMENTS; i++) {
        int code = sqlite3_prepare_v3(s->db, statement_text[i], -1, SQLITE_PREPARE_PERSISTENT,
                                      &s->prepared[i], NULL);
        if (code != SQLITE_OK)
            return store_error(s, statement_text[i], code);
    }
    return 0;
}

static bool is_blank(struct store *s) {
    static const struct expectation blank[] = {
        {"PRAGMA application_id", 0},
        {"PRAGMA user_version", 0},
        {"SELECT count(*) FROM sqlite_schema", 0},
    };
    return check_numbers(s, blank, sizeof blank / sizeof *blank) == 0;
}

static int finish_open(struct store *s, bool may_create, bool *fresh) {
    int result = harden(s);
    *fresh = result == 0 && may_create && is_blank(s);
    if (result == 0 && *fresh)
        result = make_schema(s);
    if (result == 0)
        result = check_schema(s);
    if (result == 0)
        result = check_integrity(s);
    return result == 0 ? prepare(s) : result;
}

int store_open(const char *path, bool may_create, struct store **out, bool *fresh) {
    struct store *s = calloc(1, sizeof *s);
    if (!s)
        return ERR_MEMORY;
    int code =
        sqlite3_open_v2(path, &s->db,
                        SQLITE_OPEN_READWRITE | (may_create ? SQLITE_OPEN_CREATE : 0) |
                            SQLITE_OPEN_EXRESCODE | SQLITE_OPEN_NOMUTEX | SQLITE_OPEN_PRIVATECACHE,
                        "unix");
    int result =
        code == SQLITE_OK ? finish_open(s, may_create, fresh) : store_error(s, "opening", code);
    if (result != 0) {
        store_close(s);
        return result;
    }
    *out = s;
    return 0;
}

int store_open_image(struct view image, struct store **out) {
    bool fresh;
    if (image.n == 0 || image.n > STORE_IMAGE_MAX)
        return ERR_BAD;
    struct store *s = calloc(1, sizeof *s);
    unsigned char *copy = s ? sqlite3_malloc64(image.n) : NULL;
    if (!copy) {
        free(s);
        return ERR_MEMORY;
    }
    memcpy(copy, image.p, image.n);
    int code = sqlite3_open_v2(":memory:", &s->db,
                               SQLITE_OPEN_READWRITE | SQLITE_OPEN_CREATE | SQLITE_OPEN_MEMORY |
                                   SQLITE_OPEN_EXRESCODE | SQLITE_OPEN_NOMUTEX,
                               NULL);
    /* From here on SQLite frees the copy, also when it refuses it. */
    if (code == SQLITE_OK)
        code =
            sqlite3_deserialize(s->db, "main", copy, (sqlite3_int64)image.n, (sqlite3_int64)image.n,
                                SQLITE_DESERIALIZE_FREEONCLOSE | SQLITE_DESERIALIZE_RESIZEABLE);
    else
        sqlite3_free(copy);
    int result =
        code == SQLITE_OK ? finish_open(s, false, &fresh) : store_error(s, "reading a copy", code);
    if (result != 0) {
        store_close(s);
        return result;
    }
    *out = s;
    return 0;
}

void store_close(struct store *s) {
    if (!s)
        return;
    for (int i = 0; i < STATEMENTS; i++)
        sqlite3_finalize(s->prepared[i]);
    sqlite3_close(s->db);
    free(s);
}

/* ---- statements ---- */

static int bind(sqlite3_stmt *q, uint8_t kind, struct view name) {
    int code = sqlite3_bind_int(q, 1, kind);
    return code != SQLITE_OK ? code
                             : sqlite3_bind_text(q, 2, name.n ? (const char *)name.p : "",
                                                 (int)name.n, SQLITE_STATIC);
}

static void done_with(sqlite3_stmt *q) {
    sqlite3_reset(q); /* repeats the error of the last step, which was looked at */
    sqlite3_clear_bindings(q);
}

/* For statements without rows; bound holds the result of the binds. */
static int step_once(struct store *s, enum statement which, int bound) {
    sqlite3_stmt *q = s->prepared[which];
    int code = bound == SQLITE_OK ? sqlite3_step(q) : bound;
    int result = code == SQLITE_DONE ? 0 : store_error(s, statement_text[which], code);
    done_with(q);
    return result;
}

int store_begin(struct store *s) {
    return step_once(s, BEGIN, SQLITE_OK);
}

int store_commit(struct store *s) {
    int result = step_once(s, COMMIT, SQLITE_OK);
    if (result != 0)
        store_rollback(s);
    return result;
}

void store_rollback(struct store *s) {
    /* Some errors have rolled back already. */
    if (!sqlite3_get_autocommit(s->db) && step_once(s, ROLLBACK, SQLITE_OK) != 0)
        log_warn("vault's database: a change could not be rolled back; the journal will do it");
}

int store_put(struct store *s, const struct row *r) {
    if (r->body.n > STORE_BODY_MAX || r->name.n > STORE_BODY_MAX)
        return ERR_LIMIT;
    int code = bind(s->prepared[PUT], r->kind, r->name);
    if (code == SQLITE_OK)
        code = sqlite3_bind_blob(s->prepared[PUT], 3, r->body.n ? r->body.p : (const uint8_t *)"",
                                 (int)r->body.n, SQLITE_STATIC);
    return step_once(s, PUT, code);
}

int store_drop(struct store *s, uint8_t kind, struct view name) {
    int result = step_once(s, DROP, bind(s->prepared[DROP], kind, name));
    return result == 0 && sqlite3_changes(s->db) != 1 ? ERR_MISSING : result;
}

static struct view column(sqlite3_stmt *q, int i) {
    const void *p = sqlite3_column_blob(q, i);
    int n = sqlite3_column_bytes(q, i);
    return view_of(p, p && n > 0 ? (size_t)n : 0);
}

int store_get(struct store *s, uint8_t kind, struct view name, struct buf *body) {
    sqlite3_stmt *q = s->prepared[GET];
    int code = bind(q, kind, name);
    if (code == SQLITE_OK)
        code = sqlite3_step(q);
    int result = code == SQLITE_ROW    ? 0
                 : code == SQLITE_DONE ? ERR_MISSING
                                       : store_error(s, statement_text[GET], code);
    if (result == 0) {
        buf_put(body, column(q, 0));
        result = buf_ok(body) ? 0 : ERR_MEMORY;
    }
    done_with(q);
    return result;
}

int store_walk(struct store *s, int (*each)(void *ctx, const struct row *r), void *ctx) {
    sqlite3_stmt *q = s->prepared[WALK];
    int code, result = 0;
    while (result == 0 && (code = sqlite3_step(q)) != SQLITE_DONE) {
        int64_t kind = code == SQLITE_ROW ? sqlite3_column_int64(q, 0) : 0;
        if (code != SQLITE_ROW)
            result = store_error(s, statement_text[WALK], code);
        else if (kind < 0 || kind > UINT8_MAX)
            result = ERR_CRYPTO;
        else
            result = each(ctx, &(struct row){(uint8_t)kind, column(q, 1), column(q, 2)});
    }
    done_with(q);
    return result;
}

/* ---- whole copies ---- */

int store_image(struct store *s, struct buf *out) {
    sqlite3_int64 size = 0;
    unsigned char *image = sqlite3_serialize(s->db, "main", &size, 0);
    if (!image)
        return ERR_MEMORY;
    buf_put(out, view_of(image, (size_t)size));
    sqlite3_free(image);
    return buf_ok(out) ? 0 : ERR_LIMIT;
}

int store_copy(struct store *from, struct store *to) {
    sqlite3_backup *b = sqlite3_backup_init(to->db, "main", from->db, "main");
    if (!b)
        return store_error(to, "restoring", sqlite3_extended_errcode(to->db));
    int code = sqlite3_backup_step(b, -1);
    int ended = sqlite3_backup_finish(b);
    if (code != SQLITE_DONE || ended != SQLITE_OK)
        return store_error(to, "restoring", code != SQLITE_DONE ? code : ended);
    return 0;
}
