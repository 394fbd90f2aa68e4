// Cutting a matrix into slices, and the three loops over slices.
//
// Blocks for peers are written around the cache, in whole lines: a processor that shares no cache
// with the writer reads cached lines at a third of memory's speed. Rows for peers are copied
// through the cache, spread over the product (ops/gemm/overlapped_copy.hpp).
#include "sched/overlap/slices.hpp"

#include <algorithm>

#include "core/index.hpp"
#include "core/round_up.hpp"
#include "sched/overlap/slot_rounds.hpp"

namespace velo::sched {
namespace {

constexpr std::int64_t row_unit = 32;     // tasks of a product split rows at its multiples
constexpr std::int64_t column_unit = 96;  // every packed form can be split at its multiples

// A slice has as many rows as a tile of the product. It has more if short rows are summed, since
// each slice costs one wait.
std::int64_t rows_chosen(const cut::terms& of) {
  constexpr std::int64_t tile = 256, bytes = 512 << 10;
  if (of.whole_rows) return tile;
  const std::int64_t row = std::max<std::int64_t>(of.columns * of.element, 1);
  return std::clamp(bytes / row / tile * tile, tile, 4 * tile);
}

// The address of a run of rows.
struct lines {
  const char* first;
  std::int64_t row;  // bytes from one row to the next
};

// Copies rows of `bytes` bytes each around the cache, since peers or later work read them.
void copy_block(const lines& from, char* to, std::int64_t to_row, std::int64_t rows,
                std::int64_t bytes, core::execution& turn) {
  constexpr std::int64_t task_bytes = 64 << 10;
  const comm::reduction_kernels& kernels = comm::reductions_for(turn.isa);
  const std::int64_t some =
      std::max<std::int64_t>(task_bytes / std::max<std::int64_t>(bytes, 1), 1);
  const bool together = from.row == bytes && to_row == bytes;
  turn.threads.slices(core::ceil_div(rows, some), [&](std::int64_t task, int) {
    const std::int64_t end = std::min(rows, (task + 1) * some);
    const std::int64_t step = together ? some : 1;
    for (std::int64_t row = task * some; row < end; row += step)
      kernels.copy_around_cache(
          {from.first + row * from.row, to + row * to_row, std::min(step, end - row) * bytes});
  });
}

void copy_bytes(const void* from, char* to, std::int64_t bytes, core::execution& turn) {
  constexpr std::int64_t row = 64 << 10, whole = 1;
  const std::int64_t rows = bytes / row;
  copy_block({static_cast<const char*>(from), row}, to, row, rows, row, turn);
  copy_block({static_cast<const char*>(from) + rows * row, row}, to + rows * row, row, whole,
             bytes - rows * row, turn);
}

char* at_row(void* first, std::int64_t row, std::int64_t row_bytes) {
  return static_cast<char*>(first) + row * row_bytes;
}

// The block of a slice in a rank's part of the rows, which may have fewer than the largest part.
block in_part(block of, const row_range& part) {
  of.rows = std::clamp<std::int64_t>(part.count - of.row, 0, of.rows);
  of.row += part.begin;
  return of;
}

// A sum of products in slices. For each slice a rank first multiplies the blocks that its peers
// sum, into shared memory. Then it multiplies its own block and adds the peers' blocks in
// registers.
class summed_slices {
 public:
  // product.c is row `first_row` of the whole product.
  summed_slices(const slicing& s, const row_source& a, std::int64_t first_row)
      : s_(s),
        a_(a),
        product_(s.product, s.groups, s.scratch, s.on),
        y_row_(s.product.ldc * s.what.in_size()),
        first_row_(first_row),
        peer_blocks_(static_cast<std::size_t>(s.ranks)) {}

