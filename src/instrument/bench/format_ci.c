/* format_ci.c - what continuous integration shows to people: JUnit, workflow commands of
 * GitHub, and a Markdown table.  Worst first: readers see the first few. */
#include "base/strings.h"
#include "instrument/bench/formats.h"
#include "instrument/report/picture.h"

#include <math.h>
#include <string.h>

/* About ten annotations of a kind are shown per step; a step summary of more than 1 MiB is
 * dropped whole. */
enum { MAX_ANNOTATIONS = 9, MAX_SUMMARY = 1000000 };

/* The comparison that decided a result: the gravest judged one; NULL where none did, as of what is
 * missing. */
static const tp_bench_metric *decisive(const tp_bench_result *result)
{
    const tp_bench_metric *best = NULL;
    for (size_t k = 0; k < result->n_metrics; k++) {
        const tp_bench_metric *m = &result->metrics[k];
        if (m->is_compared && !m->metric.is_informative &&
            (!best || m->comparison.verdict > best->comparison.verdict))
            best = m;
    }
    return best && best->comparison.verdict == result->verdict ? best : NULL;
}

/* One sentence about a result: "throughput is 8.1 % lower (ratio 0.919 [0.905, 0.933])". */
static void say(const tp_bench_result *result, tp_buf *out)
{
    const tp_bench_metric *m = decisive(result);
    if (result->message || !m) {
        tp_buf_addf(out, "%s: %s", tp_bench_verdict_name(result->verdict),
                    result->message                       ? result->message
                    : result->note                        ? result->note
                    : result->verdict == TP_BENCH_MISSING ? "in the baseline, but not measured"
                    : result->verdict == TP_BENCH_NEW     ? "there is no baseline for it"
                                                          : "measured");
        return;
    }
    const tp_bench_comparison *c = &m->comparison;
    double percent = 100 * (c->ratio - 1);
    tp_buf_addf(out, "%s: %s is ", tp_bench_verdict_name(result->verdict), m->metric.name);
    if (isinf(percent))
        tp_buf_addf(out, "more than 0 (ratio %.4f", c->ratio);
    else
        tp_buf_addf(out, "%.2f %% %s (ratio %.4f", fabs(percent), percent < 0 ? "lower" : "higher",
                    c->ratio);
    if (isfinite(c->ratio_lower) && isfinite(c->ratio_upper) && c->how != TP_COMPARED_EXACT)
        tp_buf_addf(out, ", %.0f %% interval %.4f to %.4f", 100 * (1 - 2 * c->alpha),
                    c->ratio_lower, c->ratio_upper);
    tp_buf_addf(out, ", n = %zu)", c->n);
    for (size_t k = 0; k < result->n_metrics; k++) {
        const tp_bench_metric *other = &result->metrics[k];
        if (other != m && other->is_compared && !other->metric.is_informative &&
            other->comparison.verdict == TP_BENCH_REGRESSION)
            tp_buf_addf(out, "; also %s, ratio %.4f", other->metric.name, other->comparison.ratio);
    }
    if (c->reason[0])
        tp_buf_addf(out, "; %s", c->reason);
    if (result->note)
        tp_buf_addf(out, "; %s", result->note);
}

/* ---- JUnit ---- */

static void put_attribute(tp_buf *out, const char *name, const char *value)
{
    tp_buf_addf(out, " %s=\"", name);
    tp_markup_escape(out, value);
    tp_buf_addc(out, '"');
}

