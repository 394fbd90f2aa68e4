// The object behind velo_tuning: the result of a search, which never changes.
#pragma once

#include "core/handle/handle_kinds.hpp"
#include "sched/tune/tune.hpp"

template <>
struct velo::core::handle_traits<velo::sched::tune::tuning> {
  using handle = velo_tuning;
  static constexpr handle_kind& kind = kinds::tuning;
};
