/* config.h - configuration with provenance, bound through one table of options.
 *
 *     recipe.yaml --defaults:--> merged tree --overrides--> interpolation --> struct
 *
 * A recipe names its parents with `defaults:` (a path or a list of paths, relative
 * to the recipe); mappings merge, everything else replaces, and a mapping with
 * `_override_: true` replaces too.  `???` marks what the user has to set.  Values
 * may refer to others: ${a.b} from the root, ${.x} beside, ${..x} one level up, and
 * ${mul:${a}, 2} with add, sub, mul, div, max; \${ is a plain ${.
 *
 * Every value remembers its origin: "default", "recipes/sft.yaml:12" or "command
 * line".  Errors begin with it.  Binding goes through a table of tp_option rows,
 * which gives types, defaults, ranges, documentation and the set of known keys;
 * an unknown key is an error that names the nearest known one. */
#ifndef TP_BASE_CONFIG_H
#define TP_BASE_CONFIG_H

#include "base/json.h"

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
    const char *choices;       /* TP_OPT_ENUM: "float32|bfloat16" */
    bool nullable;             /* null is a value; implied by a default of null */
    bool ignored;              /* accepted for compatibility; setting it has no effect */
    bool unannounced;          /* ignored, and not worth a notice */
    const char *doc;           /* one sentence */
} tp_option;

typedef struct tp_config tp_config;

/* Read a recipe and its parents; NULL as path is an empty configuration. */
TP_CHECKED tp_status tp_config_load(tp_config **ret, const char *path, tp_error *err);
void tp_config_release(tp_config *config); /* NULL is a no-op */

/* One word of the command line: "a.b=c" (also with + or ++ in front), "~a.b" takes
 * the key out.  List elements are named by index, a.0.b=c.  The right side is a
 * plain YAML scalar, or a YAML value when it begins with one of [ { " '. */
TP_CHECKED tp_status tp_config_override(tp_config *config, const char *text, tp_error *err);

/* Fill in defaults, resolve interpolations, check every key and value, and store
 * them in *target.  What it stores points into the configuration, which has to
 * stay.  The last step: overrides after it are a bug. */
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
/* An error about a value, for checks that go beyond the table:
 * "recipes/sft.yaml:12: policy.recompute: <message>". */
tp_status tp_config_fail(const tp_config *config, const char *path, tp_error *err, const char *fmt,
                         ...) TP_PRINTF(4, 5);

/* After binding: sentences about keys that were set but have no effect; NULL
 * after the last. */
const char *tp_config_notice(const tp_config *config, size_t index);

/* The table as Markdown, one section per first part of the name. */
void tp_options_doc(const tp_option *table, size_t n, tp_buf *out);

#endif
