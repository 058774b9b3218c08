#!/usr/bin/env python3
"""Small traces with known answers for tests/cli/trace.sh.

    make_traces.py OUT        (tests/data/trace_reports in the repository)

Writes a Kineto trace of two devices, an Nsight export, a memory snapshot, two ranks of a
job, and expected.json: the figures by counting nanoseconds one by one, in the names that
`temper trace --json` uses."""
import json
import pathlib
import pickle
import random
import sqlite3
import sys

out = pathlib.Path(sys.argv[1])
out.mkdir(parents=True, exist_ok=True)
random.seed(4)


def x(cat, name, pid, tid, ts_ns, dur_ns, **args):
    return {"ph": "X", "cat": cat, "name": name, "pid": pid, "tid": tid,
            "ts": ts_ns / 1000, "dur": dur_ns / 1000, "args": args}


KERNELS = ["void gemm<float>(int, float*)", "relu_kernel", "ncclDevKernel_AllReduce_Sum_f32_RING_LL",
           "void multimem_all_reduce_kernel<4>"]


def work(rank):
    """(device, stream, name, start, end, kind, correlation) of two devices."""
    rows, correlation = [], 1
    for device in (0, 1):
        for stream in (7, 20):
            at = 5000 + 100 * rank
            while at < 60000:
                length = random.randrange(1, 2500)
                kind = random.choice(["kernel"] * 5 + ["gpu_memcpy", "gpu_memset"])
                name = {"gpu_memcpy": "Memcpy HtoD (Pageable -> Device)",
                        "gpu_memset": "Memset (Device)"}.get(kind) or random.choice(KERNELS)
                rows.append((device, stream, name, at, at + length, kind, correlation))
                correlation += 1
                at += length + random.randrange(0, 1500)
    return rows


def kineto(path, rank, rows):
    events = [{"ph": "M", "name": "process_name", "pid": 100, "tid": 0, "ts": 0, "args": {"name": "python"}}]
    for step in range(1, 4):
        events.append(x("user_annotation", f"ProfilerStep#{step}", 100, 1, 20000 * (step - 1), 20000))
    for device, stream, name, start, end, kind, correlation in rows:
        launch = max(0, start - 2000)
        events.append(x("cpu_op", "aten::op", 100, 1, launch, 700, **{"External id": correlation}))
        events.append(x("cuda_runtime", "cudaLaunchKernel", 100, 1, launch + 100, 500,
                        correlation=correlation, **{"External id": correlation}))
        args = {"device": device, "stream": stream, "correlation": correlation, "External id": correlation}
        if kind != "kernel":
            args["bytes"] = 4096
        if "nccl" in name:
            args |= {"Collective name": "allreduce", "In msg nelems": 1024, "Out msg nelems": 1024,
                     "Group size": 2, "dtype": "Float", "Process Group Name": "0"}
        events.append(x(kind, name, device, stream, start, end - start, **args))
    total = 1000
    for i, size in enumerate([512, 2048, -512, 1024, -2048]):
        total += size
        events.append({"ph": "i", "s": "t", "cat": "cpu_instant_event", "name": "[memory]", "pid": 100,
                       "tid": 1, "ts": 10 + i, "args": {
                           "Addr": 4096 * abs(size), "Bytes": size, "Total Allocated": total,
                           "Total Reserved": 8192, "Device Type": 1, "Device Id": 0, "Ev Idx": i}})
    random.shuffle(events)
    path.write_text(json.dumps({
        "schemaVersion": 1, "deviceProperties": [{"id": d, "name": "Test GPU", "totalGlobalMem": 1 << 30} for d in (0, 1)],
        "distributedInfo": {"backend": "nccl", "rank": rank, "world_size": 2},
        "displayTimeUnit": "ms", "baseTimeNanoseconds": 1700000000000000000, "traceEvents": events}))
    return events


def is_comm(name):
    return "nccl" in name or "multimem_" in name


