/* jinja_run.h - a template at work.
 *
 * All that a rendering makes lives in one arena, which ends with it; what it may use
 * of memory, of output, of loop turns and of depth is bounded.  A failure ends the rendering
 * at once, from wherever it is seen, with the line that is being worked on: functions give
 * back values, and there is nothing to release on the way. */
#ifndef TP_TEXT_TEMPLATE_JINJA_RUN_H
#define TP_TEXT_TEMPLATE_JINJA_RUN_H

#include <setjmp.h>

#include "base/arena.h"
#include "text/json/json.h"
#include "text/template/chat.h"
#include "text/template/jinja.h"
#include "text/template/jinja_value.h"
#include "text/template/python_text.h"

enum {
    TP_JINJA_MAX_DEPTH = 400,       /* of evaluation: expressions, blocks and macros */
    TP_JINJA_MAX_VALUE_DEPTH = 100, /* of lists in lists */
    TP_JINJA_MAX_RANGE = 100000,    /* as in jinja2's sandbox */
    TP_JINJA_MAX_WIDTH = 1 << 20,   /* of a padded text */
    TP_JINJA_BYTES_PER_TURN = 1024  /* of text that is looked through */
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
    size_t n, cap;
    bool is_captured;
};

struct tp_jinja_run {
    tp_arena arena;
    size_t max_memory, max_output;
    uint64_t max_turns, n_turns;
    size_t depth;
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
    tp_any (*eval)(tp_jinja_run *run, const tp_jinja_node *node);
    tp_jinja_flow (*exec)(tp_jinja_run *run, const tp_jinja_node *node);
    void (*print_loop)(tp_jinja_text *out, struct tp_jinja_loop *loop);
    tp_error failure;  /* what ended it */
    bool is_exhausted; /* a limit was hit: no filter may put its failure off */
    jmp_buf *failed;
};

/* The end of the rendering, with "name:line: message". */
_Noreturn void tp_jinja_fail(tp_jinja_run *run, const char *fmt, ...) TP_PRINTF(2, 3);
_Noreturn void tp_jinja_unsupported(tp_jinja_run *run, const char *fmt, ...) TP_PRINTF(2, 3);

/* `count` zeroed objects of `size` bytes. */
void *tp_jinja_take(tp_jinja_run *run, size_t count, size_t size);
/* The array `items` of n objects with room for one more: one that is full moves. */
void *tp_jinja_room(tp_jinja_run *run, void *items, size_t n, size_t *cap, size_t size);
/* Pay for `n` turns of work. */
void tp_jinja_charge(tp_jinja_run *run, uint64_t n);
/* One level down; run->depth-- goes back up. */
void tp_jinja_enter(tp_jinja_run *run);

void tp_jinja_add(tp_jinja_text *text, const char *s, size_t n);
void tp_jinja_add_slice(tp_jinja_text *text, tp_slice s);
void tp_jinja_adds(tp_jinja_text *text, const char *s);
void tp_jinja_addf(tp_jinja_text *text, const char *fmt, ...) TP_PRINTF(2, 3);
void tp_jinja_add_times(tp_jinja_text *text, tp_slice s, int64_t times);
tp_any tp_jinja_text_value(const tp_jinja_text *text);

/* --- values (jinja_value.c) --- */

const char *tp_any_type_name(tp_any v); /* Python's: "str", "dict" ... */
bool tp_any_is_true(tp_any v);
bool tp_any_is_list(tp_any v);         /* LIST, TUPLE */
bool tp_any_is_given(tp_any argument); /* neither absent nor none */
/* Is it a number, counting bool?  Its value. */
bool tp_any_as_int(tp_any v, tp_integer *ret); /* INT, BOOL */
bool tp_any_as_float(tp_any v, double *ret);   /* INT, BOOL, FLOAT */
bool tp_any_equal(tp_jinja_run *run, tp_any a, tp_any b);
/* -1, 0, 1, or 2 when one is not a number (NaN); an error when the two cannot be
 * ordered.  `op` is for that message. */
