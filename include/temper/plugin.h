/* plugin.h - a pass of one's own over the graphs of a run, as a shared object.
 *
 * It exports three functions: a name, whether it has anything to do in a graph, and the change.
 *
 *     engine: {plugins: [./libmine.so]}
 *
 * A plug-in runs after the fusions and before what chooses layouts, recomputation and order, over
 * each graph of the run (training, evaluation, update, generation ...).  The graph is verified
 * afterwards as after any other pass: one that breaks it ends the run with the pass's name.  Its
 * name is that of no other pass or lever; engine.disable_passes leaves it out by that.
 *
 * Compile it with nothing but this header; examples/pass.c is one. */
#ifndef TEMPER_PLUGIN_H
#define TEMPER_PLUGIN_H

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

#define TEMPER_PLUGIN_EXPORT __attribute__((visibility("default")))

/* Nodes are 1 .. nodes() in the order in which they run; values have numbers of their own, 0 is
 * none.  Texts are valid during the call. */
typedef struct temper_graph temper_graph;
struct temper_graph {
    size_t size; /* of this struct: later versions add functions at the end */
    uint32_t (*nodes)(const temper_graph *g);
    const char *(*op)(const temper_graph *g,
                      uint32_t node); /* "linear", as docs/ops.md names them */
    const char *(*label)(const temper_graph *g, uint32_t node); /* "layers.3.q_proj", or "" */
    uint32_t (*input)(const temper_graph *g, uint32_t node, int k);
    uint32_t (*output)(const temper_graph *g, uint32_t node, int k);
    double (*factor)(const temper_graph *g, uint32_t node); /* of `scale`; NaN: it has none */
    /* Rows, columns (1 of a vector) and type ("f32", "bf16") of a value. */
    void (*shape)(const temper_graph *g, uint32_t value, int64_t *rows, int64_t *columns,
                  const char **type);
    /* Whoever reads `value` reads `other` from here on; what nobody reads is removed.  A number of
     * no value is an error of the pass. */
    void (*replace)(temper_graph *g, uint32_t value, uint32_t other);
};

typedef const char *temper_pass_name_function(void);
typedef int temper_pass_applies_function(const temper_graph *g);
/* How many changes; below zero: it failed. */
typedef int temper_pass_run_function(temper_graph *g);

#ifdef __cplusplus
}
#endif

#endif
