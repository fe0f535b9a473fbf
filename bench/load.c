#include "load.h"

#include <sys/prctl.h>

static const char usage[] =
    "usage: load keepalive|handshake|bulk|idle|sse [options]\n"
    "  -a PORT          127.0.0.1 port to connect to: the proxy's, or the origin's\n"
    "  -v VIA           direct (default), connect (HTTP CONNECT) or http (absolute-form)\n"
    "  -H HOST:PORT     the origin as the client names it; %d in HOST becomes 0..N-1 of -m\n"
    "  -m HOSTS         number of host names cycled through (default 1)\n"
    "  -C FILE          CA file; without it the exchange is plain HTTP\n"
    "  -p PATH          request path (default /echo)\n"
    "  -u BYTES         POST a body of this many bytes\n"
    "  -c CONNS         concurrent connections (default 1)\n"
    "  -n REQUESTS      stop after this many (default 1000)\n"
    "  -t SECONDS       stop starting requests after this time (default 30)\n"
    "  -w WARMUP        requests first made and not counted\n"
    "  -r RATE          open loop: requests/s, latency counted from the due time\n"
    "  -A VALUE         Authorization to send\n"
    "  -E VALUE         Authorization the origin must have seen (echo path)\n"
    "  -L LENGTH        body length every response must have\n"
    "  -R               resume TLS sessions (handshake mode)\n"
    "  -X STATUS        CONNECT must be refused with this status (handshake mode)\n"
    "  -k ROUNDS        idle mode: then use each connection so many times (default 1)\n"
    "  -1               one TLS version: 2 for 1.2, 3 for 1.3 (e.g. -1 2)\n"
    "idle mode prints READY, waits for a line on standard input, then uses each\n"
    "connection again. sse mode expects -p /sse/N/MS.\n";

struct options o = {.hosts = 1,
                    .conns = 1,
                    .rounds = 1,
                    .path = "/echo",
                    .requests = 1000,
                    .seconds = 30,
                    .want_len = -1};
const char *const mode_names[MODES] = {"keepalive", "handshake", "bulk", "idle", "sse"};
int ep;
struct conn *conns, **spare;
int n_spare;
bool draining;

bool more(void) {
    if (o.mode == IDLE || (total.good == 0 && total.finished > 1000 + o.warmup))
        return false; /* idle() issues them itself; a proxy that answers nothing is left alone */
    return total.issued < o.requests + o.warmup &&
           (double)(now_ns(CLOCK_MONOTONIC) - total.began) < o.seconds * 1e9;
}

/* ---- main loops ---- */

static void poll_once(int64_t wait_ns) {
    struct epoll_event ev[256];
    struct timespec ts = {.tv_sec = wait_ns / 1000000000, .tv_nsec = wait_ns % 1000000000};
    int n = epoll_pwait2(ep, ev, 256, &ts, NULL);

    for (int i = 0; i < n; i++)
        run(ev[i].data.ptr);
}

uint64_t busy(void) {
    return total.issued - total.finished;
}

/* Hard stop for a proxy that hangs: the time given to start requests plus this. */
static bool expired(void) {
    return (double)(now_ns(CLOCK_MONOTONIC) - total.began) > (o.seconds + 20) * 1e9;
}

static void start(struct conn *c, uint64_t due) {
    if (begin(c, due))
        run(c);
    else if (o.rate > 0)
        spare[n_spare++] = c;
}

static void closed_loop(void) {
    for (int i = 0; i < o.conns && more(); i++)
        start(&conns[i], now_ns(CLOCK_MONOTONIC));
    while (busy() > 0 && !expired())
        poll_once(50000000);
}

static void open_loop(void) {
    double gap = 1e9 / o.rate;
    uint64_t sent = 0, t0 = now_ns(CLOCK_MONOTONIC);

    for (int i = 0; i < o.conns; i++)
        spare[n_spare++] = &conns[i];
    while ((more() || busy() > 0) && !expired()) {
        uint64_t now = now_ns(CLOCK_MONOTONIC);
        uint64_t due = t0 + (uint64_t)((double)sent * gap);

        while (due <= now && n_spare > 0 && more()) {
            start(spare[--n_spare], due);
            due = t0 + (uint64_t)((double)++sent * gap);
        }
        now = now_ns(CLOCK_MONOTONIC);
        poll_once(!more() || n_spare == 0 ? 50000000 : due > now ? (int64_t)(due - now) : 0);
    }
}

