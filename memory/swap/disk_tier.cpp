// Writing pages to the file and reading them back.
#include "memory/swap/disk_tier.hpp"

#include <algorithm>
#include <chrono>
#include <cstring>
#include <utility>

#include "core/checksum.hpp"
#include "core/failure.hpp"
#include "core/round_up.hpp"

namespace velo::memory {

using core::fail;
using core::text;

namespace {

constexpr int tries_apart =
    16;  // a page that was not worth packing ends packing for this many pages

// Splits a list of directories, "/a:/b".
std::vector<std::string> split(const std::string& list) {
  std::vector<std::string> all;
  for (std::size_t begin = 0; begin <= list.size();) {
    const std::size_t end = std::min(list.find(':', begin), list.size());
    if (end == begin)
      fail(VELO_ERR_ARGUMENT, "desc.directories", "names of directories, separated by ':'",
           list.empty() ? "an empty text" : "an empty name");
    all.push_back(list.substr(begin, end - begin));
    begin = end + 1;
  }
  return all;
}

}  // namespace

class disk_tier::disk_image final : public tier::image {
 public:
  disk_image(disk_tier& home, std::uint64_t bytes, bool cold)
      : home(home),
        bytes(bytes),
        cold(cold),
        first_file(home.images_.fetch_add(1, std::memory_order_relaxed)),
        pages(core::ceil_div(bytes, home.block_)) {}
  ~disk_image() override {
    for (disk_page& page : pages) give(page);
  }

  std::uint64_t stored() const noexcept override { return stored_.load(std::memory_order_relaxed); }

  // Reserves file space for a page of `stored` bytes.
  disk_page take(std::uint64_t index, std::uint32_t stored) {
    disk_page taken;
    taken.file = static_cast<std::uint16_t>((first_file + index) % home.files_.size());
    const std::uint64_t room = core::round_up<std::uint64_t>(stored, disk_file::sector);
    taken.offset = home.files_[taken.file]->take(room);
    taken.stored = stored;
    stored_.fetch_add(room, std::memory_order_relaxed);
    home.stored_.fetch_add(room, std::memory_order_relaxed);
    return taken;
  }
  void give(disk_page& page) noexcept {
    if (page.stored == 0) return;
    const std::uint64_t room = core::round_up<std::uint64_t>(page.stored, disk_file::sector);
    home.files_[page.file]->give(page.offset, room);
    page.stored = 0;
    stored_.fetch_sub(room, std::memory_order_relaxed);
    home.stored_.fetch_sub(room, std::memory_order_relaxed);
  }

  disk_tier& home;
  const std::uint64_t bytes;
  const bool cold;
  const std::uint64_t first_file;
  std::vector<disk_page> pages;

 private:
  std::atomic<std::uint64_t> stored_{0};
};

// The base of both directions.
class disk_tier::pages : public disk_transfer {
 public:
  pages(disk_tier& tier, copies& all) : tier_(tier), all_(all) {}

  bool next(disk_copy& one) noexcept override {
    if (!all_.next(one.what)) return false;
    one.next = one.what.offset / tier_.block_;
    one.end = one.next + core::ceil_div(one.what.bytes, tier_.block_);
    return true;
  }
  void done(const disk_copy& one) noexcept override {
    all_.done(one.what, one.why.code == VELO_OK ? nullptr : &one.why);
  }
  text name(const disk_operation& operation) const override {
    return core::concat("page ", operation.index, ", ", operation.page.stored, " bytes at ",
                        operation.page.offset, " of a file in ",
                        tier_.files_[operation.page.file]->directory(), ",");
  }

 protected:
  ~pages() = default;

  static disk_image& image_of(const disk_operation& operation) {
    return static_cast<disk_image&>(*operation.of->what.there);
  }
  void set_memory(disk_operation& operation) const {
    const tier::copy& what = operation.of->what;
    const std::uint64_t begin = operation.index * tier_.block_ - what.offset;
    operation.memory = what.memory + begin;
    operation.bytes = static_cast<std::uint32_t>(std::min(tier_.block_, what.bytes - begin));
  }
  // Sets the request between the file and the page's own memory, or staging memory if O_DIRECT
  // needs it.
  void set_request(disk_operation& operation, bool writes, bool staged) const {
    const disk_file& file = *tier_.files_[operation.page.file];
    const bool whole = operation.bytes % disk_file::sector == 0 &&
                       reinterpret_cast<std::uintptr_t>(operation.memory) % disk_file::sector == 0;
    operation.staged = staged || (!whole && file.is_direct());
    disk_request& r = operation.request;
    r.file = file.descriptor();
    r.writes = writes;
    r.memory = operation.staged ? operation.staging : operation.memory;
    r.bytes = operation.staged
                  ? core::round_up<std::uint32_t>(operation.page.stored, disk_file::sector)
                  : operation.bytes;
    r.offset = operation.page.offset;
  }

  disk_tier& tier_;

 private:
  copies& all_;
};

class disk_tier::writing final : public disk_tier::pages {
 public:
  using pages::pages;

