/* json_schema.c - a JSON value held against a schema. */
#include "json_schema.h"

#include <math.h>
#include <regex.h>
#include <stdio.h>
#include <string.h>

static const tp_json *root;
static int n_faults;

static int fault(const char *path, const char *what, const char *detail)
{
    printf("%s: %s%s\n", *path ? path : "the whole", what, detail);
    return ++n_faults;
}

static bool has_type(const tp_json *v, tp_slice name)
{
    static const char *const names[] = {"null",   "boolean", "boolean", "number",
                                        "string", "array",   "object"};
    double number;
    if (tp_slice_is(name, "integer"))
        return v->type == TP_JSON_NUMBER && tp_json_f64(v, &number) && number == floor(number);
    return tp_slice_is(name, names[v->type]);
}

static bool is_one_of(const tp_json *v, const tp_json *list)
{
    for (const tp_json *item = list->child; item; item = item->next)
        if (item->type == v->type && tp_slice_eq(item->text, v->text))
            return true;
    return false;
}

static bool has_a_type(const tp_json *v, const tp_json *types)
{
    if (types->type == TP_JSON_STRING)
        return has_type(v, types->text);
    for (const tp_json *item = types->child; item; item = item->next)
        if (has_type(v, item->text))
            return true;
    return false;
}

/* "#/$defs/name", or "#": the whole */
static const tp_json *refer(const tp_json *schema)
{
    static const char begin[] = "#/$defs/";
    const char *to = tp_json_str(tp_json_get(schema, "$ref"));
    if (!to)
        return schema;
    if (strcmp(to, "#") == 0)
        return root;
    return strncmp(to, begin, strlen(begin)) == 0
               ? tp_json_get(tp_json_get(root, "$defs"), to + strlen(begin))
               : NULL;
}

static void check(const tp_json *schema, const tp_json *v, const char *path);

/* Of members whose names follow a pattern: "^pass_at_[0-9]+$". */
static const tp_json *matching(const tp_json *patterns, const char *name)
{
    for (const tp_json *p = patterns ? patterns->child : NULL; p; p = p->next) {
        regex_t expression;
        bool is_one = regcomp(&expression, p->key.data, REG_EXTENDED | REG_NOSUB) == 0 &&
                      regexec(&expression, name, 0, NULL, 0) == 0;
        regfree(&expression);
        if (is_one)
            return p;
    }
    return NULL;
}

static void check_members(const tp_json *schema, const tp_json *v, const char *path)
{
    const tp_json *properties = tp_json_get(schema, "properties");
    const tp_json *others = tp_json_get(schema, "additionalProperties");
    const tp_json *required = tp_json_get(schema, "required");
    char below[512];
    for (const tp_json *m = v->child; m; m = m->next) {
        const tp_json *own = tp_json_get(properties, m->key.data);
        own = own ? own : matching(tp_json_get(schema, "patternProperties"), m->key.data);
        snprintf(below, sizeof below, "%s.%s", path, m->key.data);
        if (own)
            check(own, m, below);
        else if (others && others->type == TP_JSON_OBJECT)
            check(others, m, below);
        else if (others && others->type == TP_JSON_FALSE)
            fault(below, "is in no schema", "");
    }
    for (const tp_json *name = required ? required->child : NULL; name; name = name->next)
        if (!tp_json_get(v, name->text.data))
            fault(path, "lacks ", name->text.data);
}

static void check(const tp_json *schema, const tp_json *v, const char *path)
{
    char below[512];
    size_t i = 0;
    schema = refer(schema);
    if (!schema) {
        fault(path, "its schema refers to nothing", "");
        return;
    }
    const tp_json *types = tp_json_get(schema, "type"), *words = tp_json_get(schema, "enum");
    const tp_json *items = tp_json_get(schema, "items");
    if (types && !has_a_type(v, types)) {
        fault(path, "is of another type: ", v->text.data ? v->text.data : "");
        return;
    }
    if (words && !is_one_of(v, words))
        fault(path, "is none of the words: ", v->text.data ? v->text.data : "");
    if (v->type == TP_JSON_OBJECT)
        check_members(schema, v, path);
    for (const tp_json *item = items && v->type == TP_JSON_ARRAY ? v->child : NULL; item;
         item = item->next) {
        snprintf(below, sizeof below, "%s[%zu]", path, i++);
        check(items, item, below);
    }
}

/* Does a schema say everything: of which type each value is, what is in objects and lists? */
static void check_closed(const tp_json *schema, const char *path)
{
    static const char *const groups[] = {"properties", "patternProperties", "$defs"};
    static const char *const parts[] = {"items", "additionalProperties"};
    static const tp_slice object = {"object", 6}, array = {"array", 5};
    const tp_json *types = tp_json_get(schema, "type");
    bool is_object = false, is_array = false;
    char below[512];
    if (!types && !tp_json_get(schema, "enum") && !tp_json_get(schema, "$ref"))
        fault(path, "the schema gives no type", "");
    for (const tp_json *t = types && types->child ? types->child : types; t; t = t->next) {
        is_object |= tp_slice_eq(t->text, object);
        is_array |= tp_slice_eq(t->text, array);
        if (t == types)
            break;
    }
    if (is_object && !tp_json_get(schema, "additionalProperties"))
        fault(path, "the schema leaves open what is in the object", "");
    if (is_array && !tp_json_get(schema, "items"))
        fault(path, "the schema leaves open what is in the list", "");
    for (int g = 0; g < 3; g++) {
        const tp_json *group = tp_json_get(schema, groups[g]);
        for (const tp_json *v = group ? group->child : NULL; v; v = v->next) {
            snprintf(below, sizeof below, "%s.%s", path, v->key.data);
            check_closed(v, below);
        }
    }
    for (int p = 0; p < 2; p++) {
        const tp_json *part = tp_json_get(schema, parts[p]);
        snprintf(below, sizeof below, "%s.*", path);
        if (part && part->type == TP_JSON_OBJECT)
            check_closed(part, below);
    }
}

int json_schema_faults(const tp_json *schema, const tp_json *value)
{
    root = schema;
    n_faults = 0;
    check_closed(schema, "");
    check(schema, value, "");
    return n_faults;
}
