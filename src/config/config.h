/* config.h - configuration with provenance, bound through one table of options.
 *
 *     recipe.yaml --defaults:--> merged tree --overrides--> interpolation --> struct
 *
 * A recipe names its parents with `defaults:` (a path or a list of paths, relative
 * to the recipe); mappings merge, everything else replaces, and a mapping with
 * `_override_: true` replaces too.  `???` marks what the user has to set.  Values
 * may refer to others: ${a.b} from the root, ${.x} beside, ${..x} one level up, and
 * ${mul:${a}, 2} with add, sub, mul, div, max, ${oc.env:NAME, text} for the
 * environment; \${ is a plain ${.
 *
 * Every value remembers its origin: "default", "recipes/sft.yaml:12" or "command
 * line".  Errors begin with it.  Binding goes through a table of tp_option rows,
 * which gives types, defaults, ranges, documentation and the set of known keys.  All
 * faults are reported together: unknown keys with the nearest known one, values that
 * do not fit, values that are still to be set. */
#ifndef TP_CONFIG_CONFIG_H
#define TP_CONFIG_CONFIG_H

#include "text/json/json.h"

typedef enum {
    TP_OPT_BOOL,        /* bool */
    TP_OPT_INT,         /* int64_t */
    TP_OPT_FLOAT,       /* double */
    TP_OPT_STRING,      /* const char *; numbers and booleans are taken as text */
    TP_OPT_ENUM,        /* int, the index of the choice */
    TP_OPT_FLOAT_LIST,  /* tp_f64_list; one number is a list of one */
    TP_OPT_STRING_LIST, /* tp_str_list; one string is a list of one */
    TP_OPT_SECTION      /* const tp_json *, any subtree; keys inside are not checked */
} tp_option_type;

typedef struct {
    const double *v;
    size_t n;
} tp_f64_list;

typedef struct {
    const char *const *v;
    size_t n;
} tp_str_list;

/* What a nullable option holds when it is null; strings and sections are NULL,
 * lists empty, floats NaN.  Booleans are never null. */
#define TP_OPT_UNSET_INT INT64_MIN
#define TP_OPT_UNSET_ENUM (-1)

/* A row without a member in the struct: checked and shown, but not stored. */
#define TP_OPT_NOT_STORED SIZE_MAX

typedef struct {
    const char *name; /* "policy.train_global_batch_size" */
    tp_option_type type;
    size_t offset;             /* of the member in the bound struct */
    const char *default_value; /* YAML; "???" = required, NULL = null */
    double min, max;           /* numbers and list elements; both 0 = any */
    const char *choices;       /* TP_OPT_ENUM: "float32|bfloat16", or ... */
    const void *rows;          /* ... a table whose rows begin with their name, closed by NULL */
    size_t row_bytes;
    bool nullable;          /* null is a value; implied by a default of null */
    bool ignored;           /* accepted for compatibility; setting it has no effect ... */
    bool unannounced;       /* ... and is not worth a notice */
    bool is_path;           /* of a file or folder: see tp_config_bind() */
    const char *ending;     /* (optional) ... a folder stands for its only file that ends so */
    const char *belongs_to; /* the key is known, but not in this kind of configuration, ... */
    const char *present;    /* (optional) ... which has this section */
    /* "false|null": other values are refused for the reason in doc.  `when` names a key that
     * must be true for that, or for an ignored key to matter.  With either of the two the key
     * may lie in a section that is not looked into, and gets no default. */
    const char *accepted, *when;
    const char *doc; /* one sentence; of an ignored key the reason */
} tp_option;

/* The i-th word of a TP_OPT_ENUM; false when there are no more. */
bool tp_option_word(const tp_option *option, int i, tp_slice *ret);

typedef struct tp_config tp_config;

/* Read a recipe and its parents; NULL as path is an empty configuration. */
TP_CHECKED tp_status tp_config_load(tp_config **ret, const char *path, tp_error *err);
/* The same of files in YAML 1.1, as NeMo RL reads them (tp_yaml_parse_old()). */
TP_CHECKED tp_status tp_config_load_old(tp_config **ret, const char *path, tp_error *err);
/* The same tree with the same origins, to be changed and bound anew; also of one that is bound. */
TP_CHECKED tp_status tp_config_copy(const tp_config *config, tp_config **ret, tp_error *err);
void tp_config_release(tp_config *config); /* NULL is a no-op */

