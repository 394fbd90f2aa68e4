// The folder a run writes to, its alone while it runs.
//
//   checkpoint/   the last one saved; one of an earlier run is kept as checkpoint.1, ..
//   loss.svg      the curve
//   .lock         a regular file, held by the run that writes here; it stays, the hold ends with
//                 its process
//
// Whatever would keep the run from saving is refused here, before training, not hours later.
#pragma once

#include <string>

#include "examples/decoder/files/file.hpp"

namespace decoder {

class out_folder {
 public:
  explicit out_folder(const std::string& path);  // makes it, if need be

  std::string checkpoint() const { return path_ + "/checkpoint"; }
  std::string curve() const { return path_ + "/loss.svg"; }

  // Refuses a file, named by a flag, that would lie where the run's own files do.
  void require_apart(const char* flag, const std::string& file) const;

  // The first name free for an earlier run's checkpoint; empty when there is none of these.
  std::string place_for_earlier() const;

 private:
  void lock();

  std::string path_;
  descriptor lock_;
};

}  // namespace decoder
