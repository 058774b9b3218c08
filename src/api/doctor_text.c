/* doctor_text.c - machine, limits, instruction sets, ceilings and findings, a row each. */
#include "api/doctor.h"

#include <math.h>

#include "base/clock.h"
#include "base/limits.h"
#include "base/platform.h"
#include "base/strings.h"
#include "engine/backend/cpu/paths.h"
#include "text/json/json.h"

/* ---- instruction sets ---- */

static const char *state_of(const tp_path *path)
{
    static const char *const words[] = {[TP_PATH_ABSENT] = "not on this processor",
                                        [TP_PATH_PROVEN] = "proven",
                                        [TP_PATH_FAILED] = "FAILED, left out",
                                        [TP_PATH_UNTRIED] = "not tried, left out",
                                        [TP_PATH_SLOWER] = "proven, slower"};
    return words[path->state];
}

/* The next level may be there, but not for us. */
static const char *why_of(tp_isa isa)
{
    const tp_path *path = &tp_paths()[isa];
    return path->state == TP_PATH_ABSENT && isa == tp_cpu_detect() + 1 ? tp_cpu_withheld()
                                                                       : path->why;
}

static bool is_sound(const tp_path *path)
{
    return path->state == TP_PATH_PROVEN || path->state == TP_PATH_SLOWER;
}

static const char *use_of(tp_isa isa)
{
    const tp_path *path = &tp_paths()[isa];
    if (!is_sound(path))
        return "";
    if (isa == tp_cpu_isa())
        return ", in use";
    return tp_cpu_may_use(isa) || path->state == TP_PATH_SLOWER ? "" : ", not asked for";
}

static void add_paths(tp_buf *out)
{
    for (int i = 0; i < TP_ISA_COUNT; i++) {
        const tp_path *path = &tp_paths()[i];
        const char *why = why_of((tp_isa)i);
        bool is_withheld = path->state == TP_PATH_ABSENT && why[0];
        tp_buf_addf(out, "%-16s %s%s%s%s%s\n", tp_isa_name((tp_isa)i),
                    is_withheld ? "not to be had" : state_of(path), use_of((tp_isa)i),
                    path->is_stored && path->state != TP_PATH_ABSENT ? " (on file)" : "",
                    why[0] ? ": " : "", why);
    }
}

static void put_paths(tp_json_w *w)
{
    static const char *const words[] = {[TP_PATH_ABSENT] = "absent",
                                        [TP_PATH_PROVEN] = "proven",
                                        [TP_PATH_FAILED] = "failed",
                                        [TP_PATH_UNTRIED] = "untried",
                                        [TP_PATH_SLOWER] = "slower"};
    tp_json_w_put_begin(w, "instruction_sets", '[');
    for (int i = 0; i < TP_ISA_COUNT; i++) {
        const tp_path *path = &tp_paths()[i];
        tp_json_w_begin(w, '{');
        tp_json_w_put_str(w, "name", tp_isa_name((tp_isa)i));
        tp_json_w_put_str(w, "state", words[path->state]);
        tp_json_w_put_str(w, "why", why_of((tp_isa)i));
        tp_json_w_put_bool(w, "may_be_used", is_sound(path) && tp_cpu_may_use((tp_isa)i));
        tp_json_w_end(w, '}');
    }
    tp_json_w_end(w, ']');
}

/* ---- in words ---- */

/* What failed comes with the sentence that training would end with. */
static void add_checks(const tp_doctor_checks *c, tp_buf *out)
{
    static const char *const words[] = {[TP_FINDING_OK] = "ok: ",
                                        [TP_FINDING_FAILED] = "FAILED: ",
                                        [TP_FINDING_UNKNOWN] = "unknown: ",
                                        [TP_FINDING_NOTE] = ""};
    for (size_t i = 0; i < c->n; i++)
        tp_buf_addf(out, "%-16s %s%s\n", c->v[i].what, words[c->v[i].kind], c->v[i].text);
}

static void add_limits(const tp_limits *l, bool bytes, tp_buf *out)
{
    char a[32];
    const tp_limit *least = tp_limits_least(l);
    for (int i = 0; i < l->n; i++) {
        const char *name = i ? "" : bytes ? "memory" : "processors";
        if (bytes)
            tp_human_bytes(l->v[i].value, a);
        else
            snprintf(a, sizeof a, "%g", l->v[i].value);
        tp_buf_addf(out, "%-16s %s%s: %s\n", name, l->n > 1 && &l->v[i] == least ? "limit " : "", a,
                    l->v[i].source);
    }
}

/* Every limit with what set it; the one that counts is marked. */
static void add_all_limits(tp_buf *out)
{
    tp_limits limits;
    tp_limits_memory(&limits);
    add_limits(&limits, true, out);
    tp_limits_processors(&limits);
    add_limits(&limits, false, out);
}

