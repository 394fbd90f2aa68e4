// The disk tier: an image is a list of pages of one block each, in one file or round-robin in
// several.
//
// A page is written from the object's own memory if O_DIRECT allows it, else from staging memory,
// where the last page is padded with zeros to a whole sector. Its checksum is computed while it is
// written, and compared when it is read. A page that is written again goes to new sectors before
// the old ones are freed, so that a failure leaves the old page. Pages of cold objects are packed
// if that saves an eighth of a block; if it does not, the next fifteen pages are not tried. Cost:
// with the default of 8 blocks of 1 MiB under way, the disk's own speed, and for checksums a
// seventh of a nanosecond a byte on the lane's thread.
#pragma once

#include <atomic>
#include <memory>
#include <string>
#include <vector>

#include "core/host/memory.hpp"
#include "memory/swap/disk_channel.hpp"
#include "memory/swap/disk_file.hpp"
#include "memory/swap/tier.hpp"

namespace velo::memory {

class disk_tier final : public tier {
 public:
  // memory: for staging. desc: checked, except for its directories. Throws ARGUMENT, UNSUPPORTED,
  // MEMORY, IO.
  disk_tier(core::memory_source& memory, const velo_swap_desc& desc);

  std::uint64_t granule() const noexcept override { return block_; }
  std::unique_ptr<image> make(std::uint64_t bytes, bool cold) override;
  void write(copies& all) noexcept override;
  void read(copies& all) noexcept override;
  void fill(velo_swap_stats& stats) const noexcept override;

 private:
  class disk_image;
  class pages;
  class writing;
  class reading;

  void choose_engine(core::memory_source& memory, const velo_swap_desc& desc);
  std::uint32_t checksum_of(const disk_operation& operation,
                            std::atomic<std::uint64_t>& spent) noexcept;

  const std::uint64_t block_;
  const bool checks_;
  std::vector<std::unique_ptr<disk_file>> files_;
  std::unique_ptr<disk_channel> out_, in_;
  velo_swap_engine engine_ = VELO_SWAP_ENGINE_URING;
  std::string how_;
  std::atomic<std::uint64_t> images_{0};  // made so far; gives the next image its first file
  std::atomic<std::uint64_t> stored_{0};
  std::atomic<std::uint64_t> checking_out_{0}, checking_in_{0};  // nanoseconds
};

}  // namespace velo::memory
