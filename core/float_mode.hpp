// IEEE arithmetic while velo computes, whatever mode the host's thread is in.
//
// A host built with -ffast-math, or one that asked for it, runs with denormals flushed to zero
// on some threads and not on others; results would then depend on which thread ran a task.
// Every thread that runs kernels holds a float_mode meanwhile. Cost: about 10 ns, once per
// operator and thread.
#pragma once

#if defined(__x86_64__)
#include <xmmintrin.h>
#endif

namespace velo::core {

class float_mode {
 public:
#if defined(__x86_64__)
  float_mode() : before_(_mm_getcsr()) {
    _mm_setcsr(standard);
  }
  ~float_mode() {
    _mm_setcsr(before_);
  }
#else
  float_mode() {}
  ~float_mode() {}
#endif
  float_mode(const float_mode&) = delete;
  float_mode& operator=(const float_mode&) = delete;

 private:
#if defined(__x86_64__)
  static constexpr unsigned standard =
      0x1f80;  // round to nearest, denormals kept, all traps masked
  unsigned before_;
#endif
};

}  // namespace velo::core
