// The parts of a layer whose activations can be treated apart, by the names that settings have.
#pragma once

#include <optional>
#include <string>

#include "examples/decoder/settings.hpp"

namespace decoder {

class layer_modules {
 public:
  enum part : unsigned {
    input_norm = 1,
    self_attention = 2,
    post_attention_norm = 4,
    mlp = 8,
    expert_input = 16  // of mlp: what experts' rows are dispatched from; settings do not name it
  };

  static layer_modules none() { return layer_modules(0); }
  static layer_modules all() { return layer_modules(15); }
  explicit layer_modules(unsigned bits) : bits_(bits) {}
  bool has(part which) const { return (bits_ & which) != 0; }
  layer_modules with(part which) const { return layer_modules(bits_ | which); }

 private:
  unsigned bits_;
};

// Returns the parts that a list names, "self_attention,mlp"; nothing if the list is empty, or has
// another name or a name twice.
std::optional<layer_modules> modules_in(const std::string& list);
// The parts that checked settings swap.
layer_modules swapped_modules(const memory_settings& memory);

}  // namespace decoder
