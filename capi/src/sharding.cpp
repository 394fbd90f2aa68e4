// Entries of velo/sharding.h.
#include "velo/sharding.h"

#include <algorithm>

#include "capi/src/boundary.hpp"
#include "capi/src/destroy.hpp"
#include "comm/sharding/sharding.hpp"
#include "core/handle/guard.hpp"
#include "core/index.hpp"

using namespace velo;
using core::concat;
using core::fail;
using core::number;

namespace {

// The structs of ABI 1.0; later ones are longer.
constexpr std::uint32_t parameter_size = 80;
constexpr std::uint32_t info_size = 24;
constexpr std::uint32_t part_size = 120;
constexpr std::uint32_t piece_size = 208;
static_assert(sizeof(velo_sharding_parameter) >= parameter_size &&
              sizeof(velo_sharding_info) >= info_size && sizeof(velo_sharding_part) >= part_size &&
              sizeof(velo_sharding_piece) >= piece_size);

comm::sharding& sharding_of(velo_sharding handle, const char* argument = "sharding") {
  return core::use<comm::sharding>(handle, argument);
}

void require_rank(const comm::sharding& of, std::int64_t rank) {
  if (rank < 0 || rank >= of.job().ranks())
    fail(VELO_ERR_ARGUMENT, "rank", concat("0 to ", of.job().ranks() - 1), number(rank));
}

void require_index(std::int64_t index, std::int64_t count, const char* none) {
  if (index >= 0 && index < count) return;
  fail(VELO_ERR_ARGUMENT, "index", count == 0 ? core::text("%s", none) : concat("0 to ", count - 1),
       number(index));
}

// A piece of a rank's part, all of whose numbers are checked.
comm::piece piece_at(const comm::sharding& of, std::int64_t parameter, std::int64_t rank,
                     std::int64_t index) {
  const comm::parameter& found = of.at(parameter);
  require_rank(of, rank);
  const comm::part own = found.part_of(rank);
  require_index(index, own.pieces(), "none: the rank holds nothing of the parameter");
  return own.at(index);
}

void copy_box(const comm::box& from, std::int64_t* begin, std::int64_t* end) {
  for (std::size_t d = 0; d < from.size(); ++d) begin[d] = from[d].begin, end[d] = from[d].end;
}

}  // namespace