def breakdown(rows):
    first, last = min(r[3] for r in rows), max(r[4] for r in rows)
    state = [0] * (last - first)
    for _, _, name, start, end, kind, _ in rows:
        bit = 4 if kind != "kernel" else 2 if is_comm(name) else 1
        for t in range(start - first, end - first):
            state[t] |= bit
    n = [state.count(k) for k in range(8)]
    comm, overlap = n[2] + n[3] + n[6] + n[7], n[3] + n[7]
    return {"span_ns": last - first, "busy_ns": last - first - n[0], "idle_ns": n[0],
            "compute_ns": n[1] + n[3] + n[5] + n[7], "comm_ns": comm, "mem_ns": sum(n[4:]),
            "exposed_comm_ns": n[2] + n[6], "exposed_mem_ns": n[4],
            "comm_compute_overlap_pct": round(100 * overlap / comm, 3) if comm else None,
            "idle_pct": round(100 * n[0] / (last - first), 3)}


def figures(rows):
    names = {}
    for _, _, name, start, end, kind, _ in rows:
        if kind == "kernel":
            count, total = names.get(name, (0, 0))
            names[name] = (count + 1, total + end - start)
    top = sorted(names.items(), key=lambda item: (-item[1][1], item[0]))[:5]
    return {"kernels": sum(c for c, _ in names.values()), "kernel_names": len(names),
            "kernel_total_ns": sum(t for _, t in names.values()),
            "top5": [{"name": n[:160], "count": c, "total_ns": t} for n, (c, t) in top],
            "all_devices": breakdown(rows),
            "per_device": {str(d): breakdown([r for r in rows if r[0] == d]) for d in (0, 1)}}


def nsight(path, rows):
    path.unlink(missing_ok=True)
    db = sqlite3.connect(path)
    strings = {}
    db.execute("create table StringIds (id integer primary key, value text)")
    db.execute("create table META_DATA_EXPORT (name text, value text)")
    db.execute("insert into META_DATA_EXPORT values ('EXPORT_SCHEMA_VERSION', '3.25.0')")
    columns = "start integer, end integer, deviceId integer, streamId integer, correlationId integer, globalPid integer"
    db.execute(f"create table CUPTI_ACTIVITY_KIND_KERNEL ({columns}, shortName integer, demangledName integer)")
    db.execute(f"create table CUPTI_ACTIVITY_KIND_MEMCPY ({columns}, bytes integer, copyKind integer)")
    db.execute(f"create table CUPTI_ACTIVITY_KIND_MEMSET ({columns}, bytes integer)")
    db.execute("create table CUPTI_ACTIVITY_KIND_RUNTIME (start integer, end integer, globalTid integer, "
               "correlationId integer, nameId integer, returnValue integer)")

    def string(text):
        if text not in strings:
            strings[text] = len(strings) + 1
            db.execute("insert into StringIds values (?, ?)", (strings[text], text))
        return strings[text]

    pid, counts = 5 << 24, {"KERNEL": 0, "MEMCPY": 0, "MEMSET": 0, "RUNTIME": 0}
    for device, stream, name, start, end, kind, correlation in rows:
        common = (start, end, device, stream, correlation, pid)
        if kind == "kernel":
            db.execute("insert into CUPTI_ACTIVITY_KIND_KERNEL values (?,?,?,?,?,?,?,?)",
                       common + (string(name), string(name)))
            counts["KERNEL"] += 1
        elif kind == "gpu_memcpy":
            db.execute("insert into CUPTI_ACTIVITY_KIND_MEMCPY values (?,?,?,?,?,?,?,?)", common + (4096, 1))
            counts["MEMCPY"] += 1
        else:
            db.execute("insert into CUPTI_ACTIVITY_KIND_MEMSET values (?,?,?,?,?,?,?)", common + (4096,))
            counts["MEMSET"] += 1
        db.execute("insert into CUPTI_ACTIVITY_KIND_RUNTIME values (?,?,?,?,?,0)",
                   (max(0, start - 900), max(0, start - 900) + 400, pid | 9, correlation, string("cudaLaunchKernel_v7000")))
        counts["RUNTIME"] += 1
    db.commit()
    db.close()
    copies = [r for r in rows if r[5] == "gpu_memcpy"]
    return figures(rows) | {
        "rows": {f"CUPTI_ACTIVITY_KIND_{k}": v for k, v in counts.items()},
        "memcpy_bytes": 4096 * len(copies), "memcpy_ns": sum(r[4] - r[3] for r in copies),
        "runtime_total_ns": 400 * counts["RUNTIME"]}


