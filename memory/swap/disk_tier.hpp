// The disk tier: an image is a list of pages of one block each, in one file or in several in turn.
//
// A page is written from the object's own memory where O_DIRECT can, else from staging memory,
// where a tail is padded with zeros to a whole sector. Its checksum is computed while it is
// written, and compared when it is read. A page that is written again goes to new sectors before
// the old ones are given up, so that a failure leaves the old page. Pages of cold objects are
// packed where that saves an eighth of a block; where it does not, the next fifteen are not tried.
// Cost: with the default of 8 blocks of 1 MiB under way what the disk gives, and a seventh of a
// nanosecond a byte of the lane's thread for checksums.
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
  // memory: for staging. desc: checked, but its directories. Throws ARGUMENT, UNSUPPORTED, MEMORY,
  // IO.
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
  std::atomic<std::uint64_t> images_{0};  // made so far: where the next begins
  std::atomic<std::uint64_t> stored_{0};
  std::atomic<std::uint64_t> checking_out_{0}, checking_in_{0};  // nanoseconds
};

}  // namespace velo::memory
