/* test_config.c - configurations: merging, provenance, binding, faults. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/files.h"
#include "base/platform.h"
#include "config/config.h"
#include "text/yaml/yaml.h"

/* A struct and a table of the size of a joke, with one row of every kind. */
typedef struct {
    const char *model_name, *tokenizer_name;
    int64_t batch, sequence, budget, late_by;
    double lr, clip;
    tp_f64_list betas;
    tp_str_list passes;
    int precision;
    bool packing;
    const tp_json *scheduler;
    const char *prompt_file;
} options;

#define AT(member) offsetof(options, member)

static const tp_option table[] = {
    {.name = "policy.model_name",
     .type = TP_OPT_STRING,
     .offset = AT(model_name),
     .default_value = "\?\?\?",
     .doc = "Folder of the model."},
    {.name = "policy.tokenizer.name",
     .type = TP_OPT_STRING,
     .offset = AT(tokenizer_name),
     .default_value = "${policy.model_name}"},
    {.name = "policy.train_global_batch_size",
     .type = TP_OPT_INT,
     .offset = AT(batch),
     .default_value = "32",
     .min = 1,
     .max = 1e9},
    {.name = "policy.max_total_sequence_length",
     .type = TP_OPT_INT,
     .offset = AT(sequence),
     .default_value = "1024",
     .min = 1,
     .max = INFINITY},
    {.name = "policy.max_grad_norm",
     .type = TP_OPT_FLOAT,
     .offset = AT(clip),
     .default_value = "1.0",
     .max = INFINITY,
     .nullable = true,
     .doc = "Clip gradients to this norm; a|b."},
    {.name = "policy.precision",
     .type = TP_OPT_ENUM,
     .offset = AT(precision),
     .default_value = "bfloat16",
     .choices = "float32|bfloat16"},
    {.name = "policy.optimizer.kwargs.lr",
     .type = TP_OPT_FLOAT,
     .offset = AT(lr),
     .default_value = "5.0e-6",
     .max = 10},
    {.name = "policy.optimizer.kwargs.betas",
     .type = TP_OPT_FLOAT_LIST,
     .offset = AT(betas),
     .default_value = "[0.9, 0.98]",
     .max = 1},
    {.name = "policy.sequence_packing.enabled",
     .type = TP_OPT_BOOL,
     .offset = AT(packing),
     .default_value = "true"},
    {.name = "policy.sequence_packing.train_mb_tokens",
     .type = TP_OPT_INT,
     .offset = AT(budget),
     .default_value = "${mul:${policy.max_total_sequence_length}, 2}"},
    {.name = "policy.scheduler", .type = TP_OPT_SECTION, .offset = AT(scheduler)},
    {.name = "policy.megatron_cfg",
     .type = TP_OPT_SECTION,
     .offset = TP_OPT_NOT_STORED,
     .ignored = true,
     .doc = "One reason."},
    {.name = "policy.megatron_cfg.fp8.enabled",
     .type = TP_OPT_SECTION,
     .offset = TP_OPT_NOT_STORED,
     .ignored = true,
     .accepted = "false|null",
     .when = "policy.megatron_cfg.enabled",
     .doc = "Nothing has 8 bits."},
    {.name = "policy.megatron_cfg.ranks",
     .type = TP_OPT_SECTION,
     .offset = TP_OPT_NOT_STORED,
     .default_value = "1",
     .ignored = true,
     .when = "policy.megatron_cfg.enabled",
     .doc = "One process."},
    {.name = "policy.prompt_file",
     .type = TP_OPT_STRING,
     .offset = AT(prompt_file),
     .is_path = true},
    {.name = "loss_fn",
     .type = TP_OPT_SECTION,
     .offset = TP_OPT_NOT_STORED,
     .belongs_to = "another kind"},
    {.name = "engine.disable_passes",
     .type = TP_OPT_STRING_LIST,
     .offset = AT(passes),
     .default_value = "[]"},
    {.name = "engine.late_by", .type = TP_OPT_INT, .offset = AT(late_by)},
    {.name = "logger.wandb_enabled",
     .type = TP_OPT_BOOL,
     .offset = TP_OPT_NOT_STORED,
     .default_value = "false",
     .ignored = true,
     .doc = "Another."},
};

static char root[64];
static tp_config *config;
static options o;
static tp_error err;

static int enter(void **state)
{
    snprintf(root, sizeof root, "/tmp/temper-config-XXXXXX");
    memset(&err, 0, sizeof err);
    return !mkdtemp(root) || chdir(root) != 0 || tp_dir_make("recipes", NULL) != TP_OK;
}

static int leave(void **state)
{
    tp_config_release(config);
    config = NULL;
    return chdir("/") != 0 || tp_dir_remove(root, NULL) != TP_OK;
}

static void put(const char *path, const char *text)
{
    assert_int_equal(tp_file_write_atomic(path, text, strlen(text), NULL), TP_OK);
}

static void load(const char *path)
{
    tp_config_release(config);
    config = NULL;
    if (tp_config_load(&config, path, &err) != TP_OK)
        fail_msg("%s", err.message);
}

static void override(const char *text)
{
    if (tp_config_override(config, text, &err) != TP_OK)
        fail_msg("%s", err.message);
}

static tp_status bind(void) { return tp_config_bind(config, table, TP_COUNTOF(table), &o, &err); }

static void bind_well(void)
{
    if (bind() != TP_OK)
        fail_msg("%s", err.message);
}

static void expect_bind_error(const char *message)
{
    assert_int_equal(bind(), TP_ERR_CONFIG);
    assert_string_equal(err.message, message);
}

static void expect_load_error(const char *path, const char *message)
{
    tp_config *none = NULL;
    assert_true(tp_config_load(&none, path, &err) != TP_OK);
    assert_null(none);
    assert_string_equal(err.message, message);
}

static void put_base(void)
{
    put("recipes/base.yaml", "policy:\n"
                             "  model_name: \?\?\?\n"
                             "  train_global_batch_size: 8\n"
                             "  optimizer:\n"
                             "    kwargs: {lr: 1e-5, betas: [0.9, 0.95]}\n"
                             "  scheduler:\n"
                             "    - name: LinearLR\n"
                             "      steps: 10\n"
                             "    - name: ConstantLR\n");
}

static void defaults_fill_an_empty_configuration(void **state)
{
    load(NULL);
    override("policy.model_name=tiny");
    bind_well();

    assert_string_equal(o.model_name, "tiny");
    assert_string_equal(o.tokenizer_name, "tiny");
    assert_int_equal(o.batch, 32);
    assert_true(o.lr == 5e-6);
    assert_true(o.clip == 1.0);
    assert_int_equal(o.precision, 1);
    assert_int_equal(o.betas.n, 2);
    assert_true(o.betas.v[1] == 0.98);
    assert_true(o.packing);
    assert_int_equal(o.budget, 2048);
    assert_int_equal(o.passes.n, 0);
    assert_null(o.scheduler);
    assert_true(o.late_by == TP_OPT_UNSET_INT);
    assert_string_equal(tp_config_origin(config, "policy.precision"), "default");
    assert_string_equal(tp_config_origin(config, "policy.model_name"), "command line");
    assert_null(tp_config_origin(config, "policy.nothing"));
}

