/* problem.c - from the text of a case to operands with values. */
#include "ops/bench.h"

#include <ctype.h>
#include <math.h>
#include <string.h>

#include "engine/backend/ref/load.h"

const op_case test_cases[] = {
#define CASE(op, text) {TP_OP_##op, text},
#define PERF(op, text)
#include "ops/cases.def"
#undef CASE
#undef PERF
};
const size_t n_test_cases = sizeof test_cases / sizeof test_cases[0];

const op_case perf_cases[] = {
#define CASE(op, text)
#define PERF(op, text) {TP_OP_##op, text},
#include "ops/cases.def"
#undef CASE
#undef PERF
};
const size_t n_perf_cases = sizeof perf_cases / sizeof perf_cases[0];

const char *const types_names[] = {"f32", "bf16", "bf16/f32", "f32/bf16", "mixed", "f64"};

enum { TP_OP_none = TP_OP_COUNT };

static const struct {
    tp_op op;
    int forward;
    const char *flops, *text;
} signature_texts[] = {
#define SIGNATURE(op, forward, flops, text) {TP_OP_##op, TP_OP_##forward, flops, text},
#include "ops/signatures.def"
#undef SIGNATURE
};

static const char *const kind_names[KIND_COUNT] = {
    [KIND_F] = "f",
    [KIND_W] = "w",
    [KIND_S] = "s",
    [KIND_D] = "d",
    [KIND_B] = "b",
    [KIND_POSITIVE] = "positive",
    [KIND_WEIGHTS] = "weights",
    [KIND_TABLE] = "table",
    [KIND_SCALARS] = "scalars",
    [KIND_SAMPLING] = "sampling",
    [KIND_DRAWS] = "draws",
    [KIND_IDS] = "ids",
    [KIND_POSITIONS] = "positions",
    [KIND_PLACES] = "places",
    [KIND_SLOTS] = "slots",
    [KIND_TABLES] = "tables",
    [KIND_CU] = "cu",
    [KIND_TARGETS] = "targets",
};

static operand_kind kind_named(const char *name)
{
    for (int k = 0; k < KIND_COUNT; k++) {
        if (strcmp(kind_names[k], name) == 0)
            return (operand_kind)k;
    }
    fprintf(stderr, "signatures.def: unknown kind '%s'\n", name);
    exit(2);
}

/* "name:kind[A,B]?^~" */
static operand_spec parse_operand(const char *word)
{
    operand_spec spec = {0};
    char kind[16], shape[40], marks[8] = "";
    int n = sscanf(word, "%19[^:]:%15[a-z][%39[^]]]%7s", spec.name, kind, shape, marks);
    TP_ASSERT(n >= 3);
    spec.kind = kind_named(kind);
    char *second = strchr(shape, ',');
    spec.rank = second ? 2 : 1;
    snprintf(spec.dim[0], sizeof spec.dim[0], "%.*s",
             (int)(second ? second - shape : (long)strlen(shape)), shape);
    snprintf(spec.dim[1], sizeof spec.dim[1], "%.15s", second ? second + 1 : "1");
    spec.optional = strchr(marks, '?');
    spec.swaps = strchr(marks, '^');
    spec.through_bf16 = strchr(marks, '~');
    return spec;
}

static void parse_signature(signature *sig, const char *text)
{
    char word[64];
    int used;
    bool is_output = false;
    while (sscanf(text, " %63s%n", word, &used) == 1) {
        text += used;
        if (strcmp(word, "->") == 0)
            is_output = true;
        else if (is_output)
            sig->out[sig->n_out++] = parse_operand(word);
        else
            sig->in[sig->n_in++] = parse_operand(word);
    }
}

const signature *signature_of(tp_op op)
{
    static signature cache[TP_OP_COUNT];
    if (cache[op].n_out > 0)
        return &cache[op];
    for (size_t i = 0; i < sizeof signature_texts / sizeof signature_texts[0]; i++) {
        if (signature_texts[i].op != op)
            continue;
        cache[op].op = op;
        cache[op].forward = (tp_op)signature_texts[i].forward;
        cache[op].flops = signature_texts[i].flops;
        parse_signature(&cache[op], signature_texts[i].text);
        return &cache[op];
    }
    return NULL; /* a source or a view: nothing computes it */
}

int operand_find(const operand_spec *list, int n, const char *name)
{
    for (int i = 0; i < n; i++) {
        if (strcmp(list[i].name, name) == 0)
            return i;
    }
    return -1;
}

