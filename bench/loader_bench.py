#!/usr/bin/env python3
"""Our loader against MosaicML Streaming, LitData and WebDataset: the same samples from the same
Ceph, behind a proxy that adds 20 ms to each request.

Usage: loader_bench.py [--rounds N] [--set NAME] [--time-max SECONDS] [--ours-only]

The peers are Python's and take 6 GB: `tools/setup peers` installs them in build/peers, and
MILLRACE_BENCH_PEERS names another virtual environment that has them. For ours alone that of the
tests will do, build/python_torch. loader/write_sets.py makes the sets, loader/read_epochs.py and
read_node.py read them, each run in a process of its own.
"""

import argparse
import contextlib
import datetime
import json
import os
import pathlib
import platform
import shlex
import signal
import statistics
import subprocess
import sys
import tempfile

from loader.node_bytes import BATCH, MdsLayout, Nodes

ROOT = pathlib.Path(__file__).resolve().parent.parent
BUILD = ROOT / "build" / "release"
KEYS = {"AWS_ACCESS_KEY_ID": "millrace", "AWS_SECRET_ACCESS_KEY": "millrace-secret",
        "AWS_DEFAULT_REGION": "us-east-1"}
SIGNED = ["--aws-sigv4", "aws:amz:us-east-1:s3", "-u",
          f"{KEYS['AWS_ACCESS_KEY_ID']}:{KEYS['AWS_SECRET_ACCESS_KEY']}",
          "-H", "x-amz-content-sha256: UNSIGNED-PAYLOAD"]
BUCKET = "loader"
# Samples, and bytes of each: the second is 3 GB, and is that of the first batch too.
SETS = {"4k": (60_000, 4 << 10), "110k": (28_000, 110 << 10)}
FIRST_BATCH_SET = "110k"
# The same with more workers, because a loader that waits for the store gains by them.
PEERS = [(name, workers) for name in ("mosaic", "litdata", "webdataset") for workers in (2, 4)]
FIRST_BATCH_S_MAX = 0.3
# One that is fetched, and others that are cached: some in each second.
BOUNDARY_EPOCHS = 40
WORST_SECOND_MIN = 0.8
NODES = 4
# Of all units that samples lie in: room for index, tables and manifest.
FETCHED_MAX = 1.01
STORE_MEMORY_MIN = 96 << 30


def fail(text):
    print(f"loader: {text}", file=sys.stderr)
    sys.exit(1)


def peers_python(ours_only):
    home = pathlib.Path(os.environ.get("MILLRACE_BENCH_PEERS", ROOT / "build" / (
        "python_torch" if ours_only else "peers")))
    if not (home / "bin" / "python3").exists():
        print(f"loader: skipped, no peers in {home}: `tools/setup peers` installs them (6 GB), or "
              "MILLRACE_BENCH_PEERS names a virtual environment that has them")
        sys.exit(0)
    return str(home / "bin" / "python3")


