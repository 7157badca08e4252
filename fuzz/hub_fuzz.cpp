// SPDX-License-Identifier: Apache-2.0

// Any bytes as a name on the Hub, as its JSON answers, as a signed URL, and as the YAML of a dataset card.

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

#include "base/check.h"
#include "storage/hub/hub_answers.h"
#include "storage/hub/hub_name.h"
#include "storage/hub/hub_site.h"
#include "text/json_value.h"
#include "text/yaml_json.h"

using namespace feedline;

namespace {

constexpr std::size_t kMostYaml = 64 * 1024;

// A name with its revision is the same after a round trip, and cannot leave the API's folder.
void check_name(const std::string& url) {
  const auto name = storage::hub_name(url);
  if (!name) return;
  FEEDLINE_CHECK(std::ranges::count(name->repository, '/') == 1 && name->repository.find("..") != 0);
  FEEDLINE_CHECK(!name->revision.empty() && name->revision.find("..") == std::string::npos);
  const auto again = storage::hub_name(name->text());
  FEEDLINE_CHECK(again && again->repository == name->repository && again->revision == name->revision);
  FEEDLINE_CHECK(again->path == name->path && again->text() == name->text());
}

void check_answers(const std::string& text) {
  if (const auto files = storage::parse_hub_tree(text))
    for (const storage::HubFile& file : *files) {
      FEEDLINE_CHECK(!file.path.empty() && file.path.front() != '/' && file.path.back() != '/');
      FEEDLINE_CHECK(("/" + file.path + "/").find("/../") == std::string::npos);
    }
  if (const auto revision = storage::parse_hub_revision(text)) FEEDLINE_CHECK(storage::is_commit(revision->commit));
  if (const auto expiry = storage::expiry_of_url(text)) FEEDLINE_CHECK(*expiry > -(std::int64_t{1} << 40U));
  const std::string target = storage::HubSite::target_of_page(text);
  FEEDLINE_CHECK(target.empty() || target.front() == '/');
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t bytes) {
  const std::string text(reinterpret_cast<const char*>(data), bytes);
  check_name(text);
  check_name("hf://datasets/org/name" + text);
  check_answers(text);
  if (bytes <= kMostYaml)
    if (const auto json = text::yaml_as_json(text)) FEEDLINE_CHECK(json->size() > kMostYaml || text::parse_json(*json));
  return 0;
}
