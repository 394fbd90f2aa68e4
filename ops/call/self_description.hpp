// The library's description of itself as JSON: abi/generated/describe.json, which has one entry a
// line and its operators, in the order of op_ids.inc, last.
//
// The library holds the document as a gzip file, a seventh of its size, and unzips it for each
// object (1.5 ms): a copy that is kept would need a lock.
#pragma once

#include <cstddef>
#include <string>
#include <vector>

#include "ops/operator/registry.hpp"

namespace velo::ops {

class self_description {
 public:
  self_description();  // throws bad_alloc

  // The document up to its first operator.
  std::string before_operators() const { return text_.substr(0, starts_.front()); }
  // A JSON object.
  std::string operator_entry(op_id op) const;

 private:
  std::string text_;
  std::vector<std::size_t> starts_;  // of the operators' lines
};

}  // namespace velo::ops
