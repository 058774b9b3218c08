/* plugin.c - passes from shared objects: loaded once, run over graphs through a table of
 * functions that let them break nothing but the graph, which is verified afterwards. */
#include "engine/passes/plugin.h"

#include <dlfcn.h>
#include <elf.h>
#include <math.h>
#include <string.h>
#include <unistd.h>

#include "base/files.h"
#include "engine/passes/pass.h"
#include "temper/plugin.h"

typedef struct {
    char path[256], name[64];
    void *handle; /* stays open: its texts may be anywhere */
    temper_pass_applies_function *applies;
    temper_pass_run_function *run;
    int64_t changes;
} plugin;

static plugin plugins[TP_PLUGINS_MOST];
static size_t n_plugins;

/* ---- loading ---- */

/* A pointer to a function from dlsym(), as POSIX has it. */
static bool find_function(void *handle, const char *name, void *ret, size_t size)
{
    void *symbol = dlsym(handle, name);
    memcpy(ret, &symbol, size);
    return symbol != NULL;
}

static tp_status connect(plugin *p, tp_error *err)
{
    temper_pass_name_function *name;
    const char *missing = NULL;
    if (!find_function(p->handle, "temper_pass_name", &name, sizeof name))
        missing = "temper_pass_name";
    else if (!find_function(p->handle, "temper_pass_applies", &p->applies, sizeof p->applies))
        missing = "temper_pass_applies";
    else if (!find_function(p->handle, "temper_pass_run", &p->run, sizeof p->run))
        missing = "temper_pass_run";
    if (missing)
        return tp_fail(err, TP_ERR_CONFIG, "'%s' is no plug-in: it has no function %s", p->path,
                       missing);
    const char *text = name();
    size_t n = text ? strspn(text, "abcdefghijklmnopqrstuvwxyz0123456789-") : 0;
    if (n == 0 || text[n] || n >= sizeof p->name)
        return tp_fail(err, TP_ERR_CONFIG,
                       "plug-in '%s': a name is small letters, digits and '-', %zu at most",
                       p->path, sizeof p->name - 1);
    memcpy(p->name, text, n + 1);
    return TP_OK;
}

/* dlopen() maps what the file's head says and dies by SIGBUS where the file has no bytes for it.
 * Anything else that is wrong with a shared object it tells itself. */
static tp_status check_whole(int fd, int64_t size, const char *path, tp_error *err)
{
    Elf64_Ehdr head;
    Elf64_Phdr part;
    if (pread(fd, &head, sizeof head, 0) != sizeof head ||
        memcmp(head.e_ident, ELFMAG, SELFMAG) != 0 || head.e_ident[EI_CLASS] != ELFCLASS64 ||
        head.e_phentsize != sizeof part || head.e_phoff > (uint64_t)size)
        return TP_OK;
    for (int i = 0; i < head.e_phnum; i++) {
        uint64_t at = head.e_phoff + (uint64_t)i * sizeof part, end = 0;
        bool is_there = pread(fd, &part, sizeof part, (off_t)at) == sizeof part;
        if (is_there && part.p_type != PT_LOAD)
            continue;
        if (!is_there || __builtin_add_overflow(part.p_offset, part.p_filesz, &end) ||
            end > (uint64_t)size)
            return tp_fail(err, TP_ERR_CONFIG,
                           "the plug-in '%s' is cut short: it has %lld bytes, its head tells of "
                           "more; build it again",
                           path, (long long)size);
    }
    return TP_OK;
}

static tp_status load(const char *path, plugin *ret, tp_error *err)
{
    plugin p = {0};
    int fd;
    int64_t size;
    if (strlen(path) >= sizeof p.path)
        return tp_fail(err, TP_ERR_CONFIG, "plug-in '%.100s...': the path is too long", path);
    snprintf(p.path, sizeof p.path, "%s", path);
    TP_TRY(tp_input_open(path, TP_INPUT_FILE, &fd, &size, err)); /* dlopen() waits for a pipe */
    tp_status status = check_whole(fd, size, path, err);
    close(fd);
    TP_TRY(status);
    char found[300]; /* a name alone would be looked for elsewhere */
    snprintf(found, sizeof found, "%s%s", strchr(path, '/') ? "" : "./", path);
    p.handle = dlopen(found, RTLD_NOW | RTLD_LOCAL);
    if (!p.handle)
        return tp_fail(err, TP_ERR_CONFIG, "cannot load a plug-in: %s", dlerror());
    TP_TRY(connect(&p, err));
    *ret = p;
    return TP_OK;
}

static const plugin *find(const char *name)
{
    for (size_t i = 0; i < n_plugins; i++)
        if (strcmp(plugins[i].name, name) == 0)
            return &plugins[i];
    return NULL;
}

static bool is_in_use(const char *const *paths, size_t n)
{
    bool same = n == n_plugins;
    for (size_t i = 0; i < n && same; i++)
        same = strcmp(plugins[i].path, paths[i]) == 0;
    return same;
}

