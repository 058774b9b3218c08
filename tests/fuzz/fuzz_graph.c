/* fuzz_graph.c - graphs from any text, then the passes and the memory plan over them.
 *
 * What parses must survive printing, and no pass may break a graph that verifies. The
 * first byte chooses the options. */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "engine/passes/pipeline.h"

static void must(tp_status status, const tp_error *err, const char *what)
{
    if (status == TP_OK)
        return;
    fprintf(stderr, "%s: %s\n", what, err->message);
    abort();
}

static void check_round_trip(const tp_graph *g)
{
    tp_buf first = {0}, second = {0};
    tp_graph again;
    tp_error err;
    tp_graph_print(g, &first);
    must(tp_graph_parse("again", tp_buf_str(&first), first.len, &again, &err), &err, "again");
    tp_graph_print(&again, &second);
    tp_graph_release(&again);
    must(tp_graph_parse("thrice", tp_buf_str(&second), second.len, &again, &err), &err, "thrice");
    tp_buf_clear(&first);
    tp_graph_print(&again, &first);
    if (first.len != second.len || memcmp(tp_buf_str(&first), tp_buf_str(&second), first.len) != 0)
        abort();
    tp_graph_release(&again);
    tp_buf_release(&first);
    tp_buf_release(&second);
}

static void check_passes(tp_graph *g, uint8_t choice)
{
    tp_error err;
    tp_pass_options options = {.compute_dtype = choice & 1 ? TP_DTYPE_BF16 : TP_DTYPE_F32,
                               .recompute = (tp_recompute)(choice >> 1 & 3),
                               .recompute_every = 1 + (choice >> 3 & 1)};
    const char *disabled[16];
    for (int i = 0; tp_pass_pipeline[i]; i++)
        if (choice >> 4 && (choice >> 4) % 4 == i % 4)
            disabled[options.n_disabled++] = tp_pass_pipeline[i]->name;
    options.disabled = disabled;
    tp_status status = tp_passes_run(&g, 1, &options, &err);
    if (status == TP_ERR_NOMEM) /* values larger than any memory */
        return;
    must(status, &err, "passes");
    tp_arena arena;
    tp_memory_plan plan;
    if (tp_arena_init(&arena, 64 << 20, NULL) != TP_OK)
        return;
    for (int share = 0; share < 2; share++)
        if (tp_plan_memory(g, share, &arena, &plan, &err) == TP_OK &&
            plan.live_peak_bytes > plan.arena_bytes)
            abort();
    tp_arena_release(&arena);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    tp_graph g;
    tp_error err = {0};
    if (size < 1 || size > 1 << 14)
        return 0;
    if (tp_graph_parse("fuzz", (const char *)data + 1, size - 1, &g, &err) != TP_OK) {
        if (!err.message[0])
            abort();
        return 0;
    }
    check_round_trip(&g);
    check_passes(&g, data[0]);
    tp_graph_release(&g);
    return 0;
}
