// The files of a run beside its checkpoints: they are checked before training, so that hours of
// work do not end in a file that cannot be written.
#pragma once

#include <string>
#include <vector>

#include "examples/decoder/checkpoint/out_folder.hpp"
#include "examples/decoder/report/expert_picture.hpp"
#include "examples/decoder/report/loss_curve.hpp"
#include "examples/decoder/settings.hpp"
#include "examples/decoder/train/trainer.hpp"

namespace pretrain {

using namespace decoder;

// Refuses files that would overwrite those of the output folder, and a timeline whose place holds
// something else; makes the directory of profiles.
void require_outputs(const out_folder& out, const settings& values, bool resumes);

// Writes when the ranks did what in the last step: a picture for .svg, else a trace for Perfetto.
void write_timeline(const std::string& path, const velo::timeline& measured);

// Draws the loads of experts.
void write_expert_picture(const std::string& path, const expert_picture& of,
                          const std::string& title);

// Writes what the ranks' profiles have, by rank, empty for one that has none: DIR/rank3.json, and
// DIR/all.json, traces for Perfetto, and DIR/all.svg, a picture. The directory is there.
void write_profiles(const std::string& directory, const std::vector<std::string>& events);

// Draws the losses of all steps and the validations, in bits a byte. `zlib` is zlib's figure.
void write_loss_curve(const std::string& path, const settings& values, const trainer& of,
                      const std::vector<loss_point>& validations, double zlib);

}  // namespace pretrain
