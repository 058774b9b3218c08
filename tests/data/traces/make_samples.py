#!/usr/bin/env python3
"""Write the small traces of this folder: one of every kind and generation that the readers know.

usage: make_samples.py [FOLDER]

Everything is invented; layouts follow what the programs write. Standard library only.
"""
import gzip
import json
import pathlib
import pickle
import sqlite3
import struct
import sys

here = pathlib.Path(sys.argv[1] if len(sys.argv) > 1 else pathlib.Path(__file__).parent)


def event(**members):
    """One event in Kineto's own layout."""
    args = members.pop("args", None)
    head = ", ".join(f"{json.dumps(k)}: {v if isinstance(v, Raw) else json.dumps(v)}" for k, v in members.items())
    text = "  {\n    " + head
    if args is not None:
        inner = ", ".join(f"{json.dumps(k)}: {v if isinstance(v, Raw) else json.dumps(v)}" for k, v in args.items())
        text += ',\n    "args": {\n      ' + inner + "\n    }"
    return text + "\n  }"


class Raw(str):
    """Text that goes into the file as it is."""


def kineto(head, events, tail):
    return "{\n" + head + '  "traceEvents": [\n' + ",\n".join(events) + "\n  ],\n" + tail + "}\n"


def meta(pid, tid, kind, **args):
    return event(name=kind, ph="M", ts=0, pid=pid, tid=tid, args=args)


def year_2021():
    """Capitalised categories, streams as text, integer microseconds."""
    ts = 1623143089861351
    events = [
        event(ph="X", cat="Operator", name="aten::mm", pid=77, tid="78", ts=ts, dur=90,
              args={"Device": 77, "External id": 5, "Input dims": [[8, 4], [4, 2]]}),
        event(ph="X", cat="Runtime", name="cudaLaunchKernel", pid=77, tid="78", ts=ts + 10, dur=12,
              args={"cbid": 211, "correlation": 900, "external id": 5, "external ts": ts}),
        event(ph="X", cat="Kernel", name="volta_sgemm_32x32_nn", pid=0, tid="stream 7", ts=ts + 40, dur=25,
              args={"queued": 0, "device": 0, "context": 1, "stream": 7, "correlation": 900, "external id": 5,
                    "registers per thread": 32, "shared memory": 0, "blocks per SM": Raw("inf"),
                    "warps per SM": Raw("nan"), "grid": [2, 1, 1], "block": [64, 1, 1],
                    "theoretical occupancy %": Raw("N/A")}),
        event(ph="X", cat="Memcpy", name="Memcpy DtoH (Device -> Pageable)", pid=0, tid="stream 7", ts=ts + 70, dur=4,
              args={"device": 0, "context": 1, "stream": 7, "correlation": 901, "external id": 6, "bytes": 4000,
                    "memory bandwidth (GB/s)": 1.0}),
        event(ph="X", cat="Memset", name="Memset (Device)", pid=0, tid="stream 7", ts=ts + 80, dur=1,
              args={"device": 0, "context": 1, "stream": 7, "correlation": 902, "external id": 7, "bytes": 512}),
        meta(0, "stream 7", "thread_name", name="stream 7"),
    ]
    return kineto('  "schemaVersion": 1,\n  "computeProperties": [],\n', events, '  "traceName": "old.json"\n')


def year_2024_april():
    """Absolute microseconds with decimals: 19 digits, more than a double can hold."""
    base = 1711964646123456
    events = [
        event(ph="X", cat="kernel", name="first", pid=0, tid=7, ts=Raw(f"{base}.001"), dur=Raw("0.250"),
              args={"device": 0, "stream": 7, "correlation": 1, "External id": 1}),
        event(ph="X", cat="kernel", name="second", pid=0, tid=7, ts=Raw(f"{base}.252"), dur=Raw("0.999"),
              args={"device": 0, "stream": 7, "correlation": 2, "External id": 2}),
    ]
    return kineto('  "schemaVersion": 1,\n', events, '  "displayTimeUnit": "ms"\n')


