// io_uring through liburing, which is linked into the library: a ring of `depth` entries for each
// direction of a swap. A container or a kernel may refuse rings, and an old kernel may lack reads
// and writes; both are detected when the ring is made.
#include <liburing.h>

#include <cerrno>
#include <cstring>
#include <vector>

#include "core/host/memory.hpp"
#include "memory/swap/disk_engine.hpp"

namespace velo::memory {
namespace {

class uring_engine final : public disk_engine {
 public:
  uring_engine(const io_uring& ring, int depth) : ring_(ring) {
    done_here_.reserve(static_cast<std::size_t>(depth));
  }
  ~uring_engine() override { io_uring_queue_exit(&ring_); }

  void start(disk_request& request) noexcept override;
  disk_request& finish() noexcept override;

 private:
  io_uring ring_;
  std::vector<disk_request*> done_here_;  // refused by the ring; adding allocates nothing
};

// If the ring refuses requests (the system is short of memory), its entry must not be submitted
// later: it is replaced by a no-op, and the request runs here.
void uring_engine::start(disk_request& request) noexcept {
  io_uring_sqe* entry = io_uring_get_sqe(&ring_);
  if (entry != nullptr) {
    if (request.writes) {
      io_uring_prep_write(entry, request.file, request.memory, request.bytes, request.offset);
    } else {
      io_uring_prep_read(entry, request.file, request.memory, request.bytes, request.offset);
    }
    io_uring_sqe_set_data(entry, &request);
    int sent = 0;
    do {
      sent = io_uring_submit(&ring_);
    } while (sent == -EINTR);
    if (sent > 0) return;
    io_uring_prep_nop(entry);
    io_uring_sqe_set_data(entry, nullptr);
  }
  request.result = read_or_write(request);
  done_here_.push_back(&request);
}

disk_request& uring_engine::finish() noexcept {
  if (!done_here_.empty()) {
    disk_request* request = done_here_.back();
    done_here_.pop_back();
    return *request;
  }
  while (true) {
    io_uring_cqe* event = nullptr;
    if (io_uring_wait_cqe(&ring_, &event) != 0) continue;  // a signal
    auto* request = static_cast<disk_request*>(io_uring_cqe_get_data(event));
    const std::int64_t result = event->res;
    io_uring_cqe_seen(&ring_, event);
    if (request == nullptr) continue;
    request->result = result == -EINTR ? read_or_write(*request) : result;
    return *request;
  }
}

// Throws bad_alloc.
bool knows_files(io_uring& ring) {
  io_uring_probe* known = core::again_with_memory([&] { return io_uring_get_probe_ring(&ring); });
  if (known == nullptr) return false;
  const bool both = io_uring_opcode_supported(known, IORING_OP_READ) != 0 &&
                    io_uring_opcode_supported(known, IORING_OP_WRITE) != 0;
  io_uring_free_probe(known);
  return both;
}

}  // namespace

std::unique_ptr<disk_engine> make_uring_engine(int depth, std::string& why) {
  io_uring ring{};
  const int refused = io_uring_queue_init(static_cast<unsigned>(depth), &ring, 0);
  if (refused != 0) {
    why = std::string("io_uring_queue_init: ") + std::strerror(-refused);
    return nullptr;
  }
  try {
    if (knows_files(ring)) return std::make_unique<uring_engine>(ring, depth);
    why = "io_uring of this kernel reads and writes no files";
  } catch (...) {
    io_uring_queue_exit(&ring);
    throw;
  }
  io_uring_queue_exit(&ring);
  return nullptr;
}

}  // namespace velo::memory
