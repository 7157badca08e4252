// SPDX-License-Identifier: Apache-2.0
#include "storage/plugin/plugin_storage.h"

#include <utility>
#include <vector>

#include "base/plugin_call.h"
#include "base/plugin_checks.h"
#include "storage/foreign/foreign_storage.h"
#include "storage/registry.h"

namespace feedline::storage {
namespace {

using Listed = std::vector<ForeignObject>;

// Receives a listing. No exception may reach the plugin, which may be written in C.
struct Receiver {
  bool all;
  Listed objects = {};
  std::string problem = {};  // of the first entry that is invalid or could not be allocated

  static void add(void* host, const char* path, const feedline_object* object) noexcept {
    auto& self = *static_cast<Receiver*>(host);
    if (!self.problem.empty()) return;
    try {
      self.problem = self.problem_of(path, object);
      if (self.problem.empty()) self.objects.push_back({path, object->bytes, object->tag, object->is_folder != 0});
    } catch (...) {
      self.problem = "needs memory";  // short enough for no allocation
    }
  }

 private:
  std::string problem_of(const char* path, const feedline_object* object) const {
    if (path == nullptr || object == nullptr) return "added NULL instead of an entry";
    const std::string_view name = path;
    if (name.empty() || name.starts_with('/') || name.ends_with('/') || (!all && name.contains('/')))
      return "added the entry '" + std::string(name) + "', which is not a path relative to the folder" +
             (all ? "" : " and directly in it");
    if (all && object->is_folder != 0)
      return "added the folder '" + std::string(name) + "' to a recursive listing, which must have objects only";
    return {};
  }
};

class PluginStorage final : public ForeignStorage {
 public:
  explicit PluginStorage(const feedline_storage_v1& plugin)
      : plugin_(plugin), what_("the plugin's storage '" + std::string(plugin.scheme) + "://'") {}

  std::string explain() const override {
    std::string text = plugin_.scheme;
    text += ":// is read by a plugin";
    if (plugin_.version != nullptr) text.append(" ").append(plugin_.version);
    return text;
  }
  Result<ForeignObject> stat(const std::string& url) const override {
    feedline_object object{};
    FEEDLINE_CHECK_OK(base::call_plugin(what_, [&](feedline_message* message) {
      return plugin_.stat(plugin_.context, url.c_str(), &object, message);
    }));
    return ForeignObject{{}, object.bytes, object.tag, object.is_folder != 0};
  }
  Result<std::size_t> read(const std::string& url, std::uint64_t offset, std::span<std::byte> out) const override {
    std::size_t got = 0;
    FEEDLINE_CHECK_OK(base::call_plugin(what_, [&](feedline_message* message) {
      return plugin_.read(plugin_.context, url.c_str(), offset, out.data(), out.size(), &got, message);
    }));
    if (got > out.size())
      return storage_error(what_ + ": read() reports " + std::to_string(got) + " bytes, but " +
                               std::to_string(out.size()) + " were requested",
                           0);
    return got;
  }
  Result<Listed> list(const std::string& url, bool all) const override {
    if (plugin_.list == nullptr)
      return config_error(what_ + " cannot list folders: name the objects, as in \"" + std::string(plugin_.scheme) +
                          "://shards/{000..146}.tar\"");
    Receiver receiver{all};
    const feedline_listing listing{&receiver, Receiver::add};
    FEEDLINE_CHECK_OK(base::call_plugin(what_, [&](feedline_message* message) {
      return plugin_.list(plugin_.context, url.c_str(), all ? 1 : 0, &listing, message);
    }));
    if (!receiver.problem.empty()) return storage_error(what_ + ": list() " + receiver.problem, 0);
    return std::move(receiver.objects);
  }

 private:
  const feedline_storage_v1 plugin_;
  const std::string what_;
};

}  // namespace

Result<void> check_plugin(const feedline_storage_v1& storage) {
  FEEDLINE_CHECK_OK(base::check_plugin_name("a storage", "scheme", storage.scheme, true));
  const std::string scheme = storage.scheme;
  if (scheme_of(scheme + "://") != scheme)
    return config_error("a storage has the scheme '" + scheme +
                        "', which must be lower-case letters and digits, and begin with a letter");
  if (storage.stat == nullptr || storage.read == nullptr)
    return config_error("the storage '" + scheme + "://' lacks one of stat() and read()");
  if (built_in_schemes().has(scheme) || has_foreign_storage(scheme))
    return config_error("the storage scheme '" + scheme + "://' exists already; choose another name");
  return {};
}

void add_plugin(const feedline_storage_v1& storage) {
  add_foreign_storage(storage.scheme, std::make_shared<PluginStorage>(storage));
}

}  // namespace feedline::storage
