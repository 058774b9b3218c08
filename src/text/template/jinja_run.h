/* jinja_run.h - a template at work.
 *
 * All that a rendering makes lives in one arena, which ends with it; what it may use
 * of memory, of output, of loop turns and of depth is bounded.  Functions report
 * failure through run->err, with the line that is being worked on. */
#ifndef TP_TEXT_TEMPLATE_JINJA_RUN_H
#define TP_TEXT_TEMPLATE_JINJA_RUN_H

#include "base/arena.h"
#include "text/json/json.h"
#include "text/template/chat.h"
#include "text/template/jinja.h"
#include "text/template/jinja_value.h"

enum {
    TP_JINJA_MAX_DEPTH = 400,       /* of evaluation: expressions, blocks and macros */
    TP_JINJA_MAX_VALUE_DEPTH = 100, /* of lists in lists */
    TP_JINJA_MAX_RANGE = 100000     /* as in jinja2's sandbox */
};

typedef struct tp_jinja_run tp_jinja_run;

/* How a statement ended. */
typedef enum { TP_JINJA_FLOW_NEXT, TP_JINJA_FLOW_BREAK, TP_JINJA_FLOW_CONTINUE } tp_jinja_flow;

/* Text that grows in the arena. */
typedef struct {
    tp_jinja_run *run;
    char *data;
    size_t len, cap;
} tp_jinja_text;

/* Names and what they are bound to, innermost first.  A scope that a macro has
 * closed over must not be used for the next turn of a loop. */
typedef struct tp_jinja_scope tp_jinja_scope;
struct tp_jinja_scope {
    tp_jinja_scope *parent;
    struct tp_jinja_binding {
        uint32_t symbol;
        tp_any value;
    } * bindings;
    uint32_t n, cap;
    bool is_captured;
};

struct tp_jinja_run {
    tp_arena arena;
    size_t max_memory, max_output;
    uint64_t max_turns, n_turns;
    size_t depth;
    bool is_exhausted; /* a limit was hit: nothing may go on */
    const struct tp_template *template;
    uint32_t line;
    tp_jinja_scope *scope;
    tp_any *root;               /* by symbol: context, then what the top level sets */
    tp_jinja_scope *root_scope; /* stands for `root` in chains; has no bindings */
    tp_jinja_text *out;         /* where text goes now */
    tp_jinja_text *root_out;
    tp_spans *spans; /* or NULL */
    size_t spans_cap;
    int64_t now; /* for strftime_now(); 0 is the clock */
    /* What is further up, for what it is made of: a macro has a body, a loop a condition. */
    tp_status (*eval)(tp_jinja_run *run, const tp_jinja_node *node, tp_any *ret);
    tp_status (*exec)(tp_jinja_run *run, const tp_jinja_node *node, tp_jinja_flow *flow);
    tp_status (*print_loop)(tp_jinja_text *out, struct tp_jinja_loop *loop);
    tp_error *err;
};

/* Fill run->err with "name:line: message". */
tp_status tp_jinja_fail(tp_jinja_run *run, const char *fmt, ...) TP_PRINTF(2, 3);
tp_status tp_jinja_unsupported(tp_jinja_run *run, const char *fmt, ...) TP_PRINTF(2, 3);

/* `count` zeroed objects of `size` bytes. */
TP_CHECKED tp_status tp_jinja_take(tp_jinja_run *run, size_t count, size_t size, void **ret);
/* Pay for `n` turns of work. */
TP_CHECKED tp_status tp_jinja_charge(tp_jinja_run *run, uint64_t n);
/* One level down; tp_jinja_leave() goes back up. */
TP_CHECKED tp_status tp_jinja_enter(tp_jinja_run *run);
void tp_jinja_leave(tp_jinja_run *run);

TP_CHECKED tp_status tp_jinja_add(tp_jinja_text *text, const char *s, size_t n);
TP_CHECKED tp_status tp_jinja_adds(tp_jinja_text *text, const char *s);
TP_CHECKED tp_status tp_jinja_addf(tp_jinja_text *text, const char *fmt, ...) TP_PRINTF(2, 3);
tp_any tp_jinja_text_value(const tp_jinja_text *text);

