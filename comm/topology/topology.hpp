// What is behind velo_topology: every family of groups that a job of given sizes has.
//
// Made once from sizes and an order, checked as a whole, never changed: calls may overlap. It keeps
// a few dozen families of constant size (comm/topology/family.hpp), whatever the number of ranks;
// what a rank or a group is, is worked out when asked. No communication.
//
// The families and their order are those of Megatron-LM's parallel state, with what MindSpeed adds;
// groups and ranks stand in the order in which those enumerate them.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "comm/topology/axes.hpp"
#include "comm/topology/family.hpp"
#include "core/handle/handle_kinds.hpp"
#include "velo/topology.h"

namespace velo::comm {

class topology {
 public:
  explicit topology(const velo_topology_desc& desc);  // throws ARGUMENT with the field's name

  std::int64_t ranks() const { return dense_.ranks(); }
  const std::vector<family>& families() const { return families_; }

  // By its name, or by a set of axes of one layout ("tp-pp", "ep-edp"), which is put into `made`.
  // Throws ARGUMENT.
  const family& find(const char* name, family& made) const;

  void fill(velo_topology_info& info) const;
  void fill(const family& of, velo_topology_family& info) const;

  // All groups as JSON: of one family a list of lists; of all, nullptr, an object.
  std::string json(const family* one) const;
  // The ranks as squares, colored by group: a panel for one family, called `name`, or for each.
  std::string picture(const family* one, const char* name) const;

 private:
  void lay_out(const velo_topology_desc& desc);
  void require_one_pipeline(const velo_topology_desc& desc) const;
  family& add(std::string name, family made);
  // A part of the groups of a layout's axes; see family::inner and family::length.
  void add_part(std::string name, const layout& of, const std::vector<std::string_view>& axes,
                std::int64_t inner, std::int64_t length);
  void add_twin(const char* name, const char* of);
  void add_dense();
  void add_experts();
  void add_instances(std::int64_t count);
  void require_levels(const velo_topology_desc& desc) const;
  void add_levels(const std::int64_t* sizes, std::int64_t count);
  void add_hybrid();
  void add_context_parts(std::int64_t ulysses, std::int64_t window);
  void add_tensor_parts(std::int64_t x, std::int64_t y);
  void add_twins();

  layout dense_, experts_;
  std::vector<family> families_;
};

}  // namespace velo::comm

template <>
struct velo::core::handle_traits<velo::comm::topology> {
  using handle = velo_topology;
  static constexpr handle_kind& kind = kinds::topology;
};
