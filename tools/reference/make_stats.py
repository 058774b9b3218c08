#!/usr/bin/env python3
"""A part of the statistics oracle that is small enough to live with the code.

usage: make_stats.py ORACLE OUT

ORACLE holds data sets with values computed in 50-digit arithmetic; the long ones are left
out, so that what is kept covers every kind and every table in some tens of kilobytes.
"""
import json
import sys

LONG = 1500  # characters of a data set's numbers


def main():
    source, out = sys.argv[1:]
    with open(source) as f:
        oracle = json.load(f)
    kept = {}
    for name, data in oracle["datasets"].items():
        numbers = {k: v for k, v in data.items() if k not in ("expected", "nist_certified", "source", "note")}
        if len(json.dumps(numbers)) > LONG:
            continue
        kept[name] = {k: v for k, v in data.items() if k not in ("source", "note")}
    result = {
        "datasets": kept,
        "generated_datasets": {
            k: {m: x for m, x in v.items() if m not in ("source", "construction")}
            for k, v in oracle["generated_datasets"].items() if v["replicates"] < 1000},
        "tables": oracle["tables"],
        "bootstrap_and_curves": oracle["bootstrap_and_curves"],
    }
    with open(out, "w") as f:
        f.write('{"made_by": "tools/reference/make_stats.py",\n')
        parts = []
        for section in result:
            rows = [f"{json.dumps(k)}: {json.dumps(v, separators=(',', ':'))}" for k, v in result[section].items()]
            parts.append(f'"{section}": {{\n' + ",\n".join(rows) + "\n}")
        f.write(",\n".join(parts) + "}\n")


if __name__ == "__main__":
    main()