static void put_case(const tp_bench_result *result, tp_buf *out)
{
    TP_OWN(tp_buf) text = {0};
    const char *slash = strchr(result->name, '/');
    char class[256];
    snprintf(class, sizeof class, "%.*s", (int)(slash ? slash - result->name : 0), result->name);
    say(result, &text);
    tp_buf_adds(out, "    <testcase");
    put_attribute(out, "classname", slash ? class : "bench");
    put_attribute(out, "name", result->name);
    tp_buf_addf(out, " time=\"%.3f\"", result->seconds);
    tp_bench_verdict v = result->verdict;
    bool skips = tp_bench_verdict_gravity(v) == TP_GRAVITY_WARNING;
    if (skips || tp_bench_verdict_gravity(v) == TP_GRAVITY_ERROR) {
        const char *element = v == TP_BENCH_FAILED ? "error" : skips ? "skipped" : "failure";
        tp_buf_addf(out, ">\n      <%s", element);
        put_attribute(out, "message", tp_buf_str(&text));
        if (!skips)
            put_attribute(out, "type", tp_bench_verdict_name(v));
        tp_buf_adds(out, "/>\n    </testcase>\n");
    } else {
        tp_buf_adds(out, ">\n      <system-out>");
        tp_markup_escape(out, tp_buf_str(&text));
        tp_buf_adds(out, "</system-out>\n    </testcase>\n");
    }
}

void tp_write_junit(const tp_bench_report *r, tp_buf *out)
{
    tp_gate_options options = {0};
    tp_gate_summary s = tp_gate_conclude(r, &options);
    double seconds = 0;
    char when[40];
    for (size_t i = 0; i < r->n_results; i++)
        seconds += r->results[i].seconds;
    snprintf(when, sizeof when, "%.*s", (int)strcspn(r->started, "Z+"), r->started);
    size_t failures = s.by_verdict[TP_BENCH_REGRESSION] + s.by_verdict[TP_BENCH_MISSING];
    size_t skipped = s.by_verdict[TP_BENCH_INCONCLUSIVE] + s.by_verdict[TP_BENCH_NEW];
    tp_buf_addf(out,
                "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n<testsuites>\n  <testsuite "
                "name=\"temper bench\" tests=\"%zu\" failures=\"%zu\" errors=\"%zu\" "
                "skipped=\"%zu\" time=\"%.3f\"",
                r->n_results, failures, s.by_verdict[TP_BENCH_FAILED], skipped, seconds);
    if (*when)
        put_attribute(out, "timestamp", when);
    put_attribute(out, "hostname", r->is_host_known ? r->host.name : "unknown");
    tp_buf_adds(out, ">\n    <properties>\n      <property name=\"host\"");
    put_attribute(out, "value", r->is_host_known ? r->host.fingerprint : "unknown");
    tp_buf_adds(out, "/>\n    </properties>\n");
    for (size_t i = 0; i < r->n_results; i++)
        put_case(&r->results[i], out);
    tp_buf_adds(out, "  </testsuite>\n</testsuites>\n");
}

/* ---- workflow commands ---- */

static void put_escaped(tp_buf *out, const char *text, bool is_property)
{
    for (const char *p = text; *p; p++) {
        if (*p == '%')
            tp_buf_adds(out, "%25");
        else if (*p == '\r')
            tp_buf_adds(out, "%0D");
        else if (*p == '\n')
            tp_buf_adds(out, "%0A");
        else if (is_property && *p == ':')
            tp_buf_adds(out, "%3A");
        else if (is_property && *p == ',')
            tp_buf_adds(out, "%2C");
        else
            tp_buf_addc(out, *p);
    }
}

void tp_write_annotations(const tp_bench_report *r, tp_buf *out)
{
    static const char *const kinds[] = {[TP_GRAVITY_GOOD] = "notice",
                                        [TP_GRAVITY_WARNING] = "warning",
                                        [TP_GRAVITY_ERROR] = "error"};
    size_t shown = 0, rest = 0;
    for (const tp_bench_result *x = NULL; (x = tp_bench_report_worst(r, x));) {
        const char *kind = kinds[tp_bench_verdict_gravity(x->verdict)];
        if (!kind)
            continue;
        if (shown == MAX_ANNOTATIONS) {
            rest++;
            continue;
        }
        TP_OWN(tp_buf) text = {0};
        say(x, &text);
        tp_buf_addf(out, "::%s title=", kind);
        put_escaped(out, x->name, true);
        tp_buf_adds(out, "::");
        put_escaped(out, tp_buf_str(&text), false);
        tp_buf_addc(out, '\n');
        shown++;
    }
    if (rest)
        tp_buf_addf(out, "::warning title=benchmarks::%zu more; the step summary has them all\n",
                    rest);
}

/* ---- Markdown ---- */

