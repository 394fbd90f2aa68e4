// The output folder of a run, locked while the run lasts.
//
//   checkpoint/   the last one saved; one of an earlier run is kept as checkpoint.1, ..
//   loss.svg      the curve
//   .lock         a regular file, held by the run that writes here; it stays, the hold ends with
//                 its process
//
// Everything that would keep the run from saving is refused here, before training, not hours later.
#pragma once

#include <string>

#include "examples/decoder/files/file.hpp"

namespace decoder {

class out_folder {
 public:
  explicit out_folder(const std::string& path);  // makes the folder if it is missing

  std::string checkpoint() const { return path_ + "/checkpoint"; }
  std::string curve() const { return path_ + "/loss.svg"; }

  // Refuses the file that a flag names where it would overwrite one of the run's own.
  void require_apart(const char* flag, const std::string& file) const;

  // The first free name for an earlier run's checkpoint; empty without such a checkpoint.
  std::string place_for_earlier() const;

 private:
  void lock();

  std::string path_;
  descriptor lock_;
};

}  // namespace decoder
