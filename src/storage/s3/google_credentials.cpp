// SPDX-License-Identifier: Apache-2.0
#include "storage/s3/google_credentials.h"

#include <cerrno>

#include "storage/s3/rsa_signature.h"

namespace feedline::storage {
namespace {

constexpr std::int64_t kTokenSeconds = 3600;  // Google's maximum
constexpr std::string_view kTokenUrl = "https://oauth2.googleapis.com/token";
// Only reads and writes objects.
constexpr std::string_view kScope = "https://www.googleapis.com/auth/devstorage.read_write";

// Base64url as in tokens: two characters differ, and there is no padding.
std::string base64url(std::string_view bytes) {
  static constexpr std::string_view kDigits = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_";
  std::string text;
  std::uint32_t bits = 0;
  int held = 0;
  for (const char c : bytes) {
    bits = bits << 8 | static_cast<std::uint8_t>(c);
    for (held += 8; held >= 6; held -= 6) text += kDigits[bits >> (held - 6) & 63];
  }
  if (held > 0) text += kDigits[bits << (6 - held) & 63];
  return text;
}

// Formats a member of a JSON object.
std::string member(std::string_view name, std::string_view value) {
  std::string text = "\"" + std::string(name) + "\":\"";
  for (const char c : value) {
    if (c == '"' || c == '\\') text += '\\';
    text += c;
  }
  return text + "\"";
}

Result<S3Keys> keys_of_answer(std::string_view answer, const std::string& from, std::int64_t now) {
  S3Keys keys;
  keys.bearer = json_text(answer, "access_token");
  if (keys.bearer.empty()) return storage_error(from + " gives no token", EACCES);
  keys.expires = now + json_number(answer, "expires_in").value_or(kTokenSeconds);
  return keys;
}

Result<S3Keys> of_service_account(const KeyAsker& ask, const std::string& from, std::string_view file,
                                  std::int64_t now) {
  std::string url = json_text(file, "token_uri");
  if (url.empty()) url = kTokenUrl;
  const std::string head = "{" + member("alg", "RS256") + "," + member("typ", "JWT") + "," +
                           member("kid", json_text(file, "private_key_id")) + "}";
  const std::string claims = "{" + member("iss", json_text(file, "client_email")) + "," + member("scope", kScope) +
                             "," + member("aud", url) + ",\"iat\":" + std::to_string(now) +
                             ",\"exp\":" + std::to_string(now + kTokenSeconds) + "}";
  const std::string text = base64url(head) + "." + base64url(claims);
  auto signature = rs256(json_text(file, "private_key"), text);
  if (!signature) {
    signature.error().what = from + ": " + signature.error().what;
    return std::unexpected(std::move(signature).error());
  }
  FEEDLINE_TRY(const std::string answer,
               ask.post(from, url,
                        query_text({{"grant_type", "urn:ietf:params:oauth:grant-type:jwt-bearer"},
                                    {"assertion", text + "." + base64url(*signature)}})));
  return keys_of_answer(answer, from, now);
}

Result<S3Keys> of_user(const KeyAsker& ask, const std::string& from, std::string_view file, std::int64_t now) {
  std::string url = json_text(file, "token_uri");
  if (url.empty()) url = kTokenUrl;
  FEEDLINE_TRY(const std::string answer, ask.post(from, url,
                                                  query_text({{"grant_type", "refresh_token"},
                                                              {"client_id", json_text(file, "client_id")},
                                                              {"client_secret", json_text(file, "client_secret")},
                                                              {"refresh_token", json_text(file, "refresh_token")}})));
  return keys_of_answer(answer, from, now);
}

Result<S3Keys> of_file(const KeyAsker& ask, const std::string& path, std::int64_t now) {
  FEEDLINE_TRY(const std::string file, key_file_text(path));
  const std::string from = "the Google credentials of '" + path + "'", type = json_text(file, "type");
  if (type == "service_account") return of_service_account(ask, from, file, now);
  if (type == "authorized_user") return of_user(ask, from, file, now);
  return storage_error(
      from + (type.empty() ? " say no type" : " are of type '" + type + "'") +
          ", and Feedline knows 'service_account' and 'authorized_user': give one of these, an HMAC key in "
          "GS_ACCESS_KEY_ID and GS_SECRET_ACCESS_KEY, or a token in CLOUDSDK_AUTH_ACCESS_TOKEN",
      EACCES);
}

// The file written by `gcloud auth application-default login`.
std::string gcloud_file() {
  const std::string folder = variable("CLOUDSDK_CONFIG"), home = variable("HOME");
  if (folder.empty() && home.empty()) return {};
  return (folder.empty() ? home + "/.config/gcloud" : folder) + "/application_default_credentials.json";
}

// No keys if the service does not exist: most machines are not on Google Cloud.
Result<S3Keys> of_metadata(const KeyAsker& ask, std::int64_t now) {
  const std::string from = "the machine's metadata", named = variable("GCE_METADATA_HOST");
  const std::string host = named.empty() ? "metadata.google.internal" : named;
  const auto answer =
      ask.impatient()(from, {.url = "http://" + host + "/computeMetadata/v1/instance/service-accounts/default/token",
                             .headers = {"Metadata-Flavor: Google"}});
  if (!answer) return S3Keys{};
  return keys_of_answer(*answer, from, now);
}

}  // namespace

Result<S3Keys> find_google_keys(const KeyAsker& ask, std::int64_t now) {
  S3Keys keys{variable("GS_ACCESS_KEY_ID"), variable("GS_SECRET_ACCESS_KEY"), "", 0};
  if (!keys.id.empty() && !keys.secret.empty()) return keys;
  keys = {};
  keys.bearer = variable("CLOUDSDK_AUTH_ACCESS_TOKEN");
  if (!keys.bearer.empty()) return keys;
  if (const std::string named = variable("GOOGLE_APPLICATION_CREDENTIALS"); !named.empty())
    return of_file(ask, named, now);
  if (const std::string left = gcloud_file(); !left.empty() && key_file_text(left)) return of_file(ask, left, now);
  if (variable("NO_GCE_CHECK") == "true" || variable("NO_GCE_CHECK") == "True") return S3Keys{};
  return of_metadata(ask, now);
}

}  // namespace feedline::storage
