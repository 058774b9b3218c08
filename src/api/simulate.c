/* simulate.c - a run on a simulated network as text, JSON and a picture. */
#include "temper/simulate.h"

#include <math.h>
#include <string.h>

#include "api/find_recipe.h"
#include "base/files.h"
#include "base/platform.h"
#include "base/sized.h"
#include "base/strings.h"
#include "engine/train/fit.h"
#include "engine/train/simulate.h"
#include "instrument/report/picture.h"

/* SimGrid takes about a tenth of a millisecond for a message among a thousand ranks. */
static const double few_messages = 500, many_messages = 5e5, most_messages = 1e4;
static const double least_efficiency = 0.8;

typedef struct {
    char platform[4096]; /* the file */
    const char *name;    /* as it was asked for */
    tp_simulation s;
} report;

/* ---- the platform ---- */

/* A file, or one that came with the recipes. */
static bool find_platform(const char *word, char *out, size_t size)
{
    TP_OWN(tp_buf) folder = {0};
    snprintf(out, size, "%s", word);
    if (!tp_file_exists(out) && !strchr(word, '/') && tp_recipes_folder(&folder))
        snprintf(out, size, "%s/platforms/%s.xml", tp_buf_str(&folder), word);
    return tp_file_exists(out);
}

/* "NAME=0.1" */
static tp_status parse_slow_link(const char *text, char name[TP_WORLD_NAME], double *factor,
                                 tp_error *err)
{
    char *end = NULL;
    const char *equals = strchr(text, '=');
    size_t n = equals ? (size_t)(equals - text) : strlen(text);
    *factor = equals ? strtod(equals + 1, &end) : 0.1;
    if (n == 0 || n >= TP_WORLD_NAME || (equals && (end == equals + 1 || *end)) || !(*factor > 0) ||
        *factor > 1)
        return tp_fail(err, TP_ERR_ARG,
                       "a slow link is LINK=PART with a part above 0 and up to 1, as in "
                       "link_7_UP=0.1, not '%.100s'",
                       text);
    snprintf(name, TP_WORLD_NAME, "%.*s", (int)n, text);
    return TP_OK;
}

/* ---- what it says ---- */

static const char *bits(double bytes_per_s, char out[32])
{
    double v = bytes_per_s * 8;
    const char *unit = v >= 0.9995e9 ? "Gbit/s" : "Mbit/s";
    snprintf(out, 32, "%.4g %s", v / (v >= 0.9995e9 ? 1e9 : 1e6), unit);
    return out;
}

static void add_table(const tp_simulation *s, tp_buf *out)
{
    char a[32], b[32], c[32];
    tp_buf_addf(out, "%6s  %-16s %10s %10s %8s %9s %11s %10s %8s\n", "ranks", "strategy", "step",
                "exposed", "of it", "speed-up", "efficiency", "formula", "differs");
    for (size_t i = 0; i < s->n; i++) {
        const tp_simulated_point *p = &s->points[i];
        tp_buf_addf(out, "%6d  %-16s %10s %10s %6.1f %% %9.2f %9.1f %% %10s %6.1f %%\n", p->ranks,
                    p->strategy, tp_human_seconds(p->step_s, a),
                    p->ranks == 1 ? "-" : tp_human_seconds(p->exposed_s, b),
                    100 * p->exposed_s / p->step_s, p->efficiency * p->ranks, 100 * p->efficiency,
                    tp_human_seconds(p->formula_s, c), 100 * (p->formula_s / p->step_s - 1));
    }
}

/* Of a strategy, where less than `least_efficiency` is left; NULL: nowhere. */
static const tp_simulated_point *end_of_scaling(const tp_simulation *s, const char *strategy)
{
    for (size_t i = 0; i < s->n; i++)
        if (strcmp(s->points[i].strategy, strategy) == 0 &&
            s->points[i].efficiency < least_efficiency)
            return &s->points[i];
    return NULL;
}