static void recipes_inherit(void **state)
{
    put_base();
    put("recipes/child.yaml", "defaults: base.yaml\n"
                              "policy:\n"
                              "  model_name: small\n"
                              "  optimizer: {kwargs: {lr: 2e-5}}\n");
    load("recipes/child.yaml");
    bind_well();

    assert_string_equal(o.model_name, "small");
    assert_true(o.lr == 2e-5);
    assert_true(o.betas.v[1] == 0.95);
    assert_int_equal(o.batch, 8);
    assert_int_equal(o.scheduler->n, 2);
    assert_string_equal(tp_config_origin(config, "policy.model_name"), "recipes/child.yaml:3");
    assert_string_equal(tp_config_origin(config, "policy.optimizer.kwargs.betas"),
                        "recipes/base.yaml:5");
    assert_string_equal(tp_config_origin(config, "policy.optimizer.kwargs.lr"),
                        "recipes/child.yaml:4");
}

static void several_parents_merge_in_order(void **state)
{
    put("recipes/a.yaml", "policy: {model_name: a, train_global_batch_size: 1}\n");
    put("recipes/b.yaml", "policy: {model_name: b, max_grad_norm: 2}\n");
    put("recipes/c.yaml", "defaults: [a.yaml, ./b.yaml]\npolicy: {precision: float32}\n");
    load("recipes/c.yaml");
    bind_well();

    assert_string_equal(o.model_name, "b");
    assert_int_equal(o.batch, 1);
    assert_true(o.clip == 2);
    assert_int_equal(o.precision, 0);
    assert_string_equal(tp_config_origin(config, "policy.max_grad_norm"), "recipes/b.yaml:1");
}

static void an_override_mark_replaces_a_section(void **state)
{
    put_base();
    put("recipes/child.yaml", "defaults: base.yaml\n"
                              "policy:\n"
                              "  model_name: m\n"
                              "  optimizer:\n"
                              "    kwargs: {_override_: true, lr: 1}\n");
    load("recipes/child.yaml");
    bind_well();

    assert_true(o.lr == 1);
    /* The parent's betas went with the section; the default is back. */
    assert_true(o.betas.v[1] == 0.98);
    assert_null(tp_config_find(config, "policy.optimizer.kwargs._override_"));
}

static void expect_json(const tp_json *value, const char *json)
{
    tp_buf out = {0};
    tp_json_w w;
    tp_json_w_init(&w, &out, 0);
    tp_json_w_value(&w, value);
    assert_string_equal(tp_buf_str(&out), json);
    tp_buf_release(&out);
}

static void expect_tree(const char *path, const char *json)
{
    load(path);
    expect_json(tp_config_resolved(config), json);
}

/* All as OmegaConf.merge does. */
static void a_section_that_is_a_reference_keeps_its_members(void **state)
{
    put("recipes/base.yaml",
        "t: {p: 1, q: \"${.p}\"}\nv: ${t}\nw: \"${ v }\"\nx: ${y}\ny: ${x}\n"
        "d: {l: [1], m: \"${.l}\", s: \"${d.r.u}\", r: \"${z}\"}\nz: {u: {k: 1}, o: \"${z}\"}\n");
    put("recipes/child.yaml", "defaults: base.yaml\nw: {p: 2}\nt: {p: 3}\nv: {a: 1}\nx: {a: 1}\n"
                              "d: {m: [2], s: {a: 1}}\nz: {o: {a: 1}}\n");
    expect_tree("recipes/child.yaml",
                "{\"t\":{\"p\":3,\"q\":\"${.p}\"},\"v\":{\"p\":3,\"q\":\"${.p}\",\"a\":1},"
                "\"w\":{\"p\":2,\"q\":\"${.p}\"},\"x\":{\"a\":1},\"y\":\"${x}\","
                "\"d\":{\"l\":[1],\"m\":[2],\"s\":{\"k\":1,\"a\":1},\"r\":\"${z}\"},"
                "\"z\":{\"u\":{\"k\":1},\"o\":{\"a\":1}}}");
    put("recipes/base.yaml", "n: t\nt: {p: 1}\nv: ${${n}}\n");
    put("recipes/child.yaml", "defaults: base.yaml\nv: {a: 1}\n");
    expect_load_error("recipes/child.yaml",
                      "recipes/base.yaml:3: v: a recipe that inherits from this one sets members "
                      "of a section that is named by ${ within ${; write the name out");
}

/* A recipe of Temper asks for a value; for OmegaConf what is there stays. */
static void what_is_missing_in_an_heir_is_asked_for(void **state)
{
    put("recipes/base.yaml", "a: 1\nb: {c: 1}\nd: null\nf: ${b}\n");
    put("recipes/child.yaml",
        "defaults: base.yaml\na: \?\?\?\nb: \?\?\?\nd: \?\?\?\ne: \?\?\?\nf: \?\?\?\n");
    expect_tree(
        "recipes/child.yaml",
        "{\"a\":\"\?\?\?\",\"b\":\"\?\?\?\",\"d\":\"\?\?\?\",\"f\":\"\?\?\?\",\"e\":\"\?\?\?\"}");
    tp_config_release(config);
    config = NULL;
    assert_int_equal(tp_config_load_old(&config, "recipes/child.yaml", &err), TP_OK);
    expect_json(tp_config_resolved(config),
                "{\"a\":1,\"b\":{\"c\":1},\"d\":null,\"f\":{\"c\":1},\"e\":\"\?\?\?\"}");
}

static void lists_and_mappings_do_not_merge(void **state)
{
    put("recipes/base.yaml", "a: {b: 1}\nc: [1]\n");
    put("recipes/child.yaml", "defaults: base.yaml\na: [1]\n");
    expect_load_error("recipes/child.yaml",
                      "recipes/base.yaml:1: a: a mapping, with which a list (recipes/child.yaml:2) "
                      "cannot be merged; write the same in both");
    put("recipes/child.yaml", "defaults: base.yaml\nc: {b: 1}\n");
    expect_load_error("recipes/child.yaml",
                      "recipes/base.yaml:2: c: a list, with which a mapping "
                      "(recipes/child.yaml:2) cannot be merged; write the same in both, or "
                      "_override_: true in the mapping");
    load("recipes/base.yaml");
    assert_int_equal(tp_config_override(config, "a=[2]", &err), TP_ERR_CONFIG);
    assert_string_equal(err.message,
                        "recipes/base.yaml:1: a: a mapping, with which a list (command "
                        "line) cannot be merged; write the same in both");
    put("recipes/child.yaml", "defaults: base.yaml\na: 1\nc: {_override_: true, b: 1}\n");
    expect_tree("recipes/child.yaml", "{\"a\":1,\"c\":{\"b\":1}}");
}