/* When the ceilings were measured, and whether the machine was free. */
static void add_conditions(const tp_machine *m, tp_buf *out)
{
    char age[32];
    tp_buf_addf(out, "measured         %s ago",
                tp_human_seconds(fmax(tp_wall_s() - m->measured_at, 0), age));
    if (isfinite(m->processor_share))
        tp_buf_addf(out, ", its threads had %.0f %% of their processor time",
                    100 * m->processor_share);
    if (m->disturbed_by[0])
        tp_buf_addf(out,
                    "\n                 DISTURBED: %s;\n"
                    "                 these figures are not kept",
                    m->disturbed_by);
    if (m->is_doubted)
        tp_buf_addf(out,
                    "\n                 DOUBTED: a run was faster; the next one measures again");
    tp_buf_addf(out, "\n");
}

/* "467.2 GFLOP/s (1 thread 236.3)" */
static void add_rate(const char *name, tp_machine_rate r, const char *unit, const char *what,
                     tp_buf *out)
{
    tp_buf_addf(out, "%-16s %.1f %s (1 thread %.1f; %s)\n", name, r.all * 1e-9, unit, r.one * 1e-9,
                what);
}

static void add_units(const tp_machine_units *u, tp_buf *out)
{
    char bytes[32], text[64];
    add_rate("unit bf16", u->bf16, "GFLOP/s", u->bf16_unit, out);
    add_rate("unit f32", u->f32, "GFLOP/s", u->f32_unit, out);
    if (u->threads_share_unit)
        tp_buf_addf(out, "%-16s the threads share a unit: more of them multiply no faster\n", "");
    for (int i = 0; i < u->n_levels; i++) {
        snprintf(text, sizeof text, "reading %s each",
                 tp_human_bytes((double)u->levels[i].bytes, bytes));
        add_rate(u->levels[i].level, u->levels[i].read, "GB/s", text, out);
    }
}

static void add_ceilings(const tp_machine *m, tp_buf *out)
{
    tp_buf_addf(out, "GEMM bf16        %.1f GFLOP/s, %.0f %% of the unit\n",
                m->gemm_bf16_flops * 1e-9, 100 * m->gemm_bf16_flops / m->unit_bf16_flops);
    tp_buf_addf(out, "GEMM f32         %.1f GFLOP/s, %.0f %% of the unit\n",
                m->gemm_f32_flops * 1e-9, 100 * m->gemm_f32_flops / m->unit_f32_flops);
    tp_buf_addf(out, "read             %.1f GB/s\n", m->read_bytes * 1e-9);
    tp_buf_addf(out, "copy             %.1f GB/s (read + written)\n", m->copy_bytes * 1e-9);
    tp_buf_addf(out, "optimizer        %.1f GB/s (28 bytes per parameter)\n",
                m->update_bytes * 1e-9);
}

void tp_diagnosis_add_text(const tp_diagnosis *d, tp_buf *out)
{
    const tp_machine *m = &d->machine;
    tp_cpu_caches caches = tp_cpu_cache_sizes();
    char a[32], b[32], c[32];
    tp_buf_addf(out, "processor        %s, %d thread%s, %s\n", m->cpu_model, m->threads,
                tp_plural((uint64_t)m->threads), m->isa);
    tp_buf_addf(out, "caches           L1d %s, L2 %s, L3 %s\n",
                caches.l1d ? tp_human_bytes((double)caches.l1d, a) : "unknown",
                caches.l2 ? tp_human_bytes((double)caches.l2, b) : "unknown",
                caches.l3 ? tp_human_bytes((double)caches.l3, c) : "unknown");
    add_all_limits(out);
    add_paths(out);
    if (d->has_units)
        add_units(&d->units, out);
    if (m->measured_at > 0) {
        add_ceilings(m, out);
        add_conditions(m, out);
    } else
        tp_buf_addf(out, "ceilings         unknown: %s\n", d->why.message);
    add_checks(&d->checks, out);
}

/* ---- JSON ---- */

static void put_list(tp_json_w *w, const char *key, const tp_limits *l)
{
    tp_json_w_put_begin(w, key, '[');
    for (int i = 0; i < l->n; i++) {
        tp_json_w_begin(w, '{');
        tp_json_w_put_f64(w, "value", l->v[i].value);
        tp_json_w_put_str(w, "source", l->v[i].source);
        tp_json_w_end(w, '}');
    }
    tp_json_w_end(w, ']');
}