tp_status tp_plugins_use(const char *const *paths, size_t n, tp_error *err)
{
    if (n > TP_PLUGINS_MOST)
        return tp_fail(err, TP_ERR_CONFIG, "%zu plug-ins are too many, %d at most", n,
                       TP_PLUGINS_MOST);
    if (!is_in_use(paths, n)) {
        n_plugins = 0;
        for (size_t i = 0; i < n; i++) {
            TP_TRY(load(paths[i], &plugins[i], err));
            const plugin *same = find(plugins[i].name);
            if (same)
                return tp_fail(err, TP_ERR_CONFIG, "plug-ins '%s' and '%s' have the same name, %s",
                               same->path, plugins[i].path, same->name);
            n_plugins++;
        }
    }
    for (size_t i = 0; i < n_plugins; i++)
        plugins[i].changes = 0;
    return TP_OK;
}

size_t tp_plugins_count(void) { return n_plugins; }
bool tp_plugin_is_loaded(const char *name) { return find(name) != NULL; }
const char *tp_plugin_name(size_t i) { return plugins[i].name; }
const char *tp_plugin_path(size_t i) { return plugins[i].path; }
int64_t tp_plugin_changes(size_t i) { return plugins[i].changes; }

/* ---- what a plug-in sees ---- */

typedef struct {
    temper_graph shown; /* first */
    tp_graph *g;
    bool is_changed;
    bool is_wrong; /* replace() was called with numbers of no value, first these */
    uint32_t wrong[2];
} view;

static const tp_graph *graph_of(const temper_graph *g)
{
    return ((const view *)(const void *)g)->g;
}

static const tp_node *node_of(const temper_graph *g, uint32_t node)
{
    const tp_graph *graph = graph_of(g);
    return node > 0 && node < graph->n_nodes ? &graph->nodes[node] : NULL;
}

static uint32_t see_nodes(const temper_graph *g) { return graph_of(g)->n_nodes - 1; }

static const char *see_op(const temper_graph *g, uint32_t node)
{
    const tp_node *n = node_of(g, node);
    return n ? tp_ops[n->op]->name : "";
}

static const char *see_label(const temper_graph *g, uint32_t node)
{
    const tp_node *n = node_of(g, node);
    return n && n->label ? n->label : "";
}

static uint32_t see_input(const temper_graph *g, uint32_t node, int k)
{
    const tp_node *n = node_of(g, node);
    return n && k >= 0 && k < n->n_in ? n->in[k] : 0;
}

static uint32_t see_output(const temper_graph *g, uint32_t node, int k)
{
    const tp_node *n = node_of(g, node);
    return n && k >= 0 && k < n->n_out ? n->out[k] : 0;
}

static double see_factor(const temper_graph *g, uint32_t node)
{
    const tp_node *n = node_of(g, node);
    return n && n->op == TP_OP_scale ? (double)n->attrs.scale : NAN;
}

static void see_shape(const temper_graph *g, uint32_t value, int64_t *rows, int64_t *columns,
                      const char **type)
{
    const tp_graph *graph = graph_of(g);
    bool is_there = value > 0 && value < graph->n_values;
    *rows = is_there ? graph->values[value].dim[0] : 0;
    *columns = is_there ? graph->values[value].dim[1] : 0;
    *type = is_there ? tp_dtype_name(graph->values[value].dtype) : "";
}

static void replace(temper_graph *g, uint32_t value, uint32_t other)
{
    view *v = (view *)(void *)g;
    uint32_t n = v->g->n_values;
    if (value == 0 || value >= n || other == 0 || other >= n) {
        if (!v->is_wrong)
            memcpy(v->wrong, (const uint32_t[]){value, other}, sizeof v->wrong);
        v->is_wrong = true;
        return;
    }
    tp_graph_replace(v->g, value, other, 1);
    v->is_changed = true;
}

tp_status tp_plugin_run(size_t i, tp_graph *g, bool *changed, tp_error *err)
{
    plugin *p = &plugins[i];
    view v = {.shown = {.size = sizeof v.shown,
                        .nodes = see_nodes,
                        .op = see_op,
                        .label = see_label,
                        .input = see_input,
                        .output = see_output,
                        .factor = see_factor,
                        .shape = see_shape,
                        .replace = replace},
              .g = g};
    if (!p->applies(&v.shown))
        return TP_OK;
    int n = p->run(&v.shown);
    if (n < 0)
        return tp_fail(err, TP_ERR_CONFIG, "the plug-in '%s' failed (%d)", p->path, n);
    if (v.is_wrong)
        return tp_fail(
            err, TP_ERR_CONFIG,
            "the plug-in '%s' replaces value %u by %u; the values of this graph are 1 to "
            "%u",
            p->path, v.wrong[0], v.wrong[1], g->n_values - 1);
    p->changes += n;
    *changed = v.is_changed; /* whatever it says of itself */
    bool removed = false;    /* passes add to it */
    return v.is_changed ? tp_pass_dce.run(g, NULL, &removed, err) : TP_OK;
}
