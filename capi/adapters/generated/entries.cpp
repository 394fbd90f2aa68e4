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
    matmul,
    matmul_backward,
    matmul_add_fp32,
    grouped_matmul,
    grouped_matmul_backward,
    grouped_matmul_add_fp32,
    fusion_attention,
    fusion_attention_backward,
    ring_attention_update,
    flash_attention,
    flash_attention_backward,
    embedding,
    embedding_backward,
    cross_entropy,
    cross_entropy_backward,
    apply_fused_adamw,
    apply_fused_ema_adamw,
    global_norm,
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
    moe_token_permute,
    moe_token_permute_backward,
    moe_token_unpermute,
    moe_token_unpermute_backward,
    topk_router,
    topk_router_backward,
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
    torch_kernels_of<number::matmul>,
    torch_kernels_of<number::matmul_backward>,
    torch_kernels_of<number::matmul_add_fp32>,
    torch_kernels_of<number::grouped_matmul>,
    torch_kernels_of<number::grouped_matmul_backward>,
    torch_kernels_of<number::grouped_matmul_add_fp32>,
    torch_kernels_of<number::fusion_attention>,
    torch_kernels_of<number::fusion_attention_backward>,
    torch_kernels_of<number::ring_attention_update>,
    torch_kernels_of<number::flash_attention>,
    torch_kernels_of<number::flash_attention_backward>,
    torch_kernels_of<number::embedding>,
    torch_kernels_of<number::embedding_backward>,
    torch_kernels_of<number::cross_entropy>,
    torch_kernels_of<number::cross_entropy_backward>,
    torch_kernels_of<number::apply_fused_adamw>,
    torch_kernels_of<number::apply_fused_ema_adamw>,
    torch_kernels_of<number::global_norm>,
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
    torch_kernels_of<number::moe_token_permute>,
    torch_kernels_of<number::moe_token_permute_backward>,
    torch_kernels_of<number::moe_token_unpermute>,
    torch_kernels_of<number::moe_token_unpermute_backward>,
    torch_kernels_of<number::topk_router>,
    torch_kernels_of<number::topk_router_backward>,
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
};
