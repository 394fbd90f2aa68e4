// The machine a program runs on: which kind of processor it is, which instruction sets are open to
// us, where threads run, and memory that does not disturb the clock.
//
// Figures of two machines compare only as shares of their own limits, so every report names its CPU
// kind and goals may be bounded per kind. An instruction set that is named lowers what is reported
// here as it lowers what velo uses, so that the limits still fit. Buffers are page-aligned mappings
// of huge pages, touched when made: no first-touch fault falls into a timed call.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <string>
#include <vector>

namespace velo::bench {

struct machine {
  std::string kind;   // "zen4", "zen5", "granite rapids", "sapphire rapids", else the brand string
  std::string brand;  // as CPUID says
  bool avx2 = false, avx512 = false, avx512_bf16 = false, amx = false;
  std::int64_t cache_bytes = 0;  // of the last level, as reported; others may share it
  std::vector<int> cpus;         // the processors this process may use, in order of use
};

// Both ask Linux for permission to use AMX. Without a name VELO_ISA gives the highest
// instruction set that is reported; an unknown or empty name lowers nothing.
machine identify_machine();
machine identify_machine(const std::string& isa);

void pin_thread(int cpu);

// Pins every thread but the caller, whichever library started it, to cpus[1] .. cpus[threads - 1]
// in turn.
void pin_workers(const std::vector<int>& cpus, int threads);

// Runs body(0..threads-1), each on its own pinned thread, from a common start; returns seconds from
// start to last end.
double run_pinned(const std::vector<int>& cpus, int threads, const std::function<void(int)>& body);

double load_average();  // of the last minute

// Times a stretch of the calling thread. Where Linux took the processor away meanwhile
// (an involuntary context switch of any thread of the process), the stretch counts as
// disturbed; of work that this thread does alone its CPU time is then the better measure, and
// is what seconds() gives.
class stopwatch {
 public:
  explicit stopwatch(bool alone);
  void stop();
  double seconds() const { return alone_ && disturbed_ ? cpu_ : wall_; }
  bool disturbed() const { return disturbed_; }

 private:
  bool alone_, disturbed_ = false;
  std::int64_t switches_;
  double cpu_, wall_;  // the readings at the start, after stop() what passed
};

// An anonymous mapping with MADV_HUGEPAGE, every page touched. Movable, released with the owner.
class buffer {
 public:
  buffer() = default;
  explicit buffer(std::size_t bytes);
  ~buffer();
  buffer(buffer&& other) noexcept;
  buffer& operator=(buffer&& other) noexcept;
  buffer(const buffer&) = delete;
  buffer& operator=(const buffer&) = delete;

  void* data() const { return data_; }
  std::size_t bytes() const { return bytes_; }
  template <class T>
  T* as() const {
    return static_cast<T*>(data_);
  }

 private:
  void* data_ = nullptr;
  std::size_t bytes_ = 0;
  std::size_t mapped_ = 0;
};

}  // namespace velo::bench
