// Threads that read and write: one for each request that may be under way. They sleep when idle.
#include <unistd.h>

#include <cerrno>
#include <condition_variable>
#include <mutex>
#include <vector>

#include "core/stream/threads.hpp"
#include "memory/swap/disk_engine.hpp"

namespace velo::memory {
namespace {

class thread_engine final : public disk_engine {
 public:
  explicit thread_engine(int depth);
  ~thread_engine() override { stop(); }

  void start(disk_request& request) noexcept override;
  disk_request& finish() noexcept override;

 private:
  static void* serve(void* self);
  void stop() noexcept;

  std::mutex lock_;  // guards the following members
  std::condition_variable started_, done_;
  std::vector<disk_request*> waiting_, finished_;  // of capacity `depth`: adding allocates nothing
  bool stopping_ = false;
  std::vector<core::native_thread> threads_;
};

thread_engine::thread_engine(int depth) : threads_(static_cast<std::size_t>(depth)) {
  waiting_.reserve(threads_.size());
  finished_.reserve(threads_.size());
  try {
    for (core::native_thread& one : threads_) one.start("velo/swap_io", &serve, this);
  } catch (...) {
    stop();
    throw;
  }
}

void thread_engine::stop() noexcept {
  {
    const std::lock_guard<std::mutex> lock(lock_);
    stopping_ = true;
  }
  started_.notify_all();
  for (core::native_thread& one : threads_) one.join();
}

void* thread_engine::serve(void* argument) {
  auto& self = *static_cast<thread_engine*>(argument);
  std::unique_lock<std::mutex> lock(self.lock_);
  while (true) {
    self.started_.wait(lock, [&] { return !self.waiting_.empty() || self.stopping_; });
    if (self.waiting_.empty()) return nullptr;
    disk_request* request = self.waiting_.front();
    self.waiting_.erase(self.waiting_.begin());
    lock.unlock();
    request->result = read_or_write(*request);
    lock.lock();
    self.finished_.push_back(request);
    self.done_.notify_one();
  }
}

void thread_engine::start(disk_request& request) noexcept {
  {
    const std::lock_guard<std::mutex> lock(lock_);
    waiting_.push_back(&request);
  }
  started_.notify_one();
}

disk_request& thread_engine::finish() noexcept {
  std::unique_lock<std::mutex> lock(lock_);
  done_.wait(lock, [this] { return !finished_.empty(); });
  disk_request* request = finished_.back();
  finished_.pop_back();
  return *request;
}

}  // namespace

std::int64_t read_or_write(const disk_request& request) noexcept {
  const auto at = static_cast<off_t>(request.offset);
  while (true) {
    const ssize_t done = request.writes ? pwrite(request.file, request.memory, request.bytes, at)
                                        : pread(request.file, request.memory, request.bytes, at);
    if (done >= 0) return done;
    if (errno != EINTR) return -errno;
  }
}

std::unique_ptr<disk_engine> make_thread_engine(int depth) {
  return std::make_unique<thread_engine>(depth);
}

}  // namespace velo::memory
