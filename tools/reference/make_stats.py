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
    tables, curves = oracle["tables"], oracle["bootstrap_and_curves"]
    for unused in ("beta_cdf", "pass_at_k_suite", "sign_evalue_min_n_all_wins"):
        del tables[unused]
    for name in ("power_t_two_sample", "power_t_paired_or_one_sample"):  # one tail of two is no power
        table = tables[name]
        table["cols"], table["rows"] = table["cols"][:-1], [row[:-1] for row in table["rows"]]
    for unused in ("corr_AB", "se_unpaired", "mcnemar_b", "mcnemar_c"):
        del tables["eval_clustered"]["expected"][unused]
    del curves["exhaustive_n4_mean"]
    result = {
        "datasets": kept,
        "generated_datasets": {
            k: {m: x for m, x in v.items() if m not in ("source", "construction")}
            for k, v in oracle["generated_datasets"].items() if v["replicates"] < 1000},
        "tables": tables,
        "bootstrap_and_curves": curves,
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
