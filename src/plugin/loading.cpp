// SPDX-License-Identifier: Apache-2.0
#include "feedline/plugin/loading.h"

#include <dlfcn.h>
#include <limits.h>
#include <stdlib.h>

#include <cerrno>
#include <mutex>
#include <system_error>
#include <utility>

#include "base/fork_mutex.h"
#include "base/guarded.h"
#include "feedline/plugin/plugin.h"
#include "format/plugin/plugin_formats.h"
#include "format/registry/format_names.h"
#include "plugin/registration.h"

namespace feedline {
namespace {

// Never destroyed, as plugins stay loaded.
struct Loaded {
  ForkMutex mutex;  // also held while a plugin registers, so that names are checked and added by one thread
  std::vector<PluginContents> plugins;  // guarded by mutex
};
Loaded& loaded() {
  static Loaded* const all = new Loaded;
  return *all;
}

std::unexpected<Error> refused(const std::string& path, const std::string& why) {
  return config_error("load_plugin: '" + path + "': " + why);
}

Result<std::string> real_path(const std::string& path) {
  char resolved[PATH_MAX];
  if (path.find('\0') != path.npos) return refused(path.c_str(), "the path has a zero byte");
  if (path.empty() || ::realpath(path.c_str(), resolved) == nullptr) {
    const int reason = path.empty() ? ENOENT : errno;
    return refused(path, reason == ENOENT ? "the file does not exist; give the path of a shared library"
                                          : "the path cannot be resolved: " + std::generic_category().message(reason));
  }
  return std::string(resolved);
}

Result<void*> open_library(const std::string& path) {
  // If an initializer of a static variable throws, the process ends here: a caught exception would leave the lock of
  // the dynamic linker locked, for which all new threads with thread-local destructors would then wait.
  if (void* const library = ::dlopen(path.c_str(), RTLD_NOW | RTLD_LOCAL)) return library;
  const char* const why = ::dlerror();
  return refused(path, std::string("the library cannot be loaded: ") + (why == nullptr ? "unknown reason" : why));
}

Result<plugin::Register> find_register(void* library) {
  if (void* const found = ::dlsym(library, "feedline_register_v1")) return reinterpret_cast<plugin::Register>(found);
  constexpr int kLatest = 9;
  for (int version = FEEDLINE_PLUGIN_VERSION + 1; version <= kLatest; ++version)
    if (::dlsym(library, ("feedline_register_v" + std::to_string(version)).c_str()) != nullptr)
      return config_error("the plugin has version " + std::to_string(version) +
                          " of the plugin interface, but Feedline " + plugin::engine_version() + " has version " +
                          std::to_string(FEEDLINE_PLUGIN_VERSION) +
                          ": update Feedline, or compile the plugin with the headers of this version");
  return config_error(
      "it is not a plugin: the library does not export feedline_register_v1() "
      "(feedline/plugin/plugin.h); in C++, declare it extern \"C\" and with default visibility");
}

}  // namespace

Result<PluginContents> load_plugin(const std::string& given, const ReservedNames& reserved) {
  return base::guarded([&]() -> Result<PluginContents> {
    FEEDLINE_TRY(const std::string path, real_path(given));
    const std::lock_guard lock(loaded().mutex);
    for (const PluginContents& plugin : loaded().plugins)
      if (plugin.path == path) return plugin;
    FEEDLINE_TRY(void* const library, open_library(path));
    const auto registering = find_register(library);
    auto contents =
        registering ? plugin::register_plugin(path, *registering, reserved) : std::unexpected(registering.error());
    if (!contents) {
      ::dlclose(library);
      return refused(path, contents.error().what);
    }
    loaded().plugins.push_back(*contents);
    return contents;
  });
}

std::vector<PluginContents> loaded_plugins() {
  const std::lock_guard lock(loaded().mutex);
  return loaded().plugins;
}

bool reads_extension(std::string_view extension) {
  return format::is_extension_of_engine(extension) ||
         format::plugin_format_of_file("file." + std::string(extension)) != nullptr;
}

}  // namespace feedline
