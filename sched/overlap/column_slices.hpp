// Sums over ranks of products that come by columns: each rank writes all rows of a slice of columns
// to shared memory, and sums its part of their rows while it, too, multiplies the next slice.
//
// The loop is that of slices of rows (slices.hpp, slot_rounds.hpp). Slices of columns are for
// products that prepare columns of the weight for all rows: slices of rows would prepare them anew.
// Rows are complete at the end alone. The bits equal those of the product and the collective:
// rounded products are summed in rank order. Cost: a write and a read of the product more than
// slices of rows, a copy of the sums, and the left side prepared once a slice. So there are none
// unless a call or a setting asks for them.
#pragma once

#include <functional>

#include "sched/overlap/product.hpp"
#include "sched/overlap/row_parts.hpp"

namespace velo::sched {

inline constexpr const char* columns_not_asked_for = "slices of columns are not asked for";

// How the columns of a product are cut, so that a piece fits a slot of a relay: the product's rows
// of a slice, and the sums of this rank's part of the rows.
class column_cut {
 public:
  column_cut(const overlap_problem& of, int ranks, std::int64_t room);

  bool pays() const { return pays_; }  // whether the slot has room for a slice
  std::int64_t count() const;
  struct columns {
    std::int64_t first, count;
  };
  columns at(std::int64_t number) const;
  std::int64_t sums_at() const { return sums_at_; }  // bytes in a piece
  // The sizes on which ranks must agree; differs from that of slices of rows.
  std::uint64_t signature() const;

 private:
  const std::int64_t all_;
  std::int64_t columns_, sums_at_;
  bool pays_;
};

struct column_slicing {
  const overlap_problem& of;
  const comm::operation& what;  // out: y, [m][n]; its reducer adds up
  comm::relay& link;
  core::execution& on;
  int rank, ranks;
  const column_cut& in;
  // Writes [m][count] of the product to `to`, inside a turn.
  std::function<void(const column_cut::columns&, void* to, core::execution& turn)> multiply;
};
void all_reduce_in_columns(const column_slicing& s);

}  // namespace velo::sched
