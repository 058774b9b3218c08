/* From the pickle's dicts to flat tables.  A list of frames that many events share is
 * turned into a stack once, by its place in the pickle; lists that are equal but not
 * shared become the same stack too. */
#include "instrument/ingest/memory_snapshot.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "base/platform.h"
#include "base/vec.h"
#include "instrument/ingest/pickle.h"
#include "text/json/json.h"

#define KEYS(K)                                                                                    \
    K(segments)                                                                                    \
    K(device_traces)                                                                               \
    K(allocator_settings)                                                                          \
    K(external_annotations)                                                                        \
    K(host_segments)                                                                               \
    K(host_traces)                                                                                 \
    K(device)                                                                                      \
    K(address)                                                                                     \
    K(total_size)                                                                                  \
    K(allocated_size)                                                                              \
    K(active_size)                                                                                 \
    K(requested_size)                                                                              \
    K(stream) K(segment_pool_id) K(frames) K(blocks) K(size) K(state) K(action) K(addr) K(time_us) \
        K(device_free) K(filename) K(line) K(name) K(stage) K(history) K(real_size)

enum {
#define K(name) KEY_##name,
    KEYS(K)
#undef K
        N_KEYS
};

static const char *const key_names[N_KEYS] = {
#define K(name) #name,
    KEYS(K)
#undef K
};

static const char *const action_names[TP_MEM_ACTIONS] = {
    [TP_MEM_ALLOC] = "alloc",
    [TP_MEM_FREE_REQUESTED] = "free_requested",
    [TP_MEM_FREE_COMPLETED] = "free_completed",
    [TP_MEM_SEGMENT_ALLOC] = "segment_alloc",
    [TP_MEM_SEGMENT_FREE] = "segment_free",
    [TP_MEM_SEGMENT_MAP] = "segment_map",
    [TP_MEM_SEGMENT_UNMAP] = "segment_unmap",
    [TP_MEM_SNAPSHOT] = "snapshot",
    [TP_MEM_OOM] = "oom",
    [TP_MEM_ANNOTATE] = "annotate",
    [TP_MEM_OTHER] = "other",
};

static const char *const state_names[] = {
    [TP_BLOCK_INACTIVE] = "inactive",
    [TP_BLOCK_ALLOCATED] = "active_allocated",
    [TP_BLOCK_PENDING] = "active_pending_free",
    [TP_BLOCK_OTHER] = "other",
};

typedef struct {
    tp_snapshot *out;
    tp_pickle pickle;
    uint32_t keys[N_KEYS];   /* numbers of the strings */
    uint32_t *stack_of_list; /* by object: stack plus one */
    tp_string_table frame_keys, stack_keys;
    tp_buf scratch;
    size_t segment_cap, block_cap, entry_cap, device_cap, annotation_cap, setting_cap;
    size_t frame_cap, stack_cap, stack_frame_cap;
    uint64_t n_odd; /* rows that are no dicts */
} snapshot_reader;

static bool get(const snapshot_reader *r, tp_pickle_value dict, int key, tp_pickle_value *ret)
{
    return tp_pickle_get(&r->pickle, dict, r->keys[key], ret);
}

static int64_t number(const snapshot_reader *r, tp_pickle_value dict, int key)
{
    tp_pickle_value v;
    int64_t n;
    return get(r, dict, key, &v) && tp_pickle_i64(&r->pickle, v, &n) ? n : TP_UNKNOWN;
}

static uint64_t address(const snapshot_reader *r, tp_pickle_value dict, int key)
{
    int64_t n = number(r, dict, key);
    return n == TP_UNKNOWN ? 0 : (uint64_t)n;
}

static uint32_t string(const snapshot_reader *r, tp_pickle_value dict, int key)
{
    tp_pickle_value v;
    uint32_t id;
    return get(r, dict, key, &v) && tp_pickle_string(v, &id) ? id : 0;
}

static const tp_pickle_object *list(const snapshot_reader *r, tp_pickle_value dict, int key)
{
    tp_pickle_value v;
    return get(r, dict, key, &v) ? tp_pickle_list(&r->pickle, v) : NULL;
}

