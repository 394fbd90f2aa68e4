// A mutex for critical sections of a fraction of a microsecond: a thread that finds it locked spins
// briefly before it sleeps, since sleeping and waking takes longer than the section.
#pragma once

#include <pthread.h>

namespace velo::memory {

class brief_lock {
 public:
  brief_lock() = default;
  ~brief_lock() { pthread_mutex_destroy(&mutex_); }
  brief_lock(const brief_lock&) = delete;
  brief_lock& operator=(const brief_lock&) = delete;

  void lock() noexcept { pthread_mutex_lock(&mutex_); }
  void unlock() noexcept { pthread_mutex_unlock(&mutex_); }

 private:
#if defined(PTHREAD_ADAPTIVE_MUTEX_INITIALIZER_NP)
  pthread_mutex_t mutex_ = PTHREAD_ADAPTIVE_MUTEX_INITIALIZER_NP;
#else
  pthread_mutex_t mutex_ = PTHREAD_MUTEX_INITIALIZER;
#endif
};

}  // namespace velo::memory
