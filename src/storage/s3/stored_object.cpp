// SPDX-License-Identifier: Apache-2.0
#include "feedline/stored_object.h"

#include <algorithm>
#include <cerrno>
#include <set>
#include <stop_token>
#include <utility>

#include "base/guarded.h"
#include "base/test_conditions.h"
#include "storage/http/response_head.h"
#include "storage/registry.h"
#include "storage/s3/upload.h"

namespace feedline {

struct ObjectFolder::Impl {
  storage::S3Remote remote;
  std::string url;
  std::stop_source stop;
  storage::UploadLimits limits;

  std::string object(const std::string& name) const { return url + "/" + name; }
};

namespace {

constexpr std::uint64_t kLeastPart = 5 << 20;  // S3's minimum for all parts but the last

storage::UploadLimits upload_limits() {
  storage::UploadLimits limits;
  if (const std::uint64_t bytes = base::test_conditions().upload_part_bytes; bytes > 0)
    limits.part_bytes = std::max(bytes, kLeastPart);
  return limits;
}

// A URL should not contain a key; if it does, the message omits the key.
bool has_keys(std::string_view url) { return url.substr(0, url.find('/', url.find("://") + 3)).find('@') != url.npos; }

}  // namespace

ObjectFolder::ObjectFolder(std::shared_ptr<Impl> impl) : impl_(std::move(impl)) {}

Result<ObjectFolder> ObjectFolder::open(const std::string& url) {
  return base::guarded([&]() -> Result<ObjectFolder> {
    const std::string scheme = storage::scheme_of(url);
    if (scheme != "s3" && scheme != "gs")
      return config_error("cannot write to '" + scheme + "://': only s3:// and gs:// are supported");
    if (has_keys(url))
      return config_error("the " + scheme + ":// URL contains credentials: set them in the environment instead");
    auto impl = std::make_shared<Impl>();
    impl->url = scheme + url.substr(scheme.size());
    while (impl->url.ends_with('/')) impl->url.pop_back();
    const auto name = storage::s3_name(impl->url);
    if (!name) return config_error("'" + url + "' has no bucket");
    if (name->key.find('?') != name->key.npos || name->key.find('#') != name->key.npos)
      return config_error("'" + url + "': the URL of a prefix to write to must not contain '?' or '#'");
    impl->remote.site = scheme == "gs" ? storage::gs_site() : storage::s3_site();
    impl->limits = upload_limits();
    return ObjectFolder(std::move(impl));
  });
}

const std::string& ObjectFolder::url() const { return impl_->url; }

Result<std::vector<StoredEntry>> ObjectFolder::entries() const {
  return base::guarded([&]() -> Result<std::vector<StoredEntry>> {
    constexpr std::size_t kMostKeys = 1000;
    const storage::Remote remote{impl_->remote.site, impl_->remote.limits, impl_->remote.client};
    FEEDLINE_CHECK_OK(remote.site->prepare());
    const std::string_view key = storage::s3_name(impl_->url)->key;
    const std::size_t front = key.empty() ? 0 : key.size() + 1;  // including the slash
    std::vector<StoredEntry> entries;
    std::string next;
    do {
      FEEDLINE_TRY(const auto page, storage::list_page(remote, impl_->url, storage::Depth::kFolder, next, kMostKeys));
      for (const auto& object : page.objects)
        if (object.key.size() > front)  // otherwise it is the folder's own marker
          entries.push_back({object.key.substr(front), object.bytes, object.etag, false});
      for (std::string prefix : page.prefixes) {
        prefix.pop_back();  // the trailing slash
        entries.push_back({prefix.substr(std::min(front, prefix.size())), 0, {}, true});
      }
      if (page.next == next && !next.empty())
        return storage_error("the listing of '" + impl_->url + "' does not end: the server repeats a page", EREMOTEIO);
      next = page.next;
    } while (!next.empty());
    std::ranges::sort(entries, {}, &StoredEntry::name);
    return entries;
  });
}

Result<std::string> ObjectFolder::put(const std::string& name, std::span<const std::byte> bytes) const {
  return base::guarded(
      [&] { return storage::put_object(impl_->remote, impl_->object(name), bytes, impl_->stop.get_token()); });
}

Result<std::string> ObjectFolder::upload(const std::string& file, const std::string& name) const {
  return base::guarded([&] {
    return storage::upload_file(impl_->remote, file, impl_->object(name), impl_->limits, impl_->stop.get_token());
  });
}

void ObjectFolder::cancel() const { impl_->stop.request_stop(); }

Result<void> ObjectFolder::remove(const std::string& name) const {
  return base::guarded([&] { return storage::remove_object(impl_->remote, impl_->object(name)); });
}

Result<std::uint64_t> ObjectFolder::abort_unfinished(const std::vector<std::string>& names) const {
  return base::guarded([&]() -> Result<std::uint64_t> {
    FEEDLINE_TRY(const auto uploads, storage::unfinished_uploads(impl_->remote, impl_->url + "/"));
    std::set<std::string> keys;
    for (const std::string& name : names) keys.emplace(storage::s3_name(impl_->object(name))->key);
    std::uint64_t aborted = 0;
    for (const auto& upload : uploads) {
      if (!keys.contains(upload.key)) continue;
      const std::string bucket(storage::s3_name(impl_->url)->bucket);
      const std::string object = impl_->url.substr(0, impl_->url.find("://") + 3) + bucket + "/" + upload.key;
      FEEDLINE_CHECK_OK(storage::abort_upload(impl_->remote, object, upload.id));
      ++aborted;
    }
    return aborted;
  });
}

}  // namespace feedline