static void use_each(void) {
    for (int at = 0; (at < o.conns || busy() > 0) && !expired();) {
        for (; at < o.conns && busy() < 64; at++)
            if (conns[at].st == FREE)
                start(&conns[at], now_ns(CLOCK_MONOTONIC));
        poll_once(50000000);
    }
}

/* Open every connection (at most 64 at a time), use each once, hold, use again. */
static void idle(void) {
    char line[16];
    int at = 0, alive = 0;

    while ((at < o.conns || busy() > 0) && !expired()) {
        while (at < o.conns && busy() < 64)
            start(&conns[at++], now_ns(CLOCK_MONOTONIC));
        poll_once(50000000);
    }
    for (int i = 0; i < o.conns; i++)
        alive += conns[i].st == FREE;
    printf("READY %d\n", alive);
    fflush(stdout);
    if (fgets(line, sizeof line, stdin) == NULL)
        return;
    for (int i = 0; i < 4096 && !expired(); i++)
        poll_once(0); /* learn of what was closed meanwhile */
    draining = true;
    for (int round = 0; round < o.rounds; round++)
        use_each();
}

static void options(int argc, char **argv) {
    static const char *const vias[] = {"direct", "connect", "http"};
    int opt, m, v = 0;
    const char *colon = NULL;

    for (m = 0; argc > 1 && m < MODES && strcmp(argv[1], mode_names[m]) != 0; m++)
        ;
    if (argc < 2 || m == MODES)
        die("%s", usage);
    o.mode = (enum mode)m;
    optind = 2;
    while ((opt = getopt(argc, argv, "a:v:H:m:C:p:u:c:n:t:w:r:A:E:L:RX:k:1:")) != -1) {
        switch (opt) {
        case 'a':
            o.port = atoi(optarg);
            break;
        case 'v':
            for (v = 0; v < VIAS && strcmp(optarg, vias[v]) != 0; v++)
                ;
            if (v == VIAS)
                die("%s", usage);
            o.via = (enum via)v;
            break;
        case 'H':
            o.host = optarg;
            break;
        case 'm':
            o.hosts = atoi(optarg);
            break;
        case 'C':
            o.ca = optarg;
            break;
        case 'p':
            o.path = optarg;
            break;
        case 'u':
            o.upload = strtoull(optarg, NULL, 10);
            break;
        case 'c':
            o.conns = atoi(optarg);
            break;
        case 'n':
            o.requests = strtoull(optarg, NULL, 10);
            break;
        case 't':
            o.seconds = atof(optarg);
            break;
        case 'w':
            o.warmup = strtoull(optarg, NULL, 10);
            break;
        case 'r':
            o.rate = atof(optarg);
            break;
        case 'A':
            o.auth = optarg;
            break;
        case 'E':
            o.expect = optarg;
            break;
        case 'L':
            o.want_len = atoll(optarg);
            break;
        case 'R':
            o.resume = true;
            break;
        case 'X':
            o.refusal = atoi(optarg);
            break;
        case 'k':
            o.rounds = atoi(optarg);
            break;
        case '1':
            o.tls_only = atoi(optarg);
            break;
        default:
            die("%s", usage);
        }
    }
    if (o.port <= 0 || o.host == NULL || o.conns < 1 || o.hosts < 1 ||
        (colon = strrchr(o.host, ':')) == NULL)
        die("%s", usage);
    snprintf(o.name, sizeof o.name, "%.*s", (int)(colon - o.host), o.host);
    snprintf(o.target_port, sizeof o.target_port, "%s", colon + 1);
}

int main(int argc, char **argv) {
    options(argc, argv);
    process_init();
    pattern_init();
    prctl(PR_SET_TIMERSLACK, 1UL);
    steps_init();
    ep = epoll_create1(EPOLL_CLOEXEC);
    conns = calloc((size_t)o.conns, sizeof *conns);
    spare = calloc((size_t)o.conns, sizeof *spare);
    if (conns == NULL || spare == NULL)
        die("out of memory");
    for (int i = 0; i < o.conns; i++)
        conns[i].io.fd = -1;
    total.began = total.measured = total.last = now_ns(CLOCK_MONOTONIC);
    if (o.mode == IDLE)
        idle();
    else if (o.rate > 0)
        open_loop();
    else
        closed_loop();
    print_report();
    return 0;
}