class Bench:
    """The store, the proxy before it, and runs of readers against them."""

    def __init__(self, stack, options):
        self.options = options
        self.python = peers_python(options.ours_only)
        disk = os.environ.get("MILLRACE_BENCH_DISK", ROOT / "build")
        self.scratch = pathlib.Path(stack.enter_context(
            tempfile.TemporaryDirectory(prefix="loader-bench-", dir=disk)))
        self.store = self._ceph(stack)
        self._curl("-X", "PUT", f"{self.store}/{BUCKET}")
        self.proxy = self._proxy(stack)
        self.shards = {}
        self.layouts = {}
        self._runs = 0

    def _ceph(self, stack):
        home = tempfile.mkdtemp(prefix="millrace-ceph-", dir="/tmp")
        stack.callback(subprocess.run, [ROOT / "tools/ceph", "stop", home], capture_output=True)
        # In memory where there is room, so that a loader's disk is its own.
        in_memory = os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE") >= STORE_MEMORY_MIN
        environment = dict(os.environ, STORE="memstore" if in_memory else "bluestore",
                           SIZE=str(40 << 30))
        started = subprocess.run([ROOT / "tools/ceph", "start", home, "--parent",
                                  str(os.getpid())], env=environment, text=True,
                                 stdout=subprocess.PIPE, check=True)
        return started.stdout.split()[-1]

    def _proxy(self, stack):
        process = subprocess.Popen([BUILD / "fault_proxy", "--upstream",
                                    self.store.removeprefix("http://"), "--latency", "20ms"],
                                   stdout=subprocess.PIPE, text=True)
        stack.callback(process.terminate)
        return process.stdout.readline().split()[-1]

    def _curl(self, *arguments):
        """Returns the seconds that it took."""
        words = ["curl", "-sf", "--no-progress-meter", "--noproxy", "*", *SIGNED, *arguments]
        start = os.times().elapsed
        subprocess.run(words, check=True, stdout=subprocess.DEVNULL)
        return os.times().elapsed - start

    def _environment(self, home, endpoint):
        return dict(os.environ, **KEYS, HOME=str(home), MILLRACE_CACHE=f"{home}/millrace",
                    MILLRACE_SOCKET=f"{home}/m.sock", BENCH_BUCKET=BUCKET, BENCH_ENDPOINT=endpoint,
                    MILLRACE_STORE=f"s3://{BUCKET}?endpoint={endpoint}",
                    MILLRACE_BIN=str(BUILD / "millrace"), BENCH_SHARDS=json.dumps(self.shards),
                    BENCH_CURL=shlex.join(["curl", "-sf", "--noproxy", "*", *SIGNED]),
                    PYTHONPATH=str(ROOT / "python" / "src"), PYTHONWARNINGS="ignore",
                    DISABLE_VERSION_CHECK="1")

    def prepare(self, name, samples, size):
        """Writes a set, puts it into the store and registers what is ours to read of it."""
        with tempfile.TemporaryDirectory(dir=self.scratch) as directory:
            tree = pathlib.Path(directory) / "set"
            environment = self._environment(directory, self.store)
            formats = ["mds", "tar"] if self.options.ours_only else []
            for command in ([self.python, ROOT / "bench/loader/write_sets.py", tree, str(samples),
                             str(size), *formats],
                            [BUILD / "millrace", "store", "cp", "-r", tree, f"store:{name}"],
                            [BUILD / "millrace", "register", f"{name}/mds", f"{name}@v1"]):
                done = subprocess.run(command, env=environment, capture_output=True, text=True)
                if done.returncode != 0:
                    fail(f"{command} failed: {done.stderr[-2000:]}")
            self.layouts[name] = MdsLayout(tree / "mds")
            self.shards[name] = sorted(path.name for path in (tree / "tar").glob("*.tar"))

    def raw_rate(self, name, samples):
        """Samples per second that parallel curl gets of the same shards: the physical limit."""
        urls = [f"{self.proxy}/{BUCKET}/{name}/tar/{shard}" for shard in self.shards[name]]
        targets = [word for url in urls for word in (url, "-o", "/dev/null")]
        return samples / min(self._curl("-Z", "--parallel-max", "64", *targets) for _ in range(3))

    def read(self, loader, name, epochs, workers):
        """One run with nothing cached; what read_epochs.py prints."""
        self._runs += 1
        home = self.scratch / str(self._runs)
        home.mkdir()
        environment = self._environment(home, self.proxy)
        command = [self.python, ROOT / "bench/loader/read_epochs.py", loader, name, str(epochs),
                   str(BATCH), str(workers), home]
        process = subprocess.Popen(command, env=environment, stdout=subprocess.PIPE,
                                   stderr=subprocess.PIPE, text=True, start_new_session=True)
        try:
            output, errors = process.communicate(timeout=self.options.time_max)
        except subprocess.TimeoutExpired:
            output, errors = "", f"it was ended after {self.options.time_max} s"
        finally:
            with contextlib.suppress(ProcessLookupError):
                os.killpg(process.pid, signal.SIGKILL)  # And its workers.
            process.wait()
            subprocess.run([BUILD / "millrace", "stop"], env=environment, capture_output=True)
        lines = [line for line in output.splitlines() if line.startswith("RESULT ")]
        subprocess.run(["rm", "-rf", home], check=True)
        if not lines:
            print(f"  {loader} with {workers} workers failed: {errors[-1000:]}", flush=True)
            return None
        return json.loads(lines[-1].removeprefix("RESULT "))


    def nodes(self):
        return Nodes(self.python, BUILD / "millrace",
                     lambda home: self._environment(home, self.proxy), self.scratch)


def best_peers(bench, name, epochs, figures):
    """Every peer runs once; the one with the lowest of each figure goes into the rounds."""
    runs = []
    for loader, workers in PEERS:
        result = bench.read(loader, name, epochs, workers)
        if result:
            print(f"  {loader} with {workers} workers: {shown(result)}; imports before that: "
                  f"{imports(result)}", flush=True)
            runs.append(([figure(result) for figure in figures], (loader, workers)))
    if not runs:
        fail("no peer works here")
    return sorted({min((values[n], peer) for values, peer in runs)[1]
                   for n in range(len(figures))})


