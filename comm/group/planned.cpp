// Starting a planned collective, and what it tells of itself.
#include "comm/group/planned.hpp"

#include "comm/group/group.hpp"
#include "core/context.hpp"
#include "core/text/json.hpp"

namespace velo::comm {

planned::planned(velo_group home, core::context& owner, operation what)
    : home_(home),
      owner_(owner),
      all_(std::make_shared<planned_operation>(std::move(what), owner.memory())) {}

void planned::start(const core::inside_scope& here, core::stream& on) const {
  core::use<group>(here, home_, "group").start(here, on, all_);
}

std::string planned::explain() const {
  return core::resolve<group>(home_, "group").explain(all_->what);
}

std::string planned::describe() const {
  const operation& what = all_->what;
  std::string all = "{\"operation\":";
  core::append_json_string(all, what.terms.text().c_str());
  all += ",\"bytes\":" + std::to_string(what.bytes());
  all += ",\"started\":" + std::to_string(all_->started.load(std::memory_order_relaxed));
  return all + "}";
}

}  // namespace velo::comm