/* --- stacks --- */

static uint32_t frame_number(snapshot_reader *r, tp_pickle_value v)
{
    tp_snapshot *out = r->out;
    const tp_mem_frame frame = {.file = string(r, v, KEY_filename),
                                .function = string(r, v, KEY_name),
                                .line = number(r, v, KEY_line)};
    const int64_t key[3] = {frame.file, frame.function, frame.line};
    size_t before = r->frame_keys.n;
    uint32_t id = tp_string_add(&r->frame_keys, (const char *)key, sizeof key);
    if (r->frame_keys.n != before)
        *TP_VEC_PUSH(out->frames, out->n_frames, r->frame_cap) = frame;
    return id - 1; /* number 0 of the table is the empty string */
}

static uint32_t add_stack(snapshot_reader *r, const tp_pickle_object *frames)
{
    tp_snapshot *out = r->out;
    if (frames->n == 0)
        return 0;
    tp_buf_clear(&r->scratch);
    for (uint32_t i = 0; i < frames->n; i++) {
        uint32_t frame = frame_number(r, frames->items[i]);
        tp_buf_add(&r->scratch, &frame, sizeof frame);
    }
    size_t before = r->stack_keys.n;
    uint32_t id = tp_string_add(&r->stack_keys, r->scratch.data, r->scratch.len);
    if (r->stack_keys.n == before)
        return id;
    tp_mem_stack *stack = TP_VEC_PUSH(out->stacks, out->n_stacks, r->stack_cap);
    stack->first = (uint32_t)out->n_stack_frames;
    stack->n = frames->n;
    out->stack_frames = tp_vec_room(out->stack_frames, &r->stack_frame_cap,
                                    out->n_stack_frames + frames->n, sizeof *out->stack_frames);
    memcpy(out->stack_frames + out->n_stack_frames, r->scratch.data, r->scratch.len);
    out->n_stack_frames += frames->n;
    return id;
}

static uint32_t stack_number(snapshot_reader *r, tp_pickle_value dict)
{
    tp_pickle_value v;
    if (!get(r, dict, KEY_frames, &v))
        return 0;
    const tp_pickle_object *frames = tp_pickle_list(&r->pickle, v);
    if (!frames)
        return 0;
    uint32_t *known = &r->stack_of_list[tp_pickle_payload(v)];
    if (!*known)
        *known = add_stack(r, frames) + 1;
    return *known - 1;
}

/* Old files: the stack of a block is that of the newest entry of its history. */
static uint32_t block_stack(snapshot_reader *r, tp_pickle_value block, int64_t *requested)
{
    const tp_pickle_object *history = list(r, block, KEY_history);
    if (!history || history->n == 0)
        return stack_number(r, block);
    if (*requested == TP_UNKNOWN)
        *requested = number(r, history->items[0], KEY_real_size);
    return stack_number(r, history->items[0]);
}

/* --- tables --- */

static tp_block_state state_of(const tp_snapshot *out, uint32_t text)
{
    const char *name = tp_snapshot_str(out, text);
    if (strcmp(name, "active_awaiting_free") == 0)
        return TP_BLOCK_PENDING;
    for (size_t i = 0; i < TP_COUNTOF(state_names) - 1; i++)
        if (strcmp(name, state_names[i]) == 0)
            return (tp_block_state)i;
    return TP_BLOCK_OTHER;
}

static tp_mem_action action_of(const tp_snapshot *out, uint32_t text)
{
    const char *name = tp_snapshot_str(out, text);
    for (int i = 0; i < TP_MEM_OTHER; i++)
        if (strcmp(name, action_names[i]) == 0)
            return (tp_mem_action)i;
    return TP_MEM_OTHER;
}

