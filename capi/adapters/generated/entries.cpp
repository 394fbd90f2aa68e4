// The exported entries of every operator in each host's convention, and MindSpore's slots.
// Generated from abi/spec: change that and build the target `generate`.
#include "capi/adapters/entries.hpp"

using namespace velo::adapters;

namespace {

struct number {
  enum : int {
    rms_norm,
    rms_norm_backward,
    layer_norm,
    layer_norm_backward,
    dropout_add_rms_norm,
    dropout_add_rms_norm_backward,
    dropout_add_layer_norm,
    dropout_add_layer_norm_backward,
    swiglu,
    swiglu_backward,
    geglu,
    geglu_backward,
    reglu,
    reglu_backward,
    gelu,
    gelu_backward,
    fast_gelu,
    fast_gelu_backward,
    silu,
    silu_backward,
    relu,
    relu_backward,
    rotary_position_embedding,
    rotary_position_embedding_backward,
    rope_frequencies,
    matmul,
    matmul_backward,
    matmul_add,
    matmul_add_backward,
    matmul_swiglu,
    matmul_swiglu_backward,
    rms_norm_matmul,
    rms_norm_matmul_backward,
    matmul_add_fp32,
    grouped_matmul,
    grouped_matmul_backward,
    grouped_matmul_add_fp32,
    weight_quant_matmul,
    weight_quant_matmul_backward,
    weight_quant_grouped_matmul,
    quant_grouped_matmul,
    ffn,
    fusion_attention,
    fusion_attention_backward,
    ring_attention_update,
    flash_attention,
    flash_attention_backward,
    cached_attention,
    generate_mask,
    alibi_slopes,
    embedding,
    embedding_backward,
    cross_entropy,
    cross_entropy_backward,
    apply_fused_adamw,
    apply_fused_ema_adamw,
    multi_tensor_adamw,
    multi_tensor_ema_adamw,
    global_norm,
    multi_tensor_global_norm,
    bf16_param_split,
    bf16_param_merge,
    add,
    cast,
    dropout,
    dropout_backward,
    accumulate,
    reduce_max_abs,
    matmul_all_reduce,
    matmul_reduce_scatter,
    all_gather_matmul,
    all_gather_matmul_reduce_scatter,
    matmul_all_reduce_add_rms_norm,
    grouped_matmul_all_reduce,
    all_to_all_all_gather_bmm,
    bmm_reduce_scatter_all_to_all,
    moe_token_permute,
    moe_token_permute_backward,
    moe_token_unpermute,
    moe_token_unpermute_backward,
    topk_router,
    topk_router_backward,
    capacity_gate,
    capacity_gate_backward,
    sinkhorn,
    sinkhorn_backward,
    softmax,
    softmax_backward,
    pad_seqlen,
    pad_seqlen_backward,
    unpad_seqlen,
    unpad_seqlen_backward,
    unpad_gen_attention_mask,
    unpad_rope,
    unpad_rope_backward,
    unpad_softmax,
    unpad_softmax_backward,
    unpad_strided_batch_matmul,
    unpad_strided_batch_matmul_backward,
    quantize,
    sequence_all_to_all,
    context_parallel_attention,
    context_parallel_attention_backward,
    vocab_parallel_cross_entropy,
    vocab_parallel_cross_entropy_backward,
    vocab_parallel_embedding,
    vocab_parallel_embedding_backward,
    column_parallel_linear,
    column_parallel_linear_backward,
    row_parallel_linear,
    row_parallel_linear_backward,
    parallel_rms_norm,
    parallel_rms_norm_backward,
    parallel_layer_norm,
    parallel_layer_norm_backward,
    capacity,
  };
};

}  // namespace

