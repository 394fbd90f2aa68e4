// Sends and receives: each violation by a schedule with no other; known deadlocks; lowered rows;
// and the validator against all interleavings.
#include "sched/check/sends.hpp"

#include <algorithm>
#include <cstdlib>
#include <map>
#include <random>
#include <set>

#include "sched/schedule/csv.hpp"
#include "sched/simulate/lower.hpp"
#include "tests/core/fails.hpp"
#include "tests/random.hpp"
#include "tests/sched/schedules.hpp"

using namespace velo;
using namespace velo::testing;

namespace {

// The sizes of long.schedules; fewer by default.
bool long_run() {
  return std::getenv("VELO_SCHEDULES_LONG") != nullptr;
}

using rows = std::vector<std::vector<sched::action>>;

rows rows_of(const sched::schedule& from) {
  rows all(from.sizes().ranks);
  for (std::int32_t rank = 0; rank < from.sizes().ranks; ++rank) {
    all[rank].resize(from.length(rank));
    from.read(rank, 0, from.length(rank), all[rank].data());
  }
  return all;
}
sched::schedule with_rows(const sched::schedule& like, const rows& all) {
  std::vector<std::vector<std::int32_t>> stages;
  for (std::int32_t rank = 0; rank < like.sizes().ranks; ++rank)
    stages.push_back(like.stages_of(rank));
  return {like.sizes(), stages, {all.begin(), all.end()}};
}

using codes = std::set<int>;
codes codes_of(const std::string& text) {
  codes all;
  for (const sched::violation& v : sched::check(sched::read_csv(text))) all.insert(v.code);
  return all;
}

const char* const sound_0 = "0F0,0SEND_F0,0F1,0SEND_F1,0RECV_B0,0B0,0RECV_B1,0B1\n";
const char* const sound_1 = "1RECV_F0,1F0,1RECV_F1,1B0,1SEND_B0,1F1,1B1,1SEND_B1\n";

}  // namespace

TEST_CASE("sends and receives without a fault have no violation") {
  CHECK(codes_of(std::string(sound_0) + sound_1).empty());
}

TEST_CASE("messages that are missing, twice or for nobody are named") {
  const codes message = {VELO_VIOLATION_MESSAGE};
  const std::string one = sound_1;
  CHECK(codes_of("0F0,0SEND_F0,0F1,0RECV_B0,0B0,0RECV_B1,0B1\n" + one) == message);
  CHECK(codes_of("0F0,0SEND_F0,0F1,0SEND_F1,0RECV_B0,0B0,0B1\n" + one) == message);
  CHECK(codes_of("0F0,0SEND_F0,0SEND_F0,0F1,0SEND_F1,0RECV_B0,0B0,0RECV_B1,0B1\n" + one) ==
        message);
  CHECK(codes_of("0RECV_F0,0F0,0SEND_F0,0F1,0SEND_F1,0RECV_B0,0B0,0RECV_B1,0B1\n" + one) ==
        message);
  CHECK(codes_of("0F0,0SEND_F0,1RECV_F0,1F0,1B0,0B0\n") == message);  // to the rank itself
  const auto found =
      sched::check(sched::read_csv("0F0,0SEND_F0,0F1,0SEND_F1,0RECV_B0,0B0,0B1\n" + one));
  CHECK(found[0].reason == "0RECV_B1 is missing");
}

TEST_CASE("messages before what makes them or behind what needs them are named") {
  const codes order = {VELO_VIOLATION_ORDER};
  CHECK(codes_of(std::string("0SEND_F0,0F0,0F1,0SEND_F1,0RECV_B0,0B0,0RECV_B1,0B1\n") + sound_1) ==
        order);
  CHECK(codes_of(std::string("0F0,0SEND_F0,0F1,0SEND_F1,0RECV_B0,0B0,0B1,0RECV_B1\n") + sound_1) ==
        order);
  const codes elsewhere =  // rank 1 sends what rank 0 makes
      codes_of(std::string("0F0,0F1,0SEND_F1,0RECV_B0,0B0,0RECV_B1,0B1\n") +
               "0SEND_F0,1RECV_F0,1F0,1RECV_F1,1B0,1SEND_B0,1F1,1B1,1SEND_B1\n");
  CHECK_FALSE(elsewhere.empty());
}