def imports(result):
    took = result[0]["imports"]
    return f"{took['torch_s']:.2f} s for torch and NumPy, {took['own_s']:.2f} s for its own"


def shown(result):
    return ", ".join(f"{epoch['samples'] / epoch['seconds']:.0f}/s at "
                     f"{epoch['cpu_s'] / epoch['samples'] * 1e6:.0f} us CPU (first batch "
                     f"{epoch['first_batch_s']:.2f} s)" for epoch in result)


def report(bench, value, unit, ratio, against, goal, met, raw):
    """Prints a result and appends it, as bench_report.cc does."""
    print(f"{bench}: {value:.4g} {unit}, {ratio:.3f} of {against}; goal {goal}: "
          f"{'met' if met else 'MISSED'}", flush=True)
    line = {"bench": bench, "value": value, "unit": unit, "ratio": ratio, "against": against,
            "goal": goal, "goal_met": met, "cpu_s": raw.get("cpu_s", 0),
            "rss_mib": raw.get("rss_mib", 0),
            "time": datetime.datetime.now(datetime.UTC).isoformat(timespec="seconds"),
            "machine": {"cpu": platform.processor() or platform.machine(),
                        "cores": os.cpu_count(), "kernel": platform.release(),
                        "load": os.getloadavg()[0]}, "raw": raw}
    path = pathlib.Path(os.environ.get("MILLRACE_BENCH_RESULTS",
                                       ROOT / "build" / "bench" / "results.jsonl"))
    path.parent.mkdir(parents=True, exist_ok=True)
    with path.open("a") as file:
        file.write(json.dumps(line) + "\n")


def rate(epoch):
    return epoch["samples"] / epoch["seconds"]


def cpu(epoch):
    return epoch["cpu_s"] / epoch["samples"]


def median_ratio(rounds, figure, epoch, best):
    """Of ours to the best peer's, inside each round."""
    return statistics.median(figure(ours[epoch]) / best(figure(peer[epoch]) for peer in peers)
                             for ours, peers in rounds)


def compare_epochs(bench, name, samples):
    print(f"--- {name}: {samples} samples", flush=True)
    raw = bench.raw_rate(name, samples)
    print(f"  parallel curl, the physical limit: {raw:.0f}/s", flush=True)
    if bench.options.ours_only:
        for _ in range(bench.options.rounds):
            print(f"  millrace: {shown(bench.read('millrace', name, 2, 0))}", flush=True)
        return
    chosen = best_peers(bench, name, 2, [lambda result, epoch=epoch, key=key: result[epoch][key]
                                         for epoch in (0, 1) for key in ("seconds", "cpu_s")])
    rounds = []
    for _ in range(bench.options.rounds):
        ours = bench.read("millrace", name, 2, 0)
        if ours is None or any(epoch["samples"] != samples for epoch in ours):
            fail(f"ours did not deliver {samples} samples: {ours}")
        peers = [result for result in (bench.read(loader, name, 2, workers)
                                       for loader, workers in chosen) if result]
        print(f"  millrace: {shown(ours)}", flush=True)
        for (loader, workers), result in zip(chosen, peers):
            print(f"  {loader} with {workers} workers: {shown(result)}", flush=True)
        rounds.append((ours, peers))
    figures = {"rounds": rounds, "raw_rate": raw, "peers": chosen,
               "rss_mib": max(ours[0]["rss_mib"] for ours, _ in rounds)}
    cold = statistics.median(rate(ours[0]) for ours, _ in rounds)
    peer = statistics.median(max(rate(p[0]) for p in peers) for _, peers in rounds)
    goal = min(2.0, 0.9 * raw / peer)
    against = "the fastest peer"
    ratio = median_ratio(rounds, rate, 0, max)
    report(f"loader_cold_{name}", cold, "samples/s", ratio, against, f">= {goal:.2f}",
           ratio >= goal, figures)
    warm = statistics.median(rate(ours[1]) for ours, _ in rounds)
    ratio = median_ratio(rounds, rate, 1, max)
    report(f"loader_warm_{name}", warm, "samples/s", ratio, against, ">= 5", ratio >= 5, figures)
    for epoch, kind in enumerate(("cold", "warm")):
        used = statistics.median(cpu(ours[epoch]) for ours, _ in rounds) * 1e6
        ratio = median_ratio(rounds, cpu, epoch, min)
        report(f"loader_cpu_{kind}_{name}", used, "us/sample", ratio, "the thriftiest peer",
               "<= 0.333", ratio <= 1 / 3, figures)


