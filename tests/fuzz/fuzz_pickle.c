/* fuzz_pickle.c - memory snapshots, on any bytes. */
#include <stdint.h>
#include <stdlib.h>

#include "instrument/ingest/memory_snapshot.h"

static void check_text(const tp_snapshot *s, uint32_t id)
{
    if (id >= s->strings.n || tp_snapshot_str(s, id)[tp_string_len(&s->strings, id)] != 0)
        abort();
}

/* Every number of the tables must lead somewhere. */
static void walk(const tp_snapshot *s)
{
    for (size_t i = 0; i < s->n_entries; i++) {
        const tp_mem_stack *stack = &s->stacks[s->entries[i].stack];
        for (uint32_t k = 0; k < stack->n; k++)
            check_text(s, s->frames[s->stack_frames[stack->first + k]].file);
    }
    for (size_t i = 0; i < s->n_segments; i++)
        if (s->segments[i].first_block + s->segments[i].n_blocks > s->n_blocks)
            abort();
    for (size_t i = 0; i < s->n_blocks; i++)
        if (s->blocks[i].stack >= s->n_stacks || s->blocks[i].segment >= s->n_segments)
            abort();
    if (s->device_first[s->n_devices] != s->n_entries)
        abort();
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    tp_snapshot *s = NULL;
    tp_notes notes = {0};
    tp_error err = {0};
    if (size > 1 << 16)
        return 0;
    if (tp_snapshot_read("fuzz", data, size, 1 << 20, &s, &notes, &err) == TP_OK)
        walk(s);
    else if (!err.message[0])
        abort();
    tp_snapshot_free(s);
    tp_notes_release(&notes);
    return 0;
}