static void inheritance_goes_wrong_clearly(void **state)
{
    put("recipes/a.yaml", "defaults: b.yaml\n");
    put("recipes/b.yaml", "\ndefaults: a.yaml\n");
    expect_load_error("recipes/a.yaml",
                      "recipes/a.yaml:1: defaults: recipes/b.yaml:2: defaults: recipes/a.yaml "
                      "inherits from itself; take it out of one `defaults:`");
    put("recipes/c.yaml", "defaults: [gone.yaml]\n");
    expect_load_error("recipes/c.yaml", "recipes/c.yaml:1: defaults: cannot open "
                                        "recipes/gone.yaml: no such file; check the path");
    put("recipes/d.yaml", "defaults: {a: 1}\n");
    expect_load_error(
        "recipes/d.yaml",
        "recipes/d.yaml:1: defaults takes a path or a list of paths to other recipes");
    put("recipes/e.yaml", "- 1\n");
    expect_load_error(
        "recipes/e.yaml",
        "recipes/e.yaml:1: a recipe is a mapping of keys to values, as in \"policy:\"");
    put("recipes/f.yaml", "a: [\n");
    expect_load_error("recipes/f.yaml",
                      "recipes/f.yaml:2:1: flow sequence without a closing bracket");
    expect_load_error("gone.yaml", "cannot open gone.yaml: no such file; check the path");
}

static void overrides_set_add_and_delete(void **state)
{
    put_base();
    load("recipes/base.yaml");
    override("policy.model_name=m=n");
    override("++policy.precision=float32");
    override("+policy.max_grad_norm=null");
    override("~policy.train_global_batch_size");
    override("policy.optimizer.kwargs.betas=[0.5,0.6]");
    override("policy.scheduler.0.steps=99");
    override("~policy.scheduler.1");
    override("engine.disable_passes=[fuse, cse]");
    override("policy.optimizer={kwargs: {lr: 3e-4}}");
    bind_well();

    assert_string_equal(o.model_name, "m=n");
    assert_int_equal(o.precision, 0);
    assert_true(isnan(o.clip));
    assert_int_equal(o.batch, 32);
    assert_true(o.betas.v[0] == 0.5);
    assert_true(o.lr == 3e-4);
    assert_int_equal(o.scheduler->n, 1);
    assert_string_equal(tp_json_get(tp_json_at(o.scheduler, 0), "steps")->text.data, "99");
    assert_int_equal(o.passes.n, 2);
    assert_string_equal(o.passes.v[1], "cse");
    assert_string_equal(tp_config_origin(config, "policy.scheduler.0.steps"), "command line");
    assert_string_equal(tp_config_origin(config, "policy.scheduler.0.name"), "recipes/base.yaml:7");
}

static void override_values_are_yaml_scalars(void **state)
{
    load(NULL);
    override("policy.model_name='7'");
    override("policy.tokenizer.name=");
    override("engine.disable_passes=a: b #c");
    bind_well();

    assert_string_equal(o.model_name, "7");
    assert_string_equal(o.tokenizer_name, "");
    assert_int_equal(o.passes.n, 1);
    assert_string_equal(o.passes.v[0], "a: b #c");
}

/* All as Hydra reads them. */
static void a_key_of_an_override_ends_at_its_colon(void **state)
{
    static const char *const values[][2] = {
        {"{a:false,b:{c:2,d: 3},e:[x:y,{f:1}]}",
         "{\"a\":false,\"b\":{\"c\":2,\"d\":3},\"e\":[\"x:y\",{\"f\":1}]}"},
        {"{a:\"x,y:z\",'b:c':1, d:http://x:1}", "{\"a\":\"x,y:z\",\"b:c\":1,\"d\":\"http://x:1\"}"},
        {"{a: \"}\\\":1\", b:it's, c:'it''s:1'}",
         "{\"a\":\"}\\\":1\",\"b\":\"it's\",\"c\":\"it's:1\"}"},
        {"[a:b, yes, 'c']", "[\"a:b\",\"yes\",\"c\"]"},
    };
    for (size_t i = 0; i < TP_COUNTOF(values); i++) {
        char text[200];
        snprintf(text, sizeof text, "x=%s", values[i][0]);
        load(NULL);
        override(text);
        expect_json(tp_config_find(config, "x"), values[i][1]);
    }
}

static void bad_overrides_are_explained(void **state)
{
    static const char *const cases[][2] = {
        {"policy", "override \"policy\" has no '='; write section.key=value"},
        {"=3", "override \"=3\": write it as section.key=value, without spaces around '='"},
        {"a..b=3", "override \"a..b=3\": write it as section.key=value, without spaces around '='"},
        {"a.b =3", "override \"a.b =3\": write it as section.key=value, without spaces around '='"},
        {"a.b=[1", "override \"a.b=[1\": value:2:1: flow sequence without a closing bracket"},
        {"~policy.nothing", "override \"~policy.nothing\": there is no such key to take out"},
        {"~policy.x=1", "override \"~policy.x=1\": ~ takes a key alone"},
        {"policy.train_global_batch_size.x=1",
         "override \"policy.train_global_batch_size.x=1\": train_global_batch_size is a single "
         "value (recipes/base.yaml:3), not a section"},
        {"policy.scheduler.2.name=x",
         "override \"policy.scheduler.2.name=x\": the list has 2 entries, numbered from 0"},
        {"policy.scheduler.first=x",
         "override \"policy.scheduler.first=x\": the list has 2 entries, numbered from 0"},
    };
    put_base();
    load("recipes/base.yaml");
    for (size_t i = 0; i < TP_COUNTOF(cases); i++) {
        assert_int_equal(tp_config_override(config, cases[i][0], &err), TP_ERR_CONFIG);
        assert_string_equal(err.message, cases[i][1]);
    }
}

/* What the settings make of recipes/base.yaml, and what their heir is. */
static void expect_same(const char *const *settings)
{
    size_t n = 0;
    tp_buf here = {0}, there = {0}, heir = {0};
    load("recipes/base.yaml");
    for (; settings[n]; n++)
        override(settings[n]);
    bind_well();
    tp_yaml_write_remarked(tp_config_resolved(config), &here, NULL, NULL);

    if (tp_config_heir("../recipes/base.yaml", settings, n, table, TP_COUNTOF(table), &heir,
                       &err) != TP_OK)
        fail_msg("%s", err.message);
    put("out/heir.yaml", heir.data);
    load("out/heir.yaml");
    bind_well();
    tp_yaml_write_remarked(tp_config_resolved(config), &there, NULL, NULL);
    if (strcmp(here.data, there.data) != 0)
        fail_msg("%s:\n%s\n%s\n%s", settings[1], here.data, heir.data, there.data);
    tp_buf_release(&here);
    tp_buf_release(&there);
    tp_buf_release(&heir);
}

