// An operator's examples in the spec: calls on small tensors, some with known results.
//
// The generator writes the frozen client's calls from the examples with results; hosts' tests read
// all of them from the self-description.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace velo::gen {

// One field's value. A tensor has a dtype; without values its numbers are drawn by whoever runs it.
struct example_value {
  std::string field;
  std::string dtype;
  std::vector<std::int64_t> shape;
  std::vector<double> values;
  std::vector<std::int64_t> list;  // of a field of kind ints
  std::string literal;             // of any other attribute: the C constant
};

struct example {
  std::vector<example_value> in, out;  // in the order of the fields; no out: no known result
};

}  // namespace velo::gen
