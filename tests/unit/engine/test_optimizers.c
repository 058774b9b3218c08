/* test_optimizers.c - updates of a vector of three, step by step as torch.optim makes them. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "engine/backend/backend.h"
#include "engine/exec/program.h"
#include "engine/train/options.h"

#define MUST(x)                                  \
    do {                                         \
        if ((x) != TP_OK)                        \
            fail_msg("%s: %s", #x, err.message); \
    } while (0)

enum { N = 3, STEPS = 3 };
static tp_error err;

static const float begin[N] = {-0.2130321417165134f, -0.07799460140780762f, 0.2711476029837968f};
static const float gradients[STEPS][N] = {
    {-0.03306919583442071f, -0.07350926444358628f, 0.0577972131597612f},
    {-0.06576754536050805f, -0.18306044802125104f, 0.15703773879033803f},
    {-0.054066937082971715f, -0.07963739512234706f, 0.0691676410531171f}};

/* What a configuration makes of policy.optimizer. */
static tp_status settings_of(const char *const *overrides, size_t n, tp_config **config,
                             tp_optimizer_settings *ret)
{
    tp_train_options o;
    MUST(tp_config_load(config, NULL, &err));
    MUST(tp_config_override(*config, "policy.model_name=model", &err));
    MUST(tp_config_override(*config, "data.train.data_path=train.jsonl", &err));
    for (size_t i = 0; i < n; i++)
        MUST(tp_config_override(*config, overrides[i], &err));
    tp_status status = tp_train_options_bind(*config, &o, &err);
    if (status == TP_OK)
        *ret = o.policy.optimizer;
    return status;
}

static tp_ref state(tp_graph *g, const char *name, tp_role role)
{
    tp_tensor tensor = {
        .name = name, .role = role, .dtype = TP_DTYPE_F32, .rank = 1, .dim = {N, 1}};
    return tp_graph_state(g, &tensor);
}

static void build(const tp_optimizer_settings *s, tp_graph *g)
{
    const char *names[TP_OPTIMIZER_STATES];
    const int64_t n_scalars = TP_OPTIMIZER_SCALARS;
    tp_optimizer_operands x = {.p = state(g, "p", TP_ROLE_WEIGHT),
                               .grad = state(g, "grad.p", TP_ROLE_GRADIENT),
                               .scalars =
                                   tp_graph_input(g, "scalars", TP_DTYPE_F64, 1, &n_scalars)};
    int n = s->kind->states(s, names);
    for (int i = 0; i < n; i++)
        x.state[i] = state(g, names[i], TP_ROLE_MOMENT);
    s->kind->update(s, &x, g, "p");
    tp_graph_output(g, g->nodes[g->n_nodes - 1].out[0]);
}

static void expect_trajectory(const tp_optimizer_settings *s, const double wanted[STEPS][N])
{
    tp_states states;
    tp_program *program;
    tp_device *device;
    int update;
    MUST(tp_device_open(tp_backend_find("cpu"), &(tp_device_options){.threads = 1}, &device, &err));
    MUST(tp_states_init(&states, &err));
    MUST(tp_program_create(&(tp_program_options){.device = device}, &program, &err));
    MUST(tp_program_add(program, "update", &states, 0, &update, &err));
    build(s, tp_program_graph(program, update));
    MUST(tp_program_compile(program, &err));
    MUST(tp_program_alloc(program, &states, &err));
    MUST(tp_tensor_write(tp_states_find(&states, "p"), 0, begin, sizeof begin, &err));

    for (int t = 0; t < STEPS; t++) {
        float p[N];
        tp_exec *exec = tp_program_exec(program, update);
        tp_optimizer_scalars scalars;
        const tp_optimizer_step step = {.lr = s->lr, .t = t + 1, .grad_factor = 1};
        s->kind->scalars(s, &step, &scalars);
        MUST(tp_tensor_write(tp_states_find(&states, "grad.p"), 0, gradients[t],
                             sizeof gradients[t], &err));
        MUST(tp_exec_write(exec, tp_exec_input(exec, "scalars"), scalars.v, -1, &err));
        MUST(tp_program_run(program, update, true, &err));
        MUST(tp_tensor_read(tp_states_find(&states, "p"), 0, p, sizeof p, &err));
        for (int i = 0; i < N; i++)
            if (fabs((double)p[i] - wanted[t][i]) > 1e-7)
                fail_msg("step %d, element %d: %.9g, not %.9g", t + 1, i, (double)p[i],
                         wanted[t][i]);
    }

    tp_program_free(program);
    tp_states_release(&states);
    tp_device_close(device);
}

static void expect_of(const char *const *overrides, size_t n, const double wanted[STEPS][N])
{
    tp_config *config;
    tp_optimizer_settings s;
    MUST(settings_of(overrides, n, &config, &s));
    expect_trajectory(&s, wanted);
    tp_config_release(config);
}

#define EXPECT(wanted, ...)                                     \
    do {                                                        \
        static const char *const list_[] = {__VA_ARGS__};       \
        expect_of(list_, sizeof list_ / sizeof *list_, wanted); \
    } while (0)
#define KWARGS "policy.optimizer.kwargs."

