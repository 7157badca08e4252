// SPDX-License-Identifier: Apache-2.0
#include "storage/registry.h"

#include <algorithm>
#include <array>
#include <optional>

#include "storage/foreign/foreign_storage.h"
#include "storage/http/remote_storage.h"
#include "storage/http/url.h"
#include "storage/hub/hub_storage.h"
#include "storage/pipe/pipe_storage.h"
#include "storage/s3/s3_storage.h"

namespace feedline::storage {
namespace {

constexpr std::string_view kMark = "://";
// Schemes for which a Python library may exist; other unknown schemes may be misspelled.
constexpr std::array<std::string_view, 5> kWithoutReader{"abfs", "abfss", "az", "ftp", "sftp"};

bool is_letter(char c) { return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z'); }
bool is_of_scheme(char c) { return is_letter(c) || (c >= '0' && c <= '9') || c == '+' || c == '-' || c == '.'; }

std::unexpected<Error> refused(std::string_view url, const std::string& why) {
  return config_error("open: '" + without_secrets(url) + "': " + why);
}

// file:///path, or file://localhost/path.
Result<Location> open_file_url(std::string_view url) {
  const std::string_view rest = url.substr(url.find(kMark) + kMark.size());
  const std::size_t slash = rest.find('/');
  const std::string_view host = rest.substr(0, slash);
  if (slash == rest.npos || (!host.empty() && host != "localhost"))
    return refused(url,
                   "a file URL has an absolute path and no host, as in file:///data/train; mount a folder of "
                   "another machine and pass its path");
  auto path = percent_decoded(rest.substr(slash));
  if (!path)
    return refused(url, "in a URL, % must be followed by two hexadecimal digits; write %25 for the character itself");
  return Location{local_storage(), std::move(*path)};
}

Result<Location> open_http_url(std::string_view url) {
  const auto parts = parts_of_url(url);
  if (!parts) return refused(url, "the URL has no host; write https://host/path/000.tar");
  const auto is_no_text = [](char c) { return static_cast<unsigned char>(c) <= ' '; };
  if (std::ranges::any_of(url, is_no_text)) return refused(url, "a URL must not contain spaces; write %20 instead");
  return Location{http_storage(), without_secrets(url)};
}

Result<Location> open_bucket_url(std::string_view url, std::shared_ptr<const Storage> storage, const char* scheme) {
  const auto name = s3_name(url);
  if (!name) return refused(url, "the URL has no bucket; write " + std::string(scheme) + "://bucket/path/000.tar");
  return Location{std::move(storage),
                  std::string(scheme) + "://" + std::string(name->bucket) + "/" + std::string(name->key)};
}
Result<Location> open_s3_url(std::string_view url) { return open_bucket_url(url, s3_storage(), "s3"); }
Result<Location> open_gs_url(std::string_view url) { return open_bucket_url(url, gs_storage(), "gs"); }

// Pins the revision, with a request at the first call of the process. Models, spaces and buckets are read by a library.
Result<Location> open_hub_url(std::string_view url) {
  const auto foreign = hub_name(url) ? Result<std::shared_ptr<const Storage>>(nullptr) : foreign_storage("hf");
  if (foreign && *foreign) return Location{*foreign, without_secrets(url)};
  FEEDLINE_TRY(std::string pinned, pinned_hub_url(url, false));
  return Location{hub_storage(), std::move(pinned)};
}

}  // namespace

std::string scheme_of(std::string_view url) {
  const std::size_t end = url.find(kMark);
  if (end == url.npos || end == 0 || !is_letter(url[0]) || !std::ranges::all_of(url.substr(0, end), is_of_scheme))
    return {};
  std::string scheme(url.substr(0, end));
  for (char& c : scheme) c = c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c;
  return scheme;
}

std::string Registry::known() const {
  std::string names;
  for (const auto& [scheme, reader] : schemes_) names += (names.empty() ? "" : ", ") + scheme + std::string(kMark);
  return names;
}

Result<Location> Registry::open(const std::string& url) const {
  if (url.starts_with(kPipe))
    return config_error("open: a source that begins with '" + std::string(kPipe) +
                        "' is a command; running it requires allow_commands=True; write ./" + std::string(kPipe) +
                        "... for a path with this name");
  const std::string scheme = scheme_of(url);
  if (scheme.empty()) return Location{local_storage(), url};
  if (const auto found = schemes_.find(scheme); found != schemes_.end()) return found->second(url);
  const auto foreign = foreign_storage(scheme);
  if (foreign && *foreign) return Location{*foreign, without_secrets(url)};
  if (!foreign || std::ranges::find(kWithoutReader, scheme) != kWithoutReader.end())
    return refused(url, "this version has no reader for " + scheme + std::string(kMark) + ", only for paths and " +
                            known() + ": copy or mount the data, and open the copy" +
                            (foreign ? "" : "; or " + foreign.error().what));
  return refused(url, "'" + scheme + "' is not a known scheme; this version reads paths and " + known() +
                          ": correct the scheme, or write ./" + without_secrets(url) + " for a path with this name");
}

Registry built_in_schemes() {
  Registry registry;
  registry.add("file", open_file_url);
  registry.add("http", open_http_url);
  registry.add("https", open_http_url);
  registry.add("s3", open_s3_url);
  registry.add("gs", open_gs_url);
  registry.add("hf", open_hub_url);
  return registry;
}

Result<Location> open(const std::string& url) {
  static const Registry registry = built_in_schemes();
  return registry.open(url);
}

std::string identity_of(const std::string& url) {
  const auto location = open(url);
  return location ? location->storage->identity(location->object) : url;
}

}  // namespace feedline::storage
