// Rows that were changed in one place: accepted rows can run, and rows that can run are accepted.
//
// The judge is an executor of its own: every rank takes its actions in order, and an action waits
// for its inputs. It knows the sizes and the chains of the original schedule, which the reader has
// to find in the rows.
#include <map>
#include <random>
#include <set>
#include <sstream>

#include "sched/schedule/csv.hpp"
#include "tests/random.hpp"
#include "tests/sched/schedules.hpp"

using namespace velo;
using namespace velo::testing;

namespace {

using fields = std::vector<std::vector<std::string>>;

fields split(const std::string& csv) {
  fields rows;
  std::istringstream lines(csv);
  for (std::string line; std::getline(lines, line);) {
    rows.emplace_back();
    std::istringstream row(line);
    for (std::string field; std::getline(row, field, ',');) rows.back().push_back(field);
  }
  return rows;
}

std::string joined(const fields& rows) {
  std::string csv;
  for (const auto& row : rows) {
    for (std::size_t i = 0; i < row.size(); ++i) csv += (i == 0 ? "" : ",") + row[i];
    csv += '\n';
  }
  return csv;
}

// One change: swaps two actions of a rank, drops one, repeats one, moves one to any place, or gives
// one another stage or micro-batch. Returns its name.
std::string mutate(fields& rows, random_source32& random) {
  const auto below = [&](std::size_t n) {
    return std::uniform_int_distribution<std::size_t>(0, n - 1)(random);
  };
  auto& row = rows[below(2) == 0 ? rows.size() - 1 : below(rows.size())];
  const auto random_index = [&](std::size_t n) {  // at the ends of a row more often than elsewhere
    return below(3) == 0 ? std::min(n - 1, below(4)) : below(n);
  };
  const std::size_t at = random_index(row.size());
  const std::string field = row[at];
  const auto put = [&](std::vector<std::string>& into) {
    into.insert(into.begin() + static_cast<std::ptrdiff_t>(below(into.size() + 1)), field);
  };
  switch (below(6)) {
    case 0: {
      const std::size_t other = below(2) == 0 ? random_index(row.size()) : (at + 1) % row.size();
      std::swap(row[at], row[other]);
      return "swapped " + std::to_string(at) + " and " + std::to_string(other);
    }
    case 1:
      row.erase(row.begin() + static_cast<std::ptrdiff_t>(at));
      return "dropped " + field;
    case 2:
      put(row);
      return "repeated " + field;
    case 3:
      row.erase(row.begin() + static_cast<std::ptrdiff_t>(at));
      put(below(2) == 0 ? row : rows[below(rows.size())]);
      return "moved " + field;
    default: {
      sched::action a;
      REQUIRE(sched::parse(field, a));
      const bool other = a.kind == VELO_ACTION_FB && below(2) == 0;
      const bool stage = below(2) == 0;
      std::int32_t& number =
          stage ? (other ? a.other_stage : a.stage) : (other ? a.other_microbatch : a.microbatch);
      number = std::max(0, number + (below(2) == 0 ? 1 : -1));
      row[at] = sched::text_of(a);
      return field + " became " + row[at];
    }
  }
}

class judge {
 public:
  judge(const sched::schedule& from)
      : chains_(from.sizes().chains), stages_(from.sizes().stages), units_(from.sizes().units()) {}

  bool can_run(const fields& rows) {
    forward_.clear(), gradient_.clear(), weight_.clear(), home_.clear();
    std::vector<std::vector<sched::action>> actions(rows.size());
    for (std::size_t rank = 0; rank < rows.size(); ++rank)
      for (const std::string& field : rows[rank]) {
        sched::action a;
        if (!sched::parse(field, a) || !is_at_home(a, rank)) return false;
        actions[rank].push_back(a);
      }
    std::vector<std::size_t> next(rows.size());
    bool moved = true;
    while (std::exchange(moved, false))
      for (std::size_t rank = 0; rank < rows.size(); ++rank)
        for (; next[rank] < actions[rank].size() && take(actions[rank][next[rank]]); ++next[rank])
          moved = true;
    for (std::size_t rank = 0; rank < rows.size(); ++rank)
      if (next[rank] != actions[rank].size()) return false;
    const auto cells = static_cast<std::size_t>(stages_) * static_cast<std::size_t>(units_);
    return forward_.size() == cells && gradient_.size() == cells && weight_.size() == cells;
  }

 private:
  using cell = std::pair<std::int32_t, std::int32_t>;

  bool is_at_home(const sched::action& a, std::size_t rank) {
    for (const std::int32_t stage : {a.stage, a.other_stage})
      if (stage >= 0 && home_.emplace(stage, rank).first->second != rank) return false;
    return true;
  }
  std::int32_t in_chain() const { return stages_ / chains_; }
  bool is_there(std::int32_t stage, std::int32_t unit) const {
    return stage < stages_ && unit < units_;
  }

