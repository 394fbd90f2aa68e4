// The stride of an axis is the product of the sizes before it.
#include "comm/topology/axes.hpp"

#include <algorithm>
#include <cassert>

#include "core/failure.hpp"

namespace velo::comm {

std::vector<std::string> words_of(std::string_view text) {
  std::vector<std::string> words(1);
  for (const char c : text) {
    if (c == '-') {
      words.emplace_back();
    } else {
      words.back() += c;
    }
  }
  return words;
}

std::vector<std::string> read_order(const char* order) {
  constexpr std::string_view known[] = {"tp", "cp", "ep", "dp", "pp"};
  std::string lower = order;
  for (char& c : lower)
    if (c >= 'A' && c <= 'Z') c = static_cast<char>(c - 'A' + 'a');
  std::vector<std::string> axes = words_of(lower);
  for (std::size_t i = 0; i < axes.size(); ++i) {
    if (std::find(std::begin(known), std::end(known), axes[i]) == std::end(known))
      core::fail(VELO_ERR_ARGUMENT, "desc.order", "tp, cp, ep, dp and pp with hyphens between them",
                 core::text("\"%s\" in \"%.100s\"", axes[i].substr(0, 40).c_str(), order));
    if (std::find(axes.begin(), axes.begin() + static_cast<std::ptrdiff_t>(i), axes[i]) !=
        axes.begin() + static_cast<std::ptrdiff_t>(i))
      core::fail(VELO_ERR_ARGUMENT, "desc.order", "each axis once",
                 core::text("%s twice in %.100s", axes[i].c_str(), order));
  }
  return axes;
}

void layout::add(const std::string& name, std::int64_t size) {
  digit index;
  index.stride = ranks_;
  index.extent = index.size = size;
  axes_.push_back({name, index});
  ranks_ *= size;
}

const layout::axis* layout::find(std::string_view name) const {
  for (const axis& one : axes_)
    if (one.name == name) return &one;
  return nullptr;
}

digit layout::of(std::string_view name) const {
  const axis* found = find(name);
  assert(found != nullptr);
  return found->index;
}

family layout::over(const std::vector<std::string_view>& names) const {
  family made;
  for (const axis& one : axes_) {
    const bool inside = std::find(names.begin(), names.end(), one.name) != names.end();
    (inside ? made.members : made.others).add(one.index);
  }
  return made;
}

layout layout::split(std::string_view name, std::int64_t size, const char* first,
                     const char* second) const {
  layout made;
  for (const axis& one : axes_) {
    if (one.name != name) {
      made.add(one.name, one.index.size);
    } else {
      made.add(first, size);
      made.add(second, one.index.size / size);
    }
  }
  return made;
}

}  // namespace velo::comm