static void explain_end(const tp_simulation *s, const tp_simulated_point *p, tp_buf *why)
{
    const tp_world_link *link = &p->world.links[0];
    double share = ceil(s->micro_batches / p->ranks);
    if (p->compute_efficiency < least_efficiency && share * p->ranks > 1.1 * s->micro_batches)
        tp_buf_addf(why,
                    "a step has %.0f micro-batches, not enough for %d ranks to be busy alike; "
                    "without any messages it would be %.0f %%",
                    s->micro_batches, p->ranks, 100 * p->compute_efficiency);
    else if (p->compute_efficiency < least_efficiency)
        tp_buf_addf(why,
                    "every rank does the same update; without any messages it would be %.0f %%",
                    100 * p->compute_efficiency);
    else
        tp_buf_addf(why, "%.0f %% of a step is communication that nothing hides",
                    100 * p->exposed_s / p->step_s);
    if (p->world.n_links)
        tp_buf_addf(why, "; the busiest link (%s) is in use %.0f %% of the time", link->name,
                    100 * link->busy_s / p->step_s);
}

/* The strategies are those of one rank. */
static size_t n_strategies(const tp_simulation *s)
{
    size_t n = 0;
    while (n < s->n && s->points[n].ranks == 1)
        n++;
    return n;
}

static void add_ends(const tp_simulation *s, tp_buf *out)
{
    for (size_t i = 0; i < n_strategies(s); i++) {
        const char *strategy = s->points[i].strategy;
        const tp_simulated_point *p = end_of_scaling(s, strategy);
        if (!p) {
            tp_buf_addf(out, "%s: efficiency stays above %.0f %%\n", strategy,
                        100 * least_efficiency);
            continue;
        }
        tp_buf_addf(out, "%s: scaling ends at %d ranks with %.0f %%: ", strategy, p->ranks,
                    100 * p->efficiency);
        explain_end(s, p, out);
        tp_buf_addc(out, '\n');
    }
}

/* A link that is busier than the others and slower than most. */
static const tp_world_link *bottleneck(const tp_simulated_point *p)
{
    const tp_world_link *l = &p->world.links[0];
    bool is_one = p->world.n_links && l->busy_s > 1.5 * p->world.median_busy_s &&
                  l->bytes_per_s < 0.99 * l->usual_bytes_per_s;
    return is_one ? l : NULL;
}

static void add_bottleneck(const tp_simulation *s, tp_buf *out)
{
    char a[32], b[32];
    const tp_simulated_point *p = &s->points[s->n - 1];
    const tp_world_link *l = bottleneck(p);
    if (l)
        tp_buf_addf(out,
                    "bottleneck: link %s carries %s, most links %s; with %d ranks (%s) it is in "
                    "use %.0f %% of the time, half of the links less than %.0f %%\n",
                    l->name, bits(l->bytes_per_s, a), bits(l->usual_bytes_per_s, b), p->ranks,
                    p->strategy, 100 * l->busy_s / p->step_s,
                    100 * p->world.median_busy_s / p->step_s);
}

static void add_buckets(const tp_simulation *s, tp_buf *out)
{
    double least = s->points[0].bucket_mib, most = 0;
    int from = 0;
    for (size_t i = 0; i < s->n; i++) {
        from = s->points[i].bucket_mib > least && !from ? s->points[i].ranks : from;
        most = fmax(most, s->points[i].bucket_mib);
    }
    if (from)
        tp_buf_addf(out,
                    "from %d ranks on distributed.bucket_mib is up to %.4g in place of %.4g, so "
                    "that there are fewer messages to simulate\n",
                    from, most, least);
}

static void add_text(const report *r, tp_buf *out)
{
    char a[32], b[32], c[32];
    const tp_world_result *n = &r->s.network;
    tp_buf_addf(out, "network          %s, %d host%s", r->name, n->hosts,
                tp_plural((uint64_t)n->hosts));
    if (n->name[0])
        tp_buf_addf(out, ", %s and %s between distant ones (%s)", bits(n->bytes_per_s, a),
                    tp_human_seconds(n->latency_s, b), n->name);
    tp_buf_addf(out,
                "\nstep             %s in one process, %.0f micro-batches; launches take the "
                "seconds of the plan\n\n",
                tp_human_seconds(r->s.alone_s, c), r->s.micro_batches);
    add_table(&r->s, out);
    tp_buf_addc(out, '\n');
    add_ends(&r->s, out);
    add_bottleneck(&r->s, out);
    add_buckets(&r->s, out);
}

