// SPDX-License-Identifier: Apache-2.0

// Any bytes as S3's XML responses, and as keys in a valid response, which must be returned unchanged.

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "base/check.h"
#include "fuzz_input.h"
#include "storage/http/url.h"
#include "storage/s3/listing.h"

using namespace feedline;

namespace {

constexpr std::size_t kMostKeys = 40;
const std::string kNames[] = {"Code", "Key", "UploadId", "ETag", "IsTruncated", "Contents", "Error"};

// No text is longer than the document in UTF-8 (a code page's character may take three bytes), and a truncated listing
// is an error.
void check_any(const std::string& xml) {
  for (const std::string& name : kNames) FEEDLINE_CHECK(storage::xml_text(xml, name).size() <= 3 * xml.size());
  FEEDLINE_CHECK(storage::completed_etag(xml).size() <= 3 * xml.size());
  if (const auto listing = storage::parse_listing(xml)) {
    FEEDLINE_CHECK(listing->objects.size() + listing->prefixes.size() <= xml.size());
    for (const auto& object : listing->objects) FEEDLINE_CHECK(object.bytes <= ~std::uint64_t{0} >> 1);
    const std::size_t end = xml.rfind('>');
    FEEDLINE_CHECK(end != xml.npos && !storage::parse_listing(xml.substr(0, end)));
  }
  if (const auto found = storage::parse_uploads(xml)) FEEDLINE_CHECK(found->uploads.size() <= xml.size());
}

// XML cannot contain control characters, even escaped, or invalid UTF-8.
bool is_plain(std::string_view text) {
  return std::ranges::all_of(text, [](char c) { return c >= ' ' && c <= '~'; });
}

std::string escaped(std::string_view text) {
  std::string result;
  for (const char c : text) {
    if (c == '&')
      result += "&amp;";
    else if (c == '<')
      result += "&lt;";
    else if (c == '>')
      result += "&#x3E;";
    else if (c == '"')
      result += "&#34;";
    else
      result += c;
  }
  return result;
}

void check_round_trip(FuzzInput input) {
  const bool is_encoded = input.number(1) % 2 == 0;
  std::vector<std::string> keys;
  std::string xml = "<?xml version=\"1.0\"?><ListBucketResult xmlns=\"http://s3.amazonaws.com/doc/2006-03-01/\">";
  if (is_encoded) xml += "<EncodingType>url</EncodingType>";
  while (!input.is_empty() && keys.size() < kMostKeys) {
    keys.emplace_back(input.text());
    if (!is_encoded && !is_plain(keys.back())) keys.back() = "plain";
    xml += "<Contents><Key>" + (is_encoded ? storage::percent_encoded(keys.back(), true) : escaped(keys.back())) +
           "</Key><Size>" + std::to_string(keys.size()) + "</Size></Contents>";
  }
  xml += "</ListBucketResult>";
  const auto listing = storage::parse_listing(xml);
  FEEDLINE_CHECK(listing && listing->objects.size() == keys.size() && listing->next.empty());
  for (std::size_t i = 0; i < keys.size(); ++i) {
    FEEDLINE_CHECK(listing->objects[i].key == keys[i]);
    FEEDLINE_CHECK(listing->objects[i].bytes == i + 1);
  }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t bytes) {
  check_any(std::string(reinterpret_cast<const char*>(data), bytes));
  check_round_trip(FuzzInput(data, bytes));
  return 0;
}
