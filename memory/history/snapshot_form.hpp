// How dictionaries, lists and numbers are written: as JSON, or as a pickle.
//
// The pickle keeps to protocol 2 and to what torch's viewer reads: no code, no classes, but
// numbers, texts, lists and tuples of two. Repeated words are written once and referred to
// from then on. A form writes into a sink's buffer, where reserve() makes room for everything up to
// the next reserve(); it allocates nothing after its construction, so that a lack of memory never
// leaves a caller's buffer half-written. Cost: 1 to 10 ns a value.
#pragma once

#include <charconv>
#include <cstdint>
#include <cstring>

#include "core/text/sink.hpp"

namespace velo::memory {

// The words of a snapshot: keys, and texts that are one of a few.
// Not formatted: clang-format indents these rows further on each run.
// clang-format off
#define VELO_SNAPSHOT_WORDS(X) \
  X(segments) X(device_traces) X(host_segments) X(host_traces) X(allocator_settings) \
  X(external_annotations) X(velo) X(device) X(address) X(total_size) X(allocated_size) \
  X(active_size) X(requested_size) X(stream) X(segment_type) X(large) X(segment_pool_id) \
  X(is_expandable) X(blocks) X(size) X(state) X(active_allocated) X(active_pending_free) \
  X(inactive) X(frames) X(filename) X(line) X(name) X(action) X(alloc) X(free_requested) \
  X(free_completed) X(segment_map) X(segment_unmap) X(oom) X(annotate) X(snapshot) X(addr) \
  X(time_us) X(pool_id) X(category) X(user_metadata) X(device_free) X(largest_hole) X(unknown) \
  X(expandable_segments) X(limit) X(checked) X(stats) X(bytes_live) X(bytes_rounding) \
  X(bytes_peak) X(bytes_reserved) X(bytes_reserved_peak) X(bytes_cached) X(bytes_pending) \
  X(bytes_split) X(bytes_largest_hole) X(bytes_let_go) X(bytes_unlocked) X(allocations) \
  X(frees) X(refused) X(purpose_live) X(purpose_peak) X(events_dropped) X(other) X(parameter) \
  X(gradient) X(optimizer) X(activation) X(workspace) X(communication) X(input)
// clang-format on

enum class word : std::uint8_t {
#define VELO_WORD(w) w##_,
  VELO_SNAPSHOT_WORDS(VELO_WORD)
#undef VELO_WORD
      count
};
inline constexpr int words = static_cast<int>(word::count);

struct spelling {
  const char* quoted;  // as a key of JSON: "name":
  std::size_t length;  // of the word alone
};
inline constexpr spelling spellings[] = {
#define VELO_WORD(w) {"\"" #w "\":", sizeof #w - 1},
    VELO_SNAPSHOT_WORDS(VELO_WORD)
#undef VELO_WORD
};
constexpr const spelling& spelled(word w) {
  return spellings[static_cast<int>(w)];
}

class form {
 public:
  explicit form(core::sink& to) : to_(to), at_(to.reserve()) {}

  // Makes room for up to sink::room more bytes.
  void reserve() {
    to_.took(at_);
    at_ = to_.reserve();
  }

  // The text written since `from`, a result of at(), may be written again: it is the same each
  // time, unless a word was introduced in it.
  const char* at() const { return at_; }
  void repeat(const char* bytes, std::size_t count) { put(bytes, count); }

 protected:
  void put(const char* bytes, std::size_t count) {
    std::memcpy(at_, bytes, count);
    at_ += count;
  }
  void put(char c) { *at_++ = c; }

  core::sink& to_;
  char* at_;
};

class json_form : public form {
 public:
  using form::form;

  void begin_dict() { open('{'); }
  void end_dict() { shut('}'); }
  void begin_list() { open('['); }
  void end_list() { shut(']'); }
  void item() {  // before each value of a list
    if (!first_) put(',');
    first_ = false;
  }
  template <word w>
  void key() {
    item();
    put(spelled(w).quoted, spelled(w).length + 3);
  }
  void key(word w) {
    item();
    put(spelled(w).quoted, spelled(w).length + 3);
  }
  void value(word w) { put(spelled(w).quoted, spelled(w).length + 2); }
  void value(std::uint64_t number) { at_ = std::to_chars(at_, at_ + 20, number).ptr; }
  void value(bool yes) { yes ? put("true", 4) : put("false", 5); }
  void value(const char* text);  // UTF-8
  void pair(std::uint64_t a, std::uint64_t b) {
    put('[');
    value(a);
    put(',');
    value(b);
    put(']');
  }
  static constexpr int introduced() { return 0; }
  void finish() { to_.took(at_); }

 private:
  void open(char c) {
    put(c);
    first_ = true;
  }
  void shut(char c) {
    put(c);
    first_ = false;
  }

  bool first_ = true;
};

class pickle_form : public form {
 public:
  explicit pickle_form(core::sink& to) : form(to) { put("\x80\x02", 2); }

  void begin_dict() { put("}(", 2); }
  void end_dict() { put('u'); }
  void begin_list() {
    put("](", 2);
    items_[++depth_] = 0;
  }
  void end_list() {
    put('e');
    --depth_;
  }
  // Lists come in parts, which readers collect on their stacks.
  void item() {
    if (++items_[depth_] % 1000 == 0) put("e(", 2);
  }
  template <word w>
  void key() {
    value(w);
  }
  void key(word w) { value(w); }
  void value(word w) {
    const int number = static_cast<int>(w);
    if (__builtin_expect(!known_[number], 0)) return introduce(w);
    put('h');
    put(static_cast<char>(number));
  }
  void value(std::uint64_t number);
  void value(bool yes) { put(yes ? '\x88' : '\x89'); }
  void value(const char* text);
  void pair(std::uint64_t a, std::uint64_t b) {
    value(a);
    value(b);
    put('\x86');
  }
  int introduced() const { return introduced_; }
  void finish() {
    put('.');
    to_.took(at_);
  }

 private:
  void introduce(word w);
  void put_number(std::uint64_t number, int bytes) {  // the lowest first
    std::memcpy(at_, &number, sizeof number);
    at_ += bytes;
  }
  void put_text(const char* bytes, std::size_t count) {
    put('X');
    put_number(count, 4);
    put(bytes, count);
  }

  bool known_[words] = {};
  std::uint64_t items_[8] = {};
  int depth_ = 0;
  int introduced_ = 0;
};

}  // namespace velo::memory