static void put_point(const tp_simulated_point *p, tp_json_w *w)
{
    const tp_world_link *l = bottleneck(p);
    tp_json_w_begin(w, '{');
    tp_json_w_put_i64(w, "ranks", p->ranks);
    tp_json_w_put_str(w, "strategy", p->strategy);
    tp_json_w_put_known(w, "step_s", p->step_s);
    tp_json_w_put_known(w, "exposed_s", p->exposed_s);
    tp_json_w_put_known(w, "hidden_s", p->hidden_s);
    tp_json_w_put_known(w, "efficiency", p->efficiency);
    tp_json_w_put_known(w, "efficiency_without_messages", p->compute_efficiency);
    tp_json_w_put_known(w, "formula_step_s", p->formula_s);
    tp_json_w_put_known(w, "bytes_sent", p->bytes_sent);
    tp_json_w_put_known(w, "messages", p->messages);
    tp_json_w_put_known(w, "bucket_mib", p->bucket_mib);
    tp_json_w_put_str(w, "busiest_link", p->world.n_links ? p->world.links[0].name : NULL);
    tp_json_w_put_str(w, "bottleneck", l ? l->name : NULL);
    tp_json_w_put_known(w, "simulated_in_s", p->took_s);
    tp_json_w_end(w, '}');
}

static void add_json(const report *r, tp_buf *out)
{
    const tp_world_result *n = &r->s.network;
    tp_json_w w = tp_json_w_open(out, 2, '{');
    tp_json_w_put_str(&w, "platform", r->name);
    tp_json_w_put_str(&w, "simulator", n->name[0] ? n->name : NULL);
    tp_json_w_put_known(&w, "bytes_per_s", n->name[0] ? n->bytes_per_s : NAN);
    tp_json_w_put_known(&w, "latency_s", n->name[0] ? n->latency_s : NAN);
    tp_json_w_put_known(&w, "micro_batches_per_step", r->s.micro_batches);
    tp_json_w_put_begin(&w, "points", '[');
    for (size_t i = 0; i < r->s.n; i++)
        put_point(&r->s.points[i], &w);
    tp_json_w_end(&w, ']');
    tp_json_w_put_begin(&w, "scaling_ends", '[');
    for (size_t i = 0; i < n_strategies(&r->s); i++) {
        TP_OWN(tp_buf) why = {0};
        const tp_simulated_point *p = end_of_scaling(&r->s, r->s.points[i].strategy);
        tp_json_w_begin(&w, '{');
        tp_json_w_put_str(&w, "strategy", r->s.points[i].strategy);
        tp_json_w_put_known(&w, "ranks", p ? (double)p->ranks : (double)NAN);
        if (p)
            explain_end(&r->s, p, &why);
        tp_json_w_put_str(&w, "why", why.data);
        tp_json_w_end(&w, '}');
    }
    tp_json_w_end(&w, ']');
    tp_json_w_close(&w, '}');
}

/* ---- the picture ---- */

enum { MOST_POINTS = 24, MOST_LINES = 8 };

/* Over ranks: 1, 2, 4 ... */
typedef struct {
    double x[MOST_POINTS], speed_up[MOST_LINES][MOST_POINTS], efficiency[MOST_LINES][MOST_POINTS];
    char texts[MOST_POINTS][16];
    const char *names[MOST_POINTS];
    tp_series speed_ups[MOST_LINES], efficiencies[MOST_LINES];
    size_t n;
} curves;