/* One word of the command line: "a.b=c" (also with + or ++ in front), "~a.b" takes
 * the key out.  List elements are named by index, a.0.b=c.  The right side is a
 * plain YAML scalar, or a YAML value when it begins with one of [ { " '. */
TP_CHECKED tp_status tp_config_override(tp_config *config, const char *text, tp_error *err);

/* (optional) What a key that nobody knows is called here, for whoever comes from another program:
 * its name, "@" for the section of the algorithm; empty: nobody has heard of it. */
typedef tp_slice (*tp_config_translate)(const char *key);
void tp_config_set_translator(tp_config *config, tp_config_translate translate);

/* Set a key as if `origin` had said so, in the syntax of an override; before binding. */
TP_CHECKED tp_status tp_config_set(tp_config *config, const char *text, const char *origin,
                                   tp_error *err);

/* Fill in defaults, resolve interpolations, check every key and value, and store
 * them in *target.  What it stores points into the configuration, which has to
 * stay.  The last step: overrides after it are a bug.
 *
 * A relative path in a recipe is one from the working directory if something is there,
 * else one from the folder of the recipe. */
TP_CHECKED tp_status tp_config_bind(tp_config *config, const tp_option *table, size_t n,
                                    void *target, tp_error *err);

/* After binding: an option of type TP_OPT_SECTION (or an object inside one) through a
 * table of its own, whose names start below it. */
TP_CHECKED tp_status tp_config_bind_section(tp_config *config, const tp_json *section,
                                            const tp_option *table, size_t n, void *target,
                                            tp_error *err);

/* After binding: the whole tree, defaults included, in the table's order. */
const tp_json *tp_config_resolved(const tp_config *config);
/* The tree as YAML with every value's origin behind it, for config.yaml. */
void tp_config_write(const tp_config *config, tp_buf *out);

/* "policy.optimizer.kwargs" -> its value, or NULL. */
const tp_json *tp_config_find(const tp_config *config, const char *path);
/* Where the value comes from; NULL when there is none. */
const char *tp_config_origin(const tp_config *config, const char *path);
/* Did an interpolation give it? */
bool tp_config_is_derived(const tp_config *config, const char *path);
/* An error about a value, for checks that go beyond the table:
 * "recipes/sft.yaml:12: policy.recompute: <message>". */
tp_status tp_config_fail(const tp_config *config, const char *path, tp_error *err, const char *fmt,
                         ...) TP_PRINTF(4, 5);

/* A list in which no text may be empty. */
TP_CHECKED tp_status tp_config_refuse_empty(const tp_config *config, const char *path,
                                            const tp_str_list *texts, tp_error *err);

/* After binding: which keys were set and have no effect, or not all of it, grouped by the
 * reason, one line each; NULL when there are none. */
const char *tp_config_notice(const tp_config *config);
/* Before binding: name one more there. */
void tp_config_note(tp_config *config, const char *key, const char *reason);
/* The recipe that was read, or NULL. */
const char *tp_config_file(const tp_config *config);
/* After binding that failed: nothing but values to be set (`???`) was in the way, so the
 * tree can be shown.  Their names, one after the other, or NULL. */
const char *tp_config_missing(const tp_config *config);
/* Is the tree complete, defaults included?  Also after a failed binding. */
bool tp_config_is_bound(const tp_config *config);

/* After binding: if there is nothing under the value of an option with is_path, append a line
 * about that, with the places tried. */
void tp_config_check_path(const tp_config *config, const char *path, const char *remedy,
                          tp_buf *out);

/* Settings (as of tp_config_override()) as a recipe that inherits from `parent`, NULL: from none,
 * and makes the configuration of it that they make.  A relative path of the table's is_path that
 * is found is one from the root there.  A key that is taken out (~a.b) or an element of a list
 * (a.0.b) cannot be said so: TP_ERR_ARG. */
TP_CHECKED tp_status tp_config_heir(const char *parent, const char *const *settings, size_t n,
                                    const tp_option *table, size_t n_options, tp_buf *out,
                                    tp_error *err);

/* The two halves of tp_config_bind(), for callers with checks of their own between them:
 * faults of keys and values are collected, then reported together. */
TP_CHECKED tp_status tp_config_end(tp_config *config, tp_error *err);

/* The table as Markdown, one section per first part of the name. */
void tp_options_doc(const tp_option *table, size_t n, tp_buf *out);

#endif