  bool may_forward(std::int32_t stage, std::int32_t unit) const {
    const bool first = stage % in_chain() == 0;
    return is_there(stage, unit) && forward_.count({stage, unit}) == 0 &&
           (first || forward_.count({stage - 1, unit}) != 0);
  }
  bool may_backward(std::int32_t stage, std::int32_t unit) const {
    const bool last = (stage + 1) % in_chain() == 0;
    return is_there(stage, unit) && forward_.count({stage, unit}) != 0 &&
           gradient_.count({stage, unit}) == 0 && (last || gradient_.count({stage + 1, unit}) != 0);
  }
  // Returns false if the action has to wait.
  bool take(const sched::action& a) {
    const cell here{a.stage, a.microbatch}, there{a.other_stage, a.other_microbatch};
    switch (a.kind) {
      case VELO_ACTION_F:
        return may_forward(a.stage, a.microbatch) && forward_.insert(here).second;
      case VELO_ACTION_I:
        return may_backward(a.stage, a.microbatch) && gradient_.insert(here).second;
      case VELO_ACTION_B:
        return may_backward(a.stage, a.microbatch) && gradient_.insert(here).second &&
               weight_.insert(here).second;
      case VELO_ACTION_W:
        return gradient_.count(here) != 0 && weight_.insert(here).second;
      case VELO_ACTION_FB:
        return may_forward(here.first, here.second) && may_backward(there.first, there.second) &&
               forward_.insert(here).second && gradient_.insert(there).second &&
               weight_.insert(there).second;
      default:
        return false;
    }
  }

  const std::int32_t chains_, stages_, units_;
  std::set<cell> forward_, gradient_, weight_;
  std::map<std::int32_t, std::size_t> home_;
};

// The library's refusal of rows; empty if it accepts them.
std::string refusal(const std::string& csv) {
  try {
    return violations_of(sched::read_csv(csv));
  } catch (const core::failure& why) {
    return std::string("text: expected ") + why.expected + ", got " + why.got;
  }
}

}  // namespace

TEST_CASE("of rows changed in one place those are accepted that can run") {
  struct subject {
    velo_schedule_kind kind;
    sizes of;
  };
  const subject subjects[] = {{VELO_SCHEDULE_GPIPE, {3, 4}},
                              {VELO_SCHEDULE_1F1B, {4, 6}},
                              {VELO_SCHEDULE_INTERLEAVED, {2, 6, 3}},
                              {VELO_SCHEDULE_LOOPED_BFS, {2, 5, 2}},
                              {VELO_SCHEDULE_ZBH1, {4, 6}},
                              {VELO_SCHEDULE_ZBH2, {4, 8}},
                              {VELO_SCHEDULE_ZB1P, {3, 6, 2}},
                              {VELO_SCHEDULE_ZBV_GREEDY, {4, 8}},
                              {VELO_SCHEDULE_SEQ1F1B, {3, 4, 0, 0, 0, 2}},
                              {VELO_SCHEDULE_NANOPIPE, {3, 6, 2}},
                              {VELO_SCHEDULE_ZBV, {4, 8}},
                              {VELO_SCHEDULE_ZBV, {1, 3}},
                              {VELO_SCHEDULE_VHALF, {4, 8}},
                              {VELO_SCHEDULE_VMIN, {4, 8}},
                              {VELO_SCHEDULE_1F1B_V, {3, 6}},
                              {VELO_SCHEDULE_DUALPIPEV, {3, 6}},
                              {VELO_SCHEDULE_DUALPIPE, {2, 4}},
                              {VELO_SCHEDULE_DUALPIPE, {4, 8}}};
  random_source32 random(25);
  int accepted = 0, refused = 0;
  for (const subject& one : subjects) {
    const sched::schedule whole = made(one.kind, one.of);
    const fields rows = split(sched::write_csv(whole));
    judge by(whole);
    REQUIRE(by.can_run(rows));
    REQUIRE(refusal(joined(rows)).empty());
    for (int i = 0; i < 1000; ++i) {
      fields changed = rows;
      const std::string how = mutate(changed, random);
      const std::string refused_for = refusal(joined(changed));
      const bool runs = by.can_run(changed);
      INFO("kind " << one.kind << ", " << one.of.ranks << " ranks: " << how << ": " << refused_for
                   << "\n"
                   << joined(changed));
      if (refused_for.empty()) REQUIRE(runs);
      // Rows do not state that they have two chains. With fewer signs than all, the reader assumes
      // one.
      if (whole.sizes().chains == 1 && runs) REQUIRE(refused_for.empty());
      ++(refused_for.empty() ? accepted : refused);
    }
  }
  CHECK(accepted > 500);
  CHECK(refused > 5000);
}