  // Multiplies the peers' blocks into this rank's slot.
  void multiply_for_peers(std::int64_t number) const {
    for (int step = 1; step < s_.ranks; ++step) {
      const int peer = (s_.rank + step) % s_.ranks;
      in_turn(s_.on, [&](core::execution& turn) {
        product_.multiply_for_peer(block_of(number, peer), a_,
                                   s_.link.slot() + block_offset(s_.rank, peer), turn);
      });
    }
    if (s_.carried == nullptr || s_.link.peer_tensor(s_.rank) != nullptr) return;
    const block own = block_of(number, s_.rank);
    in_turn(s_.on, [&](core::execution& turn) {
      copy_block({carried_in(s_.what.in, s_.rank, own), carried_row()},
                 s_.link.slot() + sum_offset(), carried_bytes(own), own.rows, carried_bytes(own),
                 turn);
    });
  }
  // Copies the rows that a piece carries.
  void keep_carried(std::int64_t number) const {
    in_turn(s_.on, [&](core::execution& turn) {
      const comm::relay::tensor_access access(s_.link);
      for (int r = 0; r < s_.ranks; ++r) {
        const block of = block_of(number, r);
        const void* x = r == s_.rank ? s_.what.in : s_.link.peer_tensor(r);
        const lines from = x != nullptr ? lines{carried_in(x, r, of), carried_row()}
                                        : lines{s_.link.piece(r) + sum_offset(), carried_bytes(of)};
        copy_block(from, s_.carried + of.row * carried_row() + of.column * s_.what.in_size(),
                   carried_row(), of.rows, carried_bytes(of), turn);
      }
    });
  }
  // Multiplies this rank's block, adds the blocks that peers posted, and then the bias, if any.
  void multiply_own(std::int64_t number) {
    in_turn(s_.on, [&](core::execution& turn) {
      multiply_own(number, {}, turn);
      const block own = block_of(number, s_.rank);
      if (s_.bias != nullptr)
        add_bias(s_.product, s_.bias + own.column,
                 {address_in(s_.product.c, own), own.rows, own.columns},
                 overlap_kernel::way::sliced, turn);
    });
  }

  // The same without a bias, with a second output in the slot, from which peers fetch it.
  void multiply_own_and_post(std::int64_t number) {
    in_turn(s_.on, [&](core::execution& turn) {
      multiply_own(number, {s_.link.slot() + sum_offset(), 0, ops::matrix_layout::panels}, turn);
    });
  }
  void fetch(std::int64_t number) const {
    for (int step = 1; step < s_.ranks; ++step) {
      const int peer = (s_.rank + step) % s_.ranks;
      const block of = block_of(number, peer);
      in_turn(s_.on, [&](core::execution& turn) {
        product_.copy_rows(of, s_.link.piece(peer) + sum_offset(), address_in(s_.product.c, of),
                           s_.product.ldc, turn);
      });
    }
  }
  // The same, and writes the sums to the peers' y: directly if there is a single peer whose panels
  // are whole cache lines, otherwise by a copy.
  void multiply_own_and_copy_out(std::int64_t number) {
    const block own = block_of(number, s_.rank);
    in_turn(s_.on, [&](core::execution& turn) {
      const comm::relay::tensor_access access(s_.link);
      void* const next = address_in(s_.link.peer_tensor((s_.rank + 1) % s_.ranks), own);
      const bool at_once = s_.ranks == 2 && has_lines(next);
      multiply_own(number, {at_once ? next : nullptr, s_.product.ldc}, turn);
      for (int step = 1; step < s_.ranks && !at_once; ++step)
        copy_block({address_in(s_.product.c, own), y_row_},
                   address_in(s_.link.peer_tensor((s_.rank + step) % s_.ranks), own), y_row_,
                   own.rows, own.columns * s_.what.in_size(), turn);
    });
  }
  // Hands the rows of a slice on when their last columns have arrived.
  void hand_on(std::int64_t number) const {
    const block all = s_.in.at(number);
    if (!s_.arrived || all.column + all.columns < s_.product.n) return;
    for (int r = 0; r < s_.ranks; ++r) {
      const block of = block_of(number, r);
      if (of.rows > 0) s_.arrived({of.row, of.rows});
    }
  }

 private:
  void multiply_own(std::int64_t number, const ops::second_output& second, core::execution& turn) {
    for (int r = 0; r < s_.ranks; ++r)
      peer_blocks_[core::at(r)] = s_.link.piece(r) + block_offset(r, s_.rank);
    const block own = block_of(number, s_.rank);
    product_.multiply_and_sum(own, a_, {peer_blocks_.data(), s_.ranks, s_.rank},
                              {address_in(s_.product.c, own), s_.product.ldc, second}, turn);
  }
  // Whether panels in y begin and end at cache lines.
  bool has_lines(const void* y) const {
    constexpr std::int64_t line = 64;
    const std::int64_t panel = product_.panel(s_.product, s_.on.isa) * s_.what.in_size();
    return reinterpret_cast<std::uintptr_t>(y) % line == 0 && y_row_ % line == 0 &&
           panel % line == 0;
  }
  block block_of(std::int64_t number, int rank) const {
    return in_part(s_.in.at(number), s_.parts.of(rank));
  }
  char* address_in(void* y, const block& of) const {
    return at_row(y, of.row - first_row_, y_row_) + of.column * s_.what.in_size();
  }
  // The offset of the block for `to` in a piece posted by `from`. The sum follows the ranks - 1
  // blocks.
  std::int64_t block_offset(int from, int to) const {
    return (to - from - 1 + s_.ranks) % s_.ranks * s_.in.bytes();
  }
  std::int64_t sum_offset() const { return (s_.ranks - 1) * s_.in.bytes(); }

