// A rank's part of a parameter, and the proof that the parts of all ranks make up the whole.
#include "comm/sharding/parameter.hpp"

#include <algorithm>
#include <map>

#include "core/failure.hpp"
#include "core/index.hpp"

namespace velo::comm {

using core::concat;
using core::fail;
using core::text;

std::vector<std::int64_t> part::shape() const {
  std::vector<std::int64_t> sizes;
  for (const std::vector<segment>& dimension : segments) {
    std::int64_t size = 0;
    for (const segment& s : dimension) size += s.whole.size();
    sizes.push_back(size);
  }
  return sizes;
}

std::int64_t part::elements() const {
  std::int64_t product = copies > 0 ? 1 : 0;
  for (const std::int64_t size : shape()) product *= size;
  return product;
}

std::int64_t part::pieces() const {
  std::int64_t product = copies > 0 ? 1 : 0;
  for (const std::vector<segment>& dimension : segments)
    product *= static_cast<std::int64_t>(dimension.size());
  return product;
}

std::int64_t part::common_copies() const {
  if (elements() == 0) return 0;
  std::int64_t product = copies;
  for (const std::vector<segment>& dimension : segments) {
    for (const segment& s : dimension)
      if (s.holders != dimension.front().holders) return 0;
    product *= dimension.front().holders;
  }
  return product;
}

piece part::at(std::int64_t index) const {
  piece made;
  made.whole.resize(segments.size());
  made.at.resize(segments.size());
  made.copies = copies;
  for (std::size_t d = segments.size(); d-- > 0;) {
    const auto count = static_cast<std::int64_t>(segments[d].size());
    const segment& s = segments[d][core::at(index % count)];
    made.whole[d] = s.whole;
    made.at[d] = s.at;
    made.copies *= s.holders;
    index /= count;
  }
  return made;
}

std::int64_t parameter::elements() const {
  std::int64_t product = 1;
  for (const std::int64_t size : shape_) product *= size;
  return product;
}

bool parameter::is_held_by(std::int64_t rank) const {
  return stages_.empty() ||
         std::find(stages_.begin(), stages_.end(), stage_.find(rank).position) != stages_.end();
}

part parameter::part_of(std::int64_t rank) const {
  part made;
  const bool held = is_held_by(rank);
  made.copies = held ? copies_ : 0;
  for (std::size_t d = 0; d < shape_.size(); ++d) {
    std::vector<segment> all;
    if (held && cut_of_[d] >= 0) {
      const cut& by = cuts_[core::at(cut_of_[d])];
      all = by.elements.segments(by.places.find(rank).position);
    } else if (held && shape_[d] > 0) {
      all.push_back({{0, shape_[d]}, 0, 1});
    }
    made.segments.push_back(std::move(all));
  }
  return made;
}

bool parameter::holds(std::int64_t rank, const std::vector<span>& box) const {
  const part own = part_of(rank);
  if (own.copies == 0) return false;
  for (std::size_t d = 0; d < box.size(); ++d) {
    const std::vector<segment>& all = own.segments[d];
    if (std::none_of(all.begin(), all.end(), [&](const segment& s) {
          return s.whole.begin <= box[d].begin && box[d].end <= s.whole.end;
        }))
      return false;
  }
  return true;
}

std::vector<const char*> parameter::sums(const part& own) const {
  std::vector<const char*> names;
  if (own.elements() == 0 || !gradient_) return names;
  for (const std::string& name : families_) names.push_back(name.c_str());
  const bool shared = std::any_of(own.segments.begin(), own.segments.end(), [](const auto& all) {
    return std::any_of(all.begin(), all.end(), [](const segment& s) { return s.holders > 1; });
  });
  if (shared) names.push_back("copies");
  for (const std::string& name : stage_families_) names.push_back(name.c_str());
  return names;
}

void parameter::prove(std::int64_t ranks) const {
  for (std::size_t d = 0; d < shape_.size(); ++d) {
    if (cut_of_[d] < 0) continue;
    const cut& by = cuts_[core::at(cut_of_[d])];
    const text wrong = by.elements.prove(shape_[d]);
    if (wrong.buffer[0] != 0)
      fail(VELO_ERR_ARGUMENT, text("%s", name_.c_str()),
           concat("each element of dimension ", d, " by one index of ", by.axis), wrong);
  }
  prove_copies(ranks);
}

std::string parameter::likeness() const {
  std::string text = experts_ ? "experts" : "dense";
  const auto add = [&](const std::vector<std::int64_t>& numbers) {
    for (const std::int64_t n : numbers) text += ' ', text += core::number(n).buffer;
    text += ';';
  };
  add(shape_);
  add(stages_);
  for (std::size_t d = 0; d < shape_.size(); ++d) {
    if (cut_of_[d] < 0) continue;
    const cut& by = cuts_[core::at(cut_of_[d])];
    text += by.axis;
    add({static_cast<std::int64_t>(d)});
    text += by.elements.text();
    text += ';';
  }
  return text;
}

// Counts the ranks that hold each piece.
void parameter::prove_copies(std::int64_t ranks) const {
  std::map<std::vector<std::int64_t>, std::int64_t> left;  // by the piece's begin
  for (std::int64_t rank = 0; rank < ranks; ++rank) {
    if (!is_held_by(rank)) continue;
    const part own = part_of(rank);
    for (std::int64_t i = 0; i < own.pieces(); ++i) {
      const piece one = own.at(i);
      std::vector<std::int64_t> begin;
      for (const span& s : one.whole) begin.push_back(s.begin);
      --left.emplace(std::move(begin), one.copies).first->second;
    }
  }
  for (const auto& [begin, missing] : left) {
    if (missing == 0) continue;
    text at;
    for (const std::int64_t i : begin) at = concat(at, at.buffer[0] == 0 ? "" : ", ", i);
    fail(VELO_ERR_ARGUMENT, text("%s", name_.c_str()),
         concat("as many ranks as copies of the piece at [", at, "]"),
         concat(missing < 0 ? -missing : missing, missing < 0 ? " more" : " fewer"));
  }
}

}  // namespace velo::comm
