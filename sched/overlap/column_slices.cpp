// The cut of columns, and the parts of a round.
#include "sched/overlap/column_slices.hpp"

#include <algorithm>
#include <cstring>

#include "core/index.hpp"
#include "core/round_up.hpp"
#include "sched/overlap/slot_rounds.hpp"

namespace velo::sched {
namespace {

constexpr std::int64_t line = 64, column_unit = 96;  // bytes; every panel of columns divides it

class summed_columns {
 public:
  explicit summed_columns(const column_slicing& s)
      : s_(s), parts_(s.of.product.m, s.ranks), element_(s.of.dtype.bits / 8) {}

  void multiply_for_peers(std::int64_t number) const {
    in_turn(s_.on,
            [&](core::execution& turn) { s_.multiply(s_.in.at(number), s_.link.slot(), turn); });
  }
  // Sums this rank's rows of a slice in the slot, from which peers fetch them, and copies them.
  void multiply_own_and_post(std::int64_t number) const {
    const std::int64_t columns = s_.in.at(number).count;
    const row_range own = parts_.of(s_.rank);
    char* const sums = s_.link.slot() + s_.in.sums_at();
    in_turn(s_.on, [&](core::execution& turn) {
      const core::scratch_scope scope(turn.scratch);
      auto* blocks = turn.scratch.take<const void*>(core::at(turn.threads.threads() * s_.ranks));
      each_rows(own.count, columns, turn, [&](const row_range& some, int thread) {
        const void** const from = blocks + thread * s_.ranks;
        const std::int64_t first = (own.begin + some.begin) * columns * element_;
        for (int r = 0; r < s_.ranks; ++r) from[r] = s_.link.piece(r) + first;
        s_.what.reducer.kernel({from, s_.ranks, sums + some.begin * columns * element_,
                                some.count * columns, 1, false});
        copy_rows(number, {own.begin, own.count}, some, sums);
      });
    });
  }
  void fetch(std::int64_t number) const {
    for (int step = 1; step < s_.ranks; ++step) {
      const int peer = (s_.rank + step) % s_.ranks;
      const row_range rows = parts_.of(peer);
      const char* const sums = s_.link.piece(peer) + s_.in.sums_at();
      in_turn(s_.on, [&](core::execution& turn) {
        each_rows(rows.count, s_.in.at(number).count, turn,
                  [&](const row_range& some, int) { copy_rows(number, rows, some, sums); });
      });
    }
  }
  void hand_on(std::int64_t) const {}

 private:
  // Calls f(rows, thread) for some rows of a part at a time.
  template <class F>
  void each_rows(std::int64_t rows, std::int64_t columns, core::execution& turn, const F& f) const {
    constexpr std::int64_t task_bytes = 64 << 10;
    const std::int64_t some = std::max<std::int64_t>(task_bytes / (columns * element_), 1);
    turn.threads.slices(core::ceil_div(rows, some), [&](std::int64_t task, int thread) {
      const std::int64_t first = task * some;
      f(row_range{first, std::min(some, rows - first)}, thread);
    });
  }
  // Copies some rows of a part from its sums to y.
  void copy_rows(std::int64_t number, const row_range& part, const row_range& some,
                 const char* sums) const {
    const auto [first, columns] = s_.in.at(number);
    const std::int64_t bytes = columns * element_, row = s_.of.product.n * element_;
    char* const y = static_cast<char*>(s_.what.out) + part.begin * row + first * element_;
    for (std::int64_t i = some.begin; i < some.end(); ++i)
      std::memcpy(y + i * row, sums + i * bytes, static_cast<std::size_t>(bytes));
  }

  const column_slicing& s_;
  const row_parts parts_;
  const std::int64_t element_;  // bytes
};

}  // namespace

column_cut::column_cut(const overlap_problem& of, int ranks, std::int64_t room)
    : all_(of.product.n) {
  constexpr std::int64_t chosen = 4;  // slices, where nothing else says how many
  const std::int64_t element = of.dtype.bits / 8, rows = of.product.m,
                     sums = row_parts(rows, ranks).most(),
                     column = std::max<std::int64_t>((rows + sums) * element, 1);
  const std::int64_t most = (room - line) / column / column_unit * column_unit;
  pays_ = most > 0;
  const std::int64_t wanted =
      core::ceil_div(std::max<std::int64_t>(all_, 1), of.slices != 0 ? of.slices : chosen);
  columns_ = std::max(std::min(core::round_up(wanted, column_unit), most), column_unit);
  sums_at_ = core::round_up(rows * columns_ * element, line);
}

std::int64_t column_cut::count() const {
  return core::ceil_div(all_, columns_);
}

column_cut::columns column_cut::at(std::int64_t number) const {
  const std::int64_t first = number * columns_;
  return {first, std::min(columns_, all_ - first)};
}

std::uint64_t column_cut::signature() const {
  return comm::mixed(static_cast<std::uint64_t>(columns_) << 1 | 1) | 1;
}

void all_reduce_in_columns(const column_slicing& s) {
  const summed_columns slices(s);
  sum_through_slots(s.link, s.of.product.m == 0 ? 0 : s.in.count(), slices, [] {});
  s.link.wait_readers();
  s.link.finish();
}

}  // namespace velo::sched
