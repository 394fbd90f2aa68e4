// The system's calls for files, failing on demand: the linker puts these in the place of the disk
// tier's calls (tests/memory/CMakeLists.txt). Requests of io_uring are changed before they go out,
// so that the kernel itself fails them.
#pragma once

namespace velo::testing {

struct disk_calls {
  enum class fault {
    none,
    error,    // the call fails with `number`; io_uring: with an error of the kernel's
    part,     // it does less than it was asked, `all_later` or once
    nothing,  // it does nothing and says so
    refused,  // of io_uring: the ring takes no request
  };
  fault what = fault::none;
  bool writes = true;      // else reads
  int remaining = 0;       // such calls until the fault
  bool all_later = false;  // and every later one
  int number = 0;          // errno
  int struck = 0;          // faults so far

  bool slow = false;  // writes of threads take 5 ms, and `together` is the most at one time
  int inside = 0, together = 0;

  int no_space = 0;             // fallocate fails with this errno, unless 0
  bool no_space_large = false;  // only where it is asked for more than a page
  bool no_nameless = false;     // O_TMPFILE is refused
  bool no_direct = false;       // O_DIRECT is refused
  int no_ring = 0;              // io_uring_queue_init fails with this errno, unless 0
};
disk_calls& disk();
void end_faults();       // all as it was at first
int writes_under_way();  // of slow ones

}  // namespace velo::testing