static void an_heir_is_what_the_settings_make(void **state)
{
    static const char name[] = "policy.model_name=m";
    static const char *const lines[][6] = {
        {name, "policy.tokenizer.name=a #b"},
        {name, "policy.tokenizer.name=runs/a b: #c"},
        {name, "policy.tokenizer.name=- 'x\" \\n %@`{"},
        {name, "policy.tokenizer.name="},
        {name, "policy.tokenizer.name=010"},
        {name, "policy.tokenizer.name=yes"},
        {name, "policy.tokenizer.name='null'"},
        {name, "policy.tokenizer.name=${policy.precision}: \\${x}"},
        {name, "policy.tokenizer.name=\xc3\xa9\xe2\x80\xa8\tx"},
        {name, "engine.disable_passes=['010', 15, 2.5, off_, \"a: b\", null_]"},
        {name, "policy.optimizer={kwargs: {lr: 1e-3}}", "+policy.optimizer.kwargs.lr=.125"},
        {name, "policy.optimizer.kwargs.betas=[.5, 1e-3]", "policy.optimizer.kwargs={lr: 0.5}"},
        {name, "++policy.optimizer.kwargs={_override_: true, lr: 0.5}"},
        {name, "policy.optimizer.kwargs=null", "policy.optimizer.kwargs.lr=0.5"},
        {name, "policy.optimizer=null", "policy.optimizer={}", "policy.optimizer.kwargs.lr=1"},
        {name, "policy.optimizer={}", "policy.max_grad_norm=null"},
        {name, "policy.max_grad_norm=.inf"},
        {name, "policy.scheduler=null"},
        {name, "policy.scheduler=[]"},
        {name, "policy.scheduler=[{name: \"a: b\", _override_: true}, [1, [2]], {}]"},
        {name,
         "policy.scheduler={_override_: true, \"a b: c\": \"off\", '010': 0x10, d: [yes_, \"no\"]}",
         "policy.scheduler.x=3"},
        {name, "policy.scheduler=5", "policy.scheduler={a: 1}", "policy.scheduler.b=2"},
        {name, NULL},
    };
    put_base();
    assert_int_equal(tp_dir_make("out", NULL), TP_OK);
    for (size_t i = 0; i < TP_COUNTOF(lines); i++)
        expect_same(lines[i]);
}

static void an_heir_inherits_and_nests(void **state)
{
    static const char *const settings[] = {"policy.train_global_batch_size=4", "+engine.late_by=2",
                                           "policy.sequence_packing.enabled=true",
                                           "policy.train_global_batch_size=8",
                                           "engine.disable_passes=[cse, dce]"};
    tp_buf out = {0};
    assert_int_equal(
        tp_config_heir("/recipes/a b.yaml", settings, 5, table, TP_COUNTOF(table), &out, &err),
        TP_OK);
    assert_string_equal(tp_buf_str(&out), "defaults: \"/recipes/a b.yaml\"\n"
                                          "policy:\n"
                                          "  train_global_batch_size: 8\n"
                                          "  sequence_packing:\n"
                                          "    enabled: true\n"
                                          "engine:\n"
                                          "  late_by: 2\n"
                                          "  disable_passes: [cse, dce]\n");
    tp_buf_release(&out);
}

static void an_heir_keeps_the_spelling_of_texts(void **state)
{
    static const char *const settings[] = {"policy.model_name=1e5",
                                           "engine.disable_passes=[1e5, 12]"};
    tp_buf heir = {0};
    assert_int_equal(tp_config_heir(NULL, settings, 2, table, TP_COUNTOF(table), &heir, &err),
                     TP_OK);
    put("heir.yaml", heir.data);
    load("heir.yaml");
    bind_well();
    assert_string_equal(o.model_name, "1e5");
    assert_string_equal(o.passes.v[0], "1e5");
    tp_buf_release(&heir);
}

static void an_heir_names_files_from_the_root(void **state)
{
    static const char *const found[] = {"policy.prompt_file=sub/p.txt"};
    static const char *const lost[] = {"policy.prompt_file=sub/q.txt"};
    tp_buf out = {0}, wanted = {0};
    assert_int_equal(tp_dir_make("sub", NULL), TP_OK);
    put("sub/p.txt", "");
    assert_int_equal(tp_config_heir(NULL, found, 1, table, TP_COUNTOF(table), &out, &err), TP_OK);
    tp_buf_addf(&wanted, "policy:\n  prompt_file: \"%s/sub/p.txt\"\n", root);
    if (!strchr(out.data, '"')) { /* a short one needs no quotes */
        tp_buf_clear(&wanted);
        tp_buf_addf(&wanted, "policy:\n  prompt_file: %s/sub/p.txt\n", root);
    }
    assert_string_equal(out.data, wanted.data);
    tp_buf_clear(&out);
    assert_int_equal(tp_config_heir("r.yaml", lost, 1, table, TP_COUNTOF(table), &out, &err),
                     TP_OK);
    assert_string_equal(out.data, "defaults: r.yaml\npolicy:\n  prompt_file: sub/q.txt\n");
    tp_buf_release(&out);
    tp_buf_release(&wanted);
}

static void what_an_heir_cannot_say_is_refused(void **state)
{
    static const char *const gone[] = {"~policy.scheduler"}, *const element[] = {"a.0.b=1"},
                             *const broken[] = {"a=[1"};
    tp_buf out = {0};
    assert_int_equal(tp_config_heir(NULL, gone, 1, NULL, 0, &out, &err), TP_ERR_ARG);
    assert_int_equal(tp_config_heir(NULL, element, 1, NULL, 0, &out, &err), TP_ERR_ARG);
    assert_string_equal(err.message, "'a.0.b=1' cannot be said in a recipe of its own; put it into "
                                     "the configuration");
    assert_int_equal(tp_config_heir(NULL, broken, 1, NULL, 0, &out, &err), TP_ERR_CONFIG);
    tp_buf_release(&out);
}

static void unknown_keys_name_the_nearest(void **state)
{
    put("r.yaml", "policy:\n  model_name: m\n  max_grad_nrom: 2\n");
    load("r.yaml");
    expect_bind_error(
        "r.yaml:3: unknown key policy.max_grad_nrom; did you mean policy.max_grad_norm?");
}

static void unknown_sections_name_the_nearest(void **state)
{
    put("r.yaml", "policy:\n  model_name: m\npolcy:\n  max_grad_norm: 2\n");
    load("r.yaml");
    expect_bind_error("r.yaml:3: unknown key polcy; did you mean policy?");
    put("r.yaml", "policy:\n  model_name: m\n  optimzer:\n    name: sgd\n");
    load("r.yaml");
    expect_bind_error("r.yaml:3: unknown key policy.optimzer; did you mean policy.optimizer?");
}

static void a_known_word_elsewhere_is_suggested(void **state)
{
    put("r.yaml", "policy:\n  model_name: m\n  lr: 2\n");
    load("r.yaml");
    expect_bind_error("r.yaml:3: unknown key policy.lr; did you mean policy.optimizer.kwargs.lr?");
}

static void without_a_near_key_the_known_ones_are_listed(void **state)
{
    load(NULL);
    override("policy.model_name=m");
    override("engine.zzzzzz.y=1");
    expect_bind_error("command line: unknown key engine.zzzzzz; known keys in engine are "
                      "disable_passes, late_by");
    load(NULL);
    override("policy.model_name=m");
    override("qqqqqqqqq=1");
    expect_bind_error("command line: unknown key qqqqqqqqq; known keys at the top are policy, "
                      "loss_fn, engine");
}

static void required_values_must_be_set(void **state)
{
    put_base();
    load("recipes/base.yaml");
    expect_bind_error("recipes/base.yaml:2: policy.model_name: must be set (it is \?\?\?); write "
                      "it in the recipe or add policy.model_name=... to the command line");
    load(NULL);
    expect_bind_error("default: policy.model_name: must be set (it is \?\?\?); write it in the "
                      "recipe or add policy.model_name=... to the command line");
}