def year_2025():
    """Times relative to a base, everything that newer files have."""
    t = 4458676522690
    comms = {"Collective name": "allreduce", "In msg nelems": 1024, "Out msg nelems": 1024, "Group size": 2,
             "dtype": "Float", "In split size": "[]", "Out split size": "[]", "Process Group Name": "0",
             "Process Group Description": "default_pg", "Process Group Ranks": "[0, 1]", "Seq": 3}
    events = [
        event(ph="X", cat="user_annotation", name="ProfilerStep#5", pid=100, tid=100, ts=Raw(f"{t}.000"),
              dur=Raw("900.000"), args={"External id": 1, "Record function id": 0, "Ev Idx": 0}),
        event(ph="X", cat="cpu_op", name="aten::mm", pid=100, tid=100, ts=Raw(f"{t + 10}.500"), dur=Raw("50.250"),
              args={"External id": 2, "Record function id": 0, "Sequence number": 41, "Fwd thread id": 0,
                    "Concrete Inputs": ["", ""], "Input type": ["float", "float"],
                    "Input Strides": [[4, 1], [2, 1]], "Input Dims": [[8, 4], [4, 2]], "Ev Idx": 1}),
        event(ph="X", cat="cpu_op", name="record_param_comms", pid=100, tid=100, ts=Raw(f"{t + 70}.000"),
              dur=Raw("20.000"), args={"External id": 3, "Rank": 1, "Is asynchronized op": True, **comms}),
        event(ph="X", cat="python_function", name='train.py(3): "step"', pid=100, tid=100, ts=Raw(f"{t + 5}.000"),
              dur=Raw("200.000"), args={"Python id": 2, "Python parent id": None, "Python module id": 4, "Ev Idx": 9}),
        event(ph="i", cat="cpu_instant_event", s="t", name="[memory]", pid=100, tid=100, ts=Raw(f"{t + 12}.000"),
              args={"Total Reserved": 2097152, "Total Allocated": 1024, "Bytes": 1024, "Addr": 139926520725504,
                    "Device Id": 0, "Device Type": 1, "Ev Idx": 12}),
        event(ph="i", cat="cpu_instant_event", s="t", name="[memory]", pid=100, tid=100, ts=Raw(f"{t + 90}.000"),
              args={"Total Reserved": 2097152, "Total Allocated": 0, "Bytes": -1024, "Addr": 139926520725504,
                    "Device Id": 0, "Device Type": 1, "Ev Idx": 13}),
        event(ph="X", cat="cuda_runtime", name="cudaLaunchKernel", pid=100, tid=100, ts=Raw(f"{t + 20}.000"),
              dur=Raw("6.001"), args={"External id": 2, "cbid": 211, "correlation": 11}),
        event(ph="s", id=11, pid=100, tid=100, ts=Raw(f"{t + 20}.000"), cat="ac2g", name="ac2g"),
        event(ph="X", cat="cuda_driver", name="cuLaunchKernelEx", pid=100, tid=100, ts=Raw(f"{t + 75}.000"),
              dur=Raw("3.000"), args={"External id": 3, "cbid": 652, "correlation": 12}),
        event(ph="X", cat="kernel", name="gemm", pid=0, tid=7, ts=Raw(f"{t + 30}.125"), dur=Raw("40.375"),
              args={"External id": 2, "queued": 0, "device": 0, "context": 1, "stream": 7, "correlation": 11,
                    "registers per thread": 90, "shared memory": 49152, "blocks per SM": 1.5, "warps per SM": "inf",
                    "grid": [8, 2, 1], "block": [128, 1, 1], "est. achieved occupancy %": 75, "graph id": 3,
                    "graph node id": 17, "priority": -1}),
        event(ph="f", id=11, pid=0, tid=7, ts=Raw(f"{t + 30}.125"), cat="ac2g", name="ac2g", bp="e"),
        event(ph="X", cat="kernel", name="ncclDevKernel_AllReduce_Sum_f32_RING_LL(ncclDevKernelArgsStorage<4096ul>)",
              pid=0, tid=20, ts=Raw(f"{t + 90}.000"), dur=Raw("100.000"),
              args={"External id": 3, "device": 0, "context": 1, "stream": 20, "correlation": 12, **comms}),
        event(ph="X", cat="gpu_memcpy", name="Memcpy HtoD (Pinned -> Device)", pid=0, tid=7, ts=Raw(f"{t + 80}.000"),
              dur=Raw("2.000"), args={"External id": 4, "device": 0, "context": 1, "stream": 7, "correlation": 13,
                                      "bytes": 65536, "memory bandwidth (GB/s)": 32.768}),
        event(ph="X", cat="gpu_user_annotation", name="ProfilerStep#5", pid=0, tid=7, ts=Raw(f"{t + 30}.124"),
              dur=Raw("51.878"), args={"External id": 1}),
        event(ph="X", cat="cuda_sync", name="Stream Wait Event", pid=0, tid=1000020, ts=Raw(f"{t + 195}.000"),
              dur=Raw("0.000"), args={"External id": 5, "cuda_sync_kind": "Stream Wait Event", "stream": 20,
                                      "correlation": 14, "device": 0, "context": 1, "wait_on_stream": 7,
                                      "wait_on_cuda_event_record_corr_id": 11, "wait_on_cuda_event_id": 6}),
        event(ph="C", cat="hardware_counters", name="GPU Utilization", pid="GPU 0 Counters", tid=0,
              ts=Raw(f"{t + 100}.000"), args={"sm": 71.5, "dram": 12}),
        meta(100, 0, "process_name", name="python3"), meta(100, 0, "process_labels", labels="CPU"),
        meta(100, 100, "thread_name", name="thread 100 (python3)"), meta(0, 7, "thread_name", name="stream 7 "),
        meta(0, 7, "thread_name", name="stream 7 "),
        event(ph="X", cat="Trace", ts=Raw(f"{t}.000"), dur=Raw("1000.000"), pid="Spans", tid="PyTorch Profiler",
              name="PyTorch Profiler (0)", args={"Op count": 0}),
        event(name="Record Window End", ph="i", s="g", pid="", tid="", ts=Raw(f"{t + 1000}.000")),
    ]
    head = """  "schemaVersion": 1,
  "deviceProperties": [
    {
      "id": 0, "name": "NVIDIA H100 80GB HBM3", "totalGlobalMem": 85018279936,
      "computeMajor": 9, "computeMinor": 0,
      "maxThreadsPerBlock": 1024, "maxThreadsPerMultiprocessor": 2048,
      "regsPerBlock": 65536, "warpSize": 32,
      "sharedMemPerBlock": 49152, "numSms": 132
    , "regsPerMultiprocessor": 65536, "sharedMemPerBlockOptin": 232448, "sharedMemPerMultiprocessor": 233472
    }
  ],
  "cuda_runtime_version": 12040,
  "distributedInfo": {"backend": "nccl", "rank": 1, "world_size": 2, "pg_count": 1, "pg_config": [{"pg_name": "0", "pg_desc": "default_pg", "backend_config": "cuda:nccl", "pg_size": 2, "ranks": [0, 1]}], "nccl_version": "2.21.5"},
  "record_shapes": 1,
  "profile_memory": 1,
  "with_stack": 1,
  "displayTimeUnit": "ms",
  "baseTimeNanoseconds": 1711964646000000000,
"""
    return kineto(head, events, '  "traceName": "/tmp/a]b.json"\n')


