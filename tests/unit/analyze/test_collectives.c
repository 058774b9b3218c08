#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "instrument/analyze/collectives.h"

static bool is_near(double v, double wanted, double error) { return fabs(v - wanted) <= error; }

static bool communicates(const char *name) { return tp_name_communicates(tp_slice_of(name)); }

static void names_that_communicate(void **state)
{
    assert_true(communicates("ncclDevKernel_AllReduce_Sum_f32_RING_LL"));
    assert_true(communicates("void rcclFoo"));
    assert_true(communicates("MSCCLPP_kernel"));
    assert_true(communicates("void multimem_all_reduce_kernel<c10::BFloat16>"));
    assert_true(communicates("vllm::cross_device_reduce_1stage<bf16, 2>"));
    assert_true(communicates("one_shot_all_reduce_kernel"));
    assert_true(communicates("tensorrt_llm::kernels::oneShotAllReduceKernel<half, 8>"));
    assert_true(communicates("twoShotAllReduceKernel<half, 8>(AllReduceParams)"));
    assert_true(communicates("twoShotAllReduceKernel_oneshot_allreduce"));
    assert_true(communicates("void twoshot_allreduce<8>"));
    assert_true(communicates("trtllm::allreduce_fusion_kernel_oneshot"));
    assert_true(communicates("void quickreduce::allreduce_prototype_twoshot<__half>"));
    assert_true(communicates("void sglang::all_reduce_one_shot_push_kernel"));
    assert_true(communicates("custom_all_reduce_1shot"));
    assert_true(communicates("aiter::allreduce_2_shot"));
    assert_true(communicates("void aiter::reduce_scatter_cross_device_store<__hip_bfloat16, 8>"));
    assert_true(communicates("deep_ep::intranode::dispatch"));
    assert_true(communicates("kuserbuffers_pushsend"));
}

static void names_that_compute(void **state)
{
    assert_false(communicates("volta_sgemm_128x32_nt"));
    assert_false(communicates("one_shot"));
    assert_false(communicates("three_shot_all_reduce"));
    assert_false(communicates("triton_poi_fused_add_one_shot_all_reduce_0"));
    assert_false(communicates("triton_poi_fused_multimem_all_reduce__1"));
    assert_false(communicates("void cross_device_copy"));
    assert_false(communicates("reduce_kernel"));
    assert_false(communicates("hipMemcpy"));
    assert_false(communicates(""));
}

static tp_collective kernel(const char *name) { return tp_collective_of_kernel(tp_slice_of(name)); }
static tp_collective meta(const char *name) { return tp_collective_of_metadata(tp_slice_of(name)); }

static void collectives_by_name_and_metadata(void **state)
{
    assert_int_equal(kernel("ncclKernel_AllReduce_RING_LL_Sum_float(ncclWorkElem)"),
                     TP_COLLECTIVE_ALL_REDUCE);
    assert_int_equal(kernel("ncclDevKernel_SendRecv"), TP_COLLECTIVE_SEND_RECV);
    assert_int_equal(kernel("ncclDevKernel_ReduceScatter_Sum_bf16"), TP_COLLECTIVE_REDUCE_SCATTER);
    assert_int_equal(kernel("ncclKernel_Reduce_RING_LL_Sum_float"), TP_COLLECTIVE_REDUCE);
    assert_int_equal(kernel("ncclDevKernel_Generic"), TP_COLLECTIVE_UNKNOWN);
    assert_int_equal(kernel("void quickreduce::allreduce_prototype_twoshot<__half>"),
                     TP_COLLECTIVE_ALL_REDUCE);
    assert_int_equal(kernel("aiter::reduce_scatter_cross_device_store"),
                     TP_COLLECTIVE_REDUCE_SCATTER);
    assert_int_equal(meta("_allgather_base"), TP_COLLECTIVE_ALL_GATHER);
    assert_int_equal(meta("reduce_scatter_tensor_coalesced"), TP_COLLECTIVE_REDUCE_SCATTER);
    assert_int_equal(meta("all_to_allv"), TP_COLLECTIVE_ALL_TO_ALL);
    assert_int_equal(meta("reduce"), TP_COLLECTIVE_REDUCE);
    assert_int_equal(meta("recv"), TP_COLLECTIVE_SEND_RECV);
    assert_int_equal(meta("gather"), TP_COLLECTIVE_GATHER);
}

