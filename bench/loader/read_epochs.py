"""Reads epochs of a set with one loader, and prints what each took as JSON.

Usage: read_epochs.py LOADER SET EPOCHS BATCH WORKERS DIRECTORY

LOADER is millrace, mosaic, litdata or webdataset; SET is the place of a set in the bucket of
$BENCH_BUCKET at $BENCH_ENDPOINT; DIRECTORY is for what the loader keeps. With 0 epochs only the
first batch is waited for. Every loader shuffles, and each sample is looked at.

What a loader imports is imported before the clock starts, torch and NumPy for all: whoever trains
has them loaded, and how long that takes says nothing about a loader.
"""

import functools
import importlib
import json
import os
import pathlib
import resource
import sys
import time

BUCKET = os.environ["BENCH_BUCKET"]
ENDPOINT = os.environ["BENCH_ENDPOINT"]
# Set before any loader looks.
os.environ["S3_ENDPOINT_URL"] = ENDPOINT


class Millrace:
    """Ours, over the very shards that mosaic reads, which are registered as a version."""

    imports = ("millrace",)

    def __init__(self, place, batch, workers, directory):
        import millrace
        version = f"{place.replace('/', '-')}@v1"
        self._dataset = millrace.Dataset(version, seed=1)
        len(self._dataset)  # Opened here, as those of the others are that have an index.
        self._loader = millrace.Loader(self._dataset, batch)

    def epoch(self):
        for batch in self._loader:
            yield [len(item) for item in batch["data"]]


class Mosaic:
    imports = ("streaming", "boto3")

    def __init__(self, place, batch, workers, directory):
        from streaming import StreamingDataset
        from streaming.base.util import clean_stale_shared_memory
        from torch.utils.data import DataLoader
        clean_stale_shared_memory()  # Of a run that was ended.
        self._dataset = StreamingDataset(remote=f"s3://{BUCKET}/{place}/mds",
                                         local=f"{directory}/cache", shuffle=True,
                                         batch_size=batch, shuffle_seed=1)
        # Else workers that are forked share a connection, mix up answers and wait for a minute.
        for stream in self._dataset.streams:
            stream._downloader._s3_client = None
        self._loader = DataLoader(self._dataset, batch_size=batch, num_workers=workers,
                                  collate_fn=list)

    def epoch(self):
        for samples in self._loader:
            yield [len(sample["data"]) for sample in samples]


class LitData:
    imports = ("litdata", "boto3", "obstore.store")

    def __init__(self, place, batch, workers, directory):
        import litdata
        from litdata.streaming import downloader
        downloader._OBSTORE_CLIENT_OPTIONS["allow_http"] = True  # It has no option for this.
        options = {"endpoint_url": ENDPOINT, "region_name": "us-east-1",
                   "aws_access_key_id": os.environ["AWS_ACCESS_KEY_ID"],
                   "aws_secret_access_key": os.environ["AWS_SECRET_ACCESS_KEY"]}
        self._dataset = litdata.StreamingDataset(f"s3://{BUCKET}/{place}/litdata", shuffle=True,
                                                 seed=1, cache_dir=f"{directory}/cache",
                                                 storage_options=options, max_cache_size="50GB")
        self._loader = litdata.StreamingDataLoader(self._dataset, batch_size=batch,
                                                   num_workers=workers, collate_fn=list)

    def epoch(self):
        for samples in self._loader:
            yield [len(sample["data"]) for sample in samples]


class WebDataset:
    imports = ("webdataset",)

    def __init__(self, place, batch, workers, directory):
        import webdataset
        names = json.loads(os.environ["BENCH_SHARDS"])[place]
        urls = [f"pipe:{os.environ['BENCH_CURL']} {ENDPOINT}/{BUCKET}/{place}/tar/{name}"
                for name in names]
        cache = pathlib.Path(directory) / "cache"
        cache.mkdir()
        pipeline = webdataset.WebDataset(urls, shardshuffle=len(urls), cache_dir=str(cache),
                                         seed=1).shuffle(1000).batched(batch, collation_fn=list)
        self._loader = webdataset.WebLoader(pipeline, batch_size=None, num_workers=workers)

    def epoch(self):
        for samples in self._loader:
            yield [len(sample["bin"]) for sample in samples]


LOADERS = {"millrace": Millrace, "mosaic": Mosaic, "litdata": LitData, "webdataset": WebDataset}


def cpu_s():
    """Of this process and of those that it waited for, and of our daemon."""
    used = sum(usage.ru_utime + usage.ru_stime for usage in
               (resource.getrusage(resource.RUSAGE_SELF),
                resource.getrusage(resource.RUSAGE_CHILDREN)))
    pid = daemon()
    if pid:
        fields = pathlib.Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()
        used += (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")
    return used


@functools.cache  # The search takes as long as some batches.
def daemon():
    """The process that listens at our socket; a child of nobody that is waited for."""
    socket = os.environ.get("MILLRACE_SOCKET", "")
    for entry in pathlib.Path("/proc").iterdir():
        if entry.name.isdigit() and socket:
            try:
                environment = (entry / "environ").read_bytes()
                words = (entry / "cmdline").read_bytes().split(b"\0")
            except OSError:
                continue
            if f"MILLRACE_SOCKET={socket}".encode() in environment and b"serve" in words:
                return int(entry.name)
    return None


def load(modules):
    """Imports them; returns the seconds that it took."""
    begin = time.monotonic()
    for module in modules:
        importlib.import_module(module)
    return time.monotonic() - begin


def by_second(deliveries):
    """Samples of each whole second behind the first delivery, across the ends of epochs."""
    begin = deliveries[0][0]
    seconds = [0] * int(deliveries[-1][0] - begin)
    for now, samples in deliveries[1:]:
        if int(now - begin) < len(seconds):
            seconds[int(now - begin)] += samples
    return seconds


def main(name, place, epochs, batch, workers, directory):
    imports = {"torch_s": load(("numpy", "torch.utils.data")),
               "own_s": load(LOADERS[name].imports)}
    begin = time.monotonic()
    loader = LOADERS[name](place, batch, workers, directory)
    results, deliveries, cold = [], [], 0
    for _ in range(max(epochs, 1)):
        used, start, first = cpu_s(), time.monotonic(), None
        samples = size = 0
        for lengths in loader.epoch():
            now = time.monotonic()
            first = first or now
            deliveries.append((now, len(lengths)))
            samples += len(lengths)
            size += sum(lengths)
            if epochs == 0:
                break
        results.append({"samples": samples, "bytes": size, "seconds": time.monotonic() - start,
                        "cpu_s": cpu_s() - used, "first_batch_s": first - begin})
        cold = cold or len(deliveries)
        begin = now  # What the end of an epoch costs is part of the wait for the next one.
    # From the last batch of the first epoch on, which is slower than those that are cached.
    results[0] |= {"imports": imports, "by_second": by_second(deliveries[cold - 1:]),
                   "rss_mib": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024}
    print("RESULT " + json.dumps(results), flush=True)
    os._exit(0)  # Whatever a loader has still running must not be waited for.


if __name__ == "__main__":
    main(sys.argv[1], sys.argv[2], int(sys.argv[3]), int(sys.argv[4]), int(sys.argv[5]),
         sys.argv[6])