  void prepare(disk_operation& operation) override {
    set_memory(operation);
    const std::uint32_t packed = pack(operation);
    operation.page =
        image_of(operation).take(operation.index, packed != 0 ? packed : operation.bytes);
    operation.page.packed = packed != 0;
    set_request(operation, true, packed != 0);
    if (!operation.staged) return;
    if (packed == 0) std::memcpy(operation.staging, operation.memory, operation.bytes);
    std::memset(operation.staging + operation.page.stored, 0,
                operation.request.bytes - operation.page.stored);
  }
  void meanwhile(disk_operation& operation) noexcept override {
    if (tier_.checks_) operation.page.checksum = tier_.checksum_of(operation, tier_.checking_out_);
  }
  void complete(disk_operation& operation) override {
    disk_page& there = image_of(operation).pages[operation.index];
    image_of(operation).give(there);
    there = std::exchange(operation.page, disk_page{});
  }
  void abandon(disk_operation& operation) noexcept override {
    image_of(operation).give(operation.page);
  }

 private:
  // Packs a page into staging memory and returns its packed size; 0: packing does not pay.
  std::uint32_t pack(disk_operation& operation) {
    int& untried = operation.of->untried;
    if (!image_of(operation).cold || (untried > 0 && untried-- > 0)) return 0;
    const std::size_t most = operation.bytes - operation.bytes / 8;
    const std::size_t size = core::pack(operation.memory, operation.bytes, tier_.out_->scratch(),
                                        operation.staging, most);
    if (size == 0) untried = tries_apart - 1;
    return static_cast<std::uint32_t>(size);
  }
};

class disk_tier::reading final : public disk_tier::pages {
 public:
  using pages::pages;

  void prepare(disk_operation& operation) override {
    set_memory(operation);
    operation.page = image_of(operation).pages[operation.index];
    set_request(operation, false, operation.page.packed);
  }
  void complete(disk_operation& operation) override {
    if (operation.page.packed) {
      if (!core::unpack(operation.staging, operation.page.stored, tier_.in_->scratch(),
                        operation.memory, operation.bytes))
        refuse(operation, text("it cannot be unpacked"));
    } else if (operation.staged) {
      std::memcpy(operation.memory, operation.staging, operation.bytes);
    }
    if (!tier_.checks_) return;
    const std::uint32_t found = tier_.checksum_of(operation, tier_.checking_in_);
    if (found != operation.page.checksum)
      refuse(operation, text("its checksum is %08x and was %08x", found, operation.page.checksum));
  }

 private:
  [[noreturn]] void refuse(const disk_operation& operation, const text& why) const {
    fail(VELO_ERR_IO, "", text("%s as it was written", name(operation).buffer), "a damaged page",
         why);
  }
};

disk_tier::disk_tier(core::memory_source& memory, const velo_swap_desc& desc)
    : block_(desc.block), checks_(desc.checksums != 0) {
  for (std::string& directory : split(desc.directories))
    files_.push_back(std::make_unique<disk_file>(std::move(directory), desc.direct != 0));
  choose_engine(memory, desc);
  const auto direct = std::count_if(files_.begin(), files_.end(),
                                    [](const auto& file) { return file->is_direct(); });
  if (direct == static_cast<std::ptrdiff_t>(files_.size())) {
    how_ += ", around the page cache";
  } else {
    how_ += desc.direct == 0 ? ", through the page cache as asked for"
                             : ", through the page cache: a file system refuses O_DIRECT";
  }
}

void disk_tier::choose_engine(core::memory_source& memory, const velo_swap_desc& desc) {
  std::unique_ptr<disk_engine> out, in;
  std::string why = "asked for";
  if (desc.engine != VELO_SWAP_ENGINE_THREADS) {
    out = make_uring_engine(desc.depth, why);
    if (out != nullptr) in = make_uring_engine(desc.depth, why);
  }
  how_ = "io_uring";
  if (in == nullptr) {
    if (desc.engine == VELO_SWAP_ENGINE_URING)
      fail(VELO_ERR_UNSUPPORTED, "desc.engine", "io_uring", "a system that refuses it",
           why.c_str());
    out = make_thread_engine(desc.depth);
    in = make_thread_engine(desc.depth);
    engine_ = VELO_SWAP_ENGINE_THREADS;
    how_ = "threads (" + why + ")";
  }
  out_ = std::make_unique<disk_channel>(std::move(out), memory, desc.depth, block_);
  in_ = std::make_unique<disk_channel>(std::move(in), memory, desc.depth, block_);
}

std::unique_ptr<tier::image> disk_tier::make(std::uint64_t bytes, bool cold) {
  return std::make_unique<disk_image>(*this, bytes, cold);
}

void disk_tier::write(copies& all) noexcept {
  writing transfer(*this, all);
  out_->run(transfer);
}

void disk_tier::read(copies& all) noexcept {
  reading transfer(*this, all);
  in_->run(transfer);
}

std::uint32_t disk_tier::checksum_of(const disk_operation& operation,
                                     std::atomic<std::uint64_t>& spent) noexcept {
  const auto begin = std::chrono::steady_clock::now();
  const std::uint32_t sum = core::checksum(operation.memory, operation.bytes);
  const auto time = std::chrono::steady_clock::now() - begin;
  spent.fetch_add(static_cast<std::uint64_t>(
                      std::chrono::duration_cast<std::chrono::nanoseconds>(time).count()),
                  std::memory_order_relaxed);
  return sum;
}

void disk_tier::fill(velo_swap_stats& stats) const noexcept {
  stats.engine = engine_;
  stats.bytes_stored = stored_.load(std::memory_order_relaxed);
  stats.seconds_checksum_out = 1e-9 * static_cast<double>(checking_out_.load());
  stats.seconds_checksum_in = 1e-9 * static_cast<double>(checking_in_.load());
  core::copy_text(stats.how, sizeof stats.how, how_.c_str());
}

}  // namespace velo::memory
