// A foreign library in C++ whose functions throw.
#include <stdexcept>

extern "C" {
void throws_exception() {
  throw std::runtime_error("no more paper");
}
void throws_number() {
  throw 7;
}
}
