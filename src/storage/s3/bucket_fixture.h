// SPDX-License-Identifier: Apache-2.0
#pragma once

// Test support: a bucket in this process, whose listings are like S3's.

#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <set>
#include <string>
#include <string_view>
#include <utility>

#include "storage/http/http_server_fixture.h"
#include "storage/http/url.h"
#include "storage/s3/s3_storage.h"

namespace feedline::storage {

// The objects of "s3://bucket/" by key. Any thread.
class Bucket {
 public:
  void put(const std::string& key, std::string content) {
    const std::lock_guard lock(mutex_);
    objects_[key] = std::move(content);
  }
  void remove(const std::string& key) {
    const std::lock_guard lock(mutex_);
    objects_.erase(key);
  }

  ServedAnswer answer(const ServedRequest& request) const {
    const std::lock_guard lock(mutex_);
    const std::size_t question = std::min(request.target.find('?'), request.target.size());
    const std::string path = percent_decoded(request.target.substr(0, question)).value_or("");
    if (path == "/bucket/") return {.body = list(parameters(request.target.substr(question)))};
    const auto found = objects_.find(path.substr(std::string_view("/bucket/").size()));
    if (found == objects_.end()) return {.status = 404, .body = "<Error><Code>NoSuchKey</Code></Error>"};
    return serve(request, found->second, etag_of(found->second));
  }

 private:
  using Parameters = std::map<std::string, std::string>;

  static std::string etag_of(const std::string& content) {
    return "\"" + std::to_string(std::hash<std::string>()(content)) + "\"";
  }
  static Parameters parameters(std::string_view query) {
    Parameters all;
    while (!query.empty()) {
      query.remove_prefix(1);  // "?" or "&"
      const std::string_view part = query.substr(0, query.find('&'));
      const std::size_t equals = part.find('=');
      all[std::string(part.substr(0, equals))] = percent_decoded(part.substr(equals + 1)).value_or("");
      query.remove_prefix(part.size());
    }
    return all;
  }
  // Encodes spaces as "+", like Amazon S3.
  static std::string written(const std::string& key) {
    std::string text = percent_encoded(key, true);
    for (std::size_t at = 0; (at = text.find("%20", at)) != text.npos;) text.replace(at, 3, "+");
    return text;
  }

  static std::string escaped(const std::string& text) {
    std::string xml;
    for (const char c : text) xml += c == '&' ? "&amp;" : c == '<' ? "&lt;" : std::string(1, c);
    return xml;
  }

  std::string list(Parameters asked) const {
    const std::string prefix = asked["prefix"], after = asked["continuation-token"];
    const std::size_t most = std::stoul(asked["max-keys"]);
    std::string contents, prefixes;
    std::set<std::string> folders;
    std::size_t count = 0;
    for (auto at = objects_.upper_bound(after.empty() ? prefix : after); at != objects_.end(); ++at) {
      const std::string& key = at->first;
      if (!key.starts_with(prefix)) break;
      const std::size_t slash = asked["delimiter"] == "/" ? key.find('/', prefix.size()) : key.npos;
      if (slash != key.npos && folders.contains(key.substr(0, slash + 1))) continue;
      if (count++ == most)
        return "<ListBucketResult><EncodingType>url</EncodingType><IsTruncated>true</IsTruncated>"
               "<NextContinuationToken>" +
               escaped(std::prev(at)->first) + "</NextContinuationToken>" + contents + prefixes + "</ListBucketResult>";
      if (slash != key.npos) {
        prefixes += "<CommonPrefixes><Prefix>" + written(key.substr(0, slash + 1)) + "</Prefix></CommonPrefixes>";
        folders.insert(key.substr(0, slash + 1));
      } else {
        contents += "<Contents><Key>" + written(key) + "</Key><Size>" + std::to_string(at->second.size()) +
                    "</Size><ETag>" + etag_of(at->second) + "</ETag></Contents>";
      }
    }
    return "<ListBucketResult><EncodingType>url</EncodingType>" + contents + prefixes + "</ListBucketResult>";
  }

  mutable std::mutex mutex_;
  std::map<std::string, std::string> objects_;  // guarded by mutex_
};

// Returns a storage for a server in this process, which must outlive the storage.
inline std::shared_ptr<S3Storage> bucket_storage(const HttpServer& server) {
  const S3Settings settings{.endpoint = "http://" + server.host(), .path_style = true};
  HttpLimits limits;
  limits.first_pause = limits.longest_pause = std::chrono::milliseconds(1);
  limits.tries = 3;
  return std::make_shared<S3Storage>(std::make_shared<S3Site>(settings,
                                                              [] {
                                                                return Result<S3Keys>(S3Keys{"ID", "hunter2", "", 0});
                                                              }),
                                     limits);
}

}  // namespace feedline::storage
