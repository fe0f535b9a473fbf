"""Tables of what run.py measured: medians, and ratios and differences within one repetition."""
import json
import statistics

MODES = ["cold", "warm", "resume", "keepalive", "single", "rate", "down", "up", "sse", "plain", "refusal", "idle",
         "scale"]
RATIOS = ["squid", "haproxy", "relay"]
COLUMNS = ["CPU us each", "CPU s/GB", "KB each", "alive", "/s", "GB/s", "resumed %", "origin handshakes %", "errors"]


def figures(r):
    """The figures of one run: name to value; CPU first, which is the steadiest."""
    f, done, mode = {}, r.get("finished", 0), r["mode"].split("-")[0]
    if mode == "idle":
        return {"KB each": r["kb_each"], "alive": r["alive"], "errors": r["errors"]}
    bulk = mode in ("down", "up")
    if bulk and r.get("bytes") and "proxy_cpu" in r:
        f["CPU s/GB"] = r["proxy_cpu"] / (r["bytes"] / 1e9)
    if not bulk and done and "proxy_cpu" in r:
        f["CPU us each"] = r["proxy_cpu"] / done * 1e6
    if bulk:
        f["GB/s"] = r.get("gbps", 0)
    elif mode not in ("rate", "sse", "scale"):
        f["/s"] = r.get("rps", 0)
    if mode in ("cold", "warm", "resume") and done:
        f["resumed %"] = 100 * r["resumed"] / done
        f["origin handshakes %"] = 100 * (r["origin"]["full"] + r["origin"]["resumed"]) / done
    f["errors"] = r["errors"]
    if not bulk and mode != "scale":
        for name in ("p50", "p99"):
            f[name] = r.get("lat_%s_us" % name, 0)
    return f


def middle(values):
    values = [v for v in values if v is not None]
    return statistics.median(values) if values else None


def show(value, digits):
    return "-" if value is None else "%.*f" % (digits, value)


def digits_of(column):
    return {"CPU s/GB": 2, "GB/s": 2, "/s": 0, "alive": 0, "errors": 0}.get(column, 0 if "%" in column else 1)


def against(runs, others, what):
    """The median of what(own, other) over the repetitions that both have."""
    by = {o["rep"]: figures(o) for o in others}
    return middle([what(figures(r), by[r["rep"]]) for r in runs if r["rep"] in by])


def ratio(column):
    return lambda own, other: own[column] / other[column] if own.get(column) and other.get(column) else None


def row(name, runs, targets, columns, cost):
    cells = [name] + [show(middle([figures(r).get(c) for r in runs]), digits_of(c)) for c in columns]
    for other in RATIOS:
        if other in targets:
            cells.append(show(against(runs, targets[other], ratio(cost)), 2))
    for p in ("p50", "p99"):
        if "direct" in targets and p in figures(runs[0]):
            cells.append(show(against(runs, targets["direct"], lambda own, other, p=p: own[p] - other[p]), 0))
    return cells


def heads(columns, targets, cost, latency):
    found = ["target"] + columns + ["%s x %s" % (cost.split()[0], o) for o in RATIOS if o in targets]
    return found + (["added p50 us", "added p99 us"] if latency and "direct" in targets else [])


def table(rows):
    widths = [max(len(r[i]) for r in rows) for i in range(len(rows[0]))]
    for at, cells in enumerate(rows):
        print("| " + " | ".join(c.ljust(n) if i == 0 else c.rjust(n) for i, (c, n) in enumerate(zip(cells, widths))) + " |")
        if at == 0:
            print("|" + "|".join("-" * (n + 1) + ("-" if i == 0 else ":") for i, n in enumerate(widths)) + "|")


def print_scale(by_number):
    """CPU a request by the number of connections, and how it grows from a thousand on."""
    numbers = sorted(by_number)
    names = list(dict.fromkeys(name for targets in by_number.values() for name in targets))
    grows = [n for n in numbers if n >= 1000]
    rows = [["CPU us each, connections:"] + [str(n) for n in numbers] +
            (["%d / %d" % (grows[-1], grows[0])] if len(grows) > 1 else [])]
    for name in names:
        cpu = {n: middle([figures(r).get("CPU us each") for r in by_number[n].get(name, [])]) for n in numbers}
        cells = [name] + [show(cpu[n], 1) for n in numbers]
        if len(grows) > 1:
            most, least = cpu[grows[-1]], cpu[grows[0]]
            cells.append(show(most / least if most and least else None, 2))
        rows.append(cells)
    print("\nscale\n")
    table(rows)


def print_mode(mode, targets, missing):
    there = {c for runs in targets.values() for r in runs for c in figures(r)}
    columns = [c for c in COLUMNS if c in there]
    cost = next((c for c in ("CPU us each", "CPU s/GB", "KB each") if c in columns), "CPU us each")
    latency = any("p50" in figures(runs[0]) for runs in targets.values())
    rows = [heads(columns, targets, cost, latency)]
    rows += [row(name, runs, targets, columns, cost) for name, runs in targets.items()]
    rows += [[name, "not installed"] for name in missing]
    width = max(len(r) for r in rows)
    print("\n%s (%d repetitions)\n" % (mode, max(len(r) for r in targets.values())))
    table([r + ["-"] * (width - len(r)) for r in rows])


def report(path, missing=()):
    """Prints a table for each mode; missing: targets that are not installed. How many runs had errors."""
    with open(path) as f:
        runs = [json.loads(line) for line in f]
    by = {}
    for r in runs:
        by.setdefault(r["mode"], {}).setdefault(r["target"], []).append(r)
    scale = {int(m.split("-")[1]): by.pop(m) for m in list(by) if m.startswith("scale-")}
    for mode in sorted(by, key=lambda m: (MODES.index(m.split("-")[0]), int((m.split("-") + ["0"])[1]))):
        print_mode(mode, by[mode], missing)
    if scale:
        print_scale(scale)
    bad = [r for r in runs if r["errors"]]
    if bad:
        print("\n%d runs with errors, the first: %s %s: %s" %
              (len(bad), bad[0]["target"], bad[0]["mode"], bad[0].get("first_error", "")))
    return len(bad)
