// The memory of a run: one pool, and buffers that say what they are for and go back to it when
// their owner ends.
//
// Weights, gradients and the optimizer's state stay; activations come and go at their lifetimes,
// and a step in its steady state asks the system for nothing, but for the records of what is
// recomputed. With a plan, the first step's buffers are recorded, and those of later steps lie at
// planned addresses. In a rehearsal no memory is given out: buffers have sizes and lifetimes alone,
// which is how a run knows what a step will need before the first one.
//
// A buffer that is recomputed is a region of velo_recompute with one output. Its memory goes back
// to the pool when it is released, and is taken anew when its operator runs again.
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

// Owns memory, or none, or has somebody else's; what it held may be with a swapper meanwhile, or be
// released until it is recomputed.
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
  // An empty buffer becomes a region as soon as run_memory::make fills it.
  void recompute() { region_ = asked; }
  // Gives a region's memory back until run_memory::make fills it again; other buffers stay.
  void release();

  bool is_borrowed() const { return data_ != nullptr && from_ == nullptr; }

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
  std::size_t number_ = 0;  // in the rehearsal
  swapper* keeper_ = nullptr;
  std::uint64_t object_ = 0;  // the keeper's; 0: none

  static constexpr std::int64_t no_region = -1, asked = -2, rehearsed = -3;
  std::int64_t region_ = no_region;  // its index, or one of these
};

// When a buffer of a rehearsal was taken and given back, counted in takes and gives.
struct lifetime {
  std::int64_t begin, end, bytes;
};

class run_memory {
 public:
  // With the trace and the snapshot that are asked for.
  explicit run_memory(const memory_settings& asked = {});

  // The most bytes that it may hold from now on.
  void set_limit(std::int64_t bytes) { pool_.set_limit(static_cast<std::uint64_t>(bytes)); }

  // For a step or less, contents undefined.
  buffer take(std::int64_t bytes, velo_purpose purpose);
  // Takes memory for an activation and calls fill(), which writes it. If the buffer is recomputed,
  // the next call after a release does both again; fill must not call make. Without fill, that of
  // the next buffer writes this one, too.
  template <class F>
  void make(buffer& which, std::int64_t bytes, F&& fill) {
    make(which, bytes, {&fill, [](void* f) { (*static_cast<std::remove_reference_t<F>*>(f))(); }});
  }
  void make(buffer& which, std::int64_t bytes) {
    make(which, bytes, [] {});
  }
  // Counts of the buffers that are recomputed.
  velo_recompute_stats recomputed() const { return regions_.stats(); }

  // For the whole run, filled with zero.
  buffer keep(std::int64_t bytes, velo_purpose purpose);

  // What a context is to be made with, so that packs and operators' scratch are counted, too.
  velo_allocator allocator() const { return observer_ ? observer_.allocator() : pool_.allocator(); }
  velo_pool_stats stats() const { return pool_.stats(); }

  // From here to the end of the rehearsal buffers have no memory; then their lifetimes.
  void begin_rehearsal();
  std::vector<lifetime> end_rehearsal();
  bool rehearses() const { return rehearsing_; }

  // From here to the end of the step what is taken is part of the plan, if there is one.
  void begin_step();
  void end_step();
  const velo::plan& plan() const { return plan_; }  // empty: there is none

  // The snapshot is of what happens from now on until end_records; `text` says what follows.
  void begin_steps() {
    if (snapshot_) snapshot_->begin();
  }
  void note(const std::string& text) {
    if (snapshot_) snapshot_->note(text);
  }
  // What went wrong with trace and snapshot, whose files are closed from now on.
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
  bool planned_ = false;                       // its addresses are known
  std::unique_ptr<memory_snapshot> snapshot_;  // or nullptr
  velo::adaptor observer_;                     // tells the trace of what the context allocates
  velo::recompute regions_;                    // of buffers that are recomputed
  buffer* restored_ = nullptr;                 // is being recomputed by refill_
  filling refill_ = {};
  std::exception_ptr failure_;  // in a function that regions_ called; says more than its error
  bool rehearsing_ = false;
  std::int64_t now_ = 0;
  std::vector<lifetime> rehearsed_;
};

// The most bytes that buffers of these lifetimes hold at a time.
std::int64_t most_alive(const std::vector<lifetime>& all);

}  // namespace decoder
