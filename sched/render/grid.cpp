// A timeline as lines of characters: a line for each rank, time to the right, every action where it
// begins, followed by dashes for its duration; points while the rank waits.
//
// The shortest action gets the width of the longest word, unless lines would exceed `most_columns`.
// Words that do not fit are then cut to the letter of their kind.
#include <algorithm>
#include <cmath>

#include "sched/render/text.hpp"

#include "core/index.hpp"

namespace velo::sched {
namespace {

constexpr double most_columns = 4000, most_characters = 1 << 24;

// 0F3, or F3 where every rank has one stage; F3+B1 for an FB.
std::string word_of(const schedule& of, const action& a) {
  const bool one_stage = of.sizes().stages == of.sizes().ranks;
  const auto plain = [&](velo_action_kind kind, std::int32_t stage, std::int32_t unit) {
    return (one_stage ? "" : std::to_string(stage)) + look_of(kind).name +
           unit_text(of.sizes(), unit);
  };
  if (a.kind != VELO_ACTION_FB) return plain(a.kind, a.stage, a.microbatch);
  return plain(VELO_ACTION_F, a.stage, a.microbatch) + '+' +
         plain(VELO_ACTION_B, a.other_stage, a.other_microbatch);
}

// The columns of a tick.
double scale_of(const timeline& of, const spans& when) {
  std::int64_t shortest = 0;
  std::size_t longest = 1;
  for (std::int32_t rank = 0; rank < of.of->sizes().ranks; ++rank) {
    std::size_t index = 0;
    for (row_reader row(*of.of, rank); !row.done(); row.pass(), ++index) {
      const action& a = row.next();
      const span& its = when[core::at(rank)][index];
      if (!computes(a.kind) || its.end == its.begin) continue;
      longest = std::max(longest, word_of(*of.of, a).size());
      if (shortest == 0 || its.end - its.begin < shortest) shortest = its.end - its.begin;
    }
  }
  if (shortest == 0) return 0;
  const double most = std::min(most_columns, most_characters / of.of->sizes().ranks);
  return std::min(static_cast<double>(longest + 1) / static_cast<double>(shortest),
                  most / static_cast<double>(of.times.makespan()));
}

void put(std::string& line, std::size_t from, std::size_t to, std::string word) {
  if (from == to) return;
  if (word.size() > to - from) {
    const std::size_t letter = word.find_first_not_of("0123456789");
    word = word.substr(letter, 1);
  }
  for (std::size_t i = from; i < to; ++i)
    line[i] = i - from < word.size() ? word[i - from] : i + 1 < to ? '-' : ' ';
}

}  // namespace

std::string draw_grid(const timeline& of) {
  require_drawable(of);
  const std::shared_ptr<const spans> when = spans_of(of);
  const double scale = scale_of(of, *when);
  const auto column = [&](std::int64_t ticks) {
    return static_cast<std::size_t>(std::llround(static_cast<double>(ticks) * scale));
  };
  const std::size_t columns = column(of.times.makespan());
  std::string out = title_of(of) + '\n';
  const std::size_t digits = std::to_string(of.of->sizes().ranks - 1).size();
  for (std::int32_t rank = 0; rank < of.of->sizes().ranks; ++rank) {
    std::string line(columns, '.');
    std::size_t index = 0;
    for (row_reader row(*of.of, rank); !row.done(); row.pass(), ++index) {
      const span& its = (*when)[core::at(rank)][index];
      if (computes(row.next().kind))
        put(line, column(its.begin), column(its.end), word_of(*of.of, row.next()));
    }
    const std::string name = std::to_string(rank);
    out += std::string(digits - name.size(), ' ') + name + " |" + line + "| peak ";
    append_number(out, of.in_microbatches(of.times.ranks[core::at(rank)].peak));
    out += '\n';
  }
  return out;
}

}  // namespace velo::sched
