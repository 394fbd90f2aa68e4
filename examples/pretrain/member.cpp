// Collectives on the inline stream: done when the call returns.
#include "member.hpp"

#include <algorithm>
#include <string>
#include <utility>

#include "context.hpp"

namespace pretrain {
namespace {

memory_settings without_records(memory_settings all) {
  all.memory_trace.clear();
  all.memory_snapshot.clear();
  return all;
}

}  // namespace

member::member(const settings& values, bool leads)
    : threads_(values.run.threads),
      memory_(leads ? values.memory : without_records(values.memory)),
      context_(make_context(values.run, memory_)) {}

void member::join(velo::group group) {
  group_ = std::move(group);
  const velo_group_info about = group_.info();
  rank_ = about.rank;
  ranks_ = about.size;
  if (ranks_ == 1) return;
  link_ = velo::stream::create(context_);
  if (threads_ != 0) return;
  const int mine = std::max(1, threads_of(context_) / ranks_);
  context_.set("threads", std::to_string(mine).c_str());
}

void member::barrier() const {
  if (ranks_ > 1) group_.barrier(stream());
}

double member::sum(double mine) const {
  const velo::tensor_view one(&mine, {});
  if (ranks_ > 1) group_.all_reduce(stream(), one, one);
  return mine;
}

int member::most(int mine) const {
  const velo::tensor_view one(&mine, {});
  if (ranks_ > 1) group_.all_reduce(stream(), one, one, VELO_REDUCE_MAX);
  return mine;
}

// As integers, whose sum with zeros keeps every bit.
void member::collect(float* pieces, std::int64_t count) const {
  const velo::tensor_view all(reinterpret_cast<std::int32_t*>(pieces), {count});
  if (ranks_ > 1) group_.reduce(stream(), 0, all, all.get());
}

void member::abort() const noexcept {
  if (group_) velo_group_abort(group_);
}

}  // namespace pretrain