def rocm():
    t = 2000000
    events = [
        event(ph="X", cat="cuda_runtime", name="hipLaunchKernel", pid=9, tid=9, ts=Raw(f"{t}.100"), dur=Raw("3.000"),
              args={"External id": 1, "cbid": 1, "correlation": 21, "kernel": "Cijk_Alik", "grid": "[4, 1, 1]"}),
        event(ph="X", cat="kernel", name="Cijk_Alik_Bljk_BBS_BH", pid=2, tid=0, ts=Raw(f"{t + 5}.100"),
              dur=Raw("7.321"), args={"External id": 1, "device": 2, "stream": 0, "correlation": 21, "kind": "Dispatch Kernel"}),
        event(ph="X", cat="kernel", name="__amd_rocclr_copyBuffer", pid=2, tid=0, ts=Raw(f"{t + 15}.000"),
              dur=Raw("1.000"), args={"External id": 2, "device": 2, "stream": 0, "correlation": 22, "kind": "Dispatch Kernel"}),
    ]
    return kineto('  "schemaVersion": 1,\n  "deviceProperties": [{"id": 2, "name": "", "numSms": 304, '
                  '"maxSharedMemoryPerMultiProcessor": 65536}],\n  "hip_runtime_version": 60443483,\n'
                  '  "baseTimeNanoseconds": 1711964646000000000,\n', events, '  "traceName": "amd_rank_6.json"\n')


