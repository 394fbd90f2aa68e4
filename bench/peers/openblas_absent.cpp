// Stands in for OpenBLAS where it is not installed: every bound call is empty.
#include "bench/peers/peers.hpp"

namespace velo::bench::openblas {

std::string version() {
  return {};
}
void set_threads(int) {}
bound_call matmul(const product&, const void*, const void*, void*) {
  return {};
}

}  // namespace velo::bench::openblas
