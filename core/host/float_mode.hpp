// IEEE arithmetic while velo computes, whatever the mode of the host's thread.
//
// A host built with -ffast-math, or one that set this mode, flushes denormals to zero on some
// threads and not on others; results would then depend on the thread that runs a task. Every thread
// that runs kernels holds a float_mode meanwhile, which does nothing if the mode is already right.
// Cost: about 10 ns, once for each operator and thread.
#pragma once

#if defined(__x86_64__)
#include <xmmintrin.h>
#endif

namespace velo::core {

class float_mode {
 public:
#if defined(__x86_64__)
  explicit float_mode(bool needed = true) : needed_(needed), before_(needed ? _mm_getcsr() : 0) {
    if (needed_) _mm_setcsr(standard);
  }
  ~float_mode() {
    if (needed_) _mm_setcsr(before_);
  }
#else
  explicit float_mode(bool = true) {}
  ~float_mode() {}
#endif
  float_mode(const float_mode&) = delete;
  float_mode& operator=(const float_mode&) = delete;

 private:
#if defined(__x86_64__)
  static constexpr unsigned standard =
      0x1f80;  // round to nearest, denormals kept, all traps masked
  const bool needed_;
  const unsigned before_;
#endif
};

}  // namespace velo::core
