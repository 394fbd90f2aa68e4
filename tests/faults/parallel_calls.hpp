// The operators that work with a group, as calls of one rank of two by name, with tensors for them.
#pragma once

#include <cstdint>
#include <cstring>
#include <utility>
#include <vector>

#include "comm/ranks.hpp"
#include "tests/tensors.hpp"
#include "velo/velo.h"

namespace velo::testing {

struct tensor_field {
  const char* name;
  std::vector<std::int64_t> shape;
  bool is_output = false, counts = false;  // counts: int32, else float32
};
struct attribute_field {
  const char* name;
  std::int64_t value;
};
struct parallel_call {
  const char* op;
  std::vector<tensor_field> tensors;
  std::vector<attribute_field> attributes = {};
  std::vector<const char*> groups = {"group"};
};

inline tensor_field in(const char* name, std::vector<std::int64_t> shape) {
  return {name, std::move(shape)};
}
inline tensor_field counts(const char* name, std::vector<std::int64_t> shape) {
  return {name, std::move(shape), false, true};
}
inline tensor_field out(const char* name, std::vector<std::int64_t> shape) {
  return {name, std::move(shape), true};
}

// Of two ranks, whose shares are equal. A causal ring attends 16 rows.
inline std::vector<parallel_call> every_parallel_call() {
  const std::vector<std::int64_t> rows = {8, 4, 16}, statistics = {4, 8}, whole = {8, 12},
                                  half = {4, 12}, norm = {8, 1};
  return {
      {"sequence_all_to_all", {in("x", {4, 6, 8}), out("y", {8, 3, 8})}},
      {"context_parallel_attention",
       {in("query", rows), in("key", rows), in("value", rows), out("attention_out", rows),
        out("softmax_max", statistics), out("softmax_sum", statistics)}},
      {"context_parallel_attention_backward",
       {in("query", rows), in("key", rows), in("value", rows), in("dy", rows),
        in("softmax_max", statistics), in("softmax_sum", statistics), in("attention_out", rows),
        in("kept", {1024}), out("dquery", rows), out("dkey", rows), out("dvalue", rows)}},
      {"vocab_parallel_cross_entropy",
       {in("logits", whole), counts("targets", {8}), out("loss", {8}), out("lse", {8})}},
      {"vocab_parallel_cross_entropy_backward",
       {in("dloss", {8}), in("logits", whole), counts("targets", {8}), in("lse", {8}),
        out("dlogits", whole)}},
      {"vocab_parallel_embedding",
       {counts("indices", {8}), in("weight", {10, 12}), out("y", half)},
       {{"sequence_parallel", 1}}},
      {"vocab_parallel_embedding_backward",
       {counts("indices", {8}), in("dy", half), out("dweight", {10, 12})},
       {{"sequence_parallel", 1}, {"rows", 10}}},
      {"column_parallel_linear",
       {in("x", half), in("weight", {6, 12}), in("bias", {6}), out("y", {8, 6}),
        out("gathered", whole)},
       {{"sequence_parallel", 1}}},
      {"column_parallel_linear_backward",
       {in("dy", {8, 6}), in("x", half), in("weight", {6, 12}), out("dx", half),
        out("dweight", {6, 12}), out("dbias", {6})},
       {{"sequence_parallel", 1}}},
      {"row_parallel_linear",
       {in("x", whole), in("weight", {6, 12}), in("bias", {6}), out("y", {4, 6})},
       {{"sequence_parallel", 1}}},
      {"row_parallel_linear_backward",
       {in("dy", {4, 6}), in("x", whole), in("weight", {6, 12}), out("dx", whole),
        out("dweight", {6, 12}), out("dbias", {6})},
       {{"sequence_parallel", 1}}},
      {"parallel_rms_norm",
       {in("x", whole), in("gamma", {12}), out("y", whole), out("rstd", norm)}},
      {"parallel_rms_norm_backward",
       {in("dy", whole), in("x", whole), in("gamma", {12}), in("rstd", norm), out("dx", whole),
        out("dgamma", {12})}},
      {"parallel_layer_norm",
       {in("x", whole), in("gamma", {12}), in("beta", {12}), out("y", whole), out("mean", norm),
        out("rstd", norm)}},
      {"parallel_layer_norm_backward",
       {in("dy", whole), in("x", whole), in("gamma", {12}), in("mean", norm), in("rstd", norm),
        out("dx", whole), out("dgamma", {12}), out("dbeta", {12})}},
      {"matmul_all_reduce", {in("x", whole), in("weight", {12, 6}), out("y", {8, 6})}},
      {"matmul_reduce_scatter", {in("x", whole), in("weight", {12, 6}), out("y", {4, 6})}},
      {"all_gather_matmul", {in("x", half), in("weight", {12, 6}), out("y", {8, 6})}},
      {"all_gather_matmul_reduce_scatter",
       {in("x", half), in("weight", {12, 6}), out("y", {4, 6})},
       {},
       {"gather_group", "scatter_group"}},
      {"matmul_all_reduce_add_rms_norm",
       {in("x", whole), in("weight", {12, 6}), in("residual", {8, 6}), in("gamma", {6}),
        out("y", {8, 6}), out("norm_out", {8, 6}), out("rstd", norm)}},
      {"all_to_all_all_gather_bmm",
       {in("x", {2, 4, 6}), in("weight", {1, 12, 6}), in("bias", {1, 6}), out("y", {1, 8, 6}),
        out("gathered", {1, 8, 12}), out("pre_activation", {1, 8, 6})},
       {{"act_type", VELO_EXPERT_ACTIVATION_SILU}},
       {"group_ep", "group_tp"}},
      {"bmm_reduce_scatter_all_to_all",
       {in("x", {1, 8, 6}), in("weight", {1, 6, 12}), in("bias", {1, 12}), out("y", {2, 2, 12})},
       {{"shard_type", VELO_EXPERT_SHARD_ROWS}},
       {"group_ep", "group_tp"}},
  };
}

// A rank's tensors, and its call by name.
class rank_call {
 public:
  rank_call(const parallel_call& of, const rank_of_group& me, velo_group second)
      : of_(of), stream_(me.stream) {
    views_.reserve(of.tensors.size());
    for (const tensor_field& field : of.tensors) {
      std::int64_t count = 1;
      for (const std::int64_t size : field.shape) count *= size;
      numbers_.emplace_back(at(count));
      for (std::int64_t i = 0; i < count; ++i) put(field, i, me.rank);
      views_.push_back(view_of(numbers_.back().data(), field.counts ? i32 : f32, field.shape.data(),
                               static_cast<int>(field.shape.size())));
      add(field.name, VELO_VALUE_TENSOR).as.tensor = &views_.back();
    }
    for (const attribute_field& one : of.attributes) add(one.name, VELO_VALUE_INT).as.i = one.value;
    for (std::size_t i = 0; i < of.groups.size(); ++i)
      add(of.groups[i], VELO_VALUE_HANDLE).as.p = i == 0 ? me.group : second;
  }
  rank_call(const rank_call&) = delete;

  velo_status run() const {
    return velo_op_call(stream_, of_.op, values_.data(), static_cast<std::int64_t>(values_.size()));
  }
  std::vector<std::vector<float>> results() const {
    std::vector<std::vector<float>> all;
    for (std::size_t i = 0; i < numbers_.size(); ++i)
      if (of_.tensors[i].is_output) all.push_back(numbers_[i]);
    return all;
  }

 private:
  void put(const tensor_field& field, std::int64_t i, int rank) {
    float& to = numbers_.back()[at(i)];
    to = field.is_output ? -77 : static_cast<float>((7 * i + 3 * rank) % 11 + 1) / 8;
    const auto index = static_cast<std::int32_t>(i % 8);
    if (field.counts) std::memcpy(&to, &index, sizeof to);
  }
  velo_value& add(const char* name, velo_value_kind kind) {
    velo_named_value one{};
    one.name = name;
    one.value.kind = kind;
    values_.push_back(one);
    return values_.back().value;
  }
  const parallel_call& of_;
  const velo_stream stream_;
  std::vector<std::vector<float>> numbers_;
  std::vector<velo_tensor> views_;
  std::vector<velo_named_value> values_;
};

}  // namespace velo::testing
