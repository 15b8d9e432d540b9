"""What nodes with caches of their own get from the store, each with a daemon of its own."""

import json
import pathlib
import struct
import subprocess

ROOT = pathlib.Path(__file__).resolve().parents[2]
BATCH = 256
UNIT = 64 << 10  # What a cache fetches and checks as a whole.


class MdsLayout:
    """Where the samples of MDS shards lie."""

    def __init__(self, directory):
        self._samples = []  # Of each its shard, and where it begins and ends there.
        self._sizes = []
        for shard, path in enumerate(sorted(directory.glob("shard.*.mds"))):
            content = path.read_bytes()
            count = struct.unpack_from("<I", content)[0]
            offsets = struct.unpack_from(f"<{count + 1}I", content, 4)
            self._samples += [(shard, begin, end) for begin, end in zip(offsets, offsets[1:])]
            self._sizes.append(len(content))

    def unit_bytes(self, samples):
        """Of the units that some samples lie in, each once."""
        units = {(shard, unit) for shard, begin, end in map(self._samples.__getitem__, samples)
                 for unit in range(begin // UNIT, (end - 1) // UNIT + 1)}
        return sum(min(UNIT, self._sizes[shard] - unit * UNIT) for shard, unit in units)


class Nodes:
    """Runs nodes; `environment` gives that of one whose home is a directory."""

    def __init__(self, python, program, environment, scratch):
        self._python = python
        self._program = program
        self._environment = environment
        self._scratch = scratch

    def read(self, place, nodes, steps=0, state=""):
        """All nodes at the same time, with nothing cached; what each read, and what it fetched."""
        homes = [self._scratch / f"node{node}" for node in range(nodes)]
        running = []
        for node, home in enumerate(homes):
            home.mkdir()
            running.append(subprocess.Popen(
                [self._python, ROOT / "bench/loader/read_node.py", place, str(node), str(nodes),
                 str(BATCH), str(steps)], env=self._environment(home), text=True,
                stdin=subprocess.PIPE, stdout=subprocess.PIPE))
            running[-1].stdin.write(state)
            running[-1].stdin.close()
        found = []
        for home, process in zip(homes, running):
            lines = [line for line in process.stdout if line.startswith("RESULT ")]
            if process.wait() != 0 or not lines:
                raise RuntimeError("a node did not read its part")
            found.append(json.loads(lines[-1].removeprefix("RESULT ")) |
                         {"fetched": self._fetched(home)})
        for home in homes:
            subprocess.run([self._program, "stop"], env=self._environment(home),
                           capture_output=True)
            subprocess.run(["rm", "-rf", home], check=True)
        return found

    def _fetched(self, home):
        """All bytes of objects that its daemon got, those of the index included."""
        metrics = subprocess.run(["curl", "-sf", "--unix-socket", f"{home}/m.sock",
                                  "http://millrace/metrics"], text=True, capture_output=True,
                                 check=True).stdout
        name = 'millrace_store_bytes_total{direction="read"}'
        return next(float(line.split()[-1]) for line in metrics.splitlines()
                    if line.startswith(name))