/* nccl-tests: 6,637,568 floats over two ranks in 2,636.669 us. */
static void bandwidth_as_nccl_tests_prints_it(void **state)
{
    int64_t bytes = tp_collective_bytes(TP_COLLECTIVE_ALL_REDUCE, 6637568, 6637568,
                                        tp_dtype_bytes(TP_SLICE("Float")));
    double algbw = (double)bytes / 2636669.0;

    assert_int_equal(bytes, 26550272);
    assert_true(is_near(algbw, 10.07, 0.005));
    assert_true(is_near(algbw * tp_collective_factor(TP_COLLECTIVE_ALL_REDUCE, 2), 10.07, 0.005));
}

static void sizes_and_factors(void **state)
{
    assert_int_equal(tp_collective_bytes(TP_COLLECTIVE_ALL_GATHER, 10, 80, 2), 160);
    assert_int_equal(tp_collective_bytes(TP_COLLECTIVE_REDUCE_SCATTER, 80, 10, 2), 160);
    assert_int_equal(tp_collective_bytes(TP_COLLECTIVE_BARRIER, 1, 1, 4), -1);
    assert_int_equal(tp_collective_bytes(TP_COLLECTIVE_BROADCAST, INT64_MAX, 1, 4), -1);
    assert_true(is_near(tp_collective_factor(TP_COLLECTIVE_ALL_REDUCE, 8), 1.75, 1e-12));
    assert_true(is_near(tp_collective_factor(TP_COLLECTIVE_ALL_GATHER, 8), 0.875, 1e-12));
    assert_true(is_near(tp_collective_factor(TP_COLLECTIVE_SEND_RECV, 8), 1, 0));
    assert_true(isnan(tp_collective_factor(TP_COLLECTIVE_ALL_REDUCE, INT64_MIN)));
    assert_int_equal(tp_dtype_bytes(TP_SLICE("Float8_e4m3fn")), 1);
    assert_int_equal(tp_dtype_bytes(TP_SLICE("BFloat16")), 2);
    assert_int_equal(tp_dtype_bytes(TP_SLICE("Nonsense")), 0);
}

/* NCCL counts per rank: 1 MiB handed in by each of 4. */
static void sizes_from_what_a_rank_hands_in(void **state)
{
    assert_int_equal(tp_collective_message_bytes(TP_COLLECTIVE_ALL_REDUCE, 1048576, 4), 1048576);
    assert_int_equal(tp_collective_message_bytes(TP_COLLECTIVE_ALL_GATHER, 1048576, 4), 4194304);
    assert_int_equal(tp_collective_message_bytes(TP_COLLECTIVE_REDUCE_SCATTER, 1048576, 4),
                     4194304);
    assert_int_equal(tp_collective_message_bytes(TP_COLLECTIVE_SEND_RECV, 1048576, INT64_MIN),
                     1048576);
    assert_int_equal(tp_collective_message_bytes(TP_COLLECTIVE_ALL_GATHER, 1048576, INT64_MIN), -1);
    assert_int_equal(tp_collective_message_bytes(TP_COLLECTIVE_ALL_GATHER, INT64_MAX, 2), -1);
    assert_int_equal(tp_collective_message_bytes(TP_COLLECTIVE_UNKNOWN, 1048576, 4), -1);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(names_that_communicate),
                                       cmocka_unit_test(names_that_compute),
                                       cmocka_unit_test(collectives_by_name_and_metadata),
                                       cmocka_unit_test(bandwidth_as_nccl_tests_prints_it),
                                       cmocka_unit_test(sizes_and_factors),
                                       cmocka_unit_test(sizes_from_what_a_rank_hands_in)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