def mtia():
    events = [event(ph="X", cat="mtia_runtime", name="runtime", pid=5, tid=5, ts=Raw("100.500"), dur=Raw("4.000"),
                    args={"correlation": 1}),
              event(ph="X", cat="mtia_ccp_events", name="FC", pid=1, tid=3, ts=Raw("105.000"), dur=Raw("20.000"),
                    args={"correlation": 1, "device": 1})] + \
             [meta(1, n, "thread_name", name=f"lane {n}") for n in range(6)]
    return kineto('  "schemaVersion": 1,\n  "distributedInfo": {"backend": "mtia:hccl,cpu:gloo", "rank": 0, '
                  '"world_size": 2},\n  "baseTimeNanoseconds": 1711964646000000000,\n', events, '  "traceName": "m"\n')


def chrome_array():
    """Another writer's: an array without an end, spans in halves, times with fractions."""
    return ('[{"name":"load","cat":"io","ph":"B","pid":1,"tid":1,"ts":1.5},\n'
            '{"name":"parse","cat":"io","ph":"B","pid":1,"tid":1,"ts":2.25},\n'
            '{"ph":"E","pid":1,"tid":1,"ts":4.75},\n'
            '{"name":"mark","ph":"I","pid":1,"tid":2,"ts":5},\n'
            '{"ph":"E","pid":1,"tid":1,"ts":10.5},\n'
            '{"name":"async","cat":"net","ph":"b","id":"0x1f","pid":1,"tid":1,"ts":11},\n'
            '{"name":"q","ph":"C","pid":1,"ts":12,"args":{"depth":3}},\n')