def measure_boundaries(bench, name, samples):
    """How even ours is where one epoch ends and the next begins."""
    result = bench.read("millrace", name, BOUNDARY_EPOCHS, 0)
    if result is None or any(epoch["samples"] != samples for epoch in result):
        fail(f"ours did not deliver {samples} samples: {result}")
    seconds = result[0]["by_second"]
    waits = [epoch["first_batch_s"] * 1e3 for epoch in result[1:]]
    print(f"--- {name}: {BOUNDARY_EPOCHS} epochs\n  samples in each second behind the first epoch: "
          f"{' '.join(map(str, seconds))}\n  from the last batch of an epoch to the first of the "
          f"next: {statistics.median(waits):.1f} ms, at most {max(waits):.1f} ms", flush=True)
    if len(seconds) < 3:
        print("  too few whole seconds to compare", flush=True)
        return
    ratio = min(seconds) / statistics.median(seconds)
    report(f"loader_worst_second_{name}", min(seconds), "samples/s", ratio, "the median second",
           f">= {WORST_SECOND_MIN}", ratio >= WORST_SECOND_MIN,
           {"by_second": seconds, "waits_ms": waits})


def measure_bytes(bench, name, samples):
    """What one node fetches for an epoch, and what four do that go on with a job of one."""
    print(f"--- {name}: bytes from the store", flush=True)
    nodes, layout = bench.nodes(), bench.layouts[name]
    part = nodes.read(name, 1, steps=samples // BATCH // 3)[0]
    for kind, found in (("one_node", nodes.read(name, 1)),
                        ("resumed", nodes.read(name, NODES, state=part["state"]))):
        delivered = sorted(sample for node in found for sample in node["samples"])
        before = part["samples"] if kind == "resumed" else []
        if delivered != sorted(set(range(samples)) - set(before)):
            fail(f"{kind}: the nodes did not deliver every sample once")
        units = [layout.unit_bytes(node["samples"]) for node in found]
        ratios = [node["fetched"] / wanted for node, wanted in zip(found, units)]
        print(f"  {kind}: fetched MB " + " ".join(f"{node['fetched'] / 1e6:.1f}" for node in found)
              + "; of the units of their samples " + " ".join(f"{ratio:.4f}" for ratio in ratios)
              + "; of the samples' own bytes "
              + " ".join(f"{node['fetched'] / node['bytes']:.4f}" for node in found), flush=True)
        report(f"loader_bytes_{kind}_{name}", sum(node["fetched"] for node in found), "bytes",
               max(ratios), "the 64 KiB units that its samples lie in, the worst node",
               f"<= {FETCHED_MAX}", max(ratios) <= FETCHED_MAX,
               {"fetched": [node["fetched"] for node in found], "units": units,
                "samples": [node["bytes"] for node in found]})


def compare_first_batches(bench, name):
    print(f"--- {name}: the first batch", flush=True)
    runs = [bench.read("millrace", name, 0, 0) for _ in range(bench.options.rounds)]
    ours = [run[0]["first_batch_s"] for run in runs]
    print(f"  millrace: {' '.join(f'{seconds:.3f}' for seconds in ours)} s; imports before that: "
          f"{imports(runs[-1])}", flush=True)
    if bench.options.ours_only:
        return
    chosen = best_peers(bench, name, 0, [lambda result: result[0]["first_batch_s"]])
    theirs = [bench.read(*chosen[0][:1], name, 0, chosen[0][1])[0]["first_batch_s"]
              for _ in range(bench.options.rounds)]
    seconds = statistics.median(ours)
    ratio = seconds / statistics.median(theirs)
    report(f"loader_first_batch_{name}", seconds, "s", ratio, f"{chosen[0][0]}, the fastest peer",
           f"<= {FIRST_BATCH_S_MAX} s, < 1", seconds <= FIRST_BATCH_S_MAX and ratio < 1,
           {"ours": ours, "peer": theirs})


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--set", choices=SETS)
    parser.add_argument("--time-max", type=int, default=900, metavar="SECONDS",
                        help="a loader that needs longer for its epochs counts as failed")
    parser.add_argument("--ours-only", action="store_true")
    options = parser.parse_args()
    with contextlib.ExitStack() as stack:
        bench = Bench(stack, options)
        for name, (samples, size) in SETS.items():
            if options.set in (None, name):
                bench.prepare(name, samples, size)
                compare_epochs(bench, name, samples)
                measure_boundaries(bench, name, samples)
                measure_bytes(bench, name, samples)
                if name == FIRST_BATCH_SET:
                    compare_first_batches(bench, name)


if __name__ == "__main__":
    signal.signal(signal.SIGTERM, lambda number, frame: sys.exit(128 + number))
    main()
