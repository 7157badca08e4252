// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

namespace feedline::storage {

// The settings of huggingface_hub, from the same variables:
//
//   endpoint  HF_ENDPOINT
//   token     HF_TOKEN, HUGGING_FACE_HUB_TOKEN, the file HF_TOKEN_PATH, the file HF_HOME/token
//   cache     HF_HUB_CACHE, HUGGINGFACE_HUB_CACHE, HF_HOME/hub
//   offline   HF_HUB_OFFLINE, TRANSFORMERS_OFFLINE: 1, on, yes or true
//
// HF_HOME is XDG_CACHE_HOME/huggingface by default, and that is ~/.cache.
struct HubSettings {
  std::string endpoint = "https://huggingface.co";
  std::string token = {};  // never shown or stored
  std::string cache = {};  // empty: there is no local cache
  bool is_offline = false;
  friend auto operator<=>(const HubSettings&, const HubSettings&) = default;
};
HubSettings hub_settings();

}  // namespace feedline::storage
