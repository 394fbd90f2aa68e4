// Generates orders and finds the states of their rows.
#include "sched/tune/orders.hpp"

#include <algorithm>

#include "core/index.hpp"
#include "sched/pipeline/generate.hpp"
#include "sched/pipeline/kinds.hpp"

namespace velo::sched::tune {
namespace {

// Bounds the time and memory of one candidate.
constexpr std::int64_t most_actions = std::int64_t{1} << 23;
constexpr std::int64_t most_searched = std::int64_t{1} << 16;  // 50 ms

// Whether a holds at least as much of every chunk as b.
bool covers(const holding& a, const holding& b) {
  for (std::size_t c = 0; c < a.size(); ++c)
    if (a[c] < b[c]) return false;
  return true;
}

void add(std::vector<holding>& to, const holding& now) {
  for (const holding& one : to)
    if (covers(one, now)) return;
  to.erase(
      std::remove_if(to.begin(), to.end(), [&](const holding& one) { return covers(now, one); }),
      to.end());
  to.push_back(now);
}

std::vector<holding> states_of(const schedule& rows, std::int32_t rank) {
  const std::vector<std::int32_t>& stages = rows.stages_of(rank);
  const auto chunk = [&](std::int32_t stage) {
    return static_cast<std::size_t>(std::find(stages.begin(), stages.end(), stage) -
                                    stages.begin());
  };
  std::vector<holding> found;
  holding now(stages.size(), 0);
  bool rose = false;
  for (row_reader row(rows, rank); !row.done(); row.pass()) {
    const action a = row.next();
    if (has_forward(a.kind)) {
      ++now[chunk(a.stage)];
      rose = true;
    }
    if (!releases(a.kind)) continue;
    // The fullest states are those before a release.
    if (rose) add(found, now);
    rose = false;
    --now[chunk(a.kind == VELO_ACTION_FB ? a.other_stage : a.stage)];
  }
  return found;
}

std::shared_ptr<const order> make(const velo_schedule_desc& desc, const costs& given,
                                  std::int64_t most) {
  auto result = std::make_shared<order>();
  try {
    const std::int64_t actions =
        std::int64_t{3} * desc.ranks * desc.chunks * desc.microbatches * std::max(desc.splits, 1);
    if (actions > most)
      core::fail(VELO_ERR_ARGUMENT, "desc.microbatches", core::concat("at most ", most, " actions"),
                 core::number(actions));
    result->rows = std::make_shared<const schedule>(generate(read_request(desc, given)));
    for (std::int32_t rank = 0; rank < desc.ranks; ++rank)
      result->states.push_back(states_of(*result->rows, rank));
  } catch (const core::failure& none) {
    if (none.code != VELO_ERR_ARGUMENT) throw;
    result->why = std::string(none.argument).substr(sizeof "desc." - 1) + ": expected " +
                  none.expected + ", got " + none.got;
  }
  return result;
}

velo_schedule_desc desc_of(velo_schedule_kind kind, std::int32_t ranks, std::int32_t chunks,
                           std::int32_t microbatches) {
  velo_schedule_desc desc = VELO_SCHEDULE_DESC_INIT;
  desc.kind = kind;
  desc.ranks = ranks;
  desc.chunks = chunks;
  desc.microbatches = microbatches;
  return desc;
}

}  // namespace

double order::peak(std::int32_t rank, const std::vector<double>& sizes) const {
  double most = 0;
  for (const holding& one : states[core::at(rank)]) {
    double sum = 0;
    for (std::size_t c = 0; c < one.size(); ++c) sum += one[c] * sizes[c];
    most = std::max(most, sum);
  }
  return most;
}

std::size_t order::bytes() const {
  std::size_t all = sizeof *this + why.capacity();
  if (rows != nullptr) all += rows->bytes();
  for (const std::vector<holding>& of_rank : states)
    for (const holding& one : of_rank)
      all += sizeof(holding) + one.capacity() * sizeof(holding::value_type);
  return all;
}

bool is_searched(velo_schedule_kind kind) {
  return row_of(kind).has(takes_cap);
}

std::shared_ptr<const order> find_order(const velo_tuning_layout& layout, const demand& wanted) {
  velo_schedule_desc desc = desc_of(layout.kind, layout.pp, layout.vpp, layout.microbatches);
  desc.cap = wanted.cap;
  return make(desc, wanted.costs, most_searched);
}

std::shared_ptr<const order> orders::get(velo_schedule_kind kind, std::int32_t ranks,
                                         std::int32_t chunks, std::int32_t microbatches,
                                         std::int32_t splits) {
  const key wanted(kind, ranks, chunks, microbatches, splits);
  if (const auto found = cached_.find(wanted); found != cached_.end()) return found->second;

  velo_schedule_desc desc = desc_of(kind, ranks, chunks, microbatches);
  if (splits > 1) desc.splits = splits;
  auto result = make(desc, {}, most_actions);
  if (bytes_ + result->bytes() > room_) {
    cached_.clear();
    bytes_ = 0;
  }
  bytes_ += result->bytes();
  cached_[wanted] = result;
  return result;
}

}  // namespace velo::sched::tune
