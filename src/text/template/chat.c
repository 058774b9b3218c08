/* chat.c - a template's life: parsed once, rendered within a budget of work. */
#include "text/template/chat.h"

#include <stdlib.h>
#include <string.h>

#include "base/platform.h"
#include "text/template/jinja_run.h"

enum {
    DEFAULT_OUTPUT = 64 << 20,
    DEFAULT_TURNS = 10 * 1000 * 1000,
    SPARE_MEMORY = 64 << 20, /* beside what output and context may need */
    PARSE_BYTES = 1024,      /* arena per byte of source: tokens and nodes */
    NODE_BYTES = 160,        /* arena per value of the context */
    ROUNDING = 32 << 20,     /* so that a slightly longer conversation fits the same arena */
    KEPT_MEMORY = 4 << 20    /* what an arena may hold of the machine between renders */
};

tp_status tp_template_parse(const char *name, const char *text, size_t n, tp_template **ret,
                            tp_error *err)
{
    tp_template *t = tp_new(1, sizeof *t);
    size_t bytes = TP_MIN(n, (size_t)TP_JINJA_MAX_SOURCE) * PARSE_BYTES;
    tp_status status = tp_arena_init(&t->arena, bytes + strlen(name) + 65536, err);
    if (status == TP_OK) {
        t->name = tp_arena_strdup(&t->arena, name);
        status = tp_jinja_parse(t, text, n, err);
    }
    if (status != TP_OK) {
        tp_template_free(t);
        return status;
    }
    *ret = t;
    return TP_OK;
}

void tp_template_free(tp_template *t)
{
    if (!t)
        return;
    tp_arena_release(&t->arena);
    free(t);
}

bool tp_template_has_generation(const tp_template *t) { return t->has_generation; }

void tp_spans_release(tp_spans *spans)
{
    free(spans->begin);
    free(spans->end);
    *spans = (tp_spans){0};
}

/* --- the context --- */

static tp_any convert_number(tp_jinja_run *run, tp_slice text)
{
    bool overflow = false;
    tp_integer integer;
    double real;
    if (tp_python_parse_integer(text, 10, &integer, &overflow) && !overflow)
        return tp_any_int(integer);
    if (overflow || !tp_python_parse_float(text, &real))
        tp_jinja_unsupported(run, "the number %.*s is not supported", (int)TP_MIN(text.len, 60),
                             text.data);
    return tp_any_float(real);
}

/* Recursion is no deeper than the document, which has at most TP_JSON_MAX_DEPTH. */
static tp_any convert(tp_jinja_run *run, const tp_json *v)
{
    tp_any made = tp_any_none();
    size_t i = 0;
    switch (v->type) {
    case TP_JSON_NULL:
        return made;
    case TP_JSON_FALSE:
    case TP_JSON_TRUE:
        return tp_any_bool(v->type == TP_JSON_TRUE);
    case TP_JSON_NUMBER:
        return convert_number(run, v->text);
    case TP_JSON_STRING:
        return tp_any_text(v->text);
    case TP_JSON_ARRAY:
        made = tp_any_new_list(run, TP_ANY_LIST, v->n);
        for (const tp_json *child = v->child; child; child = child->next)
            made.items->values[i++] = convert(run, child);
        return made;
    case TP_JSON_OBJECT:
        made = tp_any_new_dict(run, v->n);
        for (const tp_json *child = v->child; child; child = child->next)
            tp_any_dict_put(run, made.dict, tp_any_text(child->key), convert(run, child));
        return made;
    }
    tp_jinja_fail(run, "a context that is not JSON");
}

static size_t count_values(const tp_json *v)
{
    size_t n = 1;
    for (const tp_json *child = v->child; child; child = child->next)
        n += count_values(child);
    return n;
}

/* The members of the context that the template names, then its body.  What fails below ends
 * here. */
static tp_status render(tp_jinja_run *run, const tp_json *context)
{
    const struct tp_template *t = run->template;
    jmp_buf failed;
    run->failed = &failed;
    if (setjmp(failed))
        return run->failure.status;
    run->root = tp_jinja_take(run, t->n_names, sizeof(tp_any));
    run->scope = run->root_scope = tp_jinja_new_scope(run, NULL);
    for (uint32_t i = 0; i < t->n_names; i++)
        for (const tp_json *v = context ? context->child : NULL; v; v = v->next)
            if (tp_slice_eq(v->key, t->names[i]))
                run->root[i] = convert(run, v);
    tp_jinja_exec(run, t->body);
    return TP_OK;
}

/* Mapping an arena and its pages costs more than a short conversation's rendering. */
static tp_status take_arena(tp_jinja_run *run, tp_template_memory *memory, tp_error *err)
{
    size_t bytes = (run->max_memory / ROUNDING + 1) * ROUNDING + 65536;
    if (!memory || memory->arena.reserved < bytes) {
        tp_template_memory_release(memory);
        return tp_arena_init(&run->arena, bytes, err);
    }
    run->arena = memory->arena;
    memory->arena = (tp_arena){0};
    return TP_OK;
}

static void leave_arena(tp_jinja_run *run, tp_template_memory *memory)
{
    if (memory && run->arena.high <= KEPT_MEMORY) {
        tp_arena_rewind(&run->arena, 0);
        memory->arena = run->arena;
    } else
        tp_arena_release(&run->arena);
}

void tp_template_memory_release(tp_template_memory *memory)
{
    if (memory)
        tp_arena_release(&memory->arena);
}

tp_status tp_template_render(const tp_template *t, const tp_json *context,
                             const tp_template_limits *limits, tp_template_memory *memory,
                             tp_buf *out, tp_spans *ret_spans, tp_error *err)
{
    static const tp_template_limits defaults;
    limits = limits ? limits : &defaults;
    tp_spans spans = {0};
    tp_jinja_run run = {
        .max_output = limits->max_output_bytes ? limits->max_output_bytes : DEFAULT_OUTPUT,
        .max_turns = limits->max_iterations ? limits->max_iterations : DEFAULT_TURNS,
        .now = limits->now,
        .template = t,
        .eval = tp_jinja_eval,
        .exec = tp_jinja_exec,
        .print_loop = tp_jinja_loop_print,
        .line = 1,
        .spans = ret_spans ? &spans : NULL,
    };
    tp_jinja_text text = {.run = &run};
    run.out = run.root_out = &text;
    run.max_memory = 4 * run.max_output + SPARE_MEMORY;
    if (context)
        run.max_memory += count_values(context) * NODE_BYTES;
    TP_TRY(take_arena(&run, memory, err));
    tp_status status = render(&run, context);
    if (status == TP_OK)
        tp_buf_add(out, text.data, text.len);
    else if (err)
        *err = run.failure;
    leave_arena(&run, memory);
    if (status != TP_OK || !ret_spans) {
        tp_spans_release(&spans);
        return status;
    }
    *ret_spans = spans;
    return TP_OK;
}