def nsight(path, old=False):
    path.unlink(missing_ok=True)
    db = sqlite3.connect(path)
    x = db.execute
    pid, tid = 4242, 4243
    globals_ = (1 << 48) | pid << 24
    x("CREATE TABLE StringIds (id INTEGER NOT NULL PRIMARY KEY, value TEXT NOT NULL)")
    names = {10: "gemm", 11: "void gemm<float>(float*)", 12: "cudaLaunchKernel_v7000", 13: "python3", 14: "registered",
             15: "ncclDevKernel_AllReduce"}
    db.executemany("INSERT INTO StringIds VALUES (?, ?)", names.items())
    x("CREATE TABLE TARGET_INFO_SYSTEM_ENV (name TEXT, value TEXT)")
    x("INSERT INTO TARGET_INFO_SYSTEM_ENV VALUES ('EnvironmentVariables', 'TOKEN=do-not-show')")
    if old:
        x("CREATE TABLE EXPORT_META_DATA (name TEXT, value TEXT)")
        x("INSERT INTO EXPORT_META_DATA VALUES ('EXPORT_SCHEMA_VERSION', '2.7.1')")
        x("CREATE TABLE CUPTI_ACTIVITY_KIND_KERNEL (start INTEGER NOT NULL, end INTEGER NOT NULL, deviceId INTEGER,"
          " contextId INTEGER, streamId INTEGER, correlationId INTEGER, globalPid INTEGER, demangledName INTEGER)")
        x("INSERT INTO CUPTI_ACTIVITY_KIND_KERNEL VALUES (100, 150, 0, 1, 7, 1, ?, 11)", (globals_,))
    else:
        x("CREATE TABLE META_DATA_EXPORT (name TEXT NOT NULL, value TEXT)")
        x("INSERT INTO META_DATA_EXPORT VALUES ('EXPORT_SCHEMA_VERSION', '3.25.0')")
        x("INSERT INTO META_DATA_EXPORT VALUES ('EXPORT_PRODUCT_VERSION', '2026.2.1.210')")
        x("CREATE TABLE META_DATA_CAPTURE (name TEXT NOT NULL, value TEXT)")
        x("INSERT INTO META_DATA_CAPTURE VALUES ('CUDA_GRAPH_TRACE_OPTIONS:MODE', 'Graph')")
        x("CREATE TABLE TARGET_INFO_SESSION_START_TIME (utcEpochNs INTEGER, utcTime TEXT)")
        x("INSERT INTO TARGET_INFO_SESSION_START_TIME VALUES (1779782330176752435, 'x')")
        x("CREATE TABLE CUPTI_ACTIVITY_KIND_KERNEL (start INTEGER NOT NULL, end INTEGER NOT NULL, deviceId INTEGER,"
          " contextId INTEGER, greenContextId INTEGER, streamId INTEGER, correlationId INTEGER, globalPid INTEGER,"
          " demangledName INTEGER, shortName INTEGER, mangledName INTEGER, registersPerThread INTEGER, gridX INTEGER,"
          " gridY INTEGER, gridZ INTEGER, blockX INTEGER, blockY INTEGER, blockZ INTEGER, staticSharedMemory INTEGER,"
          " dynamicSharedMemory INTEGER, graphNodeId INTEGER)")
        x("INSERT INTO CUPTI_ACTIVITY_KIND_KERNEL VALUES (1000, 1600, 0, 1, NULL, 7, 1, ?, 11, 10, NULL, 64, 8, 4, 2,"
          " 128, 1, 1, 1024, 2048, NULL)", (globals_,))
        x("INSERT INTO CUPTI_ACTIVITY_KIND_KERNEL VALUES (1500, 1900, 1, 2, NULL, 15, 1, ?, 15, 15, NULL, 64, 1, 1, 1,"
          " 32, 1, 1, 0, 0, 9)", ((1 << 48) | 5000 << 24,))
        x("CREATE TABLE CUPTI_ACTIVITY_KIND_MEMCPY (start INTEGER, end INTEGER, deviceId INTEGER, contextId INTEGER,"
          " streamId INTEGER, correlationId INTEGER, globalPid INTEGER, bytes INTEGER, copyKind INTEGER,"
          " srcKind INTEGER, dstKind INTEGER, srcDeviceId INTEGER, dstDeviceId INTEGER)")
        x("INSERT INTO CUPTI_ACTIVITY_KIND_MEMCPY VALUES (2000, 2100, 0, 1, 7, 2, ?, 4096, 1, 1, 2, NULL, NULL)",
          (globals_,))
        x("CREATE TABLE CUPTI_ACTIVITY_KIND_MEMSET (start INTEGER, end INTEGER, deviceId INTEGER, streamId INTEGER,"
          " correlationId INTEGER, globalPid INTEGER, value INTEGER, bytes INTEGER)")
        x("INSERT INTO CUPTI_ACTIVITY_KIND_MEMSET VALUES (2200, 2201, 0, 7, 3, ?, 0, 128)", (globals_,))
        x("CREATE TABLE CUPTI_ACTIVITY_KIND_RUNTIME (start INTEGER, end INTEGER, eventClass INTEGER, globalTid INTEGER,"
          " correlationId INTEGER, nameId INTEGER, returnValue INTEGER)")
        x("INSERT INTO CUPTI_ACTIVITY_KIND_RUNTIME VALUES (900, 950, 0, ?, 1, 12, 0)", (globals_ | tid,))
        x("CREATE TABLE CUPTI_ACTIVITY_KIND_SYNCHRONIZATION (start INTEGER, end INTEGER, deviceId INTEGER,"
          " streamId INTEGER, correlationId INTEGER, globalPid INTEGER, syncType INTEGER, eventId INTEGER)")
        x("INSERT INTO CUPTI_ACTIVITY_KIND_SYNCHRONIZATION VALUES (1900, 1950, 0, 7, 4, ?, 3, 0)", (globals_,))
        x("CREATE TABLE CUPTI_ACTIVITY_KIND_GRAPH_TRACE (start INTEGER, end INTEGER, deviceId INTEGER, graphId INTEGER,"
          " streamId INTEGER, correlationId INTEGER, globalPid INTEGER)")
        x("INSERT INTO CUPTI_ACTIVITY_KIND_GRAPH_TRACE VALUES (3000, 3500, 0, 77, 7, 5, ?)", (globals_,))
        x("CREATE TABLE CUDA_GPU_MEMORY_USAGE_EVENTS (start INTEGER, globalPid INTEGER, deviceId INTEGER,"
          " address INTEGER, bytes INTEGER, memKind INTEGER, memoryOperationType INTEGER)")
        x("INSERT INTO CUDA_GPU_MEMORY_USAGE_EVENTS VALUES (800, ?, 0, 4096, 1048576, 2, 0)", (globals_,))
        x("INSERT INTO CUDA_GPU_MEMORY_USAGE_EVENTS VALUES (4000, ?, 0, 4096, 1048576, 2, 1)", (globals_,))
        x("CREATE TABLE PROCESSES (globalPid INTEGER, pid INTEGER, name TEXT)")
        x("INSERT INTO PROCESSES VALUES (?, ?, 'torchrun')", (globals_, pid))
        x("CREATE TABLE ThreadNames (nameId INTEGER, priority INTEGER, globalTid INTEGER)")
        x("INSERT INTO ThreadNames VALUES (13, 20, ?)", (globals_ | tid,))
        x("CREATE TABLE TARGET_INFO_GPU (id INTEGER, name TEXT, totalMemory INTEGER, smCount INTEGER, clockRate INTEGER,"
          " memoryBandwidth INTEGER, computeMajor INTEGER, computeMinor INTEGER)")
        x("INSERT INTO TARGET_INFO_GPU VALUES (0, 'NVIDIA H100', 85899345920, 132, 1980000000, 3350000000000, 9, 0)")
    x("CREATE TABLE NVTX_EVENTS (start INTEGER NOT NULL, end INTEGER, eventType INTEGER NOT NULL, text TEXT,"
      " globalTid INTEGER, textId INTEGER, domainId INTEGER)")
    rows = [(800, 2500, 59, "step 1", None), (850, 960, 59, "aten::mm, seq = 5, op_id = 12", None),
            (860, None, 60, None, 14), (870, None, 34, "mark", None), (0, None, 75, "domain", None)]
    for start, end, kind, text, text_id in rows:
        x("INSERT INTO NVTX_EVENTS VALUES (?, ?, ?, ?, ?, ?, 0)", (start, end, kind, text, globals_ | tid, text_id))
    db.commit()
    db.execute("VACUUM")
    db.close()