  std::int64_t carried_row() const { return s_.product.n * s_.what.in_size(); }
  std::int64_t carried_bytes(const block& of) const { return of.columns * s_.what.in_size(); }
  const char* carried_in(const void* x, int rank, const block& of) const {
    return static_cast<const char*>(x) + (of.row - s_.parts.of(rank).begin) * carried_row() +
           of.column * s_.what.in_size();
  }

  const slicing& s_;
  const row_source& a_;
  const sliced_product product_;
  const std::int64_t y_row_, first_row_;
  std::vector<const void*> peer_blocks_;
};

// Calls sum(number) one slice after the blocks of slice `number` were posted. A rank that has
// posted the blocks of a slice has done the sums two slices before: then(number) is called when all
// ranks have done the sums up to slice `number`, for all slices but the last two.
template <class F, class G>
void sum_in_slices(const slicing& s, summed_slices& slices, F&& sum, G&& then) {
  const std::int64_t count = s.in.count();
  if (count == 0) s.link.wait_slot();  // without elements, too, the ranks wait for each other
  for (std::int64_t i = 0; i <= count; ++i) {
    if (i < count) {
      s.link.wait_slot();
      slices.multiply_for_peers(i);
      s.link.post();
    }
    if (i == count && s.meanwhile) s.meanwhile();
    if (i == 0) continue;
    s.link.wait_piece();
    sum(i - 1);
    s.link.release();
    if (i > 2) then(i - 3);
  }
}

// The rows of all ranks in slices, each multiplied in place. The copies of a slice for peers and of
// rows to keep overlap with products.
class gathered_slices {
 public:
  gathered_slices(const slicing& s, char* keep)
      : s_(s),
        keep_(keep),
        product_(s.product, nullptr, s.scratch, s.on),
        x_row_(s.product.lda * s.what.in_size()),
        y_row_(s.product.ldc * s.what.in_size()) {}

  // The first slice has no product to overlap with.
  void post_first() {
    s_.link.wait_slot();
    if (needs_slot())
      in_turn(s_.on, [&](core::execution& turn) {
        copy_bytes(s_.what.in, s_.link.slot(), slice_of(s_.rank, 0).rows * x_row_, turn);
      });
    s_.link.post();
  }
  void multiply_own_and_post_next(std::int64_t number) {
    const block of = slice_of(s_.rank, number);
    if (number + 1 == s_.in.count()) return multiply(of, own(of), {});
    const block next = slice_of(s_.rank, number + 1);
    s_.link.wait_slot();
    ops::overlapped_copy staged;
    if (needs_slot()) staged.add(own(next), s_.link.slot(), next.rows * x_row_);
    multiply(of, own(of), staged);
    s_.link.post();
  }
  void multiply_others(std::int64_t number) {
    for (int step = 1; step < s_.ranks; ++step) {
      const int peer = (s_.rank + step) % s_.ranks;
      const block of = slice_of(peer, number);
      const auto* x = static_cast<const char*>(s_.link.peer_tensor(peer));
      multiply(of, x != nullptr ? rows_in(x, peer, of) : s_.link.piece(peer), {});
    }
  }

 private:
  bool needs_slot() const { return s_.link.peer_tensor(s_.rank) == nullptr; }
  block slice_of(int rank, std::int64_t number) const {
    return in_part(s_.in.at(number), s_.parts.of(rank));
  }
  const char* rows_in(const char* x, int rank, const block& of) const {
    return x + (of.row - s_.parts.of(rank).begin) * x_row_;
  }
  const char* own(const block& of) const {
    return rows_in(static_cast<const char*>(s_.what.in), s_.rank, of);
  }
  void multiply(const block& of, const char* rows, ops::overlapped_copy copies) {
    if (of.rows == 0) return;  // then no later slice of this rank has rows to copy
    if (keep_ != nullptr) copies.add(rows, keep_ + of.row * x_row_, of.rows * x_row_);
    in_turn(s_.on, [&](core::execution& turn) {
      const comm::relay::tensor_access access(s_.link);
      const void* const matrix = rows;
      product_.multiply({0, of.rows, 0, s_.product.n}, {&matrix, {of.rows, 1}},
                        at_row(s_.product.c, of.row, y_row_), s_.product.ldc, copies, turn);
    });
  }