TEST_CASE("messages that pass each other are named") {
  CHECK(codes_of(std::string("0F0,0F1,0SEND_F1,0SEND_F0,0RECV_B0,0B0,0RECV_B1,0B1\n") + sound_1) ==
        codes{VELO_VIOLATION_FIFO});
}

TEST_CASE("each way of waiting has deadlocks of its own") {
  // Both send first; PyTorch issue 172668, its first case.
  CHECK(codes_of("0F0,0SEND_F0,0F1,0SEND_F1,2RECV_F0,2F0,2SEND_F0,2RECV_F1,2F1,2SEND_F1,2RECV_B0,"
                 "2B0,2SEND_B0,2RECV_B1,2B1,2SEND_B1,0RECV_B0,0B0,0RECV_B1,0B1\n"
                 "1RECV_F0,1F0,1SEND_F0,1RECV_F1,1F1,1SEND_F1,3RECV_F0,3F0,3B0,3SEND_B0,3RECV_F1,"
                 "3F1,3B1,3SEND_B1,1RECV_B0,1B0,1SEND_B0,1RECV_B1,1B1,1SEND_B1\n") ==
        codes{VELO_VIOLATION_RENDEZVOUS});
  // Its second: even and odd ranks in another order would not help.
  CHECK(codes_of("0F0,0SEND_F0,0F1,0SEND_F1,2RECV_F0,2F0,2RECV_F1,2SEND_F0,2F1,2SEND_F1,0F2,"
                 "0SEND_F2,2RECV_B0,2B0,2SEND_B0,2RECV_F2,2F2,2SEND_F2,2RECV_B1,2B1,2SEND_B1,"
                 "2RECV_B2,2B2,2SEND_B2,0RECV_B0,0B0,0RECV_B1,0B1,0RECV_B2,0B2\n"
                 "1RECV_F0,1F0,1RECV_F1,1SEND_F0,1F1,1SEND_F1,3RECV_F0,3F0,3B0,3RECV_F1,3SEND_B0,"
                 "3F1,3B1,1RECV_F2,1F2,1SEND_F2,3SEND_B1,3RECV_F2,3F2,3B2,3SEND_B2,1RECV_B0,1B0,"
                 "1SEND_B0,1RECV_B1,1B1,1SEND_B1,1RECV_B2,1B2,1SEND_B2\n") ==
        codes{VELO_VIOLATION_RENDEZVOUS, VELO_VIOLATION_BATCHED});
  // Each works on between its send and its receive, so that the two are no group.
  CHECK(codes_of("0F0,0SEND_F0,0F1,0SEND_F1,0F2,0RECV_B0,0B0,0SEND_F2,0RECV_B1,0B1,0RECV_B2,0B2\n"
                 "1RECV_F0,1F0,1I0,1SEND_B0,1W0,1RECV_F1,1F1,1B1,1SEND_B1,1RECV_F2,1F2,1B2,"
                 "1SEND_B2\n") == codes{VELO_VIOLATION_RENDEZVOUS, VELO_VIOLATION_BATCHED});
  // A receive before the send that it answers: as a group they would pass.
  CHECK(codes_of("0F0,0RECV_B0,0SEND_F0,0B0\n1RECV_F0,1F0,1B0,1SEND_B0\n") ==
        codes{VELO_VIOLATION_STUCK, VELO_VIOLATION_RENDEZVOUS});
  // Rank 1 wants the gradient of a forward before it sends that.
  CHECK(codes_of("0F0,0SEND_F0,0F1,0SEND_F1,0RECV_B0,0B0,0RECV_B1,0B1\n"
                 "1RECV_F0,1F0,1RECV_F1,1RECV_B0,1F1,1SEND_F0,1SEND_F1,1B0,1SEND_B0,1RECV_B1,1B1,"
                 "1SEND_B1\n2RECV_F0,2F0,2B0,2SEND_B0,2RECV_F1,2F1,2B1,2SEND_B1\n") ==
        codes{VELO_VIOLATION_STUCK, VELO_VIOLATION_RENDEZVOUS, VELO_VIOLATION_BATCHED});
}