static void values_are_checked(void **state)
{
    static const char *const cases[][2] = {
        {"policy.train_global_batch_size=2.5",
         "command line: policy.train_global_batch_size: 2.5 is not a whole number"},
        {"policy.train_global_batch_size=many",
         "command line: policy.train_global_batch_size: \"many\" is not a whole number"},
        {"policy.train_global_batch_size=0",
         "command line: policy.train_global_batch_size: 0 is out of range; expected 1 to "
         "1000000000"},
        {"policy.max_total_sequence_length=0",
         "command line: policy.max_total_sequence_length: 0 is too small; expected at least 1"},
        {"policy.train_global_batch_size=null",
         "command line: policy.train_global_batch_size: null is no value for this key; its "
         "default is 32"},
        {"policy.optimizer.kwargs.lr=fast",
         "command line: policy.optimizer.kwargs.lr: \"fast\" is not a number"},
        {"policy.optimizer.kwargs.lr=.nan",
         "command line: policy.optimizer.kwargs.lr: NaN is not a number"},
        {"policy.optimizer.kwargs.lr=-1",
         "command line: policy.optimizer.kwargs.lr: -1 is out of range; expected 0 to 10"},
        {"policy.optimizer.kwargs.betas=[0.9, 1.5]",
         "command line: policy.optimizer.kwargs.betas.1: 1.5 is out of range; expected 0 to 1"},
        {"policy.precision=fp8",
         "command line: policy.precision: \"fp8\" is not one of float32, bfloat16"},
        {"policy.sequence_packing.enabled=yes",
         "command line: policy.sequence_packing.enabled: \"yes\" is not true or false"},
        {"policy.model_name=\"a\\0b\"",
         "command line: policy.model_name: the text contains a NUL character"},
        {"policy.model_name=[a]", "command line: policy.model_name: a list is not text"},
        {"policy.optimizer=adam",
         "command line: policy.optimizer: it has keys below it and takes no value; they do, such "
         "as policy.optimizer.kwargs.lr"},
    };
    for (size_t i = 0; i < TP_COUNTOF(cases); i++) {
        load(NULL);
        override("policy.model_name=m");
        override(cases[i][0]);
        expect_bind_error(cases[i][1]);
    }
}

static void whole_numbers_may_be_written_with_exponents(void **state)
{
    load(NULL);
    override("policy.model_name=m");
    override("policy.train_global_batch_size=1e3");
    bind_well();
    assert_int_equal(o.batch, 1000);
}

static void text_takes_numbers(void **state)
{
    load(NULL);
    override("policy.model_name=2024");
    override("policy.tokenizer.name=true");
    bind_well();
    assert_string_equal(o.model_name, "2024");
    assert_string_equal(o.tokenizer_name, "true");
}

/* Every reference form, seen through the section that keeps any subtree. */
static void references_are_resolved(void **state)
{
    put("r.yaml",
        "policy:\n"
        "  model_name: m\n"
        "  max_total_sequence_length: 512\n"
        "  scheduler:\n"
        "    a: ${policy.max_total_sequence_length}\n"
        "    b: ${.a}\n"
        "    c: ${..train_global_batch_size}\n"
        "    d: x-${.a}-${policy.precision}\n"
        "    e: ${mul:${.a}, 3}\n"
        "    f: ${div:7, 2}\n"
        "    g: ${div:8,2}\n"
        "    h: ${add:${mul:2,3},${max:1, 5}}\n"
        "    i: ${sub:0.5, 1e-1}\n"
        "    j: [\"${policy.optimizer.kwargs.betas.1}\"]\n"
        "    k: ${policy.optimizer}\n"
        "    l: \\${not this} ${.a}\n"
        "    m: ${policy.${.n}}\n"
        "    n: precision\n"
        "    o: ${.k.kwargs.lr}\n"
        "    p: [\"${add:0.5, 1}\", \"${mul:0.5,3}\", \"${max:0.5,0.25}\", \"${sub:5,7}\"]\n"
        "    q: ${policy.sequence_packing.enabled} ${engine.late_by} ${ policy.precision }\n");
    load("r.yaml");
    bind_well();

    tp_buf out = {0};
    tp_json_w w;
    tp_json_w_init(&w, &out, 0);
    tp_json_w_value(&w, o.scheduler);
    assert_string_equal(
        out.data,
        "{\"a\":512,\"b\":512,\"c\":32,\"d\":\"x-512-bfloat16\",\"e\":1536,\"f\":3.5,\"g\":4.0,"
        "\"h\":11,\"i\":0.4,\"j\":[0.98],\"k\":{\"kwargs\":{\"lr\":5.0e-6,\"betas\":[0.9,0.98]}},"
        "\"l\":\"${not this} 512\",\"m\":\"bfloat16\",\"n\":\"precision\",\"o\":5.0e-6,"
        "\"p\":[1.5,1.5,0.5,-2],\"q\":\"True None bfloat16\"}");
    assert_int_equal(o.budget, 1024);
    assert_string_equal(tp_config_origin(config, "policy.scheduler.a"), "r.yaml:5");
    tp_buf_release(&out);
}

/* All as OmegaConf does with NeMo RL's functions. */
static void values_in_text_are_spelled_as_python_does(void **state)
{
    put("r.yaml",
        "a: [1e-5, 1.0e-5, 1e5, 1.50, 5, .inf, .nan, 1e16, 123456789012345678, 0.0001]\n"
        "b: v${a.0} v${a.1} v${a.2} v${a.3} v${a.4} v${a.5} v${a.6} v${a.7} v${a.8} v${a.9}\n"
        "c: ${div:6,2} ${mul:${div:6,2},2} ${mul:0.5,2} ${max:2,1.5} ${max:2,2.5}\n"
        "d: [\"${mul:3,4}\", \"${max:1.0,2}\", \"${add:1.5,1.5}\"]\n");
    load("r.yaml");
    assert_int_equal(bind(), TP_ERR_CONFIG); /* of keys, after resolving */
    expect_json(tp_config_find(config, "b"), "\"v1e-05 v1e-05 v100000.0 v1.5 v5 vinf vnan v1e+16 "
                                             "v123456789012345678 v0.0001\"");
    expect_json(tp_config_find(config, "c"), "\"3.0 6.0 1.0 2 2.5\"");
    expect_json(tp_config_find(config, "d"), "[12,2,3.0]");
}

static void a_section_may_refer_to_another(void **state)
{
    put("r.yaml", "policy:\n"
                  "  model_name: m\n"
                  "  tokenizer: {name: '${policy.optimizer.kwargs.lr}'}\n"
                  "  optimizer: ${policy.scheduler.opt}\n"
                  "  scheduler: {opt: {kwargs: {lr: 0.25}}}\n");
    load("r.yaml");
    bind_well();
    assert_true(o.lr == 0.25);
    assert_true(o.betas.v[0] == 0.9);
    assert_string_equal(o.tokenizer_name, "0.25");
}

