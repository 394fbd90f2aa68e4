// Buffers whose contents wait in other memory or in files while nothing uses them.
//
// Swapping takes four calls: `out` begins to copy a buffer, or all buffers of a layer; `settle`
// waits for the copy and frees the memory; `in` allocates memory and begins to copy back; `wait`
// waits for that. Work between a begin and its wait overlaps the copy; the rest of the wait counts
// as stalled. In a dry run nothing is copied, and memory is counted as in a run.
#pragma once

#include <memory>
#include <string>
#include <type_traits>

#include "examples/decoder/memory/run_memory.hpp"

namespace decoder {

class swapper {
 public:
  // The default of `smallest`: swapping a buffer below a page costs more than it saves.
  static constexpr std::int64_t page = 4096;

  // `where` is "host", or "disk" with files in `directory`. Context and memory must outlive the
  // swapper, and the swapper its buffers.
  swapper(const velo::context& context, run_memory& memory, const std::string& where,
          const std::string& directory, std::int64_t smallest = page);

  // Adds a buffer to those that a layer's `out` copies. Borrowed and recomputed buffers, and those
  // below the smallest, stay in memory.
  void add(buffer& which, std::int64_t layer);
  void out(std::int64_t layer);
  void out(buffer& which);
  void settle(buffer& which);
  void in(buffer& which);
  void wait(buffer& which);

  // Updates the contents of swapped-out buffers, all of the same size, in slices of a sixteenth:
  // function(offset, bytes, slices), where slices has an address for each buffer.
  template <class F>
  void update(const std::vector<buffer*>& all, F&& function) {
    update_slices(all, &function,
                  [](void* f, std::uint64_t offset, std::uint64_t bytes, void* const* of) {
                    (*static_cast<std::remove_reference_t<F>*>(f))(offset, bytes, of);
                  });
  }
  // The most memory that an update of `count` buffers of `bytes` each takes.
  std::int64_t update_bytes(std::int64_t count, std::int64_t bytes) const;

  // Bytes copied so far, and the seconds spent waiting.
  struct totals {
    double out, in, stalled;
  };
  totals total() const;

 private:
  friend class buffer;
  void forget(buffer& which) noexcept;
  void update_slices(const std::vector<buffer*>& all, void* user,
                     void (*function)(void*, std::uint64_t, std::uint64_t, void* const*));
  void stall(std::uint64_t object);

  static constexpr std::int64_t slices = 16, block = 256 << 10;

  std::int64_t smallest_;
  run_memory& memory_;
  velo::stream_ref stream_;
  std::int64_t granule_;  // slices are multiples of this
  velo::swap_space swap_;
  double stalled_ = 0;
};

}  // namespace decoder
