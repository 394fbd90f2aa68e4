// A capsule read back: the call that it holds, with memory of its own.
//
// ops/replay/capsule.hpp describes the file. Nothing in it is trusted: gzip's checksum and length
// find flipped and missing bytes; every size is checked against sizes and strides before memory is
// allocated, every tensor's CRC-32 after it was read.
#pragma once

#include <cstdint>
#include <deque>
#include <string>
#include <vector>
#include <velo/velo.hpp>

#include "tools/velo/json.hpp"

namespace command {

class capsule_file {
 public:
  explicit capsule_file(const std::string& file);  // throws input_error
  capsule_file(const capsule_file&) = delete;
  capsule_file& operator=(const capsule_file&) = delete;

  std::string op, kernel, isa, release;
  std::vector<std::string> zeroed;  // tensors whose elements it does not hold: 0 here
  bool has_data() const { return zeroed.size() < memories_.size() || memories_.empty(); }

  const std::vector<velo_named_value>& values() const { return values_; }

  // A tensor that the call wrote, and the CRC-32 of its bytes as it was recorded.
  struct output {
    std::string name;
    std::uint32_t recorded = 0, now = 0;
  };
  std::vector<output> outputs() const;  // call it after the call ran

 private:
  struct memory {
    std::vector<char> bytes;  // with room to start at the recorded address modulo 64
    char* first = nullptr;
    std::size_t count = 0;
  };
  struct tensor {
    std::string name;
    std::vector<std::int64_t> sizes, strides;
    velo_tensor view{};
    const memory* elements = nullptr;
  };

  void read_field(const json_t* field);
  void read_tensor(const json_t* node, const std::string& name);
  const memory* read_memory(const json_t* node, const tensor& of);
  const tensor& tensor_called(const std::string& name) const;
  void read_outputs(const json_t* list);
  [[noreturn]] void refuse(const std::string& reason) const;

  const std::string file_;
  struct unpacked;
  unpacked* in_ = nullptr;  // while the file is read
  std::vector<velo_named_value> values_;
  std::deque<std::string> texts_;
  std::deque<tensor> tensors_;
  std::deque<std::vector<velo_tensor>> views_;
  std::deque<velo_tensors> tensor_lists_;
  std::deque<std::vector<std::int64_t>> numbers_;
  std::deque<velo_ints> ints_;
  std::deque<memory> memories_;
  std::vector<output> outputs_;
};

}  // namespace command