/* Of a strategy that so many ranks cannot have there is no point. */
static void add_column(curves *c, size_t lines, int ranks)
{
    size_t i = c->n++;
    c->x[i] = (double)i;
    snprintf(c->texts[i], sizeof c->texts[i], "%d", ranks);
    c->names[i] = c->texts[i];
    for (size_t k = 0; k < lines; k++)
        c->speed_up[k][i] = c->efficiency[k][i] = NAN;
    c->speed_up[lines][i] = ranks;
    c->efficiency[lines][i] = 1;
}

static void draw_curves(const tp_simulation *s, curves *c)
{
    size_t lines = TP_MIN(n_strategies(s), (size_t)MOST_LINES - 1);
    for (size_t i = 0; i < s->n; i++) {
        const tp_simulated_point *p = &s->points[i];
        if (i == 0 || p->ranks != p[-1].ranks) {
            if (c->n == MOST_POINTS)
                break;
            add_column(c, lines, p->ranks);
        }
        size_t line = 0;
        while (line < lines && strcmp(s->points[line].strategy, p->strategy) != 0)
            line++;
        c->speed_up[line][c->n - 1] = p->efficiency * p->ranks;
        c->efficiency[line][c->n - 1] = p->efficiency;
    }
    for (size_t k = 0; k <= lines; k++) {
        const char *name = k < lines ? s->points[k].strategy : "nothing lost";
        c->speed_ups[k] = (tp_series){.name = name, .x = c->x, .y = c->speed_up[k], .n = c->n};
        c->efficiencies[k] = (tp_series){.name = name, .x = c->x, .y = c->efficiency[k], .n = c->n};
    }
}

static tp_status draw(const report *r, const char *path, tp_error *err)
{
    char subtitle[256], a[32], b[32];
    const tp_rule_line least = {.at = least_efficiency, .label = "0.8"};
    TP_FREED curves *c = tp_new(1, sizeof *c);
    draw_curves(&r->s, c);
    size_t n = TP_MIN(n_strategies(&r->s), (size_t)MOST_LINES - 1) + 1;
    tp_panel panels[2] = {{.title = "Speed-up over one process",
                           .x_label = "ranks",
                           .series = c->speed_ups,
                           .n_series = n,
                           .log_y = true,
                           .x_names = c->names,
                           .n_x_names = c->n},
                          {.title = "Efficiency",
                           .x_label = "ranks",
                           .series = c->efficiencies,
                           .n_series = n - 1,
                           .lines = &least,
                           .n_lines = 1,
                           .from_zero = true,
                           .x_names = c->names,
                           .n_x_names = c->n}};
    snprintf(subtitle, sizeof subtitle, "%s: %s, %s between distant hosts; %s", r->name,
             bits(r->s.network.bytes_per_s, a), tp_human_seconds(r->s.network.latency_s, b),
             r->s.network.name);
    const tp_picture picture = {.title = "Simulated ranks",
                                .subtitle = subtitle,
                                .panels = panels,
                                .n_panels = 2,
                                .columns = 2};
    return tp_picture_write(&picture, path, 0, err);
}

/* ---- the simulation ---- */

static tp_status find_processor(const tp_train_options *o, const char *asked, tp_machine *ret,
                                tp_error *err)
{
    bool found = false;
    if (asked)
        return tp_processor_parse(asked, ret, err);
    TP_TRY(tp_trainer_machine(o, ret, &found, err));
    return found ? TP_OK
                 : tp_fail(err, TP_ERR_CONFIG,
                           "how long launches take is unknown: run 'temper doctor' once to measure "
                           "this machine, or describe another (--processor 20TFLOP/400GB)");
}

static tp_status simulate(const tp_train_options *o, const tp_simulate_options *asked, report *r,
                          tp_error *err)
{
    char slow[TP_WORLD_NAME] = "";
    tp_machine machine;
    tp_model *model;
    tp_simulation_options how = {.platform = r->platform,
                                 .from = asked->from,
                                 .ranks = asked->ranks,
                                 .factor = asked->factor ? asked->factor : 2,
                                 .few_messages = few_messages,
                                 .many_messages = many_messages,
                                 .most_messages = most_messages,
                                 .note = asked->note,
                                 .user = asked->user};
    if (asked->slow_link) {
        TP_TRY(parse_slow_link(asked->slow_link, slow, &how.slow_factor, err));
        how.slow_link = slow;
    }
    TP_TRY(tp_ranks_check(o, err));
    TP_TRY(tp_trainer_force_isa(o, err));
    TP_TRY(find_processor(o, asked->processor, &machine, err));
    TP_TRY(tp_run_model_open(o, &model, NULL, err));
    tp_status status = tp_simulation_make(o, model, &machine, &how, &r->s, err);
    tp_model_free(model);
    return status;
}

