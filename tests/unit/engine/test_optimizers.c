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

enum { N = 3, STEPS = 3, ROWS = 3, COLUMNS = 2, MOST = 4096 };
static tp_error err;

static const float begin[N] = {-0.2130321417165134f, -0.07799460140780762f, 0.2711476029837968f};
static const float gradients[STEPS][N] = {
    {-0.03306919583442071f, -0.07350926444358628f, 0.0577972131597612f},
    {-0.06576754536050805f, -0.18306044802125104f, 0.15703773879033803f},
    {-0.054066937082971715f, -0.07963739512234706f, 0.0691676410531171f}};

static const float matrix[ROWS * COLUMNS] = {0.5f, -0.25f, 0.125f, 0.75f, -0.375f, 0.0625f};
static const float of_matrix[STEPS][ROWS * COLUMNS] = {
    {0.25f, -0.5f, 0.125f, 0.0625f, -0.75f, 0.375f},
    {-0.125f, 0.25f, 0.5f, -0.0625f, 0.25f, 0.875f},
    {0.0625f, -0.125f, -0.25f, 0.5f, 0.75f, -0.375f}};

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

/* A parameter, where it begins, its gradients and where torch takes it, step after step. */
typedef struct {
    uint8_t rank;
    int64_t dim[2];
    int steps;
    double tolerance;
    const float *begin, *gradients;
    const double *wanted;
} trajectory;

static void expect_step(const tp_states *states, const trajectory *x, int t, int64_t n)
{
    float p[MOST];
    MUST(tp_tensor_read(tp_states_find(states, "p"), 0, p, (size_t)n * sizeof *p, &err));
    for (int64_t i = 0; i < n; i++)
        if (!(fabs((double)p[i] - x->wanted[t * n + i]) <= x->tolerance))
            fail_msg("step %d, element %d: %.9g, not %.9g", t + 1, (int)i, (double)p[i],
                     x->wanted[t * n + i]);
}

static void expect_trajectory(const tp_optimizer_settings *s, const char *backend,
                              const trajectory *x)
{
    tp_states states;
    tp_program *program;
    tp_device *device;
    int update;
    const int64_t n = x->dim[0] * x->dim[1];
    const size_t bytes = (size_t)n * sizeof(float);
    const tp_tensor p = {.name = "p",
                         .role = TP_ROLE_WEIGHT,
                         .dtype = TP_DTYPE_F32,
                         .rank = x->rank,
                         .dim = {x->dim[0], x->dim[1]}};
    assert_true(n <= MOST);
    MUST(tp_device_open(tp_backend_find(backend), &(tp_device_options){.threads = 1}, &device,
                        &err));
    MUST(tp_states_init(&states, &err));
    MUST(tp_program_create(&(tp_program_options){.device = device}, &program, &err));
    MUST(tp_program_add(program, "update", &states, 0, &update, &err));
    tp_graph *g = tp_program_graph(program, update);
    tp_optimizer_inputs in = tp_optimizer_declare(s, g);
    const tp_optimizer_weight its = {.tensor = &p, .is_hidden = x->rank == 2};
    tp_optimizer_add(s, g, &its, &in);
    MUST(tp_program_compile(program, &err));
    MUST(tp_program_alloc(program, &states, &err));
    MUST(tp_tensor_write(tp_states_find(&states, "p"), 0, x->begin, bytes, &err));
    for (int t = 0; t < x->steps; t++) {
        tp_exec *exec = tp_program_exec(program, update);
        tp_optimizer_scalars scalars;
        const tp_optimizer_step step = {
            .lr = s->lr, .rest_lr = s->rest_lr, .t = t + 1, .grad_factor = 1};
        s->kind->scalars(s, &step, &scalars);
        MUST(tp_tensor_write(tp_states_find(&states, "grad.p"), 0, x->gradients + t * n, bytes,
                             &err));
        MUST(tp_exec_write(exec, tp_exec_input(exec, "scalars"), scalars.v, -1, &err));
        if (tp_exec_input(exec, "scalars.rest") >= 0)
            MUST(tp_exec_write(exec, tp_exec_input(exec, "scalars.rest"), scalars.rest, -1, &err));
        MUST(tp_program_run(program, update, true, &err));
        expect_step(&states, x, t, n);
    }
    tp_program_free(program);
    tp_states_release(&states);
    tp_device_close(device);
}

static void expect_of(const char *const *overrides, size_t n, const trajectory *x)
{
    tp_config *config;
    tp_optimizer_settings s;
    MUST(settings_of(overrides, n, &config, &s));
    expect_trajectory(&s, "ref", x);
    expect_trajectory(&s, "cpu", x);
    tp_config_release(config);
}

