// The life of a region: it is declared, released, restored from its inputs, and ended.
#include "memory/recompute/regions.hpp"

#include <algorithm>
#include <new>
#include <set>

#include "core/failure.hpp"
#include "core/handle/host_call.hpp"
#include "core/handle/record.hpp"
#include "core/handle/status.hpp"

namespace velo::memory {
namespace {

using core::fail;
using core::text;

constexpr std::uint64_t alignment = 64;
constexpr velo_device cpu{VELO_DEVICE_CPU, 0};

// Counts a call of the allocator while the call runs.
class asking {
 public:
  explicit asking(int& count) noexcept : count_(count) { ++count_; }
  ~asking() { --count_; }
  asking(const asking&) = delete;
  asking& operator=(const asking&) = delete;

 private:
  int& count_;
};

}  // namespace

class regions::hold {
 public:
  hold(regions& of, std::vector<std::int64_t> which) : of_(of), which_(std::move(which)) {
    for (const std::int64_t i : which_) ++of_.all_.at(i)->holds;
  }
  ~hold() {
    for (const std::int64_t i : which_) --of_.all_.at(i)->holds;
  }
  hold(const hold&) = delete;
  hold& operator=(const hold&) = delete;

 private:
  regions& of_;
  const std::vector<std::int64_t> which_;
};

regions::~regions() {
  for (auto& [index, r] : all_)
    if (r->now == state::present) let_go(r->outputs, nullptr);
}

regions::region& regions::live(std::int64_t index, const char* argument) const {
  const auto found = all_.find(index);
  if (found != all_.end() && !found->second->ended) return *found->second;
  fail(VELO_ERR_ARGUMENT, argument, "the index of a region that has not ended",
       core::concat(index, ", of ", next_, " declared so far"));
}

void regions::check_inputs(const velo_recompute_region& given) const {
  for (std::int64_t i = 0; i < given.input_count; ++i) {
    const velo_recompute_input& in = given.inputs[i];
    if (in.region == -1) {
      if (in.memory != nullptr) continue;
      fail(VELO_ERR_NULL, core::concat("region.inputs[", i, "].memory"), "memory of the host's",
           "NULL");
    }
    const auto from = all_.find(in.region);
    if (from == all_.end() || from->second->ended)
      fail(VELO_ERR_ARGUMENT, core::concat("region.inputs[", i, "].region"),
           "-1, or the index of a region that has not ended", core::number(in.region));
    const auto outputs = static_cast<std::int64_t>(from->second->outputs.size());
    if (in.output < 0 || in.output >= outputs)
      fail(VELO_ERR_ARGUMENT, core::concat("region.inputs[", i, "].output"),
           text("the index of one of %s outputs of '%.64s'", core::number(outputs).buffer,
                from->second->name.c_str()),
           core::number(in.output));
  }
}

std::int64_t regions::add(const velo_recompute_region& given, velo_stream stream) {
  check_inputs(given);
  auto made = std::make_unique<region>();
  made->index = next_;
  made->name = given.name;
  made->restore = given.restore;
  made->user = given.user;
  made->parent = given.parent;
  made->seed = given.seed;
  made->offset = given.offset;
  if (given.input_count > 0) made->inputs.assign(given.inputs, given.inputs + given.input_count);
  for (std::int64_t i = 0; i < given.output_count; ++i)
    made->outputs.push_back({nullptr, given.output_bytes[i]});
  if (inside_.capacity() <= all_.size()) inside_.reserve(2 * all_.size() + 1);
  region& r = *made;
  std::vector<std::int64_t>* siblings =
      given.parent != -1 ? &live(given.parent, "region.parent").nested : nullptr;
  if (siblings != nullptr) siblings->push_back(next_);
  try {
    allocate(r.outputs, stream);
    all_.emplace(next_, std::move(made));
  } catch (...) {
    if (made != nullptr) let_go(r.outputs, stream);
    if (siblings != nullptr) siblings->pop_back();
    throw;
  }
  for (const velo_recompute_input& in : r.inputs)
    if (in.region >= 0) ++all_.at(in.region)->takers;
  ++counted_.regions;
  return next_++;
}

// The region and the regions declared inside it that have not ended, in ascending order, so that a
// region precedes those inside it. Valid until the next call; does not allocate.
const std::vector<std::int64_t>& regions::inside(std::int64_t index) {
  std::vector<std::int64_t>& found = inside_;
  found.assign(1, index);
  for (std::size_t i = 0; i < found.size(); ++i) {
    for (const std::int64_t inner : all_.at(found[i])->nested) {
      const auto there = all_.find(inner);
      if (there != all_.end() && !there->second->ended) found.push_back(inner);
    }
  }
  std::sort(found.begin(), found.end());
  return found;
}

void regions::require_not_held(const std::vector<std::int64_t>& all) const {
  for (const std::int64_t i : all) {
    const region& r = *all_.at(i);
    if (r.holds == 0) continue;
    fail(VELO_ERR_STATE, "region", "one that no restore in progress needs",
         text("'%.128s'", r.name.c_str()));
  }
}

void regions::release(std::int64_t index, velo_stream stream) {
  live(index);
  const std::vector<std::int64_t>& all = inside(index);
  require_not_held(all);
  for (const std::int64_t i : all) {
    region& r = *all_.at(i);
    if (r.now != state::present) continue;
    let_go(r.outputs, stream);
    r.now = state::released;
    ++counted_.releases;
  }
}

// The region and the released regions that it needs, directly or indirectly, in ascending order, so
// that each follows the ones it needs.
std::vector<std::int64_t> regions::needed_for(std::int64_t index) const {
  std::set<std::int64_t> found = {index};
  std::vector<std::int64_t> open = {index};
  while (!open.empty()) {
    const region& r = *all_.at(open.back());
    open.pop_back();
    for (const velo_recompute_input& in : r.inputs) {
      if (in.region < 0) continue;
      const region& from = *all_.at(in.region);
      if (from.now == state::restoring)
        fail(VELO_ERR_STATE, "region", "one that takes from no region being restored",
             text("'%.64s', from '%.64s'", r.name.c_str(), from.name.c_str()));
      if (from.now == state::released && found.insert(in.region).second) open.push_back(in.region);
    }
  }
  return {found.begin(), found.end()};
}

void regions::restore(std::int64_t index, velo_stream stream) {
  if (live(index).now == state::present) return;
  if (live(index).now == state::restoring)
    fail(VELO_ERR_STATE, "region", "a region not being restored",
         text("'%.128s'", live(index).name.c_str()));
  const std::vector<std::int64_t> needed = needed_for(index);
  std::vector<std::int64_t> held = needed;
  for (const std::int64_t i : needed)
    for (const velo_recompute_input& in : all_.at(i)->inputs)
      if (in.region >= 0) held.push_back(in.region);
  const auto release_ended = [&] {
    for (const std::int64_t i : needed) {
      region& r = *all_.at(i);
      if (!r.ended || r.now != state::present || r.holds > 0) continue;
      let_go(r.outputs, stream);
      r.now = state::released;
      ++counted_.releases;
    }
  };
  try {
    const hold until_done(*this, std::move(held));
    for (const std::int64_t i : needed) {
      region& r = *all_.at(i);
      if (r.now == state::released) restore_one(i, r, stream);
    }
  } catch (...) {
    release_ended();
    throw;
  }
  release_ended();
}

void regions::restore_one(std::int64_t index, region& r, velo_stream stream) {
  allocate(r.outputs, stream);
  r.now = state::restoring;
  ++restoring_;
  try {
    call(index, r, stream);
  } catch (...) {
    --restoring_;
    r.now = state::released;
    let_go(r.outputs, stream);
    throw;
  }
  --restoring_;
  r.now = state::present;
  ++counted_.restores;
}

void regions::call(std::int64_t index, const region& r, velo_stream stream) {
  std::vector<const void*> inputs;
  std::vector<void*> outputs;
  for (const velo_recompute_input& in : r.inputs)
    inputs.push_back(in.region < 0 ? in.memory : all_.at(in.region)->outputs[in.output].memory);
  for (const block& b : r.outputs) outputs.push_back(b.memory);
  velo_recompute_call what = VELO_RECOMPUTE_CALL_INIT;
  what.recompute = core::handle_of(*this);
  what.region = index;
  what.stream = stream;
  what.name = r.name.c_str();
  what.seed = r.seed;
  what.offset = r.offset;
  what.inputs = inputs.data();
  what.outputs = outputs.data();
  const core::uncancelled here;
  const std::uint32_t before = core::records_written();
  velo_status status = VELO_OK;
  try {
    status = r.restore(r.user, &what);
  } catch (...) {
    const core::failure thrown = core::current_failure();
    fail(VELO_ERR_FOREIGN, "region.restore", "a function that returns",
         text("an exception from that of '%.128s'", r.name.c_str()), thrown.cause);
  }
  if (status != VELO_OK)
    core::fail_returned("region.restore", status, text("that of '%.128s'", r.name.c_str()), before);
}

void regions::end(std::int64_t index, velo_stream stream) {
  live(index);
  const std::vector<std::int64_t>& all = inside(index);
  require_not_held(all);
  for (const std::int64_t i : all) {
    region& r = *all_.at(i);
    if (r.now == state::present) let_go(r.outputs, stream);
    r.now = state::released;
    r.ended = true;
    --counted_.regions;
  }
  for (const std::int64_t i : all) {  // only later regions take from a region
    const auto there = all_.find(i);
    if (there != all_.end() && there->second->takers == 0) forget(there->second.get());
  }
}

// Removes an ended region from which no region takes, and then the regions that only it kept.
void regions::forget(region* ended) noexcept {
  ended->next = nullptr;
  for (region* open = ended; open != nullptr;) {
    region& r = *open;
    open = r.next;
    for (const velo_recompute_input& in : r.inputs) {
      if (in.region < 0) continue;
      region& from = *all_.find(in.region)->second;
      if (--from.takers > 0 || !from.ended) continue;
      from.next = open;
      open = &from;
    }
    all_.erase(r.index);
  }
}

void* regions::output(std::int64_t index, std::int64_t which) const {
  const region& r = live(index);
  const auto count = static_cast<std::int64_t>(r.outputs.size());
  if (which < 0 || which >= count)
    fail(VELO_ERR_ARGUMENT, "output", core::concat("the index of one of ", count, " outputs"),
         core::number(which));
  if (r.now == state::released)
    fail(VELO_ERR_STATE, "region", "one whose outputs are there",
         text("'%.128s', which is released", r.name.c_str()));
  return r.outputs[which].memory;
}

void regions::fill(velo_recompute_stats& stats) const {
  stats = counted_;
}

void regions::require_idle() const {
  if (restoring_ > 0)
    fail(VELO_ERR_STATE, "recompute", "no restore in progress", "a call from the host's function");
}

void regions::require_not_asking() const {
  if (asks_ > 0)
    fail(VELO_ERR_STATE, "recompute", "a call from outside of the allocator's functions",
         "one from within");
}

// Allocates all outputs or none.
void regions::allocate(std::vector<block>& outputs, velo_stream stream) {
  for (block& b : outputs) {
    try {
      const asking here(asks_);
      b.memory = core::call_host("desc.allocator.allocate", [&]() -> void* {
        try {
          return from_.allocate(from_.user, b.bytes, alignment, &cpu, stream);
        } catch (const std::bad_alloc&) {
          return nullptr;
        }
      });
      if (b.memory == nullptr) fail(VELO_ERR_MEMORY, "", core::concat(b.bytes, " bytes"), "none");
    } catch (...) {
      let_go(outputs, stream);
      throw;
    }
    counted_.bytes += b.bytes;
    counted_.bytes_peak = std::max(counted_.bytes_peak, counted_.bytes);
  }
}

void regions::let_go(std::vector<block>& outputs, velo_stream stream) noexcept {
  const core::uncancelled uncancelled;
  const asking here(asks_);
  for (block& b : outputs) {
    if (b.memory == nullptr) continue;
    try {
      from_.deallocate(from_.user, b.memory, b.bytes, &cpu, stream);
    } catch (...) {  // the memory counts as freed
    }
    b.memory = nullptr;
    counted_.bytes -= b.bytes;
  }
}

}  // namespace velo::memory
