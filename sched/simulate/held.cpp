// Stores the amounts of cells, and the changes that lie in the future.
#include "sched/simulate/held.hpp"

#include "core/index.hpp"

namespace velo::sched {
namespace {

constexpr kind_set special =
    set_of(VELO_ACTION_RECOMPUTE) | set_of(VELO_ACTION_OFFLOAD) | set_of(VELO_ACTION_RELOAD);

}  // namespace

holdings::holdings(const schedule& pipeline, const ticks& scale)
    : scale_(scale),
      units_(static_cast<std::size_t>(pipeline.sizes().units())),
      plain_(!pipeline.has(special) && scale.pending == scale.full),
      now_(static_cast<std::size_t>(pipeline.sizes().ranks)) {
  if (plain_) return;
  coming_.resize(now_.size());
  parts_.resize(static_cast<std::size_t>(pipeline.sizes().cells()));
  again_.resize(parts_.size());
  if (!pipeline.has(set_of(VELO_ACTION_RECOMPUTE))) return;
  for (std::int32_t rank = 0; rank < pipeline.sizes().ranks; ++rank) {
    for (row_reader row(pipeline, rank); !row.done(); row.pass()) {
      const action& a = row.next();
      if (a.kind == VELO_ACTION_RECOMPUTE) again_[cell(a.stage, a.microbatch)] = true;
    }
  }
}

void holdings::collect(std::int32_t rank, const action& a, const span& when) {
  const std::int64_t share = scale_.share(a.stage);
  switch (a.kind) {
    case VELO_ACTION_F:
    case VELO_ACTION_FB:
      hold(rank, a.stage, a.microbatch,
           share * (again_[cell(a.stage, a.microbatch)] ? scale_.checkpoint : scale_.full),
           when.begin);
      if (a.kind == VELO_ACTION_FB) hold(rank, a.other_stage, a.other_microbatch, 0, when.end);
      break;
    case VELO_ACTION_RECOMPUTE:
      again_[cell(a.stage, a.microbatch)] = false;
      hold(rank, a.stage, a.microbatch, share * scale_.full, when.begin);
      break;
    case VELO_ACTION_I:
      hold(rank, a.stage, a.microbatch, share * scale_.pending, when.end);
      break;
    case VELO_ACTION_W:
    case VELO_ACTION_B:
      hold(rank, a.stage, a.microbatch, 0, when.end);
      break;
    case VELO_ACTION_OFFLOAD:
    case VELO_ACTION_RELOAD: {
      const std::int64_t part = parts_[cell(a.stage, a.microbatch)];
      const bool out = a.kind == VELO_ACTION_OFFLOAD;
      plan(rank, when.begin, out ? 0 : part, out ? part : 0);
      plan(rank, when.end, out ? -part : 0, out ? 0 : -part);
      break;
    }
    default:
      break;
  }
}

void holdings::hold(std::int32_t rank, std::int32_t stage, std::int32_t unit, std::int64_t part,
                    std::int64_t time) {
  std::int64_t& held = parts_[cell(stage, unit)];
  plan(rank, time, part - held, 0);
  held = part;
}

// At equal times releases come first, so that the peak does not count memory that is freed then.
void holdings::plan(std::int32_t rank, std::int64_t time, std::int64_t device, std::int64_t host) {
  std::vector<change>& coming = coming_[core::at(rank)];
  const auto at = std::upper_bound(
      coming.begin(), coming.end(), change{time, device, host},
      [](const change& a, const change& b) {
        return a.time != b.time ? a.time < b.time : a.device + a.host < b.device + b.host;
      });
  coming.insert(at, {time, device, host});
}

}  // namespace velo::sched
