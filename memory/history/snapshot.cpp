// The structure of a snapshot, once for both forms.
#include "memory/history/snapshot.hpp"

#include <algorithm>
#include <cstring>
#include <unordered_map>

#include "memory/history/snapshot_form.hpp"

namespace velo::memory {

const char* const purpose_names[purposes] = {"other",         "parameter",  "gradient",
                                             "optimizer",     "activation", "workspace",
                                             "communication", "input"};

namespace {

word purpose_word(std::uint8_t purpose) {
  return static_cast<word>(static_cast<int>(word::other_) + purpose);
}
static_assert(static_cast<int>(word::input_) - static_cast<int>(word::other_) == purposes - 1);

std::uint64_t number_of(velo_stream on) {
  return reinterpret_cast<std::uintptr_t>(on);
}

template <class Form>
class writer {
 public:
  writer(const snapshot& what, core::sink& to) : what_(what), times_(what.times()), form_(to) {
    find_texts();
  }

  void write() {
    form_.begin_dict();
    form_.template key<word::segments_>();
    form_.begin_list();
    for (const snapshot::segment& s : what_.segments) write_segment(s);
    form_.end_list();
    form_.template key<word::device_traces_>();
    form_.begin_list();
    form_.item();
    write_trace();
    form_.end_list();
    form_.reserve();
    for (const word w : {word::host_segments_, word::host_traces_, word::external_annotations_}) {
      form_.key(w);
      form_.begin_list();
      form_.end_list();
    }
    write_settings();
    write_counters();
    form_.end_dict();
    form_.finish();
  }

 private:
  // Finds the texts about the blocks in use, or those in force when they were allocated.
  void find_texts() {
    for (const snapshot::seen_block& b : what_.blocks)
      if (b.state == block_state::in_use) texts_.emplace(b.address, "");
    const char* now = what_.events.note_before;
    for (std::size_t i = 0; i < what_.events.order.size(); ++i) {
      const event& e = what_.events.at(i);
      const bool is_note = e.kind == event_kind::annotated;
      if (is_note && e.address == 0) now = past::text(e);
      if (e.kind != event_kind::allocated && !is_note) continue;
      const auto found = texts_.find(e.address);
      if (found != texts_.end()) found->second = is_note ? past::text(e) : now;
    }
  }

  void write_segment(const snapshot::segment& s) {
    std::uint64_t allocated = 0, requested = 0, active = 0;
    for (std::size_t i = s.first; i < s.first + s.count; ++i) {
      const snapshot::seen_block& b = what_.blocks[i];
      if (b.state == block_state::in_use) {
        allocated += b.size;
        requested += requested_of(b);
      }
      if (b.state == block_state::pending) active += b.size;
    }
    form_.reserve();
    form_.item();
    form_.begin_dict();
    number<word::device_>(0);
    number<word::address_>(s.address);
    number<word::total_size_>(s.size);
    number<word::allocated_size_>(allocated);
    number<word::active_size_>(allocated + active);
    number<word::requested_size_>(requested);
    number<word::stream_>(0);
    form_.template key<word::segment_type_>();
    form_.value(word::large_);
    form_.template key<word::segment_pool_id_>();
    form_.pair(0, s.lifetime);
    form_.template key<word::is_expandable_>();
    form_.value(true);
    no_frames();
    form_.template key<word::blocks_>();
    form_.begin_list();
    for (std::size_t i = s.first; i < s.first + s.count; ++i) write_block(what_.blocks[i]);
    form_.end_list();
    form_.end_dict();
  }

  void write_block(const snapshot::seen_block& b) {
    form_.reserve();
    const bool in_use = b.state == block_state::in_use;
    form_.item();
    form_.begin_dict();
    number<word::address_>(b.address);
    number<word::size_>(b.size);
    number<word::requested_size_>(requested_of(b));
    form_.template key<word::state_>();
    form_.value(in_use                            ? word::active_allocated_
                : b.state == block_state::pending ? word::active_pending_free_
                                                  : word::inactive_);
    form_.template key<word::frames_>();
    form_.begin_list();
    if (in_use) write_frame(b.purpose, texts_.find(b.address)->second);
    form_.end_list();
    form_.end_dict();
  }

  static std::uint64_t requested_of(const snapshot::seen_block& b) {
    return b.state == block_state::in_use ? std::min(b.requested, b.size) : b.size;
  }

  void no_frames() {
    form_.template key<word::frames_>();
    form_.begin_list();
    form_.end_list();
  }
  // Writes purpose and text in place of the source line that torch writes.
  void write_frame(std::uint8_t purpose, const char* text) {
    form_.item();
    form_.begin_dict();
    form_.template key<word::filename_>();
    form_.value(purpose_word(purpose));
    number<word::line_>(0);
    form_.template key<word::name_>();
    form_.value(text);
    form_.end_dict();
  }

  void write_trace() {
    form_.begin_list();
    say(what_.events.note_before);
    for (std::size_t i = 0; i < what_.events.order.size(); ++i) write_event(what_.events.at(i));
    form_.reserve();
    // The viewer expects one entry without a category.
    begin_entry(word::snapshot_, 0, 0, 0, what_.taken.ns, 0);
    form_.template key<word::category_>();
    form_.value(word::unknown_);
    no_frames();
    form_.end_dict();
    form_.end_list();
  }