/* --- values (jinja_value.c) --- */

const char *tp_any_type_name(const tp_any *v); /* Python's: "str", "dict" ... */
bool tp_any_is_true(const tp_any *v);
/* Is it a number, counting bool?  Its value. */
bool tp_any_as_int(const tp_any *v, tp_integer *ret); /* INT, BOOL */
bool tp_any_as_float(const tp_any *v, double *ret);   /* INT, BOOL, FLOAT */
TP_CHECKED tp_status tp_any_equal(tp_jinja_run *run, const tp_any *a, const tp_any *b, bool *ret);
/* -1, 0, 1, or 2 when one is not a number (NaN); an error when the two cannot be
 * ordered.  `op` is for that message. */
TP_CHECKED tp_status tp_any_compare(tp_jinja_run *run, const tp_any *a, const tp_any *b,
                                    const char *op, int *ret);
TP_CHECKED tp_status tp_any_contains(tp_jinja_run *run, const tp_any *container, const tp_any *item,
                                     bool *ret);
/* len(): an error for what has none. */
TP_CHECKED tp_status tp_any_length(tp_jinja_run *run, const tp_any *v, size_t *ret);

TP_CHECKED tp_status tp_any_new_list(tp_jinja_run *run, tp_any_type type, size_t n, tp_any *ret,
                                     tp_any **ret_values);
TP_CHECKED tp_status tp_any_new_text(tp_jinja_run *run, const char *s, size_t n, tp_any *ret);
TP_CHECKED tp_status tp_any_new_dict(tp_jinja_run *run, size_t n, tp_any *ret);
/* A later equal key replaces the value and keeps the place. */
TP_CHECKED tp_status tp_any_dict_put(tp_jinja_run *run, struct tp_any_dict *dict, const tp_any *key,
                                     const tp_any *value);
/* NULL in *ret when absent; an error when the key cannot be hashed. */
TP_CHECKED tp_status tp_any_dict_get(tp_jinja_run *run, const struct tp_any_dict *dict,
                                     const tp_any *key, const tp_any **ret);
const tp_any *tp_any_dict_find(const struct tp_any_dict *dict, tp_slice key);
bool tp_any_is_hashable(const tp_any *v);

/* Undefined values; `name` must outlive the rendering. */
TP_CHECKED tp_status tp_any_new_undefined(tp_jinja_run *run, struct tp_any_undefined what,
                                          tp_any *ret);
TP_CHECKED tp_status tp_any_undefined_hint(tp_jinja_run *run, const char *hint, tp_any *ret);
TP_CHECKED tp_status tp_any_undefined_name(tp_jinja_run *run, tp_slice name, tp_any *ret);
TP_CHECKED tp_status tp_any_undefined_of(tp_jinja_run *run, const tp_any *object, const tp_any *key,
                                         bool is_unsafe, tp_any *ret);
/* The error that using it gives. */
tp_status tp_jinja_undefined_error(tp_jinja_run *run, const tp_any *undefined);

/* Going through a value; an error for what cannot be.  Each element costs a turn. */
typedef struct {
    tp_any source;
    size_t at, n;
} tp_any_walk;
TP_CHECKED tp_status tp_any_walk_begin(tp_jinja_run *run, const tp_any *v, tp_any_walk *ret);
TP_CHECKED tp_status tp_any_walk_next(tp_jinja_run *run, tp_any_walk *walk, tp_any *ret,
                                      bool *ret_more);
bool tp_any_is_iterable(const tp_any *v);
/* All elements as the items of a list. */
TP_CHECKED tp_status tp_any_list_of(tp_jinja_run *run, const tp_any *v, tp_any *ret);
TP_CHECKED tp_status tp_any_new_iterator(tp_jinja_run *run, const tp_any *list, tp_any *ret);
/* An iterator that fails, when it is gone through, as run->err says. */
TP_CHECKED tp_status tp_any_new_failure(tp_jinja_run *run, tp_status failure, tp_any *ret);

