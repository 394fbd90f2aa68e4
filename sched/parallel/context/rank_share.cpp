// The landings of a rank.
#include "sched/parallel/context/rank_share.hpp"

#include <algorithm>

#include "core/index.hpp"

namespace velo::sched {
namespace {

bool lands(content what) {
  return what == content::q || what == content::k || what == content::v || what == content::dout;
}

// Whether this rank's tasks also read its own rows: for keys in that step, for queries in any.
bool reads_own(const std::vector<attention_task>& tasks, std::int64_t step, content what,
               const row_places& held) {
  return std::any_of(tasks.begin(), tasks.end(), [&](const attention_task& task) {
    return is_of_keys(what) ? task.step == step && held.has_some(task.keys)
                            : held.has_some(task.queries);
  });
}

// Whether this rank's own rows belong to the landing of a message. In an adaptive plan they do
// where sender and receiver are neighbors, that is members of one ring rank, who exchange heads:
// a later round may read or send any rows of their block.
bool joins_own(const sequence_plan& plan, const attention_pass& pass, const block_message& m,
               const row_places& held) {
  if (m.remote) return false;
  if (!plan.adaptive) return reads_own(pass.tasks[core::at(m.to)], m.needed, m.what, held);
  return m.from / plan.adaptive->neighbors == m.to / plan.adaptive->neighbors;
}

std::vector<landing> landings_of(const sequence_plan& plan, const attention_pass& pass,
                                 const std::vector<block_message>& messages, std::int64_t rank,
                                 const row_places& held) {
  std::vector<landing> all;
  std::vector<rows> lists;
  for (std::size_t i = 0; i < messages.size(); ++i) {
    const block_message& m = messages[i];
    if (m.to != rank || !lands(m.what)) continue;
    std::size_t at = 0;
    while (at < all.size() &&
           (all[at].what != m.what || all[at].needed != m.needed || all[at].remote != m.remote))
      ++at;
    if (at == all.size()) {
      const bool own = joins_own(plan, pass, m, held);
      all.push_back({m.what, m.needed, {}, m.heads, m.kept, own, m.remote, {}});
      lists.push_back(own ? held.list() : rows());
    }
    all[at].messages.push_back(i);
    lists[at].insert(lists[at].end(), m.of.begin(), m.of.end());
  }
  for (std::size_t i = 0; i < all.size(); ++i) all[i].places = row_places(united(lists[i]));
  return all;
}

std::vector<std::size_t> results_of(const attention_pass& pass, std::int64_t rank) {
  std::vector<std::size_t> all;
  for (std::size_t i = 0; i < pass.messages.size(); ++i)
    if (pass.messages[i].to == rank && !lands(pass.messages[i].what)) all.push_back(i);
  return all;
}

}  // namespace

rank_share::rank_share(const sequence_plan& plan, const sequence_shape& of, std::int64_t rank)
    : plan_(plan),
      of_(of),
      rank_(rank),
      held_(plan.held[core::at(rank)]),
      forward_(landings_of(plan, plan.forward, plan.forward.messages, rank, held_)),
      gradient_(landings_of(plan, plan.gradient, plan.gradient.messages, rank, held_)),
      given_(landings_of(plan, plan.forward, plan.given, rank, held_)),
      forward_results_(results_of(plan.forward, rank)),
      gradient_results_(results_of(plan.gradient, rank)) {
  const std::vector<attention_task>& tasks = plan.forward.tasks[core::at(rank)];
  heads_ = tasks.empty() ? span{0, of.heads.queries} : tasks.front().heads;
  for (std::size_t i = 0; i < forward_.size(); ++i)
    if (forward_[i].what == content::q && !forward_[i].remote)
      exchanged_ = static_cast<std::int64_t>(i);
}

std::int64_t rank_share::elements_of_kept(const std::vector<landing>& all,
                                          const head_widths& widths) const {
  std::int64_t sum = 0;
  for (const landing& one : all)
    if (one.kept) sum += one.places.size() * one.heads.size() * widths.of(one.what);
  if (exchanges()) sum += queries().size() * heads_.size() * widths.value;  // outputs
  return sum;
}

std::int64_t rank_share::kept_elements(const head_widths& widths) const {
  return elements_of_kept(forward_, widths);
}

std::int64_t rank_share::given_elements(const head_widths& widths) const {
  return given_.empty() ? 0 : elements_of_kept(given_, widths);
}

}  // namespace velo::sched
