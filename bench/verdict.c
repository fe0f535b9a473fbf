/*
 * Nanoseconds a verdict for policies of 10, 1,000 and 100,000 operations, over all their operations in turn, and
 * what a verdict allocates: nothing. Also the time to load them and their memory.
 */
#include "policy/policy.h"

#include <malloc.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

enum { FILES_OF = 16, TURNS = 400000 };

/* glibc's own, which ours calls. */
extern void *__libc_malloc(size_t size);
void *malloc(size_t size);

static unsigned long allocations;

void *malloc(size_t size) {
    allocations++;
    return __libc_malloc(size);
}

static uint64_t now(void) {
    struct timespec t;
    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t);
    return (uint64_t)t.tv_sec * 1000000000 + (uint64_t)t.tv_nsec;
}

struct shape {
    unsigned files, services,
        operations; /* so many files of so many services of so many operations */
};

/* Operation k: three in four are literal paths, the others have templates. */
static void write_operation(struct buf *b, unsigned k) {
    if (k % 4 == 3)
        buf_printf(b, "operation o%u { GET /v1/group%u/{id:int}/x%u }\n", k, k % 97, k);
    else
        buf_printf(b, "operation o%u { GET /v1/group%u/x%u }\n", k, k % 97, k);
}

static void write_file(struct buf *b, const struct shape *s, unsigned file) {
    for (unsigned i = 0; i < s->services; i++) {
        unsigned n = file * s->services + i;
        buf_printf(b, "service s%u { host api%u.example.com\n", n, n);
        buf_printf(b, "credential k%u { in header authorization scheme bearer }\n", n);
        for (unsigned k = 0; k < s->operations; k++)
            write_operation(b, k);
        buf_put_str(b, "never { * /v1/*/secret }\n}\n");
    }
}

static int read_file(void *ctx, const char *from, struct view path, struct buf *out, char *name,
                     size_t size, const char **why) {
    (void)from;
    (void)why;
    write_file(out, ctx, (unsigned)strtoul((const char *)path.p + 1, NULL, 10));
    return view_cstr(path, name, size);
}

static struct policy *load(const struct shape *s) {
    static struct policy_errors errors;
    struct policy_files files = {read_file, (void *)(uintptr_t)s};
    struct policy *p;
    struct buf text;
    buf_init(&text, POLICY_TEXT_MAX);
    for (unsigned i = 0; i < s->files; i++)
        buf_printf(&text, "include f%u\n", i);
    buf_put_str(&text, "sandbox w {\n");
    for (unsigned i = 0; i < s->files * s->services; i++)
        buf_printf(&text, "grant s%u all\n", i);
    buf_put_str(&text, "}\n");
    if (policy_load_files(buf_view(&text), "bench", &files, &p, &errors) != 0) {
        fprintf(stderr, "%s\n", errors.at[0].text);
        exit(1);
    }
    buf_free(&text);
    return p;
}

struct request {
    struct authority authority;
    char path[64];
};

static void make_request(struct request *r, const struct shape *s, unsigned turn) {
    unsigned service = turn * 7919 % (s->files * s->services), k = turn * 104729 % s->operations;
    char host[64];
    snprintf(host, sizeof host, "api%u.example.com", service);
    if (authority_parse(view_str(host), 443, &r->authority, NULL) != 0)
        exit(1);
    snprintf(r->path, sizeof r->path, k % 4 == 3 ? "/v1/group%u/42/x%u" : "/v1/group%u/x%u", k % 97,
             k);
}

static void measure(const struct shape *s) {
    enum { REQUESTS = 4096 };
    static struct request requests[REQUESTS];
    static struct materials none;
    size_t before = mallinfo2().uordblks;
    uint64_t start = now();
    struct policy *p = load(s);
    double load_ms = (double)(now() - start) / 1e6;
    double megabytes = (double)(mallinfo2().uordblks - before) / 1048576;
    for (unsigned i = 0; i < REQUESTS; i++)
        make_request(&requests[i], s, i);
    unsigned long allocated = allocations;
    unsigned found = 0;
    start = now();
    for (unsigned i = 0; i < TURNS; i++) {
        const struct request *r = &requests[i % REQUESTS];
        struct target t = {.path = view_str(r->path)};
        struct request_facts f = {.sandbox = VIEW("w"),
                                  .tls = true,
                                  .authority = &r->authority,
                                  .method = VIEW("GET"),
                                  .target = &t,
                                  .materials = &none,
                                  .length_known = true};
        found += policy_judge(p, &f).reason == REASON_CREDENTIAL_MISSING;
    }
    uint64_t each = (now() - start) / TURNS;
    allocated = allocations - allocated;
    printf("%7u operations: %5llu ns a verdict, %lu allocations; loaded in %.0f ms, %.1f MiB\n",
           s->files * s->services * s->operations, (unsigned long long)each, allocated, load_ms,
           megabytes);
    if (found != TURNS || allocated != 0)
        exit(1);
    policy_free(p);
}

int main(void) {
    static const struct shape shapes[] = {
        {1, 1, 10}, {1, 10, 100}, {1, 1, 1000}, {FILES_OF, 62, 101}, {FILES_OF, 1, 6250}};
    for (size_t i = 0; i < sizeof shapes / sizeof shapes[0]; i++)
        measure(&shapes[i]);
    return 0;
}
