// Weight packs: a weight, or one for each expert, stored in the order in which the matrix kernels
// read it.
#pragma once

#include "velo/detail/call.hpp"
#include "velo/detail/function.hpp"
#include "velo/detail/owner.hpp"
#include "velo/pack.h"
#include "velo/stream.hpp"

VELO_CPP_BEGIN

namespace detail {
struct destroy_pack {
  static void call(velo_pack pack) noexcept { VELO_FN(pack_destroy)(pack); }
};
}  // namespace detail

class pack : public detail::owner<velo_pack, detail::destroy_pack> {
 public:
  // A pack of zeros for a weight of the described size.
  static outcome<pack> create(velo_context context, const velo_pack_desc& desc) {
    velo_pack handle = nullptr;
    const velo_status status = VELO_FN(pack_create)(context, &desc, &handle);
    pack made;
    made.reset(handle);
    return detail::finish<pack>(status, std::move(made));
  }

  operator velo_pack() const noexcept { return get(); }

  // Copies a weight into the pack, on the stream.
  outcome<> update(stream_ref stream, const velo_tensor& weight) {
    return detail::check(VELO_FN(pack_update)(stream.get(), get(), &weight));
  }
};

static_assert(sizeof(pack) == sizeof(void*));

VELO_CPP_END