def payload(schema, fields, domain=1, lead=1, third=None, cut=0):
    """binaryData: leading words, schema, size, offset or end, and the structure itself."""
    body = fields + bytes(-len(fields) % 8)
    head = 8 * (lead + 3)
    words = [domain] + [0] * (lead - 1) + [schema, len(body), head + len(body) if third is None else third]
    data = struct.pack(f"<{len(words)}Q", *words) + body
    return data[: len(data) - cut]


def nsight_nccl(path):
    """Calls of NCCL with payloads: two processes, whose libraries lay their structures out differently."""
    path.unlink(missing_ok=True)
    db = sqlite3.connect(path)
    x = db.execute
    x("CREATE TABLE StringIds (id INTEGER NOT NULL PRIMARY KEY, value TEXT NOT NULL)")
    kernels = {10: "ncclDevKernel_AllReduce_Sum_f32_RING_LL", 11: "ncclDevKernel_SendRecv",
               12: "ncclDevKernel_AllGather_RING_LL", 13: "ncclDevKernel_ReduceScatter_Sum_f32_RING_LL"}
    calls = {20: "ncclCommInitRank", 21: "ncclAllReduce", 22: "ncclGroupStart", 23: "ncclGroupEnd", 24: "ncclSend",
             25: "ncclRecv", 26: "ncclAllGather", 27: "ncclReduceScatter"}
    db.executemany("INSERT INTO StringIds VALUES (?, ?)", {**kernels, **calls, 30: "cudaLaunchKernelExC"}.items())
    x("CREATE TABLE CUPTI_ACTIVITY_KIND_KERNEL (start INTEGER, end INTEGER, deviceId INTEGER, streamId INTEGER,"
      " correlationId INTEGER, globalPid INTEGER, shortName INTEGER)")
    x("CREATE TABLE CUPTI_ACTIVITY_KIND_RUNTIME (start INTEGER, end INTEGER, globalTid INTEGER, correlationId INTEGER,"
      " nameId INTEGER)")
    x("CREATE TABLE NVTX_EVENTS (start INTEGER NOT NULL, end INTEGER, eventType INTEGER NOT NULL, text TEXT,"
      " globalTid INTEGER, textId INTEGER, domainId INTEGER, binaryData TEXT)")
    x("CREATE TABLE NVTX_PAYLOAD_SCHEMAS (domainId INTEGER, schemaId INTEGER, name TEXT, type INTEGER, flags INTEGER,"
      " numEntries INTEGER, payloadSize INTEGER, alignTo INTEGER)")
    x("CREATE TABLE NVTX_PAYLOAD_SCHEMA_ENTRIES (domainId INTEGER NOT NULL, schemaId INTEGER NOT NULL,"
      " idx INTEGER NOT NULL, flags INTEGER, type INTEGER, name TEXT, description TEXT, arrayOrUnionDetail INTEGER,"
      " offset INTEGER)")
    comm, size, op = (18, "NCCL communicator ID"), (22, "Message size [bytes]"), (16777232, "Reduction operation")
    ranks = [(5, "No. of ranks"), (5, "Rank"), (5, "CUDA device")]
    schemas = [(1, 16777218, 24, [comm, *ranks], [None, 8, 12, 16]), (1, 16777223, 24, [comm, size, op], [None, 8, 16]),
               (1, 16777220, 16, [comm, size], [None, 8]), (1, 16777225, 24, [comm, size, (5, "Peer rank")],
                                                            [None, 8, 16]),
               # another version: the operation first, and C's own layout instead of offsets
               (2, 16777223, 24, [op, size, comm], [None, None, None])]
    for domain, schema, length, fields, offsets in schemas * 2:  # each process declares its own
        x("INSERT INTO NVTX_PAYLOAD_SCHEMAS VALUES (?, ?, NULL, 1, NULL, ?, ?, NULL)",
          (domain, schema, len(fields), length))
        for i, (field, offset) in enumerate(zip(fields, offsets)):
            x("INSERT INTO NVTX_PAYLOAD_SCHEMA_ENTRIES VALUES (?, ?, ?, NULL, ?, ?, NULL, NULL, ?)",
              (domain, schema, i, field[0], field[1], offset))
    first, second = (1 << 48) | 4242 << 24, (1 << 48) | 5000 << 24
    mib = 1 << 20

    def call(process, start, end, name, data=None, domain=1):
        x("INSERT INTO NVTX_EVENTS VALUES (?, ?, 59, NULL, ?, ?, ?, ?)", (start, end, process | 77, name, domain, data))

    def launch(process, device, at, number, name, start, end):
        x("INSERT INTO CUPTI_ACTIVITY_KIND_RUNTIME VALUES (?, ?, ?, ?, 30)", (at, at + 5, process | 77, number))
        x("INSERT INTO CUPTI_ACTIVITY_KIND_KERNEL VALUES (?, ?, ?, 7, ?, ?, ?)",
          (start, end, device, number, process, name))

    abc = 0xF000000000000ABC
    call(first, 100, 200, 20, payload(16777218, struct.pack("<Qiii", abc, 4, 1, 0)))
    call(first, 1000, 1100, 21, payload(16777223, struct.pack("<QQi", abc, 4 * mib, 0)))
    launch(first, 0, 1050, 1, 10, 2000, 102000)
    call(first, 4000, 4010, 22)
    for i, (name, count, peer) in enumerate([(24, mib, 2), (25, mib, 0), (24, 2 * mib, 3)]):
        call(first, 4020 + 20 * i, 4030 + 20 * i, name,
             payload(16777225, struct.pack("<QQi", abc, count, peer), third=32))
    call(first, 4100, 4200, 23)
    launch(first, 0, 4150, 2, 11, 200000, 300000)
    call(first, 5000, 5100, 26, payload(16777220, struct.pack("<QQ", abc, mib), lead=2).hex().upper())
    launch(first, 0, 5050, 3, 12, 400000, 500000)
    call(first, 6000, 6100, 27, payload(16777223, struct.pack("<QQi", abc, mib, 0), cut=4))
    launch(first, 0, 6050, 4, 13, 600000, 700000)
    call(second, 1000, 1100, 21, payload(16777223, struct.pack("<ixxxxQQ", 0, 8 * mib, 7), domain=2), domain=2)
    launch(second, 1, 1050, 1, 10, 2000, 202000)
    db.commit()
    db.execute("VACUUM")
    db.close()