TEST_CASE("gradients are summed once, and when they are whole") {
  CHECK(codes_of("0F0,0F1,0B0,0I1,0W1,0REDUCE_GRAD\n").empty());
  CHECK(codes_of("0F0,0F1,0B0,0I1,0REDUCE_GRAD,0W1\n") == codes{VELO_VIOLATION_REDUCE});
  CHECK(codes_of("0F0,0B0,0REDUCE_GRAD,0REDUCE_GRAD\n") == codes{VELO_VIOLATION_DUPLICATE});
  CHECK(codes_of("0F0,1F0,1B0,0B0\n0REDUCE_GRAD\n") == codes{VELO_VIOLATION_PLACEMENT});
}

TEST_CASE("sends follow what makes them, receives stand where it arrives") {
  const sched::schedule order = sched::lower(made(VELO_SCHEDULE_1F1B, {2, 3}));
  CHECK(row_of(order, 0) ==
        "0F0 0SEND_F0 0F1 0SEND_F1 0RECV_B0 0B0 0F2 0SEND_F2 0RECV_B1 0B1 0RECV_B2 0B2");
  CHECK(row_of(order, 1) ==
        "1RECV_F0 1F0 1RECV_F1 1B0 1SEND_B0 1F1 1B1 1RECV_F2 1SEND_B1 1F2 1B2 1SEND_B2");
  CHECK(row_of(sched::lower(order, true), 1) ==
        "1RECV_F0 1F0 1RECV_F1 1B0 1SEND_B0 1F1 1B1 1SEND_B1 1RECV_F2 1F2 1B2 1SEND_B2");
  CHECK(sched::write_csv(sched::lower(order)) == sched::write_csv(order));
  const auto all = sched::read_csv("0UNSHARD,0F0,0SEND_F0,0B0,0REDUCE_GRAD\n1F0,1B0\n");
  CHECK(row_of(sched::lower(all), 0) == "0UNSHARD 0F0 0SEND_F0 0RECV_B0 0B0 0REDUCE_GRAD");
  CHECK(sched::lower(sched::read_csv("")).actions() == 0);
  CHECK(failure_of([] { sched::lower(sched::read_csv("0B0,0F0\n")); }).code == VELO_ERR_STATE);
}

TEST_CASE("no schedule that is made waits for ever once it is lowered") {
  int count = 0;
  for_each_schedule(long_run() ? 12 : 6, [&](const sched::schedule& order) {
    ++count;
    const sched::schedule lowered = sched::lower(order);
    const std::string wrong = violations_of(lowered);
    if (!wrong.empty()) FAIL(wrong);
    if (price(lowered).makespan != price(order).makespan) FAIL("it takes another time");
  });
  CHECK(count > (long_run() ? 4000 : 1000));
}

namespace {

// Runs ranks whose sends proceed while they receive, and must be received before the next action
// that is no message.
class started_sends {
 public:
  explicit started_sends(const sched::schedule& pipeline)
      : rows_(rows_of(pipeline)), at_(rows_.size()) {}

  bool all_end() {
    for (bool moved = true; moved;) {
      moved = false;
      for (std::size_t rank = 0; rank < rows_.size(); ++rank)
        while (move(rank)) moved = true;
    }
    for (std::size_t rank = 0; rank < rows_.size(); ++rank)
      if (at_[rank] != rows_[rank].size() || !all_received(rank)) return false;
    return true;
  }

 private:
  using name = std::tuple<bool, std::int32_t, std::int32_t>;  // forward, whose output, unit

  static name message(const sched::action& a) {
    const bool forward = a.kind == VELO_ACTION_SEND_F || a.kind == VELO_ACTION_RECV_F;
    const std::int32_t maker = sched::is_send(a.kind) ? a.stage
                               : forward              ? a.stage - 1
                                                      : a.stage + 1;
    return {forward, maker, a.microbatch};
  }
  bool all_received(std::size_t rank) {
    for (const name& one : under_way_[rank])
      if (sent_.count(one) > 0) return false;
    under_way_[rank].clear();
    return true;
  }
  bool move(std::size_t rank) {
    if (at_[rank] == rows_[rank].size()) return false;
    const sched::action& a = rows_[rank][at_[rank]];
    if (!sched::communicates(a.kind)) {
      if (!all_received(rank)) return false;
    } else if (sched::is_send(a.kind)) {
      sent_.insert(message(a));
      under_way_[rank].push_back(message(a));
    } else if (sent_.erase(message(a)) == 0) {
      return false;
    }
    ++at_[rank];
    return true;
  }

