/* problem.c - from the text of a case to operands with values. */
#include "ops/bench.h"

#include <ctype.h>
#include <math.h>
#include <string.h>

#include "engine/backend/ref/load.h"

const op_case test_cases[] = {
#define CASE(op, text) {TP_OP_##op, text},
#include "ops/cases.def"
};
const size_t n_test_cases = sizeof test_cases / sizeof test_cases[0];

const op_case perf_cases[] = {
#define PERF(op, text) {TP_OP_##op, text},
#include "ops/cases.def"
};
const size_t n_perf_cases = sizeof perf_cases / sizeof perf_cases[0];

const gradient_case gradient_cases[] = {
#define GRADIENTS(op, text) {TP_OP_##op, TP_OP_NONE, text},
#define GRADIENT(op, gradient, text) {TP_OP_##op, TP_OP_##gradient, text},
#include "ops/cases.def"
};
const size_t n_gradient_cases = sizeof gradient_cases / sizeof gradient_cases[0];

const char *const types_names[] = {"f32", "bf16", "bf16/f32", "f32/bf16", "mixed", "f16", "f64"};

int n_optional_inputs(const tp_signature *sig)
{
    int n = 0;
    for (int i = 0; i < sig->n_in; i++)
        n += sig->in[i].is_optional;
    return n;
}

double random_uniform(uint64_t seed, uint64_t i)
{
    uint64_t z = seed * 0x9e3779b97f4a7c15u + i * 0xd1342543de82ef95u + 0x632be59bd9b4e019u;
    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9u;
    z = (z ^ (z >> 27)) * 0x94d049bb133111ebu;
    z ^= z >> 31;
    return (double)(z >> 11) * 0x1p-53;
}

double random_normal(uint64_t seed, uint64_t i)
{
    double u = random_uniform(seed, 2 * i), v = random_uniform(seed, 2 * i + 1);
    return sqrt(-2 * log(1 - u)) * cos(2 * M_PI * v);
}

int64_t evaluate(const problem *p, const char *expression)
{
    tp_letters letters;
    for (char letter = 'A'; letter <= 'Z'; letter++) {
        int64_t value = p->dim[(int)letter];
        letters.value[(int)letter] = value < 0 ? NAN : (double)value;
    }
    letters.value['A'] = (double)p->attended_pairs;
    double value = tp_dimension(expression, &letters, &p->attrs);
    if (!isnan(value))
        return (int64_t)value;
    fprintf(stderr, "case of %s: a dimension of %s is not given\n", tp_ops[p->op]->name,
            expression);
    exit(2);
}

