// Sliced products overlapped with a collective: each rank writes a finished slice to shared memory,
// and its peers read it while the rank multiplies the next slice.
//
// A separate collective reads and writes the whole product once more. Here the product's registers
// are written directly to shared memory as a block for a peer, the peers' blocks are prefetched and
// added in the registers of this rank's product, and gathered rows are multiplied in place. So
// memory traffic overlaps with the multiplication. Two things are not hidden: the wait for a slower
// rank and, in an all-reduce, the copy of sums that cannot be written from the registers to a
// peer's memory. The weight is packed once for all slices. The bits equal those of the product and
// the collective: rounded products are summed in rank order, and all ranks share a host.
#pragma once

#include <functional>
#include <vector>

#include "core/round_up.hpp"
#include "sched/overlap/product.hpp"
#include "sched/overlap/row_parts.hpp"

namespace velo::sched {

// How a matrix is cut into slices, so that the blocks of a piece fit a slot of a relay.
class cut {
 public:
  struct terms {
    std::int64_t rows, columns;
    std::int64_t element;  // bytes
    int copies;            // number of blocks in a piece
    bool whole_rows;       // the blocks are only read and consist of whole rows
    std::int64_t slices;   // at least this many; 0: chosen here
  };
  cut(const terms& of, std::int64_t room);

  // Whether the slot has room for blocks large enough to multiply at full speed.
  bool pays() const { return pays_; }
  std::int64_t count() const { return across_ * core::ceil_div(of_.rows, rows_); }
  block at(std::int64_t number) const;
  std::int64_t bytes() const {  // size of the largest block, in whole cache lines
    return core::round_up(rows_ * columns_ * of_.element, line);
  }
  // The sizes on which ranks must agree, with the panels of the blocks for peers; never 0.
  std::uint64_t signature(int panel = 0) const {
    return static_cast<std::uint64_t>(rows_) << 32 | static_cast<std::uint64_t>(columns_) << 7 |
           static_cast<std::uint64_t>(panel) << 1 | 1;
  }

 private:
  static constexpr std::int64_t line = 64;
  const terms of_;
  std::int64_t rows_, columns_, across_ = 1;
  bool pays_ = true;
};

// The arguments that the three loops share.
struct slicing {
  const ops::gemm_problem& product;  // the whole product; c: this rank's result
  const comm::operation& what;
  comm::relay& link;
  core::execution& on;
  core::arena& scratch;
  int rank, ranks;
  const cut& in;
  const row_parts& parts;  // of the rows that are summed or gathered
  // Of reduce_scatter_in_slices: a buffer for the rows of all ranks of another matrix that has the
  // shape of the sums; nullptr: none. what.in: this rank's. A piece carries the same block of both.
  char* carried = nullptr;
  const float* bias = nullptr;  // of reduce_scatter_in_slices: added to the rounded sums
  // Of the two sums: other work, for the time until the last blocks arrive.
  std::function<void()> meanwhile = {};
  // all_reduce_in_slices calls it with rows of c whose sums of all ranks have arrived: with each
  // row once, in no order.
  std::function<void(const row_range&)> arrived = {};
  // Of all_reduce_in_slices: a weight for each group of rows; nullptr: those of the product.
  const grouped_rows* groups = nullptr;
};

// Makes an operation one of slices or of posted rows, whose sizes ranks must agree on.
void mark(comm::operation& what, std::uint64_t word);

// The rows of all ranks, read in place. If ranks do not see each other's tensors, the rows are read
// from the relay's slots, each of which must then hold all rows of a rank.
class posted_rows {
 public:
  static bool fit(std::int64_t most_bytes, std::int64_t room) {  // of any rank
    return room > 0 && most_bytes <= comm::relay::slots * room;
  }
  // what.in: this rank's rows. row: bytes of one.
  posted_rows(const comm::operation& what, comm::relay& link, core::execution& on, int rank,
              const row_parts& parts, std::int64_t row);

  row_source rows() const { return {of_.data(), parts_, &link_}; }
  void keep(void* all) const;  // copies all rows
  void end();                  // after the last read

 private:
  comm::relay& link_;
  core::execution& on_;
  const row_parts parts_;
  const std::int64_t row_;
  std::vector<const void*> of_;
};

// what.in: c of this rank, which receives the sums of all ranks.
void all_reduce_in_slices(const slicing& s);
// c: the rows that this rank sums.
void reduce_scatter_in_slices(const slicing& s, const row_source& a);
// what.in: this rank's rows. keep: nullptr, or a buffer that receives a copy of all rows.
void gather_in_slices(const slicing& s, char* keep);

}  // namespace velo::sched
