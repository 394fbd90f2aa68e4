// An operator call as the command line spells it: x=f32[8,4096] gamma=f32[4096] epsilon=1e-5.
//
// A tensor is a dtype and its sizes, without data; a list of integers [0,4,9]; a pack
// pack:f32[k,n] or pack:f32[experts,k,n], which has weight_only in an operator weight_quant_..;
// all else a number, true, false or an enumerator's name.
// The field table of the operator says which is meant. The values point into the call.
#pragma once

#include <deque>
#include <string>
#include <vector>
#include <velo/velo.hpp>

#include "tools/velo/json.hpp"

namespace command {

class call {
 public:
  // describe: velo_op_describe's document. words: name=value. Throws input_error.
  call(const velo::context& context, const json_t* describe, const std::vector<std::string>& words);
  call(const call&) = delete;
  call& operator=(const call&) = delete;

  const std::vector<velo_named_value>& values() const { return values_; }
  int64_t count() const { return static_cast<int64_t>(values_.size()); }

 private:
  velo_value read(const velo::context& context, const json_t* field, const std::string& text);
  velo_value read_tensor(const std::string& name, const std::string& text);
  velo_value read_list(const std::string& name, const std::string& text);
  velo_value read_pack(const velo::context& context, const std::string& name,
                       const std::string& text);

  std::string op_;
  std::vector<velo_named_value> values_;
  std::deque<std::string> texts_;
  std::deque<velo::tensor_view> tensors_;
  std::deque<std::vector<int64_t>> lists_;
  std::deque<velo_ints> ints_;
  std::deque<velo::pack> packs_;
};

std::string dtype_name(velo_dtype type);                                  // "f32"
bool dtype_called(const std::string& full_name, velo_dtype& type);        // "float32"
std::string shape_name(velo_dtype type, int rank, const int64_t* sizes);  // "f32[8,4096]"

}  // namespace command
