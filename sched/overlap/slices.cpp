// Cutting, and the three loops over slices (slices.hpp).
//
// A slice is multiplied into a buffer that stays in a cache and put into its place around the cache:
// where two processors share no cache, lines that the other has written come at a third of memory's
// speed, and the call takes longer than product and collective one after the other.
#include "sched/overlap/slices.hpp"

#include <algorithm>

namespace velo::sched {
namespace {

constexpr std::int64_t row_unit = 32;     // rows that no task of a product cuts
constexpr std::int64_t column_unit = 96;  // columns that every packed form can be cut at

std::int64_t parts(std::int64_t all, std::int64_t most) {
  return (all + most - 1) / most;
}

std::int64_t element_bytes(const slicing& s) {
  return s.what.in_size();
}

// As a tile of the product has; more where rows of sums are short, for each slice is waited for once.
std::int64_t rows_chosen(const cut::terms& of) {
  constexpr std::int64_t tile = 256, bytes = 512 << 10;
  if (of.whole_rows) return tile;
  const std::int64_t row = std::max<std::int64_t>(of.columns * of.element, 1);
  return std::clamp(bytes / row / tile * tile, tile, 4 * tile);
}

// Where a rank's block of a matrix lies.
struct summand {
  const char* first;
  std::int64_t row;  // bytes from one row to the next
};

// Blocks of `rows` rows of `columns` elements of all ranks, in their order, into one at `to`.
void sum_blocks(const slicing& s, const std::vector<summand>& from, char* to, std::int64_t to_row,
                const block& of, bool bypass, core::execution& turn) {
  constexpr std::int64_t task_bytes = 64 << 10;
  const std::int64_t row_bytes = of.columns * element_bytes(s);
  const bool together =
      to_row == row_bytes && std::all_of(from.begin(), from.end(),
                                         [&](const summand& one) { return one.row == row_bytes; });
  const std::int64_t rows =
      std::max<std::int64_t>(task_bytes / std::max<std::int64_t>(row_bytes, 1), 1);
  const std::int64_t tasks = parts(of.rows, rows);
  const std::size_t ranks = from.size();
  auto* sources = turn.scratch.take<const void*>(ranks * static_cast<std::size_t>(tasks));
  turn.threads.slices(tasks, [&](std::int64_t task, int) {
    const void** in = sources + static_cast<std::size_t>(task) * ranks;
    const std::int64_t end = std::min(of.rows, (task + 1) * rows);
    const std::int64_t step = together ? rows : 1;
    for (std::int64_t row = task * rows; row < end; row += step) {
      for (std::size_t r = 0; r < ranks; ++r) in[r] = from[r].first + row * from[r].row;
      const std::int64_t count = std::min(step, end - row) * of.columns;
      s.what.kernel({in, static_cast<int>(ranks), to + row * to_row, count, 1, bypass});
    }
  });
}

// Rows of so many bytes each, around the cache: for others, or for later.
void copy_block(const summand& from, char* to, std::int64_t to_row, std::int64_t rows,
                std::int64_t bytes, core::execution& turn) {
  constexpr std::int64_t task_bytes = 64 << 10;
  const comm::reduction_kernels& kernels = comm::reductions_for(turn.isa);
  const std::int64_t some =
      std::max<std::int64_t>(task_bytes / std::max<std::int64_t>(bytes, 1), 1);
  const bool together = from.row == bytes && to_row == bytes;
  turn.threads.slices(parts(rows, some), [&](std::int64_t task, int) {
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

// The slices of an all_reduce, as one rank sums them.
class summed_slices {
 public:
  explicit summed_slices(const slicing& s)
      : s_(s),
        y_row_(s.product.ldc * element_bytes(s)),
        is_large_(s.product.m * y_row_ > s.on.caches.l2),
        from_(static_cast<std::size_t>(s.ranks)) {}

  // Each rank sums all of a slice; or a share of its rows, for all ranks, whose y it can write.
  // own: this rank's block.
  void take(const block& of, const char* own) {
    s_.link.await_piece();
    const bool shares = s_.link.tensor(s_.rank) != nullptr;
    const block mine = shares ? share_of(of) : of;
    const std::int64_t row = of.columns * element_bytes(s_);
    for (int r = 0; r < s_.ranks; ++r)
      from_[static_cast<std::size_t>(r)] = {
          (r == s_.rank ? own : s_.link.piece(r)) + (mine.row - of.row) * row, row};
    in_turn(s_.on, [&](core::execution& turn) {
      const comm::relay::use tensors(s_.link);
      sum_blocks(s_, from_, place_in(s_.product.c, mine), y_row_, mine, !shares && is_large_, turn);
      if (shares) hand_out(mine, turn);
    });
    s_.link.release();
  }

  // Puts a block into the place, of those rows that others sum.
  void put(const block& of, const char* own, core::execution& turn) const {
    const std::int64_t row = of.columns * element_bytes(s_);
    block kept{of.row, 0, of.column, of.columns};
    if (s_.link.tensor(s_.rank) != nullptr) kept = share_of(of);
    const std::int64_t before = kept.row - of.row, after = before + kept.rows;
    copy_block({own, row}, s_.link.place(), row, before, row, turn);
    copy_block({own + after * row, row}, s_.link.place() + after * row, row, of.rows - after, row,
               turn);
  }

 private:
  block share_of(const block& of) const {
    const std::int64_t begin = of.rows * s_.rank / s_.ranks;
    return {of.row + begin, of.rows * (s_.rank + 1) / s_.ranks - begin, of.column, of.columns};
  }
  char* place_in(void* y, const block& of) const {
    return at_row(y, of.row, y_row_) + of.column * element_bytes(s_);
  }
  void hand_out(const block& of, core::execution& turn) const {
    const std::int64_t bytes = of.columns * element_bytes(s_);
    for (int step = 1; step < s_.ranks; ++step)
      copy_block({place_in(s_.product.c, of), y_row_},
                 place_in(s_.link.tensor((s_.rank + step) % s_.ranks), of), y_row_, of.rows, bytes,
                 turn);
  }

  const slicing& s_;
  const std::int64_t y_row_;
  const bool is_large_;  // of what a cache of one's own holds; then y is written around it
  std::vector<summand> from_;
};

}  // namespace

cut::cut(const terms& of, std::int64_t room) : of_(of) {
  const std::int64_t all = std::max<std::int64_t>(of.rows, 1);
  rows_ = of.slices == 0 ? rows_chosen(of) : parts(all, of.slices);
  if (rows_ > row_unit) rows_ = rows_ / row_unit * row_unit;
  rows_ = std::min(rows_, all);
  columns_ = std::max<std::int64_t>(of.columns, 1);
  const std::int64_t share = room / of.copies / of.element;  // elements
  if (rows_ * columns_ > share && !of.whole_rows)
    columns_ =
        std::min(columns_, std::max(share / rows_ / column_unit, std::int64_t{1}) * column_unit);
  if (rows_ * columns_ > share) {
    rows_ = share / columns_ / row_unit * row_unit;
    pays_ = rows_ > 0;
  }
  if (of.columns > 0) across_ = parts(of.columns, columns_);
}

block cut::at(std::int64_t number) const {
  const std::int64_t row = number / across_ * rows_, column = number % across_ * columns_;
  return {row, std::min(rows_, of_.rows - row), column, std::min(columns_, of_.columns - column)};
}

shown_rows::shown_rows(const comm::operation& what, comm::relay& link, core::execution& on,
                       int rank, int ranks)
    : what_(what), link_(link), on_(on) {
  link.await_place();
  if (link.tensor(rank) == nullptr)
    in_turn(on, [&](core::execution& turn) {
      copy_bytes(what.in, link.place(), what.in_bytes(), turn);
    });
  link.show();
  link.await_piece();
  for (int r = 0; r < ranks; ++r) {
    const void* theirs = link.tensor(r);
    of_.push_back(theirs != nullptr ? theirs : link.piece(r));
  }
}

void shown_rows::keep(void* all) const {
  in_turn(on_, [&](core::execution& turn) {
    for (std::size_t r = 0; r < of_.size(); ++r) {
      const comm::relay::use tensors(link_);
      copy_bytes(of_[r], static_cast<char*>(all) + static_cast<std::int64_t>(r) * what_.in_bytes(),
                 what_.in_bytes(), turn);
    }
  });
}

void shown_rows::end() {
  link_.release();
  link_.await_readers();
  link_.finish();
}

void all_reduce_in_slices(const slicing& s) {
  const sliced_product product(s.product, s.scratch, s.on);
  const row_source x{&s.product.a, s.product.m, nullptr};
  summed_slices slices(s);
  const auto buffer = [&] { return s.scratch.take<char>(static_cast<std::size_t>(s.in.bytes())); };
  char* const own[] = {buffer(), buffer()};  // of this slice and the one before
  const std::int64_t count = s.in.count();
  for (std::int64_t i = 0; i < count; ++i) {
    const block of = s.in.at(i);
    s.link.await_place();
    in_turn(s.on, [&](core::execution& turn) {
      product.multiply(of, x, own[i % 2], of.columns, turn);
      slices.put(of, own[i % 2], turn);
    });
    s.link.show();
    if (i > 0) slices.take(s.in.at(i - 1), own[(i - 1) % 2]);
  }
  if (count > 0) slices.take(s.in.at(count - 1), own[(count - 1) % 2]);
  s.link.await_readers();
  s.link.finish();
}

void reduce_scatter_in_slices(const slicing& s, const row_source& a) {
  const sliced_product product(s.product, s.scratch, s.on);
  const std::int64_t size = element_bytes(s), y_row = s.product.ldc * size;
  const std::int64_t part = s.product.m / s.ranks;
  const auto slot_of = [&](int from, int to) {  // in a piece of `from`: what is for `to`
    return (to - from - 1 + s.ranks) % s.ranks * s.in.bytes();
  };
  std::vector<summand> from(static_cast<std::size_t>(s.ranks));
  char* const shown = s.scratch.take<char>(static_cast<std::size_t>(s.in.bytes()));
  const std::int64_t count = s.in.count();
  for (std::int64_t i = 0; i < count; ++i) {
    const block of = s.in.at(i);
    char* to = at_row(s.product.c, of.row, y_row) + of.column * size;
    const auto multiply = [&](int whose, void* c, std::int64_t ldc, core::execution& turn) {
      block there = of;
      there.row += whose * part;
      product.multiply(there, a, c, ldc, turn);
    };
    const std::int64_t row = of.columns * size;
    s.link.await_place();
    for (int step = 1; step < s.ranks; ++step) {
      const int whose = (s.rank + step) % s.ranks;
      in_turn(s.on, [&](core::execution& turn) {
        multiply(whose, shown, of.columns, turn);
        copy_block({shown, row}, s.link.place() + slot_of(s.rank, whose), row, of.rows, row, turn);
      });
    }
    s.link.show();
    in_turn(s.on, [&](core::execution& turn) { multiply(s.rank, to, s.product.ldc, turn); });
    s.link.await_piece();
    for (int r = 0; r < s.ranks; ++r)
      from[static_cast<std::size_t>(r)] =
          r == s.rank ? summand{to, y_row} : summand{s.link.piece(r) + slot_of(r, s.rank), row};
    in_turn(s.on, [&](core::execution& turn) { sum_blocks(s, from, to, y_row, of, false, turn); });
    s.link.release();
  }
  if (count == 0) s.link.await_place();  // to meet the others, as with elements
  s.link.finish();
}

void gather_in_slices(const slicing& s, char* keep) {
  const sliced_product product(s.product, s.scratch, s.on);
  const std::int64_t own = s.product.m / s.ranks, count = s.in.count();
  const std::int64_t x_row = s.product.lda * element_bytes(s),
                     y_row = s.product.ldc * element_bytes(s);
  const char* mine = static_cast<const char*>(s.what.in);
  const auto multiply = [&](int whose, const block& of, const char* rows) {
    const std::int64_t row = whose * own + of.row;
    in_turn(s.on, [&](core::execution& turn) {
      const comm::relay::use tensors(s.link);
      if (keep != nullptr)
        copy_block({rows, x_row}, keep + row * x_row, x_row, of.rows, x_row, turn);
      const void* const matrix = rows;
      product.multiply({0, of.rows, 0, s.product.n}, {&matrix, of.rows, nullptr},
                       at_row(s.product.c, row, y_row), s.product.ldc, turn);
    });
  };
  const auto show = [&](const block& of) {
    s.link.await_place();
    if (s.link.tensor(s.rank) == nullptr)
      in_turn(s.on, [&](core::execution& turn) {
        copy_block({mine + of.row * x_row, x_row}, s.link.place(), x_row, of.rows, x_row, turn);
      });
    s.link.show();
  };
  if (count > 0) show(s.in.at(0));
  for (std::int64_t i = 0; i < count; ++i) {
    const block of = s.in.at(i);
    if (i + 1 < count) show(s.in.at(i + 1));
    multiply(s.rank, of, mine + of.row * x_row);
    s.link.await_piece();
    for (int step = 1; step < s.ranks; ++step) {
      const int whose = (s.rank + step) % s.ranks;
      const auto* theirs = static_cast<const char*>(s.link.tensor(whose));
      multiply(whose, of, theirs != nullptr ? theirs + of.row * x_row : s.link.piece(whose));
    }
    s.link.release();
  }
  s.link.await_readers();
  s.link.finish();
}

}  // namespace velo::sched
