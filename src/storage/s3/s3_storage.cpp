// SPDX-License-Identifier: Apache-2.0
#include "storage/s3/s3_storage.h"

#include <algorithm>
#include <array>
#include <cerrno>
#include <ctime>
#include <map>
#include <string_view>
#include <utility>

#include "storage/http/url.h"

namespace feedline::storage {
namespace {

// S3's error codes. Initialized at compile time, because the client still handles responses while the process exits and
// destroys statics.
constexpr std::array<std::string_view, 3> kExpired{"ExpiredToken", "ExpiredTokenException", "TokenRefreshRequired"};
constexpr std::array<std::string_view, 5> kForNow{"SlowDown", "RequestTimeout", "InternalError", "RequestThrottled",
                                                  "ServiceUnavailable"};

constexpr std::uint64_t kMostListing = 64 << 20;  // size of a page: 1,000 keys of at most 1,024 bytes, encoded

template <typename... Texts>
std::string first_of(const Texts&... texts) {
  std::string found;
  for (const std::string& text : {std::string(texts)...})
    if (found.empty()) found = text;
  return found;
}

std::string without_end_slash(std::string text) {
  while (text.ends_with('/')) text.pop_back();
  return text;
}

// Amazon's regions consist of letters, digits and dashes; a response with other characters is rejected, because the
// region becomes part of a host name.
bool is_region(std::string_view text) {
  constexpr std::size_t kLongest = 32;
  const auto fits = [](char c) { return (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9') || c == '-'; };
  return !text.empty() && text.size() <= kLongest && std::ranges::all_of(text, fits);
}

// Returns the prefix of all keys below a folder.
std::string prefix_of(std::string_view key) {
  std::string prefix(key);
  if (!prefix.empty() && !prefix.ends_with('/')) prefix += '/';
  return prefix;
}

std::map<std::string, std::string> query_of_folder(const std::string& prefix, Depth depth, const std::string& continued,
                                                   std::size_t most) {
  std::map<std::string, std::string> query{
      {"list-type", "2"}, {"encoding-type", "url"}, {"max-keys", std::to_string(most)}};
  if (depth == Depth::kFolder) query["delimiter"] = "/";
  if (!prefix.empty()) query["prefix"] = prefix;
  if (!continued.empty()) query["continuation-token"] = continued;
  return query;
}

// Returns the text after the last slash of a key, or of a prefix without its final slash.
std::string last_part(std::string_view key) {
  if (key.ends_with('/')) key.remove_suffix(1);
  return std::string(key.substr(key.rfind('/') + 1));
}

int hex(char c) { return c >= 'A' ? c - 'A' + 10 : c - '0'; }

// Parses a query that query_text() has built.
std::map<std::string, std::string> query_in(std::string_view text) {
  std::map<std::string, std::string> query;
  while (!text.empty()) {
    const std::size_t end = std::min(text.find('&'), text.size());
    const std::string_view part = text.substr(0, end);
    const std::size_t equals = part.find('=');
    std::string value;
    for (std::size_t i = equals + 1; i < part.size(); ++i)
      if (part[i] == '%') {
        value += static_cast<char>(hex(part[i + 1]) * 16 + hex(part[i + 2]));
        i += 2;
      } else {
        value += part[i];
      }
    query[std::string(part.substr(0, equals))] = value;
    text.remove_prefix(std::min(end + 1, text.size()));
  }
  return query;
}

// In listings, some servers omit the quotes that the ETag has in responses for the object itself.
std::uint64_t tag_of_listed(const std::string& etag) {
  if (etag.empty()) return 0;
  return tag_of(etag.ends_with('"') ? etag : '"' + etag + '"');
}

Error not_listed(Error error, const std::string& directory) {
  error.where.shard = directory;
  if (error.system_errno == EACCES) error.what += "; a folder is found by a listing, which takes s3:ListBucket";
  return error;
}

}  // namespace

Result<S3Listing> list_page(const Remote& remote, const std::string& directory, Depth depth,
                            const std::string& continued, std::size_t most) {
  const auto name = s3_name(directory);
  if (!name) return config_error("'" + directory + "' has no bucket");
  memory::ByteBuffer buffer;
  Transfer transfer(*remote.site, remote.limits, directory, buffer, kMostListing, {},
                    query_text(query_of_folder(prefix_of(name->key), depth, continued, most)));
  const auto bytes = remote.carry_out(transfer);
  if (!bytes) return std::unexpected(not_listed(bytes.error(), directory));
  auto listing = parse_listing({reinterpret_cast<const char*>(bytes->data()), bytes->size()});
  if (!listing) listing.error().where.shard = directory;
  return listing;
}

std::int64_t now_in_seconds() { return static_cast<std::int64_t>(std::time(nullptr)); }

S3Settings s3_settings() {
  S3Settings settings;
  settings.endpoint = without_end_slash(
      first_of(variable("AWS_ENDPOINT_URL_S3"), variable("AWS_ENDPOINT_URL"), profile_value("endpoint_url")));
  settings.region =
      first_of(variable("AWS_REGION"), variable("AWS_DEFAULT_REGION"), profile_value("region"), "us-east-1");
  const std::string style = variable("AWS_S3_ADDRESSING_STYLE");
  settings.path_style = style == "path" || (style != "virtual" && !settings.endpoint.empty());
  settings.requester_pays = variable("AWS_REQUEST_PAYER") == "requester";
  return settings;
}

S3Settings gs_settings() {
  const std::string endpoint = first_of(variable("GS_ENDPOINT_URL"), "https://storage.googleapis.com");
  return {.scheme = "gs", .endpoint = without_end_slash(endpoint), .region = "auto", .path_style = true};
}

std::optional<S3Name> s3_name(std::string_view object) {
  const std::size_t mark = object.find("://");
  if (mark == object.npos) return {};
  const std::string_view rest = object.substr(mark + 3);
  const std::size_t slash = std::min(rest.find('/'), rest.size());
  if (slash == 0) return {};
  return S3Name{rest.substr(0, slash), rest.substr(std::min(slash + 1, rest.size()))};
}

Result<Call> S3Site::call(const std::string& object, std::string_view query) const {
  return call(object, {.query = std::string(query), .of_bucket = !query.empty()});
}

Result<Call> S3Site::call(const std::string& object, const S3Order& order) const {
  const auto name = s3_name(object);
  if (!name) return config_error("'" + object + "' has no bucket");
  const std::string region = region_of(name->bucket);
  const std::string base = settings_.endpoint.empty() ? "https://s3." + region + ".amazonaws.com" : settings_.endpoint;
  const auto parts = parts_of_url(base);
  if (!parts) return config_error("the endpoint '" + base + "' is not a URL: write https://host");
  // no certificate is valid for a bucket name with a dot before the host
  const bool path_style = settings_.path_style || name->bucket.find('.') != name->bucket.npos;
  S3Request request;
  request.method = order.method;
  request.payload = order.payload;
  request.host = (path_style ? "" : std::string(name->bucket) + ".") + std::string(parts->authority);
  request.path = std::string(parts->path) + "/" + (path_style ? std::string(name->bucket) + "/" : "") +
                 (order.of_bucket ? "" : percent_encoded(name->key, true));
  request.query = query_in(order.query);
  if (order.wants_sums && settings_.scheme == "s3") request.headers["x-amz-checksum-mode"] = "ENABLED";
  if (settings_.requester_pays) request.headers["x-amz-request-payer"] = "requester";
  Call call{.url = std::string(parts->scheme) + "://" + request.host + request.path,
            .headers = {},
            .method = order.method,
            .body = order.body};
  if (!order.query.empty()) call.url += "?" + query_text(request.query);
  const S3Keys keys = keys_.keys();
  call.keys = keys.generation;
  if (!keys.id.empty()) {
    call.headers = signed_headers(request, keys, region, now_());
    return call;
  }
  for (const auto& [header, value] : request.headers) call.headers.push_back(header + ": " + value);
  if (keys.bearer.empty()) return call;
  if (!is_private(*parts))
    return config_error("the endpoint '" + base + "' is not encrypted, so others could read the token: use https://");
  call.headers.push_back("Authorization: Bearer " + keys.bearer);
  return call;
}

std::string S3Site::region_of(std::string_view bucket) const {
  const std::lock_guard lock(mutex_);
  const auto found = regions_.find(bucket);
  return found == regions_.end() ? settings_.region : found->second;
}

bool S3Site::is_followed(std::string_view region) const {
  const std::lock_guard lock(mutex_);
  return std::ranges::any_of(regions_, [&](const auto& bucket) { return bucket.second == region; });
}

bool S3Site::has_moved(const std::string& object, const ResponseHead& head, std::string_view body) const {
  const bool may_be = head.status == 301 || head.status == 307 || head.status == 400;
  const auto name = s3_name(object);
  if (!may_be || !name || settings_.scheme != "s3") return false;
  const std::string region = head.bucket_region.empty() ? xml_text(body, "Region") : head.bucket_region;
  if (!is_region(region) || region == region_of(name->bucket)) return false;
  const std::lock_guard lock(mutex_);
  regions_.insert_or_assign(std::string(name->bucket), region);
  return true;
}

Refused S3Site::refused(const ResponseHead& head, std::string_view body, std::uint64_t keys) const {
  const std::string code = xml_text(body, "Code");
  if (std::ranges::find(kExpired, code) != kExpired.end()) return Refused::kForCredentials;
  if (std::ranges::find(kForNow, code) != kForNow.end()) return Refused::kForNow;
  if (head.status == 401 && !keys_.keys().bearer.empty()) return Refused::kForCredentials;  // Google's error codes
  return Site::refused(head, body, keys);
}

std::string S3Site::reason(const ResponseHead& head, std::string_view body) const {
  std::string text = xml_text(body, "Code");
  if (!head.bucket_region.empty() && head.bucket_region != settings_.region && head.status != 404 &&
      !is_followed(head.bucket_region))
    text += std::string(text.empty() ? "" : ": ") + "the bucket is in " + head.bucket_region + ", and not in " +
            settings_.region + ": set AWS_REGION";
  if ((head.status == 403 || head.status == 401) && keys_.keys().is_empty())
    text +=
        std::string(text.empty() ? "" : ": ") + "sent without keys, as none were found" +
        (settings_.scheme == "gs"
             ? ": set GS_ACCESS_KEY_ID and GS_SECRET_ACCESS_KEY; or set GOOGLE_APPLICATION_CREDENTIALS or run `gcloud "
               "auth application-default login`, which need google-auth: pip install \"feedline[gs]\""
             : ": set AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY, or AWS_PROFILE; roles, single sign-on and keys of "
               "containers and instances need botocore: pip install \"feedline[s3]\"");
  return text;
}

Result<void> S3Storage::each_page(const std::string& directory, Depth depth, const TakePage& take) const {
  std::string next;
  do {
    constexpr std::size_t kMostKeys = 1000;
    FEEDLINE_TRY(S3Listing page, list_page(remote_, directory, depth, next, kMostKeys));
    take(page);
    if (page.next == next && !next.empty())
      return storage_error("the listing of '" + directory + "' does not end: the server repeats a page", EREMOTEIO);
    next = std::move(page.next);
  } while (!next.empty());
  return {};
}

Result<std::vector<Entry>> S3Storage::list(const std::string& directory) const {
  std::map<std::string, bool> entries;  // sorted, without duplicates
  FEEDLINE_CHECK_OK(each_page(directory, Depth::kFolder, [&](const S3Listing& page) {
    for (const auto& object : page.objects)
      if (!object.key.ends_with('/')) entries.emplace(last_part(object.key), false);  // others are folder markers
    for (const std::string& prefix : page.prefixes) entries.emplace(last_part(prefix), true);
  }));
  std::vector<Entry> list;
  for (const auto& [name, is_directory] : entries) list.push_back({name, is_directory});
  if (!list.empty()) return list;
  auto error = storage_error("", ENOENT);
  error.error().what += ": " + directory;
  error.error().where.shard = directory;
  return error;
}

Result<Tree> S3Storage::list_below(const std::string& directory, Depth depth) const {
  const auto name = s3_name(directory);
  const std::size_t prefix = name ? prefix_of(name->key).size() : 0;
  Tree tree;
  const auto folder_of = [&](const std::string& key) { return key.substr(prefix, key.size() - prefix - 1); };
  FEEDLINE_CHECK_OK(each_page(directory, depth, [&](const S3Listing& page) {
    for (const auto& object : page.objects) {
      if (object.key.size() <= prefix) continue;  // the folder's own marker
      if (object.key.ends_with('/'))
        tree.marks.push_back(folder_of(object.key));
      else
        tree.objects.push_back({object.key.substr(prefix), object.bytes, tag_of_listed(object.etag)});
    }
    for (const std::string& key : page.prefixes) tree.folders.push_back(folder_of(key));
  }));
  return tree;
}

Result<bool> S3Storage::is_directory(const std::string& path) const {
  const auto name = s3_name(path);
  if (name && (name->key.empty() || name->key.ends_with('/'))) return true;
  FEEDLINE_TRY(const S3Listing page, list_page(remote_, path, Depth::kFolder, "", 1));
  return !page.objects.empty() || !page.prefixes.empty();
}

std::string S3Storage::identity(const std::string& path) const {
  return endpoint_.empty() ? path : path + " at " + without_secrets(endpoint_);
}

std::shared_ptr<const S3Site> s3_site() {
  static const auto site = std::make_shared<const S3Site>(s3_settings(), [] { return find_keys("s3"); });
  return site;
}

std::shared_ptr<const S3Site> gs_site() {
  static const auto site = std::make_shared<const S3Site>(gs_settings(), [] { return find_keys("gs"); });
  return site;
}

std::shared_ptr<const Storage> s3_storage() {
  static const std::shared_ptr<const Storage> storage = std::make_shared<S3Storage>(s3_site());
  return storage;
}

std::shared_ptr<const Storage> gs_storage() {
  static const std::shared_ptr<const Storage> storage = std::make_shared<S3Storage>(gs_site());
  return storage;
}

}  // namespace feedline::storage
