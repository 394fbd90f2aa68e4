// The object behind velo_schedule.
//
// A schedule's value never changes: reading a text replaces it, so a timeline keeps the value from
// which it was made. A call that fails leaves both unchanged. Two threads must not use one object
// at once.
#pragma once

#include <memory>
#include <utility>
#include <vector>

#include "core/handle/handle_kinds.hpp"
#include "sched/check/check.hpp"
#include "sched/schedule/schedule.hpp"

namespace velo::sched {

class schedule_object {
 public:
  explicit schedule_object(schedule value)
      : value_(std::make_shared<const schedule>(std::move(value))) {}

  const schedule& value() const { return *value_; }
  const std::shared_ptr<const schedule>& shared() const { return value_; }
  void put(schedule value) {
    value_ = std::make_shared<const schedule>(std::move(value));
    checked_ = false;
    found_.clear();
  }

  const std::vector<violation>& check() {
    found_ = sched::check(*value_);
    checked_ = true;
    return found_;
  }
  bool checked() const { return checked_; }
  const std::vector<violation>& found() const { return found_; }

 private:
  std::shared_ptr<const schedule> value_;
  std::vector<violation> found_;
  bool checked_ = false;
};

}  // namespace velo::sched

template <>
struct velo::core::handle_traits<velo::sched::schedule_object> {
  using handle = velo_schedule;
  static constexpr handle_kind& kind = kinds::schedule;
};