  const rows rows_;
  std::vector<std::size_t> at_;
  std::set<name> sent_;  // and not received
  std::map<std::size_t, std::vector<name>> under_way_;
};

}  // namespace

TEST_CASE("nor with sends first, where they are under way while their rank receives") {
  for_each_schedule(long_run() ? 12 : 6, [&](const sched::schedule& order) {
    const sched::schedule lowered = sched::lower(order, true);
    for (const sched::violation& v : sched::check(lowered))
      if (v.code != VELO_VIOLATION_RENDEZVOUS) FAIL(v.reason);
    if (!started_sends(lowered).all_end()) FAIL("it waits for ever");
  });
  CHECK_FALSE(started_sends(sched::read_csv("0F0,0SEND_F0,0B0\n1F0,1B0\n")).all_end());
}

namespace {

// Tries all interleavings of a schedule's ranks one by one, by the meaning of actions alone. A
// state is the progress of each rank.
class explorer {
 public:
  enum way { at_once, rendezvous, batched };

  explicit explorer(const sched::schedule& pipeline)
      : sizes_(pipeline.sizes()), rows_(rows_of(pipeline)) {
    for (std::size_t rank = 0; rank < rows_.size(); ++rank)
      for (std::size_t i = 0; i < rows_[rank].size(); ++i) {
        const sched::action& a = rows_[rank][i];
        messages_ |= sched::communicates(a.kind);
        if (a.kind == VELO_ACTION_FB) {
          places_[{VELO_ACTION_F, a.stage, a.microbatch}] = {rank, i};
          places_[{VELO_ACTION_B, a.other_stage, a.other_microbatch}] = {rank, i};
        } else {
          places_[{a.kind, a.stage, a.microbatch}] = {rank, i};
        }
      }
  }

  bool can_stop_short(way of) {
    way_ = of;
    std::set<state> seen;
    std::vector<state> left{state(rows_.size())};
    while (!left.empty()) {
      const state now = left.back();
      left.pop_back();
      if (!seen.insert(now).second) continue;
      bool ended = true, moved = false;
      for (std::size_t rank = 0; rank < rows_.size(); ++rank) {
        if (now[rank] == rows_[rank].size()) continue;
        ended = false;
        state then = now;
        if (!move(then, rank)) continue;
        moved = true;
        left.push_back(then);
      }
      if (!ended && !moved) return true;
    }
    return false;
  }

 private:
  using state = std::vector<std::size_t>;
  using name = std::tuple<int, std::int32_t, std::int32_t>;
  struct place {
    std::size_t rank, index;
  };

  bool done(const state& now, int kind, std::int32_t stage, std::int32_t unit) const {
    const auto at = places_.find({kind, stage, unit});
    return at != places_.end() && now[at->second.rank] > at->second.index;
  }
  bool input_gradient(const state& now, std::int32_t stage, std::int32_t unit) const {
    return done(now, VELO_ACTION_I, stage, unit) || done(now, VELO_ACTION_B, stage, unit);
  }
  bool elsewhere(std::int32_t a, std::int32_t b) const { return owner(a) != owner(b); }
  std::size_t owner(std::int32_t stage) const { return places_.at({VELO_ACTION_F, stage, 0}).rank; }
  bool may_forward(const state& now, std::int32_t stage, std::int32_t unit) const {
    if (unit % sizes_.splits > 0 && !done(now, VELO_ACTION_F, stage, unit - 1)) return false;
    if (sizes_.begins_chain(stage)) return true;
    if (messages_ && elsewhere(stage, stage - 1)) return done(now, VELO_ACTION_RECV_F, stage, unit);
    return done(now, VELO_ACTION_F, stage - 1, unit);
  }
  bool may_backward(const state& now, std::int32_t stage, std::int32_t unit) const {
    if (!done(now, VELO_ACTION_F, stage, unit)) return false;
    if ((unit + 1) % sizes_.splits > 0 && !input_gradient(now, stage, unit + 1)) return false;
    if (sizes_.ends_chain(stage)) return true;
    if (messages_ && elsewhere(stage, stage + 1)) return done(now, VELO_ACTION_RECV_B, stage, unit);
    return input_gradient(now, stage + 1, unit);
  }
  bool may_compute(const state& now, const sched::action& a) const {
    switch (a.kind) {
      case VELO_ACTION_F:
        return may_forward(now, a.stage, a.microbatch);
      case VELO_ACTION_W:
        return done(now, VELO_ACTION_I, a.stage, a.microbatch);
      case VELO_ACTION_FB:
        return may_forward(now, a.stage, a.microbatch) &&
               may_backward(now, a.other_stage, a.other_microbatch);
      default:
        return may_backward(now, a.stage, a.microbatch);
    }
  }