extern "C" {

velo_status velo_sharding_create(velo_topology topology, velo_sharding* sharding) {
  return core::guard("velo_sharding_create", [&] {
    const auto& job = core::use<comm::topology>(topology, "topology");
    capi::required(sharding, "sharding");
    *sharding = core::handle_of(core::make_object<comm::sharding>(nullptr, job));
  });
}

void velo_sharding_destroy(velo_sharding sharding) {
  capi::destroy<comm::sharding>("velo_sharding_destroy", sharding, "sharding");
}

velo_status velo_sharding_add(velo_sharding sharding, const velo_sharding_parameter* parameter,
                              int64_t* index) {
  return core::guard("velo_sharding_add", [&] {
    comm::sharding& to = sharding_of(sharding);
    const velo_sharding_parameter defaults = VELO_SHARDING_PARAMETER_INIT;
    const std::int64_t made =
        to.add(capi::read_struct(parameter, parameter_size, "parameter", defaults));
    if (index != nullptr) *index = made;
  });
}

velo_status velo_sharding_get_info(velo_sharding sharding, velo_sharding_info* info) {
  return core::guard("velo_sharding_get_info", [&] {
    const comm::sharding& of = sharding_of(sharding);
    velo_sharding_info found{};
    found.ranks = of.job().ranks();
    found.parameters = of.size();
    capi::write_struct(info, info_size, "info", found);
  });
}

velo_status velo_sharding_parameter_name(velo_sharding sharding, int64_t parameter,
                                         const char** name) {
  return core::guard("velo_sharding_parameter_name", [&] {
    const comm::sharding& of = sharding_of(sharding);
    capi::required(name, "name");
    *name = of.at(parameter).name().c_str();
  });
}

velo_status velo_sharding_get_part(velo_sharding sharding, int64_t parameter, int64_t rank,
                                   velo_sharding_part* part) {
  return core::guard("velo_sharding_get_part", [&] {
    const comm::sharding& of = sharding_of(sharding);
    of.at(parameter);
    require_rank(of, rank);
    velo_sharding_part found{};
    of.fill(parameter, rank, found);
    capi::write_struct(part, part_size, "part", found);
  });
}

velo_status velo_sharding_get_piece(velo_sharding sharding, int64_t parameter, int64_t rank,
                                    int64_t index, velo_sharding_piece* piece) {
  return core::guard("velo_sharding_get_piece", [&] {
    const comm::piece one = piece_at(sharding_of(sharding), parameter, rank, index);
    velo_sharding_piece found{};
    copy_box(one.whole, found.begin, found.end);
    std::copy(one.at.begin(), one.at.end(), found.at);
    found.copies = one.copies;
    capi::write_struct(piece, piece_size, "piece", found);
  });
}

velo_status velo_sharding_get_sum(velo_sharding sharding, int64_t parameter, int64_t rank,
                                  int64_t index, const char** family) {
  return core::guard("velo_sharding_get_sum", [&] {
    const comm::sharding& of = sharding_of(sharding);
    capi::required(family, "family");
    const comm::parameter& found = of.at(parameter);
    require_rank(of, rank);
    const std::vector<const char*> sums = found.sums(found.part_of(rank));
    require_index(index, static_cast<std::int64_t>(sums.size()), "none: the gradient is no sum");
    *family = sums[core::at(index)];
  });
}

velo_status velo_sharding_get_holders(velo_sharding sharding, int64_t parameter, int64_t rank,
                                      int64_t index, int32_t* ranks, int64_t capacity,
                                      int64_t* count) {
  return core::guard("velo_sharding_get_holders", [&] {
    const comm::sharding& of = sharding_of(sharding);
    const comm::box box = piece_at(of, parameter, rank, index).whole;
    capi::require_room(ranks, capacity, "ranks", "ranks");
    std::int64_t found = 0;
    for (std::int64_t r = 0; r < of.job().ranks(); ++r) {
      if (!of.at(parameter).holds(r, box)) continue;
      if (found < capacity) ranks[found] = static_cast<std::int32_t>(r);
      ++found;
    }
    if (count != nullptr) *count = found;
  });
}

velo_status velo_sharding_check(velo_sharding sharding) {
  return core::guard("velo_sharding_check", [&] { sharding_of(sharding).check(); });
}

velo_status velo_sharding_transfer(velo_sharding from, velo_sharding to, int64_t parameter,
                                   int64_t rank, velo_sharding_content content,
                                   velo_sharding_move* moves, int64_t capacity, int64_t* count) {
  return core::guard("velo_sharding_transfer", [&] {
    const comm::sharding& before = sharding_of(from, "from");
    const comm::sharding& after = sharding_of(to, "to");
    after.at(parameter);
    require_rank(after, rank);
    if (content != VELO_SHARDING_PARTS && content != VELO_SHARDING_RANGES)
      fail(VELO_ERR_ARGUMENT, "content", "VELO_SHARDING_PARTS or VELO_SHARDING_RANGES",
           number(content));
    capi::require_room(moves, capacity, "moves", "moves");
    const std::vector<comm::sharding_move> all = before.transfer(after, parameter, rank, content);
    const auto found = static_cast<std::int64_t>(all.size());
    for (std::int64_t i = 0; i < std::min(found, capacity); ++i) {
      const comm::sharding_move& one = all[core::at(i)];
      velo_sharding_move made{};
      made.source = one.source;
      copy_box(one.whole, made.begin, made.end);
      std::copy(one.source_at.begin(), one.source_at.end(), made.source_at);
      std::copy(one.at.begin(), one.at.end(), made.at);
      moves[i] = made;
    }
    if (count != nullptr) *count = found;
  });
}

velo_status velo_sharding_write(velo_sharding sharding, int64_t rank, velo_sharding_format format,
                                char* buffer, uint64_t capacity, uint64_t* needed) {
  return core::guard("velo_sharding_write", [&] {
    const comm::sharding& of = sharding_of(sharding);
    if (rank != -1) require_rank(of, rank);
    if (format != VELO_SHARDING_JSON && format != VELO_SHARDING_SVG)
      fail(VELO_ERR_ARGUMENT, "format", "VELO_SHARDING_JSON or VELO_SHARDING_SVG", number(format));
    const std::string text = format == VELO_SHARDING_JSON ? of.json(rank) : of.picture(rank);
    capi::write_text(text.c_str(), buffer, capacity, needed);
  });
}
}
