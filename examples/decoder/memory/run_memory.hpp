// The memory of a run: one pool, and buffers with a purpose that return to it when their owner
// ends.
//
// Weights, gradients and the optimizer's state live for the run; activations come and go. A step in
// its steady state takes nothing from the system but records of recomputed buffers. With a plan,
// the first step's buffers are recorded, and later steps place theirs at planned addresses.
//
// In a dry run buffers have sizes and lifetimes but no memory: a run computes its peak before the
// first step. A recomputed buffer is a region of velo_recompute with one output. Its memory returns
// to the pool when it is released, and is taken again when its operator runs again.
#pragma once

#include <cstddef>
#include <cstdint>
#include <exception>
#include <memory>
#include <type_traits>
#include <utility>
#include <vector>
#include <velo/velo.hpp>

#include "examples/decoder/memory/snapshot.hpp"
#include "examples/decoder/memory/trace.hpp"
#include "examples/decoder/settings.hpp"

namespace decoder {

class run_memory;
class swapper;

// Owns memory, borrows it, or is empty. Its contents may be swapped out, or released until they are
// recomputed.
class buffer {
 public:
  buffer() = default;
  buffer(buffer&& other) noexcept { swap(other); }
  buffer& operator=(buffer&& other) noexcept {
    buffer taken(std::move(other));
    swap(taken);
    return *this;
  }
  ~buffer();

  static buffer borrowed(void* from, std::int64_t bytes) {
    buffer made;
    made.data_ = static_cast<std::byte*>(from);
    made.bytes_ = bytes;
    return made;
  }
  // Makes an empty buffer a region from the next run_memory::make on.
  void recompute() { region_ = asked; }
  void keep() {  // undoes this before the first make
    if (region_ == asked) region_ = no_region;
  }
  // Gives a region's memory back until run_memory::make fills it again; does nothing to others.
  void release();

  bool is_borrowed() const { return data_ != nullptr && from_ == nullptr; }
  bool is_region() const { return region_ != no_region; }  // is or will be recomputed

  explicit operator bool() const { return data_ != nullptr; }
  std::byte* data() const { return data_; }
  float* floats() const { return reinterpret_cast<float*>(data_); }
  std::int64_t bytes() const { return bytes_; }

 private:
  friend class run_memory;
  friend class swapper;

  void swap(buffer& other) noexcept {
    std::swap(from_, other.from_);
    std::swap(data_, other.data_);
    std::swap(bytes_, other.bytes_);
    std::swap(purpose_, other.purpose_);
    std::swap(number_, other.number_);
    std::swap(keeper_, other.keeper_);
    std::swap(object_, other.object_);
    std::swap(region_, other.region_);
  }

  run_memory* from_ = nullptr;
  std::byte* data_ = nullptr;
  std::int64_t bytes_ = 0;
  velo_purpose purpose_ = VELO_PURPOSE_OTHER;
  std::size_t number_ = 0;  // in the dry run
  swapper* keeper_ = nullptr;
  std::uint64_t object_ = 0;  // of the swapper; 0: none

  static constexpr std::int64_t no_region = -1, asked = -2, in_dry_run = -3;
  std::int64_t region_ = no_region;  // its index, or one of these
};

// The lifetime of a buffer in a dry run, counted in allocations and frees.
struct lifetime {
  std::int64_t begin, end, bytes;
};

class run_memory {
 public:
  // Records a trace and a snapshot where the settings ask for them. Other processes can read the
  // memory of a pool of the kind VELO_POOL_SHARED.
  explicit run_memory(const memory_settings& asked = {}, velo_pool_kind kind = VELO_POOL_ORDINARY);

  // Limits the pool to so many bytes from now on.
  void set_limit(std::int64_t bytes) { pool_.set_limit(static_cast<std::uint64_t>(bytes)); }

  // Allocates a buffer for a step or less, contents undefined.
  buffer take(std::int64_t bytes, velo_purpose purpose);
  // Allocates an activation and calls fill(), which writes it. For a recomputed buffer the next
  // call after a release does both again; fill must not call make. Without fill, the fill of the
  // next buffer writes this one, too.
  template <class F>
  void make(buffer& which, std::int64_t bytes, F&& fill) {
    make(which, bytes, {&fill, [](void* f) { (*static_cast<std::remove_reference_t<F>*>(f))(); }});
  }
  void make(buffer& which, std::int64_t bytes) {
    make(which, bytes, [] {});
  }
  // Counts of recomputed buffers.
  velo_recompute_stats recomputed() const { return regions_.stats(); }

  // Allocates a buffer for the whole run, filled with zero.
  buffer keep(std::int64_t bytes, velo_purpose purpose);

  // The allocator for a context, so that the pool counts its packs and scratch, too.
  velo_allocator allocator() const { return observer_ ? observer_.allocator() : pool_.allocator(); }
  velo_pool_stats stats() const { return pool_.stats(); }
  velo_pool pool() const { return pool_.get(); }

  // Buffers have no memory between these two calls; the second returns their lifetimes.
  void begin_dry_run();
  std::vector<lifetime> end_dry_run();
  bool is_dry_run() const { return dry_run_; }

  // Allocations between these two calls are part of the plan, if there is one.
  void begin_step();
  void end_step();
  const velo::plan& plan() const { return plan_; }  // empty: there is none

  // Starts the snapshot, which records until end_records; `text` names the phase that follows.
  void begin_steps() {
    if (snapshot_) snapshot_->begin();
  }
  void note(const std::string& text) {
    if (snapshot_) snapshot_->note(text);
  }
  // Closes trace and snapshot and returns why they could not be written.
  std::vector<std::string> end_records();

 private:
  friend class buffer;
  friend class swapper;
  struct filling {
    void* user;
    void (*run)(void* user);
  };
  void make(buffer& which, std::int64_t bytes, filling fill);
  velo::recompute make_regions();
  void begin_region(buffer& which, std::int64_t bytes);
  static velo_status refill(void* user, const velo_recompute_call* call);
  void* allocate(std::int64_t bytes, velo_purpose purpose, velo_lifetime lifetime);
  void deallocate(void* memory, std::int64_t bytes) noexcept;
  buffer ask(std::int64_t bytes, velo_purpose purpose, velo_lifetime lifetime);
  void give(const buffer& owner) noexcept;

  std::unique_ptr<memory_trace> trace_;  // or nullptr
  velo::pool pool_;
  velo::plan plan_;                            // or empty
  bool planned_ = false;                       // the plan's addresses are known
  std::unique_ptr<memory_snapshot> snapshot_;  // or nullptr
  velo::adaptor observer_;                     // passes the context's allocations to the trace
  velo::recompute regions_;                    // of buffers that are recomputed
  buffer* restored_ = nullptr;                 // is being recomputed by refill_
  filling refill_ = {};
  std::exception_ptr failure_;  // of a function that regions_ called
  bool dry_run_ = false;
  std::int64_t now_ = 0;
  std::vector<lifetime> dry_run_lifetimes_;
};

// The most bytes that buffers of these lifetimes hold at one time.
std::int64_t most_alive(const std::vector<lifetime>& all);

}  // namespace decoder
