// Runs a schedule in the simulator, or refuses it naming the rank that deadlocks.
#include "sched/simulate/timeline.hpp"

#include "core/failure.hpp"

namespace velo::sched {

using core::fail;
using core::text;

timeline simulate(std::shared_ptr<const schedule> of, const costs& given) {
  std::vector<stuck_rank> stuck;
  const costs shared = with_shares(given, of->sizes(), of->layers(), "costs");
  simulation times = simulate(*of, ticks_of(shared, of->sizes(), of->actions()), stuck);
  if (!stuck.empty()) {
    action a;
    of->read(stuck[0].rank, stuck[0].index, 1, &a);
    fail(VELO_ERR_STATE, "schedule", "one in which no rank waits for ever",
         core::concat(stuck.size(), " that do: rank ", stuck[0].rank, " at ", text_of(a),
                      ", its action ", stuck[0].index));
  }
  return {std::move(of), std::move(times), nullptr, given.sizes};
}

std::shared_ptr<const spans> spans_of(const timeline& of) {
  if (of.measured != nullptr) return of.measured;
  auto all = std::make_shared<spans>();
  std::vector<stuck_rank> stuck;
  simulate(*of.of, of.times.scale, stuck, all.get());
  return all;
}

void require_listed(const timeline& of) {
  const std::int64_t actions = of.of->actions();
  if (actions > most_listed)
    fail(VELO_ERR_ARGUMENT, "timeline", core::concat("one of at most ", most_listed, " actions"),
         core::concat("one of ", actions));
}

}  // namespace velo::sched