static void bad_references_are_explained(void **state)
{
    static const char *const cases[][2] = {
        {"policy.scheduler=${policy.precisoin}",
         "command line: policy.scheduler: ${policy.precisoin} is not set anywhere; did you mean "
         "precision?"},
        {"policy.scheduler=${....x}",
         "command line: policy.scheduler: ${....x} goes above the top"},
        {"policy.scheduler=${policy.scheduler}",
         "command line: policy.scheduler: ${policy.scheduler} refers back to this value; break "
         "the circle"},
        {"policy.scheduler=${policy}",
         "command line: policy.scheduler: ${policy} refers back to this value; break the circle"},
        {"policy.scheduler=${oc.decode:HOME}",
         "command line: policy.scheduler: unknown function ${oc.decode:...}; known are add, sub, "
         "mul, div, max, oc.env"},
        {"policy.scheduler=${mul:2}",
         "command line: policy.scheduler: ${mul:...} takes two numbers, as in ${mul:4, 2}"},
        {"policy.scheduler=${mul:2,3,4}",
         "command line: policy.scheduler: ${mul:...} takes two numbers, as in ${mul:4, 2}"},
        {"policy.scheduler=${mul:2,x}",
         "command line: policy.scheduler: ${mul:...} takes numbers, and \"x\" is none"},
        {"policy.scheduler=${mul:2, null}",
         "command line: policy.scheduler: ${mul:...} takes numbers, and \"null\" is null"},
        {"policy.scheduler=${div:2,0}",
         "command line: policy.scheduler: ${div:2,0} has no finite value"},
        {"policy.scheduler=${policy.precision",
         "command line: policy.scheduler: ${ is never closed; a plain ${ is written \\${"},
        {"policy.scheduler=x${policy.optimizer}",
         "command line: policy.scheduler: ${policy.optimizer} is a section and cannot be put into "
         "text"},
        {"policy.scheduler=${}", "command line: policy.scheduler: ${} names nothing"},
    };
    for (size_t i = 0; i < TP_COUNTOF(cases); i++) {
        load(NULL);
        override("policy.model_name=m");
        override(cases[i][0]);
        expect_bind_error(cases[i][1]);
    }
}

/* What is missing is named, not what is computed from it. */
static void a_function_of_what_is_missing_is_missing(void **state)
{
    load(NULL);
    override("policy.model_name=???");
    override("policy.scheduler=${mul:2, ${policy.model_name}}");
    expect_bind_error("command line: policy.model_name: must be set (it is ?\?\?); write it in the "
                      "recipe or add policy.model_name=... to the command line");
}

static void circles_over_several_values_are_found(void **state)
{
    load(NULL);
    override("policy.model_name=${policy.tokenizer.name}");
    expect_bind_error("default: policy.tokenizer.name: ${policy.model_name} refers back to this "
                      "value; break the circle");
    load(NULL);
    override("policy.model_name=m");
    override("policy.scheduler={a: {b: '${policy.scheduler.a}'}}");
    expect_bind_error("command line: policy.scheduler.a.b: ${policy.scheduler.a} refers back to "
                      "this value; break the circle");
}

static void chains_are_bounded(void **state)
{
    load(NULL);
    override("policy.model_name=m");
    for (int i = 0; i < 70; i++) {
        char text[100];
        snprintf(text, sizeof text, "policy.scheduler.b%d=${.b%d}", i, i + 1);
        override(text);
    }
    override("policy.scheduler.b70=1");
    expect_bind_error("command line: policy.scheduler.b64: interpolations are nested more than 64 "
                      "deep");
}

static void expansion_is_bounded(void **state)
{
    load(NULL);
    override("policy.model_name=m");
    override("policy.scheduler={a: [1,1,1,1,1,1,1,1,1,1]}");
    static const char next[] = "bcdef";
    for (const char *p = next; *p; p++) {
        tp_buf text = {0};
        tp_buf_addf(&text, "policy.scheduler.%c=[", *p);
        for (int i = 0; i < 10; i++)
            tp_buf_addf(&text, "'${policy.scheduler.%c}',", *p - 1);
        tp_buf_addc(&text, ']');
        override(text.data);
        tp_buf_release(&text);
    }
    expect_bind_error("the configuration has more than 20000 values or 64 MiB, interpolations "
                      "expanded; simplify it");
}

static void text_expansion_is_bounded(void **state)
{
    load(NULL);
    override("policy.model_name=m");
    override(
        "policy.scheduler.a=aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa");
    for (char c = 'b'; c < 'm'; c++) {
        char text[200];
        snprintf(text, sizeof text, "policy.scheduler.%c=${.%c}${.%c}${.%c}${.%c}", c, c - 1, c - 1,
                 c - 1, c - 1);
        override(text);
    }
    expect_bind_error("command line: policy.scheduler.h: the text becomes longer than 1048576 "
                      "bytes");
}

static void all_faults_are_reported_at_once(void **state)
{
    put("r.yaml", "policy:\n  max_grad_nrom: 2\n  precision: int8\n  colour: red\n"
                  "  train_global_batch_size: null\n");
    load("r.yaml");
    expect_bind_error(
        "the configuration has 5 faults:\n"
        "  r.yaml:2: unknown key policy.max_grad_nrom; did you mean policy.max_grad_norm?\n"
        "  r.yaml:4: unknown key policy.colour\n"
        "  r.yaml:5: policy.train_global_batch_size: null is no value for this key; its default is "
        "32\n"
        "  r.yaml:3: policy.precision: \"int8\" is not one of float32, bfloat16\n"
        "  default: policy.model_name: must be set (it is \?\?\?); write it in the recipe or add "
        "policy.model_name=... to the command line");
}

/* The words of one are the words of the other, and the meaning is not. */
static void a_key_of_another_meaning_is_not_suggested(void **state)
{
    static const tp_option rows[] = {
        {.name = "grpo.val_at_start", .type = TP_OPT_BOOL, .offset = 0, .default_value = "true"},
        {.name = "grpo.a.top_k", .type = TP_OPT_BOOL, .offset = 0, .default_value = "true"},
        {.name = "grpo.a.top_p", .type = TP_OPT_BOOL, .offset = 0, .default_value = "true"}};
    static const char *const cases[][2] = {
        {"grpo.val_start_at=1", "command line: unknown key grpo.val_start_at; known keys in grpo "
                                "are val_at_start, a"},
        {"grpo.a.top_q=1", "command line: unknown key grpo.a.top_q; known keys in grpo.a are "
                           "top_k, top_p"},
        {"grpo.val_at_strat=1", "command line: unknown key grpo.val_at_strat; did you mean "
                                "grpo.val_at_start?"}};
    for (size_t i = 0; i < TP_COUNTOF(cases); i++) {
        bool target[3];
        load(NULL);
        override(cases[i][0]);
        assert_int_equal(tp_config_bind(config, rows, TP_COUNTOF(rows), target, &err),
                         TP_ERR_CONFIG);
        assert_string_equal(err.message, cases[i][1]);
    }
}