static void read_block(snapshot_reader *r, tp_pickle_value v, uint64_t *addr)
{
    tp_snapshot *out = r->out;
    tp_mem_block block = {.addr = address(r, v, KEY_address),
                          .size = number(r, v, KEY_size),
                          .requested = number(r, v, KEY_requested_size),
                          .state_text = string(r, v, KEY_state),
                          .segment = (uint32_t)(out->n_segments - 1)};
    if (!block.addr) /* not written before 2023: blocks lie side by side */
        block.addr = *addr;
    block.stack = block_stack(r, v, &block.requested);
    block.state = state_of(out, block.state_text);
    if (block.size > 0)
        *addr = block.addr + (uint64_t)block.size;
    *TP_VEC_PUSH(out->blocks, out->n_blocks, r->block_cap) = block;
}

static void read_segment(snapshot_reader *r, tp_pickle_value v)
{
    tp_snapshot *out = r->out;
    if (!tp_pickle_dict(&r->pickle, v)) {
        r->n_odd++;
        return;
    }
    const tp_pickle_object *blocks = list(r, v, KEY_blocks);
    const tp_pickle_object *pool = list(r, v, KEY_segment_pool_id);
    tp_mem_segment segment = {.addr = address(r, v, KEY_address),
                              .total = number(r, v, KEY_total_size),
                              .allocated = number(r, v, KEY_allocated_size),
                              .active = number(r, v, KEY_active_size),
                              .requested = number(r, v, KEY_requested_size),
                              .stream = number(r, v, KEY_stream),
                              .device = number(r, v, KEY_device),
                              .pool = {TP_UNKNOWN, TP_UNKNOWN},
                              .stack = stack_number(r, v),
                              .first_block = (uint32_t)out->n_blocks};
    for (uint32_t i = 0; pool && i < 2 && i < pool->n; i++)
        (void)tp_pickle_i64(&r->pickle, pool->items[i], &segment.pool[i]);
    *TP_VEC_PUSH(out->segments, out->n_segments, r->segment_cap) = segment;
    uint64_t addr = segment.addr;
    for (uint32_t i = 0; blocks && i < blocks->n; i++)
        read_block(r, blocks->items[i], &addr);
    out->segments[out->n_segments - 1].n_blocks = (uint32_t)(out->n_blocks - segment.first_block);
}

static void read_entry(snapshot_reader *r, tp_pickle_value v, uint32_t device)
{
    tp_snapshot *out = r->out;
    if (!tp_pickle_dict(&r->pickle, v)) {
        r->n_odd++;
        return;
    }
    tp_mem_entry *entry = TP_VEC_PUSH(out->entries, out->n_entries, r->entry_cap);
    entry->device = device;
    entry->action_text = string(r, v, KEY_action);
    entry->action = action_of(out, entry->action_text);
    entry->addr = address(r, v, KEY_addr);
    entry->device_free = number(r, v, KEY_device_free);
    entry->size = number(r, v, KEY_size);
    entry->stream = number(r, v, KEY_stream);
    entry->time_us = number(r, v, KEY_time_us);
    entry->stack = stack_number(r, v);
}

static void read_traces(snapshot_reader *r, const tp_pickle_object *traces)
{
    tp_snapshot *out = r->out;
    for (uint32_t d = 0; traces && d < traces->n; d++) {
        const tp_pickle_object *entries = tp_pickle_list(&r->pickle, traces->items[d]);
        *TP_VEC_PUSH(out->device_first, out->n_devices, r->device_cap) = out->n_entries;
        for (uint32_t i = 0; entries && i < entries->n; i++)
            read_entry(r, entries->items[i], d);
    }
    /* One more place, that closes the last list. */
    size_t n = out->n_devices;
    *TP_VEC_PUSH(out->device_first, n, r->device_cap) = out->n_entries;
}

static void read_annotations(snapshot_reader *r, const tp_pickle_object *annotations)
{
    tp_snapshot *out = r->out;
    for (uint32_t i = 0; annotations && i < annotations->n; i++) {
        tp_pickle_value v = annotations->items[i];
        tp_mem_annotation *a = TP_VEC_PUSH(out->annotations, out->n_annotations, r->annotation_cap);
        a->name = string(r, v, KEY_name);
        a->stage = string(r, v, KEY_stage);
        a->device = number(r, v, KEY_device);
        a->time_us = number(r, v, KEY_time_us);
    }
}

