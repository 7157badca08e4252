// SPDX-License-Identifier: Apache-2.0
#include "feedline/stored_source.h"

#include "base/guarded.h"
#include "storage/hub/hub_storage.h"
#include "text/yaml_json.h"

namespace feedline {

Result<std::string> pin_hub(const std::string& url) {
  return base::guarded([&] { return storage::pinned_hub_url(url, true); });
}

Result<std::vector<HubEntry>> list_hub(const std::string& pinned) {
  return base::guarded([&]() -> Result<std::vector<HubEntry>> {
    const auto name = storage::hub_name(pinned);
    if (!name) return internal_error("'" + pinned + "' does not name a dataset");
    FEEDLINE_TRY(const auto files, storage::hub_storage()->catalog().below(*name, true));
    std::vector<HubEntry> entries;
    for (const storage::HubFile& file : files)
      if (!file.is_folder) entries.push_back({file.path, file.bytes});
    return entries;
  });
}

Result<std::string> card_as_json(std::string_view yaml) {
  return base::guarded([&] { return text::yaml_as_json(yaml); });
}

}  // namespace feedline
