// SPDX-License-Identifier: Apache-2.0
#include "storage/s3/signature.h"

#include <array>
#include <ctime>

#include "base/sha256.h"
#include "storage/http/url.h"

namespace feedline::storage {
namespace {

// Of no bytes.
constexpr std::string_view kEmptyBody = "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855";
constexpr std::string_view kMethod = "AWS4-HMAC-SHA256";

std::string time_text(std::int64_t now) {
  const auto seconds = static_cast<std::time_t>(now);
  std::tm when{};
  ::gmtime_r(&seconds, &when);
  std::array<char, 32> text{};
  std::strftime(text.data(), text.size(), "%Y%m%dT%H%M%SZ", &when);
  return text.data();
}

std::string signing_key(const S3Keys& keys, std::string_view date, std::string_view region) {
  std::string key = "AWS4" + keys.secret;
  for (const std::string_view part : {date, region, std::string_view("s3"), std::string_view("aws4_request")})
    key = std::string(base::bytes_of(base::hmac_sha256(key, part)));
  return key;
}

}  // namespace

std::string query_text(const std::map<std::string, std::string>& query) {
  std::string text;
  for (const auto& [name, value] : query) {
    if (!text.empty()) text += '&';
    text += percent_encoded(name, false) + "=" + percent_encoded(value, false);
  }
  return text;
}

std::vector<std::string> signed_headers(const S3Request& request, const S3Keys& keys, std::string_view region,
                                        std::int64_t now) {
  const std::string time = time_text(now), date = time.substr(0, 8);
  std::map<std::string, std::string> headers = request.headers;
  headers["host"] = request.host;
  const std::string payload = request.payload.empty() ? std::string(kEmptyBody) : request.payload;
  headers["x-amz-content-sha256"] = payload;
  headers["x-amz-date"] = time;
  if (!keys.token.empty()) headers["x-amz-security-token"] = keys.token;
  std::string listed, names;
  for (const auto& [name, value] : headers) {
    listed += name + ":" + value + "\n";
    names += (names.empty() ? "" : ";") + name;
  }
  const std::string canonical = request.method + "\n" + request.path + "\n" + query_text(request.query) + "\n" +
                                listed + "\n" + names + "\n" + payload;
  const std::string scope = date + "/" + std::string(region) + "/s3/aws4_request";
  const std::string to_sign =
      std::string(kMethod) + "\n" + time + "\n" + scope + "\n" + base::hex_of(base::sha256(canonical));
  const std::string signature = base::hex_of(base::hmac_sha256(signing_key(keys, date, region), to_sign));
  headers.erase("host");
  std::vector<std::string> lines;
  for (const auto& [name, value] : headers) lines.push_back(name + ": " + value);
  lines.push_back("Authorization: " + std::string(kMethod) + " Credential=" + keys.id + "/" + scope +
                  ", SignedHeaders=" + names + ", Signature=" + signature);
  return lines;
}

}  // namespace feedline::storage