static bool set_attribute(tp_attrs *attrs, const char *name, double value)
{
#define ATTR(type, field)            \
    if (strcmp(name, #field) == 0) { \
        attrs->field = (type)value;  \
        return true;                 \
    }
#include "engine/ir/attrs.def"
#undef ATTR
    return false;
}

static void parse_lengths(problem *p, const char *list)
{
    for (const char *s = list; *s; s += *s == ',') {
        TP_ASSERT(p->n_sequences < MAX_SEQUENCES);
        p->length[p->n_sequences++] = (int)strtol(s, (char **)&s, 10);
    }
}

static void parse_case(problem *p, const char *text)
{
    char key[20], value[100];
    int used;
    while (sscanf(text, " %19[^=]=%99s%n", key, value, &used) == 2) {
        text += used;
        double number = strtod(value, NULL);
        if (strlen(key) == 1 && isupper((unsigned char)key[0]))
            p->dim[(int)key[0]] = (int64_t)number;
        else if (strcmp(key, "lens") == 0)
            parse_lengths(p, value);
        else if (strcmp(key, "past") == 0)
            p->past = (int)number;
        else if (strcmp(key, "pad") == 0)
            p->pad = (int)number;
        else if (strcmp(key, "vector") == 0)
            p->is_vector = number != 0;
        else if (strcmp(key, "fill") == 0)
            p->fill = number;
        else if (strcmp(key, "offset") == 0)
            p->offset = number;
        else if (!set_attribute(&p->attrs, key, number)) {
            fprintf(stderr, "case of %s: unknown key '%s'\n", tp_ops[p->op]->name, key);
            exit(2);
        }
    }
}

/* Attributes that follow from dimensions, unless the case says otherwise. */
static void complete_attributes(problem *p)
{
    tp_attrs *attrs = &p->attrs;
    p->dim['S'] = p->n_sequences + 2; /* trailing entries of cu repeat its end */
    for (int i = 0; i < p->n_sequences; i++)
        p->attended_pairs += (int64_t)p->length[i] * (p->length[i] + 1) / 2;
    if (tp_operand_find(p->sig->in, p->sig->n_in, "cache_k") >= 0) {
        p->dim['T'] = p->pad;
        p->dim['N'] = p->dim['S'] * p->dim['M'];
        p->dim['L'] = p->dim['G'] * (p->dim['D'] + p->dim['D'] % 2) * p->dim['B'];
        for (int i = 0; i < p->n_sequences; i++) {
            p->dim['T'] += p->length[i];
            p->attended_pairs += (int64_t)p->length[i] * p->past;
        }
    }
    if (strstr(tp_ops[p->op]->name, "panels")) {
        p->dim['P'] = (p->dim['N'] + TP_PANEL - 1) / TP_PANEL;
        p->dim['L'] = TP_PANEL * (p->dim['K'] + p->dim['K'] % 2);
        attrs->n0 = (int32_t)p->dim['N'];
    }
    if (tp_op_has_attribute(p->op, "head_dim"))
        attrs->head_dim = (int32_t)p->dim['D'];
    if (tp_op_has_attribute(p->op, "heads")) {
        attrs->heads = (int32_t)p->dim['H'];
        attrs->kv_heads = (int32_t)p->dim['G'];
        attrs->scale = (float)(1 / sqrt((double)p->dim['D']));
    }
    if (tp_op_has_attribute(p->op, "eps") && attrs->eps == 0)
        attrs->eps = 1e-5f;
}

static tp_dtype dtype_of(const tp_operand_spec *spec, types t, uint64_t seed)
{
    if (spec->kind >= TP_KIND_ids)
        return TP_DTYPE_I32;
    if (t == TYPES_F64)
        return TP_DTYPE_F64;
    bool is_weight = spec->kind == TP_KIND_w;
    switch (spec->kind) {
    case TP_KIND_any:
    case TP_KIND_f:
    case TP_KIND_w:
        switch (t) {
        case TYPES_BF16:
            return TP_DTYPE_BF16;
        case TYPES_F16:
            return TP_DTYPE_F16;
        case TYPES_BF16_F32:
            return is_weight ? TP_DTYPE_F32 : TP_DTYPE_BF16;
        case TYPES_F32_BF16:
            return is_weight ? TP_DTYPE_BF16 : TP_DTYPE_F32;
        case TYPES_MIXED:
            return random_uniform(seed, 77) < 0.5 ? TP_DTYPE_F32 : TP_DTYPE_BF16;
        default:
            return TP_DTYPE_F32;
        }
    case TP_KIND_d:
    case TP_KIND_draws:
    case TP_KIND_scalars:
        return TP_DTYPE_F64;
    case TP_KIND_half:
        return t == TYPES_F16 ? TP_DTYPE_F16 : TP_DTYPE_BF16;
    case TP_KIND_codes:
        return TP_DTYPE_U8;
    default:
        return TP_DTYPE_F32;
    }
}

static void shape_tensor(const problem *p, tensor *t, const tp_operand_spec *spec, tp_arena *arena)
{
    bool swap = spec->swaps && p->attrs.transposed;
    t->rank = spec->rank;
    t->dim[swap] = evaluate(p, spec->dim[0]);
    t->dim[!swap] = spec->rank == 2 ? evaluate(p, spec->dim[1]) : 1;
    int64_t n = t->dim[0] * t->dim[1];
    if (p->is_vector) {
        t->rank = 1;
        t->dim[0] = n;
        t->dim[1] = 1;
    }
    if (spec->kind >= TP_KIND_ids)
        t->i = tp_arena_array(arena, int32_t, n + 1);
    else
        t->f = tp_arena_array(arena, double, n + 1);
}

static bool is_weightless(int64_t t) { return t % 4 == 1; }

/* Row t of the sequences of a paged cache, one behind another; the first slot is not used. */
static int64_t place_or_slot(const problem *p, int64_t t, bool is_slot)
{
    for (int s = 0; s < p->n_sequences; t -= p->length[s++])
        if (t < p->length[s])
            return is_slot ? s + 1 : p->past + t;
    return -1;
}

static void fill_integers(const problem *p, tensor *t, tp_operand_kind kind, uint64_t seed)
{
    int64_t n = tensor_count(t), end = 0;
    for (int64_t i = 0; i < n; i++) {
        double u = random_uniform(seed, (uint64_t)i);
        int64_t value = 0;
        switch (kind) {
        case TP_KIND_ids: /* about one in ten outside the table */
            value = u < 0.05   ? -1
                    : u > 0.95 ? p->dim['V']
                               : (int64_t)((u - 0.05) / 0.9 * (double)p->dim['V']);
            break;
        case TP_KIND_targets:
            value = is_weightless(i) ? -100 : (int64_t)(u * (double)p->dim['V']);
            break;
        case TP_KIND_positions:
            value = (int64_t)(u * (double)p->dim['P']);
            break;
        case TP_KIND_places:
        case TP_KIND_slots:
            value = place_or_slot(p, i, kind == TP_KIND_slots);
            break;
        case TP_KIND_tables: /* blocks from the last to the first */
            value = n - 1 - i;
            break;
        case TP_KIND_seed:
            value = (int64_t)(u * 4294967296.0) - 2147483648;
            break;
        default: /* cu */
            value = end;
            end += i < p->n_sequences ? p->length[i] : 0;
            break;
        }
        t->i[i] = (int32_t)value;
    }
}

static double scalar_of_adamw(int64_t i)
{
    static const double scalars[8] = {
        1e-2, 0.9, 0.95, 1e-8, 0.1, 1 - 0.9 * 0.9 * 0.9, 1 - 0.95 * 0.95 * 0.95, 0.7};
    return scalars[i];
}

static double sampling_parameter(int64_t i)
{
    static const float rows[][4] = {{0, 0, 0, 0},      {1, 0, 0, 0},    {0.7f, 5, 0, 0},
                                    {1.3f, 0, .9f, 0}, {1, 0, 1, 0.1f}, {0.8f, 20, .8f, .05f}};
    return (double)rows[i / 4 % 6][i % 4];
}

static void fill_floats(const problem *p, tensor *t, tp_operand_kind kind, uint64_t seed)
{
    int64_t n = tensor_count(t);
    for (int64_t i = 0; i < n; i++) {
        double normal = random_normal(seed, (uint64_t)i);
        switch (kind) {
        case TP_KIND_positive:
            t->f[i] = normal * normal;
            break;
        case TP_KIND_weights:
            t->f[i] = is_weightless(i) ? 0 : 0.25 + random_uniform(seed, (uint64_t)i);
            break;
        case TP_KIND_table: {
            int64_t half = t->dim[1] / 2, row = i / t->dim[1], column = i % t->dim[1];
            double angle = (double)row * pow(100, -(double)(column % half) / (double)half);
            t->f[i] = column < half ? cos(angle) : sin(angle);
            break;
        }
        case TP_KIND_scalars:
            t->f[i] = scalar_of_adamw(i);
            break;
        case TP_KIND_sampling:
            t->f[i] = sampling_parameter(i);
            break;
        case TP_KIND_draws:
            t->f[i] = random_uniform(seed, (uint64_t)i);
            break;
        case TP_KIND_codes:
            t->f[i] = floor(256 * random_uniform(seed, (uint64_t)i));
            break;
        case TP_KIND_any:
        case TP_KIND_f:
            t->f[i] = p->offset + p->fill * normal;
            break;
        case TP_KIND_d: /* clips half of what is normal; what is not clipped may come so, too */
            t->f[i] = i == 0 ? 0.5 : 0.3;
            break;
        default:
            t->f[i] = normal;
            break;
        }
    }
}

static void round_values(tensor *t)
{
    for (int64_t i = 0; t->f && i < tensor_count(t); i++)
        t->f[i] = ref_round(t->dtype, t->f[i]);
}

static tp_op forward_of(tp_op gradient)
{
    for (int op = 0; op < TP_OP_COUNT; op++)
        for (int k = 0; k < 3 && tp_ops[op]->gradients[k]; k++)
            if (tp_ops[op]->gradients[k] == gradient)
                return (tp_op)op;
    return TP_OP_NONE;
}

/* Statistics that a gradient takes from its forward op are those of the values at hand. */
static void derive_from_forward(problem *p, const char *text, tp_arena *arena)
{
    tp_op op = forward_of(p->op);
    if (op == TP_OP_NONE)
        return;
    problem forward;
    bool is_solved = false;
    for (int i = 0; i < p->sig->n_in; i++) {
        const tp_signature *sig = tp_op_signature(op);
        int output = tp_operand_find(sig->out, sig->n_out, p->sig->in[i].name);
        if (output < 0)
            continue;
        if (!is_solved) {
            problem_init(&forward, arena, op, text, TYPES_F64, ~0u);
            for (int j = 0; j < sig->n_in; j++) {
                int input = tp_operand_find(p->sig->in, p->sig->n_in, sig->in[j].name);
                if (input >= 0 && !tensor_is_absent(&p->in[input])) {
                    forward.in[j].f = p->in[input].f;
                    forward.in[j].i = p->in[input].i;
                }
            }
            problem_solve(&forward, arena);
            is_solved = true;
        }
        memcpy(p->in[i].f, forward.out[output].f, (size_t)tensor_count(&p->in[i]) * sizeof(double));
        round_values(&p->in[i]);
    }
}

static uint64_t seed_of(const char *text, const char *name)
{
    uint64_t hash = 0xcbf29ce484222325u;
    for (const char *s = text; *s; s++)
        hash = (hash ^ (unsigned char)*s) * 0x100000001b3u;
    for (const char *s = name; *s; s++)
        hash = (hash ^ (unsigned char)*s) * 0x100000001b3u;
    return hash;
}

static void init_inputs(problem *p, tp_arena *arena, const char *text, types t, unsigned present)
{
    unsigned optional_bit = 1;
    for (int i = 0; i < p->sig->n_in; i++) {
        const tp_operand_spec *spec = &p->sig->in[i];
        if (spec->is_optional) {
            bool keep = present & optional_bit;
            optional_bit <<= 1;
            if (!keep) {
                if (p->op == TP_OP_concat)
                    p->dim['F'] = 0; /* the third width counts for the output's */
                continue;
            }
        }
        uint64_t seed = seed_of(text, spec->name);
        tensor *tensor_ = &p->in[i];
        tensor_->dtype = dtype_of(spec, t, seed);
        shape_tensor(p, tensor_, spec, arena);
        if (spec->kind >= TP_KIND_ids)
            fill_integers(p, tensor_, spec->kind, seed);
        else
            fill_floats(p, tensor_, spec->kind, seed);
        round_values(tensor_);
    }
}

void problem_init(problem *p, tp_arena *arena, tp_op op, const char *text, types t,
                  unsigned present)
{
    *p = (problem){.op = op, .sig = tp_op_signature(op), .fill = 1};
    for (size_t i = 0; i < sizeof p->dim / sizeof p->dim[0]; i++)
        p->dim[i] = -1;
    parse_case(p, text);
    complete_attributes(p);
    init_inputs(p, arena, text, t, present);
    derive_from_forward(p, text, arena);
    for (int o = 0; o < p->sig->n_out; o++) {
        const tp_operand_spec *spec = &p->sig->out[o];
        int input = tp_op_alias(op, o);
        bool shares = input >= 0 && input < p->sig->n_in && !tensor_is_absent(&p->in[input]);
        if (spec->is_optional && !shares)
            continue;
        shape_tensor(p, &p->out[o], spec, arena);
        p->out[o].dtype =
            shares ? p->in[input].dtype : dtype_of(spec, t, seed_of(text, spec->name));
    }
}

int64_t tensor_count(const tensor *t) { return t->dim[0] * t->dim[1]; }

bool tensor_is_absent(const tensor *t) { return !t->f && !t->i; }

tp_launch launch_of(const problem *p)
{
    tp_launch launch = {.op = p->op,
                        .n_in = (uint8_t)p->sig->n_in,
                        .n_out = (uint8_t)p->sig->n_out,
                        .threads = 1,
                        .attrs = p->attrs};
    for (int i = 0; i < p->sig->n_in + p->sig->n_out; i++) {
        bool is_input = i < p->sig->n_in;
        const tensor *t = is_input ? &p->in[i] : &p->out[i - p->sig->n_in];
        if (tensor_is_absent(t))
            continue;
        *(is_input ? &launch.in[i] : &launch.out[i - p->sig->n_in]) =
            (tp_operand){.dtype = t->dtype,
                         .rank = (uint8_t)t->rank,
                         .dim = {t->dim[0], t->dim[1]},
                         .stride = t->dim[1]};
    }
    return launch;
}

static void bind_exact(tp_operand *operand, const tensor *t)
{
    if (tensor_is_absent(t))
        return;
    operand->data = t->f ? (void *)t->f : (void *)t->i;
    operand->dtype = t->f ? TP_DTYPE_F64 : TP_DTYPE_I32;
}

void problem_solve(problem *p, tp_arena *arena)
{
    tp_launch launch = launch_of(p);
    size_t mark = tp_arena_mark(arena);
    launch.accumulate = true;
    for (int i = 0; i < p->sig->n_in; i++)
        bind_exact(&launch.in[i], &p->in[i]);
    for (int o = 0; o < p->sig->n_out; o++)
        bind_exact(&launch.out[o], &p->out[o]);
    launch.kernel = tp_kernel_find_prepared(&tp_backend_ref, &launch);
    TP_ASSERT(launch.kernel);
    if (launch.kernel->workspace) {
        launch.workspace_bytes = tp_kernel_workspace(launch.kernel, &launch);
        launch.workspace = tp_arena_alloc(arena, launch.workspace_bytes + 1, 1, 64);
    }
    launch.kernel->run(&launch);
    tp_arena_rewind(arena, mark);
}
