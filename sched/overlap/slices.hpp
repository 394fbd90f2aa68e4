// Products next to a collective, in slices: what one rank has multiplied others read, in memory that all
// see, while the next slice is multiplied.
//
// A collective by itself reads and writes all of a product once more, before and after what is sent. Here
// a slice is sent, and summed, as long as it is in a cache, and gathered rows are multiplied from where
// they lie: what is left is one copy of what peers need, reading theirs, and waiting for a rank that is
// slower. Two ranks that multiply on every processor hide nothing behind each other; they have less to
// move. The weight is packed once for all slices. Bits are those of product and collective: sums are of
// rounded products, in the order of the ranks.
#pragma once

#include <vector>

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
  std::int64_t bytes() const { return rows_ * columns_ * of_.element; }  // of the largest
  std::uint64_t signature() const {  // what ranks must agree on; never 0
    return static_cast<std::uint64_t>(rows_) << 32 | static_cast<std::uint64_t>(columns_) << 1 | 1;
  }

 private:
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

// Rows of all ranks, read from where they lie; where ranks do not see each other's tensors, from the
// places of the relay, which all of a rank's rows then have to fit.
class shown_rows {
 public:
  static bool fit(std::int64_t bytes_of_rank, std::int64_t room) {
    return room > 0 && bytes_of_rank <= comm::relay::places * room;
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

void all_reduce_in_slices(const slicing& s);
// c: this rank's part of the rows.
void reduce_scatter_in_slices(const slicing& s, const row_source& a);
// what.in: this rank's rows; keep: where all rows go besides, or nullptr.
void gather_in_slices(const slicing& s, char* keep);

}  // namespace velo::sched
