/* pass.c - a pass of one's own, as a shared object: what is scaled by one need not be scaled.
 *
 *     cc -shared -fPIC -I include examples/pass.c -o libpass.so
 *
 *     engine: {plugins: [./libpass.so]}  */
#include <string.h>

#include <temper/plugin.h>

TEMPER_PLUGIN_EXPORT temper_pass_name_function temper_pass_name;
TEMPER_PLUGIN_EXPORT temper_pass_applies_function temper_pass_applies;
TEMPER_PLUGIN_EXPORT temper_pass_run_function temper_pass_run;

static int is_idle(const temper_graph *g, uint32_t node)
{
    return strcmp(g->op(g, node), "scale") == 0 && g->factor(g, node) == 1;
}

const char *temper_pass_name(void) { return "drop-scale-by-one"; }

int temper_pass_applies(const temper_graph *g)
{
    for (uint32_t i = 1; i <= g->nodes(g); i++)
        if (is_idle(g, i))
            return 1;
    return 0;
}

int temper_pass_run(temper_graph *g)
{
    int n = 0;
    for (uint32_t i = 1; i <= g->nodes(g); i++)
        if (is_idle(g, i)) {
            g->replace(g, g->output(g, i, 0), g->input(g, i, 0));
            n++;
        }
    return n;
}
