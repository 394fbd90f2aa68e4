// A program that is not linked to velo: opens the library whose path it is given and prints its
// version.
#include <cstdio>
#include <velo/velo.hpp>

int main(int, char** argv) try {
  velo::load(argv[1]);
  const velo::library_version version = velo::version();
  std::printf("%d.%d.%d\n", version.major_number, version.minor_number, version.patch_number);
  return 0;
} catch (const velo::error& failure) {
  std::fprintf(stderr, "%s\n", failure.what());
  return 1;
}
