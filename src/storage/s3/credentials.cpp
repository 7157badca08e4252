// SPDX-License-Identifier: Apache-2.0
#include "storage/s3/credentials.h"

#include <array>
#include <cerrno>
#include <chrono>
#include <utility>

#include "storage/http/url.h"
#include "storage/s3/key_service.h"
#include "storage/s3/listing.h"

namespace feedline::storage {
namespace {

constexpr std::int64_t kBeforeExpiry = 300;  // seconds before expiry at which AWS and Google issue new ones
constexpr std::int64_t kBetweenLooks = 15;   // seconds until the next attempt if a provider fails or has no newer keys

std::string_view trimmed(std::string_view text) {
  while (!text.empty() && (text.front() == ' ' || text.front() == '\t')) text.remove_prefix(1);
  while (!text.empty() && (text.back() == ' ' || text.back() == '\t' || text.back() == '\r')) text.remove_suffix(1);
  return text;
}

std::string home_file(const char* named_by, const char* name) {
  const std::string named = variable(named_by);
  return named.empty() ? variable("HOME") + "/.aws/" + name : named;
}

std::string profile_name() {
  std::string name = variable("AWS_PROFILE");
  if (name.empty()) name = variable("AWS_DEFAULT_PROFILE");
  return name.empty() ? "default" : name;
}

Result<S3Keys> keys_of_json(std::string_view json, const std::string& from) {
  S3Keys keys{json_text(json, "AccessKeyId"), json_text(json, "SecretAccessKey"), json_text(json, "Token"), 0};
  if (keys.id.empty() || keys.secret.empty()) return storage_error(from + " gives no keys", EACCES);
  keys.expires = parse_iso_time(json_text(json, "Expiration")).value_or(0);
  return keys;
}

// token_file, role: from the environment or the profile.
Result<S3Keys> of_web_identity(const KeyAsker& ask, const std::string& token_file, const std::string& role,
                               const std::string& session) {
  const std::string from = "the web identity of '" + token_file + "'";
  FEEDLINE_TRY(const std::string token, key_file_text(token_file));
  const std::string region = variable("AWS_REGION");
  std::string endpoint = variable("AWS_ENDPOINT_URL_STS");
  if (endpoint.empty()) endpoint = "https://sts." + (region.empty() ? "" : region + ".") + "amazonaws.com";
  while (endpoint.ends_with('/')) endpoint.pop_back();
  FEEDLINE_TRY(const std::string answer,
               ask.post(from, endpoint + "/",
                        query_text({{"Action", "AssumeRoleWithWebIdentity"},
                                    {"Version", "2011-06-15"},
                                    {"RoleArn", role},
                                    {"RoleSessionName", session.empty() ? "feedline" : session},
                                    {"WebIdentityToken", std::string(trimmed(token.substr(0, token.find('\n'))))}})));
  S3Keys keys{xml_text(answer, "AccessKeyId"), xml_text(answer, "SecretAccessKey"), xml_text(answer, "SessionToken"),
              parse_iso_time(xml_text(answer, "Expiration")).value_or(0)};
  if (keys.id.empty() || keys.secret.empty()) return storage_error(from + " gives no keys", EACCES);
  return keys;
}

// Unsupported profile settings are an error, because it would be surprising if other keys than the profile's were used.
Result<void> refuse_other_ways() {
  const auto refused = [](const std::string& key) {
    const std::string name = profile_name();
    return storage_error(
        "the profile '" + name + "' gets its keys by " + key +
            ", which Feedline does not support: set what `aws configure export-credentials --profile " + name +
            " --format env` prints, before they expire, or give the profile keys",
        EACCES);
  };
  for (const char* key : {"credential_process", "sso_session", "sso_start_url", "source_profile", "credential_source"})
    if (!profile_value(key).empty()) return refused(key);
  return {};
}

Result<S3Keys> of_container(const KeyAsker& ask) {
  const std::string from = "the container's credentials";
  std::string url = variable("AWS_CONTAINER_CREDENTIALS_FULL_URI");
  if (const std::string path = variable("AWS_CONTAINER_CREDENTIALS_RELATIVE_URI"); !path.empty())
    url = "http://169.254.170.2" + path;
  Call call{.url = url, .headers = {}};
  std::string token = variable("AWS_CONTAINER_AUTHORIZATION_TOKEN");
  if (const std::string file = variable("AWS_CONTAINER_AUTHORIZATION_TOKEN_FILE"); !file.empty()) {
    FEEDLINE_TRY(token, key_file_text(file));
    token = trimmed(std::string_view(token).substr(0, token.find('\n')));
  }
  if (!token.empty()) call.headers.push_back("Authorization: " + token);
  FEEDLINE_TRY(const std::string answer, ask(from, std::move(call)));
  return keys_of_json(answer, from);
}

// No keys if the service does not exist: most machines are not EC2 instances.
Result<S3Keys> of_instance(const KeyAsker& ask) {
  const std::string from = "the instance's metadata";
  std::string endpoint = variable("AWS_EC2_METADATA_SERVICE_ENDPOINT");
  if (endpoint.empty()) endpoint = "http://169.254.169.254";
  while (endpoint.ends_with('/')) endpoint.pop_back();
  const auto token = ask(from, {.url = endpoint + "/latest/api/token",
                                .headers = {"X-aws-ec2-metadata-token-ttl-seconds: 21600", "Content-Length: 0"},
                                .method = "PUT"});
  if (!token) return S3Keys{};
  const std::vector<std::string> headers{"X-aws-ec2-metadata-token: " + *token};
  const std::string folder = endpoint + "/latest/meta-data/iam/security-credentials/";
  const auto role = ask(from, {.url = folder, .headers = headers});
  if (!role) return S3Keys{};  // an instance without a role
  FEEDLINE_TRY(const std::string answer,
               ask(from, {.url = folder + role->substr(0, role->find('\n')), .headers = headers}));
  return keys_of_json(answer, from);
}

}  // namespace

std::map<std::string, std::string> profile_in(std::string_view file, std::string_view profile) {
  std::map<std::string, std::string> values;
  bool is_inside = false;
  while (!file.empty()) {
    const std::size_t end = std::min(file.find('\n'), file.size());
    const std::string_view line = file.substr(0, end), text = trimmed(line);
    file.remove_prefix(std::min(end + 1, file.size()));
    if (text.empty() || text.front() == '#' || text.front() == ';') continue;
    if (text.front() == '[') {
      std::string_view name = trimmed(text.substr(1, text.find(']') - 1));
      if (name.starts_with("profile ")) name = trimmed(name.substr(8));
      is_inside = name == profile;
      continue;
    }
    const std::size_t equals = text.find('=');
    const bool is_nested = line.front() == ' ' || line.front() == '\t';
    if (is_inside && !is_nested && equals != text.npos)
      values[std::string(trimmed(text.substr(0, equals)))] = trimmed(text.substr(equals + 1));
  }
  return values;
}

std::optional<std::int64_t> parse_iso_time(std::string_view text) {
  if (text.size() < 20 || text[4] != '-' || text[7] != '-' || text[10] != 'T' || text[13] != ':' || text[16] != ':' ||
      text.back() != 'Z')
    return {};
  std::array<std::uint64_t, 6> parts{};
  constexpr std::array<std::size_t, 6> kAt{0, 5, 8, 11, 14, 17}, kDigits{4, 2, 2, 2, 2, 2};
  for (std::size_t i = 0; i < parts.size(); ++i) {
    const auto number = parse_size(text.substr(kAt[i], kDigits[i]));
    if (!number) return {};
    parts[i] = *number;
  }
  const std::chrono::year_month_day date{std::chrono::year(static_cast<int>(parts[0])),
                                         std::chrono::month(static_cast<unsigned>(parts[1])),
                                         std::chrono::day(static_cast<unsigned>(parts[2]))};
  if (!date.ok() || parts[3] > 23 || parts[4] > 59 || parts[5] > 60) return {};
  return std::chrono::sys_days(date).time_since_epoch().count() * std::int64_t{86'400} +
         static_cast<std::int64_t>(parts[3] * 3600 + parts[4] * 60 + parts[5]);
}

std::string profile_value(const std::string& key) {
  // the credentials file takes precedence over the config file
  for (const auto& path :
       {home_file("AWS_SHARED_CREDENTIALS_FILE", "credentials"), home_file("AWS_CONFIG_FILE", "config")})
    if (const auto file = key_file_text(path)) {
      const auto values = profile_in(*file, profile_name());
      if (const auto found = values.find(key); found != values.end()) return found->second;
    }
  return {};
}

Result<S3Keys> find_keys(const HttpLimits& limits, Client* client) {
  const KeyAsker ask{limits, client};
  S3Keys keys{variable("AWS_ACCESS_KEY_ID"), variable("AWS_SECRET_ACCESS_KEY"), variable("AWS_SESSION_TOKEN"), 0};
  if (!keys.id.empty() && !keys.secret.empty()) return keys;
  if (const std::string token = variable("AWS_WEB_IDENTITY_TOKEN_FILE"); !token.empty())
    return of_web_identity(ask, token, variable("AWS_ROLE_ARN"), variable("AWS_ROLE_SESSION_NAME"));
  keys = {profile_value("aws_access_key_id"), profile_value("aws_secret_access_key"),
          profile_value("aws_session_token"), 0};
  if (!keys.id.empty() && !keys.secret.empty()) return keys;
  if (const std::string token = profile_value("web_identity_token_file"); !token.empty())
    return of_web_identity(ask, token, profile_value("role_arn"), profile_value("role_session_name"));
  FEEDLINE_CHECK_OK(refuse_other_ways());
  if (!variable("AWS_CONTAINER_CREDENTIALS_RELATIVE_URI").empty() ||
      !variable("AWS_CONTAINER_CREDENTIALS_FULL_URI").empty())
    return of_container(ask);
  if (variable("AWS_EC2_METADATA_DISABLED") == "true") return S3Keys{};
  return of_instance(ask.impatient());
}

Result<void> KeyRing::prepare() const {
  const auto is_fresh = [this] {
    const std::lock_guard lock(mutex_);
    if (!keys_) return false;
    const std::int64_t now = now_();
    if (keys_->expires == 0 || keys_->expires - now > kBeforeExpiry) return true;
    return keys_->expires > now && now < look_again_;
  };
  if (is_fresh()) return {};
  const std::lock_guard finding(finding_);
  if (is_fresh()) return {};  // another thread has found them
  auto found = find_anew();
  const std::lock_guard lock(mutex_);
  look_again_ = now_() + kBetweenLooks;
  if (found || (keys_ && keys_->expires > now_())) return {};
  return found;
}

Result<void> KeyRing::renew(std::uint64_t refused) const {
  const std::lock_guard finding(finding_);
  if (keys().generation != refused) return {};
  return find_anew();
}

Result<void> KeyRing::find_anew() const {
  FEEDLINE_TRY(S3Keys found, find_());
  const std::lock_guard lock(mutex_);
  found.generation = keys_ ? keys_->generation + 1 : 1;
  keys_ = std::move(found);
  return {};
}

S3Keys KeyRing::keys() const {
  const std::lock_guard lock(mutex_);
  return keys_.value_or(S3Keys{});
}

}  // namespace feedline::storage
