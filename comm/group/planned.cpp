// Starting, explaining and describing a planned collective.
#include "comm/group/planned.hpp"

#include "comm/group/group.hpp"
#include "core/context.hpp"
#include "core/text/json_writer.hpp"

namespace velo::comm {

planned::planned(velo_group home, core::context& owner, planned_call what)
    : home_(home),
      owner_(owner),
      all_(std::make_shared<planned_operation>(std::move(what), owner.memory())) {}

void planned::start(const core::inside_scope& here, core::stream& on) const {
  core::use<group>(here, home_, "group").start(here, on, all_);
}

std::string planned::explain() const {
  const group& home = core::resolve<group>(home_, "group");
  return std::visit([&](const auto& what) { return home.explain(what); }, all_->what);
}

std::string planned::describe() const {
  const request& what = all_->about;
  std::string all;
  core::json_writer to(all);
  to.object().member("operation", what.terms.text()).member("bytes", what.bytes);
  to.member("started", all_->started.load(std::memory_order_relaxed)).end();
  return all;
}

}  // namespace velo::comm
