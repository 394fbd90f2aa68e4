// A library that breaks every rule elf_facts.py holds libvelo.so to; the self-test expects each
// fact to object to it.
#include <immintrin.h>

#include <string>
#include <vector>

namespace {
struct noisy {
  noisy() { text = "made while loading"; }
  ~noisy() { text.clear(); }
  std::string text;
};
noisy at_load;                      // a constructor that runs when the library is loaded
thread_local noisy per_thread;      // a destructor per thread
thread_local char workspace[4096];  // more thread-local storage than allowed
}  // namespace

namespace velo {
template <class T>
struct counter {
  static int value;  // exported as a unique symbol
};
template <class T>
int counter<T>::value = 1;

int cxx_name(int n) {  // a C++ name that leaves
  static std::vector<int> sizes(3, n);
  return sizes.at(static_cast<unsigned>(n)) + counter<int>::value;
}
}  // namespace velo

extern "C" const char* velo_not_in_the_spec() {
  return (at_load.text + per_thread.text + workspace).c_str();
}
