/* events.h - everything a trace file said, in columns.
 *
 * One store holds one file: Kineto and other Chrome traces, an Nsight Systems export, a
 * trace of Temper.  Rows are in file order, which is not time order.  All times are
 * integer nanoseconds as written in the file; tp_trace_info.base_ns turns them into Unix
 * time where the file says how.  The main table has 48 bytes per event:
 *
 *     start dur correlation external | name track detail | category kind phase
 *       8    8       8         8     |  4     4     4    |    2       1    1
 *
 * What only some kinds of events carry is in side tables: `detail[i]` is a row of the
 * table of the event's kind, plus one; of kernels that of collectives.  Instants of the memory
 * profiler, flow arrows and counters are no spans and have tables of their own.  Strings are
 * interned: equal text, equal number, 0 is the empty string and means "not given".
 *
 * Nothing is repaired silently: what was skipped, clamped or guessed is counted in
 * tp_event_counts and told in notes.  Columns that were not asked for (tp_event_keep) stay
 * empty, but their events are counted. */
#ifndef TP_INSTRUMENT_INGEST_EVENTS_H
#define TP_INSTRUMENT_INGEST_EVENTS_H

#include "base/strings.h"
#include "instrument/ingest/notes.h"
#include "instrument/ingest/string_table.h"

/* "The file does not say", for numbers that may be 0. */
#define TP_UNKNOWN INT64_MIN
#define TP_NO_DEVICE INT32_MIN

/* What an event is, from its category (tp_event_kind_of) or its Nsight table. */
typedef enum {
    TP_EVENT_OTHER,
    TP_EVENT_CPU_OP,         /* cpu_op, Operator                                          */
    TP_EVENT_ANNOTATION,     /* user_annotation; Nsight: NVTX ranges                      */
    TP_EVENT_GPU_ANNOTATION, /* gpu_user_annotation: spans of annotations on a stream     */
    TP_EVENT_KERNEL,         /* kernel, Kernel                                            */
    TP_EVENT_MEMCPY,         /* gpu_memcpy, Memcpy                                        */
    TP_EVENT_MEMSET,         /* gpu_memset, Memset                                        */
    TP_EVENT_GRAPH,          /* Nsight: a whole graph launch; its kernels are not listed  */
    TP_EVENT_COLLECTIVE,     /* collective_comm                                           */
    TP_EVENT_DEVICE,         /* other accelerators: mtia_ccp_events, hpu_op               */
    TP_EVENT_RUNTIME,        /* cuda_runtime, Runtime, HIP, XPU, MTIA, privateuse1, glow  */
    TP_EVENT_DRIVER,         /* cuda_driver, xpu_driver, privateuse1_driver               */
    TP_EVENT_SYNC,           /* cuda_sync, xpu_sync: on a stream's row, no work           */
    TP_EVENT_CUDA_EVENT,     /* cuda_event: an event recorded on a stream                 */
    TP_EVENT_PYTHON,         /* python_function                                           */
    TP_EVENT_OVERHEAD,       /* overhead of the profiler itself                           */
    TP_EVENT_INSTANT,        /* any "i" other than [memory]                               */
    TP_EVENT_RANGE,          /* cuda_profiler_range: CUPTI counters of a kernel           */
    TP_EVENT_TRACE,          /* "Trace": the recording itself                             */
    TP_EVENT_OS,             /* Nsight: calls into the operating system                   */
    TP_EVENT_KINDS
} tp_event_kind;

/* How the name of a step that PyTorch's profiler marks begins; its number follows. */
#define TP_PROFILER_STEP "ProfilerStep#"

tp_event_kind tp_event_kind_of(const char *category, size_t len);
/* Kineto's category for it; NULL: it has none. */
const char *tp_event_kind_category(tp_event_kind kind);
const char *tp_event_kind_name(tp_event_kind kind);

/* Work on a GPU that counts as busy: kernels, copies, fills (and whole graphs). */
static inline bool tp_event_is_gpu(uint8_t kind)
{
    return kind == TP_EVENT_KERNEL || kind == TP_EVENT_MEMCPY || kind == TP_EVENT_MEMSET ||
           kind == TP_EVENT_GRAPH;
}

/* What to keep; counts are always complete. */
typedef enum {
    TP_KEEP_GPU = 1 << 0,         /* rows of GPU work, with bytes of copies               */
    TP_KEEP_HOST = 1 << 1,        /* rows of everything else                              */
    TP_KEEP_MEMORY = 1 << 2,      /* the table of memory instants                         */
    TP_KEEP_FLOWS = 1 << 3,       /* the table of flow arrows                             */
    TP_KEEP_COUNTERS = 1 << 4,    /* the table of counter samples                         */
    TP_KEEP_OPS = 1 << 5,         /* shapes, modules, operations of operators             */
    TP_KEEP_SYNCS = 1 << 6,       /* targets of synchronisation                           */
    TP_KEEP_COLLECTIVES = 1 << 7, /* metadata of collectives, on kernels and operators    */
    TP_KEEP_ARGS = 1 << 8,        /* the text of every event's "args"                     */
    TP_KEEP_FAST = TP_KEEP_GPU | TP_KEEP_HOST | TP_KEEP_COLLECTIVES,
    TP_KEEP_ALL = (1 << 9) - 1
} tp_event_keep;

