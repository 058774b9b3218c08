/* pass.h - graph transformations, and the order they run in.
 *
 * A pass rewrites a graph that verifies into one that computes the same values and
 * verifies.  The pipeline (pipeline.c) is a list one can read; after each pass that
 * changed something the graph is verified, so a broken promise names its author.
 * Passes know no device. */
#ifndef TP_ENGINE_PASSES_PASS_H
#define TP_ENGINE_PASSES_PASS_H

#include "engine/ir/graph.h"

typedef enum {
    TP_RECOMPUTE_NONE,
    TP_RECOMPUTE_FULL,     /* keep only what enters each block */
    TP_RECOMPUTE_EVERY,    /* keep only what enters each group of `recompute_every` blocks */
    TP_RECOMPUTE_SELECTIVE /* recompute what is cheap for its size: norms, gates, positions */
} tp_recompute;

typedef struct {
    tp_dtype compute_dtype; /* f32: autocast does nothing; bf16 */
    tp_recompute recompute;
    int recompute_every;
    bool compresses;             /* activations that wait for the backward pass */
    int32_t loss_chunk;          /* rows of logits alive at once; 0 = chosen by the kernel */
    int ranks;                   /* that train together; 0, 1: one */
    tp_shard tensor;             /* ranks that share the layers, and which of them; 0, 1: none */
    bool shares_rows;            /* they divide norms and residuals by rows, too */
    int node;                    /* so many of them keep the parts of a tensor; 0: all */
    tp_shard part;               /* that this one keeps */
    bool shards_optimizer;       /* each updates its part of every weight; see graph.parts */
    bool gathers_again;          /* weights in parts for the backward pass, too */
    size_t bucket_bytes;         /* of what is sent together */
    int32_t wire, wire_keep;     /* the format of what is summed, see exec/wire.h; 0: as it is */
    bool keeps_errors;           /* what that loses is kept, and sent the next time */
    const char *const *disabled; /* names of passes not to run */
    size_t n_disabled;
    /* (optional) called after each pass for each graph of the set */
    void (*observe)(void *user, const char *pass, size_t graph);
    void *observe_user;
} tp_pass_options;

typedef struct {
    const char *name;
    const char *promise; /* one line for people */
    /* (optional) for each graph by itself */
    TP_CHECKED tp_status (*run)(tp_graph *g, const tp_pass_options *options, bool *changed,
                                tp_error *err);
    /* (optional) for each graph once all have been run over: what it takes from the others */
    TP_CHECKED tp_status (*join)(tp_graph *g, tp_graph *const *set, size_t n,
                                 const tp_pass_options *options, bool *changed, tp_error *err);
} tp_pass;

extern const tp_pass tp_pass_cse, tp_pass_dce, tp_pass_autocast, tp_pass_fuse_swiglu,
    tp_pass_fuse_bias_gelu, tp_pass_fuse_residual_norm, tp_pass_fuse_grad_add,
    tp_pass_fuse_linear_ce, tp_pass_fuse_grad_norm, tp_pass_pack_weights, tp_pass_recompute,
    tp_pass_int8_activations, tp_pass_schedule, tp_pass_tensor_parallel, tp_pass_shard_update,
    tp_pass_shard, tp_pass_compress, tp_pass_bucket, tp_pass_overlap;

extern const tp_pass *const tp_pass_pipeline[]; /* ends with NULL */

/* `word` is the name of a pass, or "fuse" for that family. */
bool tp_pass_named(const char *word, const char *name);
/* Does one of n words name it? */
bool tp_pass_is_disabled(const char *const *words, size_t n, const char *name);
/* Every word names a pass or a family, or one of `more` (ends with NULL; may be NULL). */
TP_CHECKED tp_status tp_passes_check(const char *const *words, size_t n, const char *const *more,
                                     tp_error *err);

const tp_pass *tp_pass_find(const char *name);

/* "none", "full", "selective", "every:K". */
TP_CHECKED tp_status tp_recompute_parse(const char *text, tp_recompute *ret_mode, int *ret_every,
                                        tp_error *err);

/* The copy of a weight that products read, in this dtype and layout; made when there is none.
 * For passes. */
tp_ref tp_pass_copy(tp_graph *g, const tp_tensor *weight, tp_dtype dtype, tp_layout layout,
                    const int64_t dim[2]);

/* The shapes of a node's results, after those of its operands have changed.  For passes. */
TP_CHECKED tp_status tp_pass_infer_again(tp_graph *g, uint32_t node, tp_error *err);

/* Of tensors that ranks share the longest share, or the rank's own, and what follows from it. */
TP_CHECKED tp_status tp_pass_size_shares(tp_graph *g, bool longest, tp_error *err);

/* ---- memory plan ---- */

/* Where a value lives.  Temporaries share one activation arena; views and
 * in-place results have the offset of what they share. */
typedef enum { TP_PLACE_NONE, TP_PLACE_ARENA, TP_PLACE_SOURCE } tp_place_kind;

typedef struct {
    tp_place_kind kind;
    tp_ref root;    /* the value whose memory this is */
    size_t offset;  /* bytes into the root's memory (columns of a view) */
    int64_t stride; /* elements from row to row */
} tp_place;

typedef struct {
    tp_place *places;       /* per value */
    size_t *arena_offset;   /* per value: offset of a root in the arena */
    uint32_t *first, *last; /* per value: life of a root, node indices */
    uint32_t n_values;
    size_t arena_bytes;     /* what must be allocated */
    size_t live_peak_bytes; /* largest sum of live roots: no layout can do better */
    bool *node_is_free;     /* per node: views and in-place concats, nothing runs */
} tp_memory_plan;

/* In-place results and concats can be switched off to see what they save; views of a
 * split and accumulators always share.  TP_ERR_NOMEM when no address space can hold it. */
TP_CHECKED tp_status tp_plan_memory(const tp_graph *g, bool share, tp_arena *arena,
                                    tp_memory_plan *ret, tp_error *err);

#endif
