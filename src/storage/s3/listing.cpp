// SPDX-License-Identifier: Apache-2.0
#include "storage/s3/listing.h"

#include <cstddef>
#include <functional>
#include <map>
#include <utility>

#include "storage/http/response_head.h"
#include "text/xml_reader.h"

namespace feedline::storage {
namespace {

std::unexpected<Error> no_listing(const std::string& why) {
  return storage_error("the server's response is not a valid listing: " + why, 0);
}

int hex_digit(char c) {
  if (c >= '0' && c <= '9') return c - '0';
  if (c >= 'a' && c <= 'f') return c - 'a' + 10;
  return c >= 'A' && c <= 'F' ? c - 'A' + 10 : -1;
}

std::string url_decoded(std::string_view text) {
  std::string result;
  for (std::size_t i = 0; i < text.size(); ++i) {
    const int high = text[i] == '%' && i + 2 < text.size() ? hex_digit(text[i + 1]) : -1;
    const int low = high >= 0 ? hex_digit(text[i + 2]) : -1;
    if (low >= 0) {
      result += static_cast<char>(high * 16 + low);
      i += 2;
    } else {
      result += text[i] == '+' ? ' ' : text[i];
    }
  }
  return result;
}

// The texts of elements that both kinds of listings have, by element name: settings of the page, and its continuation.
using Texts = std::map<std::string, std::string, std::less<>>;

std::string key_of(const std::string& text, const Texts& page) {
  const auto encoding = page.find("EncodingType");
  return encoding != page.end() && encoding->second == "url" ? url_decoded(text) : text;
}

std::string text_in(const Texts& page, std::string_view name) {
  const auto found = page.find(name);
  return found == page.end() ? std::string() : found->second;
}

// Calls `take` with the texts of each element inside `root` that contains other elements. Returns the texts that are
// directly inside `root`.
template <typename Take>
Result<Texts> read_page(std::string_view xml, std::string_view root, const Take& take) {
  constexpr std::size_t kPage = 2, kEntry = 3;  // lengths of the paths of their elements
  Texts page, entry;
  std::string wrong;
  const auto read = text::read_xml(xml, [&](const text::XmlElement& element) {
    if (element.path[0] != root)
      wrong = "the root element is '" + element.path[0] + "', not '" + std::string(root) + "'";
    if (element.path.size() == kEntry) entry.emplace(element.name(), element.text);
    if (element.path.size() == kPage && entry.empty()) page.emplace(element.name(), element.text);
    if (element.path.size() == kPage && !entry.empty() && wrong.empty()) wrong = take(element.name(), entry);
    if (element.path.size() == kPage) entry.clear();
    return wrong.empty();
  });
  if (!read) return no_listing(read.error().what);
  if (!wrong.empty()) return no_listing(wrong);
  return page;
}

}  // namespace

std::string xml_text(std::string_view xml, std::string_view name) {
  std::string found;
  // an error later in the document does not matter: it may be truncated
  static_cast<void>(text::read_xml(xml, [&](const text::XmlElement& element) {
    if (element.name() != name) return true;
    found = element.text;
    return false;
  }));
  return found;
}

std::string completed_etag(std::string_view xml) {
  std::string etag;
  const auto read = text::read_xml(xml, [&](const text::XmlElement& element) {
    if (element.path[0] != "CompleteMultipartUploadResult") return false;
    if (element.name() == "ETag") etag = element.text;
    return true;
  });
  return read ? etag : std::string();
}

Result<S3Listing> parse_listing(std::string_view xml) {
  S3Listing listing;
  const auto take = [&](std::string_view name, Texts& entry) -> std::string {
    if (name == "CommonPrefixes") listing.prefixes.push_back(std::move(entry["Prefix"]));
    if (name != "Contents") return {};
    const auto bytes = parse_size(entry["Size"]);
    if (!bytes) return "an object without a size";
    listing.objects.push_back({std::move(entry["Key"]), *bytes, std::move(entry["ETag"])});
    return {};
  };
  FEEDLINE_TRY(const Texts page, read_page(xml, "ListBucketResult", take));
  for (S3Listing::Object& object : listing.objects) object.key = key_of(object.key, page);
  for (std::string& prefix : listing.prefixes) prefix = key_of(prefix, page);
  if (text_in(page, "IsTruncated") != "true") return listing;
  listing.next = text_in(page, "NextContinuationToken");
  if (listing.next.empty()) return no_listing("the listing is truncated, but has no NextContinuationToken");
  return listing;
}

Result<S3Uploads> parse_uploads(std::string_view xml) {
  S3Uploads found;
  const auto take = [&](std::string_view name, Texts& entry) -> std::string {
    if (name == "Upload") found.uploads.push_back({std::move(entry["Key"]), std::move(entry["UploadId"])});
    return {};
  };
  FEEDLINE_TRY(const Texts page, read_page(xml, "ListMultipartUploadsResult", take));
  for (S3Upload& upload : found.uploads) upload.key = key_of(upload.key, page);
  if (text_in(page, "IsTruncated") != "true") return found;
  found.next_key = key_of(text_in(page, "NextKeyMarker"), page);
  found.next_id = text_in(page, "NextUploadIdMarker");
  if (found.next_key.empty()) return no_listing("the listing is truncated, but has no NextKeyMarker");
  return found;
}

}  // namespace feedline::storage
