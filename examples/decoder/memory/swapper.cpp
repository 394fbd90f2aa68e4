// One object of a velo::swap_space for each buffer that is swapped out or in transit.
#include "examples/decoder/memory/swapper.hpp"

#include <algorithm>
#include <chrono>

#include "examples/decoder/failure.hpp"

namespace decoder {
namespace {

constexpr std::uint64_t in_dry_run = ~std::uint64_t{0};  // the object of a dry run

// Turns an error of a file into a failure: the user can mend it.
template <class F>
auto translated(F&& call) {
  try {
    return call();
  } catch (const velo::error& e) {
    if (e.status() != VELO_ERR_IO) throw;
    const char* colon = *e.cause() ? ": " : "";
    fail("--swap_dir: expected %s, got %s%s%s", e.expected(), e.got(), colon, e.cause());
  }
}

velo::swap_space make_swap(const velo::context& context, const std::string& where,
                           const std::string& directory, std::int64_t block,
                           std::int64_t smallest) {
  velo_swap_desc desc = VELO_SWAP_DESC_INIT;
  desc.tier = where == "disk" ? VELO_SWAP_DISK : VELO_SWAP_HOST;
  desc.directories = where == "disk" ? directory.c_str() : nullptr;
  desc.block = static_cast<std::uint64_t>(block);
  desc.minimum = static_cast<std::uint64_t>(smallest);
  return translated([&] { return velo::swap_space::create(context, desc); });
}

}  // namespace

swapper::swapper(const velo::context& context, run_memory& memory, const std::string& where,
                 const std::string& directory, std::int64_t smallest)
    : smallest_(smallest),
      memory_(memory),
      stream_(context.inline_stream()),
      granule_(where == "disk" ? block : page),
      swap_(make_swap(context, where, directory, block, smallest)) {}

void swapper::update_slices(const std::vector<buffer*>& all, void* user,
                            void (*function)(void*, std::uint64_t, std::uint64_t, void* const*)) {
  std::vector<std::uint64_t> objects;
  for (const buffer* each : all) objects.push_back(each->object_);
  translated([&] {
    swap_.update(objects.data(), static_cast<std::int64_t>(objects.size()), slices,
                 [&](std::uint64_t offset, std::uint64_t bytes, void* const* of) {
                   function(user, offset, bytes, of);
                 });
  });
}

// Three slices of each buffer are in memory, rounded up to blocks of a file and pages of memory.
std::int64_t swapper::update_bytes(std::int64_t count, std::int64_t bytes) const {
  const auto up = [](std::int64_t to, std::int64_t unit) { return (to + unit - 1) / unit * unit; };
  const std::int64_t slice = up((bytes + slices - 1) / slices, granule_);
  return 3 * count * up(std::min(slice, bytes), page) + page;
}

void swapper::add(buffer& which, std::int64_t layer) {
  const bool stays = which.is_borrowed() || which.is_region() || which.bytes_ < smallest_;
  if (!which || stays) return;
  which.keeper_ = this;
  if (memory_.is_dry_run()) {
    which.object_ = in_dry_run;
    return;
  }
  which.object_ = swap_.add(which.data_, static_cast<std::uint64_t>(which.bytes_));
  swap_.assign(which.object_, layer);
}

void swapper::out(std::int64_t layer) {
  if (memory_.is_dry_run()) return;
  translated([&] { swap_.forward(layer, stream_); });
}

void swapper::out(buffer& which) {
  add(which, 0);
  out(0);
}

void swapper::settle(buffer& which) {
  if (which.object_ == 0 || !which) return;
  if (!memory_.is_dry_run()) stall(which.object_);
  memory_.give(which);
  which.data_ = nullptr;
}

void swapper::in(buffer& which) {
  if (which.object_ == 0 || which) return;
  buffer back = memory_.take(which.bytes_, which.purpose_);
  std::swap(which.data_, back.data_);
  which.number_ = back.number_;
  if (memory_.is_dry_run()) return;
  translated([&] { swap_.in(which.object_, stream_, which.data_); });
}

void swapper::wait(buffer& which) {
  if (which.object_ == 0) return;
  if (!memory_.is_dry_run()) {
    stall(which.object_);
    swap_.drop(which.object_);
  }
  which.object_ = 0;
}

void swapper::forget(buffer& which) noexcept {
  if (which.object_ != in_dry_run) swap_.drop(which.object_);
  which.object_ = 0;
}

void swapper::stall(std::uint64_t object) {
  const auto begin = std::chrono::steady_clock::now();
  translated([&] { swap_.wait(object, stream_); });
  stalled_ += std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
}

swapper::totals swapper::total() const {
  const velo_swap_stats now = swap_.stats();
  return {static_cast<double>(now.bytes_out), static_cast<double>(now.bytes_in), stalled_};
}

}  // namespace decoder
