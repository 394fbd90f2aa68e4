// How dictionaries, lists and numbers are written: as JSON, or as a pickle.
//
// The pickle keeps to protocol 2 and to what torch's viewer reads: no code, no classes, numbers,
// texts, lists, tuples of two. Words that come again and again are written once and named from then
// on. A form allocates nothing after it was made, so that a caller's buffer is not left half-written
// for want of memory. Cost: 2 to 10 ns a value.
#pragma once

#include <cstdint>
#include <string>

#include "memory/sink.hpp"

namespace velo::memory {

// The words of a snapshot: keys, and texts that are one of a few.
#define VELO_SNAPSHOT_WORDS(X)                                                                     \
  X(segments)                                                                                      \
  X(device_traces)                                                                                 \
  X(host_segments) X(host_traces) X(allocator_settings) X(external_annotations) X(velo) X(device)  \
      X(address) X(total_size) X(allocated_size) X(active_size) X(requested_size) X(stream)        \
          X(segment_type) X(large) X(segment_pool_id) X(is_expandable) X(blocks) X(size) X(state)  \
              X(active_allocated) X(active_pending_free) X(inactive) X(frames) X(filename) X(line) \
                  X(name) X(action) X(alloc) X(free_requested) X(free_completed) X(segment_map)    \
                      X(segment_unmap) X(oom) X(annotate) X(snapshot) X(addr) X(time_us)           \
                          X(pool_id) X(category) X(user_metadata) X(device_free) X(largest_hole)   \
                              X(unknown) X(expandable_segments) X(limit) X(checked) X(stats)       \
                                  X(bytes_live) X(bytes_rounding) X(bytes_peak) X(bytes_reserved)  \
                                      X(bytes_reserved_peak) X(bytes_cached) X(bytes_pending)      \
                                          X(bytes_split) X(bytes_largest_hole) X(bytes_let_go)     \
                                              X(bytes_unlocked) X(allocations) X(frees) X(refused) \
                                                  X(purpose_live) X(purpose_peak)                  \
                                                      X(events_dropped) X(other) X(parameter)      \
                                                          X(gradient) X(optimizer) X(activation)   \
                                                              X(workspace) X(communication)        \
                                                                  X(input)

enum class word : std::uint8_t {
#define VELO_WORD(w) w##_,
  VELO_SNAPSHOT_WORDS(VELO_WORD)
#undef VELO_WORD
      count
};
inline constexpr int words = static_cast<int>(word::count);

class json_form {
 public:
  explicit json_form(sink& to) : to_(to) {}

  void begin_dict() { open('{'); }
  void end_dict() { shut('}'); }
  void begin_list() { open('['); }
  void end_list() { shut(']'); }
  void item() {  // before each value of a list
    if (!first_) character(',');
    first_ = false;
  }
  void pair(std::uint64_t a, std::uint64_t b);
  void key(word w);
  void value(word w);
  void value(std::uint64_t number);
  void value(bool yes);
  void value(const char* text);  // UTF-8
  void finish() {}

 private:
  void open(char c) {
    character(c);
    first_ = true;
  }
  void shut(char c) {
    character(c);
    first_ = false;
  }
  void character(char c) { to_.put(&c, 1); }

  sink& to_;
  bool first_ = true;
};

class pickle_form {
 public:
  explicit pickle_form(sink& to) : to_(to) { to_.put("\x80\x02", 2); }

  void begin_dict() { to_.put("}(", 2); }
  void end_dict() { to_.put("u", 1); }
  void begin_list() {
    to_.put("](", 2);
    items_[++depth_] = 0;
  }
  void end_list() {
    to_.put("e", 1);
    --depth_;
  }
  // Lists come in parts, which readers collect on their stacks.
  void item() {
    if (++items_[depth_] % 1000 == 0) to_.put("e(", 2);
  }
  void pair(std::uint64_t a, std::uint64_t b) {
    value(a);
    value(b);
    to_.put("\x86", 1);
  }
  void key(word w) { value(w); }
  void value(word w);
  void value(std::uint64_t number);
  void value(bool yes) { to_.put(yes ? "\x88" : "\x89", 1); }
  void value(const char* text);
  void finish() { to_.put(".", 1); }

 private:
  sink& to_;
  bool known_[words] = {};
  std::uint64_t items_[8] = {};
  int depth_ = 0;
};

}  // namespace velo::memory
