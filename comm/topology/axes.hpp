// The layout of ranks: an ordered list of axes; the index of the first axis varies fastest.
//
// The order string covers a whole job ("tp-cp-ep-dp-pp"). Two layouts follow from it: that of the
// dense layers (tp, cp, dp, pp) and that of the experts (etp, ep, edp, pp). gtp, the axis of
// weights that are gathered where they are used, is not in the string: it follows tp in the dense
// layout and ep in the expert layout. An axis that the string lacks has size 1, so its position
// makes no difference.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "comm/topology/family.hpp"

namespace velo::comm {

// Splits a text at its hyphens.
std::vector<std::string> words_of(std::string_view text);

// Returns the axes of an order string in lower case. Throws ARGUMENT, naming desc.order, for a word
// other than tp, cp, ep, dp and pp, and for a repeated word.
std::vector<std::string> read_order(const char* order);

class layout {
 public:
  void add(const std::string& name, std::int64_t size);

  std::int64_t ranks() const { return ranks_; }
  bool has(std::string_view name) const { return find(name) != nullptr; }
  digit of(std::string_view name) const;  // the axis must exist

  // The family of the groups over some axes. Their digits count the ranks inside a group, the other
  // digits count the groups; both keep the layout's order.
  family over(const std::vector<std::string_view>& names) const;

  // This layout with one axis split in two. The first part has `size` indices and varies faster.
  layout split(std::string_view name, std::int64_t size, const char* first,
               const char* second) const;

 private:
  struct axis {
    std::string name;
    digit index;
  };
  const axis* find(std::string_view name) const;

  std::vector<axis> axes_;
  std::int64_t ranks_ = 1;
};

}  // namespace velo::comm