static void adamw_follows_torch(void **unused)
{
    static const double wanted[STEPS][N] = {
        {-0.20281911259875826, -0.06791660816677236, 0.26087645711099994},
        {-0.19295849221669625, -0.058446986310623825, 0.25131842568200075},
        {-0.18296684900264237, -0.049257412469137396, 0.24198451692945042}};
    (void)unused;
    EXPECT(wanted, "policy.optimizer.name=torch.optim.AdamW", KWARGS "lr=0.01",
           KWARGS "betas=[0.9, 0.999]", KWARGS "eps=1e-8", KWARGS "weight_decay=0.1");
}

static void sgd_with_momentum_follows_torch(void **unused)
{
    static const double wanted[STEPS][N] = {
        {-0.21127216585393413, -0.0742801408849244, 0.26812216852431686},
        {-0.2062941742266604, -0.061746963942824494, 0.25741332948700585},
        {-0.19900748782085215, -0.04645436145684581, 0.24418828563602657}};
    (void)unused;
    EXPECT(wanted, "policy.optimizer.name=torch.optim.SGD", KWARGS "lr=0.05", KWARGS "momentum=0.9",
           KWARGS "weight_decay=0.01");
}

static void sgd_of_nesterov_follows_torch(void **unused)
{
    static const double wanted[STEPS][N] = {
        {-0.21005591409141555, -0.07137876760788485, 0.2659458537994183},
        {-0.20307862074226837, -0.052551030823777496, 0.24996294648717554},
        {-0.19526146353990348, -0.03764389375633041, 0.23723304249421429}};
    (void)unused;
    EXPECT(wanted, "policy.optimizer.name=sgd", KWARGS "lr=0.05", KWARGS "momentum=0.8",
           KWARGS "nesterov=true");
}

/* torch takes the first gradient whole. */
static void dampening_spares_the_first_gradient(void **unused)
{
    static const double wanted[STEPS][N] = {
        {-0.2103135212162098, -0.07392916517858926, 0.2669020043108898},
        {-0.20569679032888333, -0.06550893845881499, 0.25848776702473775},
        {-0.19967581712739302, -0.05577602718681243, 0.24853954302331116}};
    (void)unused;
    EXPECT(wanted, "policy.optimizer.name=sgd", KWARGS "lr=0.05", KWARGS "momentum=0.9",
           KWARGS "dampening=0.5", KWARGS "weight_decay=0.1");
}

/* p - lr * g; torch has no dampening without momentum. */
static void plain_sgd_follows_the_gradient(void **unused)
{
    static const double wanted[STEPS][N] = {{-0.1964975438, -0.0412399692, 0.2422489964},
                                            {-0.1636137711, 0.0502902548, 0.1637301270},
                                            {-0.1365803026, 0.0901089524, 0.1291463065}};
    (void)unused;
    EXPECT(wanted, "policy.optimizer.name=sgd", KWARGS "lr=0.5", KWARGS "dampening=0.5");
}

static void the_defaults_of_sgd_are_those_of_torch(void **unused)
{
    tp_config *config;
    tp_optimizer_settings s;
    const char *const sgd[] = {"policy.optimizer.name=sgd"};
    (void)unused;
    MUST(settings_of(sgd, 1, &config, &s));
    assert_true(s.lr == 1e-3 && s.weight_decay == 0);
    tp_config_release(config);
}

static void expect_refusal(const char *a, const char *b, const char *message)
{
    tp_config *config;
    tp_optimizer_settings s;
    const char *const overrides[] = {a, b};
    assert_int_equal(settings_of(overrides, 2, &config, &s), TP_ERR_CONFIG);
    assert_string_equal(err.message, message);
    tp_config_release(config);
}

static void arguments_of_another_optimizer_are_refused(void **unused)
{
    (void)unused;
    expect_refusal("policy.optimizer.name=sgd", KWARGS "betas=[0.9, 0.98]",
                   "command line: policy.optimizer.kwargs.betas is part of AdamW");
    expect_refusal("policy.optimizer.name=adamw", KWARGS "momentum=0.9",
                   "command line: policy.optimizer.kwargs.momentum is part of SGD");
    expect_refusal("policy.optimizer.name=sgd", KWARGS "nesterov=true",
                   "command line: policy.optimizer.kwargs.nesterov: needs a momentum above 0, and "
                   "no dampening");
}

static void unknown_optimizers_are_refused_with_those_there_are(void **unused)
{
    (void)unused;
    expect_refusal("policy.optimizer.name=torch.optim.Adagrad", "seed=1",
                   "command line: policy.optimizer.name: \"torch.optim.Adagrad\" is not one of "
                   "torch.optim.AdamW, adamw, torch.optim.SGD, sgd");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(adamw_follows_torch),
        cmocka_unit_test(sgd_with_momentum_follows_torch),
        cmocka_unit_test(sgd_of_nesterov_follows_torch),
        cmocka_unit_test(dampening_spares_the_first_gradient),
        cmocka_unit_test(plain_sgd_follows_the_gradient),
        cmocka_unit_test(the_defaults_of_sgd_are_those_of_torch),
        cmocka_unit_test(arguments_of_another_optimizer_are_refused),
        cmocka_unit_test(unknown_optimizers_are_refused_with_those_there_are),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
