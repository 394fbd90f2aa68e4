// How ranks are laid out: axes in an order, the first one's index fastest.
//
// The order string says it for all of a job ("tp-cp-ep-dp-pp"); two layouts follow from it, that of
// the dense layers (tp, cp, dp, pp) and that of the experts (etp, ep, edp, pp). gtp, the axis of
// weights gathered where they are used, has no place of its own in the string: it follows tp in the
// dense layout and ep in the expert one. An axis that is not in the string has one index; where it
// stands makes no difference.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "comm/topology/family.hpp"

namespace velo::comm {

// The words between hyphens.
std::vector<std::string> words_of(std::string_view text);

// The axes of an order string, in letters of either case; throws ARGUMENT, which names desc.order,
// for what is none of tp, cp, ep, dp, pp, or there twice.
std::vector<std::string> read_order(const char* order);

class layout {
 public:
  // Behind those there are.
  void add(const std::string& name, std::int64_t size);

  std::int64_t ranks() const { return ranks_; }
  bool has(std::string_view name) const { return find(name) != nullptr; }
  digit of(std::string_view name) const;  // an axis there is

  // The family of some axes: they are the digits inside a group, the others count the groups. Both
  // keep the layout's order.
  family over(const std::vector<std::string_view>& names) const;

  // The same layout with an axis in two, the first `size` indices fastest.
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