int n_optional_inputs(const signature *sig)
{
    int n = 0;
    for (int i = 0; i < sig->n_in; i++)
        n += sig->in[i].optional;
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

static int64_t term(const problem *p, const char **s)
{
    if (isdigit((unsigned char)**s))
        return strtol(*s, (char **)s, 10);
    char letter = *(*s)++;
    if (letter == 'A')
        return p->attended_pairs;
    if (letter == 'S')
        return p->n_sequences + 2; /* trailing entries of cu repeat its end */
    TP_ASSERT(letter > 'A' && letter <= 'Z');
    if (p->dim[(int)letter] < 0) {
        fprintf(stderr, "case of %s: dimension %c is not given\n", tp_ops[p->sig->op].name, letter);
        exit(2);
    }
    return p->dim[(int)letter];
}

int64_t evaluate(const problem *p, const char *expression)
{
    const char *s = expression;
    int64_t value = *s ? term(p, &s) : 0;
    while (*s) {
        char symbol = *s++;
        int64_t right = term(p, &s);
        value = symbol == '*' ? value * right : symbol == '/' ? value / right : value + right;
    }
    return value;
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
            fprintf(stderr, "case of %s: unknown key '%s'\n", tp_ops[p->sig->op].name, key);
            exit(2);
        }
    }
}

/* Attributes that follow from dimensions, unless the case says otherwise. */
static void complete_attributes(problem *p)
{
    tp_attrs *attrs = &p->attrs;
    for (int i = 0; i < p->n_sequences; i++)
        p->attended_pairs += (int64_t)p->length[i] * (p->length[i] + 1) / 2;
    if (operand_find(p->sig->in, p->sig->n_in, "cache_k") >= 0) {
        p->dim['T'] = p->pad;
        p->dim['E'] = p->dim['D'] + p->dim['D'] % 2;
        for (int i = 0; i < p->n_sequences; i++) {
            p->dim['T'] += p->length[i];
            p->attended_pairs += (int64_t)p->length[i] * p->past;
        }
    }
    if (strstr(tp_ops[p->sig->op].name, "panels")) {
        p->dim['P'] = (p->dim['N'] + TP_PANEL - 1) / TP_PANEL;
        p->dim['L'] = TP_PANEL * (p->dim['K'] + p->dim['K'] % 2);
        attrs->n0 = (int32_t)p->dim['N'];
    }
    if (operand_find(p->sig->in, p->sig->n_in, "q") >= 0) {
        attrs->heads = (int32_t)p->dim['H'];
        attrs->kv_heads = (int32_t)p->dim['G'];
        attrs->head_dim = (int32_t)p->dim['D'];
        attrs->scale = (float)(1 / sqrt((double)p->dim['D']));
    }
    if (p->sig->op == TP_OP_rope)
        attrs->head_dim = (int32_t)p->dim['D'];
    if (strstr(tp_ops[p->sig->op].name, "norm") && attrs->eps == 0)
        attrs->eps = 1e-5f;
}

static tp_dtype dtype_of(const operand_spec *spec, types t, uint64_t seed)
{
    if (spec->kind >= KIND_IDS)
        return TP_DTYPE_I32;
    if (t == TYPES_F64)
        return TP_DTYPE_F64;
    bool is_weight = spec->kind == KIND_W;
    switch (spec->kind) {
    case KIND_F:
    case KIND_W:
        switch (t) {
        case TYPES_BF16:
            return TP_DTYPE_BF16;
        case TYPES_BF16_F32:
            return is_weight ? TP_DTYPE_F32 : TP_DTYPE_BF16;
        case TYPES_F32_BF16:
            return is_weight ? TP_DTYPE_BF16 : TP_DTYPE_F32;
        case TYPES_MIXED:
            return random_uniform(seed, 77) < 0.5 ? TP_DTYPE_F32 : TP_DTYPE_BF16;
        default:
            return TP_DTYPE_F32;
        }
    case KIND_D:
    case KIND_DRAWS:
    case KIND_SCALARS:
        return TP_DTYPE_F64;
    case KIND_B:
        return TP_DTYPE_BF16;
    default:
        return TP_DTYPE_F32;
    }
}

static void shape_tensor(const problem *p, tensor *t, const operand_spec *spec, tp_arena *arena)
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
    if (spec->kind >= KIND_IDS)
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

