#!/usr/bin/env python3
"""Make a trace of any size by repeating a Kineto trace in time, as a stream.

usage: big_trace.py IN.json[.gz] --gb N >OUT.json          (or | gzip -1 >OUT.json.gz)

Copy k of the events is moved by k times the span of the file, and its correlations, external ids, flow ids and
event numbers by k times 2^32, so that links stay within their copy.  Memory: about twice the text of IN.  Standard
library only; for bench/big_trace.sh.
"""
import argparse
import gzip
import re
import sys

NUMBERS = re.compile(rb'"(ts|correlation|External id|Ev Idx|id)": (\d+)')


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("file")
    parser.add_argument("--gb", type=float, required=True)
    options = parser.parse_args()
    opened = gzip.open if options.file.endswith(".gz") else open
    with opened(options.file, "rb") as f:
        text = f.read()
    begin = re.search(rb'"traceEvents"\s*:\s*\[\s*', text).end()
    end = text.rindex(b"]")
    head, body, tail = text[:begin], text[begin:end].rstrip(), text[end:]
    times = [int(m) for m in re.findall(rb'"ts": (\d+)', body) if int(m) > 0]
    span = max(times) - min(times) + 1000
    del text, times
    write = sys.stdout.buffer.write
    write(head)
    written, copy = len(head), 0
    while written < options.gb * 1e9:
        shift = {b"ts": copy * span}

        def moved(match):
            by = shift.get(match.group(1), copy << 32)
            return b'"%s": %d' % (match.group(1), int(match.group(2)) + by)

        piece = body if copy == 0 else NUMBERS.sub(moved, body)
        write(piece if copy == 0 else b",\n  " + piece)
        written += len(piece)
        copy += 1
    write(b"\n  " + tail)
    print(f"{copy} copies, {written / 1e9:.2f} GB", file=sys.stderr)


main()