static void put_cell(tp_buf *out, const char *text)
{
    for (const char *p = text; *p; p++) {
        if (*p == '|')
            tp_buf_adds(out, "\\|");
        else
            tp_buf_addc(out, *p == '\n' ? ' ' : *p);
    }
}

/* A result that was compared with nothing: its first metric. */
static void put_plain_row(const tp_bench_result *result, tp_buf *out)
{
    const tp_bench_metric *m = &result->metrics[0];
    const tp_summary *s = &m->side_b;
    tp_buf_adds(out, "| ");
    put_cell(out, result->name);
    tp_buf_addf(out, " | measured | ");
    put_cell(out, m->metric.name);
    tp_buf_addf(out, " | %.4g %s", s->median, m->metric.unit);
    if (isfinite(s->lower))
        tp_buf_addf(out, " [%.4g, %.4g]", s->lower, s->upper);
    tp_buf_addf(out, " | | | %zu | | |\n", m->n_b);
}

static void put_row(const tp_bench_result *result, tp_buf *out)
{
    const tp_bench_metric *m = decisive(result);
    if (result->verdict == TP_BENCH_NONE && result->n_metrics > 0) {
        put_plain_row(result, out);
        return;
    }
    tp_buf_adds(out, "| ");
    put_cell(out, result->name);
    tp_buf_addf(out, " | **%s** (%s) | ", tp_bench_verdict_name(result->verdict),
                tp_bench_verdict_word(result->verdict));
    if (!m || result->message) {
        put_cell(out, result->message ? result->message : result->note ? result->note : "");
        tp_buf_adds(out, " | | | | | | |\n");
        return;
    }
    const tp_bench_comparison *c = &m->comparison;
    put_cell(out, m->metric.name);
    tp_buf_addf(out, " | %.4f", c->ratio);
    if (c->how == TP_COMPARED_EXACT)
        tp_buf_adds(out, " (exact)");
    else if (isfinite(c->ratio_lower) && isfinite(c->ratio_upper))
        tp_buf_addf(out, " [%.4f, %.4f]", c->ratio_lower, c->ratio_upper);
    tp_buf_addf(out, " | %.3g %% |", 100 * c->tolerance);
    if (!isnan(c->p_holm))
        tp_buf_addf(out, " %.2g", c->p_holm);
    tp_buf_addf(out, " | %zu |", c->n);
    if (isfinite(c->mde))
        tp_buf_addf(out, " %.2g %%", 100 * c->mde);
    tp_buf_addf(out, " | %s |\n", c->point == TP_BENCH_NONE ? "" : tp_bench_verdict_word(c->point));
}

void tp_write_markdown(const tp_bench_report *r, tp_buf *out)
{
    tp_gate_options options = {0};
    tp_gate_summary s = tp_gate_conclude(r, &options);
    size_t left = r->n_results;
    tp_buf_adds(out, "### temper bench\n\n");
    tp_gate_say_counts(&s, out);
    tp_buf_adds(out,
                "\n\n| benchmark | verdict | metric | ratio [interval] | tolerance | p (Holm) | "
                "n | smallest excess shown | plain rule |\n"
                "| --- | --- | --- | --- | --- | --- | --- | --- | --- |\n");
    for (const tp_bench_result *x = NULL;
         out->len < MAX_SUMMARY && (x = tp_bench_report_worst(r, x)); left--)
        put_row(x, out);
    if (left)
        tp_buf_addf(out, "\n%zu more benchmarks do not fit here.\n", left);
    if (r->side_a && r->side_b) {
        tp_buf_adds(out, "\nCompared: ");
        put_cell(out, r->side_b);
        tp_buf_adds(out, " with ");
        put_cell(out, r->side_a);
        tp_buf_adds(out, ".\n");
    }
    if (r->is_host_known)
        tp_buf_addf(out, "\nHost: %s, %d processor%s, %lld GiB, %s (%.8s).\n", r->host.cpu,
                    r->host.processors, tp_plural((uint64_t)r->host.processors),
                    (long long)r->host.memory_gib, r->host.kernel, r->host.fingerprint);
}