/* --- settings: any value, as JSON --- */

enum { MAX_SETTING = 64 << 10, MAX_SETTING_DEPTH = 16 };

static void write_value(snapshot_reader *r, tp_pickle_value v, int depth)
{
    tp_buf *out = &r->scratch;
    const tp_pickle *p = &r->pickle;
    uint64_t payload = tp_pickle_payload(v);
    int64_t n;
    if (depth > MAX_SETTING_DEPTH || out->len > MAX_SETTING) {
        tp_buf_adds(out, "null");
        return;
    }
    switch (tp_pickle_type_of(v)) {
    case TP_PICKLE_CONSTANT:
        tp_buf_adds(out, payload == 1 ? "false" : payload == 2 ? "true" : "null");
        break;
    case TP_PICKLE_INT:
    case TP_PICKLE_BIG:
        tp_buf_addf(out, "%" PRId64, tp_pickle_i64(p, v, &n) ? n : 0);
        break;
    case TP_PICKLE_FLOAT: {
        tp_json_w w;
        tp_json_w_init(&w, out, 0);
        tp_json_w_f64(&w, p->floats[payload]);
        break;
    }
    case TP_PICKLE_STRING:
        tp_json_quote(out, tp_string_get(p->strings, (uint32_t)payload),
                      tp_string_len(p->strings, (uint32_t)payload));
        break;
    case TP_PICKLE_LIST:
    case TP_PICKLE_DICT: {
        bool is_dict = tp_pickle_type_of(v) == TP_PICKLE_DICT;
        const tp_pickle_object *object = &p->objects[payload];
        tp_buf_addc(out, is_dict ? '{' : '[');
        for (uint32_t i = 0; i < object->n && out->len <= MAX_SETTING; i++) {
            if (i)
                tp_buf_addc(out, is_dict && i % 2 ? ':' : ',');
            write_value(r, object->items[i], depth + 1);
        }
        tp_buf_addc(out, is_dict ? '}' : ']');
        break;
    }
    default:
        tp_buf_adds(out, "null");
    }
}

static void read_settings(snapshot_reader *r, tp_pickle_value v)
{
    tp_snapshot *out = r->out;
    const tp_pickle_object *settings = tp_pickle_dict(&r->pickle, v);
    for (uint32_t i = 0; settings && i + 1 < settings->n; i += 2) {
        uint32_t key, value;
        if (!tp_pickle_string(settings->items[i], &key))
            continue;
        if (!tp_pickle_string(settings->items[i + 1], &value)) {
            tp_buf_clear(&r->scratch);
            write_value(r, settings->items[i + 1], 0);
            value = tp_string_add(&out->strings, r->scratch.data, r->scratch.len);
        }
        tp_mem_setting *setting = TP_VEC_PUSH(out->settings, out->n_settings, r->setting_cap);
        setting->key = key;
        setting->value = value;
    }
}

/* --- the whole --- */

static size_t count_all(const snapshot_reader *r, const tp_pickle_object *lists, bool nested)
{
    size_t n = 0;
    for (uint32_t i = 0; lists && i < lists->n; i++) {
        const tp_pickle_object *inner = tp_pickle_list(&r->pickle, lists->items[i]);
        n += nested ? (inner ? inner->n : 0) : 1;
    }
    return n;
}

