// Layers and routers like GLM-4's, of a model with an even number of experts and two layers or
// more.
#pragma once

#include "examples/decoder/settings.hpp"

inline void set_glms_layers(decoder::model_settings& m) {
  m.dense_layers = 1, m.shared_experts = 2;
  m.router = "sigmoid", m.router_bias = true, m.router_scale = 1.5;
  m.router_groups = 2, m.router_groups_kept = 1, m.experts_per_token = 2;
}