/* A row of the display: a thread of a process, or a stream of a device. */
typedef struct {
    int64_t pid, tid;            /* TP_UNKNOWN when absent or text                        */
    uint32_t pid_text, tid_text; /* strings, where the file has text: "Spans", "stream 7" */
    int64_t device, stream;      /* from args, else from pid and tid of GPU rows; TP_UNKNOWN
                                    for host rows                                         */
    uint32_t process_name, thread_name, process_labels; /* strings, from metadata events  */
} tp_event_track;

typedef struct {
    int64_t bytes; /* TP_UNKNOWN when absent                                              */
    /* Nsight's copyKind and memory kinds; -1 when the file has only the name */
    int16_t copy_kind, from_kind, to_kind;
} tp_event_copy; /* MEMCPY, MEMSET */

typedef struct {
    uint32_t collective;  /* row of `collectives` plus one: record_param_comms            */
    uint32_t dims, types; /* strings: compact JSON of the arrays                          */
    uint32_t modules;     /* string                                                       */
    uint32_t phase;       /* string: Temper's "forward", "backward", ...             */
    int64_t flops;        /* TP_UNKNOWN when absent                                  */
} tp_event_op;            /* CPU_OP, ANNOTATION */

typedef struct {
    int64_t wait_stream, wait_correlation;
} tp_event_sync; /* SYNC, CUDA_EVENT */

typedef struct {
    uint32_t name;  /* string: "allreduce", as written                     */
    uint32_t dtype; /* string: "Float"                                     */
    uint32_t group; /* string: Process Group Name                          */
    int64_t in_elements, out_elements, group_size; /* TP_UNKNOWN when absent, as below    */
    int64_t sequence, rank, comms_id;
    int64_t source, target; /* of what goes from one rank to one other */
    /* Nsight: bytes that a rank hands in (NCCL's count times the size of an element), summed
     * over the calls that one kernel served */
    bool has_message;
    int64_t message_bytes, message_calls;
} tp_event_collective;

/* One [memory] instant, or one of Nsight's memory usage events.  File order is not time
 * order: sort by (ts, index) per device. */
typedef struct {
    int64_t ts;
    uint64_t addr;
    int64_t bytes;               /* > 0 allocation, < 0 free                             */
    int64_t allocated, reserved; /* totals of the device; TP_UNKNOWN when absent         */
    int64_t index;               /* Ev Idx                                               */
    int32_t device;              /* -1: the CPU; TP_NO_DEVICE when absent                */
    int16_t device_type;         /* c10: 0 CPU, 1 CUDA, 6 HIP; -1 unknown                */
    uint32_t track;
} tp_memory_instant;

typedef struct {
    int64_t ts, id;
    uint32_t name; /* string: "ac2g", "fwdbwd" */
    uint32_t track;
    char phase; /* s, t, f */
} tp_flow;

typedef struct {
    int64_t ts;
    double value;
    uint32_t name, series; /* strings: the event's name, the argument's name */
    uint32_t track;
} tp_counter_sample;

/* How the file writes time. */
typedef enum {
    TP_TIME_NONE,             /* no event had a time                                      */
    TP_TIME_INTEGER_US,       /* integer microseconds (Kineto up to 2024-03)              */
    TP_TIME_ABSOLUTE_DECIMAL, /* microseconds since 1970 with decimals (2024-04, 05)      */
    TP_TIME_RELATIVE_DECIMAL, /* microseconds since base_ns with decimals (since)         */
    TP_TIME_NANOSECONDS       /* Nsight: since the start of the capture                   */
} tp_time_form;

typedef struct {
    int64_t id;
    uint32_t name;             /* string; may be empty on ROCm */
    int64_t memory_bytes, sms; /* or TP_UNKNOWN */
} tp_trace_device;

/* The rows of one table of an Nsight export. */
typedef struct {
    uint32_t name; /* string */
    int64_t rows;
} tp_trace_table;

