"""Writes or reads an Arrow file.

Usage: arrow_file.py write PATH | arrow_file.py read PATH

Reading maps the file and prints what a column adds up to, and how many bytes Arrow took for
itself: next to none, since the columns are the file's own pages.
"""

import sys

import pyarrow as arrow

ROWS = 400_000


def write(path):
    numbers = arrow.array(range(ROWS), arrow.int64())
    texts = arrow.array([f"sample {n}" for n in range(ROWS)])
    table = arrow.table({"number": numbers, "text": texts})
    with arrow.OSFile(path, "wb") as file, arrow.ipc.new_file(file, table.schema) as writer:
        writer.write_table(table, max_chunksize=50_000)


def read(path):
    with arrow.memory_map(path) as file:
        table = arrow.ipc.open_file(file).read_all()
        taken = arrow.total_allocated_bytes()
        total = sum(sum(chunk.to_numpy()) for chunk in table["number"].chunks)
        last = table["text"][ROWS - 1].as_py()
        print(int(total), last, "mapped" if taken < 1 << 20 else f"copied {taken}")


{"write": write, "read": read}[sys.argv[1]](sys.argv[2])
