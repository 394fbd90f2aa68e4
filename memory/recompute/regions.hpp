// The regions behind velo_recompute, whose outputs are released and restored.
//
// A region takes inputs from earlier regions. A walk back finds those that must be restored first;
// they are restored in the order in which they were declared. A region's outputs are present,
// released, or being restored; only present outputs have memory. A region that has ended stays,
// hidden, until all regions that take from it have ended: its outputs are restored for those and
// released again. A host's function may call back in while it runs; outputs that a restore in
// progress needs are held, and refuse to be released or ended.
//
// Regions are released and ended without allocating, so that a host can do both in a destructor.
//
// Not for two threads at once. Not hot: a region costs a map entry, a call a walk over the regions
// that it restores.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "core/handle/handle.hpp"
#include "core/handle/handle_kinds.hpp"
#include "velo/recompute.h"

namespace velo::memory {

class regions {
 public:
  explicit regions(const velo_allocator& from) : from_(from) {}
  ~regions();
  regions(const regions&) = delete;
  regions& operator=(const regions&) = delete;

  // Declares a region, allocates its outputs and returns its index. region: its struct is checked.
  // If it throws NULL, ARGUMENT, STATE, MEMORY or FOREIGN, nothing is declared.
  std::int64_t add(const velo_recompute_region& region, velo_stream stream);

  void release(std::int64_t index, velo_stream stream);
  void restore(std::int64_t index, velo_stream stream);  // FOREIGN: the host's function
  void end(std::int64_t index, velo_stream stream);
  void* output(std::int64_t index, std::int64_t which) const;
  void fill(velo_recompute_stats& stats) const;

  // Throws STATE while a host's function runs.
  void require_idle() const;
  void require_not_asking() const;  // throws STATE in an allocator function called from here

 private:
  enum class state { present, released, restoring };

  struct block {
    void* memory;
    std::uint64_t bytes;
  };

  struct region {
    std::int64_t index;
    std::string name;
    velo_recompute_fn restore;
    void* user;
    std::int64_t parent;
    std::uint64_t seed, offset;
    std::vector<velo_recompute_input> inputs;
    std::vector<block> outputs;
    std::vector<std::int64_t> nested;  // regions declared inside it; some may be gone
    state now = state::present;
    bool ended = false;
    int takers = 0;          // inputs of existing regions that take from it
    int holds = 0;           // restores in progress that need it
    region* next = nullptr;  // in the list of regions to forget
  };

  // Holds regions until a restore is done.
  class hold;

  region& live(std::int64_t index, const char* argument = "region") const;
  void check_inputs(const velo_recompute_region& given) const;
  const std::vector<std::int64_t>& inside(std::int64_t index);
  std::vector<std::int64_t> needed_for(std::int64_t index) const;
  void require_not_held(const std::vector<std::int64_t>& all) const;
  void restore_one(std::int64_t index, region& r, velo_stream stream);
  void call(std::int64_t index, const region& r, velo_stream stream);
  void allocate(std::vector<block>& outputs, velo_stream stream);
  void let_go(std::vector<block>& outputs, velo_stream stream) noexcept;
  void forget(region* ended) noexcept;

  const velo_allocator from_;
  std::map<std::int64_t, std::unique_ptr<region>> all_;  // by index, also those that have ended
  std::vector<std::int64_t> inside_;                     // what inside() found; room for all_
  std::int64_t next_ = 0;
  int restoring_ = 0;
  int asks_ = 0;  // calls of the allocator under way
  velo_recompute_stats counted_{};
};

}  // namespace velo::memory

template <>
struct velo::core::handle_traits<velo::memory::regions> {
  using handle = velo_recompute;
  static constexpr handle_kind& kind = kinds::recompute;
};
