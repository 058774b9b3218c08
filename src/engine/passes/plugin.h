/* plugin.h - passes from shared objects (temper/plugin.h), in the process's pipeline. */
#ifndef TP_ENGINE_PASSES_PLUGIN_H
#define TP_ENGINE_PASSES_PLUGIN_H

#include "engine/ir/graph.h"

enum { TP_PLUGINS_MOST = 8 };

/* From here on every pipeline runs these, in order; none before.  A shared object that was loaded
 * once stays.  TP_ERR_CONFIG, naming the file: it cannot be loaded, or lacks one of the three
 * functions. */
TP_CHECKED tp_status tp_plugins_use(const char *const *paths, size_t n, tp_error *err);

size_t tp_plugins_count(void);
bool tp_plugin_is_loaded(const char *name);
const char *tp_plugin_name(size_t i);
const char *tp_plugin_path(size_t i);
int64_t tp_plugin_changes(size_t i); /* in all graphs since tp_plugins_use() */
/* Run one over a graph; what nobody reads afterwards is removed. */
TP_CHECKED tp_status tp_plugin_run(size_t i, tp_graph *g, bool *changed, tp_error *err);

#endif
