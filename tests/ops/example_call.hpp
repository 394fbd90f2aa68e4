// An operator's call as its args struct: the samples that every mini host runs, with memory of
// their own, so that a test can change and repeat them.
//
// `reset` restores every tensor to its elements before the call; `result` is the bits of all
// outputs. The object must not move, because the args point into it.
#pragma once

#include <deque>
#include <string>
#include <vector>

#include "hosts/samples.hpp"
#include "ops/call/call.hpp"
#include "ops/operator/registry.hpp"
#include "tests/ops/operator_testing.hpp"
#include "velo/velo.h"

namespace velo::testing {

inline bool is_floating(const hosts::array& a) {
  return a.dtype.code == VELO_DTYPE_FLOAT || a.dtype.code == VELO_DTYPE_BFLOAT;
}

class example_call {
 public:
  explicit example_call(const hosts::sample& sample) : sample_(sample) {
    ops::find_op(sample.op.c_str(), op_);
    ops::set_defaults(spec(), args);
    for (int i = 0; i < spec().field_count; ++i) add_tensor(i);
    for (const hosts::attribute& a : sample.attributes) add_attribute(a);
  }
  example_call(const example_call&) = delete;

  ops::args_block args;

  ops::op_id op() const { return op_; }
  const ops::op_spec& spec() const { return ops::spec_of(op_); }
  const hosts::sample& sample() const { return sample_; }
  velo_status run(velo_stream stream) const { return ops::call(op_, stream, &args); }

  void reset() {
    for (std::size_t i = 0; i < memory_.size(); ++i)
      memory_[i].bytes.assign(before_[i].bytes.begin(), before_[i].bytes.end());
  }
  std::vector<std::vector<unsigned char>> result() const {
    std::vector<std::vector<unsigned char>> bits;
    for (std::size_t i = 0; i < memory_.size(); ++i)
      if (spec().fields[fields_[i]].output) bits.push_back(memory_[i].bytes);
    return bits;
  }

  // Fields that hold a tensor, in the order of the args struct, and their memory.
  std::size_t tensors() const { return memory_.size(); }
  int field(std::size_t tensor) const { return fields_[tensor]; }
  hosts::array& memory(std::size_t tensor) { return memory_[tensor]; }
  velo_tensor& view(std::size_t tensor) { return views_[tensor]; }
  // Whether the bounds are those of a call with a narrower floating tensor.
  bool is_mixed() const {
    return std::any_of(memory_.begin(), memory_.end(),
                       [](const hosts::array& a) { return is_floating(a) && a.dtype.bits == 16; });
  }

  // The call by name; outputs only if asked for.
  std::vector<velo_named_value> values(bool with_outputs) const {
    std::vector<velo_named_value> named;
    for (int i = 0; i < spec().field_count; ++i) {
      const ops::field& f = spec().fields[i];
      velo_named_value v{};
      v.name = f.name;
      if (f.kind == ops::field_kind::tensor) {
        const bool given = sample_.input(f.name) != nullptr || with_outputs;
        if (args.values[i].tensor == nullptr || !given) continue;
        v.value.kind = VELO_VALUE_TENSOR, v.value.as.tensor = args.values[i].tensor;
      } else if (f.kind == ops::field_kind::ints) {
        if (args.values[i].ints == nullptr) continue;
        v.value.kind = VELO_VALUE_INTS, v.value.as.ints = args.values[i].ints;
      } else if (f.kind == ops::field_kind::f64) {
        v.value.kind = VELO_VALUE_FLOAT, v.value.as.f = args.values[i].f;
      } else if (f.kind != ops::field_kind::handle) {
        v.value.kind = VELO_VALUE_INT, v.value.as.i = args.values[i].i;
      }
      named.push_back(v);
    }
    return named;
  }

 private:
  void add_tensor(int i) {
    const ops::field& f = spec().fields[i];
    const hosts::array* before = sample_.input(f.name);
    for (const hosts::named_array& out : sample_.outputs) {
      if (before == nullptr && out.field == f.name) {
        blank_.push_back(hosts::filled(out.data.dtype, out.data.shape, 0xcd));
        before = &blank_.back();
      }
    }
    if (f.kind != ops::field_kind::tensor || before == nullptr) return;
    before_.push_back(*before);
    memory_.push_back(*before);
    views_.push_back(memory_.back().view());
    fields_.push_back(i);
    args.values[i].tensor = &views_.back();
  }

  void add_attribute(const hosts::attribute& a) {
    for (int i = 0; i < spec().field_count; ++i) {
      const ops::field& f = spec().fields[i];
      if (a.name != f.name) continue;
      if (a.kind == VELO_VALUE_FLOAT) {
        args.values[i].f = a.real;
      } else if (a.kind == VELO_VALUE_INTS) {
        lists_.push_back({a.list.data(), static_cast<std::int64_t>(a.list.size())});
        args.values[i].ints = &lists_.back();
      } else if (a.kind == VELO_VALUE_STRING) {
        for (int e = 0; e < f.enumerator_count; ++e)
          if (a.text == f.enumerators[e].name) args.values[i].i = f.enumerators[e].value;
      } else {
        args.values[i].i = a.integer;
      }
    }
  }

  const hosts::sample& sample_;
  ops::op_id op_{};
  std::deque<hosts::array> blank_, before_, memory_;
  std::deque<velo_tensor> views_;
  std::deque<velo_ints> lists_;
  std::vector<int> fields_;
};

// An element of a tensor.
inline double element(const hosts::array& a, std::size_t i) {
  const unsigned char* at = a.bytes.data() + i * (a.dtype.bits / 8);
  if (a.dtype.code == VELO_DTYPE_INT) {
    if (a.dtype.bits == 64) return static_cast<double>(*reinterpret_cast<const std::int64_t*>(at));
    if (a.dtype.bits == 8) return *reinterpret_cast<const std::int8_t*>(at);
    return *reinterpret_cast<const std::int32_t*>(at);
  }
  if (a.dtype.bits == 64) return *reinterpret_cast<const double*>(at);
  if (a.dtype.bits == 32) return value_of(*reinterpret_cast<const float*>(at));
  if (a.dtype.bits == 8) return *at;
  return a.dtype.code == VELO_DTYPE_BFLOAT ? value_of(*reinterpret_cast<const simd::bf16*>(at))
                                           : value_of(*reinterpret_cast<const simd::f16*>(at));
}

inline void set_element(hosts::array& a, std::size_t i, double value) {
  unsigned char* at = a.bytes.data() + i * (a.dtype.bits / 8);
  if (a.dtype.bits == 64)
    *reinterpret_cast<double*>(at) = value;
  else if (a.dtype.bits == 32)
    *reinterpret_cast<float*>(at) = static_cast<float>(value);
  else if (a.dtype.bits == 8)
    *at = static_cast<unsigned char>(value);
  else if (a.dtype.code == VELO_DTYPE_BFLOAT)
    simd::assign(*reinterpret_cast<simd::bf16*>(at), value);
  else
    simd::assign(*reinterpret_cast<simd::f16*>(at), value);
}

}  // namespace velo::testing