  // The other side of a send or receive.
  name other_side(const sched::action& a) const {
    switch (a.kind) {
      case VELO_ACTION_SEND_F:
        return {VELO_ACTION_RECV_F, a.stage + 1, a.microbatch};
      case VELO_ACTION_RECV_F:
        return {VELO_ACTION_SEND_F, a.stage - 1, a.microbatch};
      case VELO_ACTION_SEND_B:
        return {VELO_ACTION_RECV_B, a.stage - 1, a.microbatch};
      default:
        return {VELO_ACTION_SEND_B, a.stage + 1, a.microbatch};
    }
  }
  bool made(const state& now, const sched::action& a) const {
    if (a.kind == VELO_ACTION_SEND_F) return done(now, VELO_ACTION_F, a.stage, a.microbatch);
    return a.kind != VELO_ACTION_SEND_B || input_gradient(now, a.stage, a.microbatch);
  }
  std::size_t group_end(const place& at) const {
    std::size_t end = at.index;
    while (end < rows_[at.rank].size() && sched::communicates(rows_[at.rank][end].kind)) ++end;
    return end;
  }
  std::size_t group_begin(const place& at) const {
    std::size_t begin = at.index;
    while (begin > 0 && sched::communicates(rows_[at.rank][begin - 1].kind)) --begin;
    return begin;
  }

  bool move(state& now, std::size_t rank) const {
    const std::size_t at = now[rank];
    const sched::action& a = rows_[rank][at];
    if (!sched::communicates(a.kind)) {
      if (!may_compute(now, a)) return false;
      ++now[rank];
      return true;
    }
    const std::size_t end = way_ == batched ? group_end({rank, at}) : at + 1;
    for (std::size_t i = at; i < end; ++i) {
      const sched::action& one = rows_[rank][i];
      if (!made(now, one)) return false;
      const bool sends = one.kind == VELO_ACTION_SEND_F || one.kind == VELO_ACTION_SEND_B;
      if (way_ == at_once && sends) continue;
      const auto other = places_.find(other_side(one));
      if (other == places_.end()) return false;
      const std::size_t there = now[other->second.rank];
      if (way_ == at_once && there <= other->second.index) return false;
      if (way_ == rendezvous && there < other->second.index) return false;
      if (way_ == batched && there < group_begin(other->second)) return false;
    }
    now[rank] = end;
    return true;
  }