static void values_that_change_the_result_are_refused(void **state)
{
    put("r.yaml", "policy:\n  model_name: m\n"
                  "  megatron_cfg: {enabled: true, fp8: {enabled: true}}\n");
    load("r.yaml");
    expect_bind_error("r.yaml:3: policy.megatron_cfg.fp8.enabled: true is refused, as the result "
                      "would be another: Nothing has 8 bits; set it to false");
    load("r.yaml");
    override("policy.megatron_cfg.enabled=false");
    bind_well();
    load("r.yaml");
    override("policy.megatron_cfg.fp8.enabled=null");
    bind_well();
}

static void a_key_below_counts_while_its_switch_is_on(void **state)
{
    put("r.yaml", "policy:\n  model_name: m\n  megatron_cfg: {enabled: true, ranks: 8}\n");
    load("r.yaml");
    bind_well();
    assert_string_equal(tp_config_notice(config),
                        "keys without effect here, or without all of it:\n"
                        "  One reason: policy.megatron_cfg\n"
                        "  One process: policy.megatron_cfg.ranks");
    load("r.yaml");
    override("policy.megatron_cfg.enabled=false");
    bind_well();
    assert_null(tp_config_notice(config));
    load("r.yaml");
    override("policy.megatron_cfg.ranks=1");
    bind_well();
    assert_string_equal(tp_config_notice(config),
                        "keys without effect here, or without all of it:\n"
                        "  One reason: policy.megatron_cfg");
}

static void a_section_of_another_kind_is_named(void **state)
{
    load(NULL);
    override("policy.model_name=m");
    override("loss_fn.clip=1");
    expect_bind_error("command line: loss_fn is part of another kind");
}

static void values_to_be_set_are_named_together(void **state)
{
    static const tp_option rows[] = {
        {.name = "a", .type = TP_OPT_STRING, .offset = 0, .default_value = "\?\?\?"},
        {.name = "b", .type = TP_OPT_STRING, .offset = 0, .default_value = "\?\?\?"},
        {.name = "c", .type = TP_OPT_STRING, .offset = 0, .default_value = "${a}"}};
    const char *target;
    load(NULL);
    assert_int_equal(tp_config_bind(config, rows, TP_COUNTOF(rows), &target, &err), TP_ERR_CONFIG);
    assert_string_equal(
        err.message, "must be set (they are \?\?\?): a (default), b (default); write them in the "
                     "recipe or add a=... and so on to the command line");
    assert_string_equal(tp_config_missing(config), err.message);
    assert_true(tp_config_is_bound(config));
}

static void files_are_found_beside_the_recipe(void **state)
{
    put("recipes/p.txt", "beside");
    put("recipes/both.txt", "beside");
    put("both.txt", "here");
    put("recipes/r.yaml", "policy: {model_name: m, prompt_file: p.txt}\n");
    load("recipes/r.yaml");
    bind_well();
    assert_string_equal(o.prompt_file, "recipes/p.txt");
    load("recipes/r.yaml");
    override("policy.prompt_file=p.txt"); /* the command line means here */
    bind_well();
    assert_string_equal(o.prompt_file, "p.txt");
    put("recipes/r.yaml", "policy: {model_name: m, prompt_file: both.txt}\n");
    load("recipes/r.yaml");
    bind_well();
    assert_string_equal(o.prompt_file, "both.txt");
    put("recipes/r.yaml", "policy: {model_name: m, prompt_file: gone.txt}\n");
    load("recipes/r.yaml");
    bind_well();
    tp_buf text = {0};
    tp_config_check_path(config, "policy.prompt_file", NULL, &text);
    assert_string_equal(text.data, "recipes/r.yaml:1: policy.prompt_file: there is no 'gone.txt', "
                                   "neither here nor in recipes");
    tp_buf_release(&text);
}

static void the_environment_can_be_asked(void **state)
{
    setenv("TEMPER_TEST_WORD", "home", 1);
    unsetenv("TEMPER_TEST_NONE");
    load(NULL);
    override("policy.model_name=${oc.env:TEMPER_TEST_WORD}/m");
    override("policy.train_global_batch_size=${oc.env:TEMPER_TEST_NONE, 7}");
    bind_well();
    assert_string_equal(o.model_name, "home/m");
    assert_int_equal(o.batch, 7);
    load(NULL);
    override("policy.model_name=${oc.env:TEMPER_TEST_NONE}");
    expect_bind_error(
        "command line: policy.model_name: ${oc.env:TEMPER_TEST_NONE}: the environment "
        "has no TEMPER_TEST_NONE; set it, or write ${oc.env:TEMPER_TEST_NONE, VALUE} "
        "with a value to take instead");
}

static void keys_without_effect_are_announced(void **state)
{
    put("r.yaml", "policy:\n"
                  "  model_name: m\n"
                  "  megatron_cfg: {enabled: true}\n"
                  "logger:\n"
                  "  wandb_enabled: true\n");
    load("r.yaml");
    bind_well();
    assert_string_equal(tp_config_notice(config),
                        "keys without effect here, or without all of it:\n"
                        "  One reason: policy.megatron_cfg\n"
                        "  Another: logger.wandb_enabled");
}

static void saying_what_is_the_case_is_not_announced(void **state)
{
    put("r.yaml", "policy:\n"
                  "  model_name: m\n"
                  "  megatron_cfg: {enabled: false, x: 1}\n"
                  "logger:\n"
                  "  wandb_enabled: False\n");
    load("r.yaml");
    bind_well();
    assert_null(tp_config_notice(config));
}

static void sections_may_be_null(void **state)
{
    put("r.yaml", "policy: {model_name: m, optimizer: null}\nlogger:\n");
    load("r.yaml");
    bind_well();
    assert_true(o.lr == 5e-6);
}

static void the_resolved_tree_is_written_with_origins(void **state)
{
    put_base();
    load("recipes/base.yaml");
    override("policy.model_name=m");
    bind_well();
    tp_buf out = {0};

    tp_config_write(config, &out);

    assert_string_equal(out.data, "policy:\n"
                                  "  model_name: m  # command line\n"
                                  "  tokenizer:\n"
                                  "    name: m  # default\n"
                                  "  train_global_batch_size: 8  # recipes/base.yaml:3\n"
                                  "  max_total_sequence_length: 1024  # default\n"
                                  "  max_grad_norm: 1.0  # default\n"
                                  "  precision: bfloat16  # default\n"
                                  "  optimizer:\n"
                                  "    kwargs:\n"
                                  "      lr: 1.0e-5  # recipes/base.yaml:5\n"
                                  "      betas: [0.9, 0.95]  # recipes/base.yaml:5\n"
                                  "  sequence_packing:\n"
                                  "    enabled: true  # default\n"
                                  "    train_mb_tokens: 2048  # default\n"
                                  "  scheduler:\n"
                                  "    - name: LinearLR  # recipes/base.yaml:7\n"
                                  "      steps: 10  # recipes/base.yaml:8\n"
                                  "    - name: ConstantLR  # recipes/base.yaml:9\n"
                                  "  megatron_cfg: null  # default\n"
                                  "  prompt_file: null  # default\n"
                                  "engine:\n"
                                  "  disable_passes: []  # default\n"
                                  "  late_by: null  # default\n"
                                  "logger:\n"
                                  "  wandb_enabled: false  # default\n");
    tp_buf_release(&out);
}