def snapshot():
    frames = [{"filename": "train.py", "line": 12, "name": "step"}, {"filename": "main.py", "line": 3, "name": "main"}]
    other = [{"filename": "opt.py", "line": 7, "name": "update"}]

    def entry(action, addr, size, us, stack):
        return {"action": action, "addr": addr, "size": size, "stream": 0, "time_us": us, "frames": stack,
                "compile_context": "N/A", "user_metadata": ""}

    trace = [entry("segment_alloc", 1 << 45, 2097152, 1783874495854900, frames),
             entry("alloc", 1 << 45, 1000, 1783874495854988, frames),
             entry("alloc", (1 << 45) + 1024, 4096, 1783874495854990, other),
             entry("free_requested", 1 << 45, 1000, 1783874495855000, frames),
             entry("free_completed", 1 << 45, 1000, 1783874495855001, frames),
             {"action": "oom", "device_free": 123456, "size": 1 << 40, "stream": 0, "time_us": 1783874495855002,
              "frames": other}]
    segment = {"device": 0, "address": 1 << 45, "total_size": 2097152, "allocated_size": 4096, "active_size": 4608,
               "requested_size": 4000, "stream": 0, "segment_type": "small", "segment_pool_id": (0, 1),
               "is_expandable": False, "frames": frames,
               "blocks": [{"address": 1 << 45, "size": 1024, "requested_size": 1000, "state": "inactive", "frames": []},
                          {"address": (1 << 45) + 1024, "size": 4096, "requested_size": 4000,
                           "state": "active_allocated", "frames": other},
                          {"address": (1 << 45) + 5120, "size": 512, "requested_size": 512,
                           "state": "active_awaiting_free", "frames": other}]}
    return {"segments": [segment], "device_traces": [trace, []],
            "allocator_settings": {"expandable_segments": True, "max_split_size": -1, "ratio": 0.5, "conf": "a:b"},
            "external_annotations": [{"stage": "START", "name": "AdamW.step", "device": 0, "time_us": 1783874495854980},
                                     {"stage": "END", "name": "AdamW.step", "device": 0, "time_us": 1783874495855003}]}


def write(name, text):
    (here / name).write_text(text, encoding="utf-8")


def main():
    write("kineto_2021.json", year_2021())
    write("kineto_2024_april.json", year_2024_april())
    (here / "kineto_2025.json.gz").write_bytes(gzip.compress(year_2025().encode(), mtime=0))
    write("kineto_rocm_rank_6.json", rocm())
    write("kineto_mtia.json", mtia())
    write("chrome_array.json", chrome_array())
    nsight(here / "nsight.sqlite")
    nsight(here / "nsight_2022.sqlite", old=True)
    nsight_nccl(here / "nsight_nccl.sqlite")
    for protocol in (2, 4, 5):
        (here / f"snapshot_p{protocol}.pickle").write_bytes(pickle.dumps(snapshot(), protocol=protocol))
    write("memory_timeline.raw.json", json.dumps([[-1, 1, 37888, 7], [100, 2, 512, 4], [150, 3, -512, 4],
                                                  [150, 3, 512, 5], [200, 4, -512, 5]]))
    write("memory_timeline.json", json.dumps([[100, 200, 300, 400], [[0, 1, 2, 3, 4, 5, 6, 7, 8]] * 4]))


main()