static tp_status check(const tp_simulate_options *o, report *r, tp_error *err)
{
    enum { MOST_RANKS = 65536, MOST_FACTOR = 64 };
    if (o->ranks < 1 || o->ranks > MOST_RANKS)
        return tp_fail(err, TP_ERR_ARG, "a simulation is of 1 to %d ranks, not %d", MOST_RANKS,
                       o->ranks);
    if (o->factor < 0 || o->factor == 1 || o->factor > MOST_FACTOR)
        return tp_fail(err, TP_ERR_ARG, "ranks grow by a factor of 2 to %d, not %d", MOST_FACTOR,
                       o->factor);
    if (o->from > o->ranks)
        return tp_fail(err, TP_ERR_ARG, "a simulation from %d to %d ranks has none", o->from,
                       o->ranks);
    TP_OWN(tp_buf) folder = {0};
    r->name = o->platform ? o->platform : "fat-tree";
    if (!find_platform(r->name, r->platform, sizeof r->platform))
        return tp_fail(err, TP_ERR_IO,
                       "there is no platform '%.300s': a file of SimGrid's, or one of fat-tree, "
                       "torus, ethernet%s",
                       r->name,
                       tp_recipes_folder(&folder) ? "" : ", which did not come with this program");
    return o->picture ? tp_picture_check(o->picture, err) : TP_OK;
}

/* Of all points, as for the most ranks, each on a host of its own. */
static tp_status fit_to_ranks(tp_recipe *recipe, const tp_simulate_options *o, tp_error *err)
{
    int strategy = recipe->options.distributed.strategy;
    tp_train_options with;
    if (tp_strategy_is_possible(&recipe->options, o->ranks, strategy, &with))
        recipe->options = with;
    TP_TRY(tp_recipe_fit(recipe, true, err));
    if (recipe->options.said && o->note)
        o->note(o->user, recipe->options.said);
    return TP_OK;
}

static tp_status run(tp_recipe *recipe, const tp_simulate_options *o, tp_buf *out, tp_error *err)
{
    TP_FREED report *r = tp_new(1, sizeof *r);
    tp_status status = check(o, r, err);
    if (status == TP_OK)
        status = fit_to_ranks(recipe, o, err);
    if (status == TP_OK)
        status = simulate(&recipe->options, o, r, err);
    if (status == TP_OK && o->picture)
        status = draw(r, o->picture, err);
    if (status == TP_OK && o->form == TP_FORM_JSON)
        add_json(r, out);
    else if (status == TP_OK)
        add_text(r, out);
    tp_simulation_release(&r->s);
    return status;
}

tp_status tp_simulate_text(const char *config, const char *const *overrides, size_t n_overrides,
                           const tp_simulate_options *options, char **ret_text, tp_error *err)
{
    TP_MEMORY_GUARD(err);
    tp_simulate_options o;
    TP_CLEANUP(tp_recipe_close) tp_recipe recipe = {0};
    tp_buf out = {0};
    if (!ret_text)
        return tp_fail(err, TP_ERR_ARG, "tp_simulate_text: ret_text is NULL");
    TP_TRY(tp_sized_read(&o, sizeof o, options, "tp_simulate_options", err));
    TP_TRY(tp_recipe_read_sizes(config, overrides, n_overrides, &recipe, err));
    const char *notice = tp_config_notice(recipe.config);
    if (notice && o.note)
        o.note(o.user, notice);
    TP_HAND_OVER(run(&recipe, &o, &out, err), ret_text, out.data, tp_buf_release(&out));
}