int tp_any_compare(tp_jinja_run *run, tp_any a, tp_any b, const char *op);
bool tp_any_contains(tp_jinja_run *run, tp_any container, tp_any item);
size_t tp_any_length(tp_jinja_run *run, tp_any v); /* len(): an error for what has none */

tp_any tp_any_new_list(tp_jinja_run *run, tp_any_type type, size_t n);
void tp_any_append(tp_jinja_run *run, struct tp_any_items *list, tp_any value);
tp_any tp_any_pair(tp_jinja_run *run, tp_any a, tp_any b); /* a tuple */
tp_any tp_any_new_dict(tp_jinja_run *run, size_t n);
/* A later equal key replaces the value and keeps the place. */
void tp_any_dict_put(tp_jinja_run *run, struct tp_any_dict *dict, tp_any key, tp_any value);
/* NULL when absent; an error when the key cannot be hashed. */
const tp_any *tp_any_dict_get(tp_jinja_run *run, const struct tp_any_dict *dict, tp_any key);
bool tp_any_is_hashable(tp_any v);
/* By key; equal ones keep their order. */
void tp_any_sort(tp_jinja_run *run, struct tp_any_entry *entries, size_t n, bool reverse);

/* Undefined values; their names must outlive the rendering. */
tp_any tp_any_undefined(tp_jinja_run *run, struct tp_any_undefined what);
tp_any tp_any_hint(tp_jinja_run *run, const char *hint); /* with a message of its own */
tp_any tp_any_undefined_of(tp_jinja_run *run, tp_any object, tp_any key, bool is_unsafe);
/* The error that using one gives; nothing for any other value. */
void tp_jinja_want_defined(tp_jinja_run *run, tp_any v);

/* Going through a value; an error for what cannot be.  Each element costs a turn. */
typedef struct {
    tp_any source;
    size_t at, n;
} tp_any_walk;
tp_any_walk tp_any_walk_begin(tp_jinja_run *run, tp_any v);
bool tp_any_walk_next(tp_jinja_run *run, tp_any_walk *walk, tp_any *ret);
bool tp_any_is_iterable(tp_any v);
/* All elements as the items of a new list. */
struct tp_any_items *tp_any_list_of(tp_jinja_run *run, tp_any v);
tp_any tp_any_new_iterator(tp_jinja_run *run, const struct tp_any_items *items);

/* --- text (jinja_print.c, jinja_format.c) --- */

void tp_any_str(tp_jinja_text *out, tp_any v);  /* str() */
void tp_any_repr(tp_jinja_text *out, tp_any v); /* repr() */
/* str() as a value; a string is itself. */
tp_slice tp_any_to_text(tp_jinja_run *run, tp_any v);
tp_any tp_jinja_escape_html(tp_jinja_run *run, tp_slice s);

/* How json.dumps() writes. */
typedef struct {
    bool ensure_ascii, sort_keys, has_indent;
    tp_slice indent, item_separator, key_separator;
} tp_jinja_json_options;
void tp_jinja_json(tp_jinja_text *out, tp_any v, const tp_jinja_json_options *options);
/* "..." % args */
tp_any tp_jinja_percent(tp_jinja_run *run, tp_slice format, tp_any args);

/* --- calls (jinja_call.c) --- */

typedef struct {
    struct tp_any_items values;
    struct tp_any_dict named; /* whose keys are texts */
} tp_jinja_args;

/* A call under way. */
typedef struct {
    const char *what; /* the function's name, for messages */
    tp_any self;
    const tp_jinja_args *args; /* as they were given */
    tp_any arg[4];             /* by the function's parameters; absent ones are MISSING */
    int variant;
} tp_jinja_invocation;

typedef tp_any (*tp_jinja_fn)(tp_jinja_run *run, const tp_jinja_invocation *c);

typedef struct tp_jinja_function {
    /* "lower" of a filter or test, "lower()" of a method; several are separated by blanks. */
    const char *name;
    tp_jinja_fn call; /* NULL: what jinja2 has and no published template uses; refused by name,
                         never approximated */
    /* "old:s new:s [count:i]": by position or name, those in brackets may be absent, `_` has no
     * name; :i an integer, :s a text, with ? one of these or none, which is as absent.  NULL: the
     * function looks at the arguments itself. */
    const char *parameters;
    int variant; /* of functions that share their code */
} tp_jinja_function;

