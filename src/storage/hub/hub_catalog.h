// SPDX-License-Identifier: Apache-2.0
#pragma once

// Caches the commits of branches and the files of commits. Requests each of them at most once.

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "base/fork_mutex.h"
#include "storage/http/remote_storage.h"
#include "storage/hub/hub_answers.h"
#include "storage/hub/hub_name.h"
#include "storage/hub/hub_site.h"
#include "storage/hub/local_hub.h"

namespace feedline::storage {

// Thread-safe. A commit's listing never changes, so it is never requested again.
class HubCatalog {
 public:
  HubCatalog(std::shared_ptr<const HubSite> site, HttpLimits limits, Client* client);

  // Returns the name with a commit as its revision and, if the dataset was renamed, with its new name. is_new: a branch
  // is looked up again, even if this process has done so.
  Result<HubName> pin(const HubName& name, bool is_new) const;
  // Returns the file of a pinned name; nullopt if there is none. Lists the file's folder unless it was listed.
  Result<std::optional<HubFile>> file(const HubName& name) const;
  // Returns the entries below a pinned folder (path ""), with paths relative to the repository, sorted by path.
  // is_deep: at all depths. Empty if there is no such folder.
  Result<std::vector<HubFile>> below(const HubName& folder, bool is_deep) const;

 private:
  struct Commit {
    std::map<std::string, HubFile, std::less<>> entries;
    std::set<std::string, std::less<>> deep, flat;  // folders that were listed, with and without their subfolders
    bool has(std::string_view folder, bool is_deep) const;
  };
  Result<std::string> get(const HubName& about, const std::string& target, std::string& next) const;
  Result<HubName> look_up(const HubName& name) const;
  Result<std::vector<HubFile>> list(const HubName& folder, bool is_deep) const;
  Result<void> need(const HubName& folder, bool is_deep) const;

  const std::shared_ptr<const HubSite> site_;
  const HttpLimits limits_;
  Client* const client_;
  const LocalHub local_;
  mutable ForkMutex asking_;  // held during requests for listings and revisions
  mutable ForkMutex mutex_;
  // guarded by mutex_
  mutable std::map<std::string, HubName> pins_;    // by name.root()
  mutable std::map<std::string, Commit> commits_;  // by name.root()
};

}  // namespace feedline::storage