def snapshot(path):
    frames = [{"filename": "/train.py", "line": 12, "name": "forward"}, {"filename": "/train.py", "line": 40, "name": "main"}]
    blocks = [{"address": 0x1000, "size": 1024, "requested_size": 1000, "state": "active_allocated", "frames": frames},
              {"address": 0x1400, "size": 3072, "requested_size": 0, "state": "inactive", "frames": []}]
    trace = [{"action": "free_completed", "addr": 0x9000, "size": 640, "stream": 0, "time_us": 5, "frames": []},
             {"action": "alloc", "addr": 0x1000, "size": 1000, "stream": 0, "time_us": 10, "frames": frames},
             {"action": "alloc", "addr": 0x1400, "size": 2000, "stream": 0, "time_us": 20, "frames": frames},
             {"action": "free_requested", "addr": 0x1400, "size": 2000, "stream": 0, "time_us": 80, "frames": []},
             {"action": "free_completed", "addr": 0x1400, "size": 2000, "stream": 0, "time_us": 81, "frames": []}]
    segment = {"device": 0, "address": 0x1000, "total_size": 4096, "allocated_size": 1024, "active_size": 1024,
               "requested_size": 1000, "stream": 0, "segment_type": "small", "segment_pool_id": (0, 0),
               "is_expandable": False, "frames": [], "blocks": blocks}
    path.write_bytes(pickle.dumps({"segments": [segment], "device_traces": [trace], "allocator_settings": {},
                                   "external_annotations": []}, protocol=4))
    return {"segments": 1, "reserved_bytes": 4096, "allocated_bytes": 1024, "active_bytes": 1024, "requested_bytes": 1000,
            "blocks": {"active_allocated": 1, "inactive": 1}, "largest_inactive_block": 3072,
            "device_0": {"entries": 5, "actions": {"free_completed": 2, "alloc": 2, "free_requested": 1},
                         "alloc_bytes": 3000, "freed_bytes": 2640, "frees_without_alloc_in_trace": 1,
                         "frees_without_alloc_bytes": 640, "allocs_still_live": 1, "live_bytes": 1000,
                         "net_bytes": 360, "peak_net_bytes": 2360, "lifetime_us_median": 61, "duration_us": 76}}


expected = []
rows = work(0)
events = kineto(out / "kineto-rank-0.json", 0, rows)
by = lambda key, of: {k: sum(1 for e in of if e[key] == k) for k in sorted({e[key] for e in of})}
expected.append({"file": "kineto-rank-0.json", "events": len(events), "ph": by("ph", events),
                 "cat_X": by("cat", [e for e in events if e["ph"] == "X"])} | figures(rows) | {
    "memory_instants": 5, "alloc_bytes": 3584, "free_bytes": 2560,
    "comm_kernels_by_collective": {"allreduce": sum("nccl" in r[2] for r in rows),
                                   "None": sum("multimem" in r[2] for r in rows)}})
random.seed(4)
other = work(1)
kineto(out / "kineto-rank-1.json", 1, other)
expected.append({"file": "kineto-rank-1.json", "kernels": figures(other)["kernels"]})
expected.append({"file": "nsight.sqlite"} | nsight(out / "nsight.sqlite", rows))
expected.append({"file": "snapshot.pickle"} | snapshot(out / "snapshot.pickle"))
(out / "expected.json").write_text(json.dumps(expected, indent=1) + "\n")