static void fill_integers(const problem *p, tensor *t, operand_kind kind, uint64_t seed)
{
    int64_t n = tensor_count(t), end = 0;
    for (int64_t i = 0; i < n; i++) {
        double u = random_uniform(seed, (uint64_t)i);
        int64_t value = 0;
        switch (kind) {
        case KIND_IDS: /* about one in ten outside the table */
            value = u < 0.05   ? -1
                    : u > 0.95 ? p->dim['V']
                               : (int64_t)((u - 0.05) / 0.9 * (double)p->dim['V']);
            break;
        case KIND_TARGETS:
            value = is_weightless(i) ? -100 : (int64_t)(u * (double)p->dim['V']);
            break;
        case KIND_POSITIONS:
            value = (int64_t)(u * (double)p->dim['P']);
            break;
        case KIND_PLACES:
        case KIND_SLOTS:
            value = place_or_slot(p, i, kind == KIND_SLOTS);
            break;
        case KIND_TABLES: /* blocks from the last to the first */
            value = n - 1 - i;
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

static void fill_floats(const problem *p, tensor *t, operand_kind kind, uint64_t seed)
{
    int64_t n = tensor_count(t);
    for (int64_t i = 0; i < n; i++) {
        double normal = random_normal(seed, (uint64_t)i);
        switch (kind) {
        case KIND_POSITIVE:
            t->f[i] = normal * normal;
            break;
        case KIND_WEIGHTS:
            t->f[i] = is_weightless(i) ? 0 : 0.25 + random_uniform(seed, (uint64_t)i);
            break;
        case KIND_TABLE: {
            int64_t half = t->dim[1] / 2, row = i / t->dim[1], column = i % t->dim[1];
            double angle = (double)row * pow(100, -(double)(column % half) / (double)half);
            t->f[i] = column < half ? cos(angle) : sin(angle);
            break;
        }
        case KIND_SCALARS:
            t->f[i] = scalar_of_adamw(i);
            break;
        case KIND_SAMPLING:
            t->f[i] = sampling_parameter(i);
            break;
        case KIND_DRAWS:
            t->f[i] = random_uniform(seed, (uint64_t)i);
            break;
        case KIND_F:
            t->f[i] = p->offset + p->fill * normal;
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

/* Statistics that a gradient takes from its forward op are those of the values at hand. */
static void derive_from_forward(problem *p, const char *text, tp_arena *arena)
{
    if (p->sig->forward == TP_OP_COUNT)
        return;
    problem forward;
    bool is_solved = false;
    for (int i = 0; i < p->sig->n_in; i++) {
        const signature *sig = signature_of(p->sig->forward);
        int output = operand_find(sig->out, sig->n_out, p->sig->in[i].name);
        if (output < 0)
            continue;
        if (!is_solved) {
            problem_init(&forward, arena, p->sig->forward, text, TYPES_F64, ~0u);
            for (int j = 0; j < sig->n_in; j++) {
                int input = operand_find(p->sig->in, p->sig->n_in, sig->in[j].name);
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
        const operand_spec *spec = &p->sig->in[i];
        if (spec->optional) {
            bool keep = present & optional_bit;
            optional_bit <<= 1;
            if (!keep) {
                if (p->sig->op == TP_OP_concat)
                    p->dim['F'] = 0; /* the third width counts for the output's */
                continue;
            }
        }
        uint64_t seed = seed_of(text, spec->name);
        tensor *tensor_ = &p->in[i];
        tensor_->dtype = dtype_of(spec, t, seed);
        shape_tensor(p, tensor_, spec, arena);
        if (spec->kind >= KIND_IDS)
            fill_integers(p, tensor_, spec->kind, seed);
        else
            fill_floats(p, tensor_, spec->kind, seed);
        round_values(tensor_);
    }
}

void problem_init(problem *p, tp_arena *arena, tp_op op, const char *text, types t,
                  unsigned present)
{
    *p = (problem){.sig = signature_of(op), .fill = 1};
    TP_ASSERT(p->sig);
    for (size_t i = 0; i < sizeof p->dim / sizeof p->dim[0]; i++)
        p->dim[i] = -1;
    parse_case(p, text);
    complete_attributes(p);
    init_inputs(p, arena, text, t, present);
    derive_from_forward(p, text, arena);
    for (int o = 0; o < p->sig->n_out; o++) {
        const operand_spec *spec = &p->sig->out[o];
        int input = tp_op_alias(op, o);
        bool shares = input >= 0 && input < p->sig->n_in && !tensor_is_absent(&p->in[input]);
        if (spec->optional && !shares)
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
    tp_launch launch = {.op = p->sig->op,
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
    launch.kernel = tp_kernel_find(&tp_backend_ref, &launch);
    TP_ASSERT(launch.kernel);
    if (launch.kernel->workspace) {
        launch.workspace_bytes = launch.kernel->workspace(&launch);
        launch.workspace = tp_arena_alloc(arena, launch.workspace_bytes + 1, 1, 64);
    }
    launch.kernel->run(&launch);
    tp_arena_rewind(arena, mark);
}
