"""Reads one node's part of an epoch of a set, and prints what it was as JSON.

Usage: read_node.py SET NODE NODES BATCH STEPS

STEPS is how many batches are read; 0: the rest of the epoch. A state to go on from is read from
standard input, which may be empty. The result has the samples that were delivered, their bytes and
the state behind them.
"""

import json
import sys

import millrace


def main(place, node, nodes, batch, steps):
    state = sys.stdin.read()
    loader = millrace.Loader(millrace.Dataset(f"{place}@v1", seed=1), batch, rank=node,
                             world_size=nodes, ranks_per_node=1, epochs=1,
                             state={"millrace": state} if state else None)
    samples, size = [], 0
    for step, columns in enumerate(loader, start=1):
        samples += columns.sample_ids.tolist()
        size += sum(len(item) for item in columns["data"])
        if step == steps:
            break
    print("RESULT " + json.dumps({"samples": samples, "bytes": size,
                                  "state": loader.state_dict()["millrace"]}), flush=True)


if __name__ == "__main__":
    main(sys.argv[1], *map(int, sys.argv[2:6]))