static tp_status convert(snapshot_reader *r, const char *name, tp_error *err)
{
    tp_snapshot *out = r->out;
    tp_pickle_value root = r->pickle.root, settings;
    /* torch.cuda.memory_snapshot() itself is only the list of segments. */
    const tp_pickle_object *segments = tp_pickle_list(&r->pickle, root);
    const tp_pickle_object *traces = NULL;
    if (!segments) {
        segments = list(r, root, KEY_segments);
        traces = list(r, root, KEY_device_traces);
    }
    if (!segments && !traces)
        return tp_fail(err, TP_ERR_FORMAT,
                       "'%s' is a pickle, but no memory snapshot: it has neither 'segments' nor "
                       "'device_traces'; write one with torch.cuda.memory._dump_snapshot()",
                       name);
    for (uint32_t i = 0; segments && i < segments->n; i++)
        read_segment(r, segments->items[i]);
    if (segments && segments->n > 0 && out->n_segments == 0 && !traces)
        return tp_fail(
            err, TP_ERR_FORMAT,
            "'%s' is a pickle, but no memory snapshot: nothing in its list is a segment; "
            "write one with torch.cuda.memory._dump_snapshot()",
            name);
    read_traces(r, traces);
    read_annotations(r, list(r, root, KEY_external_annotations));
    if (get(r, root, KEY_allocator_settings, &settings))
        read_settings(r, settings);
    out->n_host_segments = count_all(r, list(r, root, KEY_host_segments), false);
    out->n_host_entries = count_all(r, list(r, root, KEY_host_traces), true);
    out->protocol = r->pickle.protocol;
    return TP_OK;
}

static void add_notes(const snapshot_reader *r, const char *name, tp_notes *notes)
{
    if (r->pickle.truncated)
        tp_notes_add(notes, TP_NOTE_WARNING,
                     "'%s' ends in the middle (byte %zu%s%s); the %zu segments and %zu trace "
                     "entries before were read",
                     name, r->pickle.stopped_at, r->pickle.damage ? ": " : "",
                     r->pickle.damage ? r->pickle.damage : "", r->out->n_segments,
                     r->out->n_entries);
    if (r->n_odd)
        tp_notes_add(notes, TP_NOTE_WARNING, "%" PRIu64 " rows of '%s' are no dicts; left out",
                     r->n_odd, name);
    if (r->out->n_host_segments || r->out->n_host_entries)
        tp_notes_add(notes, TP_NOTE_INFO,
                     "%zu segments and %zu trace entries of pinned host memory were counted, not "
                     "analysed",
                     r->out->n_host_segments, r->out->n_host_entries);
}

tp_status tp_snapshot_read(const char *name, const void *bytes, size_t n, uint64_t most,
                           tp_snapshot **ret, tp_notes *notes, tp_error *err)
{
    snapshot_reader r = {.out = calloc(1, sizeof *r.out)};
    if (!r.out)
        return tp_fail(err, TP_ERR_NOMEM, "no memory for reading '%s'", name);
    tp_string_table_init(&r.out->strings);
    tp_string_table_init(&r.frame_keys);
    tp_string_table_init(&r.stack_keys);
    for (int i = 0; i < N_KEYS; i++)
        r.keys[i] = tp_string_add(&r.out->strings, key_names[i], strlen(key_names[i]));
    *TP_VEC_PUSH(r.out->stacks, r.out->n_stacks, r.stack_cap) = (tp_mem_stack){0};
    tp_status status = tp_pickle_read(&r.pickle, name, bytes, n, most, &r.out->strings, err);
    if (status == TP_OK) {
        r.stack_of_list = calloc(r.pickle.n_objects + 1, sizeof *r.stack_of_list);
        status = r.stack_of_list ? convert(&r, name, err)
                                 : tp_fail(err, TP_ERR_NOMEM, "no memory for reading '%s'", name);
    }
    if (status == TP_OK)
        add_notes(&r, name, notes);
    free(r.stack_of_list);
    tp_pickle_release(&r.pickle);
    tp_string_table_release(&r.frame_keys);
    tp_string_table_release(&r.stack_keys);
    tp_buf_release(&r.scratch);
    if (status != TP_OK) {
        tp_snapshot_free(r.out);
        return status;
    }
    *ret = r.out;
    return TP_OK;
}

void tp_snapshot_free(tp_snapshot *snapshot)
{
    if (!snapshot)
        return;
    void *const blocks[] = {snapshot->segments, snapshot->blocks,       snapshot->entries,
                            snapshot->frames,   snapshot->stacks,       snapshot->stack_frames,
                            snapshot->settings, snapshot->device_first, snapshot->annotations};
    for (size_t i = 0; i < TP_COUNTOF(blocks); i++)
        free(blocks[i]);
    tp_string_table_release(&snapshot->strings);
    free(snapshot);
}