#pragma GCC visibility push(default)
extern "C" {

int velo_ms_rms_norm(int count, void** params, int* ndims, int64_t** shapes, const char** dtypes,
                     void* stream, void*) {
  return enter_mindspore(number::rms_norm, {count, params, ndims, shapes, dtypes, stream});
}
void* velo_xla_rms_norm(void* call_frame) {
  return enter_xla(number::rms_norm, call_frame);
}
int __tvm_ffi_velo_rms_norm(void*, const void* args, int32_t count, void*) {
  return enter_tvm(number::rms_norm, args, count);
}

int velo_ms_rms_norm_backward(int count, void** params, int* ndims, int64_t** shapes, const char** dtypes,
                              void* stream, void*) {
  return enter_mindspore(number::rms_norm_backward, {count, params, ndims, shapes, dtypes, stream});
}
void* velo_xla_rms_norm_backward(void* call_frame) {
  return enter_xla(number::rms_norm_backward, call_frame);
}
int __tvm_ffi_velo_rms_norm_backward(void*, const void* args, int32_t count, void*) {
  return enter_tvm(number::rms_norm_backward, args, count);
}

int velo_ms_layer_norm(int count, void** params, int* ndims, int64_t** shapes, const char** dtypes,
                       void* stream, void*) {
  return enter_mindspore(number::layer_norm, {count, params, ndims, shapes, dtypes, stream});
}
void* velo_xla_layer_norm(void* call_frame) {
  return enter_xla(number::layer_norm, call_frame);
}
int __tvm_ffi_velo_layer_norm(void*, const void* args, int32_t count, void*) {
  return enter_tvm(number::layer_norm, args, count);
}

int velo_ms_layer_norm_backward(int count, void** params, int* ndims, int64_t** shapes, const char** dtypes,
                                void* stream, void*) {
  return enter_mindspore(number::layer_norm_backward, {count, params, ndims, shapes, dtypes, stream});
}
void* velo_xla_layer_norm_backward(void* call_frame) {
  return enter_xla(number::layer_norm_backward, call_frame);
}
int __tvm_ffi_velo_layer_norm_backward(void*, const void* args, int32_t count, void*) {
  return enter_tvm(number::layer_norm_backward, args, count);
}

int velo_ms_dropout_add_rms_norm(int count, void** params, int* ndims, int64_t** shapes, const char** dtypes,
                                 void* stream, void*) {
  return enter_mindspore(number::dropout_add_rms_norm, {count, params, ndims, shapes, dtypes, stream});
}
void* velo_xla_dropout_add_rms_norm(void* call_frame) {
  return enter_xla(number::dropout_add_rms_norm, call_frame);
}
int __tvm_ffi_velo_dropout_add_rms_norm(void*, const void* args, int32_t count, void*) {
  return enter_tvm(number::dropout_add_rms_norm, args, count);
}

int velo_ms_dropout_add_rms_norm_backward(int count, void** params, int* ndims, int64_t** shapes, const char** dtypes,
                                          void* stream, void*) {
  return enter_mindspore(number::dropout_add_rms_norm_backward, {count, params, ndims, shapes, dtypes, stream});
}
void* velo_xla_dropout_add_rms_norm_backward(void* call_frame) {
  return enter_xla(number::dropout_add_rms_norm_backward, call_frame);
}
int __tvm_ffi_velo_dropout_add_rms_norm_backward(void*, const void* args, int32_t count, void*) {
  return enter_tvm(number::dropout_add_rms_norm_backward, args, count);
}

int velo_ms_dropout_add_layer_norm(int count, void** params, int* ndims, int64_t** shapes, const char** dtypes,
                                   void* stream, void*) {
  return enter_mindspore(number::dropout_add_layer_norm, {count, params, ndims, shapes, dtypes, stream});
}
void* velo_xla_dropout_add_layer_norm(void* call_frame) {
  return enter_xla(number::dropout_add_layer_norm, call_frame);
}
int __tvm_ffi_velo_dropout_add_layer_norm(void*, const void* args, int32_t count, void*) {
  return enter_tvm(number::dropout_add_layer_norm, args, count);
}

int velo_ms_dropout_add_layer_norm_backward(int count, void** params, int* ndims, int64_t** shapes, const char** dtypes,
                                            void* stream, void*) {
  return enter_mindspore(number::dropout_add_layer_norm_backward, {count, params, ndims, shapes, dtypes, stream});
}
void* velo_xla_dropout_add_layer_norm_backward(void* call_frame) {
  return enter_xla(number::dropout_add_layer_norm_backward, call_frame);
}
int __tvm_ffi_velo_dropout_add_layer_norm_backward(void*, const void* args, int32_t count, void*) {
  return enter_tvm(number::dropout_add_layer_norm_backward, args, count);
}

int velo_ms_swiglu(int count, void** params, int* ndims, int64_t** shapes, const char** dtypes,
                   void* stream, void*) {
  return enter_mindspore(number::swiglu, {count, params, ndims, shapes, dtypes, stream});
}
void* velo_xla_swiglu(void* call_frame) {
  return enter_xla(number::swiglu, call_frame);
}
int __tvm_ffi_velo_swiglu(void*, const void* args, int32_t count, void*) {
  return enter_tvm(number::swiglu, args, count);
}

int velo_ms_swiglu_backward(int count, void** params, int* ndims, int64_t** shapes, const char** dtypes,
                            void* stream, void*) {
  return enter_mindspore(number::swiglu_backward, {count, params, ndims, shapes, dtypes, stream});
}
void* velo_xla_swiglu_backward(void* call_frame) {
  return enter_xla(number::swiglu_backward, call_frame);
}
int __tvm_ffi_velo_swiglu_backward(void*, const void* args, int32_t count, void*) {
  return enter_tvm(number::swiglu_backward, args, count);
}

int velo_ms_geglu(int count, void** params, int* ndims, int64_t** shapes, const char** dtypes,
                  void* stream, void*) {
  return enter_mindspore(number::geglu, {count, params, ndims, shapes, dtypes, stream});
}
void* velo_xla_geglu(void* call_frame) {
  return enter_xla(number::geglu, call_frame);
}
int __tvm_ffi_velo_geglu(void*, const void* args, int32_t count, void*) {
  return enter_tvm(number::geglu, args, count);
}

int velo_ms_geglu_backward(int count, void** params, int* ndims, int64_t** shapes, const char** dtypes,
                           void* stream, void*) {
  return enter_mindspore(number::geglu_backward, {count, params, ndims, shapes, dtypes, stream});
}
void* velo_xla_geglu_backward(void* call_frame) {
  return enter_xla(number::geglu_backward, call_frame);
}
int __tvm_ffi_velo_geglu_backward(void*, const void* args, int32_t count, void*) {
  return enter_tvm(number::geglu_backward, args, count);
}

int velo_ms_reglu(int count, void** params, int* ndims, int64_t** shapes, const char** dtypes,
                  void* stream, void*) {
  return enter_mindspore(number::reglu, {count, params, ndims, shapes, dtypes, stream});
}
void* velo_xla_reglu(void* call_frame) {
  return enter_xla(number::reglu, call_frame);
}
int __tvm_ffi_velo_reglu(void*, const void* args, int32_t count, void*) {
  return enter_tvm(number::reglu, args, count);
}

int velo_ms_reglu_backward(int count, void** params, int* ndims, int64_t** shapes, const char** dtypes,
                           void* stream, void*) {
  return enter_mindspore(number::reglu_backward, {count, params, ndims, shapes, dtypes, stream});
}
void* velo_xla_reglu_backward(void* call_frame) {
  return enter_xla(number::reglu_backward, call_frame);
}
int __tvm_ffi_velo_reglu_backward(void*, const void* args, int32_t count, void*) {
  return enter_tvm(number::reglu_backward, args, count);
}

int velo_ms_gelu(int count, void** params, int* ndims, int64_t** shapes, const char** dtypes,
                 void* stream, void*) {
  return enter_mindspore(number::gelu, {count, params, ndims, shapes, dtypes, stream});
}
void* velo_xla_gelu(void* call_frame) {
  return enter_xla(number::gelu, call_frame);
}
int __tvm_ffi_velo_gelu(void*, const void* args, int32_t count, void*) {
  return enter_tvm(number::gelu, args, count);
}

int velo_ms_gelu_backward(int count, void** params, int* ndims, int64_t** shapes, const char** dtypes,
                          void* stream, void*) {
  return enter_mindspore(number::gelu_backward, {count, params, ndims, shapes, dtypes, stream});
}
void* velo_xla_gelu_backward(void* call_frame) {
  return enter_xla(number::gelu_backward, call_frame);
}
int __tvm_ffi_velo_gelu_backward(void*, const void* args, int32_t count, void*) {
  return enter_tvm(number::gelu_backward, args, count);
}

int velo_ms_fast_gelu(int count, void** params, int* ndims, int64_t** shapes, const char** dtypes,
                      void* stream, void*) {
  return enter_mindspore(number::fast_gelu, {count, params, ndims, shapes, dtypes, stream});
}
void* velo_xla_fast_gelu(void* call_frame) {
  return enter_xla(number::fast_gelu, call_frame);
}
int __tvm_ffi_velo_fast_gelu(void*, const void* args, int32_t count, void*) {
  return enter_tvm(number::fast_gelu, args, count);
}

int velo_ms_fast_gelu_backward(int count, void** params, int* ndims, int64_t** shapes, const char** dtypes,
                               void* stream, void*) {
  return enter_mindspore(number::fast_gelu_backward, {count, params, ndims, shapes, dtypes, stream});
}
void* velo_xla_fast_gelu_backward(void* call_frame) {
  return enter_xla(number::fast_gelu_backward, call_frame);
}
int __tvm_ffi_velo_fast_gelu_backward(void*, const void* args, int32_t count, void*) {
  return enter_tvm(number::fast_gelu_backward, args, count);
}

int velo_ms_silu(int count, void** params, int* ndims, int64_t** shapes, const char** dtypes,
                 void* stream, void*) {
  return enter_mindspore(number::silu, {count, params, ndims, shapes, dtypes, stream});
}
void* velo_xla_silu(void* call_frame) {
  return enter_xla(number::silu, call_frame);
}
int __tvm_ffi_velo_silu(void*, const void* args, int32_t count, void*) {
  return enter_tvm(number::silu, args, count);
}

int velo_ms_silu_backward(int count, void** params, int* ndims, int64_t** shapes, const char** dtypes,
                          void* stream, void*) {
  return enter_mindspore(number::silu_backward, {count, params, ndims, shapes, dtypes, stream});
}
void* velo_xla_silu_backward(void* call_frame) {
  return enter_xla(number::silu_backward, call_frame);
}
int __tvm_ffi_velo_silu_backward(void*, const void* args, int32_t count, void*) {
  return enter_tvm(number::silu_backward, args, count);
}

int velo_ms_relu(int count, void** params, int* ndims, int64_t** shapes, const char** dtypes,
                 void* stream, void*) {
  return enter_mindspore(number::relu, {count, params, ndims, shapes, dtypes, stream});
}
void* velo_xla_relu(void* call_frame) {
  return enter_xla(number::relu, call_frame);
}
int __tvm_ffi_velo_relu(void*, const void* args, int32_t count, void*) {
  return enter_tvm(number::relu, args, count);
}

int velo_ms_relu_backward(int count, void** params, int* ndims, int64_t** shapes, const char** dtypes,
                          void* stream, void*) {
  return enter_mindspore(number::relu_backward, {count, params, ndims, shapes, dtypes, stream});
}
void* velo_xla_relu_backward(void* call_frame) {
  return enter_xla(number::relu_backward, call_frame);
}
int __tvm_ffi_velo_relu_backward(void*, const void* args, int32_t count, void*) {
  return enter_tvm(number::relu_backward, args, count);
}

int velo_ms_rotary_position_embedding(int count, void** params, int* ndims, int64_t** shapes, const char** dtypes,
                                      void* stream, void*) {
  return enter_mindspore(number::rotary_position_embedding, {count, params, ndims, shapes, dtypes, stream});
}
void* velo_xla_rotary_position_embedding(void* call_frame) {
  return enter_xla(number::rotary_position_embedding, call_frame);
}
int __tvm_ffi_velo_rotary_position_embedding(void*, const void* args, int32_t count, void*) {
  return enter_tvm(number::rotary_position_embedding, args, count);
}

int velo_ms_rotary_position_embedding_backward(int count, void** params, int* ndims, int64_t** shapes, const char** dtypes,
                                               void* stream, void*) {
  return enter_mindspore(number::rotary_position_embedding_backward, {count, params, ndims, shapes, dtypes, stream});
}
void* velo_xla_rotary_position_embedding_backward(void* call_frame) {
  return enter_xla(number::rotary_position_embedding_backward, call_frame);
}
int __tvm_ffi_velo_rotary_position_embedding_backward(void*, const void* args, int32_t count, void*) {
  return enter_tvm(number::rotary_position_embedding_backward, args, count);
}

int velo_ms_rope_frequencies(int count, void** params, int* ndims, int64_t** shapes, const char** dtypes,
                             void* stream, void*) {
  return enter_mindspore(number::rope_frequencies, {count, params, ndims, shapes, dtypes, stream});
}
void* velo_xla_rope_frequencies(void* call_frame) {
  return enter_xla(number::rope_frequencies, call_frame);
}
int __tvm_ffi_velo_rope_frequencies(void*, const void* args, int32_t count, void*) {
  return enter_tvm(number::rope_frequencies, args, count);
}

int velo_ms_matmul(int count, void** params, int* ndims, int64_t** shapes, const char** dtypes,
                   void* stream, void*) {
  return enter_mindspore(number::matmul, {count, params, ndims, shapes, dtypes, stream});
}
void* velo_xla_matmul(void* call_frame) {
  return enter_xla(number::matmul, call_frame);
}
int __tvm_ffi_velo_matmul(void*, const void* args, int32_t count, void*) {
  return enter_tvm(number::matmul, args, count);
}

int velo_ms_matmul_backward(int count, void** params, int* ndims, int64_t** shapes, const char** dtypes,
                            void* stream, void*) {
  return enter_mindspore(number::matmul_backward, {count, params, ndims, shapes, dtypes, stream});
}
void* velo_xla_matmul_backward(void* call_frame) {
  return enter_xla(number::matmul_backward, call_frame);
}
int __tvm_ffi_velo_matmul_backward(void*, const void* args, int32_t count, void*) {
  return enter_tvm(number::matmul_backward, args, count);
}

int velo_ms_matmul_add(int count, void** params, int* ndims, int64_t** shapes, const char** dtypes,
                       void* stream, void*) {
  return enter_mindspore(number::matmul_add, {count, params, ndims, shapes, dtypes, stream});
}
void* velo_xla_matmul_add(void* call_frame) {
  return enter_xla(number::matmul_add, call_frame);
}
int __tvm_ffi_velo_matmul_add(void*, const void* args, int32_t count, void*) {
  return enter_tvm(number::matmul_add, args, count);
}

int velo_ms_matmul_add_backward(int count, void** params, int* ndims, int64_t** shapes, const char** dtypes,
                                void* stream, void*) {
  return enter_mindspore(number::matmul_add_backward, {count, params, ndims, shapes, dtypes, stream});
}
void* velo_xla_matmul_add_backward(void* call_frame) {
  return enter_xla(number::matmul_add_backward, call_frame);
}
int __tvm_ffi_velo_matmul_add_backward(void*, const void* args, int32_t count, void*) {
  return enter_tvm(number::matmul_add_backward, args, count);
}

int velo_ms_matmul_swiglu(int count, void** params, int* ndims, int64_t** shapes, const char** dtypes,
                          void* stream, void*) {
  return enter_mindspore(number::matmul_swiglu, {count, params, ndims, shapes, dtypes, stream});
}
void* velo_xla_matmul_swiglu(void* call_frame) {
  return enter_xla(number::matmul_swiglu, call_frame);
}
int __tvm_ffi_velo_matmul_swiglu(void*, const void* args, int32_t count, void*) {
  return enter_tvm(number::matmul_swiglu, args, count);
}

int velo_ms_matmul_swiglu_backward(int count, void** params, int* ndims, int64_t** shapes, const char** dtypes,
                                   void* stream, void*) {
  return enter_mindspore(number::matmul_swiglu_backward, {count, params, ndims, shapes, dtypes, stream});
}
void* velo_xla_matmul_swiglu_backward(void* call_frame) {
  return enter_xla(number::matmul_swiglu_backward, call_frame);
}
int __tvm_ffi_velo_matmul_swiglu_backward(void*, const void* args, int32_t count, void*) {
  return enter_tvm(number::matmul_swiglu_backward, args, count);
}

int velo_ms_rms_norm_matmul(int count, void** params, int* ndims, int64_t** shapes, const char** dtypes,
                            void* stream, void*) {
  return enter_mindspore(number::rms_norm_matmul, {count, params, ndims, shapes, dtypes, stream});
}
void* velo_xla_rms_norm_matmul(void* call_frame) {
  return enter_xla(number::rms_norm_matmul, call_frame);
}
int __tvm_ffi_velo_rms_norm_matmul(void*, const void* args, int32_t count, void*) {
  return enter_tvm(number::rms_norm_matmul, args, count);
}

int velo_ms_rms_norm_matmul_backward(int count, void** params, int* ndims, int64_t** shapes, const char** dtypes,
                                     void* stream, void*) {
  return enter_mindspore(number::rms_norm_matmul_backward, {count, params, ndims, shapes, dtypes, stream});
}
void* velo_xla_rms_norm_matmul_backward(void* call_frame) {
  return enter_xla(number::rms_norm_matmul_backward, call_frame);
}
int __tvm_ffi_velo_rms_norm_matmul_backward(void*, const void* args, int32_t count, void*) {
  return enter_tvm(number::rms_norm_matmul_backward, args, count);
}

int velo_ms_matmul_add_fp32(int count, void** params, int* ndims, int64_t** shapes, const char** dtypes,
                            void* stream, void*) {
  return enter_mindspore(number::matmul_add_fp32, {count, params, ndims, shapes, dtypes, stream});
}
void* velo_xla_matmul_add_fp32(void* call_frame) {
  return enter_xla(number::matmul_add_fp32, call_frame);
}
int __tvm_ffi_velo_matmul_add_fp32(void*, const void* args, int32_t count, void*) {
  return enter_tvm(number::matmul_add_fp32, args, count);
}

int velo_ms_grouped_matmul(int count, void** params, int* ndims, int64_t** shapes, const char** dtypes,
                           void* stream, void*) {
  return enter_mindspore(number::grouped_matmul, {count, params, ndims, shapes, dtypes, stream});
}
void* velo_xla_grouped_matmul(void* call_frame) {
  return enter_xla(number::grouped_matmul, call_frame);
}
int __tvm_ffi_velo_grouped_matmul(void*, const void* args, int32_t count, void*) {
  return enter_tvm(number::grouped_matmul, args, count);
}

int velo_ms_grouped_matmul_backward(int count, void** params, int* ndims, int64_t** shapes, const char** dtypes,
                                    void* stream, void*) {
  return enter_mindspore(number::grouped_matmul_backward, {count, params, ndims, shapes, dtypes, stream});
}
void* velo_xla_grouped_matmul_backward(void* call_frame) {
  return enter_xla(number::grouped_matmul_backward, call_frame);
}
int __tvm_ffi_velo_grouped_matmul_backward(void*, const void* args, int32_t count, void*) {
  return enter_tvm(number::grouped_matmul_backward, args, count);
}

int velo_ms_grouped_matmul_add_fp32(int count, void** params, int* ndims, int64_t** shapes, const char** dtypes,
                                    void* stream, void*) {
  return enter_mindspore(number::grouped_matmul_add_fp32, {count, params, ndims, shapes, dtypes, stream});
}
void* velo_xla_grouped_matmul_add_fp32(void* call_frame) {
  return enter_xla(number::grouped_matmul_add_fp32, call_frame);
}
int __tvm_ffi_velo_grouped_matmul_add_fp32(void*, const void* args, int32_t count, void*) {
  return enter_tvm(number::grouped_matmul_add_fp32, args, count);
}

int velo_ms_weight_quant_matmul(int count, void** params, int* ndims, int64_t** shapes, const char** dtypes,
                                void* stream, void*) {
  return enter_mindspore(number::weight_quant_matmul, {count, params, ndims, shapes, dtypes, stream});
}
void* velo_xla_weight_quant_matmul(void* call_frame) {
  return enter_xla(number::weight_quant_matmul, call_frame);
}
int __tvm_ffi_velo_weight_quant_matmul(void*, const void* args, int32_t count, void*) {
  return enter_tvm(number::weight_quant_matmul, args, count);
}

int velo_ms_weight_quant_matmul_backward(int count, void** params, int* ndims, int64_t** shapes, const char** dtypes,
                                         void* stream, void*) {
  return enter_mindspore(number::weight_quant_matmul_backward, {count, params, ndims, shapes, dtypes, stream});
}
void* velo_xla_weight_quant_matmul_backward(void* call_frame) {
  return enter_xla(number::weight_quant_matmul_backward, call_frame);
}
int __tvm_ffi_velo_weight_quant_matmul_backward(void*, const void* args, int32_t count, void*) {
  return enter_tvm(number::weight_quant_matmul_backward, args, count);
}

int velo_ms_weight_quant_grouped_matmul(int count, void** params, int* ndims, int64_t** shapes, const char** dtypes,
                                        void* stream, void*) {
  return enter_mindspore(number::weight_quant_grouped_matmul, {count, params, ndims, shapes, dtypes, stream});
}
void* velo_xla_weight_quant_grouped_matmul(void* call_frame) {
  return enter_xla(number::weight_quant_grouped_matmul, call_frame);
}
int __tvm_ffi_velo_weight_quant_grouped_matmul(void*, const void* args, int32_t count, void*) {
  return enter_tvm(number::weight_quant_grouped_matmul, args, count);
}

int velo_ms_quant_grouped_matmul(int count, void** params, int* ndims, int64_t** shapes, const char** dtypes,
                                 void* stream, void*) {
  return enter_mindspore(number::quant_grouped_matmul, {count, params, ndims, shapes, dtypes, stream});
}
void* velo_xla_quant_grouped_matmul(void* call_frame) {
  return enter_xla(number::quant_grouped_matmul, call_frame);
}
int __tvm_ffi_velo_quant_grouped_matmul(void*, const void* args, int32_t count, void*) {
  return enter_tvm(number::quant_grouped_matmul, args, count);
}

int velo_ms_ffn(int count, void** params, int* ndims, int64_t** shapes, const char** dtypes,
                void* stream, void*) {
  return enter_mindspore(number::ffn, {count, params, ndims, shapes, dtypes, stream});
}
void* velo_xla_ffn(void* call_frame) {
  return enter_xla(number::ffn, call_frame);
}
int __tvm_ffi_velo_ffn(void*, const void* args, int32_t count, void*) {
  return enter_tvm(number::ffn, args, count);
}

int velo_ms_fusion_attention(int count, void** params, int* ndims, int64_t** shapes, const char** dtypes,
                             void* stream, void*) {
  return enter_mindspore(number::fusion_attention, {count, params, ndims, shapes, dtypes, stream});
}
void* velo_xla_fusion_attention(void* call_frame) {
  return enter_xla(number::fusion_attention, call_frame);
}
int __tvm_ffi_velo_fusion_attention(void*, const void* args, int32_t count, void*) {
  return enter_tvm(number::fusion_attention, args, count);
}

int velo_ms_fusion_attention_backward(int count, void** params, int* ndims, int64_t** shapes, const char** dtypes,
                                      void* stream, void*) {
  return enter_mindspore(number::fusion_attention_backward, {count, params, ndims, shapes, dtypes, stream});
}
void* velo_xla_fusion_attention_backward(void* call_frame) {
  return enter_xla(number::fusion_attention_backward, call_frame);
}
int __tvm_ffi_velo_fusion_attention_backward(void*, const void* args, int32_t count, void*) {
  return enter_tvm(number::fusion_attention_backward, args, count);
}

int velo_ms_ring_attention_update(int count, void** params, int* ndims, int64_t** shapes, const char** dtypes,
                                  void* stream, void*) {
  return enter_mindspore(number::ring_attention_update, {count, params, ndims, shapes, dtypes, stream});
}
void* velo_xla_ring_attention_update(void* call_frame) {
  return enter_xla(number::ring_attention_update, call_frame);
}
int __tvm_ffi_velo_ring_attention_update(void*, const void* args, int32_t count, void*) {
  return enter_tvm(number::ring_attention_update, args, count);
}

int velo_ms_flash_attention(int count, void** params, int* ndims, int64_t** shapes, const char** dtypes,
                            void* stream, void*) {
  return enter_mindspore(number::flash_attention, {count, params, ndims, shapes, dtypes, stream});
}
void* velo_xla_flash_attention(void* call_frame) {
  return enter_xla(number::flash_attention, call_frame);
}
int __tvm_ffi_velo_flash_attention(void*, const void* args, int32_t count, void*) {
  return enter_tvm(number::flash_attention, args, count);
}

int velo_ms_flash_attention_backward(int count, void** params, int* ndims, int64_t** shapes, const char** dtypes,
                                     void* stream, void*) {
  return enter_mindspore(number::flash_attention_backward, {count, params, ndims, shapes, dtypes, stream});
}
void* velo_xla_flash_attention_backward(void* call_frame) {
  return enter_xla(number::flash_attention_backward, call_frame);
}
int __tvm_ffi_velo_flash_attention_backward(void*, const void* args, int32_t count, void*) {
  return enter_tvm(number::flash_attention_backward, args, count);
}

int velo_ms_cached_attention(int count, void** params, int* ndims, int64_t** shapes, const char** dtypes,
                             void* stream, void*) {
  return enter_mindspore(number::cached_attention, {count, params, ndims, shapes, dtypes, stream});
}
void* velo_xla_cached_attention(void* call_frame) {
  return enter_xla(number::cached_attention, call_frame);
}
int __tvm_ffi_velo_cached_attention(void*, const void* args, int32_t count, void*) {
  return enter_tvm(number::cached_attention, args, count);
}

int velo_ms_generate_mask(int count, void** params, int* ndims, int64_t** shapes, const char** dtypes,
                          void* stream, void*) {
  return enter_mindspore(number::generate_mask, {count, params, ndims, shapes, dtypes, stream});
}
void* velo_xla_generate_mask(void* call_frame) {
  return enter_xla(number::generate_mask, call_frame);
}
int __tvm_ffi_velo_generate_mask(void*, const void* args, int32_t count, void*) {
  return enter_tvm(number::generate_mask, args, count);
}

int velo_ms_alibi_slopes(int count, void** params, int* ndims, int64_t** shapes, const char** dtypes,
                         void* stream, void*) {
  return enter_mindspore(number::alibi_slopes, {count, params, ndims, shapes, dtypes, stream});
}
void* velo_xla_alibi_slopes(void* call_frame) {
  return enter_xla(number::alibi_slopes, call_frame);
}
int __tvm_ffi_velo_alibi_slopes(void*, const void* args, int32_t count, void*) {
  return enter_tvm(number::alibi_slopes, args, count);
}

int velo_ms_embedding(int count, void** params, int* ndims, int64_t** shapes, const char** dtypes,
                      void* stream, void*) {
  return enter_mindspore(number::embedding, {count, params, ndims, shapes, dtypes, stream});
}
void* velo_xla_embedding(void* call_frame) {
  return enter_xla(number::embedding, call_frame);
}
int __tvm_ffi_velo_embedding(void*, const void* args, int32_t count, void*) {
  return enter_tvm(number::embedding, args, count);
}

int velo_ms_embedding_backward(int count, void** params, int* ndims, int64_t** shapes, const char** dtypes,
                               void* stream, void*) {
  return enter_mindspore(number::embedding_backward, {count, params, ndims, shapes, dtypes, stream});
}
void* velo_xla_embedding_backward(void* call_frame) {
  return enter_xla(number::embedding_backward, call_frame);
}
int __tvm_ffi_velo_embedding_backward(void*, const void* args, int32_t count, void*) {
  return enter_tvm(number::embedding_backward, args, count);
}

int velo_ms_cross_entropy(int count, void** params, int* ndims, int64_t** shapes, const char** dtypes,
                          void* stream, void*) {
  return enter_mindspore(number::cross_entropy, {count, params, ndims, shapes, dtypes, stream});
}
void* velo_xla_cross_entropy(void* call_frame) {
  return enter_xla(number::cross_entropy, call_frame);
}
int __tvm_ffi_velo_cross_entropy(void*, const void* args, int32_t count, void*) {
  return enter_tvm(number::cross_entropy, args, count);
}

int velo_ms_cross_entropy_backward(int count, void** params, int* ndims, int64_t** shapes, const char** dtypes,
                                   void* stream, void*) {
  return enter_mindspore(number::cross_entropy_backward, {count, params, ndims, shapes, dtypes, stream});
}
void* velo_xla_cross_entropy_backward(void* call_frame) {
  return enter_xla(number::cross_entropy_backward, call_frame);
}
int __tvm_ffi_velo_cross_entropy_backward(void*, const void* args, int32_t count, void*) {
  return enter_tvm(number::cross_entropy_backward, args, count);
}

int velo_ms_apply_fused_adamw(int count, void** params, int* ndims, int64_t** shapes, const char** dtypes,
                              void* stream, void*) {
  return enter_mindspore(number::apply_fused_adamw, {count, params, ndims, shapes, dtypes, stream});
}
void* velo_xla_apply_fused_adamw(void* call_frame) {
  return enter_xla(number::apply_fused_adamw, call_frame);
}
int __tvm_ffi_velo_apply_fused_adamw(void*, const void* args, int32_t count, void*) {
  return enter_tvm(number::apply_fused_adamw, args, count);
}

int velo_ms_apply_fused_ema_adamw(int count, void** params, int* ndims, int64_t** shapes, const char** dtypes,
                                  void* stream, void*) {
  return enter_mindspore(number::apply_fused_ema_adamw, {count, params, ndims, shapes, dtypes, stream});
}
void* velo_xla_apply_fused_ema_adamw(void* call_frame) {
  return enter_xla(number::apply_fused_ema_adamw, call_frame);
}
int __tvm_ffi_velo_apply_fused_ema_adamw(void*, const void* args, int32_t count, void*) {
  return enter_tvm(number::apply_fused_ema_adamw, args, count);
}

int velo_ms_multi_tensor_adamw(int count, void** params, int* ndims, int64_t** shapes, const char** dtypes,
                               void* stream, void*) {
  return enter_mindspore(number::multi_tensor_adamw, {count, params, ndims, shapes, dtypes, stream});
}
void* velo_xla_multi_tensor_adamw(void* call_frame) {
  return enter_xla(number::multi_tensor_adamw, call_frame);
}
int __tvm_ffi_velo_multi_tensor_adamw(void*, const void* args, int32_t count, void*) {
  return enter_tvm(number::multi_tensor_adamw, args, count);
}

int velo_ms_multi_tensor_ema_adamw(int count, void** params, int* ndims, int64_t** shapes, const char** dtypes,
                                   void* stream, void*) {
  return enter_mindspore(number::multi_tensor_ema_adamw, {count, params, ndims, shapes, dtypes, stream});
}
void* velo_xla_multi_tensor_ema_adamw(void* call_frame) {
  return enter_xla(number::multi_tensor_ema_adamw, call_frame);
}
int __tvm_ffi_velo_multi_tensor_ema_adamw(void*, const void* args, int32_t count, void*) {
  return enter_tvm(number::multi_tensor_ema_adamw, args, count);
}

int velo_ms_global_norm(int count, void** params, int* ndims, int64_t** shapes, const char** dtypes,
                        void* stream, void*) {
  return enter_mindspore(number::global_norm, {count, params, ndims, shapes, dtypes, stream});
}
void* velo_xla_global_norm(void* call_frame) {
  return enter_xla(number::global_norm, call_frame);
}
int __tvm_ffi_velo_global_norm(void*, const void* args, int32_t count, void*) {
  return enter_tvm(number::global_norm, args, count);
}

int velo_ms_multi_tensor_global_norm(int count, void** params, int* ndims, int64_t** shapes, const char** dtypes,
                                     void* stream, void*) {
  return enter_mindspore(number::multi_tensor_global_norm, {count, params, ndims, shapes, dtypes, stream});
}
void* velo_xla_multi_tensor_global_norm(void* call_frame) {
  return enter_xla(number::multi_tensor_global_norm, call_frame);
}
int __tvm_ffi_velo_multi_tensor_global_norm(void*, const void* args, int32_t count, void*) {
  return enter_tvm(number::multi_tensor_global_norm, args, count);
}

int velo_ms_bf16_param_split(int count, void** params, int* ndims, int64_t** shapes, const char** dtypes,
                             void* stream, void*) {
  return enter_mindspore(number::bf16_param_split, {count, params, ndims, shapes, dtypes, stream});
}
void* velo_xla_bf16_param_split(void* call_frame) {
  return enter_xla(number::bf16_param_split, call_frame);
}
int __tvm_ffi_velo_bf16_param_split(void*, const void* args, int32_t count, void*) {
  return enter_tvm(number::bf16_param_split, args, count);
}

int velo_ms_bf16_param_merge(int count, void** params, int* ndims, int64_t** shapes, const char** dtypes,
                             void* stream, void*) {
  return enter_mindspore(number::bf16_param_merge, {count, params, ndims, shapes, dtypes, stream});
}
void* velo_xla_bf16_param_merge(void* call_frame) {
  return enter_xla(number::bf16_param_merge, call_frame);
}
int __tvm_ffi_velo_bf16_param_merge(void*, const void* args, int32_t count, void*) {
  return enter_tvm(number::bf16_param_merge, args, count);
}

int velo_ms_add(int count, void** params, int* ndims, int64_t** shapes, const char** dtypes,
                void* stream, void*) {
  return enter_mindspore(number::add, {count, params, ndims, shapes, dtypes, stream});
}
void* velo_xla_add(void* call_frame) {
  return enter_xla(number::add, call_frame);
}
int __tvm_ffi_velo_add(void*, const void* args, int32_t count, void*) {
  return enter_tvm(number::add, args, count);
}

int velo_ms_cast(int count, void** params, int* ndims, int64_t** shapes, const char** dtypes,
                 void* stream, void*) {
  return enter_mindspore(number::cast, {count, params, ndims, shapes, dtypes, stream});
}
void* velo_xla_cast(void* call_frame) {
  return enter_xla(number::cast, call_frame);
}
int __tvm_ffi_velo_cast(void*, const void* args, int32_t count, void*) {
  return enter_tvm(number::cast, args, count);
}

int velo_ms_dropout(int count, void** params, int* ndims, int64_t** shapes, const char** dtypes,
                    void* stream, void*) {
  return enter_mindspore(number::dropout, {count, params, ndims, shapes, dtypes, stream});
}
void* velo_xla_dropout(void* call_frame) {
  return enter_xla(number::dropout, call_frame);
}
int __tvm_ffi_velo_dropout(void*, const void* args, int32_t count, void*) {
  return enter_tvm(number::dropout, args, count);
}

int velo_ms_dropout_backward(int count, void** params, int* ndims, int64_t** shapes, const char** dtypes,
                             void* stream, void*) {
  return enter_mindspore(number::dropout_backward, {count, params, ndims, shapes, dtypes, stream});
}
void* velo_xla_dropout_backward(void* call_frame) {
  return enter_xla(number::dropout_backward, call_frame);
}
int __tvm_ffi_velo_dropout_backward(void*, const void* args, int32_t count, void*) {
  return enter_tvm(number::dropout_backward, args, count);
}

int velo_ms_accumulate(int count, void** params, int* ndims, int64_t** shapes, const char** dtypes,
                       void* stream, void*) {
  return enter_mindspore(number::accumulate, {count, params, ndims, shapes, dtypes, stream});
}
void* velo_xla_accumulate(void* call_frame) {
  return enter_xla(number::accumulate, call_frame);
}
int __tvm_ffi_velo_accumulate(void*, const void* args, int32_t count, void*) {
  return enter_tvm(number::accumulate, args, count);
}

int velo_ms_reduce_max_abs(int count, void** params, int* ndims, int64_t** shapes, const char** dtypes,
                           void* stream, void*) {
  return enter_mindspore(number::reduce_max_abs, {count, params, ndims, shapes, dtypes, stream});
}
void* velo_xla_reduce_max_abs(void* call_frame) {
  return enter_xla(number::reduce_max_abs, call_frame);
}
int __tvm_ffi_velo_reduce_max_abs(void*, const void* args, int32_t count, void*) {
  return enter_tvm(number::reduce_max_abs, args, count);
}

int velo_ms_matmul_all_reduce(int count, void** params, int* ndims, int64_t** shapes, const char** dtypes,
                              void* stream, void*) {
  return enter_mindspore(number::matmul_all_reduce, {count, params, ndims, shapes, dtypes, stream});
}
void* velo_xla_matmul_all_reduce(void* call_frame) {
  return enter_xla(number::matmul_all_reduce, call_frame);
}
int __tvm_ffi_velo_matmul_all_reduce(void*, const void* args, int32_t count, void*) {
  return enter_tvm(number::matmul_all_reduce, args, count);
}

int velo_ms_matmul_reduce_scatter(int count, void** params, int* ndims, int64_t** shapes, const char** dtypes,
                                  void* stream, void*) {
  return enter_mindspore(number::matmul_reduce_scatter, {count, params, ndims, shapes, dtypes, stream});
}
void* velo_xla_matmul_reduce_scatter(void* call_frame) {
  return enter_xla(number::matmul_reduce_scatter, call_frame);
}
int __tvm_ffi_velo_matmul_reduce_scatter(void*, const void* args, int32_t count, void*) {
  return enter_tvm(number::matmul_reduce_scatter, args, count);
}

int velo_ms_all_gather_matmul(int count, void** params, int* ndims, int64_t** shapes, const char** dtypes,
                              void* stream, void*) {
  return enter_mindspore(number::all_gather_matmul, {count, params, ndims, shapes, dtypes, stream});
}
void* velo_xla_all_gather_matmul(void* call_frame) {
  return enter_xla(number::all_gather_matmul, call_frame);
}
int __tvm_ffi_velo_all_gather_matmul(void*, const void* args, int32_t count, void*) {
  return enter_tvm(number::all_gather_matmul, args, count);
}

int velo_ms_all_gather_matmul_reduce_scatter(int count, void** params, int* ndims, int64_t** shapes, const char** dtypes,
                                             void* stream, void*) {
  return enter_mindspore(number::all_gather_matmul_reduce_scatter, {count, params, ndims, shapes, dtypes, stream});
}
void* velo_xla_all_gather_matmul_reduce_scatter(void* call_frame) {
  return enter_xla(number::all_gather_matmul_reduce_scatter, call_frame);
}
int __tvm_ffi_velo_all_gather_matmul_reduce_scatter(void*, const void* args, int32_t count, void*) {
  return enter_tvm(number::all_gather_matmul_reduce_scatter, args, count);
}

int velo_ms_matmul_all_reduce_add_rms_norm(int count, void** params, int* ndims, int64_t** shapes, const char** dtypes,
                                           void* stream, void*) {
  return enter_mindspore(number::matmul_all_reduce_add_rms_norm, {count, params, ndims, shapes, dtypes, stream});
}
void* velo_xla_matmul_all_reduce_add_rms_norm(void* call_frame) {
  return enter_xla(number::matmul_all_reduce_add_rms_norm, call_frame);
}
int __tvm_ffi_velo_matmul_all_reduce_add_rms_norm(void*, const void* args, int32_t count, void*) {
  return enter_tvm(number::matmul_all_reduce_add_rms_norm, args, count);
}

int velo_ms_grouped_matmul_all_reduce(int count, void** params, int* ndims, int64_t** shapes, const char** dtypes,
                                      void* stream, void*) {
  return enter_mindspore(number::grouped_matmul_all_reduce, {count, params, ndims, shapes, dtypes, stream});
}
void* velo_xla_grouped_matmul_all_reduce(void* call_frame) {
  return enter_xla(number::grouped_matmul_all_reduce, call_frame);
}
int __tvm_ffi_velo_grouped_matmul_all_reduce(void*, const void* args, int32_t count, void*) {
  return enter_tvm(number::grouped_matmul_all_reduce, args, count);
}

int velo_ms_all_to_all_all_gather_bmm(int count, void** params, int* ndims, int64_t** shapes, const char** dtypes,
                                      void* stream, void*) {
  return enter_mindspore(number::all_to_all_all_gather_bmm, {count, params, ndims, shapes, dtypes, stream});
}
void* velo_xla_all_to_all_all_gather_bmm(void* call_frame) {
  return enter_xla(number::all_to_all_all_gather_bmm, call_frame);
}
int __tvm_ffi_velo_all_to_all_all_gather_bmm(void*, const void* args, int32_t count, void*) {
  return enter_tvm(number::all_to_all_all_gather_bmm, args, count);
}

int velo_ms_bmm_reduce_scatter_all_to_all(int count, void** params, int* ndims, int64_t** shapes, const char** dtypes,
                                          void* stream, void*) {
  return enter_mindspore(number::bmm_reduce_scatter_all_to_all, {count, params, ndims, shapes, dtypes, stream});
}
void* velo_xla_bmm_reduce_scatter_all_to_all(void* call_frame) {
  return enter_xla(number::bmm_reduce_scatter_all_to_all, call_frame);
}
int __tvm_ffi_velo_bmm_reduce_scatter_all_to_all(void*, const void* args, int32_t count, void*) {
  return enter_tvm(number::bmm_reduce_scatter_all_to_all, args, count);
}

int velo_ms_moe_token_permute(int count, void** params, int* ndims, int64_t** shapes, const char** dtypes,
                              void* stream, void*) {
  return enter_mindspore(number::moe_token_permute, {count, params, ndims, shapes, dtypes, stream});
}
void* velo_xla_moe_token_permute(void* call_frame) {
  return enter_xla(number::moe_token_permute, call_frame);
}
int __tvm_ffi_velo_moe_token_permute(void*, const void* args, int32_t count, void*) {
  return enter_tvm(number::moe_token_permute, args, count);
}

int velo_ms_moe_token_permute_backward(int count, void** params, int* ndims, int64_t** shapes, const char** dtypes,
                                       void* stream, void*) {
  return enter_mindspore(number::moe_token_permute_backward, {count, params, ndims, shapes, dtypes, stream});
}
void* velo_xla_moe_token_permute_backward(void* call_frame) {
  return enter_xla(number::moe_token_permute_backward, call_frame);
}
int __tvm_ffi_velo_moe_token_permute_backward(void*, const void* args, int32_t count, void*) {
  return enter_tvm(number::moe_token_permute_backward, args, count);
}

int velo_ms_moe_token_unpermute(int count, void** params, int* ndims, int64_t** shapes, const char** dtypes,
                                void* stream, void*) {
  return enter_mindspore(number::moe_token_unpermute, {count, params, ndims, shapes, dtypes, stream});
}
void* velo_xla_moe_token_unpermute(void* call_frame) {
  return enter_xla(number::moe_token_unpermute, call_frame);
}
int __tvm_ffi_velo_moe_token_unpermute(void*, const void* args, int32_t count, void*) {
  return enter_tvm(number::moe_token_unpermute, args, count);
}

int velo_ms_moe_token_unpermute_backward(int count, void** params, int* ndims, int64_t** shapes, const char** dtypes,
                                         void* stream, void*) {
  return enter_mindspore(number::moe_token_unpermute_backward, {count, params, ndims, shapes, dtypes, stream});
}
void* velo_xla_moe_token_unpermute_backward(void* call_frame) {
  return enter_xla(number::moe_token_unpermute_backward, call_frame);
}
int __tvm_ffi_velo_moe_token_unpermute_backward(void*, const void* args, int32_t count, void*) {
  return enter_tvm(number::moe_token_unpermute_backward, args, count);
}

int velo_ms_topk_router(int count, void** params, int* ndims, int64_t** shapes, const char** dtypes,
                        void* stream, void*) {
  return enter_mindspore(number::topk_router, {count, params, ndims, shapes, dtypes, stream});
}
void* velo_xla_topk_router(void* call_frame) {
  return enter_xla(number::topk_router, call_frame);
}
int __tvm_ffi_velo_topk_router(void*, const void* args, int32_t count, void*) {
  return enter_tvm(number::topk_router, args, count);
}

int velo_ms_topk_router_backward(int count, void** params, int* ndims, int64_t** shapes, const char** dtypes,
                                 void* stream, void*) {
  return enter_mindspore(number::topk_router_backward, {count, params, ndims, shapes, dtypes, stream});
}
void* velo_xla_topk_router_backward(void* call_frame) {
  return enter_xla(number::topk_router_backward, call_frame);
}
int __tvm_ffi_velo_topk_router_backward(void*, const void* args, int32_t count, void*) {
  return enter_tvm(number::topk_router_backward, args, count);
}

int velo_ms_capacity_gate(int count, void** params, int* ndims, int64_t** shapes, const char** dtypes,
                          void* stream, void*) {
  return enter_mindspore(number::capacity_gate, {count, params, ndims, shapes, dtypes, stream});
}
void* velo_xla_capacity_gate(void* call_frame) {
  return enter_xla(number::capacity_gate, call_frame);
}
int __tvm_ffi_velo_capacity_gate(void*, const void* args, int32_t count, void*) {
  return enter_tvm(number::capacity_gate, args, count);
}

int velo_ms_capacity_gate_backward(int count, void** params, int* ndims, int64_t** shapes, const char** dtypes,
                                   void* stream, void*) {
  return enter_mindspore(number::capacity_gate_backward, {count, params, ndims, shapes, dtypes, stream});
}
void* velo_xla_capacity_gate_backward(void* call_frame) {
  return enter_xla(number::capacity_gate_backward, call_frame);
}
int __tvm_ffi_velo_capacity_gate_backward(void*, const void* args, int32_t count, void*) {
  return enter_tvm(number::capacity_gate_backward, args, count);
}

int velo_ms_sinkhorn(int count, void** params, int* ndims, int64_t** shapes, const char** dtypes,
                     void* stream, void*) {
  return enter_mindspore(number::sinkhorn, {count, params, ndims, shapes, dtypes, stream});
}
void* velo_xla_sinkhorn(void* call_frame) {
  return enter_xla(number::sinkhorn, call_frame);
}
int __tvm_ffi_velo_sinkhorn(void*, const void* args, int32_t count, void*) {
  return enter_tvm(number::sinkhorn, args, count);
}

int velo_ms_sinkhorn_backward(int count, void** params, int* ndims, int64_t** shapes, const char** dtypes,
                              void* stream, void*) {
  return enter_mindspore(number::sinkhorn_backward, {count, params, ndims, shapes, dtypes, stream});
}
void* velo_xla_sinkhorn_backward(void* call_frame) {
  return enter_xla(number::sinkhorn_backward, call_frame);
}
int __tvm_ffi_velo_sinkhorn_backward(void*, const void* args, int32_t count, void*) {
  return enter_tvm(number::sinkhorn_backward, args, count);
}

int velo_ms_softmax(int count, void** params, int* ndims, int64_t** shapes, const char** dtypes,
                    void* stream, void*) {
  return enter_mindspore(number::softmax, {count, params, ndims, shapes, dtypes, stream});
}
void* velo_xla_softmax(void* call_frame) {
  return enter_xla(number::softmax, call_frame);
}
int __tvm_ffi_velo_softmax(void*, const void* args, int32_t count, void*) {
  return enter_tvm(number::softmax, args, count);
}

int velo_ms_softmax_backward(int count, void** params, int* ndims, int64_t** shapes, const char** dtypes,
                             void* stream, void*) {
  return enter_mindspore(number::softmax_backward, {count, params, ndims, shapes, dtypes, stream});
}
void* velo_xla_softmax_backward(void* call_frame) {
  return enter_xla(number::softmax_backward, call_frame);
}
int __tvm_ffi_velo_softmax_backward(void*, const void* args, int32_t count, void*) {
  return enter_tvm(number::softmax_backward, args, count);
}

int velo_ms_pad_seqlen(int count, void** params, int* ndims, int64_t** shapes, const char** dtypes,
                       void* stream, void*) {
  return enter_mindspore(number::pad_seqlen, {count, params, ndims, shapes, dtypes, stream});
}
void* velo_xla_pad_seqlen(void* call_frame) {
  return enter_xla(number::pad_seqlen, call_frame);
}
int __tvm_ffi_velo_pad_seqlen(void*, const void* args, int32_t count, void*) {
  return enter_tvm(number::pad_seqlen, args, count);
}

int velo_ms_pad_seqlen_backward(int count, void** params, int* ndims, int64_t** shapes, const char** dtypes,
                                void* stream, void*) {
  return enter_mindspore(number::pad_seqlen_backward, {count, params, ndims, shapes, dtypes, stream});
}
void* velo_xla_pad_seqlen_backward(void* call_frame) {
  return enter_xla(number::pad_seqlen_backward, call_frame);
}
int __tvm_ffi_velo_pad_seqlen_backward(void*, const void* args, int32_t count, void*) {
  return enter_tvm(number::pad_seqlen_backward, args, count);
}

int velo_ms_unpad_seqlen(int count, void** params, int* ndims, int64_t** shapes, const char** dtypes,
                         void* stream, void*) {
  return enter_mindspore(number::unpad_seqlen, {count, params, ndims, shapes, dtypes, stream});
}
void* velo_xla_unpad_seqlen(void* call_frame) {
  return enter_xla(number::unpad_seqlen, call_frame);
}
int __tvm_ffi_velo_unpad_seqlen(void*, const void* args, int32_t count, void*) {
  return enter_tvm(number::unpad_seqlen, args, count);
}

int velo_ms_unpad_seqlen_backward(int count, void** params, int* ndims, int64_t** shapes, const char** dtypes,
                                  void* stream, void*) {
  return enter_mindspore(number::unpad_seqlen_backward, {count, params, ndims, shapes, dtypes, stream});
}
void* velo_xla_unpad_seqlen_backward(void* call_frame) {
  return enter_xla(number::unpad_seqlen_backward, call_frame);
}
int __tvm_ffi_velo_unpad_seqlen_backward(void*, const void* args, int32_t count, void*) {
  return enter_tvm(number::unpad_seqlen_backward, args, count);
}

int velo_ms_unpad_gen_attention_mask(int count, void** params, int* ndims, int64_t** shapes, const char** dtypes,
                                     void* stream, void*) {
  return enter_mindspore(number::unpad_gen_attention_mask, {count, params, ndims, shapes, dtypes, stream});
}
void* velo_xla_unpad_gen_attention_mask(void* call_frame) {
  return enter_xla(number::unpad_gen_attention_mask, call_frame);
}
int __tvm_ffi_velo_unpad_gen_attention_mask(void*, const void* args, int32_t count, void*) {
  return enter_tvm(number::unpad_gen_attention_mask, args, count);
}

int velo_ms_unpad_rope(int count, void** params, int* ndims, int64_t** shapes, const char** dtypes,
                       void* stream, void*) {
  return enter_mindspore(number::unpad_rope, {count, params, ndims, shapes, dtypes, stream});
}
void* velo_xla_unpad_rope(void* call_frame) {
  return enter_xla(number::unpad_rope, call_frame);
}
int __tvm_ffi_velo_unpad_rope(void*, const void* args, int32_t count, void*) {
  return enter_tvm(number::unpad_rope, args, count);
}

int velo_ms_unpad_rope_backward(int count, void** params, int* ndims, int64_t** shapes, const char** dtypes,
                                void* stream, void*) {
  return enter_mindspore(number::unpad_rope_backward, {count, params, ndims, shapes, dtypes, stream});
}
void* velo_xla_unpad_rope_backward(void* call_frame) {
  return enter_xla(number::unpad_rope_backward, call_frame);
}
int __tvm_ffi_velo_unpad_rope_backward(void*, const void* args, int32_t count, void*) {
  return enter_tvm(number::unpad_rope_backward, args, count);
}

int velo_ms_unpad_softmax(int count, void** params, int* ndims, int64_t** shapes, const char** dtypes,
                          void* stream, void*) {
  return enter_mindspore(number::unpad_softmax, {count, params, ndims, shapes, dtypes, stream});
}
void* velo_xla_unpad_softmax(void* call_frame) {
  return enter_xla(number::unpad_softmax, call_frame);
}
int __tvm_ffi_velo_unpad_softmax(void*, const void* args, int32_t count, void*) {
  return enter_tvm(number::unpad_softmax, args, count);
}

int velo_ms_unpad_softmax_backward(int count, void** params, int* ndims, int64_t** shapes, const char** dtypes,
                                   void* stream, void*) {
  return enter_mindspore(number::unpad_softmax_backward, {count, params, ndims, shapes, dtypes, stream});
}
void* velo_xla_unpad_softmax_backward(void* call_frame) {
  return enter_xla(number::unpad_softmax_backward, call_frame);
}
int __tvm_ffi_velo_unpad_softmax_backward(void*, const void* args, int32_t count, void*) {
  return enter_tvm(number::unpad_softmax_backward, args, count);
}

int velo_ms_unpad_strided_batch_matmul(int count, void** params, int* ndims, int64_t** shapes, const char** dtypes,
                                       void* stream, void*) {
  return enter_mindspore(number::unpad_strided_batch_matmul, {count, params, ndims, shapes, dtypes, stream});
}
void* velo_xla_unpad_strided_batch_matmul(void* call_frame) {
  return enter_xla(number::unpad_strided_batch_matmul, call_frame);
}
int __tvm_ffi_velo_unpad_strided_batch_matmul(void*, const void* args, int32_t count, void*) {
  return enter_tvm(number::unpad_strided_batch_matmul, args, count);
}

int velo_ms_unpad_strided_batch_matmul_backward(int count, void** params, int* ndims, int64_t** shapes, const char** dtypes,
                                                void* stream, void*) {
  return enter_mindspore(number::unpad_strided_batch_matmul_backward, {count, params, ndims, shapes, dtypes, stream});
}
void* velo_xla_unpad_strided_batch_matmul_backward(void* call_frame) {
  return enter_xla(number::unpad_strided_batch_matmul_backward, call_frame);
}
int __tvm_ffi_velo_unpad_strided_batch_matmul_backward(void*, const void* args, int32_t count, void*) {
  return enter_tvm(number::unpad_strided_batch_matmul_backward, args, count);
}

int velo_ms_quantize(int count, void** params, int* ndims, int64_t** shapes, const char** dtypes,
                     void* stream, void*) {
  return enter_mindspore(number::quantize, {count, params, ndims, shapes, dtypes, stream});
}
void* velo_xla_quantize(void* call_frame) {
  return enter_xla(number::quantize, call_frame);
}
int __tvm_ffi_velo_quantize(void*, const void* args, int32_t count, void*) {
  return enter_tvm(number::quantize, args, count);
}

int velo_ms_sequence_all_to_all(int count, void** params, int* ndims, int64_t** shapes, const char** dtypes,
                                void* stream, void*) {
  return enter_mindspore(number::sequence_all_to_all, {count, params, ndims, shapes, dtypes, stream});
}
void* velo_xla_sequence_all_to_all(void* call_frame) {
  return enter_xla(number::sequence_all_to_all, call_frame);
}
int __tvm_ffi_velo_sequence_all_to_all(void*, const void* args, int32_t count, void*) {
  return enter_tvm(number::sequence_all_to_all, args, count);
}

int velo_ms_context_parallel_attention(int count, void** params, int* ndims, int64_t** shapes, const char** dtypes,
                                       void* stream, void*) {
  return enter_mindspore(number::context_parallel_attention, {count, params, ndims, shapes, dtypes, stream});
}
void* velo_xla_context_parallel_attention(void* call_frame) {
  return enter_xla(number::context_parallel_attention, call_frame);
}
int __tvm_ffi_velo_context_parallel_attention(void*, const void* args, int32_t count, void*) {
  return enter_tvm(number::context_parallel_attention, args, count);
}

int velo_ms_context_parallel_attention_backward(int count, void** params, int* ndims, int64_t** shapes, const char** dtypes,
                                                void* stream, void*) {
  return enter_mindspore(number::context_parallel_attention_backward, {count, params, ndims, shapes, dtypes, stream});
}
void* velo_xla_context_parallel_attention_backward(void* call_frame) {
  return enter_xla(number::context_parallel_attention_backward, call_frame);
}
int __tvm_ffi_velo_context_parallel_attention_backward(void*, const void* args, int32_t count, void*) {
  return enter_tvm(number::context_parallel_attention_backward, args, count);
}

int velo_ms_vocab_parallel_cross_entropy(int count, void** params, int* ndims, int64_t** shapes, const char** dtypes,
                                         void* stream, void*) {
  return enter_mindspore(number::vocab_parallel_cross_entropy, {count, params, ndims, shapes, dtypes, stream});
}
void* velo_xla_vocab_parallel_cross_entropy(void* call_frame) {
  return enter_xla(number::vocab_parallel_cross_entropy, call_frame);
}
int __tvm_ffi_velo_vocab_parallel_cross_entropy(void*, const void* args, int32_t count, void*) {
  return enter_tvm(number::vocab_parallel_cross_entropy, args, count);
}

int velo_ms_vocab_parallel_cross_entropy_backward(int count, void** params, int* ndims, int64_t** shapes, const char** dtypes,
                                                  void* stream, void*) {
  return enter_mindspore(number::vocab_parallel_cross_entropy_backward, {count, params, ndims, shapes, dtypes, stream});
}
void* velo_xla_vocab_parallel_cross_entropy_backward(void* call_frame) {
  return enter_xla(number::vocab_parallel_cross_entropy_backward, call_frame);
}
int __tvm_ffi_velo_vocab_parallel_cross_entropy_backward(void*, const void* args, int32_t count, void*) {
  return enter_tvm(number::vocab_parallel_cross_entropy_backward, args, count);
}

int velo_ms_vocab_parallel_embedding(int count, void** params, int* ndims, int64_t** shapes, const char** dtypes,
                                     void* stream, void*) {
  return enter_mindspore(number::vocab_parallel_embedding, {count, params, ndims, shapes, dtypes, stream});
}
void* velo_xla_vocab_parallel_embedding(void* call_frame) {
  return enter_xla(number::vocab_parallel_embedding, call_frame);
}
int __tvm_ffi_velo_vocab_parallel_embedding(void*, const void* args, int32_t count, void*) {
  return enter_tvm(number::vocab_parallel_embedding, args, count);
}

int velo_ms_vocab_parallel_embedding_backward(int count, void** params, int* ndims, int64_t** shapes, const char** dtypes,
                                              void* stream, void*) {
  return enter_mindspore(number::vocab_parallel_embedding_backward, {count, params, ndims, shapes, dtypes, stream});
}
void* velo_xla_vocab_parallel_embedding_backward(void* call_frame) {
  return enter_xla(number::vocab_parallel_embedding_backward, call_frame);
}
int __tvm_ffi_velo_vocab_parallel_embedding_backward(void*, const void* args, int32_t count, void*) {
  return enter_tvm(number::vocab_parallel_embedding_backward, args, count);
}

int velo_ms_column_parallel_linear(int count, void** params, int* ndims, int64_t** shapes, const char** dtypes,
                                   void* stream, void*) {
  return enter_mindspore(number::column_parallel_linear, {count, params, ndims, shapes, dtypes, stream});
}
void* velo_xla_column_parallel_linear(void* call_frame) {
  return enter_xla(number::column_parallel_linear, call_frame);
}
int __tvm_ffi_velo_column_parallel_linear(void*, const void* args, int32_t count, void*) {
  return enter_tvm(number::column_parallel_linear, args, count);
}

int velo_ms_column_parallel_linear_backward(int count, void** params, int* ndims, int64_t** shapes, const char** dtypes,
                                            void* stream, void*) {
  return enter_mindspore(number::column_parallel_linear_backward, {count, params, ndims, shapes, dtypes, stream});
}
void* velo_xla_column_parallel_linear_backward(void* call_frame) {
  return enter_xla(number::column_parallel_linear_backward, call_frame);
}
int __tvm_ffi_velo_column_parallel_linear_backward(void*, const void* args, int32_t count, void*) {
  return enter_tvm(number::column_parallel_linear_backward, args, count);
}

int velo_ms_row_parallel_linear(int count, void** params, int* ndims, int64_t** shapes, const char** dtypes,
                                void* stream, void*) {
  return enter_mindspore(number::row_parallel_linear, {count, params, ndims, shapes, dtypes, stream});
}
void* velo_xla_row_parallel_linear(void* call_frame) {
  return enter_xla(number::row_parallel_linear, call_frame);
}
int __tvm_ffi_velo_row_parallel_linear(void*, const void* args, int32_t count, void*) {
  return enter_tvm(number::row_parallel_linear, args, count);
}

int velo_ms_row_parallel_linear_backward(int count, void** params, int* ndims, int64_t** shapes, const char** dtypes,
                                         void* stream, void*) {
  return enter_mindspore(number::row_parallel_linear_backward, {count, params, ndims, shapes, dtypes, stream});
}
void* velo_xla_row_parallel_linear_backward(void* call_frame) {
  return enter_xla(number::row_parallel_linear_backward, call_frame);
}
int __tvm_ffi_velo_row_parallel_linear_backward(void*, const void* args, int32_t count, void*) {
  return enter_tvm(number::row_parallel_linear_backward, args, count);
}

int velo_ms_parallel_rms_norm(int count, void** params, int* ndims, int64_t** shapes, const char** dtypes,
                              void* stream, void*) {
  return enter_mindspore(number::parallel_rms_norm, {count, params, ndims, shapes, dtypes, stream});
}
void* velo_xla_parallel_rms_norm(void* call_frame) {
  return enter_xla(number::parallel_rms_norm, call_frame);
}
int __tvm_ffi_velo_parallel_rms_norm(void*, const void* args, int32_t count, void*) {
  return enter_tvm(number::parallel_rms_norm, args, count);
}

int velo_ms_parallel_rms_norm_backward(int count, void** params, int* ndims, int64_t** shapes, const char** dtypes,
                                       void* stream, void*) {
  return enter_mindspore(number::parallel_rms_norm_backward, {count, params, ndims, shapes, dtypes, stream});
}
void* velo_xla_parallel_rms_norm_backward(void* call_frame) {
  return enter_xla(number::parallel_rms_norm_backward, call_frame);
}
int __tvm_ffi_velo_parallel_rms_norm_backward(void*, const void* args, int32_t count, void*) {
  return enter_tvm(number::parallel_rms_norm_backward, args, count);
}

int velo_ms_parallel_layer_norm(int count, void** params, int* ndims, int64_t** shapes, const char** dtypes,
                                void* stream, void*) {
  return enter_mindspore(number::parallel_layer_norm, {count, params, ndims, shapes, dtypes, stream});
}
void* velo_xla_parallel_layer_norm(void* call_frame) {
  return enter_xla(number::parallel_layer_norm, call_frame);
}
int __tvm_ffi_velo_parallel_layer_norm(void*, const void* args, int32_t count, void*) {
  return enter_tvm(number::parallel_layer_norm, args, count);
}

int velo_ms_parallel_layer_norm_backward(int count, void** params, int* ndims, int64_t** shapes, const char** dtypes,
                                         void* stream, void*) {
  return enter_mindspore(number::parallel_layer_norm_backward, {count, params, ndims, shapes, dtypes, stream});
}
void* velo_xla_parallel_layer_norm_backward(void* call_frame) {
  return enter_xla(number::parallel_layer_norm_backward, call_frame);
}
int __tvm_ffi_velo_parallel_layer_norm_backward(void*, const void* args, int32_t count, void*) {
  return enter_tvm(number::parallel_layer_norm_backward, args, count);
}

int velo_ms_capacity(int count, void** params, int* ndims, int64_t** shapes, const char** dtypes,
                     void* stream, void*) {
  return enter_mindspore(number::capacity, {count, params, ndims, shapes, dtypes, stream});
}
void* velo_xla_capacity(void* call_frame) {
  return enter_xla(number::capacity, call_frame);
}
int __tvm_ffi_velo_capacity(void*, const void* args, int32_t count, void*) {
  return enter_tvm(number::capacity, args, count);
}

int velo_ms_slot_000(int count, void** params, int* ndims, int64_t** shapes, const char** dtypes,
                     void* stream, void*) {
  return enter_mindspore_slot(0, {count, params, ndims, shapes, dtypes, stream});
}
void* velo_ms_slot_000InferShape(void* result, int* ndims, int64_t** shapes, void*) {
  return infer_mindspore_slot(0, result, ndims, shapes);
}

int velo_ms_slot_001(int count, void** params, int* ndims, int64_t** shapes, const char** dtypes,
                     void* stream, void*) {
  return enter_mindspore_slot(1, {count, params, ndims, shapes, dtypes, stream});
}
void* velo_ms_slot_001InferShape(void* result, int* ndims, int64_t** shapes, void*) {
  return infer_mindspore_slot(1, result, ndims, shapes);
}

int velo_ms_slot_002(int count, void** params, int* ndims, int64_t** shapes, const char** dtypes,
                     void* stream, void*) {
  return enter_mindspore_slot(2, {count, params, ndims, shapes, dtypes, stream});
}
void* velo_ms_slot_002InferShape(void* result, int* ndims, int64_t** shapes, void*) {
  return infer_mindspore_slot(2, result, ndims, shapes);
}

int velo_ms_slot_003(int count, void** params, int* ndims, int64_t** shapes, const char** dtypes,
                     void* stream, void*) {
  return enter_mindspore_slot(3, {count, params, ndims, shapes, dtypes, stream});
}
void* velo_ms_slot_003InferShape(void* result, int* ndims, int64_t** shapes, void*) {
  return infer_mindspore_slot(3, result, ndims, shapes);
}

int velo_ms_slot_004(int count, void** params, int* ndims, int64_t** shapes, const char** dtypes,
                     void* stream, void*) {
  return enter_mindspore_slot(4, {count, params, ndims, shapes, dtypes, stream});
}
void* velo_ms_slot_004InferShape(void* result, int* ndims, int64_t** shapes, void*) {
  return infer_mindspore_slot(4, result, ndims, shapes);
}

int velo_ms_slot_005(int count, void** params, int* ndims, int64_t** shapes, const char** dtypes,
                     void* stream, void*) {
  return enter_mindspore_slot(5, {count, params, ndims, shapes, dtypes, stream});
}
void* velo_ms_slot_005InferShape(void* result, int* ndims, int64_t** shapes, void*) {
  return infer_mindspore_slot(5, result, ndims, shapes);
}

int velo_ms_slot_006(int count, void** params, int* ndims, int64_t** shapes, const char** dtypes,
                     void* stream, void*) {
  return enter_mindspore_slot(6, {count, params, ndims, shapes, dtypes, stream});
}
void* velo_ms_slot_006InferShape(void* result, int* ndims, int64_t** shapes, void*) {
  return infer_mindspore_slot(6, result, ndims, shapes);
}

int velo_ms_slot_007(int count, void** params, int* ndims, int64_t** shapes, const char** dtypes,
                     void* stream, void*) {
  return enter_mindspore_slot(7, {count, params, ndims, shapes, dtypes, stream});
}
void* velo_ms_slot_007InferShape(void* result, int* ndims, int64_t** shapes, void*) {
  return infer_mindspore_slot(7, result, ndims, shapes);
}

int velo_ms_slot_008(int count, void** params, int* ndims, int64_t** shapes, const char** dtypes,
                     void* stream, void*) {
  return enter_mindspore_slot(8, {count, params, ndims, shapes, dtypes, stream});
}
void* velo_ms_slot_008InferShape(void* result, int* ndims, int64_t** shapes, void*) {
  return infer_mindspore_slot(8, result, ndims, shapes);
}

int velo_ms_slot_009(int count, void** params, int* ndims, int64_t** shapes, const char** dtypes,
                     void* stream, void*) {
  return enter_mindspore_slot(9, {count, params, ndims, shapes, dtypes, stream});
}
void* velo_ms_slot_009InferShape(void* result, int* ndims, int64_t** shapes, void*) {
  return infer_mindspore_slot(9, result, ndims, shapes);
}

int velo_ms_slot_010(int count, void** params, int* ndims, int64_t** shapes, const char** dtypes,
                     void* stream, void*) {
  return enter_mindspore_slot(10, {count, params, ndims, shapes, dtypes, stream});
}
void* velo_ms_slot_010InferShape(void* result, int* ndims, int64_t** shapes, void*) {
  return infer_mindspore_slot(10, result, ndims, shapes);
}

int velo_ms_slot_011(int count, void** params, int* ndims, int64_t** shapes, const char** dtypes,
                     void* stream, void*) {
  return enter_mindspore_slot(11, {count, params, ndims, shapes, dtypes, stream});
}
void* velo_ms_slot_011InferShape(void* result, int* ndims, int64_t** shapes, void*) {
  return infer_mindspore_slot(11, result, ndims, shapes);
}

int velo_ms_slot_012(int count, void** params, int* ndims, int64_t** shapes, const char** dtypes,
                     void* stream, void*) {
  return enter_mindspore_slot(12, {count, params, ndims, shapes, dtypes, stream});
}
void* velo_ms_slot_012InferShape(void* result, int* ndims, int64_t** shapes, void*) {
  return infer_mindspore_slot(12, result, ndims, shapes);
}

int velo_ms_slot_013(int count, void** params, int* ndims, int64_t** shapes, const char** dtypes,
                     void* stream, void*) {
  return enter_mindspore_slot(13, {count, params, ndims, shapes, dtypes, stream});
}
void* velo_ms_slot_013InferShape(void* result, int* ndims, int64_t** shapes, void*) {
  return infer_mindspore_slot(13, result, ndims, shapes);
}

int velo_ms_slot_014(int count, void** params, int* ndims, int64_t** shapes, const char** dtypes,
                     void* stream, void*) {
  return enter_mindspore_slot(14, {count, params, ndims, shapes, dtypes, stream});
}
void* velo_ms_slot_014InferShape(void* result, int* ndims, int64_t** shapes, void*) {
  return infer_mindspore_slot(14, result, ndims, shapes);
}

int velo_ms_slot_015(int count, void** params, int* ndims, int64_t** shapes, const char** dtypes,
                     void* stream, void*) {
  return enter_mindspore_slot(15, {count, params, ndims, shapes, dtypes, stream});
}
void* velo_ms_slot_015InferShape(void* result, int* ndims, int64_t** shapes, void*) {
  return infer_mindspore_slot(15, result, ndims, shapes);
}

int velo_ms_slot_016(int count, void** params, int* ndims, int64_t** shapes, const char** dtypes,
                     void* stream, void*) {
  return enter_mindspore_slot(16, {count, params, ndims, shapes, dtypes, stream});
}
void* velo_ms_slot_016InferShape(void* result, int* ndims, int64_t** shapes, void*) {
  return infer_mindspore_slot(16, result, ndims, shapes);
}

int velo_ms_slot_017(int count, void** params, int* ndims, int64_t** shapes, const char** dtypes,
                     void* stream, void*) {
  return enter_mindspore_slot(17, {count, params, ndims, shapes, dtypes, stream});
}
void* velo_ms_slot_017InferShape(void* result, int* ndims, int64_t** shapes, void*) {
  return infer_mindspore_slot(17, result, ndims, shapes);
}

int velo_ms_slot_018(int count, void** params, int* ndims, int64_t** shapes, const char** dtypes,
                     void* stream, void*) {
  return enter_mindspore_slot(18, {count, params, ndims, shapes, dtypes, stream});
}
void* velo_ms_slot_018InferShape(void* result, int* ndims, int64_t** shapes, void*) {
  return infer_mindspore_slot(18, result, ndims, shapes);
}

int velo_ms_slot_019(int count, void** params, int* ndims, int64_t** shapes, const char** dtypes,
                     void* stream, void*) {
  return enter_mindspore_slot(19, {count, params, ndims, shapes, dtypes, stream});
}
void* velo_ms_slot_019InferShape(void* result, int* ndims, int64_t** shapes, void*) {
  return infer_mindspore_slot(19, result, ndims, shapes);
}

int velo_ms_slot_020(int count, void** params, int* ndims, int64_t** shapes, const char** dtypes,
                     void* stream, void*) {
  return enter_mindspore_slot(20, {count, params, ndims, shapes, dtypes, stream});
}
void* velo_ms_slot_020InferShape(void* result, int* ndims, int64_t** shapes, void*) {
  return infer_mindspore_slot(20, result, ndims, shapes);
}

int velo_ms_slot_021(int count, void** params, int* ndims, int64_t** shapes, const char** dtypes,
                     void* stream, void*) {
  return enter_mindspore_slot(21, {count, params, ndims, shapes, dtypes, stream});
}
void* velo_ms_slot_021InferShape(void* result, int* ndims, int64_t** shapes, void*) {
  return infer_mindspore_slot(21, result, ndims, shapes);
}

int velo_ms_slot_022(int count, void** params, int* ndims, int64_t** shapes, const char** dtypes,
                     void* stream, void*) {
  return enter_mindspore_slot(22, {count, params, ndims, shapes, dtypes, stream});
}
void* velo_ms_slot_022InferShape(void* result, int* ndims, int64_t** shapes, void*) {
  return infer_mindspore_slot(22, result, ndims, shapes);
}

int velo_ms_slot_023(int count, void** params, int* ndims, int64_t** shapes, const char** dtypes,
                     void* stream, void*) {
  return enter_mindspore_slot(23, {count, params, ndims, shapes, dtypes, stream});
}
void* velo_ms_slot_023InferShape(void* result, int* ndims, int64_t** shapes, void*) {
  return infer_mindspore_slot(23, result, ndims, shapes);
}

int velo_ms_slot_024(int count, void** params, int* ndims, int64_t** shapes, const char** dtypes,
                     void* stream, void*) {
  return enter_mindspore_slot(24, {count, params, ndims, shapes, dtypes, stream});
}
void* velo_ms_slot_024InferShape(void* result, int* ndims, int64_t** shapes, void*) {
  return infer_mindspore_slot(24, result, ndims, shapes);
}

int velo_ms_slot_025(int count, void** params, int* ndims, int64_t** shapes, const char** dtypes,
                     void* stream, void*) {
  return enter_mindspore_slot(25, {count, params, ndims, shapes, dtypes, stream});
}
void* velo_ms_slot_025InferShape(void* result, int* ndims, int64_t** shapes, void*) {
  return infer_mindspore_slot(25, result, ndims, shapes);
}

int velo_ms_slot_026(int count, void** params, int* ndims, int64_t** shapes, const char** dtypes,
                     void* stream, void*) {
  return enter_mindspore_slot(26, {count, params, ndims, shapes, dtypes, stream});
}
void* velo_ms_slot_026InferShape(void* result, int* ndims, int64_t** shapes, void*) {
  return infer_mindspore_slot(26, result, ndims, shapes);
}

int velo_ms_slot_027(int count, void** params, int* ndims, int64_t** shapes, const char** dtypes,
                     void* stream, void*) {
  return enter_mindspore_slot(27, {count, params, ndims, shapes, dtypes, stream});
}
void* velo_ms_slot_027InferShape(void* result, int* ndims, int64_t** shapes, void*) {
  return infer_mindspore_slot(27, result, ndims, shapes);
}

int velo_ms_slot_028(int count, void** params, int* ndims, int64_t** shapes, const char** dtypes,
                     void* stream, void*) {
  return enter_mindspore_slot(28, {count, params, ndims, shapes, dtypes, stream});
}
void* velo_ms_slot_028InferShape(void* result, int* ndims, int64_t** shapes, void*) {
  return infer_mindspore_slot(28, result, ndims, shapes);
}

int velo_ms_slot_029(int count, void** params, int* ndims, int64_t** shapes, const char** dtypes,
                     void* stream, void*) {
  return enter_mindspore_slot(29, {count, params, ndims, shapes, dtypes, stream});
}
void* velo_ms_slot_029InferShape(void* result, int* ndims, int64_t** shapes, void*) {
  return infer_mindspore_slot(29, result, ndims, shapes);
}

int velo_ms_slot_030(int count, void** params, int* ndims, int64_t** shapes, const char** dtypes,
                     void* stream, void*) {
  return enter_mindspore_slot(30, {count, params, ndims, shapes, dtypes, stream});
}
void* velo_ms_slot_030InferShape(void* result, int* ndims, int64_t** shapes, void*) {
  return infer_mindspore_slot(30, result, ndims, shapes);
}

int velo_ms_slot_031(int count, void** params, int* ndims, int64_t** shapes, const char** dtypes,
                     void* stream, void*) {
  return enter_mindspore_slot(31, {count, params, ndims, shapes, dtypes, stream});
}
void* velo_ms_slot_031InferShape(void* result, int* ndims, int64_t** shapes, void*) {
  return infer_mindspore_slot(31, result, ndims, shapes);
}

int velo_ms_slot_032(int count, void** params, int* ndims, int64_t** shapes, const char** dtypes,
                     void* stream, void*) {
  return enter_mindspore_slot(32, {count, params, ndims, shapes, dtypes, stream});
}
void* velo_ms_slot_032InferShape(void* result, int* ndims, int64_t** shapes, void*) {
  return infer_mindspore_slot(32, result, ndims, shapes);
}

int velo_ms_slot_033(int count, void** params, int* ndims, int64_t** shapes, const char** dtypes,
                     void* stream, void*) {
  return enter_mindspore_slot(33, {count, params, ndims, shapes, dtypes, stream});
}
void* velo_ms_slot_033InferShape(void* result, int* ndims, int64_t** shapes, void*) {
  return infer_mindspore_slot(33, result, ndims, shapes);
}

int velo_ms_slot_034(int count, void** params, int* ndims, int64_t** shapes, const char** dtypes,
                     void* stream, void*) {
  return enter_mindspore_slot(34, {count, params, ndims, shapes, dtypes, stream});
}
void* velo_ms_slot_034InferShape(void* result, int* ndims, int64_t** shapes, void*) {
  return infer_mindspore_slot(34, result, ndims, shapes);
}

int velo_ms_slot_035(int count, void** params, int* ndims, int64_t** shapes, const char** dtypes,
                     void* stream, void*) {
  return enter_mindspore_slot(35, {count, params, ndims, shapes, dtypes, stream});
}
void* velo_ms_slot_035InferShape(void* result, int* ndims, int64_t** shapes, void*) {
  return infer_mindspore_slot(35, result, ndims, shapes);
}

int velo_ms_slot_036(int count, void** params, int* ndims, int64_t** shapes, const char** dtypes,
                     void* stream, void*) {
  return enter_mindspore_slot(36, {count, params, ndims, shapes, dtypes, stream});
}
void* velo_ms_slot_036InferShape(void* result, int* ndims, int64_t** shapes, void*) {
  return infer_mindspore_slot(36, result, ndims, shapes);
}

int velo_ms_slot_037(int count, void** params, int* ndims, int64_t** shapes, const char** dtypes,
                     void* stream, void*) {
  return enter_mindspore_slot(37, {count, params, ndims, shapes, dtypes, stream});
}
void* velo_ms_slot_037InferShape(void* result, int* ndims, int64_t** shapes, void*) {
  return infer_mindspore_slot(37, result, ndims, shapes);
}

int velo_ms_slot_038(int count, void** params, int* ndims, int64_t** shapes, const char** dtypes,
                     void* stream, void*) {
  return enter_mindspore_slot(38, {count, params, ndims, shapes, dtypes, stream});
}
void* velo_ms_slot_038InferShape(void* result, int* ndims, int64_t** shapes, void*) {
  return infer_mindspore_slot(38, result, ndims, shapes);
}

int velo_ms_slot_039(int count, void** params, int* ndims, int64_t** shapes, const char** dtypes,
                     void* stream, void*) {
  return enter_mindspore_slot(39, {count, params, ndims, shapes, dtypes, stream});
}
void* velo_ms_slot_039InferShape(void* result, int* ndims, int64_t** shapes, void*) {
  return infer_mindspore_slot(39, result, ndims, shapes);
}

int velo_ms_slot_040(int count, void** params, int* ndims, int64_t** shapes, const char** dtypes,
                     void* stream, void*) {
  return enter_mindspore_slot(40, {count, params, ndims, shapes, dtypes, stream});
}
void* velo_ms_slot_040InferShape(void* result, int* ndims, int64_t** shapes, void*) {
  return infer_mindspore_slot(40, result, ndims, shapes);
}

int velo_ms_slot_041(int count, void** params, int* ndims, int64_t** shapes, const char** dtypes,
                     void* stream, void*) {
  return enter_mindspore_slot(41, {count, params, ndims, shapes, dtypes, stream});
}
void* velo_ms_slot_041InferShape(void* result, int* ndims, int64_t** shapes, void*) {
  return infer_mindspore_slot(41, result, ndims, shapes);
}

int velo_ms_slot_042(int count, void** params, int* ndims, int64_t** shapes, const char** dtypes,
                     void* stream, void*) {
  return enter_mindspore_slot(42, {count, params, ndims, shapes, dtypes, stream});
}
void* velo_ms_slot_042InferShape(void* result, int* ndims, int64_t** shapes, void*) {
  return infer_mindspore_slot(42, result, ndims, shapes);
}

int velo_ms_slot_043(int count, void** params, int* ndims, int64_t** shapes, const char** dtypes,
                     void* stream, void*) {
  return enter_mindspore_slot(43, {count, params, ndims, shapes, dtypes, stream});
}
void* velo_ms_slot_043InferShape(void* result, int* ndims, int64_t** shapes, void*) {
  return infer_mindspore_slot(43, result, ndims, shapes);
}

int velo_ms_slot_044(int count, void** params, int* ndims, int64_t** shapes, const char** dtypes,
                     void* stream, void*) {
  return enter_mindspore_slot(44, {count, params, ndims, shapes, dtypes, stream});
}
void* velo_ms_slot_044InferShape(void* result, int* ndims, int64_t** shapes, void*) {
  return infer_mindspore_slot(44, result, ndims, shapes);
}

int velo_ms_slot_045(int count, void** params, int* ndims, int64_t** shapes, const char** dtypes,
                     void* stream, void*) {
  return enter_mindspore_slot(45, {count, params, ndims, shapes, dtypes, stream});
}
void* velo_ms_slot_045InferShape(void* result, int* ndims, int64_t** shapes, void*) {
  return infer_mindspore_slot(45, result, ndims, shapes);
}

int velo_ms_slot_046(int count, void** params, int* ndims, int64_t** shapes, const char** dtypes,
                     void* stream, void*) {
  return enter_mindspore_slot(46, {count, params, ndims, shapes, dtypes, stream});
}
void* velo_ms_slot_046InferShape(void* result, int* ndims, int64_t** shapes, void*) {
  return infer_mindspore_slot(46, result, ndims, shapes);
}

int velo_ms_slot_047(int count, void** params, int* ndims, int64_t** shapes, const char** dtypes,
                     void* stream, void*) {
  return enter_mindspore_slot(47, {count, params, ndims, shapes, dtypes, stream});
}
void* velo_ms_slot_047InferShape(void* result, int* ndims, int64_t** shapes, void*) {
  return infer_mindspore_slot(47, result, ndims, shapes);
}

int velo_ms_slot_048(int count, void** params, int* ndims, int64_t** shapes, const char** dtypes,
                     void* stream, void*) {
  return enter_mindspore_slot(48, {count, params, ndims, shapes, dtypes, stream});
}
void* velo_ms_slot_048InferShape(void* result, int* ndims, int64_t** shapes, void*) {
  return infer_mindspore_slot(48, result, ndims, shapes);
}

int velo_ms_slot_049(int count, void** params, int* ndims, int64_t** shapes, const char** dtypes,
                     void* stream, void*) {
  return enter_mindspore_slot(49, {count, params, ndims, shapes, dtypes, stream});
}
void* velo_ms_slot_049InferShape(void* result, int* ndims, int64_t** shapes, void*) {
  return infer_mindspore_slot(49, result, ndims, shapes);
}

int velo_ms_slot_050(int count, void** params, int* ndims, int64_t** shapes, const char** dtypes,
                     void* stream, void*) {
  return enter_mindspore_slot(50, {count, params, ndims, shapes, dtypes, stream});
}
void* velo_ms_slot_050InferShape(void* result, int* ndims, int64_t** shapes, void*) {
  return infer_mindspore_slot(50, result, ndims, shapes);
}

int velo_ms_slot_051(int count, void** params, int* ndims, int64_t** shapes, const char** dtypes,
                     void* stream, void*) {
  return enter_mindspore_slot(51, {count, params, ndims, shapes, dtypes, stream});
}
void* velo_ms_slot_051InferShape(void* result, int* ndims, int64_t** shapes, void*) {
  return infer_mindspore_slot(51, result, ndims, shapes);
}

int velo_ms_slot_052(int count, void** params, int* ndims, int64_t** shapes, const char** dtypes,
                     void* stream, void*) {
  return enter_mindspore_slot(52, {count, params, ndims, shapes, dtypes, stream});
}
void* velo_ms_slot_052InferShape(void* result, int* ndims, int64_t** shapes, void*) {
  return infer_mindspore_slot(52, result, ndims, shapes);
}

int velo_ms_slot_053(int count, void** params, int* ndims, int64_t** shapes, const char** dtypes,
                     void* stream, void*) {
  return enter_mindspore_slot(53, {count, params, ndims, shapes, dtypes, stream});
}
void* velo_ms_slot_053InferShape(void* result, int* ndims, int64_t** shapes, void*) {
  return infer_mindspore_slot(53, result, ndims, shapes);
}

int velo_ms_slot_054(int count, void** params, int* ndims, int64_t** shapes, const char** dtypes,
                     void* stream, void*) {
  return enter_mindspore_slot(54, {count, params, ndims, shapes, dtypes, stream});
}
void* velo_ms_slot_054InferShape(void* result, int* ndims, int64_t** shapes, void*) {
  return infer_mindspore_slot(54, result, ndims, shapes);
}

int velo_ms_slot_055(int count, void** params, int* ndims, int64_t** shapes, const char** dtypes,
                     void* stream, void*) {
  return enter_mindspore_slot(55, {count, params, ndims, shapes, dtypes, stream});
}
void* velo_ms_slot_055InferShape(void* result, int* ndims, int64_t** shapes, void*) {
  return infer_mindspore_slot(55, result, ndims, shapes);
}

int velo_ms_slot_056(int count, void** params, int* ndims, int64_t** shapes, const char** dtypes,
                     void* stream, void*) {
  return enter_mindspore_slot(56, {count, params, ndims, shapes, dtypes, stream});
}
void* velo_ms_slot_056InferShape(void* result, int* ndims, int64_t** shapes, void*) {
  return infer_mindspore_slot(56, result, ndims, shapes);
}

int velo_ms_slot_057(int count, void** params, int* ndims, int64_t** shapes, const char** dtypes,
                     void* stream, void*) {
  return enter_mindspore_slot(57, {count, params, ndims, shapes, dtypes, stream});
}
void* velo_ms_slot_057InferShape(void* result, int* ndims, int64_t** shapes, void*) {
  return infer_mindspore_slot(57, result, ndims, shapes);
}

int velo_ms_slot_058(int count, void** params, int* ndims, int64_t** shapes, const char** dtypes,
                     void* stream, void*) {
  return enter_mindspore_slot(58, {count, params, ndims, shapes, dtypes, stream});
}
void* velo_ms_slot_058InferShape(void* result, int* ndims, int64_t** shapes, void*) {
  return infer_mindspore_slot(58, result, ndims, shapes);
}

int velo_ms_slot_059(int count, void** params, int* ndims, int64_t** shapes, const char** dtypes,
                     void* stream, void*) {
  return enter_mindspore_slot(59, {count, params, ndims, shapes, dtypes, stream});
}
void* velo_ms_slot_059InferShape(void* result, int* ndims, int64_t** shapes, void*) {
  return infer_mindspore_slot(59, result, ndims, shapes);
}

int velo_ms_slot_060(int count, void** params, int* ndims, int64_t** shapes, const char** dtypes,
                     void* stream, void*) {
  return enter_mindspore_slot(60, {count, params, ndims, shapes, dtypes, stream});
}
void* velo_ms_slot_060InferShape(void* result, int* ndims, int64_t** shapes, void*) {
  return infer_mindspore_slot(60, result, ndims, shapes);
}

int velo_ms_slot_061(int count, void** params, int* ndims, int64_t** shapes, const char** dtypes,
                     void* stream, void*) {
  return enter_mindspore_slot(61, {count, params, ndims, shapes, dtypes, stream});
}
void* velo_ms_slot_061InferShape(void* result, int* ndims, int64_t** shapes, void*) {
  return infer_mindspore_slot(61, result, ndims, shapes);
}

int velo_ms_slot_062(int count, void** params, int* ndims, int64_t** shapes, const char** dtypes,
                     void* stream, void*) {
  return enter_mindspore_slot(62, {count, params, ndims, shapes, dtypes, stream});
}
void* velo_ms_slot_062InferShape(void* result, int* ndims, int64_t** shapes, void*) {
  return infer_mindspore_slot(62, result, ndims, shapes);
}

int velo_ms_slot_063(int count, void** params, int* ndims, int64_t** shapes, const char** dtypes,
                     void* stream, void*) {
  return enter_mindspore_slot(63, {count, params, ndims, shapes, dtypes, stream});
}
void* velo_ms_slot_063InferShape(void* result, int* ndims, int64_t** shapes, void*) {
  return infer_mindspore_slot(63, result, ndims, shapes);
}

int velo_ms_slot_064(int count, void** params, int* ndims, int64_t** shapes, const char** dtypes,
                     void* stream, void*) {
  return enter_mindspore_slot(64, {count, params, ndims, shapes, dtypes, stream});
}
void* velo_ms_slot_064InferShape(void* result, int* ndims, int64_t** shapes, void*) {
  return infer_mindspore_slot(64, result, ndims, shapes);
}

int velo_ms_slot_065(int count, void** params, int* ndims, int64_t** shapes, const char** dtypes,
                     void* stream, void*) {
  return enter_mindspore_slot(65, {count, params, ndims, shapes, dtypes, stream});
}
void* velo_ms_slot_065InferShape(void* result, int* ndims, int64_t** shapes, void*) {
  return infer_mindspore_slot(65, result, ndims, shapes);
}

int velo_ms_slot_066(int count, void** params, int* ndims, int64_t** shapes, const char** dtypes,
                     void* stream, void*) {
  return enter_mindspore_slot(66, {count, params, ndims, shapes, dtypes, stream});
}
void* velo_ms_slot_066InferShape(void* result, int* ndims, int64_t** shapes, void*) {
  return infer_mindspore_slot(66, result, ndims, shapes);
}

int velo_ms_slot_067(int count, void** params, int* ndims, int64_t** shapes, const char** dtypes,
                     void* stream, void*) {
  return enter_mindspore_slot(67, {count, params, ndims, shapes, dtypes, stream});
}
void* velo_ms_slot_067InferShape(void* result, int* ndims, int64_t** shapes, void*) {
  return infer_mindspore_slot(67, result, ndims, shapes);
}

int velo_ms_slot_068(int count, void** params, int* ndims, int64_t** shapes, const char** dtypes,
                     void* stream, void*) {
  return enter_mindspore_slot(68, {count, params, ndims, shapes, dtypes, stream});
}
void* velo_ms_slot_068InferShape(void* result, int* ndims, int64_t** shapes, void*) {
  return infer_mindspore_slot(68, result, ndims, shapes);
}

int velo_ms_slot_069(int count, void** params, int* ndims, int64_t** shapes, const char** dtypes,
                     void* stream, void*) {
  return enter_mindspore_slot(69, {count, params, ndims, shapes, dtypes, stream});
}
void* velo_ms_slot_069InferShape(void* result, int* ndims, int64_t** shapes, void*) {
  return infer_mindspore_slot(69, result, ndims, shapes);
}

int velo_ms_slot_070(int count, void** params, int* ndims, int64_t** shapes, const char** dtypes,
                     void* stream, void*) {
  return enter_mindspore_slot(70, {count, params, ndims, shapes, dtypes, stream});
}
void* velo_ms_slot_070InferShape(void* result, int* ndims, int64_t** shapes, void*) {
  return infer_mindspore_slot(70, result, ndims, shapes);
}

int velo_ms_slot_071(int count, void** params, int* ndims, int64_t** shapes, const char** dtypes,
                     void* stream, void*) {
  return enter_mindspore_slot(71, {count, params, ndims, shapes, dtypes, stream});
}
void* velo_ms_slot_071InferShape(void* result, int* ndims, int64_t** shapes, void*) {
  return infer_mindspore_slot(71, result, ndims, shapes);
}

int velo_ms_slot_072(int count, void** params, int* ndims, int64_t** shapes, const char** dtypes,
                     void* stream, void*) {
  return enter_mindspore_slot(72, {count, params, ndims, shapes, dtypes, stream});
}
void* velo_ms_slot_072InferShape(void* result, int* ndims, int64_t** shapes, void*) {
  return infer_mindspore_slot(72, result, ndims, shapes);
}

int velo_ms_slot_073(int count, void** params, int* ndims, int64_t** shapes, const char** dtypes,
                     void* stream, void*) {
  return enter_mindspore_slot(73, {count, params, ndims, shapes, dtypes, stream});
}
void* velo_ms_slot_073InferShape(void* result, int* ndims, int64_t** shapes, void*) {
  return infer_mindspore_slot(73, result, ndims, shapes);
}

int velo_ms_slot_074(int count, void** params, int* ndims, int64_t** shapes, const char** dtypes,
                     void* stream, void*) {
  return enter_mindspore_slot(74, {count, params, ndims, shapes, dtypes, stream});
}
void* velo_ms_slot_074InferShape(void* result, int* ndims, int64_t** shapes, void*) {
  return infer_mindspore_slot(74, result, ndims, shapes);
}

int velo_ms_slot_075(int count, void** params, int* ndims, int64_t** shapes, const char** dtypes,
                     void* stream, void*) {
  return enter_mindspore_slot(75, {count, params, ndims, shapes, dtypes, stream});
}
void* velo_ms_slot_075InferShape(void* result, int* ndims, int64_t** shapes, void*) {
  return infer_mindspore_slot(75, result, ndims, shapes);
}

int velo_ms_slot_076(int count, void** params, int* ndims, int64_t** shapes, const char** dtypes,
                     void* stream, void*) {
  return enter_mindspore_slot(76, {count, params, ndims, shapes, dtypes, stream});
}
void* velo_ms_slot_076InferShape(void* result, int* ndims, int64_t** shapes, void*) {
  return infer_mindspore_slot(76, result, ndims, shapes);
}

int velo_ms_slot_077(int count, void** params, int* ndims, int64_t** shapes, const char** dtypes,
                     void* stream, void*) {
  return enter_mindspore_slot(77, {count, params, ndims, shapes, dtypes, stream});
}
void* velo_ms_slot_077InferShape(void* result, int* ndims, int64_t** shapes, void*) {
  return infer_mindspore_slot(77, result, ndims, shapes);
}

int velo_ms_slot_078(int count, void** params, int* ndims, int64_t** shapes, const char** dtypes,
                     void* stream, void*) {
  return enter_mindspore_slot(78, {count, params, ndims, shapes, dtypes, stream});
}
void* velo_ms_slot_078InferShape(void* result, int* ndims, int64_t** shapes, void*) {
  return infer_mindspore_slot(78, result, ndims, shapes);
}

int velo_ms_slot_079(int count, void** params, int* ndims, int64_t** shapes, const char** dtypes,
                     void* stream, void*) {
  return enter_mindspore_slot(79, {count, params, ndims, shapes, dtypes, stream});
}
void* velo_ms_slot_079InferShape(void* result, int* ndims, int64_t** shapes, void*) {
  return infer_mindspore_slot(79, result, ndims, shapes);
}

int velo_ms_slot_080(int count, void** params, int* ndims, int64_t** shapes, const char** dtypes,
                     void* stream, void*) {
  return enter_mindspore_slot(80, {count, params, ndims, shapes, dtypes, stream});
}
void* velo_ms_slot_080InferShape(void* result, int* ndims, int64_t** shapes, void*) {
  return infer_mindspore_slot(80, result, ndims, shapes);
}

int velo_ms_slot_081(int count, void** params, int* ndims, int64_t** shapes, const char** dtypes,
                     void* stream, void*) {
  return enter_mindspore_slot(81, {count, params, ndims, shapes, dtypes, stream});
}
void* velo_ms_slot_081InferShape(void* result, int* ndims, int64_t** shapes, void*) {
  return infer_mindspore_slot(81, result, ndims, shapes);
}

int velo_ms_slot_082(int count, void** params, int* ndims, int64_t** shapes, const char** dtypes,
                     void* stream, void*) {
  return enter_mindspore_slot(82, {count, params, ndims, shapes, dtypes, stream});
}
void* velo_ms_slot_082InferShape(void* result, int* ndims, int64_t** shapes, void*) {
  return infer_mindspore_slot(82, result, ndims, shapes);
}

int velo_ms_slot_083(int count, void** params, int* ndims, int64_t** shapes, const char** dtypes,
                     void* stream, void*) {
  return enter_mindspore_slot(83, {count, params, ndims, shapes, dtypes, stream});
}
void* velo_ms_slot_083InferShape(void* result, int* ndims, int64_t** shapes, void*) {
  return infer_mindspore_slot(83, result, ndims, shapes);
}

int velo_ms_slot_084(int count, void** params, int* ndims, int64_t** shapes, const char** dtypes,
                     void* stream, void*) {
  return enter_mindspore_slot(84, {count, params, ndims, shapes, dtypes, stream});
}
void* velo_ms_slot_084InferShape(void* result, int* ndims, int64_t** shapes, void*) {
  return infer_mindspore_slot(84, result, ndims, shapes);
}

int velo_ms_slot_085(int count, void** params, int* ndims, int64_t** shapes, const char** dtypes,
                     void* stream, void*) {
  return enter_mindspore_slot(85, {count, params, ndims, shapes, dtypes, stream});
}
void* velo_ms_slot_085InferShape(void* result, int* ndims, int64_t** shapes, void*) {
  return infer_mindspore_slot(85, result, ndims, shapes);
}

int velo_ms_slot_086(int count, void** params, int* ndims, int64_t** shapes, const char** dtypes,
                     void* stream, void*) {
  return enter_mindspore_slot(86, {count, params, ndims, shapes, dtypes, stream});
}
void* velo_ms_slot_086InferShape(void* result, int* ndims, int64_t** shapes, void*) {
  return infer_mindspore_slot(86, result, ndims, shapes);
}

int velo_ms_slot_087(int count, void** params, int* ndims, int64_t** shapes, const char** dtypes,
                     void* stream, void*) {
  return enter_mindspore_slot(87, {count, params, ndims, shapes, dtypes, stream});
}
void* velo_ms_slot_087InferShape(void* result, int* ndims, int64_t** shapes, void*) {
  return infer_mindspore_slot(87, result, ndims, shapes);
}

int velo_ms_slot_088(int count, void** params, int* ndims, int64_t** shapes, const char** dtypes,
                     void* stream, void*) {
  return enter_mindspore_slot(88, {count, params, ndims, shapes, dtypes, stream});
}
void* velo_ms_slot_088InferShape(void* result, int* ndims, int64_t** shapes, void*) {
  return infer_mindspore_slot(88, result, ndims, shapes);
}

int velo_ms_slot_089(int count, void** params, int* ndims, int64_t** shapes, const char** dtypes,
                     void* stream, void*) {
  return enter_mindspore_slot(89, {count, params, ndims, shapes, dtypes, stream});
}
void* velo_ms_slot_089InferShape(void* result, int* ndims, int64_t** shapes, void*) {
  return infer_mindspore_slot(89, result, ndims, shapes);
}

int velo_ms_slot_090(int count, void** params, int* ndims, int64_t** shapes, const char** dtypes,
                     void* stream, void*) {
  return enter_mindspore_slot(90, {count, params, ndims, shapes, dtypes, stream});
}
void* velo_ms_slot_090InferShape(void* result, int* ndims, int64_t** shapes, void*) {
  return infer_mindspore_slot(90, result, ndims, shapes);
}

int velo_ms_slot_091(int count, void** params, int* ndims, int64_t** shapes, const char** dtypes,
                     void* stream, void*) {
  return enter_mindspore_slot(91, {count, params, ndims, shapes, dtypes, stream});
}
void* velo_ms_slot_091InferShape(void* result, int* ndims, int64_t** shapes, void*) {
  return infer_mindspore_slot(91, result, ndims, shapes);
}

int velo_ms_slot_092(int count, void** params, int* ndims, int64_t** shapes, const char** dtypes,
                     void* stream, void*) {
  return enter_mindspore_slot(92, {count, params, ndims, shapes, dtypes, stream});
}
void* velo_ms_slot_092InferShape(void* result, int* ndims, int64_t** shapes, void*) {
  return infer_mindspore_slot(92, result, ndims, shapes);
}

int velo_ms_slot_093(int count, void** params, int* ndims, int64_t** shapes, const char** dtypes,
                     void* stream, void*) {
  return enter_mindspore_slot(93, {count, params, ndims, shapes, dtypes, stream});
}
void* velo_ms_slot_093InferShape(void* result, int* ndims, int64_t** shapes, void*) {
  return infer_mindspore_slot(93, result, ndims, shapes);
}

int velo_ms_slot_094(int count, void** params, int* ndims, int64_t** shapes, const char** dtypes,
                     void* stream, void*) {
  return enter_mindspore_slot(94, {count, params, ndims, shapes, dtypes, stream});
}
void* velo_ms_slot_094InferShape(void* result, int* ndims, int64_t** shapes, void*) {
  return infer_mindspore_slot(94, result, ndims, shapes);
}

int velo_ms_slot_095(int count, void** params, int* ndims, int64_t** shapes, const char** dtypes,
                     void* stream, void*) {
  return enter_mindspore_slot(95, {count, params, ndims, shapes, dtypes, stream});
}
void* velo_ms_slot_095InferShape(void* result, int* ndims, int64_t** shapes, void*) {
  return infer_mindspore_slot(95, result, ndims, shapes);
}

int velo_ms_slot_096(int count, void** params, int* ndims, int64_t** shapes, const char** dtypes,
                     void* stream, void*) {
  return enter_mindspore_slot(96, {count, params, ndims, shapes, dtypes, stream});
}
void* velo_ms_slot_096InferShape(void* result, int* ndims, int64_t** shapes, void*) {
  return infer_mindspore_slot(96, result, ndims, shapes);
}

int velo_ms_slot_097(int count, void** params, int* ndims, int64_t** shapes, const char** dtypes,
                     void* stream, void*) {
  return enter_mindspore_slot(97, {count, params, ndims, shapes, dtypes, stream});
}
void* velo_ms_slot_097InferShape(void* result, int* ndims, int64_t** shapes, void*) {
  return infer_mindspore_slot(97, result, ndims, shapes);
}

int velo_ms_slot_098(int count, void** params, int* ndims, int64_t** shapes, const char** dtypes,
                     void* stream, void*) {
  return enter_mindspore_slot(98, {count, params, ndims, shapes, dtypes, stream});
}
void* velo_ms_slot_098InferShape(void* result, int* ndims, int64_t** shapes, void*) {
  return infer_mindspore_slot(98, result, ndims, shapes);
}

int velo_ms_slot_099(int count, void** params, int* ndims, int64_t** shapes, const char** dtypes,
                     void* stream, void*) {
  return enter_mindspore_slot(99, {count, params, ndims, shapes, dtypes, stream});
}
void* velo_ms_slot_099InferShape(void* result, int* ndims, int64_t** shapes, void*) {
  return infer_mindspore_slot(99, result, ndims, shapes);
}

int velo_ms_slot_100(int count, void** params, int* ndims, int64_t** shapes, const char** dtypes,
                     void* stream, void*) {
  return enter_mindspore_slot(100, {count, params, ndims, shapes, dtypes, stream});
}
void* velo_ms_slot_100InferShape(void* result, int* ndims, int64_t** shapes, void*) {
  return infer_mindspore_slot(100, result, ndims, shapes);
}

int velo_ms_slot_101(int count, void** params, int* ndims, int64_t** shapes, const char** dtypes,
                     void* stream, void*) {
  return enter_mindspore_slot(101, {count, params, ndims, shapes, dtypes, stream});
}
void* velo_ms_slot_101InferShape(void* result, int* ndims, int64_t** shapes, void*) {
  return infer_mindspore_slot(101, result, ndims, shapes);
}

int velo_ms_slot_102(int count, void** params, int* ndims, int64_t** shapes, const char** dtypes,
                     void* stream, void*) {
  return enter_mindspore_slot(102, {count, params, ndims, shapes, dtypes, stream});
}
void* velo_ms_slot_102InferShape(void* result, int* ndims, int64_t** shapes, void*) {
  return infer_mindspore_slot(102, result, ndims, shapes);
}

int velo_ms_slot_103(int count, void** params, int* ndims, int64_t** shapes, const char** dtypes,
                     void* stream, void*) {
  return enter_mindspore_slot(103, {count, params, ndims, shapes, dtypes, stream});
}
void* velo_ms_slot_103InferShape(void* result, int* ndims, int64_t** shapes, void*) {
  return infer_mindspore_slot(103, result, ndims, shapes);
}

int velo_ms_slot_104(int count, void** params, int* ndims, int64_t** shapes, const char** dtypes,
                     void* stream, void*) {
  return enter_mindspore_slot(104, {count, params, ndims, shapes, dtypes, stream});
}
void* velo_ms_slot_104InferShape(void* result, int* ndims, int64_t** shapes, void*) {
  return infer_mindspore_slot(104, result, ndims, shapes);
}

int velo_ms_slot_105(int count, void** params, int* ndims, int64_t** shapes, const char** dtypes,
                     void* stream, void*) {
  return enter_mindspore_slot(105, {count, params, ndims, shapes, dtypes, stream});
}
void* velo_ms_slot_105InferShape(void* result, int* ndims, int64_t** shapes, void*) {
  return infer_mindspore_slot(105, result, ndims, shapes);
}

int velo_ms_slot_106(int count, void** params, int* ndims, int64_t** shapes, const char** dtypes,
                     void* stream, void*) {
  return enter_mindspore_slot(106, {count, params, ndims, shapes, dtypes, stream});
}
void* velo_ms_slot_106InferShape(void* result, int* ndims, int64_t** shapes, void*) {
  return infer_mindspore_slot(106, result, ndims, shapes);
}

int velo_ms_slot_107(int count, void** params, int* ndims, int64_t** shapes, const char** dtypes,
                     void* stream, void*) {
  return enter_mindspore_slot(107, {count, params, ndims, shapes, dtypes, stream});
}
void* velo_ms_slot_107InferShape(void* result, int* ndims, int64_t** shapes, void*) {
  return infer_mindspore_slot(107, result, ndims, shapes);
}

int velo_ms_slot_108(int count, void** params, int* ndims, int64_t** shapes, const char** dtypes,
                     void* stream, void*) {
  return enter_mindspore_slot(108, {count, params, ndims, shapes, dtypes, stream});
}
void* velo_ms_slot_108InferShape(void* result, int* ndims, int64_t** shapes, void*) {
  return infer_mindspore_slot(108, result, ndims, shapes);
}

int velo_ms_slot_109(int count, void** params, int* ndims, int64_t** shapes, const char** dtypes,
                     void* stream, void*) {
  return enter_mindspore_slot(109, {count, params, ndims, shapes, dtypes, stream});
}
void* velo_ms_slot_109InferShape(void* result, int* ndims, int64_t** shapes, void*) {
  return infer_mindspore_slot(109, result, ndims, shapes);
}

int velo_ms_slot_110(int count, void** params, int* ndims, int64_t** shapes, const char** dtypes,
                     void* stream, void*) {
  return enter_mindspore_slot(110, {count, params, ndims, shapes, dtypes, stream});
}
void* velo_ms_slot_110InferShape(void* result, int* ndims, int64_t** shapes, void*) {
  return infer_mindspore_slot(110, result, ndims, shapes);
}

int velo_ms_slot_111(int count, void** params, int* ndims, int64_t** shapes, const char** dtypes,
                     void* stream, void*) {
  return enter_mindspore_slot(111, {count, params, ndims, shapes, dtypes, stream});
}
void* velo_ms_slot_111InferShape(void* result, int* ndims, int64_t** shapes, void*) {
  return infer_mindspore_slot(111, result, ndims, shapes);
}

int velo_ms_slot_112(int count, void** params, int* ndims, int64_t** shapes, const char** dtypes,
                     void* stream, void*) {
  return enter_mindspore_slot(112, {count, params, ndims, shapes, dtypes, stream});
}
void* velo_ms_slot_112InferShape(void* result, int* ndims, int64_t** shapes, void*) {
  return infer_mindspore_slot(112, result, ndims, shapes);
}

int velo_ms_slot_113(int count, void** params, int* ndims, int64_t** shapes, const char** dtypes,
                     void* stream, void*) {
  return enter_mindspore_slot(113, {count, params, ndims, shapes, dtypes, stream});
}
void* velo_ms_slot_113InferShape(void* result, int* ndims, int64_t** shapes, void*) {
  return infer_mindspore_slot(113, result, ndims, shapes);
}

int velo_ms_slot_114(int count, void** params, int* ndims, int64_t** shapes, const char** dtypes,
                     void* stream, void*) {
  return enter_mindspore_slot(114, {count, params, ndims, shapes, dtypes, stream});
}
void* velo_ms_slot_114InferShape(void* result, int* ndims, int64_t** shapes, void*) {
  return infer_mindspore_slot(114, result, ndims, shapes);
}

int velo_ms_slot_115(int count, void** params, int* ndims, int64_t** shapes, const char** dtypes,
                     void* stream, void*) {
  return enter_mindspore_slot(115, {count, params, ndims, shapes, dtypes, stream});
}
void* velo_ms_slot_115InferShape(void* result, int* ndims, int64_t** shapes, void*) {
  return infer_mindspore_slot(115, result, ndims, shapes);
}

int velo_ms_slot_116(int count, void** params, int* ndims, int64_t** shapes, const char** dtypes,
                     void* stream, void*) {
  return enter_mindspore_slot(116, {count, params, ndims, shapes, dtypes, stream});
}
void* velo_ms_slot_116InferShape(void* result, int* ndims, int64_t** shapes, void*) {
  return infer_mindspore_slot(116, result, ndims, shapes);
}

int velo_ms_slot_117(int count, void** params, int* ndims, int64_t** shapes, const char** dtypes,
                     void* stream, void*) {
  return enter_mindspore_slot(117, {count, params, ndims, shapes, dtypes, stream});
}
void* velo_ms_slot_117InferShape(void* result, int* ndims, int64_t** shapes, void*) {
  return infer_mindspore_slot(117, result, ndims, shapes);
}

int velo_ms_slot_118(int count, void** params, int* ndims, int64_t** shapes, const char** dtypes,
                     void* stream, void*) {
  return enter_mindspore_slot(118, {count, params, ndims, shapes, dtypes, stream});
}
void* velo_ms_slot_118InferShape(void* result, int* ndims, int64_t** shapes, void*) {
  return infer_mindspore_slot(118, result, ndims, shapes);
}

int velo_ms_slot_119(int count, void** params, int* ndims, int64_t** shapes, const char** dtypes,
                     void* stream, void*) {
  return enter_mindspore_slot(119, {count, params, ndims, shapes, dtypes, stream});
}
void* velo_ms_slot_119InferShape(void* result, int* ndims, int64_t** shapes, void*) {
  return infer_mindspore_slot(119, result, ndims, shapes);
}

int velo_ms_slot_120(int count, void** params, int* ndims, int64_t** shapes, const char** dtypes,
                     void* stream, void*) {
  return enter_mindspore_slot(120, {count, params, ndims, shapes, dtypes, stream});
}
void* velo_ms_slot_120InferShape(void* result, int* ndims, int64_t** shapes, void*) {
  return infer_mindspore_slot(120, result, ndims, shapes);
}

int velo_ms_slot_121(int count, void** params, int* ndims, int64_t** shapes, const char** dtypes,
                     void* stream, void*) {
  return enter_mindspore_slot(121, {count, params, ndims, shapes, dtypes, stream});
}
void* velo_ms_slot_121InferShape(void* result, int* ndims, int64_t** shapes, void*) {
  return infer_mindspore_slot(121, result, ndims, shapes);
}

int velo_ms_slot_122(int count, void** params, int* ndims, int64_t** shapes, const char** dtypes,
                     void* stream, void*) {
  return enter_mindspore_slot(122, {count, params, ndims, shapes, dtypes, stream});
}
void* velo_ms_slot_122InferShape(void* result, int* ndims, int64_t** shapes, void*) {
  return infer_mindspore_slot(122, result, ndims, shapes);
}

int velo_ms_slot_123(int count, void** params, int* ndims, int64_t** shapes, const char** dtypes,
                     void* stream, void*) {
  return enter_mindspore_slot(123, {count, params, ndims, shapes, dtypes, stream});
}
void* velo_ms_slot_123InferShape(void* result, int* ndims, int64_t** shapes, void*) {
  return infer_mindspore_slot(123, result, ndims, shapes);
}

int velo_ms_slot_124(int count, void** params, int* ndims, int64_t** shapes, const char** dtypes,
                     void* stream, void*) {
  return enter_mindspore_slot(124, {count, params, ndims, shapes, dtypes, stream});
}
void* velo_ms_slot_124InferShape(void* result, int* ndims, int64_t** shapes, void*) {
  return infer_mindspore_slot(124, result, ndims, shapes);
}

int velo_ms_slot_125(int count, void** params, int* ndims, int64_t** shapes, const char** dtypes,
                     void* stream, void*) {
  return enter_mindspore_slot(125, {count, params, ndims, shapes, dtypes, stream});
}
void* velo_ms_slot_125InferShape(void* result, int* ndims, int64_t** shapes, void*) {
  return infer_mindspore_slot(125, result, ndims, shapes);
}

int velo_ms_slot_126(int count, void** params, int* ndims, int64_t** shapes, const char** dtypes,
                     void* stream, void*) {
  return enter_mindspore_slot(126, {count, params, ndims, shapes, dtypes, stream});
}
void* velo_ms_slot_126InferShape(void* result, int* ndims, int64_t** shapes, void*) {
  return infer_mindspore_slot(126, result, ndims, shapes);
}

int velo_ms_slot_127(int count, void** params, int* ndims, int64_t** shapes, const char** dtypes,
                     void* stream, void*) {
  return enter_mindspore_slot(127, {count, params, ndims, shapes, dtypes, stream});
}
void* velo_ms_slot_127InferShape(void* result, int* ndims, int64_t** shapes, void*) {
  return infer_mindspore_slot(127, result, ndims, shapes);
}

int velo_ms_slot_128(int count, void** params, int* ndims, int64_t** shapes, const char** dtypes,
                     void* stream, void*) {
  return enter_mindspore_slot(128, {count, params, ndims, shapes, dtypes, stream});
}
void* velo_ms_slot_128InferShape(void* result, int* ndims, int64_t** shapes, void*) {
  return infer_mindspore_slot(128, result, ndims, shapes);
}

int velo_ms_slot_129(int count, void** params, int* ndims, int64_t** shapes, const char** dtypes,
                     void* stream, void*) {
  return enter_mindspore_slot(129, {count, params, ndims, shapes, dtypes, stream});
}
void* velo_ms_slot_129InferShape(void* result, int* ndims, int64_t** shapes, void*) {
  return infer_mindspore_slot(129, result, ndims, shapes);
}

int velo_ms_slot_130(int count, void** params, int* ndims, int64_t** shapes, const char** dtypes,
                     void* stream, void*) {
  return enter_mindspore_slot(130, {count, params, ndims, shapes, dtypes, stream});
}
void* velo_ms_slot_130InferShape(void* result, int* ndims, int64_t** shapes, void*) {
  return infer_mindspore_slot(130, result, ndims, shapes);
}

int velo_ms_slot_131(int count, void** params, int* ndims, int64_t** shapes, const char** dtypes,
                     void* stream, void*) {
  return enter_mindspore_slot(131, {count, params, ndims, shapes, dtypes, stream});
}
void* velo_ms_slot_131InferShape(void* result, int* ndims, int64_t** shapes, void*) {
  return infer_mindspore_slot(131, result, ndims, shapes);
}

int velo_ms_slot_132(int count, void** params, int* ndims, int64_t** shapes, const char** dtypes,
                     void* stream, void*) {
  return enter_mindspore_slot(132, {count, params, ndims, shapes, dtypes, stream});
}
void* velo_ms_slot_132InferShape(void* result, int* ndims, int64_t** shapes, void*) {
  return infer_mindspore_slot(132, result, ndims, shapes);
}

int velo_ms_slot_133(int count, void** params, int* ndims, int64_t** shapes, const char** dtypes,
                     void* stream, void*) {
  return enter_mindspore_slot(133, {count, params, ndims, shapes, dtypes, stream});
}
void* velo_ms_slot_133InferShape(void* result, int* ndims, int64_t** shapes, void*) {
  return infer_mindspore_slot(133, result, ndims, shapes);
}

int velo_ms_slot_134(int count, void** params, int* ndims, int64_t** shapes, const char** dtypes,
                     void* stream, void*) {
  return enter_mindspore_slot(134, {count, params, ndims, shapes, dtypes, stream});
}
void* velo_ms_slot_134InferShape(void* result, int* ndims, int64_t** shapes, void*) {
  return infer_mindspore_slot(134, result, ndims, shapes);
}

int velo_ms_slot_135(int count, void** params, int* ndims, int64_t** shapes, const char** dtypes,
                     void* stream, void*) {
  return enter_mindspore_slot(135, {count, params, ndims, shapes, dtypes, stream});
}
void* velo_ms_slot_135InferShape(void* result, int* ndims, int64_t** shapes, void*) {
  return infer_mindspore_slot(135, result, ndims, shapes);
}

int velo_ms_slot_136(int count, void** params, int* ndims, int64_t** shapes, const char** dtypes,
                     void* stream, void*) {
  return enter_mindspore_slot(136, {count, params, ndims, shapes, dtypes, stream});
}
void* velo_ms_slot_136InferShape(void* result, int* ndims, int64_t** shapes, void*) {
  return infer_mindspore_slot(136, result, ndims, shapes);
}

int velo_ms_slot_137(int count, void** params, int* ndims, int64_t** shapes, const char** dtypes,
                     void* stream, void*) {
  return enter_mindspore_slot(137, {count, params, ndims, shapes, dtypes, stream});
}
void* velo_ms_slot_137InferShape(void* result, int* ndims, int64_t** shapes, void*) {
  return infer_mindspore_slot(137, result, ndims, shapes);
}

int velo_ms_slot_138(int count, void** params, int* ndims, int64_t** shapes, const char** dtypes,
                     void* stream, void*) {
  return enter_mindspore_slot(138, {count, params, ndims, shapes, dtypes, stream});
}
void* velo_ms_slot_138InferShape(void* result, int* ndims, int64_t** shapes, void*) {
  return infer_mindspore_slot(138, result, ndims, shapes);
}

int velo_ms_slot_139(int count, void** params, int* ndims, int64_t** shapes, const char** dtypes,
                     void* stream, void*) {
  return enter_mindspore_slot(139, {count, params, ndims, shapes, dtypes, stream});
}
void* velo_ms_slot_139InferShape(void* result, int* ndims, int64_t** shapes, void*) {
  return infer_mindspore_slot(139, result, ndims, shapes);
}

int velo_ms_slot_140(int count, void** params, int* ndims, int64_t** shapes, const char** dtypes,
                     void* stream, void*) {
  return enter_mindspore_slot(140, {count, params, ndims, shapes, dtypes, stream});
}
void* velo_ms_slot_140InferShape(void* result, int* ndims, int64_t** shapes, void*) {
  return infer_mindspore_slot(140, result, ndims, shapes);
}

int velo_ms_slot_141(int count, void** params, int* ndims, int64_t** shapes, const char** dtypes,
                     void* stream, void*) {
  return enter_mindspore_slot(141, {count, params, ndims, shapes, dtypes, stream});
}
void* velo_ms_slot_141InferShape(void* result, int* ndims, int64_t** shapes, void*) {
  return infer_mindspore_slot(141, result, ndims, shapes);
}

int velo_ms_slot_142(int count, void** params, int* ndims, int64_t** shapes, const char** dtypes,
                     void* stream, void*) {
  return enter_mindspore_slot(142, {count, params, ndims, shapes, dtypes, stream});
}
void* velo_ms_slot_142InferShape(void* result, int* ndims, int64_t** shapes, void*) {
  return infer_mindspore_slot(142, result, ndims, shapes);
}

int velo_ms_slot_143(int count, void** params, int* ndims, int64_t** shapes, const char** dtypes,
                     void* stream, void*) {
  return enter_mindspore_slot(143, {count, params, ndims, shapes, dtypes, stream});
}
void* velo_ms_slot_143InferShape(void* result, int* ndims, int64_t** shapes, void*) {
  return infer_mindspore_slot(143, result, ndims, shapes);
}

int velo_ms_slot_144(int count, void** params, int* ndims, int64_t** shapes, const char** dtypes,
                     void* stream, void*) {
  return enter_mindspore_slot(144, {count, params, ndims, shapes, dtypes, stream});
}
void* velo_ms_slot_144InferShape(void* result, int* ndims, int64_t** shapes, void*) {
  return infer_mindspore_slot(144, result, ndims, shapes);
}

int velo_ms_slot_145(int count, void** params, int* ndims, int64_t** shapes, const char** dtypes,
                     void* stream, void*) {
  return enter_mindspore_slot(145, {count, params, ndims, shapes, dtypes, stream});
}
void* velo_ms_slot_145InferShape(void* result, int* ndims, int64_t** shapes, void*) {
  return infer_mindspore_slot(145, result, ndims, shapes);
}

int velo_ms_slot_146(int count, void** params, int* ndims, int64_t** shapes, const char** dtypes,
                     void* stream, void*) {
  return enter_mindspore_slot(146, {count, params, ndims, shapes, dtypes, stream});
}
void* velo_ms_slot_146InferShape(void* result, int* ndims, int64_t** shapes, void*) {
  return infer_mindspore_slot(146, result, ndims, shapes);
}

int velo_ms_slot_147(int count, void** params, int* ndims, int64_t** shapes, const char** dtypes,
                     void* stream, void*) {
  return enter_mindspore_slot(147, {count, params, ndims, shapes, dtypes, stream});
}
void* velo_ms_slot_147InferShape(void* result, int* ndims, int64_t** shapes, void*) {
  return infer_mindspore_slot(147, result, ndims, shapes);
}

int velo_ms_slot_148(int count, void** params, int* ndims, int64_t** shapes, const char** dtypes,
                     void* stream, void*) {
  return enter_mindspore_slot(148, {count, params, ndims, shapes, dtypes, stream});
}
void* velo_ms_slot_148InferShape(void* result, int* ndims, int64_t** shapes, void*) {
  return infer_mindspore_slot(148, result, ndims, shapes);
}

int velo_ms_slot_149(int count, void** params, int* ndims, int64_t** shapes, const char** dtypes,
                     void* stream, void*) {
  return enter_mindspore_slot(149, {count, params, ndims, shapes, dtypes, stream});
}
void* velo_ms_slot_149InferShape(void* result, int* ndims, int64_t** shapes, void*) {
  return infer_mindspore_slot(149, result, ndims, shapes);
}

int velo_ms_slot_150(int count, void** params, int* ndims, int64_t** shapes, const char** dtypes,
                     void* stream, void*) {
  return enter_mindspore_slot(150, {count, params, ndims, shapes, dtypes, stream});
}
void* velo_ms_slot_150InferShape(void* result, int* ndims, int64_t** shapes, void*) {
  return infer_mindspore_slot(150, result, ndims, shapes);
}

int velo_ms_slot_151(int count, void** params, int* ndims, int64_t** shapes, const char** dtypes,
                     void* stream, void*) {
  return enter_mindspore_slot(151, {count, params, ndims, shapes, dtypes, stream});
}
void* velo_ms_slot_151InferShape(void* result, int* ndims, int64_t** shapes, void*) {
  return infer_mindspore_slot(151, result, ndims, shapes);
}

int velo_ms_slot_152(int count, void** params, int* ndims, int64_t** shapes, const char** dtypes,
                     void* stream, void*) {
  return enter_mindspore_slot(152, {count, params, ndims, shapes, dtypes, stream});
}
void* velo_ms_slot_152InferShape(void* result, int* ndims, int64_t** shapes, void*) {
  return infer_mindspore_slot(152, result, ndims, shapes);
}

int velo_ms_slot_153(int count, void** params, int* ndims, int64_t** shapes, const char** dtypes,
                     void* stream, void*) {
  return enter_mindspore_slot(153, {count, params, ndims, shapes, dtypes, stream});
}
void* velo_ms_slot_153InferShape(void* result, int* ndims, int64_t** shapes, void*) {
  return infer_mindspore_slot(153, result, ndims, shapes);
}

int velo_ms_slot_154(int count, void** params, int* ndims, int64_t** shapes, const char** dtypes,
                     void* stream, void*) {
  return enter_mindspore_slot(154, {count, params, ndims, shapes, dtypes, stream});
}
void* velo_ms_slot_154InferShape(void* result, int* ndims, int64_t** shapes, void*) {
  return infer_mindspore_slot(154, result, ndims, shapes);
}

int velo_ms_slot_155(int count, void** params, int* ndims, int64_t** shapes, const char** dtypes,
                     void* stream, void*) {
  return enter_mindspore_slot(155, {count, params, ndims, shapes, dtypes, stream});
}
void* velo_ms_slot_155InferShape(void* result, int* ndims, int64_t** shapes, void*) {
  return infer_mindspore_slot(155, result, ndims, shapes);
}

int velo_ms_slot_156(int count, void** params, int* ndims, int64_t** shapes, const char** dtypes,
                     void* stream, void*) {
  return enter_mindspore_slot(156, {count, params, ndims, shapes, dtypes, stream});
}
void* velo_ms_slot_156InferShape(void* result, int* ndims, int64_t** shapes, void*) {
  return infer_mindspore_slot(156, result, ndims, shapes);
}

int velo_ms_slot_157(int count, void** params, int* ndims, int64_t** shapes, const char** dtypes,
                     void* stream, void*) {
  return enter_mindspore_slot(157, {count, params, ndims, shapes, dtypes, stream});
}
void* velo_ms_slot_157InferShape(void* result, int* ndims, int64_t** shapes, void*) {
  return infer_mindspore_slot(157, result, ndims, shapes);
}

int velo_ms_slot_158(int count, void** params, int* ndims, int64_t** shapes, const char** dtypes,
                     void* stream, void*) {
  return enter_mindspore_slot(158, {count, params, ndims, shapes, dtypes, stream});
}
void* velo_ms_slot_158InferShape(void* result, int* ndims, int64_t** shapes, void*) {
  return infer_mindspore_slot(158, result, ndims, shapes);
}

int velo_ms_slot_159(int count, void** params, int* ndims, int64_t** shapes, const char** dtypes,
                     void* stream, void*) {
  return enter_mindspore_slot(159, {count, params, ndims, shapes, dtypes, stream});
}
void* velo_ms_slot_159InferShape(void* result, int* ndims, int64_t** shapes, void*) {
  return infer_mindspore_slot(159, result, ndims, shapes);
}

int velo_ms_slot_160(int count, void** params, int* ndims, int64_t** shapes, const char** dtypes,
                     void* stream, void*) {
  return enter_mindspore_slot(160, {count, params, ndims, shapes, dtypes, stream});
}
void* velo_ms_slot_160InferShape(void* result, int* ndims, int64_t** shapes, void*) {
  return infer_mindspore_slot(160, result, ndims, shapes);
}

int velo_ms_slot_161(int count, void** params, int* ndims, int64_t** shapes, const char** dtypes,
                     void* stream, void*) {
  return enter_mindspore_slot(161, {count, params, ndims, shapes, dtypes, stream});
}
void* velo_ms_slot_161InferShape(void* result, int* ndims, int64_t** shapes, void*) {
  return infer_mindspore_slot(161, result, ndims, shapes);
}

int velo_ms_slot_162(int count, void** params, int* ndims, int64_t** shapes, const char** dtypes,
                     void* stream, void*) {
  return enter_mindspore_slot(162, {count, params, ndims, shapes, dtypes, stream});
}
void* velo_ms_slot_162InferShape(void* result, int* ndims, int64_t** shapes, void*) {
  return infer_mindspore_slot(162, result, ndims, shapes);
}

int velo_ms_slot_163(int count, void** params, int* ndims, int64_t** shapes, const char** dtypes,
                     void* stream, void*) {
  return enter_mindspore_slot(163, {count, params, ndims, shapes, dtypes, stream});
}
void* velo_ms_slot_163InferShape(void* result, int* ndims, int64_t** shapes, void*) {
  return infer_mindspore_slot(163, result, ndims, shapes);
}

int velo_ms_slot_164(int count, void** params, int* ndims, int64_t** shapes, const char** dtypes,
                     void* stream, void*) {
  return enter_mindspore_slot(164, {count, params, ndims, shapes, dtypes, stream});
}
void* velo_ms_slot_164InferShape(void* result, int* ndims, int64_t** shapes, void*) {
  return infer_mindspore_slot(164, result, ndims, shapes);
}

int velo_ms_slot_165(int count, void** params, int* ndims, int64_t** shapes, const char** dtypes,
                     void* stream, void*) {
  return enter_mindspore_slot(165, {count, params, ndims, shapes, dtypes, stream});
}
void* velo_ms_slot_165InferShape(void* result, int* ndims, int64_t** shapes, void*) {
  return infer_mindspore_slot(165, result, ndims, shapes);
}

int velo_ms_slot_166(int count, void** params, int* ndims, int64_t** shapes, const char** dtypes,
                     void* stream, void*) {
  return enter_mindspore_slot(166, {count, params, ndims, shapes, dtypes, stream});
}
void* velo_ms_slot_166InferShape(void* result, int* ndims, int64_t** shapes, void*) {
  return infer_mindspore_slot(166, result, ndims, shapes);
}

int velo_ms_slot_167(int count, void** params, int* ndims, int64_t** shapes, const char** dtypes,
                     void* stream, void*) {
  return enter_mindspore_slot(167, {count, params, ndims, shapes, dtypes, stream});
}
void* velo_ms_slot_167InferShape(void* result, int* ndims, int64_t** shapes, void*) {
  return infer_mindspore_slot(167, result, ndims, shapes);
}

int velo_ms_slot_168(int count, void** params, int* ndims, int64_t** shapes, const char** dtypes,
                     void* stream, void*) {
  return enter_mindspore_slot(168, {count, params, ndims, shapes, dtypes, stream});
}
void* velo_ms_slot_168InferShape(void* result, int* ndims, int64_t** shapes, void*) {
  return infer_mindspore_slot(168, result, ndims, shapes);
}

int velo_ms_slot_169(int count, void** params, int* ndims, int64_t** shapes, const char** dtypes,
                     void* stream, void*) {
  return enter_mindspore_slot(169, {count, params, ndims, shapes, dtypes, stream});
}
void* velo_ms_slot_169InferShape(void* result, int* ndims, int64_t** shapes, void*) {
  return infer_mindspore_slot(169, result, ndims, shapes);
}

int velo_ms_slot_170(int count, void** params, int* ndims, int64_t** shapes, const char** dtypes,
                     void* stream, void*) {
  return enter_mindspore_slot(170, {count, params, ndims, shapes, dtypes, stream});
}
void* velo_ms_slot_170InferShape(void* result, int* ndims, int64_t** shapes, void*) {
  return infer_mindspore_slot(170, result, ndims, shapes);
}

int velo_ms_slot_171(int count, void** params, int* ndims, int64_t** shapes, const char** dtypes,
                     void* stream, void*) {
  return enter_mindspore_slot(171, {count, params, ndims, shapes, dtypes, stream});
}
void* velo_ms_slot_171InferShape(void* result, int* ndims, int64_t** shapes, void*) {
  return infer_mindspore_slot(171, result, ndims, shapes);
}

int velo_ms_slot_172(int count, void** params, int* ndims, int64_t** shapes, const char** dtypes,
                     void* stream, void*) {
  return enter_mindspore_slot(172, {count, params, ndims, shapes, dtypes, stream});
}
void* velo_ms_slot_172InferShape(void* result, int* ndims, int64_t** shapes, void*) {
  return infer_mindspore_slot(172, result, ndims, shapes);
}

int velo_ms_slot_173(int count, void** params, int* ndims, int64_t** shapes, const char** dtypes,
                     void* stream, void*) {
  return enter_mindspore_slot(173, {count, params, ndims, shapes, dtypes, stream});
}
void* velo_ms_slot_173InferShape(void* result, int* ndims, int64_t** shapes, void*) {
  return infer_mindspore_slot(173, result, ndims, shapes);
}

int velo_ms_slot_174(int count, void** params, int* ndims, int64_t** shapes, const char** dtypes,
                     void* stream, void*) {
  return enter_mindspore_slot(174, {count, params, ndims, shapes, dtypes, stream});
}
void* velo_ms_slot_174InferShape(void* result, int* ndims, int64_t** shapes, void*) {
  return infer_mindspore_slot(174, result, ndims, shapes);
}

int velo_ms_slot_175(int count, void** params, int* ndims, int64_t** shapes, const char** dtypes,
                     void* stream, void*) {
  return enter_mindspore_slot(175, {count, params, ndims, shapes, dtypes, stream});
}
void* velo_ms_slot_175InferShape(void* result, int* ndims, int64_t** shapes, void*) {
  return infer_mindspore_slot(175, result, ndims, shapes);
}

int velo_ms_slot_176(int count, void** params, int* ndims, int64_t** shapes, const char** dtypes,
                     void* stream, void*) {
  return enter_mindspore_slot(176, {count, params, ndims, shapes, dtypes, stream});
}
void* velo_ms_slot_176InferShape(void* result, int* ndims, int64_t** shapes, void*) {
  return infer_mindspore_slot(176, result, ndims, shapes);
}

int velo_ms_slot_177(int count, void** params, int* ndims, int64_t** shapes, const char** dtypes,
                     void* stream, void*) {
  return enter_mindspore_slot(177, {count, params, ndims, shapes, dtypes, stream});
}
void* velo_ms_slot_177InferShape(void* result, int* ndims, int64_t** shapes, void*) {
  return infer_mindspore_slot(177, result, ndims, shapes);
}

int velo_ms_slot_178(int count, void** params, int* ndims, int64_t** shapes, const char** dtypes,
                     void* stream, void*) {
  return enter_mindspore_slot(178, {count, params, ndims, shapes, dtypes, stream});
}
void* velo_ms_slot_178InferShape(void* result, int* ndims, int64_t** shapes, void*) {
  return infer_mindspore_slot(178, result, ndims, shapes);
}

int velo_ms_slot_179(int count, void** params, int* ndims, int64_t** shapes, const char** dtypes,
                     void* stream, void*) {
  return enter_mindspore_slot(179, {count, params, ndims, shapes, dtypes, stream});
}
void* velo_ms_slot_179InferShape(void* result, int* ndims, int64_t** shapes, void*) {
  return infer_mindspore_slot(179, result, ndims, shapes);
}

int velo_ms_slot_180(int count, void** params, int* ndims, int64_t** shapes, const char** dtypes,
                     void* stream, void*) {
  return enter_mindspore_slot(180, {count, params, ndims, shapes, dtypes, stream});
}
void* velo_ms_slot_180InferShape(void* result, int* ndims, int64_t** shapes, void*) {
  return infer_mindspore_slot(180, result, ndims, shapes);
}

int velo_ms_slot_181(int count, void** params, int* ndims, int64_t** shapes, const char** dtypes,
                     void* stream, void*) {
  return enter_mindspore_slot(181, {count, params, ndims, shapes, dtypes, stream});
}
void* velo_ms_slot_181InferShape(void* result, int* ndims, int64_t** shapes, void*) {
  return infer_mindspore_slot(181, result, ndims, shapes);
}

int velo_ms_slot_182(int count, void** params, int* ndims, int64_t** shapes, const char** dtypes,
                     void* stream, void*) {
  return enter_mindspore_slot(182, {count, params, ndims, shapes, dtypes, stream});
}
void* velo_ms_slot_182InferShape(void* result, int* ndims, int64_t** shapes, void*) {
  return infer_mindspore_slot(182, result, ndims, shapes);
}

int velo_ms_slot_183(int count, void** params, int* ndims, int64_t** shapes, const char** dtypes,
                     void* stream, void*) {
  return enter_mindspore_slot(183, {count, params, ndims, shapes, dtypes, stream});
}
void* velo_ms_slot_183InferShape(void* result, int* ndims, int64_t** shapes, void*) {
  return infer_mindspore_slot(183, result, ndims, shapes);
}

int velo_ms_slot_184(int count, void** params, int* ndims, int64_t** shapes, const char** dtypes,
                     void* stream, void*) {
  return enter_mindspore_slot(184, {count, params, ndims, shapes, dtypes, stream});
}
void* velo_ms_slot_184InferShape(void* result, int* ndims, int64_t** shapes, void*) {
  return infer_mindspore_slot(184, result, ndims, shapes);
}

int velo_ms_slot_185(int count, void** params, int* ndims, int64_t** shapes, const char** dtypes,
                     void* stream, void*) {
  return enter_mindspore_slot(185, {count, params, ndims, shapes, dtypes, stream});
}
void* velo_ms_slot_185InferShape(void* result, int* ndims, int64_t** shapes, void*) {
  return infer_mindspore_slot(185, result, ndims, shapes);
}

int velo_ms_slot_186(int count, void** params, int* ndims, int64_t** shapes, const char** dtypes,
                     void* stream, void*) {
  return enter_mindspore_slot(186, {count, params, ndims, shapes, dtypes, stream});
}
void* velo_ms_slot_186InferShape(void* result, int* ndims, int64_t** shapes, void*) {
  return infer_mindspore_slot(186, result, ndims, shapes);
}

int velo_ms_slot_187(int count, void** params, int* ndims, int64_t** shapes, const char** dtypes,
                     void* stream, void*) {
  return enter_mindspore_slot(187, {count, params, ndims, shapes, dtypes, stream});
}
void* velo_ms_slot_187InferShape(void* result, int* ndims, int64_t** shapes, void*) {
  return infer_mindspore_slot(187, result, ndims, shapes);
}

int velo_ms_slot_188(int count, void** params, int* ndims, int64_t** shapes, const char** dtypes,
                     void* stream, void*) {
  return enter_mindspore_slot(188, {count, params, ndims, shapes, dtypes, stream});
}
void* velo_ms_slot_188InferShape(void* result, int* ndims, int64_t** shapes, void*) {
  return infer_mindspore_slot(188, result, ndims, shapes);
}

int velo_ms_slot_189(int count, void** params, int* ndims, int64_t** shapes, const char** dtypes,
                     void* stream, void*) {
  return enter_mindspore_slot(189, {count, params, ndims, shapes, dtypes, stream});
}
void* velo_ms_slot_189InferShape(void* result, int* ndims, int64_t** shapes, void*) {
  return infer_mindspore_slot(189, result, ndims, shapes);
}

int velo_ms_slot_190(int count, void** params, int* ndims, int64_t** shapes, const char** dtypes,
                     void* stream, void*) {
  return enter_mindspore_slot(190, {count, params, ndims, shapes, dtypes, stream});
}
void* velo_ms_slot_190InferShape(void* result, int* ndims, int64_t** shapes, void*) {
  return infer_mindspore_slot(190, result, ndims, shapes);
}

int velo_ms_slot_191(int count, void** params, int* ndims, int64_t** shapes, const char** dtypes,
                     void* stream, void*) {
  return enter_mindspore_slot(191, {count, params, ndims, shapes, dtypes, stream});
}
void* velo_ms_slot_191InferShape(void* result, int* ndims, int64_t** shapes, void*) {
  return infer_mindspore_slot(191, result, ndims, shapes);
}

int velo_ms_slot_192(int count, void** params, int* ndims, int64_t** shapes, const char** dtypes,
                     void* stream, void*) {
  return enter_mindspore_slot(192, {count, params, ndims, shapes, dtypes, stream});
}
void* velo_ms_slot_192InferShape(void* result, int* ndims, int64_t** shapes, void*) {
  return infer_mindspore_slot(192, result, ndims, shapes);
}

int velo_ms_slot_193(int count, void** params, int* ndims, int64_t** shapes, const char** dtypes,
                     void* stream, void*) {
  return enter_mindspore_slot(193, {count, params, ndims, shapes, dtypes, stream});
}
void* velo_ms_slot_193InferShape(void* result, int* ndims, int64_t** shapes, void*) {
  return infer_mindspore_slot(193, result, ndims, shapes);
}

int velo_ms_slot_194(int count, void** params, int* ndims, int64_t** shapes, const char** dtypes,
                     void* stream, void*) {
  return enter_mindspore_slot(194, {count, params, ndims, shapes, dtypes, stream});
}
void* velo_ms_slot_194InferShape(void* result, int* ndims, int64_t** shapes, void*) {
  return infer_mindspore_slot(194, result, ndims, shapes);
}

int velo_ms_slot_195(int count, void** params, int* ndims, int64_t** shapes, const char** dtypes,
                     void* stream, void*) {
  return enter_mindspore_slot(195, {count, params, ndims, shapes, dtypes, stream});
}
void* velo_ms_slot_195InferShape(void* result, int* ndims, int64_t** shapes, void*) {
  return infer_mindspore_slot(195, result, ndims, shapes);
}

int velo_ms_slot_196(int count, void** params, int* ndims, int64_t** shapes, const char** dtypes,
                     void* stream, void*) {
  return enter_mindspore_slot(196, {count, params, ndims, shapes, dtypes, stream});
}
void* velo_ms_slot_196InferShape(void* result, int* ndims, int64_t** shapes, void*) {
  return infer_mindspore_slot(196, result, ndims, shapes);
}

int velo_ms_slot_197(int count, void** params, int* ndims, int64_t** shapes, const char** dtypes,
                     void* stream, void*) {
  return enter_mindspore_slot(197, {count, params, ndims, shapes, dtypes, stream});
}
void* velo_ms_slot_197InferShape(void* result, int* ndims, int64_t** shapes, void*) {
  return infer_mindspore_slot(197, result, ndims, shapes);
}

int velo_ms_slot_198(int count, void** params, int* ndims, int64_t** shapes, const char** dtypes,
                     void* stream, void*) {
  return enter_mindspore_slot(198, {count, params, ndims, shapes, dtypes, stream});
}
void* velo_ms_slot_198InferShape(void* result, int* ndims, int64_t** shapes, void*) {
  return infer_mindspore_slot(198, result, ndims, shapes);
}

int velo_ms_slot_199(int count, void** params, int* ndims, int64_t** shapes, const char** dtypes,
                     void* stream, void*) {
  return enter_mindspore_slot(199, {count, params, ndims, shapes, dtypes, stream});
}
void* velo_ms_slot_199InferShape(void* result, int* ndims, int64_t** shapes, void*) {
  return infer_mindspore_slot(199, result, ndims, shapes);
}

int velo_ms_slot_200(int count, void** params, int* ndims, int64_t** shapes, const char** dtypes,
                     void* stream, void*) {
  return enter_mindspore_slot(200, {count, params, ndims, shapes, dtypes, stream});
}
void* velo_ms_slot_200InferShape(void* result, int* ndims, int64_t** shapes, void*) {
  return infer_mindspore_slot(200, result, ndims, shapes);
}

int velo_ms_slot_201(int count, void** params, int* ndims, int64_t** shapes, const char** dtypes,
                     void* stream, void*) {
  return enter_mindspore_slot(201, {count, params, ndims, shapes, dtypes, stream});
}
void* velo_ms_slot_201InferShape(void* result, int* ndims, int64_t** shapes, void*) {
  return infer_mindspore_slot(201, result, ndims, shapes);
}

int velo_ms_slot_202(int count, void** params, int* ndims, int64_t** shapes, const char** dtypes,
                     void* stream, void*) {
  return enter_mindspore_slot(202, {count, params, ndims, shapes, dtypes, stream});
}
void* velo_ms_slot_202InferShape(void* result, int* ndims, int64_t** shapes, void*) {
  return infer_mindspore_slot(202, result, ndims, shapes);
}

int velo_ms_slot_203(int count, void** params, int* ndims, int64_t** shapes, const char** dtypes,
                     void* stream, void*) {
  return enter_mindspore_slot(203, {count, params, ndims, shapes, dtypes, stream});
}
void* velo_ms_slot_203InferShape(void* result, int* ndims, int64_t** shapes, void*) {
  return infer_mindspore_slot(203, result, ndims, shapes);
}

int velo_ms_slot_204(int count, void** params, int* ndims, int64_t** shapes, const char** dtypes,
                     void* stream, void*) {
  return enter_mindspore_slot(204, {count, params, ndims, shapes, dtypes, stream});
}
void* velo_ms_slot_204InferShape(void* result, int* ndims, int64_t** shapes, void*) {
  return infer_mindspore_slot(204, result, ndims, shapes);
}

int velo_ms_slot_205(int count, void** params, int* ndims, int64_t** shapes, const char** dtypes,
                     void* stream, void*) {
  return enter_mindspore_slot(205, {count, params, ndims, shapes, dtypes, stream});
}
void* velo_ms_slot_205InferShape(void* result, int* ndims, int64_t** shapes, void*) {
  return infer_mindspore_slot(205, result, ndims, shapes);
}

int velo_ms_slot_206(int count, void** params, int* ndims, int64_t** shapes, const char** dtypes,
                     void* stream, void*) {
  return enter_mindspore_slot(206, {count, params, ndims, shapes, dtypes, stream});
}
void* velo_ms_slot_206InferShape(void* result, int* ndims, int64_t** shapes, void*) {
  return infer_mindspore_slot(206, result, ndims, shapes);
}

int velo_ms_slot_207(int count, void** params, int* ndims, int64_t** shapes, const char** dtypes,
                     void* stream, void*) {
  return enter_mindspore_slot(207, {count, params, ndims, shapes, dtypes, stream});
}
void* velo_ms_slot_207InferShape(void* result, int* ndims, int64_t** shapes, void*) {
  return infer_mindspore_slot(207, result, ndims, shapes);
}

int velo_ms_slot_208(int count, void** params, int* ndims, int64_t** shapes, const char** dtypes,
                     void* stream, void*) {
  return enter_mindspore_slot(208, {count, params, ndims, shapes, dtypes, stream});
}
void* velo_ms_slot_208InferShape(void* result, int* ndims, int64_t** shapes, void*) {
  return infer_mindspore_slot(208, result, ndims, shapes);
}

int velo_ms_slot_209(int count, void** params, int* ndims, int64_t** shapes, const char** dtypes,
                     void* stream, void*) {
  return enter_mindspore_slot(209, {count, params, ndims, shapes, dtypes, stream});
}
void* velo_ms_slot_209InferShape(void* result, int* ndims, int64_t** shapes, void*) {
  return infer_mindspore_slot(209, result, ndims, shapes);
}

int velo_ms_slot_210(int count, void** params, int* ndims, int64_t** shapes, const char** dtypes,
                     void* stream, void*) {
  return enter_mindspore_slot(210, {count, params, ndims, shapes, dtypes, stream});
}
void* velo_ms_slot_210InferShape(void* result, int* ndims, int64_t** shapes, void*) {
  return infer_mindspore_slot(210, result, ndims, shapes);
}

int velo_ms_slot_211(int count, void** params, int* ndims, int64_t** shapes, const char** dtypes,
                     void* stream, void*) {
  return enter_mindspore_slot(211, {count, params, ndims, shapes, dtypes, stream});
}
void* velo_ms_slot_211InferShape(void* result, int* ndims, int64_t** shapes, void*) {
  return infer_mindspore_slot(211, result, ndims, shapes);
}

int velo_ms_slot_212(int count, void** params, int* ndims, int64_t** shapes, const char** dtypes,
                     void* stream, void*) {
  return enter_mindspore_slot(212, {count, params, ndims, shapes, dtypes, stream});
}
void* velo_ms_slot_212InferShape(void* result, int* ndims, int64_t** shapes, void*) {
  return infer_mindspore_slot(212, result, ndims, shapes);
}

int velo_ms_slot_213(int count, void** params, int* ndims, int64_t** shapes, const char** dtypes,
                     void* stream, void*) {
  return enter_mindspore_slot(213, {count, params, ndims, shapes, dtypes, stream});
}
void* velo_ms_slot_213InferShape(void* result, int* ndims, int64_t** shapes, void*) {
  return infer_mindspore_slot(213, result, ndims, shapes);
}

int velo_ms_slot_214(int count, void** params, int* ndims, int64_t** shapes, const char** dtypes,
                     void* stream, void*) {
  return enter_mindspore_slot(214, {count, params, ndims, shapes, dtypes, stream});
}
void* velo_ms_slot_214InferShape(void* result, int* ndims, int64_t** shapes, void*) {
  return infer_mindspore_slot(214, result, ndims, shapes);
}

int velo_ms_slot_215(int count, void** params, int* ndims, int64_t** shapes, const char** dtypes,
                     void* stream, void*) {
  return enter_mindspore_slot(215, {count, params, ndims, shapes, dtypes, stream});
}
void* velo_ms_slot_215InferShape(void* result, int* ndims, int64_t** shapes, void*) {
  return infer_mindspore_slot(215, result, ndims, shapes);
}

int velo_ms_slot_216(int count, void** params, int* ndims, int64_t** shapes, const char** dtypes,
                     void* stream, void*) {
  return enter_mindspore_slot(216, {count, params, ndims, shapes, dtypes, stream});
}
void* velo_ms_slot_216InferShape(void* result, int* ndims, int64_t** shapes, void*) {
  return infer_mindspore_slot(216, result, ndims, shapes);
}

int velo_ms_slot_217(int count, void** params, int* ndims, int64_t** shapes, const char** dtypes,
                     void* stream, void*) {
  return enter_mindspore_slot(217, {count, params, ndims, shapes, dtypes, stream});
}
void* velo_ms_slot_217InferShape(void* result, int* ndims, int64_t** shapes, void*) {
  return infer_mindspore_slot(217, result, ndims, shapes);
}

int velo_ms_slot_218(int count, void** params, int* ndims, int64_t** shapes, const char** dtypes,
                     void* stream, void*) {
  return enter_mindspore_slot(218, {count, params, ndims, shapes, dtypes, stream});
}
void* velo_ms_slot_218InferShape(void* result, int* ndims, int64_t** shapes, void*) {
  return infer_mindspore_slot(218, result, ndims, shapes);
}

int velo_ms_slot_219(int count, void** params, int* ndims, int64_t** shapes, const char** dtypes,
                     void* stream, void*) {
  return enter_mindspore_slot(219, {count, params, ndims, shapes, dtypes, stream});
}
void* velo_ms_slot_219InferShape(void* result, int* ndims, int64_t** shapes, void*) {
  return infer_mindspore_slot(219, result, ndims, shapes);
}

int velo_ms_slot_220(int count, void** params, int* ndims, int64_t** shapes, const char** dtypes,
                     void* stream, void*) {
  return enter_mindspore_slot(220, {count, params, ndims, shapes, dtypes, stream});
}
void* velo_ms_slot_220InferShape(void* result, int* ndims, int64_t** shapes, void*) {
  return infer_mindspore_slot(220, result, ndims, shapes);
}

int velo_ms_slot_221(int count, void** params, int* ndims, int64_t** shapes, const char** dtypes,
                     void* stream, void*) {
  return enter_mindspore_slot(221, {count, params, ndims, shapes, dtypes, stream});
}
void* velo_ms_slot_221InferShape(void* result, int* ndims, int64_t** shapes, void*) {
  return infer_mindspore_slot(221, result, ndims, shapes);
}

int velo_ms_slot_222(int count, void** params, int* ndims, int64_t** shapes, const char** dtypes,
                     void* stream, void*) {
  return enter_mindspore_slot(222, {count, params, ndims, shapes, dtypes, stream});
}
void* velo_ms_slot_222InferShape(void* result, int* ndims, int64_t** shapes, void*) {
  return infer_mindspore_slot(222, result, ndims, shapes);
}

int velo_ms_slot_223(int count, void** params, int* ndims, int64_t** shapes, const char** dtypes,
                     void* stream, void*) {
  return enter_mindspore_slot(223, {count, params, ndims, shapes, dtypes, stream});
}
void* velo_ms_slot_223InferShape(void* result, int* ndims, int64_t** shapes, void*) {
  return infer_mindspore_slot(223, result, ndims, shapes);
}

int velo_ms_slot_224(int count, void** params, int* ndims, int64_t** shapes, const char** dtypes,
                     void* stream, void*) {
  return enter_mindspore_slot(224, {count, params, ndims, shapes, dtypes, stream});
}
void* velo_ms_slot_224InferShape(void* result, int* ndims, int64_t** shapes, void*) {
  return infer_mindspore_slot(224, result, ndims, shapes);
}

int velo_ms_slot_225(int count, void** params, int* ndims, int64_t** shapes, const char** dtypes,
                     void* stream, void*) {
  return enter_mindspore_slot(225, {count, params, ndims, shapes, dtypes, stream});
}
void* velo_ms_slot_225InferShape(void* result, int* ndims, int64_t** shapes, void*) {
  return infer_mindspore_slot(225, result, ndims, shapes);
}

int velo_ms_slot_226(int count, void** params, int* ndims, int64_t** shapes, const char** dtypes,
                     void* stream, void*) {
  return enter_mindspore_slot(226, {count, params, ndims, shapes, dtypes, stream});
}
void* velo_ms_slot_226InferShape(void* result, int* ndims, int64_t** shapes, void*) {
  return infer_mindspore_slot(226, result, ndims, shapes);
}

int velo_ms_slot_227(int count, void** params, int* ndims, int64_t** shapes, const char** dtypes,
                     void* stream, void*) {
  return enter_mindspore_slot(227, {count, params, ndims, shapes, dtypes, stream});
}
void* velo_ms_slot_227InferShape(void* result, int* ndims, int64_t** shapes, void*) {
  return infer_mindspore_slot(227, result, ndims, shapes);
}

int velo_ms_slot_228(int count, void** params, int* ndims, int64_t** shapes, const char** dtypes,
                     void* stream, void*) {
  return enter_mindspore_slot(228, {count, params, ndims, shapes, dtypes, stream});
}
void* velo_ms_slot_228InferShape(void* result, int* ndims, int64_t** shapes, void*) {
  return infer_mindspore_slot(228, result, ndims, shapes);
}

int velo_ms_slot_229(int count, void** params, int* ndims, int64_t** shapes, const char** dtypes,
                     void* stream, void*) {
  return enter_mindspore_slot(229, {count, params, ndims, shapes, dtypes, stream});
}
void* velo_ms_slot_229InferShape(void* result, int* ndims, int64_t** shapes, void*) {
  return infer_mindspore_slot(229, result, ndims, shapes);
}

int velo_ms_slot_230(int count, void** params, int* ndims, int64_t** shapes, const char** dtypes,
                     void* stream, void*) {
  return enter_mindspore_slot(230, {count, params, ndims, shapes, dtypes, stream});
}
void* velo_ms_slot_230InferShape(void* result, int* ndims, int64_t** shapes, void*) {
  return infer_mindspore_slot(230, result, ndims, shapes);
}

int velo_ms_slot_231(int count, void** params, int* ndims, int64_t** shapes, const char** dtypes,
                     void* stream, void*) {
  return enter_mindspore_slot(231, {count, params, ndims, shapes, dtypes, stream});
}
void* velo_ms_slot_231InferShape(void* result, int* ndims, int64_t** shapes, void*) {
  return infer_mindspore_slot(231, result, ndims, shapes);
}

int velo_ms_slot_232(int count, void** params, int* ndims, int64_t** shapes, const char** dtypes,
                     void* stream, void*) {
  return enter_mindspore_slot(232, {count, params, ndims, shapes, dtypes, stream});
}
void* velo_ms_slot_232InferShape(void* result, int* ndims, int64_t** shapes, void*) {
  return infer_mindspore_slot(232, result, ndims, shapes);
}

int velo_ms_slot_233(int count, void** params, int* ndims, int64_t** shapes, const char** dtypes,
                     void* stream, void*) {
  return enter_mindspore_slot(233, {count, params, ndims, shapes, dtypes, stream});
}
void* velo_ms_slot_233InferShape(void* result, int* ndims, int64_t** shapes, void*) {
  return infer_mindspore_slot(233, result, ndims, shapes);
}

int velo_ms_slot_234(int count, void** params, int* ndims, int64_t** shapes, const char** dtypes,
                     void* stream, void*) {
  return enter_mindspore_slot(234, {count, params, ndims, shapes, dtypes, stream});
}
void* velo_ms_slot_234InferShape(void* result, int* ndims, int64_t** shapes, void*) {
  return infer_mindspore_slot(234, result, ndims, shapes);
}

int velo_ms_slot_235(int count, void** params, int* ndims, int64_t** shapes, const char** dtypes,
                     void* stream, void*) {
  return enter_mindspore_slot(235, {count, params, ndims, shapes, dtypes, stream});
}
void* velo_ms_slot_235InferShape(void* result, int* ndims, int64_t** shapes, void*) {
  return infer_mindspore_slot(235, result, ndims, shapes);
}

int velo_ms_slot_236(int count, void** params, int* ndims, int64_t** shapes, const char** dtypes,
                     void* stream, void*) {
  return enter_mindspore_slot(236, {count, params, ndims, shapes, dtypes, stream});
}
void* velo_ms_slot_236InferShape(void* result, int* ndims, int64_t** shapes, void*) {
  return infer_mindspore_slot(236, result, ndims, shapes);
}

int velo_ms_slot_237(int count, void** params, int* ndims, int64_t** shapes, const char** dtypes,
                     void* stream, void*) {
  return enter_mindspore_slot(237, {count, params, ndims, shapes, dtypes, stream});
}
void* velo_ms_slot_237InferShape(void* result, int* ndims, int64_t** shapes, void*) {
  return infer_mindspore_slot(237, result, ndims, shapes);
}

int velo_ms_slot_238(int count, void** params, int* ndims, int64_t** shapes, const char** dtypes,
                     void* stream, void*) {
  return enter_mindspore_slot(238, {count, params, ndims, shapes, dtypes, stream});
}
void* velo_ms_slot_238InferShape(void* result, int* ndims, int64_t** shapes, void*) {
  return infer_mindspore_slot(238, result, ndims, shapes);
}

int velo_ms_slot_239(int count, void** params, int* ndims, int64_t** shapes, const char** dtypes,
                     void* stream, void*) {
  return enter_mindspore_slot(239, {count, params, ndims, shapes, dtypes, stream});
}
void* velo_ms_slot_239InferShape(void* result, int* ndims, int64_t** shapes, void*) {
  return infer_mindspore_slot(239, result, ndims, shapes);
}

int velo_ms_slot_240(int count, void** params, int* ndims, int64_t** shapes, const char** dtypes,
                     void* stream, void*) {
  return enter_mindspore_slot(240, {count, params, ndims, shapes, dtypes, stream});
}
void* velo_ms_slot_240InferShape(void* result, int* ndims, int64_t** shapes, void*) {
  return infer_mindspore_slot(240, result, ndims, shapes);
}

int velo_ms_slot_241(int count, void** params, int* ndims, int64_t** shapes, const char** dtypes,
                     void* stream, void*) {
  return enter_mindspore_slot(241, {count, params, ndims, shapes, dtypes, stream});
}
void* velo_ms_slot_241InferShape(void* result, int* ndims, int64_t** shapes, void*) {
  return infer_mindspore_slot(241, result, ndims, shapes);
}

int velo_ms_slot_242(int count, void** params, int* ndims, int64_t** shapes, const char** dtypes,
                     void* stream, void*) {
  return enter_mindspore_slot(242, {count, params, ndims, shapes, dtypes, stream});
}
void* velo_ms_slot_242InferShape(void* result, int* ndims, int64_t** shapes, void*) {
  return infer_mindspore_slot(242, result, ndims, shapes);
}

int velo_ms_slot_243(int count, void** params, int* ndims, int64_t** shapes, const char** dtypes,
                     void* stream, void*) {
  return enter_mindspore_slot(243, {count, params, ndims, shapes, dtypes, stream});
}
void* velo_ms_slot_243InferShape(void* result, int* ndims, int64_t** shapes, void*) {
  return infer_mindspore_slot(243, result, ndims, shapes);
}

int velo_ms_slot_244(int count, void** params, int* ndims, int64_t** shapes, const char** dtypes,
                     void* stream, void*) {
  return enter_mindspore_slot(244, {count, params, ndims, shapes, dtypes, stream});
}
void* velo_ms_slot_244InferShape(void* result, int* ndims, int64_t** shapes, void*) {
  return infer_mindspore_slot(244, result, ndims, shapes);
}

int velo_ms_slot_245(int count, void** params, int* ndims, int64_t** shapes, const char** dtypes,
                     void* stream, void*) {
  return enter_mindspore_slot(245, {count, params, ndims, shapes, dtypes, stream});
}
void* velo_ms_slot_245InferShape(void* result, int* ndims, int64_t** shapes, void*) {
  return infer_mindspore_slot(245, result, ndims, shapes);
}

int velo_ms_slot_246(int count, void** params, int* ndims, int64_t** shapes, const char** dtypes,
                     void* stream, void*) {
  return enter_mindspore_slot(246, {count, params, ndims, shapes, dtypes, stream});
}
void* velo_ms_slot_246InferShape(void* result, int* ndims, int64_t** shapes, void*) {
  return infer_mindspore_slot(246, result, ndims, shapes);
}

int velo_ms_slot_247(int count, void** params, int* ndims, int64_t** shapes, const char** dtypes,
                     void* stream, void*) {
  return enter_mindspore_slot(247, {count, params, ndims, shapes, dtypes, stream});
}
void* velo_ms_slot_247InferShape(void* result, int* ndims, int64_t** shapes, void*) {
  return infer_mindspore_slot(247, result, ndims, shapes);
}

int velo_ms_slot_248(int count, void** params, int* ndims, int64_t** shapes, const char** dtypes,
                     void* stream, void*) {
  return enter_mindspore_slot(248, {count, params, ndims, shapes, dtypes, stream});
}
void* velo_ms_slot_248InferShape(void* result, int* ndims, int64_t** shapes, void*) {
  return infer_mindspore_slot(248, result, ndims, shapes);
}

int velo_ms_slot_249(int count, void** params, int* ndims, int64_t** shapes, const char** dtypes,
                     void* stream, void*) {
  return enter_mindspore_slot(249, {count, params, ndims, shapes, dtypes, stream});
}
void* velo_ms_slot_249InferShape(void* result, int* ndims, int64_t** shapes, void*) {
  return infer_mindspore_slot(249, result, ndims, shapes);
}

int velo_ms_slot_250(int count, void** params, int* ndims, int64_t** shapes, const char** dtypes,
                     void* stream, void*) {
  return enter_mindspore_slot(250, {count, params, ndims, shapes, dtypes, stream});
}
void* velo_ms_slot_250InferShape(void* result, int* ndims, int64_t** shapes, void*) {
  return infer_mindspore_slot(250, result, ndims, shapes);
}

int velo_ms_slot_251(int count, void** params, int* ndims, int64_t** shapes, const char** dtypes,
                     void* stream, void*) {
  return enter_mindspore_slot(251, {count, params, ndims, shapes, dtypes, stream});
}
void* velo_ms_slot_251InferShape(void* result, int* ndims, int64_t** shapes, void*) {
  return infer_mindspore_slot(251, result, ndims, shapes);
}

int velo_ms_slot_252(int count, void** params, int* ndims, int64_t** shapes, const char** dtypes,
                     void* stream, void*) {
  return enter_mindspore_slot(252, {count, params, ndims, shapes, dtypes, stream});
}
void* velo_ms_slot_252InferShape(void* result, int* ndims, int64_t** shapes, void*) {
  return infer_mindspore_slot(252, result, ndims, shapes);
}

int velo_ms_slot_253(int count, void** params, int* ndims, int64_t** shapes, const char** dtypes,
                     void* stream, void*) {
  return enter_mindspore_slot(253, {count, params, ndims, shapes, dtypes, stream});
}
void* velo_ms_slot_253InferShape(void* result, int* ndims, int64_t** shapes, void*) {
  return infer_mindspore_slot(253, result, ndims, shapes);
}

int velo_ms_slot_254(int count, void** params, int* ndims, int64_t** shapes, const char** dtypes,
                     void* stream, void*) {
  return enter_mindspore_slot(254, {count, params, ndims, shapes, dtypes, stream});
}
void* velo_ms_slot_254InferShape(void* result, int* ndims, int64_t** shapes, void*) {
  return infer_mindspore_slot(254, result, ndims, shapes);
}

int velo_ms_slot_255(int count, void** params, int* ndims, int64_t** shapes, const char** dtypes,
                     void* stream, void*) {
  return enter_mindspore_slot(255, {count, params, ndims, shapes, dtypes, stream});
}
void* velo_ms_slot_255InferShape(void* result, int* ndims, int64_t** shapes, void*) {
  return infer_mindspore_slot(255, result, ndims, shapes);
}

int velo_ms_slot_256(int count, void** params, int* ndims, int64_t** shapes, const char** dtypes,
                     void* stream, void*) {
  return enter_mindspore_slot(256, {count, params, ndims, shapes, dtypes, stream});
}
void* velo_ms_slot_256InferShape(void* result, int* ndims, int64_t** shapes, void*) {
  return infer_mindspore_slot(256, result, ndims, shapes);
}

int velo_ms_slot_257(int count, void** params, int* ndims, int64_t** shapes, const char** dtypes,
                     void* stream, void*) {
  return enter_mindspore_slot(257, {count, params, ndims, shapes, dtypes, stream});
}
void* velo_ms_slot_257InferShape(void* result, int* ndims, int64_t** shapes, void*) {
  return infer_mindspore_slot(257, result, ndims, shapes);
}

int velo_ms_slot_258(int count, void** params, int* ndims, int64_t** shapes, const char** dtypes,
                     void* stream, void*) {
  return enter_mindspore_slot(258, {count, params, ndims, shapes, dtypes, stream});
}
void* velo_ms_slot_258InferShape(void* result, int* ndims, int64_t** shapes, void*) {
  return infer_mindspore_slot(258, result, ndims, shapes);
}

int velo_ms_slot_259(int count, void** params, int* ndims, int64_t** shapes, const char** dtypes,
                     void* stream, void*) {
  return enter_mindspore_slot(259, {count, params, ndims, shapes, dtypes, stream});
}
void* velo_ms_slot_259InferShape(void* result, int* ndims, int64_t** shapes, void*) {
  return infer_mindspore_slot(259, result, ndims, shapes);
}

int velo_ms_slot_260(int count, void** params, int* ndims, int64_t** shapes, const char** dtypes,
                     void* stream, void*) {
  return enter_mindspore_slot(260, {count, params, ndims, shapes, dtypes, stream});
}
void* velo_ms_slot_260InferShape(void* result, int* ndims, int64_t** shapes, void*) {
  return infer_mindspore_slot(260, result, ndims, shapes);
}

int velo_ms_slot_261(int count, void** params, int* ndims, int64_t** shapes, const char** dtypes,
                     void* stream, void*) {
  return enter_mindspore_slot(261, {count, params, ndims, shapes, dtypes, stream});
}
void* velo_ms_slot_261InferShape(void* result, int* ndims, int64_t** shapes, void*) {
  return infer_mindspore_slot(261, result, ndims, shapes);
}

int velo_ms_slot_262(int count, void** params, int* ndims, int64_t** shapes, const char** dtypes,
                     void* stream, void*) {
  return enter_mindspore_slot(262, {count, params, ndims, shapes, dtypes, stream});
}
void* velo_ms_slot_262InferShape(void* result, int* ndims, int64_t** shapes, void*) {
  return infer_mindspore_slot(262, result, ndims, shapes);
}

int velo_ms_slot_263(int count, void** params, int* ndims, int64_t** shapes, const char** dtypes,
                     void* stream, void*) {
  return enter_mindspore_slot(263, {count, params, ndims, shapes, dtypes, stream});
}
void* velo_ms_slot_263InferShape(void* result, int* ndims, int64_t** shapes, void*) {
  return infer_mindspore_slot(263, result, ndims, shapes);
}

int velo_ms_slot_264(int count, void** params, int* ndims, int64_t** shapes, const char** dtypes,
                     void* stream, void*) {
  return enter_mindspore_slot(264, {count, params, ndims, shapes, dtypes, stream});
}
void* velo_ms_slot_264InferShape(void* result, int* ndims, int64_t** shapes, void*) {
  return infer_mindspore_slot(264, result, ndims, shapes);
}

int velo_ms_slot_265(int count, void** params, int* ndims, int64_t** shapes, const char** dtypes,
                     void* stream, void*) {
  return enter_mindspore_slot(265, {count, params, ndims, shapes, dtypes, stream});
}
void* velo_ms_slot_265InferShape(void* result, int* ndims, int64_t** shapes, void*) {
  return infer_mindspore_slot(265, result, ndims, shapes);
}

int velo_ms_slot_266(int count, void** params, int* ndims, int64_t** shapes, const char** dtypes,
                     void* stream, void*) {
  return enter_mindspore_slot(266, {count, params, ndims, shapes, dtypes, stream});
}
void* velo_ms_slot_266InferShape(void* result, int* ndims, int64_t** shapes, void*) {
  return infer_mindspore_slot(266, result, ndims, shapes);
}

int velo_ms_slot_267(int count, void** params, int* ndims, int64_t** shapes, const char** dtypes,
                     void* stream, void*) {
  return enter_mindspore_slot(267, {count, params, ndims, shapes, dtypes, stream});
}
void* velo_ms_slot_267InferShape(void* result, int* ndims, int64_t** shapes, void*) {
  return infer_mindspore_slot(267, result, ndims, shapes);
}

int velo_ms_slot_268(int count, void** params, int* ndims, int64_t** shapes, const char** dtypes,
                     void* stream, void*) {
  return enter_mindspore_slot(268, {count, params, ndims, shapes, dtypes, stream});
}
void* velo_ms_slot_268InferShape(void* result, int* ndims, int64_t** shapes, void*) {
  return infer_mindspore_slot(268, result, ndims, shapes);
}

int velo_ms_slot_269(int count, void** params, int* ndims, int64_t** shapes, const char** dtypes,
                     void* stream, void*) {
  return enter_mindspore_slot(269, {count, params, ndims, shapes, dtypes, stream});
}
void* velo_ms_slot_269InferShape(void* result, int* ndims, int64_t** shapes, void*) {
  return infer_mindspore_slot(269, result, ndims, shapes);
}

int velo_ms_slot_270(int count, void** params, int* ndims, int64_t** shapes, const char** dtypes,
                     void* stream, void*) {
  return enter_mindspore_slot(270, {count, params, ndims, shapes, dtypes, stream});
}
void* velo_ms_slot_270InferShape(void* result, int* ndims, int64_t** shapes, void*) {
  return infer_mindspore_slot(270, result, ndims, shapes);
}

int velo_ms_slot_271(int count, void** params, int* ndims, int64_t** shapes, const char** dtypes,
                     void* stream, void*) {
  return enter_mindspore_slot(271, {count, params, ndims, shapes, dtypes, stream});
}
void* velo_ms_slot_271InferShape(void* result, int* ndims, int64_t** shapes, void*) {
  return infer_mindspore_slot(271, result, ndims, shapes);
}

int velo_ms_slot_272(int count, void** params, int* ndims, int64_t** shapes, const char** dtypes,
                     void* stream, void*) {
  return enter_mindspore_slot(272, {count, params, ndims, shapes, dtypes, stream});
}
void* velo_ms_slot_272InferShape(void* result, int* ndims, int64_t** shapes, void*) {
  return infer_mindspore_slot(272, result, ndims, shapes);
}

int velo_ms_slot_273(int count, void** params, int* ndims, int64_t** shapes, const char** dtypes,
                     void* stream, void*) {
  return enter_mindspore_slot(273, {count, params, ndims, shapes, dtypes, stream});
}
void* velo_ms_slot_273InferShape(void* result, int* ndims, int64_t** shapes, void*) {
  return infer_mindspore_slot(273, result, ndims, shapes);
}

int velo_ms_slot_274(int count, void** params, int* ndims, int64_t** shapes, const char** dtypes,
                     void* stream, void*) {
  return enter_mindspore_slot(274, {count, params, ndims, shapes, dtypes, stream});
}
void* velo_ms_slot_274InferShape(void* result, int* ndims, int64_t** shapes, void*) {
  return infer_mindspore_slot(274, result, ndims, shapes);
}

int velo_ms_slot_275(int count, void** params, int* ndims, int64_t** shapes, const char** dtypes,
                     void* stream, void*) {
  return enter_mindspore_slot(275, {count, params, ndims, shapes, dtypes, stream});
}
void* velo_ms_slot_275InferShape(void* result, int* ndims, int64_t** shapes, void*) {
  return infer_mindspore_slot(275, result, ndims, shapes);
}

int velo_ms_slot_276(int count, void** params, int* ndims, int64_t** shapes, const char** dtypes,
                     void* stream, void*) {
  return enter_mindspore_slot(276, {count, params, ndims, shapes, dtypes, stream});
}
void* velo_ms_slot_276InferShape(void* result, int* ndims, int64_t** shapes, void*) {
  return infer_mindspore_slot(276, result, ndims, shapes);
}

int velo_ms_slot_277(int count, void** params, int* ndims, int64_t** shapes, const char** dtypes,
                     void* stream, void*) {
  return enter_mindspore_slot(277, {count, params, ndims, shapes, dtypes, stream});
}
void* velo_ms_slot_277InferShape(void* result, int* ndims, int64_t** shapes, void*) {
  return infer_mindspore_slot(277, result, ndims, shapes);
}

int velo_ms_slot_278(int count, void** params, int* ndims, int64_t** shapes, const char** dtypes,
                     void* stream, void*) {
  return enter_mindspore_slot(278, {count, params, ndims, shapes, dtypes, stream});
}
void* velo_ms_slot_278InferShape(void* result, int* ndims, int64_t** shapes, void*) {
  return infer_mindspore_slot(278, result, ndims, shapes);
}

int velo_ms_slot_279(int count, void** params, int* ndims, int64_t** shapes, const char** dtypes,
                     void* stream, void*) {
  return enter_mindspore_slot(279, {count, params, ndims, shapes, dtypes, stream});
}
void* velo_ms_slot_279InferShape(void* result, int* ndims, int64_t** shapes, void*) {
  return infer_mindspore_slot(279, result, ndims, shapes);
}

int velo_ms_slot_280(int count, void** params, int* ndims, int64_t** shapes, const char** dtypes,
                     void* stream, void*) {
  return enter_mindspore_slot(280, {count, params, ndims, shapes, dtypes, stream});
}
void* velo_ms_slot_280InferShape(void* result, int* ndims, int64_t** shapes, void*) {
  return infer_mindspore_slot(280, result, ndims, shapes);
}

int velo_ms_slot_281(int count, void** params, int* ndims, int64_t** shapes, const char** dtypes,
                     void* stream, void*) {
  return enter_mindspore_slot(281, {count, params, ndims, shapes, dtypes, stream});
}
void* velo_ms_slot_281InferShape(void* result, int* ndims, int64_t** shapes, void*) {
  return infer_mindspore_slot(281, result, ndims, shapes);
}

int velo_ms_slot_282(int count, void** params, int* ndims, int64_t** shapes, const char** dtypes,
                     void* stream, void*) {
  return enter_mindspore_slot(282, {count, params, ndims, shapes, dtypes, stream});
}
void* velo_ms_slot_282InferShape(void* result, int* ndims, int64_t** shapes, void*) {
  return infer_mindspore_slot(282, result, ndims, shapes);
}

int velo_ms_slot_283(int count, void** params, int* ndims, int64_t** shapes, const char** dtypes,
                     void* stream, void*) {
  return enter_mindspore_slot(283, {count, params, ndims, shapes, dtypes, stream});
}
void* velo_ms_slot_283InferShape(void* result, int* ndims, int64_t** shapes, void*) {
  return infer_mindspore_slot(283, result, ndims, shapes);
}

int velo_ms_slot_284(int count, void** params, int* ndims, int64_t** shapes, const char** dtypes,
                     void* stream, void*) {
  return enter_mindspore_slot(284, {count, params, ndims, shapes, dtypes, stream});
}
void* velo_ms_slot_284InferShape(void* result, int* ndims, int64_t** shapes, void*) {
  return infer_mindspore_slot(284, result, ndims, shapes);
}

int velo_ms_slot_285(int count, void** params, int* ndims, int64_t** shapes, const char** dtypes,
                     void* stream, void*) {
  return enter_mindspore_slot(285, {count, params, ndims, shapes, dtypes, stream});
}
void* velo_ms_slot_285InferShape(void* result, int* ndims, int64_t** shapes, void*) {
  return infer_mindspore_slot(285, result, ndims, shapes);
}

int velo_ms_slot_286(int count, void** params, int* ndims, int64_t** shapes, const char** dtypes,
                     void* stream, void*) {
  return enter_mindspore_slot(286, {count, params, ndims, shapes, dtypes, stream});
}
void* velo_ms_slot_286InferShape(void* result, int* ndims, int64_t** shapes, void*) {
  return infer_mindspore_slot(286, result, ndims, shapes);
}

int velo_ms_slot_287(int count, void** params, int* ndims, int64_t** shapes, const char** dtypes,
                     void* stream, void*) {
  return enter_mindspore_slot(287, {count, params, ndims, shapes, dtypes, stream});
}
void* velo_ms_slot_287InferShape(void* result, int* ndims, int64_t** shapes, void*) {
  return infer_mindspore_slot(287, result, ndims, shapes);
}

int velo_ms_slot_288(int count, void** params, int* ndims, int64_t** shapes, const char** dtypes,
                     void* stream, void*) {
  return enter_mindspore_slot(288, {count, params, ndims, shapes, dtypes, stream});
}
void* velo_ms_slot_288InferShape(void* result, int* ndims, int64_t** shapes, void*) {
  return infer_mindspore_slot(288, result, ndims, shapes);
}

int velo_ms_slot_289(int count, void** params, int* ndims, int64_t** shapes, const char** dtypes,
                     void* stream, void*) {
  return enter_mindspore_slot(289, {count, params, ndims, shapes, dtypes, stream});
}
void* velo_ms_slot_289InferShape(void* result, int* ndims, int64_t** shapes, void*) {
  return infer_mindspore_slot(289, result, ndims, shapes);
}

int velo_ms_slot_290(int count, void** params, int* ndims, int64_t** shapes, const char** dtypes,
                     void* stream, void*) {
  return enter_mindspore_slot(290, {count, params, ndims, shapes, dtypes, stream});
}
void* velo_ms_slot_290InferShape(void* result, int* ndims, int64_t** shapes, void*) {
  return infer_mindspore_slot(290, result, ndims, shapes);
}

int velo_ms_slot_291(int count, void** params, int* ndims, int64_t** shapes, const char** dtypes,
                     void* stream, void*) {
  return enter_mindspore_slot(291, {count, params, ndims, shapes, dtypes, stream});
}
void* velo_ms_slot_291InferShape(void* result, int* ndims, int64_t** shapes, void*) {
  return infer_mindspore_slot(291, result, ndims, shapes);
}

int velo_ms_slot_292(int count, void** params, int* ndims, int64_t** shapes, const char** dtypes,
                     void* stream, void*) {
  return enter_mindspore_slot(292, {count, params, ndims, shapes, dtypes, stream});
}
void* velo_ms_slot_292InferShape(void* result, int* ndims, int64_t** shapes, void*) {
  return infer_mindspore_slot(292, result, ndims, shapes);
}

int velo_ms_slot_293(int count, void** params, int* ndims, int64_t** shapes, const char** dtypes,
                     void* stream, void*) {
  return enter_mindspore_slot(293, {count, params, ndims, shapes, dtypes, stream});
}
void* velo_ms_slot_293InferShape(void* result, int* ndims, int64_t** shapes, void*) {
  return infer_mindspore_slot(293, result, ndims, shapes);
}

int velo_ms_slot_294(int count, void** params, int* ndims, int64_t** shapes, const char** dtypes,
                     void* stream, void*) {
  return enter_mindspore_slot(294, {count, params, ndims, shapes, dtypes, stream});
}
void* velo_ms_slot_294InferShape(void* result, int* ndims, int64_t** shapes, void*) {
  return infer_mindspore_slot(294, result, ndims, shapes);
}

int velo_ms_slot_295(int count, void** params, int* ndims, int64_t** shapes, const char** dtypes,
                     void* stream, void*) {
  return enter_mindspore_slot(295, {count, params, ndims, shapes, dtypes, stream});
}
void* velo_ms_slot_295InferShape(void* result, int* ndims, int64_t** shapes, void*) {
  return infer_mindspore_slot(295, result, ndims, shapes);
}

int velo_ms_slot_296(int count, void** params, int* ndims, int64_t** shapes, const char** dtypes,
                     void* stream, void*) {
  return enter_mindspore_slot(296, {count, params, ndims, shapes, dtypes, stream});
}
void* velo_ms_slot_296InferShape(void* result, int* ndims, int64_t** shapes, void*) {
  return infer_mindspore_slot(296, result, ndims, shapes);
}

int velo_ms_slot_297(int count, void** params, int* ndims, int64_t** shapes, const char** dtypes,
                     void* stream, void*) {
  return enter_mindspore_slot(297, {count, params, ndims, shapes, dtypes, stream});
}
void* velo_ms_slot_297InferShape(void* result, int* ndims, int64_t** shapes, void*) {
  return infer_mindspore_slot(297, result, ndims, shapes);
}

int velo_ms_slot_298(int count, void** params, int* ndims, int64_t** shapes, const char** dtypes,
                     void* stream, void*) {
  return enter_mindspore_slot(298, {count, params, ndims, shapes, dtypes, stream});
}
void* velo_ms_slot_298InferShape(void* result, int* ndims, int64_t** shapes, void*) {
  return infer_mindspore_slot(298, result, ndims, shapes);
}

int velo_ms_slot_299(int count, void** params, int* ndims, int64_t** shapes, const char** dtypes,
                     void* stream, void*) {
  return enter_mindspore_slot(299, {count, params, ndims, shapes, dtypes, stream});
}
void* velo_ms_slot_299InferShape(void* result, int* ndims, int64_t** shapes, void*) {
  return infer_mindspore_slot(299, result, ndims, shapes);
}

int velo_ms_slot_300(int count, void** params, int* ndims, int64_t** shapes, const char** dtypes,
                     void* stream, void*) {
  return enter_mindspore_slot(300, {count, params, ndims, shapes, dtypes, stream});
}
void* velo_ms_slot_300InferShape(void* result, int* ndims, int64_t** shapes, void*) {
  return infer_mindspore_slot(300, result, ndims, shapes);
}

int velo_ms_slot_301(int count, void** params, int* ndims, int64_t** shapes, const char** dtypes,
                     void* stream, void*) {
  return enter_mindspore_slot(301, {count, params, ndims, shapes, dtypes, stream});
}
void* velo_ms_slot_301InferShape(void* result, int* ndims, int64_t** shapes, void*) {
  return infer_mindspore_slot(301, result, ndims, shapes);
}

int velo_ms_slot_302(int count, void** params, int* ndims, int64_t** shapes, const char** dtypes,
                     void* stream, void*) {
  return enter_mindspore_slot(302, {count, params, ndims, shapes, dtypes, stream});
}
void* velo_ms_slot_302InferShape(void* result, int* ndims, int64_t** shapes, void*) {
  return infer_mindspore_slot(302, result, ndims, shapes);
}

int velo_ms_slot_303(int count, void** params, int* ndims, int64_t** shapes, const char** dtypes,
                     void* stream, void*) {
  return enter_mindspore_slot(303, {count, params, ndims, shapes, dtypes, stream});
}
void* velo_ms_slot_303InferShape(void* result, int* ndims, int64_t** shapes, void*) {
  return infer_mindspore_slot(303, result, ndims, shapes);
}

int velo_ms_slot_304(int count, void** params, int* ndims, int64_t** shapes, const char** dtypes,
                     void* stream, void*) {
  return enter_mindspore_slot(304, {count, params, ndims, shapes, dtypes, stream});
}
void* velo_ms_slot_304InferShape(void* result, int* ndims, int64_t** shapes, void*) {
  return infer_mindspore_slot(304, result, ndims, shapes);
}

int velo_ms_slot_305(int count, void** params, int* ndims, int64_t** shapes, const char** dtypes,
                     void* stream, void*) {
  return enter_mindspore_slot(305, {count, params, ndims, shapes, dtypes, stream});
}
void* velo_ms_slot_305InferShape(void* result, int* ndims, int64_t** shapes, void*) {
  return infer_mindspore_slot(305, result, ndims, shapes);
}

int velo_ms_slot_306(int count, void** params, int* ndims, int64_t** shapes, const char** dtypes,
                     void* stream, void*) {
  return enter_mindspore_slot(306, {count, params, ndims, shapes, dtypes, stream});
}
void* velo_ms_slot_306InferShape(void* result, int* ndims, int64_t** shapes, void*) {
  return infer_mindspore_slot(306, result, ndims, shapes);
}

int velo_ms_slot_307(int count, void** params, int* ndims, int64_t** shapes, const char** dtypes,
                     void* stream, void*) {
  return enter_mindspore_slot(307, {count, params, ndims, shapes, dtypes, stream});
}
void* velo_ms_slot_307InferShape(void* result, int* ndims, int64_t** shapes, void*) {
  return infer_mindspore_slot(307, result, ndims, shapes);
}

int velo_ms_slot_308(int count, void** params, int* ndims, int64_t** shapes, const char** dtypes,
                     void* stream, void*) {
  return enter_mindspore_slot(308, {count, params, ndims, shapes, dtypes, stream});
}
void* velo_ms_slot_308InferShape(void* result, int* ndims, int64_t** shapes, void*) {
  return infer_mindspore_slot(308, result, ndims, shapes);
}

int velo_ms_slot_309(int count, void** params, int* ndims, int64_t** shapes, const char** dtypes,
                     void* stream, void*) {
  return enter_mindspore_slot(309, {count, params, ndims, shapes, dtypes, stream});
}
void* velo_ms_slot_309InferShape(void* result, int* ndims, int64_t** shapes, void*) {
  return infer_mindspore_slot(309, result, ndims, shapes);
}

int velo_ms_slot_310(int count, void** params, int* ndims, int64_t** shapes, const char** dtypes,
                     void* stream, void*) {
  return enter_mindspore_slot(310, {count, params, ndims, shapes, dtypes, stream});
}
void* velo_ms_slot_310InferShape(void* result, int* ndims, int64_t** shapes, void*) {
  return infer_mindspore_slot(310, result, ndims, shapes);
}

int velo_ms_slot_311(int count, void** params, int* ndims, int64_t** shapes, const char** dtypes,
                     void* stream, void*) {
  return enter_mindspore_slot(311, {count, params, ndims, shapes, dtypes, stream});
}
void* velo_ms_slot_311InferShape(void* result, int* ndims, int64_t** shapes, void*) {
  return infer_mindspore_slot(311, result, ndims, shapes);
}

int velo_ms_slot_312(int count, void** params, int* ndims, int64_t** shapes, const char** dtypes,
                     void* stream, void*) {
  return enter_mindspore_slot(312, {count, params, ndims, shapes, dtypes, stream});
}
void* velo_ms_slot_312InferShape(void* result, int* ndims, int64_t** shapes, void*) {
  return infer_mindspore_slot(312, result, ndims, shapes);
}

int velo_ms_slot_313(int count, void** params, int* ndims, int64_t** shapes, const char** dtypes,
                     void* stream, void*) {
  return enter_mindspore_slot(313, {count, params, ndims, shapes, dtypes, stream});
}
void* velo_ms_slot_313InferShape(void* result, int* ndims, int64_t** shapes, void*) {
  return infer_mindspore_slot(313, result, ndims, shapes);
}

int velo_ms_slot_314(int count, void** params, int* ndims, int64_t** shapes, const char** dtypes,
                     void* stream, void*) {
  return enter_mindspore_slot(314, {count, params, ndims, shapes, dtypes, stream});
}
void* velo_ms_slot_314InferShape(void* result, int* ndims, int64_t** shapes, void*) {
  return infer_mindspore_slot(314, result, ndims, shapes);
}

int velo_ms_slot_315(int count, void** params, int* ndims, int64_t** shapes, const char** dtypes,
                     void* stream, void*) {
  return enter_mindspore_slot(315, {count, params, ndims, shapes, dtypes, stream});
}
void* velo_ms_slot_315InferShape(void* result, int* ndims, int64_t** shapes, void*) {
  return infer_mindspore_slot(315, result, ndims, shapes);
}

int velo_ms_slot_316(int count, void** params, int* ndims, int64_t** shapes, const char** dtypes,
                     void* stream, void*) {
  return enter_mindspore_slot(316, {count, params, ndims, shapes, dtypes, stream});
}
void* velo_ms_slot_316InferShape(void* result, int* ndims, int64_t** shapes, void*) {
  return infer_mindspore_slot(316, result, ndims, shapes);
}

int velo_ms_slot_317(int count, void** params, int* ndims, int64_t** shapes, const char** dtypes,
                     void* stream, void*) {
  return enter_mindspore_slot(317, {count, params, ndims, shapes, dtypes, stream});
}
void* velo_ms_slot_317InferShape(void* result, int* ndims, int64_t** shapes, void*) {
  return infer_mindspore_slot(317, result, ndims, shapes);
}

int velo_ms_slot_318(int count, void** params, int* ndims, int64_t** shapes, const char** dtypes,
                     void* stream, void*) {
  return enter_mindspore_slot(318, {count, params, ndims, shapes, dtypes, stream});
}
void* velo_ms_slot_318InferShape(void* result, int* ndims, int64_t** shapes, void*) {
  return infer_mindspore_slot(318, result, ndims, shapes);
}

int velo_ms_slot_319(int count, void** params, int* ndims, int64_t** shapes, const char** dtypes,
                     void* stream, void*) {
  return enter_mindspore_slot(319, {count, params, ndims, shapes, dtypes, stream});
}
void* velo_ms_slot_319InferShape(void* result, int* ndims, int64_t** shapes, void*) {
  return infer_mindspore_slot(319, result, ndims, shapes);
}

int velo_ms_slot_320(int count, void** params, int* ndims, int64_t** shapes, const char** dtypes,
                     void* stream, void*) {
  return enter_mindspore_slot(320, {count, params, ndims, shapes, dtypes, stream});
}
void* velo_ms_slot_320InferShape(void* result, int* ndims, int64_t** shapes, void*) {
  return infer_mindspore_slot(320, result, ndims, shapes);
}

int velo_ms_slot_321(int count, void** params, int* ndims, int64_t** shapes, const char** dtypes,
                     void* stream, void*) {
  return enter_mindspore_slot(321, {count, params, ndims, shapes, dtypes, stream});
}
void* velo_ms_slot_321InferShape(void* result, int* ndims, int64_t** shapes, void*) {
  return infer_mindspore_slot(321, result, ndims, shapes);
}

int velo_ms_slot_322(int count, void** params, int* ndims, int64_t** shapes, const char** dtypes,
                     void* stream, void*) {
  return enter_mindspore_slot(322, {count, params, ndims, shapes, dtypes, stream});
}
void* velo_ms_slot_322InferShape(void* result, int* ndims, int64_t** shapes, void*) {
  return infer_mindspore_slot(322, result, ndims, shapes);
}

int velo_ms_slot_323(int count, void** params, int* ndims, int64_t** shapes, const char** dtypes,
                     void* stream, void*) {
  return enter_mindspore_slot(323, {count, params, ndims, shapes, dtypes, stream});
}
void* velo_ms_slot_323InferShape(void* result, int* ndims, int64_t** shapes, void*) {
  return infer_mindspore_slot(323, result, ndims, shapes);
}

int velo_ms_slot_324(int count, void** params, int* ndims, int64_t** shapes, const char** dtypes,
                     void* stream, void*) {
  return enter_mindspore_slot(324, {count, params, ndims, shapes, dtypes, stream});
}
void* velo_ms_slot_324InferShape(void* result, int* ndims, int64_t** shapes, void*) {
  return infer_mindspore_slot(324, result, ndims, shapes);
}

int velo_ms_slot_325(int count, void** params, int* ndims, int64_t** shapes, const char** dtypes,
                     void* stream, void*) {
  return enter_mindspore_slot(325, {count, params, ndims, shapes, dtypes, stream});
}
void* velo_ms_slot_325InferShape(void* result, int* ndims, int64_t** shapes, void*) {
  return infer_mindspore_slot(325, result, ndims, shapes);
}

int velo_ms_slot_326(int count, void** params, int* ndims, int64_t** shapes, const char** dtypes,
                     void* stream, void*) {
  return enter_mindspore_slot(326, {count, params, ndims, shapes, dtypes, stream});
}
void* velo_ms_slot_326InferShape(void* result, int* ndims, int64_t** shapes, void*) {
  return infer_mindspore_slot(326, result, ndims, shapes);
}

int velo_ms_slot_327(int count, void** params, int* ndims, int64_t** shapes, const char** dtypes,
                     void* stream, void*) {
  return enter_mindspore_slot(327, {count, params, ndims, shapes, dtypes, stream});
}
void* velo_ms_slot_327InferShape(void* result, int* ndims, int64_t** shapes, void*) {
  return infer_mindspore_slot(327, result, ndims, shapes);
}

int velo_ms_slot_328(int count, void** params, int* ndims, int64_t** shapes, const char** dtypes,
                     void* stream, void*) {
  return enter_mindspore_slot(328, {count, params, ndims, shapes, dtypes, stream});
}
void* velo_ms_slot_328InferShape(void* result, int* ndims, int64_t** shapes, void*) {
  return infer_mindspore_slot(328, result, ndims, shapes);
}

int velo_ms_slot_329(int count, void** params, int* ndims, int64_t** shapes, const char** dtypes,
                     void* stream, void*) {
  return enter_mindspore_slot(329, {count, params, ndims, shapes, dtypes, stream});
}
void* velo_ms_slot_329InferShape(void* result, int* ndims, int64_t** shapes, void*) {
  return infer_mindspore_slot(329, result, ndims, shapes);
}

int velo_ms_slot_330(int count, void** params, int* ndims, int64_t** shapes, const char** dtypes,
                     void* stream, void*) {
  return enter_mindspore_slot(330, {count, params, ndims, shapes, dtypes, stream});
}
void* velo_ms_slot_330InferShape(void* result, int* ndims, int64_t** shapes, void*) {
  return infer_mindspore_slot(330, result, ndims, shapes);
}

int velo_ms_slot_331(int count, void** params, int* ndims, int64_t** shapes, const char** dtypes,
                     void* stream, void*) {
  return enter_mindspore_slot(331, {count, params, ndims, shapes, dtypes, stream});
}
void* velo_ms_slot_331InferShape(void* result, int* ndims, int64_t** shapes, void*) {
  return infer_mindspore_slot(331, result, ndims, shapes);
}

int velo_ms_slot_332(int count, void** params, int* ndims, int64_t** shapes, const char** dtypes,
                     void* stream, void*) {
  return enter_mindspore_slot(332, {count, params, ndims, shapes, dtypes, stream});
}
void* velo_ms_slot_332InferShape(void* result, int* ndims, int64_t** shapes, void*) {
  return infer_mindspore_slot(332, result, ndims, shapes);
}

int velo_ms_slot_333(int count, void** params, int* ndims, int64_t** shapes, const char** dtypes,
                     void* stream, void*) {
  return enter_mindspore_slot(333, {count, params, ndims, shapes, dtypes, stream});
}
void* velo_ms_slot_333InferShape(void* result, int* ndims, int64_t** shapes, void*) {
  return infer_mindspore_slot(333, result, ndims, shapes);
}

int velo_ms_slot_334(int count, void** params, int* ndims, int64_t** shapes, const char** dtypes,
                     void* stream, void*) {
  return enter_mindspore_slot(334, {count, params, ndims, shapes, dtypes, stream});
}
void* velo_ms_slot_334InferShape(void* result, int* ndims, int64_t** shapes, void*) {
  return infer_mindspore_slot(334, result, ndims, shapes);
}

int velo_ms_slot_335(int count, void** params, int* ndims, int64_t** shapes, const char** dtypes,
                     void* stream, void*) {
  return enter_mindspore_slot(335, {count, params, ndims, shapes, dtypes, stream});
}
void* velo_ms_slot_335InferShape(void* result, int* ndims, int64_t** shapes, void*) {
  return infer_mindspore_slot(335, result, ndims, shapes);
}

int velo_ms_slot_336(int count, void** params, int* ndims, int64_t** shapes, const char** dtypes,
                     void* stream, void*) {
  return enter_mindspore_slot(336, {count, params, ndims, shapes, dtypes, stream});
}
void* velo_ms_slot_336InferShape(void* result, int* ndims, int64_t** shapes, void*) {
  return infer_mindspore_slot(336, result, ndims, shapes);
}

int velo_ms_slot_337(int count, void** params, int* ndims, int64_t** shapes, const char** dtypes,
                     void* stream, void*) {
  return enter_mindspore_slot(337, {count, params, ndims, shapes, dtypes, stream});
}
void* velo_ms_slot_337InferShape(void* result, int* ndims, int64_t** shapes, void*) {
  return infer_mindspore_slot(337, result, ndims, shapes);
}

int velo_ms_slot_338(int count, void** params, int* ndims, int64_t** shapes, const char** dtypes,
                     void* stream, void*) {
  return enter_mindspore_slot(338, {count, params, ndims, shapes, dtypes, stream});
}
void* velo_ms_slot_338InferShape(void* result, int* ndims, int64_t** shapes, void*) {
  return infer_mindspore_slot(338, result, ndims, shapes);
}

int velo_ms_slot_339(int count, void** params, int* ndims, int64_t** shapes, const char** dtypes,
                     void* stream, void*) {
  return enter_mindspore_slot(339, {count, params, ndims, shapes, dtypes, stream});
}
void* velo_ms_slot_339InferShape(void* result, int* ndims, int64_t** shapes, void*) {
  return infer_mindspore_slot(339, result, ndims, shapes);
}

int velo_ms_slot_340(int count, void** params, int* ndims, int64_t** shapes, const char** dtypes,
                     void* stream, void*) {
  return enter_mindspore_slot(340, {count, params, ndims, shapes, dtypes, stream});
}
void* velo_ms_slot_340InferShape(void* result, int* ndims, int64_t** shapes, void*) {
  return infer_mindspore_slot(340, result, ndims, shapes);
}

int velo_ms_slot_341(int count, void** params, int* ndims, int64_t** shapes, const char** dtypes,
                     void* stream, void*) {
  return enter_mindspore_slot(341, {count, params, ndims, shapes, dtypes, stream});
}
void* velo_ms_slot_341InferShape(void* result, int* ndims, int64_t** shapes, void*) {
  return infer_mindspore_slot(341, result, ndims, shapes);
}

int velo_ms_slot_342(int count, void** params, int* ndims, int64_t** shapes, const char** dtypes,
                     void* stream, void*) {
  return enter_mindspore_slot(342, {count, params, ndims, shapes, dtypes, stream});
}
void* velo_ms_slot_342InferShape(void* result, int* ndims, int64_t** shapes, void*) {
  return infer_mindspore_slot(342, result, ndims, shapes);
}

int velo_ms_slot_343(int count, void** params, int* ndims, int64_t** shapes, const char** dtypes,
                     void* stream, void*) {
  return enter_mindspore_slot(343, {count, params, ndims, shapes, dtypes, stream});
}
void* velo_ms_slot_343InferShape(void* result, int* ndims, int64_t** shapes, void*) {
  return infer_mindspore_slot(343, result, ndims, shapes);
}

int velo_ms_slot_344(int count, void** params, int* ndims, int64_t** shapes, const char** dtypes,
                     void* stream, void*) {
  return enter_mindspore_slot(344, {count, params, ndims, shapes, dtypes, stream});
}
void* velo_ms_slot_344InferShape(void* result, int* ndims, int64_t** shapes, void*) {
  return infer_mindspore_slot(344, result, ndims, shapes);
}

int velo_ms_slot_345(int count, void** params, int* ndims, int64_t** shapes, const char** dtypes,
                     void* stream, void*) {
  return enter_mindspore_slot(345, {count, params, ndims, shapes, dtypes, stream});
}
void* velo_ms_slot_345InferShape(void* result, int* ndims, int64_t** shapes, void*) {
  return infer_mindspore_slot(345, result, ndims, shapes);
}

int velo_ms_slot_346(int count, void** params, int* ndims, int64_t** shapes, const char** dtypes,
                     void* stream, void*) {
  return enter_mindspore_slot(346, {count, params, ndims, shapes, dtypes, stream});
}
void* velo_ms_slot_346InferShape(void* result, int* ndims, int64_t** shapes, void*) {
  return infer_mindspore_slot(346, result, ndims, shapes);
}

int velo_ms_slot_347(int count, void** params, int* ndims, int64_t** shapes, const char** dtypes,
                     void* stream, void*) {
  return enter_mindspore_slot(347, {count, params, ndims, shapes, dtypes, stream});
}
void* velo_ms_slot_347InferShape(void* result, int* ndims, int64_t** shapes, void*) {
  return infer_mindspore_slot(347, result, ndims, shapes);
}

int velo_ms_slot_348(int count, void** params, int* ndims, int64_t** shapes, const char** dtypes,
                     void* stream, void*) {
  return enter_mindspore_slot(348, {count, params, ndims, shapes, dtypes, stream});
}
void* velo_ms_slot_348InferShape(void* result, int* ndims, int64_t** shapes, void*) {
  return infer_mindspore_slot(348, result, ndims, shapes);
}

int velo_ms_slot_349(int count, void** params, int* ndims, int64_t** shapes, const char** dtypes,
                     void* stream, void*) {
  return enter_mindspore_slot(349, {count, params, ndims, shapes, dtypes, stream});
}
void* velo_ms_slot_349InferShape(void* result, int* ndims, int64_t** shapes, void*) {
  return infer_mindspore_slot(349, result, ndims, shapes);
}

int velo_ms_slot_350(int count, void** params, int* ndims, int64_t** shapes, const char** dtypes,
                     void* stream, void*) {
  return enter_mindspore_slot(350, {count, params, ndims, shapes, dtypes, stream});
}
void* velo_ms_slot_350InferShape(void* result, int* ndims, int64_t** shapes, void*) {
  return infer_mindspore_slot(350, result, ndims, shapes);
}

int velo_ms_slot_351(int count, void** params, int* ndims, int64_t** shapes, const char** dtypes,
                     void* stream, void*) {
  return enter_mindspore_slot(351, {count, params, ndims, shapes, dtypes, stream});
}
void* velo_ms_slot_351InferShape(void* result, int* ndims, int64_t** shapes, void*) {
  return infer_mindspore_slot(351, result, ndims, shapes);
}

int velo_ms_slot_352(int count, void** params, int* ndims, int64_t** shapes, const char** dtypes,
                     void* stream, void*) {
  return enter_mindspore_slot(352, {count, params, ndims, shapes, dtypes, stream});
}
void* velo_ms_slot_352InferShape(void* result, int* ndims, int64_t** shapes, void*) {
  return infer_mindspore_slot(352, result, ndims, shapes);
}

int velo_ms_slot_353(int count, void** params, int* ndims, int64_t** shapes, const char** dtypes,
                     void* stream, void*) {
  return enter_mindspore_slot(353, {count, params, ndims, shapes, dtypes, stream});
}
void* velo_ms_slot_353InferShape(void* result, int* ndims, int64_t** shapes, void*) {
  return infer_mindspore_slot(353, result, ndims, shapes);
}

int velo_ms_slot_354(int count, void** params, int* ndims, int64_t** shapes, const char** dtypes,
                     void* stream, void*) {
  return enter_mindspore_slot(354, {count, params, ndims, shapes, dtypes, stream});
}
void* velo_ms_slot_354InferShape(void* result, int* ndims, int64_t** shapes, void*) {
  return infer_mindspore_slot(354, result, ndims, shapes);
}

int velo_ms_slot_355(int count, void** params, int* ndims, int64_t** shapes, const char** dtypes,
                     void* stream, void*) {
  return enter_mindspore_slot(355, {count, params, ndims, shapes, dtypes, stream});
}
void* velo_ms_slot_355InferShape(void* result, int* ndims, int64_t** shapes, void*) {
  return infer_mindspore_slot(355, result, ndims, shapes);
}

int velo_ms_slot_356(int count, void** params, int* ndims, int64_t** shapes, const char** dtypes,
                     void* stream, void*) {
  return enter_mindspore_slot(356, {count, params, ndims, shapes, dtypes, stream});
}
void* velo_ms_slot_356InferShape(void* result, int* ndims, int64_t** shapes, void*) {
  return infer_mindspore_slot(356, result, ndims, shapes);
}

int velo_ms_slot_357(int count, void** params, int* ndims, int64_t** shapes, const char** dtypes,
                     void* stream, void*) {
  return enter_mindspore_slot(357, {count, params, ndims, shapes, dtypes, stream});
}
void* velo_ms_slot_357InferShape(void* result, int* ndims, int64_t** shapes, void*) {
  return infer_mindspore_slot(357, result, ndims, shapes);
}

int velo_ms_slot_358(int count, void** params, int* ndims, int64_t** shapes, const char** dtypes,
                     void* stream, void*) {
  return enter_mindspore_slot(358, {count, params, ndims, shapes, dtypes, stream});
}
void* velo_ms_slot_358InferShape(void* result, int* ndims, int64_t** shapes, void*) {
  return infer_mindspore_slot(358, result, ndims, shapes);
}

int velo_ms_slot_359(int count, void** params, int* ndims, int64_t** shapes, const char** dtypes,
                     void* stream, void*) {
  return enter_mindspore_slot(359, {count, params, ndims, shapes, dtypes, stream});
}
void* velo_ms_slot_359InferShape(void* result, int* ndims, int64_t** shapes, void*) {
  return infer_mindspore_slot(359, result, ndims, shapes);
}

int velo_ms_slot_360(int count, void** params, int* ndims, int64_t** shapes, const char** dtypes,
                     void* stream, void*) {
  return enter_mindspore_slot(360, {count, params, ndims, shapes, dtypes, stream});
}
void* velo_ms_slot_360InferShape(void* result, int* ndims, int64_t** shapes, void*) {
  return infer_mindspore_slot(360, result, ndims, shapes);
}

int velo_ms_slot_361(int count, void** params, int* ndims, int64_t** shapes, const char** dtypes,
                     void* stream, void*) {
  return enter_mindspore_slot(361, {count, params, ndims, shapes, dtypes, stream});
}
void* velo_ms_slot_361InferShape(void* result, int* ndims, int64_t** shapes, void*) {
  return infer_mindspore_slot(361, result, ndims, shapes);
}

int velo_ms_slot_362(int count, void** params, int* ndims, int64_t** shapes, const char** dtypes,
                     void* stream, void*) {
  return enter_mindspore_slot(362, {count, params, ndims, shapes, dtypes, stream});
}
void* velo_ms_slot_362InferShape(void* result, int* ndims, int64_t** shapes, void*) {
  return infer_mindspore_slot(362, result, ndims, shapes);
}

int velo_ms_slot_363(int count, void** params, int* ndims, int64_t** shapes, const char** dtypes,
                     void* stream, void*) {
  return enter_mindspore_slot(363, {count, params, ndims, shapes, dtypes, stream});
}
void* velo_ms_slot_363InferShape(void* result, int* ndims, int64_t** shapes, void*) {
  return infer_mindspore_slot(363, result, ndims, shapes);
}

int velo_ms_slot_364(int count, void** params, int* ndims, int64_t** shapes, const char** dtypes,
                     void* stream, void*) {
  return enter_mindspore_slot(364, {count, params, ndims, shapes, dtypes, stream});
}
void* velo_ms_slot_364InferShape(void* result, int* ndims, int64_t** shapes, void*) {
  return infer_mindspore_slot(364, result, ndims, shapes);
}

int velo_ms_slot_365(int count, void** params, int* ndims, int64_t** shapes, const char** dtypes,
                     void* stream, void*) {
  return enter_mindspore_slot(365, {count, params, ndims, shapes, dtypes, stream});
}
void* velo_ms_slot_365InferShape(void* result, int* ndims, int64_t** shapes, void*) {
  return infer_mindspore_slot(365, result, ndims, shapes);
}

int velo_ms_slot_366(int count, void** params, int* ndims, int64_t** shapes, const char** dtypes,
                     void* stream, void*) {
  return enter_mindspore_slot(366, {count, params, ndims, shapes, dtypes, stream});
}
void* velo_ms_slot_366InferShape(void* result, int* ndims, int64_t** shapes, void*) {
  return infer_mindspore_slot(366, result, ndims, shapes);
}

int velo_ms_slot_367(int count, void** params, int* ndims, int64_t** shapes, const char** dtypes,
                     void* stream, void*) {
  return enter_mindspore_slot(367, {count, params, ndims, shapes, dtypes, stream});
}
void* velo_ms_slot_367InferShape(void* result, int* ndims, int64_t** shapes, void*) {
  return infer_mindspore_slot(367, result, ndims, shapes);
}

int velo_ms_slot_368(int count, void** params, int* ndims, int64_t** shapes, const char** dtypes,
                     void* stream, void*) {
  return enter_mindspore_slot(368, {count, params, ndims, shapes, dtypes, stream});
}
void* velo_ms_slot_368InferShape(void* result, int* ndims, int64_t** shapes, void*) {
  return infer_mindspore_slot(368, result, ndims, shapes);
}

int velo_ms_slot_369(int count, void** params, int* ndims, int64_t** shapes, const char** dtypes,
                     void* stream, void*) {
  return enter_mindspore_slot(369, {count, params, ndims, shapes, dtypes, stream});
}
void* velo_ms_slot_369InferShape(void* result, int* ndims, int64_t** shapes, void*) {
  return infer_mindspore_slot(369, result, ndims, shapes);
}

int velo_ms_slot_370(int count, void** params, int* ndims, int64_t** shapes, const char** dtypes,
                     void* stream, void*) {
  return enter_mindspore_slot(370, {count, params, ndims, shapes, dtypes, stream});
}
void* velo_ms_slot_370InferShape(void* result, int* ndims, int64_t** shapes, void*) {
  return infer_mindspore_slot(370, result, ndims, shapes);
}

int velo_ms_slot_371(int count, void** params, int* ndims, int64_t** shapes, const char** dtypes,
                     void* stream, void*) {
  return enter_mindspore_slot(371, {count, params, ndims, shapes, dtypes, stream});
}
void* velo_ms_slot_371InferShape(void* result, int* ndims, int64_t** shapes, void*) {
  return infer_mindspore_slot(371, result, ndims, shapes);
}

int velo_ms_slot_372(int count, void** params, int* ndims, int64_t** shapes, const char** dtypes,
                     void* stream, void*) {
  return enter_mindspore_slot(372, {count, params, ndims, shapes, dtypes, stream});
}
void* velo_ms_slot_372InferShape(void* result, int* ndims, int64_t** shapes, void*) {
  return infer_mindspore_slot(372, result, ndims, shapes);
}

int velo_ms_slot_373(int count, void** params, int* ndims, int64_t** shapes, const char** dtypes,
                     void* stream, void*) {
  return enter_mindspore_slot(373, {count, params, ndims, shapes, dtypes, stream});
}
void* velo_ms_slot_373InferShape(void* result, int* ndims, int64_t** shapes, void*) {
  return infer_mindspore_slot(373, result, ndims, shapes);
}

int velo_ms_slot_374(int count, void** params, int* ndims, int64_t** shapes, const char** dtypes,
                     void* stream, void*) {
  return enter_mindspore_slot(374, {count, params, ndims, shapes, dtypes, stream});
}
void* velo_ms_slot_374InferShape(void* result, int* ndims, int64_t** shapes, void*) {
  return infer_mindspore_slot(374, result, ndims, shapes);
}

int velo_ms_slot_375(int count, void** params, int* ndims, int64_t** shapes, const char** dtypes,
                     void* stream, void*) {
  return enter_mindspore_slot(375, {count, params, ndims, shapes, dtypes, stream});
}
void* velo_ms_slot_375InferShape(void* result, int* ndims, int64_t** shapes, void*) {
  return infer_mindspore_slot(375, result, ndims, shapes);
}

int velo_ms_slot_376(int count, void** params, int* ndims, int64_t** shapes, const char** dtypes,
                     void* stream, void*) {
  return enter_mindspore_slot(376, {count, params, ndims, shapes, dtypes, stream});
}
void* velo_ms_slot_376InferShape(void* result, int* ndims, int64_t** shapes, void*) {
  return infer_mindspore_slot(376, result, ndims, shapes);
}

int velo_ms_slot_377(int count, void** params, int* ndims, int64_t** shapes, const char** dtypes,
                     void* stream, void*) {
  return enter_mindspore_slot(377, {count, params, ndims, shapes, dtypes, stream});
}
void* velo_ms_slot_377InferShape(void* result, int* ndims, int64_t** shapes, void*) {
  return infer_mindspore_slot(377, result, ndims, shapes);
}

int velo_ms_slot_378(int count, void** params, int* ndims, int64_t** shapes, const char** dtypes,
                     void* stream, void*) {
  return enter_mindspore_slot(378, {count, params, ndims, shapes, dtypes, stream});
}
void* velo_ms_slot_378InferShape(void* result, int* ndims, int64_t** shapes, void*) {
  return infer_mindspore_slot(378, result, ndims, shapes);
}

int velo_ms_slot_379(int count, void** params, int* ndims, int64_t** shapes, const char** dtypes,
                     void* stream, void*) {
  return enter_mindspore_slot(379, {count, params, ndims, shapes, dtypes, stream});
}
void* velo_ms_slot_379InferShape(void* result, int* ndims, int64_t** shapes, void*) {
  return infer_mindspore_slot(379, result, ndims, shapes);
}

int velo_ms_slot_380(int count, void** params, int* ndims, int64_t** shapes, const char** dtypes,
                     void* stream, void*) {
  return enter_mindspore_slot(380, {count, params, ndims, shapes, dtypes, stream});
}
void* velo_ms_slot_380InferShape(void* result, int* ndims, int64_t** shapes, void*) {
  return infer_mindspore_slot(380, result, ndims, shapes);
}

int velo_ms_slot_381(int count, void** params, int* ndims, int64_t** shapes, const char** dtypes,
                     void* stream, void*) {
  return enter_mindspore_slot(381, {count, params, ndims, shapes, dtypes, stream});
}
void* velo_ms_slot_381InferShape(void* result, int* ndims, int64_t** shapes, void*) {
  return infer_mindspore_slot(381, result, ndims, shapes);
}

int velo_ms_slot_382(int count, void** params, int* ndims, int64_t** shapes, const char** dtypes,
                     void* stream, void*) {
  return enter_mindspore_slot(382, {count, params, ndims, shapes, dtypes, stream});
}
void* velo_ms_slot_382InferShape(void* result, int* ndims, int64_t** shapes, void*) {
  return infer_mindspore_slot(382, result, ndims, shapes);
}

int velo_ms_slot_383(int count, void** params, int* ndims, int64_t** shapes, const char** dtypes,
                     void* stream, void*) {
  return enter_mindspore_slot(383, {count, params, ndims, shapes, dtypes, stream});
}
void* velo_ms_slot_383InferShape(void* result, int* ndims, int64_t** shapes, void*) {
  return infer_mindspore_slot(383, result, ndims, shapes);
}

int velo_ms_slot_384(int count, void** params, int* ndims, int64_t** shapes, const char** dtypes,
                     void* stream, void*) {
  return enter_mindspore_slot(384, {count, params, ndims, shapes, dtypes, stream});
}
void* velo_ms_slot_384InferShape(void* result, int* ndims, int64_t** shapes, void*) {
  return infer_mindspore_slot(384, result, ndims, shapes);
}

int velo_ms_slot_385(int count, void** params, int* ndims, int64_t** shapes, const char** dtypes,
                     void* stream, void*) {
  return enter_mindspore_slot(385, {count, params, ndims, shapes, dtypes, stream});
}
void* velo_ms_slot_385InferShape(void* result, int* ndims, int64_t** shapes, void*) {
  return infer_mindspore_slot(385, result, ndims, shapes);
}

int velo_ms_slot_386(int count, void** params, int* ndims, int64_t** shapes, const char** dtypes,
                     void* stream, void*) {
  return enter_mindspore_slot(386, {count, params, ndims, shapes, dtypes, stream});
}
void* velo_ms_slot_386InferShape(void* result, int* ndims, int64_t** shapes, void*) {
  return infer_mindspore_slot(386, result, ndims, shapes);
}

int velo_ms_slot_387(int count, void** params, int* ndims, int64_t** shapes, const char** dtypes,
                     void* stream, void*) {
  return enter_mindspore_slot(387, {count, params, ndims, shapes, dtypes, stream});
}
void* velo_ms_slot_387InferShape(void* result, int* ndims, int64_t** shapes, void*) {
  return infer_mindspore_slot(387, result, ndims, shapes);
}

int velo_ms_slot_388(int count, void** params, int* ndims, int64_t** shapes, const char** dtypes,
                     void* stream, void*) {
  return enter_mindspore_slot(388, {count, params, ndims, shapes, dtypes, stream});
}
void* velo_ms_slot_388InferShape(void* result, int* ndims, int64_t** shapes, void*) {
  return infer_mindspore_slot(388, result, ndims, shapes);
}

int velo_ms_slot_389(int count, void** params, int* ndims, int64_t** shapes, const char** dtypes,
                     void* stream, void*) {
  return enter_mindspore_slot(389, {count, params, ndims, shapes, dtypes, stream});
}
void* velo_ms_slot_389InferShape(void* result, int* ndims, int64_t** shapes, void*) {
  return infer_mindspore_slot(389, result, ndims, shapes);
}

int velo_ms_slot_390(int count, void** params, int* ndims, int64_t** shapes, const char** dtypes,
                     void* stream, void*) {
  return enter_mindspore_slot(390, {count, params, ndims, shapes, dtypes, stream});
}
void* velo_ms_slot_390InferShape(void* result, int* ndims, int64_t** shapes, void*) {
  return infer_mindspore_slot(390, result, ndims, shapes);
}

int velo_ms_slot_391(int count, void** params, int* ndims, int64_t** shapes, const char** dtypes,
                     void* stream, void*) {
  return enter_mindspore_slot(391, {count, params, ndims, shapes, dtypes, stream});
}
void* velo_ms_slot_391InferShape(void* result, int* ndims, int64_t** shapes, void*) {
  return infer_mindspore_slot(391, result, ndims, shapes);
}

int velo_ms_slot_392(int count, void** params, int* ndims, int64_t** shapes, const char** dtypes,
                     void* stream, void*) {
  return enter_mindspore_slot(392, {count, params, ndims, shapes, dtypes, stream});
}
void* velo_ms_slot_392InferShape(void* result, int* ndims, int64_t** shapes, void*) {
  return infer_mindspore_slot(392, result, ndims, shapes);
}

int velo_ms_slot_393(int count, void** params, int* ndims, int64_t** shapes, const char** dtypes,
                     void* stream, void*) {
  return enter_mindspore_slot(393, {count, params, ndims, shapes, dtypes, stream});
}
void* velo_ms_slot_393InferShape(void* result, int* ndims, int64_t** shapes, void*) {
  return infer_mindspore_slot(393, result, ndims, shapes);
}

int velo_ms_slot_394(int count, void** params, int* ndims, int64_t** shapes, const char** dtypes,
                     void* stream, void*) {
  return enter_mindspore_slot(394, {count, params, ndims, shapes, dtypes, stream});
}
void* velo_ms_slot_394InferShape(void* result, int* ndims, int64_t** shapes, void*) {
  return infer_mindspore_slot(394, result, ndims, shapes);
}

int velo_ms_slot_395(int count, void** params, int* ndims, int64_t** shapes, const char** dtypes,
                     void* stream, void*) {
  return enter_mindspore_slot(395, {count, params, ndims, shapes, dtypes, stream});
}
void* velo_ms_slot_395InferShape(void* result, int* ndims, int64_t** shapes, void*) {
  return infer_mindspore_slot(395, result, ndims, shapes);
}

int velo_ms_slot_396(int count, void** params, int* ndims, int64_t** shapes, const char** dtypes,
                     void* stream, void*) {
  return enter_mindspore_slot(396, {count, params, ndims, shapes, dtypes, stream});
}
void* velo_ms_slot_396InferShape(void* result, int* ndims, int64_t** shapes, void*) {
  return infer_mindspore_slot(396, result, ndims, shapes);
}

int velo_ms_slot_397(int count, void** params, int* ndims, int64_t** shapes, const char** dtypes,
                     void* stream, void*) {
  return enter_mindspore_slot(397, {count, params, ndims, shapes, dtypes, stream});
}
void* velo_ms_slot_397InferShape(void* result, int* ndims, int64_t** shapes, void*) {
  return infer_mindspore_slot(397, result, ndims, shapes);
}

int velo_ms_slot_398(int count, void** params, int* ndims, int64_t** shapes, const char** dtypes,
                     void* stream, void*) {
  return enter_mindspore_slot(398, {count, params, ndims, shapes, dtypes, stream});
}
void* velo_ms_slot_398InferShape(void* result, int* ndims, int64_t** shapes, void*) {
  return infer_mindspore_slot(398, result, ndims, shapes);
}

int velo_ms_slot_399(int count, void** params, int* ndims, int64_t** shapes, const char** dtypes,
                     void* stream, void*) {
  return enter_mindspore_slot(399, {count, params, ndims, shapes, dtypes, stream});
}
void* velo_ms_slot_399InferShape(void* result, int* ndims, int64_t** shapes, void*) {
  return infer_mindspore_slot(399, result, ndims, shapes);
}

int velo_ms_slot_400(int count, void** params, int* ndims, int64_t** shapes, const char** dtypes,
                     void* stream, void*) {
  return enter_mindspore_slot(400, {count, params, ndims, shapes, dtypes, stream});
}
void* velo_ms_slot_400InferShape(void* result, int* ndims, int64_t** shapes, void*) {
  return infer_mindspore_slot(400, result, ndims, shapes);
}

int velo_ms_slot_401(int count, void** params, int* ndims, int64_t** shapes, const char** dtypes,
                     void* stream, void*) {
  return enter_mindspore_slot(401, {count, params, ndims, shapes, dtypes, stream});
}
void* velo_ms_slot_401InferShape(void* result, int* ndims, int64_t** shapes, void*) {
  return infer_mindspore_slot(401, result, ndims, shapes);
}

int velo_ms_slot_402(int count, void** params, int* ndims, int64_t** shapes, const char** dtypes,
                     void* stream, void*) {
  return enter_mindspore_slot(402, {count, params, ndims, shapes, dtypes, stream});
}
void* velo_ms_slot_402InferShape(void* result, int* ndims, int64_t** shapes, void*) {
  return infer_mindspore_slot(402, result, ndims, shapes);
}

int velo_ms_slot_403(int count, void** params, int* ndims, int64_t** shapes, const char** dtypes,
                     void* stream, void*) {
  return enter_mindspore_slot(403, {count, params, ndims, shapes, dtypes, stream});
}
void* velo_ms_slot_403InferShape(void* result, int* ndims, int64_t** shapes, void*) {
  return infer_mindspore_slot(403, result, ndims, shapes);
}

int velo_ms_slot_404(int count, void** params, int* ndims, int64_t** shapes, const char** dtypes,
                     void* stream, void*) {
  return enter_mindspore_slot(404, {count, params, ndims, shapes, dtypes, stream});
}
void* velo_ms_slot_404InferShape(void* result, int* ndims, int64_t** shapes, void*) {
  return infer_mindspore_slot(404, result, ndims, shapes);
}

int velo_ms_slot_405(int count, void** params, int* ndims, int64_t** shapes, const char** dtypes,
                     void* stream, void*) {
  return enter_mindspore_slot(405, {count, params, ndims, shapes, dtypes, stream});
}
void* velo_ms_slot_405InferShape(void* result, int* ndims, int64_t** shapes, void*) {
  return infer_mindspore_slot(405, result, ndims, shapes);
}

int velo_ms_slot_406(int count, void** params, int* ndims, int64_t** shapes, const char** dtypes,
                     void* stream, void*) {
  return enter_mindspore_slot(406, {count, params, ndims, shapes, dtypes, stream});
}
void* velo_ms_slot_406InferShape(void* result, int* ndims, int64_t** shapes, void*) {
  return infer_mindspore_slot(406, result, ndims, shapes);
}

int velo_ms_slot_407(int count, void** params, int* ndims, int64_t** shapes, const char** dtypes,
                     void* stream, void*) {
  return enter_mindspore_slot(407, {count, params, ndims, shapes, dtypes, stream});
}
void* velo_ms_slot_407InferShape(void* result, int* ndims, int64_t** shapes, void*) {
  return infer_mindspore_slot(407, result, ndims, shapes);
}

int velo_ms_slot_408(int count, void** params, int* ndims, int64_t** shapes, const char** dtypes,
                     void* stream, void*) {
  return enter_mindspore_slot(408, {count, params, ndims, shapes, dtypes, stream});
}
void* velo_ms_slot_408InferShape(void* result, int* ndims, int64_t** shapes, void*) {
  return infer_mindspore_slot(408, result, ndims, shapes);
}

int velo_ms_slot_409(int count, void** params, int* ndims, int64_t** shapes, const char** dtypes,
                     void* stream, void*) {
  return enter_mindspore_slot(409, {count, params, ndims, shapes, dtypes, stream});
}
void* velo_ms_slot_409InferShape(void* result, int* ndims, int64_t** shapes, void*) {
  return infer_mindspore_slot(409, result, ndims, shapes);
}

int velo_ms_slot_410(int count, void** params, int* ndims, int64_t** shapes, const char** dtypes,
                     void* stream, void*) {
  return enter_mindspore_slot(410, {count, params, ndims, shapes, dtypes, stream});
}
void* velo_ms_slot_410InferShape(void* result, int* ndims, int64_t** shapes, void*) {
  return infer_mindspore_slot(410, result, ndims, shapes);
}

int velo_ms_slot_411(int count, void** params, int* ndims, int64_t** shapes, const char** dtypes,
                     void* stream, void*) {
  return enter_mindspore_slot(411, {count, params, ndims, shapes, dtypes, stream});
}
void* velo_ms_slot_411InferShape(void* result, int* ndims, int64_t** shapes, void*) {
  return infer_mindspore_slot(411, result, ndims, shapes);
}

int velo_ms_slot_412(int count, void** params, int* ndims, int64_t** shapes, const char** dtypes,
                     void* stream, void*) {
  return enter_mindspore_slot(412, {count, params, ndims, shapes, dtypes, stream});
}
void* velo_ms_slot_412InferShape(void* result, int* ndims, int64_t** shapes, void*) {
  return infer_mindspore_slot(412, result, ndims, shapes);
}

int velo_ms_slot_413(int count, void** params, int* ndims, int64_t** shapes, const char** dtypes,
                     void* stream, void*) {
  return enter_mindspore_slot(413, {count, params, ndims, shapes, dtypes, stream});
}
void* velo_ms_slot_413InferShape(void* result, int* ndims, int64_t** shapes, void*) {
  return infer_mindspore_slot(413, result, ndims, shapes);
}

int velo_ms_slot_414(int count, void** params, int* ndims, int64_t** shapes, const char** dtypes,
                     void* stream, void*) {
  return enter_mindspore_slot(414, {count, params, ndims, shapes, dtypes, stream});
}
void* velo_ms_slot_414InferShape(void* result, int* ndims, int64_t** shapes, void*) {
  return infer_mindspore_slot(414, result, ndims, shapes);
}

int velo_ms_slot_415(int count, void** params, int* ndims, int64_t** shapes, const char** dtypes,
                     void* stream, void*) {
  return enter_mindspore_slot(415, {count, params, ndims, shapes, dtypes, stream});
}
void* velo_ms_slot_415InferShape(void* result, int* ndims, int64_t** shapes, void*) {
  return infer_mindspore_slot(415, result, ndims, shapes);
}

int velo_ms_slot_416(int count, void** params, int* ndims, int64_t** shapes, const char** dtypes,
                     void* stream, void*) {
  return enter_mindspore_slot(416, {count, params, ndims, shapes, dtypes, stream});
}
void* velo_ms_slot_416InferShape(void* result, int* ndims, int64_t** shapes, void*) {
  return infer_mindspore_slot(416, result, ndims, shapes);
}

int velo_ms_slot_417(int count, void** params, int* ndims, int64_t** shapes, const char** dtypes,
                     void* stream, void*) {
  return enter_mindspore_slot(417, {count, params, ndims, shapes, dtypes, stream});
}
void* velo_ms_slot_417InferShape(void* result, int* ndims, int64_t** shapes, void*) {
  return infer_mindspore_slot(417, result, ndims, shapes);
}

int velo_ms_slot_418(int count, void** params, int* ndims, int64_t** shapes, const char** dtypes,
                     void* stream, void*) {
  return enter_mindspore_slot(418, {count, params, ndims, shapes, dtypes, stream});
}
void* velo_ms_slot_418InferShape(void* result, int* ndims, int64_t** shapes, void*) {
  return infer_mindspore_slot(418, result, ndims, shapes);
}

int velo_ms_slot_419(int count, void** params, int* ndims, int64_t** shapes, const char** dtypes,
                     void* stream, void*) {
  return enter_mindspore_slot(419, {count, params, ndims, shapes, dtypes, stream});
}
void* velo_ms_slot_419InferShape(void* result, int* ndims, int64_t** shapes, void*) {
  return infer_mindspore_slot(419, result, ndims, shapes);
}

int velo_ms_slot_420(int count, void** params, int* ndims, int64_t** shapes, const char** dtypes,
                     void* stream, void*) {
  return enter_mindspore_slot(420, {count, params, ndims, shapes, dtypes, stream});
}
void* velo_ms_slot_420InferShape(void* result, int* ndims, int64_t** shapes, void*) {
  return infer_mindspore_slot(420, result, ndims, shapes);
}

int velo_ms_slot_421(int count, void** params, int* ndims, int64_t** shapes, const char** dtypes,
                     void* stream, void*) {
  return enter_mindspore_slot(421, {count, params, ndims, shapes, dtypes, stream});
}
void* velo_ms_slot_421InferShape(void* result, int* ndims, int64_t** shapes, void*) {
  return infer_mindspore_slot(421, result, ndims, shapes);
}

int velo_ms_slot_422(int count, void** params, int* ndims, int64_t** shapes, const char** dtypes,
                     void* stream, void*) {
  return enter_mindspore_slot(422, {count, params, ndims, shapes, dtypes, stream});
}
void* velo_ms_slot_422InferShape(void* result, int* ndims, int64_t** shapes, void*) {
  return infer_mindspore_slot(422, result, ndims, shapes);
}

int velo_ms_slot_423(int count, void** params, int* ndims, int64_t** shapes, const char** dtypes,
                     void* stream, void*) {
  return enter_mindspore_slot(423, {count, params, ndims, shapes, dtypes, stream});
}
void* velo_ms_slot_423InferShape(void* result, int* ndims, int64_t** shapes, void*) {
  return infer_mindspore_slot(423, result, ndims, shapes);
}

int velo_ms_slot_424(int count, void** params, int* ndims, int64_t** shapes, const char** dtypes,
                     void* stream, void*) {
  return enter_mindspore_slot(424, {count, params, ndims, shapes, dtypes, stream});
}
void* velo_ms_slot_424InferShape(void* result, int* ndims, int64_t** shapes, void*) {
  return infer_mindspore_slot(424, result, ndims, shapes);
}

int velo_ms_slot_425(int count, void** params, int* ndims, int64_t** shapes, const char** dtypes,
                     void* stream, void*) {
  return enter_mindspore_slot(425, {count, params, ndims, shapes, dtypes, stream});
}
void* velo_ms_slot_425InferShape(void* result, int* ndims, int64_t** shapes, void*) {
  return infer_mindspore_slot(425, result, ndims, shapes);
}

int velo_ms_slot_426(int count, void** params, int* ndims, int64_t** shapes, const char** dtypes,
                     void* stream, void*) {
  return enter_mindspore_slot(426, {count, params, ndims, shapes, dtypes, stream});
}
void* velo_ms_slot_426InferShape(void* result, int* ndims, int64_t** shapes, void*) {
  return infer_mindspore_slot(426, result, ndims, shapes);
}

int velo_ms_slot_427(int count, void** params, int* ndims, int64_t** shapes, const char** dtypes,
                     void* stream, void*) {
  return enter_mindspore_slot(427, {count, params, ndims, shapes, dtypes, stream});
}
void* velo_ms_slot_427InferShape(void* result, int* ndims, int64_t** shapes, void*) {
  return infer_mindspore_slot(427, result, ndims, shapes);
}

int velo_ms_slot_428(int count, void** params, int* ndims, int64_t** shapes, const char** dtypes,
                     void* stream, void*) {
  return enter_mindspore_slot(428, {count, params, ndims, shapes, dtypes, stream});
}
void* velo_ms_slot_428InferShape(void* result, int* ndims, int64_t** shapes, void*) {
  return infer_mindspore_slot(428, result, ndims, shapes);
}

int velo_ms_slot_429(int count, void** params, int* ndims, int64_t** shapes, const char** dtypes,
                     void* stream, void*) {
  return enter_mindspore_slot(429, {count, params, ndims, shapes, dtypes, stream});
}
void* velo_ms_slot_429InferShape(void* result, int* ndims, int64_t** shapes, void*) {
  return infer_mindspore_slot(429, result, ndims, shapes);
}

int velo_ms_slot_430(int count, void** params, int* ndims, int64_t** shapes, const char** dtypes,
                     void* stream, void*) {
  return enter_mindspore_slot(430, {count, params, ndims, shapes, dtypes, stream});
}
void* velo_ms_slot_430InferShape(void* result, int* ndims, int64_t** shapes, void*) {
  return infer_mindspore_slot(430, result, ndims, shapes);
}

int velo_ms_slot_431(int count, void** params, int* ndims, int64_t** shapes, const char** dtypes,
                     void* stream, void*) {
  return enter_mindspore_slot(431, {count, params, ndims, shapes, dtypes, stream});
}
void* velo_ms_slot_431InferShape(void* result, int* ndims, int64_t** shapes, void*) {
  return infer_mindspore_slot(431, result, ndims, shapes);
}

int velo_ms_slot_432(int count, void** params, int* ndims, int64_t** shapes, const char** dtypes,
                     void* stream, void*) {
  return enter_mindspore_slot(432, {count, params, ndims, shapes, dtypes, stream});
}
void* velo_ms_slot_432InferShape(void* result, int* ndims, int64_t** shapes, void*) {
  return infer_mindspore_slot(432, result, ndims, shapes);
}

int velo_ms_slot_433(int count, void** params, int* ndims, int64_t** shapes, const char** dtypes,
                     void* stream, void*) {
  return enter_mindspore_slot(433, {count, params, ndims, shapes, dtypes, stream});
}
void* velo_ms_slot_433InferShape(void* result, int* ndims, int64_t** shapes, void*) {
  return infer_mindspore_slot(433, result, ndims, shapes);
}

int velo_ms_slot_434(int count, void** params, int* ndims, int64_t** shapes, const char** dtypes,
                     void* stream, void*) {
  return enter_mindspore_slot(434, {count, params, ndims, shapes, dtypes, stream});
}
void* velo_ms_slot_434InferShape(void* result, int* ndims, int64_t** shapes, void*) {
  return infer_mindspore_slot(434, result, ndims, shapes);
}

int velo_ms_slot_435(int count, void** params, int* ndims, int64_t** shapes, const char** dtypes,
                     void* stream, void*) {
  return enter_mindspore_slot(435, {count, params, ndims, shapes, dtypes, stream});
}
void* velo_ms_slot_435InferShape(void* result, int* ndims, int64_t** shapes, void*) {
  return infer_mindspore_slot(435, result, ndims, shapes);
}

int velo_ms_slot_436(int count, void** params, int* ndims, int64_t** shapes, const char** dtypes,
                     void* stream, void*) {
  return enter_mindspore_slot(436, {count, params, ndims, shapes, dtypes, stream});
}
void* velo_ms_slot_436InferShape(void* result, int* ndims, int64_t** shapes, void*) {
  return infer_mindspore_slot(436, result, ndims, shapes);
}

int velo_ms_slot_437(int count, void** params, int* ndims, int64_t** shapes, const char** dtypes,
                     void* stream, void*) {
  return enter_mindspore_slot(437, {count, params, ndims, shapes, dtypes, stream});
}
void* velo_ms_slot_437InferShape(void* result, int* ndims, int64_t** shapes, void*) {
  return infer_mindspore_slot(437, result, ndims, shapes);
}

int velo_ms_slot_438(int count, void** params, int* ndims, int64_t** shapes, const char** dtypes,
                     void* stream, void*) {
  return enter_mindspore_slot(438, {count, params, ndims, shapes, dtypes, stream});
}
void* velo_ms_slot_438InferShape(void* result, int* ndims, int64_t** shapes, void*) {
  return infer_mindspore_slot(438, result, ndims, shapes);
}

int velo_ms_slot_439(int count, void** params, int* ndims, int64_t** shapes, const char** dtypes,
                     void* stream, void*) {
  return enter_mindspore_slot(439, {count, params, ndims, shapes, dtypes, stream});
}
void* velo_ms_slot_439InferShape(void* result, int* ndims, int64_t** shapes, void*) {
  return infer_mindspore_slot(439, result, ndims, shapes);
}

int velo_ms_slot_440(int count, void** params, int* ndims, int64_t** shapes, const char** dtypes,
                     void* stream, void*) {
  return enter_mindspore_slot(440, {count, params, ndims, shapes, dtypes, stream});
}
void* velo_ms_slot_440InferShape(void* result, int* ndims, int64_t** shapes, void*) {
  return infer_mindspore_slot(440, result, ndims, shapes);
}

int velo_ms_slot_441(int count, void** params, int* ndims, int64_t** shapes, const char** dtypes,
                     void* stream, void*) {
  return enter_mindspore_slot(441, {count, params, ndims, shapes, dtypes, stream});
}
void* velo_ms_slot_441InferShape(void* result, int* ndims, int64_t** shapes, void*) {
  return infer_mindspore_slot(441, result, ndims, shapes);
}

int velo_ms_slot_442(int count, void** params, int* ndims, int64_t** shapes, const char** dtypes,
                     void* stream, void*) {
  return enter_mindspore_slot(442, {count, params, ndims, shapes, dtypes, stream});
}
void* velo_ms_slot_442InferShape(void* result, int* ndims, int64_t** shapes, void*) {
  return infer_mindspore_slot(442, result, ndims, shapes);
}

int velo_ms_slot_443(int count, void** params, int* ndims, int64_t** shapes, const char** dtypes,
                     void* stream, void*) {
  return enter_mindspore_slot(443, {count, params, ndims, shapes, dtypes, stream});
}
void* velo_ms_slot_443InferShape(void* result, int* ndims, int64_t** shapes, void*) {
  return infer_mindspore_slot(443, result, ndims, shapes);
}

int velo_ms_slot_444(int count, void** params, int* ndims, int64_t** shapes, const char** dtypes,
                     void* stream, void*) {
  return enter_mindspore_slot(444, {count, params, ndims, shapes, dtypes, stream});
}
void* velo_ms_slot_444InferShape(void* result, int* ndims, int64_t** shapes, void*) {
  return infer_mindspore_slot(444, result, ndims, shapes);
}

int velo_ms_slot_445(int count, void** params, int* ndims, int64_t** shapes, const char** dtypes,
                     void* stream, void*) {
  return enter_mindspore_slot(445, {count, params, ndims, shapes, dtypes, stream});
}
void* velo_ms_slot_445InferShape(void* result, int* ndims, int64_t** shapes, void*) {
  return infer_mindspore_slot(445, result, ndims, shapes);
}

int velo_ms_slot_446(int count, void** params, int* ndims, int64_t** shapes, const char** dtypes,
                     void* stream, void*) {
  return enter_mindspore_slot(446, {count, params, ndims, shapes, dtypes, stream});
}
void* velo_ms_slot_446InferShape(void* result, int* ndims, int64_t** shapes, void*) {
  return infer_mindspore_slot(446, result, ndims, shapes);
}

int velo_ms_slot_447(int count, void** params, int* ndims, int64_t** shapes, const char** dtypes,
                     void* stream, void*) {
  return enter_mindspore_slot(447, {count, params, ndims, shapes, dtypes, stream});
}
void* velo_ms_slot_447InferShape(void* result, int* ndims, int64_t** shapes, void*) {
  return infer_mindspore_slot(447, result, ndims, shapes);
}

int velo_ms_slot_448(int count, void** params, int* ndims, int64_t** shapes, const char** dtypes,
                     void* stream, void*) {
  return enter_mindspore_slot(448, {count, params, ndims, shapes, dtypes, stream});
}
void* velo_ms_slot_448InferShape(void* result, int* ndims, int64_t** shapes, void*) {
  return infer_mindspore_slot(448, result, ndims, shapes);
}

int velo_ms_slot_449(int count, void** params, int* ndims, int64_t** shapes, const char** dtypes,
                     void* stream, void*) {
  return enter_mindspore_slot(449, {count, params, ndims, shapes, dtypes, stream});
}
void* velo_ms_slot_449InferShape(void* result, int* ndims, int64_t** shapes, void*) {
  return infer_mindspore_slot(449, result, ndims, shapes);
}

int velo_ms_slot_450(int count, void** params, int* ndims, int64_t** shapes, const char** dtypes,
                     void* stream, void*) {
  return enter_mindspore_slot(450, {count, params, ndims, shapes, dtypes, stream});
}
void* velo_ms_slot_450InferShape(void* result, int* ndims, int64_t** shapes, void*) {
  return infer_mindspore_slot(450, result, ndims, shapes);
}

int velo_ms_slot_451(int count, void** params, int* ndims, int64_t** shapes, const char** dtypes,
                     void* stream, void*) {
  return enter_mindspore_slot(451, {count, params, ndims, shapes, dtypes, stream});
}
void* velo_ms_slot_451InferShape(void* result, int* ndims, int64_t** shapes, void*) {
  return infer_mindspore_slot(451, result, ndims, shapes);
}

int velo_ms_slot_452(int count, void** params, int* ndims, int64_t** shapes, const char** dtypes,
                     void* stream, void*) {
  return enter_mindspore_slot(452, {count, params, ndims, shapes, dtypes, stream});
}
void* velo_ms_slot_452InferShape(void* result, int* ndims, int64_t** shapes, void*) {
  return infer_mindspore_slot(452, result, ndims, shapes);
}

int velo_ms_slot_453(int count, void** params, int* ndims, int64_t** shapes, const char** dtypes,
                     void* stream, void*) {
  return enter_mindspore_slot(453, {count, params, ndims, shapes, dtypes, stream});
}
void* velo_ms_slot_453InferShape(void* result, int* ndims, int64_t** shapes, void*) {
  return infer_mindspore_slot(453, result, ndims, shapes);
}

int velo_ms_slot_454(int count, void** params, int* ndims, int64_t** shapes, const char** dtypes,
                     void* stream, void*) {
  return enter_mindspore_slot(454, {count, params, ndims, shapes, dtypes, stream});
}
void* velo_ms_slot_454InferShape(void* result, int* ndims, int64_t** shapes, void*) {
  return infer_mindspore_slot(454, result, ndims, shapes);
}

int velo_ms_slot_455(int count, void** params, int* ndims, int64_t** shapes, const char** dtypes,
                     void* stream, void*) {
  return enter_mindspore_slot(455, {count, params, ndims, shapes, dtypes, stream});
}
void* velo_ms_slot_455InferShape(void* result, int* ndims, int64_t** shapes, void*) {
  return infer_mindspore_slot(455, result, ndims, shapes);
}

int velo_ms_slot_456(int count, void** params, int* ndims, int64_t** shapes, const char** dtypes,
                     void* stream, void*) {
  return enter_mindspore_slot(456, {count, params, ndims, shapes, dtypes, stream});
}
void* velo_ms_slot_456InferShape(void* result, int* ndims, int64_t** shapes, void*) {
  return infer_mindspore_slot(456, result, ndims, shapes);
}

int velo_ms_slot_457(int count, void** params, int* ndims, int64_t** shapes, const char** dtypes,
                     void* stream, void*) {
  return enter_mindspore_slot(457, {count, params, ndims, shapes, dtypes, stream});
}
void* velo_ms_slot_457InferShape(void* result, int* ndims, int64_t** shapes, void*) {
  return infer_mindspore_slot(457, result, ndims, shapes);
}

int velo_ms_slot_458(int count, void** params, int* ndims, int64_t** shapes, const char** dtypes,
                     void* stream, void*) {
  return enter_mindspore_slot(458, {count, params, ndims, shapes, dtypes, stream});
}
void* velo_ms_slot_458InferShape(void* result, int* ndims, int64_t** shapes, void*) {
  return infer_mindspore_slot(458, result, ndims, shapes);
}

int velo_ms_slot_459(int count, void** params, int* ndims, int64_t** shapes, const char** dtypes,
                     void* stream, void*) {
  return enter_mindspore_slot(459, {count, params, ndims, shapes, dtypes, stream});
}
void* velo_ms_slot_459InferShape(void* result, int* ndims, int64_t** shapes, void*) {
  return infer_mindspore_slot(459, result, ndims, shapes);
}

int velo_ms_slot_460(int count, void** params, int* ndims, int64_t** shapes, const char** dtypes,
                     void* stream, void*) {
  return enter_mindspore_slot(460, {count, params, ndims, shapes, dtypes, stream});
}
void* velo_ms_slot_460InferShape(void* result, int* ndims, int64_t** shapes, void*) {
  return infer_mindspore_slot(460, result, ndims, shapes);
}

int velo_ms_slot_461(int count, void** params, int* ndims, int64_t** shapes, const char** dtypes,
                     void* stream, void*) {
  return enter_mindspore_slot(461, {count, params, ndims, shapes, dtypes, stream});
}
void* velo_ms_slot_461InferShape(void* result, int* ndims, int64_t** shapes, void*) {
  return infer_mindspore_slot(461, result, ndims, shapes);
}

int velo_ms_slot_462(int count, void** params, int* ndims, int64_t** shapes, const char** dtypes,
                     void* stream, void*) {
  return enter_mindspore_slot(462, {count, params, ndims, shapes, dtypes, stream});
}
void* velo_ms_slot_462InferShape(void* result, int* ndims, int64_t** shapes, void*) {
  return infer_mindspore_slot(462, result, ndims, shapes);
}

int velo_ms_slot_463(int count, void** params, int* ndims, int64_t** shapes, const char** dtypes,
                     void* stream, void*) {
  return enter_mindspore_slot(463, {count, params, ndims, shapes, dtypes, stream});
}
void* velo_ms_slot_463InferShape(void* result, int* ndims, int64_t** shapes, void*) {
  return infer_mindspore_slot(463, result, ndims, shapes);
}

int velo_ms_slot_464(int count, void** params, int* ndims, int64_t** shapes, const char** dtypes,
                     void* stream, void*) {
  return enter_mindspore_slot(464, {count, params, ndims, shapes, dtypes, stream});
}
void* velo_ms_slot_464InferShape(void* result, int* ndims, int64_t** shapes, void*) {
  return infer_mindspore_slot(464, result, ndims, shapes);
}

int velo_ms_slot_465(int count, void** params, int* ndims, int64_t** shapes, const char** dtypes,
                     void* stream, void*) {
  return enter_mindspore_slot(465, {count, params, ndims, shapes, dtypes, stream});
}
void* velo_ms_slot_465InferShape(void* result, int* ndims, int64_t** shapes, void*) {
  return infer_mindspore_slot(465, result, ndims, shapes);
}

int velo_ms_slot_466(int count, void** params, int* ndims, int64_t** shapes, const char** dtypes,
                     void* stream, void*) {
  return enter_mindspore_slot(466, {count, params, ndims, shapes, dtypes, stream});
}
void* velo_ms_slot_466InferShape(void* result, int* ndims, int64_t** shapes, void*) {
  return infer_mindspore_slot(466, result, ndims, shapes);
}

int velo_ms_slot_467(int count, void** params, int* ndims, int64_t** shapes, const char** dtypes,
                     void* stream, void*) {
  return enter_mindspore_slot(467, {count, params, ndims, shapes, dtypes, stream});
}
void* velo_ms_slot_467InferShape(void* result, int* ndims, int64_t** shapes, void*) {
  return infer_mindspore_slot(467, result, ndims, shapes);
}

int velo_ms_slot_468(int count, void** params, int* ndims, int64_t** shapes, const char** dtypes,
                     void* stream, void*) {
  return enter_mindspore_slot(468, {count, params, ndims, shapes, dtypes, stream});
}
void* velo_ms_slot_468InferShape(void* result, int* ndims, int64_t** shapes, void*) {
  return infer_mindspore_slot(468, result, ndims, shapes);
}

int velo_ms_slot_469(int count, void** params, int* ndims, int64_t** shapes, const char** dtypes,
                     void* stream, void*) {
  return enter_mindspore_slot(469, {count, params, ndims, shapes, dtypes, stream});
}
void* velo_ms_slot_469InferShape(void* result, int* ndims, int64_t** shapes, void*) {
  return infer_mindspore_slot(469, result, ndims, shapes);
}

int velo_ms_slot_470(int count, void** params, int* ndims, int64_t** shapes, const char** dtypes,
                     void* stream, void*) {
  return enter_mindspore_slot(470, {count, params, ndims, shapes, dtypes, stream});
}
void* velo_ms_slot_470InferShape(void* result, int* ndims, int64_t** shapes, void*) {
  return infer_mindspore_slot(470, result, ndims, shapes);
}

int velo_ms_slot_471(int count, void** params, int* ndims, int64_t** shapes, const char** dtypes,
                     void* stream, void*) {
  return enter_mindspore_slot(471, {count, params, ndims, shapes, dtypes, stream});
}
void* velo_ms_slot_471InferShape(void* result, int* ndims, int64_t** shapes, void*) {
  return infer_mindspore_slot(471, result, ndims, shapes);
}

int velo_ms_slot_472(int count, void** params, int* ndims, int64_t** shapes, const char** dtypes,
                     void* stream, void*) {
  return enter_mindspore_slot(472, {count, params, ndims, shapes, dtypes, stream});
}
void* velo_ms_slot_472InferShape(void* result, int* ndims, int64_t** shapes, void*) {
  return infer_mindspore_slot(472, result, ndims, shapes);
}

int velo_ms_slot_473(int count, void** params, int* ndims, int64_t** shapes, const char** dtypes,
                     void* stream, void*) {
  return enter_mindspore_slot(473, {count, params, ndims, shapes, dtypes, stream});
}
void* velo_ms_slot_473InferShape(void* result, int* ndims, int64_t** shapes, void*) {
  return infer_mindspore_slot(473, result, ndims, shapes);
}

int velo_ms_slot_474(int count, void** params, int* ndims, int64_t** shapes, const char** dtypes,
                     void* stream, void*) {
  return enter_mindspore_slot(474, {count, params, ndims, shapes, dtypes, stream});
}
void* velo_ms_slot_474InferShape(void* result, int* ndims, int64_t** shapes, void*) {
  return infer_mindspore_slot(474, result, ndims, shapes);
}

int velo_ms_slot_475(int count, void** params, int* ndims, int64_t** shapes, const char** dtypes,
                     void* stream, void*) {
  return enter_mindspore_slot(475, {count, params, ndims, shapes, dtypes, stream});
}
void* velo_ms_slot_475InferShape(void* result, int* ndims, int64_t** shapes, void*) {
  return infer_mindspore_slot(475, result, ndims, shapes);
}

int velo_ms_slot_476(int count, void** params, int* ndims, int64_t** shapes, const char** dtypes,
                     void* stream, void*) {
  return enter_mindspore_slot(476, {count, params, ndims, shapes, dtypes, stream});
}
void* velo_ms_slot_476InferShape(void* result, int* ndims, int64_t** shapes, void*) {
  return infer_mindspore_slot(476, result, ndims, shapes);
}

int velo_ms_slot_477(int count, void** params, int* ndims, int64_t** shapes, const char** dtypes,
                     void* stream, void*) {
  return enter_mindspore_slot(477, {count, params, ndims, shapes, dtypes, stream});
}
void* velo_ms_slot_477InferShape(void* result, int* ndims, int64_t** shapes, void*) {
  return infer_mindspore_slot(477, result, ndims, shapes);
}

int velo_ms_slot_478(int count, void** params, int* ndims, int64_t** shapes, const char** dtypes,
                     void* stream, void*) {
  return enter_mindspore_slot(478, {count, params, ndims, shapes, dtypes, stream});
}
void* velo_ms_slot_478InferShape(void* result, int* ndims, int64_t** shapes, void*) {
  return infer_mindspore_slot(478, result, ndims, shapes);
}

int velo_ms_slot_479(int count, void** params, int* ndims, int64_t** shapes, const char** dtypes,
                     void* stream, void*) {
  return enter_mindspore_slot(479, {count, params, ndims, shapes, dtypes, stream});
}
void* velo_ms_slot_479InferShape(void* result, int* ndims, int64_t** shapes, void*) {
  return infer_mindspore_slot(479, result, ndims, shapes);
}

int velo_ms_slot_480(int count, void** params, int* ndims, int64_t** shapes, const char** dtypes,
                     void* stream, void*) {
  return enter_mindspore_slot(480, {count, params, ndims, shapes, dtypes, stream});
}
void* velo_ms_slot_480InferShape(void* result, int* ndims, int64_t** shapes, void*) {
  return infer_mindspore_slot(480, result, ndims, shapes);
}

int velo_ms_slot_481(int count, void** params, int* ndims, int64_t** shapes, const char** dtypes,
                     void* stream, void*) {
  return enter_mindspore_slot(481, {count, params, ndims, shapes, dtypes, stream});
}
void* velo_ms_slot_481InferShape(void* result, int* ndims, int64_t** shapes, void*) {
  return infer_mindspore_slot(481, result, ndims, shapes);
}

int velo_ms_slot_482(int count, void** params, int* ndims, int64_t** shapes, const char** dtypes,
                     void* stream, void*) {
  return enter_mindspore_slot(482, {count, params, ndims, shapes, dtypes, stream});
}
void* velo_ms_slot_482InferShape(void* result, int* ndims, int64_t** shapes, void*) {
  return infer_mindspore_slot(482, result, ndims, shapes);
}

int velo_ms_slot_483(int count, void** params, int* ndims, int64_t** shapes, const char** dtypes,
                     void* stream, void*) {
  return enter_mindspore_slot(483, {count, params, ndims, shapes, dtypes, stream});
}
void* velo_ms_slot_483InferShape(void* result, int* ndims, int64_t** shapes, void*) {
  return infer_mindspore_slot(483, result, ndims, shapes);
}

int velo_ms_slot_484(int count, void** params, int* ndims, int64_t** shapes, const char** dtypes,
                     void* stream, void*) {
  return enter_mindspore_slot(484, {count, params, ndims, shapes, dtypes, stream});
}
void* velo_ms_slot_484InferShape(void* result, int* ndims, int64_t** shapes, void*) {
  return infer_mindspore_slot(484, result, ndims, shapes);
}

int velo_ms_slot_485(int count, void** params, int* ndims, int64_t** shapes, const char** dtypes,
                     void* stream, void*) {
  return enter_mindspore_slot(485, {count, params, ndims, shapes, dtypes, stream});
}
void* velo_ms_slot_485InferShape(void* result, int* ndims, int64_t** shapes, void*) {
  return infer_mindspore_slot(485, result, ndims, shapes);
}

int velo_ms_slot_486(int count, void** params, int* ndims, int64_t** shapes, const char** dtypes,
                     void* stream, void*) {
  return enter_mindspore_slot(486, {count, params, ndims, shapes, dtypes, stream});
}
void* velo_ms_slot_486InferShape(void* result, int* ndims, int64_t** shapes, void*) {
  return infer_mindspore_slot(486, result, ndims, shapes);
}

int velo_ms_slot_487(int count, void** params, int* ndims, int64_t** shapes, const char** dtypes,
                     void* stream, void*) {
  return enter_mindspore_slot(487, {count, params, ndims, shapes, dtypes, stream});
}
void* velo_ms_slot_487InferShape(void* result, int* ndims, int64_t** shapes, void*) {
  return infer_mindspore_slot(487, result, ndims, shapes);
}

int velo_ms_slot_488(int count, void** params, int* ndims, int64_t** shapes, const char** dtypes,
                     void* stream, void*) {
  return enter_mindspore_slot(488, {count, params, ndims, shapes, dtypes, stream});
}
void* velo_ms_slot_488InferShape(void* result, int* ndims, int64_t** shapes, void*) {
  return infer_mindspore_slot(488, result, ndims, shapes);
}

int velo_ms_slot_489(int count, void** params, int* ndims, int64_t** shapes, const char** dtypes,
                     void* stream, void*) {
  return enter_mindspore_slot(489, {count, params, ndims, shapes, dtypes, stream});
}
void* velo_ms_slot_489InferShape(void* result, int* ndims, int64_t** shapes, void*) {
  return infer_mindspore_slot(489, result, ndims, shapes);
}

int velo_ms_slot_490(int count, void** params, int* ndims, int64_t** shapes, const char** dtypes,
                     void* stream, void*) {
  return enter_mindspore_slot(490, {count, params, ndims, shapes, dtypes, stream});
}
void* velo_ms_slot_490InferShape(void* result, int* ndims, int64_t** shapes, void*) {
  return infer_mindspore_slot(490, result, ndims, shapes);
}

int velo_ms_slot_491(int count, void** params, int* ndims, int64_t** shapes, const char** dtypes,
                     void* stream, void*) {
  return enter_mindspore_slot(491, {count, params, ndims, shapes, dtypes, stream});
}
void* velo_ms_slot_491InferShape(void* result, int* ndims, int64_t** shapes, void*) {
  return infer_mindspore_slot(491, result, ndims, shapes);
}

int velo_ms_slot_492(int count, void** params, int* ndims, int64_t** shapes, const char** dtypes,
                     void* stream, void*) {
  return enter_mindspore_slot(492, {count, params, ndims, shapes, dtypes, stream});
}
void* velo_ms_slot_492InferShape(void* result, int* ndims, int64_t** shapes, void*) {
  return infer_mindspore_slot(492, result, ndims, shapes);
}

int velo_ms_slot_493(int count, void** params, int* ndims, int64_t** shapes, const char** dtypes,
                     void* stream, void*) {
  return enter_mindspore_slot(493, {count, params, ndims, shapes, dtypes, stream});
}
void* velo_ms_slot_493InferShape(void* result, int* ndims, int64_t** shapes, void*) {
  return infer_mindspore_slot(493, result, ndims, shapes);
}

int velo_ms_slot_494(int count, void** params, int* ndims, int64_t** shapes, const char** dtypes,
                     void* stream, void*) {
  return enter_mindspore_slot(494, {count, params, ndims, shapes, dtypes, stream});
}
void* velo_ms_slot_494InferShape(void* result, int* ndims, int64_t** shapes, void*) {
  return infer_mindspore_slot(494, result, ndims, shapes);
}

int velo_ms_slot_495(int count, void** params, int* ndims, int64_t** shapes, const char** dtypes,
                     void* stream, void*) {
  return enter_mindspore_slot(495, {count, params, ndims, shapes, dtypes, stream});
}
void* velo_ms_slot_495InferShape(void* result, int* ndims, int64_t** shapes, void*) {
  return infer_mindspore_slot(495, result, ndims, shapes);
}

int velo_ms_slot_496(int count, void** params, int* ndims, int64_t** shapes, const char** dtypes,
                     void* stream, void*) {
  return enter_mindspore_slot(496, {count, params, ndims, shapes, dtypes, stream});
}
void* velo_ms_slot_496InferShape(void* result, int* ndims, int64_t** shapes, void*) {
  return infer_mindspore_slot(496, result, ndims, shapes);
}

int velo_ms_slot_497(int count, void** params, int* ndims, int64_t** shapes, const char** dtypes,
                     void* stream, void*) {
  return enter_mindspore_slot(497, {count, params, ndims, shapes, dtypes, stream});
}
void* velo_ms_slot_497InferShape(void* result, int* ndims, int64_t** shapes, void*) {
  return infer_mindspore_slot(497, result, ndims, shapes);
}

int velo_ms_slot_498(int count, void** params, int* ndims, int64_t** shapes, const char** dtypes,
                     void* stream, void*) {
  return enter_mindspore_slot(498, {count, params, ndims, shapes, dtypes, stream});
}
void* velo_ms_slot_498InferShape(void* result, int* ndims, int64_t** shapes, void*) {
  return infer_mindspore_slot(498, result, ndims, shapes);
}

int velo_ms_slot_499(int count, void** params, int* ndims, int64_t** shapes, const char** dtypes,
                     void* stream, void*) {
  return enter_mindspore_slot(499, {count, params, ndims, shapes, dtypes, stream});
}
void* velo_ms_slot_499InferShape(void* result, int* ndims, int64_t** shapes, void*) {
  return infer_mindspore_slot(499, result, ndims, shapes);
}

int velo_ms_slot_500(int count, void** params, int* ndims, int64_t** shapes, const char** dtypes,
                     void* stream, void*) {
  return enter_mindspore_slot(500, {count, params, ndims, shapes, dtypes, stream});
}
void* velo_ms_slot_500InferShape(void* result, int* ndims, int64_t** shapes, void*) {
  return infer_mindspore_slot(500, result, ndims, shapes);
}

int velo_ms_slot_501(int count, void** params, int* ndims, int64_t** shapes, const char** dtypes,
                     void* stream, void*) {
  return enter_mindspore_slot(501, {count, params, ndims, shapes, dtypes, stream});
}
void* velo_ms_slot_501InferShape(void* result, int* ndims, int64_t** shapes, void*) {
  return infer_mindspore_slot(501, result, ndims, shapes);
}

int velo_ms_slot_502(int count, void** params, int* ndims, int64_t** shapes, const char** dtypes,
                     void* stream, void*) {
  return enter_mindspore_slot(502, {count, params, ndims, shapes, dtypes, stream});
}
void* velo_ms_slot_502InferShape(void* result, int* ndims, int64_t** shapes, void*) {
  return infer_mindspore_slot(502, result, ndims, shapes);
}

int velo_ms_slot_503(int count, void** params, int* ndims, int64_t** shapes, const char** dtypes,
                     void* stream, void*) {
  return enter_mindspore_slot(503, {count, params, ndims, shapes, dtypes, stream});
}
void* velo_ms_slot_503InferShape(void* result, int* ndims, int64_t** shapes, void*) {
  return infer_mindspore_slot(503, result, ndims, shapes);
}

int velo_ms_slot_504(int count, void** params, int* ndims, int64_t** shapes, const char** dtypes,
                     void* stream, void*) {
  return enter_mindspore_slot(504, {count, params, ndims, shapes, dtypes, stream});
}
void* velo_ms_slot_504InferShape(void* result, int* ndims, int64_t** shapes, void*) {
  return infer_mindspore_slot(504, result, ndims, shapes);
}

int velo_ms_slot_505(int count, void** params, int* ndims, int64_t** shapes, const char** dtypes,
                     void* stream, void*) {
  return enter_mindspore_slot(505, {count, params, ndims, shapes, dtypes, stream});
}
void* velo_ms_slot_505InferShape(void* result, int* ndims, int64_t** shapes, void*) {
  return infer_mindspore_slot(505, result, ndims, shapes);
}

int velo_ms_slot_506(int count, void** params, int* ndims, int64_t** shapes, const char** dtypes,
                     void* stream, void*) {
  return enter_mindspore_slot(506, {count, params, ndims, shapes, dtypes, stream});
}
void* velo_ms_slot_506InferShape(void* result, int* ndims, int64_t** shapes, void*) {
  return infer_mindspore_slot(506, result, ndims, shapes);
}

int velo_ms_slot_507(int count, void** params, int* ndims, int64_t** shapes, const char** dtypes,
                     void* stream, void*) {
  return enter_mindspore_slot(507, {count, params, ndims, shapes, dtypes, stream});
}
void* velo_ms_slot_507InferShape(void* result, int* ndims, int64_t** shapes, void*) {
  return infer_mindspore_slot(507, result, ndims, shapes);
}

int velo_ms_slot_508(int count, void** params, int* ndims, int64_t** shapes, const char** dtypes,
                     void* stream, void*) {
  return enter_mindspore_slot(508, {count, params, ndims, shapes, dtypes, stream});
}
void* velo_ms_slot_508InferShape(void* result, int* ndims, int64_t** shapes, void*) {
  return infer_mindspore_slot(508, result, ndims, shapes);
}

int velo_ms_slot_509(int count, void** params, int* ndims, int64_t** shapes, const char** dtypes,
                     void* stream, void*) {
  return enter_mindspore_slot(509, {count, params, ndims, shapes, dtypes, stream});
}
void* velo_ms_slot_509InferShape(void* result, int* ndims, int64_t** shapes, void*) {
  return infer_mindspore_slot(509, result, ndims, shapes);
}

int velo_ms_slot_510(int count, void** params, int* ndims, int64_t** shapes, const char** dtypes,
                     void* stream, void*) {
  return enter_mindspore_slot(510, {count, params, ndims, shapes, dtypes, stream});
}
void* velo_ms_slot_510InferShape(void* result, int* ndims, int64_t** shapes, void*) {
  return infer_mindspore_slot(510, result, ndims, shapes);
}

int velo_ms_slot_511(int count, void** params, int* ndims, int64_t** shapes, const char** dtypes,
                     void* stream, void*) {
  return enter_mindspore_slot(511, {count, params, ndims, shapes, dtypes, stream});
}
void* velo_ms_slot_511InferShape(void* result, int* ndims, int64_t** shapes, void*) {
  return infer_mindspore_slot(511, result, ndims, shapes);
}

}
#pragma GCC visibility pop