#define EXPECT_OF(trajectory_, ...)                                     \
    do {                                                                \
        static const char *const list_[] = {__VA_ARGS__};               \
        expect_of(list_, sizeof list_ / sizeof *list_, &(trajectory_)); \
    } while (0)
#define EXPECT(wanted_, ...)                                 \
    do {                                                     \
        const trajectory vector_ = {.rank = 1,               \
                                    .dim = {N, 1},           \
                                    .steps = STEPS,          \
                                    .tolerance = 1e-7,       \
                                    .begin = begin,          \
                                    .gradients = *gradients, \
                                    .wanted = *(wanted_)};   \
        EXPECT_OF(vector_, __VA_ARGS__);                     \
    } while (0)
#define EXPECT_MATRIX(wanted_, tolerance_, ...)              \
    do {                                                     \
        const trajectory matrix_ = {.rank = 2,               \
                                    .dim = {ROWS, COLUMNS},  \
                                    .steps = STEPS,          \
                                    .tolerance = tolerance_, \
                                    .begin = matrix,         \
                                    .gradients = *of_matrix, \
                                    .wanted = *(wanted_)};   \
        EXPECT_OF(matrix_, __VA_ARGS__);                     \
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

static void adafactor_follows_torch_of_a_matrix(void **unused)
{
    static const double wanted[STEPS][ROWS * COLUMNS] = {
        {0.4857494461106599, -0.2188032586676121, 0.10087389222131975, 0.73127662933380599,
         -0.34962389222131973, 0.04721412933380606},
        {0.49202182139374451, -0.23241441207274818, 0.062980554305670886, 0.73156952920430784,
         -0.35621352951672375, 0.022318685867181852},
        {0.48423677607426435, -0.22075491747193651, 0.07787545475208027, 0.69792752310759709,
         -0.379220874567605, 0.034423879260164617}};
    (void)unused;
    EXPECT_MATRIX(wanted, 2e-7, "policy.optimizer.name=torch.optim.Adafactor", KWARGS "lr=0.05",
                  KWARGS "weight_decay=0.1");
}

static void adafactor_follows_torch_of_a_vector(void **unused)
{
    static const double wanted[STEPS][N] = {
        {-0.20176130963294911, -0.067398957025786826, 0.25958619359389606},
        {-0.19128217471582018, -0.057308790158263352, 0.24845075235355443},
        {-0.18114858101720932, -0.051085102200453834, 0.24116776370047741}};
    (void)unused;
    EXPECT(wanted, "policy.optimizer.name=torch.optim.Adafactor", KWARGS "lr=0.05",
           KWARGS "weight_decay=0.1");
}

static void adafactor_with_floors_follows_torch_of_a_matrix(void **unused)
{
    static const double wanted[STEPS][ROWS * COLUMNS] = {
        {0.38193712784708339, 0.050887798704502073, -0.11112574430583325, 0.62019920548582752,
         -0.13887425569416675, -0.08794389935225104},
        {0.46439141208161783, -0.076443870189424973, -0.40469087550159755, 0.64853319263946696,
         -0.20988686678343901, -0.27985351498104399},
        {0.40044110730982146, 0.052464611263879045, -0.26852568568470769, 0.37405681744887687,
         -0.45134759966592886, -0.15817177899262103}};
    (void)unused;
    EXPECT_MATRIX(wanted, 2e-7, "policy.optimizer.name=torch.optim.Adafactor", KWARGS "lr=0.5",
                  KWARGS "d=2", KWARGS "beta2_decay=-0.5", KWARGS "eps=[0.1, 0.01]");
}

static void adafactor_with_floors_follows_torch_of_a_vector(void **unused)
{
    static const double wanted[STEPS][N] = {
        {-0.17928280718441211, -0.0029734618150204215, 0.21216166659396751},
        {-0.1265443231038044, 0.089354615188951353, 0.11936781479605679},
        {-0.09602068059210285, 0.12689181550308476, 0.081342884731045659}};
    (void)unused;
    EXPECT(wanted, "policy.optimizer.name=torch.optim.Adafactor", KWARGS "lr=0.5", KWARGS "d=2",
           KWARGS "beta2_decay=-0.5", KWARGS "eps=[0.1, 0.01]");
}

static void relative_adafactor_follows_transformers_of_a_matrix(void **unused)
{
    static const double wanted[STEPS][ROWS * COLUMNS] = {
        {0.49764988922213199, -0.24401065173352243, 0.12029977844426396, 0.74700532586676116,
         -0.37029977844426393, 0.059505325866761209},
        {0.49945033337331307, -0.24705345876609158, 0.11256321922823587, 0.74782251508556363,
         -0.37202503462387765, 0.054402786108713415},
        {0.49835206364844203, -0.24488836215173884, 0.11570024580073424, 0.74163827322089038,
         -0.37713765233568547, 0.056922502132847344}};
    (void)unused;
    EXPECT_MATRIX(wanted, 2e-7, "policy.optimizer.name=transformers.Adafactor");
}

static void relative_adafactor_follows_transformers_of_a_vector(void **unused)
{
    static const double wanted[STEPS][N] = {
        {-0.21099100744151705, -0.075953467132811273, 0.26910646870880045},
        {-0.20901409238995275, -0.073917508933793577, 0.26705290505507279},
        {-0.2070154906785544, -0.072624521052928964, 0.26573735720972053}};
    (void)unused;
    EXPECT(wanted, "policy.optimizer.name=transformers.Adafactor");
}

static void warmed_up_adafactor_follows_transformers_of_a_matrix(void **unused)
{
    static const double wanted[STEPS][ROWS * COLUMNS] = {
        {0.49999976498892224, -0.24999940106517335, 0.12499952997784443, 0.74999970053258669,
         -0.37499952997784441, 0.062499700532586674},
        {0.50000012768097934, -0.25000001402611483, 0.12499797147986211, 0.74999986515198835,
         -0.37499987752359437, 0.062498672646972987},
        {0.49999979637098702, -0.2499993608913462, 0.12499891781228491, 0.74999799958009994,
         -0.37500141982353802, 0.062499432758153041}};
    (void)unused;
    EXPECT_MATRIX(wanted, 2e-7, "policy.optimizer.name=transformers.Adafactor",
                  KWARGS "warmup_init=true");
}

static void warmed_up_adafactor_follows_transformers_of_a_vector(void **unused)
{
    static const double wanted[STEPS][N] = {
        {-0.21303193760308592, -0.077994397294380124, 0.27114739887036932},
        {-0.21303153856008861, -0.077993986333443038, 0.27114698435574719},
        {-0.21303092783920768, -0.077993591229859799, 0.27114658235842354}};
    (void)unused;
    EXPECT(wanted, "policy.optimizer.name=transformers.Adafactor", KWARGS "warmup_init=true");
}

static void adafactor_with_momentum_follows_transformers_of_a_matrix(void **unused)
{
    static const double wanted[STEPS][ROWS * COLUMNS] = {
        {0.4989342025248516, -0.24830804323827163, 0.12374340504970319, 0.74852902161913581,
         -0.37349340504970319, 0.061716521619135822},
        {0.4983626478817112, -0.24749983720535199, 0.12072515535300067, 0.74732977571100978,
         -0.37251984082843181, 0.059768588193150715},
        {0.49753304655866176, -0.2462242806208324, 0.11875881775773689, 0.74467965671830183,
         -0.37284497162396191, 0.058621222812502372}};
    (void)unused;
    EXPECT_MATRIX(wanted, 2e-7, "policy.optimizer.name=transformers.Adafactor", KWARGS "lr=0.01",
                  KWARGS "scale_parameter=false", KWARGS "relative_step=false", KWARGS "beta1=0.9",
                  KWARGS "weight_decay=0.1");
}

static void adafactor_with_momentum_follows_transformers_of_a_vector(void **unused)
{
    static const double wanted[STEPS][N] = {
        {-0.21181910957479691, -0.076916606806399807, 0.26987645538081301},
        {-0.20972978651424337, -0.074932991817691474, 0.26769117536344467},
        {-0.20683294503574201, -0.072496793176883637, 0.2650431258239444}};
    (void)unused;
    EXPECT(wanted, "policy.optimizer.name=transformers.Adafactor", KWARGS "lr=0.01",
           KWARGS "scale_parameter=false", KWARGS "relative_step=false", KWARGS "beta1=0.9",
           KWARGS "weight_decay=0.1");
}

static void transformers_refuses_what_does_not_fit_together(void **unused)
{
    (void)unused;
    expect_refusal(
        "policy.optimizer.name=transformers.Adafactor", KWARGS "lr=0.01",
        "command line: policy.optimizer.kwargs.lr: is not used with relative_step, which "
        "has to be false");
    expect_refusal("policy.optimizer.name=transformers.Adafactor", KWARGS "relative_step=false",
                   "default: policy.optimizer.kwargs.lr: is needed where relative_step is false");
    expect_refusal("policy.optimizer.name=torch.optim.Adafactor", KWARGS "relative_step=false",
                   "command line: policy.optimizer.kwargs.relative_step is part of "
                   "transformers.Adafactor");
    expect_refusal("policy.optimizer.name=torch.optim.Adafactor", KWARGS "eps=[0.1]",
                   "command line: policy.optimizer.kwargs.eps: expected two numbers, as in "
                   "[1.0e-30, 1.0e-3]");
}

/* Of torch's with its iteration in f64: as it is, it rounds to bf16 on the way. */
static void muon_follows_torch(void **unused)
{
    static const double wanted[STEPS][ROWS * COLUMNS] = {
        {0.50449233825415885, -0.22604932837099431, 0.11733295873932773, 0.74048706085249838,
         -0.35413945736657038, 0.063080774976198753},
        {0.50382947029237257, -0.22587546520045773, 0.091468966141441913, 0.73708041147944681,
         -0.35364887778876669, 0.045343681728786132},
        {0.49910633922249409, -0.21659873323912432, 0.088265276779011151, 0.71548413276561174,
         -0.37440517547924201, 0.035707236826620074}};
    (void)unused;
    EXPECT_MATRIX(wanted, 1e-6, "policy.optimizer.name=torch.optim.Muon", KWARGS "lr=0.02");
}

static void muon_without_nesterov_follows_torch(void **unused)
{
    static const double wanted[STEPS][ROWS * COLUMNS] = {
        {0.50055346784963439, -0.24286714842710044, 0.12265214393129528, 0.74623359855662652,
         -0.3685618795722243, 0.06257462330866477},
        {0.49910806247821937, -0.24167033905272226, 0.11538768878187938, 0.74261444098428864,
         -0.36721481428529867, 0.057499417992552898},
        {0.49440916792235889, -0.23825166124586328, 0.11295388198190801, 0.73892498191335332,
         -0.36864102896184275, 0.053869880954461283}};
    (void)unused;
    EXPECT_MATRIX(wanted, 1e-6, "policy.optimizer.name=torch.optim.Muon", KWARGS "lr=0.02",
                  KWARGS "momentum=0.9", KWARGS "nesterov=false",
                  KWARGS "adjust_lr_fn=match_rms_adamw");
}

static void muon_leaves_vectors_to_adamw(void **unused)
{
    static const double wanted[STEPS][N] = {
        {-0.20281911259875826, -0.067916608166772363, 0.26087645711099994},
        {-0.19295849221669625, -0.058446986310623825, 0.25131842568200075},
        {-0.18296684900264237, -0.049257412469137396, 0.24198451692945042}};
    (void)unused;
    EXPECT(wanted, "policy.optimizer.name=torch.optim.Muon", KWARGS "adamw_lr=0.01",
           KWARGS "adamw_betas=[0.9, 0.999]", KWARGS "adamw_eps=1e-8",
           KWARGS "adamw_weight_decay=0.1");
}

static void unknown_optimizers_are_refused_with_those_there_are(void **unused)
{
    (void)unused;
    expect_refusal("policy.optimizer.name=torch.optim.Adagrad", "seed=1",
                   "command line: policy.optimizer.name: \"torch.optim.Adagrad\" is not one of "
                   "torch.optim.AdamW, adamw, bitsandbytes.optim.AdamW8bit, adamw_8bit, "
                   "torch.optim.SGD, sgd, torch.optim.Adafactor, adafactor, "
                   "transformers.Adafactor, torch.optim.Muon, muon");
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
        cmocka_unit_test(adafactor_follows_torch_of_a_matrix),
        cmocka_unit_test(adafactor_follows_torch_of_a_vector),
        cmocka_unit_test(adafactor_with_floors_follows_torch_of_a_matrix),
        cmocka_unit_test(adafactor_with_floors_follows_torch_of_a_vector),
        cmocka_unit_test(relative_adafactor_follows_transformers_of_a_matrix),
        cmocka_unit_test(relative_adafactor_follows_transformers_of_a_vector),
        cmocka_unit_test(warmed_up_adafactor_follows_transformers_of_a_matrix),
        cmocka_unit_test(warmed_up_adafactor_follows_transformers_of_a_vector),
        cmocka_unit_test(adafactor_with_momentum_follows_transformers_of_a_matrix),
        cmocka_unit_test(adafactor_with_momentum_follows_transformers_of_a_vector),
        cmocka_unit_test(transformers_refuses_what_does_not_fit_together),
        cmocka_unit_test(muon_follows_torch),
        cmocka_unit_test(muon_without_nesterov_follows_torch),
        cmocka_unit_test(muon_leaves_vectors_to_adamw),
        cmocka_unit_test(unknown_optimizers_are_refused_with_those_there_are),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
