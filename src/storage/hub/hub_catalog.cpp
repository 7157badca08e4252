// SPDX-License-Identifier: Apache-2.0
#include "storage/hub/hub_catalog.h"

#include <algorithm>
#include <cerrno>
#include <mutex>
#include <utility>

#include "storage/http/url.h"

namespace feedline::storage {
namespace {

constexpr std::uint64_t kMostAnswer = 64 << 20;  // a page has 1,000 entries

std::string target_of(const HubName& name, std::string_view what) {
  return "/api/datasets/" + name.repository + "/" + std::string(what) + "/" + percent_encoded(name.revision, false);
}

std::string folder_of(std::string_view path) {
  const std::size_t slash = path.rfind('/');
  return std::string(path.substr(0, slash == path.npos ? 0 : slash));
}

std::string without_end_slash(std::string path) {
  while (path.ends_with('/')) path.pop_back();
  return path;
}

}  // namespace

HubCatalog::HubCatalog(std::shared_ptr<const HubSite> site, HttpLimits limits, Client* client)
    : site_(std::move(site)), limits_(limits), client_(client), local_(site_->settings().cache) {}

bool HubCatalog::Commit::has(std::string_view folder, bool is_deep) const {
  if (!is_deep && flat.contains(folder)) return true;
  for (std::string above(folder);; above = folder_of(above)) {
    if (deep.contains(above)) return true;
    if (above.empty()) return false;
  }
}

Result<std::string> HubCatalog::get(const HubName& about, const std::string& target, std::string& next) const {
  memory::ByteBuffer buffer;
  Transfer transfer(*site_, limits_, about.root(), buffer, kMostAnswer, {}, target);
  FEEDLINE_TRY(const auto bytes, client_ ? carry_out(*client_, transfer) : carry_out(transfer));
  next = transfer.head().next_page;
  return std::string(reinterpret_cast<const char*>(bytes.data()), bytes.size());
}

Result<HubName> HubCatalog::look_up(const HubName& name) const {
  HubName pinned = name;
  if (site_->settings().is_offline) {
    const auto commit = local_.commit_of(name);
    if (!commit) {
      auto error = storage_error("HF_HUB_OFFLINE=1 forbids requests, and the local cache '" + site_->settings().cache +
                                     "' does not have this revision: unset it, or name a commit that was downloaded",
                                 ENOENT);
      error.error().where.shard = name.root();
      return error;
    }
    pinned.revision = *commit;
    return pinned;
  }
  std::string next;
  FEEDLINE_TRY(const std::string answer, get(name, target_of(name, "revision"), next));
  auto revision = parse_hub_revision(answer);
  if (!revision) {
    revision.error().where.shard = name.root();
    return std::unexpected(std::move(revision).error());
  }
  pinned.revision = revision->commit;
  if (!revision->repository.empty()) pinned.repository = revision->repository;
  return pinned;
}

Result<HubName> HubCatalog::pin(const HubName& name, bool is_new) const {
  if (is_commit(name.revision)) return name;
  const std::string key = name.root();
  const std::lock_guard asking(asking_);
  if (!is_new) {
    const std::lock_guard lock(mutex_);
    if (const auto found = pins_.find(key); found != pins_.end()) {
      HubName pinned = found->second;
      pinned.path = name.path;
      return pinned;
    }
  }
  FEEDLINE_TRY(HubName pinned, look_up(name));
  const std::lock_guard lock(mutex_);
  pins_.insert_or_assign(key, pinned);
  return pinned;
}

Result<std::vector<HubFile>> HubCatalog::list(const HubName& folder, bool is_deep) const {
  if (site_->settings().is_offline) return local_.files(folder);
  std::string target = target_of(folder, "tree");
  if (!folder.path.empty()) target += "/" + percent_encoded(folder.path, true);
  if (is_deep) target += "?recursive=true";
  std::vector<HubFile> all;
  std::set<std::string> targets;
  while (!target.empty()) {
    if (!targets.insert(target).second)
      return storage_error("the listing of '" + folder.text() + "' does not end: the server repeats a page", EREMOTEIO);
    std::string next;
    const auto answer = get(folder, target, next);
    if (!answer && answer.error().system_errno == ENOENT && !folder.path.empty()) return all;  // no such folder
    if (!answer) return std::unexpected(answer.error());
    auto page = parse_hub_tree(*answer);
    if (!page) {
      page.error().where.shard = folder.text();
      return std::unexpected(std::move(page).error());
    }
    all.insert(all.end(), std::make_move_iterator(page->begin()), std::make_move_iterator(page->end()));
    target = HubSite::target_of_page(next);
    if (target.empty() && !next.empty())
      return storage_error("the listing of '" + folder.text() + "' has a next page that is not a URL of the Hub's API",
                           EREMOTEIO);
  }
  return all;
}

Result<void> HubCatalog::need(const HubName& folder, bool is_deep) const {
  const std::string key = folder.root();
  const auto has = [&] {
    const std::lock_guard lock(mutex_);
    return commits_[key].has(folder.path, is_deep);
  };
  if (has()) return {};
  const std::lock_guard asking(asking_);
  if (has()) return {};
  const bool is_offline = site_->settings().is_offline;
  FEEDLINE_TRY(auto files, list(folder, is_deep));
  for (const HubFile& file : files)
    if (file.is_large) site_->expect_redirect(HubName{folder.repository, folder.revision, file.path}.text());
  const std::lock_guard lock(mutex_);
  Commit& commit = commits_[key];
  if (is_offline)
    commit.deep.insert("");
  else
    (is_deep ? commit.deep : commit.flat).insert(folder.path);
  for (HubFile& file : files) commit.entries.insert_or_assign(file.path, file);
  return {};
}

Result<std::optional<HubFile>> HubCatalog::file(const HubName& name) const {
  FEEDLINE_CHECK_OK(need({name.repository, name.revision, folder_of(name.path)}, false));
  const std::lock_guard lock(mutex_);
  const auto& entries = commits_[name.root()].entries;
  const auto found = entries.find(name.path);
  if (found == entries.end() || found->second.is_folder) return std::nullopt;
  return found->second;
}

Result<std::vector<HubFile>> HubCatalog::below(const HubName& folder, bool is_deep) const {
  const HubName named{folder.repository, folder.revision, without_end_slash(folder.path)};
  FEEDLINE_CHECK_OK(need(named, is_deep));
  const std::string prefix = named.path.empty() ? "" : named.path + "/";
  std::vector<HubFile> found;
  const std::lock_guard lock(mutex_);
  const auto& entries = commits_[named.root()].entries;
  for (auto entry = entries.lower_bound(prefix); entry != entries.end() && entry->first.starts_with(prefix); ++entry)
    if (is_deep || entry->first.find('/', prefix.size()) == std::string::npos) found.push_back(entry->second);
  return found;
}

}  // namespace feedline::storage