/* --- text (jinja_print.c, jinja_json.c, jinja_format.c) --- */

TP_CHECKED tp_status tp_any_str(tp_jinja_text *out, const tp_any *v);  /* str() */
TP_CHECKED tp_status tp_any_repr(tp_jinja_text *out, const tp_any *v); /* repr() */
/* str() as a value; a string is itself. */
TP_CHECKED tp_status tp_any_to_text(tp_jinja_run *run, const tp_any *v, tp_slice *ret);
TP_CHECKED tp_status tp_jinja_escape_html(tp_jinja_run *run, tp_slice s, tp_any *ret);

typedef struct {
    bool ensure_ascii, sort_keys, has_indent;
    tp_slice indent, item_separator, key_separator;
} tp_jinja_json_options;
TP_CHECKED tp_status tp_jinja_json(tp_jinja_text *out, const tp_any *v,
                                   const tp_jinja_json_options *options);
/* "..." % args */
TP_CHECKED tp_status tp_jinja_percent(tp_jinja_run *run, tp_slice format, const tp_any *args,
                                      tp_any *ret);

/* --- calls --- */

typedef struct {
    tp_any *values;
    size_t n;
    tp_slice *names; /* keywords */
    tp_any *named;
    size_t n_named;
} tp_jinja_args;

/* A call under way. */
typedef struct {
    const char *what; /* the function's name, for messages */
    const tp_any *self;
    const tp_jinja_args *args; /* as they were given */
    tp_any arg[4];             /* by the function's parameters; absent ones are MISSING */
    int variant;
    bool (*is)(uint32_t);
} tp_jinja_invocation;

typedef tp_status (*tp_jinja_fn)(tp_jinja_run *run, const tp_jinja_invocation *c, tp_any *ret);

typedef struct tp_jinja_function {
    const char *name; /* "lower" of a filter, "lower()" of a method */
    tp_jinja_fn call;
    /* "old new [count]": by position or name, those in brackets may be absent, `_` has no name.
     * NULL: the function looks at the arguments itself. */
    const char *parameters;
    int variant;          /* of functions that share their code */
    bool (*is)(uint32_t); /* what all characters are to be */
} tp_jinja_function;

struct tp_any_method {
    const tp_jinja_function *function;
    tp_any self;
};

struct tp_any_macro {
    const tp_jinja_macro *definition;
    tp_jinja_scope *scope;
};

TP_CHECKED tp_status tp_jinja_new_method(tp_jinja_run *run, const tp_jinja_function *function,
                                         const tp_any *self, tp_any *ret);

/* Arguments by the parameters of a function. */
TP_CHECKED tp_status tp_jinja_bind(tp_jinja_run *run, const char *what, const tp_jinja_args *args,
                                   const char *parameters, tp_any *out);
/* The function of that name in a table that ends with a row without one, or NULL.  A row may have
 * several names, separated by blanks.  A row without `call` is what jinja2 has and no published
 * template uses: refused by name, never approximated. */
const tp_jinja_function *tp_jinja_find_function(const tp_jinja_function *table, tp_slice name);
TP_CHECKED tp_status tp_jinja_call_function(tp_jinja_run *run, const tp_jinja_function *function,
                                            const tp_any *self, const tp_jinja_args *args,
                                            tp_any *ret);
/* An argument of a wanted type; MISSING leaves *ret alone.  `name` is for the message. */
TP_CHECKED tp_status tp_jinja_want_int(tp_jinja_run *run, const char *what, const tp_any *v,
                                       int64_t *ret);
/* A truth value that Python takes only as an integer. */
TP_CHECKED tp_status tp_jinja_want_flag(tp_jinja_run *run, const char *what, const tp_any *v,
                                        bool *ret);
TP_CHECKED tp_status tp_jinja_want_text(tp_jinja_run *run, const char *what, const tp_any *v,
                                        tp_slice *ret);

