// The object behind velo_topology: all families of groups of a job with given sizes.
//
// It is made once from sizes and an order, checked as a whole and never changed, so calls may
// overlap. It holds a few dozen families of constant size (family.hpp), whatever the number of
// ranks; ranks and groups are computed on demand. It communicates nothing.
//
// The families, their order and the numbering of groups and ranks are those of Megatron-LM's
// parallel state, with MindSpeed's additions.
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

  // Finds a family by its name, or by a set of axes of one layout ("tp-pp", "ep-edp"). In the
  // second case the result is stored in `combined`. Throws ARGUMENT.
  const family& find(const char* name, family& combined) const;

  void fill(velo_topology_info& info) const;
  void fill(const family& of, velo_topology_family& info) const;

  // The groups as JSON: a list of lists for one family, an object of all families for nullptr.
  std::string json(const family* one) const;
  // The ranks as squares, colored by group: one panel for the family `one`, called `name`, or one
  // for each family.
  std::string picture(const family* one, const char* name) const;

 private:
  void lay_out(const velo_topology_desc& desc);
  void require_one_pipeline(const velo_topology_desc& desc) const;
  family& add(std::string name, family made);
  // Adds a family whose groups are parts of the groups over some axes; see family::inner and
  // family::length.
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
