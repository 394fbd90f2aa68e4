// The binding of a foreign C function: the text that derives its parameters from an operator's
// tensors and attributes.
//
// The parser checks all that can be checked without data: that tensors are declared once, that
// there is one expression per parameter, that each has the type of its parameter, that an attribute
// is used as one kind of number. An error names its column. The result is an op_spec like those of
// velo's own operators, so that values by name, checks and closures know nothing of foreign
// kernels.
#pragma once

#include <cstdint>
#include <deque>
#include <string>
#include <vector>

#include "core/invoke.hpp"
#include "ops/call/call.hpp"

namespace velo::ops {

// The source of one parameter's value.
struct source {
  enum class origin : std::uint8_t {
    data,
    numel,
    rank,
    size,    // x.shape[i]
    stride,  // x.stride[i]
    bytes,
    attribute,
    integer,
    real,
    stream
  };
  origin kind;
  int field = -1;  // of the tensor or attribute
  int index = 0;   // of the dimension
  core::word constant{};
};

class binding {
 public:
  // Texts are those of velo_kernel_desc. Throws VELO_ERR_PARSE, VELO_ERR_ARGUMENT (arity).
  binding(const char* op, const char* signature, const char* expressions, const char* tensors);
  binding(const binding&) = delete;
  binding& operator=(const binding&) = delete;

  const op_spec& spec() const { return spec_; }
  const core::signature& shape() const { return shape_; }
  bool takes_stream() const { return takes_stream_; }

  // Checks what a field table cannot express: attributes are required, and the dimensions that the
  // expressions name exist.
  void check(const args_block& block, field_set given) const;

  // Writes one word per parameter. The block has passed all checks.
  void evaluate(const args_block& block, velo_stream stream, core::word* words) const;

 private:
  class reader;

  void read_tensors(reader& from);
  void read_expressions(reader& from);
  source read_expression(reader& from, core::passing to);
  source read_tensor_part(reader& from, int tensor);
  int attribute_field(const std::string& name, core::passing to);
  field& add_field(const std::string& name, field_kind kind);
  int find(const std::string& name, bool tensor) const;

  op_spec spec_{};
  core::signature shape_;
  std::vector<source> sources_;
  std::vector<field> fields_;
  std::vector<int> least_rank_;    // per field: dimensions the expressions name
  std::deque<std::string> names_;  // the field table points into it
  bool takes_stream_ = false;
};

}  // namespace velo::ops