TP_CHECKED tp_status tp_jinja_call_value(tp_jinja_run *run, const tp_any *callee,
                                         const tp_jinja_args *args, tp_any *ret);
TP_CHECKED tp_status tp_jinja_call_filter(tp_jinja_run *run, tp_slice name, const tp_any *self,
                                          const tp_jinja_args *args, tp_any *ret);
TP_CHECKED tp_status tp_jinja_call_test(tp_jinja_run *run, tp_slice name, const tp_any *self,
                                        const tp_jinja_args *args, bool *ret);
const tp_jinja_function *tp_jinja_global(tp_slice name);     /* range, dict ..., or NULL */
const tp_jinja_function *tp_jinja_str_method(tp_slice name); /* or NULL */

/* Filters, one table for each file. */
extern const tp_jinja_function tp_jinja_number_filters[];
extern const tp_jinja_function tp_jinja_list_filters[];
extern const tp_jinja_function tp_jinja_choice_filters[];

/* obj.name and obj[key], as the sandbox has them. */
TP_CHECKED tp_status tp_jinja_get_attr(tp_jinja_run *run, const tp_any *object, tp_slice name,
                                       tp_any *ret);
TP_CHECKED tp_status tp_jinja_get_item(tp_jinja_run *run, const tp_any *object, const tp_any *key,
                                       tp_any *ret);
TP_CHECKED tp_status tp_jinja_get_slice(tp_jinja_run *run, const tp_any *object,
                                        const tp_any bounds[3], tp_any *ret);
/* An attribute without falling back to an item; *ret_found false when there is none. */
TP_CHECKED tp_status tp_jinja_find_attr(tp_jinja_run *run, const tp_any *object, tp_slice name,
                                        tp_any *ret, bool *ret_found);

/* --- evaluation (jinja_eval.c, jinja_ops.c, jinja_run.c, jinja_loop.c) --- */

TP_CHECKED tp_status tp_jinja_eval(tp_jinja_run *run, const tp_jinja_node *node, tp_any *ret);
TP_CHECKED tp_status tp_jinja_eval_args(tp_jinja_run *run, const tp_jinja_call *call,
                                        tp_jinja_args *ret);
TP_CHECKED tp_status tp_jinja_filter_node(tp_jinja_run *run, const tp_jinja_node *node,
                                          const tp_any *text, tp_any *ret);
TP_CHECKED tp_status tp_jinja_binary(tp_jinja_run *run, tp_jinja_op op, const tp_any *a,
                                     const tp_any *b, tp_any *ret);
TP_CHECKED tp_status tp_jinja_negate(tp_jinja_run *run, const tp_any *v, bool negative,
                                     tp_any *ret);

TP_CHECKED tp_status tp_jinja_exec(tp_jinja_run *run, const tp_jinja_node *node,
                                   tp_jinja_flow *flow);
TP_CHECKED tp_status tp_jinja_exec_for(tp_jinja_run *run, const tp_jinja_node *node,
                                       tp_jinja_flow *flow);
TP_CHECKED tp_status tp_jinja_loop_attr(tp_jinja_run *run, struct tp_jinja_loop *loop,
                                        tp_slice name, tp_any *ret, bool *ret_found);
TP_CHECKED tp_status tp_jinja_loop_print(tp_jinja_text *out, struct tp_jinja_loop *loop);
/* Run a body with its text caught. */
TP_CHECKED tp_status tp_jinja_capture(tp_jinja_run *run, const tp_jinja_node *body, tp_any *ret);
TP_CHECKED tp_status tp_jinja_new_scope(tp_jinja_run *run, tp_jinja_scope *parent,
                                        tp_jinja_scope **ret);
TP_CHECKED tp_status tp_jinja_bind_name(tp_jinja_run *run, tp_jinja_scope *scope, uint32_t symbol,
                                        const tp_any *value);
TP_CHECKED tp_status tp_jinja_assign(tp_jinja_run *run, const tp_jinja_node *target,
                                     const tp_any *value);

#endif