static void put_limits(tp_json_w *w)
{
    tp_limits limits;
    tp_limits_memory(&limits);
    tp_json_w_put_f64(w, "memory_limit_bytes", tp_limits_least(&limits)->value);
    put_list(w, "memory_limits", &limits);
    tp_limits_processors(&limits);
    put_list(w, "processor_limits", &limits);
}

static void put_rate(tp_json_w *w, const char *key, const char *name, size_t bytes,
                     tp_machine_rate r, const char *per_s)
{
    char member[64];
    tp_json_w_begin(w, '{');
    tp_json_w_put_str(w, key, name);
    if (bytes)
        tp_json_w_put_i64(w, "working_set_bytes", (int64_t)bytes);
    snprintf(member, sizeof member, "%s_per_s_one_thread", per_s);
    tp_json_w_put_known(w, member, r.one);
    snprintf(member, sizeof member, "%s_per_s", per_s);
    tp_json_w_put_known(w, member, r.all);
    tp_json_w_end(w, '}');
}

/* NULL: they were not measured. */
static void put_units(tp_json_w *w, const tp_machine_units *u)
{
    if (!u) {
        tp_json_w_put_raw(w, "units", "null");
        tp_json_w_put_raw(w, "threads_share_unit", "null");
        tp_json_w_put_raw(w, "read", "null");
        return;
    }
    tp_json_w_put_begin(w, "units", '[');
    put_rate(w, "instruction", u->bf16_unit, 0, u->bf16, "flops");
    put_rate(w, "instruction", u->f32_unit, 0, u->f32, "flops");
    tp_json_w_end(w, ']');
    tp_json_w_put_bool(w, "threads_share_unit", u->threads_share_unit);
    tp_json_w_put_begin(w, "read", '[');
    for (int i = 0; i < u->n_levels; i++)
        put_rate(w, "level", u->levels[i].level, u->levels[i].bytes, u->levels[i].read, "bytes");
    tp_json_w_end(w, ']');
}

static void put_checks(const tp_doctor_checks *c, tp_json_w *w)
{
    static const char *const ok[] = {
        [TP_FINDING_OK] = "true", [TP_FINDING_FAILED] = "false", [TP_FINDING_UNKNOWN] = "null"};
    tp_json_w_put_begin(w, "checks", '[');
    for (size_t i = 0; i < c->n; i++) {
        if (c->v[i].kind == TP_FINDING_NOTE)
            continue;
        tp_json_w_begin(w, '{');
        tp_json_w_put_str(w, "what", c->v[i].what);
        tp_json_w_put_raw(w, "ok", ok[c->v[i].kind]);
        tp_json_w_put_str(w, "text", c->v[i].text);
        tp_json_w_end(w, '}');
    }
    tp_json_w_end(w, ']');
    tp_json_w_put_begin(w, "notes", '[');
    for (size_t i = 0; i < c->n; i++)
        if (c->v[i].kind == TP_FINDING_NOTE)
            tp_json_w_str(w, c->v[i].text);
    tp_json_w_end(w, ']');
}

void tp_diagnosis_add_json(const tp_diagnosis *d, tp_buf *out)
{
    const tp_machine *m = &d->machine;
    tp_json_w w = tp_json_w_open(out, 2, '{');
    const char *const words[][2] = {
        {"cpu", m->cpu_model}, {"isa", m->isa}, {"fingerprint", m->fingerprint}};
    for (int i = 0; i < 3; i++)
        tp_json_w_put_str(&w, words[i][0], words[i][1]);
    const struct {
        const char *key;
        double v;
    } numbers[] = {{"threads", m->threads},
                   {"unit_bf16_flops_per_s", m->unit_bf16_flops},
                   {"unit_f32_flops_per_s", m->unit_f32_flops},
                   {"gemm_bf16_flops_per_s", m->gemm_bf16_flops},
                   {"gemm_f32_flops_per_s", m->gemm_f32_flops},
                   {"read_bytes_per_s", m->read_bytes},
                   {"copy_bytes_per_s", m->copy_bytes},
                   {"optimizer_bytes_per_s", m->update_bytes}};
    for (size_t i = 0; i < TP_COUNTOF(numbers); i++)
        tp_json_w_put_known(&w, numbers[i].key, numbers[i].v > 0 ? numbers[i].v : NAN);
    tp_json_w_put_known(&w, "measured_at", m->measured_at > 0 ? m->measured_at : NAN);
    tp_json_w_put_known(&w, "processor_share", m->processor_share);
    tp_json_w_put_known(&w, "spread", m->spread);
    tp_json_w_put_str(&w, "disturbed_by", m->disturbed_by);
    put_units(&w, d->has_units ? &d->units : NULL);
    put_limits(&w);
    put_paths(&w);
    put_checks(&d->checks, &w);
    tp_json_w_close(&w, '}');
}