  const slicing& s_;
  char* const keep_;
  const sliced_product product_;
  const std::int64_t x_row_, y_row_;  // bytes from row to row
};

}  // namespace

cut::cut(const terms& of, std::int64_t room) : of_(of) {
  const std::int64_t all = std::max<std::int64_t>(of.rows, 1);
  rows_ = of.slices == 0 ? rows_chosen(of) : core::ceil_div(all, of.slices);
  if (rows_ > row_unit) rows_ = rows_ / row_unit * row_unit;
  rows_ = std::min(rows_, all);
  columns_ = std::max<std::int64_t>(of.columns, 1);
  const std::int64_t share = room / of.copies / line * line / of.element;  // elements
  if (rows_ * columns_ > share && !of.whole_rows)
    columns_ =
        std::min(columns_, std::max(share / rows_ / column_unit, std::int64_t{1}) * column_unit);
  if (rows_ * columns_ > share) {
    rows_ = share / columns_ / row_unit * row_unit;
    pays_ = rows_ > 0;
  }
  if (of.columns > 0) across_ = core::ceil_div(of.columns, columns_);
}

block cut::at(std::int64_t number) const {
  const std::int64_t row = number / across_ * rows_, column = number % across_ * columns_;
  return {row, std::min(rows_, of_.rows - row), column, std::min(columns_, of_.columns - column)};
}

void mark(comm::operation& what, std::uint64_t word) {
  if (what.terms.counts == 0)
    what.terms.counts = word;
  else
    what.terms.require_same(comm::mixed(what.terms.counts + word));
}

posted_rows::posted_rows(const comm::operation& what, comm::relay& link, core::execution& on,
                         int rank, const row_parts& parts, std::int64_t row)
    : link_(link), on_(on), parts_(parts), row_(row) {
  link.wait_slot();
  if (link.peer_tensor(rank) == nullptr)
    in_turn(on, [&](core::execution& turn) {
      copy_bytes(what.in, link.slot(), what.in_bytes(), turn);
    });
  link.post();
  link.wait_piece();
  for (int r = 0; r < parts.ranks(); ++r) {
    const void* rows = link.peer_tensor(r);
    of_.push_back(rows != nullptr ? rows : link.piece(r));
  }
}

void posted_rows::keep(void* all) const {
  in_turn(on_, [&](core::execution& turn) {
    for (int r = 0; r < parts_.ranks(); ++r) {
      const row_range part = parts_.of(r);
      const comm::relay::tensor_access access(link_);
      copy_bytes(of_[core::at(r)], at_row(all, part.begin, row_), part.count * row_, turn);
    }
  });
}

void posted_rows::end() {
  link_.release();
  link_.wait_readers();
  link_.finish();
}

void all_reduce_in_slices(const slicing& s) {
  const row_source x =
      s.groups != nullptr ? s.groups->rows : row_source{&s.product.a, {s.product.m, 1}};
  summed_slices slices(s, x, 0);
  s.link.wait_slot();
  const bool copies_out = s.link.peer_tensor(s.rank) != nullptr;
  if (copies_out) {
    sum_in_slices(
        s, slices, [&](std::int64_t number) { slices.multiply_own_and_copy_out(number); },
        [&](std::int64_t number) { slices.hand_on(number); });
  } else {
    sum_through_slots(s.link, s.in.count(), slices, [&] {
      if (s.meanwhile) s.meanwhile();
    });
  }
  s.link.wait_readers();
  s.link.finish();
  const std::int64_t count = s.in.count(), last = std::max<std::int64_t>(count - 2, 0);
  for (std::int64_t i = last; copies_out && i < count; ++i) slices.hand_on(i);
}

void reduce_scatter_in_slices(const slicing& s, const row_source& a) {
  summed_slices slices(s, a, s.parts.of(s.rank).begin);
  sum_in_slices(
      s, slices,
      [&](std::int64_t number) {
        slices.multiply_own(number);
        if (s.carried != nullptr) slices.keep_carried(number);
      },
      [](std::int64_t) {});
  if (s.carried != nullptr) s.link.wait_readers();
  s.link.finish();
}

void gather_in_slices(const slicing& s, char* keep) {
  gathered_slices slices(s, keep);
  const std::int64_t count = s.in.count();
  if (count > 0) slices.post_first();
  for (std::int64_t i = 0; i < count; ++i) {
    slices.multiply_own_and_post_next(i);
    s.link.wait_piece();
    slices.multiply_others(i);
    s.link.release();
  }
  s.link.wait_readers();
  s.link.finish();
}

}  // namespace velo::sched
