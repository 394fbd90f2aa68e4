// Products next to a collective, in slices: what one rank has multiplied others read, in memory
// that all see, while the next slice is multiplied.
//
// A collective by itself reads and writes all of a product once more, before and after what is
// sent. Here what a peer sums leaves the registers of the product for shared memory, what it made
// is added in the registers of ours, fetched while they multiply, and gathered rows are multiplied
// from where they lie: memory works while the processor multiplies, and what is left is arithmetic,
// for a sum that all ranks get a copy of it, where it cannot leave the registers for a peer's
// memory, and waiting for a rank that is slower. The weight is packed once for all slices. Bits are
// those of product and collective: sums are of rounded products, in the order of the ranks, which
// share a host.
#pragma once

#include <vector>

#include "core/round_up.hpp"
#include "sched/overlap/product.hpp"

namespace velo::sched {

// How a matrix is cut into blocks that fit a place of a relay, as many as a piece has.
class cut {
 public:
  struct terms {
    std::int64_t rows, columns;
    std::int64_t element;  // bytes
    int copies;            // blocks of a piece
    bool whole_rows;       // of what is only read
    std::int64_t slices;   // 0: chosen; else at least so many
  };
  cut(const terms& of, std::int64_t room);

  // Whether there is room for blocks that are multiplied at speed.
  bool pays() const { return pays_; }
  std::int64_t count() const { return across_ * ((of_.rows + rows_ - 1) / rows_); }
  block at(std::int64_t number) const;
  std::int64_t bytes() const {  // of the largest, in whole lines
    return core::round_up(rows_ * columns_ * of_.element, line);
  }
  // What ranks must agree on, with the panels of blocks for peers; never 0.
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

// Of what is common to the three.
struct slicing {
  const ops::gemm_problem& product;  // all of it; c: where this rank's result goes
  const comm::operation& what;
  comm::relay& link;
  core::execution& on;
  core::arena& scratch;
  int rank, ranks;
  const cut& in;
};

// Rows of all ranks, read from where they lie; where ranks do not see each other's tensors, from
// the places of the relay, which all of a rank's rows then have to fit.
class shown_rows {
 public:
  static bool fit(std::int64_t bytes_of_rank, std::int64_t room) {
    return room > 0 && bytes_of_rank <= comm::relay::slots * room;
  }
  shown_rows(const comm::operation& what, comm::relay& link, core::execution& on, int rank,
             int ranks);  // what.in: this rank's

  row_source rows(std::int64_t of_rank) const { return {of_.data(), of_rank, &link_}; }
  void keep(void* all) const;  // a copy of all of them
  void end();                  // they were read

 private:
  const comm::operation& what_;
  comm::relay& link_;
  core::execution& on_;
  std::vector<const void*> of_;
};

// Of rows that are summed by one rank each, the most that one has: all of as many parts, but the
// last.
inline std::int64_t rows_of_part(std::int64_t rows, int ranks) {
  return (rows + ranks - 1) / ranks;
}
// what.in: c of this rank, where all ranks' sums go.
void all_reduce_in_slices(const slicing& s);
// c: this rank's part of the rows.
void reduce_scatter_in_slices(const slicing& s, const row_source& a);
// what.in: this rank's rows; keep: where all rows go besides, or nullptr.
void gather_in_slices(const slicing& s, char* keep);

}  // namespace velo::sched