  void write_event(const event& e) {
    const std::int64_t at = times_.at(e.ticks);
    form_.reserve();
    const std::uint64_t on = number_of(e.on);
    switch (e.kind) {
      case event_kind::allocated:
        return write_use(word::alloc_, e, at);
      case event_kind::freed:
        write_use(word::free_requested_, e, at);
        begin_entry(word::free_completed_, e.address, e.requested, on, at, e.lifetime);
        break;
      case event_kind::free_requested:
        return write_use(word::free_requested_, e, at);
      case event_kind::free_completed:
        begin_entry(word::free_completed_, e.address, e.requested, on, at, e.lifetime);
        break;
      case event_kind::mapped:
      case event_kind::unmapped:
        begin_entry(e.kind == event_kind::mapped ? word::segment_map_ : word::segment_unmap_,
                    e.address, e.size, on, at, e.lifetime);
        break;
      case event_kind::refused:
        begin_entry(word::oom_, 0, e.requested, on, at, e.lifetime);
        number<word::device_free_>(e.address);
        number<word::largest_hole_>(e.size);
        break;
      case event_kind::annotated:
        if (e.address == 0) say(past::text(e));
        begin_entry(word::annotate_, e.address, e.size, on, at, e.lifetime);
        form_.template key<word::user_metadata_>();
        form_.value(past::text(e));
        break;
    }
    no_frames();
    form_.end_dict();
  }

  void say(const char* text) {
    now_ = text;
    for (tail& t : tails_) t.length = 0;
  }

  // Entries of one purpose have the same end until the text changes.
  void write_use(word action, const event& e, std::int64_t at) {
    begin_entry(action, e.address, e.requested, number_of(e.on), at, e.lifetime);
    tail& end = tails_[e.purpose];
    if (end.length > 0) return form_.repeat(end.bytes, end.length);
    const char* from = form_.at();
    const int introduced = form_.introduced();
    form_.template key<word::category_>();
    form_.value(purpose_word(e.purpose));
    if (*now_ != 0) {
      form_.template key<word::user_metadata_>();
      form_.value(now_);
    }
    form_.template key<word::frames_>();
    form_.begin_list();
    write_frame(e.purpose, now_);
    form_.end_list();
    form_.end_dict();
    if (form_.introduced() != introduced) return;
    end.length = static_cast<std::size_t>(form_.at() - from);
    std::memcpy(end.bytes, from, end.length);
  }

  void begin_entry(word action, std::uint64_t address, std::uint64_t size, std::uint64_t on,
                   std::int64_t at, std::uint8_t lifetime) {
    form_.item();
    form_.begin_dict();
    form_.template key<word::action_>();
    form_.value(action);
    number<word::addr_>(address);
    number<word::size_>(size);
    number<word::stream_>(on);
    number<word::time_us_>(static_cast<std::uint64_t>(at / 1000));
    form_.template key<word::pool_id_>();
    form_.pair(0, lifetime);
  }

  void write_settings() {
    form_.template key<word::allocator_settings_>();
    form_.begin_dict();
    form_.template key<word::expandable_segments_>();
    form_.value(true);
    number<word::limit_>(what_.limit);
    form_.template key<word::checked_>();
    form_.value(what_.checked);
    form_.end_dict();
  }

  void write_counters() {
    const velo_pool_stats& s = what_.stats;
    form_.template key<word::velo_>();
    form_.begin_dict();
    number<word::events_dropped_>(what_.events.dropped);
    form_.template key<word::stats_>();
    form_.begin_dict();
    number<word::bytes_live_>(s.bytes_live);
    number<word::bytes_rounding_>(s.bytes_rounding);
    number<word::bytes_peak_>(s.bytes_peak);
    number<word::bytes_reserved_>(s.bytes_reserved);
    number<word::bytes_reserved_peak_>(s.bytes_reserved_peak);
    number<word::bytes_cached_>(s.bytes_cached);
    number<word::bytes_pending_>(s.bytes_pending);
    number<word::bytes_split_>(s.bytes_split);
    number<word::bytes_largest_hole_>(s.bytes_largest_hole);
    number<word::bytes_let_go_>(s.bytes_let_go);
    number<word::bytes_unlocked_>(s.bytes_unlocked);
    number<word::allocations_>(s.allocations);
    number<word::frees_>(s.frees);
    number<word::refused_>(s.refused);
    by_purpose<word::purpose_live_>(s.purpose_live);
    by_purpose<word::purpose_peak_>(s.purpose_peak);
    form_.end_dict();
    form_.end_dict();
  }

  template <word name>
  void by_purpose(const std::uint64_t* bytes) {
    form_.template key<name>();
    form_.begin_dict();
    for (std::uint8_t p = 0; p < purposes; ++p) {
      form_.key(purpose_word(p));
      form_.value(bytes[p]);
    }
    form_.end_dict();
  }

  template <word name>
  void number(std::uint64_t n) {
    form_.template key<name>();
    form_.value(n);
  }

  // Two texts of 255 bytes, six for each at most, and less than 300 around them.
  struct tail {
    std::size_t length = 0;
    char bytes[2 * 6 * longest_note + 300];
  };
  static_assert(2 * (sizeof(tail::bytes) + 300) <
                core::sink::room);  // an event has up to two entries

  const snapshot& what_;
  const core::tick_scale times_;
  Form form_;
  tail tails_[purposes];
  std::unordered_map<std::uint64_t, const char*> texts_;
  const char* now_ = "";
};

}  // namespace

void write_json(const snapshot& what, core::sink& to) {
  writer<json_form>(what, to).write();
}

void write_pickle(const snapshot& what, core::sink& to) {
  writer<pickle_form>(what, to).write();
}

}  // namespace velo::memory
