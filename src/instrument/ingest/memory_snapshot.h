/* memory_snapshot.h - what torch.cuda.memory._dump_snapshot() wrote.
 *
 * A snapshot is the allocator at one moment (segments of device memory, cut into blocks)
 * and the ring of events that led there (traces, one list per device, oldest first; its
 * beginning is missing when the ring was full).  Stacks are shared: thousands of events
 * point to one list of frames, here by number; stack 0 is "none recorded".
 *
 * The file is a pickle.  It is read by an interpreter of the few opcodes that build plain
 * data; anything that could run code is refused. */
#ifndef TP_INSTRUMENT_INGEST_MEMORY_SNAPSHOT_H
#define TP_INSTRUMENT_INGEST_MEMORY_SNAPSHOT_H

#include "instrument/ingest/events.h"

typedef enum {
    TP_BLOCK_INACTIVE,
    TP_BLOCK_ALLOCATED, /* active_allocated                                   */
    TP_BLOCK_PENDING,   /* active_pending_free, active_awaiting_free          */
    TP_BLOCK_OTHER      /* a state this reader does not know; see state_text  */
} tp_block_state;

typedef enum {
    TP_MEM_ALLOC,
    TP_MEM_FREE_REQUESTED,
    TP_MEM_FREE_COMPLETED,
    TP_MEM_SEGMENT_ALLOC,
    TP_MEM_SEGMENT_FREE,
    TP_MEM_SEGMENT_MAP,
    TP_MEM_SEGMENT_UNMAP,
    TP_MEM_SNAPSHOT,
    TP_MEM_OOM,
    TP_MEM_ANNOTATE,
    TP_MEM_OTHER, /* an action this reader does not know; see action_text */
    TP_MEM_ACTIONS
} tp_mem_action;

typedef struct {
    uint32_t file, function; /* strings */
    int64_t line;
} tp_mem_frame;

typedef struct {
    uint32_t first, n; /* of stack_frames, innermost first */
} tp_mem_stack;

typedef struct {
    uint64_t addr;
    int64_t size, requested; /* requested: TP_UNKNOWN in old files */
    tp_block_state state;
    uint32_t state_text; /* string: as written */
    uint32_t stack;
    uint32_t segment;
} tp_mem_block;

typedef struct {
    uint64_t addr;
    int64_t total, allocated, active, requested; /* bytes; TP_UNKNOWN when absent */
    int64_t stream, device;
    int64_t pool[2]; /* segment_pool_id; TP_UNKNOWN */
    uint32_t stack;
    uint32_t first_block, n_blocks; /* of blocks */
} tp_mem_segment;

typedef struct {
    tp_mem_action action;
    uint32_t action_text; /* string */
    uint32_t device;      /* index of the list it was in */
    uint64_t addr;
    int64_t size, stream; /* TP_UNKNOWN when absent */
    int64_t time_us;      /* TP_UNKNOWN in files before 2023 */
    int64_t device_free;  /* of TP_MEM_OOM: what the device still had; TP_UNKNOWN of others */
    uint32_t stack;
} tp_mem_entry;

typedef struct {
    uint32_t name, stage; /* strings: stage is START or END */
    int64_t device, time_us;
} tp_mem_annotation;

typedef struct {
    uint32_t key, value; /* strings; a value that is no string is JSON */
} tp_mem_setting;

typedef struct {
    tp_mem_segment *segments;
    tp_mem_block *blocks;
    tp_mem_entry *entries; /* all devices, device 0 first, each in file order */
    size_t n_segments, n_blocks, n_entries;
    size_t *device_first; /* n_devices + 1: entries of device d are [first[d], first[d + 1]) */
    size_t n_devices;
    tp_mem_annotation *annotations;
    size_t n_annotations;
    tp_mem_setting *settings;
    size_t n_settings;
    size_t n_host_segments, n_host_entries; /* newer files; counted only */

    tp_mem_frame *frames;   /* each different frame once */
    tp_mem_stack *stacks;   /* each different list once; [0] is empty */
    uint32_t *stack_frames; /* numbers of frames */
    size_t n_frames, n_stacks, n_stack_frames;
    tp_string_table strings;
    int protocol; /* of the pickle */
} tp_snapshot;

static inline const char *tp_snapshot_str(const tp_snapshot *s, uint32_t id)
{
    return tp_string_get(&s->strings, id);
}

/* `name` is what errors call the file; what the pickle builds may take `most` bytes (0: any). */
TP_CHECKED tp_status tp_snapshot_read(const char *name, const void *bytes, size_t n, uint64_t most,
                                      tp_snapshot **ret, tp_notes *notes, tp_error *err);
void tp_snapshot_free(tp_snapshot *snapshot); /* NULL is a no-op */

#endif