typedef struct {
    tp_time_form time_form;
    int64_t base_ns; /* Unix time of ts 0; TP_UNKNOWN when the file does not say */
    int64_t schema_version;
    uint32_t trace_name, producer; /* strings: traceName; "PyTorch Kineto", "temper 0.1.0", ... */
    uint32_t metadata;             /* string: the metadata as one JSON object; not for Nsight */

    int64_t rank, world_size; /* distributedInfo; TP_UNKNOWN */
    /* Temper: this file's clock against that of rank 0, give or take so much; TP_UNKNOWN */
    int64_t clock_offset_ns, clock_error_ns;
    uint32_t backend;
    tp_trace_device *devices;
    size_t n_devices;

    /* Nsight only */
    bool graphs_hide_kernels; /* captured with graph granularity                          */
    tp_trace_table *tables;
    size_t n_tables;
    int64_t runtime_total_ns, memcpy_bytes, memcpy_ns; /* TP_UNKNOWN for other files      */
} tp_trace_info;

typedef struct {
    uint32_t name; /* string: the category; 0: events without one */
    uint64_t n;
} tp_category_count;

typedef struct {
    uint64_t events;             /* elements of traceEvents that were read, but for "{}"  */
    uint64_t ph[128];            /* by phase letter; [0] without one or with a longer one */
    tp_category_count *category; /* events with ph X, by category, in order of appearance */
    size_t n_categories;
    uint64_t kind[TP_EVENT_KINDS]; /* of ph X                                             */

    uint64_t memory_instants;
    int64_t alloc_bytes, free_bytes; /* of the memory instants, both positive             */

    uint64_t skipped_events, skipped_bytes; /* could not be read, and were left out       */
    uint64_t repaired_strings;   /* unescaped quotes inside a string                      */
    uint64_t odd_escapes;        /* backslashes that JSON does not know                   */
    uint64_t control_bytes;      /* strings with raw control characters                   */
    uint64_t invalid_utf8;       /* names that are not UTF-8                              */
    uint64_t odd_numbers;        /* bare inf, nan, N/A and the like                       */
    uint64_t odd_commas;         /* missing, doubled or trailing commas                   */
    uint64_t missing_time;       /* spans without ts: counted, no row                     */
    uint64_t missing_duration;   /* spans without dur or end: counted, no row              */
    uint64_t clamped_times;      /* beyond 64 bits of nanoseconds                         */
    uint64_t negative_durations; /* kept as they are                                      */
    uint64_t absurd_durations;   /* longer than 7 days; kept                              */
    uint64_t unpaired;           /* B without E, or E without B                           */
    uint64_t not_kept;           /* phases that have no table: async, samples, objects    */
    bool truncated;              /* the file ends in the middle                           */
} tp_event_counts;

typedef struct {
    size_t n; /* rows of the main table */
    int64_t *start, *dur;
    /* TP_UNKNOWN when absent.  Nsight's correlation numbers repeat across processes: the
     * process is in their upper half here, so equal ones belong together. */
    int64_t *correlation, *external;
    uint32_t *name, *track, *detail;
    uint16_t *category; /* index of counts.category */
    uint8_t *kind;      /* tp_event_kind */
    char *phase;        /* 'X' or 'i' */
    uint64_t *args;     /* TP_KEEP_ARGS: offsets into args_text, n + 1 of them; else NULL */
    char *args_text;

    tp_event_track *tracks;
    size_t n_tracks;

    tp_event_copy *copies;
    tp_event_op *ops;
    tp_event_sync *syncs;
    tp_event_collective *collectives;
    size_t n_copies, n_ops, n_syncs, n_collectives;

    tp_memory_instant *memory;
    tp_flow *flows;
    tp_counter_sample *counters;
    size_t n_memory, n_flows, n_counters;

    tp_string_table strings;
    tp_trace_info info;
    tp_event_counts counts;
    unsigned kept; /* tp_event_keep */
} tp_events;

/* The string, NUL-terminated, never NULL; it may contain NULs of its own. */
static inline const char *tp_events_str(const tp_events *events, uint32_t id)
{
    return tp_string_get(&events->strings, id);
}

/* The name of the category of row i ("" when it has none). */
const char *tp_events_category(const tp_events *events, size_t i);

/* The side row of event i, or NULL: it is of another kind, or was not kept. */
const tp_event_copy *tp_events_copy(const tp_events *events, size_t i);
const tp_event_op *tp_events_op(const tp_events *events, size_t i);
const tp_event_sync *tp_events_sync(const tp_events *events, size_t i);
/* Of a kernel, a collective or an operator. */
const tp_event_collective *tp_events_collective(const tp_events *events, size_t i);

/* The text of "args" ("{...}") with the white space it had; empty without TP_KEEP_ARGS. */
tp_slice tp_events_args(const tp_events *events, size_t i);

/* Device of row i as text, the key of "per_device": args.device, else pid, else "". */
void tp_events_device_name(const tp_events *events, size_t i, char *out, size_t size);

void tp_events_release(tp_events *events); /* zeroed is a no-op */

#endif
