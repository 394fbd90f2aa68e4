// Numbers of a part's ranks in the outermost group.
#include "comm/group/met_fault.hpp"

namespace velo::comm {

met_fault met_fault::part(const std::vector<int>& ranks) const {
  met_fault made = *this;
  made.is_part_ = true;
  made.ranks_.clear();
  for (const int rank : ranks) made.ranks_.push_back(is_part_ ? ranks_[core::at(rank)] : rank);
  return made;
}

fault met_fault::outermost(const fault& of, const std::string& label) const {
  fault made = of;
  if (!is_part_ || of.is_outermost) return made;
  made.is_outermost = true;
  made.culprits = rank_set();
  for (std::size_t rank = 0; rank < ranks_.size(); ++rank)
    if (of.culprits.has(static_cast<int>(rank))) made.culprits.add(ranks_[rank]);
  if (of.kind == fault::how::ended) made.cause[0] = 0;  // it names the part's rank
  core::copy_text(made.part, sizeof made.part, label.c_str());
  return made;
}

bool met_fault::meet(const fault& of, const std::string& label) const noexcept {
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