const torch_kernels velo::adapters::torch_entries[] = {
    torch_kernels_of<number::rms_norm>,
    torch_kernels_of<number::rms_norm_backward>,
    torch_kernels_of<number::layer_norm>,
    torch_kernels_of<number::layer_norm_backward>,
    torch_kernels_of<number::dropout_add_rms_norm>,
    torch_kernels_of<number::dropout_add_rms_norm_backward>,
    torch_kernels_of<number::dropout_add_layer_norm>,
    torch_kernels_of<number::dropout_add_layer_norm_backward>,
    torch_kernels_of<number::swiglu>,
    torch_kernels_of<number::swiglu_backward>,
    torch_kernels_of<number::geglu>,
    torch_kernels_of<number::geglu_backward>,
    torch_kernels_of<number::reglu>,
    torch_kernels_of<number::reglu_backward>,
    torch_kernels_of<number::gelu>,
    torch_kernels_of<number::gelu_backward>,
    torch_kernels_of<number::fast_gelu>,
    torch_kernels_of<number::fast_gelu_backward>,
    torch_kernels_of<number::silu>,
    torch_kernels_of<number::silu_backward>,
    torch_kernels_of<number::relu>,
    torch_kernels_of<number::relu_backward>,
    torch_kernels_of<number::rotary_position_embedding>,
    torch_kernels_of<number::rotary_position_embedding_backward>,
    torch_kernels_of<number::rope_frequencies>,
    torch_kernels_of<number::matmul>,
    torch_kernels_of<number::matmul_backward>,
    torch_kernels_of<number::matmul_add>,
    torch_kernels_of<number::matmul_add_backward>,
    torch_kernels_of<number::matmul_swiglu>,
    torch_kernels_of<number::matmul_swiglu_backward>,
    torch_kernels_of<number::rms_norm_matmul>,
    torch_kernels_of<number::rms_norm_matmul_backward>,
    torch_kernels_of<number::matmul_add_fp32>,
    torch_kernels_of<number::grouped_matmul>,
    torch_kernels_of<number::grouped_matmul_backward>,
    torch_kernels_of<number::grouped_matmul_add_fp32>,
    torch_kernels_of<number::weight_quant_matmul>,
    torch_kernels_of<number::weight_quant_matmul_backward>,
    torch_kernels_of<number::weight_quant_grouped_matmul>,
    torch_kernels_of<number::quant_grouped_matmul>,
    torch_kernels_of<number::ffn>,
    torch_kernels_of<number::fusion_attention>,
    torch_kernels_of<number::fusion_attention_backward>,
    torch_kernels_of<number::ring_attention_update>,
    torch_kernels_of<number::flash_attention>,
    torch_kernels_of<number::flash_attention_backward>,
    torch_kernels_of<number::cached_attention>,
    torch_kernels_of<number::generate_mask>,
    torch_kernels_of<number::alibi_slopes>,
    torch_kernels_of<number::embedding>,
    torch_kernels_of<number::embedding_backward>,
    torch_kernels_of<number::cross_entropy>,
    torch_kernels_of<number::cross_entropy_backward>,
    torch_kernels_of<number::apply_fused_adamw>,
    torch_kernels_of<number::apply_fused_ema_adamw>,
    torch_kernels_of<number::multi_tensor_adamw>,
    torch_kernels_of<number::multi_tensor_ema_adamw>,
    torch_kernels_of<number::global_norm>,
    torch_kernels_of<number::multi_tensor_global_norm>,
    torch_kernels_of<number::bf16_param_split>,
    torch_kernels_of<number::bf16_param_merge>,
    torch_kernels_of<number::add>,
    torch_kernels_of<number::cast>,
    torch_kernels_of<number::dropout>,
    torch_kernels_of<number::dropout_backward>,
    torch_kernels_of<number::accumulate>,
    torch_kernels_of<number::reduce_max_abs>,
    torch_kernels_of<number::matmul_all_reduce>,
    torch_kernels_of<number::matmul_reduce_scatter>,
    torch_kernels_of<number::all_gather_matmul>,
    torch_kernels_of<number::all_gather_matmul_reduce_scatter>,
    torch_kernels_of<number::matmul_all_reduce_add_rms_norm>,
    torch_kernels_of<number::grouped_matmul_all_reduce>,
    torch_kernels_of<number::all_to_all_all_gather_bmm>,
    torch_kernels_of<number::bmm_reduce_scatter_all_to_all>,
    torch_kernels_of<number::moe_token_permute>,
    torch_kernels_of<number::moe_token_permute_backward>,
    torch_kernels_of<number::moe_token_unpermute>,
    torch_kernels_of<number::moe_token_unpermute_backward>,
    torch_kernels_of<number::topk_router>,
    torch_kernels_of<number::topk_router_backward>,
    torch_kernels_of<number::capacity_gate>,
    torch_kernels_of<number::capacity_gate_backward>,
    torch_kernels_of<number::sinkhorn>,
    torch_kernels_of<number::sinkhorn_backward>,
    torch_kernels_of<number::softmax>,
    torch_kernels_of<number::softmax_backward>,
    torch_kernels_of<number::pad_seqlen>,
    torch_kernels_of<number::pad_seqlen_backward>,
    torch_kernels_of<number::unpad_seqlen>,
    torch_kernels_of<number::unpad_seqlen_backward>,
    torch_kernels_of<number::unpad_gen_attention_mask>,
    torch_kernels_of<number::unpad_rope>,
    torch_kernels_of<number::unpad_rope_backward>,
    torch_kernels_of<number::unpad_softmax>,
    torch_kernels_of<number::unpad_softmax_backward>,
    torch_kernels_of<number::unpad_strided_batch_matmul>,
    torch_kernels_of<number::unpad_strided_batch_matmul_backward>,
    torch_kernels_of<number::quantize>,
    torch_kernels_of<number::sequence_all_to_all>,
    torch_kernels_of<number::context_parallel_attention>,
    torch_kernels_of<number::context_parallel_attention_backward>,
    torch_kernels_of<number::vocab_parallel_cross_entropy>,
    torch_kernels_of<number::vocab_parallel_cross_entropy_backward>,
    torch_kernels_of<number::vocab_parallel_embedding>,
    torch_kernels_of<number::vocab_parallel_embedding_backward>,
    torch_kernels_of<number::column_parallel_linear>,
    torch_kernels_of<number::column_parallel_linear_backward>,
    torch_kernels_of<number::row_parallel_linear>,
    torch_kernels_of<number::row_parallel_linear_backward>,
    torch_kernels_of<number::parallel_rms_norm>,
    torch_kernels_of<number::parallel_rms_norm_backward>,
    torch_kernels_of<number::parallel_layer_norm>,
    torch_kernels_of<number::parallel_layer_norm_backward>,
    torch_kernels_of<number::capacity>,
};