struct tp_any_method {
    const tp_jinja_function *function;
    tp_any self;
};

struct tp_any_macro {
    const tp_jinja_node *definition;
    tp_jinja_scope *scope;
};

/* The function of that name in a table that ends with a row without one, or NULL. */
const tp_jinja_function *tp_jinja_find_function(const tp_jinja_function *table, tp_slice name);
tp_any tp_jinja_call_function(tp_jinja_run *run, const tp_jinja_function *function, tp_any self,
                              const tp_jinja_args *args);
/* An argument, or what it is when absent. */
int64_t tp_jinja_int_arg(tp_any argument, int64_t absent);
tp_slice tp_jinja_text_arg(tp_any argument, tp_slice absent);
tp_slice tp_jinja_want_text(tp_jinja_run *run, const char *what, tp_any v);
tp_any tp_jinja_keyword(tp_jinja_run *run, const tp_jinja_args *args, tp_slice name); /* MISSING */

tp_any tp_jinja_call_filter(tp_jinja_run *run, tp_slice name, tp_any self,
                            const tp_jinja_args *args);
bool tp_jinja_call_test(tp_jinja_run *run, tp_slice name, tp_any self, const tp_jinja_args *args);
const tp_jinja_function *tp_jinja_global(tp_slice name); /* range, dict ..., or NULL */

/* One table for each file. */
extern const tp_jinja_function tp_jinja_str_methods[];
extern const tp_jinja_function tp_jinja_loop_methods[];
extern const tp_jinja_function tp_jinja_list_filters[];

/* obj.name and obj[key], as the sandbox has them. */
tp_any tp_jinja_get_attr(tp_jinja_run *run, tp_any object, tp_slice name);
tp_any tp_jinja_get_item(tp_jinja_run *run, tp_any object, tp_any key);
tp_any tp_jinja_get_slice(tp_jinja_run *run, tp_any object, const tp_any bounds[3]);
/* An attribute without falling back to an item; MISSING when there is none. */
tp_any tp_jinja_find_attr(tp_jinja_run *run, tp_any object, tp_slice name);

/* --- evaluation (jinja_eval.c, jinja_ops.c, jinja_exec.c, jinja_loop.c) --- */

tp_any tp_jinja_eval(tp_jinja_run *run, const tp_jinja_node *node);
tp_jinja_args tp_jinja_eval_args(tp_jinja_run *run, const tp_jinja_node *call);
/* `text` goes through the filters of a block. */
tp_any tp_jinja_filter_node(tp_jinja_run *run, const tp_jinja_node *node, tp_any text);
tp_any tp_jinja_call_value(tp_jinja_run *run, tp_any callee, const tp_jinja_args *args);
tp_any tp_jinja_binary(tp_jinja_run *run, tp_jinja_op op, tp_any a, tp_any b);
tp_any tp_jinja_signed(tp_jinja_run *run, tp_any v, bool negative); /* +v, -v */

tp_jinja_flow tp_jinja_exec(tp_jinja_run *run, const tp_jinja_node *node);
tp_jinja_flow tp_jinja_exec_for(tp_jinja_run *run, const tp_jinja_node *node);
tp_any tp_jinja_loop_attr(tp_jinja_run *run, struct tp_jinja_loop *loop, tp_slice name);
void tp_jinja_loop_print(tp_jinja_text *out, struct tp_jinja_loop *loop);
/* Run a body with its text caught. */
tp_any tp_jinja_capture(tp_jinja_run *run, const tp_jinja_node *body);
tp_jinja_scope *tp_jinja_new_scope(tp_jinja_run *run, tp_jinja_scope *parent);
void tp_jinja_bind_name(tp_jinja_run *run, tp_jinja_scope *scope, uint32_t symbol, tp_any value);
void tp_jinja_assign(tp_jinja_run *run, const tp_jinja_node *target, tp_any value);

#endif
