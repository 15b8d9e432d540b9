"""Reads a directory of class folders as PyTorch's ImageFolder and DataLoader do.

Usage: image_folder.py ROOT WORKERS EPOCHS

The classes are the folders in order of name, the samples their files; forked workers get shuffled
batches of indexes over a queue, and send labels and bytes back. Prints a line for each epoch: how
many samples came, and one digest over all of them, which does not depend on their order.
"""

import hashlib
import multiprocessing
import os
import random
import sys

BATCH = 16


def find_samples(root):
    classes = sorted(entry.name for entry in os.scandir(root) if entry.is_dir())
    samples = []
    for label, name in enumerate(classes):
        for directory, _, files in sorted(os.walk(os.path.join(root, name))):
            samples += [(os.path.join(directory, file), label) for file in sorted(files)]
    return samples


def work(samples, batches, results):
    for batch in iter(batches.get, None):
        loaded = []
        for index in batch:
            path, label = samples[index]
            with open(path, "rb") as file:
                loaded.append((index, label, file.read()))
        results.put(loaded)


def run_epoch(samples, workers, seed):
    context = multiprocessing.get_context("fork")
    batches, results = context.Queue(), context.Queue()
    processes = [context.Process(target=work, args=(samples, batches, results))
                 for _ in range(workers)]
    for process in processes:
        process.start()
    order = list(range(len(samples)))
    random.Random(seed).shuffle(order)
    cut = [order[at:at + BATCH] for at in range(0, len(order), BATCH)]
    for batch in cut + [None] * workers:
        batches.put(batch)
    seen = {}
    for _ in cut:
        for index, label, data in results.get():
            seen[index] = hashlib.sha256(f"{samples[index][0]} {label} ".encode() + data).digest()
    for process in processes:
        process.join()
        if process.exitcode != 0:
            sys.exit(f"a worker ended with {process.exitcode}")
    return len(seen), hashlib.sha256(b"".join(seen[index] for index in sorted(seen))).hexdigest()


def main():
    root, workers, epochs = sys.argv[1], int(sys.argv[2]), int(sys.argv[3])
    os.chdir(root)
    samples = find_samples(".")
    for epoch in range(epochs):
        print(*run_epoch(samples, workers, epoch))


main()
