// SPDX-License-Identifier: Apache-2.0
#pragma once

// The storage for s3:// and gs://, which have a common XML API. Object names are "s3://bucket/key", as written by the
// user.

#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "storage/http/remote_storage.h"
#include "storage/s3/credentials.h"
#include "storage/s3/listing.h"

namespace feedline::storage {

struct S3Settings {
  std::string scheme = "s3";
  std::string endpoint;  // "https://host"; empty: Amazon's endpoint of the region
  std::string region = "us-east-1";
  bool path_style = false;  // https://host/bucket/key instead of https://bucket.host/key
  bool requester_pays = false;
};
// Reads AWS_ENDPOINT_URL_S3, AWS_ENDPOINT_URL, AWS_REGION, AWS_DEFAULT_REGION, the profile, AWS_S3_ADDRESSING_STYLE
// ("path", "virtual") and AWS_REQUEST_PAYER ("requester"). For gs: GS_ENDPOINT_URL.
S3Settings s3_settings();
S3Settings gs_settings();

// Splits "s3://bucket/key"; returns nullopt if there is no bucket.
struct S3Name {
  std::string_view bucket, key;
};
std::optional<S3Name> s3_name(std::string_view object);

std::int64_t now_in_seconds();

// Returns a page of the keys below a folder. `continued`: S3Listing::next of the previous page. With kFolder, keys
// below a further slash are returned only as their prefix.
Result<S3Listing> list_page(const Remote& remote, const std::string& directory, Depth depth,
                            const std::string& continued, std::size_t most);

// A request to S3 other than a read, such as an upload.
struct S3Order {
  std::string method = "GET";
  std::string query;       // encoded "name=value"
  bool of_bucket = false;  // about the bucket, not the object
  std::optional<std::span<const std::byte>> body = {};
  std::string payload = {};  // as in S3Request
  bool wants_sums = false;   // request checksums with the object or its header
};

class S3Site final : public Site {
 public:
  S3Site(S3Settings settings, KeyRing::Find find_keys, KeyRing::Now now = now_in_seconds)
      : settings_(std::move(settings)), keys_(std::move(find_keys), now), now_(now) {}

  // query: the encoded "name=value" pairs for listing the bucket; empty for an object.
  Result<Call> call(const std::string& object, std::string_view query) const override;
  Result<Call> call(const std::string& object, const S3Order& order) const;
  Result<Call> call_with_sums(const std::string& object, const std::string& method) const override {
    return call(object, {.method = method, .query = {}, .wants_sums = true});
  }
  Result<void> prepare() const override { return keys_.prepare(); }
  Result<void> renew(std::uint64_t keys) const override { return keys_.renew(keys); }
  // Uses another region for all later requests to the bucket.
  bool has_moved(const std::string& object, const ResponseHead& head, std::string_view body) const override;
  Refused refused(const ResponseHead& head, std::string_view body, std::uint64_t keys) const override;
  std::string reason(const ResponseHead& head, std::string_view body) const override;
  const S3Settings& settings() const { return settings_; }
  bool is_encrypted() const { return settings_.endpoint.empty() || settings_.endpoint.starts_with("https:"); }

 private:
  std::string region_of(std::string_view bucket) const;
  bool is_followed(std::string_view region) const;
  const S3Settings settings_;
  const KeyRing keys_;
  const KeyRing::Now now_;
  mutable std::mutex mutex_;
  mutable std::map<std::string, std::string, std::less<>> regions_;  // of buckets in other regions; guarded by mutex_
};

// Folders are the parts of keys between slashes.
class S3Storage final : public RemoteStorage {
 public:
  explicit S3Storage(std::shared_ptr<const S3Site> site, HttpLimits limits = http_limits(), Client* client = nullptr)
      : S3Storage({.site = site, .limits = limits, .client = client}, site->settings().endpoint) {}
  std::shared_ptr<const Storage> reading(const Reading& how) const override {
    return std::shared_ptr<const Storage>(new S3Storage(remote_so(how), endpoint_));
  }
  Result<std::vector<Entry>> list(const std::string& directory) const override;
  bool has_flat_names() const override { return true; }
  Result<Tree> list_below(const std::string& directory, Depth depth) const override;
  Result<bool> is_directory(const std::string& path) const override;
  // Buckets with the same name at different endpoints have different identities.
  std::string identity(const std::string& path) const override;

 private:
  using TakePage = std::function<void(S3Listing& page)>;
  Result<void> each_page(const std::string& directory, Depth depth, const TakePage& take) const;

  S3Storage(Remote remote, std::string endpoint) : RemoteStorage(std::move(remote)), endpoint_(std::move(endpoint)) {}

  const std::string endpoint_;  // empty: Amazon's
};

// Return the storage backends of the process, which the environment configures on first use.
std::shared_ptr<const S3Site> s3_site();
std::shared_ptr<const S3Site> gs_site();
std::shared_ptr<const Storage> s3_storage();
std::shared_ptr<const Storage> gs_storage();

}  // namespace feedline::storage