static void what_is_written_binds_again_to_the_same(void **state)
{
    put_base();
    load("recipes/base.yaml");
    override("policy.model_name=m");
    bind_well();
    tp_buf first = {0}, second = {0};
    tp_yaml_write_remarked(tp_config_resolved(config), &first, NULL, NULL);
    put("config.yaml", first.data);

    load("config.yaml");
    bind_well();
    tp_yaml_write_remarked(tp_config_resolved(config), &second, NULL, NULL);

    assert_string_equal(first.data, second.data);
    tp_buf_release(&first);
    tp_buf_release(&second);
}

static void later_checks_can_point_at_a_value(void **state)
{
    put_base();
    load("recipes/base.yaml");
    override("policy.model_name=m");
    bind_well();

    assert_int_equal(tp_config_fail(config, "policy.scheduler.0.name", &err, "no %s", "schedule"),
                     TP_ERR_CONFIG);
    assert_string_equal(err.message, "recipes/base.yaml:7: policy.scheduler.0.name: no schedule");
}

/* A section whose keys the main table leaves open has a table of its own. */
typedef struct {
    const char *name;
    int64_t steps;
    double slope;
} line_options;

static const tp_option line_table[] = {
    {.name = "name", .type = TP_OPT_STRING, .offset = offsetof(line_options, name)},
    {.name = "steps",
     .type = TP_OPT_INT,
     .offset = offsetof(line_options, steps),
     .default_value = "${policy.train_global_batch_size}",
     .min = 1,
     .max = 100},
    {.name = "shape.slope",
     .type = TP_OPT_FLOAT,
     .offset = offsetof(line_options, slope),
     .default_value = "0.5"},
};

static tp_status bind_line(const tp_json *section, line_options *ret)
{
    return tp_config_bind_section(config, section, line_table, TP_COUNTOF(line_table), ret, &err);
}

static void a_section_is_bound_through_its_own_table(void **state)
{
    line_options line;
    put_base();
    load("recipes/base.yaml");
    override("policy.model_name=tiny");
    bind_well();

    assert_int_equal(bind_line(tp_json_at(o.scheduler, 0), &line), TP_OK);
    assert_string_equal(line.name, "LinearLR");
    assert_int_equal(line.steps, 10);
    assert_true(line.slope == 0.5);
    assert_int_equal(bind_line(tp_json_at(o.scheduler, 1), &line), TP_OK);
    assert_int_equal(line.steps, 8);
    assert_string_equal(tp_config_origin(config, "policy.scheduler.1.steps"), "default");
}

static void errors_in_a_section_name_the_whole_path(void **state)
{
    line_options line;
    put_base();
    load("recipes/base.yaml");
    override("policy.model_name=tiny");
    override("policy.scheduler.0.stepz=3");
    override("policy.scheduler.1.steps=1000");
    bind_well();

    assert_int_equal(bind_line(tp_json_at(o.scheduler, 0), &line), TP_ERR_CONFIG);
    assert_string_equal(err.message, "command line: unknown key policy.scheduler.0.stepz; did you "
                                     "mean policy.scheduler.0.steps?");
    assert_int_equal(bind_line(tp_json_at(o.scheduler, 1), &line), TP_ERR_CONFIG);
    assert_string_equal(err.message,
                        "command line: policy.scheduler.1.steps: 1000 is out of range; "
                        "expected 1 to 100");
    assert_int_equal(bind_line(o.scheduler, &line), TP_ERR_CONFIG);
    assert_non_null(strstr(err.message, "expected a section with keys below it"));
}

static void the_table_becomes_markdown(void **state)
{
    tp_buf out = {0};
    tp_options_doc(table, 6, &out);
    assert_string_equal(
        out.data,
        "## policy\n\n| key | value | default | meaning |\n| --- | --- | --- | --- |\n"
        "| `policy.model_name` | text | required | Folder of the model. |\n"
        "| `policy.tokenizer.name` | text | `${policy.model_name}` |  |\n"
        "| `policy.train_global_batch_size` | whole number, from 1 to 1000000000 | `32` |  |\n"
        "| `policy.max_total_sequence_length` | whole number, from 1 | `1024` |  |\n"
        "| `policy.max_grad_norm` | number, from 0 | `1.0` | Clip gradients to this norm; a\\|b. "
        "|\n"
        "| `policy.precision` | word: float32, bfloat16 | `bfloat16` |  |\n");
    tp_buf_release(&out);
}

#define CASE(name) cmocka_unit_test_setup_teardown(name, enter, leave)

int main(void)
{
    const struct CMUnitTest tests[] = {
        CASE(defaults_fill_an_empty_configuration),
        CASE(recipes_inherit),
        CASE(several_parents_merge_in_order),
        CASE(an_override_mark_replaces_a_section),
        CASE(a_section_that_is_a_reference_keeps_its_members),
        CASE(what_is_missing_in_an_heir_is_asked_for),
        CASE(lists_and_mappings_do_not_merge),
        CASE(inheritance_goes_wrong_clearly),
        CASE(overrides_set_add_and_delete),
        CASE(override_values_are_yaml_scalars),
        CASE(a_key_of_an_override_ends_at_its_colon),
        CASE(bad_overrides_are_explained),
        CASE(an_heir_is_what_the_settings_make),
        CASE(an_heir_inherits_and_nests),
        CASE(an_heir_keeps_the_spelling_of_texts),
        CASE(an_heir_names_files_from_the_root),
        CASE(what_an_heir_cannot_say_is_refused),
        CASE(unknown_keys_name_the_nearest),
        CASE(unknown_sections_name_the_nearest),
        CASE(a_known_word_elsewhere_is_suggested),
        CASE(without_a_near_key_the_known_ones_are_listed),
        CASE(required_values_must_be_set),
        CASE(values_are_checked),
        CASE(whole_numbers_may_be_written_with_exponents),
        CASE(text_takes_numbers),
        CASE(references_are_resolved),
        CASE(values_in_text_are_spelled_as_python_does),
        CASE(a_section_may_refer_to_another),
        CASE(bad_references_are_explained),
        CASE(a_function_of_what_is_missing_is_missing),
        CASE(circles_over_several_values_are_found),
        CASE(chains_are_bounded),
        CASE(expansion_is_bounded),
        CASE(text_expansion_is_bounded),
        CASE(all_faults_are_reported_at_once),
        CASE(a_key_of_another_meaning_is_not_suggested),
        CASE(values_that_change_the_result_are_refused),
        CASE(a_key_below_counts_while_its_switch_is_on),
        CASE(a_section_of_another_kind_is_named),
        CASE(values_to_be_set_are_named_together),
        CASE(files_are_found_beside_the_recipe),
        CASE(the_environment_can_be_asked),
        CASE(keys_without_effect_are_announced),
        CASE(saying_what_is_the_case_is_not_announced),
        CASE(sections_may_be_null),
        CASE(the_resolved_tree_is_written_with_origins),
        CASE(what_is_written_binds_again_to_the_same),
        CASE(later_checks_can_point_at_a_value),
        CASE(a_section_is_bound_through_its_own_table),
        CASE(errors_in_a_section_name_the_whole_path),
        CASE(the_table_becomes_markdown),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
