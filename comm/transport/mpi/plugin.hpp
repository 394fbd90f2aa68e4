// What libvelo.so asks of MPI: messages between the ranks of a communicator, and nothing else. Not
// its reductions: they promise no order, and a caller's function would get no pointer of the
// caller's.
//
// The plugin libvelo_mpi.so is the only file that sees mpi.h; it answers with this table, made for
// the release that is named in it and for no other. It keeps a communicator of velo's own behind
// each that a host names, so that no message of velo meets one of the host. Invariant: nothing here
// waits for another rank.
#pragma once

#include <cstdint>

namespace velo::comm {

inline constexpr const char* mpi_plugin_file = "libvelo_mpi.so";
inline constexpr const char* mpi_plugin_symbol = "velo_mpi_plugin";
inline constexpr std::int64_t mpi_world = -1;  // MPI_COMM_WORLD; any other: an MPI_Fint

// A communicator of velo's own, and what velo keeps with it.
struct mpi_line {
  int rank = 0, size = 1, most_tag = 32767;
  void* keep = nullptr;           // velo's, of all groups of the communicator
  void (*drop)(void*) = nullptr;  // ends it
};

// Makes what velo keeps with a line, and sets both; false: no memory.
struct mpi_keeper {
  bool (*make)(mpi_line* line, void* with) noexcept;
  void* with;
};

// A message under way; 0: none.
struct mpi_request {
  std::uint64_t word = 0;
};

struct mpi_plugin {
  const char* release;  // of velo
  const char* engine;   // "Open MPI 4.1.4"

  // Functions that can fail return whether they did not; `why`, 128 bytes, says it otherwise.

  // MPI is initialized, by the host or now, for calls from any thread: once `*done`, else the call
  // is to be repeated.
  bool (*start)(int* done, char* why);
  // A line of a communicator: `*line` once `*done`, else the call is to be repeated. To be given
  // back with close.
  bool (*open)(std::int64_t communicator, mpi_keeper keeper, mpi_line** line, int* done, char* why);
  void (*close)(mpi_line* line);

  bool (*send)(mpi_line* line, const void* bytes, int count, int to, int tag, mpi_request* begun,
               char* why);
  // from: -1 = of whom it comes.
  bool (*receive)(mpi_line* line, void* bytes, int count, int from, int tag, mpi_request* begun,
                  char* why);
  bool (*test)(mpi_request* of, int* done, char* why);
  // Takes back what nobody has answered. False: it is under way, and its bytes are still MPI's.
  bool (*cancel)(mpi_request* of);

  // The end of the process may not wait for the other ranks longer than a moment.
  void (*doubt)();
};

using mpi_plugin_fn = const mpi_plugin* (*)();

}  // namespace velo::comm