  const sched::shape sizes_;
  const rows rows_;
  std::map<name, place> places_;
  bool messages_ = false;
  way way_ = at_once;
};

// Whether every rank still has its own actions, each once, and messages between two ranks keep
// their order.
bool same_actions(const rows& a, const rows& b) {
  const auto less = [](const sched::action& x, const sched::action& y) {
    return std::tie(x.kind, x.stage, x.microbatch, x.other_stage, x.other_microbatch) <
           std::tie(y.kind, y.stage, y.microbatch, y.other_stage, y.other_microbatch);
  };
  for (std::size_t rank = 0; rank < a.size(); ++rank) {
    auto x = a[rank], y = b[rank];
    std::sort(x.begin(), x.end(), less);
    std::sort(y.begin(), y.end(), less);
    if (!std::equal(x.begin(), x.end(), y.begin(), y.end(), sched::same)) return false;
  }
  return true;
}
bool in_turn(const sched::schedule& pipeline, const rows& all) {
  std::map<std::tuple<std::int32_t, std::int32_t, bool>, std::vector<std::int64_t>> ways[2];
  for (const auto& row : all) {
    for (const sched::action& a : row) {
      if (!sched::communicates(a.kind)) continue;
      const bool forward = a.kind <= VELO_ACTION_RECV_F;
      const bool sends = a.kind == VELO_ACTION_SEND_F || a.kind == VELO_ACTION_SEND_B;
      const std::int32_t step = forward ? 1 : -1;
      const std::int32_t from = sends ? a.stage : a.stage - step, to = from + step;
      ways[sends ? 0 : 1][{pipeline.rank_of(from), pipeline.rank_of(to), forward}].push_back(
          std::int64_t{from} * 1000 + a.microbatch);
    }
  }
  return ways[0] == ways[1];
}

void mutate(rows& all, random_source32& random) {
  const auto below = [&](std::size_t most) {
    return std::uniform_int_distribution<std::size_t>(0, most - 1)(random);
  };
  auto& row = all[below(all.size())];
  const std::size_t at = below(row.size());
  switch (below(10)) {
    case 0:
      row.erase(row.begin() + static_cast<std::ptrdiff_t>(at));
      break;
    case 1:
      row.insert(row.begin() + static_cast<std::ptrdiff_t>(below(row.size() + 1)), row[at]);
      break;
    case 2: {
      const sched::action moved = row[at];
      row.erase(row.begin() + static_cast<std::ptrdiff_t>(at));
      auto& to = all[below(all.size())];
      to.insert(to.begin() + static_cast<std::ptrdiff_t>(below(to.size() + 1)), moved);
      break;
    }
    case 3:
      std::swap(row[at], row[below(row.size())]);
      break;
    default:
      if (at + 1 < row.size()) std::swap(row[at], row[at + 1]);
  }
}

}  // namespace

TEST_CASE("the validator says what trying all interleavings says") {
  const int most = long_run() ? 10000 : 2000;
  std::vector<sched::schedule> sound;
  for_each_schedule(3, [&](velo_schedule_kind, const sizes& of, const auto& order) {
    if (of.microbatches <= 3 && of.chunks <= 2 && of.splits <= 2 &&
        !order.has(sched::set_of(VELO_ACTION_RECOMPUTE) | sched::set_of(VELO_ACTION_OFFLOAD)))
      sound.push_back(sched::lower(order));
  });
  REQUIRE(sound.size() > 50);
  random_source32 random(14);
  int bad = 0, seen[VELO_VIOLATION_UNSHARD + 1] = {};
  for (int i = 0; i < most; ++i) {
    const sched::schedule& from = sound[random.below(sound.size())];
    rows all = rows_of(from);
    for (auto changes = random.below(3); changes-- > 0;) mutate(all, random);
    const sched::schedule changed = with_rows(from, all);
    const auto found = sched::check(changed);
    for (const sched::violation& v : found) ++seen[v.code];
    bool wrong = !same_actions(rows_of(from), all);
    const bool complete = !wrong;
    std::set<int> deadlocks;
    if (complete) {
      explorer tries(changed);
      if (tries.can_stop_short(explorer::at_once)) deadlocks.insert(VELO_VIOLATION_STUCK);
      if (tries.can_stop_short(explorer::rendezvous)) deadlocks.insert(VELO_VIOLATION_RENDEZVOUS);
      if (tries.can_stop_short(explorer::batched)) deadlocks.insert(VELO_VIOLATION_BATCHED);
      wrong = !deadlocks.empty() || !in_turn(changed, all);
    }
    bad += wrong ? 1 : 0;
    if (found.empty() == wrong)
      FAIL(sched::write_csv(changed)
           << (wrong ? "is not sound, but passes" : "is sound, but: " + found[0].reason));
    // Each way of waiting is blamed where it is to blame, and nowhere else.
    std::set<int> blamed;
    for (const sched::violation& v : found) blamed.insert(v.code);
    if (complete && wrong && deadlocks.size() < 3 && in_turn(changed, all) && blamed != deadlocks)
      FAIL(sched::write_csv(changed) << found[0].reason);
  }
  CHECK(bad > most / 4);
  CHECK(bad < most);
  for (const int code : {VELO_VIOLATION_MISSING, VELO_VIOLATION_DUPLICATE, VELO_VIOLATION_ORDER,
                         VELO_VIOLATION_RENDEZVOUS, VELO_VIOLATION_BATCHED})
    CHECK(seen[code] > 0);
}
