// Shardings: where each element of each parameter lies among the ranks of a job.
#pragma once

#include "velo/detail/call.hpp"
#include "velo/detail/function.hpp"
#include "velo/detail/owner.hpp"
#include "velo/sharding.h"

VELO_CPP_BEGIN

namespace detail {
struct destroy_sharding {
  static void call(velo_sharding sharding) noexcept { VELO_FN(sharding_destroy)(sharding); }
};
}  // namespace detail

// Owns a sharding.
class sharding : public detail::owner<velo_sharding, detail::destroy_sharding> {
 public:
  // The topology is copied.
  static outcome<sharding> create(velo_topology topology) {
    velo_sharding handle = nullptr;
    const velo_status status = VELO_FN(sharding_create)(topology, &handle);
    sharding made;
    made.reset(handle);
    return detail::finish<sharding>(status, std::move(made));
  }

  operator velo_sharding() const noexcept { return get(); }

  // Adds a parameter, initialized with VELO_SHARDING_PARAMETER_INIT; returns its index.
  outcome<int64_t> add(const velo_sharding_parameter& parameter) {
    int64_t index = 0;
    const velo_status status = VELO_FN(sharding_add)(get(), &parameter, &index);
    return detail::finish<int64_t>(status, index);
  }

  // The number of ranks and of parameters.
  outcome<velo_sharding_info> info() const {
    velo_sharding_info info = {};
    info.struct_size = sizeof info;
    const velo_status status = VELO_FN(sharding_get_info)(get(), &info);
    return detail::finish<velo_sharding_info>(status, info);
  }

  // The name of a parameter; valid as long as the sharding.
  outcome<const char*> parameter_name(int64_t parameter) const {
    const char* name = nullptr;
    const velo_status status = VELO_FN(sharding_parameter_name)(get(), parameter, &name);
    return detail::finish<const char*>(status, name);
  }

  // A rank's part of a parameter.
  outcome<velo_sharding_part> part(int64_t parameter, int64_t rank) const {
    velo_sharding_part part = {};
    part.struct_size = sizeof part;
    const velo_status status = VELO_FN(sharding_get_part)(get(), parameter, rank, &part);
    return detail::finish<velo_sharding_part>(status, part);
  }

  // A box of a rank's part, by its index below part.pieces.
  outcome<velo_sharding_piece> piece(int64_t parameter, int64_t rank, int64_t index) const {
    velo_sharding_piece piece = {};
    piece.struct_size = sizeof piece;
    const velo_status status = VELO_FN(sharding_get_piece)(get(), parameter, rank, index, &piece);
    return detail::finish<velo_sharding_piece>(status, piece);
  }

  // A group that the gradient is summed over, by its index below part.sums; valid as long as the
  // sharding.
  outcome<const char*> sum(int64_t parameter, int64_t rank, int64_t index) const {
    const char* family = nullptr;
    const velo_status status = VELO_FN(sharding_get_sum)(get(), parameter, rank, index, &family);
    return detail::finish<const char*>(status, family);
  }

  // Fills `ranks`, with room for `capacity`, with the holders of a piece; returns their number.
  outcome<int64_t> holders(int64_t parameter, int64_t rank, int64_t index, int32_t* ranks,
                           int64_t capacity) const {
    int64_t count = 0;
    const velo_status status =
        VELO_FN(sharding_get_holders)(get(), parameter, rank, index, ranks, capacity, &count);
    return detail::finish<int64_t>(status, count);
  }

  // Proves that the parts make up the parameters.
  outcome<> check() const { return detail::check(VELO_FN(sharding_check)(get())); }

  // Fills `moves`, with room for `capacity`, with the boxes that a rank of `to` takes from the
  // ranks of this sharding; returns their number.
  outcome<int64_t> transfer(velo_sharding to, int64_t parameter, int64_t rank,
                            velo_sharding_content content, velo_sharding_move* moves,
                            int64_t capacity) const {
    int64_t count = 0;
    const velo_status status =
        VELO_FN(sharding_transfer)(get(), to, parameter, rank, content, moves, capacity, &count);
    return detail::finish<int64_t>(status, count);
  }

  // The parts of a rank, or of all with -1, as a text of the caller's string type.
  template <class String>
  outcome<String> write(int64_t rank, velo_sharding_format format) const {
    return detail::text<String>([&](char* buffer, uint64_t capacity, uint64_t* needed) {
      return VELO_FN(sharding_write)(get(), rank, format, buffer, capacity, needed);
    });
  }
};

static_assert(sizeof(sharding) == sizeof(void*));

VELO_CPP_END
