// Keeps the first fault, in numbers of the outermost group.
#include "comm/group/met_fault.hpp"

namespace velo::comm {

met_fault met_fault::part(const std::vector<int>& ranks) const {
  met_fault made = *this;
  made.ranks_ = ranks_.part(ranks);
  return made;
}

fault met_fault::outermost(const fault& of, const char* label) const noexcept {
  fault made = of;
  if (of.is_outermost) return made;
  made.is_outermost = true;
  made.culprits = ranks_.outermost(of.culprits);
  if (is_of_part() && of.kind == fault::how::ended) made.cause[0] = 0;  // it names the part's rank
  core::copy_text(made.part, sizeof made.part, label);
  return made;
}

bool met_fault::meet(const fault& of, const char* label) const noexcept {
  const std::lock_guard<std::mutex> lock(first_->lock);
  if (first_->has) return false;
  first_->what = outermost(of, label);
  return first_->has = true;
}

void met_fault::forget() const noexcept {
  const std::lock_guard<std::mutex> lock(first_->lock);
  first_->has = false;
}

bool met_fault::get(fault& of) const noexcept {
  const std::lock_guard<std::mutex> lock(first_->lock);
  if (first_->has) of = first_->what;
  return first_->has;
}

}  // namespace velo::comm
